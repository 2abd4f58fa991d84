# SPDX-License-Identifier: MIT
"""kill -9 at any moment: nothing acknowledged is lost or done twice, and nothing is left behind.

The moments come from a seed, which is printed and can be given as IPCLAB_SEED.
"""

import contextlib
import gzip
import hashlib
import http.client
import os
import random
import re
import signal
import sqlite3
import threading
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from harness import FINAL, ORPHAN_SECONDS, PATIENCE_SECONDS, frozen, wait_for

KILLS = int(os.environ.get("IPCLAB_KILLS", 50))
KILL_SECONDS = int(os.environ.get("IPCLAB_KILL_SECONDS", 0))  # then no more of them; 0: as long as it takes
RETRY_BLOCKS = 1_000_000
POSTS = max(6, KILLS // 2)  # at least, for the kills to have met something
SHORT = {"transport": "pipe", "message_size": 4096, "duration_seconds": 0.2, "warmup_seconds": 0, "repetitions": 2}
ATTEMPTS_MAX = 3
THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


class Poster(threading.Thread):
    """Posts short experiments as long as it may, each until it is acknowledged, and remembers every answer.

    A post without an answer is posted again with its Idempotency-Key: whether the first one had been committed or
    not, there must be one experiment in the end.
    """

    def __init__(self, daemon, rng):
        super().__init__(daemon=True)
        self.target, self.rng = daemon, rng
        self.posted = []  # (id, name) in the order of their acknowledgement
        self.cancelled, self.deleted = set(), set()
        self.imported = {}  # id -> digest
        self.extended, self.retried = Counter(), Counter()  # id -> how often
        self.stopping = threading.Event()
        self.error = None

    def insist(self, action):
        """Repeats what met a dead daemon; a refusal is an answer, and returned."""
        while True:
            try:
                return action()
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)

    def waiting(self):
        return len(self.insist(lambda: self.target.get("/experiments?state=queued"))["items"])

    def post(self, number):
        name = f"crash {number}"
        spec = SHORT | {"name": name, "transport": self.rng.choice(["pipe", "fifo"])}
        created = self.insist(lambda: self.target.post(spec, key=f"key-{number}"))
        assert created["name"] == name
        self.posted.append((created["id"], name))
        return created["id"]

    def withdraw(self, identity, delete):
        """Cancels, and perhaps deletes; what was acknowledged has to hold."""
        status, body = self.insist(lambda: self.target.request("POST", f"/experiments/{identity}/cancel"))
        assert status < 300 or status == 409, body  # 409: it had ended, or a first try was not answered but done
        if status < 300:
            self.cancelled.add(identity)
        if delete:
            status, body = self.insist(lambda: self.target.request("DELETE", f"/experiments/{identity}"))
            assert status < 300 or status in (404, 409), body
            if status in (200, 202, 204, 404):
                self.deleted.add(identity)

    def again(self, identity, number):
        """One more run of an experiment, or a retry of its failed ones; each with a key, until there is a response."""
        retries = number % 2 == 0
        route, body = ("retry", None) if retries else ("extend", {"blocks": 1})
        target, key = f"/experiments/{identity}/{route}", {"Idempotency-Key": f"again-{number}"}
        status, body = self.insist(lambda: self.target.request("POST", target, body, key))
        assert status in (200, 409), body
        counter = self.retried if retries else self.extended
        counter[identity] += status == 200

    def take_in(self, number):
        """What was measured here, as if another host had: under a name of its own each time."""
        done = [i for i, _ in self.posted if i not in self.cancelled | self.deleted]
        client = self.target.client()
        answer = self.insist(lambda: client.request("GET", f"/experiments/{done[0]}/bundle?host=other-{number}"))
        if answer.status == 409:  # it has not come to its end, or was added to
            return
        assert answer.status == 200, answer
        digest = hashlib.sha256(gzip.decompress(answer.body)).hexdigest()
        target, kind = f"/bundles?sha256={digest}", {"Content-Type": "application/gzip"}
        answer = self.insist(lambda: client.request("POST", target, answer.body, kind))
        assert answer.status in (200, 201), answer
        self.imported[answer.json["id"]] = digest

    def run(self):
        try:
            number = 0
            while not self.stopping.is_set():
                if self.waiting() < 4:
                    number += 1
                    identity = self.post(number)
                    if number % 7 == 0:
                        self.withdraw(identity, delete=number % 14 == 0)
                    whole = [i for i, _ in self.posted if i not in self.cancelled | self.deleted]
                    if number % 3 == 0 and whole:
                        self.again(self.rng.choice(whole), number)
                    if number % 4 == 0 and whole:
                        self.take_in(number)
                time.sleep(self.rng.uniform(0, 0.1))
        except BaseException as error:  # the test's thread raises it
            self.error = error


