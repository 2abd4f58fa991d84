# SPDX-License-Identifier: MIT
"""HTTP itself: methods, targets, connections, and bytes that are no request."""

import contextlib
import gzip
import http.client
import json
import re
import socket

import pytest
from client import parse_raw, read_all
from conftest import SHORT, SOURCE

GETS = [
    "/",
    "/experiments",
    "/experiments/{id}",
    "/experiments/{id}/runs",
    "/experiments/{id}/results",
    "/experiments/{id}/samples",
    "/experiments/{id}/events",
    "/runs/{run}",
    "/runs/{run}/samples",
    "/presets",
    "/transports",
    "/topology",
    "/environment",
    "/events",
    "/health",
    "/metrics",
    "/openapi.json",
]
# These have a few figures of the machine as it is right now, as its free memory.
MOVING = ("/topology", "/transports")


@pytest.fixture
def fill(unix, done):
    run = unix.get(f"/experiments/{done['id']}/runs")["items"][0]["id"]
    return lambda path: path.format(id=done["id"], run=run)


@pytest.mark.parametrize("path", GETS)
def test_a_head_is_a_get_without_its_body(client, fill, path):
    answer = client.request("HEAD", fill(path))
    assert answer.status == 200 and answer.body == b""
    if "events" in path:
        assert answer.headers["Content-Type"] == "text/event-stream"
        return
    full = client.request("GET", fill(path))
    assert answer.headers["Content-Type"] == full.headers["Content-Type"]
    for _ in range(10 if path in MOVING else 0):  # a figure may have a digit more the second time, but not each time
        if answer.headers["Content-Length"] == full.headers["Content-Length"]:
            break
        answer, full = client.request("HEAD", path), client.request("GET", path)
    if path not in ("/metrics", "/health", "/environment"):
        assert answer.headers["Content-Length"] == full.headers["Content-Length"]


@pytest.mark.parametrize("path", GETS)
def test_other_methods_are_not_allowed(tcp, fill, path):
    allowed = tcp.request("OPTIONS", fill(path))
    assert allowed.status == 204
    methods = allowed.headers["Allow"].split(", ")
    assert {"GET", "HEAD", "OPTIONS"} <= set(methods)
    for method in {"POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW", "get"} - set(methods):
        problem = tcp.refused(method, fill(path), 405, "method-not-allowed")
        assert problem["headers"]["Allow"] == allowed.headers["Allow"]


def test_options_of_what_is_not_readable(unix):
    assert unix.request("OPTIONS", "/experiments/1/cancel").headers["Allow"] == "POST, OPTIONS"
    unix.refused("GET", "/experiments/1/cancel", 405, "method-not-allowed")
    assert unix.request("OPTIONS", "/experiments").headers["Allow"] == "GET, HEAD, POST, OPTIONS"
    assert unix.request("OPTIONS", "/experiments/1").headers["Allow"] == "GET, HEAD, DELETE, OPTIONS"
    assert unix.request("OPTIONS", "*").headers["Allow"] == "GET, HEAD, POST, PUT, DELETE, OPTIONS"
    unix.refused("OPTIONS", "/nowhere", 404, "not-found")


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/experiments/",
        "/Experiments",
        "//experiments",
        "/experiments/1/",
        "/experiments/1/nowhere",
        "/runs",
        "/health/",
        "/findings",
        "/comparison",
        "/experiments/1/finding",
        "/a/b/c/d/e/f/g/h/i/j",
        "/experiments%2F1",
        "/./health",
        "/../health",
        "/assets",
        "/assets/",
        "/index.html",
    ],
)
def test_what_is_not_there_is_not_found(client, path):
    problem = client.refused("GET", path, 404, "not-found")
    assert problem["instance"] == path


@pytest.mark.parametrize("path", ["/he%61lth", "/%68ealth"])
def test_a_path_may_be_encoded(client, path):
    assert client.request("GET", path).status == 200


@pytest.mark.parametrize(
    "path", ["/health?x=1", "/presets?limit=1", "/openapi.json?v", "/?a=b", "/experiments/1?full=1", "/metrics?&x"]
)
def test_parameters_that_nobody_reads_are_refused(client, path):
    client.refused("GET", path, 400, "unknown-parameter")


