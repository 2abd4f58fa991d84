# SPDX-License-Identifier: MIT
"""ipclab before a real daemon, as a person and a script use it: output, files, completion, status."""

import contextlib
import csv
import http.server
import io
import json
import os
import pty
import re
import resource
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
import time
from typing import ClassVar

import pytest
from ipclab_cli import commands, main
from ipclab_cli.figures import figures_of
from ipclab_cli.http import ANSWER_BYTES
from ipclabtest import FINAL, PATIENCE_SECONDS, SOURCE

PROGRAM = SOURCE / "cli/ipclab"
OF_PIPE = {"transport": "pipe", "message_size": [64, 4096], "warmup_seconds": 0}
SHORT = OF_PIPE | {"messages": 3000}  # a short window by the clock is over before a busy machine has passed a message


@pytest.fixture(scope="module")
def ipclab(daemon):
    """ipclab(argument, …): runs it on the daemon's socket."""

    def ipclab(*arguments, **options):
        environment = os.environ | {"IPCLAB_SOCKET": daemon.socket} | options.pop("environment", {})
        command = [PROGRAM, *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=PATIENCE_SECONDS, **options
        )

    return ipclab


@pytest.fixture(scope="module")
def done(ipclab):
    """The document of an experiment that was run by the program."""
    run = ipclab("run", json.dumps(SHORT | {"name": "two sizes"}), "--json")
    assert run.returncode == 0, run
    experiment = json.loads(run.stdout)
    assert experiment["state"] == "done" and experiment["progress"]["runs_done"] == 2
    return experiment


def printed(done):
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def test_run_shows_progress_and_results(ipclab):
    lines = printed(ipclab("run", json.dumps(SHORT), "--set", "rate=3000")).splitlines()
    assert re.fullmatch(r"Experiment \d+: unnamed, 2 runs", lines[0])
    assert any(line.startswith("[0/2] ") for line in lines)
    assert "stream, pipe" in lines
    assert any(line.split()[:2] == ["size", "MB/s"] for line in lines)


def test_a_spec_is_a_file_standard_input_or_json(ipclab, tmp_path, daemon):
    spec = json.dumps(SHORT | {"name": "given"})
    (tmp_path / "spec.json").write_text(spec)
    for argument, stdin in ((tmp_path / "spec.json", None), ("-", spec), (spec, None)):
        identity = int(printed(ipclab("run", argument, "--detach", input=stdin)))
        assert daemon.client().get(f"/experiments/{identity}")["spec"] == json.loads(spec)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "./binary.json"],
        ["run", "./deep.json"],
        ["run", "-"],
        ["run", "quick", "--set", "x=" + "[" * 50_000],
        ["run", "quick", "--key", "k\u20ac"],
        ["run", "quick", "--key", "a\nb"],
        ["list", "-q", b"\xff"],
        ["pin", b"\xff", "last"],
        ["list", "--token-file", "binary.json"],
        ["list", "--token-file", "euro"],
        ["list", "--url", "http://localhost:port"],
        ["list", "--url", "http://localhost:99999"],
    ],
    ids=lambda arguments: " ".join(map(str, arguments))[:30].replace("\n", " "),
)
def test_what_is_no_text_is_a_wrong_command_line(daemon, tmp_path, arguments):
    """In one sentence, and not with the status of a run that failed."""
    (tmp_path / "binary.json").write_bytes(b"\x7fELF\xd0")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "euro").write_text("t\u20acken")
    environment = os.environ | ({} if "--url" in arguments else {"IPCLAB_SOCKET": daemon.socket})
    done = subprocess.run(
        [PROGRAM, *arguments], input=b"\x7fELF\xd0", capture_output=True, cwd=tmp_path, env=environment
    )
    words = done.stderr.decode().strip().splitlines()
    assert done.returncode == 2 and re.match("ipclab( run)?: ", words[-1]), done
    assert "Traceback" not in done.stderr.decode()


def test_what_cannot_be_written_or_reached_is_named(ipclab, done, tmp_path):
    for file, why in ((tmp_path / "none/report", "No such file or directory"), (tmp_path, "Is a directory")):
        refused = ipclab("report", done["id"], "-o", file)
        assert refused.returncode == 2 and refused.stderr == f"ipclab: {file} cannot be written: {why}\n", refused
    assert list(tmp_path.iterdir()) == []
    away = ipclab("list", "--socket", tmp_path / "none")
    assert away.returncode == 5, away
    assert away.stderr == f"ipclab: no answer from {tmp_path / 'none'}: No such file or directory\n"


def test_a_preset_and_its_fields(ipclab, daemon):
    identity = int(printed(ipclab("run", "quick", "--set", "duration_seconds=0.05", "--set", "name=mine", "--detach")))
    spec = daemon.client().get(f"/experiments/{identity}")["spec"]
    assert spec == {"preset": "quick", "duration_seconds": 0.05, "name": "mine"}
    assert re.fullmatch(rf"Experiment {identity} is (cancelled|being stopped)\n", printed(ipclab("cancel", identity)))
    assert daemon.client().wait_final(identity)["state"] == "cancelled"
    assert ipclab("watch", identity).returncode == 1


def test_one_key_is_one_experiment(ipclab):
    first, second = (ipclab("run", json.dumps(SHORT), "--key", "once", "--detach") for _ in range(2))
    assert printed(first) == printed(second)


def test_more_runs_of_an_experiment_and_its_deletion(ipclab, daemon):
    identity = int(printed(ipclab("run", json.dumps(SHORT), "--detach")))
    daemon.client().wait_final(identity)
    extended = printed(ipclab("extend", identity, 2)).splitlines()
    assert extended[0] == f"Experiment {identity}: unnamed, 6 runs"
    assert "stream, pipe, 3 runs each" in extended
    nothing = ipclab("retry", identity, "--detach")
    assert nothing.returncode == 3 and "ipclab: " in nothing.stderr, nothing
    none = ipclab("extend", identity, 0)
    assert none.returncode == 3 and "1" in none.stderr, none
    assert printed(ipclab("delete", identity)) == f"Experiment {identity} is deleted\n"
    assert ipclab("delete", identity).returncode == 4


