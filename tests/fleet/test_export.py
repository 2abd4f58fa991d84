# SPDX-License-Identifier: MIT
"""One exporter and one store: everything arrives, once, and nothing that is not to be."""

import csv
import json
import os
import re
import shutil
import subprocess
import uuid

import canon
import pytest
from conftest import export, export_here, fleet, program
from ipclabtest import SOURCE
from synthetic import SyntheticStore

PIPE = {"workload": "stream", "transport": "pipe", "message_size": 4096, "placement": "default"}


@pytest.fixture
def store(tmp_path):
    made = SyntheticStore(tmp_path / "store")
    yield made
    made.close()


def same(store, base, name=None):
    left, right = canon.of_store(store), canon.of_base(base, name or store.uuid)
    assert left[1] > 0
    return left == right


def clone(store, directory):
    """A copy of the whole state directory."""
    store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copytree(store.directory, directory)
    return SyntheticStore(directory, seed=4711, host="clone")


def test_points_are_the_same_after_they_have_a_source(store, dsn, base):
    """As a migration gives it to them, which is no change of their runs."""
    store.live(40)
    export(dsn, store)
    store.db.execute("UPDATE points SET point = json_set(point, '$.source', 'hot')")
    store.live(10)
    export(dsn, store)
    assert same(store, base)
    assert base.execute("SELECT count(*) FROM points WHERE spec::jsonb ? 'source'").fetchone() == (0,)


def test_everything_arrives(store, dsn, base):
    for _ in range(5):
        store.live(40)
        export(dsn, store)
        assert same(store, base)
    assert export(dsn, store) == "nothing new\n"


@pytest.mark.parametrize("text", ["\\N", "\\.", "a\tb\\tc\\\\\n\r\\x41\v\f\b", "é€😀\u2028", ""])
def test_characters_that_copy_gives_a_meaning(store, dsn, base, text):
    experiment = store.measure([PIPE | {"name": text}], 2)
    store.db.execute("UPDATE experiments SET name = ?, error = ? WHERE id = ?", (text, text, experiment))
    store.db.execute("UPDATE runs SET error = ? WHERE experiment_id = ?", (text, experiment))
    export(dsn, store)
    assert same(store, base)
    assert base.execute("SELECT name, error FROM experiments").fetchall() == [(text, text)]


@pytest.mark.parametrize(
    "result, figures",
    [
        ('{"throughput_bytes_per_second": 3, "latency_ns": {"p50": 0.1, "p99": 1e3}, "cost_ns": 2}', (3, 0.1, 1000, 2)),
        ('{"throughput_bytes_per_second": 0, "latency_ns": {"p50": -1, "p99": true}, "cost_ns": "2"}', (None,) * 4),
        ('{"throughput_bytes_per_second": [1], "latency_ns": {"p50": {}}, "cost_ns": null}', (None,) * 4),
        (
            '{"latency_ns": 7, "cost_ns": 1E+29}',
            (None, None, None, 1e29),
        ),
        ('{"latency_ns": {"p50": 8, "p99": 9, "count": 999}, "messages": 5000}', (None, 8, None, None)),  # too few
        ('{"latency_ns": {"p50": 8, "p99": 9, "count": 1000}, "messages": 5}', (None, 8, 9, None)),
        ('{"latency_ns": {"p50": 8, "p99": 9}, "messages": 999}', (None, 8, None, None)),  # of an early version
        ('{"latency_ns": {"p50": 8, "p99": 9, "count": null}, "messages": true}', (None, 8, 9, None)),
        ("[3]", (None,) * 4),
        ('"x"', (None,) * 4),
    ],
)
def test_figures_of_a_result(store, dsn, base, result, figures):
    experiment = store.add([PIPE])
    store.start(1, experiment)
    store.finish(1, experiment, result=result)
    export_here(dsn, store)
    assert same(store, base)
    assert base.execute("SELECT throughput, latency_p50, latency_p99, cost FROM runs").fetchall() == [figures]


