# SPDX-License-Identifier: MIT
"""Pinned experiments: names for what later ones are compared with."""

import time

import pytest
from client import PATIENCE_SECONDS, Events
from conftest import SHORT, Daemon
from stored import Stored


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


def test_what_is_pinned_stays_as_it_is(unix, pinnable):
    """Later experiments were compared with it: with more runs or others it would be another one."""
    first, _ = pinnable
    pin(unix, "fixed", first)
    for call, body in (("extend", {"blocks": 1}), ("retry", None)):
        problem = unix.refused("POST", f"/experiments/{first}/{call}", 409, "pinned", body)
        assert '"fixed"' in problem["detail"]
    unix.request("DELETE", "/baselines/fixed")
    assert unix.request("POST", f"/experiments/{first}/extend", {"blocks": 1}).status == 200
    assert unix.wait_final(first)["state"] == "done"


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


# ---- what came after ----


def shifted(factor):
    def adapt(point, repetition, result):
        by = factor * (1 + 0.002 * (repetition * 7 % 12))
        result["throughput_bytes_per_second"] = 1e12 * by
        for name in ("p50", "p90", "p99", "p99_9"):
            result["latency_ns"][name] = round(1e6 / by)
        result["latency_ns"]["count"] = 1_000_000

    return adapt


def wait_history(client, name, n):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len((history := client.get(f"/baselines/{name}/history"))["items"]) < n:
        assert time.monotonic() < deadline, history
        time.sleep(0.05)
    return history


@pytest.fixture(scope="module")
def months():
    """A baseline's experiment and 14 later ones: from the tenth on with another kernel, and 10 % slower."""
    first = Daemon()
    real = first.unix.wait_final(first.unix.post(SHORT | {"workload": "pingpong", "seed": 3})["id"])
    other = first.unix.wait_final(first.unix.post(SHORT | {"workload": "pingpong", "message_size": 8})["id"])
    assert real["state"] == other["state"] == "done" and first.stop() == 0
    stored = Stored(first.base / "state/ipclab.db")
    base = stored.copy(real["id"], 12, shifted(1))
    stored.copy(other["id"], 12, shifted(0.5))
    ids = []
    for i in range(14):
        late = i >= 9
        ids.append(
            stored.copy(
                real["id"],
                12,
                shifted((0.9 if late else 1) * (1 + 0.003 * (-1) ** i)),
                environment={"kernel_release": "9.9"} if late else None,
                merged={"name": f"month {i}", "seed": i},
            )
        )
    stored.close()
    daemon = Daemon(f"--state-dir={first.base / 'state'}")
    daemon.state = first.base / "state"
    yield daemon, base, ids
    daemon.remove()
    first.remove()


def test_later_experiments_are_held_against_it(months):
    daemon, base, ids = months
    pin(daemon.unix, "stock", base)
    history = wait_history(daemon.unix, "stock", len(ids))
    assert [item["experiment_id"] for item in history["items"]] == ids
    assert history["baseline"] == daemon.unix.get("/baselines/stock")
    for i, item in enumerate(history["items"]):
        assert item["alike"] == (i < 9) and item["error"] is None
        assert (item["verdicts"]["slower"] > 0) == (i >= 9), item
        assert [one["key"] for one in item["differences"] if one["unlike"]] == (["kernel_release"] if i >= 9 else [])
        flags = daemon.unix.get(f"/experiments/{item['experiment_id']}")["flags"]
        assert flags == (["slower_than_baseline:stock"] if i >= 9 else [])
    compared = daemon.unix.get(f"/compare?baseline=stock&candidate={ids[3]}")["rows"][0]["figures"]
    for series in history["series"]:
        assert [value["experiment_id"] for value in series["values"]] == ids
        here = compared[series["figure"]]
        value = series["values"][3]
        assert (value["ratio"], value["verdict"]) == (here["ratio"], here["verdict"])
        assert value["interval"] == [here["interval"]["low"], here["interval"]["high"]]
        assert value["level"] == here["interval"]["level"] >= 0.95
    newest = daemon.unix.get("/baselines/stock/history?limit=2")
    assert [item["experiment_id"] for item in newest["items"]] == ids[-2:]
    assert {len(series["values"]) for series in newest["series"]} == {2}
    assert newest["series"][0]["change_points"] is None and "8" in newest["series"][0]["change_points_reason"]


