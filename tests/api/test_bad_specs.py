# SPDX-License-Identifier: MIT
"""Specs that must be refused, each with exactly one problem: data/bad_specs.json, posted to the real daemon.

A row gives the "spec" (or a raw "body"), and of the problem the status (422 by default), the slug, and all of the
members that are there. A value that depends on the host is an expression over the facts below, which are read here and
not from the daemon: "=wmem_max + 1" is a value, "{wmem_max}" a part of a sentence, and "{those('has_wait')}" a list of
transports, whose rows have that. "~free" is a figure that changes meanwhile: the problem's may differ from it by half.
"when" names the hosts on which the row can be tried; no row is skipped otherwise.
"""

import contextlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from ipclabtest import transports

ROWS = json.loads((Path(__file__).parent / "data/bad_specs.json").read_text(encoding="utf-8"))

# What a person reads of each: one title per slug.
TITLES = {
    "duplicate-value": "A value stands twice",
    "empty-list": "A list is empty",
    "impossible-combination": "The mechanism cannot do this",
    "invalid-json": "The body is not valid JSON",
    "limit-exceeded": "A limit is exceeded",
    "missing-field": "A field is missing",
    "unknown-field": "Unknown field",
    "unknown-value": "Unknown value",
    "wrong-combination": "These fields do not go together",
    "wrong-type": "Wrong type",
    "wrong-value": "Value out of range",
}


def read(path, default=""):
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return default


def number(path):
    return int(read(path, "-1") or -1)


def meminfo(key):
    found = re.search(rf"^{key}:\s+(\d+)", read("/proc/meminfo"), re.MULTILINE)
    return int(found[1]) if found else 0


def count(cpu_list):
    ends = [part.split("-") for part in cpu_list.split(",") if part]
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def can_set_queues():
    """Whether who runs these tests may set the limits of an IPC namespace of his own, as the daemon then may."""
    command = "echo 9000 > /proc/sys/kernel/msgmax"
    with contextlib.suppress(OSError):
        return subprocess.run(["unshare", "--ipc", "sh", "-c", command], capture_output=True).returncode == 0
    return False


def has_memory_limit():
    """Whether a cgroup that these tests are in, and so the daemon, may not have all of the memory."""
    own = re.search(r"^0::(/.*)$", read("/proc/self/cgroup"), re.MULTILINE)
    groups = [Path(own[1]), *Path(own[1]).parents] if own else []
    return any(read(f"/sys/fs/cgroup{group}/memory.max", "max") != "max" for group in groups)


def free_space(folder):
    info = os.statvfs(folder)
    return info.f_bavail * info.f_frsize


@pytest.fixture(scope="module")
def facts():
    nodes = read("/sys/devices/system/node/online", "0")
    page = os.sysconf("SC_PAGESIZE")
    wmem_max = number("/proc/sys/net/core/wmem_max")
    kernel_datagram = 4096 * 1024 + 17 * page - 320
    return {
        "cpus_present": read("/sys/devices/system/cpu/present"),
        "nodes": nodes,
        "n_nodes": count(nodes),
        "smt": read("/sys/devices/system/cpu/smt/active", "0") == "1",
        "cpu": min(os.sched_getaffinity(0)),
        "n_cpus": len(os.sched_getaffinity(0)),
        "page": page,
        "pipe_max_size": number("/proc/sys/fs/pipe-max-size"),
        "pipe_user_pages": number("/proc/sys/fs/pipe-user-pages-soft"),
        "wmem_max": wmem_max,
        "rmem_max": number("/proc/sys/net/core/rmem_max"),
        "busy_read": number("/proc/sys/net/core/busy_read"),
        "congestion": read("/proc/sys/net/ipv4/tcp_allowed_congestion_control"),
        "datagram": min(max(2 * wmem_max, 4608) - 32, kernel_datagram),
        "kernel_datagram": kernel_datagram,
        "huge_pages": meminfo("HugePages_Free") + number("/proc/sys/vm/nr_overcommit_hugepages"),
        "huge_page": meminfo("Hugepagesize") * 1024,
        "memory": meminfo("MemAvailable") * 1024,
        "memory_limit": has_memory_limit(),
        "shm_free": free_space("/dev/shm"),
        "numa_balancing": Path("/proc/sys/kernel/numa_balancing").exists(),
        "queues": can_set_queues(),
        "transports": ", ".join(transports.ROWS),
        "those": lambda *property: transports.listed(transports.where(*property)),
    }