def test_cancelled_runs_are_made_again(ipclab, daemon):
    identity = int(printed(ipclab("run", json.dumps(OF_PIPE | {"duration_seconds": 5}), "--detach")))
    printed(ipclab("cancel", identity))
    daemon.client().wait_final(identity)
    assert printed(ipclab("retry", identity, "--detach", "--key", "again")) == f"{identity}\n"
    daemon.client().wait_state(identity, ("running",))
    running = ipclab("delete", identity)
    assert running.returncode == 3 and "cancel" in running.stderr, running
    printed(ipclab("cancel", identity))
    assert daemon.client().wait_final(identity)["progress"]["runs_cancelled"] == 2


def test_baselines_are_pinned_listed_and_forgotten(ipclab, daemon):
    spec = SHORT | {"name": "two sizes", "message_size": [48, 80]}  # which no other test runs
    identity = json.loads(ipclab("run", json.dumps(spec), "--json").stdout)["id"]
    assert printed(ipclab("pin", "first", identity)) == f"first is experiment {identity}\n"
    assert re.search(rf"^first +{identity}  .*two sizes$", printed(ipclab("baselines")), re.MULTILINE)
    assert printed(ipclab("baselines", "first")) == "No later experiment of the spec of first has finished.\n"
    assert completed(daemon, "baselines", "fi") == ["first"]
    pinned = ipclab("delete", identity)
    assert pinned.returncode == 3 and "first" in pinned.stderr, pinned
    assert printed(ipclab("unpin", "first")) == "first is no baseline any more; its experiment stays\n"
    assert ipclab("unpin", "first").returncode == 4


def test_reading(ipclab, done, daemon):
    identity = done["id"]
    listed = printed(ipclab("list")).splitlines()
    assert listed[0].split() == ["id", "state", "runs", "created", "(UTC)", "name"]
    assert any(re.fullmatch(rf" *{identity}  done +2/2 .*two sizes", line) for line in listed)
    shown = dict(line.split(maxsplit=1) for line in printed(ipclab("show", identity)).splitlines())
    assert shown["state"] == "done" and json.loads(shown["spec"]) == done["spec"]
    results = printed(ipclab("results", identity)).splitlines()
    assert results[0] == "stream, pipe" and [line.split()[:2] for line in results[3:5]] == [["64", "B"], ["4", "KiB"]]
    assert re.search(r"^quick +(about )?\d+ s ", printed(ipclab("presets")), re.MULTILINE)
    host = printed(ipclab("host"))
    assert "ipclabd" in host and "pipe" in host


def test_all_figures_are_those_of_the_description(ipclab, done, daemon):
    """Each figure that a row has is a column."""
    (row, *_) = daemon.client().get(f"/experiments/{done['id']}/results")["items"]
    figures = figures_of(daemon.client().get("/openapi.json"))
    present = [figure for figure in figures if figure.of(row) is not None]
    heading = printed(ipclab("results", "--all", done["id"])).splitlines()[1:3]
    assert len(present) >= 4
    for figure in present:
        if figure.unit == "count":
            what, _, of = figure.title.lower().partition(" per ")
            assert what in heading[0].lower() and f"per {of}" in heading[1].lower(), figure
    assert "CPU time" in heading[0] and "per message, ns" in heading[1]


def test_json_is_the_document(ipclab, done, daemon):
    client = daemon.client()
    identity = done["id"]
    for arguments, target in (
        (("show", identity), f"/experiments/{identity}"),
        (("results", identity), f"/experiments/{identity}/results"),
        (("list", "--limit", 1), "/experiments?limit=1"),
        (("list", "-q", "no such words"), "/experiments?q=no%20such%20words"),
        (("list", "--q", 4096, "--state", "done"), "/experiments?q=4096&state=done"),
        (("presets",), "/presets"),
    ):
        assert json.loads(printed(ipclab("--json", *arguments))) == client.get(target)
        assert json.loads(printed(ipclab(*arguments, "--json"))) == client.get(target)
    parts = ["health", "environment", "noise", "topology", "transports", "presets"]
    assert list(json.loads(printed(ipclab("host", "--json")))) == parts


def test_a_report_is_written_and_its_file_is_named(ipclab, done, tmp_path):
    target = tmp_path / "report.html"
    assert json.loads(printed(ipclab("report", done["id"], "-o", target, "--json"))) == {"file": str(target)}
    assert target.read_text().startswith("<!doctype html>")


def test_last_is_the_newest(ipclab, daemon):
    identity = int(printed(ipclab("run", json.dumps(SHORT | {"name": "newest"}), "--detach")))
    assert json.loads(printed(ipclab("show", "last", "--json")))["id"] == identity
    daemon.client().wait_final(identity)


