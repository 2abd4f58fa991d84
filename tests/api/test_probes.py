# SPDX-License-Identifier: MIT
"""The calibration probes of real runs: what they are of, what a real change of the machine does to them, and that a run
whose agent dies in one fails as any other."""

import os
import re
import signal
import statistics
import time
from pathlib import Path

import pytest
from agents import wait_agents
from client import PATIENCE_SECONDS
from conftest import OF_PIPE, SHORT, Daemon
from disturb import Disturber
from ipclabtest import BUILD

CPUS = sorted(os.sched_getaffinity(0))[:2]
OWN = ("getpid_ns", "memcpy_64k_ns")
SHARED = ("hand_over_ns", "wake_up_ns")
RUNS, TRIES = 5, 15

needs_two = pytest.mark.skipif(len(CPUS) < 2, reason="both ends need a CPU of their own: this machine has one")


def pinned(**more):
    """By a count of messages, or `more`'s duration."""
    placement = {role: {"cpu": cpu} for role, cpu in zip(("sender", "receiver"), CPUS, strict=True)}
    return (OF_PIPE if "duration_seconds" in more else SHORT) | {"placement": placement} | more


def runs_of(unix, spec):
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert experiment["state"] == "done", experiment
    return unix.items(f"/experiments/{experiment['id']}/runs")


def check_taken(end, name):
    """Its figure is there, or on a busy machine others had the CPU, or the ends did not meet in time."""
    taken = end[name] and min(end[name]["rounds"]) > 0
    assert taken or re.search("CPU|in time", end[f"{name}_reason"]), (name, end)


def check_flags(run):
    """A change that is usual gives none, and one of which that is not known one of its own, with the reason."""
    found = {change["usual"] for change in run["probes"]["changes"]}
    assert ("machine_state_changed" in run["flags"]) == (False in found)
    assert ("machine_state_unknown" in run["flags"]) == (None in found)
    for change in run["probes"]["changes"]:
        assert (change["usual"] is None) == ("36 are needed" in change.get("usual_reason", ""))


def changes_since(run, since):
    return [change for change in run["probes"]["changes"] if change["since"] == since]


@needs_two
@pytest.mark.parametrize("more", [{}, {"transport": "shm-posix", "workload": "pingpong"}, {"duration_seconds": 0.8}])
def test_a_run_has_its_probes(unix, more):
    spec = pinned(repetitions=2, **more)
    if more.get("workload") == "pingpong":
        spec["placement"] = dict(zip(("initiator", "responder"), spec["placement"].values(), strict=True))
    first, second = runs_of(unix, spec)
    taken = 0
    for run in (first, second):
        probes = run["probes"]
        assert probes["cpus"] == CPUS and probes["compared"] is True
        for probe in (probes["before"], probes["after"]):
            (_, one), (_, other) = probe.items()
            assert [one["cpu"], other["cpu"]] == CPUS
            for end in (one, other):
                assert 0 < end["cpu_share"] <= 1 and 0 < end["cost_ns"] < PATIENCE_SECONDS * 1e9
                for name in OWN:
                    check_taken(end, name)
                for name in filter(end.get, OWN):
                    taken += 1
                    assert len(end[name]["rounds"]) == 15
                    assert end[name]["median"] == statistics.median(end[name]["rounds"])
                    assert end[name]["low"] <= end[name]["median"] <= end[name]["high"]
            for name in SHARED:
                assert other[name] is None and other[f"{name}_reason"]
                check_taken(one, name)
        check_flags(run)
    assert taken > 0, "others had the CPUs in each of the four sittings"
    assert first["probes"]["first_run_id"] is None and first["probes"]["first_run_id_reason"]
    assert second["probes"]["first_run_id"] == first["id"]
    assert not changes_since(first, "first_run")


@needs_two
def test_a_run_without_memory_for_its_probes():
    """By tests/unit/poor-agent.c, whose message sizes say what it cannot get. What needs no memory is measured."""
    missing = {1: SHARED, 2: SHARED, 3: ("memcpy_64k_ns",), 4: ()}
    daemon = Daemon(f"--agent={BUILD / 'tests/unit/poor-agent'}")
    try:
        for run in runs_of(daemon.unix, pinned(message_size=list(missing), rate=1000, duration_seconds=1)):
            size = run["point"]["message_size"]
            assert run["state"] == "done" and run["result"]["messages"] > 0
            for sitting in (run["probes"]["before"], run["probes"]["after"]):
                (_, one), (_, other) = sitting.items()
                assert [one["cpu"], other["cpu"]] == CPUS
                for name in missing[size]:
                    for end in (one, other):
                        assert end[name] is None and re.search("memory|CPU", end[f"{name}_reason"]), (size, name, end)
                for name in set(OWN) - set(missing[size]):
                    for end in (one, other):
                        check_taken(end, name)
                for name in set(SHARED) - set(missing[size]):
                    check_taken(one, name)
            if missing[size] == SHARED:  # the clocks are read in the page, too
                clock = run["result"]["clock"]
                assert clock["offset_ns"] is None and "memory" in clock["offset_ns_reason"]
    finally:
        daemon.remove()


