# SPDX-License-Identifier: MIT
"""Message queues and datagrams through the real daemon: their limits, and chunks."""

import os
import resource
import sys
from pathlib import Path

import pytest

QUEUES = ("msgq-sysv", "msgq-posix")
DATAGRAMS = ("unix-dgram", "unix-seqpacket")
SPEC = {"warmup_seconds": 0, "verify": "checksum", "workload": "pingpong"}
MIB = 1 << 20


@pytest.fixture
def rows(unix):
    return {row["name"]: row for row in unix.get("/transports")["items"]}


def queue_row(rows, transport):
    row = rows[transport]
    if not row["available"] or row["capacity"]["reason"]:
        pytest.skip(row["reason"] or row["capacity"]["reason"])
    return row


def run_of(unix, spec):
    """The one run of an experiment that must go well."""
    experiment = unix.wait_final(unix.post(SPEC | {"messages": 20} | spec)["id"])
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    assert run["state"] == "done", run["error"]
    return run


def host_setting(name):
    return int(Path("/proc/sys", name).read_text())


def room_in_each_of(queues):
    """Bytes of a message, where each queue holds one: the kernel counts 96 more for it. The daemon gives its agents no
    limit where it may."""
    limits, none = resource.getrlimit(resource.RLIMIT_MSGQUEUE), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    try:
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, none)
    except ValueError:
        return limits[1] // queues - 96
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, limits)
    return sys.maxsize


@pytest.mark.parametrize("transport", QUEUES)
def test_rows_show_the_setting(rows, transport):
    capacity = queue_row(rows, transport)["capacity"]
    name, path = {
        "msgq-sysv": ("kernel.msgmax", "kernel/msgmax"),
        "msgq-posix": ("fs.mqueue.msgsize_max", "fs/mqueue/msgsize_max"),
    }[transport]
    start = capacity["at_start"] or capacity["limit"]
    assert start["name"] == name
    assert start["raise"] and capacity["limit"]["raise"]
    assert capacity["largest_message"] >= capacity["largest_transfer"] == start["value"]
    if os.geteuid() == 0:
        assert start["value"] == host_setting(path)


@pytest.mark.parametrize("transport", QUEUES)
def test_the_limit_is_the_one_that_refuses(unix, rows, transport):
    capacity = queue_row(rows, transport)["capacity"]
    most, limit = capacity["largest_message"], capacity["limit"]
    assert limit["value"] >= most
    problem = unix.request("POST", "/experiments", SPEC | {"transport": transport, "message_size": most + 1})
    assert (problem.json["limit"]["name"], int(problem.json["limit"]["value"])) == (limit["name"], limit["value"])
    assert limit["raise"] in problem.json["detail"]


@pytest.mark.parametrize("transport", QUEUES + DATAGRAMS)
def test_above_the_limit(unix, rows, transport):
    most = queue_row(rows, transport)["capacity"]["largest_message"]
    problem = unix.request("POST", "/experiments", SPEC | {"transport": transport, "message_size": most + 1})
    assert problem.status == 422
    assert problem.json["limit"]["name"]
    assert str(most + 1) in problem.json["detail"]
    assert problem.json["detail"].endswith("; chunk: true sends it in pieces")


@pytest.mark.parametrize("transport", QUEUES + DATAGRAMS)
def test_in_chunks(unix, rows, transport):
    piece = queue_row(rows, transport)["capacity"]["largest_transfer"]
    size = max(4 * MIB, 2 * piece + 1)
    if transport == "msgq-posix":
        piece = min(piece, room_in_each_of(2))
    run = run_of(unix, {"transport": transport, "message_size": size, "chunk": True})
    for agent in run["agents"]:
        assert agent["effective"]["chunk_bytes"] == piece
    assert run["result"]["messages"] > 0
    assert run["result"]["effective"]["chunk_bytes"] == piece
    (row,) = unix.items(f"/experiments/{run['experiment_id']}/results")
    assert row["effective"]["chunk_bytes"] == piece


@pytest.mark.parametrize("transport", QUEUES + DATAGRAMS)
def test_what_fits_goes_whole(unix, rows, transport):
    queue_row(rows, transport)
    run = run_of(unix, {"transport": transport, "message_size": 4096, "chunk": True})
    assert "chunk_bytes" not in run["agents"][0]["effective"]


@pytest.mark.parametrize("transport", QUEUES)
def test_larger_than_the_host_has_them(unix, rows, transport):
    capacity = queue_row(rows, transport)["capacity"]
    if capacity["largest_message"] < 65536:
        pytest.skip(f"{transport}: {capacity['limit']['raise']}")
    before = [host_setting(f"kernel/{name}") for name in ("msgmax", "msgmnb", "msgmni")]
    depth = {"transport_options": {"msgq_depth": 40}, "message_size": 1000}
    assert run_of(unix, {"transport": transport} | depth)["agents"][0]["effective"]["queue_messages"] == 40
    effective = run_of(unix, {"transport": transport, "message_size": 65536})["agents"][0]["effective"]
    assert effective["queue_messages"] >= 1
    assert effective.get("queue_message_bytes", 65536) == 65536
    assert before == [host_setting(f"kernel/{name}") for name in ("msgmax", "msgmnb", "msgmni")]
