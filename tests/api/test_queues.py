# SPDX-License-Identifier: MIT
"""Message queues and datagrams through the real daemon: their limits, chunks, and what agents leave when struck."""

import contextlib
import os
import pwd
import signal
import time
from pathlib import Path

import pytest
from client import PATIENCE_SECONDS

QUEUES = ("msgq-sysv", "msgq-posix")
DATAGRAMS = ("unix-dgram", "unix-seqpacket")
SPEC = {"warmup_seconds": 0, "verify": "checksum", "workload": "pingpong"}
MIB = 1 << 20


@pytest.fixture
def rows(unix):
    return {row["name"]: row for row in unix.get("/transports")["items"]}


def queue_row(rows, transport):
    row = rows[transport]
    if not row["available"]:
        pytest.skip(row["reason"])
    return row


def run_of(unix, spec):
    """The one run of an experiment that must go well."""
    experiment = unix.wait_final(unix.post(SPEC | {"messages": 20} | spec)["id"])
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    assert run["state"] == "done", run["error"]
    return run


def host_setting(name):
    return int(Path("/proc/sys", name).read_text())


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
    assert "chunk" in problem.json["detail"] or transport in DATAGRAMS


@pytest.mark.parametrize("transport", QUEUES + DATAGRAMS)
def test_in_chunks(unix, rows, transport):
    piece = queue_row(rows, transport)["capacity"]["largest_transfer"]
    size = max(4 * MIB, 2 * piece + 1)
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


def agents_of(daemon):
    """pid -> role of the daemon's agents; None as long as an agent has no arguments: in its exec, and as a zombie."""
    children = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
    found = {}
    for pid in children:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # gone since
            if Path(f"/proc/{pid}/comm").read_text().strip() == "ipclab-agent":
                arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                found[int(pid)] = arguments[1] if len(arguments) > 1 else None
    return found


def wait_agents(daemon, n):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found := agents_of(daemon)) != n or None in found.values():
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return {role: pid for pid, role in found.items()}


@contextlib.contextmanager
def namespace_held(pid):
    """The IPC namespace of a process as its links name it, which no other is given meanwhile.

    The kernel gives the number of a namespace that is gone to the next one, which may be another daemon's.
    """
    fd = os.open(f"/proc/{pid}/ns/ipc", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield os.readlink(f"/proc/self/fd/{fd}"), fd
    finally:
        os.close(fd)


def entries(directory):
    """Paths, and none of what cannot be looked at, or goes while it is: glob raises what a process that ends makes."""
    with contextlib.suppress(OSError):
        return [f"{directory}/{name}" for name in os.listdir(directory)]
    return []


def users_of(namespace, held):
    """Links to it of every process that can be looked at, and of every descriptor but the one that holds it here."""
    found = []
    own = f"/proc/{os.getpid()}/fd/{held}"
    for process in (f"/proc/{name}" for name in os.listdir("/proc") if name.isdigit()):
        for link in [f"{process}/ns/ipc", *entries(f"{process}/fd")]:
            with contextlib.suppress(OSError):
                if os.readlink(link) == namespace and link != own:
                    found.append(link)
    return found


def agents_queues():
    """System V queues of the host's that belong to the user that agents run as; others' may come and go."""
    uid = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()
    rows = [line.split() for line in Path("/proc/sysvipc/msg").read_text().splitlines()[1:]]
    return {(row[0], row[1]) for row in rows if int(row[7]) == uid}


STRIKES = [
    pytest.param(signal.SIGKILL, ("sender",), id="kill-sender"),
    pytest.param(signal.SIGKILL, ("receiver",), id="kill-receiver"),
    pytest.param(signal.SIGKILL, ("sender", "receiver"), id="kill-both"),
    pytest.param(signal.SIGSTOP, ("sender",), id="stop-sender"),
    pytest.param(signal.SIGSTOP, ("receiver",), id="stop-receiver"),
]


@pytest.mark.parametrize(("blow", "victims"), STRIKES)
@pytest.mark.parametrize("transport", QUEUES + DATAGRAMS)
def test_nothing_is_left(daemon, unix, rows, transport, blow, victims):
    queue_row(rows, transport)
    before, host = agents_queues(), os.readlink("/proc/self/ns/ipc")
    spec = {"transport": transport, "workload": "stream", "duration_seconds": 60, "threads": 2}
    experiment = unix.post(SPEC | spec)
    with contextlib.ExitStack() as stack:
        try:
            unix.wait_state(experiment["id"], ("running",))
            agents = wait_agents(daemon, 2)
            time.sleep(0.3)
            namespace, held = stack.enter_context(namespace_held(agents["sender"]))
            for role in victims:
                os.kill(agents[role], blow)
            experiment = unix.wait_final(experiment["id"])
        finally:
            unix.request("POST", f"/experiments/{experiment['id']}/cancel")
        (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
        assert run["state"] == "failed"
        assert any(role in run["error"] for role in victims), run["error"]
        assert wait_agents(daemon, 0) == {}
        assert list((daemon.base / "run/runs").iterdir()) == []
        assert agents_queues() <= before
        if transport in QUEUES:
            assert namespace != host
        if namespace != host:
            assert users_of(namespace, held) == []
    run_of(unix, {"transport": transport, "message_size": 64})
