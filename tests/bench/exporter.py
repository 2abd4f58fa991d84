#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the fleet's exporter costs a run during which its timer fires: it then reads /health once, and ends. Prints the
CPU time of the exporter, and of the daemon that answers it, beside that of the run: a busy machine changes it little.
With --pairs also runs with and without that, in pairs of a random order, and the ratio of their figures with its 95 %
interval, which wants an otherwise idle machine and is undecided on one that is not. Run by tools/bench.

Under systemd not even that happens where runs have cgroups: the unit's condition finds the run's.
"""

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "crash")]
from harness import Daemon  # noqa: E402
from paired import FIGURES, figure_of, ratio_line  # noqa: E402

EXPORT = TESTS.parent / "fleet/ipclab-export"
SHARE = 0.005  # of the CPU time of a run
LIMIT = 1 - SHARE
AGENTS = 2
ROUND_SECONDS = 1
SET_UP_SECONDS = 1.2  # before the window, the warm-up included


def as_the_unit():
    """Nice=19 and CPUSchedulingPolicy=batch, as ipclab-export.service has them."""
    os.nice(19)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def fire(daemon, experiment):
    """The exporter, which must have found the run."""
    command = ["/usr/bin/python3", EXPORT, "--socket", daemon.socket, "--state-dir", daemon.state]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=as_the_unit)
    if f"nothing exported: experiment {experiment} is running" not in done.stderr:
        raise RuntimeError(f"the exporter did not find the run: {done.stdout}{done.stderr}")


def cpu_seconds_of(pid):
    """The CPU time of all threads, in nanoseconds' resolution."""
    spent = (Path(task, "schedstat").read_text().split()[0] for task in Path(f"/proc/{pid}/task").iterdir())
    return sum(map(int, spent)) / 1e9


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_time(daemon, seconds, rounds):
    """Prints a line; whether the limit is missed. Each round has a second of a run in which the exporter starts once,
    and one in which it does not."""
    experiment = daemon.post({"transport": "pipe", "duration_seconds": 3600, "warmup_seconds": 0})["id"]
    daemon.wait_running(experiment)
    exporter, answer = [], []
    for _ in range(rounds):
        spent = {}
        for fires in (False, True):
            until, before = time.monotonic() + ROUND_SECONDS, children_seconds()
            began = cpu_seconds_of(daemon.process.pid)
            if fires:
                fire(daemon, experiment)
                exporter.append(children_seconds() - before)
            time.sleep(max(0, until - time.monotonic()))
            spent[fires] = cpu_seconds_of(daemon.process.pid) - began
        answer.append(spent[True] - spent[False])
    daemon.request("POST", f"/experiments/{experiment}/cancel")
    daemon.wait_final(experiment)
    mean = [statistics.mean(exporter), max(0, statistics.mean(answer))]
    share = sum(mean) / (AGENTS * seconds)
    print(
        f"CPU time of a start: exporter {1e3 * mean[0]:.1f} ms, daemon {1e3 * mean[1]:.1f} ms; "
        f"{share:.2%} of a run of {seconds:g} s on {AGENTS} CPUs, limit {SHARE:.1%}: "
        f"{'reached' if share <= SHARE else 'missed'} ({rounds} starts)",
        flush=True,
    )
    return share > SHARE


def measure(daemon, workload, seconds, fires):
    """The figure of one run, more being better."""
    spec = {"workload": workload, "transport": "pipe", "duration_seconds": seconds, "warmup_seconds": 1}
    began = time.monotonic()
    experiment = daemon.post(spec)["id"]
    for i in range(fires):
        at = began + SET_UP_SECONDS + (i + 0.3) * seconds / fires
        time.sleep(max(0, at - time.monotonic()))
        fire(daemon, experiment)
    # no request of this program falls into the window
    time.sleep(max(0, began + SET_UP_SECONDS + seconds + 0.5 - time.monotonic()))
    daemon.wait_final(experiment, 60 + seconds)
    (run,) = daemon.get(f"/experiments/{experiment}/runs")["items"]
    if run["state"] != "done":
        raise RuntimeError(f"run {run['id']} is {run['state']}: {run['error']}")
    return figure_of(run)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0].splitlines()[0])
    parser.add_argument("--pairs", type=int, default=0, help="of runs, of each workload (%(default)s)")
    parser.add_argument("--starts", type=int, default=30, help="of the exporter, for its CPU time (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="of a run")
    parser.add_argument("--fires", type=int, default=1, help="of the timer in a run")
    parser.add_argument("--check", action="store_true", help="exit 1 when the limit is missed")
    arguments = parser.parse_args()
    chance, daemon = random.Random(17), Daemon()
    try:
        daemon.start()
        missed = cpu_time(daemon, arguments.seconds, arguments.starts)
        for workload in FIGURES if arguments.pairs else ():
            ratios = []
            for _ in range(arguments.pairs):
                pair = {}
                for fires in chance.sample([0, arguments.fires], 2):
                    pair[fires] = measure(daemon, workload, arguments.seconds, fires)
                ratios.append(pair[arguments.fires] / pair[0])
            line, missing = ratio_line(ratios, LIMIT)
            print(f"{workload:9} {line}", flush=True)
            missed |= missing
    finally:
        daemon.stop()
        daemon.remove()
    return 1 if missed and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