def test_export_writes_whole_files(ipclab, done, tmp_path, daemon):
    identity = done["id"]
    target = tmp_path / "samples.csv"
    assert printed(ipclab("export", identity, "samples", "-o", target)) == ""
    rows = list(csv.DictReader(io.StringIO(target.read_text(), newline="")))
    assert {row["agent"] for row in rows} == {"sender", "receiver"}
    assert os.listdir(tmp_path) == ["samples.csv"]
    samples = json.loads(printed(ipclab("export", identity, "runs", "--format", "json")))
    assert [run["state"] for run in samples["items"]] == ["done", "done"]
    results = list(csv.DictReader(io.StringIO(printed(ipclab("export", identity)), newline="")))
    assert sorted(row["message_size"] for row in results) == ["4096", "64"]
    missing = ipclab("export", 999999, "-o", tmp_path / "none.csv")
    assert missing.returncode == 4 and os.listdir(tmp_path) == ["samples.csv"]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["show", "999999"], 4, "no experiment 999999"),
        (["show", "none"], 2, "none is no experiment"),
        (["run", '{"transport": "pigeon"}'], 3, "(at /transport) [422]"),
        (["run", "no-such-preset"], 3, "no-such-preset"),
        (["run", "{"], 2, "the argument is not JSON"),
        (["run", "[1].json"], 2, "[1].json cannot be read"),
        (["run", "quick", "--set", "name"], 2, "name is not of the form FIELD=VALUE"),
        (["export", "last", "runs", "--format", "ndjson"], 2, "runs can be had as"),
        (["--url", "ftp://host", "list"], 2, "ftp://host is no address"),
        (["--url", "http://127.0.0.1:1", "list"], 5, "no answer from http://127.0.0.1:1"),
        (["--socket", "/nonexistent", "list"], 5, "no answer from /nonexistent"),
        (["list", "--limit", "0"], 3, "limit"),
        (["report", "last", "--json"], 2, "needs a file to go to, -o FILE"),
        (["fly"], 2, "invalid choice"),
    ],
)
def test_status_and_sentence(ipclab, arguments, status, words):
    failed = ipclab(*arguments)
    assert failed.returncode == status, failed
    assert words in failed.stderr and failed.stdout == ""


ROUTES = [
    (("findings", "last"), "GET", "/experiments/{id}/findings"),
    (("compare", "last", "last"), "GET", "/compare"),
    (("advice", "message_size=4096"), "GET", "/advice"),
    (("advice", "--measure", "message_size=4096"), "POST", "/advice"),
    (("report", "last"), "GET", "/experiments/{id}/report"),
    (("export", "last", "findings"), "GET", "/experiments/{id}/findings"),
    (("extend", "last", "6"), "POST", "/experiments/{id}/extend"),
    (("retry", "last"), "POST", "/experiments/{id}/retry"),
    (("baselines",), "GET", "/baselines"),
    (("baselines", "v6.1"), "GET", "/baselines/{name}/history"),
    (("pin", "v6.1", "last"), "PUT", "/baselines/{name}"),
    (("unpin", "v6.1"), "DELETE", "/baselines/{name}"),
]


class MadeUp(http.server.BaseHTTPRequestHandler):
    """A daemon with these routes and documents of the shape that they promise."""

    documents: ClassVar = {}
    paths: ClassVar = {route: {method.lower(): {}} for _, method, route in ROUTES} | {
        "/advice": {"get": {}, "post": {}},
        "/experiments": {"post": {"parameters": [{"name": "dry_run"}]}},
    }

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.requests.append(f"{self.command} {self.path}")
        path = self.path.split("?")[0]
        described = {"info": {"version": "0.2.0"}, "paths": self.paths}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(described if path == "/openapi.json" else self.documents[path]).encode())

    def do_POST(self):
        self.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.do_GET()


@contextlib.contextmanager
def served(path, **members):
    """The handler, whose requests are noted, of a made-up daemon on the socket."""
    handler = type("Handler", (MadeUp,), {"requests": [], "posted": [], **members})
    with socketserver.ThreadingUnixStreamServer(path, handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield handler
        finally:
            server.shutdown()
            os.unlink(path)


@pytest.fixture
def made_up(tmp_path, ipclab):
    """made_up(documents, arguments …): (what the program prints, what it requests, what it posts)"""

    def made_up(documents, *arguments):
        path = str(tmp_path / "socket")
        with served(path, documents=documents) as handler:
            shown = printed(ipclab("--socket", path, *arguments))
        return shown, [one for one in handler.requests if "/openapi" not in one], handler.posted

    return made_up


# What a terminal obeys: a title, colours by C0 and by C1, a line from right to left; and half of a character.
ORDERS = "\x1b]0;title\x07\x1b[31m\x9b31m\u202e\ud800"
ORDERS_SHOWN = r"\u001b]0;title\u0007\u001b[31m\u009b31m\u202e\ud800"


def test_a_terminal_that_lacks_a_character_gets_its_escape(ipclab):
    run = ipclab("run", json.dumps(SHORT | {"name": "größer …"}), environment={"PYTHONIOENCODING": "ascii"})
    assert run.returncode == 0 and run.stderr == "", run
    listed = ipclab("list", environment={"PYTHONIOENCODING": "ascii"})
    assert listed.returncode == 0 and "gr\\xf6\\xdfer \\u2026" in listed.stdout, listed


def test_a_terminal_obeys_no_name(made_up):
    """The name of an experiment, a baseline or a host that another has given; JSON has the same name in every form."""
    experiment = {
        **{"id": 1, "state": "done", "created_at": "2026-01-31T12:00:00.000Z", "name": ORDERS},
        "progress": {"runs_total": 1, "runs_done": 1, "runs_failed": 0},
    }
    documents = {"/experiments": {"items": [experiment], "next": None}}
    shown, _, _ = made_up(documents, "list")
    assert ORDERS_SHOWN in shown and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown), ascii(shown)
    shown, _, _ = made_up(documents, "list", "--json")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown), ascii(shown)
    assert json.loads(shown) == documents["/experiments"]


def test_a_terminal_obeys_no_refusal(tmp_path, ipclab):
    class Refusing(MadeUp):
        def do_GET(self):
            self.send_response(422)
            self.end_headers()
            self.wfile.write(json.dumps({"detail": ORDERS}).encode())

    path = str(tmp_path / "socket")
    with socketserver.ThreadingUnixStreamServer(path, Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        refused = ipclab("--socket", path, "list")
        server.shutdown()
    assert refused.returncode == main.EXIT_REFUSED and refused.stderr == f"ipclab: {ORDERS_SHOWN} [422]\n"


@pytest.mark.parametrize("body", ["[]", "1", '"a"', "null", "[" * 100_000], ids=lambda body: body[:4])
def test_an_answer_of_no_known_form_is_a_sentence(tmp_path, ipclab, body):
    class Odd(MadeUp):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body.encode())

    path = str(tmp_path / "socket")
    with socketserver.ThreadingUnixStreamServer(path, Odd) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        refused = ipclab("--socket", path, "list")
        server.shutdown()
    assert refused.returncode == main.EXIT_UNREACHABLE, refused
    assert re.fullmatch(f"ipclab: GET /experiments: the answer from {path} is no.* JSON.*\n", refused.stderr), refused


