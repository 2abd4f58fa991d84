# SPDX-License-Identifier: MIT
"""Access control: host, origin, token, content type, size, and requests that two parsers could read in two ways."""

import contextlib
import json
import os
import re
import socket

import pytest
from client import Client, parse_raw, read_all
from conftest import SHORT

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost",
        "127.0.0.2:{port}",
        "localhost.:{port}",
        "[::1]",
        "localhost:{port}.evil.example",
        "x@127.0.0.1:{port}",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_foreign_hosts_are_misdirected(tcp, host, method):
    headers = JSON | {"Host": host.format(port=tcp.port)}
    body = b"{}" if method == "POST" else None
    status, slug = (400, "malformed-request") if "@" in host else (421, "foreign-host")
    tcp.refused(method, "/experiments", status, slug, body, headers)


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LocalHost:{port}", "[::1]:{port}"])
def test_own_hosts_are_served(stranger, host):
    assert stranger.request("GET", "/health", headers={"Host": host.format(port=stranger.port)}).status == 200


def test_the_socket_does_not_mind_the_host(unix):
    for host in ("localhost", "ipclab", "evil.example", ""):
        assert unix.request("GET", "/health", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1",
        "http://localhost:{port}",
        "http://127.0.0.1:{port}/",
        "http://127.0.0.1:{port} http://evil.example",
        "",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_foreign_origins_are_forbidden(tcp, origin, method):
    headers = JSON | {"Origin": origin.format(port=tcp.port)}
    path = "/experiments/999999999" if method == "DELETE" else "/experiments"
    tcp.refused(method, path, 403, "foreign-origin", b"{}" if method == "POST" else None, headers)


def test_the_own_origin_is_served(tcp):
    for host in (f"127.0.0.1:{tcp.port}", f"localhost:{tcp.port}"):
        headers = {"Host": host, "Origin": f"http://{host}"}
        assert tcp.request("GET", "/health", headers=headers).status == 200
        answer = tcp.request("POST", "/experiments", SHORT, headers)
        assert answer.status == 201
        tcp.wait_final(answer.json["id"])


def test_no_answer_invites_other_origins(client):
    for method, path in (("GET", "/experiments"), ("OPTIONS", "/experiments"), ("GET", "/")):
        headers = client.request(method, path).headers
        assert not [name for name in headers if name.lower().startswith("access-control-")]


WRITES = [("POST", "/experiments"), ("POST", "/experiments/1/cancel"), ("DELETE", "/experiments/1")]


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_writes_need_the_token(stranger, method, path):
    body = b"{}" if method == "POST" else None
    problem = stranger.refused(method, path, 401, "token-required", body, JSON)
    assert problem["headers"]["WWW-Authenticate"] == 'Bearer realm="ipclab"'
    for wrong in ("Basic dXNlcjpwYXNz", "Bearer", "bearer", "Token x"):
        stranger.refused(method, path, 401, "token-required", body, JSON | {"Authorization": wrong})


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_another_token_does_not_do(daemon, stranger, method, path):
    body = b"{}" if method == "POST" else None
    for wrong in (
        daemon.token[:-1],
        daemon.token + "0",
        daemon.token.upper() + "x",
        daemon.token * 2,
        "x",
        "Bearer " + daemon.token,
    ):
        stranger.refused(method, path, 401, "token-wrong", body, JSON | {"Authorization": f"Bearer {wrong}"})


def test_the_token_is_checked_before_the_body_is_read(stranger):
    stranger.refused("POST", "/experiments", 401, "token-required", b"x" * 100_000, {"Content-Type": "text/plain"})


def test_the_scheme_has_no_case(daemon, stranger):
    answer = stranger.request("POST", "/experiments", SHORT, {"Authorization": f"bEARER {daemon.token}"})
    assert answer.status == 201
    stranger.wait_final(answer.json["id"])


def test_reads_are_open(stranger):
    for path in ("/experiments", "/health", "/metrics", "/openapi.json", "/presets"):
        assert stranger.request("GET", path).status == 200
    assert stranger.request("GET", "/health", headers={"Authorization": "Bearer wrong"}).status == 200


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded; charset=utf-8",
        "multipart/form-data",
        "application/jsonp",
        "application/json; charset=latin-1",
        "application/json; charset=utf-8; x=y",
        "application/json, text/plain",
        "application/json;",
    ],
)
def test_other_content_types_are_refused(client, kind):
    problem = client.refused(
        "POST", "/experiments", 415, "unsupported-media-type", b"{}", {"Content-Type": kind} if kind else {}
    )
    assert problem["headers"]["Accept-Post"] == "application/json"


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json ; charset=utf-8",
    ],
)
def test_json_is_json_however_it_is_written(client, kind):
    client.refused("POST", "/experiments", 422, "unknown-field", b'{"x": 1}', {"Content-Type": kind})


