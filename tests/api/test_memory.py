# SPDX-License-Identifier: MIT
"""The memory that readers without a token can make the daemon hold: a bounded part of their responses."""

import contextlib
import gzip
import hashlib
import json
import os
import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from client import PATIENCE_SECONDS, parse_raw
from conftest import ENDLESS, OF_PIPE, SHORT
from stored import Stored

RSS_MAX = 64 << 20
READERS = 24
SPECS = 16
BODY = 1 << 20
JSON = {"Content-Type": "application/json"}


def rss(daemon):
    with open(f"/proc/{daemon.process.pid}/statm") as f:
        return int(f.read().split()[1]) * 4096


class Peak:
    """The largest resident set while the block runs."""

    def __init__(self, daemon):
        self.daemon, self.bytes, self.over = daemon, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.over.wait(0.01):
            self.bytes = max(self.bytes, rss(self.daemon))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def padded():
    """A short spec, with a megabyte of white space."""
    text = json.dumps(OF_PIPE | {"duration_seconds": 600})
    return (text[:-1] + " " * (BODY - len(text)) + "}").encode()


def long_spec(places=260):
    """A megabyte of which nothing can be left out: nodes that no machine of a lab has."""
    apart = [
        {"sender": {"node": 0, "memory": {"policy": "bind", "nodes": list(range(2 + i, 1000))}}} for i in range(places)
    ]
    spec = OF_PIPE | {"duration_seconds": 600, "skip_impossible": True, "placement": ["default", *apart]}
    return json.dumps(spec, separators=(",", ":")).encode()


@pytest.fixture
def blocked(own_daemon):
    """The daemon's queue stands still: nothing but the readers takes its time."""
    own_daemon.unix.wait_state(own_daemon.unix.post(ENDLESS)["id"], ("running",))
    for client in (own_daemon.unix, own_daemon.tcp, own_daemon.stranger):
        client.openapi = {}  # to check megabytes by the schema takes minutes
    return own_daemon


def slow_reader(daemon, target, accept="application/json", body=None):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", daemon.port))
    method = "GET" if body is None else "POST"
    head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nAccept: {accept}\r\n"
    if body is not None:
        head += f"Authorization: Bearer {daemon.token}\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n"
    sock.sendall(head.encode() + b"\r\n" + (body or b""))
    sock.settimeout(1)
    return sock