@needs_two
def test_further_threads_have_their_probes(unix):
    """Those with CPUs of their own; on a busy machine the last of them may have no time for it."""
    first, second = runs_of(unix, SHORT | {"threads": 3, "placement": "same-node", "repetitions": 2})
    for run in (first, second):
        probes, taken = run["probes"], set(run["probes"]["cpus"])
        for agent in run["agents"]:
            due = agent["placement"]["cpus"][1:3]
            for sitting in (probes["before"], probes["after"]):
                end = sitting[agent["role"]]
                others = end["others"]
                assert others and [other["thread"] for other in others] == list(range(1, len(others) + 1))
                assert [other["cpu"] for other in others] == due[: len(others)]
                assert end["others_left_out"] == len(due) - len(others)
                assert len(others) == len(due) or "too long" in end["others_left_out_reason"]
                for other in others:
                    assert 0 < other["cpu_share"] <= 1 and other["cost_ns"] > 0
                    for name in OWN:
                        check_taken(other, name)
                    for name in SHARED:
                        assert other[name] is None and "threads 0" in other[f"{name}_reason"]
            both = zip(*(probes[time][agent["role"]]["others"] for time in ("before", "after")), strict=False)
            taken |= {before["cpu"] for before, _ in both}
        measured = {cpu for agent in run["agents"] for cpu in agent["placement"]["cpus"][:3]}
        assert measured >= taken == set(probes["cpus_compared"]["before"])
        assert sorted(measured - taken) == sorted(probes["cpus_unprobed"])
        assert all(change["cpu"] in taken and change["thread"] < 3 for change in probes["changes"])
        check_flags(run)
    assert first["probes"]["cpus_compared"]["first_run"] == []
    assert second["probes"]["cpus_compared"]["first_run"] and second["probes"]["first_run_id"] == first["id"]


def test_threads_that_take_no_probe_are_counted(unix):
    """Those on the CPU of an earlier one need none; of those that are not pinned nothing is known."""
    place = {"node": 0, "cpu": CPUS[0]}
    (run,) = runs_of(unix, SHORT | {"threads": 2, "placement": {"sender": place, "receiver": place}})
    assert run["probes"]["cpus_unprobed"] == []
    for end in run["probes"]["before"].values():
        assert end["others"] == [] and end["others_left_out"] == 0
    (run,) = runs_of(unix, SHORT | {"threads": 2})
    assert run["probes"]["cpus_unprobed"] is None and "not pinned" in run["probes"]["cpus_unprobed_reason"]
    for end in run["probes"]["before"].values():
        assert end["others"] == [] and end["others_left_out"] == 1
        assert "not pinned" in end["others_left_out_reason"]


def test_more_threads_than_cpus(unix):
    """Threads on the CPU of an earlier one take no probe; a list of runs has no more than 16."""
    (run,) = runs_of(unix, SHORT | {"threads": 34, "placement": "same-node"})
    whole = unix.get(f"/runs/{run['id']}")["probes"]
    for role, end in whole["before"].items():
        (agent,) = (agent for agent in run["agents"] if agent["role"] == role)
        assert len(end["others"]) + end["others_left_out"] == min(34, len(agent["placement"]["cpus"])) - 1
        assert run["probes"]["before"][role]["others"] == (end["others"] if len(end["others"]) <= 16 else None)


