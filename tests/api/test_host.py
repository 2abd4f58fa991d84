# SPDX-License-Identifier: MIT
"""The daemon's reports on itself and the host: presets, transports, topology, environment, health, metrics, page."""

import collections
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pty
import re
import signal
import socket
import subprocess
import termios
import time
from datetime import datetime
from pathlib import Path

import pytest
from client import PATIENCE_SECONDS
from conftest import SHORT, SOURCE, Daemon
from ipclabtest.transports import ROWS, where


def test_presets_are_the_files(client):
    presets = client.get("/presets")
    assert presets["next"] is None
    files = {path.stem: json.loads(path.read_text()) for path in (SOURCE / "schema/presets").glob("*.json")}
    for file in files.values():  # a short form has the question of the preset that it shortens
        file.setdefault("question", None)
        file.setdefault("expected", None)
    published = {p["name"]: p.pop("published") for p in presets["items"]}
    for preset in presets["items"]:
        del preset["here"]
    assert {p.pop("name"): p for p in presets["items"]} == files
    counts = {"pipe-block-sweep": 8, "fifo-numa": 12, "syscall-and-switch": 2, "tcp-copy-modes": 6, "ipc-4mib": 12}
    assert {name: len(some) for name, some in published.items() if some} == {
        name: counts[name.removesuffix("-quick")] for name in files if name.removesuffix("-quick") in counts
    }
    first = published["pipe-block-sweep"][0]
    assert "64 bytes" in first["question"] and (first["value"], first["unit"]) == (250.91, "MiB/s")


def test_presets_have_their_time_here_and_their_last_experiment(client):
    """By the plan of each, and by the last one that is done."""
    for preset in client.get("/presets")["items"]:
        plan = client.request("POST", "/experiments?dry_run=true", {"preset": preset["name"]})
        known = plan.status == 200
        assert preset["here"]["estimated_seconds"] == (plan.json["estimated_seconds"] if known else None)
        assert preset["here"]["reason"] == (None if known else plan.json["detail"])
    here = lambda: {p["name"]: p["here"] for p in client.get("/presets")["items"]}  # noqa: E731
    one = {"preset": "quick", "workload": "stream", "transport": "pipe", "message_size": 64, "messages": 10}
    done = client.wait_final(client.post(one | {"name": '{"preset": "ipc-4mib"}', "warmup_seconds": 0})["id"])
    client.request("POST", f"/experiments/{client.post({'preset': 'quick'})['id']}/cancel")
    assert here()["quick"]["last_reason"] is None and here()["ipc-4mib"]["last"] is None
    last = here()["quick"]["last"]
    assert last["experiment_id"] == done["id"] and last["finished_at"] == done["finished_at"]
    began, ended = (datetime.fromisoformat(done[f"{name}_at"]) for name in ("started", "finished"))
    assert last["took_seconds"] == pytest.approx((ended - began).total_seconds())


def test_host_is_its_parts(client):
    """Each as its own route answers: the same members, and the same values of what does not move."""
    host = client.get("/host")
    assert list(host) == ["health", "environment", "noise", "topology", "transports", "presets"]
    parts = {name: client.get(f"/{name}") for name in host}
    assert {name: list(part) for name, part in host.items()} == {name: list(part) for name, part in parts.items()}
    assert all(host["health"][key] == parts["health"][key] for key in ("version", "store"))
    assert host["environment"]["kernel_release"] == parts["environment"]["kernel_release"]
    assert host["topology"]["cpus"] == parts["topology"]["cpus"]
    names = lambda part: [one["name"] for one in part["items"]]  # noqa: E731
    assert all(names(host[name]) == names(parts[name]) for name in ("transports", "presets"))