class Cut(MadeUp):
    """Ends the connection before the body is as long as it was to be."""

    def do_GET(self):
        if self.path == "/openapi.json":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b'{"items": []}')
        return None


def test_what_is_cut_is_no_file(tmp_path, ipclab):
    path, file = str(tmp_path / "socket"), tmp_path / "file"
    with socketserver.ThreadingUnixStreamServer(path, Cut) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        refused = [
            ipclab("--socket", path, "export", 1, "results", "--format", form, "-o", file) for form in ("csv", "json")
        ]
        server.shutdown()
    assert [(one.returncode, "broke off" in one.stderr) for one in refused] == [(main.EXIT_UNREACHABLE, True)] * 2
    assert not file.exists() and len(list(tmp_path.iterdir())) == 1, list(tmp_path.iterdir())


class Endless(MadeUp):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while True:
                self.wfile.write(bytes(1 << 20))


def test_an_endless_answer_ends(tmp_path, ipclab):
    path = str(tmp_path / "socket")
    most = (resource.RLIMIT_AS, (2 << 30, 2 << 30))
    with socketserver.ThreadingUnixStreamServer(path, Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        refused = ipclab("--socket", path, "list", preexec_fn=lambda: resource.setrlimit(*most))
        server.shutdown()
    assert refused.returncode == main.EXIT_UNREACHABLE, refused
    assert refused.stderr == f"ipclab: the answer from {path} is longer than {ANSWER_BYTES} bytes\n"


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [(arguments, f"{method} {route}") for arguments, method, route in ROUTES]
    + [(("run", json.dumps(SHORT), "--dry-run"), "POST /experiments?dry_run")],
)
def test_an_older_daemon_is_named(tmp_path, ipclab, arguments, missing):
    path = str(tmp_path / "socket")
    newest = {"/experiments": {"items": [{"id": 7}], "next": None}}
    with served(path, documents=newest, paths={"/experiments": {"post": {}}}):
        failed = ipclab("--socket", path, *arguments)
    assert failed.returncode == 4, failed
    assert failed.stderr.endswith(f", which has no {missing}\n") and "version 0.2.0" in failed.stderr


def compared(verdict, ratio, **more):
    """A ComparisonFigure."""
    interval = {"low": ratio - 0.01, "high": ratio + 0.01, "level": 0.95}
    return {"verdict": verdict, "ratio": ratio, "interval": interval, "visible_difference": None,
            "runs_needed": None, **more}  # fmt: skip


COMPARISON = {
    "environment": {
        "forced": True,
        "differences": [{"key": "kernel_release", "baseline": "6.1", "candidate": "6.12", "unlike": True}],
    },
    "settings": {"differences": []},
    "delta": 0.03,
    "verdicts": {"undecided": 1, "faster": 0, "slower": 1, "equivalent": 0},
    "only_in_baseline": [{"transport": "tcp"}],
    "only_in_candidate": [],
    "rows": [
        {
            "baseline": {"point": {"transport": "pipe", "message_size": size}},
            "candidate": {"point": {"transport": "pipe", "message_size": size}},
            "figures": {"throughput_bytes_per_second": figure, "latency_ns_p50": None},
        }
        for size, figure in (
            (64, compared("slower", 0.949)),
            (4096, compared("undecided", 1.012, visible_difference=0.04, runs_needed=23, interval=None)),
        )
    ],
}


def test_a_comparison_is_shown_row_by_row(made_up):
    shown, requests, _ = made_up({"/compare": COMPARISON}, "compare", "12", "15", "--delta", "0.01", "--force")
    assert requests == ["GET /compare?delta=0.01&force=true&baseline=12&candidate=15"]
    assert shown.splitlines() == [
        "What differs in the environments:",
        '  kernel_release: "6.1" → "6.12"  (not comparable across it)',
        "The comparison was forced: a verdict may be the environment's.",
        "Nothing differs in the settings.",
        "",
        "point  figure                       ratio       interval  verdict    remark",
        "64 B   throughput_bytes_per_second  0.949  0.939 … 0.959  slower",
        "4 KiB  throughput_bytes_per_second  1.012              –  undecided  "
        "would have seen 4.0 %, 23 runs would decide",
        "",
        "1 undecided, 1 slower; equivalent is within 3.0 %",
        "Only the baseline has 1 of the points.",
    ]


def test_a_great_difference_is_a_factor(made_up):
    document = json.loads(json.dumps(COMPARISON))
    figures = document["rows"][1]["figures"]["throughput_bytes_per_second"]
    for seen, words in ((0.984, "would have seen 98.4 %, "), (1, "would have seen a factor of 2, "),
                        (13.842, "would have seen a factor of 14.8, "), (33363, "a factor of 33364, ")):  # fmt: skip
        figures["visible_difference"] = seen
        shown, _, _ = made_up({"/compare": document}, "compare", "12", "15")
        assert f"{words}23 runs would decide" in shown


def test_an_environment_that_changed_within_one_side_is_shown(made_up):
    changed = [
        {"key": "kernel_release", "first": "6.1", "last": "6.12"},
        {"key": "swappiness", "first": 60, "last": None},
    ]
    sides = {"baseline": {"environment_changed": []}, "candidate": {"environment_changed": changed}}
    shown, _, _ = made_up({"/compare": COMPARISON | sides}, "compare", "12", "15", "--force")
    assert shown.splitlines()[2:4] == [
        'Between the runs of the candidate, kernel_release changed: "6.1" → "6.12"',
        "Between the runs of the candidate, swappiness changed: 60 → null (and back within a run)",
    ]


