# SPDX-License-Identifier: MIT
"""An experiment that no daemon has, as the documents of the API's routes: what its charts show is known beforehand."""


def experiment(identity, rows=(), runs=(), samples=()):
    """{target: document} of a done experiment with these rows of results, runs and samples, of another host."""
    total = len(runs) or sum(row["runs"] for row in rows)
    target = f"/experiments/{identity}"
    provenance = {
        "experiment": identity,
        "name": "Made up",
        "host": "elsewhere",
        "kernel": "5.10.0-elsewhere",
        "version": "0.1.0",
        "date": "2026-01-31T12:00:00.000Z",
        "seed": 1,
        "units": {},
    }
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
            "imported": None,
        },
        f"{target}/results": {"items": list(rows), "provenance": provenance, "next": None},
        f"{target}/runs": {"items": list(runs), "provenance": provenance, "next": None},
        f"{target}/samples": {"items": list(samples), "provenance": provenance, "next": None},
        f"{target}/findings": {"items": [], "next": None, "comparisons": 0, "study": None},
    }
