# SPDX-License-Identifier: MIT
"""Workloads of one agent: system calls and context switches."""

import csv
import io
import os
import re
import signal
import time
from pathlib import Path

import pytest
from agents import wait_window
from client import PATIENCE_SECONDS
from disturb import Disturber

CALLS = ["getpid", "getpid-libc", "clock-gettime-vdso", "clock-gettime-syscall", "read-zero"]


def finish(client, spec):
    """Posts it and waits until it is done."""
    experiment = client.wait_final(client.post(spec)["id"])
    assert experiment["state"] == "done", experiment["error"]
    return experiment


def runs_of(client, experiment):
    return client.items(f"/experiments/{experiment['id']}/runs")


def stat_of(pid):
    """State and parent of a process, or None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[1])


def children_of(pid):
    stats = {int(path.name): stat_of(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()}
    return [child for child, stat in stats.items() if stat and stat[1] == pid]


def test_system_calls(unix):
    experiment = finish(unix, {"workload": "syscall", "call": CALLS, "messages": 50000, "warmup_seconds": 0})
    for run in runs_of(unix, experiment):
        result = run["result"]
        assert [agent["role"] for agent in run["agents"]] == ["initiator"]
        assert result["messages"] == 50000 and result["bytes"] == 0
        assert result["throughput_bytes_per_second"] is None and result["throughput_bytes_per_second_reason"]
        assert result["cost_of"] == "call"
        assert result["cost_ns"] == result["counters"]["initiator"]["task_clock_ns"] / 50000
        assert result["latency_ns"]["kind"] == "call"
        # of batches: the clock is not read for each call
        assert result["latency_ns"]["count"] == 50000 / run["agents"][0]["effective"]["batch_calls"]
        assert "message_size" not in run["point"] and "transport" not in run["point"]
    rows = unix.get(f"/experiments/{experiment['id']}/results")["items"]
    assert [row["point"]["call"] for row in rows] == CALLS
    clocksource = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip()
    sources = [row["effective"].get("clocksource") for row in rows]
    assert sources == [clocksource if call.startswith("clock") else None for call in CALLS]
    assert all(row["cost_ns"]["median"] > 0 and row["throughput_bytes_per_second"] is None for row in rows)


def test_a_call_costs_no_more_beside_another_program(daemon, unix, tmp_path):
    """One that has its turns on the same CPU for most of the window, which has them; the cost of a call has not."""
    cpu, log_from = max(os.sched_getaffinity(0)), daemon.log.stat().st_size
    spec = {"workload": "syscall", "placement": {"initiator": {"cpu": cpu}}, "duration_seconds": 5, "warmup_seconds": 0}
    experiment = unix.post(spec)
    wait_window(daemon, unix, experiment, log_from)
    disturber = Disturber("spinner", cpu, tmp_path / "records")
    time.sleep(3)
    disturber.end()
    assert unix.wait_final(experiment["id"])["state"] == "done"
    (run,) = runs_of(unix, experiment)
    result = run["result"]
    assert 0 < result["cost_ns"] < 0.85 * result["window_ns"] / result["messages"]


def test_context_switches(unix):
    spec = {"workload": "context-switch", "processes": [2, 5], "working_set": [0, 65536], "messages": 2000}
    experiment = finish(unix, spec | {"warmup_seconds": 0.05})
    for run in runs_of(unix, experiment):
        result, point = run["result"], run["point"]
        assert result["cost_of"] == "context switch"
        assert result["hop_ns"] == result["window_ns"] / result["messages"] / point["processes"]
        assert result["pipe_overhead_ns"] > 0
        # of rounds, each of which is a mean
        assert (result["latency_ns"]["kind"], result["latency_ns"]["count"]) == ("switch", result["messages"])
        assert abs(result["hop_ns"] - result["pipe_overhead_ns"] - result["cost_ns"]) < 1e-6 * result["hop_ns"]
        # on one CPU, whatever the spec's placement: two of them would measure wake-ups
        assert point["placement"] == "default"
        assert run["agents"][0]["placement"]["cpus"] == [result["effective"]["cpu"]]
        assert run["agents"][0]["effective"]["working_set_bytes"] == point["working_set"]
        sizes = {row["what"]: row for row in run["agents"][0]["proof"]["page_sizes"]}
        assert sizes["stack"]["mappings"] == point["processes"]
        if point["working_set"]:
            assert sizes["buffer"]["mappings"] == point["processes"]
            assert sum(sizes["buffer"]["bytes"].values()) == point["processes"] * point["working_set"]


def test_a_hop_is_a_column(unix):
    """What studies that subtract no overhead call a context switch."""
    spec = {"workload": ["syscall", "context-switch"], "messages": 1000, "repetitions": 3, "warmup_seconds": 0}
    experiment = finish(unix, spec)
    hops = sorted(run["result"]["hop_ns"] for run in runs_of(unix, experiment) if "hop_ns" in run["result"])
    path = f"/experiments/{experiment['id']}/results"
    calls, switches = unix.get(path)["items"]
    assert calls["hop_ns"] is None and calls["reasons"]["hop_ns"] == "of context-switch only"
    assert [switches["hop_ns"][name] for name in ("min", "median", "max")] == hops
    assert "hop_ns" not in switches["reasons"]
    table = unix.request("GET", path, headers={"Accept": "text/csv"}).body.decode()
    lines = list(csv.DictReader(io.StringIO(table, newline="")))
    assert [line["hop_ns_median"] for line in lines] == ["", repr(hops[1]).removesuffix(".0")]


def test_a_row_tells_the_cpu_of_its_switches(unix):
    """Its point does not: "default" is one of them, too, and of calls it is any."""
    cpu = max(os.sched_getaffinity(0))
    spec = {"workload": ["syscall", "context-switch"], "messages": 100, "warmup_seconds": 0}
    for placement in ("default", {"initiator": {"cpu": cpu}}):
        experiment = finish(unix, spec | {"placement": placement})
        runs = {run["point"]["workload"]: run for run in runs_of(unix, experiment)}
        (taken,) = runs["context-switch"]["agents"][0]["placement"]["cpus"]
        rows = unix.get(f"/experiments/{experiment['id']}/results")["items"]
        assert [row["effective"].get("cpu") for row in rows] == [None, taken]
    assert taken == cpu


def test_the_largest_circle(unix):
    """Its set-up does not walk over all those working sets for longer than agents may take to get ready."""
    spec = {"workload": "context-switch", "processes": 64, "working_set": 1 << 20, "messages": 3}
    (run,) = runs_of(unix, finish(unix, spec | {"warmup_seconds": 0}))
    effective = run["agents"][0]["effective"]
    assert (effective["processes"], effective["working_set_bytes"]) == (64, 1 << 20)
    assert 11 <= effective["pipe_overhead_rounds"] < 201


def test_by_time(unix):
    spec = {"workload": ["syscall", "context-switch"], "duration_seconds": 1, "warmup_seconds": 0.1}
    experiment = finish(unix, spec)
    samples = unix.items(f"/experiments/{experiment['id']}/samples")
    for run in runs_of(unix, experiment):
        mine = [sample for sample in samples if sample["run_id"] == run["id"]]
        assert sum(sample["messages"] for sample in mine) == run["result"]["messages"] > 0
        assert sum(sample["interval_ns"] for sample in mine) == run["result"]["window_ns"]


def test_a_roaming_ring_is_refused(unix):
    spec = {"workload": "context-switch", "placement": {"initiator": {"node": 0}}}
    if len(os.sched_getaffinity(0)) > 1:
        unix.refused("POST", "/experiments", 422, "wrong-combination", body=spec)


def wait_circle(daemon, n):
    """The agent and the n - 1 members that it has forked; of a workload without members n is 1."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        agents = children_of(daemon.process.pid)
        members = [pid for agent in agents for pid in children_of(agent)]
        if agents and len(members) == n - 1:
            return agents[0], sorted(members)
        assert time.monotonic() < deadline, "the circle was never made"
        time.sleep(0.02)


