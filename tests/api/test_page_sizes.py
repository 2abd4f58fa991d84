# SPDX-License-Identifier: MIT
"""The sizes of pages in a run's proof, against another reading of the agents' smaps while the run is under way, under
each setting of the host that decides them."""

import contextlib
import os
import re
import time
from pathlib import Path

import pytest
from agents import wait_agents, wait_window

THP = Path("/sys/kernel/mm/transparent_hugepage")
PAGE = os.sysconf("SC_PAGE_SIZE")
MESSAGE = 6 * 2**20
HEADER = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)")

pytestmark = pytest.mark.skipif(
    not os.access(THP / "enabled", os.W_OK), reason=f"changes {THP}, and may not, or the kernel has none"
)


@contextlib.contextmanager
def setting(name, word):
    path = THP / name
    before = re.search(r"\[(.*)\]", path.read_text())[1]
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


def buffers_in(found):
    """Anonymous mappings between two single inaccessible pages."""
    total = {}
    for before, one, behind in zip(found, found[1:], found[2:], strict=False):
        if all(m[0] == PAGE and m[1].startswith("---") and not m[2] for m in (before, behind)) and one[1] == "rw-p":
            total = add(total, bytes_of(one[3]))
    return total


def rings_in(found):
    total = {}
    for _, permissions, file, fields in found:
        if permissions == "rw-s" and ("/dev/shm/ipclab" in file or file.startswith("/SYSV")):
            total = add(total, bytes_of(fields))
    return total


def measure(daemon, unix, spec):
    """The run, and page sizes by role and kind as they are seen from outside in its window."""
    log_from = daemon.log.stat().st_size
    experiment = unix.post(spec | {"duration_seconds": 1.5, "warmup_seconds": 0})
    wait_window(daemon, unix, experiment, log_from)
    time.sleep(0.5)
    seen = {}
    for role, pid in wait_agents(daemon, 2).items():
        found = mappings(pid)
        seen[role] = {"buffer": buffers_in(found), "ring": rings_in(found)}
    experiment = unix.wait_final(experiment["id"])
    assert experiment["state"] == "done", experiment
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    return run, seen


def reported(agent, what):
    rows = [row for row in agent["proof"]["page_sizes"] if row["what"] == what]
    return rows[0]["bytes"] if rows else {}


@pytest.mark.parametrize("word", ["always", "madvise", "never"])
def test_buffers(daemon, unix, word):
    with setting("enabled", word):
        run, seen = measure(daemon, unix, {"transport": "pipe", "message_size": MESSAGE})
    for agent in run["agents"]:
        assert reported(agent, "buffer") == seen[agent["role"]]["buffer"]
        assert sum(reported(agent, "buffer").values()) >= MESSAGE
        assert "stack" in {row["what"] for row in agent["proof"]["page_sizes"]}
        if word != "always":
            assert list(reported(agent, "buffer")) == [str(PAGE)]


@pytest.mark.parametrize("word", ["always", "within_size", "advise", "never"])
@pytest.mark.parametrize("transport", ["shm-posix", "shm-sysv"])
def test_rings(daemon, unix, transport, word):
    spec = {"transport": transport, "message_size": 65536, "transport_options": {"ring_bytes": 8 * 2**20}}
    with setting("shmem_enabled", word):
        run, seen = measure(daemon, unix, spec)
    for agent in run["agents"]:
        ring = reported(agent, "ring")
        assert ring == seen[agent["role"]]["ring"]
        assert sum(ring.values()) > 0
        most = max(ring, key=ring.get)
        assert agent["effective"]["page_bytes"] == int(most)
        assert agent["effective"]["huge_pages"] == (int(most) > PAGE)
        if word in ("advise", "never"):
            assert list(ring) == [str(PAGE)]