def test_only_the_socket_takes_what_curl_sends_by_itself(tcp, unix):
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    tcp.refused("POST", "/experiments", 415, "unsupported-media-type", json.dumps(SHORT), kind)
    answer = unix.request("POST", "/experiments", json.dumps(SHORT), kind)
    assert answer.status == 201
    unix.wait_final(answer.json["id"])
    unix.refused("POST", "/experiments", 400, "invalid-json", "transport=pipe", kind)


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate, gzip"])
def test_encoded_bodies_are_refused(unix, coding):
    unix.refused("POST", "/experiments", 415, "unsupported-media-type", b"{}", JSON | {"Content-Encoding": coding})


def test_identity_is_no_coding(unix):
    unix.refused("POST", "/experiments", 422, "unknown-field", b'{"x": 1}', JSON | {"Content-Encoding": "identity"})


def test_a_body_of_a_mebibyte_is_read(client):
    body = b'{"x": 1' + b" " * ((1 << 20) - 8) + b"}"
    assert len(body) == 1 << 20
    client.refused("POST", "/experiments", 422, "unknown-field", body, JSON)


@pytest.mark.parametrize("size", [(1 << 20) + 1, 3 << 20])
def test_a_larger_one_is_refused_and_the_client_sees_why(client, size):
    problem = client.refused("POST", "/experiments", 413, "body-too-large", b" " * size, JSON)
    assert problem["limit"] == {"name": "body bytes", "value": 1 << 20}
    assert problem["value"] == size


def test_a_larger_one_is_refused_before_it_is_sent(client):
    with client.raw_socket() as sock:
        sock.sendall(
            f"POST /experiments HTTP/1.1\r\nHost: {client.host}\r\nAuthorization: Bearer {client.token}\r\n"
            "Content-Type: application/json\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n".encode()
        )
        assert sock.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_chunks_are_counted(client):
    with client.raw_socket() as sock:
        sock.sendall(
            f"POST /experiments HTTP/1.1\r\nHost: {client.host}\r\nAuthorization: Bearer {client.token}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(40):
                sock.sendall(chunk)
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_WR)
        received = read_all(sock)  # its parts may come one by one
    status, headers, body = parse_raw(received)
    assert status == 413 and headers["Content-Type"] == "application/problem+json"
    length = int(headers["Content-Length"])  # what stands behind it is libmicrohttpd's own, if anything
    assert len(body) >= length and b"body-too-large" in body[:length]
    assert headers["Content-Security-Policy"] and headers["Connection"] == "close"


HEAD = (
    "POST /experiments HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
)
SMUGGLED = [
    ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400),
    ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400),
    ("Content-Length: 5\r\nContent-Length: 5\r\n", 400),
    ("Content-Length: 5\r\nContent-Length: 6\r\n", 400),
    ("Content-Length: 5, 5\r\n", 400),
    ("Content-Length: +5\r\n", 400),
    ("Content-Length: -5\r\n", 400),
    ("Content-Length: 0x5\r\n", 400),
    ("Content-Length: 5 5\r\n", 400),
    ("Content-Length:\r\n", 400),
    ("Content-Length : 5\r\n", 400),
    ("Transfer-Encoding : chunked\r\n", 400),
    ("Transfer-Encoding: chunked, chunked\r\n", 501),
    ("Transfer-Encoding: gzip, chunked\r\n", 501),
    ("Transfer-Encoding: identity\r\n", 501),
    ("Transfer-Encoding: chunked" + " " * 40 + ", gzip\r\n", 501),
    ("Content-Length: 5" + " " * 40 + "5\r\n", 400),
    ("Transfer-Encoding: xchunked\r\n", 501),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 501),
    ("Host: evil.example\r\nContent-Length: 5\r\n", 400),
    ("Content-Length: 5\r\nExpect: 200-maybe\r\n", 417),
    ("Content-Length: 5\r\nX\x01: y\r\n", 400),
    ("Content-Length: 5\r\nX(y): z\r\n", 400),
    ("Content-Length: 5\r\nX: a\x02b\r\n", 400),
    ("Content-Length: 5\r\nno colon here\r\n", 400),
]


