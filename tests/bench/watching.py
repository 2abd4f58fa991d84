#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What it costs a run that the daemon observes the machine in each second of its window: equal points that stand twice,
of which the second instances are not observed (unwatched-daemon.c), in blocks of a random order. Prints the ratio of
their figures, observed over not, with its 95 % interval. Run by tools/bench; wants an otherwise idle machine.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from ipclabtest import BUILD  # noqa: E402
from ipclabtest.daemon import Daemon  # noqa: E402
from paired import FIGURES, blocks_of, figure_of, ratio_line  # noqa: E402

LIMIT = 0.995
OBSERVED, NOT_OBSERVED = 1, 2


def check(run):
    """A run that was observed although it should not be, or the other way round, is an error."""
    noise = run["result"]["noise"]
    seconds = noise["seconds_total"] if noise else 0
    if bool(seconds) != (run["point"]["instance"] == OBSERVED):
        raise RuntimeError(f"run {run['id']} of instance {run['point']['instance']} was observed for {seconds} seconds")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0].splitlines()[0])
    parser.add_argument("--pairs", type=int, default=40, help="of runs, of each workload and transport")
    parser.add_argument("--seconds", type=float, default=5, help="of a run")
    parser.add_argument("--check", action="store_true", help="exit 1 when the limit is missed")
    arguments = parser.parse_args()
    missed, daemon = False, Daemon(program=BUILD / "tests/bench/unwatched-daemon", listen="none")
    try:
        daemon.start()
        for workload in FIGURES:
            for transport in ("pipe", "shm-posix"):
                spec = {"workload": workload, "transport": transport, "points": "twice", "warmup_seconds": 0.5}
                spec |= {"repetitions": arguments.pairs, "duration_seconds": arguments.seconds}
                blocks = blocks_of(daemon.client(), spec, "instance")
                for run in (run for block in blocks for run in block.values()):
                    check(run)
                ratios = [figure_of(block[OBSERVED]) / figure_of(block[NOT_OBSERVED]) for block in blocks]
                line, missing = ratio_line(ratios, LIMIT)
                print(f"{workload:9} {transport:9} {line}", flush=True)
                missed |= missing
    finally:
        daemon.remove()
    return 1 if missed and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
