# SPDX-License-Identifier: MIT
"""A host that turns against the daemon while it runs: reads go on, what cannot be done is refused with the reason, and
when the host is well again the daemon is, too, without a restart. tests/api/test_full.py has the full disk,
tests/api/test_scarce.py the descriptors.
"""

import contextlib
import datetime
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness import BUILD, Daemon, wait_for
from ipclabtest import PATIENCE_SECONDS
from ipclabtest.client import Client, parse_raw
from ipclabtest.disk import ext4

SHORT = {"transport": "pipe", "messages": 500, "warmup_seconds": 0}
WINDOW = {"transport": "pipe", "duration_seconds": 2, "rate": 100, "warmup_seconds": 0}
DAY = 24 * 60 * 60
MEMORY = 48 << 20
MEBIBYTE = bytes(1 << 20)

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this to a daemon")


def preload():
    """The library. A build with a sanitizer has none: the sanitizer's would have to be loaded before it."""
    library = BUILD / "tests/unit/libhostile-host.so"
    if not library.exists():
        pytest.skip("this build has no libhostile-host.so: it has a sanitizer")
    return f"LD_PRELOAD={library}"


class Host:
    """A daemon on a host whose clock and disk the test controls, by what it writes into a file."""

    def __init__(self, settings):
        self.settings = settings
        self.be()
        environment = ["env", preload(), f"IPCLAB_HOSTILE_HOST={settings}"]
        self.daemon = Daemon()
        try:
            self.daemon.start(command=[*environment, *map(str, self.daemon.command)])
        except BaseException:
            self.daemon.remove()
            raise

    def be(self, offset=0, error=0):
        """Renamed into its place, as the daemon reads it at any moment."""
        part = self.settings.with_suffix(".part")
        part.write_text(f"{offset} {error}\n")
        part.rename(self.settings)


@pytest.fixture
def host(tmp_path):
    h = Host(tmp_path / "settings")
    yield h
    h.be()
    try:
        assert h.daemon.stop() == 0, h.daemon.log_tail()
        assert h.daemon.left_processes() == {} and h.daemon.left_in_runtime() == []
    finally:
        h.daemon.remove()


def done(daemon, spec=SHORT):
    experiment = daemon.wait_final(daemon.post(spec)["id"])
    assert experiment["state"] == "done", (experiment, daemon.log_tail())
    return experiment


def read(daemon, identity):
    """What a reader sees of it."""
    targets = (f"/experiments/{identity}", f"/experiments/{identity}/results", f"/experiments/{identity}/samples")
    return [daemon.get(target) for target in targets]


def refused(daemon, words):
    status, body = daemon.request("POST", "/experiments", SHORT)
    assert status >= 500 and body["detail"], (status, body)
    assert any(word in body["detail"] for word in words), body


def well_again(daemon, before):
    """Without a restart; what was stored is as it was."""

    def accepted():
        status, body = daemon.request("POST", "/experiments", SHORT)
        return body if status == 201 else None

    experiment = wait_for(accepted, PATIENCE_SECONDS, "an experiment to be accepted again")
    assert daemon.wait_final(experiment["id"])["state"] == "done", daemon.log_tail()
    assert read(daemon, before[0]["id"]) == before
    wait_for(lambda: daemon.request("GET", "/health")[0] == 200, PATIENCE_SECONDS, "health to be good again")


def test_a_disk_that_fails(host):
    daemon = host.daemon
    before = read(daemon, done(daemon)["id"])
    for error in (errno.EIO, errno.ENOSPC, errno.EROFS):
        host.be(error=error)
        refused(daemon, ("disk", "space", "error", "free", "failed", "stor"))
        assert read(daemon, before[0]["id"]) == before
        host.be()
        well_again(daemon, before)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_what_has_no_room(host, error):
    """On the disk, in a quota or in a file: to a client all of these are a full disk."""
    daemon = host.daemon
    before = read(daemon, done(daemon)["id"])
    host.be(error=error)
    status, problem = daemon.request("POST", "/experiments", SHORT)
    assert status == 507 and problem["type"].endswith("insufficient-storage"), (status, problem)
    assert str(daemon.state) in problem["detail"], problem
    assert read(daemon, before[0]["id"]) == before
    host.be()
    well_again(daemon, before)