def test_an_empty_query_is_none(client):
    assert client.request("GET", "/health?").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/health%00",
        "/health?x=%00",
        "/experiments/%",
        "/experiments/%1",
        "/experiments/%zz",
        "/%0d%0aX: y",
        "health",
        "ftp://localhost/health",
        "/health#top",
        "/h\u00e9",
        '/a"b',
    ],
)
def test_targets_that_are_none(unix, path):
    received = unix.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    status, headers, body = parse_raw(received)
    if path == '/a"b':
        assert status == 404
        return
    assert status == 400, received
    assert headers["Content-Type"] == "application/problem+json"
    assert json.loads(body)["type"].endswith(":malformed-target")


def test_a_get_has_no_body(client):
    client.refused("GET", "/health", 400, "unexpected-body", b"{}", {"Content-Type": "application/json"})
    client.refused("DELETE", "/experiments/1", 400, "unexpected-body", b"{}", {"Content-Type": "application/json"})
    assert client.request("GET", "/health", headers={"Content-Length": "0"}).status == 200


def test_a_submission_without_a_length(client):
    request = (
        f"POST /experiments HTTP/1.1\r\nHost: {client.host}\r\nAuthorization: Bearer {client.token}\r\n"
        "Content-Type: application/json\r\nConnection: close\r\n\r\n"
    )
    status, _, body = parse_raw(client.raw(request.encode()))
    assert status == 411 and b"length-required" in body
    client.refused("POST", "/experiments", 400, "invalid-json", b"", {"Content-Type": "application/json"})


def test_a_connection_is_kept(client):
    connection = client.connect()
    sock = None
    for i in range(20):
        path = "/health" if i % 3 else "/nowhere"
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        assert response.status == (200 if i % 3 else 404)
        assert sock is None or connection.sock is sock
        sock = connection.sock
    connection.close()


def test_requests_in_a_row_are_answered_in_order(client):
    paths = ["/health", "/nowhere", "/presets", "/openapi.json"] * 3
    last = len(paths) - 1
    data = "".join(
        f"GET {path} HTTP/1.1\r\nHost: {client.host}\r\n{'Connection: close' if i == last else 'X: y'}\r\n\r\n"
        for i, path in enumerate(paths)
    )
    received = client.raw(data.encode())
    statuses = [part[:3] for part in received.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"404", b"200", b"200"] * 3


def test_http_1_0_is_answered_and_closed(unix):
    status, headers, body = parse_raw(unix.raw(b"GET /presets HTTP/1.0\r\n\r\n"))
    assert status == 200 and json.loads(body)["items"]