def drip(socks, seconds):
    """Half of them take a little now and then; the others nothing."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for sock in socks[::2]:
            if select.select([sock], [], [], 0)[0]:
                with contextlib.suppress(ConnectionError):
                    sock.recv(4096)
        time.sleep(0.05)


def attack(daemon, target, accept="application/json", body=None):
    with contextlib.ExitStack() as stack, Peak(daemon) as peak:
        socks = [stack.enter_context(slow_reader(daemon, target, accept, body)) for _ in range(READERS)]
        drip(socks, 4)
        health = daemon.unix.get("/health")
    assert health["status"] == "ok"
    return peak.bytes


def submit(daemon, body):
    answer = daemon.unix.request("POST", "/experiments", body, {"Content-Type": "application/json"})
    assert answer.status == 201, answer
    return answer.json


@pytest.mark.parametrize("spec", [padded, long_spec])
def test_large_specs_are_not_held_for_each_reader(blocked, spec):
    body = spec()
    assert BODY * 0.8 < len(body) <= BODY
    first = submit(blocked, body)
    assert first["spec"] == json.loads(body)
    for _ in range(SPECS - 1 if spec is padded else 11):
        submit(blocked, body)
    assert attack(blocked, "/experiments?limit=1000") < RSS_MAX
    # and who reads gets all of it
    listed = blocked.unix.get("/experiments?limit=1000")["items"]
    assert listed[-2]["spec"] == first["spec"] and listed[-2]["id"] == first["id"]


def read_all(daemon, target):
    """The status and the number of bytes of an answer that is read as fast as it comes."""
    with daemon.tcp.raw_socket(PATIENCE_SECONDS) as sock:
        sock.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nConnection: close\r\n\r\n".encode())
        head = sock.recv(12)
        size = sum(iter(lambda: len(sock.recv(1 << 18)), 0))
    return int(head[9:]), size


def test_readers_of_large_specs_leave_nothing_behind(blocked):
    """What is freed goes back to the system, also between small blocks that are in use: the parsed specs left such
    room, and what bodies are made from took it. Nor does each reader of the store keep a large cache."""
    for _ in range(30):
        submit(blocked, long_spec())
    with Peak(blocked) as peak, ThreadPoolExecutor(READERS) as readers:
        answers = list(readers.map(lambda _: read_all(blocked, "/experiments?limit=1000"), range(2 * READERS)))
    assert {status for status, _ in answers} <= {200, 503}
    sizes = {size for status, size in answers if status == 200}
    assert min(sizes) > 60 * BODY and max(sizes) - min(sizes) < 1000, sizes
    assert peak.bytes < 50 << 20
    assert rss(blocked) < 24 << 20


def test_large_tables_are_not_held_for_each_reader(blocked):
    spec = SHORT | {"message_size": list(range(1, 1025)), "threads": [1, 2, 3, 4]}
    experiment = submit(blocked, json.dumps(spec | {"transport": "unix-stream"}).encode())
    points = experiment["progress"]["runs_total"]
    assert points == 4096
    for name in ("results", "runs?limit=1000"):
        assert attack(blocked, f"/experiments/{experiment['id']}/{name}") < RSS_MAX
    for name in ("results?columns=all", "runs"):
        assert attack(blocked, f"/experiments/{experiment['id']}/{name}", "text/csv") < RSS_MAX
    rows = blocked.unix.get(f"/experiments/{experiment['id']}/results")["items"]
    assert len(rows) == points
    assert rows[-1]["point"]["message_size"] == 1024


@pytest.mark.parametrize("accept", ["application/json", "text/csv"])
def test_where_a_table_is_from_is_not_held_with_a_large_spec(blocked, accept):
    """The members beside the rows come from the spec, which is read once for a reader and not held."""
    experiment = submit(blocked, long_spec())
    for name in ("results", "runs", "samples"):
        assert attack(blocked, f"/experiments/{experiment['id']}/{name}", accept) < RSS_MAX


def test_what_is_too_much_together_is_refused_for_a_while(blocked):
    """As whole bodies, which a single experiment is."""
    experiment = submit(blocked, long_spec())
    target = f"/experiments/{experiment['id']}"
    with contextlib.ExitStack() as stack, Peak(blocked) as peak:
        for _ in range(60):
            stack.enter_context(slow_reader(blocked, target))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (answer := blocked.stranger.request("GET", target)).status != 503:
            assert time.monotonic() < deadline, "nothing is refused"
        assert answer.headers["Retry-After"].isdigit()
        assert answer.json["type"] == "urn:ipclab:problem:unavailable"
        assert blocked.stranger.get("/health")["status"] == "ok"  # what is small is served
        assert blocked.unix.get(target)["id"] == experiment["id"]  # a budget of its own
    assert peak.bytes < RSS_MAX
    while (answer := blocked.stranger.request("GET", target)).status == 503:
        assert time.monotonic() < deadline, "still refused"
        time.sleep(0.1)
    assert answer.status == 200


def upload(daemon, target, media, length, framing):
    """A request over the unix socket whose body is still to come."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(PATIENCE_SECONDS)
    sock.connect(str(daemon.socket))
    head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media}\r\n"
    sock.sendall((head + (f"Content-Length: {length}" if framing == "length" else framing) + "\r\n\r\n").encode())
    return sock


