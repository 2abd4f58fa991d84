# SPDX-License-Identifier: MIT
"""`search`: the highest rate at which the latency stays below a limit, and the latencies of all that were tried."""

import csv
import io
import json
import os
import subprocess

import pytest
from conftest import BUILD, OF_PIPE, Daemon
from ipclabtest import database
from made import note_change
from searches import had_an_empty_window

WINDOW = {"duration_seconds": 0.3}
SPEC = OF_PIPE | WINDOW | {"workload": "pingpong", "repetitions": 1}
REASONS_OF_FLAGS = {"noise", "not-steady", "environment-changed", "not-observed", "machine-state", "disputed"}
EVERY = 1e8  # microseconds: a limit that nothing reaches


def searched(client, spec, limit):
    """On a busy machine one of its short windows may pass without a message: up to three tries."""
    for _ in range(3):
        posted = client.post(spec | {"search": {"rate": {"latency_p99_below_us": limit}}})
        assert posted["search"] == {"state": "running", "latency_p99_below_us": limit, "points": []}
        assert posted["until"] is None
        experiment = client.wait_final(posted["id"])
        if not had_an_empty_window(client, experiment):
            break
    assert experiment["state"] == "done" and experiment["search"]["state"] == "done", experiment
    return experiment


def test_a_search_is_tried_again_for_an_empty_window_alone(unix):
    empty = {"message_size": 2**26, "duration_seconds": 0.001}
    for spec, known in ((empty, True), ({"require": {"swappiness": -1}}, False)):
        experiment = unix.wait_final(unix.post(SPEC | spec)["id"])
        assert experiment["state"] == "failed"
        assert had_an_empty_window(unix, experiment) == known, experiment


def check_curve(point, limit):
    curve = point["curve"]
    assert [c["rate"] for c in curve] == sorted({c["rate"] for c in curve})
    for one in curve:
        assert one["kept"] == (2 * one["runs_kept"] > one["runs"])
        if not one["latency_p99_us"]:
            assert one["runs_kept"] == 0
            continue
        if one["latency_p99_us"]["max"] < limit and one["messages_per_second"] == one["rate"]:
            assert one["runs_kept"] == one["runs"]
        if one["latency_p99_us"]["min"] >= limit:
            assert one["runs_kept"] == 0
    against = [
        sum(c["runs"] - c["runs_kept"] for c in curve[:at]) + sum(c["runs_kept"] for c in curve[at:])
        for at in range(len(curve) + 1)
    ]
    at = max(i for i, n in enumerate(against) if n == min(against) and (i == 0 or curve[i - 1]["kept"]))
    assert point["highest_rate"] == (curve[at - 1]["rate"] if at > 0 else None)
    assert point["lowest_rate_not_kept"] == (curve[at]["rate"] if at < len(curve) else None)


@pytest.fixture(scope="module")
def carried(daemon):
    """What two points carry: no latency is beyond the limit."""
    return searched(daemon.unix, SPEC | {"message_size": [64, 4096], "repetitions": 2}, EVERY)


@pytest.fixture(scope="module")
def not_kept(daemon):
    """No rate of its point is within the limit."""
    return searched(daemon.unix, SPEC, 0.1)


def test_the_csv_has_the_rates(unix, carried):
    """A point has a row for each, and nothing else that was set tells them apart."""
    path = f"/experiments/{carried['id']}"
    for name, rows in (("results", unix.items(f"{path}/results")), ("runs", unix.items(f"{path}/runs"))):
        body = unix.request("GET", f"{path}/{name}", headers={"Accept": "text/csv"}).body
        table = list(csv.DictReader(io.StringIO(body.decode(), newline="")))
        assert [row["rate"] for row in table] == [str(row["rate"] or "") for row in rows]
        assert {"", *(row["rate"] for row in table)} - {""}
        assert all(None not in row and None not in row.values() for row in table)


