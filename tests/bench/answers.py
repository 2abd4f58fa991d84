#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the answers cost that are drawn from many runs: /results, /findings and /advice of ten thousand.

Prints the first time and the median of those after it, and the daemon's resident memory. Nothing is asserted. Run by
tools/bench. The runs are those of one real run each, with figures that are made, written into the database while the
daemon is idle.
"""

import argparse
import contextlib
import json
import random
import sqlite3
import statistics
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "crash")]
from harness import Daemon  # noqa: E402
from ipclabtest.database import live  # noqa: E402

from daemon import resident_bytes  # noqa: E402

SIZES = [4**n for n in range(3, 10)]
TRANSPORTS = ["pipe", "fifo", "unix-stream", "tcp", "shm-posix", "msgq-posix", "memfd"]


def nanoseconds(point):
    return 500 + 300 * TRANSPORTS.index(point["transport"]) + 0.25 * point["message_size"]


def fill(database, experiment, template, noise):
    """Ends every run of the experiment with the template's result, its figures by the law."""
    result, environment = (json.loads(column) for column in template)
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
                "UPDATE runs SET state = 'done', result = ?, environment = ?, started_at = 1, finished_at = 2"
                " WHERE id = ?",
                (json.dumps(result), json.dumps(environment), run),
            )
        db.execute(
            "UPDATE experiments SET state = 'done', runs_done = runs_total, runs_cancelled = 0, change ="
            " (SELECT value FROM counters WHERE name = 'change') + 1 WHERE id = ?",
            (experiment,),
        )
        db.execute("UPDATE counters SET value = value + 1 WHERE name = 'change'")
    return len(rows)


def milliseconds(daemon, path):
    began = time.monotonic()
    daemon.get(path)
    return 1e3 * (time.monotonic() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=204, help="of 49 points (default: 10 000 runs)")
    parser.add_argument("--times", type=int, default=20, help="that each is asked after the first")
    arguments = parser.parse_args()
    daemon, noise = Daemon(), random.Random(14)
    try:
        daemon.start()
        database = next(Path(daemon.base).rglob("ipclab.db"))
        first = daemon.post({"transport": "pipe", "messages": 100, "warmup_seconds": 0})["id"]
        daemon.wait_final(first, 60)
        with contextlib.closing(sqlite3.connect(database)) as db:
            template = db.execute("SELECT result, environment FROM runs WHERE experiment_id = ?", (first,)).fetchone()
        blocker = daemon.post({"transport": "pipe", "duration_seconds": 600})["id"]
        spec = {"transport": TRANSPORTS, "message_size": SIZES, "repetitions": arguments.repetitions}
        many = daemon.post(spec | {"skip_impossible": True})["id"]
        daemon.request("POST", f"/experiments/{many}/cancel")
        daemon.request("POST", f"/experiments/{blocker}/cancel")
        daemon.wait_final(blocker, 60)
        n = fill(database, many, template, noise)
        print(f"{n} runs; before: {resident_bytes(daemon.process.pid) / 2**20:.1f} MiB resident")
        for path in (
            f"/experiments/{many}/results",
            f"/experiments/{many}/findings",
            "/advice?message_size=4096",
            "/advice?message_size=3000",
        ):
            once = milliseconds(daemon, path)
            again = statistics.median(milliseconds(daemon, path) for _ in range(arguments.times))
            resident = resident_bytes(daemon.process.pid) / 2**20
            print(f"{path:32} first {once:9.1f} ms, then {again:7.1f} ms  ({resident:.1f} MiB resident)")
    finally:
        daemon.terminate()
        daemon.remove()


if __name__ == "__main__":
    main()