def shoot(daemon, target):
    """Kills the target -9; a daemon is started again, after everything below it has gone by itself."""
    if target == "daemon":
        daemon.kill()
        wait_for(lambda: not daemon.left_processes(), ORPHAN_SECONDS, f"the end of {daemon.left_processes()}")
        daemon.start()
        return
    agent = wait_for(lambda: daemon.agents().get(target), PATIENCE_SECONDS, f"a {target}")
    with contextlib.suppress(ProcessLookupError):  # it has just finished: the moment was after the end
        os.kill(agent, signal.SIGKILL)


def check_samples(daemon, run):
    """The samples of a done run are those of one attempt: each second once, and their sum is the result."""
    samples = [s for s in daemon.items(f"/runs/{run['id']}/samples") if s["agent"] == "receiver"]
    seconds = [s["second"] for s in samples]
    assert seconds == list(range(len(seconds))), run
    assert sum(s["messages"] for s in samples) == run["result"]["messages"], run
    assert sum(s["bytes"] for s in samples) == run["result"]["bytes"], run


def check_runs(daemon, experiment, extended, retried):
    runs = daemon.runs(experiment["id"])
    progress = experiment["progress"]
    assert len(runs) == progress["runs_total"] == 2 + extended
    blocks = [r["block"] % RETRY_BLOCKS for r in runs]  # a retried run is of another one
    assert blocks == [r["position"] + 1 for r in runs] == list(range(1, 3 + extended))
    assert retried or all(r["block"] < RETRY_BLOCKS for r in runs)
    assert [r["state"] for r in runs].count("done") == progress["runs_done"]
    assert [r["state"] for r in runs].count("failed") == progress["runs_failed"]
    for run in runs:
        assert run["attempt"] <= ATTEMPTS_MAX * (1 + retried)
        if run["state"] == "done":
            check_samples(daemon, run)
        elif run["state"] == "failed":
            assert run["error"], run
            assert run["result"] is None, run
        else:
            assert run["state"] == "cancelled", run


def check_database(daemon):
    database = sqlite3.connect(f"file:{daemon.state / 'ipclab.db'}?mode=ro", uri=True)
    try:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    finally:
        database.close()


def check_next(daemon):
    """Whatever befell the last experiment, the next one is done. Its messages are counted: where the machine is busy, a
    short window may be over without one."""
    experiment = daemon.wait_final(daemon.post({"transport": "pipe", "messages": 500, "warmup_seconds": 0})["id"])
    assert experiment["state"] == "done", (experiment["error"], daemon.log_tail())


