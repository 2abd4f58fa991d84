# SPDX-License-Identifier: MIT
"""What ipclabd does when its database is damaged, removed or exchanged: no wrong figure, a name, a way out."""

import contextlib
import fcntl
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess

import pytest
from client import PATIENCE_SECONDS
from conftest import BUILD, ENDLESS, SHORT, SOURCE, Daemon
from ipclabtest.database import seal

PAGE = 4096


def database(daemon):
    return daemon.base / "state/ipclab.db"


def flip(path, byte, bit=2):
    with path.open("r+b") as file:
        file.seek(byte)
        old = file.read(1)[0]
        file.seek(byte)
        file.write(bytes([old ^ (1 << bit)]))


class Again(Daemon):
    """Another start over the directories of a daemon that has ended."""

    def __init__(self, before, *options):
        self.before = before
        super().__init__(f"--state-dir={before.base / 'state'}", *options)


def refused_start(daemon):
    """The log of a start that must fail."""
    process = subprocess.run(
        [
            BUILD / "daemon/ipclabd",
            f"--state-dir={daemon.base / 'state'}",
            f"--runtime-dir={daemon.base / 'run'}",
            "--listen=none",
            f"--agent={BUILD / 'agent/ipclab-agent'}",
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert process.returncode == 1
    return process.stderr


def ipclabd(daemon, *options, **kwargs):
    return subprocess.run(
        [BUILD / "daemon/ipclabd", f"--state-dir={daemon.base / 'state'}", *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        **kwargs,
    )


def measured(daemon, n=3):
    """Experiments that are done: their answers, by address."""
    ids = [daemon.unix.post(SHORT | {"name": f"experiment {i}"})["id"] for i in range(n)]
    for identity in ids:
        daemon.unix.wait_final(identity)
    return {target: daemon.unix.get(target) for target in addresses(ids)}


def addresses(ids):
    for i in ids:
        yield from (f"/experiments/{i}", f"/experiments/{i}/runs", f"/experiments/{i}/results")
        yield from (f"/experiments/{i}/samples", f"/runs/{i}")


def end(daemon):
    assert daemon.stop() == 0


def kill(daemon):
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait(PATIENCE_SECONDS)
    with (daemon.base / "state/ipclab.lock").open() as lock:  # a child that is not an agent yet has it, too
        fcntl.flock(lock, fcntl.LOCK_EX)


def test_no_damaged_figure_is_served(own_daemon):
    answers = measured(own_daemon)
    end(own_daemon)
    path = database(own_daemon)
    # the page that has the results of runs
    content = path.read_bytes()
    pages = {m.start() // PAGE for m in re.finditer(rb"throughput_bytes_per_second", content)}
    assert pages
    for page in pages:
        flip(path, page * PAGE + content[page * PAGE : (page + 1) * PAGE].index(b"_per_second") + 14)
    daemon = Again(own_daemon)
    try:
        refused = 0
        for target, before in answers.items():
            answer = daemon.unix.request("GET", target)
            if answer.status == 200:
                assert answer.json == before, target
                continue
            refused += 1
            assert answer.status == 500 and answer.json["type"].endswith("damaged"), answer
            number = target.split("/")[2]
            assert re.search(rf"\b{number}\b", answer.json["detail"]) and "page" in answer.json["detail"]
        assert refused > 0
        for target in [*answers] * 3:
            daemon.stranger.request("GET", target)
        failures = re.findall(r"database: .* \(SQLite .*", daemon.log_text())
        assert failures and len(failures) == len(set(failures)), "any reader could fill the log"
        assert daemon.unix.get("/presets")["items"]
        health = daemon.unix.request("GET", "/health")
        assert health.status == 503
        assert health.json["damaged_pages"] > 0 and "does not match its checksum" in health.json["problem"]
        metrics = daemon.unix.request("GET", "/metrics").body.decode()
        assert int(re.search(r"^ipclab_database_damaged_pages (\d+)$", metrics, re.MULTILINE)[1]) > 0
    finally:
        daemon.remove()
    check = ipclabd(own_daemon, "--check")
    assert check.returncode == 1
    assert ipclabd(own_daemon, "--backup", own_daemon.base / "copy.db").returncode == 1


@pytest.mark.parametrize("n", [1, 2])
def test_an_experiment_that_can_neither_run_nor_be_failed_is_named(own_daemon, n):
    """The others run, and new ones are taken in."""
    running = own_daemon.unix.post(ENDLESS)["id"]
    own_daemon.unix.wait_state(running, ("running",))
    ids = [own_daemon.unix.post(SHORT)["id"] for _ in range(n + 1)]
    kill(own_daemon)
    path = database(own_daemon)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE experiments SET name = hex(zeroblob(1500))")  # a page each
        db.execute(f"UPDATE experiments SET name = 'a mark' || name WHERE id IN ({', '.join(map(str, ids[:n]))})")
    seal(path)
    marks = [m.start() for m in re.finditer(rb"a mark0", path.read_bytes())]
    assert len(marks) == n
    for mark in marks:
        flip(path, mark)
    daemon = Again(own_daemon)
    try:
        daemon.unix.request("POST", f"/experiments/{running}/cancel")
        assert daemon.unix.wait_final(ids[-1])["state"] == "done"
        assert daemon.unix.wait_final(daemon.unix.post(SHORT)["id"])["state"] == "done"
        health = daemon.unix.request("GET", "/health")
        words = f"experiment {ids[0]}{' and 1 more' if n > 1 else ''} can neither run nor be failed"
        assert health.status == 503 and f"; {words}" in health.json["problem"]
        assert "does not match its checksum" in health.json["problem"]
        listed = daemon.unix.get("/experiments")  # down to what is damaged
        assert [e["id"] for e in listed["items"]] == [ids[-1] + 1, ids[-1]]
        problem = daemon.unix.refused("GET", f"/experiments?cursor={listed['next']}", 500, "damaged")
        assert problem["detail"].startswith(f"experiments below {ids[-1]}:")
    finally:
        daemon.remove()


def test_a_run_that_fails_for_a_damaged_page_has_the_reason(own_daemon):
    measured(own_daemon)
    end(own_daemon)
    path = database(own_daemon)
    with contextlib.closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'samples'").fetchone()
    flip(path, page * PAGE - 2000)
    daemon = Again(own_daemon)
    try:
        experiment = daemon.unix.wait_final(daemon.unix.post(SHORT)["id"])
        assert experiment["state"] == "failed"
        words = "the run's samples cannot be stored: a page of the database is damaged (GET /health names it)"
        assert words in experiment["error"]
        assert f"page {page} does not match" in daemon.unix.request("GET", "/health").json["problem"]
    finally:
        daemon.remove()


@pytest.mark.parametrize("gone", ["ipclab.db*", "ipclab.db", "ipclab.db-wal", "ipclab.db-shm"])
def test_files_that_are_gone_take_nothing_in(own_daemon, gone):
    own_daemon.unix.post(SHORT)
    own_daemon.unix.wait_final(1)
    files = [*(own_daemon.base / "state").glob(gone)]
    for file in files:
        file.unlink()
    answer = own_daemon.unix.request("POST", "/experiments", body=SHORT)
    assert answer.status == 503 and "removed or replaced" in answer.json["detail"]
    for target in addresses([1]):
        answer = own_daemon.unix.request("GET", target)
        assert answer.status == 503 and any(f"{file} was removed" in answer.json["detail"] for file in files), target
    health = own_daemon.unix.request("GET", "/health")
    assert health.status == 503 and any(f"{file} was removed" in health.json["problem"] for file in files)
    assert not any(file.exists() for file in files)


def test_an_index_that_is_cut_off_ends_no_daemon(own_daemon):
    """SQLite has mapped it, and an access behind its file's end is SIGBUS."""
    own_daemon.unix.post(SHORT)
    own_daemon.unix.wait_final(1)
    index = own_daemon.base / "state/ipclab.db-shm"
    os.truncate(index, 0)
    for method, target, body in [("POST", "/experiments", SHORT), ("GET", "/experiments/1", None)]:
        answer = own_daemon.unix.request(method, target, body=body)
        assert answer.status == 503 and f"{index} was removed or replaced" in answer.json["detail"]
    health = own_daemon.unix.request("GET", "/health")
    assert health.status == 503 and str(index) in health.json["problem"] and health.json["damaged_pages"] == 0
    kill(own_daemon)
    daemon = Again(own_daemon)
    try:
        assert daemon.unix.get("/experiments/1")["state"] == "done"
        assert daemon.unix.post(SHORT)["id"] == 2
    finally:
        daemon.remove()


@pytest.mark.parametrize("loss", ["database", "empty", "log"])
def test_a_lost_database_is_no_new_one(own_daemon, loss):
    own_daemon.unix.post(SHORT)
    kill(own_daemon)
    path = database(own_daemon)
    if loss == "log":
        path.with_name("ipclab.db-wal").unlink()
    else:
        for file in path.parent.glob("ipclab.db*"):
            file.unlink()
        if loss == "empty":
            path.touch()
    log = refused_start(own_daemon)
    assert str(path) in log and "--adopt" in log
    assert ipclabd(own_daemon, "--adopt").returncode == 0
    daemon = Again(own_daemon)
    try:
        assert daemon.unix.post(SHORT)["id"] == 2
    finally:
        daemon.remove()


@pytest.mark.parametrize("name", ["ipclab.db", "ipclab.db-wal", "ipclab.identity", "ipclab.reserve"])
def test_a_fifo_in_the_place_of_a_file_holds_up_no_start(own_daemon, name):
    """Nobody has its other end open. It starts or refuses to, and waits for nobody."""
    assert own_daemon.stop() == 0
    file = own_daemon.base / "state" / name
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    try:
        own_daemon.start()
    except AssertionError as error:
        assert "ipclabd ended with 1" in str(error), error


def test_backup_of_a_daemon_at_work_and_back(own_daemon):
    answers = measured(own_daemon, 1)
    copy = own_daemon.base / "copy.db"
    assert ipclabd(own_daemon, "--backup", copy).returncode == 0
    again = ipclabd(own_daemon, "--backup", copy)
    assert again.returncode == 1 and "File exists" in again.stderr
    assert ipclabd(own_daemon, "--check").stdout.endswith("the database is whole\n")
    assert ipclabd(own_daemon, "--adopt").returncode == 1  # in use
    own_daemon.unix.post(SHORT)
    end(own_daemon)
    os.replace(copy, database(own_daemon))
    assert "--adopt" in refused_start(own_daemon)  # it is older
    assert ipclabd(own_daemon, "--adopt").returncode == 0
    daemon = Again(own_daemon)
    try:
        for target, before in answers.items():
            assert daemon.unix.get(target) == before
        assert daemon.unix.post(SHORT)["id"] == 3
    finally:
        daemon.remove()


def test_a_copy_larger_than_a_file_may_be_ends_with_a_reason(own_daemon):
    """RLIMIT_FSIZE comes with a signal, which would leave a part of the copy."""
    measured(own_daemon, 1)
    copy, most = own_daemon.base / "copy.db", 64 << 10
    end(own_daemon)
    assert database(own_daemon).stat().st_size > most
    backup = ipclabd(
        own_daemon, "--backup", copy, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    )
    assert backup.returncode == 1 and f"RLIMIT_FSIZE is {most} bytes" in backup.stderr, backup
    assert f"{copy}: " in backup.stderr and not [*own_daemon.base.glob("copy.db*")]


@pytest.mark.parametrize("state", ["missing", "empty", "older", "another", "without its log"])
def test_a_wrong_database_is_neither_whole_nor_copied(own_daemon, tmp_path, state):
    """--check and --backup compare it with the identity beside it, as a start does."""
    path, copy = database(own_daemon), own_daemon.base / "copy.db"
    own_daemon.unix.post(SHORT)
    own_daemon.unix.wait_final(1)
    assert ipclabd(own_daemon, "--backup", tmp_path / "older.db").returncode == 0
    own_daemon.unix.post(SHORT)
    kill(own_daemon)
    identity = path.with_name("ipclab.identity")
    noted = identity.read_text()
    path.with_name("ipclab.db-wal").unlink()
    if state != "without its log":
        path.unlink()
    if state == "empty":
        path.touch()
    elif state == "older":
        shutil.copy(tmp_path / "older.db", path)
    elif state == "another":
        identity.unlink()
        assert ipclabd(own_daemon, "--adopt").returncode == 0
        identity.write_text(noted)
    words = {
        "missing": "missing or empty",
        "empty": "missing or empty",
        "older": "older copy",
        "another": "is the store",
    }
    check, backup = ipclabd(own_daemon, "--check"), ipclabd(own_daemon, "--backup", copy)
    assert check.returncode == 1 and "whole" not in check.stdout
    assert backup.returncode == 1 and not [*own_daemon.base.glob("copy.db*")]
    for text in (check.stdout, backup.stderr):
        assert str(path) in text and words.get(state, "its log") in text and "--adopt" in text, text
    assert "--adopt" in refused_start(own_daemon)


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="there is no sqlite3 on this host")
def test_what_can_be_read_is_taken_over(own_daemon):
    """The documented way back without a backup."""
    answers = measured(own_daemon, 1)
    end(own_daemon)
    path = database(own_daemon)
    guide = (SOURCE / "docs/troubleshooting.md").read_text()
    script = re.search(r"```\n( *\{ sqlite3 .*?)```", guide, re.DOTALL)[1]
    subprocess.run(["sh", "-ec", script], cwd=path.parent, check=True, timeout=PATIENCE_SECONDS)
    for file in path.parent.glob("ipclab.db*"):
        file.unlink()
    path.with_name("new.db").rename(path)
    assert "written by another program" in refused_start(own_daemon)
    adopted = ipclabd(own_daemon, "--adopt")
    assert adopted.returncode == 0, adopted.stderr
    daemon = Again(own_daemon)
    try:
        for target, before in answers.items():
            assert daemon.unix.get(target) == before
        assert daemon.unix.post(SHORT)["id"] == 2
    finally:
        daemon.remove()


def test_an_unclean_end_is_checked_in_the_background(own_daemon):
    measured(own_daemon, 1)
    store = own_daemon.unix.get("/health")["store"]
    kill(own_daemon)
    daemon = Again(own_daemon)
    try:
        health = daemon.unix.get("/health")
        assert health["store"] == store and health["status"] == "ok"
        assert health["checking"] is None or health["checking"]["pages_checked"] < health["checking"]["pages_total"]
        assert "every page" in daemon.log.read_text()
    finally:
        daemon.remove()


def test_ten_flipped_bits_anywhere(own_daemon):
    """Wherever it is: what is answered with 200 is what was measured."""
    answers = measured(own_daemon, 2)
    end(own_daemon)
    path = database(own_daemon)
    whole = path.read_bytes()
    chance = random.Random(16)
    for _ in range(10):
        byte = chance.randrange(len(whole))
        path.write_bytes(whole)
        flip(path, byte, chance.randrange(8))
        try:
            daemon = Again(own_daemon)
        except AssertionError as error:
            assert "damaged" in str(error) or "checksum" in str(error) or "database" in str(error)
            continue
        try:
            for target, before in answers.items():
                answer = daemon.unix.request("GET", target)
                assert answer.status == 500 or answer.json == before, (byte, target)
        finally:
            daemon.remove()
