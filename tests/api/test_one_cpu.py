# SPDX-License-Identifier: MIT
"""A daemon that may use one CPU: experiments run there, with the flag that their threads share it."""

import os

import pytest
from conftest import Daemon


@pytest.fixture
def confined():
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})  # which the daemon inherits
    try:
        d = Daemon()
    finally:
        os.sched_setaffinity(0, before)
    yield d
    d.remove()


BRIEFLY = {
    "pipe-block-sweep": {"bytes": 655360, "repetitions": 1, "warmup_seconds": 0},
    "fifo-numa": {"messages": 1000, "repetitions": 1, "warmup_seconds": 0},
    "ipc-4mib": {"messages": 2, "repetitions": 1, "warmup_seconds": 0},
    "syscall-and-switch": {"messages": 1000, "repetitions": 1, "warmup_seconds": 0},
}


def studies():
    """The long forms cut short; the quick ones as they ship, which is for people without time too. One of these has
    points on one CPU and no others wherever it runs: test_presets.py runs it."""
    for preset, brief in BRIEFLY.items():
        yield pytest.param({"preset": preset} | brief, id=preset)
        if preset != "syscall-and-switch":
            yield pytest.param({"preset": f"{preset}-quick"}, id=f"{preset}-quick")


@pytest.mark.parametrize("spec", list(studies()))
def test_a_study_does_what_it_can(confined, spec):
    experiment = confined.unix.wait_final(confined.unix.post(spec)["id"])
    assert experiment["state"] == "done", (experiment, confined.log_tail())
    assert experiment["progress"]["runs_done"] > 0
    assert all(left_out["reason"] for left_out in experiment["skipped"])
    for run in confined.unix.items(f"/experiments/{experiment['id']}/runs"):
        assert run["point"]["placement"] == "same-cpu"


@pytest.mark.parametrize("preset", ["tcp-copy-modes", "tcp-copy-modes-quick"])
def test_connections_on_one_cpu(confined, preset):
    spec = {"preset": preset, "message_size": 16384, "messages": 1000, "warmup_seconds": 0, "repetitions": 1}
    experiment = confined.unix.wait_final(confined.unix.post(spec)["id"])
    runs = confined.unix.items(f"/experiments/{experiment['id']}/runs")
    assert experiment["state"] == "done", [run["error"] for run in runs]
    assert experiment["skipped"] == []
    assert len(runs) == 3 * len(experiment["effective_spec"]["threads"])
    for run in runs:
        assert "placement:shared-cpus" in run["flags"]
        assert all(len(agent["placement"]["cpus"]) == 1 for agent in run["agents"])