def test_noise_is_of_the_seconds_before_and_of_no_run(client):
    """Known soon after the start and after a run, with a share of each CPU; nothing is known beside a run."""

    for _ in range(2):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (noise := client.get("/noise"))["window_ns"] is None:
            assert time.monotonic() < deadline, noise
            time.sleep(0.1)
        assert noise["reason"] is None and noise["window_ns"] >= 400_000_000
        assert [cpu["id"] for cpu in noise["cpus"]] == [c["id"] for c in client.get("/topology")["cpus"] if c["online"]]
        assert noise["load"] == pytest.approx(sum(cpu["foreign"] for cpu in noise["cpus"]))
        assert all(0 <= cpu[name] <= 1 for cpu in noise["cpus"] for name in ("foreign", "steal"))
        running = client.post({"duration_seconds": 600, "warmup_seconds": 0})["id"]
        client.wait_state(running, ["running"])
        beside = client.get("/noise")
        assert beside["window_ns"] is None and beside["cpus"] == [] and "an experiment runs" in beside["reason"]
        client.request("POST", f"/experiments/{running}/cancel")
        client.wait_final(running)


DESCRIPTORS = set(where("has_engine"))
DATAGRAMS = {"unix-dgram": socket.SOCK_DGRAM, "unix-seqpacket": socket.SOCK_SEQPACKET}
LARGEST = 1 << 30  # message of a spec
MEMORY, CGROUP = "memory available", "memory.max of"


def test_transports_have_their_availability_and_reasons(client):
    transports = {t["name"]: t for t in client.get("/transports")["items"]}
    assert list(transports) == list(ROWS)
    assert client.get("/transports")["next"] is None
    assert transports["pipe"]["available"] and transports["fifo"]["available"]
    for transport in transports.values():
        assert transport["available"] == (transport["reason"] is None), transport


def setting(name):
    return int(Path("/proc/sys", name).read_text().split()[-1])


def own_settings(*names):
    """As a run has them: in an IPC namespace of its own, where there can be one."""
    paths = [f"/proc/sys/{name}" for name in names]
    command = ["unshare", *([] if os.geteuid() == 0 else ["--user"]), "--ipc", "cat", *paths]
    output = subprocess.run(command, capture_output=True, text=True)
    text = output.stdout if output.returncode == 0 else "\n".join(Path(path).read_text() for path in paths)
    return [int(number) for number in text.split()]


def free_bytes(folder):
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize


def proc_number(path, pattern):
    return int(re.search(pattern, Path(path).read_text(), re.MULTILINE)[1])


def cgroup_left(folder):
    """The memory left below its limit; None: it has no limit, or none that this kernel reports."""
    try:
        most, used = ((folder / name).read_text().strip() for name in ("memory.max", "memory.current"))
    except OSError:
        return None
    if most == "max":
        return None
    stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    back = sum(int(stat.get(key, 0)) for key in ("inactive_file", "active_file", "slab_reclaimable"))
    return int(most) - int(used) + back


def memory(daemon):
    """What is left of it, by the name of who limits it: the host, and the cgroups that the daemon is in."""
    left = {MEMORY: proc_number("/proc/meminfo", r"^MemAvailable:\s+(\d+) kB") * 1024}
    own = re.search(r"^0::(/.*)$", Path(f"/proc/{daemon.process.pid}/cgroup").read_text(), re.MULTILINE)
    for group in [Path(own[1]), *Path(own[1]).parents] if own else []:
        if (room := cgroup_left(Path(f"/sys/fs/cgroup{group}"))) is not None:
            left[f"{CGROUP} {group} less what is in use"] = room
    return left


def longest_datagram():
    page = os.sysconf("SC_PAGESIZE")
    kernel, buffer = (4 << 20) + 17 * page - 320, max(2 * setting("net/core/wmem_max"), 4608) - 32
    if kernel < buffer:
        return {"kernel's largest socket buffer": kernel}
    return {"net.core.wmem_max": setting("net/core/wmem_max")}


def segment():
    shmmax, shmall = own_settings("kernel/shmmax", "kernel/shmall")
    pages = os.sysconf("SC_PAGESIZE")
    return {"kernel.shmall": shmall} if shmall * pages < shmmax else {"kernel.shmmax": shmmax}


