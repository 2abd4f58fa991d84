# SPDX-License-Identifier: MIT
"""HTTP to ipclabd, over its unix socket or TCP: requests, lists page by page, and event streams."""

import contextlib
import http.client
import json
import re
import socket
import threading
from urllib.parse import urlencode, urlsplit

REQUEST_SECONDS = 60  # without a byte, and for the head in all
ANSWER_SECONDS = 600  # for a document in all
ANSWER_BYTES = 256 << 20  # of a document, which is held as a whole
PIECE_BYTES = PROBLEM_BYTES = 65536
EVENT_BYTES = 16 << 20  # of an event's data, and of any line
# The daemon sends a comment every 15 seconds where there are no events.
STREAM_SECONDS = 60


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket, where the host name has no meaning."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


@contextlib.contextmanager
def within(sock, seconds):
    """Reads from the socket inside this block raise TimeoutError once `seconds` have passed in all: the socket's own
    timeout begins anew with each byte."""
    late = threading.Event()

    def end():
        late.set()
        with contextlib.suppress(OSError):  # closed meanwhile
            sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException):
        if not late.is_set():
            raise
    finally:
        timer.cancel()
    if late.is_set():
        raise TimeoutError(f"it took more than {seconds} s")


def parse_events(lines, last_id=None):
    """(id, event, data) of server-sent events; (id of the last event, None, None) for a comment, which the server
    sends as a heartbeat. An id is text. ValueError: what is not UTF-8 or JSON, or has more than EVENT_BYTES."""
    identity, event, data, size = last_id, "message", [], 0
    for line in lines:
        text = line.decode().rstrip("\r\n")
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "id":
            identity = value
        elif field == "event":
            event = value
        elif field == "data":
            data.append(value)
            size += len(line)
            if size > EVENT_BYTES:
                raise ValueError(f"data of more than {EVENT_BYTES} bytes")
        elif not text:
            last_id = identity
            if data:
                yield last_id, event, json.loads("\n".join(data))
            event, data, size = "message", [], 0
        elif not field:
            yield last_id, None, None


class Refusal(Exception):
    """The daemon answered with an error; `problem` is its document (RFC 9457), {} where it sent none."""

    def __init__(self, method, target, status, problem):
        self.status, self.problem = status, problem
        words = problem.get("detail") or problem.get("title") or f"{method} {target}"
        where = f" (at {problem['pointer']})" if problem.get("pointer") else ""
        super().__init__(f"{words}{where} [{status}]")


class Unreachable(Exception):
    """There is no daemon at that address, or no whole answer from it."""


class NotServed(Exception):
    """The daemon is of a version that has no such route."""


