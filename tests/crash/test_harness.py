# SPDX-License-Identifier: MIT
"""The look at what is left behind finds every object that a process of the agents' user left, and none of others."""

import contextlib
import os
import subprocess
import sys

import pytest
from harness import agent_uid, ipc_objects

# Makes an object of each kind as the user, prints what it is called, and removes all of them at the end of its input.
MAKE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
user, name = int(sys.argv[1]), sys.argv[2]
os.setuid(user)
IPC_PRIVATE, IPC_CREAT, IPC_RMID = 0, 0o1000, 0
libc.mq_open.restype = ctypes.c_int
made = {
    "shm": libc.shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0o600),
    "sem": libc.semget(IPC_PRIVATE, 1, IPC_CREAT | 0o600),
    "msg": libc.msgget(IPC_PRIVATE, IPC_CREAT | 0o600),
}
queue = libc.mq_open(b"/" + name.encode(), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600, None)
assert queue >= 0 and min(made.values()) >= 0, os.strerror(ctypes.get_errno())
os.close(os.open("/dev/shm/" + name, os.O_CREAT | os.O_EXCL, 0o600))
print(*(f"{kind} 0 {number}" for kind, number in made.items()), f"/dev/shm/{name}", f"/dev/mqueue/{name}", sep=",",
      flush=True)
sys.stdin.read()
libc.shmctl(made["shm"], IPC_RMID, None)
libc.semctl(made["sem"], 0, IPC_RMID)
libc.msgctl(made["msg"], IPC_RMID, None)
libc.mq_unlink(b"/" + name.encode())
os.unlink("/dev/shm/" + name)
"""


@contextlib.contextmanager
def objects(name, before=None):
    """What a process of the agents' user has made, and leaves for the time of the block."""
    command = [sys.executable, "-c", MAKE, str(agent_uid()), name]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, preexec_fn=before, **pipes) as process:
        try:
            yield set(process.stdout.readline().rstrip("\n").split(","))
        finally:
            process.stdin.close()
    assert process.returncode == 0


def test_objects_that_an_agent_leaves_are_found(outside):
    before = ipc_objects(outside is not None)
    with objects(f"left-{os.getpid()}") as made:
        assert len(made) == 5
        found = ipc_objects(outside is not None) - before
    visible = {name for name in made if "mqueue" not in name or os.path.ismount("/dev/mqueue")}
    assert visible <= found
    assert outside is None or found == visible


def test_objects_of_other_programs_are_not_counted(outside):
    if outside is None:
        pytest.skip("an IPC namespace and a mount namespace need CAP_SYS_ADMIN")
    before = ipc_objects(True)
    with objects(f"other-{os.getpid()}", before=outside) as made:
        assert len(made) == 5
        assert ipc_objects(True) - before == set()
