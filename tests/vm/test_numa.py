# SPDX-License-Identifier: MIT
"""Placement on a machine of two nodes, by the service: the daemon's stored proof is compared with the
guest kernel's report on the same processes at the same time."""

import json
from collections import Counter

import pytest
from judge import CACHE, agree, check_named_placement, nodes_of_pages, pages_by_node, sysfs_nodes
from lab import LONG, STUDY, Lab, ids

SHAPE = "two nodes"


def test_preset_of_the_study(lab: Lab):
    """All nine of its points are planned; its placements are observed with one message size, and once each."""
    status, plan = lab.ask("POST", "/experiments?dry_run=true", STUDY)
    assert status == 200 and json.loads(plan)["runs"] == 9, plan
    observed = lab.observed({**STUDY, "message_size": 4096})
    runs = [run for run, _ in observed]
    words = {run["point"]["placement"] if isinstance(run["point"]["placement"], str) else "default" for run in runs}
    assert words == {"same-node", "cross-node", "default"} and len(runs) == 3
    cpus = sysfs_nodes(lab)
    for run, look in observed:
        check_named_placement(run, cpus)
        agree(run, look)
        for agent in run["agents"]:
            isolation = agent["isolation"]
            assert isolation["cgroup"] == isolation["ipc_namespace"] == "own", isolation
    lab.nothing_left()


def crossed(first: int, second: int, roles: tuple[str, str] = ("sender", "receiver")) -> dict:
    """Each end on a node of its own, what carries its messages on that of the other end."""
    pairs = ((first, second), (second, first))
    places = [{"node": n, "memory": {"policy": "bind", "nodes": [n]}, "buffer": {"node": m}} for n, m in pairs]
    return dict(zip(roles, places, strict=True))


def test_every_transport_that_has_pages(lab: Lab):
    cpus = sysfs_nodes(lab)
    first, second = sorted(cpus)
    transports = [t["name"] for t in lab.get("/transports")["items"] if t["available"] and "stream" in t["workloads"]]
    assert {"pipe", "fifo", "unix-stream", "shm-posix"} <= set(transports)
    places = [crossed(first, second), crossed(first, second, ("server", "client"))]
    observed = lab.observed({"transport": transports, "placement": places, "skip_impossible": True}, timeout=400)
    assert Counter(run["point"]["transport"] for run, _ in observed) == dict.fromkeys(transports, 1)
    for run, look in observed:
        agree(run, look)
        for agent in run["agents"]:
            end, pages = run["point"]["placement"][agent["role"]], agent["proof"]["pages"]
            other = second if end["node"] == first else first
            assert set(agent["placement"]["cpus"]) <= cpus[end["node"]], run["point"]
            assert nodes_of_pages(pages, "buffer", "ring", CACHE) == {other}, run["point"]
            assert nodes_of_pages(pages, "stack") == {end["node"]}, run["point"]
    lab.nothing_left()


def test_cross_node_of_either_kind_of_roles(lab: Lab):
    cpus = sysfs_nodes(lab)
    observed = lab.observed({"transport": ["tcp", "shm-posix"], "placement": "cross-node"})
    assert len(observed) == 2
    for run, look in observed:
        check_named_placement(run, cpus)
        agree(run, look)


def test_as_numactl_binds(lab: Lab):
    """{"node": N, "memory": bind M} is numactl --cpunodebind=N --membind=M; over tcp each thread
    has one of N's CPUs."""
    first, second = sorted(sysfs_nodes(lab))
    place = {"node": second, "memory": {"policy": "bind", "nodes": [first]}}
    [(run, look)] = lab.observed({"transport": "pipe", "placement": {"sender": place, "receiver": place}})
    numactl = lab.sh(f"numactl --cpunodebind={second} --membind={first} sh -c "
                     "'grep Cpus_allowed_list /proc/self/status; numactl --show'")  # fmt: skip
    allowed = ids(numactl.splitlines()[0].partition(":")[2])
    assert "policy: bind" in numactl and f"membind: {first}" in numactl
    agree(run, look)
    for agent in run["agents"]:
        assert look.agents[agent["pid"]].tasks[agent["pid"]].allowed == allowed
    [(run, look)] = lab.observed({"transport": "tcp", "placement": {"server": place, "client": place}})
    agree(run, look)
    used = []
    for agent in run["agents"]:
        assert not agent["placement"]["roam"] and agent["placement"]["memory"]["nodes"] == [first]
        used += [look.agents[agent["pid"]].tasks[thread["tid"]].allowed for thread in agent["proof"]["threads"]]
    assert len(used) == 2 and all(len(cpus) == 1 for cpus in used)
    assert used[0] | used[1] == allowed, "there are two, and each end has its own"


