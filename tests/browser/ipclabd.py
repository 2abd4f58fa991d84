# SPDX-License-Identifier: MIT
"""The browser tests' daemon: on a port that it has again after a restart, with the dashboard's modules beside it."""

import contextlib
import functools
import random
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import ipclabtest.daemon
from ipclabtest import BUILD, PATIENCE_SECONDS, SOURCE
from ipclabtest.client import Client

WEB = SOURCE / "web"
ENDLESS = {"duration_seconds": 600, "rate": 10}  # takes next to no CPU time from the tests beside it
PORTS = range(20000, 32000)  # below those that the kernel gives to clients, one of which could be at it meanwhile


def free_port():
    for port in random.sample(PORTS, 100):
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port
    raise AssertionError("a hundred ports were taken")


@functools.cache
def dashboard():
    """The built dashboard, and beside its bundles each module by its own path for tests to import, as in the
    sources: /assets/form/spec.js. The directory goes away with what is returned."""
    directory = tempfile.TemporaryDirectory(prefix="ipclab-web-")
    path = Path(directory.name)
    path.chmod(0o755)
    shutil.copytree(BUILD / "web", path, dirs_exist_ok=True)
    modules = sorted((WEB / "assets").rglob("*.js"))
    options = ["--bundle", "--splitting", "--format=esm", "--log-level=warning", f"--outdir={path / 'assets'}"]
    subprocess.run([WEB / "node_modules/.bin/esbuild", *modules, *options], check=True, timeout=PATIENCE_SECONDS)
    return directory


class Daemon(ipclabtest.daemon.Daemon):
    def __init__(self):
        super().__init__(listen=f"127.0.0.1:{free_port()}")
        self.command.append(f"--web-dir={dashboard().name}")

    def request(self, method, target, body=None):
        """(status, document)"""
        token = self.token if method != "GET" else None
        answer = Client(port=self.port, token=token).request(method, target, body)
        return answer.status, answer.json

    def get(self, target):
        return Client(port=self.port).get(target)

    def submit(self, **spec):
        return Client(port=self.port, token=self.token).post(spec)["id"]

    def wait(self, experiment, seconds=2 * PATIENCE_SECONDS):
        """Until it has ended; the experiment."""
        return Client(port=self.port).wait_final(experiment, seconds)

    def wait_done(self, experiment, seconds=2 * PATIENCE_SECONDS):
        """Until it has ended, with every run of it; the experiment."""
        ended = self.wait(experiment, seconds)
        assert ended["state"] == "done", [run["error"] for run in self.get(f"/experiments/{experiment}/runs")["items"]]
        return ended

    def fill_queue(self, n, name):
        """With n experiments that wait behind a long one: `name` with a number from 0."""
        self.submit(name="In front", **ENDLESS)
        for i in range(n):
            self.submit(name=f"{name} {i}", messages=1, warmup_seconds=0)
