# SPDX-License-Identifier: MIT
"""An experiment that no daemon has, as the documents of the API's routes: what its charts show is known beforehand."""


def experiment(identity, rows=(), runs=()):
    """{target: document} of a done experiment with these rows of results, and these runs."""
    total = len(runs) or sum(row["runs"] for row in rows)
    target = f"/experiments/{identity}"
    return {
        target: {
            "id": identity,
            "name": "Made up",
            "state": "done",
            "spec": {},
            "effective_spec": {},
            "error": None,
            "progress": {"runs_total": total, "runs_done": total, "runs_failed": 0, "runs_cancelled": 0},
            "eta_seconds": None,
            "queue_position": None,
            "created_at": "2026-01-31T12:00:00.000Z",
            "started_at": "2026-01-31T12:00:00.000Z",
            "finished_at": "2026-01-31T12:10:00.000Z",
            "seed": 1,
            "skipped": [],
            "until": None,
            "flags": [],
            "version": "0.1.0",
        },
        f"{target}/results": {"items": list(rows), "next": None},
        f"{target}/runs": {"items": list(runs), "next": None},
        f"{target}/samples": {"items": [], "next": None},
        f"{target}/findings": {"items": [], "next": None, "comparisons": 0, "study": None},
    }
