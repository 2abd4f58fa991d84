# SPDX-License-Identifier: MIT
"""A full disk: reads go on, what would make room is possible, and so is a start."""

import contextlib
import os
import signal
import subprocess

import pytest
from client import PATIENCE_SECONDS
from conftest import ENDLESS, SHORT, Daemon

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")


@pytest.fixture(params=["80m", "24m"], ids=["with-room", "small"])
def disk(tmp_path, request):
    size = f"size={request.param}"
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "ipclab", tmp_path], capture_output=True)
    if mount.returncode != 0:
        pytest.skip("this host lets nobody mount a tmpfs")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


def fill(disk):
    with (disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)


def test_a_full_disk_can_be_started_on_and_deleted_from(disk):
    daemon = Daemon(f"--state-dir={disk / 'state'}")
    try:
        for _ in range(3):
            daemon.unix.wait_final(daemon.unix.post(SHORT)["id"])
        before = daemon.unix.get("/experiments/1/results")
        fill(disk)
        spec = SHORT | {"name": "x" * 100, "message_size": list(range(1, 1000))}
        daemon.unix.refused("POST", "/experiments", 507, "insufficient-storage", spec)
        assert daemon.unix.get("/experiments/1/results") == before
        assert daemon.unix.request("GET", "/health").status == 503
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait(PATIENCE_SECONDS)
    finally:
        daemon.remove()
    daemon = Daemon(f"--state-dir={disk / 'state'}")
    try:
        assert "ipclab.reserve are given up" in daemon.log.read_text()
        assert daemon.unix.get("/experiments/1/results") == before
        assert daemon.unix.request("DELETE", "/experiments/2").status == 204
        assert daemon.unix.request("DELETE", "/experiments/3").status == 204
        assert [e["id"] for e in daemon.unix.get("/experiments")["items"]] == [1]
        (disk / "filler").unlink()
        daemon.unix.wait_final(daemon.unix.post(SHORT)["id"])
    finally:
        daemon.remove()


def test_a_full_disk_under_a_daemon_can_be_deleted_from(disk):
    daemon = Daemon(f"--state-dir={disk / 'state'}")
    try:
        ids = [daemon.unix.post(SHORT)["id"] for _ in range(2)]
        for identity in ids:
            daemon.unix.wait_final(identity)
        fill(disk)
        statuses = [daemon.unix.request("DELETE", f"/experiments/{identity}").status for identity in ids]
        assert statuses == [204, 204]
        assert daemon.unix.get("/experiments")["items"] == []
    finally:
        daemon.remove()


def test_others_may_fill_the_disk_again_after_each_step(disk):
    state = f"--state-dir={disk / 'state'}"
    daemon = Daemon(state)
    try:
        running, waiting, last = (daemon.unix.post(ENDLESS)["id"] for _ in range(3))
        for _ in range(2):
            fill(disk)
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait(PATIENCE_SECONDS)
            daemon.remove()
            daemon = Daemon(state)
            assert [e["id"] for e in daemon.unix.get("/experiments")["items"]] == [last, waiting, running]
        fill(disk)
        assert daemon.unix.request("POST", f"/experiments/{running}/cancel").status == 200
        fill(disk)
        daemon.unix.wait_final(running)
        assert [daemon.unix.request("DELETE", f"/experiments/{i}").status for i in (running, last)] == [204, 204]
    finally:
        daemon.remove()
