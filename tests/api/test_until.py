# SPDX-License-Identifier: MIT
"""`until`: blocks are repeated until every row is known well enough, or as often as may be."""

import re
import statistics

import pytest
from conftest import SHORT

SMALL = {"transport": "pipe", "message_size": [64, 4096], "messages": 100, "warmup_seconds": 0}
NEVER = 0.0001  # no two runs are so alike


def finished(client, spec):
    experiment = client.wait_final(client.post(spec)["id"])
    assert experiment["state"] == "done", experiment
    return experiment


def widths(client, identity, figure):
    """From the table of results, as a person would."""
    found = []
    for row in client.get(f"/experiments/{identity}/results")["items"]:
        s = figure(row)
        found.append(max(s["ci95"][1] - s["median"], s["median"] - s["ci95"][0]) / s["median"])
    return found


def test_it_stops_at_the_first_look_that_is_good_enough(unix):
    # CPU time is what other programs disturb least
    goal = {"relative_ci": 1, "figure": "cpu_per_message"}
    posted = unix.post(SMALL | {"messages": 20000, "until": goal})
    assert posted["until"] == {
        "state": "running",
        "figure": "cpu_per_message",
        "relative_ci": 1,
        "max_repetitions": 60,
        "budget_seconds": None,
        "repetitions_asked": 6,
        "looks": [],
        "rows": None,
        "rows_reached": None,
        "rows_not_reached": [],
    }
    assert posted["progress"]["runs_total"] == 12
    assert posted["effective_spec"]["until"] == goal | {"max_repetitions": 60}
    assert "repetitions" not in posted["effective_spec"]
    experiment = unix.wait_final(posted["id"])
    until = experiment["until"]
    looks = [6, 9, 13, 19, 28, 41, 60]
    repetitions = experiment["progress"]["runs_done"] // 2
    assert until["state"] == "reached", experiment
    assert [look["repetitions"] for look in until["looks"]] == looks[: looks.index(repetitions) + 1]
    assert until["repetitions_asked"] == repetitions
    assert until["rows"] == until["rows_reached"] == until["looks"][-1]["rows_reached"] == 2
    assert all(look["rows_reached"] < 2 for look in until["looks"][:-1])
    assert until["rows_not_reached"] == []
    assert max(widths(unix, experiment["id"], lambda row: row["cpu_ns_per_message"])) <= 1
    runs = unix.items(f"/experiments/{experiment['id']}/runs")
    assert [run["block"] for run in runs] == sorted(2 * list(range(1, repetitions + 1)))


@pytest.mark.parametrize(
    ("figure", "value", "sizes"),
    [
        ("throughput", lambda row: row["throughput_bytes_per_second"], [64, 4096]),
        ("latency_p50", lambda row: row["latency_ns"]["p50"], [64, 4096]),
        ("latency_p99", lambda row: row["latency_ns"]["p99"], [64, 4096]),
        ("cpu_per_message", lambda row: row["cpu_ns_per_message"], [4096]),
    ],
)
def test_at_most_so_many_repetitions(unix, figure, value, sizes):
    goal = {"relative_ci": NEVER, "figure": figure, "max_repetitions": 7}
    spec = {"workload": "pingpong", "messages": 1000, "message_size": sizes, "until": goal}
    experiment = finished(unix, SMALL | spec)
    until = experiment["until"]
    assert until["state"] == "max_repetitions", experiment
    assert experiment["progress"]["runs_total"] == 7 * len(sizes)
    assert [look["repetitions"] for look in until["looks"]] == [6, 7]
    missed = until["rows_not_reached"]
    seen = sorted((w for w in widths(unix, experiment["id"], value) if w > NEVER), reverse=True)
    assert [row["relative_ci"] for row in missed] == pytest.approx(seen)
    assert until["rows_reached"] == len(sizes) - len(missed)
    assert [row["runs"] for row in missed] == [7] * len(missed)
    for row in missed:
        needed = 7 * (row["relative_ci"] / NEVER) ** 2
        if row["repetitions_needed"] is None:
            assert needed > 199 and "more than the 200 that an experiment with until can have" in row["reason"]
            told = re.search(r"about (\d+) repetitions", row["reason"])
            assert int(told[1]) == pytest.approx(needed, abs=1) if told else needed > 4e9
        else:
            assert row["repetitions_needed"] == pytest.approx(needed, abs=1) and row["repetitions_needed"] <= 200