def queue():
    """As a run begins with it."""
    message, whole = own_settings("kernel/msgmax", "kernel/msgmnb")
    return {"kernel.msgmnb": whole} if whole < message else {"kernel.msgmax": message}


def limits_of(daemon, name):
    """By name, what may be the limit of this transport, and the value that the host has it at."""
    files = {"free space of the runtime directory": free_bytes(daemon.base / "run")} | memory(daemon)
    return {
        "LIMIT_PIPE": lambda: {"fs.pipe-max-size": setting("fs/pipe-max-size")},
        "LIMIT_STREAM_SOCKET": lambda: {"net.core.wmem_max": setting("net/core/wmem_max")},
        "LIMIT_DATAGRAM_SOCKET": longest_datagram,
        "LIMIT_TCP": lambda: {"net.ipv4.tcp_wmem": setting("net/ipv4/tcp_wmem")},
        "LIMIT_SHM_POSIX": lambda: {"free space of /dev/shm": free_bytes("/dev/shm")} | memory(daemon),
        "LIMIT_SHM_SYSV": lambda: segment() | memory(daemon),
        "LIMIT_RUNTIME_DIR": lambda: files,
        "LIMIT_MEMORY": lambda: memory(daemon),
        "LIMIT_MSGQ_SYSV": queue,
        "LIMIT_MSGQ_POSIX": lambda: {"fs.mqueue.msgsize_max": own_settings("fs/mqueue/msgsize_max")[0]},
    }[ROWS[name]["limit"]]()


def moves(limit):
    """Whether others change it while this is tested."""
    return limit["name"].startswith((MEMORY, CGROUP, "free space"))


@pytest.fixture
def capacity(unix, request):
    """The row of the transport that the test is called with."""
    row = next(t for t in unix.get("/transports")["items"] if t["name"] == request.getfixturevalue("transport"))
    if not row["available"]:
        pytest.skip(row["reason"])
    reason = row["capacity"]["reason"]
    if reason:  # some settings are not shown in a network namespace of one's own
        setting_file = re.search(r"/proc/sys/\S+?(?=[:,]?(\s|$))", reason)
        assert setting_file and not os.access(setting_file[0], os.R_OK), reason
        pytest.skip(reason)
    return row["capacity"]


@pytest.mark.parametrize("transport", ROWS)
def test_the_limit_is_the_hosts(daemon, transport, capacity):
    shown = capacity["at_start"] or capacity["limit"]
    known = limits_of(daemon, transport)
    end = shown["name"].rpartition("…")[2]  # of a long name
    expected = next((value for name, value in known.items() if name.endswith(end)), None)
    assert expected is not None, (shown, known)
    value = int(shown["value"])
    if moves(shown):
        assert expected / 2 <= value <= expected * 2
    else:
        assert value == expected
    assert shown["raise"]
    ends = capacity["message_limit"]
    assert (ends is not None) == (capacity["largest_message"] == LARGEST)
    assert ends is None or (ends["name"], ends["value"]) == ("message_size of a spec", LARGEST)


def test_a_queue_has_room_for_no_more_than_its_resource_limit(daemon, unix):
    """Where that is what ends a message, after the namespace's own setting has been raised."""
    row = next(t for t in unix.get("/transports")["items"] if t["name"] == "msgq-posix")
    limit = row["available"] and row["capacity"]["limit"]
    if not limit or limit["name"] != "RLIMIT_MSGQUEUE":
        pytest.skip(f"the resource limit is not what ends a message: {limit or row['reason']}")
    assert limit["value"] == proc_number(f"/proc/{daemon.process.pid}/limits", r"^Max msgqueue size\s+(\d+)")
    assert row["capacity"]["largest_message"] < limit["value"], "the kernel counts more than the bytes"


