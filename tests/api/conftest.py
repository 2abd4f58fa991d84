# SPDX-License-Identifier: MIT
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from client import PATIENCE_SECONDS, Client

SOURCE = Path(__file__).parents[2]
BUILD = Path(os.environ.get("IPCLAB_BUILD_ROOT", SOURCE / "build"))
# One without sanitizers, whose memory is its own.
PLAIN_BUILD = Path(os.environ.get("IPCLAB_PLAIN_BUILD_ROOT", BUILD))
SHORT = {"transport": "pipe", "message_size": 4096, "duration_seconds": 0.3, "warmup_seconds": 0}


class Daemon:
    """The real ipclabd, in directories and on a port of its own."""

    def __init__(self, *options, web_dir=None, preexec=None, build=BUILD):
        self.base = Path(tempfile.mkdtemp(prefix="ipclab-api-"))
        self.base.chmod(0o755)  # agents of another user pass through
        self.log = self.base / "log"
        command = [
            build / "daemon/ipclabd",
            f"--state-dir={self.base / 'state'}",
            f"--runtime-dir={self.base / 'run'}",
            f"--socket={self.base / 'socket'}",
            "--listen=127.0.0.1:0",
            f"--token-file={self.base / 'token'}",
            f"--agent={build / 'agent/ipclab-agent'}",
            f"--web-dir={web_dir or build / 'web'}",
            "--log-level=debug",
            *options,
        ]
        if os.geteuid() == 0:
            command.append("--agent-user=nobody")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=preexec
            )
        ready = self.wait_ready()
        self.port = int(re.search(r":(\d+)/", ready["url"])[1])
        self.token = (self.base / "token").read_text().strip()
        self.unix = Client(path=ready["socket"])
        self.tcp = Client(port=self.port, token=self.token)
        self.stranger = Client(port=self.port)
        openapi = json.loads(self.unix.request("GET", "/openapi.json").body)
        for client in (self.unix, self.tcp, self.stranger):
            client.openapi = openapi

    def wait_ready(self, seconds=PATIENCE_SECONDS):
        deadline = time.monotonic() + seconds
        while True:
            found = re.search(r"ready (\{.*\})", self.log.read_text(errors="replace"))
            if found:
                return json.loads(found[1])
            assert self.process.poll() is None, f"ipclabd ended:\n{self.log_tail()}"
            assert time.monotonic() < deadline, f"ipclabd is not ready:\n{self.log_tail()}"
            time.sleep(0.02)

    def log_tail(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])

    def stop(self, seconds=PATIENCE_SECONDS):
        """Its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"ipclabd did not stop:\n{self.log_tail()}") from None

    def remove(self):
        with contextlib.suppress(AssertionError):
            self.stop()
        shutil.rmtree(self.base, ignore_errors=True)


@pytest.fixture(scope="session")
def daemon():
    """One for all tests: what they leave in its list, the others must bear, as in life. Ends cleanly or fails."""
    d = Daemon()
    yield d
    try:
        assert d.stop() == 0, d.log_tail()
        text = d.log.read_text(errors="replace")
        assert "Sanitizer" not in text and "runtime error" not in text, text
    finally:
        d.remove()


@pytest.fixture
def own_daemon():
    """One for a single test, which may stop or choke it."""
    d = Daemon()
    yield d
    d.remove()


@pytest.fixture
def plain_daemon():
    """One for a single test that is about its memory, or about agents that a leak sanitizer would open to itself."""
    d = Daemon(build=PLAIN_BUILD)
    yield d
    d.remove()


@pytest.fixture
def unix(daemon):
    return daemon.unix


@pytest.fixture
def tcp(daemon):
    return daemon.tcp


@pytest.fixture
def stranger(daemon):
    """Over TCP, without the token."""
    return daemon.stranger


@pytest.fixture(params=["unix", "tcp"])
def client(request, daemon):
    return getattr(daemon, request.param)


@pytest.fixture(scope="session")
def done(daemon):
    """A finished experiment with two points, pingpong among them."""
    spec = SHORT | {"name": "two workloads", "workload": ["stream", "pingpong"], "repetitions": 2, "seed": 7}
    experiment = daemon.unix.post(spec)
    experiment = daemon.unix.wait_final(experiment["id"])
    assert experiment["state"] == "done", (experiment, daemon.log_tail())
    return experiment


@pytest.fixture
def long_run(daemon):
    """An experiment that runs until somebody stops it."""
    experiment = daemon.unix.post(SHORT | {"name": "long", "duration_seconds": 600})
    daemon.unix.wait_state(experiment["id"], ("running",))
    yield experiment
    daemon.unix.request("POST", f"/experiments/{experiment['id']}/cancel")
    daemon.unix.wait_final(experiment["id"])
