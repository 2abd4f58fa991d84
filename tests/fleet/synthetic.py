# SPDX-License-Identifier: MIT
"""Stores as ipclabd leaves them, without an ipclabd: from the empty database of one, filled by the rules of its
changes. Their pages have room for the daemon's checksums, but only the daemon, and ipclabtest.database.seal(), fill it
in."""

import contextlib
import functools
import json
import random
import sqlite3
import uuid
from pathlib import Path

from ipclabtest.daemon import Daemon


@functools.cache
def empty_database():
    daemon = Daemon(listen="none")
    try:
        daemon.start()
        assert daemon.stop() == 0, daemon.log_tail()
        return (daemon.state / "ipclab.db").read_bytes()
    finally:
        daemon.remove()


def facts(host, **other):
    return {
        **{"hostname": host, "kernel_release": "6.1.0-30-amd64", "cpu_model": "Example 9000", "numa_balancing": 0},
        **{"boot_id": str(uuid.uuid4()), "machine": uuid.uuid4().hex, "memory_total_bytes": 64 * 2**30},
        **{"cpus": [{"id": 0, "user_ms": random.randrange(10**9)}, {"id": 1}], "load": [0.1, 0.2, 0.3]},
        **other,
    }


class SyntheticStore:
    def __init__(self, directory, seed=1, host="host"):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.random, self.host, self.facts = random.Random(seed), host, facts(host)
        path = self.directory / "ipclab.db"
        fresh = not path.exists()
        if fresh:
            path.write_bytes(empty_database())
        self.open()
        if fresh:
            name = uuid.UUID(int=self.random.getrandbits(128), version=4)
            self.db.execute("UPDATE identity SET store = ?", (str(name),))
        self.now = 1_700_000_000_000

    @property
    def uuid(self):
        return uuid.UUID(self.db.execute("SELECT store FROM identity").fetchone()[0])

    def open(self):
        self.db = sqlite3.connect(self.directory / "ipclab.db", isolation_level=None)
        assert self.db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        self.db.execute("PRAGMA synchronous = OFF")  # the tests kill exporters, not the power
        self.db.execute("PRAGMA foreign_keys = ON")

    def close(self):
        self.db.close()

    @contextlib.contextmanager
    def opened(self):
        self.open()
        try:
            yield
        finally:
            self.close()

    def change(self, n=1):
        sql = "UPDATE counters SET value = value + ? WHERE name = 'change' RETURNING value"
        return self.db.execute(sql, (n,)).fetchone()[0]

    def tick(self):
        self.now += self.random.randrange(1, 5000)
        return self.now

    def add(self, points, repetitions=1, key=None):
        """points: a list of objects. Returns the experiment's id."""
        self.db.execute("BEGIN IMMEDIATE")
        *_, experiment = self.steps_of_adding(points, repetitions, key)
        self.db.execute("COMMIT")
        return experiment

    def add_in_portions(self, points, repetitions=1, key=None):
        """Yields after each transaction, as a large experiment is stored; the last time its id."""
        steps = self.steps_of_adding(points, repetitions, key)
        for _ in range(len(points) * repetitions // 2):
            self.db.execute("BEGIN IMMEDIATE")
            experiment = next(steps)
            self.db.execute("INSERT INTO forgotten (experiment_id) VALUES (?) ON CONFLICT DO NOTHING", (experiment,))
            self.db.execute("COMMIT")
            yield None
        self.db.execute("BEGIN IMMEDIATE")
        for _ in steps:
            pass
        self.db.execute("DELETE FROM forgotten WHERE experiment_id = ?", (experiment,))
        self.db.execute("UPDATE experiments SET change = ? WHERE id = ?", (self.change(), experiment))
        self.db.execute("COMMIT")
        yield experiment

    def steps_of_adding(self, points, repetitions, key):
        """Yields the experiment's id after each run. The changes are reserved at once, before the first."""
        spec, total = json.dumps({"transport": "pipe", "é": 1}), len(points) * repetitions
        change = self.change(total + 1) - total
        experiment = self.db.execute(
            "INSERT INTO experiments (change, turn, state, seed, estimate_ns, created_at, runs_total, idempotency_key, "
            "version, name, until) "
            "VALUES (?1, ?1, 'queued', ?2, 1000, ?3, ?4, ?5, '0.1.0', 'synthétique', ?6)",
            (
                *(change, self.random.getrandbits(62), self.tick(), total, key),
                self.random.choice([None, '{"state":"running","looks":[1, 2]}']),
            ),
        ).lastrowid
        self.db.execute("INSERT INTO specs VALUES (?1, '[]', ?2, ?2, NULL)", (experiment, spec))
        in_blocks, position = self.random.random() < 0.5, 0
        for ordinal, point in enumerate(points):
            row = self.db.execute(
                "INSERT INTO points (experiment_id, ordinal, point) VALUES (?, ?, ?)",
                (experiment, ordinal, json.dumps(point)),
            ).lastrowid
            for repetition in range(1, repetitions + 1):
                position += 1
                self.db.execute(
                    "INSERT INTO runs (change, experiment_id, point_id, repetition, block, position, state) "
                    "VALUES (?, ?, ?, ?, ?, ?, 'queued')",
                    (change + position, experiment, row, repetition, repetition if in_blocks else None, position - 1),
                )
                yield experiment

    def queued(self, experiment=None):
        sql = (
            "SELECT id, experiment_id FROM runs WHERE state = 'queued' AND ? IN (0, experiment_id) AND "
            "experiment_id NOT IN (SELECT experiment_id FROM forgotten) ORDER BY experiment_id, position"
        )
        return self.db.execute(sql, (experiment or 0,)).fetchall()

    def start(self, run, experiment):
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute(
            "UPDATE runs SET state = 'running', attempt = attempt + 1, begun = 1, change = ?, "
            "started_at = ? WHERE id = ?",
            (self.change(), self.tick(), run),
        )
        self.db.execute(
            "UPDATE experiments SET state = 'running', started_at = ?, change = ? WHERE id = ? AND state = 'queued'",
            (self.now, self.change(), experiment),
        )
        self.db.execute("COMMIT")

    def finish(self, run, experiment, throughput=None, state="done", result=None, latency=None):
        self.db.execute("BEGIN IMMEDIATE")
        self.change(4)  # of samples
        if result is None and state == "done":
            throughput = throughput or self.random.lognormvariate(20, 0.02)
            p50 = latency or self.random.lognormvariate(8, 0.02)
            result = json.dumps(
                {"throughput_bytes_per_second": throughput, "latency_ns": {"p50": p50, "p99": 3 * p50}, "cost_ns": None}
            )
        before = self.facts if state == "done" else None
        environment = json.dumps({"before": before, "after": self.facts, "daemon": {}}, separators=(",", ":"))
        self.db.execute(
            "UPDATE runs SET state = ?, change = ?, finished_at = ?, result = ?, environment = ?, "
            "error = ? WHERE id = ?",
            (state, self.change(), self.tick(), result, environment, None if state == "done" else "it broke", run),
        )
        self.db.execute(
            "UPDATE experiments SET runs_done = runs_done + ?, runs_failed = runs_failed + ?, change = ? WHERE id = ?",
            (state == "done", state == "failed", self.change(), experiment),
        )
        self.settle(experiment)
        self.db.execute("COMMIT")

    def settle(self, experiment):
        sql = "SELECT count(*) FROM runs WHERE experiment_id = ? AND state IN ('queued', 'running')"
        if self.db.execute(sql, (experiment,)).fetchone()[0] == 0:
            self.db.execute(
                "UPDATE experiments SET state = 'done', finished_at = ?, change = ? WHERE id = ?",
                (self.tick(), self.change(), experiment),
            )

    def measure(self, points, repetitions=1, key=None, throughput=None, latency=None):
        """A whole experiment. throughput, latency: functions of the point."""
        experiment = self.add(points, repetitions, key)
        specs = dict(
            self.db.execute(
                "SELECT runs.id, point FROM runs JOIN points ON points.id = point_id WHERE runs.experiment_id = ?",
                (experiment,),
            )
        )
        for run, _ in self.queued(experiment):
            point = json.loads(specs[run])
            self.start(run, experiment)
            self.finish(run, experiment, throughput and throughput(point), latency=latency and latency(point))
        return experiment

    def delete(self, experiment):
        """Its rows stay until tidy()."""
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute("INSERT INTO forgotten (experiment_id) VALUES (?)", (experiment,))
        self.db.execute("INSERT INTO deletions (change, experiment_id) VALUES (?, ?)", (self.change(), experiment))
        self.db.execute("UPDATE experiments SET idempotency_key = NULL WHERE id = ?", (experiment,))
        self.db.execute("COMMIT")

    def tidy(self, runs):
        """Some runs of a deleted experiment, and the rest when none is left."""
        found = self.db.execute("SELECT experiment_id FROM forgotten").fetchone()
        if not found:
            return
        self.db.execute("BEGIN IMMEDIATE")
        where = "FROM runs WHERE experiment_id = ?"
        self.db.execute(f"DELETE FROM runs WHERE id IN (SELECT id {where} LIMIT ?)", (*found, runs))
        if self.db.execute(f"SELECT count(*) {where}", found).fetchone() == (0,):
            self.db.execute("DELETE FROM experiments WHERE id = ?", found)
            self.db.execute("DELETE FROM forgotten WHERE experiment_id = ?", found)
        self.db.execute("COMMIT")

    def live(self, steps):
        """What happens to a store, at random."""
        for _ in range(steps):
            what, queued = self.random.random(), self.queued()
            if what < 0.5:
                self.tidy(2)
            if what < 0.15 or not queued:
                self.add([self.point() for _ in range(self.random.randrange(1, 4))], self.random.randrange(1, 4))
            elif what < 0.18:
                done = self.db.execute(
                    "SELECT id FROM experiments WHERE state = 'done' "
                    "AND id NOT IN (SELECT experiment_id FROM forgotten)"
                ).fetchall()
                if done:
                    self.delete(self.random.choice(done)[0])
            else:
                self.start(*queued[0])
                if what < 0.25:  # the daemon was killed: the run waits again
                    self.db.execute(
                        "UPDATE runs SET state = 'queued', change = ? WHERE id = ?", (self.change(), queued[0][0])
                    )
                else:
                    self.finish(*queued[0], state="failed" if what < 0.3 else "done")

    def point(self):
        return {
            **{"workload": "stream", "transport": self.random.choice(["pipe", "fifo", "tcp"]), "threads": 1},
            **{"message_size": 2 ** self.random.randrange(20), "placement": "default"},
        }
