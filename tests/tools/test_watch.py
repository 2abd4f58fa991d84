# SPDX-License-Identifier: MIT
"""What the command line shows of an experiment, before a daemon that is made up: progress, tables, and the end."""

import contextlib
import http.server
import json
import shutil
import socketserver
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from ipclab_cli import progress, table
from ipclab_cli.figures import figures_of
from ipclab_cli.http import EVENT_BYTES, Client, Unreachable, parse_events
from ipclab_cli.progress import Lines, Progress, follow
from ipclabtest import SOURCE

PROGRAM = SOURCE / "cli/ipclab"

POINT = {"workload": "stream", "transport": "pipe", "message_size": 4096}
RUN = {"id": 7, "state": "running", "point": POINT, "error": None}


def experiment(state="running", done=1, failed=0, eta=None, error=None, **more):
    counts = {"runs_total": 4, "runs_done": done, "runs_failed": failed}
    return {"id": 3, "state": state, "progress": counts, "eta_seconds": eta, "error": error, "skipped": [], **more}


def sample(agent="receiver", thread=0, **more):
    return {
        "run_id": 7,
        "agent": agent,
        "thread": thread,
        "interval_ns": 500_000_000,
        "messages": 1000,
        "bytes": 4_096_000,
        "latency_ns": None,
        **more,
    }


def figure(value):
    return None if value is None else {"median": value, "min": value, "max": value}


def percentiles(kind, p50, p99):
    return {"kind": kind, "p50": figure(p50), "p99": figure(p99)}


def row(size=4096, workload="stream", throughput=2.5e9, runs=1, flags=(), rtt=(1500, 2500), **more):
    there_and_back = workload == "pingpong" and throughput is not None
    return {
        "point": {"workload": workload, "transport": "pipe", "message_size": size, **more},
        "runs": runs,
        "throughput_bytes_per_second": figure(throughput),
        "messages_per_second": figure(throughput and throughput / size),
        "both_ways_bytes_per_second": figure(2 * throughput if there_and_back else None),
        "cost_ns": None,
        "latency_ns": percentiles("rtt", *rtt) if there_and_back else None,
        "latency_one_way_ns": percentiles("one_way", *(v / 2 for v in rtt)) if there_and_back else None,
        "flags": list(flags),
    }


def cost_row(kind, cost, p50, p99, runs=1, **point):
    """The row of a point whose workload moves nothing."""
    return {
        "point": point,
        "runs": runs,
        "throughput_bytes_per_second": None,
        "messages_per_second": figure(1e9 / cost),
        "both_ways_bytes_per_second": None,
        "cost_ns": figure(cost),
        "latency_ns": percentiles(kind, p50, p99),
        "latency_one_way_ns": None,
        "flags": [],
    }


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_line_of_a_stream():
    progress = Progress(experiment())
    progress.take("run", RUN)
    assert progress.line() == "[1/4] stream pipe 4 KiB: starting"
    progress.take("sample", sample("sender", bytes=1))
    progress.take("sample", sample(thread=0))
    progress.take("sample", sample(thread=1))
    progress.take("sample", {**sample(thread=2), "run_id": 6})
    assert progress.line() == "[1/4] stream pipe 4 KiB: 16.4 MB/s, 4,000 messages/s"


def test_line_of_a_pingpong():
    progress = Progress(experiment())
    progress.take("run", {**RUN, "point": {**POINT, "workload": "pingpong"}})
    progress.take("sample", sample("initiator", latency_ns={"p50": 12345}))
    progress.take("sample", sample("responder"))
    assert progress.line() == "[1/4] pingpong pipe 4 KiB: 2,000 messages/s, p50 12.35 µs"


TCP = {**POINT, "transport": "tcp"}