@pytest.mark.parametrize("transport", DATAGRAMS)
def test_the_kernel_takes_the_longest_datagram_and_no_longer_one(transport, capacity):
    ours, theirs = socket.socketpair(socket.AF_UNIX, DATAGRAMS[transport])
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST)  # as much as net.core.wmem_max lets it
        assert ours.send(bytes(capacity["largest_message"])) == capacity["largest_message"]
        theirs.recv(1)
        with pytest.raises(OSError) as caught:
            ours.send(bytes(capacity["largest_message"] + 1))
        assert caught.value.errno in (errno.EMSGSIZE, errno.ENOBUFS)


@pytest.mark.parametrize("transport", ROWS)
def test_a_byte_above_the_largest_message_is_refused(unix, transport, capacity):
    """The problem names the limit of the transport's row."""
    size, limit = capacity["largest_message"] + 1, capacity["limit"]
    if moves(limit) and size <= LARGEST:
        pytest.skip(f"{limit['name']} changes while one looks")
    spec = SHORT | {"transport": transport, "message_size": size}
    problem = unix.refused("POST", "/experiments", 422, "limit-exceeded", spec)
    assert problem["pointer"] == "/message_size"
    assert str(size) in problem["detail"]
    if size > LARGEST:  # the maximum of every spec, on any host
        assert problem["limit"] == {"name": "message_size", "value": LARGEST}, problem
    else:
        assert problem["limit"] == {"name": limit["name"], "value": limit["value"]}, problem
        assert limit["raise"] in problem["detail"]


@pytest.mark.parametrize("transport", ROWS)
def test_the_largest_message_is_admitted(daemon, unix, long_run, transport, capacity):
    """Behind one that runs, so that it never begins."""
    size = capacity["largest_message"]
    if moves(capacity["limit"]) and size < LARGEST:
        size = size * 3 // 4
    elif size == LARGEST and min(memory(daemon).values()) < 8 * LARGEST:
        pytest.skip(f"both ends have a buffer for a message, and there is no more memory than {memory(daemon)}")
    experiment = unix.post(SHORT | {"transport": transport, "message_size": size})
    unix.request("POST", f"/experiments/{experiment['id']}/cancel")
    assert unix.wait_final(experiment["id"])["state"] == "cancelled"
    assert unix.get(f"/experiments/{long_run['id']}")["state"] == "running"
    assert unix.request("DELETE", f"/experiments/{experiment['id']}").status == 204


IO_URING_SETUP = 425  # on every architecture


def io_uring_refusal():
    """None where a program without privilege may have a ring: by the setting, and by a real try."""
    disabled = Path("/proc/sys/kernel/io_uring_disabled")  # since Linux 6.6
    value = int(disabled.read_text()) if disabled.exists() else 0
    if value == 1:
        pytest.skip("kernel.io_uring_disabled is 1: for whom, tests/unit/test-capacity.c checks")
    if value:
        return "kernel.io_uring_disabled"
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(IO_URING_SETUP, 2, ctypes.create_string_buffer(120))
    if ring < 0:
        return os.strerror(ctypes.get_errno())
    os.close(ring)
    return None


def test_engines_are_what_the_kernel_lets_one_have(client):
    refusal = io_uring_refusal()
    for row in client.get("/transports")["items"]:
        engines = row["engines"]
        assert set(engines) == ({"syscall", "io_uring"} if row["name"] in DESCRIPTORS else set()), row["name"]
        if not engines:
            continue
        assert engines["syscall"] == {"available": True, "reason": None}
        ring = engines["io_uring"]
        assert ring["available"] is ring["kernel_allows"] is (refusal is None), ring
        for reason in (ring["reason"], ring["kernel_reason"]):
            assert reason is None if refusal is None else refusal in reason, ring
        assert ("zero_copy" in ring) == (row["name"] == "tcp")
        if refusal and "zero_copy" in ring:
            assert ring["zero_copy"] is False and refusal in ring["zero_copy_reason"]


def test_topology_and_environment_are_objects(client):
    assert isinstance(client.get("/topology"), dict) and client.get("/topology")
    environment = client.get("/environment")  # and openapi.json has each of its members, which the client looks at
    nulls = {name for name, value in environment.items() if value is None}
    assert nulls <= set(environment["reasons"])


