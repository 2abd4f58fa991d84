# SPDX-License-Identifier: MIT
"""`source` and `fresh`: every transport sends messages from cold memory, and messages that are written anew, with every
byte checked; what was done is in the row, and what cannot be done is refused."""

import pytest

SPEC = {"message_size": 4096, "messages": 60, "warmup_seconds": 0}
# What sends from memory of its own has a copy.
CACHE_TIMES = 2


@pytest.fixture(scope="module")
def names(daemon):
    return [row["name"] for row in daemon.unix.get("/transports")["items"] if row["available"]]


def done(client, spec):
    experiment = client.wait_final(client.post(SPEC | spec)["id"])
    assert experiment["state"] == "done", experiment
    runs = client.items(f"/experiments/{experiment['id']}/runs")
    return runs, client.items(f"/experiments/{experiment['id']}/results")


@pytest.mark.parametrize(("verify", "fresh"), [("touch", False), ("touch", True), ("checksum", False)])
def test_every_transport(unix, names, fresh, verify):
    assert len(names) >= 10
    spec = {"transport": names, "source": ["hot", "cold"], "verify": verify, "fresh": fresh}
    runs, rows = done(unix, spec)
    assert len(runs) == len(rows) == 2 * len(names)
    for run in runs:
        cold = run["point"]["source"] == "cold"
        effective = run["result"]["effective"]
        assert effective["fresh"] is (fresh or verify == "checksum"), run
        assert ("source_bytes" in effective) == cold, run
        if not cold:
            continue
        (sender,) = [agent["effective"] for agent in run["agents"] if "source_bytes" in agent["effective"]]
        lines = sender["source_messages"] * SPEC["message_size"]
        assert lines >= CACHE_TIMES * (sender["last_cache_bytes"] or 2**25)
        assert effective["source_bytes"] == sender["source_bytes"] >= lines
    for row in rows:
        assert ("source_bytes" in row["effective"]) == (row["point"]["source"] == "cold"), row
        assert row["effective"]["fresh"] is (fresh or verify == "checksum")


def test_both_ends_of_a_round_trip_send(unix):
    runs, _ = done(unix, {"workload": "pingpong", "source": "cold", "verify": "checksum"})
    (run,) = runs
    assert all(agent["effective"]["source_bytes"] > 0 for agent in run["agents"])


def test_round_trips_of_fresh_messages_begin_before_the_send(unix):
    for fresh, moment in ((False, "handed-over"), (True, "before-sending")):
        (run,), _ = done(unix, {"workload": "pingpong", "fresh": fresh})
        assert run["result"]["effective"]["round_trip"] == moment


def test_it_is_hot_by_default(unix):
    runs, rows = done(unix, {"workload": ["stream", "pingpong", "syscall"]})
    for one in (*runs, *rows):
        assert one["point"].get("source") == (None if one["point"]["workload"] == "syscall" else "hot")


def test_what_has_memory_of_its_own_is_left_out(unix):
    spec = {"copy_mode": ["two-copy", "zero-copy"], "source": ["hot", "cold"]}
    problem = unix.refused("POST", "/experiments", 422, "impossible-combination", SPEC | spec)
    assert problem["pointer"] == "/source" and "zero-copy" in problem["detail"]
    runs, _ = done(unix, spec | {"skip_impossible": True})
    assert sorted((run["point"]["copy_mode"], run["point"]["source"]) for run in runs) == [
        ("two-copy", "cold"),
        ("two-copy", "hot"),
        ("zero-copy", "hot"),
    ]


def test_memory_that_is_lacking_is_named(unix):
    """Threads of which each has twice the last cache."""
    spec = SPEC | {"messages": 1024, "threads": 1024, "source": "cold", "transport": "shm-posix"}
    available = int(
        next(line.split()[1] for line in open("/proc/meminfo", encoding="ascii") if line.startswith("MemAvailable"))
    )
    if available * 1024 > 1024 * 2**26:
        pytest.skip("this machine has the memory")
    problem = unix.refused("POST", "/experiments?dry_run=true", 422, "limit-exceeded", spec)
    assert problem["pointer"] == "/source", problem
