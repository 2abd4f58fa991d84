#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the daemon itself costs: from POST to the first measured message, its CPU time and memory idle and in a run.

Looked at from outside (/proc), beside what the daemon reports of itself in /health. Run by tools/bench.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "crash")]
from harness import Daemon  # noqa: E402
from ipclabtest.client import Events  # noqa: E402


def cpu_seconds(pid):
    """Time on a CPU of all threads of a process that are alive (proc(5), schedstat: nanoseconds)."""
    return sum(int(p.read_text().split()[0]) for p in Path("/proc", str(pid), "task").glob("*/schedstat")) / 1e9


def resident_bytes(pid):
    (line,) = [x for x in Path("/proc", str(pid), "status").read_text().splitlines() if x.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def first_sample(daemon, identity):
    """(when it arrived, the sample) of the first sample in an experiment's event stream."""
    with Events(daemon.client(), f"/experiments/{identity}/events", timeout=30) as events:
        for _, event, data in events:
            if event == "sample":
                return time.monotonic(), data
    raise RuntimeError("the event stream ended without a sample")


def start_latency(daemon):
    """Seconds from sending POST to the begin of the measured window: its first sample's arrival less its length."""
    began = time.monotonic()
    identity = daemon.post({"transport": "pipe", "duration_seconds": 1, "warmup_seconds": 0})["id"]
    arrived, sample = first_sample(daemon, identity)
    daemon.wait_final(identity, 30)
    return arrived - sample["interval_ns"] / 1e9 - began


def cost_over(daemon, seconds):
    """(share of a CPU, resident bytes, share of a CPU by /health) over the next seconds."""
    pid = daemon.process.pid
    reported, used, began = daemon.get("/health").get("cpu_ns"), cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    used, took, resident = cpu_seconds(pid) - used, time.monotonic() - began, resident_bytes(pid)
    after = daemon.get("/health").get("cpu_ns")
    return used / took, resident, None if reported is None or after is None else (after - reported) / 1e9 / took


def show(what, cost):
    share, resident, reported = cost
    by_health = "" if reported is None else f"  ({reported:.3%} by its own account, the request included)"
    print(f"{what:22}{share:8.3%} of a CPU, {resident / 2**20:6.1f} MiB resident{by_health}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--idle-seconds", type=float, default=30)
    parser.add_argument("--run-seconds", type=float, default=20)
    arguments = parser.parse_args()
    daemon = Daemon()
    try:
        daemon.start()
        show("daemon idle", cost_over(daemon, arguments.idle_seconds))
        latencies = sorted(start_latency(daemon) for _ in range(5))
        identity = daemon.post({"transport": "pipe", "duration_seconds": arguments.run_seconds + 3})["id"]
        daemon.wait_running(identity)
        time.sleep(1.5)  # set-up and warm-up are over
        show("daemon during a run", cost_over(daemon, arguments.run_seconds))
        daemon.wait_final(identity, 30)
        print(
            f"{'POST to first message':22}{statistics.median(latencies) * 1e3:8.1f} ms "
            f"(median of {len(latencies)}; {latencies[0] * 1e3:.1f} to {latencies[-1] * 1e3:.1f})"
        )
    finally:
        daemon.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