def cpus_of(text):
    """0-3,8"""
    pieces = [piece.split("-") for piece in text.split(",") if piece]
    return {cpu for ends in pieces for cpu in range(int(ends[0]), int(ends[-1]) + 1)}


def irqs_by_cpu():
    counts = collections.Counter()
    for folder in Path("/proc/irq").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError):  # gone since
            counts.update(cpus_of((folder / "effective_affinity_list").read_text().strip()))
    return counts


@pytest.mark.skipif(
    not list(Path("/proc/irq").glob("[0-9]*/effective_affinity_list")), reason="no interrupt has an effective affinity"
)
def test_interrupts_are_counted_where_they_are_routed_to(client):
    for _ in range(3):  # one may be moved between two readings
        before, shown, after = irqs_by_cpu(), client.get("/environment")["device_irqs"], irqs_by_cpu()
        if before == after:
            break
    parts = [part.split() for part in shown.split("; ")]
    assert {cpu: int(count) for count, cpus in parts for cpu in cpus_of(cpus) if int(count)} == after


@pytest.fixture
def tree(tmp_path):
    """A machine of two CPUs, captured: /path: line, or /path: and lines that begin with |."""
    at = None
    for line in (SOURCE / "tests/unit/data/host/busy-lab.host").read_text().splitlines():
        if line.startswith("/"):
            path, content = line.split(":", 1)
            at = tmp_path / path[1:]
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(content[1:] + "\n" if content else "")
        elif line.startswith("|"):
            with at.open("a") as file:
                file.write(line[1:] + "\n")
    return tmp_path


def set_cpus(tree, cpus):
    for name in ("cpu/online", "node/node0/cpulist"):
        (tree / "sys/devices/system" / name).write_text(cpus + "\n")


def is_online(client, cpu):
    return next(c["online"] for c in client.get("/topology")["cpus"] if c["id"] == cpu)


def test_a_cpu_that_comes_can_be_had_at_once(tree):
    spec = SHORT | {"placement": {"sender": {"cpu": 1}, "receiver": {"cpu": 0}}}
    set_cpus(tree, "0")
    d = Daemon(f"--root={tree}")
    try:
        problem = d.unix.request("POST", "/experiments", spec)
        assert problem.status == 422 and "offline" in problem.json["detail"], problem
        assert not is_online(d.unix, 1)
        set_cpus(tree, "0-1")
        d.unix.post(spec)  # before anybody has requested the topology
        assert is_online(d.unix, 1)
    finally:
        d.remove()


class SockFilter(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class SockFprog(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(SockFilter)))


def be_nice_and_filtered():
    """A filter that lets every system call through."""
    allow = (SockFilter * 1)(SockFilter(0x06, 0, 0, 0x7FFF0000))  # BPF_RET, SECCOMP_RET_ALLOW
    program = SockFprog(1, allow)
    libc = ctypes.CDLL(None, use_errno=True)
    os.nice(5)
    for arguments in ((38, 1, 0, 0, 0), (22, 2, ctypes.byref(program), 0, 0)):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def be_batch():
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


INHERITED = [(None, 0, "other", None), (be_nice_and_filtered, 5, "other", "filter"), (be_batch, 0, "batch", None)]