@pytest.mark.parametrize(
    ("point", "told"),
    [
        ({**TCP, "direction": "down"}, "8.2 MB/s, 2,000 messages/s"),
        ({**TCP, "direction": "up"}, "24.6 MB/s, 6,000 messages/s"),
        ({**TCP, "direction": "both"}, "32.8 MB/s, 8,000 messages/s"),
        ({**TCP, "workload": "pingpong"}, "6,000 messages/s, p50 9.00 µs"),
    ],
)
def test_line_has_what_came_in(point, told):
    """Down the client receives, up the server, with both they both do; the server begins round trips."""
    progress = Progress(experiment())
    progress.take("run", {**RUN, "point": point})
    latency = {"p50": 9000} if point["workload"] == "pingpong" else None
    progress.take("sample", sample("client"))
    progress.take("sample", sample("server", messages=3000, bytes=12_288_000, latency_ns=latency))
    assert progress.line() == f"[1/4] {point['workload']} tcp 4 KiB: {told}"


def test_line_waits_for_who_receives():
    progress = Progress(experiment())
    progress.take("run", {**RUN, "point": {**TCP, "direction": "up"}})
    progress.take("sample", sample("client"))
    assert progress.line() == "[1/4] stream tcp 4 KiB: starting"


def test_line_of_calls():
    """There is one agent, and its calls take less than the hundredth of a microsecond that others are told to."""
    progress = Progress(experiment())
    progress.take("run", {**RUN, "point": {"workload": "syscall", "call": "getpid"}})
    progress.take("sample", sample("initiator", bytes=0, latency_ns={"p50": 25}))
    assert progress.line() == "[1/4] syscall: 2,000 calls/s, p50 0.025 µs"
    progress.take("run", {**RUN, "point": {"workload": "context-switch"}})
    progress.take("sample", sample("initiator", bytes=0, latency_ns={"p50": 2500}))
    assert progress.line() == "[1/4] context-switch: 2,000 rounds/s, p50 2.50 µs"


def test_line_in_the_queue():
    progress = Progress(experiment("queued", done=0, queue_position=2))
    assert progress.line() == "[0/4] queued at position 2"


def test_time_left_runs_on_between_two_messages():
    clock = Clock()
    progress = Progress(experiment(eta=10), clock)
    progress.take("run", RUN)
    assert progress.line().endswith("· about 10 s left")
    clock.now += 4
    progress.take("sample", sample())
    assert progress.line().endswith("· about 6 s left")
    clock.now += 7
    assert progress.line().endswith("· any moment now")
    progress.take("experiment", experiment(eta=8))
    assert progress.line().endswith("· about 8 s left")


def test_a_failed_run_is_told():
    line = Progress(experiment()).take("run", {**RUN, "state": "failed", "error": "no room"})
    assert line == "run 7 (stream pipe 4 KiB) failed: no room"


@pytest.fixture(scope="session")
def openapi(daemon):
    """The real one: names, order and units of the figures are the daemon's."""
    return daemon.client().get("/openapi.json")


@pytest.fixture
def shown(capsys, openapi):
    """shown(rows): the lines of their tables."""

    def shown(rows):
        table.show_results(rows, figures_of(openapi))
        return capsys.readouterr().out.splitlines()

    return shown


def test_table(shown):
    """A table per workload. What all of its points have is in its title."""
    assert shown([row(64, "pingpong"), row(4096), row(1024, throughput=None)]) == [
        "stream, pipe",
        " size     MB/s  messages/s",
        "1 KiB        –           –",
        "4 KiB  2,500.0     610,352",
        "",
        "pingpong, pipe, 64 B",
        "                     both ways  round trip          one way",
        "   MB/s  messages/s       MB/s      p50 µs  p99 µs   p50 µs",
        "2,500.0  39,062,500    5,000.0        1.50    2.50    0.750",
    ]


