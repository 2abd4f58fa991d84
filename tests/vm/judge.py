# SPDX-License-Identifier: MIT
"""The stored proof against what the guest's kernel said."""

from lab import Lab, Look, ids


def nodes_of_pages(counts: list[dict], *kinds: str) -> set[int]:
    return {int(node) for count in counts if count["what"] in kinds for node, n in (count["nodes"] or {}).items() if n}


def agree(run: dict, look: Look) -> None:
    """The stored proof against the independent look, agent by agent."""
    assert set(look.agents) == {agent["pid"] for agent in run["agents"]}
    for agent in run["agents"]:
        process, proof, given = look.agents[agent["pid"]], agent["proof"], agent["placement"]
        assert process.role == agent["role"]
        assert process.status["CapEff"] == process.status["CapBnd"] == process.status["CapAmb"] == "0" * 16
        assert process.status["Uid"].split()[0] != "0"
        assert process.status["NoNewPrivs"] == "1"
        for thread in proof["threads"]:
            task = process.tasks[thread["tid"]]
            assert task.allowed == set(thread["affinity"])
            assert task.cpu in task.allowed
            if given["cpus"] and not given["roam"]:
                assert thread["cpus_seen"] == thread["affinity"] == [task.cpu]
                assert task.allowed == {given["cpus"][thread["thread"] % len(given["cpus"])]}

        private = {node for m in process.maps if m.anonymous for node in m.pages}
        shared = {node for m in process.maps if m.shared for node in m.pages}
        assert nodes_of_pages(proof["pages"], "stack", "buffer") <= private
        assert nodes_of_pages(proof["pages"], "ring") <= shared
        if given["memory"]["policy"] == "bind" and "buffer" not in given:
            bound = set(given["memory"]["nodes"])
            assert private == bound
            assert {m.policy for m in process.maps if m.anonymous} == {f"bind:{min(bound)}"}
            assert nodes_of_pages(proof["pages"], "stack", "buffer", "ring") == bound


def sysfs_nodes(lab: Lab) -> dict[int, set[int]]:
    """CPUs by node, as this kernel numbers them."""
    text = lab.sh("cd /sys/devices/system/node; for n in node[0-9]*; do echo ${n#node} $(cat $n/cpulist); done")
    return {int(line.split()[0]): ids((line.split() + [""])[1]) for line in text.splitlines()}


def check_named_placement(run: dict, cpus: dict[int, set[int]]) -> None:
    """same-node and cross-node by the guest's own sysfs."""
    used = [{node for node, its in cpus.items() if its & set(a["placement"]["cpus"])} for a in run["agents"]]
    word = run["point"]["placement"]
    if word == "same-node":
        assert used[0] == used[1] and len(used[0]) == 1
        assert not set(run["agents"][0]["placement"]["cpus"]) & set(run["agents"][1]["placement"]["cpus"])
    elif word == "cross-node":
        assert len(used[0]) == len(used[1]) == 1 and used[0] != used[1]
