# SPDX-License-Identifier: MIT
"""tools/run as a person uses it, in a checkout of its own around the programs that were built."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import urllib.request
from pathlib import Path

import pytest
from ipclabtest import BUILD, SOURCE

PORT = 8620


class Checkout:
    def __init__(self):
        self.base = Path(tempfile.mkdtemp(prefix="ipclab-tools-"))
        self.base.chmod(0o755)  # agents of another user pass through
        for room in ("tools", "cli"):
            shutil.copytree(SOURCE / room, self.base / room)
        (self.base / "build").symlink_to(BUILD)
        lock = self.base / "web/node_modules/.ipclab-lock"  # as if they had been installed: the pages are built
        lock.parent.mkdir(parents=True)
        shutil.copy(SOURCE / "web/package-lock.json", self.base / "web")
        shutil.copy(SOURCE / "web/package-lock.json", lock)

    def run(self, *arguments):
        return subprocess.run(
            [self.base / "tools/run", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
        )

    def port(self):
        return int((self.base / ".ipclab/port").read_text())

    def answers(self):
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port()}/health", timeout=60) as answer:
                return answer.status == 200
        return False

    def remove(self):
        stopped = self.run("--stop")
        shutil.rmtree(self.base)
        assert stopped.returncode == 0, stopped.stderr


@pytest.fixture
def checkout():
    c = Checkout()
    yield c
    c.remove()


def test_once(checkout):
    done = checkout.run("--once", "--preset=quick", "--duration", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Experiment 1: preset quick, 1 s a run" in done.stdout
    assert re.findall(r"^stream$|^pingpong$", done.stdout, re.MULTILINE) == ["stream", "pingpong"]
    table = re.findall(r"^(pipe|fifo) +\d+ (?:B|KiB) +[\d,.]+ +[\d,]+", done.stdout, re.MULTILINE)
    assert len(table) == 16
    assert str(checkout.base / ".ipclab/token") in done.stdout
    assert "Stopping ipclabd" in done.stdout
    assert not checkout.answers()
    assert not (checkout.base / ".ipclab/pid").exists()


def test_a_daemon_that_is_left_running(checkout):
    """A preset that there is not: the daemon was started for it, and stays as it does after a table."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # somebody else's is as good
            s.bind(("127.0.0.1", PORT))
            s.listen()
        refused = checkout.run("--preset", "nonsense")
        assert refused.returncode == 1
        assert "ipclabd refused" in refused.stderr and "nonsense" in refused.stderr
        assert checkout.port() > PORT
        assert f"Port {PORT} is taken: the dashboard is on port {checkout.port()}" in refused.stdout
    assert checkout.answers()
    pid = (checkout.base / ".ipclab/pid").read_text()
    again = checkout.run("--once", "--preset", "nonsense")
    assert again.returncode == 1
    assert (checkout.base / ".ipclab/pid").read_text() == pid and checkout.answers()  # not --once's own: left as found

    stopped = checkout.run("--stop")
    assert (stopped.returncode, stopped.stdout) == (0, "Stopped\n")
    assert not checkout.answers()
    stopped = checkout.run("--stop")
    assert (stopped.returncode, stopped.stdout) == (0, "No daemon of this checkout is running\n")


@pytest.mark.parametrize("name", [".ipclab", ".cache", "build"])
def test_what_another_user_has_made(checkout, name):
    place = checkout.base / name
    if name == "build":
        place.unlink()
    if os.geteuid() == 0:
        place.mkdir()
        os.chown(place, 65534, -1)
        owner = "(uid 65534)"
    else:
        place.symlink_to("/usr")
        owner = "root (uid 0)"
    refused = checkout.run("--preset", "nonsense")
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"run: {place} belongs to ")
    assert refused.stderr.endswith(f"{owner}: run this as that user, or in another checkout\n")
    if place.is_symlink():  # or it could not be stopped, as it is about to be
        place.unlink()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--nonsense"], 2, "Usage: tools/run"),
        (["--duration"], 1, "--duration needs a value"),
        (["--duration", "1; true"], 1, "a number of seconds"),
        (["--preset", '"}'], 1, "a name is made of"),
    ],
)
def test_bad_options(arguments, status, words):
    done = subprocess.run(
        [SOURCE / "tools/run", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == status
    assert words in done.stderr
