# SPDX-License-Identifier: MIT
"""What docs/fleet.md says of DuckDB, word for word, over a base with two hosts."""

import os
import re
import statistics
import subprocess

import duckdb
from conftest import PATIENCE_SECONDS, SOURCE, export_here
from synthetic import SyntheticStore

POINTS = [
    {"workload": "stream", "transport": "pipe", "message_size": 4096, "placement": placement}
    for placement in ("same-node", {"pair": [0, 3]})
]
SECTION = re.compile(r"^### Parquet, DuckDB and pandas$.*?^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def documented():
    """The psql command, and what duckdb is given."""
    block = SECTION.search((SOURCE / "docs/fleet.md").read_text())[1]
    copy, *queries = block.split("duckdb -c ")
    return copy, [query.strip().removeprefix('"').removesuffix('"') for query in queries]


def test_a_base_is_read_by_duckdb(dsn, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = {}
    for number, host in enumerate(("one", "two")):
        store = SyntheticStore(tmp_path / host, seed=number, host=host)
        values = {}

        def level(point, host=host, values=values, store=store):
            placement = point["placement"] if isinstance(point["placement"], str) else '{"pair":[0,3]}'
            values.setdefault((host, placement), []).append(1e6 * store.random.lognormvariate(0, 0.1))
            return values[host, placement][-1]

        store.measure(POINTS, 5, throughput=level)
        export_here(dsn, store)
        store.close()
        expected |= values

    copy, (to_parquet, medians) = documented()
    subprocess.run(
        ["bash", "-euc", copy], env=os.environ | {"IPCLAB_FLEET_DATABASE": dsn}, check=True, timeout=PATIENCE_SECONDS
    )
    duckdb.sql(to_parquet)
    found = {(host, placement): value for host, placement, value in duckdb.sql(medians).fetchall()}
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert abs(found[key] / statistics.median(values) - 1) < 1e-12, key
