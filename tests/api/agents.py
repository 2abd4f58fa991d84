# SPDX-License-Identifier: MIT
"""The agents of a run that is under way, by role, for tests that stop or kill them."""

import contextlib
import time
from pathlib import Path

from client import PATIENCE_SECONDS

START_SECONDS = 0.05  # the window is open so long after the agents are ready, and a little longer


def agents_of(daemon):
    """(pid, arguments) of the daemon's agents, the oldest first; no arguments: in its exec, or a zombie."""
    children = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
    found = []
    for pid in children:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # gone since
            if Path(f"/proc/{pid}/comm").read_text().strip() == "ipclab-agent":
                found.append((int(pid), Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1:-1]))
    return found


def roles_of(agents):
    """role -> pid. A forked peer has the arguments of the agent that forked it, in which its own role is the next."""
    roles = {}
    for pid, arguments in agents:
        roles[next(role for role in arguments if role not in roles)] = pid
    return roles


def wait_agents(daemon, n):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found := agents_of(daemon)) != n or not all(arguments for _, arguments in found):
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return roles_of(found)


def wait_window(daemon, unix, experiment, log_from):
    """Until its only run has its window open: the agents were given the start, and its time has come."""
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    line = f"run {run['id']}: agents are ready ".encode()
    deadline = time.monotonic() + PATIENCE_SECONDS
    with daemon.log.open("rb") as log:
        while True:
            log.seek(log_from)
            if line in log.read():
                break
            assert time.monotonic() < deadline, daemon.log_tail()
            time.sleep(0.02)
    time.sleep(START_SECONDS)