def test_ends_that_cannot_meet(unix):
    """On one CPU there is no line to hand over, and in a run of one agent no other end."""
    runs = runs_of(unix, SHORT | {"placement": "same-cpu", "repetitions": 5})
    senders = [run["probes"][when]["sender"] for run in runs for when in ("before", "after")]
    assert [sender["hand_over_ns"] for sender in senders] == [None] * 10
    reasons = {sender["hand_over_ns_reason"] for sender in senders}
    # on a busy machine an end may be late for the other one, and does not learn where that is
    assert "both ends are on one CPU" in reasons
    assert all("one CPU" in reason or "in time" in reason for reason in reasons), reasons
    (run,) = runs_of(unix, {"workload": "syscall", "messages": 3000, "warmup_seconds": 0})
    for probe in (run["probes"]["before"], run["probes"]["after"]):
        (end,) = probe.values()
        assert [end[f"{name}_reason"] for name in SHARED] == ["the run has one end"] * 2
        for name in OWN:
            check_taken(end, name)


# The autogroup of this session. Its programs and those of a run are two groups, and each group gets half of a CPU that
# both want.
AUTOGROUP = Path("/proc/self/autogroup")


def prefer(pid, nice):
    """It gets the better part of a CPU, whatever else is there."""
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, pid, nice)
        if AUTOGROUP.exists():
            AUTOGROUP.write_text(str(nice))


def start_disturber(unix, experiment, path):
    """A program that wants a measured CPU for itself, from the midst of the window on."""
    unix.wait_state(experiment["id"], {"running"})
    time.sleep(1)
    disturber = Disturber("spinner", CPUS[1], path)
    prefer(disturber.process.pid, -10)
    return disturber


def run_once(unix, path):
    """With a disturber, where there is a path for its records."""
    experiment = unix.post(pinned(duration_seconds=2 if path else 1, rate=1000))
    disturber = start_disturber(unix, experiment, path) if path else None
    try:
        unix.wait_final(experiment["id"])
    finally:
        if disturber:
            prefer(disturber.process.pid, 0)
            disturber.end()
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    assert run["state"] == "done" or (disturber and is_starved(run)), run["error"]
    return run


def is_starved(run):
    """Whether an agent had its CPU so seldom that it could not say in time that it lives, or take the other one's last
    message, on a machine whose own time is taken, too."""
    words = r"silent for|had no CPU for|did not finish its message within"
    return run["state"] == "failed" and re.search(words, run["error"])


def is_taken(run):
    """Whether the receiver's CPU is called less its own after the run than it was before."""
    found = [c for c in changes_since(run, "before") if c["figure"] == "cpu_share" and c["role"] == "receiver"]
    assert not found or "machine_state_changed" in run["flags"]
    return any(c["ratio"] < 1 for c in found)


@pytest.mark.alone
@needs_two
@pytest.mark.parametrize("disturbed", [True, False])
def test_a_cpu_that_is_taken_in_mid_run_is_a_change(unix, tmp_path, disturbed):
    """The probe after the run finds the CPU shared, the one before did not; without the disturber neither does. A
    machine that is busy with other things shares it, too: a run whose first probe, or without a disturber whose window,
    was not alone is none to judge by, and neither is one whose agent the disturber starved."""
    judged = taken = 0
    for n in range(TRIES):
        run = run_once(unix, tmp_path / f"records-{n}" if disturbed else None)
        quiet = disturbed or not any(flag.startswith("noisy:") for flag in run["flags"])
        if quiet and run["state"] == "done" and run["probes"]["before"]["receiver"]["cpu_share"] > 0.8:
            judged += 1
            taken += is_taken(run)
        if judged == RUNS:
            break
    print(f"{taken} of {judged} runs, {n + 1} tried")
    if judged < RUNS:
        pytest.skip(f"the machine is busy: {judged} of {TRIES} runs had their CPUs for themselves")
    assert taken >= RUNS - 1 if disturbed else taken <= 1


@pytest.mark.parametrize("delay_ms", range(0, 60, 10))
def test_a_kill_in_a_probe_fails_the_run(own_daemon, delay_ms):
    """Soon after their start agents set up, and then probe."""
    unix = own_daemon.unix
    experiment = unix.post(OF_PIPE | {"duration_seconds": 1})
    roles = wait_agents(own_daemon, 2)
    time.sleep(delay_ms / 1000)
    os.kill(roles["receiver"], signal.SIGKILL)
    assert unix.wait_final(experiment["id"])["state"] == "failed"
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    # one that is killed before it has read its set-up has closed the connection on which it is sent
    words = ("was killed by signal 9", "cannot be sent its set-up")
    assert run["error"].startswith(tuple(f"receiver (pid {roles['receiver']}) {word}" for word in words)), run["error"]
    assert not run["probes"] or run["probes"]["after"] is None
    (run,) = runs_of(unix, SHORT)
    assert run["probes"]["after"]
