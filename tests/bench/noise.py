#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often a run beside a real disturbance is flagged, how far its foreign time is from what the disturber used, and
how often a quiet run has a flag that doubts it. Run by tools/bench; wants an otherwise idle machine of two CPUs or
more.

What the disturber used is its own CPU time: the kernel adds the same nanoseconds to it and to the account of its cgroup
(cpuacct; usage_usec of cpu.stat in version 2). Of a stop and of a quota, which use none, it is the time that they took.
What this machine cannot make is listed as unavailable, with the reason.

Where the kernel has cpuacct, foreign time is checked against that instead, of all tasks on the CPU less those of a
cgroup that has the daemon and its agents: whatever else runs on the machine is in both figures. Of each combination's
seconds at most one in twenty may be further away than the limit.
"""

import argparse
import bisect
import collections
import contextlib
import itertools
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "crash"), str(TESTS / "api")]
from disturb import FOREIGN, KINDS, Disturber, QuotaGroup, UnavailableError, require  # noqa: E402
from harness import FINAL, Daemon  # noqa: E402

FLAGGED_FROM = 0.05  # of a CPU in any second
FLAGGED_AT_LEAST = 0.95  # of runs with as much
FLAGGED_AT_MOST = 0.02  # of quiet ones
RUNS_TO_JUDGE = 20  # of one combination: one that has no flag is still 95 of 100
POINTS = 0.02  # between the run's figure and the disturber's own, in nineteen of twenty seconds
QUIET = "none"
NOISY = "noisy:"
DOUBTS = (
    NOISY,
    "environment-changed:",
    "machine_state_changed",
    "machine_state_unknown",
    "not_observed",
    "no_steady_state",
)
WARMUP = 0.5
TRANSPORTS = ["tcp", "pipe", "unix-stream", "shm-posix"]
WORKLOADS = {
    "stream": {"workload": "stream"},
    "pingpong": {"workload": "pingpong"},
    "open-loop": {"workload": "pingpong", "rate": 5000},
}
ROLES = {"stream": ("sender", "receiver"), "pingpong": ("initiator", "responder")}


class Account:
    """What others than the processes that join it run on each CPU: root's cpuacct less that of a cgroup below it."""

    FOLDERS = [Path("/sys/fs/cgroup", name) for name in ("cpuacct", "cpu,cpuacct", "cpuacct,cpu")]
    FILE = "cpuacct.usage_percpu"
    EVERY = 0.1  # each look takes a measured CPU away for some 0.2 ms: a hundred a second would themselves be flagged
    READ_WITHIN_NS = 1_000_000
    NEAR_NS = 250_000_000  # a record, to the beginning or the end of a second

    def __init__(self, root):
        self.root, self.group = root, root / f"ipclab-noise-{os.getpid()}"
        self.group.mkdir()
        self.records = []  # (CLOCK_MONOTONIC, nanoseconds of each CPU)
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.record)
        self.thread.start()

    @classmethod
    def of_this_machine(cls):
        """None where there is none, or it cannot be had; a container is shown a cgroup that is not the root."""
        for root in cls.FOLDERS:
            if (root / "cgroup.sane_behavior").exists() and os.access(root, os.W_OK):
                return cls(root)
        return None

    def join(self):
        """As preexec of a process."""
        (self.group / "cgroup.procs").write_text("0")

    def record(self):
        while not self.ending.wait(self.EVERY):
            before = time.monotonic_ns()
            every, own = ([int(n) for n in (at / self.FILE).read_text().split()] for at in (self.root, self.group))
            after = time.monotonic_ns()
            if after - before < self.READ_WITHIN_NS:
                self.records.append((before, [a - b for a, b in zip(every, own, strict=True)]))

    def at(self, ns, cpu):
        """Between two records that are near; None where there are none."""
        i = bisect.bisect_left(self.records, (ns, []))
        if not 0 < i < len(self.records):
            return None
        (since, before), (until, after) = self.records[i - 1], self.records[i]
        if max(ns - since, until - ns) > self.NEAR_NS:
            return None
        return before[cpu] + (after[cpu] - before[cpu]) * (ns - since) / (until - since)

    def share(self, begin_ns, interval_ns, cpu):
        ends = [self.at(ns, cpu) for ns in (begin_ns, begin_ns + interval_ns)]
        return None if None in ends else (ends[1] - ends[0]) / interval_ns

    def end(self):
        self.ending.set()
        self.thread.join()
        self.group.rmdir()