def test_without_a_limit_it_finds_what_can_be_carried(unix, carried):
    experiment = carried
    assert [p["point"]["message_size"] for p in experiment["search"]["points"]] == [64, 4096]
    for point in experiment["search"]["points"]:
        check_curve(point, EVERY)
        assert point["curve"]
        if point["state"] == "found":
            assert point["highest_rate"] < point["lowest_rate_not_kept"] <= 1.02 * point["highest_rate"] + 1
        elif point["state"] == "wide":  # runs that were disturbed contradict each other
            assert len(point["curve"]) == 32 and point["lowest_rate_not_kept"] > 1.02 * point["highest_rate"]
        else:  # a machine that was disturbed in the closed loop carries more, or in the others less
            assert point["state"] in ("none_kept", "all_kept")
    found = [f for f in unix.get(f"/experiments/{experiment['id']}/findings")["items"] if f["kind"] == "highest-rate"]
    assert [f["subject"]["message_size"] for f in found] == [64, 4096] and [f["rows"] for f in found] == [[0], [1]]
    for finding, point in zip(found, experiment["search"]["points"], strict=True):
        values = {figure["name"]: figure["value"] for figure in finding["figures"]}
        wanted = {name: point[name] for name in ("highest_rate", "lowest_rate_not_kept") if point[name] is not None}
        assert values == wanted and f"({len(point['curve'])} rate" in finding["sentence"]
        against = [one for one in point["curve"] if one["kept"] != (one["rate"] <= (point["highest_rate"] or 0))]
        assert ("although" in finding["sentence"]) == bool(against), finding["sentence"]
        assert finding["run_ids"] and finding["confidence"] == "reduced"  # of two runs a rate


def check_rates(point, runs):
    """The rates of a point, beside its runs."""
    for number in {run["block"] for run in runs}:
        block = [run["rate"] for run in runs if run["block"] == number]
        assert len(block) == len(set(block)), "a block has each rate once"
    for one in point["curve"]:
        mine = [run for run in runs if run["rate"] == one["rate"]]
        assert len(mine) == one["runs"] == 2
        assert {run["result"]["loop"] for run in mine} == {"open"}
        known = [run["result"]["latency_ns"] for run in mine if run["result"]["latency_ns"]["count"] >= 1000]
        if not known:  # so few were carried of what was due
            assert one["latency_p99_us"] is None and "latencies" in one["latency_p99_us_reason"]
            continue
        p99 = [latency["p99"] / 1e3 for latency in known]
        assert one["latency_p99_us"]["runs"] == len(p99)
        assert (one["latency_p99_us"]["min"], one["latency_p99_us"]["max"]) == pytest.approx((min(p99), max(p99)))


def test_each_rate_is_a_row_and_in_its_runs(unix, carried):
    points = carried["search"]["points"]
    rows = unix.get(f"/experiments/{carried['id']}/results")["items"]
    runs = unix.items(f"/experiments/{carried['id']}/runs")
    assert len(rows) == len(points) + sum(len(point["curve"]) for point in points) and len(runs) == 2 * len(rows)
    assert [row["loop"] for row in rows] == ["closed"] * len(points) + ["open"] * (len(rows) - len(points))
    assert [run["position"] for run in runs] == list(range(len(runs)))
    assert [run["rate"] for run in runs[: 2 * len(points)]] == [None] * 2 * len(points)
    for point in points:
        mine = [row for row in rows if row["point"] == point["point"] and row["loop"] == "open"]
        assert sorted(row["effective"]["rate"] for row in mine) == [one["rate"] for one in point["curve"]]
        check_rates(point, [run for run in runs if run["point"] == point["point"]])


def test_the_flags_of_the_rates_are_told(daemon, carried):
    """What disturbed runs at a rate may have decided which rate is the highest."""
    identity = carried["id"]
    rate = carried["search"]["points"][1]["curve"][0]["rate"]
    rows = daemon.unix.get(f"/experiments/{identity}/results")["items"]
    (row,) = [row for row in rows if (row["rate"], row["point"]["message_size"]) == (rate, 4096)]
    marks = ", ".join(str(run) for run in row["run_ids"])
    for flag, reason in {
        "noisy:load": "noise",
        "no_steady_state": "not-steady",
        "environment-changed:mitigations": "environment-changed",
        "not_observed": "not-observed",
        "machine_state_changed": "machine-state",
        "ends_differ": "disputed",
        "rate_not_reached": None,  # that is what the search tries
    }.items():
        with database.live(daemon.base / "state/ipclab.db") as db:
            db.execute("UPDATE runs SET flags = '[]' WHERE experiment_id = ?", (identity,))
            db.execute(f"UPDATE runs SET flags = ? WHERE id IN ({marks})", (json.dumps([flag]),))
            note_change(db, identity)
        items = daemon.unix.get(f"/experiments/{identity}/findings")["items"]
        flagged = {item["reason"]: item for item in items if item["reason"] in REASONS_OF_FLAGS}
        assert {name: item["rows"] for name, item in flagged.items()} == ({reason: [1]} if reason else {})
        if reason == "disputed":
            sentence = flagged[reason]["sentence"]
            assert ": 2 of " in sentence and " runs have the flag ends_differ. Conclusions that rest on " in sentence


