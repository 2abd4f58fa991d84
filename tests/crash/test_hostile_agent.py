# SPDX-License-Identifier: MIT
"""Agents that mean harm: whatever they send, the daemon ends the run, answers, and goes on. IPCLAB_HOSTILE_SEED repeats
what they sent, as far as their messages come in the same order.
"""

import json
import os
import random
import re
import secrets
import shutil

from harness import BUILD, Daemon, wait_for
from ipclabtest import FINAL, PATIENCE_SECONDS

RUNS = int(os.environ.get("IPCLAB_HOSTILE_RUNS", 24))
SEED = int(os.environ.get("IPCLAB_HOSTILE_SEED", secrets.randbelow(2**31)))
PLACE = b"THE PATH OF THE FILE WITH THE SEED".ljust(256, b"\0")  # of the path in the program (hostile-agent.c)
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


def use_hostile_agent(daemon):
    """A copy of its program that knows the file with the seed that its agents share."""
    file, program = daemon.base / "seed", daemon.base / "hostile-agent"
    file.write_text(f"{SEED}\n")
    file.chmod(0o666)  # agents of another user leave the next number there
    content = shutil.copy(BUILD / "tests/unit/hostile-agent", program).read_bytes()
    assert content.count(PLACE) == 1
    program.write_bytes(content.replace(PLACE, bytes(file).ljust(len(PLACE), b"\0")))
    daemon.use_agent(program)


def test_a_hostile_agent_spoils_its_run_and_no_other():
    print(f"counted: from IPCLAB_HOSTILE_SEED={SEED}", flush=True)  # what pytest shows of a test that failed, too
    daemon = Daemon()
    use_hostile_agent(daemon)
    rng = random.Random(SEED)
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
        assert "hostile agent: no seed" not in log, log
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
