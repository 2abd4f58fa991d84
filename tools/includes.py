#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the sources' includes to README's map: which room may include which, and no cycles of modules.

Takes the files as arguments, relative to the repository. A module is NAME.c, NAME.h and NAME-internal.h together.
"""

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
ROOMS = ("agent", "api", "daemon", "schema")

# What every inner room of the daemon may include, and what the rooms that lead a run may include beside it.
DAEMON = ("schema/", "daemon/config.h", "daemon/log.h")
RUNS = (*DAEMON, *(f"daemon/{name}/" for name in "admission analysis host placement result run store tune".split()))
# Which other rooms, or files, a room may include. What is longest and fits the including file counts.
MAY = {
    "schema/": (),
    "agent/": ("schema/",),
    "api/": ("schema/", "api/http/", "daemon/service/service.h"),
    "api/http/": ("schema/",),
    "daemon/": ("schema/",),
    "daemon/main.c": ("schema/", "api/", "daemon/"),
    "daemon/admission/": RUNS,
    "daemon/analysis/": ("schema/",),
    "daemon/host/": DAEMON,
    "daemon/host/environment/environment.h": (*DAEMON, "daemon/placement/placement.h"),
    "daemon/placement/": (*DAEMON, "daemon/host/"),
    "daemon/result/": RUNS,
    "daemon/run/": RUNS,
    "daemon/run/scheduler.h": (*RUNS, "daemon/service/host.h"),
    "daemon/service/": RUNS,
    "daemon/store/": (*DAEMON, "daemon/analysis/"),
    "daemon/tune/": (*DAEMON, "daemon/host/", "daemon/store/"),
}
# Inner rooms from the ground up; a room includes itself, its floor and those below. "" is the files outside of them.
FLOORS = {
    "agent/": (("os",), ("base",), ("proof", "measure", "loop"), ("transport", "workload"), ("script",), ("",)),
    "api/handle/": (("render",), ("", "bundle", "report"), ("route",)),
    "api/http/": (("connection",), ("",)),
    "daemon/analysis/": (("statistics",), ("", "findings")),
    "daemon/host/": (("",), ("disturbance",), ("environment",)),
    "daemon/store/": (("database",), ("",)),
    "daemon/run/": (("spawn",), ("sandbox",), ("watch",), ("",)),
}


def room(path):
    """The folder that the rules are about: an inner one in daemon/, api/http/, else one of ROOMS."""
    parts = path.split("/")
    inner = path.startswith("api/http/") or (parts[0] == "daemon" and len(parts) > 2)
    return "/".join(parts[: 2 if inner else 1]) + "/"


def floor(path, outer):
    """The layer of a file among the inner rooms of `outer`; None where its room has none."""
    inner = path[len(outer) :].rpartition("/")[0].split("/")[0]
    return next((number for number, rooms in enumerate(FLOORS[outer]) if inner in rooms), None)


def fault(path, included):
    """Why this file may not include that one, or None."""
    if not included.startswith(tuple(name + "/" for name in ROOMS)):
        return None
    rule = max((key for key in MAY if path.startswith(key)), key=len)
    if room(included) != room(path) and not included.startswith(MAY[rule]):
        return f"{rule} may not include {included}"
    for outer in (key for key in FLOORS if path.startswith(key)):
        mine = floor(path, outer)
        if mine is None:
            return "this inner room has no floor in tools/includes.py"
        if included.startswith(outer) and (floor(included, outer) or 0) > mine:
            return f"{Path(path).parent}/ is below {included}"
    return None


def module_of(path):
    return str(Path(path).with_suffix("")).removesuffix("-internal")


def cycles(graph):
    """Sets of modules that can each be reached from each other (Tarjan's strongly connected components)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node] & graph.keys()):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            where = stack.index(node)
            found.append(sorted(stack[where:]))
            del stack[where:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def main(paths):
    bad, graph = [], {}
    for path in paths:
        module = module_of(path)
        others = graph.setdefault(module, set())
        for match in INCLUDE.finditer(Path(path).read_text()):
            others.add(module_of(match.group(1)))
            why = fault(path, match.group(1))
            if why:
                bad.append(f"{path}: {why}")
        others.discard(module)
    for cycle in cycles(graph):
        if len(cycle) > 1:
            bad.append(f"{len(cycle)} modules include each other: {' '.join(cycle)}")
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