def test_kill_at_random_moments(daemon):
    seed = int(os.environ.get("IPCLAB_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"IPCLAB_SEED={seed}")
    rng = random.Random(seed)
    poster = Poster(daemon, random.Random(seed + 1))
    poster.start()
    targets = ["daemon"] * (KILLS * 3 // 5) + ["sender", "receiver"] * max(1, KILLS // 5)
    rng.shuffle(targets)
    began = time.monotonic()
    deadline = began + 2 * PATIENCE_SECONDS + KILLS
    # and on, where they fell faster than a slow machine could post
    shots, over = 0, False
    while not over and (targets or (len(poster.posted) < POSTS and time.monotonic() < deadline)):
        time.sleep(rng.uniform(0, 0.8))
        shoot(daemon, targets.pop() if targets else rng.choice(["daemon", "sender", "receiver"]))
        shots += 1
        assert poster.error is None, poster.error
        over = 0 < KILL_SECONDS < time.monotonic() - began
    poster.stopping.set()
    poster.join(PATIENCE_SECONDS)
    assert not poster.is_alive()
    assert poster.error is None, poster.error

    identities = [identity for identity, _ in poster.posted]
    least = max(6, shots // 4) if over else POSTS
    assert len(identities) >= least, "too few experiments for the kills to have met any"
    assert all(a < b for a, b in pairwise(identities)), "ids are not strictly increasing"
    wait_for(
        lambda: all(e["state"] in FINAL for e in daemon.items("/experiments")),
        2 * PATIENCE_SECONDS + KILLS,
        "the queue to run empty",
    )
    stored = {e["id"]: e for e in daemon.items("/experiments")}
    assert stored.keys() == (set(identities) - poster.deleted) | poster.imported.keys()
    for identity, digest in poster.imported.items():
        assert stored[identity]["imported"]["sha256"] == digest
        assert len(daemon.runs(identity)) == stored[identity]["progress"]["runs_total"]
    for identity, name in poster.posted:
        if identity in poster.deleted:
            continue
        experiment = daemon.experiment(identity)
        assert experiment["name"] == name
        assert experiment["state"] == "cancelled" or identity not in poster.cancelled, experiment
        check_runs(daemon, experiment, poster.extended[identity], poster.retried[identity])

    states = [stored[identity]["state"] for identity in identities if identity in stored]
    print(
        f"counted: {shots} kills; of {len(identities)} experiments acknowledged none lost, none twice:",
        ", ".join(f"{states.count(state)} {state}" for state in FINAL),
        f"and {len(poster.deleted)} deleted; {poster.extended.total()} extended, {poster.retried.total()} retried,"
        f" {len(poster.imported)} bundles taken in",
    )
    assert poster.extended.total() > 0
    assert states.count("done") > 0
    assert states.count("failed") > 0, "no agent was hit"
    check_next(daemon)
    assert daemon.stop() == 0
    check_database(daemon)


def test_three_crashes_in_one_run_are_enough(daemon):
    identity = daemon.post(SHORT | {"duration_seconds": 60, "rate": 10, "repetitions": 1})["id"]
    for attempt in range(1, ATTEMPTS_MAX + 1):
        assert daemon.wait_running(identity)["attempt"] == attempt
        daemon.kill()
        daemon.start()
    experiment = daemon.wait_final(identity)
    (run,) = daemon.runs(identity)
    assert (experiment["state"], run["state"], run["attempt"]) == ("failed", "failed", ATTEMPTS_MAX)
    assert "attempt" in run["error"]
    assert experiment["error"]
    check_next(daemon)


def huge_pages():
    return re.search(r"\[(\w+)\]", THP.read_text())[1]


@pytest.mark.skipif(not os.access(THP, os.W_OK), reason=f"{THP} cannot be written")
def test_a_setting_that_a_killed_daemon_changed_is_restored(daemon):
    """At the next start, even if that daemon may change none any more; the run that needs it then fails."""
    before = huge_pages()
    wanted = "madvise" if before == "never" else "never"
    tuning = "--host-tuning=true"
    assert daemon.stop() == 0
    daemon.command.append(tuning)
    daemon.start()
    try:
        spec = SHORT | {"duration_seconds": 60, "rate": 10, "repetitions": 1, "tune": {"transparent_hugepage": wanted}}
        identity = daemon.post(spec)["id"]
        daemon.wait_running(identity)
        assert huge_pages() == wanted
        daemon.kill()
        assert huge_pages() == wanted
        daemon.command.remove(tuning)
        daemon.start()
        experiment = daemon.wait_final(identity)
        assert experiment["state"] == "failed"
        assert "host_tuning" in experiment["error"]
        assert huge_pages() == before
    finally:
        THP.write_text(before)
    check_next(daemon)


def test_blocks_are_added_whenever_it_is_killed(daemon):
    """What is decided after a look follows from what is stored: the looks are those of a daemon that lived on."""
    rng = random.Random(int(os.environ.get("IPCLAB_SEED", 4711)))
    goal = {"relative_ci": 0.0001, "max_repetitions": 13}  # which no run reaches
    spec = {"transport": "pipe", "messages": 1000, "warmup_seconds": 0, "until": goal}
    identity = daemon.post(spec)["id"]
    done = kills = 0

    def moved():
        experiment = daemon.experiment(identity)
        return (experiment["progress"]["runs_done"] > done or experiment["state"] in FINAL) and experiment

    while (experiment := wait_for(moved, PATIENCE_SECONDS, "a further run"))["state"] not in FINAL:
        done = experiment["progress"]["runs_done"]
        time.sleep(rng.uniform(0, 0.2))
        shoot(daemon, "daemon")  # a run is hit once at most
        kills += 1
    print(f"{kills} kills")
    assert experiment["state"] == "done" and kills > 2, experiment
    assert experiment["until"]["state"] == "max_repetitions"
    assert [look["repetitions"] for look in experiment["until"]["looks"]] == [6, 9, 13]
    runs = daemon.runs(identity)
    assert [run["block"] for run in runs] == list(range(1, 14))
    assert {run["state"] for run in runs} == {"done"}


@pytest.mark.parametrize("role", ["sender", "receiver"])
@pytest.mark.parametrize("transport", ["pipe", "fifo"])
def test_a_killed_agent_fails_its_run_at_once(daemon, role, transport):
    """By its death, and not because nothing moves any more."""
    identity = daemon.post(SHORT | {"transport": transport, "duration_seconds": 600, "repetitions": 1})["id"]
    daemon.wait_running(identity)
    os.kill(daemon.agents()[role], signal.SIGKILL)
    experiment = daemon.wait_final(identity)
    assert experiment["state"] == "failed"
    assert re.search(f"{role} .*(SIGKILL|is gone)", experiment["error"]), experiment["error"]
    assert daemon.agents() == {}
    check_next(daemon)


@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_a_stopped_agent_does_not_cost_the_whole_window(daemon, role):
    identity = daemon.post(SHORT | {"duration_seconds": 600, "repetitions": 1})["id"]
    wait_for(lambda: daemon.items(f"/experiments/{identity}/samples"), PATIENCE_SECONDS, "a first sample")
    os.kill(daemon.agents()[role], signal.SIGSTOP)
    experiment = daemon.wait_final(identity)
    assert experiment["state"] == "failed"
    assert re.search(rf"{role} .*stopped", experiment["error"]), experiment["error"]
    wait_for(lambda: not daemon.agents(), PATIENCE_SECONDS, "the stopped agent to be gone")
    check_next(daemon)


def frozen_run(daemon, spec, role):
    """The experiment in which the main thread of one agent stood still, after its first sample."""
    identity = daemon.post(SHORT | {"repetitions": 1} | spec)["id"]
    wait_for(lambda: daemon.items(f"/experiments/{identity}/samples"), PATIENCE_SECONDS, "a first sample")
    with frozen(daemon.agents()[role]) as reap:

        def ended():
            reap()
            experiment = daemon.experiment(identity)
            return experiment["state"] in FINAL and experiment

        return wait_for(ended, PATIENCE_SECONDS, f"experiment {identity} to end")


@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_a_frozen_worker_does_not_cost_the_whole_window(daemon, role):
    experiment = frozen_run(daemon, {"duration_seconds": 600}, role)
    assert experiment["state"] == "failed"
    assert re.search(r"stalled: thread 0 has moved no message for [56]\d{3} ms", experiment["error"])
    assert daemon.agents() == {}
    check_next(daemon)


@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_a_frozen_worker_is_missed_at_the_windows_end(daemon, role):
    experiment = frozen_run(daemon, {"duration_seconds": 5}, role)  # shorter than it may move nothing
    assert experiment["state"] == "failed"
    assert "sender" in experiment["error"]
    assert "thread 0 did not finish its message within" in experiment["error"]


def test_a_slow_open_loop_is_no_standstill(daemon):
    spec = SHORT | {"rate": 0.15, "duration_seconds": 14, "repetitions": 1}
    assert daemon.wait_final(daemon.post(spec)["id"])["state"] == "done"


def test_sigterm_queues_the_run_again_and_counts_no_attempt(daemon):
    identity = daemon.post(SHORT | {"duration_seconds": 8, "rate": 100, "repetitions": 1})["id"]
    for _ in range(ATTEMPTS_MAX + 1):  # more often than a crash would be forgiven
        daemon.wait_running(identity)
        assert daemon.stop() == 0
        assert daemon.left_processes() == {}
        assert daemon.left_in_runtime() == []
        daemon.start()
    assert daemon.wait_final(identity)["state"] == "done"
    (run,) = daemon.runs(identity)
    assert run["attempt"] == 1
    check_samples(daemon, run)


def test_a_stop_that_does_not_wait_for_the_run_counts_no_attempt(daemon):
    """Nor one that cannot wait, as for the removal of very many files: both leave the run as it is."""
    identity = daemon.post(SHORT | {"duration_seconds": 60, "rate": 10, "repetitions": 1})["id"]
    run = daemon.wait_running(identity)
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):  # two signals to stop, at once
        daemon.process.send_signal(number)
    assert daemon.process.wait(PATIENCE_SECONDS) == 0
    with contextlib.closing(sqlite3.connect(f"file:{daemon.state / 'ipclab.db'}?mode=ro", uri=True)) as database:
        stored = database.execute("SELECT state, attempt FROM runs WHERE id = ?", (run["id"],)).fetchone()
    daemon.start()
    assert stored == ("interrupted", 0)
    assert daemon.wait_running(identity)["attempt"] == 1


def counts(daemon, identity):
    """(runs that the experiment is to have, runs that it has, whether some are still to be inserted), on the disk."""
    with contextlib.closing(sqlite3.connect(f"file:{daemon.state / 'ipclab.db'}?mode=ro", uri=True)) as database:
        return database.execute(
            "SELECT runs_total, (SELECT count(*) FROM runs WHERE experiment_id = e.id),"
            " EXISTS (SELECT 1 FROM extensions) FROM experiments e WHERE id = ?",
            (identity,),
        ).fetchone()


def test_an_extension_is_whole_or_was_none(daemon):
    """The daemon is killed while it adds the runs of a great extension, of which a part is on the disk."""
    points = 512
    spec = SHORT | {"message_size": list(range(1, points + 1)), "repetitions": 1}
    daemon.post(SHORT | {"duration_seconds": 600, "rate": 10, "repetitions": 1})  # ahead of it
    identity, expected = daemon.post(spec)["id"], points
    for number in range(3):
        target, key = f"/experiments/{identity}/extend", {"Idempotency-Key": f"great-{number}"}

        def extend(target=target, key=key):
            with contextlib.suppress(OSError):  # killed before it could answer
                daemon.request("POST", target, {"blocks": 8}, key)

        def has_begun(before=expected):
            return counts(daemon, identity)[0] > before

        request = threading.Thread(target=extend)
        request.start()
        wait_for(has_begun, PATIENCE_SECONDS, "the extension to begin")
        daemon.kill()
        request.join()
        expected += 8 * points
        daemon.start()
        assert counts(daemon, identity) == (expected, expected, 0)
        status, body = daemon.request("POST", target, {"blocks": 8}, key)
        assert (status, body["progress"]["runs_total"]) == (200, expected), "its key is known"
    check_database(daemon)
