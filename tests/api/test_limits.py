# SPDX-License-Identifier: MIT
"""How much may wait and be stored, and that large changes are made in portions."""

import re
import sqlite3
import time

import bundles
import pytest
from client import PATIENCE_SECONDS, Events
from conftest import ENDLESS, SHORT, Daemon

MANY = ENDLESS | {"message_size": list(range(1, 1025)), "repetitions": 16}


@pytest.fixture
def narrow():
    d = Daemon("--max-queued-experiments=3", "--max-queued-runs=10")
    yield d
    d.remove()


def test_runs_that_may_wait(narrow):
    client = narrow.unix
    client.post(ENDLESS | {"repetitions": 8})
    problem = client.refused("POST", "/experiments", 429, "queue-full", ENDLESS | {"repetitions": 3})
    assert problem["limit"] == {"name": "max_queued_runs", "value": 10} and problem["value"] == 11
    assert "max_queued_runs" in problem["detail"]
    assert int(problem["headers"]["Retry-After"]) > 0
    client.post(ENDLESS | {"repetitions": 2})  # just what there is room for
    problem = client.refused("POST", "/experiments", 429, "queue-full", ENDLESS | {"skip_impossible": True})
    assert problem["value"] == 11
    assert client.request("DELETE", "/experiments/2").status == 204
    client.post(ENDLESS | {"repetitions": 2})


def test_an_extension_is_counted(narrow):
    client = narrow.unix
    done = client.wait_final(client.post(SHORT)["id"])
    client.post(ENDLESS | {"repetitions": 8})
    target = f"/experiments/{done['id']}/extend"
    problem = client.refused("POST", target, 429, "queue-full", {"blocks": 3})
    assert problem["limit"] == {"name": "max_queued_runs", "value": 10} and problem["value"] == 11
    assert client.get(f"/experiments/{done['id']}")["state"] == "done"
    assert client.request("POST", target, {"blocks": 2}).json["progress"]["runs_total"] == 3


def test_a_retry_is_counted(narrow):
    client = narrow.unix
    cancelled = client.post(ENDLESS | {"repetitions": 9})["id"]
    client.request("POST", f"/experiments/{cancelled}/cancel")
    client.wait_final(cancelled)
    client.post(ENDLESS | {"repetitions": 3})
    target = f"/experiments/{cancelled}/retry"
    problem = client.refused("POST", target, 429, "queue-full")
    assert problem["limit"] == {"name": "max_queued_runs", "value": 10} and problem["value"] in (11, 12)
    assert client.get(f"/experiments/{cancelled}")["state"] == "cancelled"
    assert client.request("DELETE", "/experiments/2").status == 409
    client.request("POST", "/experiments/2/cancel")
    client.wait_final(2)
    assert client.request("POST", target).status == 200


def test_experiments_that_may_wait(narrow):
    client = narrow.unix
    for _ in range(3):
        client.post(ENDLESS)
    problem = client.refused("POST", "/experiments", 429, "queue-full", ENDLESS)
    assert problem["limit"] == {"name": "max_queued_experiments", "value": 3} and problem["value"] == 4
    client.request("POST", "/experiments/2/cancel")
    client.wait_final(2)
    client.post(ENDLESS)


def test_bytes_that_may_be_stored():
    d = Daemon("--max-database-bytes=1000")
    try:
        problem = d.unix.refused("POST", "/experiments", 507, "insufficient-storage", SHORT)
        assert problem["limit"] == {"name": "max_database_bytes", "value": 1000} and problem["value"] > 1000
        assert d.unix.get("/experiments")["items"] == []
    finally:
        d.remove()


def test_a_name_moves_in_a_full_database(tmp_path):
    d = Daemon(f"--state-dir={tmp_path}")
    try:
        first, second = (d.unix.wait_final(d.unix.post(SHORT)["id"])["id"] for _ in range(2))
        assert d.unix.request("PUT", "/baselines/old", {"experiment": first}).status == 200
        assert d.stop() == 0
        d.remove()
        d = Daemon(f"--state-dir={tmp_path}", "--max-database-bytes=1000")
        d.unix.refused("PUT", "/baselines/new", 507, "insufficient-storage", {"experiment": second})
        assert d.unix.request("PUT", "/baselines/old", {"experiment": second}).status == 200
        assert d.unix.get("/baselines/old")["experiment_id"] == second
    finally:
        d.remove()


def test_a_bundle_counts_among_the_bytes_that_may_be_stored(own_daemon):
    done = own_daemon.unix.wait_final(own_daemon.unix.post(SHORT)["id"])
    _, packed = bundles.fetch(own_daemon.unix, done["id"])
    d = Daemon("--max-database-bytes=1000")
    try:
        answer = bundles.send(d.unix, packed)
        assert answer.status == 507 and answer.json["type"].endswith("insufficient-storage"), answer
        assert answer.json["limit"] == {"name": "max_database_bytes", "value": 1000}
        assert d.unix.get("/experiments")["items"] == []
    finally:
        d.remove()


def rows(daemon):
    """The numbers of runs, points and experiments, as they are on the disk."""
    database = sqlite3.connect(f"file:{daemon.base / 'state/ipclab.db'}?mode=ro", uri=True)
    try:
        return sum(
            database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("experiments", "points", "runs")
        )
    finally:
        database.close()


def metric(client, name):
    text = client.request("GET", "/metrics").body.decode()
    return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)[1])


def test_a_large_experiment_is_deleted_in_portions(own_daemon):
    """What was deleted is gone at once for everybody, and then from the disk; the log does not grow with it."""
    client = own_daemon.unix
    with Events(client, "/events") as events:
        experiment = client.post(MANY)
        assert experiment["progress"]["runs_total"] == 16384
        client.wait_state(experiment["id"], ("running", "done", "failed"))
        client.request("POST", f"/experiments/{experiment['id']}/cancel")
        client.wait_final(experiment["id"])
        assert client.request("DELETE", f"/experiments/{experiment['id']}").status == 204
        client.refused("GET", f"/experiments/{experiment['id']}", 404, "not-found")
        assert client.get("/experiments")["items"] == []
        deleted = next(data for _, event, data in events if event == "deletion")
        assert deleted == {"experiment_id": experiment["id"]}
    wal = own_daemon.base / "state/ipclab.db-wal"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while rows(own_daemon) > 0:
        assert wal.stat().st_size < 64 << 20
        assert time.monotonic() < deadline
        time.sleep(0.1)
    for operation in ("submit", "cancel", "delete", "run start", "run end", "housekeeping"):
        assert metric(client, f'ipclab_main_loop_longest_seconds{{operation="{operation}"}}') > 0
        assert metric(client, f'ipclab_main_loop_longest_cpu_seconds{{operation="{operation}"}}') > 0
    assert metric(client, "ipclab_main_loop_slow_total") >= 0