CHUNKED = (
    b"POST /experiments HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)
GARBAGE = [
    b"\r\n\r\n\r\n\r\nx\r\n",
    b"\x00\x01\x02\x03\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /health\r\n\r\n",
    b"GET /health HTTP/9.9\r\nHost: x\r\n\r\n",
    b"GET /health FTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100,  # TLS
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
    b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 150 + b"Connection: close\r\n\r\n",
    b"GET /health HTTP/1.1\r\n: nameless\r\nHost: x\r\n\r\n",
    b"GET /health HTTP/1.1\r\n folded: x\r\nHost: x\r\n\r\n",
    CHUNKED + b"zz\r\n",
    CHUNKED + b"ffffffffffffffffff\r\n",
    CHUNKED + b"2\r\n{}X\r\n0\r\n\r\n",
]


@pytest.mark.parametrize("data", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_gets_an_error_or_nothing(unix, data):
    with unix.raw_socket() as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError, OSError):
            pass
        received = read_all(sock)
    assert received == b"" or 400 <= parse_raw(received)[0] <= 505
    assert unix.get("/health")["status"] == "ok"


def test_a_client_that_leaves_amid_its_body_leaves_nothing(unix):
    before = len(unix.items("/experiments?limit=1000"))
    for _ in range(20):
        with unix.raw_socket() as sock:
            sock.sendall(
                b"POST /experiments HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b'Content-Length: 50\r\n\r\n{"trans'
            )
    assert len(unix.items("/experiments?limit=1000")) == before


def test_a_client_that_leaves_amid_its_answer_hurts_nobody(unix, done):
    for _ in range(20):
        with unix.raw_socket() as sock:
            sock.sendall(f"GET /experiments/{done['id']}/samples?histogram=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            sock.recv(10)
    assert unix.get("/health")["status"] == "ok"


def test_expect_continue_is_answered(client):
    body = b'{"x": 1}'
    with client.raw_socket() as sock:
        sock.sendall(
            (
                f"POST /experiments HTTP/1.1\r\nHost: {client.host}\r\nAuthorization: Bearer {client.token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n"
                "Connection: close\r\n\r\n"
            ).encode()
        )
        assert sock.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert parse_raw(read_all(sock))[0] == 422


def test_the_standard_client_survives_a_refusal_of_a_large_body(client):
    """http.client sends the whole body before it reads: the answer must still be there."""
    connection = client.connect()
    connection.request(
        "POST",
        "/experiments",
        b" " * (4 << 20),
        {"Content-Type": "application/json", "Authorization": f"Bearer {client.token}"},
    )
    response = connection.getresponse()
    assert response.status == http.client.REQUEST_ENTITY_TOO_LARGE
    assert json.loads(response.read())["status"] == 413
    connection.close()


def one_response(sock, head=False):
    """(status, headers, body) of exactly one response; what comes after it stays in the socket's file."""
    status = int(sock.readline().split()[1])
    headers = {}
    while (line := sock.readline().rstrip(b"\r\n")) != b"":
        name, value = line.decode("latin-1").split(": ", 1)
        assert name not in headers, f"{name} stands twice"
        headers[name] = value
    if headers.get("Transfer-Encoding") == "chunked" and not head:
        body = b""
        while size := int(sock.readline(), 16):
            body += sock.read(size)
            assert sock.readline() == b"\r\n"
        assert sock.readline() == b"\r\n"
    else:
        body = b"" if head else sock.read(int(headers["Content-Length"]))
    return status, headers, body


REFUSED = {
    "no-line": (b"GET\r\n\r\n", 400, "malformed-request"),
    "no-version": (b"GET /health\r\n\r\n", 400, "malformed-request"),
    "other-protocol": (b"GET /health FTP/1.1\r\nHost: HOST\r\n\r\n", 400, "malformed-request"),
    "bare-line-feed": (b"GET /health HTTP/1.1\nHost: HOST\n\n", 400, "malformed-target"),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00", 400, "malformed-target"),
    "http-2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "http-version-not-supported"),
    "http-9": (b"GET /health HTTP/9.9\r\nHost: HOST\r\n\r\n", 505, "http-version-not-supported"),
    "long-target": (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: HOST\r\n\r\n", 414, "target-too-long"),
    "long-header": (b"GET /health HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", 431, "headers-too-large"),
    "many-headers": (b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n", 431, "headers-too-large"),
    "nul-in-target": (b"GET /health\x00/x HTTP/1.1\r\nHost: HOST\r\n\r\n", 400, "malformed-target"),
    "nul-in-host": (b"GET /health HTTP/1.1\r\nHost: HOST\x00.evil\r\n\r\n", 400, "malformed-request"),
    "nul-in-token": (
        b"DELETE /experiments/999999 HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer TOKEN\x00x\r\n\r\n",
        400,
        "malformed-request",
    ),
    "no-length": (b"POST /experiments HTTP/1.1\r\nHost: HOST\r\nContent-Length: x\r\n\r\n", 400, "malformed-request"),
    "negative-length": (b"POST /experiments HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, "malformed-request"),
    "huge-length": (
        b"POST /experiments HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        400,
        "malformed-request",
    ),
    "two-lengths": (
        b"POST /experiments HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        400,
        "malformed-request",
    ),
    "length-and-coding": (
        b"POST /experiments HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        400,
        "malformed-request",
    ),
}


@pytest.mark.parametrize("before", [0, 2], ids=["first", "pipelined"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_request_gets_one_problem(client, name, before):
    """Also behind others on its connection, which are answered first."""
    data, status, slug = REFUSED[name]
    good = b"GET /health HTTP/1.1\r\nHost: HOST\r\n\r\n"
    data = (
        (good * before + data).replace(b"HOST", client.host.encode()).replace(b"TOKEN", (client.token or "x").encode())
    )
    with client.raw_socket() as sock, sock.makefile("rb") as file:
        with contextlib.suppress(ConnectionError):  # it need not take all of it
            sock.sendall(data)
        for _ in range(before):
            assert one_response(file)[0] == 200
        got, headers, body = one_response(file)
        assert file.read() == b""
    assert got == status, body
    assert headers["Content-Type"] == "application/problem+json"
    assert headers["Connection"] == "close"
    problem = json.loads(body)
    assert problem["type"] == f"urn:ipclab:problem:{slug}" and problem["status"] == status


PARTS = 1000


@pytest.mark.parametrize("keep", [True, False])
def test_a_thousand_parameters_or_cookies_are_refused(client, keep):
    """libmicrohttpd has no memory for them: it answered with HTML whose header block stood twice, or not at all."""
    parameters = "&".join("x" for _ in range(PARTS))
    cookies = ";".join("a=b" for _ in range(PARTS))
    with client.raw_socket() as sock, sock.makefile("rb") as file:
        before = f"GET /health HTTP/1.1\r\nHost: {client.host}\r\n\r\n" if keep else ""
        sock.sendall(f"{before}GET /health?{parameters} HTTP/1.1\r\nHost: {client.host}\r\n\r\n".encode())
        if keep:
            assert one_response(file)[0] == 200
        status, _, body = one_response(file)
    problem = json.loads(body)
    assert (status, problem["type"]) == (400, "urn:ipclab:problem:malformed-target")
    assert problem["limit"] == {"name": "parameters", "value": 100}
    head = f"GET /health HTTP/1.1\r\nHost: {client.host}\r\nCookie: {cookies}\r\n\r\n"
    with client.raw_socket() as sock, sock.makefile("rb") as file:
        sock.sendall(head.encode())
        status, _, body = one_response(file)
        assert file.read() == b""
    problem = json.loads(body)
    assert (status, problem["type"]) == (431, "urn:ipclab:problem:headers-too-large")
    assert problem["limit"] == {"name": "cookies", "value": 100}


@pytest.mark.parametrize("end", ["refused", "half-closed"])
def test_what_is_behind_a_slow_request_is_answered(client, end):
    """libmicrohttpd drops every response of a connection whose end it reads while a request is handled, which it does
    where it has an older connection."""
    transports = ["pipe", "fifo", "unix-stream", "unix-seqpacket", "tcp"]
    body = json.dumps({"transport": transports, "message_size": list(range(1, 1001)), "messages": 1}).encode()
    plan = (
        f"POST /experiments?dry_run=true HTTP/1.1\r\nHost: {client.host}\r\nAuthorization: Bearer {client.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    health = f"GET /health HTTP/1.1\r\nHost: {client.host}\r\n\r\n"
    with client.raw_socket(), client.raw_socket() as sock, sock.makefile("rb") as file:
        sock.sendall(plan.encode() + body + 2 * health.encode() + (b"BAD\r\n\r\n" if end == "refused" else b""))
        if end == "half-closed":
            sock.shutdown(socket.SHUT_WR)
        expected = [200] * 3 + ([400] if end == "refused" else [])
        answers = [one_response(file) for _ in expected]
        assert file.read() == b""
    assert [status for status, _, _ in answers] == expected
    assert json.loads(answers[0][2])["runs"] == 5000 and json.loads(answers[1][2])["status"] == "ok"


def test_a_body_in_bad_chunks_gets_one_problem(client):
    """Also where its head was refused already."""
    for token in (client.token or "x", "wrong"):
        head = f"POST /experiments HTTP/1.1\r\nHost: {client.host}\r\nAuthorization: Bearer {token}\r\n"
        head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        status, _, body = parse_raw(client.raw(head.encode() + b"zz\r\n"))
        assert status == (401 if token == "wrong" and client.token else 400)
        assert json.loads(body)["status"] == status


@pytest.mark.parametrize(
    "path",
    ["/events", "/experiments/{id}/events", "/experiments/{id}/samples", "/experiments/{id}/results", "/experiments"],
)
def test_a_head_leaves_nothing_before_the_next_response(client, fill, path):
    with client.raw_socket() as sock, sock.makefile("rb") as file:
        head = f" HTTP/1.1\r\nHost: {client.host}\r\n\r\n"
        sock.sendall(f"HEAD {fill(path)}{head}GET /health{head}".encode())
        status, headers, _ = one_response(file, head=True)
        assert status == 200 and "Transfer-Encoding" not in headers
        if headers.get("Connection") == "close":  # of a length that nobody knows before
            assert "Content-Length" not in headers
            assert file.read() == b""
        else:
            assert one_response(file)[0] == 200


def test_what_the_server_refuses_is_counted(unix):
    def refused():
        metrics = unix.request("GET", "/metrics").body.decode()
        return int(metrics.split('ipclab_http_responses_total{class="5xx"} ')[1].split("\n")[0])

    before = refused()
    unix.raw(b"PRI * HTTP/2.0\r\n\r\n")
    assert refused() > before


GZIP = {"Accept-Encoding": "gzip"}


@pytest.mark.parametrize("path", [path for path in GETS if path != "/" and "events" not in path])
def test_a_body_is_compressed_for_a_client_that_accepts_it(client, fill, path):
    plain = client.request("GET", fill(path))
    coded = client.request("GET", fill(path), headers=GZIP)
    assert coded.status == 200 and plain.headers["Content-Encoding"] is None
    if len(plain.body) < 1024:
        assert coded.headers["Content-Encoding"] is None
        return
    assert coded.headers["Content-Encoding"] == "gzip" and len(coded.body) < len(plain.body)
    assert all("Accept-Encoding" in one.headers["Vary"].split(", ") for one in (plain, coded))
    if path not in (*MOVING, "/metrics", "/health", "/environment"):
        assert gzip.decompress(coded.body) == plain.body
    for refused in ("identity", "gzip;q=0", "br"):
        assert client.request("GET", fill(path), headers={"Accept-Encoding": refused}).body[:2] != b"\x1f\x8b"


PORTION = int(re.search(r"FEED_PORTION \(\(size_t\) (\d+) << 10\)", (SOURCE / "api/http/feed.h").read_text())[1]) << 10


def test_a_list_is_compressed_while_it_is_made(unix, long_run):
    ids = [unix.post(SHORT | {"message_size": list(range(1, 1000)), "seed": seed})["id"] for seed in range(24)]
    plain = unix.request("GET", "/experiments?state=queued&limit=24")
    coded = unix.request("GET", "/experiments?state=queued&limit=24", headers=GZIP)
    head = unix.request("HEAD", "/experiments?state=queued&limit=24", headers=GZIP)
    for identity in ids:
        unix.request("POST", f"/experiments/{identity}/cancel")
    assert len(plain.body) > 2 * PORTION and plain.headers["Content-Length"] is None, "of several portions"
    assert coded.headers["Content-Encoding"] == head.headers["Content-Encoding"] == "gzip" and head.body == b""
    assert len(coded.body) < len(plain.body) / 4
    items = json.loads(gzip.decompress(coded.body))["items"]
    assert [one["id"] for one in items] == [one["id"] for one in plain.json["items"]] == ids[::-1]


def test_what_has_a_form_of_its_own_is_not_compressed_again(unix, done):
    events = unix.request("GET", f"/experiments/{done['id']}/events", headers=GZIP)
    assert events.headers["Content-Encoding"] is None and b"event: end" in events.body
    bundle = unix.request("GET", f"/experiments/{done['id']}/bundle", headers=GZIP)
    assert bundle.headers["Content-Encoding"] is None and json.loads(gzip.decompress(bundle.body))["bundle"] == 1
    problem = unix.request("GET", "/experiments/999999", headers=GZIP)
    assert problem.status == 404 and problem.headers["Content-Encoding"] is None
