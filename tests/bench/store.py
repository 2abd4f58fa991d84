#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a store of ten million samples costs: the start, pages of its lists, /health and /metrics, the answers that are
drawn from many runs, all samples in one stream, the daemon's memory, and the database's size before and after a
deletion.

Prints the first time and the median of those after it. The limits are those of answers.py. Run by tools/bench. The runs
are those of manyruns.py, with a thousand samples each, which are written into the database while the daemon is idle.
"""

import argparse
import contextlib
import json
import sys
import time

import manyruns
from answers import add_arguments, judge, show, show_highest
from ipclabtest.database import live

from daemon import resident_bytes

PORTION = 250  # runs in a transaction
TIDY_SECONDS = 3600  # against hanging
REST_SECONDS = 30
MIB = 1 << 20


def add_samples(database, experiment, each):
    """Gives every run of the experiment `each` samples, one run after the other, and returns how many there are."""
    with live(database) as db:
        runs = [row[0] for row in db.execute("SELECT id FROM runs WHERE experiment_id = ? ORDER BY id", (experiment,))]
    for begin in range(0, len(runs), PORTION):
        with live(database) as db:
            some = runs[begin : begin + PORTION]
            (change,) = db.execute("SELECT value FROM counters WHERE name = 'change'").fetchone()
            db.execute(
                "WITH RECURSIVE seconds (second) AS"
                " (SELECT 0 UNION ALL SELECT second + 1 FROM seconds WHERE second < ?)"
                " INSERT INTO samples (change, experiment_id, run_id, thread, second, begin_ns, interval_ns, messages,"
                " bytes, agent) SELECT ? + row_number() OVER (ORDER BY runs.key, second), ?, runs.value, 0, second,"
                " second * 1000000000, 1000000000, 1000 + second, 4096000, 'sender'"
                " FROM json_each(?) AS runs, seconds",
                (each - 1, change, experiment, json.dumps(some)),
            )
            db.execute("UPDATE counters SET value = value + ? WHERE name IN ('change', 'samples')", (each * len(some),))
    return each * len(runs)


def stream_samples(daemon, experiment, samples):
    """Reads all of them as they come, and discards them."""
    began, length, lines = time.monotonic(), 0, 0
    with contextlib.closing(daemon.client().connect(TIDY_SECONDS)) as connection:
        connection.request("GET", f"/experiments/{experiment}/samples", headers={"Accept": "application/x-ndjson"})
        answer = connection.getresponse()
        while some := answer.read(MIB):
            length, lines = length + len(some), lines + some.count(b"\n")
    assert (answer.status, lines) == (200, samples), f"{answer.status}: {lines} samples"
    print(f"all samples in one stream: {length / MIB:.0f} MiB in {time.monotonic() - began:.0f} s", flush=True)


def megabytes(database):
    return sum(path.stat().st_size for path in database.parent.glob("ipclab.db*")) / MIB


def wait_for_space(daemon, database):
    """Until the store has come to rest, with no rows left to remove: seconds, and megabytes. The file stays as large
    while rows are removed, and shrinks after that."""
    began, before, at_rest = time.monotonic(), megabytes(database), 0
    while time.monotonic() - began < TIDY_SECONDS and at_rest < REST_SECONDS:
        time.sleep(5)
        now = megabytes(database)
        at_rest = at_rest + 5 if now == before and daemon.get("/health")["samples"] < 1000 else 0
        before = now
    return time.monotonic() - began - at_rest, before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--samples", type=int, default=1000, help="of each run (default: ten million)")
    arguments = parser.parse_args()
    with manyruns.removed_daemon() as daemon:
        many, runs, database = manyruns.make_experiment(daemon, arguments.repetitions)
        samples = add_samples(database, many, arguments.samples)
        print(f"{runs} runs, {samples} samples", flush=True)
        daemon.stop()
        began = time.monotonic()
        daemon.start()
        print(f"{'start':65} {1e3 * (time.monotonic() - began):15.1f} ms  ({megabytes(database):.0f} MiB stored)")
        paths = (
            "/health",
            "/metrics",
            "/experiments",
            f"/experiments/{many}",
            f"/experiments/{many}/runs?limit=50",
            f"/experiments/{many}/runs?limit=50&cursor=r-{runs - 100}",
            f"/experiments/{many}/samples?limit=50",
            f"/experiments/{many}/results",
            f"/experiments/{many}/findings",
            f"/compare?experiment={many}&axis=transport&baseline=pipe&candidate=fifo",
            "/advice?message_size=4096",
        )
        missed = show(daemon, paths, arguments.times)
        stream_samples(daemon, many, samples)
        missed += show_highest(daemon, "after all answers")
        before = megabytes(database)
        daemon.request("DELETE", f"/experiments/{many}")
        spent, after = wait_for_space(daemon, database)
        resident = resident_bytes(daemon.process.pid) / MIB
        print(
            f"deletion: {before:.0f} MiB before, {after:.0f} MiB {spent:.0f} s after it  ({resident:.1f} MiB resident)"
        )
        missed += show_highest(daemon, "after the deletion")
    return judge(missed, arguments.check)


if __name__ == "__main__":
    sys.exit(main())
