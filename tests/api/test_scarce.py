# SPDX-License-Identifier: MIT
"""Few descriptors and little memory: what cannot be run is refused before it is stored, what is admitted is run
whatever clients take, and what has failed for lack of them is tried again."""

import contextlib
import ctypes
import errno
import os
import resource
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE

import pytest
from client import PATIENCE_SECONDS, Client
from conftest import ENDLESS, SHORT, Daemon
from ipclabtest.daemon import Daemon as Stopped

LEAST = 120  # the daemon's own, those of a run, and a few clients
LOCKED = 512 * 1024  # bytes: less than the rings of 64 threads have
CAP_IPC_LOCK, CAP_SYS_RESOURCE, PR_CAPBSET_DROP, SYS_IO_URING_SETUP = 14, 24, 24, 425


def limited(files):
    return Daemon(preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))


@pytest.mark.parametrize("files", [64, LEAST - 1])
def test_too_few_descriptors_are_named_beforehand(files):
    """By every spec, also of agents that need fewer than the daemon does."""
    d = limited(files)
    try:
        for spec in (SHORT, SHORT | {"transport": "shm-posix", "threads": 8}):
            problem = d.unix.refused("POST", "/experiments", 422, "limit-exceeded", spec)
            assert problem["limit"] == {"name": "RLIMIT_NOFILE", "value": files} and problem["value"] > files
        assert d.unix.get("/experiments")["items"] == []
        assert d.unix.get("/health")["status"] == "ok"
    finally:
        d.remove()


def test_clients_leave_descriptors_for_the_run():
    d = limited(LEAST)
    try:
        with contextlib.ExitStack() as stack:
            for client in (d.tcp, d.unix):
                for _ in range(20):
                    stack.enter_context(client.raw_socket())
            for threads in (1, 8):
                spec = SHORT | {"transport": "shm-posix", "threads": threads}
                experiment = d.unix.wait_final(d.unix.post(spec)["id"])
                assert experiment["state"] == "done", (experiment, d.log_tail())
    finally:
        d.remove()


@pytest.mark.parametrize("stack", [(64 << 10, resource.RLIM_INFINITY), (64 << 10, 1 << 20)])
def test_a_small_stack_is_raised(stack):
    d = Daemon(preexec=lambda: resource.setrlimit(resource.RLIMIT_STACK, stack))
    try:
        experiment = d.unix.wait_final(d.unix.post(SHORT)["id"])
        assert experiment["state"] == "done", (experiment, d.log_tail())
        assert d.unix.get(f"/experiments/{experiment['id']}/results")["items"]
    finally:
        d.remove()


def test_a_stack_that_cannot_be_raised_is_named():
    d = Stopped(preexec=lambda: resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, 64 << 10)))
    try:
        with pytest.raises(AssertionError, match="RLIMIT_STACK is 65536 bytes, and ipclabd needs 1048576"):
            d.start()
        assert d.process.returncode == 2  # the unit does not start it again, as it would end again
        assert len(d.log_text().splitlines()) == 1, "a second reason"
    finally:
        d.remove()


def test_files_that_may_not_grow_end_neither_daemon_nor_run():
    """The signal that comes with RLIMIT_FSIZE would end it, and agents may be allowed less than they are given."""
    most = 1 << 20
    d = Daemon(preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    try:
        assert f"RLIMIT_FSIZE is {most} bytes" in d.log_text()
        experiment = d.unix.wait_final(d.unix.post(SHORT)["id"])
        assert experiment["state"] == "done", (experiment, d.log_tail())
        d.unix.wait_state(d.unix.post(ENDLESS)["id"], ("running",))  # the queue stands still
        for i in range(2000):
            answer = d.unix.request("POST", "/experiments", SHORT | {"name": f"{i:0200}"})
            if answer.status != 201:
                break
        assert answer.status == 507 and answer.json["type"].endswith("insufficient-storage"), answer
        assert str(d.state) in answer.json["detail"] and "RLIMIT_FSIZE" in answer.json["detail"], answer.json
        assert max(file.stat().st_size for file in d.state.iterdir()) <= most
        assert d.unix.get(f"/experiments/{experiment['id']}")["state"] == "done"
        assert d.process.poll() is None
    finally:
        d.remove()


def keep_locked_memory_low():
    """As a daemon without privilege has it: the two capabilities would let it lock, and its agents, what they like."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (CAP_IPC_LOCK, CAP_SYS_RESOURCE):
        if os.geteuid() == 0 and libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            raise OSError(ctypes.get_errno(), "prctl")
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (LOCKED, LOCKED))


def ring_without_room():
    """errno of a ring where nothing may be locked; 0: the kernel counts none."""
    probe = (
        "import ctypes, resource; resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0));"
        "libc = ctypes.CDLL(None, use_errno=True);"
        f"failed = libc.syscall({SYS_IO_URING_SETUP}, 2, ctypes.create_string_buffer(120)) < 0;"
        "print(ctypes.get_errno() if failed else 0)"
    )
    command = [sys.executable, "-c", probe]
    return int(subprocess.run(command, preexec_fn=keep_locked_memory_low, stdout=PIPE, check=True, timeout=60).stdout)


def test_rings_that_count_as_locked_memory_are_refused_beforehand():
    error = ring_without_room()
    if error != errno.ENOMEM:
        pytest.skip(f"this kernel counts no rings as locked memory: {errno.errorcode.get(error, 'it gives them')}")
    d = Daemon(preexec=keep_locked_memory_low)
    try:
        spec = SHORT | {"engine": "io_uring", "threads": 64}

        def refused(spec):
            return d.unix.refused("POST", "/experiments?dry_run=true", 422, "limit-exceeded", spec)

        with ThreadPoolExecutor(4) as pool:
            for answer in [pool.submit(refused, spec) for _ in range(40)]:
                assert answer.result()["limit"] == {"name": "RLIMIT_MEMLOCK", "value": LOCKED}
        assert resource.prlimit(d.process.pid, resource.RLIMIT_MEMLOCK) == (LOCKED, LOCKED)
    finally:
        d.remove()


def limit_address_space(pid, more):
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    most = resource.RLIM_INFINITY if more is None else pages * resource.getpagesize() + more
    resource.prlimit(pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def wait_for_tcp_problem(daemon, is_right):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_right(problem := daemon.unix.get("/health")["tcp_problem"]):
        assert time.monotonic() < deadline, (problem, daemon.log_tail())
        time.sleep(0.05)
    return problem


def test_a_port_without_threads_is_tried_again():
    """Another process had the port first. When it is free, there is no memory for threads' stacks, and later there
    is."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        d = Daemon(listen=f"127.0.0.1:{port}")
        try:
            first = d.unix.get("/health")["tcp_problem"]
            assert "Address already in use" in first
            limit_address_space(d.process.pid, 1024 * 1024)
            taken.close()
            second = wait_for_tcp_problem(d, lambda problem: problem != first)
            assert second == f"cannot serve http://127.0.0.1:{port}/: Resource temporarily unavailable"
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port)).close()
            limit_address_space(d.process.pid, None)
            wait_for_tcp_problem(d, lambda problem: problem is None)
            tcp = Client(port=port, token=d.token)
            assert tcp.wait_final(tcp.post(SHORT)["id"])["state"] == "done"
            assert tcp.request("GET", "/health", headers={"Host": "other.example"}).status == 421
            assert d.log_text().count(second) == 1
            assert d.stop() == 0
        finally:
            d.remove()
