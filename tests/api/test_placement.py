# SPDX-License-Identifier: MIT
"""What a node means for the threads of an end, by the proof of the agents."""

import os
import time
from pathlib import Path

import pytest
from agents import wait_agents, wait_window
from conftest import OF_PIPE

SPEC = {"message_size": 4096, "threads": 2, "messages": 3000, "warmup_seconds": 0}


@pytest.fixture
def node(unix):
    nodes = [node for node in unix.get("/topology")["nodes"] if node["usable_cpus"]]
    return nodes[0]


def agents_of(unix, spec):
    experiment = unix.wait_final(unix.post(SPEC | spec)["id"])
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    assert run["state"] == "done", run["error"]
    return run["agents"], run["flags"]


def test_connections_are_pinned_on_a_node(unix, node):
    place = {"node": node["id"]}
    agents, flags = agents_of(unix, {"transport": "tcp", "placement": {"server": place, "client": place}})
    cpus = [agent["placement"]["cpus"] for agent in agents]
    assert cpus[0] == node["usable_cpus"][:2]
    assert len(node["usable_cpus"]) < 4 or not set(cpus[0]) & set(cpus[1])
    for agent, own in zip(agents, cpus, strict=True):
        assert agent["placement"]["roam"] is False
        assert [thread["affinity"] for thread in agent["proof"]["threads"]] == [[own[i % len(own)]] for i in range(2)]
    assert ("placement:shared-cpus" in flags) == (len(node["usable_cpus"]) < 4)


def test_threads_roam_on_a_node_as_under_numactl(unix, node):
    agents, _ = agents_of(unix, {"transport": "pipe", "placement": {"sender": {"node": node["id"]}}})
    assert agents[0]["placement"]["roam"] is True
    for thread in agents[0]["proof"]["threads"]:
        assert sorted(thread["affinity"]) == sorted(node["usable_cpus"])
    assert agents[1]["placement"]["cpus"] == []


CPUS = sorted(os.sched_getaffinity(0))


@pytest.mark.skipif(len(CPUS) < 2, reason="a thread has no other CPU here")
@pytest.mark.parametrize("placement", ["default", {"sender": {"cpu": CPUS[0]}, "receiver": {"cpu": CPUS[-1]}}])
def test_an_affinity_that_is_restored_is_a_violation(daemon, unix, placement):
    """As taskset sets it, for a part of a second of the window, and sets it back before that is over."""
    log_from = daemon.log.stat().st_size
    spec = OF_PIPE | {"placement": placement, "duration_seconds": 5, "rate": 1000}
    experiment = unix.post(spec)
    wait_window(daemon, unix, experiment, log_from)
    receiver = wait_agents(daemon, 2)["receiver"]
    before = os.sched_getaffinity(receiver)
    time.sleep(0.3)
    os.sched_setaffinity(receiver, {CPUS[0]})
    time.sleep(0.7)  # several looks, or one that comes late
    os.sched_setaffinity(receiver, before)
    unix.wait_final(experiment["id"])
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    assert run["state"] == "failed" and run["error"].startswith("placement_violated: receiver"), run["error"]


CHANGES = {
    "other, nice 19": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "batch, nice ": lambda pid: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
}


@pytest.mark.parametrize("words", CHANGES)
def test_a_thread_that_another_process_reschedules_spoils_its_run(daemon, unix, words):
    """As any process of the agents' user can, and renice(1) does."""
    log_from = daemon.log.stat().st_size
    experiment = unix.post(OF_PIPE | {"duration_seconds": 2, "rate": 1000})
    wait_window(daemon, unix, experiment, log_from)
    CHANGES[words](wait_agents(daemon, 2)["receiver"])
    unix.wait_final(experiment["id"])
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    assert run["state"] == "failed", run
    assert f"was changed by another process while it was measured: {words}" in run["error"], run


def test_memory_is_shown_as_it_is_now(unix):
    """MemTotal of each node, which does not move; numa_balancing as /proc has it."""
    topology = unix.get("/topology")
    setting = Path("/proc/sys/kernel/numa_balancing")
    assert topology["numa_balancing"] == (int(setting.read_text()) if setting.exists() else None)
    for node in topology["nodes"]:
        text = Path(f"/sys/devices/system/node/node{node['id']}/meminfo")
        if text.exists():
            assert node["memory_bytes"] == int(text.read_text().split("MemTotal:")[1].split()[0]) * 1024
        assert node["memory_free_bytes"] <= node["memory_bytes"]
        assert node["memory_free_bytes"] > 0 or not node["has_memory"]