def apart(agent: int, buffer: int) -> dict:
    """Both ends on one node, what carries their messages on another."""
    place = {"node": agent, "memory": {"policy": "bind", "nodes": [agent]}, "buffer": {"node": buffer}}
    return {"sender": place, "receiver": place}


def test_buffers_apart_from_their_agents(lab: Lab):
    first, second = sorted(sysfs_nodes(lab))
    spec = {"transport": ["pipe", "shm-posix"], "message_size": 1 << 20, "placement": apart(first, second)}
    for run, look in lab.observed(spec):
        agree(run, look)
        for agent in run["agents"]:
            assert nodes_of_pages(agent["proof"]["pages"], "buffer", "ring") == {second}
            assert nodes_of_pages(agent["proof"]["pages"], "stack") == {first}
            buffers = [m for m in look.agents[agent["pid"]].maps if m.anonymous and m.policy == f"bind:{second}"]
            assert sum(m.pages.get(second, 0) for m in buffers) >= 256
        if run["point"]["transport"] == "shm-posix":
            rings = sum((pages_by_node(agent["proof"]["pages"], "ring") for agent in run["agents"]), Counter())
            assert rings[second] > 256, "so many that the cgroup's count, which is a little late, cannot but show them"


def test_memory_policies(lab: Lab):
    first, second = sorted(sysfs_nodes(lab))
    policies = [{"policy": "preferred", "nodes": [second]}, {"policy": "local"},
                {"policy": "interleave", "nodes": [first, second]}]  # fmt: skip
    places = [{"node": first, "memory": memory} for memory in policies]
    spec = {"transport": "shm-posix", "message_size": 65536}
    observed = lab.observed({**spec, "placement": [{"sender": place, "receiver": place} for place in places]})
    assert len(observed) == 3
    expected = {"preferred": {second}, "local": {first}, "interleave": {first, second}}
    for run, look in observed:
        agree(run, look)
        nodes = expected.pop(run["agents"][0]["placement"]["memory"]["policy"])
        for agent in run["agents"]:
            if agent["role"] == "receiver":
                assert nodes_of_pages(agent["proof"]["pages"], "ring") == nodes, run["point"]
            assert nodes_of_pages(agent["proof"]["pages"], "buffer") <= nodes, run["point"]
            if len(nodes) == 2:
                private = [m.pages for m in look.agents[agent["pid"]].maps if m.anonymous and not m.shared]
                assert {node for pages in private for node in pages} == nodes, run["point"]
    assert not expected


@pytest.mark.parametrize("back", [False, True], ids=["for good", "and back"])
def test_a_moved_thread_is_found_out(lab: Lab, back: bool):
    experiment = lab.post({"transport": "pipe", "placement": "same-node", **LONG})
    run = lab.meanwhile(
        "was=$(taskset -pc $first | sed 's/.*: //'); other=$(((was + 1) % 4)); taskset -pc $other $first; "
        + ("taskset -pc $was $first" if back else "")
    )
    assert lab.wait(experiment)["state"] == "failed"
    error = lab.get(f"/runs/{run}")["error"]
    assert error.startswith("placement_violated: "), error
    lab.nothing_left()


def test_migrated_pages_are_found_out(lab: Lab):
    first, second = sorted(sysfs_nodes(lab))
    experiment = lab.post({"transport": "pipe", "placement": "same-node", **LONG})
    run = lab.meanwhile(f"migratepages $second {first} {second}")
    assert lab.wait(experiment)["state"] == "failed"
    error = lab.get(f"/runs/{run}")["error"]
    assert error.startswith("placement_violated: ") and f"on node {second}" in error, error
