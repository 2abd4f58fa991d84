#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the answers cost that are drawn from many runs: /results, /findings, /advice and /compare of ten thousand, and
their bundle, which another daemon takes in.

Prints the first time and the median of those after it, and the daemon's resident memory. Nothing is asserted. Run by
tools/bench.
"""

import argparse
import time
from pathlib import Path

import manyruns
from ipclabtest.daemon import Daemon as OtherDaemon

HOUR = 3600


def highest_resident(daemon):
    status = Path("/proc", str(daemon.process.pid), "status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def carry(daemon, experiment):
    """The bundle, from this daemon to another one."""
    other = OtherDaemon()  # of a class that removes no other one's processes
    try:
        other.start()
        began = time.monotonic()
        answer = daemon.client().request("GET", f"/experiments/{experiment}/bundle", timeout=HOUR)
        assert answer.status == 200, answer
        made, taken_from = time.monotonic() - began, highest_resident(daemon)
        digest = answer.headers["Content-Disposition"].rpartition("-")[2][:64]
        began, gzip = time.monotonic(), {"Content-Type": "application/gzip"}
        taken = other.client().request("POST", f"/bundles?sha256={digest}", answer.body, gzip, timeout=HOUR)
        assert taken.status == 201, taken
        print(
            f"a bundle of {len(answer.body) / 2**20:.1f} MiB: made in {made:.1f} s ({taken_from:.1f} MiB resident at "
            f"most), taken in within {time.monotonic() - began:.1f} s ({highest_resident(other):.1f} MiB)"
        )
    finally:
        other.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    manyruns.add_arguments(parser)
    arguments = parser.parse_args()
    with manyruns.removed_daemon() as daemon:
        many, runs, _ = manyruns.make_experiment(daemon, arguments.repetitions)
        print(f"{runs} runs; before: {manyruns.resident_bytes(daemon.process.pid) / 2**20:.1f} MiB resident")
        paths = (
            f"/experiments/{many}/results",
            f"/compare?experiment={many}&axis=transport&baseline=pipe&candidate=fifo",
            f"/experiments/{many}/findings",
            "/advice?message_size=4096",
            "/advice?message_size=3000",
        )
        manyruns.show(daemon, paths, arguments.times)
        carry(daemon, many)


if __name__ == "__main__":
    main()