@pytest.mark.parametrize(("lines", "status"), SMUGGLED)
def test_ambiguous_requests_are_refused_and_their_rest_is_not_read(client, lines, status):
    """One answer, and the connection closed: what follows is never taken for a request of its own."""
    request = HEAD.format(host=client.host, token=client.token) + lines + "\r\n"
    inner = f"GET /openapi.json HTTP/1.1\r\nHost: {client.host}\r\n\r\n"
    received = client.raw((request + "0\r\n\r\n" + inner).encode("latin-1"))
    assert parse_raw(received)[0] == status, received
    # libmicrohttpd sends some of its own refusals twice, but never responds to what follows
    assert set(re.findall(rb"HTTP/1\.1 (\d+)", received)) == {str(status).encode()}
    assert b'"openapi"' not in received


@pytest.mark.parametrize("blank", [" ", "\t", " " * 40])
@pytest.mark.parametrize("framing", ["Content-Length: 2", "Transfer-Encoding: chunked"])
def test_white_space_behind_a_value_is_no_part_of_it(client, framing, blank):
    head = f"POST /experiments?dry_run=true HTTP/1.1\r\nHost: {client.host}{blank}\r\n"
    head += f"Authorization: Bearer {client.token}{blank}\r\nContent-Type: application/json{blank}\r\n"
    body = "{}" if framing == "Content-Length: 2" else "2\r\n{}\r\n0\r\n\r\n"
    end = f"GET /health HTTP/1.1\r\nHost: {client.host}\r\nConnection: close{blank}\r\n\r\n"
    received = client.raw((head + framing + blank + "\r\n\r\n" + body + end).encode())
    assert re.findall(rb"HTTP/1\.1 (\d+)", received) == [b"200", b"200"], received


def test_chunks_in_http_1_0_are_refused(client):
    request = (
        HEAD.replace("HTTP/1.1", "HTTP/1.0").format(host=client.host, token=client.token)
        + "Transfer-Encoding: chunked\r\n\r\n"
    )
    assert parse_raw(client.raw(request.encode() + b"0\r\n\r\n"))[0] == 400


def test_a_host_is_needed(tcp, unix):
    for client in (tcp, unix):
        received = client.raw(b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")
        status, headers, body = parse_raw(received)
        assert status == 400 and headers["Content-Type"] == "application/problem+json" and b"Host" in body
    assert parse_raw(tcp.raw(b"GET /health HTTP/1.0\r\n\r\n"))[0] == 400
    assert parse_raw(unix.raw(b"GET /health HTTP/1.0\r\n\r\n"))[0] == 200


def test_an_absolute_target_names_the_host(tcp):
    def status_of(authority, host):
        return parse_raw(
            tcp.raw(f"GET http://{authority}/health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        )[0]

    assert status_of(tcp.host, tcp.host) == 200
    assert status_of("evil.example", tcp.host) == 421


def test_every_answer_bears_the_same_headers(client):
    for method, path in (
        ("GET", "/"),
        ("GET", "/health"),
        ("GET", "/nowhere"),
        ("PUT", "/health"),
        ("OPTIONS", "/health"),
        ("GET", "/metrics"),
        ("POST", "/experiments"),
        ("GET", "/assets/none.js"),
    ):
        headers = client.request(method, path).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
        assert policy == {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": "'self'",
            "img-src": "'self' data:",
            "connect-src": "'self'",
            "frame-ancestors": "'none'",
            "base-uri": "'none'",
            "form-action": "'none'",
        }
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] in ("no-store", "no-cache")


def test_tcp_listens_on_loopback_alone(daemon):
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in addresses - {"127.0.0.1", "127.0.1.1"}:
        with pytest.raises(OSError), socket.create_connection((address, daemon.port), 1):
            pass


def test_the_socket_is_not_everybodys(daemon):
    path = daemon.unix.path
    assert os.stat(path).st_mode & 0o777 == 0o660
    assert os.stat(daemon.base / "token").st_mode & 0o777 == 0o600
    assert Client(path=path).request("DELETE", "/experiments/999999999").status == 404  # no token needed


def test_pages_of_other_sites_read_nothing(stranger, unix):
    """A browser sends these by itself; a page cannot leave them out. A link to the dashboard works."""
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    for path in ("/experiments", "/experiments?limit=1000", "/health", "/events", "/", "/openapi.json"):
        stranger.refused("GET", path, 403, "foreign-origin", headers=foreign)
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert stranger.request("GET", "/", headers=link).status == 200
    stranger.refused("GET", "/experiments", 403, "foreign-origin", headers=link)
    port = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}  # a page of another port of this host
    stranger.refused("GET", "/experiments", 403, "foreign-origin", headers=port)
    for site in ("same-origin", "none"):
        assert stranger.request("GET", "/health", headers={"Sec-Fetch-Site": site}).status == 200
    assert unix.request("GET", "/health", headers=foreign).status == 200
