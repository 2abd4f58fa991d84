# SPDX-License-Identifier: MIT
"""One client that takes all it can get, without a token: it has its share, and others are served beside it."""

import contextlib
import http.client
import os
import select
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass

import pytest
from client import PATIENCE_SECONDS, Client, Events, check_problem
from conftest import ENDLESS

PIPELINED = 150
CROWD = 140
CONNECTIONS = 'ipclab_http_connections{listener="tcp"}'
STALLED_SECONDS = 10  # RELAY_STALLED_NS of api/http/connection/relay.h
OF_ONE_ADDRESS = {"connections": 128, "expensive requests": 16, "event streams": 32}


@dataclass
class Neighbour(Client):
    """Over TCP from another address of the loopback network."""

    address: str = "127.0.0.2"

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout, source_address=(self.address, 0))


@pytest.fixture
def neighbour(own_daemon):
    return Neighbour(port=own_daemon.port, openapi=own_daemon.stranger.openapi)


def check_named(problem, share):
    assert problem["limit"] == {"name": f"{share} of one address", "value": OF_ONE_ADDRESS[share]}


def requests(client, target, count=1, last=""):
    """To be pipelined; the last may have headers more."""
    head = f"GET {target} HTTP/1.1\r\nHost: {client.host}\r\n"
    return (f"{head}\r\n" * (count - 1) + f"{head}{last}\r\n").encode()


def unread(client, target, count=1):
    """Requests whose answers nobody takes."""
    sock = socket.socket(socket.AF_UNIX if client.path else socket.AF_INET)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(client.path or ("127.0.0.1", client.port))
    sock.setblocking(False)
    with contextlib.suppress(OSError):  # what does not fit: the daemon reads no further than it answers
        sock.send(requests(client, target, count))
    return sock


class SlowReader(threading.Thread):
    """Takes its answers a little at a time, until it is to hurry."""

    def __init__(self, client, target, count):
        super().__init__(daemon=True)
        self.hurry, self.taken = threading.Event(), b""
        self.sock = client.raw_socket(PATIENCE_SECONDS)
        self.sock.sendall(requests(client, target, count, "Connection: close\r\n"))

    def run(self):
        with self.sock, contextlib.suppress(ConnectionError):
            while piece := self.sock.recv(1 << 20 if self.hurry.wait(0 if self.hurry.is_set() else 0.1) else 2048):
                self.taken += piece


def metric(client, name):
    lines = client.request("GET", "/metrics").body.decode().splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(name + " "))


