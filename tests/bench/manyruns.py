# SPDX-License-Identifier: MIT
"""An experiment of very many runs in a daemon's store, and what it takes to read it. Used by answers.py and store.py.

The runs are those of one real run, with figures that are made, written into the database while the daemon is idle.
"""

import contextlib
import json
import random
import sqlite3
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "crash")]
from harness import Daemon  # noqa: E402
from ipclabtest.database import live  # noqa: E402

SIZES = [4**n for n in range(3, 10)]
TRANSPORTS = ["pipe", "fifo", "unix-stream", "tcp", "shm-posix", "msgq-posix", "memfd"]


def nanoseconds(point):
    return 500 + 300 * TRANSPORTS.index(point["transport"]) + 0.25 * point["message_size"]


def compact(value):
    """As the daemon writes it."""
    return json.dumps(value, separators=(",", ":"))


def fill(database, experiment, template, noise):
    """Ends every run of the experiment with the template's result, its figures by the law. Returns how many."""
    result, environment, agents, probes = (json.loads(column) for column in template)
    rest = [compact(column) for column in (environment, agents, probes)]
    with live(database) as db:
        rows = db.execute(
            "SELECT runs.id, point FROM runs JOIN points ON points.id = point_id WHERE runs.experiment_id = ?",
            (experiment,),
        ).fetchall()
        for run, text in rows:
            point = json.loads(text)
            time_of = nanoseconds(point) * noise.gauss(1, 0.02)
            result["messages_per_second"] = 1e9 / time_of
            result["throughput_bytes_per_second"] = 1e9 / time_of * point["message_size"]
            db.execute(
                "UPDATE runs SET state = 'done', result = ?, environment = ?, agents = ?, probes = ?, started_at = 1,"
                " finished_at = 2 WHERE id = ?",
                (compact(result), *rest, run),
            )
        db.execute(
            "UPDATE experiments SET state = 'done', runs_done = runs_total, runs_cancelled = 0, change ="
            " (SELECT value FROM counters WHERE name = 'change') + 1 WHERE id = ?",
            (experiment,),
        )
        db.execute("UPDATE counters SET value = value + 1 WHERE name = 'change'")
    return len(rows)


def make_experiment(daemon, repetitions):
    """Starts the daemon and stores an experiment of 49 points. Returns its id, its runs and the database's path."""
    daemon.start()
    database = next(Path(daemon.base).rglob("ipclab.db"))
    first = daemon.post({"transport": "pipe", "messages": 100, "warmup_seconds": 0})["id"]
    daemon.wait_final(first, 60)
    with contextlib.closing(sqlite3.connect(database)) as db:
        columns = "result, environment, agents, probes"
        template = db.execute(f"SELECT {columns} FROM runs WHERE experiment_id = ?", (first,)).fetchone()
    blocker = daemon.post({"transport": "pipe", "duration_seconds": 600})["id"]
    spec = {"transport": TRANSPORTS, "message_size": SIZES, "repetitions": repetitions}
    many = daemon.post(spec | {"skip_impossible": True})["id"]
    for identity in many, blocker:
        daemon.request("POST", f"/experiments/{identity}/cancel")
    daemon.wait_final(blocker, 60)
    return many, fill(database, many, template, random.Random(14)), database


def milliseconds(daemon, path):
    """From the request to the end of its answer, which is not parsed: that is the reader's time."""
    connection = daemon.client().connect()
    with contextlib.closing(connection):
        began = time.monotonic()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        spent = time.monotonic() - began
    assert answer.status == 200, f"GET {path}: {answer.status}"
    return 1e3 * spent


def add_arguments(parser):
    parser.add_argument("--repetitions", type=int, default=204, help="of 49 points (default: 10 000 runs)")
    parser.add_argument("--times", type=int, default=20, help="requests for each after the first")


@contextlib.contextmanager
def removed_daemon():
    """A daemon that is not started yet, and of which nothing is left."""
    daemon = Daemon()
    try:
        yield daemon
    finally:
        daemon.remove()