class Client:
    """One daemon. `address` is the path of its socket, or its URL; a URL needs the token for whatever writes."""

    def __init__(self, address, token=None):
        self.address, self.token = str(address), token
        if token and not (token.isascii() and token.isprintable()):
            raise ValueError("the token has characters that no token of ipclabd has")
        self.url = urlsplit(self.address) if "://" in self.address else None
        if self.url and (self.url.scheme not in ("http", "https") or not self.url.hostname):
            raise ValueError(f"{self.address} is no address: a URL begins with http:// or https:// and has a host")
        try:
            self.port = self.url and self.url.port
        except ValueError as error:
            raise ValueError(f"{self.address} is no address: {error}") from error

    def connect(self, timeout):
        if not self.url:
            return UnixConnection(self.address, timeout)
        kind = http.client.HTTPSConnection if self.url.scheme == "https" else http.client.HTTPConnection
        return kind(self.url.hostname, self.port, timeout=timeout)

    def open(self, method, target, body=None, headers=None, timeout=None):
        """(connection, response): the caller reads the response, and closes the connection. Default of the timeout,
        which is for the head in all and for each byte behind it: REQUEST_SECONDS."""
        return self.open_socket(method, target, body, headers, timeout or REQUEST_SECONDS)[:2]

    def open_socket(self, method, target, body, headers, timeout):
        """The same with the socket, which the connection forgets where the answer is the last."""
        headers = dict(headers or {})
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        prefix = self.url.path.rstrip("/") if self.url else ""
        connection = self.connect(timeout)
        try:
            connection.request(method, prefix + target, body, headers)
            sock = connection.sock
            with within(sock, timeout):
                response = connection.getresponse()
            return connection, response, sock
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            words = getattr(error, "strerror", None) or error or type(error).__name__
            raise Unreachable(f"no answer from {self.address}: {words}") from error

    def request(self, method, target, body=None, headers=None):
        """The answer's body, as bytes. Refusal for every status but 2xx, Unreachable without a whole answer."""
        connection, response, sock = self.open_socket(method, target, body, headers, REQUEST_SECONDS)
        try:
            with within(sock, ANSWER_SECONDS):
                text = read_piece(response, ANSWER_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"the answer from {self.address} broke off: {error}") from error
        finally:
            connection.close()
        if len(text) > ANSWER_BYTES:
            raise Unreachable(f"the answer from {self.address} is longer than {ANSWER_BYTES} bytes")
        if not 200 <= response.status < 300:
            raise Refusal(method, target, response.status, as_problem(text))
        return text

    def json(self, method, target, body=None, headers=None):
        text = self.request(method, target, body, {"Accept": "application/json", **(headers or {})})
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Unreachable(f"{method} {target}: the answer from {self.address} is not JSON: {error}") from error
        if not isinstance(document, dict):
            raise Unreachable(f"{method} {target}: the answer from {self.address} is no JSON object")
        return document

    def get(self, target, **parameters):
        return self.json("GET", with_query(target, parameters))

    def optional(self, method, target, pattern, **parameters):
        """As json(), of a route that a daemon of an earlier version does not have: NotServed then."""
        self.require(method, pattern)
        return self.json(method, with_query(target, parameters))

    def require(self, method, pattern, parameter=None):
        """NotServed unless the daemon's description has this route, with this query parameter of it."""
        description = self.get("/openapi.json")
        route = description["paths"].get(pattern, {}).get(method.lower())
        known = [one["name"] for one in (route or {}).get("parameters", [])]
        if route is not None and (parameter is None or parameter in known):
            return
        what = f"{method} {pattern}{f'?{parameter}' if parameter else ''}"
        version = description["info"]["version"]
        raise NotServed(f"the ipclabd at {self.address} is version {version}, which has no {what}")

    def items(self, target, **parameters):
        """All items of a list, page by page."""
        while True:
            page = self.get(target, **parameters)
            yield from page["items"]
            if page["next"] is None:
                return
            parameters["cursor"] = page["next"]

    def pieces(self, target, media, **parameters):
        """The body in portions, for what is too long to be held."""
        _, pieces = self.download(with_query(target, parameters), media)
        yield from pieces

    def download(self, target, media, timeout=None):
        """The name that the daemon gives the body as a file, None for none; and the body in portions."""
        connection, response = self.open("GET", target, headers={"Accept": media}, timeout=timeout)
        try:
            if response.status != 200:
                raise Refusal("GET", target, response.status, as_problem(read_piece(response, PROBLEM_BYTES)))
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unreachable(f"the answer from {self.address} broke off: {error}") from error
        except Refusal:
            connection.close()
            raise
        named = re.search(r'filename="([^"/]+)"', response.getheader("Content-Disposition", ""))
        return named[1] if named else None, self.portions(connection, response)

    def portions(self, connection, response):
        try:
            while piece := read_piece(response, PIECE_BYTES):
                yield piece
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"the answer from {self.address} broke off: {error}") from error
        finally:
            connection.close()

    def events(self, target, last_id=None):
        """The events of a stream; ends with the stream, or when it is silent for a minute."""
        headers = {"Accept": "text/event-stream"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        connection, response = self.open("GET", target, headers=headers, timeout=STREAM_SECONDS)
        try:
            if response.status != 200:
                raise Refusal("GET", target, response.status, as_problem(read_piece(response, PROBLEM_BYTES)))
            yield from parse_events(read_lines(response), last_id)
        except (OSError, http.client.HTTPException):
            return  # the caller reads the state, and reconnects after the last id
        except (ValueError, RecursionError) as error:
            raise Unreachable(f"GET {target}: an event from {self.address} cannot be read: {error}") from error
        finally:
            connection.close()


def read_lines(response):
    while line := response.readline(EVENT_BYTES + 1):
        if len(line) > EVENT_BYTES:
            raise ValueError(f"a line of more than {EVENT_BYTES} bytes")
        yield line


def read_piece(response, most):
    """Reads `most` bytes, or all that is left. A body that is shorter than its Content-Length is an error here;
    http.client returns it as if it were whole."""
    piece = response.read(most)
    if len(piece) < most and response.length:
        raise http.client.IncompleteRead(piece, response.length)
    return piece


def with_query(target, parameters):
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{target}?{urlencode(given)}" if given else target


def as_problem(text):
    try:
        problem = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return problem if isinstance(problem, dict) else {}