def value_of(template, facts):
    """A template with its expressions worked out."""
    if isinstance(template, dict):
        return {key: value_of(value, facts) for key, value in template.items()}
    if isinstance(template, list):
        return [value_of(value, facts) for value in template]
    if isinstance(template, str) and template.startswith(("=", "~")):
        return eval(template[1:], {"__builtins__": {}}, facts)
    return template


def sentence_of(template, facts):
    return re.sub(r"\{([^{}]+)\}", lambda m: str(value_of("=" + m[1], facts)), template)


def expected_of(row, problem, facts):
    """The whole problem. A moving figure is taken from the problem, once it has been found to be near enough."""
    known = dict(facts)
    expected = {"status": row.get("status", 422), "instance": "/experiments"}
    expected |= {key: row[key] for key in ("pointer",) if key in row}
    for key in ("limit", "value"):
        if key not in row:
            continue
        template = row[key]["value"] if key == "limit" else row[key]
        value = value_of(template, known)
        if isinstance(template, str) and template.startswith("~"):
            got = problem["limit"]["value"]
            assert value / 2 <= got <= value * 2, (template, value, problem)
            value = got
            known["limit"] = got
        expected[key] = {"name": row["limit"]["name"], "value": value} if key == "limit" else value
    expected["detail"] = sentence_of(row["detail"], known)
    return expected


def test_there_are_enough():
    assert len(ROWS) >= 60
    bodies = [json.dumps(row.get("spec", row.get("body"))) for row in ROWS]
    assert len(set(bodies)) == len(bodies)
    members = {"spec", "body", "when", "status", "slug", "pointer", "limit", "value", "detail"}
    assert all(set(row) <= members for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{r['slug']}{r.get('pointer', '')}" for i, r in enumerate(ROWS)])
def test_it_is_refused_so_and_not_otherwise(unix, facts, row):
    if "when" in row and not value_of("=" + row["when"], facts):
        pytest.skip(f"this host is not one where {row['when']}")
    body = row["body"].encode() if "body" in row else json.dumps(value_of(row["spec"], facts)).encode()
    before = unix.get("/experiments?limit=1")["items"][:1]
    answer = unix.request("POST", "/experiments", body, {"Content-Type": "application/json"})
    problem = dict(answer.json)
    assert answer.status == row.get("status", 422), problem
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert problem.pop("type") == f"urn:ipclab:problem:{row['slug']}", problem
    assert problem.pop("title") == TITLES[row["slug"]]
    assert problem == expected_of(row, problem, facts)
    after = unix.get("/experiments?limit=1")["items"][:1]
    assert [e["id"] for e in before] == [e["id"] for e in after], "what is refused is not stored"


def test_what_is_left_out_has_the_words_of_its_refusal(unix):
    """skip_impossible: the same check, and the reason is the problem's sentence."""
    bad = {"placement": {"sender": {"cpu": 8191}}, "duration_seconds": 0.1}
    problem = unix.refused("POST", "/experiments", 422, "limit-exceeded", bad)
    spec = bad | {"placement": ["default", bad["placement"]], "skip_impossible": True}
    experiment = unix.post(spec)
    assert [s["reason"] for s in experiment["skipped"]] == [problem["detail"]]
    assert experiment["skipped"][0]["point"]["placement"] == bad["placement"]
    assert experiment["progress"]["runs_total"] == 1
    unix.request("POST", f"/experiments/{experiment['id']}/cancel")
    unix.wait_final(experiment["id"])
    unix.refused("POST", "/experiments", 422, "no-points", bad | {"skip_impossible": True})
