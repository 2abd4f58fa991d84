# SPDX-License-Identifier: MIT
"""A process of the agents' user against the agents and the daemon: what it may not reach, and what it cannot leave."""

import contextlib
import ctypes
import errno
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from client import PATIENCE_SECONDS, Client
from conftest import BUILD, ENDLESS, SHORT, Daemon

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be the agents' user and another one")

PR_SET_DUMPABLE = 4
PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
SYS = {"pidfd_open": 434, "pidfd_getfd": 438}
libc = ctypes.CDLL(None, use_errno=True)
REFUSED = {"EACCES", "EPERM"}


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def take_descriptor(pid, fd):
    pidfd = checked(libc.syscall(SYS["pidfd_open"], pid, 0))
    return checked(libc.syscall(SYS["pidfd_getfd"], pidfd, fd, 0))


def forge(pid):
    """What an attacker is after: a report in the agent's name."""
    os.write(take_descriptor(pid, 3), b'{"v":3,"type":"alive","phase":"forged"}')


def truncate_log(pid):
    os.close(os.open(f"/proc/{pid}/fd/2", os.O_WRONLY | os.O_TRUNC))


def write_log(pid):
    os.write(take_descriptor(pid, 2), b"2026-01-01T00:00:00.000Z notice  forged\n")


def trace(pid):
    libc.ptrace.argtypes = [ctypes.c_ulong] * 4
    checked(libc.ptrace(PTRACE_SEIZE, pid, 0, 0))


def memory(pid, call):
    buffer = ctypes.create_string_buffer(8)
    mine = Vector(ctypes.addressof(buffer), 8)
    theirs = Vector(0x1000, 8)
    checked(call(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0))


ATTACKS = {
    "list its descriptors": lambda pid: os.listdir(f"/proc/{pid}/fd"),
    "list a thread's descriptors": lambda pid: os.listdir(f"/proc/{pid}/task/{pid}/fd"),
    "truncate the log": truncate_log,
    "take the log and write": write_log,
    "take the control socket and write": forge,
    "take the run's directory": lambda pid: take_descriptor(pid, 5),
    "nest a directory in the run's": lambda pid: os.mkdir(f"/proc/{pid}/fd/5/nested"),
    "nest by a thread's descriptor": lambda pid: os.mkdir(f"/proc/{pid}/task/{pid}/fd/5/nested"),
    "open its memory": lambda pid: os.open(f"/proc/{pid}/mem", os.O_RDWR),
    "read its mappings": lambda pid: Path(f"/proc/{pid}/maps").read_text(),
    "read its environment": lambda pid: Path(f"/proc/{pid}/environ").read_bytes(),
    "read its program": lambda pid: Path(f"/proc/{pid}/exe").read_bytes(),
    "read its memory": lambda pid: memory(pid, libc.process_vm_readv),
    "write its memory": lambda pid: memory(pid, libc.process_vm_writev),
    "trace it": trace,
}


def become_agents_user():
    user = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)


def as_agents_user(task):
    """What `task` returns in a process of that user, by way of JSON."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(read)
            become_agents_user()
            os.write(write, json.dumps(task()).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as result:
        text = result.read()
    os.waitpid(child, 0)
    return json.loads(text)


def attack(pid):
    """attack -> the errno that it met, or "done"."""
    met = {}
    for name, perform in ATTACKS.items():
        try:
            perform(pid)
            met[name] = "done"
        except OSError as error:
            met[name] = errno.errorcode[error.errno]
    return met


def agents_of(daemon):
    children = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
    found = []
    for pid in children:
        with contextlib.suppress(OSError):  # gone since
            if Path(f"/proc/{pid}/comm").read_text().strip() != "ipclabd":
                found.append(int(pid))
    return found


@contextlib.contextmanager
def dumpable_process():
    """One of the agents' user as an agent would be without its protection."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            become_agents_user()
            libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
            while True:
                signal.pause()
        os._exit(0)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while "\nUid:\t0\t" in Path(f"/proc/{child}/status").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.1)  # from its change of user to its next call
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_the_attacks_are_real():
    """Against a process without the protection they come through, so that a refusal below means something."""
    with dumpable_process() as victim:
        met = as_agents_user(lambda: attack(victim))
    assert met["list its descriptors"] == "done" and met["read its mappings"] == "done", met