def test_repetitions_that_were_added_are_told(made_up):
    """The daemon cannot know why; its correction is of runs whose number does not depend on them."""

    def told(baseline, candidate, **more):
        sides = {"baseline": {"repetitions_added": baseline}, "candidate": {"repetitions_added": candidate}}
        shown, _, _ = made_up({"/compare": COMPARISON | sides | more}, "compare", "12", "15")
        return [
            line.split(" came by hand: if that depended on what ")[0] for line in shown.splitlines() if "hand" in line
        ]

    assert told(0, 0) == told(0, 0, axis="transport") == []
    assert told(0, 1) == ["1 repetition of the candidate"]
    assert told(20, 3) == ["20 repetitions of the baseline and 3 repetitions of the candidate"]
    assert told(3, 3, axis="transport") == ["3 repetitions of the experiment"]


def test_a_machine_in_another_state_is_shown(made_up):
    probe = {"cpu": 1, "what": "getpid_ns", "ratio": 1.25, "interval": {"low": 1.2, "high": 1.3, "level": 0.95}}
    probes = [probe | {"differs": True}, probe | {"what": "wake_up_ns", "differs": False}]
    shown, _, _ = made_up(
        {"/compare": COMPARISON | {"machine": {"state": "differs", "reason": None, "probes": probes}}},
        "compare", "12", "15",
    )  # fmt: skip
    lines = [line for line in shown.splitlines() if "machine" in line]
    assert lines == [
        "The machine's state differs: getpid_ns on CPU 1 is 1.25 times as long 1.2 … 1.3; a verdict may be of that."
    ]
    unknown = {"state": "unknown", "reason": "too few runs", "probes": []}
    shown, _, _ = made_up({"/compare": COMPARISON | {"machine": unknown}}, "compare", "12", "15")
    assert "Whether the machine was in the same state is unknown: too few runs." in shown.splitlines()


def test_a_history_is_a_line_for_each_experiment_and_its_changes(made_up):
    verdicts = {"undecided": 0, "faster": 0, "slower": 0, "equivalent": 0}
    later = {"finished_at": "2026-11-24T10:20:30.000Z", "differences": [], "error": None}
    kernel = {"key": "kernel_release", "baseline": "6.1", "candidate": "6.12", "unlike": True}
    series = {"figure": "throughput_bytes_per_second", "change_points": [8],
              "segments": [{"from": 5, "to": 7, "ratio": 1.001}, {"from": 8, "to": 9, "ratio": 0.93}]}  # fmt: skip
    points = [{"transport": "pipe", "message_size": size} for size in (64, 4096)]
    shown, requests, _ = made_up(
        {
            "/baselines/v6.1/history": {
                "items": [
                    later | {"experiment_id": 7, "verdicts": verdicts | {"equivalent": 2}},
                    later | {"experiment_id": 8, "verdicts": verdicts | {"slower": 2}, "differences": [kernel]},
                    later | {"experiment_id": 9, "verdicts": verdicts, "error": "no point in common"},
                ],
                "series": [
                    series | {"point": points[0]},
                    series | {"point": points[1], "change_points": None, "segments": None},
                ],
            }
        },
        "baselines", "v6.1",
    )  # fmt: skip
    assert requests == ["GET /baselines/v6.1/history"]
    assert shown.splitlines() == [
        "experiment  finished (UTC)    verdicts                          unlike environment",
        "         7  2026-11-24 10:20  2 equivalent                      –",
        '         8  2026-11-24 10:20  2 slower                          kernel_release "6.12"',
        "         9  2026-11-24 10:20  not compared: no point in common  –",
        "throughput_bytes_per_second of 64 B is 0.930 of the baseline's from experiment 8 on",
    ]


def test_two_values_of_an_axis_are_compared_in_the_words_of_the_api(made_up):
    arguments = ("compare", "--experiment", "12", "--axis", "transport", "pipe", "unix-stream")
    _, requests, _ = made_up({"/compare": COMPARISON}, *arguments)
    assert requests == ["GET /compare?experiment=12&axis=transport&baseline=pipe&candidate=unix-stream"]
    _, requests, _ = made_up({"/compare": COMPARISON}, "compare", "v6.1", "15")
    assert requests == ["GET /compare?baseline=v6.1&candidate=15"]


def test_a_dry_run_is_a_line_and_posts_the_spec(made_up):
    plan = {"runs": 16, "estimated_seconds": 100, "points": [{}, {}], "runs_at_most": 60,
            "estimated_seconds_at_most": 375, "skipped": [{"point": {}, "reason": "no second node"}]}  # fmt: skip
    arguments = ("run", '{"transport": "pipe"}', "--dry-run")
    shown, requests, posted = made_up({"/experiments": plan}, *arguments)
    assert requests == ["POST /experiments?dry_run=true"] and posted == [{"transport": "pipe"}]
    assert shown.splitlines() == [
        "16 runs of 2 points, about 1 min 40 s",
        "until enough is known: 60 runs at most, about 6 min 15 s",
        "",
        "Left out, 1 of the points: no second node",
    ]
    shown, _, _ = made_up({"/experiments": plan}, *arguments, "--json")
    assert json.loads(shown) == plan
    single = plan | {"runs": 1, "points": [{}], "runs_at_most": 1, "skipped": []}
    assert made_up({"/experiments": single}, *arguments)[0] == "1 run of 1 point, about 1 min 40 s\n"