@pytest.mark.parametrize("framing", ["length", "Transfer-Encoding: chunked"])
def test_large_uploads_come_one_at_a_time(blocked, framing):
    bundle = f"/bundles?sha256={'0' * 64}", "application/gzip", 40 << 20
    before = rss(blocked)
    with contextlib.ExitStack() as stack, Peak(blocked) as peak:
        first = stack.enter_context(upload(blocked, *bundle, framing))
        if framing == "length":
            first.sendall(b"\0" * (20 << 20))
        wait_for_bytes(blocked)
        for target, media, length in (bundle, ("/experiments", "application/json", BODY)):
            other = stack.enter_context(upload(blocked, target, media, length, "length"))
            status, headers, body = parse_raw(other.recv(65536))
            assert status == 503 and headers["Retry-After"].isdigit()
            assert json.loads(body)["limit"]["name"].startswith("request bytes")
        small = blocked.unix.post(SHORT)  # what is small is taken
        assert small["state"] == "queued"
        first.close()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (answer := blocked.unix.request("POST", "/experiments", padded(), JSON)).status == 503:
            assert time.monotonic() < deadline, "still refused"
            time.sleep(0.1)
        assert answer.status == 201
    assert peak.bytes - before < 48 << 20


def wait_for_bytes(daemon):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while daemon.unix.request("POST", "/experiments", padded(), JSON).status != 503:
        assert time.monotonic() < deadline, "nothing is refused"
        time.sleep(0.1)


def metrics(daemon):
    return daemon.unix.request("GET", "/metrics").body.decode()


def test_an_answer_that_nobody_takes_is_dropped(blocked):
    experiment = submit(blocked, long_spec())
    with slow_reader(blocked, f"/experiments/{experiment['id']}") as sock:
        deadline = time.monotonic() + PATIENCE_SECONDS
        for connections in (1, 0):  # it has come, it has gone
            while f'ipclab_http_connections{{listener="tcp"}} {connections}\n' not in metrics(blocked):
                assert time.monotonic() < deadline, f"it is still waited for, until there are {connections}"
                time.sleep(0.1)
        sock.settimeout(PATIENCE_SECONDS)
        received = b""
        with contextlib.suppress(ConnectionError):
            while piece := sock.recv(65536):
                received += piece
    status, headers, body = parse_raw(received)
    assert status == 200 and len(body) < int(headers["Content-Length"])


BUNDLE_RUNS = int(os.environ.get("IPCLAB_BUNDLE_RUNS", "800"))  # 10 000 take minutes


