# SPDX-License-Identifier: MIT
"""The real ipclabd, in directories of its own."""

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

from ipclabtest import BUILD, PATIENCE_SECONDS
from ipclabtest.client import Client


class Daemon:
    """Made stopped: start() returns when it is ready. Options are ipclabd's own, after those that are set here; it may
    be started again. `build` has the programs, unless they are named."""

    def __init__(
        self,
        *options,
        build=BUILD,
        program=None,
        agent=None,
        web=None,
        listen="127.0.0.1:0",
        preexec=None,
        agent_user="nobody",
    ):
        self.base = Path(tempfile.mkdtemp(prefix="ipclab-test-"))
        self.base.chmod(0o755)  # agents of another user pass through
        self.log = self.base / "log"
        self.state = self.base / "state"
        self.runtime = self.base / "run"
        self.socket = str(self.base / "socket")
        self.preexec = preexec
        self.process = None
        self.port = None
        self.command = [
            program or build / "daemon/ipclabd",
            f"--state-dir={self.state}",
            f"--runtime-dir={self.runtime}",
            f"--socket={self.socket}",
            f"--listen={listen}",
            f"--token-file={self.base / 'token'}",
            f"--agent={agent or build / 'agent/ipclab-agent'}",
            f"--web-dir={web or build / 'web'}",
            *options,
        ]
        if os.geteuid() == 0:
            self.command.append(f"--agent-user={agent_user}")

    @property
    def token(self):
        return (self.base / "token").read_text().strip()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def use_agent(self, program):
        """From the next start on."""
        self.command = [f"--agent={program}" if str(word).startswith("--agent=") else word for word in self.command]

    def client(self, kind=Client):
        return kind(path=self.socket)

    def start(self, seconds=PATIENCE_SECONDS, command=None):
        """With `command`, that one instead of the daemon's own. The log goes on where it was."""
        with self.log.open("ab") as log:
            began = log.tell()
            self.process = subprocess.Popen(
                command or self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=self.preexec
            )
        ready = self.wait_ready(seconds, began)
        if ready["url"]:
            self.port = int(re.search(r":(\d+)/", ready["url"])[1])

    def wait_ready(self, seconds=PATIENCE_SECONDS, since=0):
        """The line that it writes when it serves: its addresses."""
        deadline = time.monotonic() + seconds
        while True:
            found = re.search(rb"ready (\{.*\})", self.log.read_bytes()[since:])
            if found:
                return json.loads(found[1])
            assert self.process.poll() is None, f"ipclabd ended with {self.process.returncode}:\n{self.log_tail()}"
            assert time.monotonic() < deadline, f"ipclabd is not ready:\n{self.log_tail()}"
            time.sleep(0.02)

    def log_text(self):
        return self.log.read_text(errors="replace")

    def log_tail(self):
        return "\n".join(self.log_text().splitlines()[-40:])

    def stop(self, seconds=PATIENCE_SECONDS):
        """Its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"ipclabd did not stop:\n{self.log_tail()}") from None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def remove(self):
        if self.process:
            with contextlib.suppress(AssertionError):
                self.stop()
        shutil.rmtree(self.base, ignore_errors=True)


@contextlib.contextmanager
def started(daemon):
    """It serves within, and is gone after it."""
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.remove()