def test_table_has_the_fields_that_vary_and_the_flags(shown):
    rows = [
        row(threads=1, engine="syscall", runs=2, flags=["noisy:steal", "slow"]),
        row(threads=2, engine="syscall", runs=3, flags=["noisy:steal"]),
    ]
    assert shown(rows) == [
        "stream, pipe, 4 KiB",
        "threads     MB/s  messages/s  runs  flags",
        "1        2,500.0     610,352     2  slow",
        "2        2,500.0     610,352     3",
        "",
        "Flags of every row: noisy:steal",
    ]


def test_table_of_costs(shown):
    """A switch is not the hop that its percentiles are of, and a call of 25 ns is not one of 0.03 µs."""
    rows = [
        cost_row("switch", 1200.5, 1700, 2900, workload="context-switch", processes=2, working_set=0),
        cost_row("switch", 2310, 2800, 104_000, workload="context-switch", processes=8, working_set=65536),
        cost_row("call", 25.4, 25, 31, workload="syscall", call="clock-gettime-vdso"),
        cost_row("call", 1080, 1100, 1900, workload="syscall", call="getpid"),
    ]
    assert shown(rows) == [
        "context-switch",
        "                                  per switch  per hop",
        "processes  working_set  rounds/s    cost, ns   p50 µs  p99 µs",
        "2          0             832,986     1,200.5     1.70    2.90",
        "8          65536         432,900     2,310.0     2.80  104.00",
        "A hop is a switch, and what the pipe and the working set cost without one.",
        "Its percentiles are of means: the clock is read once in a round of hops.",
        "",
        "syscall",
        "                                per call  per call",
        "call                   calls/s  cost, ns    p50 µs  p99 µs",
        "clock-gettime-vdso  39,370,079      25.4     0.025   0.031",
        "getpid                 925,926   1,080.0     1.100   1.900",
        "Percentiles are of means: the clock is read once in a batch of calls.",
    ]


def test_table_has_fields_that_the_first_point_has_not(shown):
    lines = shown(
        [row(transport="pipe"), row(transport="tcp", copy_mode="two-copy"), row(transport="tcp", copy_mode="zero-copy")]
    )
    assert [line.split()[:2] for line in lines] == [
        ["stream,", "4"],
        ["transport", "copy_mode"],
        ["pipe", "2,500.0"],
        ["tcp", "two-copy"],
        ["tcp", "zero-copy"],
    ]


def test_table_of_an_open_loop_has_no_half_of_a_round_trip(shown):
    trip = {**row(workload="pingpong"), "latency_one_way_ns": None}
    lines = shown([trip])
    assert lines[1:3] == [
        "                     both ways  round trip",
        "   MB/s  messages/s       MB/s      p50 µs  p99 µs",
    ]


def test_table_of_a_search_has_a_row_for_each_rate(shown):
    tried = [
        {**row(threads=threads, throughput=throughput), "rate": rate}
        for rate, throughput in ((None, 2.5e9), (41197, 1.6e8), (9535, 3.9e7))
        for threads in (1, 2)
    ]
    assert shown(tried) == [
        "stream, pipe, 4 KiB",
        "threads  rate            MB/s  messages/s",
        *(
            line
            for threads in (1, 2)
            for line in (
                f"{threads}        closed loop  2,500.0     610,352",
                f"{threads}        9,535           39.0       9,521",
                f"{threads}        41,197         160.0      39,062",
            )
        ),
    ]


def test_table_names_the_latency_of_a_stream(shown):
    stream = {**row(transport="tcp"), "latency_ns": percentiles("one_way", 250_000, 1_250_000)}
    assert shown([stream]) == [
        "stream, tcp, 4 KiB",
        "                     one way",
        "   MB/s  messages/s   p50 µs   p99 µs",
        "2,500.0     610,352    250.0  1,250.0",
    ]


