# SPDX-License-Identifier: MIT
"""Experiments with a rate over TCP: an admitted one runs, keeps to the schedule and reports its rate."""

import csv
import io

import pytest

RATE = 400


def engines(unix):
    (tcp,) = [t for t in unix.get("/transports")["items"] if t["name"] == "tcp"]
    return [name for name, engine in tcp["engines"].items() if engine["available"]]


@pytest.mark.parametrize("workload", ["stream", "pingpong"])
def test_rate_over_tcp(unix, workload):
    spec = {
        "name": "open loop",
        "workload": workload,
        "transport": "tcp",
        "engine": engines(unix),
        "copy_mode": ["two-copy", "one-copy", "zero-copy"],
        "threads": 2,
        "message_size": 4096,
        "messages": 60,
        "warmup_seconds": 0,
        "rate": RATE,
    }
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert experiment["state"] == "done", experiment
    runs = unix.items(f"/experiments/{experiment['id']}/runs")
    assert len(runs) == 3 * len(spec["engine"])
    for run in runs:
        result = run["result"]
        assert result["loop"] == "open"
        assert result["messages"] == result["latency_ns"]["count"] == 60
        assert result["latency_ns"]["kind"] == ("rtt" if workload == "pingpong" else "one_way")
        assert result["window_ns"] >= 59 / RATE * 1e9  # the threads take turns


@pytest.mark.parametrize("transport", ["pipe", "tcp"])
def test_round_trips_are_the_messages_of_their_window(unix, transport):
    """A round trip is timed until the next one begins, so that one may lie across either edge; the messages that end
    while the histogram is copied are few, however busy the machine is."""
    spec = {"workload": "pingpong", "transport": transport, "duration_seconds": 0.5, "warmup_seconds": 0.1}
    experiment = unix.wait_final(unix.post(spec | {"repetitions": 5})["id"])
    for run in unix.items(f"/experiments/{experiment['id']}/runs"):
        result, first = run["result"], run["agents"][0]["role"]
        assert result["measured_by"] == first and result["messages"] == result[first]["messages"]
        assert abs(result["messages"] - result["latency_ns"]["count"]) <= 4


@pytest.mark.parametrize("rate", [None, RATE])
def test_half_of_a_round_trip_from_when_it_was_due_is_no_figure(unix, rate):
    """Time before the sending has no way back."""
    spec = {"workload": "pingpong", "messages": 60, "warmup_seconds": 0} | ({"rate": rate} if rate else {})
    path = f"/experiments/{unix.wait_final(unix.post(spec)['id'])['id']}"
    (run,) = unix.items(f"{path}/runs")
    (row,) = unix.get(f"{path}/results")["items"]
    table = unix.request("GET", f"{path}/results?columns=all", headers={"Accept": "text/csv"})
    (line,) = csv.DictReader(io.StringIO(table.body.decode(), newline=""))
    assert run["result"]["latency_ns"]["kind"] == row["latency_ns"]["kind"] == line["latency_kind"] == "rtt"
    halves = {name: text for name, text in line.items() if name.startswith("latency_one_way")}
    if rate is None:
        assert run["result"]["latency_one_way_ns"]["p50"] == run["result"]["latency_ns"]["p50"] // 2
        assert row["latency_one_way_ns"] and float(halves["latency_one_way_us_mean_median"]) > 0
        return
    assert run["result"]["latency_one_way_ns"] is None and row["latency_one_way_ns"] is None
    assert run["result"]["latency_one_way_ns_reason"] == row["reasons"]["latency_one_way_ns"]
    assert "open loop" in row["reasons"]["latency_one_way_ns"]
    assert len(halves) > 5 and not any(halves.values())


def test_rate_is_of_messages(unix):
    """A workload without messages beside one with messages is in a closed loop, and its row has "closed"."""
    spec = {"workload": ["stream", "syscall"], "rate": 1000, "messages": 100, "warmup_seconds": 0}
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert experiment["state"] == "done", experiment
    runs = unix.items(f"/experiments/{experiment['id']}/runs")
    loops = {run["point"]["workload"]: run["result"]["loop"] for run in runs}
    assert loops == {"stream": "open", "syscall": "closed"}
    rows = {row["point"]["workload"]: row for row in unix.get(f"/experiments/{experiment['id']}/results")["items"]}
    assert {workload: row["loop"] for workload, row in rows.items()} == loops
    assert [rows[name]["effective"].get("rate") for name in ("stream", "syscall")] == [1000, None]
    assert [rows[name]["verify"] for name in ("stream", "syscall")] == ["touch", None]
    assert "verify" in rows["syscall"]["reasons"] and "verify" not in rows["stream"]["reasons"]


def test_rate_out_of_reach(unix):
    """A billion messages a second is more than any transport moves: the figures have the requested rate."""
    spec = {"rate": 1e9, "messages": 1000, "warmup_seconds": 0}
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert experiment["state"] == "done", experiment
    path = f"/experiments/{experiment['id']}"
    (run,) = unix.items(f"{path}/runs")
    (row,) = unix.get(f"{path}/results")["items"]
    assert "rate_not_reached" in run["flags"] and "rate_not_reached" in row["flags"]
    assert run["result"]["effective"]["rate"] == row["effective"]["rate"] == 1e9
    table = unix.request("GET", f"{path}/results?columns=all", headers={"Accept": "text/csv"})
    (line,) = csv.DictReader(io.StringIO(table.body.decode(), newline=""))
    assert float(line["effective_rate"]) == 1e9
