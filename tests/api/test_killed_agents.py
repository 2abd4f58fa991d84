# SPDX-License-Identifier: MIT
"""Agents that are killed or stopped in the middle of a run: the run's error names them, and nothing of it is left."""

import contextlib
import os
import pwd
import re
import signal
from pathlib import Path

import pytest
from agents import wait_agents, wait_window
from conftest import Daemon

SPEC = {"workload": "stream", "duration_seconds": 600, "warmup_seconds": 0, "verify": "checksum", "threads": 2}
NEXT = {"workload": "pingpong", "messages": 20, "duration_seconds": None}
AGENTS_USER = "games"  # on every Debian, and no other test's: what is its own on this host is of these agents


@pytest.fixture(scope="module")
def daemon():
    d = Daemon(agent_user=AGENTS_USER)
    yield d
    try:
        assert d.stop() == 0, d.log_tail()
    finally:
        d.remove()


@pytest.fixture
def rows(unix):
    return {row["name"]: row for row in unix.get("/transports")["items"]}


def check_available(rows, spec):
    facts = rows[spec["transport"]]
    if facts["available"] and "engine" in spec:
        facts = facts["engines"][spec["engine"]]
    if not facts["available"]:
        pytest.skip(facts["reason"])


@contextlib.contextmanager
def namespace_held(pid):
    """The IPC namespace of a process as its links name it, held open so that its number is not reused.

    The kernel gives the number of a freed namespace to the next one, which may be another daemon's.
    """
    fd = os.open(f"/proc/{pid}/ns/ipc", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield os.readlink(f"/proc/self/fd/{fd}"), fd
    finally:
        os.close(fd)


def entries(directory):
    """Paths in a directory; none where it is unreadable or vanishes: glob would raise for a process that ends."""
    with contextlib.suppress(OSError):
        return [f"{directory}/{name}" for name in os.listdir(directory)]
    return []


def users_of(namespace, held):
    """Links to it of every readable process and descriptor, but for the descriptor that holds it here."""
    found = []
    own = f"/proc/{os.getpid()}/fd/{held}"
    for process in (f"/proc/{name}" for name in os.listdir("/proc") if name.isdigit()):
        for link in [f"{process}/ns/ipc", *entries(f"{process}/fd")]:
            with contextlib.suppress(OSError):
                if os.readlink(link) == namespace and link != own:
                    found.append(link)
    return found


def agents_objects():
    """Objects of the agents' user that outlive a process; other users' may come and go."""
    uid = pwd.getpwnam(AGENTS_USER).pw_uid if os.geteuid() == 0 else os.geteuid()
    found = set()
    for path in entries("/dev/shm"):
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path).st_uid == uid and re.fullmatch("/dev/shm/ipclab-[0-9a-f]{16}", path):
                found.add(path)
    for kind, owner in (("msg", 7), ("sem", 4), ("shm", 7)):
        lines = [line.split() for line in Path("/proc/sysvipc", kind).read_text().splitlines()[1:]]
        found |= {f"{kind} {line[0]} {line[1]}" for line in lines if int(line[owner]) == uid}
    return found


def check_words(error, signal_number, agents, victims):
    """The daemon names the killed agent, or the other end does, whose peer has closed its socket."""
    if signal_number == signal.SIGKILL:
        words = "|".join(rf"{role} \(pid {agents[role]}\) .*SIGKILL|peer {role} " for role in victims)
        assert re.search(words, error), error
    assert any(role in error for role in victims), error


def fail_run(daemon, unix, spec, signal_number, victims):
    """A run whose agents receive the signal in their window has failed, and nothing of it is left."""
    before, host, log_from = agents_objects(), os.readlink("/proc/self/ns/ipc"), daemon.log.stat().st_size
    experiment = unix.post(SPEC | spec)
    with contextlib.ExitStack() as stack:
        try:
            unix.wait_state(experiment["id"], ("running",))
            wait_window(daemon, unix, experiment, log_from)
            agents = wait_agents(daemon, 2)
            namespace, held = stack.enter_context(namespace_held(agents["sender"]))
            os.kill(agents[victims[0]], signal_number)
            with contextlib.suppress(ProcessLookupError):  # the daemon ends the other one at once
                for role in victims[1:]:
                    os.kill(agents[role], signal_number)
            experiment = unix.wait_final(experiment["id"])
        finally:
            unix.request("POST", f"/experiments/{experiment['id']}/cancel")
        (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
        assert run["state"] == "failed"
        check_words(run["error"], signal_number, agents, victims)
        assert wait_agents(daemon, 0) == {}
        assert list((daemon.base / "run/runs").iterdir()) == []
        assert agents_objects() <= before
        if spec["transport"].startswith("msgq"):
            assert namespace != host
        if namespace != host:
            assert users_of(namespace, held) == []


def check_next_run(unix, spec):
    wanted = {name: value for name, value in (SPEC | spec | NEXT).items() if value is not None}
    experiment = unix.wait_final(unix.post(wanted)["id"])
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    assert run["state"] == "done", run["error"]


FAULTS = [
    pytest.param(signal.SIGKILL, ("sender",), id="kill-sender"),
    pytest.param(signal.SIGKILL, ("receiver",), id="kill-receiver"),
    pytest.param(signal.SIGKILL, ("sender", "receiver"), id="kill-both"),
    pytest.param(signal.SIGSTOP, ("sender",), id="stop-sender"),
    pytest.param(signal.SIGSTOP, ("receiver",), id="stop-receiver"),
]


@pytest.mark.parametrize(("signal_number", "victims"), FAULTS)
@pytest.mark.parametrize("transport", ["msgq-sysv", "msgq-posix", "unix-dgram", "unix-seqpacket"])
def test_nothing_is_left(daemon, unix, rows, transport, signal_number, victims):
    spec = {"transport": transport}
    check_available(rows, spec)
    fail_run(daemon, unix, spec, signal_number, victims)
    check_next_run(unix, spec | {"message_size": 64})


KILLED = [
    pytest.param({"transport": "shm-posix"}, id="shm-posix"),
    pytest.param({"transport": "shm-sysv"}, id="shm-sysv"),
    pytest.param({"transport": "mmap-file"}, id="mmap-file"),
    pytest.param({"transport": "mmap-anonymous"}, id="mmap-anonymous"),
    pytest.param({"transport": "file"}, id="file"),
    pytest.param({"transport": "unix-stream"}, id="unix-stream"),
    pytest.param({"transport": "unix-stream", "engine": "io_uring"}, id="io_uring"),
    pytest.param({"transport": "pipe", "copy_mode": "zero-copy"}, id="vmsplice"),
]


@pytest.mark.parametrize("victim", ["sender", "receiver"])
@pytest.mark.parametrize("spec", KILLED)
def test_nothing_is_left_of_a_killed_end(daemon, unix, rows, spec, victim):
    check_available(rows, spec)
    fail_run(daemon, unix, spec, signal.SIGKILL, (victim,))
    check_next_run(unix, spec)


def test_nothing_is_left_of_a_stopped_forked_peer(daemon, unix, rows):
    """The second of two agents that share memory by descent, which the first has forked."""
    spec = {"transport": "mmap-anonymous"}
    check_available(rows, spec)
    fail_run(daemon, unix, spec, signal.SIGSTOP, ("receiver",))
    check_next_run(unix, spec)