def test_the_change_is_found(months):
    daemon, base, ids = months
    pin(daemon.unix, "stock", base)
    history = wait_history(daemon.unix, "stock", len(ids))
    (series,) = [one for one in history["series"] if one["figure"] == "throughput_bytes_per_second"]
    assert series["change_points"] == [ids[9]] and series["change_points_reason"] is None
    before, after = series["segments"]
    assert (before["from"], before["to"], after["from"], after["to"]) == (ids[0], ids[8], ids[9], ids[-1])
    assert before["ratio"] == pytest.approx(1, abs=0.01) and after["ratio"] == pytest.approx(0.9, abs=0.01)


def test_a_baseline_that_is_moved_begins_anew(months):
    daemon, base, ids = months
    pin(daemon.unix, "moving", base)
    wait_history(daemon.unix, "moving", len(ids))
    pin(daemon.unix, "moving", ids[9])
    history = wait_history(daemon.unix, "moving", 4)
    assert [item["experiment_id"] for item in history["items"]] == ids[10:]
    assert all(item["alike"] and item["verdicts"]["slower"] == 0 for item in history["items"])
    daemon.unix.request("DELETE", "/baselines/moving")
    assert all("slower_than_baseline:moving" not in daemon.unix.get(f"/experiments/{one}")["flags"] for one in ids)


def test_an_experiment_that_finishes_is_held_against_it(months):
    """The check runs by itself and sends an event: the known figures of the baseline are far from a real run's."""
    daemon, base, ids = months
    stored = daemon.unix.get(f"/experiments/{base}")
    pin(daemon.unix, "live", base)
    wait_history(daemon.unix, "live", len(ids))
    with Events(daemon.unix, "/events") as events:
        spec = stored["effective_spec"] | {"repetitions": 8, "name": "tonight"}
        experiment = daemon.unix.post(spec)["id"]
        for _, event, data in events:
            if event == "experiment" and data["id"] == experiment and data["flags"]:
                break
        assert "slower_than_baseline:live" in data["flags"] and data["state"] in ("done", "failed"), data
    history = wait_history(daemon.unix, "live", len(ids) + 1)
    assert history["items"][-1]["experiment_id"] == experiment and history["items"][-1]["name"] == "tonight"
    answer = daemon.unix.request("DELETE", f"/experiments/{experiment}")
    assert answer.status == 204
    assert len(daemon.unix.get("/baselines/live/history")["items"]) == len(ids)


def test_a_killed_daemon_loses_no_check(months):
    """Pending checks follow from the database: a kill in the midst of one delays it."""
    daemon, base, ids = months
    pin(daemon.unix, "killed", base)
    daemon.process.kill()
    daemon.process.wait()
    copy = Daemon(f"--state-dir={daemon.state}")
    try:
        history = wait_history(copy.unix, "killed", len(ids))
        items = [item["experiment_id"] for item in history["items"]]
        assert items[: len(ids)] == ids  # once each
        for series in history["series"]:
            assert [value["experiment_id"] for value in series["values"]][: len(ids)] == ids
    finally:
        assert copy.stop() == 0
        copy.remove()


def test_bad_questions(unix, pinnable):
    unix.refused("GET", "/baselines/nobody/history", 404, "not-found")
    pin(unix, "some", pinnable[0])
    for bad in ("0", "1001", "x"):
        unix.refused("GET", f"/baselines/some/history?limit={bad}", 400, "bad-parameter")
    unix.request("DELETE", "/baselines/some")


def test_there_are_a_thousand_at_most(own_daemon):
    """Each is listed, and compared with what is measured later."""
    client = own_daemon.unix
    identity = client.wait_final(client.post(SHORT)["id"])["id"]
    assert own_daemon.stop() == 0
    stored = Stored(own_daemon.state / "ipclab.db")
    stored.db.executemany(
        "INSERT INTO baselines (name, experiment_id, pinned_at) VALUES (?, ?, 1)",
        [(f"b{number}", identity) for number in range(1000)],
    )
    stored.close()
    own_daemon.start()
    problem = client.refused("PUT", "/baselines/more", 422, "limit-exceeded", {"experiment": identity})
    assert problem["limit"] == {"name": "baselines", "value": 1000}
    assert len(names(client)) == 1000
    pin(client, "b7", identity)
    assert client.request("DELETE", "/baselines/b7").status == 204
    pin(client, "more", identity)
    assert len(names(client)) == 1000