@pytest.mark.parametrize(
    "point",
    [
        {"transport": "pipe"},
        {"transport": "mmap-anonymous"},  # two agents from one program
        {"transport": "file"},
        {"workload": "syscall"},
    ],
    ids=lambda point: "-".join(point.values()),
)
def test_an_agent_cannot_be_looked_into(own_daemon, point):
    spec = ENDLESS | point
    if point.get("workload") == "syscall":
        spec = {"workload": "syscall", "duration_seconds": 600, "warmup_seconds": 0}
    experiment = own_daemon.unix.post(spec)
    own_daemon.unix.wait_state(experiment["id"], ("running",))
    expected = 1 if point.get("workload") == "syscall" else 2
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(agents := agents_of(own_daemon)) < expected:
        assert time.monotonic() < deadline, own_daemon.log_tail()
        time.sleep(0.01)
    size = own_daemon.log.stat().st_size
    user = pwd.getpwnam("nobody").pw_uid
    for pid in agents:
        assert Path(f"/proc/{pid}/status").read_text().split("Uid:\t")[1].split("\t")[0] == str(user)
        assert os.readlink(f"/proc/{pid}/fd/2").startswith("pipe:"), "the log is lent to an agent"
        met = as_agents_user(lambda pid=pid: attack(pid))
        assert set(met.values()) <= REFUSED, met
    assert own_daemon.log.stat().st_size >= size and "forged" not in own_daemon.log.read_text()
    run = own_daemon.unix.get(f"/experiments/{experiment['id']}/runs")["items"][0]
    assert run["state"] == "running", run
    own_daemon.unix.request("POST", f"/experiments/{experiment['id']}/cancel")
    own_daemon.unix.wait_final(experiment["id"])


@pytest.mark.parametrize("copy_mode", ["two-copy", "one-copy"])
@pytest.mark.parametrize("workload", ["stream", "pingpong"])
def test_agents_without_privilege_reach_each_other(own_daemon, workload, copy_mode):
    """Which takes that they are dumpable for the time of the run: the named exception of process-vm."""
    rows = {row["name"]: row for row in own_daemon.unix.get("/transports")["items"]}
    if not rows["process-vm"]["available"]:
        pytest.skip(rows["process-vm"]["reason"])
    spec = {
        "transport": "process-vm",
        "workload": workload,
        "copy_mode": copy_mode,
        "message_size": 5000,
        "messages": 1000,
        "warmup_seconds": 0,
        "verify": "checksum",
        "repetitions": 1,
        "threads": 2,
    }
    experiment = own_daemon.unix.post(spec)
    assert own_daemon.unix.wait_final(experiment["id"])["state"] == "done", own_daemon.log_tail()


def test_agents_are_closed_from_birth(own_daemon):
    """A neighbour that looks again and again while agents are started does not find one that is still open."""
    stop = own_daemon.base / "stop"

    def watch():
        opened = 0
        while not stop.exists():
            for pid in agents_of(own_daemon):
                with contextlib.suppress(OSError):
                    os.listdir(f"/proc/{pid}/fd")
                    opened += 1
        return opened

    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            become_agents_user()
            os.write(write, str(watch()).encode())
        os._exit(0)
    os.close(write)
    spec = {"transport": "pipe", "message_size": 64, "messages": 1000, "warmup_seconds": 0, "repetitions": 10}
    try:
        experiment = own_daemon.unix.post(spec)
        state = own_daemon.unix.wait_final(experiment["id"])["state"]
    finally:
        stop.touch()
    with open(read, "rb") as result:
        text = result.read()
    os.waitpid(child, 0)
    assert state == "done", own_daemon.log_tail()
    assert text == b"0"


def bury(directory, depth, files):
    """Directories in one another, and many files, of the agents' user."""

    def dig():
        at = os.open(directory, os.O_RDONLY)
        for number in range(files):
            os.mknod(str(number), 0o600, dir_fd=at)
        for _ in range(depth):
            os.mkdir("d", dir_fd=at)
            below = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        return True

    assert as_agents_user(dig)


def test_what_a_killed_daemon_left_does_not_stop_the_next(own_daemon):
    """An agent gone wrong fills its directory, and the daemon is killed before it can remove that."""
    own_daemon.kill()
    runs = own_daemon.base / "run" / "runs"
    user = pwd.getpwnam("nobody")
    for name in ("run-1", "run-2"):
        (runs / name).mkdir(parents=True)
        runs.chmod(0o755)  # for the preparation: the daemon makes it 0700 again
        os.chown(runs / name, user.pw_uid, user.pw_gid)
        bury(runs / name, depth=60, files=1000)
    own_daemon.start()
    assert runs.stat().st_mode & 0o777 == 0o700
    experiment = own_daemon.unix.post(SHORT)
    assert own_daemon.unix.wait_final(experiment["id"])["state"] == "done", own_daemon.log_tail()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left := [name for name in os.listdir(runs) if name.startswith("removed-")]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    health = own_daemon.unix.get("/health")
    assert health["status"] == "ok" and health["leftover"] is None


