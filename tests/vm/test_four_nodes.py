# SPDX-License-Identifier: MIT
"""A machine whose nodes are not all alike: two have CPUs and memory, one has memory only (as CXL has), one CPUs only.
The kernel numbers nodes in any order, so the tests read from sysfs which is which."""

import pytest
from judge import agree, check_named_placement, nodes_of_pages, sysfs_nodes
from lab import BRIEF, STUDY, Lab, ids

SHAPE = "four nodes"


@pytest.fixture(scope="module")
def kinds(lab: Lab) -> dict[str, set[int]]:
    text = lab.sh("cd /sys/devices/system/node; cat online has_cpu has_memory").split()
    online, cpu, memory = map(ids, text)
    found = {"whole": cpu & memory, "memory only": memory - cpu, "CPUs only": cpu - memory}
    assert len(online) == 4 and len(found["whole"]) == 2
    return found


def test_topology_is_the_kernels(lab: Lab, kinds: dict[str, set[int]]):
    nodes = {node["id"]: node for node in lab.get("/topology")["nodes"]}
    assert {n for n, node in nodes.items() if node["cpus"]} == kinds["whole"] | kinds["CPUs only"]
    assert {n for n, node in nodes.items() if node["memory_bytes"]} == kinds["whole"] | kinds["memory only"]
    text = lab.sh("cd /sys/devices/system/node; for n in $(ls -d node[0-9]* | sort -V); do cat $n/distance; done")
    assert [node["distances"] for _, node in sorted(nodes.items())] == [
        [int(word) for word in line.split()] for line in text.splitlines()
    ]


def test_preset_of_the_study(lab: Lab, kinds: dict[str, set[int]]):
    """Its placements, with one message size and once each."""
    observed = lab.observed({**STUDY, "message_size": 1024})
    assert len(observed) == 3
    cpus = sysfs_nodes(lab)
    for run, look in observed:
        check_named_placement(run, cpus)
        agree(run, look)
    lab.nothing_left()


def test_pages_on_the_node_without_cpus(lab: Lab, kinds: dict[str, set[int]]):
    [far] = kinds["memory only"]
    near = min(kinds["whole"])
    place = {"node": near, "memory": {"policy": "bind", "nodes": [near]}, "buffer": {"node": far}}
    spec = {"transport": ["pipe", "unix-stream", "shm-posix"], "message_size": 16384}
    for run, look in lab.observed({**spec, "placement": {"sender": place, "receiver": place}}):
        agree(run, look)
        for agent in run["agents"]:
            assert nodes_of_pages(agent["proof"]["pages"], "buffer", "ring") == {far}


def test_agents_on_the_node_without_memory(lab: Lab, kinds: dict[str, set[int]]):
    [bare] = kinds["CPUs only"]
    near = min(kinds["whole"])
    memory = {"policy": "bind", "nodes": [near]}
    observed = lab.observed({"transport": ["fifo", "shm-posix"], "placement": {
        "sender": {"node": bare, "memory": memory}, "receiver": {"node": near, "memory": memory}}})  # fmt: skip
    for run, look in observed:
        agree(run, look)


def test_all_pairs_leave_out_nodes_without_a_cpu(lab: Lab, kinds: dict[str, set[int]]):
    runs = lab.done({"transport": "pipe", "placement": "all-node-pairs", **BRIEF})
    pairs = {tuple(agent["placement"]["node"] for agent in run["agents"]) for run in runs}
    able = kinds["whole"] | kinds["CPUs only"]
    assert pairs == {(a, b) for a in able for b in able} and len(runs) == 9
    cpus = sysfs_nodes(lab)
    for run in runs:
        for agent in run["agents"]:
            assert set(agent["placement"]["cpus"]) == cpus[agent["placement"]["node"]]
            assert set(agent["placement"]["memory"]["nodes"]) <= kinds["whole"]


@pytest.mark.parametrize("field", ["node", "memory"])
def test_what_a_node_has_not_is_refused(lab: Lab, kinds: dict[str, set[int]], field: str):
    if field == "node":
        [node] = kinds["memory only"]
        place = {"node": node}
    else:
        [node] = kinds["CPUs only"]
        place = {"memory": {"policy": "bind", "nodes": [node]}}
    problem = lab.refused({"transport": "pipe", "placement": {"sender": place, "receiver": {"cpu": 0}}})
    assert problem["pointer"].startswith(f"/placement/sender/{field}"), problem
    assert f"node {node} has no" in problem["detail"], problem