def test_a_dry_run_says_what_earlier_runs_say(made_up):
    def point(repetitions, error, planned):
        return {
            "runs": 8,
            "enough": {"repetitions": repetitions, "difference": 0.05},
            "split": {"repetitions": 30, "duration_seconds": 2, "relative_error": error,
                      "relative_error_as_planned": planned},
        }  # fmt: skip

    points = [point(12, 0.01, 0.02), {"runs": 8, "enough": None, "split": None}, point(9, 0.007, 0.03)]
    plan = {"runs": 24, "estimated_seconds": 100, "runs_at_most": 24, "skipped": [], "points": points}
    shown, _, _ = made_up({"/experiments": plan}, "run", '{"transport": "pipe"}', "--dry-run")
    assert shown.splitlines() == [
        "24 runs of 3 points, about 1 min 40 s",
        "by earlier runs, 12 repetitions show a difference of 5%; this has 8",
        "in the same time, 30 repetitions of 2 s give a standard error of 0.70% in place of 3.00%",
    ]
    for error, planned in ((0.019, 0.02), (0, 0)):  # as good as it is
        plan["points"] = [point(12, error, planned)]
        shown, _, _ = made_up({"/experiments": plan}, "run", '{"transport": "pipe"}', "--dry-run")
        assert "in the same time" not in shown
    beyond = "it would take more than the 200 runs of each that take part in a comparison"
    plan["points"].append(point(None, 0, 0))
    plan["points"][1]["enough"]["repetitions_reason"] = beyond
    shown, _, _ = made_up({"/experiments": plan}, "run", '{"transport": "pipe"}', "--dry-run")
    assert f"by earlier runs, for 1 of 2 points {beyond} to show a difference of 5%" in shown.splitlines()
    assert "by earlier runs, 12 repetitions of the others show a difference of 5%; this has 8" in shown.splitlines()
    del plan["points"][0]
    shown, _, _ = made_up({"/experiments": plan}, "run", '{"transport": "pipe"}', "--dry-run")
    assert f"for 1 of 1 points {beyond}" in shown and "of the others" not in shown


def test_findings_are_sentences(made_up):
    answer = {"question": "How fast is a pipe?", "sentence": None, "reason": None, "confidence": "reduced",
              "figures": [{"name": "ratio", "of": "pipe", "value": 1.25, "unit": "", "interval": None},
                          {"name": "messages_per_second", "of": None, "value": 1693665.8, "unit": "messages/s",
                           "interval": {"low": 9.38765, "high": 2038247.4, "level": 0.98}}],
              "published": {"value": 2.5, "unit": "GB/s", "words": None}}  # fmt: skip
    document = {
        "items": [
            {"sentence": "pipe is fastest.", "confidence": "high"},
            {"sentence": "Nothing can be said of tcp.", "confidence": "reduced"},
        ],
        "next": None,
        "study": {"answers": [answer]},
    }
    shown, requests, _ = made_up({"/experiments/6/findings": document}, "findings", "6")
    assert requests == ["GET /experiments/6/findings"]
    assert shown.splitlines() == [
        "- pipe is fastest.",
        "- Nothing can be said of tcp. (confidence is reduced)",
        "",
        "How fast is a pipe?",
        "  here       ratio 1.250 (pipe), messages_per_second 1,693,666 messages/s [9.388, 2,038,247]"
        " (confidence is reduced)",
        "  published  2.5 GB/s",
    ]


SHOWN = {"id": 4, "name": None, "state": "done", "error": None, "eta_seconds": None, "queue_position": None,
         "progress": {"runs_total": 26, "runs_done": 26, "runs_failed": 0}, "created_at": None, "started_at": None,
         "finished_at": None, "seed": 1, "version": "0.1.0", "spec": {}, "skipped": []}  # fmt: skip


def outcome(made_up, **more):
    shown, _, _ = made_up({"/experiments/4": SHOWN | {"until": None, "search": None} | more}, "show", "4")
    return [line[20:] for line in shown.splitlines() if line.startswith(("until", "search", " "))]


def test_show_has_what_until_has_reached(made_up):
    point = {"workload": "stream", "transport": "tcp", "message_size": 64}
    row = {"point": point, "relative_ci": 0.071, "repetitions_needed": 52}
    rows = {"state": "max_repetitions", "figure": "latency_p50", "relative_ci": 0.05, "rows": 2, "rows_reached": 1,
            "rows_not_reached": [row]}  # fmt: skip
    assert outcome(made_up) == []
    assert outcome(made_up, until=rows) == [
        "max_repetitions: the latency_p50 of 1 of 2 rows is known within 5.0 %",
        "stream tcp 64 B: within 7.1 %; about 52 repetitions would do",
    ]
    unknown = row | {"relative_ci": None, "repetitions_needed": None, "reason": "neighbouring runs are alike"}
    lines = outcome(made_up, until=rows | {"rows_not_reached": [unknown]})
    assert lines[1] == "stream tcp 64 B: no interval; neighbouring runs are alike"
    pair = {
        "baseline": point,
        "candidate": point | {"transport": "pipe"},
        "relative_ci": 0.3,
        "repetitions_needed": None,
    }
    pairs = {"state": "budget", "figure": "throughput", "relative_ci": 0.02, "pairs": 3, "pairs_reached": 2,
             "pairs_not_reached": [pair], "rows": 3, "rows_reached": None, "rows_not_reached": []}  # fmt: skip
    assert outcome(made_up, until=pairs) == [
        "budget: the throughput of 2 of 3 pairs is known within 2.0 %, or decided",
        "stream pipe 64 B beside stream tcp 64 B: within 30.0 %",
    ]
    assert outcome(made_up, until={"state": "cancelled", "rows": None, "rows_reached": None}) == ["cancelled"]


def test_show_has_what_a_search_has_found(made_up):
    found = {"point": {"workload": "pingpong", "transport": "pipe", "message_size": 64}, "state": "found",
             "highest_rate": 9393, "lowest_rate_not_kept": 9535}  # fmt: skip
    search = {"state": "done", "latency_p99_below_us": 200, "points": [found, found | {"highest_rate": None}]}
    assert outcome(made_up, search=search) == [
        "done: the highest rate with a p99 below 200 µs",
        "pingpong pipe 64 B: found; 9,393 messages/s kept, 9,535 messages/s not kept",
        "pingpong pipe 64 B: found; 9,535 messages/s not kept",
    ]


