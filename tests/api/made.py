# SPDX-License-Identifier: MIT
"""Figures that are made: what is concluded from them is known beforehand."""

import json
import random

from ipclabtest import database


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
        (change,) = db.execute("UPDATE counters SET value = value + 1 WHERE name = 'change' RETURNING value").fetchone()
        db.execute("UPDATE experiments SET change = ? WHERE id = ?", (change, experiment))
