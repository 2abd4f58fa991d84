# SPDX-License-Identifier: MIT
"""Clients that drip, hang or crowd: they are ended in time, and nobody else waits for them."""

import contextlib
import socket
import threading
import time

import pytest
from client import PATIENCE_SECONDS, Events, parse_raw
from conftest import Daemon

HEAD_SECONDS, BODY_SECONDS, IDLE_SECONDS = 10, 20, 30
BEAT_SECONDS = 15  # of an event stream that has nothing to send
BODY_HEAD = b"POST /experiments HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"


class Drip(threading.Thread):
    """Says `first` on many connections and then `more` now and then, until each is closed."""

    def __init__(self, client, count, first, more, every=0.5):
        super().__init__(daemon=True)
        self.client, self.count, self.first, self.more, self.every = client, count, first, more, every
        self.open = {}
        self.ended, self.received = [], []  # when, and what was answered before
        self.stopping = False
        self.start()

    def run(self):
        for _ in range(self.count):
            with contextlib.suppress(OSError):
                sock = self.client.raw_socket()
                sock.sendall(self.first)
                sock.setblocking(False)
                self.open[sock] = []
        while self.open and not self.stopping:
            for sock, received in list(self.open.items()):
                if not self.look(sock, received):
                    self.ended.append(time.monotonic())
                    self.received.append(b"".join(received))
                    sock.close()
                    del self.open[sock]
            time.sleep(self.every)
        for sock in self.open:
            sock.close()

    def look(self, sock, received):
        """Whether it is still open."""
        with contextlib.suppress(OSError):
            sock.send(self.more)
        try:
            while piece := sock.recv(65536):
                received.append(piece)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False


@pytest.fixture(scope="module")
def slow_daemon():
    d = Daemon()
    yield d
    d.remove()


class QuietStream(threading.Thread):
    """Notes when each beat of an event stream comes that has nothing else to send."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.opened, self.beats = time.monotonic(), []
        self.events = Events(client, "/events")
        self.start()

    def run(self):
        with contextlib.suppress(OSError, ValueError):  # closed meanwhile
            for line in self.events.response:
                if line.startswith(b":"):
                    self.beats.append(time.monotonic())


@pytest.fixture(scope="module")
def quiet_stream(slow_daemon):
    stream = QuietStream(slow_daemon.unix)
    yield stream
    stream.events.connection.sock.shutdown(socket.SHUT_RDWR)
    stream.join(10)
    stream.events.connection.close()


@pytest.fixture(scope="module")
def drips(slow_daemon, quiet_stream):
    """All at once, since each takes its time."""
    tcp, unix = slow_daemon.tcp, slow_daemon.unix
    request = f"GET /health HTTP/1.1\r\nHost: {tcp.host}\r\n\r\n".encode()
    running = {
        "heads": Drip(tcp, 100, b"GET /health HTTP/1.1\r\n", b"X"),
        "bodies": Drip(unix, 20, BODY_HEAD, b" "),
        "lines": Drip(unix, 10, b"G", b"E"),
        "idle": Drip(tcp, 5, request, b"", every=0.1),
    }
    yield running
    for drip in running.values():
        drip.stopping = True
        drip.join(10)


def quick(client):
    """An answer, whatever else goes on, and sooner than any idle connection is closed."""
    answer = client.request("GET", "/health", timeout=20)
    assert answer.status == 200 and answer.json["status"] == "ok", answer


def finish(drip, seconds, count):
    drip.join(seconds + PATIENCE_SECONDS)
    assert not drip.is_alive()
    assert len(drip.ended) == count


def test_dripped_heads_are_ended_and_stop_nobody(slow_daemon, drips):
    quick(slow_daemon.tcp)
    quick(slow_daemon.unix)
    assert not drips["heads"].ended, "the answers came only after they had been ended"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while drips["heads"].is_alive() and time.monotonic() < deadline:
        quick(slow_daemon.tcp)
        quick(slow_daemon.unix)
        time.sleep(0.2)
    finish(drips["heads"], HEAD_SECONDS, 100)
    responses = [parse_raw(received) for received in drips["heads"].received if received]
    assert responses and all(status == 408 and b"request-timeout" in body for status, _, body in responses)


def test_a_request_line_that_never_comes_is_not_waited_for(drips):
    finish(drips["lines"], HEAD_SECONDS, 10)


def test_dripped_bodies_are_ended(drips):
    finish(drips["bodies"], BODY_SECONDS, 20)
    assert min(drips["bodies"].ended) > max(drips["heads"].ended)  # a body is given longer
    assert all(parse_raw(received)[0] == 408 for received in drips["bodies"].received)


def test_an_idle_connection_is_closed_in_time(drips):
    finish(drips["idle"], IDLE_SECONDS, 5)
    assert min(drips["idle"].ended) > max(drips["bodies"].ended)  # and an idle client is given longest
    # and no 408 for what was never begun
    assert all(received.count(b"HTTP/1.1 ") == 1 for received in drips["idle"].received)


def test_a_quiet_stream_beats(quiet_stream):
    """Now and then, and not again and again."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(quiet_stream.beats) < 2:
        assert quiet_stream.is_alive() and time.monotonic() < deadline, quiet_stream.beats
        time.sleep(0.1)
    beats = quiet_stream.beats[:]
    assert len(beats) <= (beats[-1] - quiet_stream.opened) / BEAT_SECONDS


def count_closed(socks):
    closed = 0
    for sock in socks:
        sock.setblocking(False)
        try:
            closed += sock.recv(1) == b""
        except BlockingIOError:
            pass
        except ConnectionResetError:
            closed += 1
    return closed


@pytest.mark.parametrize("crowded", ["tcp", "unix"])
def test_idle_connections_are_closed_for_a_request(own_daemon, crowded):
    """More idle connections than there are places: the oldest are closed, and requests are served at once."""
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(getattr(own_daemon, crowded).raw_socket()) for _ in range(300)]
        for _ in range(10):
            quick(own_daemon.tcp)
            quick(own_daemon.unix)
        assert 100 <= count_closed(crowd) < 300


def test_answers_that_nobody_takes_block_nobody(own_daemon):
    client = own_daemon.tcp
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            sock = stack.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", client.port))
            sock.sendall(f"GET /openapi.json HTTP/1.1\r\nHost: {client.host}\r\n\r\n".encode() * 20)
        for _ in range(10):
            quick(client)


def test_a_client_that_left_is_not_waited_for(own_daemon):
    """Its end may come together with its last bytes."""
    for _ in range(50):
        with own_daemon.unix.raw_socket() as sock:
            sock.sendall(BODY_HEAD + b"{")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        metrics = own_daemon.unix.request("GET", "/metrics").body.decode()
        if 'ipclab_http_connections{listener="unix"} 1\n' in metrics:
            return
        assert time.monotonic() < deadline, metrics
        time.sleep(0.1)


def test_many_at_once_are_all_served(own_daemon):
    statuses = []

    def request_list(client):
        for _ in range(20):
            statuses.append(client.request("GET", "/experiments").status)

    clients = [own_daemon.tcp, own_daemon.unix] * 20
    threads = [threading.Thread(target=request_list, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert statuses == [200] * 800
