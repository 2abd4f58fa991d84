# SPDX-License-Identifier: MIT
"""Bundles as tests fetch, spoil and send them, and a daemon with experiments that are worth one."""

import contextlib
import copy
import gzip
import hashlib
import json
import re

from ipclab_cli import bundle
from ipclabtest.daemon import Daemon
from stored import Stored

SPEC = {
    "name": "a few / of each",
    "workload": ["stream", "pingpong", "syscall", "context-switch"],
    "transport": ["pipe", "tcp", "shm-posix"],
    "message_size": 1024,
    "messages": 500,  # a window by the clock may pass without one on a machine that is busy
    "warmup_seconds": 0,
    "repetitions": 2,
    "seed": 7,
}


def fetch(client, identity, query=""):
    """The file's name and its bytes."""
    answer = client.request("GET", f"/experiments/{identity}/bundle{query}")
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"] == "application/gzip"
    return re.fullmatch(r'attachment; filename="(.*)"', answer.headers["Content-Disposition"])[1], answer.body


def document_of(packed):
    return json.loads(gzip.decompress(packed))


def copy_samples(stored, source, target):
    """Those of a point's first run, for each of its runs."""
    points = "SELECT point, runs.id FROM runs JOIN points ON points.id = point_id WHERE runs.experiment_id = ?"
    first = {}
    for point, run in stored.db.execute(points + " ORDER BY position", (source,)):
        first.setdefault(point, run)
    names = [row[1] for row in stored.db.execute("PRAGMA table_info(samples)")]
    names = ", ".join(name for name in names if name not in ("change", "experiment_id", "run_id"))
    for point, run in stored.db.execute(points, (target,)).fetchall():
        (n,) = stored.db.execute("SELECT count(*) FROM samples WHERE run_id = ?", (first[point],)).fetchone()
        stored.db.execute(
            f"INSERT INTO samples (change, experiment_id, run_id, {names}) "
            f"SELECT ? + row_number() OVER () - 1, ?, ?, {names} FROM samples WHERE run_id = ?",
            (stored.next_change(n), target, run, first[point]),
        )
        stored.db.execute("UPDATE counters SET value = value + ? WHERE name = 'samples'", (n,))


@contextlib.contextmanager
def known_experiments():
    """A daemon, and the ids of an experiment that ran and of one with more repetitions."""
    daemon = Daemon()
    daemon.start()
    real = daemon.client().wait_final(daemon.client().post(SPEC)["id"])
    assert real["state"] == "done", daemon.log_tail()
    assert daemon.stop() == 0
    stored = Stored(daemon.state / "ipclab.db")

    def scatter(point, repetition, result):
        for role, counters in result["counters"].items():
            own = result["threads"][role][0]["counters"]
            for name in ("task_clock_ns", "context_switches"):
                more = counters[name] * repetition // 97
                for of in (own, counters):
                    of[name] += more
                    of["voluntary_switches"] += more if name == "context_switches" else 0
            for of in (own, counters):
                of["cpu_ns"] = of["task_clock_ns"]
                if of["user_ns"] is not None:
                    of["user_ns"] = of["cpu_ns"] - of["system_ns"]
        for role, figures in bundle.all_quotients_of(point, result).items():
            (result if role is None else result[role]).update(figures)
        if point["workload"] == "syscall":
            result["cost_ns"] = result["cpu_ns_per_message"]
        return ("failed", ["ends_differ"]) if repetition == 5 else ("done", ["noisy:load"] if repetition % 2 else [])

    many = stored.copy(real["id"], 8, scatter)
    copy_samples(stored, real["id"], many)
    stored.db.execute("UPDATE runs SET probes = NULL WHERE experiment_id = ?", (many,))  # whose flags it has not
    failed = stored.db.execute(
        "UPDATE runs SET error = 'placement_violated: on CPU 3' WHERE experiment_id = ? AND state = 'failed'", (many,)
    ).rowcount
    total = failed * 8
    stored.db.execute(
        "UPDATE experiments SET runs_done = ?, runs_failed = ?, state = 'failed' WHERE id = ?",
        (total - failed, failed, many),
    )
    stored.close()
    daemon.start()
    yield daemon, {"real": real["id"], "many": many}
    assert daemon.stop() == 0, daemon.log_tail()
    daemon.remove()


def change(document, path, value):
    """The document with another value there; what is not on the way to it is that of both."""
    key, *rest = path
    changed = copy.copy(document)
    changed[key] = change(document[key], rest, value) if rest else value(document[key])
    return changed


def send(client, packed, digest=None, **headers):
    digest = digest or hashlib.sha256(gzip.decompress(packed)).hexdigest()
    return client.request(
        "POST", f"/bundles?sha256={digest}", packed, {"Content-Type": "application/gzip"} | headers, timeout=120
    )


def digest_of(packed):
    return hashlib.sha256(gzip.decompress(packed)).hexdigest()
