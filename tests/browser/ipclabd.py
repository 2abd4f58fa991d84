# SPDX-License-Identifier: MIT
"""An ipclabd of the browser tests' own: on a free port, with its state in a temporary directory."""

import contextlib
import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

BUILD = Path(os.environ.get("IPCLAB_BUILD_ROOT", Path(__file__).parents[2] / "build"))
WEB = Path(__file__).parents[2] / "web"
FINAL = ("done", "failed", "cancelled")
PATIENCE_SECONDS = 120  # for what must come; what comes sooner is not waited for
PORTS = range(20000, 32000)  # below those that the kernel gives to clients, one of which could be at it meanwhile


def free_port():
    for port in random.sample(PORTS, 100):
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port
    raise AssertionError("a hundred ports were taken")


def dashboard(directory):
    """The built dashboard, and beside its bundles each module by its own name, for tests to import: /assets/spec.js."""
    shutil.copytree(BUILD / "web", directory)
    modules = sorted((WEB / "assets").glob("*.js"))
    options = ["--bundle", "--splitting", "--format=esm", "--log-level=warning", f"--outdir={directory / 'assets'}"]
    subprocess.run([WEB / "node_modules/.bin/esbuild", *modules, *options], check=True, timeout=PATIENCE_SECONDS)
    return directory


class Daemon:
    def __init__(self):
        self.base = Path(tempfile.mkdtemp(prefix="ipclab-browser-"))
        self.base.chmod(0o755)
        self.web = dashboard(self.base / "web")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    @property
    def token(self):
        return (self.base / "token").read_text().strip()

    def start(self):
        command = [
            BUILD / "daemon/ipclabd",
            f"--state-dir={self.base / 'state'}",
            f"--runtime-dir={self.base / 'run'}",
            f"--socket={self.base / 'socket'}",
            f"--listen=127.0.0.1:{self.port}",
            f"--token-file={self.base / 'token'}",
            f"--web-dir={self.web}",
            f"--agent={BUILD / 'agent/ipclab-agent'}",
        ]
        if os.geteuid() == 0:
            command.append("--agent-user=nobody")
        with (self.base / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.answers():
            if time.monotonic() > deadline:
                raise AssertionError(f"ipclabd does not answer:\n{self.log()}")
            time.sleep(0.05)

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"ipclabd ended with {self.process.returncode}:\n{self.log()}")
        with contextlib.suppress(OSError):
            return self.request("GET", "/health")[0] == 200
        return False

    def log(self):
        return (self.base / "log").read_text(errors="replace")[-4000:]

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def remove(self):
        self.stop()
        shutil.rmtree(self.base, ignore_errors=True)

    def request(self, method, target, body=None):
        """(status, document)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}"} if method != "GET" else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, target, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        return response.status, json.loads(text) if text else None

    def get(self, target):
        status, document = self.request("GET", target)
        assert status == 200, (target, status, document)
        return document

    def submit(self, **spec):
        status, experiment = self.request("POST", "/experiments", spec)
        assert status == 201, experiment
        return experiment["id"]

    def wait(self, experiment, seconds=2 * PATIENCE_SECONDS):
        """Until it has ended; the experiment."""
        deadline = time.monotonic() + seconds
        while True:
            document = self.get(f"/experiments/{experiment}")
            if document["state"] in FINAL:
                return document
            assert time.monotonic() < deadline, document
            time.sleep(0.1)