def test_a_percentile_needs_messages_enough(unix):
    """Known before, where messages end the window; else what was measured has the reason."""
    goal = {"relative_ci": NEVER, "figure": "latency_p99", "max_repetitions": 6}
    few = SMALL | {"workload": "pingpong", "messages": 999, "until": goal}
    problem = unix.refused("POST", "/experiments", 422, "wrong-combination", few)
    assert problem["pointer"] == "/until/figure" and "fewer than 1000 latencies" in problem["detail"]
    few |= {"rate": 400, "duration_seconds": 0.6, "message_size": 64}
    del few["messages"]
    until = finished(unix, few)["until"]
    (row,) = until["rows_not_reached"]
    assert row["runs"] == 0 and row["relative_ci"] is None and "fewer than 1000 latencies" in row["reason"]


def test_a_pair_is_known_when_it_is_decided(unix):
    """A message of 64 KiB takes longer than one of a byte, however wide the intervals of both are."""
    goal = {"relative_ci": NEVER, "figure": "cpu_per_message", "compare": {"axis": "message_size", "baseline": 1}}
    spec = SMALL | {"message_size": [1, 65536], "messages": 3000, "until": goal}
    posted = unix.post(spec)
    assert posted["effective_spec"]["until"] == goal | {"max_repetitions": 60}
    assert posted["until"]["compare"] == goal["compare"] and posted["until"]["pairs"] is None
    until = unix.wait_final(posted["id"])["until"]
    assert until["state"] == "reached", until
    assert until["looks"][0]["repetitions"] == 6 and until["looks"][-1]["pairs_reached"] == 1
    assert all(look["pairs_reached"] == 0 for look in until["looks"][:-1])
    assert (until["pairs"], until["pairs_reached"], until["rows_reached"]) == (1, 1, None)
    assert until["verdicts"] == {"undecided": 0, "faster": 0, "slower": 1, "equivalent": 0}
    assert until["pairs_not_reached"] == []


def test_without_a_baseline_every_two_values_are_a_pair(unix):
    goal = {"relative_ci": NEVER, "figure": "latency_p99", "max_repetitions": 6, "compare": {"axis": "message_size"}}
    # No pair of six is decided by six blocks: a rank test of these has a p value of 2/64 at best, times six by Holm.
    spec = SMALL | {
        "workload": "pingpong",
        "messages": 1000,
        "message_size": [64, 512, 4096],
        "transport": ["pipe", "fifo"],
    }
    experiment = finished(unix, spec | {"until": goal})
    until = experiment["until"]
    assert experiment["effective_spec"]["until"]["compare"] == {"axis": "message_size"}
    assert until["compare"] == {"axis": "message_size", "baseline": None}
    assert (until["pairs"], until["pairs_reached"]) == (6, 0)
    found = [(p["baseline"], p["candidate"]) for p in until["pairs_not_reached"]]
    pairs = {(b["transport"], b["message_size"], c["message_size"]) for b, c in found}
    assert pairs == {(t, b, c) for t in ("pipe", "fifo") for b, c in ((64, 512), (64, 4096), (512, 4096))}
    assert all(baseline["transport"] == candidate["transport"] for baseline, candidate in found)


def test_a_pair_that_is_not_decided_has_what_it_takes(unix):
    goal = {"relative_ci": NEVER, "max_repetitions": 6, "compare": {"axis": "instance", "baseline": 1}}
    for _ in range(3):  # one of twenty pairs of equals is called different, which decides it
        until = finished(unix, SMALL | {"message_size": 64, "points": "twice", "until": goal})["until"]
        if until["state"] == "max_repetitions":
            break
    assert until["state"] == "max_repetitions" and until["pairs_reached"] == 0, until
    (pair,) = until["pairs_not_reached"]
    assert (pair["baseline"]["instance"], pair["candidate"]["instance"], pair["runs"]) == (1, 2, 6)
    assert pair["ratio"] > 0 and pair["relative_ci"] > NEVER
    if pair["repetitions_needed"] is None:  # on a busy machine
        assert "more than the 200" in pair["reason"]
    else:
        assert 6 < pair["repetitions_needed"] <= 200


def test_a_budget_ends_it(unix):
    spec = SHORT | {"until": {"relative_ci": NEVER, "budget_seconds": 4}}
    experiment = finished(unix, spec)
    until = experiment["until"]
    assert until["state"] == "budget" and until["budget_seconds"] == 4, experiment
    assert 1 <= experiment["progress"]["runs_done"] < 60
    assert len(until["rows_not_reached"]) == 1


def test_a_budget_for_less_than_the_first_look(unix):
    """By the estimate there is time for one block; its real duration shows how many there is time for."""
    experiment = finished(unix, SMALL | {"until": {"relative_ci": NEVER, "budget_seconds": 1}})
    looks = [look["repetitions"] for look in experiment["until"]["looks"]]
    assert experiment["until"]["state"] == "budget"
    assert looks[0] == 1 and looks == sorted(set(looks))
    assert experiment["progress"]["runs_done"] == 2 * looks[-1]


