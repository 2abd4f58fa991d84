# SPDX-License-Identifier: MIT
"""Runs, readers and deletions one after another: after all of them the daemon has as much memory and as many
descriptors as in the middle, and nothing is left behind.

IPCLAB_SOAK_RUNS runs, and as many more as end within IPCLAB_SOAK_SECONDS.
"""

import os
import random
import re
import time
from pathlib import Path

from harness import wait_for
from ipclabtest import PATIENCE_SECONDS

RUNS = int(os.environ.get("IPCLAB_SOAK_RUNS", 60))
SECONDS = float(os.environ.get("IPCLAB_SOAK_SECONDS", 0))
TOGETHER = 10  # runs of an experiment
STORED = 8  # experiments: older ones are deleted
GROWTH_BYTES = 4 << 20  # caches of SQLite and the allocator, which fill whenever a run comes by
SPEC = {"messages": 500, "warmup_seconds": 0, "repetitions": TOGETHER}
SPECS = [
    {"transport": "pipe"},
    {"transport": "fifo", "message_size": 64},
    {"transport": "tcp", "threads": 2},
    {"transport": "unix-stream", "workload": "pingpong"},
    {"transport": "shm-posix"},
    {"transport": "msgq-sysv"},
    {"workload": "context-switch"},
]


def use_of(daemon):
    """(resident bytes, descriptors, threads) once it is at rest: what a reader had is given back soon after it."""
    directory = Path("/proc", str(daemon.process.pid))

    def count():
        return len(os.listdir(directory / "fd"))

    lowest = count()
    for _ in range(20):
        time.sleep(0.05)
        lowest = min(lowest, count())
    pages = int((directory / "statm").read_text().split()[1])
    threads = int(re.search(r"^Threads:\s*(\d+)", (directory / "status").read_text(), re.MULTILINE)[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), lowest, threads


def work(daemon, rng, stored):
    """An experiment, those who read it, and a deletion. Its runs."""
    experiment = daemon.wait_final(daemon.post(SPEC | rng.choice(SPECS))["id"], 4 * PATIENCE_SECONDS)
    assert experiment["error"] is None and experiment["state"] == "done", experiment["error"]
    stored.append(experiment["id"])
    for target in ("results", "runs", "samples", "findings"):
        daemon.get(f"/experiments/{experiment['id']}/{target}")
    if len(stored) > STORED:
        status, body = daemon.request("DELETE", f"/experiments/{stored.pop(0)}")
        assert status == 204, body
    return experiment["progress"]["runs_done"]


def test_memory_and_descriptors_stay_flat(daemon):
    rng = random.Random(6)
    stored, done, began = [], 0, time.monotonic()
    while done < RUNS / 5:  # until the caches have what they hold
        done += work(daemon, rng, stored)
    uses = [use_of(daemon)]
    middle = None
    while middle is None or done < RUNS or time.monotonic() - began < SECONDS:
        done += work(daemon, rng, stored)
        if middle is None and done >= RUNS / 2 and time.monotonic() - began >= SECONDS / 2:
            middle = use_of(daemon)
            uses.append(middle)
    uses.append(use_of(daemon))
    words = ", ".join(f"{rss / 2**20:.1f} MiB and {fds} descriptors" for rss, fds, _ in uses)
    print(f"counted: {done} runs in {time.monotonic() - began:.0f} s; at the begin, in the middle, at the end: {words}")
    wait_for(lambda: use_of(daemon)[1] <= middle[1], PATIENCE_SECONDS, f"{middle[1]} descriptors again")
    assert uses[-1][2] <= middle[2], uses
    assert uses[-1][0] <= middle[0] + GROWTH_BYTES, uses