def test_results_are_compressed_quickly(store, dsn, base):
    """By lz4, where the server has it, as Debian's has."""
    result = {"throughput_bytes_per_second": 1e9, "seconds": [{"begin_ns": 10**9 + i} for i in range(300)]}
    experiment = store.add([PIPE])
    store.start(1, experiment)
    store.finish(1, experiment, result=json.dumps(result))
    export(dsn, store)
    assert same(store, base)
    assert base.execute("SELECT pg_column_compression(result) FROM runs").fetchone() == ("lz4",)


def test_pages_follow_each_other(store, dsn, base):
    store.live(150)
    export(dsn, store, "--page", 7)
    assert same(store, base)


def test_deletion(store, dsn, base):
    first, second = store.measure([PIPE], 3), store.measure([PIPE], 2)
    export(dsn, store)
    assert base.execute("SELECT runs FROM host_points WHERE figure = 'throughput'").fetchall() == [(5,)]
    store.delete(first)
    export(dsn, store)
    assert same(store, base)
    assert base.execute("SELECT id FROM experiments").fetchall() == [(second,)]
    assert base.execute("SELECT runs FROM host_points WHERE figure = 'throughput'").fetchall() == [(2,)]


def test_what_was_deleted_and_is_not_removed_yet(store, dsn, base):
    """The rows of a deleted experiment leave the store a portion at a time. None of them is exported, before or after
    the deletion, and their changes are no reason to call the store a fork."""
    first = store.measure([PIPE], 3, key="once")
    export(dsn, store)
    second = store.measure([PIPE], 3)
    store.delete(second)
    store.delete(first)
    for runs in (1, 1, 9, 9):
        assert "stopped" not in export(dsn, store)
        assert same(store, base)
        assert base.execute("SELECT count(*) FROM runs").fetchone() == (0,)
        store.tidy(runs)
    assert store.db.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    export(dsn, store)
    assert same(store, base)


def test_an_experiment_that_is_stored_in_several_transactions(store, dsn, base):
    """Its runs have lower changes than what happens meanwhile; the cursor waits for them."""
    store.measure([PIPE], 2)
    portions = store.add_in_portions([PIPE], 8)
    while next(portions) is None:
        store.measure([PIPE], 1)
        assert "stopped after change" in export(dsn, store)
        assert base.execute("SELECT count(*) FROM experiments").fetchone() == (1,)
    export(dsn, store)
    assert same(store, base)
    assert base.execute("SELECT count(*) FROM experiments").fetchone() == (6,)
    assert "nothing new" in export(dsn, store)


def test_an_experiment_that_was_never_stored_as_a_whole(store, dsn, base):
    portions = store.add_in_portions([PIPE], 8)
    next(portions)  # and then the daemon was killed
    store.measure([PIPE], 2)
    assert "stopped after change" in export(dsn, store)
    store.tidy(99)
    export(dsn, store)
    assert same(store, base)
    assert base.execute("SELECT id FROM experiments").fetchall() == [(2,)]


def test_summaries_are_of_the_runs_that_are_there(store, dsn, base):
    store.live(200)
    export(dsn, store, "--page", 50)
    summaries = base.execute("SELECT point, figure, runs, median_log FROM host_points").fetchall()
    assert len(summaries) > 10
    for point, figure, runs, median in summaries:
        query = (
            f"SELECT count({figure}), percentile_cont(0.5) WITHIN GROUP (ORDER BY ln({figure})) "
            "FROM runs WHERE point = %s AND state = 'done'"
        )
        assert base.execute(query, (point,)).fetchone() == (runs, pytest.approx(median, rel=1e-12))


def test_the_rates_of_a_search_are_not_compared(store, dsn, base):
    """Its runs have the point of its other runs, and rates of their own."""
    store.measure([PIPE], 3)
    searched = store.measure([PIPE], 2)
    store.db.execute("UPDATE points SET rate = 250000 WHERE experiment_id = ?", (searched,))
    export(dsn, store)
    assert same(store, base)
    assert base.execute("SELECT runs FROM host_points WHERE figure = 'throughput'").fetchall() == [(3,)]
    assert base.execute("SELECT sum(runs) FROM series").fetchone() == (3,)
    assert base.execute("SELECT rate, count(*) FROM runs GROUP BY rate ORDER BY rate").fetchall() == [
        (250000, 2),
        (None, 3),
    ]


