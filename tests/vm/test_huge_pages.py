# SPDX-License-Identifier: MIT
"""Rings in huge pages, which few hosts have reserved: here the administrator does so, while the service runs. The
kernel reports their nodes."""

from collections import Counter
from collections.abc import Iterator

import pytest
from judge import PAGE, agree_but_for_charges, nodes_of_pages, pages_by_node, sysfs_nodes
from lab import Lab

SHAPE = "two nodes"
HUGE = 2048 * 1024  # of x86_64
POOL = 16  # on each node, which is more than any run here takes
CARRIERS = ["shm-posix", "shm-sysv", "mmap-anonymous"]
SPEC = {"transport_options": {"huge_pages": True}}


def vm_setting(lab: Lab, name: str, value: object) -> str:
    """What was written, as the kernel has it then."""
    return lab.sh(f"echo {value} >/proc/sys/vm/{name}; cat /proc/sys/vm/{name}").strip()


def huge_pages(lab: Lab) -> dict[str, int]:
    lines = lab.sh("grep ^HugePages_ /proc/meminfo").splitlines()
    return {line.split(":")[0].removeprefix("HugePages_"): int(line.split()[1]) for line in lines}


@pytest.fixture(scope="module")
def pool(lab: Lab) -> Iterator[int]:
    """How many there are."""
    pages = POOL * len(sysfs_nodes(lab))
    assert vm_setting(lab, "nr_hugepages", pages) == str(pages), huge_pages(lab)
    yield pages
    assert vm_setting(lab, "nr_hugepages", 0) == "0"


def limit_of(problem: dict) -> tuple[str, int]:
    assert problem["pointer"] == "/transport_options/huge_pages", problem
    return problem["limit"]["name"], int(problem["limit"]["value"])


@pytest.mark.parametrize("transport", CARRIERS)
def test_nothing_is_set_apart(lab: Lab, transport: str):
    problem = lab.refused({**SPEC, "transport": transport})
    assert limit_of(problem) == ("huge pages free", 0)
    assert "sysctl vm.nr_hugepages=PAGES" in problem["detail"], problem


def test_those_of_system_v_are_for_one_group(lab: Lab, pool: int):
    problem = lab.refused({**SPEC, "transport": CARRIERS})
    assert limit_of(problem) == ("vm.hugetlb_shm_group", 0)
    assert "sysctl vm.hugetlb_shm_group=GID" in problem["detail"], problem
    runs = lab.done({**SPEC, "transport": CARRIERS, "skip_impossible": True, "messages": 100})
    assert {run["point"]["transport"] for run in runs} == set(CARRIERS) - {"shm-sysv"}


@pytest.fixture
def group(lab: Lab) -> Iterator[None]:
    gid = lab.sh("id -g ipclab").strip()
    assert vm_setting(lab, "hugetlb_shm_group", gid) == gid
    yield
    assert vm_setting(lab, "hugetlb_shm_group", 0) == "0"


def test_rings_lie_in_them(lab: Lab, pool: int, group: None):
    """On the node of the spec, and as many as the run's effective settings have."""
    first, second = sorted(sysfs_nodes(lab))
    place = {"node": first, "memory": {"policy": "bind", "nodes": [first]}, "buffer": {"node": second}}
    observed = lab.observed({**SPEC, "transport": CARRIERS, "placement": {"sender": place, "receiver": place}})
    assert sorted(run["point"]["transport"] for run, _ in observed) == sorted(CARRIERS)
    for run, look in observed:
        effective = run["result"]["effective"]
        assert effective["huge_pages"] is True and effective["page_bytes"] == HUGE, effective
        agree_but_for_charges(run, look)
        for agent in run["agents"]:
            mapped: Counter = Counter()
            for mapping in look.agents[agent["pid"]].maps:
                if mapping.page_kib * 1024 == HUGE:
                    mapped.update(mapping.pages)
            assert mapped.total() * PAGE == agent["effective"]["shared_bytes"], (run["point"], mapped)
            assert nodes_of_pages(agent["proof"]["pages"], "ring") <= {second}
        rings = sum((pages_by_node(agent["proof"]["pages"], "ring") for agent in run["agents"]), Counter())
        assert rings[second] * PAGE >= effective["ring_bytes"], rings
    lab.nothing_left()
    left = huge_pages(lab)
    assert left["Free"] == left["Total"] == pool and left["Rsvd"] == 0, left


def test_a_ring_that_is_larger_than_what_is_set_apart(lab: Lab, pool: int, group: None):
    for transport in CARRIERS:
        options = {"huge_pages": True, "ring_bytes": pool * HUGE}
        problem = lab.refused({"transport": transport, "transport_options": options})
        assert limit_of(problem) == ("huge pages free", pool)