def test_a_bundle_is_made_and_taken_in_a_portion_at_a_time(own_daemon, daemon):
    """What a host holds of one does not grow with its runs, but for the file that came."""
    real = own_daemon.unix.wait_final(
        own_daemon.unix.post({"transport": "pipe", "messages": 50, "warmup_seconds": 0})["id"]
    )
    assert real["state"] == "done", real
    assert own_daemon.stop() == 0
    stored = Stored(own_daemon.state / "ipclab.db")
    many = stored.widen(real["id"], 8, BUNDLE_RUNS // 8, lambda *_: None)
    stored.close()
    own_daemon.start()
    own_daemon.unix.get(f"/experiments/{many}/results")
    before = rss(own_daemon)
    with Peak(own_daemon) as made:
        answer = own_daemon.unix.request("GET", f"/experiments/{many}/bundle", timeout=3600)
    assert answer.status == 200, answer
    text = gzip.decompress(answer.body)
    assert made.bytes - before < len(text) / 2, (made.bytes, before, len(text))
    before = rss(daemon)
    digest, gzipped = hashlib.sha256(text).hexdigest(), {"Content-Type": "application/gzip"}
    with Peak(daemon) as taken:
        there = daemon.unix.request("POST", f"/bundles?sha256={digest}", answer.body, gzipped, timeout=3600)
    assert there.status == 201 and there.json["progress"]["runs_done"] == BUNDLE_RUNS, there
    assert taken.bytes - before < len(answer.body) + len(text) / 2, (taken.bytes, before, len(text))
    assert daemon.unix.request("GET", f"/experiments/{there.json['id']}/bundle").body == answer.body


def many_points():
    return json.dumps(
        SHORT
        | {
            "transport": ["pipe", "fifo", "unix-stream", "unix-dgram"],
            "message_size": list(range(1, 513)),
            "threads": [1, 2, 3, 4],
            "source": ["hot", "cold"],
        }
    ).encode()


def test_findings_of_many_points_are_drawn_once(blocked):
    """Whoever asks meanwhile waits for them."""
    experiment = submit(blocked, many_points())
    assert experiment["progress"]["runs_total"] == 16384
    assert attack(blocked, f"/experiments/{experiment['id']}/findings") < RSS_MAX
    assert rss(blocked) < 32 << 20


def many_numbers():
    return b'{"transport":"pipe","message_size":[' + b",".join([b"1"] * (BODY // 2 - 50)) + b"]}"


@pytest.mark.parametrize(("body", "status"), [(many_points, 200), (many_numbers, 400)])
def test_large_requests_take_turns(own_daemon, body, status):
    """On both sockets at once: the daemon has room for one, and keeps none of it."""
    clients = [own_daemon.unix, own_daemon.tcp]
    for client in clients:
        client.openapi = {}  # to check megabytes by the schema takes long
    answers = []

    def post(client):
        answers.append(client.request("POST", "/experiments?dry_run=true", body(), JSON).status)

    threads = [threading.Thread(target=post, args=(clients[i % 2],)) for i in range(8)]
    with Peak(own_daemon) as peak:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert status in answers and set(answers) <= {status, 503}
    assert peak.bytes < RSS_MAX
    assert rss(own_daemon) < 32 << 20


DRY = "/experiments?dry_run=true"


def test_a_plan_is_written_while_it_is_taken(blocked):
    """Whole, it is megabytes; what it is made from is a part of them, and is counted."""
    body = many_points()
    answer = blocked.tcp.request("POST", DRY, body, JSON)
    assert answer.status == 200 and answer.headers["Transfer-Encoding"] == "chunked"
    points = [point["point"] for point in answer.json["points"]]
    assert len(points) == answer.json["runs"] == 16384 and len({json.dumps(point) for point in points}) == 16384
    assert len(answer.body) > 6 << 20
    assert answer.json["effective_spec"]["message_size"] == list(range(1, 513)) and answer.json["skipped"] == []
    assert attack(blocked, DRY, body=body) < RSS_MAX
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(slow_reader(blocked, DRY, body=body))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (answer := blocked.tcp.request("POST", DRY, body, JSON)).status != 503:
            assert time.monotonic() < deadline, "nothing is refused"
        assert answer.headers["Retry-After"].isdigit()


def many_left_out():
    spec = json.loads(long_spec(240)) | {"message_size": list(range(1, 65))}
    return json.dumps(spec, separators=(",", ":")).encode()


@pytest.mark.parametrize("target", ["/experiments", DRY])
def test_a_list_of_points_that_are_left_out_has_a_limit(blocked, target):
    """A megabyte can leave out points whose list would take sixty."""
    before = blocked.unix.get("/experiments?limit=1")["items"][0]["id"]
    with Peak(blocked) as peak:
        problem = blocked.unix.refused("POST", target, 422, "limit-exceeded", many_left_out(), JSON)
    assert problem["limit"] == {"name": "skipped bytes", "value": 1 << 20}
    assert peak.bytes < RSS_MAX
    assert blocked.unix.get("/experiments?limit=1")["items"][0]["id"] == before


def test_a_long_log_is_moved_while_a_run_is_measured(blocked):
    """The database's log, into the database: housekeeping waits for the end of the run, and this does not."""
    database = blocked.state / "ipclab.db"
    before = database.stat().st_size
    for _ in range(2):  # of four megabytes each with all that is stored of it
        submit(blocked, long_spec())
    deadline = time.monotonic() + PATIENCE_SECONDS
    while database.stat().st_size < before + (4 << 20):
        assert time.monotonic() < deadline, "it stays in the log"
        time.sleep(0.1)
    assert blocked.unix.get("/experiments?state=running")["items"]
