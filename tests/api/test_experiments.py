# SPDX-License-Identifier: MIT
"""Submitting, showing, cancelling and forgetting experiments."""

import datetime
import json
import secrets

import pytest
from conftest import OF_PIPE, SHORT, Daemon

UNKNOWN = 999_999_999


def parse_time(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.UTC)


def test_a_submission_is_created_at_its_location(client):
    spec = OF_PIPE | {"name": "Überblick", "repetitions": 2, "seed": 42, "duration_seconds": 1}
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(milliseconds=1)  # as it is written in these
    answer = client.request("POST", "/experiments", spec)
    assert answer.status == 201
    assert answer.headers["Location"] == f"/experiments/{answer.json['id']}"
    assert answer.json["state"] in ("queued", "running")
    assert answer.json["spec"] == spec
    assert answer.json["name"] == "Überblick"
    assert answer.json["seed"] == 42
    assert answer.json["skipped"] == []
    assert answer.json["progress"] == {"runs_total": 2, "runs_done": 0, "runs_failed": 0, "runs_cancelled": 0}
    assert answer.json["finished_at"] is None and answer.json["error"] is None
    assert answer.json["effective_spec"]["transport"] == ["pipe"]
    assert before <= parse_time(answer.json["created_at"]) <= datetime.datetime.now(datetime.UTC)

    final = client.wait_final(answer.json["id"])
    assert final["state"] == "done", final
    assert final["progress"]["runs_done"] == 2
    assert final["eta_seconds"] is None and final["queue_position"] is None
    assert parse_time(final["created_at"]) <= parse_time(final["started_at"]) <= parse_time(final["finished_at"])


def test_ids_only_grow(client):
    first = client.post(SHORT)["id"]
    client.request("POST", f"/experiments/{first}/cancel")
    client.wait_final(first)
    assert client.request("DELETE", f"/experiments/{first}").status == 204
    second = client.post(SHORT)["id"]
    assert second > first


def test_a_preset_is_overridden_field_by_field(unix):
    experiment = unix.post({"preset": "quick", "message_size": 64, "duration_seconds": 0.1})
    assert experiment["spec"] == {"preset": "quick", "message_size": 64, "duration_seconds": 0.1}
    assert experiment["effective_spec"]["workload"] == ["stream", "pingpong"]
    assert experiment["effective_spec"]["message_size"] == [64]
    assert "preset" not in experiment["effective_spec"]
    unix.request("POST", f"/experiments/{experiment['id']}/cancel")
    unix.wait_final(experiment["id"])


def test_a_field_of_the_preset_without_a_meaning_is_dropped(unix):
    """The preset cuts the messages of queues into pieces; a pipe has no use for that, and the body does not set it."""
    spec = {"preset": "ipc-4mib-quick", "transport": "pipe"}
    experiment = unix.post(spec)
    assert experiment["spec"] == spec
    assert experiment["effective_spec"]["transport"] == ["pipe"]
    assert not experiment["effective_spec"].get("chunk")
    unix.request("POST", f"/experiments/{experiment['id']}/cancel")
    unix.wait_final(experiment["id"])
    unix.refused("POST", "/experiments", 422, "wrong-combination", spec | {"chunk": True})


def test_the_same_key_submits_once(client):
    key = f"key-{'unix' if client.path else 'tcp'}"
    first = client.request("POST", "/experiments", SHORT, {"Idempotency-Key": key})
    again = client.request("POST", "/experiments", SHORT, {"Idempotency-Key": key})
    assert first.status == again.status == 201
    assert first.json["id"] == again.json["id"]
    assert first.headers["Location"] == again.headers["Location"]
    assert first.headers["Idempotency-Replayed"] is None
    assert again.headers["Idempotency-Replayed"] == "true"
    other = SHORT | {"message_size": 1}
    client.refused("POST", "/experiments", 422, "idempotency-key-reused", other, {"Idempotency-Key": key})


@pytest.mark.parametrize("key", ["", "with space", "k" * 201, "käse".encode()])
def test_a_key_that_is_none_is_refused(unix, key):
    unix.refused("POST", "/experiments", 400, "invalid-idempotency-key", SHORT, {"Idempotency-Key": key})


REFUSED = [
    (b"", 400, "invalid-json", None),
    (b"{", 400, "invalid-json", None),
    (b"{} x", 400, "invalid-json", None),
    (b'{"name": "\xff"}', 400, "invalid-json", None),
    (b'{"name": "a", "name": "b"}', 400, "invalid-json", "/name"),
    (b"[" * 200, 400, "invalid-json", None),
    (b'{"name": 1e400}', 400, "invalid-json", None),
    (b"[]", 422, "wrong-type", None),
    (b'{"colour": 1}', 422, "unknown-field", "/colour"),
    (b'{"Transport": "pipe"}', 422, "unknown-field", "/Transport"),
    (b'{"transport": "pigeon"}', 422, "unknown-value", "/transport"),
    (b'{"transport": ["pipe", "pigeon"]}', 422, "unknown-value", "/transport/1"),
    (b'{"message_size": "4096"}', 422, "wrong-type", "/message_size"),
    (b'{"preset": "no-such"}', 422, "unknown-value", "/preset"),
]