def wait_for(condition, what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def wait_served(client, share):
    """Refused until one of the crowd has stood still for a second, which gives its place."""

    def is_served():
        answer = client.request("GET", "/health")
        if answer.status != 200:
            check_problem(answer, 503, "unavailable")
            assert answer.json["limit"] == share
        return answer.status == 200

    wait_for(is_served, "the crowd's own address or user is not served")


def test_unread_answers_leave_room_for_others(own_daemon, neighbour):
    """Their own address is served too: a client that takes nothing gives up its place, and is dropped later."""
    share = {"name": "connections of one address", "value": OF_ONE_ADDRESS["connections"]}

    def crowd_gives_one_place():
        """False: it took so long that the others may have been dropped for it."""
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            for _ in range(CROWD):
                stack.enter_context(unread(own_daemon.stranger, "/openapi.json", PIPELINED))
            wait_served(own_daemon.stranger, share)
            left = metric(own_daemon.unix, CONNECTIONS)
            if time.monotonic() - began >= STALLED_SECONDS:
                return False
            assert left > CROWD // 2, "the others were not dropped for it"
            for _ in range(20):
                assert neighbour.get("/health")["status"] == "ok"
                assert own_daemon.unix.get("/health")["status"] == "ok"
            wait_for(lambda: metric(own_daemon.unix, CONNECTIONS) == 0, "nothing is dropped")
        assert own_daemon.stranger.get("/health")["status"] == "ok"
        return True

    wait_for(crowd_gives_one_place, "the machine is too slow for a crowd within seconds")


@pytest.mark.parametrize("over", ["tcp", "unix"])
def test_who_reads_slowly_keeps_its_place(own_daemon, over):
    """Its answer is the oldest under way, and it takes less in a second than makes room in its socket."""
    client = {"tcp": own_daemon.stranger, "unix": own_daemon.unix}[over]
    share = {
        "tcp": {"name": "connections of one address", "value": OF_ONE_ADDRESS["connections"]},
        "unix": {"name": "connections of one user", "value": 96},
    }[over]
    count = -(-4_000_000 // len(client.request("GET", "/openapi.json").body))  # much more than sockets hold
    with contextlib.ExitStack() as stack:
        slow = SlowReader(client, "/openapi.json", count)
        slow.start()
        for _ in range(share["value"] + 12):
            stack.enter_context(unread(client, "/openapi.json", PIPELINED))
        for _ in range(3):
            time.sleep(1.5)  # those that stand still give their places in the meantime, one after another
            wait_served(client, share)
        slow.hurry.set()
        slow.join(PATIENCE_SECONDS)
        assert slow.taken.count(b"HTTP/1.1 200 OK\r\n") == count and slow.taken.endswith(b"}")


def test_a_request_that_has_come_is_answered_before_silent_clients(own_daemon):
    """All of them came while the daemon did not run: the first one's place is wanted before its request is read."""
    own_daemon.process.send_signal(signal.SIGSTOP)
    try:
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(own_daemon.stranger.raw_socket(PATIENCE_SECONDS))
            first.sendall(requests(own_daemon.stranger, "/health", 1, "Connection: close\r\n"))
            for _ in range(CROWD):
                sock = stack.enter_context(socket.socket())
                sock.setblocking(False)
                sock.connect_ex(("127.0.0.1", own_daemon.port))
            own_daemon.process.send_signal(signal.SIGCONT)
            answer = b""
            while piece := first.recv(1 << 16):
                answer += piece
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    finally:
        own_daemon.process.send_signal(signal.SIGCONT)


def test_answers_that_nobody_takes_leave_room_with_the_relay(own_daemon, neighbour):
    """The library has written them whole, and ends the oldest that waits for its next request when another connection
    of the same address comes. The relay must give one of those up for somebody else at once, and not all of them when
    they have stood still for long."""
    answer = len(own_daemon.stranger.request("GET", "/openapi.json").body)
    count = -(-300_000 // answer)  # more than the client's socket takes, and no more than the relay's besides
    with contextlib.ExitStack() as stack:
        for _ in range(2 * OF_ONE_ADDRESS["connections"]):
            sock = stack.enter_context(unread(own_daemon.stranger, "/openapi.json", count))
            assert select.select([sock], [], [], PATIENCE_SECONDS)[0], "it is answered"
            time.sleep(0.005)  # most are written whole by then
        connection = neighbour.connect(timeout=STALLED_SECONDS - 2)  # from then on they are dropped in any case
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200
        connection.close()


def test_event_streams_leave_room_for_others(own_daemon, neighbour):
    with contextlib.ExitStack() as stack:
        for _ in range(OF_ONE_ADDRESS["event streams"]):
            assert stack.enter_context(Events(own_daemon.stranger, "/events")).response.status == 200
        problem = own_daemon.stranger.refused("GET", "/events", 503, "too-many-subscribers")
        check_named(problem, "event streams")
        assert problem["headers"]["Retry-After"].isdigit()
        assert stack.enter_context(Events(neighbour, "/events")).response.status == 200
        assert stack.enter_context(Events(own_daemon.unix, "/events")).response.status == 200
        assert metric(own_daemon.unix, 'ipclab_event_streams{listener="tcp"}') == 33


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
def test_another_user_at_the_same_address_has_a_share(own_daemon):
    script = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{own_daemon.port}/events').status)"
    with contextlib.ExitStack() as stack:
        for _ in range(OF_ONE_ADDRESS["event streams"]):
            stack.enter_context(Events(own_daemon.stranger, "/events"))
        own_daemon.stranger.refused("GET", "/events", 503, "too-many-subscribers")
        other = subprocess.run(
            ["/usr/bin/python3", "-c", script], user="nobody", capture_output=True, text=True, timeout=60, check=True
        )
        assert other.stdout == "200\n"


def test_one_user_of_many_addresses_leaves_room(own_daemon):
    """A user of all of 127.0.0.0/8 is still one user, where the kernel reports the owner of a socket."""
    with contextlib.ExitStack() as stack:
        statuses = []
        for i in range(64):
            client = Neighbour(port=own_daemon.port, address=f"127.0.1.{i + 1}")
            statuses.append(stack.enter_context(Events(client, "/events")).response.status)
        assert statuses == [200] * 48 + [503] * 16
        answer = Neighbour(port=own_daemon.port, address="127.0.2.1").request("GET", "/events")
        check_problem(answer, 503, "too-many-subscribers")
        assert answer.json["limit"] == {"name": "event streams of one user", "value": 48}


def test_dear_requests_leave_room_for_others(own_daemon, neighbour):
    """A table of which nobody takes more than the beginning is under way until it is dropped."""
    spec = ENDLESS | {"message_size": list(range(1, 1025)), "threads": [1, 2, 3, 4]}
    target = f"/experiments/{own_daemon.unix.post(spec)['id']}/results"
    for client in (own_daemon.unix, own_daemon.stranger, neighbour):  # thousands of rows take long to validate
        client.openapi = {}
    with contextlib.ExitStack() as stack:
        for _ in range(OF_ONE_ADDRESS["expensive requests"]):
            stack.enter_context(unread(own_daemon.stranger, target))
        refused = []

        def is_refused():
            sock = stack.enter_context(unread(own_daemon.stranger, target))  # and has the place of one that was dropped
            sock.settimeout(60)
            refused[:] = [sock.recv(65536)]
            return refused[0].startswith(b"HTTP/1.1 503 ")

        wait_for(is_refused, "nothing is refused")
        assert b'"urn:ipclab:problem:too-many-requests"' in refused[0]
        assert b'"expensive requests of one address","value":16' in refused[0] and b"\r\nRetry-After: " in refused[0]
        assert len(neighbour.get(target)["items"]) == 4096
        assert len(own_daemon.unix.get(target)["items"]) == 4096
        assert own_daemon.stranger.get("/health")["status"] == "ok"  # what is cheap is served to the same address, too
    wait_for(lambda: own_daemon.stranger.request("GET", target).status == 200, "still refused")
