# SPDX-License-Identifier: MIT
"""An HTTP client for tests: each request on a connection of its own, or raw bytes on a socket; no status raises."""

import gzip
import http.client
import json
import re
import socket
import time
from dataclasses import dataclass

from ipclab_cli.http import UnixConnection, parse_events

from ipclabtest import FINAL, PATIENCE_SECONDS


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes
    json: object = None

    def __repr__(self):
        return f"<{self.status} {self.headers.get('Content-Type')} {self.body[:500]!r}>"


@dataclass
class Client:
    """Talks to one listener: over the unix socket when `path` is given, else over TCP."""

    port: int | None = None
    path: str | None = None
    token: str | None = None

    def connect(self, timeout=60):
        if self.path:
            return UnixConnection(self.path, timeout)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def raw_socket(self, timeout=60):
        if self.path:
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(self.path)  # waits while the queue is full, which one with a timeout does not
            sock.settimeout(timeout)
        else:
            sock = socket.create_connection(("127.0.0.1", self.port), timeout)
        return sock

    @property
    def host(self):
        return "localhost" if self.path else f"127.0.0.1:{self.port}"

    def request(self, method, target, body=None, headers=None, timeout=60):
        headers = dict(headers or {})
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        connection = self.connect(timeout)
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        finally:
            connection.close()
        if re.fullmatch(r"application/(problem\+)?json", answer.headers.get("Content-Type", "")) and answer.body:
            coded = answer.headers.get("Content-Encoding") == "gzip"
            answer.json = json.loads(gzip.decompress(answer.body) if coded else answer.body)
            self.check_shape(method, target, answer)
        return answer

    def check_shape(self, method, target, answer):
        """For a suite that holds answers against their description."""

    def get(self, target, headers=None):
        answer = self.request("GET", target, headers=headers)
        assert answer.status == 200, answer
        return answer.json

    def items(self, target):
        joint, cursor, found = "&" if "?" in target else "?", None, []
        while True:
            page = self.get(target + (f"{joint}cursor={cursor}" if cursor else ""))
            found += page["items"]
            cursor = page["next"]
            if cursor is None:
                return found

    def post(self, spec, **headers):
        answer = self.request("POST", "/experiments", spec, headers)
        assert answer.status == 201, answer
        return answer.json

    def wait_final(self, identity, seconds=PATIENCE_SECONDS):
        return self.wait_state(identity, FINAL, seconds)

    def wait_state(self, identity, states, seconds=PATIENCE_SECONDS):
        """Looks less often the longer it takes: each look takes CPU time from the run that is waited for."""
        began = time.monotonic()
        deadline = began + seconds
        while True:
            experiment = self.get(f"/experiments/{identity}")
            if experiment["state"] in states:
                return experiment
            assert time.monotonic() < deadline, f"not {states} after {seconds} s: {experiment}"
            time.sleep(min(0.2, 0.02 + (time.monotonic() - began) / 10))

    def raw(self, data, timeout=60):
        """What comes back for these bytes until the server closes."""
        with self.raw_socket(timeout) as sock:
            sock.sendall(data)
            return read_all(sock)


def read_all(sock):
    received = b""
    while True:
        try:
            piece = sock.recv(65536)
        except ConnectionResetError:
            return received
        if not piece:
            return received
        received += piece


def parse_raw(data):
    """The first response of raw bytes: (status, headers, the rest)."""
    head, _, rest = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    return int(lines[0].split(" ")[1]), headers, rest


class Events:
    """Reads a server-sent event stream."""

    def __init__(self, client, target, last_id=None, timeout=PATIENCE_SECONDS):
        headers = {"Accept": "text/event-stream"}
        if last_id is not None:
            headers["Last-Event-ID"] = str(last_id)
        self.last_id = last_id
        self.timeout = timeout
        self.connection = client.connect(timeout)
        self.connection.request("GET", target, headers=headers)
        self.response = self.connection.getresponse()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def __iter__(self):
        """(id, event, data) until the stream ends; the id is the last that was sent, None before the first. Heartbeats
        alone go on for no longer than the timeout."""
        deadline = time.monotonic() + self.timeout
        for identity, event, data in parse_events(self.response, self.last_id):
            if event:
                yield identity and int(identity), event, data
                deadline = time.monotonic() + self.timeout
            assert time.monotonic() < deadline, f"no event for {self.timeout} s"
