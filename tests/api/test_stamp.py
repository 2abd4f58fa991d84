# SPDX-License-Identifier: MIT
"""`stamp`: whether the messages of a stream over TCP carry the time of their sending. Without it no clock is read for a
message and there is no latency; what reading it costs is beside the latency that it gives."""

import pytest

SPEC = {"transport": "tcp", "message_size": 4096, "messages": 300, "warmup_seconds": 0}


def done_runs(client, spec):
    experiment = client.wait_final(client.post(SPEC | spec)["id"])
    assert experiment["state"] == "done", experiment
    return client.items(f"/experiments/{experiment['id']}/runs"), client.items(
        f"/experiments/{experiment['id']}/results"
    )


def stamped(run):
    return [agent["effective"]["stamp"] for agent in run["agents"]]


@pytest.mark.parametrize("given", [{}, {"stamp": False}])
def test_off_by_default(unix, given):
    runs, rows = done_runs(unix, given | {"direction": ["down", "up", "both"], "verify": "checksum"})
    assert len(runs) == len(rows) == 3
    for run in runs:
        result = run["result"]
        assert result["latency_ns"] is None and result["latency_reason"].startswith("stamp is off"), result
        assert result["stamp_cost"] is None and result["stamp_cost_reason"] == "no message carries a time"
        assert result["effective"]["stamp"] is False and stamped(run) == [False, False]
        assert all(agent["effective"]["latency_every_messages"] is None for agent in run["agents"])
    for row in rows:
        assert row["latency_ns"] is None and row["reasons"]["latency_ns"].startswith("stamp is off"), row
        assert row["effective"]["stamp"] is False


@pytest.mark.parametrize(("size", "every"), [(4096, 1), (1024, 4)])
def test_on_it_has_latencies_and_their_cost(unix, size, every):
    runs, rows = done_runs(unix, {"stamp": True, "message_size": size, "threads": 2})
    (run,), (row,) = runs, rows
    result = run["result"]
    cost, latency = result["stamp_cost"], result["latency_ns"]
    assert latency["kind"] == "one_way" and row["latency_ns"]["kind"] == "one_way"
    assert cost["messages"] == latency["count"] == 2 * -(-150 // every)
    assert cost["clock_cost_ns"] == max(agent["effective"]["clock_cost_ns"] for agent in run["agents"]) > 0
    window = min(result[agent["role"]]["window_ns"] for agent in run["agents"])
    assert cost["window_share"] == pytest.approx(cost["messages"] * cost["clock_cost_ns"] / (2 * window))
    assert 0 < cost["window_share"] < 1
    assert result["effective"]["stamp"] is row["effective"]["stamp"] is True and stamped(run) == [True, True]


def test_with_a_rate_the_schedule_has_the_times(unix):
    """Except both ways, where messages carry their due time, which is said."""
    runs, _ = done_runs(unix, {"rate": 3000, "messages": 60, "direction": ["down", "both"]})
    assert [run["result"]["latency_ns"]["count"] for run in runs] in ([60, 120], [120, 60])
    for run in runs:
        both = run["point"]["direction"] == "both"
        assert stamped(run) == [both, both]
        assert (run["result"]["stamp_cost"] is not None) == both
        assert ("stamp_reason" in run["result"]["effective"]) == both


def test_other_transports_have_none(unix):
    runs, _ = done_runs(unix, {"transport": ["pipe", "tcp"], "stamp": True})
    for run in runs:
        tcp = run["point"]["transport"] == "tcp"
        assert (run["result"]["latency_ns"] is not None) == tcp
        assert ("stamp" in run["result"]["effective"]) == tcp


def test_it_is_in_the_effective_spec(unix):
    for given, wanted in (({}, {}), ({"stamp": False}, {}), ({"stamp": True}, {"stamp": True})):
        experiment = unix.post(SPEC | given)
        effective = experiment["effective_spec"]
        assert {name: effective[name] for name in effective if name == "stamp"} == wanted
        unix.wait_final(experiment["id"])