@pytest.mark.parametrize(("preexec", "more", "policy", "seccomp"), INHERITED)
def test_agents_say_how_they_are_scheduled_and_filtered(preexec, more, policy, seccomp):
    """The first daemon has what this test has. Agents of root have the nice value 0, whatever the daemon has. The
    environment has the same as facts, which runs are compared by and a spec may require."""
    nice = 0 if os.geteuid() == 0 else os.getpriority(os.PRIO_PROCESS, 0) + more
    own = re.search(r"^Seccomp:\s+(\d)$", Path("/proc/self/status").read_text(), re.MULTILINE)[1]
    facts = {
        "agent_scheduling": f"{policy}, nice {nice}",
        "agent_seccomp": seccomp or ("disabled", "strict", "filter")[int(own)],
    }
    daemon = Daemon(preexec=preexec)
    try:
        done = daemon.unix.wait_final(daemon.unix.post(SHORT | {"require": facts})["id"])
        assert done["state"] == "done", done
        (run,) = daemon.unix.items(f"/experiments/{done['id']}/runs")
        run = daemon.unix.get(f"/runs/{run['id']}")
        for agent in run["agents"]:
            assert agent["effective"]["scheduling"] == facts["agent_scheduling"]
            assert agent["effective"]["seccomp"] == facts["agent_seccomp"]
        for when in ("before", "after"):
            assert {name: run["environment"][when][name] for name in facts} == facts
        for name, another in (("agent_scheduling", "idle, nice 0"), ("agent_seccomp", "strict")):
            failed = daemon.unix.wait_final(daemon.unix.post(SHORT | {"require": {name: another}})["id"])
            assert failed["state"] == "failed" and name in failed["error"] and facts[name] in failed["error"], failed
    finally:
        daemon.remove()


def test_health(client, long_run):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (health := client.get("/health"))["running_run"] is None:  # set a moment after the run is stored as running
        assert time.monotonic() < deadline, health
    assert health["status"] == "ok" and health["problem"] is None and health["leftover"] is None
    assert re.fullmatch(r"\d+\.\d+\.\d+", health["version"])
    assert health["running_experiment"] == long_run["id"]
    run = client.get(f"/experiments/{long_run['id']}/runs")["items"][0]
    assert health["running_run"] == run["id"]
    assert health["rss_bytes"] > 1 << 20 and health["cpu_ns"] > 0 and health["database_bytes"] > 0


def parse_metrics(text):
    values, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds
            kinds[name] = kind
        elif not line.startswith("#"):
            match = re.fullmatch(r'([a-z_]+)(?:\{([a-z_]+="[^"]*",?)+\})? (-?\d+(?:\.\d+)?)', line)
            assert match, line
            assert match[1] in kinds, f"{line} has no type"
            values[line.rsplit(" ", 1)[0]] = float(match[3])
    return values, kinds