def test_a_search_that_an_earlier_version_ended(own_daemon):
    """Its curve does not say of how many runs a percentile is, and is answered as it is stored."""
    experiment = searched(own_daemon.unix, SPEC, 0.1)
    with database.live(own_daemon.base / "state/ipclab.db") as db:
        (text,) = db.execute("SELECT until FROM experiments WHERE id = ?", (experiment["id"],)).fetchone()
        stored = json.loads(text)
        for one in stored["points"][0]["curve"]:
            (one["latency_p99_us"] or {}).pop("runs", None)
        db.execute("UPDATE experiments SET until = ? WHERE id = ?", (json.dumps(stored), experiment["id"]))
    assert own_daemon.unix.get(f"/experiments/{experiment['id']}")["search"] == stored


def test_rates_of_one_thing_follow_each_other(unix):
    """Its two instances are compared, so that they lie next to each other in each block, as in the closed loop."""
    experiment = searched(unix, SPEC | {"message_size": [64, 4096], "points": "twice"}, 0.1)
    runs = unix.items(f"/experiments/{experiment['id']}/runs")
    assert {run["rate"] is None for run in runs} == {True, False}
    for number in {run["block"] for run in runs}:
        sizes = [run["point"]["message_size"] for run in runs if run["block"] == number]
        changes = sum(a != b for a, b in zip(sizes, sizes[1:], strict=False))
        assert changes == len(set(sizes)) - 1, sizes


def test_what_compares_points_rests_on_the_closed_loop(unix, not_kept):
    """All rates are of one point, beside which they are not rows of a comparison or of the findings."""
    found = not_kept
    plain = unix.wait_final(unix.post(SPEC)["id"])
    answer = unix.get(f"/compare?baseline={plain['id']}&candidate={found['id']}")
    (row,) = answer["rows"]
    assert {figure["runs_candidate"] for figure in row["figures"].values() if figure} == {1}
    assert not answer["only_in_candidate"]
    findings = unix.get(f"/experiments/{found['id']}/findings")["items"]
    assert {row for finding in findings for row in finding["rows"]} <= {0}


def test_a_limit_that_no_rate_keeps(not_kept):
    (point,) = not_kept["search"]["points"]
    check_curve(point, 0.1)
    assert point["state"] == "none_kept" and point["highest_rate"] is None
    assert 3333 <= point["lowest_rate_not_kept"] <= 3500  # a window of 0.3 s has a thousand latencies, and few more


def test_three_repetitions_by_default(unix, long_run):
    spec = OF_PIPE | WINDOW | {"search": {"rate": {"latency_p99_below_us": 50}}}
    experiment = unix.post(spec)
    assert experiment["progress"]["runs_total"] == 3
    assert experiment["effective_spec"]["search"] == spec["search"]
    plan = unix.request("POST", "/experiments?dry_run=true", spec).json
    assert (plan["runs"], plan["runs_at_most"]) == (3, 3 * 33)
    unix.refused("POST", f"/experiments/{experiment['id']}/extend", 409, "not-extensible", {"blocks": 1})
    unix.request("POST", f"/experiments/{experiment['id']}/cancel")
    assert unix.get(f"/experiments/{experiment['id']}")["search"]["state"] == "cancelled"


SERVED = 5000  # messages per second: SERVICE_NS of tests/unit/throttled-agent.c


def go_first():
    """Before all programs that do not: a knee is of the machine, and this test is about the throttle."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


@pytest.fixture(scope="module")
def throttled():
    """A daemon whose agents receive that many messages per second in an open loop, and any number in a closed one."""
    try:
        subprocess.run(["true"], preexec_fn=go_first, check=True)
    except subprocess.SubprocessError:
        pytest.skip("may not use SCHED_RR, without which other programs move the knee")
    d = Daemon(f"--agent={BUILD / 'tests/unit/throttled-agent'}", preexec=go_first)
    yield d.unix
    d.remove()


@pytest.mark.alone
def test_a_known_knee_is_found(throttled):
    limit = 10000  # reached 2 % beyond that rate: so much overload makes the last message of half a second wait as long
    spec = {"transport": "pipe", "duration_seconds": 0.5, "warmup_seconds": 0}
    experiment = searched(throttled, spec, limit)
    (point,) = experiment["search"]["points"]
    check_curve(point, limit)
    assert point["state"] == "found"
    assert point["closed_loop_messages_per_second"] > 2 * SERVED
    assert point["highest_rate"] == pytest.approx(SERVED, rel=0.05), point
    assert point["lowest_rate_not_kept"] == pytest.approx(SERVED, rel=0.05), point