def wait_quietly(daemon, identity, seconds):
    """Until the end of an experiment that takes so long or more. The daemon has no other CPU than those measured, so a
    request takes time from a run: one in two seconds, after the runs' own time."""
    deadline = time.monotonic() + 60 + 2 * seconds
    time.sleep(seconds)
    while daemon.experiment(identity)["state"] not in FINAL:
        if time.monotonic() > deadline:
            raise TimeoutError(f"experiment {identity} has not ended")
        time.sleep(2)


def runs_beside(daemon, target, kind, workload, transport, n, seconds, cpus):
    """n times (the run, what the disturber took in each of its seconds), one run right after the other."""
    fields = WORKLOADS[workload]
    roles = ("server", "client") if transport == "tcp" else ROLES[fields["workload"]]
    placement = {role: {"cpu": cpu} for role, cpu in zip(roles, cpus, strict=True)}
    spec = fields | {
        "transport": transport,
        "message_size": 4096,
        "placement": placement,
        "duration_seconds": seconds,
        "warmup_seconds": WARMUP,
        "repetitions": n,
    }
    with tempfile.TemporaryDirectory() as folder:
        disturber = None if kind == QUIET else Disturber(kind, cpus[1], Path(folder, "records"), target)
        try:
            identity = daemon.post(spec)["id"]
            wait_quietly(daemon, identity, n * (seconds + WARMUP))
        finally:
            if disturber:
                disturber.end()
        for run in daemon.get(f"/experiments/{identity}/runs?limit=200")["items"]:
            listed = seconds_of(run) if run["state"] == "done" else []
            yield run, [disturber.share(s["begin_ns"], s["interval_ns"]) if disturber else 0 for s in listed]


def seconds_of(run):
    """None of a run that was not observed."""
    return (run["result"]["noise"] or {"seconds": []})["seconds"]


