# SPDX-License-Identifier: MIT
"""What a run has of its clock: its cost and its step at each end, and how far the clocks of both ends may differ where
a time begins at one and ends at the other."""

import os

import pytest

CPUS = sorted(os.sched_getaffinity(0))[:2]
SPEC = {"message_size": 4096, "messages": 200, "warmup_seconds": 0}


def run_of(client, spec):
    experiment = client.wait_final(client.post(SPEC | spec)["id"])
    assert experiment["state"] == "done", experiment
    (run,) = client.items(f"/experiments/{experiment['id']}/runs")
    return run


@pytest.mark.parametrize(
    "spec", [{}, {"workload": "pingpong"}, {"workload": "syscall", "call": "getpid"}, {"transport": "tcp"}]
)
def test_cost_and_step_of_each_end(unix, spec):
    run = run_of(unix, spec)
    clock = run["result"]["clock"]
    roles = [agent["role"] for agent in run["agents"]]
    assert sorted(clock) == sorted([*roles, "offset_ns", "offset_ns_reason"])
    for agent in run["agents"]:
        assert clock[agent["role"]]["cost_ns"] == agent["effective"]["clock_cost_ns"] > 0
        assert 0 < clock[agent["role"]]["quantum_ns"] < 1_000_000_000
    assert clock["offset_ns"] is None
    assert clock["offset_ns_reason"] == "no time begins at one end and ends at the other"


@pytest.mark.skipif(len(CPUS) < 2, reason="both ends need a CPU of their own: this machine has one")
@pytest.mark.parametrize("spec", [{"transport": "tcp", "stamp": True}, {"rate": 2000}])
def test_offset_of_one_way_times(unix, spec):
    roles = ("server", "client") if "transport" in spec else ("sender", "receiver")
    run = run_of(unix, spec | {"placement": {role: {"cpu": cpu} for role, cpu in zip(roles, CPUS, strict=True)}})
    offset, reason = run["result"]["clock"]["offset_ns"], run["result"]["clock"].get("offset_ns_reason")
    if offset is None:  # a machine so busy that the ends' probes do not meet
        assert reason == "the other end did not answer in time"
        return
    assert reason is None and -1_000_000 < offset["low"] < offset["high"] < 1_000_000
    assert offset["probes"] in (1, 2)


def test_one_cpu_has_one_clock(unix):
    place = {"cpu": CPUS[0]}
    run = run_of(unix, {"rate": 2000, "placement": {"sender": place, "receiver": place}})
    clock = run["result"]["clock"]
    assert clock["offset_ns"] is None and clock["offset_ns_reason"] == "both ends are on one CPU"
