#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often a run beside a real disturbance is flagged, how far its foreign time is from what the disturber used, and
how often a quiet run is flagged. Run by tools/bench; wants an otherwise idle machine of two CPUs or more.
"""

import argparse
import collections
import itertools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "crash"), str(TESTS / "api")]
from disturb import KINDS, Disturber  # noqa: E402
from harness import Daemon  # noqa: E402

FLAGGED_FROM = 0.05  # of a CPU in any second
FLAGGED_AT_LEAST = 0.95  # of runs with as much
FLAGGED_AT_MOST = 0.02  # of quiet ones
POINTS = 0.02  # between the run's figure and the disturber's own
QUIET = "none"
ROLES = {"stream": ("sender", "receiver"), "pingpong": ("initiator", "responder")}


def run_beside(daemon, kind, workload, transport, seconds, cpus):
    """(the run, what the disturber used in each of its seconds)"""
    roles = ("server", "client") if transport == "tcp" else ROLES[workload]
    placement = {role: {"cpu": cpu} for role, cpu in zip(roles, cpus, strict=True)}
    spec = {
        "workload": workload,
        "transport": transport,
        "message_size": 4096,
        "placement": placement,
        "duration_seconds": seconds,
        "warmup_seconds": 0.5,
    }
    with tempfile.TemporaryDirectory() as folder:
        disturber = None if kind == QUIET else Disturber(kind, cpus[1], Path(folder, "records"))
        try:
            identity = daemon.post(spec)["id"]
            time.sleep(seconds + 1.5)  # the daemon, which has no other CPU either, gets no requests meanwhile
            daemon.wait_final(identity, 60 + seconds)
        finally:
            if disturber:
                disturber.end()
        (run,) = daemon.get(f"/experiments/{identity}/runs")["items"]
    if run["state"] != "done":
        raise RuntimeError(f"run {run['id']} is {run['state']}: {run['error']}")
    listed = run["result"]["noise"]["seconds"]
    return run, [disturber.share(s["begin_ns"], s["interval_ns"]) if disturber else 0 for s in listed]


class Case:
    """All runs of one disturbance, workload and transport."""

    def __init__(self):
        self.runs = self.due = self.flagged = 0
        self.differences = []
        self.flags = collections.Counter()

    def add(self, run, used, cpu):
        noise = run["result"]["noise"]
        noisy = {flag for flag in run["flags"] if flag.startswith("noisy:")}
        self.runs += 1
        self.flags.update(noisy)
        due = max(used) >= FLAGGED_FROM
        self.due += due
        self.flagged += bool(noisy) if not any(used) else due and "noisy:foreign-cpu" in noisy
        for second, share in zip(noise["seconds"], used, strict=True):
            if share and second["cpu"] == cpu:
                self.differences.append(second["foreign_share"] - share)

    def failures(self, kind):
        if kind == QUIET:
            if self.flagged > FLAGGED_AT_MOST * self.runs:
                yield f"{self.flagged} of {self.runs} quiet runs are flagged"
            return
        if self.flagged < FLAGGED_AT_LEAST * self.due:
            yield f"{self.flagged} of {self.due} disturbed runs are flagged"
        if self.differences and abs(statistics.median(self.differences)) > POINTS:
            yield f"{100 * statistics.median(self.differences):+.1f} points from what the disturber used"


def show(kind, workload, transport, case):
    base = case.runs if kind == QUIET else case.due
    away = ""
    if case.differences:
        middle, most = statistics.median(case.differences), max(case.differences, key=abs)
        away = f"{100 * middle:+6.1f} {100 * most:+6.1f}"
    flags = " ".join(f"{flag.removeprefix('noisy:')}:{n}" for flag, n in case.flags.most_common())
    print(f"{kind:10} {workload:9} {transport:12} {case.flagged:4} of {base:4} {away:14} {flags}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, help="of each case, and of quiet ones")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--transports", default="tcp,pipe,unix-stream,shm-posix")
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is missed")
    arguments = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        print("Both ends need a CPU of their own: this machine has one.", file=sys.stderr)
        return 2
    bad = []
    daemon = Daemon()
    try:
        daemon.start()
        print(f"{'beside':10} {'workload':9} {'transport':12} {'flagged':>12} {'points: median':>14}, most; flags")
        transports = arguments.transports.split(",")
        for kind, workload, transport in itertools.product([QUIET, *KINDS], ROLES, transports):
            case = Case()
            for _ in range(arguments.runs):
                case.add(*run_beside(daemon, kind, workload, transport, arguments.seconds, cpus), cpus[1])
            show(kind, workload, transport, case)
            bad += [f"{kind}, {workload}, {transport}: {words}" for words in case.failures(kind)]
    finally:
        daemon.remove()
    print(*bad, sep="\n")
    return 1 if bad and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