def test_a_disk_that_fails_during_a_run(host):
    """What the run measured may be lost; that it was is no secret, and the queue goes on."""
    daemon = host.daemon
    before = read(daemon, done(daemon)["id"])
    identity = daemon.post(WINDOW)["id"]
    daemon.wait_running(identity)
    host.be(error=errno.EIO)
    wait_for(lambda: not daemon.agents(), PATIENCE_SECONDS, "the end of the run's agents")
    host.be()
    experiment = daemon.wait_final(identity)
    (run,) = daemon.runs(identity)
    assert experiment["state"] in ("done", "failed") and run["state"] == experiment["state"]
    assert (run["state"] == "done") == (run["error"] is None), run
    samples = [s["second"] for s in daemon.items(f"/runs/{run['id']}/samples") if s["agent"] == "receiver"]
    assert len(set(samples)) == len(samples)
    well_again(daemon, before)


@pytest.mark.parametrize("offset", [DAY, -DAY])
def test_a_clock_that_jumps_a_day(host, offset):
    daemon = host.daemon
    before = read(daemon, done(daemon)["id"])
    identity = daemon.post(WINDOW)["id"]
    daemon.wait_running(identity)
    host.be(offset=offset)
    eta = daemon.experiment(identity)["eta_seconds"]
    assert eta is None or 0 <= eta < 60, eta
    assert daemon.wait_final(identity)["state"] == "done", daemon.log_tail()
    (run,) = daemon.runs(identity)
    assert 1.5e9 < run["result"]["window_ns"] < 60e9
    samples = [s for s in daemon.items(f"/runs/{run['id']}/samples") if s["agent"] == "receiver"]
    assert [s["second"] for s in samples] == list(range(len(samples)))
    assert all(0 < s["interval_ns"] < 60e9 for s in samples)
    after = done(daemon)
    created = datetime.datetime.fromisoformat(after["created_at"]).timestamp()
    assert abs(created - time.time() - offset) < DAY / 2, "the daemon's clock did not jump"
    assert after["id"] > identity and [e["id"] for e in daemon.items("/experiments")][:2] == [after["id"], identity]
    host.be()
    well_again(daemon, before)


@pytest.fixture
def daemon_of(tmp_path):
    """Daemons that are started as the test wants; none leaves anything."""
    made = []

    def make(command=(), **settings):
        daemon = Daemon(**settings)
        made.append(daemon)
        daemon.start(command=[*command, *map(str, daemon.command)])
        return daemon

    yield make
    try:
        for daemon in made:
            assert daemon.stop() == 0, daemon.log_tail()
            assert daemon.left_processes() == {} and daemon.left_in_runtime() == []
    finally:
        for daemon in made:
            daemon.remove()


def daemon_on(disk):
    daemon = Daemon(f"--state-dir={disk / 'state'}")
    daemon.state = disk / "state"
    return daemon


def nothing_is_stored(daemon, before):
    """Each change is refused with the directory and the reason, health has both, and all that is stored is served."""
    identity = before[0]["id"]
    for method, target, body in (
        ("POST", "/experiments", SHORT),
        ("POST", f"/experiments/{identity}/extend", {"repetitions": 3}),
        ("DELETE", f"/experiments/{identity}", None),
        ("PUT", "/baselines/first", {"experiment": identity}),
    ):
        status, problem = daemon.request(method, target, body)
        assert status == 503 and problem["type"].endswith("unavailable"), (method, target, status, problem)
        assert str(daemon.state) in problem["detail"] and "is read-only" in problem["detail"], problem
    status, health = daemon.request("GET", "/health")
    assert status == 503 and str(daemon.state) in health["problem"] and "is read-only" in health["problem"], health
    assert read(daemon, identity) == before
    for target in ("/experiments", f"/experiments/{identity}/runs", f"/experiments/{identity}/findings", "/baselines"):
        daemon.get(target)


