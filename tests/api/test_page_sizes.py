# SPDX-License-Identifier: MIT
"""The sizes of pages in a run's proof, against another reading of the agents' smaps while the run is under way, over
every transport that the host offers and under each setting of the host that decides them."""

import contextlib
import os
import re
import time
from pathlib import Path

import pytest
from agents import START_SECONDS, wait_agents
from client import PATIENCE_SECONDS

THP = Path("/sys/kernel/mm/transparent_hugepage")
PAGE = os.sysconf("SC_PAGE_SIZE")
MESSAGE = 6 * 2**20  # a buffer has room for huge pages, and a ring too
RINGS = re.compile(
    r"/dev/shm/(#\d+|ipclab-[0-9a-f]{16}) .*|/SYSV.*|/dev/zero .*|/memfd:addresses .*|.*/mapping \(deleted\)"
)
# Whose messages lie in no memory that both ends share, nor do their semaphores.
NOT_SHARED = {"pipe", "fifo", "unix-stream", "unix-dgram", "unix-seqpacket", "tcp", "msgq-sysv", "msgq-posix"}
# The settings of private and of shared memory, and without which transports. Each decides about its own memory alone:
# once a word is enough, and words of shared memory that are left over are for transports that have some.
SETTINGS = [
    ("always", "always", set()),
    ("madvise", "within_size", set()),
    ("never", "advise", set()),
    ("always", "never", NOT_SHARED),
    ("madvise", "deny", NOT_SHARED),
    ("never", "force", NOT_SHARED),
]
HEADER = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)")


@contextlib.contextmanager
def setting(name, word):
    path = THP / name
    if not os.access(path, os.W_OK):
        pytest.skip(f"changes {path}, and may not, or the kernel has none")
    words = path.read_text()
    if word not in words.replace("[", "").replace("]", "").split():
        pytest.skip(f"{path} of this kernel has no {word}")
    before = re.search(r"\[(.*)\]", words)[1]
    try:
        path.write_text(word)
        yield
    finally:
        path.write_text(before)


def mappings(pid):
    """(length, permissions, file, fields in bytes) of each, in their order."""
    found = []
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if match := HEADER.fullmatch(line):
            low, high, permissions, file = match.groups()
            found.append((int(high, 16) - int(low, 16), permissions, file, {}))
        elif line.endswith(" kB"):
            name, value, _ = line.split()
            found[-1][3][name.rstrip(":")] = int(value) * 1024
    return found


def bytes_of(fields):
    huge = fields["AnonHugePages"] + fields["ShmemPmdMapped"] + fields["FilePmdMapped"]
    sizes = {str(PAGE): fields["Rss"] - huge, str(pmd_bytes()): huge}
    return {size: n for size, n in sizes.items() if n}


def pmd_bytes():
    return int((THP / "hpage_pmd_size").read_text())


def add(one, other):
    return {size: one.get(size, 0) + other.get(size, 0) for size in sorted(one.keys() | other.keys(), key=int)}


def is_guard(mapping):
    """One inaccessible page, or that of a neighbour with it."""
    length, permissions, file, _ = mapping
    return length in (PAGE, 2 * PAGE) and permissions == "---p" and not file


def buffers_in(found):
    """Anonymous mappings between two guards."""
    total = {}
    for before, one, behind in zip(found, found[1:], found[2:], strict=False):
        if is_guard(before) and is_guard(behind) and one[1] == "rw-p" and not one[2]:
            total = add(total, bytes_of(one[3]))
    return total


def shared_in(found, name):
    total = {}
    for _, permissions, file, fields in found:
        if permissions == "rw-s" and name.fullmatch(file):
            total = add(total, bytes_of(fields))
    return total


def kinds_in(found):
    return {
        "buffer": buffers_in(found),
        "ring": shared_in(found, RINGS),
        "semaphores": shared_in(found, re.compile(r"/memfd:signals .*")),
    }


def wait_ready(daemon, run, log_from):
    """Until its agents have been given the start, and it has come."""
    line, deadline = f"run {run['id']}: agents are ready ".encode(), time.monotonic() + PATIENCE_SECONDS
    while line not in daemon.log.read_bytes()[log_from:]:
        assert time.monotonic() < deadline, daemon.log_tail()
        time.sleep(0.01)
    time.sleep(2 * START_SECONDS)


def measure(daemon, unix, spec):
    """Each run, with (process, page sizes by kind) by role as they are seen from outside in its window."""
    log_from = daemon.log.stat().st_size
    experiment = unix.post(spec | {"duration_seconds": 1, "warmup_seconds": 0, "rate": 50})
    seen = []
    for run in unix.items(f"/experiments/{experiment['id']}/runs"):
        wait_ready(daemon, run, log_from)
        seen.append({role: (pid, kinds_in(mappings(pid))) for role, pid in wait_agents(daemon, 2).items()})
    experiment = unix.wait_final(experiment["id"])
    assert experiment["state"] == "done", experiment
    return zip(unix.items(f"/experiments/{experiment['id']}/runs"), seen, strict=True)


def reported(agent, what):
    rows = [row for row in agent["proof"]["page_sizes"] if row["what"] == what]
    return rows[0]["bytes"] if rows else {}


def decides(name):
    """Whether the setting of all sizes is that of the size that smaps shows."""
    own = THP / f"hugepages-{pmd_bytes() // 1024}kB" / name
    return not own.exists() or "[inherit]" in own.read_text()


def check_agent(agent, transport, seen, private, shared):
    pid, kinds = seen
    assert pid == agent["pid"], "the run had ended before it was looked at"
    buffer, ring, semaphores = (reported(agent, what) for what in ("buffer", "ring", "semaphores"))
    assert (buffer, ring) == (kinds["buffer"], kinds["ring"])
    assert semaphores in ({}, kinds["semaphores"])  # one of both ends reports them
    assert transport not in NOT_SHARED or not (ring or kinds["semaphores"])
    assert "stack" in {row["what"] for row in agent["proof"]["page_sizes"]}
    assert (reported(agent, "page_cache") is None) == ("page_cache" in {row["what"] for row in agent["proof"]["pages"]})
    if transport == "pipe":
        assert sum(buffer.values()) >= MESSAGE
    if private != "always" and decides("enabled"):
        assert list(buffer) in ([], [str(PAGE)])
    if transport not in ("shm-posix", "shm-sysv"):
        return
    most = max(ring, key=ring.get)
    assert agent["effective"]["page_bytes"] == int(most)
    assert agent["effective"]["huge_pages"] == (int(most) > PAGE)
    if shared in ("advise", "never", "deny") and decides("shmem_enabled"):
        assert list(ring) == [str(PAGE)]


@pytest.mark.parametrize(("private", "shared", "without"), SETTINGS)
def test_page_sizes_are_those_of_smaps(daemon, unix, private, shared, without):
    available = {row["name"] for row in unix.get("/transports")["items"] if row["available"]}
    offered = sorted(available - without)
    spec = {"transport": offered, "message_size": MESSAGE}
    if not without:  # those that chunk are among these
        spec["chunk"] = True
    with setting("enabled", private), setting("shmem_enabled", shared):
        measured = list(measure(daemon, unix, spec))
    assert sorted(run["point"]["transport"] for run, _ in measured) == sorted(offered)
    for run, seen in measured:
        for agent in run["agents"]:
            check_agent(agent, run["point"]["transport"], seen[agent["role"]], private, shared)
