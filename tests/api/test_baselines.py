# SPDX-License-Identifier: MIT
"""Pinned experiments: names for what later ones are held against."""

import pytest
from conftest import SHORT, Daemon


@pytest.fixture(scope="module")
def pinnable(daemon):
    """Two finished experiments of the same spec."""
    spec = SHORT | {"name": "nightly", "workload": "pingpong", "message_size": 64}
    ends = [daemon.unix.wait_final(daemon.unix.post(spec)["id"]) for _ in range(2)]
    assert [end["state"] for end in ends] == ["done", "done"]
    return [end["id"] for end in ends]


def pin(client, name, identity):
    answer = client.request("PUT", f"/baselines/{name}", {"experiment": identity})
    assert answer.status == 200, answer
    return answer.json


def names(client):
    return [one["name"] for one in client.get("/baselines")["items"]]


def test_a_baseline_lives(client, pinnable):
    first, second = pinnable
    made = pin(client, "v6.1-stock", first)
    assert (made["name"], made["experiment_id"], made["experiment_name"]) == ("v6.1-stock", first, "nightly")
    assert client.get("/baselines/v6.1-stock") == made
    assert pin(client, "v6.1-stock", first) == made  # nothing changed, not even the time
    pin(client, "Another_one", first)
    assert names(client) == ["Another_one", "v6.1-stock"]
    moved = pin(client, "v6.1-stock", second)
    assert moved["experiment_id"] == second and moved["pinned_at"] >= made["pinned_at"]
    for name in ("v6.1-stock", "Another_one"):
        answer = client.request("DELETE", f"/baselines/{name}")
        assert answer.status == 204 and answer.body == b""
        client.refused("GET", f"/baselines/{name}", 404, "not-found")
        assert name in client.refused("DELETE", f"/baselines/{name}", 404, "not-found")["detail"]
    assert names(client) == []


def test_compare_takes_its_name(unix, pinnable):
    first, second = pinnable
    pin(unix, "main", first)
    by_name = unix.get(f"/compare?baseline=main&candidate={second}")
    assert by_name == unix.get(f"/compare?baseline={first}&candidate={second}")
    unix.refused("GET", f"/compare?baseline=main&candidate={first}", 422, "same-experiment")
    unix.request("DELETE", "/baselines/main")
    problem = unix.refused("GET", f"/compare?baseline=main&candidate={second}", 404, "not-found")
    assert "main" in problem["detail"]


def test_what_is_pinned_is_not_deleted(unix):
    identity = unix.wait_final(unix.post(SHORT)["id"])["id"]
    pin(unix, "kept", identity)
    problem = unix.refused("DELETE", f"/experiments/{identity}", 409, "pinned")
    assert "kept" in problem["detail"] and "others" not in problem["detail"]
    assert unix.get(f"/experiments/{identity}")["state"] == "done"
    pin(unix, "kept-too", identity)
    assert "others" in unix.refused("DELETE", f"/experiments/{identity}", 409, "pinned")["detail"]
    for name in ("kept", "kept-too"):
        unix.request("DELETE", f"/baselines/{name}")
    assert unix.request("DELETE", f"/experiments/{identity}").status == 204


def test_only_results_can_be_pinned(unix, long_run):
    problem = unix.refused("PUT", "/baselines/early", 409, "not-finished", {"experiment": long_run["id"]})
    assert "running" in problem["detail"] and problem["pointer"] == "/experiment"
    queued = unix.post(SHORT)
    assert "queued" in unix.refused("PUT", "/baselines/x", 409, "not-finished", {"experiment": queued["id"]})["detail"]
    unix.request("POST", f"/experiments/{queued['id']}/cancel")
    unix.refused("PUT", "/baselines/x", 409, "no-results", {"experiment": queued["id"]})
    assert "x" not in names(unix)


@pytest.mark.parametrize("name", ["12", ".hidden", "a%20b", "a%2Fb", "%C3%A9", "x" * 65])
def test_bad_names(unix, pinnable, name):
    unix.refused("PUT", f"/baselines/{name}", 422, "invalid-name", {"experiment": pinnable[0]})
    unix.refused("GET", f"/baselines/{name}", 404, "not-found")
    unix.refused("DELETE", f"/baselines/{name}", 404, "not-found")


@pytest.mark.parametrize(
    ("body", "status", "slug"),
    [
        ("{", 400, "invalid-json"),
        ("[]", 422, "wrong-type"),
        ({}, 422, "missing-field"),
        ({"experiment": "1"}, 422, "wrong-type"),
        ({"experiment": 0}, 422, "wrong-type"),
        ({"experiment": 1.5}, 422, "wrong-type"),
        ({"experiment": 1, "colour": "red"}, 422, "unknown-field"),
        ({"experiment": 999999999}, 404, "not-found"),
    ],
)
def test_bad_bodies(unix, body, status, slug):
    unix.refused("PUT", "/baselines/x", status, slug, body, {"Content-Type": "application/json"})


def test_a_stranger_reads_and_does_not_write(stranger, pinnable):
    stranger.refused("PUT", "/baselines/x", 401, "token-required", {"experiment": pinnable[0]})
    stranger.refused("DELETE", "/baselines/x", 401, "token-required")
    assert stranger.get("/baselines") == {"items": [], "next": None}


def test_it_outlives_the_daemon():
    first = Daemon()
    identity = first.unix.wait_final(first.unix.post(SHORT)["id"])["id"]
    made = pin(first.unix, "durable", identity)
    assert first.stop() == 0
    second = Daemon(f"--state-dir={first.base / 'state'}")
    try:
        assert second.unix.get("/baselines/durable") == made
    finally:
        second.remove()
        first.remove()