def test_metrics_are_prometheus_text(client, done):
    answer = client.request("GET", "/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    values, kinds = parse_metrics(answer.body.decode())
    assert values["ipclab_healthy"] == 1
    assert values["ipclab_stored_runs_done"] >= 4
    assert values["ipclab_resident_memory_bytes"] > 1 << 20
    assert {name for name, kind in kinds.items() if kind == "counter"} == {
        "ipclab_cpu_seconds_total",
        "ipclab_http_responses_total",
        "ipclab_main_loop_slow_total",
    }
    assert all(name.endswith("_total") for name, kind in kinds.items() if kind == "counter")
    later, _ = parse_metrics(client.request("GET", "/metrics").body.decode())
    key = 'ipclab_http_responses_total{class="2xx"}'
    assert later[key] > values[key]


def test_health_and_log_report_a_failure_in_the_same_words(own_daemon):
    state, away = own_daemon.base / "state", own_daemon.base / "away"
    state.rename(away)
    own_daemon.unix.refused("GET", "/experiments/1", 503, "unavailable")
    answer = own_daemon.unix.request("GET", "/health")  # and has the shape that is described for its status
    away.rename(state)
    assert answer.status == 503 and answer.headers["Content-Type"] == "application/json"
    assert answer.json["status"] == "failing" and "the database is gone" in answer.json["problem"]
    assert own_daemon.unix.get("/health")["status"] == "ok"


def test_a_fresh_daemon_has_answered_nothing_else(own_daemon):
    values, _ = parse_metrics(own_daemon.unix.request("GET", "/metrics").body.decode())
    assert {c: values[f'ipclab_http_responses_total{{class="{c}xx"}}'] for c in (3, 4, 5)} == {3: 0, 4: 0, 5: 0}


def test_the_dashboard_is_served(client):
    page = client.request("GET", "/")
    assert page.status == 200 and page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"<html" in page.body
    assert b"onclick=" not in page.body and not re.search(rb"<script(?![^>]*src=)", page.body)
    links = set(re.findall(rb'(?:src|href)="(/?assets/[^"]+)"', page.body))
    assert links
    for link in links:
        path = "/" + link.decode().lstrip("/")
        answer = client.request("GET", path)
        assert answer.status == 200 and answer.body, path
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        if path.endswith(".js"):
            assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
        if path.endswith(".css"):
            assert answer.headers["Content-Type"] == "text/css; charset=utf-8"


def test_a_known_version_is_not_sent_again(client):
    page = client.request("GET", "/")
    tag = page.headers["ETag"]
    assert page.headers["Cache-Control"] == "no-cache"
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = client.request("GET", "/", headers={"If-None-Match": known})
        assert (answer.status, answer.body) == (304, b"")
        assert answer.headers["ETag"] == tag
    assert client.request("GET", "/", headers={"If-None-Match": '"other"'}).status == 200


@pytest.mark.parametrize("path", ["/openapi.json", "/presets", "/baselines"])
def test_what_a_client_has_is_not_sent_again(client, path):
    first = client.request("GET", path)
    tag = first.headers["ETag"]
    assert re.fullmatch(r'W/"[0-9a-f]{16}"', tag) and first.headers["Cache-Control"] == "no-cache"
    packed = client.request("GET", path, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["ETag"] == tag
    assert packed.headers.get("Content-Encoding") == ("gzip" if len(first.body) >= 1024 else None)
    for coding in ("identity", "gzip"):
        again = client.request("GET", path, headers={"If-None-Match": tag, "Accept-Encoding": coding})
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
        assert again.headers["Vary"].count("Accept-Encoding") == 1
    changed = client.request("GET", path, headers={"If-None-Match": 'W/"0123456789abcdef"'})
    assert (changed.status, changed.body) == (200, first.body)


def test_an_experiment_that_changed_is_sent_again(client):
    path = f"/experiments/{client.post({'messages': 1, 'warmup_seconds': 0})['id']}"
    tag = client.request("GET", path).headers["ETag"]
    client.wait_final(int(path.rsplit("/", 1)[1]))
    ended = client.request("GET", path, headers={"If-None-Match": tag})
    assert ended.status == 200 and ended.json["state"] == "done" and ended.headers["ETag"] != tag
    assert client.request("GET", path, headers={"If-None-Match": ended.headers["ETag"]}).status == 304
    refused = client.request("GET", "/experiments/999999", headers={"If-None-Match": "*"})
    assert refused.status == 404 and "ETag" not in refused.headers


def test_a_stream_of_what_has_ended_is_not_sent_again(unix, tcp):
    """Also where the body is too large to be held as a whole. Another type, columns or page is another response."""
    identity = unix.post({"messages": 1, "warmup_seconds": 0, "message_size": list(range(1, 41))})["id"]
    unix.wait_final(identity)
    forms = [("results", "application/json"), ("results", "text/csv"), ("results?columns=all", "text/csv")]
    forms += [("runs", "application/json"), ("runs", "text/csv"), ("runs?limit=1", "application/json")]
    forms += [("samples", "application/json"), ("samples", "application/x-ndjson"), ("bundle", "*/*")]

    def get(client, form, **headers):
        what, accept = form
        return client.request("GET", f"/experiments/{identity}/{what}", headers={"Accept": accept} | headers)

    tags = {}
    for client in (unix, tcp):
        first = {form: get(client, form) for form in forms}
        assert [first[form].headers.get("Transfer-Encoding") for form in forms[2:4]] == ["chunked"] * 2
        tags = {form: answer.headers["ETag"] for form, answer in first.items()}
        assert len(set(tags.values())) == len(forms)
        for form, tag in tags.items():
            for coding in ("identity", "gzip"):
                again = get(client, form, **{"If-None-Match": tag, "Accept-Encoding": coding})
                assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag), form
                assert again.headers["Vary"].count("Accept-Encoding") == 1, form
    assert tcp.request("POST", f"/experiments/{identity}/extend", {"blocks": 1}).status == 200
    tcp.request("POST", f"/experiments/{identity}/cancel")
    unix.wait_final(identity)
    for form, tag in tags.items():
        for client in (unix, tcp):
            changed = get(client, form, **{"If-None-Match": tag})
            assert changed.status == 200 and changed.headers["ETag"] != tag, form


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../index.html",
        "/assets/%2e%2e/index.html",
        "/assets/..%2findex.html",
        "/assets/%2e%2e%2f%2e%2e%2fetc/passwd",
        "/assets//etc/passwd",
        "/assets/%2fetc%2fpasswd",
        "/assets/.",
        "/assets/..",
        "/assets/none.js",
        "/assets/meson.build",
        "/assets/app.js/",
        "/assets/app.js%2f",
    ],
)
def test_there_is_nothing_beside_the_assets(client, path):
    client.refused("GET", path, 404, "not-found")


