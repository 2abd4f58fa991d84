# SPDX-License-Identifier: MIT
"""Many stores at once: exporters that run beside each other, all with the same points and few environments."""

import concurrent.futures

import canon
from conftest import LONG, export_here
from synthetic import SyntheticStore

STORES = 1000 if LONG else 60
AT_ONCE = 8
ROUNDS = 3


def test_many_stores(dsn, base, tmp_path):
    """Each is exported three times, as by a dispatcher that does not know what it has done already."""
    stores = [SyntheticStore(tmp_path / f"s{i}", seed=i, host=f"host{i}") for i in range(STORES)]
    for store in stores:
        store.live(8)
        store.close()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [pool.submit(export_here, dsn, store, 30) for _ in range(ROUNDS) for store in stores]
        for job in concurrent.futures.as_completed(jobs):
            job.result()
    total = 0
    for store in stores:
        again = SyntheticStore(store.directory)
        left, right = canon.of_store(again), canon.of_base(base, again.uuid)
        again.close()
        assert left == right, store.directory
        total += right[1]
    assert base.execute("SELECT count(*) FROM stores").fetchone() == (STORES,)
    counts = base.execute(
        "SELECT (SELECT count(*) FROM experiments) + (SELECT count(*) FROM runs) + (SELECT count(*) FROM deletions)"
    ).fetchone()
    assert counts == (total,)
