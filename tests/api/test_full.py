# SPDX-License-Identifier: MIT
"""A full disk: reads go on, what would make room is possible, and so is a start."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import time

import pytest
from client import PATIENCE_SECONDS
from conftest import ENDLESS, SHORT, Daemon
from ipclabtest.disk import ext4

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")


@pytest.fixture(params=["80m", "24m"], ids=["with-room", "small"])
def disk(tmp_path, request):
    size = f"size={request.param}"
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "ipclab", tmp_path], capture_output=True)
    if mount.returncode != 0:
        pytest.skip("this host lets nobody mount a tmpfs")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


@pytest.fixture
def blocks(tmp_path):
    """A disk of a file system on which a new directory takes a block, as it does on most."""
    with ext4(tmp_path, "-b", "4096", "-m", "0") as mounted:
        if not mounted:
            pytest.skip("this host has no ext4 for a file")
        yield mounted


def fill(disk):
    with (disk / "filler").open("ab", buffering=0) as file, contextlib.suppress(OSError):
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)


def cancel(daemon, disk, identity):
    """Unless it has failed before that: a run ends by itself when its samples have no room, which a slow machine comes
    to before the request."""
    fill(disk)
    status = daemon.unix.request("POST", f"/experiments/{identity}/cancel").status
    fill(disk)
    ended = daemon.unix.wait_final(identity)
    assert (status, ended["state"]) in ((200, "cancelled"), (409, "failed")), (status, ended)
    assert ended["state"] == "cancelled" or "No space left on device" in ended["error"]


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
        assert (disk / "state/ipclab.reserve").exists()  # the log's own room was enough
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
        for identity in (last, waiting, running):  # none of them begins when the one before it is gone
            cancel(daemon, disk, identity)
        assert [daemon.unix.request("DELETE", f"/experiments/{i}").status for i in (running, last)] == [204, 204]
    finally:
        daemon.remove()


@pytest.mark.parametrize("ends", ["killed", "stopped"])
def test_it_starts_and_deletes_without_a_reserve(disk, ends):
    """Not a byte is free, before the start and before each change."""
    state = f"--state-dir={disk / 'state'}"
    daemon = Daemon(state)
    try:
        done = [daemon.unix.wait_final(daemon.unix.post(SHORT)["id"])["id"] for _ in range(3)]
        running, waiting = (daemon.unix.post(ENDLESS)["id"] for _ in range(2))
        daemon.unix.wait_state(running, ("running",))
        before = daemon.unix.get(f"/experiments/{done[0]}/results")
        if ends == "killed":
            daemon.kill()
        else:
            assert daemon.stop() == 0
        (disk / "state/ipclab.reserve").unlink()
        fill(disk)
        daemon.remove()
        daemon = Daemon(state)
        fill(disk)
        assert daemon.unix.get(f"/experiments/{done[0]}/results") == before
        daemon.unix.refused("POST", "/experiments", 507, "insufficient-storage", SHORT)
        for identity in (running, waiting):
            cancel(daemon, disk, identity)
        for identity in (*done[1:], running, waiting):
            fill(disk)
            assert daemon.unix.request("DELETE", f"/experiments/{identity}").status == 204
        assert [e["id"] for e in daemon.unix.get("/experiments")["items"]] == done[:1]
        assert not (disk / "state/ipclab.reserve").exists()
        (disk / "filler").unlink()
        assert daemon.unix.wait_final(daemon.unix.post(SHORT)["id"])["state"] == "done"
        assert daemon.unix.get(f"/experiments/{done[0]}/results") == before
    finally:
        daemon.remove()


@pytest.mark.parametrize("ends", ["killed", "stopped"])
def test_it_starts_without_a_free_block(blocks, ends):
    """State and runtime directory are on one disk, as those of tools/run are."""
    daemon = Daemon(f"--state-dir={blocks / 'state'}", f"--runtime-dir={blocks / 'run'}")
    try:
        done = [daemon.unix.wait_final(daemon.unix.post(SHORT)["id"])["id"] for _ in range(2)]
        before = daemon.unix.get(f"/experiments/{done[0]}/results")
        if ends == "killed":
            daemon.kill()
        else:
            assert daemon.stop() == 0
        deadline = time.monotonic() + PATIENCE_SECONDS
        while os.statvfs(blocks).f_bavail:  # what was kept for writes under way is free once they are done
            assert time.monotonic() < deadline, os.statvfs(blocks)
            fill(blocks)
            time.sleep(0.1)
        daemon.start()
        assert daemon.unix.get(f"/experiments/{done[0]}/results") == before
        assert daemon.unix.request("DELETE", f"/experiments/{done[1]}").status == 204
    finally:
        daemon.remove()


def test_the_room_of_the_log_is_not_for_runs(disk):
    """What runs store on a full disk would take the room that a deletion needs."""
    daemon = Daemon(f"--state-dir={disk / 'state'}")
    try:
        done = daemon.unix.wait_final(daemon.unix.post(SHORT)["id"])["id"]
        waiting = daemon.unix.post(ENDLESS | {"duration_seconds": 2, "repetitions": 2})["id"]
        daemon.unix.wait_state(waiting, ("running",))
        (disk / "state/ipclab.reserve").unlink()
        fill(disk)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while "No space left on device" not in daemon.log_text():
            assert time.monotonic() < deadline, "nothing is said of the full disk"
            time.sleep(0.1)
        daemon.unix.refused("PUT", "/baselines/full", 507, "insufficient-storage", {"experiment": done})
        assert daemon.unix.request("DELETE", f"/experiments/{done}").status == 204
    finally:
        daemon.remove()


def removed(disk, daemon):
    """Whether what was deleted goes out of the database, which takes many transactions."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with contextlib.closing(sqlite3.connect(f"file:{disk}/state/ipclab.db?mode=ro", uri=True)) as db:
        while db.execute("SELECT count(*) FROM runs").fetchone()[0] > 0:
            assert time.monotonic() < deadline, daemon.log_text()
            fill(disk)
            time.sleep(0.1)
    return "database or disk is full" not in daemon.log_text()


def test_an_extension_that_the_disk_has_no_room_for_can_be_cancelled(disk):
    daemon = Daemon(f"--state-dir={disk / 'state'}")
    try:
        points = 90
        spec = ENDLESS | {"message_size": list(range(1, points + 1))}
        identity = daemon.unix.post(spec)["id"]
        daemon.unix.wait_state(identity, ("running",))
        (disk / "state/ipclab.reserve").unlink(missing_ok=True)
        fill(disk)
        os.truncate(disk / "filler", (disk / "filler").stat().st_size - (9 << 18))  # a little more than must be free
        more = {"repetitions": 150}
        daemon.unix.refused("POST", f"/experiments/{identity}/extend", 507, "insufficient-storage", more)
        assert daemon.unix.get(f"/experiments/{identity}")["progress"]["runs_total"] == points * 151
        fill(disk)
        assert daemon.unix.request("POST", f"/experiments/{identity}/cancel").status == 200
        progress = daemon.unix.wait_final(identity)["progress"]
        assert progress["runs_total"] % points == 0 and points < progress["runs_total"] < points * 151
        # the run under way fails when it has been cancelled too late for its samples
        assert progress["runs_cancelled"] + progress["runs_failed"] == progress["runs_total"]
        assert progress["runs_cancelled"] > points
        fill(disk)
        assert daemon.unix.request("DELETE", f"/experiments/{identity}").status == 204
        assert removed(disk, daemon)
    finally:
        daemon.remove()
