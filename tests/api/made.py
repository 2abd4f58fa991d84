# SPDX-License-Identifier: MIT
"""Figures that are made: what is concluded from them is known beforehand."""

import json
import random

from ipclabtest import database


def repeat(daemon, experiment, repetitions):
    """Copies the runs of an experiment that has run each of its points once, until each point has `repetitions` runs.
    write_figures() then gives each copy its own figures. A run costs a tenth of a second of CPU time, a copy none."""
    with database.live(daemon.base / "state/ipclab.db") as db:
        names = [name for (name,) in db.execute("SELECT name FROM pragma_table_info('runs') WHERE name <> 'id'")]
        runs = db.execute(
            f"SELECT {', '.join(names)} FROM runs WHERE experiment_id = ? ORDER BY position", (experiment,)
        ).fetchall()
        marks = ", ".join(f":{name}" for name in names)
        order = random.Random(14)  # of each block its own, as they run
        for position in range(len(runs), len(runs) * repetitions):
            repetition, of_block = divmod(position, len(runs))
            if of_block == 0:
                order.shuffle(runs)
            run = dict(zip(names, runs[of_block], strict=True))
            assert run["repetition"] == 1
            run |= {"position": position, "repetition": repetition + 1, "change": note_change(db, experiment)}
            run["block"] = run["block"] and run["repetition"]
            db.execute(f"INSERT INTO runs ({', '.join(names)}) VALUES ({marks})", run)
        counts = ", ".join(f"{name} = {name} * :n" for name in ("runs_total", "runs_done", "runs_failed"))
        db.execute(f"UPDATE experiments SET {counts} WHERE id = :id", {"n": repetitions, "id": experiment})
        db.execute(
            "UPDATE specs SET merged = json_set(merged, '$.repetitions', ?) WHERE experiment_id = ?",
            (repetitions, experiment),
        )


def note_change(db, experiment):
    """What the daemon remembers of the experiment is of another state of it now; the change's number."""
    (change,) = db.execute("UPDATE counters SET value = value + 1 WHERE name = 'change' RETURNING value").fetchone()
    db.execute("UPDATE experiments SET change = ? WHERE id = ?", (change, experiment))
    return change


def measure(daemon, spec, time_of, counts_of=None):
    """A done experiment of this spec with the figures of write_figures(); its id."""
    experiment = daemon.unix.wait_final(daemon.unix.post(spec | {"repetitions": 1})["id"])
    assert experiment["state"] == "done", experiment
    repeat(daemon, experiment["id"], spec.get("repetitions", 1))
    write_figures(daemon, experiment["id"], time_of, counts_of)
    return experiment["id"]


def write_figures(daemon, experiment, time_of, counts_of=None):
    """Gives the experiment's done runs the figures of this law: nanoseconds of a message, by point; and by `counts_of`
    figures that a hardware counter would have, by name."""
    noise = random.Random(14)
    with database.live(daemon.base / "state/ipclab.db") as db:
        runs = db.execute(
            "SELECT runs.id, point, result FROM runs JOIN points ON points.id = point_id"
            " WHERE runs.experiment_id = ? AND state = 'done' ORDER BY position",
            (experiment,),
        ).fetchall()
        for run, point, result in runs:
            point, result = json.loads(point), json.loads(result)
            nanoseconds = time_of(point) * noise.gauss(1, 0.01)
            result["messages_per_second"] = 1e9 / nanoseconds
            result["throughput_bytes_per_second"] = 1e9 / nanoseconds * point["message_size"]
            if result.get("latency_ns"):
                result["latency_ns"] |= {
                    "p50": round(nanoseconds),
                    "p99": round(2 * nanoseconds),
                    "count": 1_000_000,
                }
            result["steady"] = True
            if counts_of:
                result |= {name: value * noise.gauss(1, 0.01) for name, value in counts_of(point).items()}
            db.execute("UPDATE runs SET result = ?, flags = '[]' WHERE id = ?", (json.dumps(result), run))
        note_change(db, experiment)
