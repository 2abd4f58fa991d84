# SPDX-License-Identifier: MIT
"""queue_depth through the real daemon: every transport that has it, intact and in the row; and who has not."""

import pytest

SPEC = {"engine": "io_uring", "message_size": 4096, "warmup_seconds": 0.1, "messages": 2000, "verify": "checksum"}


@pytest.fixture(scope="module")
def queued(daemon):
    """The transports that io_uring can have."""
    rows = daemon.unix.get("/transports")["items"]
    names = [row["name"] for row in rows if row["engines"].get("io_uring", {}).get("available")]
    if not names:
        pytest.skip("io_uring is not available")
    return [name for name in names if name != "file"]


@pytest.mark.parametrize("copy_mode", ["two-copy", "one-copy"])
def test_every_transport(unix, queued, copy_mode):
    spec = SPEC | {"transport": queued, "copy_mode": copy_mode, "queue_depth": [1, 16]}
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert experiment["state"] == "done", experiment
    runs = unix.items(f"/experiments/{experiment['id']}/runs")
    assert len(runs) == 2 * len(queued)
    for run in runs:
        depth = run["point"]["queue_depth"]
        assert run["result"]["messages"] == 2000
        for agent in run["agents"]:
            many = agent["effective"].get("receive_method") == "recv multishot"
            assert agent["effective"]["io_uring"]["queue_depth"] == (1 if many else depth)
    rows = unix.items(f"/experiments/{experiment['id']}/results")
    assert sorted(row["point"]["queue_depth"] for row in rows) == sorted([1, 16] * len(queued))


def test_by_time_with_threads(unix, queued):
    spec = SPEC | {"transport": queued, "queue_depth": 8, "threads": 2, "duration_seconds": 0.8}
    del spec["messages"]
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert experiment["state"] == "done", experiment


def test_other_engines_have_none(unix, queued):
    spec = SPEC | {"transport": queued[0], "engine": ["syscall", "io_uring"], "queue_depth": [1, 8]}
    experiment = unix.wait_final(unix.post(spec)["id"])
    points = [run["point"] for run in unix.items(f"/experiments/{experiment['id']}/runs")]
    assert sorted((point["engine"], point.get("queue_depth", 0)) for point in points) == [
        ("io_uring", 1),
        ("io_uring", 8),
        ("syscall", 0),
    ]
    body = SPEC | {"engine": "syscall", "queue_depth": 8}
    problem = unix.refused("POST", "/experiments", 422, "wrong-combination", body)
    assert problem["pointer"] == "/queue_depth"
    assert "with engine io_uring" in problem["detail"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"transport": "tcp", "copy_mode": "zero-copy"}, "zero-copy"),
        ({"transport": "tcp", "direction": "both"}, "direction both"),
        ({"rate": 1000}, "open loop"),
        ({"transport": "unix-dgram", "message_size": 2**24, "chunk": True}, "messages that go whole"),
    ],
)
def test_what_it_cannot_go_with(unix, queued, more, reason):
    problem = unix.refused("POST", "/experiments", 422, "impossible-combination", SPEC | {"queue_depth": 8} | more)
    assert problem["pointer"] == "/queue_depth"
    assert reason in problem["detail"]
    body = SPEC | {"queue_depth": [1, 8], "skip_impossible": True} | more
    assert reason in unix.post(body)["skipped"][0]["reason"]
