# SPDX-License-Identifier: MIT
"""Two points of one experiment beside each other: the figures of each block, in which both were run one after the
other, and the ratio between them as a line."""

import os
import statistics

from verdict import interval, verdict

FIGURES = {"stream": ("throughput_bytes_per_second",), "pingpong": ("latency_ns", "p50")}


def figure_of(run):
    """More being better."""
    value, workload = run["result"], run["point"]["workload"]
    for key in FIGURES[workload]:
        value = value[key]
    return value if workload == "stream" else 1 / value


def blocks_of(client, spec, axis):
    """A dictionary for each block: the value of the axis -> the run. The experiment has no other axis."""
    seconds = spec["duration_seconds"] + spec["warmup_seconds"] + 5
    experiment = client.wait_final(client.post(spec)["id"], 60 + 2 * spec["repetitions"] * seconds)
    blocks = {}
    for run in client.items(f"/experiments/{experiment['id']}/runs"):
        if run["state"] != "done":
            raise RuntimeError(f"run {run['id']} is {run['state']}: {run['error']}")
        blocks.setdefault(run["block"], {})[run["point"][axis]] = run
    return list(blocks.values())


def ratio_line(ratios, limit=None):
    """(what stands in a row, whether the limit is missed: by the verdict, or by the median where that is undecided)."""
    bounds = interval(ratios)
    shown = "too few pairs" if bounds is None else f"{bounds[0]:.4f} to {bounds[1]:.4f}"
    found = "" if limit is None else verdict(bounds, limit)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    middle = f": {found}" if found else ""
    median = statistics.median(ratios)
    missed = found == "missed" or (found == "undecided" and median < limit)
    return f"{median:.4f} ({shown}) of {len(ratios)} pairs{middle}; load {load}", missed