def test_views_of_effects_and_series(dsn, base, tmp_path):
    for i in range(3):
        store = SyntheticStore(tmp_path / f"s{i}", seed=i, host=f"host{i}")
        for level in (1e9, 2e9):  # a step between two experiments
            store.measure([PIPE], 3, throughput=lambda point, i=i, level=level: level * (1 + 0.1 * i))
        export(dsn, store)
        store.close()
    found = base.execute(
        "SELECT host, runs, hosts, ratio FROM host_effects WHERE figure = 'throughput' ORDER BY host"
    ).fetchall()
    assert [row[:3] for row in found] == [(f"host{i}", 6, 3) for i in range(3)]
    assert [row[3] for row in found] == pytest.approx([1 / 1.1, 1, 1.2 / 1.1])
    series = base.execute(
        "SELECT host, experiment_id, runs, throughput FROM series ORDER BY host, created_at"
    ).fetchall()
    assert [row[:3] for row in series] == [(f"host{i}", e, 3) for i in range(3) for e in (1, 2)]
    assert [row[3] for row in series] == pytest.approx([x * (1 + 0.1 * i) for i in range(3) for x in (1e9, 2e9)])


def test_the_command_of_the_manual_copies_every_run(store, dsn, base, tmp_path):
    """Which has Parquet files made of it (docs/fleet.md)."""
    store.live(40)
    export(dsn, store)
    manual = (SOURCE / "docs/fleet.md").read_text()
    (command,) = re.findall(r'^psql .*?HEADER"$', manual, re.DOTALL | re.MULTILINE)
    subprocess.run(command, shell=True, check=True, cwd=tmp_path, env=os.environ | {"IPCLAB_FLEET_DATABASE": dsn})
    with (tmp_path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 10 and base.execute("SELECT count(*) FROM own_runs").fetchone() == (len(rows),)
    measured = base.execute("SELECT throughput FROM own_runs WHERE throughput IS NOT NULL").fetchall()
    assert sorted(float(row["throughput"]) for row in rows if row["throughput"]) == sorted(
        value for (value,) in measured
    )
    assert all(json.loads(row["point"])["workload"] == "stream" for row in rows)


def test_a_bad_row_is_set_aside_while_the_rest_flows(store, dsn, base):
    experiment = store.add([PIPE], 6)
    bad = {
        2: ('{"throughput_bytes_per_second": ', "result is not JSON"),
        3: ('{"throughput_bytes_per_second": NaN}', "NaN is no JSON number"),
        4: (b'{"a": "\xff"}', "not UTF-8"),
    }
    for number, (run, _) in enumerate(store.queued(experiment), 1):
        store.start(run, experiment)
        store.finish(run, experiment, result=None if number not in bad else "{}")
        if number in bad:
            store.db.execute("UPDATE runs SET result = CAST(? AS TEXT) WHERE id = ?", (bad[number][0], run))
    printed = export(dsn, store)
    found = dict(base.execute("SELECT id, reason FROM set_aside").fetchall())
    assert set(found) == set(bad)
    for run, (_, reason) in bad.items():
        assert reason in found[run] and f"set aside: run {run} " in printed
    assert [row for (row,) in base.execute("SELECT id FROM runs ORDER BY id")] == [1, 5, 6]
    assert "nothing new" in export(dsn, store)  # and is no reason to call the store a fork

    for run in bad:  # mended, by a change as any other
        store.db.execute("UPDATE runs SET result = '{}', change = ? WHERE id = ?", (store.change(), run))
    export(dsn, store)
    assert same(store, base)
    assert base.execute("SELECT count(*) FROM set_aside").fetchone() == (0,)


def test_what_only_postgresql_refuses_is_found_by_halving(store, dsn, base):
    base.execute("ALTER TABLE runs ADD CONSTRAINT odd CHECK (id NOT IN (17, 40))")
    store.measure([PIPE], 60)
    export(dsn, store)
    assert [row for (row,) in base.execute("SELECT id FROM set_aside ORDER BY id")] == [17, 40]
    assert base.execute("SELECT count(*) FROM runs").fetchone() == (58,)
    assert "violates check constraint" in base.execute("SELECT reason FROM set_aside").fetchone()[0]


def refused(store, dsn):
    printed = export(dsn, store, status=1)
    assert f"{store.directory / 'ipclab.db'} is not the store {store.uuid}" in printed, printed
    assert "--adopt" in printed
    return printed


def test_restored_store_is_refused_and_adopted(store, dsn, base, tmp_path):
    store.live(60)
    backup = clone(store, tmp_path / "backup")
    store.live(60)
    export(dsn, store)
    before = canon.of_base(base, store.uuid)
    assert "newest change" in refused(backup, dsn)
    backup.live(200)  # its changes have the numbers again that were exported
    refused(backup, dsn)
    assert canon.of_base(base, store.uuid) == before

    assert "adopted as" in export(dsn, backup, "--adopt")
    name = uuid.UUID(json.loads((backup.directory / "identity").read_text())["identity"])
    assert name != backup.uuid and same(backup, base, name)
    assert canon.of_base(base, store.uuid) == before
    backup.live(30)
    export(dsn, backup)  # from now on without --adopt
    assert same(backup, base, name)
    assert base.execute("SELECT adopted_from FROM stores WHERE store = %s", (name,)).fetchone() == (store.uuid,)
    assert "no fork" in export(dsn, backup, "--adopt", status=1)
    backup.close()


def test_cloned_store_is_refused(store, dsn, base, tmp_path):
    store.live(60)
    export(dsn, store)
    other = clone(store, tmp_path / "other")
    export(dsn, other)  # equal so far: nothing that could be lost or doubled
    store.live(20)
    export(dsn, store)
    other.live(40)
    refused(other, dsn)
    store.live(20)
    export(dsn, store)
    assert same(store, base)
    other.close()


def test_shared_past_of_a_fork_counts_once(store, dsn, base, tmp_path):
    store.measure([PIPE], 4)
    other = clone(store, tmp_path / "other")
    store.measure([PIPE], 3)
    export(dsn, store)
    other.measure([PIPE], 2)
    export(dsn, other, "--adopt")
    assert base.execute("SELECT host, count(*) FROM own_runs GROUP BY host ORDER BY host").fetchall() == [
        ("clone", 2),
        ("host", 7),
    ]
    runs = base.execute("SELECT runs FROM host_points WHERE figure = 'throughput' ORDER BY runs").fetchall()
    assert runs == [(2,), (7,)]
    other.close()


def test_fork_with_the_same_change_numbers(store, dsn, tmp_path):
    """Two histories that only differ in what the runs measured."""
    first = store.add([PIPE], 4)
    other = clone(store, tmp_path / "other")
    for each in (store, other):
        for run, _ in each.queued(first):
            each.start(run, first)
            each.finish(run, first)
    export(dsn, store)
    assert "other contents" in refused(other, dsn)
    other.close()


def test_store_without_an_identity(store, dsn):
    store.db.execute("DROP TABLE identity")
    assert "no table identity" in export(dsn, store, status=1)


def test_wrong_versions_and_places(store, dsn, base, tmp_path):
    base.execute("INSERT INTO schema_version (version, name) VALUES (99, 'of the future')")
    assert "has schema version 99" in export(dsn, store, status=1)
    base.execute("DELETE FROM schema_version WHERE version = 99")
    base.execute("DELETE FROM schema_version")
    assert "run ipclab-fleet migrate" in export(dsn, store, status=1)
    assert "no such database" in program("ipclab-export", "--database", dsn, "--state-dir", tmp_path, status=1)
    assert "cannot connect" in export(f"host={tmp_path} user=x dbname=y", store, status=1)
    assert "--page is 1 to 10000, not 0" in export(dsn, store, "--page", 0, status=2)


def test_migrating_again_changes_nothing(dsn):
    assert "newest schema" in fleet("migrate", "--database", dsn)
