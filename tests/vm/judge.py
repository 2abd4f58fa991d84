# SPDX-License-Identifier: MIT
"""The stored proof against the report of the guest's kernel."""

from collections import Counter

from ipclabtest.transports import ROWS
from lab import Lab, Look, Process, ids

PAGE = 4096
# What carries messages, other than a buffer alone; the ring of a peer's memory has the addresses of its buffers' slots.
CARRIERS = {"CARRIER_RING": {"ring"}, "CARRIER_PEER": {"buffer", "ring"}}
SHARED = ("ring", "semaphores")  # kinds of pages that both ends have mapped
CACHE = "page_cache"  # of a file: it is not mapped, so that only its cgroup has it
CHARGED_AT_ONCE = 64  # pages by which a CPU's share of memory.numa_stat may be late (MEMCG_CHARGE_BATCH)


def pages_by_node(counts: list[dict], *kinds: str) -> Counter:
    found: Counter = Counter()
    for count in counts:
        if count["what"] in kinds:
            found.update({int(node): n for node, n in (count["nodes"] or {}).items() if n})
    return found


def nodes_of_pages(counts: list[dict], *kinds: str) -> set[int]:
    return set(pages_by_node(counts, *kinds))


def policy_text(memory: dict) -> str:
    """As numa_maps has it."""
    word = {"preferred": "prefer"}.get(memory["policy"], memory["policy"])
    nodes = sorted(memory["nodes"])
    if not nodes or word == "local":
        return word
    apart = len(nodes) > 1 and nodes != list(range(nodes[0], nodes[-1] + 1))
    assert not apart, "this function writes no list with gaps"
    return f"{word}:{nodes[0]}" if len(nodes) == 1 else f"{word}:{nodes[0]}-{nodes[-1]}"


def memory_of(given: dict, kind: str) -> dict:
    """The policy for pages of this kind: where buffers are placed apart, what carries messages goes with them."""
    return given.get("buffer", given["memory"]) if kind in ("buffer", "ring", CACHE) else given["memory"]


def home(given: dict, kind: str) -> set[int] | None:
    """The nodes where pages of this kind belong; None: any, and the kernel may move them at any time."""
    memory = memory_of(given, kind)
    if memory["policy"] == "default":
        return None
    return {given["node"]} if memory["policy"] == "local" else set(memory["nodes"])


def check_process(agent: dict, process: Process) -> None:
    assert agent["role"] in process.roles
    assert process.status["CapEff"] == process.status["CapBnd"] == process.status["CapAmb"] == "0" * 16
    assert process.status["Uid"].split()[0] != "0"
    assert process.status["NoNewPrivs"] == "1"


def check_threads(agent: dict, process: Process) -> None:
    given = agent["placement"]
    for thread in agent["proof"]["threads"]:
        task = process.tasks[thread["tid"]]
        assert task.allowed == set(thread["affinity"])
        assert task.cpu in task.allowed
        if given["cpus"] and not given["roam"]:
            assert thread["cpus_seen"] == thread["affinity"] == [task.cpu]
            assert task.allowed == {given["cpus"][thread["thread"] % len(given["cpus"])]}