def percentile(values, share):
    """The nearest rank: of five values the 95th percentile is the greatest."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


class Case:
    """All runs of one disturbance, or of it with one workload and transport."""

    def __init__(self, kind):
        self.kind = kind
        self.runs = self.due = self.flagged = 0
        self.errors = []
        self.shares = []  # in a second: of the run's figure, and of what the disturber used
        self.flags = collections.Counter()

    def add(self, run, used, cpu, account):
        if run["state"] != "done":
            self.errors.append(f"run {run['id']} is {run['state']}: {run['error']}")
            return
        noisy = {flag for flag in run["flags"] if flag.startswith(NOISY)}
        self.runs += 1
        self.flags.update(flag for flag in run["flags"] if flag.startswith(DOUBTS))
        due = max(used, default=0) >= FLAGGED_FROM
        self.due += due
        self.flagged += bool(noisy) if self.kind == QUIET else due and KINDS[self.kind].flag in noisy
        for second, share in zip(seconds_of(run), used, strict=True):
            if account:
                share = account.share(second["begin_ns"], second["interval_ns"], second["cpu"])
                if share is not None:  # the daemon's, of which only the sum over all CPUs is known, is in one of them
                    most = second["foreign_share"]
                    self.shares.append((min(max(share, most - second["daemon_share"]), most), share))
            elif self.kind in FOREIGN and share and second["cpu"] == cpu:
                self.shares.append((second["foreign_share"], share))

    @property
    def differences(self):
        return [seen - used for seen, used in self.shares]

    @property
    def far(self):
        """Nineteen of twenty seconds are as near to what others used."""
        return percentile([abs(points) for points in self.differences], 0.95)

    def failures(self):
        yield from self.errors
        if self.differences and self.far > POINTS:
            yield f"{100 * self.far:.1f} points from what others used, at the 95th percentile of the seconds"
        if self.kind == QUIET:
            if self.flagged > FLAGGED_AT_MOST * self.runs:
                yield f"{self.flagged} of {self.runs} quiet runs are flagged"
        elif self.flagged < FLAGGED_AT_LEAST * self.due:
            yield f"{self.flagged} of {self.due} disturbed runs have {KINDS[self.kind].flag}"


def show(workload, transport, case):
    """Flagged as noisy of those that had to be, or of all quiet ones; both shares in per cent; how many runs had each
    flag."""
    base = case.runs if case.kind == QUIET else case.due
    away = ""
    if case.differences:
        middle, most = statistics.median(case.differences), max(case.differences, key=abs)
        seen, used = (100 * statistics.median(column) for column in zip(*case.shares, strict=True))
        away = f"{seen:7.1f} {used:6.1f} {100 * middle:+6.1f} {100 * case.far:6.1f} {100 * most:+6.1f}"
    flags = " ".join(f"{flag.removeprefix(NOISY)}:{n}" for flag, n in case.flags.most_common())
    print(f"{case.kind:10} {workload:9} {transport:12} {case.flagged:4} of {base:4} {away:35} {flags}", flush=True)


def show_rates(case):
    """The share of each flag apart: the limit is that of all that are noisy, together."""
    for flag, n in case.flags.most_common():
        limit = f", at most {FLAGGED_AT_MOST:.0%} of all such" if flag.startswith(NOISY) else ""
        print(f"{case.kind:10} {flag}: {n} of {case.runs} runs, {n / case.runs:.1%}{limit}", flush=True)


@contextlib.contextmanager
def daemon_for(kind):
    """A daemon, what such a disturber is aimed at, and the account of others; a daemon in a cgroup with a quota has
    none, as the two may be of one hierarchy."""
    needs = None if kind == QUIET else KINDS[kind].needs
    group = QuotaGroup.make() if needs == "group" else None
    account = None if group else Account.of_this_machine()
    joins = group or account
    daemon = Daemon(preexec=joins.join if joins else None)
    try:
        daemon.start()
        yield daemon, {None: None, "group": group and group.path, "daemon": daemon.process.pid}[needs], account
    finally:
        daemon.remove()
        if group:
            group.remove()
        if account:
            account.end()


def available(kind, cpu):
    """Prints why not."""
    try:
        if kind != QUIET:
            require(kind, cpu, tempfile.gettempdir())
    except UnavailableError as reason:
        print(f"{kind:10} unavailable: {reason}", flush=True)
        return False
    return True


def measure_kind(kind, workloads, transports, arguments, cpus):
    """What is wrong with it, a line for each. The limits hold for a kind as a whole: a few runs of each combination
    decide nothing."""
    n = arguments.quiet_runs if kind == QUIET else arguments.runs
    every = Case(kind)
    with daemon_for(kind) as (daemon, target, account):
        for workload, transport in itertools.product(workloads, transports):
            case = Case(kind)
            for run, used in runs_beside(daemon, target, kind, workload, transport, n, arguments.seconds, cpus):
                case.add(run, used, cpus[1], account)
                every.add(run, used, cpus[1], account)
            show(workload, transport, case)
            if n >= RUNS_TO_JUDGE:
                yield from (f"{kind}, {workload}, {transport}: {words}" for words in case.failures())
    show("all", "", every)
    if kind == QUIET:
        show_rates(every)
    yield from (f"{kind}: {words}" for words in every.failures())


def main():
    cells = {"beside": [QUIET, *KINDS], "workloads": list(WORKLOADS), "transports": TRANSPORTS}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, help="beside each disturbance, of each combination")
    parser.add_argument("--quiet-runs", type=int, default=100, help="of each combination")
    parser.add_argument("--seconds", type=float, default=3)
    for name, values in cells.items():
        parser.add_argument(f"--{name}", default=",".join(values))
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is missed")
    arguments = parser.parse_args()
    chosen = [getattr(arguments, name).split(",") for name in cells]
    for name, words in zip(cells, chosen, strict=True):
        unknown = set(words) - set(cells[name])
        if unknown:
            parser.error(f"--{name}: there is no {', '.join(sorted(unknown))}")
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        print("Both ends need a CPU of their own: this machine has one.", file=sys.stderr)
        return 2
    bad = []
    kinds, workloads, transports = chosen
    columns = f"{'ipclab':>7} {'used':>6} {'points: median, p95, most':>20} flags"
    print(f"{'beside':10} {'workload':9} {'transport':12} {'noisy':>12} {columns}")
    for kind in kinds:
        if available(kind, cpus[1]):
            bad += measure_kind(kind, workloads, transports, arguments, cpus)
    print(*bad, sep="\n")
    return 1 if bad and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