@pytest.mark.parametrize(("body", "status", "slug", "pointer"), REFUSED, ids=lambda v: str(v)[:30])
def test_what_is_wrong_is_named(unix, body, status, slug, pointer):
    problem = unix.refused("POST", "/experiments", status, slug, body, {"Content-Type": "application/json"})
    assert problem["instance"] == "/experiments"
    if pointer is not None:
        assert problem["pointer"] == pointer


def test_a_limit_is_named_with_its_value(unix):
    problem = unix.refused("POST", "/experiments", 422, "limit-exceeded", SHORT | {"message_size": (1 << 30) + 1})
    assert problem["pointer"] == "/message_size"
    assert problem["limit"]["value"] == 1 << 30
    assert problem["value"] == (1 << 30) + 1


@pytest.fixture(scope="module")
def hasty():
    """A daemon that lets no run take longer than twenty seconds."""
    d = Daemon("--run-timeout=20")
    yield d.unix
    d.remove()


@pytest.mark.parametrize(
    ("fields", "pointer", "requested"),
    [
        ({"duration_seconds": 15, "warmup_seconds": 15}, "/duration_seconds", 30),
        ({"duration_seconds": 20, "warmup_seconds": 0}, "/duration_seconds", 20),
        ({"duration_seconds": 25, "warmup_seconds": 0, "skip_impossible": True}, "/duration_seconds", 25),
        ({"messages": 1, "warmup_seconds": 21}, "/warmup_seconds", 21),
    ],
)
def test_what_run_timeout_would_end_is_refused(hasty, fields, pointer, requested):
    spec = {"transport": "pipe", "message_size": 64} | fields
    problem = hasty.refused("POST", "/experiments", 422, "limit-exceeded", spec)
    assert problem["pointer"] == pointer
    assert problem["limit"]["name"] == "run_timeout"
    assert problem["limit"]["value"] == 20
    assert problem["value"] == requested


def test_what_run_timeout_lets_be_is_done(hasty):
    experiment = hasty.post(SHORT)
    assert hasty.wait_final(experiment["id"])["state"] == "done"


def test_a_body_may_span_lines_and_chunks(unix):
    body = json.dumps(SHORT, indent=4).encode()
    connection = unix.connect()
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    connection.request("POST", "/experiments", iter([body[:10], body[10:]]), headers, encode_chunked=True)
    response = connection.getresponse()
    assert response.status == 201, response.read()
    assert json.loads(response.read())["spec"] == SHORT
    connection.close()


def test_a_running_experiment_is_cancelled(client, long_run):
    path = f"/experiments/{long_run['id']}"
    client.refused("DELETE", path, 409, "running")
    answer = client.request("POST", f"{path}/cancel")
    assert answer.status == 200
    final = client.wait_final(long_run["id"])
    assert final["state"] == "cancelled"
    client.refused("POST", f"{path}/cancel", 409, "already-finished")


def test_a_queued_experiment_waits_and_is_cancelled(unix, long_run):
    first, second = unix.post(SHORT), unix.post(SHORT)
    assert unix.get(f"/experiments/{first['id']}")["queue_position"] == 1
    assert unix.get(f"/experiments/{second['id']}")["queue_position"] == 2
    assert unix.get(f"/experiments/{second['id']}")["eta_seconds"] > 0
    assert unix.request("POST", f"/experiments/{first['id']}/cancel", b"").json["state"] == "cancelled"
    assert unix.get(f"/experiments/{second['id']}")["queue_position"] == 1
    assert unix.request("POST", f"/experiments/{second['id']}/cancel", {}).json["state"] == "cancelled"
    runs = unix.items(f"/experiments/{second['id']}/runs")
    assert [run["state"] for run in runs] == ["cancelled"]


def test_a_cancellation_takes_no_fields(unix, long_run):
    path = f"/experiments/{long_run['id']}/cancel"
    unix.refused("POST", path, 422, "unknown-field", {"why": "because"})
    unix.refused("POST", path, 422, "unknown-field", [])
    unix.refused("POST", path, 400, "invalid-json", "{", {"Content-Type": "application/json"})
    unix.refused("POST", path, 415, "unsupported-media-type", "why=because", {"Content-Type": "text/plain"})


def test_what_is_forgotten_is_gone(client):
    experiment = client.post(SHORT)
    client.wait_final(experiment["id"])
    run = client.items(f"/experiments/{experiment['id']}/runs")[0]
    answer = client.request("DELETE", f"/experiments/{experiment['id']}")
    assert (answer.status, answer.body) == (204, b"")
    for path in ("", "/runs", "/results", "/samples", "/events"):
        client.refused("GET", f"/experiments/{experiment['id']}{path}", 404, "not-found")
    for path in ("", "/samples"):
        client.refused("GET", f"/runs/{run['id']}{path}", 404, "not-found")
    client.refused("DELETE", f"/experiments/{experiment['id']}", 404, "not-found")


