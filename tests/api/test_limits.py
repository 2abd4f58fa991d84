# SPDX-License-Identifier: MIT
"""How much may wait and be stored, and that large changes are made in portions."""

import pytest
from conftest import SHORT, Daemon

LONG = SHORT | {"duration_seconds": 600}


@pytest.fixture
def narrow():
    d = Daemon("--max-queued-experiments=3", "--max-queued-runs=10")
    yield d
    d.remove()


def test_runs_that_may_wait(narrow):
    client = narrow.unix
    client.post(LONG | {"repetitions": 8})
    problem = client.refused("POST", "/experiments", 429, "queue-full", LONG | {"repetitions": 3})
    assert problem["limit"] == {"name": "max_queued_runs", "value": 10} and problem["value"] == 11
    assert "max_queued_runs" in problem["detail"]
    assert int(problem["headers"]["Retry-After"]) > 0
    client.post(LONG | {"repetitions": 2})  # just what there is room for
    problem = client.refused("POST", "/experiments", 429, "queue-full", LONG | {"skip_impossible": True})
    assert problem["value"] == 11
    assert client.request("DELETE", "/experiments/2").status == 204
    client.post(LONG | {"repetitions": 2})


def test_experiments_that_may_wait(narrow):
    client = narrow.unix
    for _ in range(3):
        client.post(LONG)
    problem = client.refused("POST", "/experiments", 429, "queue-full", LONG)
    assert problem["limit"] == {"name": "max_queued_experiments", "value": 3} and problem["value"] == 4
    client.request("POST", "/experiments/2/cancel")
    client.wait_final(2)
    client.post(LONG)


def test_bytes_that_may_be_stored():
    d = Daemon("--max-database-bytes=1000")
    try:
        problem = d.unix.refused("POST", "/experiments", 507, "insufficient-storage", SHORT)
        assert problem["limit"] == {"name": "max_database_bytes", "value": 1000} and problem["value"] > 1000
        assert d.unix.get("/experiments")["items"] == []
    finally:
        d.remove()
