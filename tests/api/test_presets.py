# SPDX-License-Identifier: MIT
"""The quick forms of the studies as they ship, by a daemon that may use every CPU. On one alone they are run by
test_one_cpu.py."""

import json
import os
from pathlib import Path

import pytest
from conftest import Daemon
from test_schema import AXES, PRESETS, QUICK_SECONDS, points, seconds

HALF_A_MINUTE = [name for name, most in QUICK_SECONDS.items() if most <= 30]


def runs_here(name):
    """A description with two CPUs does not apply to one."""
    return len(os.sched_getaffinity(0)) > 1 or PRESETS[name]["spec"]["placement"] == "same-cpu"


def brief(name):
    """The preset with a tenth of its messages or bytes, or a few messages in the place of its window, in which none may
    pass on a busy machine: whether every point can be run does not depend on how many there are."""
    spec = PRESETS[name]["spec"]
    shorter = {field: max(spec[field] // 10, 1) for field in ("messages", "bytes") if field in spec}
    return {"preset": name, "warmup_seconds": 0.02} | (shorter or {"messages": 300})


@pytest.fixture(scope="module")
def queued():
    """All at once: name -> the experiment, as it stands in the queue; and the daemon."""
    d = Daemon()
    try:
        posted = {name: d.unix.post({"preset": name})["id"] for name in HALF_A_MINUTE if runs_here(name)}
        listed = {e["id"]: e for e in d.unix.get("/experiments")["items"]}
        for identity in posted.values():
            assert d.unix.request("POST", f"/experiments/{identity}/cancel").status == 200
        yield d, {name: listed[identity] for name, identity in posted.items()}
        assert d.stop() == 0, d.log_tail()
    finally:
        d.remove()


@pytest.fixture(params=HALF_A_MINUTE)
def quick(request, queued):
    """(daemon, name, the experiment in brief)"""
    if not runs_here(request.param):
        pytest.skip("this machine has one CPU, for which there is test_one_cpu.py")
    d, _ = queued
    return d, request.param, d.unix.post(brief(request.param))


def test_half_a_minute_is_what_is_shown(queued):
    """How long it takes until each is over, of which those before it have their part."""
    _, experiments = queued
    before = 0
    for name, experiment in experiments.items():
        assert 0 < experiment["eta_seconds"] - before <= 30, (name, experiment)
        assert seconds(experiment["effective_spec"]) <= 30
        before = experiment["eta_seconds"]


def which(point, spec):
    """A point by the axes of its workload that the preset names."""
    return tuple(json.dumps(point[axis], sort_keys=True)
                 for axis in ("workload", *AXES[point["workload"]]) if axis in spec)  # fmt: skip


def one_node():
    online = Path("/sys/devices/system/node/online")  # a kernel that knows of no nodes has none
    return not online.exists() or online.read_text().strip().isdigit()


def why_left_out(point, transports):
    """The part of the machine that the reason has to name; None: no point is left out on any host."""
    placement = point["placement"]
    if placement == "cross-node":
        return "node"
    if isinstance(placement, dict) and placement.get("require") == {"numa_balancing": True}:
        return "NUMA balancing"
    row = transports.get(point.get("transport"))
    if not row or row["available"]:  # an available one may be limited: its limit's name has to be in the reason
        return row and (row["capacity"]["limit"] or {}).get("name")
    return row["reason"]


def test_every_point_is_done(quick):
    """Once for each repetition; what is not is listed, with its reason."""
    d, name, experiment = quick
    spec = PRESETS[name]["spec"]
    found = d.unix.wait_final(experiment["id"])
    runs = d.unix.items(f"/experiments/{found['id']}/runs")
    assert found["state"] == "done", (found, [(r["point"], r["error"]) for r in runs if r["error"]], d.log_tail())
    assert {run["state"] for run in runs} == {"done"}
    assert all(run["result"]["messages"] > 0 for run in runs)

    transports = {row["name"]: row for row in d.unix.get("/transports")["items"]}
    for skipped in found["skipped"]:
        word = why_left_out(skipped["point"], transports)
        assert word and word in skipped["reason"], skipped
    left_out = [which(skipped["point"], spec) for skipped in found["skipped"]]
    done = [which(run["point"], spec) for run in runs]
    wanted = [which(point, spec) for point in points(spec)]
    assert sorted(done) == sorted(spec.get("repetitions", 1) * [point for point in wanted if point not in left_out])
    assert sorted(left_out) == sorted(point for point in wanted if point not in done)


def test_one_node_has_no_other(queued):
    """One of a named pipe's placements is left there, at every message size."""
    if not one_node():
        pytest.skip("this machine has more than one node")
    _, experiments = queued
    if "fifo-numa-quick" not in experiments:
        pytest.skip("this machine has one CPU, for which there is test_one_cpu.py")
    left_out = experiments["fifo-numa-quick"]["skipped"]
    sizes = PRESETS["fifo-numa-quick"]["spec"]["message_size"]
    places = [skipped["point"]["placement"] for skipped in left_out]
    assert places.count("cross-node") == len(sizes) and len(places) == 2 * len(sizes), left_out
    assert experiments["fifo-numa-quick"]["progress"]["runs_total"] == len(sizes)