def test_table_leaves_out_a_field_that_is_the_same_wherever_it_is(shown):
    """Which transports have a copy mode, an engine or a wait is known without a table."""
    fifo = row(transport="fifo", engine="syscall", copy_mode="two-copy")
    lines = shown([fifo, row(transport="shm-sysv", wait="block"), row(transport="file", engine="syscall")])
    assert lines[:2] == ["stream, 4 KiB", "transport     MB/s  messages/s"]


SIX_MEDIA = {
    "mmap-file": {"wait": "block"},
    "mmap-anonymous": {"wait": "block"},
    "shm-sysv": {"wait": "block"},
    "file": {"engine": "syscall"},
    "fifo": {"engine": "syscall", "copy_mode": "two-copy"},
    "msgq-sysv": {},
}
CALLS = ("getpid", "getpid-libc", "clock-gettime-vdso", "clock-gettime-syscall", "read-zero")


@pytest.mark.parametrize(
    "rows",
    [
        [
            row(size, workload, throughput=1.2e9, transport=transport)
            for workload in ("stream", "pingpong")
            for transport in ("pipe", "fifo")
            for size in (64, 1024, 4096, 65536)
        ],
        [
            row(
                4 << 20,
                "pingpong",
                throughput=4.4e9,
                runs=5,
                transport=transport,
                rtt=(2_700_000, 23_000_000),
                **fields,
            )
            for transport, fields in SIX_MEDIA.items()
        ],
        [
            *(cost_row("call", 250, 310, 12_345_678, runs=3, workload="syscall", call=call) for call in CALLS),
            *(
                cost_row(
                    "switch",
                    12_345.6,
                    12_345,
                    12_345_678,
                    runs=3,
                    workload="context-switch",
                    processes=processes,
                    working_set=working_set,
                )
                for processes in (2, 8)
                for working_set in (0, 65536)
            ),
        ],
        [
            {
                **row(size, transport="tcp", threads=threads, copy_mode=mode, throughput=4e10),
                "latency_ns": percentiles("one_way", 1_234_567, 12_345_678),
            }
            for size in (16384, 1 << 20)
            for threads in (1, 8)
            for mode in ("two-copy", "zero-copy")
        ],
    ],
    ids=["quick", "ipc-4mib", "syscall-and-switch", "tcp-copy-modes"],
)
def test_tables_of_presets_fit_a_terminal(shown, rows):
    lines = shown(rows)
    assert len(lines) > len(rows)
    assert max(map(len, lines)) <= 80, "\n".join(lines)


