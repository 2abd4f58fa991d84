# SPDX-License-Identifier: MIT
"""A run that lost its speed for a while, beside one that did not; and the seconds of samples, which are those of the
clock, whatever became of an agent meanwhile."""

import os
import signal
import time
from datetime import datetime

import pytest
from agents import wait_agents, wait_window

SECONDS = 5
STOPPED = (1.65, 1.5)  # from the window's begin, and for how long: two whole seconds begin in it
TENTH = 0.1
TRIES = 3  # a busy machine stands still by itself, too
HARDLY = 0.2  # of the usual: what a stop leaves, and nothing else


def run_of(daemon, unix, spec, stop=None):
    log_from = daemon.log.stat().st_size
    """The run, and from when to when its agent was stopped, in seconds from the window's begin."""
    experiment = unix.post(spec | {"duration_seconds": SECONDS, "warmup_seconds": 0})
    stopped = None
    if stop:
        wait_window(daemon, unix, experiment, log_from)
        pid = wait_agents(daemon, 2)[stop]
        time.sleep(STOPPED[0])
        os.kill(pid, signal.SIGSTOP)
        stopped = [time.monotonic_ns()]
        try:
            time.sleep(STOPPED[1])
        finally:
            stopped.append(time.monotonic_ns())
            os.kill(pid, signal.SIGCONT)
    experiment = unix.wait_final(experiment["id"])
    assert experiment["state"] == "done", experiment
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    return run, stopped and [(at - run["result"]["begin_ns"]) / 1e9 for at in stopped]


def series_of(run, figure):
    (series,) = (s for s in run["result"]["steadiness"] if s["figure"] == figure)
    return series


def usual(series):
    """The mean that most of the window has at least."""
    left = SECONDS / 2
    for segment in sorted(series["segments"], key=lambda s: -s["mean"]):
        left -= segment["end_seconds"] - segment["begin_seconds"]
        if left <= 0:
            return segment["mean"]
    return 0


def dips_of(series):
    return [s for s in series["segments"] if s["mean"] < HARDLY * usual(series)]


@pytest.mark.alone
@pytest.mark.parametrize("transport, stop", [("pipe", "sender"), ("pipe", "receiver"), ("shm-posix", "sender")])
def test_a_dip_in_mid_window_is_found(daemon, unix, transport, stop):
    spec = {"workload": "stream", "transport": transport, "message_size": 4096}
    for _ in range(TRIES):
        run, stopped = run_of(daemon, unix, spec, stop)
        result = run["result"]
        assert result["steady"] is False, run["result"]["steadiness"]
        assert "no_steady_state" in run["flags"]
        series = series_of(run, "messages_per_second")
        assert series["measured_by"] == "receiver"
        assert series["class"] == "no-steady-state"
        dips = dips_of(series)  # the machine may have stood still besides
        assert dips, series
        dip = min(dips, key=lambda segment: abs(segment["begin_seconds"] - stopped[0]))
        if [dip["begin_seconds"], dip["end_seconds"]] == pytest.approx(stopped, abs=2 * TENTH):
            break
    assert [dip["begin_seconds"], dip["end_seconds"]] == pytest.approx(stopped, abs=2 * TENTH)
    fall = next(c for c in series["changes"] if c["to"] == dip["mean"])
    assert fall["second"] == int(fall["at_seconds"])
    assert fall["at_ns"] == pytest.approx(result["begin_ns"] + fall["at_seconds"] * 1e9, abs=50e6)
    beside = fall["beside"]
    assert beside["begin_ns"] <= fall["at_ns"] < beside["begin_ns"] + beside["interval_ns"]
    assert beside in result["noise"]["seconds"]


@pytest.mark.alone
def test_a_run_without_one_has_none(daemon, unix):
    """On a machine so busy that a run stands still by itself it has one."""
    for _try in range(TRIES):
        run, _ = run_of(daemon, unix, {"workload": "stream", "transport": "pipe", "message_size": 4096})
        series = series_of(run, "messages_per_second")
        assert series["segments"][0]["begin_seconds"] == 0
        assert series["segments"][-1]["end_seconds"] == SECONDS
        lost = any(s["class"] not in (None, "flat") for s in run["result"]["steadiness"])
        assert (run["result"]["steady"] is False) == lost == ("no_steady_state" in run["flags"])
        if not dips_of(series):
            break
    assert not dips_of(series), series


@pytest.mark.parametrize("workload", ["pingpong", "syscall"])
def test_latency_is_judged_where_there_is_one(daemon, unix, workload):
    spec = {"workload": workload}
    if workload == "pingpong":
        spec |= {"transport": "pipe", "message_size": 64, "rate": 2000}
    run, _ = run_of(daemon, unix, spec)
    series = series_of(run, "latency_p50_ns")
    assert series["measured_by"] == run["agents"][0]["role"]
    latency = run["result"]["latency_ns"]
    for segment in series["segments"]:
        assert latency["min"] <= segment["mean"] <= latency["max"]


def test_latencies_of_many_threads_are_not_called_steady(unix):
    """Their median is not taken ten times a second: nobody knows whether it stayed the same."""
    spec = {"workload": "pingpong", "transport": "pipe", "message_size": 64, "threads": 65, "rate": 1300}
    experiment = unix.wait_final(unix.post(spec | {"duration_seconds": 4, "warmup_seconds": 0})["id"])
    assert experiment["state"] == "done", experiment["error"]
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    series = series_of(run, "latency_p50_ns")
    assert run["result"]["latency_ns"]["count"] > 0
    assert series["class"] is None and "more than 64 threads" in series["class_reason"]
    assert series["segments"] == series["changes"] == [] and run["result"]["steady"] is not True


@pytest.mark.parametrize("stop", ["sender", "receiver"])
def test_the_seconds_are_those_of_the_clock(daemon, unix, stop):
    began = time.time()
    spec = {"workload": "stream", "transport": "pipe", "message_size": 4096, "rate": 1000}
    run, _ = run_of(daemon, unix, spec, stop)
    ended = time.time()
    result = run["result"]
    assert began < datetime.fromisoformat(result["begun_at"]).timestamp() < ended - SECONDS + 1
    seconds = {"sender": {}, "receiver": {}}
    for sample in unix.items(f"/runs/{run['id']}/samples"):
        seconds[sample["agent"]][sample["second"]] = sample
        since = (sample["begin_ns"] - result["begin_ns"]) / 1e9
        assert sample["second"] - 0.05 <= since < sample["second"] + 1
    other = {"sender": "receiver", "receiver": "sender"}[stop]
    assert len(seconds[stop]) < SECONDS <= len(seconds[other]) <= SECONDS + 1
    assert max(seconds["sender"]) == max(seconds["receiver"])
    for samples in seconds.values():  # end to end
        ordered = [samples[second] for second in sorted(samples)]
        for one, following in zip(ordered, ordered[1:], strict=False):
            assert one["begin_ns"] + one["interval_ns"] == following["begin_ns"]


def test_a_window_of_two_seconds_is_not_judged(unix):
    spec = {"transport": "pipe", "duration_seconds": 2, "rate": 1000, "warmup_seconds": 0}
    experiment = unix.wait_final(unix.post(spec)["id"])
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    assert run["result"]["steady"] is None
    assert run["result"]["steady_reason"] == "not judged: the window has fewer than 3 seconds"
    assert "no_steady_state" not in run["flags"]