def read_only_lines(daemon):
    return [line for line in daemon.log_text().splitlines() if "is read-only" in line]


@root_only
@pytest.mark.parametrize("ends", ["stopped", "killed"])
@pytest.mark.parametrize("lacks", [None, "ipclab.db-shm"])
def test_a_disk_that_was_read_only(tmp_path, ends, lacks):
    """What an earlier daemon had acknowledged is served, also what was in its log alone; what waits goes on when the
    disk can be written to again."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "ipclab", tmp_path], capture_output=True).returncode:
        pytest.skip("this host lets nobody mount a tmpfs")
    daemon = daemon_on(tmp_path)

    def remount(how):
        subprocess.run(["mount", "-o", f"remount,bind,{how}", tmp_path], check=True)

    try:
        daemon.start()
        before = read(daemon, done(daemon)["id"])
        waiting = daemon.post(WINDOW)["id"]
        daemon.wait_running(waiting)
        if ends == "killed":
            daemon.kill()
        else:
            assert daemon.stop() == 0
        if lacks:
            (daemon.state / lacks).unlink()
        remount("ro")
        said = len(read_only_lines(daemon))
        daemon.start()
        nothing_is_stored(daemon, before)
        assert [e["id"] for e in daemon.items("/experiments")] == [waiting, before[0]["id"]]
        assert len(read_only_lines(daemon)) == said + 1, daemon.log_tail()
        assert daemon.stop() == 0
        daemon.start()
        nothing_is_stored(daemon, before)
        remount("rw")
        assert daemon.wait_final(waiting)["state"] == "done", daemon.log_tail()
        well_again(daemon, before)
        assert daemon.stop() == 0
    finally:
        daemon.remove()
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


@pytest.fixture
def untrusted(tmp_path):
    """A disk, and what makes its file system find an error, upon which it becomes read-only."""
    with ext4(tmp_path, "-e", "remount-ro") as mounted:
        if not mounted:
            pytest.skip("this host has no ext4 for a file")
        device = os.stat(mounted).st_dev
        name = os.path.basename(os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}"))
        yield mounted, lambda: Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("test")


@root_only
@pytest.mark.parametrize("ends", [None, "killed"])
def test_a_file_system_that_does_not_trust_its_disk(untrusted, ends):
    """It does not become writable again before it is checked. It goes on being read, by the daemon that runs and by one
    that is started later."""
    state, find_error = untrusted
    daemon = daemon_on(state)
    try:
        daemon.start()
        before = read(daemon, done(daemon)["id"])
        find_error()
        nothing_is_stored(daemon, before)
        if ends == "killed":
            daemon.kill()
            daemon.start()
            nothing_is_stored(daemon, before)
        assert daemon.stop() == 0
    finally:
        daemon.remove()


def memory_cgroup(name):
    """A new one with the limit; None: this host has none to give."""
    unified, legacy = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
    for base, file in ((legacy, "memory.limit_in_bytes"), (unified, "memory.max")):
        directory = base / name
        try:
            directory.mkdir()
        except OSError:
            continue
        try:
            (directory / file).write_text(str(MEMORY))
            return directory
        except OSError:
            directory.rmdir()
    return None


def entering(cgroup):
    """The command that goes on in the cgroup."""
    return ["sh", "-c", f'echo $$ >{cgroup}/cgroup.procs && exec "$@"', "sh"]


def remove_cgroup(cgroup):
    """With what is left in it."""
    for pid in (cgroup / "cgroup.procs").read_text().split():
        os.kill(int(pid), signal.SIGTERM)
    wait_for(lambda: not (cgroup / "cgroup.procs").read_text(), PATIENCE_SECONDS, "the cgroup to be empty")
    cgroup.rmdir()


@pytest.fixture
def little_memory():
    """A cgroup, and the command that goes on in it."""
    cgroup = memory_cgroup(f"ipclab-test-{os.getpid()}")
    if cgroup is None:
        pytest.skip("this host has no memory cgroups to give")
    yield cgroup, entering(cgroup)
    remove_cgroup(cgroup)


@root_only
def test_little_memory(little_memory, daemon_of):
    daemon = daemon_of(little_memory[1])
    before = read(daemon, done(daemon)["id"])
    large = SHORT | {"transport": "shm-posix", "threads": 64, "message_size": 1 << 24}
    status, body = daemon.request("POST", "/experiments", large)
    if status == 201:  # then it ends, one way or the other
        daemon.wait_final(body["id"])
    else:
        assert status == 422 and "memory" in (body["detail"] + body["limit"]["name"]).lower(), body
    well_again(daemon, before)


def read_response(sock):
    """One whole response with a Content-Length, or what has come of it when the connection ended."""
    received = b""
    while True:
        head, end, rest = received.partition(b"\r\n\r\n")
        if end and len(rest) >= int(parse_raw(head)[1]["Content-Length"]):
            return received
        try:
            piece = sock.recv(65536)
        except ConnectionResetError:  # after it has sent its answer it closes what it does not read
            return received
        if not piece:
            return received
        received += piece


def send_bundle(client, length):
    """The status, and the problem, of a body that is no bundle; it is sent as far as it is taken."""
    target = f"/bundles?sha256={'0' * 64}"
    token = f"Authorization: Bearer {client.token}\r\n" if client.token else ""
    head = f"POST {target} HTTP/1.1\r\nHost: {client.host}\r\n{token}Content-Type: application/gzip\r\n"
    with client.raw_socket() as sock:
        sock.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused at its head, and read
            for _ in range(length // len(MEBIBYTE)):
                sock.sendall(MEBIBYTE)
        status, headers, body = parse_raw(read_response(sock))
    assert len(body) == int(headers["Content-Length"]), (status, headers, body)
    return status, json.loads(body)


@root_only
def test_large_bodies_in_little_memory(little_memory, daemon_of):
    """One client takes a quarter of the memory at most, and all together take not much more."""
    daemon = daemon_of(little_memory[1], listen="127.0.0.1:0")
    before = read(daemon, done(daemon)["id"])
    clients = [daemon.client(), Client(port=daemon.port, token=daemon.token)]
    most = MEMORY // 4
    for client in clients:
        status, problem = send_bundle(client, 64 << 20)
        assert status == 413 and str(most) in problem["detail"] and str(64 << 20) in problem["detail"], problem
        assert (problem["limit"]["name"], problem["limit"]["value"]) == ("body bytes", most), problem
    assert [send_bundle(client, most)[0] for client in clients] == [422, 422]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(send_bundle, clients * 16, [most] * 32))
    assert {status for status, _ in answers} <= {422, 503} and 422 in {status for status, _ in answers}, answers
    assert all(
        problem["limit"]["name"].startswith("request bytes of ") for status, problem in answers if status == 503
    ), answers
    assert daemon.process.poll() is None, daemon.log_tail()
    well_again(daemon, before)


TAKES = {
    "of its own": 1,
    "in files": 2,
    "in System V segments": 3,
    "in processes": 4,
}  # greedy-agent.c, by message size


@root_only
@pytest.mark.parametrize("kind", TAKES)
def test_an_agent_that_takes_all_memory(little_memory, daemon_of, kind):
    """The kernel ends it and no other, its run fails, and what it took is free again."""
    cgroup, enter = little_memory
    daemon = daemon_of(enter, agent=BUILD / "tests/unit/greedy-agent")
    before = read(daemon, done(daemon)["id"])
    experiment = daemon.wait_final(daemon.post(SHORT | {"message_size": TAKES[kind]})["id"])
    (run,) = daemon.runs(experiment["id"])
    print(f"counted: {kind}: {experiment['state']}: {run['error']}")
    ended = re.search(r"was killed by signal 9 .*for lack of memory", run["error"] or "")
    assert (run["state"] == "failed" and ended) or kind == "in processes", run
    assert daemon.process.poll() is None, daemon.log_tail()
    well_again(daemon, before)
    used = [cgroup / "memory.usage_in_bytes", cgroup / "memory.current"]
    assert int(next(file for file in used if file.exists()).read_text()) < MEMORY


@pytest.fixture
def few_processes():
    """A cgroup whose number of processes and threads has no limit yet, and the command that goes on in it."""
    for base in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")):
        cgroup = base / f"ipclab-test-{os.getpid()}-pids"
        with contextlib.suppress(OSError):
            cgroup.mkdir()
            if (cgroup / "pids.max").exists():
                break
            cgroup.rmdir()
    else:
        pytest.skip("this host has no pids cgroups to give")
    yield cgroup, entering(cgroup)
    remove_cgroup(cgroup)


@root_only
@pytest.mark.parametrize("transport", ["pipe", "mmap-anonymous"])
def test_few_processes(few_processes, daemon_of, transport):
    """Room for none of a run's processes and threads, for one of them, and so on: its error names the limit."""
    cgroup, enter = few_processes
    daemon = daemon_of(enter)
    before = read(daemon, done(daemon)["id"])
    states = []
    while states.count("done") == 0:
        wait_for(lambda: not daemon.agents(), PATIENCE_SECONDS, "the agents to be gone")
        (cgroup / "pids.max").write_text(str(int((cgroup / "pids.current").read_text()) + len(states)))
        experiment = daemon.wait_final(daemon.post(SHORT | {"transport": transport})["id"])
        (cgroup / "pids.max").write_text("max")
        (run,) = daemon.runs(experiment["id"])
        states.append(run["state"])
        assert run["state"] == "done" or "pids.max" in run["error"], (len(states) - 1, run["error"])
    assert len(states) > 3, states
    well_again(daemon, before)