def test_a_queue_that_moves_is_told_without_an_event(monkeypatch, capsys):
    """While others run, the stream of a queued experiment has nothing but comments."""
    queued = [experiment("queued", done=0, queue_position=n, eta=40 * n) for n in (3, 2, 1)]
    states = [*queued, experiment("done", done=4)]

    class Handler(http.server.BaseHTTPRequestHandler):
        def address_string(self):
            return "unix"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            if self.path.endswith("/events"):
                self.wfile.write(b": still here\n\n" * 3)
            else:
                self.wfile.write(json.dumps(states.pop(0) if len(states) > 1 else states[0]).encode())

    monkeypatch.setattr(progress, "QUIET_SECONDS", 0)
    with tempfile.TemporaryDirectory(prefix="ipclab-tools-") as base:
        with socketserver.ThreadingUnixStreamServer(f"{base}/socket", Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                assert follow(Client(f"{base}/socket"), 3, Lines())["state"] == "done"
            finally:
                server.shutdown()
    lines = capsys.readouterr().out.splitlines()
    told = ((2, "1 min 20 s"), (1, "40 s"))
    assert lines[:2] == [f"[0/4] queued at position {n} · about {left} left" for n, left in told]


def test_comments_are_signs_of_life_and_end_no_event():
    lines = [b"id: 4\n", b": still here\n", b"event: run\n", b"data: {}\n", b"\n", b": still here\n", b"\n"]
    told = list(parse_events(lines, "3"))
    assert told == [("3", None, None), ("4", "run", {}), ("4", None, None)]


@pytest.mark.parametrize("part", ["head", "body"])
def test_an_answer_that_drips_ends(monkeypatch, part):
    """A byte now and then is no silence: a document and its head have a time in all."""
    over = threading.Event()

    class Dripping(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n")
            if part == "body":
                self.wfile.write(b"\r\n")
            with contextlib.suppress(OSError):
                for byte in b"X: " + b"a" * 500:
                    self.wfile.write(bytes([byte]))
                    if over.wait(0.02):
                        return

        def log_message(self, *_):
            pass

    monkeypatch.setattr("ipclab_cli.http.REQUEST_SECONDS", 1)
    monkeypatch.setattr("ipclab_cli.http.ANSWER_SECONDS", 1, raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dripping) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            with pytest.raises(Unreachable, match="took more than 1 s"):
                Client(f"http://127.0.0.1:{server.server_port}").get("/health")
        finally:
            over.set()
            server.shutdown()


@pytest.mark.parametrize("piece", [b"x" * 65536, b"data: " + b"x" * 65536 + b"\n"], ids=["line", "data"])
def test_an_endless_event_ends(piece):
    class Endless(http.server.BaseHTTPRequestHandler):
        def address_string(self):
            return "a client"

        def log_message(self, *words):
            del words

        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                while True:
                    self.wfile.write(piece)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = Client(f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(Unreachable, match=f"cannot be read: .*more than {EVENT_BYTES} "):
            next(client.events("/events"))
        server.shutdown()


@pytest.fixture
def ask(openapi):
    """ask(first, events, last): runs `ipclab watch` before a daemon that answers so."""
    base = Path(tempfile.mkdtemp(prefix="ipclab-tools-"))

    def ask(first, events, last):
        state = {"experiment": first}

        class Handler(http.server.BaseHTTPRequestHandler):
            def address_string(self):
                return "unix"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                if self.path.endswith("/events"):
                    state["experiment"] = last
                    for number, (event, data) in enumerate(events, 1):
                        text = f"id: {number}\nevent: {event}\ndata: {json.dumps(data)}\n\n"
                        self.wfile.write(text.encode())
                    return
                items = {"items": [row()] if last["progress"]["runs_done"] else [], "next": None}
                other = openapi if self.path == "/openapi.json" else state["experiment"]
                answer = items if self.path.endswith("/results") else other
                self.wfile.write(json.dumps(answer).encode())

        with socketserver.ThreadingUnixStreamServer(str(base / "socket"), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                return subprocess.run(
                    [PROGRAM, "--socket", base / "socket", "watch", "3"],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=300,
                )
            finally:
                server.shutdown()

    yield ask
    shutil.rmtree(base)


@pytest.mark.parametrize("told", [True, False])
def test_all_runs_done(ask, told):
    last = experiment("done", done=4)
    events = [("run", RUN), ("sample", sample()), ("experiment", last)]
    done = ask(experiment(), events if told else events[:2], last)  # or the stream ends without a word
    assert (done.returncode, done.stderr) == (0, "")
    assert "2,500.0" in done.stdout


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (experiment("failed", done=3, failed=1, error="one run failed"), "is failed, 3 of 4 runs done: one run failed"),
        (experiment("cancelled", done=2), "is cancelled, 2 of 4 runs done"),
        (experiment("done", done=3), "is done, 3 of 4 runs done"),
        (experiment("failed", done=0, failed=4), "is failed, 0 of 4 runs done"),
    ],
)
def test_anything_else_is_a_failure(ask, last, words):
    done = ask(experiment(), [("experiment", last)], last)
    assert (done.returncode, done.stderr) == (1, "")
    assert words in done.stdout


def test_nobody_there():
    done = subprocess.run(
        [PROGRAM, "--socket", "/nonexistent/socket", "watch", "3"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 5
    assert done.stderr.startswith("ipclab: no answer from /nonexistent/socket: ")
