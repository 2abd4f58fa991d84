# SPDX-License-Identifier: MIT
"""Agents that mean harm: whatever they send, the daemon ends the run, answers, and goes on."""

import json
import os
import random
import re

from harness import BUILD, Daemon, wait_for
from ipclabtest import FINAL, PATIENCE_SECONDS

RUNS = int(os.environ.get("IPCLAB_HOSTILE_RUNS", 24))
TOGETHER = 12  # runs of an experiment
SPEC = {"messages": 2000, "warmup_seconds": 0, "repetitions": TOGETHER, "seed": 1}
SPECS = [
    {"transport": "pipe"},
    {"transport": "tcp", "threads": 3, "workload": "pingpong"},
    {"transport": "shm-posix", "rate": 20000},
    {"transport": "mmap-anonymous", "threads": 2},
    {"workload": "syscall", "call": "getpid"},
]
TARGETS = ("", "/runs", "/results", "/results?histogram=1", "/samples", "/findings")


def answers(daemon, identity):
    """What an experiment's addresses answer, as they must: with a whole body, whatever the agents had sent."""
    found = {}
    for target in TARGETS:
        status, body = daemon.request("GET", f"/experiments/{identity}{target}")
        assert status == 200, (target, body)
        found[target] = body
    return found


def test_a_hostile_agent_spoils_its_run_and_no_other():
    daemon = Daemon(agent=BUILD / "tests/unit/hostile-agent")
    rng = random.Random(16)
    kept, states = {}, []
    try:
        daemon.start()
        while len(states) < RUNS:
            spec = SPEC | rng.choice(SPECS)
            identity = daemon.post(spec)["id"]
            wait_for(
                lambda identity=identity: daemon.experiment(identity)["state"] in FINAL,
                PATIENCE_SECONDS,
                f"experiment {identity} to end",
            )
            kept[identity] = answers(daemon, identity)
            states += [run["state"] for run in kept[identity]["/runs"]["items"]]
            for run in kept[identity]["/runs"]["items"]:
                assert run["state"] in ("done", "failed") and (run["error"] is None) == (run["state"] == "done"), run
            assert daemon.get("/health")["status"] == "ok"
            wait_for(lambda: not daemon.agents(), PATIENCE_SECONDS, "the agents to be gone")
        assert daemon.stop() == 0, daemon.log_tail()
        assert daemon.left_processes() == {} and daemon.left_in_runtime() == [] and daemon.left_cgroups() == []
        log = daemon.log_text()
        assert "Sanitizer" not in log and "runtime error" not in log, log
        harmed = len(re.findall(r"hostile agent: seed", log))
        daemon.use_agent(BUILD / "agent/ipclab-agent")
        daemon.start()
        for identity, before in kept.items():
            assert json.dumps(answers(daemon, identity)) == json.dumps(before)
        assert daemon.wait_final(daemon.post(SPEC | {"transport": "pipe"})["id"])["state"] == "done", daemon.log_tail()
        assert daemon.stop() == 0
    finally:
        daemon.remove()
    print(f"counted: {len(states)} runs of {harmed} hostile agents: {states.count('failed')} failed, none else harmed")
    assert states.count("failed") > 0