@root_only
@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare(1) on this host")
def test_no_cgroups(daemon_of):
    hide = ["unshare", "--mount", "sh", "-c", 'umount -R -l /sys/fs/cgroup && exec "$@"', "sh"]
    if subprocess.run([*hide, "true"], capture_output=True).returncode != 0:
        pytest.skip("this host lets nobody hide its cgroups")
    daemon = daemon_of(hide)
    before = read(daemon, done(daemon)["id"])
    identity = daemon.post(WINDOW)["id"]
    os.kill(next(iter(wait_for(daemon.agents, PATIENCE_SECONDS, "agents").values())), 9)
    assert daemon.wait_final(identity)["state"] == "failed"
    well_again(daemon, before)


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare(1) on this host")
def test_no_namespaces(tmp_path):
    """In a user namespace that allows no other ones: what needs one is refused, or runs without."""
    limit = "for i in ipc net mnt user; do echo 0 >/proc/sys/user/max_${i}_namespaces; done"
    inside = ["unshare", "--user", "--map-root-user", "sh", "-c", f'{limit} && exec "$@"', "sh"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        pytest.skip("this host lets nobody make a user namespace")
    daemon = Daemon()
    command = [str(word) for word in daemon.command if not str(word).startswith("--agent-user")]
    try:
        daemon.start(command=[*inside, *command])
        status, body = daemon.request("POST", "/experiments", SHORT)
        if status == 201:
            experiment = daemon.wait_final(body["id"])
            assert experiment["state"] == "done", (experiment, daemon.log_tail())
        else:
            assert status in (422, 503) and "namespace" in body["detail"], body
        assert daemon.get("/experiments")["items"] == ([] if status != 201 else [daemon.experiment(1)])
        assert daemon.stop() == 0
    finally:
        daemon.remove()