def test_advice_is_a_ranking(made_up):
    item = {"standing": "best", "reason": None, "value": 2.5e9, "unit": "bytes/s", "runs": 8, "age_seconds": 7300,
            "noisy": True, "unsteady": False, "not_observed": False, "environment_changed": False,
            "buffer_bytes": None, "gathers": False, "neighbours_alike": False, "fit": None, "repetitions_added": 0,
            "interval": {"low": 2.4e9, "high": 2.6e9}}  # fmt: skip
    great = {"value": 17.7467e9, "interval": {"low": 17.56e9, "high": 18.01e9}}
    small = {"value": 25.13, "unit": "ns", "interval": {"low": 9.5, "high": 1132.6}}
    other = {"point": {"transport": "tcp"}, "standing": "open", "reason": "overlap", "noisy": False,
             "repetitions_added": 3}  # fmt: skip
    points = [{"transport": name} for name in ("pipe", "shm-posix", "memfd")]
    changes = [{}, great, small]
    items = [item | {"point": point} | change for point, change in zip(points, changes, strict=True)]
    items.append(item | other)
    document = {"sentence": "pipe has most.", "items": items, "next": None, "settle": {"transport": ["pipe", "tcp"]}}
    document["settle_seconds"] = 190
    shown, requests, _ = made_up({"/advice": document}, "advice", "message_size=4096", "want=throughput")
    assert requests == ["GET /advice?message_size=4096&want=throughput"]
    lines = shown.splitlines()
    assert lines[0] == "pipe has most."
    assert lines[3].split() == "best pipe 2,500 MB/s 2,400 … 2,600 8 2 h 01 min noisy".split()
    assert lines[4].split()[2:7] == "17,747 MB/s 17,560 … 18,010".split()
    assert lines[5].split()[2:7] == "0.02513 µs 0.009500 … 1.133".split()
    assert lines[6].endswith("  overlap, repetitions added") and "added" not in "".join(lines[3:6])
    proposed = """ipclab run '{"transport": ["pipe", "tcp"]}'"""
    assert lines[-1] == f"The runs that are proposed take about 3 min 10 s: {proposed}"
    shown, requests, posted = made_up({"/advice": {"id": 9}}, "advice", "--measure", "message_size=4096")
    assert requests == ["POST /advice"] and posted == [{"message_size": 4096}]
    assert shown == "Experiment 9 has the runs that are proposed: ipclab watch 9\n"


def test_over_tcp_writing_needs_the_token(ipclab, daemon, tmp_path):
    url = ("--url", daemon.url)
    without = {"IPCLAB_SOCKET": ""}
    assert "pipe" in printed(ipclab(*url, "host", environment=without))
    spec = json.dumps(SHORT)
    refused = ipclab(*url, "run", spec, "--detach", environment=without)
    assert refused.returncode == 3 and "token" in refused.stderr
    token = daemon.base / "token"
    first = printed(ipclab(*url, "--token-file", token, "run", spec, "--detach", environment=without))
    assert daemon.client().wait_final(int(first))["state"] == "done"
    by_environment = without | {"IPCLAB_URL": daemon.url, "IPCLAB_TOKEN": daemon.token}
    printed(ipclab("run", spec, "--detach", environment=by_environment))


def test_an_interrupt_leaves_the_experiment(daemon):
    command = [PROGRAM, "--socket", daemon.socket, "run", json.dumps(OF_PIPE | {"duration_seconds": 600, "rate": 10})]
    client, identity = daemon.client(), None
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            identity = int(re.match(r"Experiment (\d+)", process.stdout.readline())[1])
            client.wait_state(identity, ("running",))
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 130
        assert f"ipclab cancel {identity}" in errors
        assert client.get(f"/experiments/{identity}")["state"] == "running"
    finally:
        client.request("POST", f"/experiments/{identity or client.get('/experiments')['items'][0]['id']}/cancel")


def test_a_closed_pipe_is_no_error(ipclab, done, daemon):
    command = f"{PROGRAM} --socket {daemon.socket} show {done['id']} --json | true; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert (ended.stdout, ended.stderr) == ("0\n", "")