def test_of_calls_their_cost(unix):
    spec = {"workload": ["syscall", "context-switch"], "messages": 2000, "warmup_seconds": 0}
    experiment = finished(unix, spec | {"until": {"relative_ci": 1, "figure": "cost", "max_repetitions": 6}})
    assert experiment["until"]["rows"] == 2


def test_it_goes_on_where_it_is_extended(unix):
    identity = finished(unix, SMALL | {"until": {"relative_ci": NEVER, "max_repetitions": 6}})["id"]
    answer = unix.request("POST", f"/experiments/{identity}/extend", {"blocks": 2})
    assert answer.json["until"]["state"] == "running" and answer.json["progress"]["runs_total"] == 16
    experiment = unix.wait_final(identity)
    assert experiment["until"]["state"] == "max_repetitions"
    assert [look["repetitions"] for look in experiment["until"]["looks"]] == [6, 8]
    problem = unix.refused("POST", f"/experiments/{identity}/extend", 422, "limit-exceeded", {"blocks": 193})
    assert problem["limit"] == {"name": "repetitions", "value": 200} and problem["value"] == 201


def test_what_was_added_after_it_was_over_is_told(unix):
    """Far below max_repetitions: `until` has not asked for it."""
    goal = {"relative_ci": 1, "figure": "cpu_per_message"}
    first = finished(unix, SMALL | {"messages": 20000, "until": goal})
    identity, ended = first["id"], first["until"]
    assert ended["state"] == "reached" and ended["looks"][-1]["repetitions"] <= 41, ended
    query = f"/compare?experiment={identity}&axis=message_size&baseline=64&candidate=4096"

    def told():
        answer, findings = unix.get(query), unix.get(f"/experiments/{identity}/findings")["items"]
        doubts = [item["sentence"] for item in findings if item["reason"] == "repetitions-added"]
        return [answer[side]["repetitions_added"] for side in ("baseline", "candidate")], doubts

    assert told() == ([0, 0], [])
    unix.request("POST", f"/experiments/{identity}/extend", {"blocks": 3})
    asked = unix.wait_final(identity)["until"]["repetitions_asked"]
    added, (doubt,) = told()
    assert added == [3, 3] and doubt.startswith(f"3 repetitions were added to the {asked} that were planned."), doubt


def test_cancelled_has_its_state_and_retried_continues(unix, long_run):
    identity = unix.post(SMALL | {"until": {"relative_ci": NEVER, "max_repetitions": 7}})["id"]
    unix.request("POST", f"/experiments/{identity}/cancel")
    assert unix.get(f"/experiments/{identity}")["until"]["state"] == "cancelled"
    retried = unix.request("POST", f"/experiments/{identity}/retry").json
    assert retried["until"]["state"] == "running"
    unix.request("POST", f"/experiments/{long_run['id']}/cancel")
    experiment = unix.wait_final(identity)
    assert (experiment["state"], experiment["until"]["state"]) == ("done", "max_repetitions")
    assert experiment["progress"]["runs_done"] == 14


def test_rows_that_only_fail_end_it(unix):
    spec = SMALL | {"message_size": 64, "require": {"swappiness": -1}, "until": {"max_repetitions": 60}}
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert (experiment["state"], experiment["until"]["state"]) == ("failed", "failed")
    assert experiment["progress"]["runs_failed"] == 6


def test_a_dry_run_has_the_most_runs(unix):
    spec = SMALL | {"until": {"max_repetitions": 20}}
    plan = unix.request("POST", "/experiments?dry_run=true", spec).json
    assert (plan["runs"], plan["runs_at_most"]) == (12, 40)
    assert plan["effective_spec"]["until"] == {"relative_ci": 0.02, "figure": "throughput", "max_repetitions": 20}
    assert plan["estimated_seconds_at_most"] == pytest.approx(plan["estimated_seconds"] * 20 / 6)
    spec["until"]["budget_seconds"] = 7
    plan = unix.request("POST", "/experiments?dry_run=true", spec).json
    assert plan["estimated_seconds"] <= plan["estimated_seconds_at_most"] == 7


def test_medians_are_of_the_runs(unix):
    """What `until` looks at is what the results show."""
    experiment = finished(unix, SMALL | {"message_size": 64, "until": {"relative_ci": NEVER, "max_repetitions": 6}})
    runs = unix.items(f"/experiments/{experiment['id']}/runs")
    values = sorted(run["result"]["throughput_bytes_per_second"] for run in runs)
    median = statistics.median_low(values)
    (row,) = experiment["until"]["rows_not_reached"]
    assert row["relative_ci"] == pytest.approx(max(values[-1] - median, median - values[0]) / median)
