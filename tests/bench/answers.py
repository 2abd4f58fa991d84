#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the answers cost that are drawn from many runs: /results, /findings, /advice and /compare of ten thousand, and
their bundle, which another daemon takes in.

Prints the first time and the median of those after it, and the daemon's resident memory. The median and the highest
memory have limits, which store.py takes from here. Run by tools/bench.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import manyruns
from ipclabtest.daemon import Daemon as OtherDaemon

from daemon import resident_bytes

HOUR = 3600
ANSWERS_MS = dict.fromkeys(("results", "findings", "compare", "advice"), 50)
PAGES_MS = dict.fromkeys(("experiments", "runs", "samples"), 5)
RESIDENT_MIB = 40


def add_arguments(parser):
    manyruns.add_arguments(parser)
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is missed")


def show(daemon, paths, times):
    """Prints what each takes the first time and, as a median, after it, and the memory that the daemon then has.
    Returns a line for each that takes too long after the first time."""
    missed = []
    for path in paths:
        once = manyruns.milliseconds(daemon, path)
        again = statistics.median(manyruns.milliseconds(daemon, path) for _ in range(times))
        resident = resident_bytes(daemon.process.pid) / 2**20
        print(f"{path:65} first {once:9.1f} ms, then {again:7.1f} ms  ({resident:.1f} MiB resident)", flush=True)
        limit = (ANSWERS_MS | PAGES_MS).get(path.partition("?")[0].rpartition("/")[2])
        if limit and again >= limit:
            missed.append(f"{path} takes {again:.1f} ms after the first time: the limit is {limit} ms")
    return missed


def highest_resident(daemon):
    status = Path("/proc", str(daemon.process.pid), "status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def show_highest(daemon, what):
    """Prints it, and returns a line if it is too much."""
    most = highest_resident(daemon)
    print(f"{what}: {most:.1f} MiB resident at most", flush=True)
    return [f"{what}: {most:.1f} MiB resident: the limit is {RESIDENT_MIB} MiB"] if most >= RESIDENT_MIB else []


def judge(missed, check):
    """The exit status."""
    for line in missed:
        print(line)
    return 1 if missed and check else 0


def carry(daemon, experiment):
    """The bundle, from this daemon to another one. Returns a line if that one needs too much memory."""
    other = OtherDaemon()  # of a class that removes no other one's processes
    try:
        other.start()
        began = time.monotonic()
        answer = daemon.client().request("GET", f"/experiments/{experiment}/bundle", timeout=HOUR)
        assert answer.status == 200, answer
        made = time.monotonic() - began
        digest = answer.headers["Content-Disposition"].rpartition("-")[2][:64]
        began, gzip = time.monotonic(), {"Content-Type": "application/gzip"}
        taken = other.client().request("POST", f"/bundles?sha256={digest}", answer.body, gzip, timeout=HOUR)
        assert taken.status == 201, taken
        print(
            f"a bundle of {len(answer.body) / 2**20:.1f} MiB: made in {made:.1f} s, taken in within "
            f"{time.monotonic() - began:.1f} s"
        )
        return show_highest(other, "the daemon that takes the bundle in")
    finally:
        other.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    arguments = parser.parse_args()
    with manyruns.removed_daemon() as daemon:
        many, runs, _ = manyruns.make_experiment(daemon, arguments.repetitions)
        print(f"{runs} runs; before: {resident_bytes(daemon.process.pid) / 2**20:.1f} MiB resident")
        paths = (
            f"/experiments/{many}/results",
            f"/compare?experiment={many}&axis=transport&baseline=pipe&candidate=fifo",
            f"/experiments/{many}/findings",
            "/advice?message_size=4096",
            "/advice?message_size=3000",
        )
        missed = show(daemon, paths, arguments.times)
        missed += carry(daemon, many)
        missed += show_highest(daemon, "the daemon that answers and makes the bundle")
    return judge(missed, arguments.check)


if __name__ == "__main__":
    sys.exit(main())