def test_what_cannot_be_removed_is_named(tmp_path):
    """Something is mounted in a leftover: the daemon starts, and logs its path."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        pytest.skip("no mount namespace can be had here")
    daemon = Daemon()
    try:
        daemon.stop()
        stuck = daemon.base / "run" / "runs" / "run-1" / "stuck"
        stuck.mkdir(parents=True)
        mount = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', stuck]
        daemon.start(command=[*mount, *daemon.command])
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (leftover := daemon.unix.get("/health")["leftover"]):
            assert time.monotonic() < deadline, daemon.log_tail()
            time.sleep(0.05)
        assert f"{daemon.base}/run/runs/removed-" in leftover and "cannot be removed" in leftover
        assert daemon.unix.get("/health")["status"] == "ok"
        experiment = daemon.unix.post(SHORT)
        assert daemon.unix.wait_final(experiment["id"])["state"] == "done", daemon.log_tail()
    finally:
        daemon.remove()


def test_a_socket_that_is_removed_is_named(own_daemon):
    """As by somebody who cleans up /run: no client of it reaches the daemon, which serves TCP."""
    os.chmod(own_daemon.socket, 0o600)
    assert own_daemon.tcp.get("/health")["status"] == "ok"
    os.unlink(own_daemon.socket)
    health = own_daemon.tcp.request("GET", "/health")
    reason = f"{own_daemon.socket} was removed or replaced while ipclabd runs"
    assert health.status == 503 and health.json["status"] == "failing" and reason in health.json["problem"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while reason not in own_daemon.log_text():
        assert time.monotonic() < deadline, own_daemon.log_tail()
        time.sleep(0.05)
    assert own_daemon.stop() == 0
    assert own_daemon.log_text().count(reason) == 1


def test_a_port_that_another_has_does_not_stop_it():
    """Any local user may listen on it first: the daemon serves its unix socket, and TCP once the port is free."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        daemon = Daemon(listen=f"127.0.0.1:{port}")
        try:
            problem = f"cannot listen on 127.0.0.1:{port}: Address already in use"
            assert daemon.port is None and problem in daemon.log_text()
            health = daemon.unix.get("/health")
            assert health["tcp_problem"] == problem and health["status"] == "ok"
            experiment = daemon.unix.post(SHORT)
            assert daemon.unix.wait_final(experiment["id"])["state"] == "done", daemon.log_tail()
            assert daemon.unix.get("/health")["tcp_problem"] == problem
            taken.close()
            deadline = time.monotonic() + PATIENCE_SECONDS
            while daemon.unix.get("/health")["tcp_problem"]:
                assert time.monotonic() < deadline, daemon.log_tail()
                time.sleep(0.05)
            tcp = Client(port=port, token=daemon.token)
            assert tcp.get("/health")["tcp_problem"] is None
            assert tcp.wait_final(tcp.post(SHORT)["id"])["state"] == "done"
            assert Client(port=port).request("GET", "/health", headers={"Host": "other.example"}).status == 421
            assert daemon.stop() == 0
        finally:
            daemon.remove()


def test_agents_go_before_the_daemon_when_memory_is_short(daemon, long_run):
    def score(pid):
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())

    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (agents := agents_of(daemon)):  # the run is under way before they are started
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for pid in agents:
        assert score(pid) > score(daemon.process.pid)


@pytest.mark.parametrize("niceness", [-5, 0, 10, 17])
def test_http_runs_below_what_is_measured(niceness):
    """Agents have the daemon's own nice value, or 0."""

    def nice(thread):
        return int((thread / "stat").read_text().rpartition(")")[2].split()[16])

    daemon = Daemon(preexec=lambda: os.setpriority(os.PRIO_PROCESS, 0, niceness))
    with contextlib.ExitStack() as stack:
        stack.callback(daemon.remove)
        daemon.unix.get("/experiments")
        daemon.tcp.get("/experiments")
        tasks = Path(f"/proc/{daemon.process.pid}/task")
        threads = {int(thread.name): nice(thread) for thread in tasks.iterdir()}
        main = threads.pop(daemon.process.pid)
        assert main == niceness
        lower = [n for n in threads.values() if n > max(main, 0)]
        # but for those that only look at the clock: the threads that end connections
        assert len(lower) >= len(threads) - 2 and len(lower) >= 6, threads


def test_a_namespace_without_the_agents_user_takes_no_experiments(tmp_path):
    """What cannot be run is refused with the reason, and not acknowledged first."""
    if subprocess.run(["unshare", "-Ur", "true"], capture_output=True).returncode != 0:
        pytest.skip("this host lets nobody make a user namespace")
    script = f"""
        {BUILD}/daemon/ipclabd --state-dir={tmp_path}/state --runtime-dir={tmp_path}/run --listen=none \
            --agent={BUILD}/agent/ipclab-agent 2>{tmp_path}/log &
        trap "kill $!; wait" EXIT
        until grep -q ready {tmp_path}/log || ! kill -0 $!; do sleep 0.05; done
        curl -s --unix-socket {tmp_path}/run/ipclabd.sock -H 'Content-Type: application/json' \
            -d '{json.dumps(SHORT)}' http://localhost/experiments -o {tmp_path}/answer
        curl -s --unix-socket {tmp_path}/run/ipclabd.sock http://localhost/health -o {tmp_path}/health
        curl -s --unix-socket {tmp_path}/run/ipclabd.sock http://localhost/transports -o {tmp_path}/transports
    """
    subprocess.run(["unshare", "-Urn", "sh", "-c", script], check=True, timeout=PATIENCE_SECONDS)
    answer = json.loads((tmp_path / "answer").read_text())
    assert answer["status"] == 503 and "user namespace" in answer["detail"]
    assert "user namespace" in (tmp_path / "log").read_text()
    health = json.loads((tmp_path / "health").read_text())
    assert health["status"] == "failing" and "user namespace" in health["problem"]
    for transport in json.loads((tmp_path / "transports").read_text())["items"]:
        assert not transport["available"] and "user namespace" in transport["reason"]