def wait_sample(client, experiment):
    """Its window is open, and something has moved in it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not client.items(f"/experiments/{experiment['id']}/samples"):
        assert time.monotonic() < deadline, "no sample came"
        time.sleep(0.02)


def briefly(spec):
    """The same by a count: a short window may be over without a message on a busy machine."""
    return {name: value for name, value in spec.items() if name != "duration_seconds"} | {"messages": 20}


def check_gone(pids):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any((stat_of(pid) or "Z")[0] != "Z" for pid in pids):
        assert time.monotonic() < deadline, "a process of the run outlived it"
        time.sleep(0.02)


def check_nothing_left(daemon, pids):
    check_gone(pids)
    assert children_of(daemon.process.pid) == []
    assert list((daemon.base / "run/runs").iterdir()) == []


AGENT_SIGNALS = [
    pytest.param(signal.SIGKILL, r"initiator \(pid {pid}\) .*SIGKILL", id="kill"),
    pytest.param(
        signal.SIGSTOP,
        r"initiator \(pid {pid}\) went silent for [\d.]+ s in second \d+ \(state T, stopped\)",
        id="stop",
    ),
]


@pytest.mark.parametrize(("signal_number", "reason"), AGENT_SIGNALS)
@pytest.mark.parametrize(
    ("point", "processes"),
    [
        pytest.param({"workload": "syscall", "call": "read-zero"}, 1, id="syscall"),
        pytest.param({"workload": "context-switch", "processes": 8}, 8, id="context-switch"),
    ],
)
def test_a_signalled_agent_leaves_no_process(unix, daemon, point, processes, signal_number, reason):
    spec = point | {"duration_seconds": 600, "warmup_seconds": 0}
    experiment = unix.post(spec)
    try:
        wait_sample(unix, experiment)
        agent, members = wait_circle(daemon, processes)
        os.kill(agent, signal_number)
        ended = unix.wait_final(experiment["id"])
    finally:
        unix.request("POST", f"/experiments/{experiment['id']}/cancel")
    assert ended["state"] == "failed"
    assert re.search(reason.format(pid=agent), ended["error"]), ended["error"]
    check_nothing_left(daemon, [agent, *members])
    finish(unix, briefly(spec))


@pytest.mark.parametrize("k", [0, 3, 6])
def test_a_killed_member_is_named(unix, daemon, k):
    """Its neighbour's pipe ends with it, and so the run, long before its window is over."""
    spec = {"workload": "context-switch", "processes": 8, "duration_seconds": 600, "warmup_seconds": 0}
    experiment = unix.post(spec)
    try:
        agent, members = wait_circle(daemon, 8)
        os.kill(members[k], signal.SIGKILL)
        ended = unix.wait_final(experiment["id"])
    finally:
        unix.request("POST", f"/experiments/{experiment['id']}/cancel")
    assert ended["state"] == "failed"
    assert re.search(r"process [2-8] of 8 was killed by signal 9", ended["error"]), ended["error"]
    check_nothing_left(daemon, [agent, *members])
    finish(unix, briefly(spec))


@pytest.mark.parametrize("seconds", [600, 5])
def test_a_stopped_member_is_named(unix, daemon, seconds):
    """Its pipes stay open: that nothing goes round any more is found out in a long window, or at a short one's end."""
    spec = {"workload": "context-switch", "processes": 8, "duration_seconds": seconds, "warmup_seconds": 0}
    experiment = unix.post(spec)
    try:
        wait_sample(unix, experiment)
        agent, members = wait_circle(daemon, 8)
        os.kill(members[3], signal.SIGSTOP)
        ended = unix.wait_final(experiment["id"])
    finally:
        unix.request("POST", f"/experiments/{experiment['id']}/cancel")
    assert ended["state"] == "failed"
    assert re.search(r"process [2-8] of 8 was stopped by signal 19", ended["error"]), ended["error"]
    check_nothing_left(daemon, [agent, *members])
    finish(unix, briefly(spec))