@pytest.mark.parametrize("path", ["", "/runs", "/results", "/samples", "/events"])
@pytest.mark.parametrize("identity", [UNKNOWN, 0, -1, "01", "1x", "9223372036854775808", "%31%00"])
def test_an_id_that_nobody_has_is_not_found(unix, identity, path):
    status = 400 if identity == "%31%00" else 404
    slug = "malformed-target" if status == 400 else "not-found"
    unix.refused("GET", f"/experiments/{identity}{path}", status, slug)


def test_unknown_ones_cannot_be_changed(client):
    client.refused("POST", f"/experiments/{UNKNOWN}/cancel", 404, "not-found")
    client.refused("DELETE", f"/experiments/{UNKNOWN}", 404, "not-found")
    client.refused("GET", f"/runs/{UNKNOWN}", 404, "not-found")


def test_the_list_pages_from_the_newest(client):
    ids = [client.post(SHORT)["id"] for _ in range(3)]
    answer = client.request("GET", "/experiments?limit=2")
    assert [e["id"] for e in answer.json["items"]] == ids[:0:-1]
    assert answer.headers["Link"] == f'</experiments?limit=2&cursor={answer.json["next"]}>; rel="next"'
    target = answer.headers["Link"].split(">")[0][1:]
    assert client.get(target)["items"][0]["id"] == ids[0]
    everything = client.items("/experiments?limit=2")
    assert [e["id"] for e in everything] == sorted((e["id"] for e in everything), reverse=True)
    assert len(everything) == len(client.get("/experiments?limit=1000")["items"])
    for identity in ids:
        client.wait_final(identity)


def test_the_list_is_filtered_by_state(unix, done, long_run):
    assert [e["id"] for e in unix.get("/experiments?state=running")["items"]] == [long_run["id"]]
    assert all(e["state"] == "done" for e in unix.items("/experiments?state=done&limit=1"))
    assert done["id"] in [e["id"] for e in unix.items("/experiments?state=done&limit=1")]
    link = unix.request("GET", "/experiments?state=done&limit=1").headers["Link"]
    assert link is None or "state=done" in link


def test_the_list_is_searched_by_name_and_spec(client):
    spec = {"transport": "unix-dgram", "messages": 1, "warmup_seconds": 0}
    needle = secrets.token_hex(4)
    ids = [client.post(spec | {"name": f"50 % & Needle {needle} {n}"})["id"] for n in range(3)]
    other = client.post(spec | {"transport": "pipe", "name": "Hay"})["id"]
    for identity in (*ids, other):
        client.wait_final(identity)
    assert [e["id"] for e in client.items(f"/experiments?q=nEEdle%20{needle.upper()}")] == ids[::-1]
    found = [e["id"] for e in client.items("/experiments?q=unix-dgram")]
    assert set(ids) <= set(found) and other not in found
    assert client.items(f"/experiments?q={needle}%25") == []  # no wildcard
    assert client.items(f"/experiments?q={needle}&state=failed") == []
    # the next page is of the same search
    target = f"/experiments?q=%25%20%26%20needle%20{needle}&limit=2&state=done"
    answer = client.request("GET", target)
    assert [e["id"] for e in answer.json["items"]] == ids[:0:-1]
    following = answer.headers["Link"].split(">")[0][1:]
    assert [e["id"] for e in client.get(following)["items"]] == ids[:1]
    assert [e["id"] for e in client.items(target)] == ids[::-1]


@pytest.mark.parametrize(
    ("query", "slug", "named"),
    [
        ("q=", "bad-parameter", "q"),
        ("q=%20%20", "bad-parameter", "q"),
        (f"q={'x' * 101}", "bad-parameter", "q"),
        ("limit=0", "bad-parameter", "limit"),
        ("limit=1001", "bad-parameter", "limit"),
        ("limit=ten", "bad-parameter", "limit"),
        ("limit=", "bad-parameter", "limit"),
        ("limit=5&limit=6", "bad-parameter", "limit"),
        ("state=interrupted", "bad-parameter", "state"),
        ("state=Done", "bad-parameter", "state"),
        ("cursor=nonsense", "bad-parameter", "cursor"),
        ("cursor=s-1", "bad-parameter", "cursor"),
        ("page=2", "unknown-parameter", "page"),
        ("Limit=5", "unknown-parameter", "Limit"),
    ],
)
def test_a_bad_parameter_is_named(unix, query, slug, named):
    assert f'"{named}"' in unix.refused("GET", f"/experiments?{query}", 400, slug)["detail"]


@pytest.mark.parametrize("more, fields", [({}, 1), ({"copy_mode": "one-copy"}, 1), ({"fields": 3}, 3)])
@pytest.mark.parametrize("direction", ["down", "both"])
def test_a_message_is_one_field_by_default(unix, more, fields, direction):
    spec = {"transport": "tcp", "message_size": 10007, "direction": direction, "verify": "checksum", "messages": 500}
    experiment = unix.wait_final(unix.post(spec | {"warmup_seconds": 0} | more)["id"])
    assert experiment["state"] == "done", experiment
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    assert run["point"]["fields"] == run["result"]["effective"]["fields"] == fields