def check_pages(agent: dict, process: Process, inherited: set[int]) -> None:
    """Kind by kind: all pages are where the spec puts them, and no more than the kernel has of such mappings.
    inherited: nodes of the few pages that a forked peer inherits and only reads (relocations, libc's data)."""
    given, counts = agent["placement"], agent["proof"]["pages"]
    mapped: dict[bool, Counter] = {False: Counter(), True: Counter()}  # by whether it is shared
    for mapping in process.maps:
        if mapping.shared or mapping.anonymous:
            mapped[mapping.shared].update(mapping.pages)
    for kind in {count["what"] for count in counts}:
        stored, there = pages_by_node(counts, kind), mapped[kind in SHARED]
        expected = home(given, kind)
        if expected is None:  # a page that balancing samples at that moment cannot be looked up, and counts as absent
            assert kind == CACHE or stored.total() <= there.total(), (kind, counts, there)
            continue
        assert all(count["absent"] == 0 for count in counts if count["what"] == kind), counts
        interleaved = memory_of(given, kind)["policy"] == "interleave"
        assert set(stored) <= expected and (interleaved or set(stored) == expected), (kind, counts)
        assert kind == CACHE or all(there[node] >= n for node, n in stored.items()), (kind, stored, there)
    policies = {m.policy for m in process.maps if m.anonymous and not m.shared}
    if "buffer" in given:
        buffers = Counter()
        for mapping in process.maps:
            if mapping.policy == policy_text(given["buffer"]):
                buffers.update(mapping.pages)
        stored = pages_by_node(counts, "buffer")  # a ring's mapping has the policy of whoever made it
        assert all(buffers[node] >= n for node, n in stored.items()), (stored, buffers)
        assert policies <= {policy_text(given["memory"]), policy_text(given["buffer"])}
    else:
        assert policies == {policy_text(given["memory"])}
    if given["memory"]["policy"] in ("bind", "preferred") and "buffer" not in given:
        private = {node for m in process.maps if m.anonymous and not m.shared for node in m.pages}
        assert home(given, "stack") <= private <= home(given, "stack") | inherited, private


def check_cgroup(run: dict, look: Look) -> None:
    """The run's cgroup, or the one above that has the controller: what it may use, and what it is charged with. Pages
    that were stored for a node and are on another are found when they are more than the CPUs' shares may be late by; of
    fewer numa_maps alone has them. Where the kernel chooses the node, no charge is checked."""
    assert {"cpuset.cpus.effective", "cpuset.mems.effective", "memory.numa_stat"} <= set(look.cgroup), look.cgroup
    cpus, nodes = ids(look.cgroup["cpuset.cpus.effective"]), ids(look.cgroup["cpuset.mems.effective"])
    for agent in run["agents"]:
        assert {cpu for t in agent["proof"]["threads"] for cpu in t["cpus_seen"] + t["affinity"]} <= cpus
        assert nodes_of_pages(agent["proof"]["pages"], "stack", "buffer", *SHARED, CACHE) <= nodes
    if all(home(a["placement"], "stack") is not None for a in run["agents"]):
        charged = {
            line.split()[0]: {int(key[1:]): int(n) for key, _, n in (w.partition("=") for w in line.split()[1:])}
            for line in look.cgroup["memory.numa_stat"].splitlines()
        }
        late = CHARGED_AT_ONCE * PAGE * run_cpus(look)
        for names, kinds in ((("anon",), ("stack", "buffer")), (("shmem", "file"), (*SHARED, CACHE))):
            stored = sum((pages_by_node(a["proof"]["pages"], *kinds) for a in run["agents"]), Counter())
            for node, n in stored.items():
                assert n * PAGE <= sum(charged[name][node] for name in names) + late, (names, stored, charged)


def run_cpus(look: Look) -> int:
    return len(ids(look.cgroup["cpuset.cpus.effective"]))


def agree_but_for_charges(run: dict, look: Look) -> None:
    """The stored proof against the independent look, agent by agent."""
    assert set(look.agents) == {agent["pid"] for agent in run["agents"]}
    for agent in run["agents"]:
        process = look.agents[agent["pid"]]
        forked = len(process.roles) > 1
        inherited = set().union(*(home(a["placement"], "stack") or () for a in run["agents"])) if forked else set()
        check_process(agent, process)
        check_threads(agent, process)
        check_pages(agent, process, inherited)
    counts = [count for agent in run["agents"] for count in agent["proof"]["pages"]]
    kinds = {count["what"] for count in counts if count["total"] > 0 and count["nodes"] is not None}
    carriers = CARRIERS.get(ROWS[run["point"]["transport"]]["carrier"], {"buffer"})
    assert {"stack"} | carriers <= kinds and ("ring" in kinds) == ("ring" in carriers), counts


def agree(run: dict, look: Look) -> None:
    """And against what the run's cgroup was charged with: all pages but huge ones are."""
    agree_but_for_charges(run, look)
    check_cgroup(run, look)


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
