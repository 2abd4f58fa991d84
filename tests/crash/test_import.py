# SPDX-License-Identifier: MIT
"""kill -9 while a bundle is taken in: the experiment of another host is whole, or there was none."""

import contextlib
import copy
import gzip
import hashlib
import http.client
import os
import random
import sqlite3
import threading

from harness import PATIENCE_SECONDS, wait_for
from ipclab_cli import bundle

RUNS = 1000  # in portions, of which a kill hits one
KILLS = max(3, int(os.environ.get("IPCLAB_KILLS", 3)) // 100)
SPEC = {"transport": "pipe", "messages": 200, "warmup_seconds": 0}


def long_bundle(daemon):
    """The bundle of a run that stands in it RUNS times; its digest, and the file."""
    identity = daemon.wait_final(daemon.post(SPEC)["id"])["id"]
    answer = daemon.client().request("GET", f"/experiments/{identity}/bundle")
    assert answer.status == 200, answer
    document = bundle.parse(gzip.decompress(answer.body))
    (run,) = document["runs"]
    document["runs"] = [copy.copy(run) | {"position": i, "repetition": i + 1} for i in range(RUNS)]
    document["experiment"]["progress"] |= {"runs_total": RUNS, "runs_done": RUNS}
    text = bundle.canonical(document).encode()
    return hashlib.sha256(text).hexdigest(), gzip.compress(text, 1)


def send(daemon, digest, packed):
    answer = daemon.client().request(
        "POST", f"/bundles?sha256={digest}", packed, {"Content-Type": "application/gzip"}, timeout=PATIENCE_SECONDS
    )
    return answer.status, answer.json


def stored(daemon, sql):
    """A number, from the disk."""
    with contextlib.closing(sqlite3.connect(f"file:{daemon.state / 'ipclab.db'}?mode=ro", uri=True)) as database:
        return database.execute(sql).fetchone()[0]


def test_an_import_is_whole_or_was_none(daemon):
    rng = random.Random(int(os.environ.get("IPCLAB_SEED", 20)))
    digest, packed = long_bundle(daemon)
    (own,) = daemon.items("/experiments")
    answered, cut = [], 0
    for _ in range(KILLS):

        def post():
            with contextlib.suppress(OSError, http.client.HTTPException):  # killed before it could answer
                answered.append(send(daemon, digest, packed))

        answered.clear()
        before, least = stored(daemon, "SELECT count(*) FROM runs"), rng.randrange(RUNS)
        request = threading.Thread(target=post)
        request.start()
        wait_for(
            lambda before=before, least=least, request=request: (
                stored(daemon, "SELECT count(*) FROM runs") > before + least or not request.is_alive()
            ),
            PATIENCE_SECONDS,
            f"{least} runs of the import",
        )
        daemon.kill()
        request.join()
        daemon.start()
        known = [e for e in daemon.items("/experiments") if e["imported"]]
        if answered:
            assert answered[0][0] == 201 and [e["id"] for e in known] == [answered[0][1]["id"]]
        cut += not known
        for experiment in known:  # committed, whether the answer had left or not
            assert experiment["imported"]["sha256"] == digest
            assert experiment["progress"]["runs_done"] == RUNS == len(daemon.runs(experiment["id"]))
            status, body = daemon.request("DELETE", f"/experiments/{experiment['id']}")
            assert status == 204, body
        wait_for(
            lambda: stored(daemon, "SELECT count(*) FROM runs") == 1, PATIENCE_SECONDS, "the rest of it to be removed"
        )
        assert daemon.items("/experiments") == [own]
    status, body = send(daemon, digest, packed)
    assert status == 201, body
    assert len(daemon.runs(body["id"])) == RUNS
    assert send(daemon, digest, packed) == (200, daemon.experiment(body["id"]))
    print(
        f"counted: {KILLS} kills during an import of {RUNS} runs: {cut} times nothing was left of it, else it was whole"
    )
    assert cut > 0, "each import had come to its end before the kill"
