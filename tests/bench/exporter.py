#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the fleet's exporter costs a run during which its timer fires: runs with and without that, in pairs of a random
order. The exporter then polls /health once, and ends. Prints the ratio of their figures with its 95 % interval. Run by
tools/bench; wants an otherwise idle machine.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "crash")]
from harness import Daemon  # noqa: E402
from paired import FIGURES, figure_of, ratio_line  # noqa: E402

EXPORT = TESTS.parent / "fleet/ipclab-export"
LIMIT = 0.995
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
    parser.add_argument("--pairs", type=int, default=40, help="of runs, of each workload")
    parser.add_argument("--seconds", type=float, default=5, help="of a run")
    parser.add_argument("--fires", type=int, default=1, help="of the timer in a run")
    parser.add_argument("--check", action="store_true", help="exit 1 when the limit is missed")
    arguments = parser.parse_args()
    missed, chance, daemon = False, random.Random(17), Daemon()
    try:
        daemon.start()
        for workload in FIGURES:
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