def test_links_and_hidden_files_are_no_assets(tmp_path):
    tmp_path.chmod(0o755)
    assets = tmp_path / "assets"
    (assets / "deep").mkdir(parents=True)
    (assets / "deep/a.js").write_text("1")
    (assets / ".secret.js").write_text("2")
    (assets / "link.js").symlink_to("/etc/passwd")
    (assets / "unknown.bin").write_text("3")
    (tmp_path / "beside.js").write_text("4")
    d = Daemon(web_dir=tmp_path)
    try:
        assert d.unix.request("GET", "/assets/deep/a.js").body == b"1"
        for path in (".secret.js", "link.js", "unknown.bin", "beside.js", "deep%2fa.js", "deep"):
            d.unix.refused("GET", f"/assets/{path}", 404, "not-found")
        page = d.unix.request("GET", "/")  # there is no index.html
        assert page.status == 200 and b"tools/setup" in page.body
        assert not Path(tmp_path / "index.html").exists()
    finally:
        d.remove()


def test_a_reload_of_the_service_is_logged_as_unsupported():
    d = Daemon(preexec=os.setsid)
    try:
        d.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while "settings are read at the start only" not in d.log_tail():
            assert d.process.poll() is None and time.monotonic() < deadline, d.log_tail()
            time.sleep(0.02)
        assert d.unix.get("/health")["status"]
        assert d.stop() == 0
    finally:
        d.remove()


def test_it_ends_when_its_terminal_hangs_up():
    ours, its = pty.openpty()

    def at_terminal():
        os.setsid()
        fcntl.ioctl(its, termios.TIOCSCTTY, 0)

    d = Daemon(preexec=at_terminal)
    try:
        os.close(its)
        os.close(ours)
        assert d.process.wait(PATIENCE_SECONDS) == 0
        assert "signal SIGHUP: stopping" in d.log_tail()
    finally:
        d.remove()


@pytest.mark.parametrize("sync", ["fsync", "direct"])
def test_files_of_runs_may_lie_beside_the_database(tmp_path, sync):
    """As ipclabd.conf(5) advises for the service, so that they are on a disk."""
    state = tmp_path / "state"
    d = Daemon(f"--state-dir={state}", f"--runtime-dir={state / 'run'}")
    try:
        spec = {"transport": "file", "messages": 20, "warmup_seconds": 0, "transport_options": {"file_sync": sync}}
        answer = d.unix.request("POST", "/experiments", spec)
        if answer.status == 422 and re.search("in memory|O_DIRECT", answer.json["detail"]):
            pytest.skip(answer.json["detail"])
        assert answer.status == 201, answer
        experiment = d.unix.wait_final(answer.json["id"])
        assert experiment["state"] == "done", (experiment, d.log_tail())
        (run,) = d.unix.items(f"/experiments/{experiment['id']}/runs")
        assert run["result"]["effective"]["file_sync"] == sync
        assert list((state / "run/runs").iterdir()) == []
    finally:
        d.remove()
