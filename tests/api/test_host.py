# SPDX-License-Identifier: MIT
"""What the daemon says of itself and of the host: presets, transports, topology, environment, health, metrics, page."""

import fcntl
import json
import os
import pty
import re
import signal
import termios
import time
from pathlib import Path

import pytest
from client import PATIENCE_SECONDS
from conftest import SHORT, SOURCE, Daemon


def test_presets_are_the_files(client):
    presets = client.get("/presets")
    assert presets["next"] is None
    files = {path.stem: json.loads(path.read_text()) for path in (SOURCE / "schema/presets").glob("*.json")}
    assert {
        p["name"]: {"title": p["title"], "description": p["description"], "spec": p["spec"]} for p in presets["items"]
    } == files


def test_transports_say_what_is_there_and_why_not(client):
    transports = {t["name"]: t for t in client.get("/transports")["items"]}
    assert set(transports) >= {
        "pipe",
        "fifo",
        "unix-stream",
        "unix-dgram",
        "unix-seqpacket",
        "tcp",
        "shm-posix",
        "shm-sysv",
        "mmap-file",
        "mmap-anonymous",
        "file",
        "msgq-sysv",
        "msgq-posix",
    }
    assert client.get("/transports")["next"] is None
    assert transports["pipe"]["available"] and transports["fifo"]["available"]
    for transport in transports.values():
        assert transport["available"] == (transport["reason"] is None), transport


def test_topology_and_environment_are_objects(client):
    assert isinstance(client.get("/topology"), dict) and client.get("/topology")
    assert isinstance(client.get("/environment"), dict) and client.get("/environment")


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
        d.unix.post(spec)  # before anybody has looked at the topology
        assert is_online(d.unix, 1)
    finally:
        d.remove()


def test_health(client, long_run):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (health := client.get("/health"))["running_run"] is None:  # told a moment after the run is stored as running
        assert time.monotonic() < deadline, health
    assert health["status"] == "ok" and health["problem"] is None
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
    }
    assert all(name.endswith("_total") for name, kind in kinds.items() if kind == "counter")
    later, _ = parse_metrics(client.request("GET", "/metrics").body.decode())
    key = 'ipclab_http_responses_total{class="2xx"}'
    assert later[key] > values[key]


def test_what_ails_the_daemon_is_told_in_the_same_words(own_daemon):
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


def test_a_service_that_is_told_to_read_its_settings_says_that_it_does_not():
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
