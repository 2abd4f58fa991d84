# SPDX-License-Identifier: MIT
"""SHA-256 over the canonical rows of a store, and over what the base has of it: computed from the columns on either
side, and by other code than the exporter's."""

import hashlib
import json

FACTS_LEFT_OUT = (
    *("uptime_seconds", "load", "memory_available_bytes", "memory_free_bytes", "memory_total_bytes", "cpus", "nodes"),
    *("vmstat", "reasons", "boot_id", "hostname", "machine"),
)
EXPERIMENT = (
    "id, change, state, seed, created_at, started_at, finished_at, runs_total, runs_done, runs_failed, runs_cancelled, "
    "idempotency_key, version, name, error, {skipped}, {merged}, {spec}, {until}"
)
RUN = (
    "runs.id, runs.change, runs.experiment_id, rate, repetition, block, position, runs.state, attempt, "
    "runs.started_at, runs.finished_at, runs.error, {flags}, {result}"
)


def content(text):
    return json.dumps(json.loads(text), sort_keys=True)


def point(text):
    """A point of before there was a source was hot, and the base has no word of it."""
    members = json.loads(text)
    return json.dumps(
        {name: members[name] for name in members if (name, members[name]) != ("source", "hot")}, sort_keys=True
    )


def facts(text):
    if text is None:
        return None
    before = json.loads(text)["before"]
    if before is None:
        return None
    rest = {key: value for key, value in before.items() if key not in FACTS_LEFT_OUT}
    return json.dumps(rest | {"cpus": len(before["cpus"])}, sort_keys=True)


def named(columns, form):
    names = ("skipped", "merged", "spec", "until", "flags", "result")
    return columns.format(**{name: form.format(name) for name in names})


def sha256(experiments, runs, deletions):
    text = json.dumps([sorted(experiments), sorted(runs), sorted(deletions)])
    return hashlib.sha256(text.encode()).hexdigest()


def of_store(store):
    """(SHA-256, number of rows) of what the daemon would show."""
    db, shown = store.db, "NOT IN (SELECT experiment_id FROM forgotten)"
    experiments = [
        list(row)
        for row in db.execute(
            f"SELECT {named(EXPERIMENT, '{}')} FROM experiments JOIN specs ON experiment_id = id WHERE id {shown}"
        )
    ]
    rows = db.execute(
        f"SELECT {named(RUN, '{}')}, point, environment FROM runs JOIN points ON points.id = point_id "
        f"WHERE runs.experiment_id {shown}"
    )
    runs = [[*row[:-2], point(row[-2]), facts(row[-1])] for row in rows]
    deletions = [list(row) for row in db.execute("SELECT change, experiment_id FROM deletions")]
    return sha256(experiments, runs, deletions), len(experiments) + len(runs) + len(deletions)


def of_base(base, name):
    form, where = "{}::text", "WHERE store = %s"
    experiments = [
        list(row) for row in base.execute(f"SELECT {named(EXPERIMENT, form)} FROM experiments {where}", (name,))
    ]
    rows = base.execute(
        f"SELECT {named(RUN, form)}, points.spec::text, facts::text FROM runs JOIN points USING (point) "
        f"LEFT JOIN environments USING (environment) {where}",
        (name,),
    )
    runs = [[*row[:-2], content(row[-2]), row[-1] and content(row[-1])] for row in rows]
    deletions = [list(row) for row in base.execute(f"SELECT change, id FROM deletions {where}", (name,))]
    return sha256(experiments, runs, deletions), len(experiments) + len(runs) + len(deletions)
