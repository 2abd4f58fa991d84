# SPDX-License-Identifier: MIT
"""Experiments with known figures: written into the database of a daemon that has stopped, from one that really ran."""

import json
import sqlite3

from ipclabtest.database import seal


class Stored:
    def __init__(self, path):
        self.path = path
        self.db = sqlite3.connect(path)
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA foreign_keys = ON")

    def close(self):
        self.db.commit()
        self.db.close()
        seal(self.path)

    def next_change(self, n=1):
        (value,) = self.db.execute(
            "UPDATE counters SET value = value + ? WHERE name = 'change' RETURNING value", (n,)
        ).fetchone()
        return value - n + 1

    def insert(self, table, row, **changed):
        row = dict(row) | changed
        del row["id"]
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        return self.db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values())).lastrowid

    def widen(self, source, points, repetitions, adapt):
        """Like copy(), of so many points with message sizes from 1 on."""
        (text,) = self.db.execute("SELECT point FROM points WHERE experiment_id = ? LIMIT 1", (source,)).fetchone()
        identity = self.copy(source, 1, adapt, lambda point: point == json.loads(text))
        (point_id,) = self.db.execute("SELECT id FROM points WHERE experiment_id = ?", (identity,)).fetchone()
        run = self.db.execute("SELECT * FROM runs WHERE experiment_id = ?", (identity,)).fetchone()
        self.db.execute("DELETE FROM points WHERE id = ?", (point_id,))  # and its run
        total = points * repetitions
        change = self.next_change(total)
        self.db.execute("UPDATE experiments SET runs_total = ?, runs_done = ? WHERE id = ?", (total, total, identity))
        for position in range(total):
            ordinal, repetition = divmod(position, repetitions)
            point = json.loads(text) | {"message_size": ordinal + 1}
            if repetition == 0:
                point_id = self.db.execute(
                    "INSERT INTO points (experiment_id, ordinal, point) VALUES (?, ?, ?)",
                    (identity, ordinal, json.dumps(point, separators=(",", ":"))),
                ).lastrowid
            result = json.loads(run["result"])
            adapt(point, repetition + 1, result)
            self.insert(
                "runs",
                run,
                change=change + position,
                point_id=point_id,
                repetition=repetition + 1,
                position=position,
                block=repetition + 1,
                result=json.dumps(result),
            )
        return identity

    def copy(self, source, repetitions, adapt, points=lambda point: True, environment=None, merged=None, probes=None):
        """A done experiment like another, with so many runs of each of its points that `points` picks.

        adapt(point, repetition, result) changes a run's result in place, or returns the state and flags of the run;
        probes(repetition, probes) returns the run's probes.
        """
        row = self.db.execute("SELECT * FROM experiments WHERE id = ?", (source,)).fetchone()
        (text,) = self.db.execute("SELECT merged FROM specs WHERE experiment_id = ?", (source,)).fetchone()
        spec = json.loads(text) | {"repetitions": repetitions} | (merged or {})
        first = {}
        for run in self.db.execute(
            "SELECT runs.*, point FROM runs JOIN points ON points.id = point_id "
            "WHERE runs.experiment_id = ? ORDER BY position",
            (source,),
        ):
            if points(json.loads(run["point"])):
                first.setdefault(run["point"], run)
        total = len(first) * repetitions
        change = self.next_change(total + 1)
        identity = self.insert(
            "experiments",
            row,
            change=change,
            idempotency_key=None,
            runs_total=total,
            runs_done=total,
        )
        self.db.execute(
            "INSERT INTO specs SELECT ?1, skipped, ?2, spec, json_remove(?2, '$.name', '$.seed', '$.repetitions', "
            "'$.order', '$.until', '$.skip_impossible') FROM specs WHERE experiment_id = ?3",
            (identity, json.dumps(spec), source),
        )
        rows = [
            (run, self.db.execute(
                "INSERT INTO points (experiment_id, ordinal, point) VALUES (?, ?, ?)", (identity, ordinal, text)
            ).lastrowid)
            for ordinal, (text, run) in enumerate(first.items())
        ]  # fmt: skip
        position = 0
        for repetition in range(1, repetitions + 1):
            for run, point in rows:
                values = dict(run)
                del values["point"]
                result = json.loads(run["result"])
                state, flags = adapt(json.loads(run["point"]), repetition, result) or ("done", [])
                facts = json.loads(run["environment"])
                taken = json.loads(run["probes"])
                facts["before"] |= (environment(repetition) if callable(environment) else environment) or {}
                self.insert(
                    "runs",
                    values,
                    change=change + 1 + position,
                    experiment_id=identity,
                    point_id=point,
                    repetition=repetition,
                    position=position,
                    block=repetition if spec.get("order") == "blocks" else None,
                    state=state,
                    flags=json.dumps(flags),
                    result=json.dumps(result) if state == "done" else None,
                    environment=json.dumps(facts),
                    probes=json.dumps(probes(repetition, taken) if probes else taken),
                )
                position += 1
        return identity