def on_terminal(arguments):
    """Everything that a program writes to a terminal of its own, and its exit status."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(arguments[0], [str(argument) for argument in arguments])
    written = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        written += piece
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return written.decode(), os.waitstatus_to_exitcode(status)


def has_rich():
    return subprocess.run(["/usr/bin/python3", "-c", "import rich"], capture_output=True).returncode == 0


@pytest.mark.parametrize("option", ["", "--plain"])
def test_on_a_terminal(daemon, option):
    """A bar where there is python3-rich and nobody wants text, else one line that is rewritten."""
    if not option and not has_rich():
        pytest.skip("needs python3-rich")
    spec = json.dumps(OF_PIPE | {"message_size": 4096, "duration_seconds": 1.2})
    arguments = [PROGRAM, "--socket", daemon.socket, "run", spec, *([option] if option else [])]
    written, status = on_terminal(arguments)
    assert status == 0, written
    assert ("━" in written) == (not option)
    assert ("\r\x1b[K[0/1] " in written) == bool(option)
    assert re.search(r"stream pipe 4 KiB: [\d,.]+ MB/s", written)


def completed(daemon, *words):
    arguments = [PROGRAM, "--complete", *words]
    environment = os.environ | {"IPCLAB_SOCKET": daemon.socket}
    return printed(
        subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=PATIENCE_SECONDS)
    ).split()


def test_completion_knows_commands_options_and_what_the_daemon_has(daemon, done):
    assert completed(daemon, "re") == ["retry", "results", "report"]
    assert set(completed(daemon, "")) == main.COMMANDS.keys() | main.OTHERS.keys()
    assert "--socket" in completed(daemon, "--") and "--json" in completed(daemon, "list", "--")
    assert completed(daemon, "list", "--state", "") == list(main.STATES)
    assert completed(daemon, "export", str(done["id"]), "") == list(commands.EXPORTS)
    assert "quick" in completed(daemon, "run", "q") and completed(daemon, "run", "quick", "") == []
    assert {"last", str(done["id"])} <= set(completed(daemon, "show", ""))
    assert completed(daemon, "--socket", "/nonexistent", "show", "") == []
    assert str(done["id"]) in completed(daemon, "--json", "cancel", "1", "")
    assert completed(daemon, "campaign", "") == []  # of another program


def test_completion_knows_what_advice_can_be_asked(daemon):
    """Fields and values of the daemon's description; zsh gives FIELD=VALUE as a word, bash as three."""
    fields = completed(daemon, "advice", "--measure", "want=latency_p50", "")
    assert {"message_size=", "want=", "latency_p99_below_us="} <= set(fields) and len(fields) == len(set(fields))
    wants = ["want=latency_p50", "want=latency_p99"]
    assert completed(daemon, "advice", "want=lat") == wants
    assert completed(daemon, "advice", "want", "=", "lat") == [one.removeprefix("want=") for one in wants]
    assert completed(daemon, "advice", "wor") == ["workload="]
    assert completed(daemon, "advice", "workload", "=") == ["stream", "pingpong"]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_in_a_shell(daemon, shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    environment = os.environ | {"IPCLAB_SOCKET": daemon.socket, "PATH": f"{SOURCE / 'cli'}:{os.environ['PATH']}"}
    if shell == "bash":
        script = f"""source {SOURCE / "cli/completion.bash"}
            COMP_WORDS=(ipclab res) COMP_CWORD=1; _ipclab ipclab; echo "${{COMPREPLY[@]}}" """
    else:
        # The completion's own commands, where nobody types: what would be added is printed.
        script = f"""compadd() {{ print -r -- ${{(P)2}} }}; _files() {{ print files }}
            words=(ipclab res) CURRENT=2; f() {{ {(SOURCE / "cli/_ipclab").read_text()}\n}}; f"""
    ended = subprocess.run([shell, "-c", script], capture_output=True, text=True, env=environment, timeout=60)
    assert (ended.stdout, ended.stderr) == ("results\n", ""), ended


def test_the_manual_has_every_command_option_and_status():
    manual = (SOURCE / "cli/ipclab.1").read_text()
    for name, (_, _, arguments) in (main.COMMANDS | {name: (None, None, []) for name in main.OTHERS}).items():
        assert re.search(rf"^\.It Cm {name}\b|^\.Cm .*\b{name}\b", manual, re.MULTILINE), name
        for names, _, _ in arguments:
            for option in (one for one in names if one.startswith("--") and one != "--output"):
                assert f"Fl Fl {option[2:]}" in manual, option
    statuses = re.search(r"^\.Sh EXIT STATUS\n(.*?)^\.El", manual, re.MULTILINE | re.DOTALL)[1]
    assert dict(re.findall(r"^\.It (\d+)\n(.*)$", statuses, re.MULTILINE)) == {
        str(status): words for status, words in main.STATUSES.items()
    }


def test_a_command_of_another_package_is_there_with_it(tmp_path):
    shutil.copytree(SOURCE / "cli", tmp_path / "share/ipclab/cli")
    program = tmp_path / "share/ipclab/cli/ipclab"

    def run(*words):
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        return done.returncode, done.stdout + done.stderr

    without = "ipclab: campaign is a command of the package ipclab-fleet, which is not installed\n"
    assert run("campaign", "show") == (2, without)
    assert "campaign" not in run("--help")[1] and "campaign" not in run("--complete", "")[1]
    other = tmp_path / "share/ipclab-fleet/ipclab-fleet"
    other.parent.mkdir()
    other.write_text('#!/bin/sh\necho "$#: $*"\nexit 3\n')
    other.chmod(0o755)
    assert run("campaign", "show", "--json", "a b") == (3, "3: show --json a b\n")
    assert re.search(r"^ +campaign +carry one study", run("--help")[1], re.MULTILINE)
    assert "campaign\n" in run("--complete", "ca")[1]
    status, words = run("--json", "campaign")
    assert status == 2 and "options of its own" in words


def wait_for_stream(client):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not re.search(rb"^ipclab_event_streams\{[^}]*\} [1-9]", client.request("GET", "/metrics").body, re.MULTILINE):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_watching_through_a_restart(tmp_path):
    """The daemon goes away in the middle of an experiment, and comes back."""
    from ipclabtest.daemon import Daemon

    own = Daemon()
    try:
        own.start()
        client = own.client()
        identity = client.post(OF_PIPE | {"message_size": 4096, "duration_seconds": 2, "repetitions": 2})["id"]
        command = [sys.executable, PROGRAM, "--socket", own.socket, "watch", str(identity), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            client.wait_state(identity, ("running",))
            wait_for_stream(client)
            own.stop()
            own.start()
            output, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, errors
        assert json.loads(output)["state"] in FINAL
    finally:
        own.remove()


def test_bundles_are_written_verified_and_taken_in(ipclab, done, tmp_path):
    path = tmp_path / printed(ipclab("bundle", done["id"], "--host", "rack 1", "--directory", tmp_path)).strip()
    assert re.fullmatch(r"ipclab-two-sizes-[0-9a-f]{64}\.json\.gz", path.name)
    first, computed, *others = printed(ipclab("verify", path)).splitlines()
    assert first == f"{path}: verified: 2 rows from 2 runs"
    assert computed.startswith("  computed anew: throughput_bytes_per_second, ") and "cpu_ns_per_message" in computed
    assert others and all(re.match("  not computed anew: [^:]+: .", line) for line in others)
    taken = json.loads(printed(ipclab("import", path, "--json")))
    assert [one["imported"]["host"] for one in taken] == ["rack 1"] and taken[0]["id"] > done["id"]
    assert printed(ipclab("import", path)) == f"{path}: experiment {taken[0]['id']}\n"
    renamed = tmp_path / re.sub("[0-9a-f]{64}", "0" * 64, path.name)
    path.rename(renamed)
    refused = ipclab("verify", renamed)
    assert refused.returncode == 1 and "is not the name's" in refused.stdout, refused
    assert ipclab("import", renamed).returncode == 2
