# SPDX-License-Identifier: MIT
"""A recorded machine as the API describes one: GET /topology of a host of tests/unit/data/host."""

import re
from collections import defaultdict

from ipclabtest import SOURCE

HOSTS = SOURCE / "tests/unit/data/host"
CPU = "/sys/devices/system/cpu/cpu"
NODE = "/sys/devices/system/node/node"


def ids_of(text):
    """ "0-2,5": 0, 1, 2, 5"""
    spans = [part.split("-") for part in text.split(",") if part]
    return [i for span in spans for i in range(int(span[0]), int(span[-1]) + 1)]


def bytes_of(text):
    number, unit = re.fullmatch(r"(\d+)([KMG]?)", text).groups()
    return int(number) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[unit]


def topology(name):
    lines = (HOSTS / f"{name}.host").read_text().splitlines()
    files = dict(line.split(": ", 1) for line in lines if line.startswith("/") and ": " in line)
    nodes, cpus, caches = [], [], {}
    for id in ids_of(files["/sys/devices/system/node/online"]):
        of = ids_of(files.get(f"{NODE}{id}/cpulist", ""))
        distances = [int(one) for one in files[f"{NODE}{id}/distance"].split()]
        nodes.append({"id": id, "cpus": of, "usable_cpus": of, "has_memory": True, "memory_bytes": 2**31} | {
            "memory_allowed": True, "memory_free_bytes": 2**30, "distances": distances})  # fmt: skip
    node_of = {cpu: node["id"] for node in nodes for cpu in node["cpus"]}
    for id in ids_of(files["/sys/devices/system/cpu/online"]):
        places = {
            "package": int(files[f"{CPU}{id}/topology/physical_package_id"]),
            "core": int(files[f"{CPU}{id}/topology/core_id"]),
            "siblings": ids_of(files[f"{CPU}{id}/topology/core_cpus_list"]),
        }
        cpus.append({"id": id, "online": True, "allowed": True, "node": node_of[id]} | places)
        index = 0
        while f"{CPU}{id}/cache/index{index}/level" in files:
            cache = {key: files[f"{CPU}{id}/cache/index{index}/{key}"] for key in ("level", "type", "size")}
            shared = ids_of(files[f"{CPU}{id}/cache/index{index}/shared_cpu_list"])
            size = {"size_bytes": bytes_of(cache["size"]), "line_bytes": 64, "cpus": shared}
            caches[cache["level"], cache["type"], tuple(shared)] = {
                "level": int(cache["level"]),
                "type": cache["type"],
            } | size
            index += 1
    packages = defaultdict(list)
    for cpu in cpus:
        packages[cpu["package"]].append(cpu["id"])
    return {
        "numa": True,
        "smt": any(len(cpu["siblings"]) > 1 for cpu in cpus),
        "packages": len(packages),
        "numa_balancing": 0,
        "nodes": nodes,
        "cpus": cpus,
        "caches": list(caches.values()),
    }
