# SPDX-License-Identifier: MIT
"""The latencies of a run and of a row of results, whole, read by an implementation of HdrHistogram that is not ours."""

import csv
import io
import math

import pytest
from client import PATIENCE_SECONDS
from conftest import SHORT
from hdrh.histogram import HdrHistogram

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}


@pytest.fixture(scope="module")
def timed(daemon):
    """Two round trips' worth of points, and one that times nothing."""
    spec = SHORT | {"workload": ["pingpong", "stream"], "message_size": 64, "repetitions": 3}
    experiment = daemon.unix.wait_final(daemon.unix.post(spec)["id"], PATIENCE_SECONDS)
    assert experiment["state"] == "done"
    return experiment["id"]


def value_at(histogram, quantile):
    """The nearest rank's, by the decoder's own iteration over what it counted."""
    rank, seen = max(1, math.ceil(math.nextafter(quantile, 0) * histogram.get_total_count())), 0
    for item in histogram.get_recorded_iterator():
        seen += item.count_added_in_this_iter_step
        if seen >= rank:
            return item.value_iterated_to
    raise AssertionError(f"{rank} of {seen}")


def check(distribution):
    """Decoded, it has the same counts, and each percentile lies in the same bucket."""
    histogram = HdrHistogram.decode(distribution["histogram"])
    assert histogram.get_total_count() == distribution["count"]

    def same(value, other):
        assert histogram.values_are_equivalent(value, other), (value, other)

    for name, quantile in PERCENTILES.items():
        same(distribution[name], value_at(histogram, quantile))
    same(distribution["min"], histogram.get_min_value())
    same(distribution["max"], histogram.get_max_value())
    assert histogram.get_mean_value() == pytest.approx(distribution["mean"], rel=0.01)
    *ticks, last = distribution["percentiles"]
    assert [tick["nines"] for tick in ticks] == [i / 10 for i in range(len(ticks))]
    assert (
        10 ** ticks[-1]["nines"] <= distribution["count"] * (1 + 1e-9) < 10 ** (ticks[-1]["nines"] + 0.1) * (1 + 1e-9)
    )
    for tick in ticks:
        assert tick["quantile"] == pytest.approx(1 - 10 ** -tick["nines"])
        same(tick["value_ns"], value_at(histogram, tick["quantile"]))
    assert last == {"nines": None, "quantile": 1, "value_ns": distribution["max"]}
    return histogram


def test_a_run_has_its_histogram(unix, timed):
    for run in unix.items(f"/experiments/{timed}/runs"):
        answer = unix.get(f"/runs/{run['id']}/histogram")
        assert (answer["run_id"], answer["experiment_id"], answer["point"]) == (run["id"], timed, run["point"])
        if run["point"]["workload"] == "stream":
            assert answer["latency_histogram"] is None
            assert answer["latency_histogram_reason"] == run["result"]["latency_reason"]
            continue
        check(answer["latency_histogram"])
        for name, value in run["result"]["latency_ns"].items():
            assert answer["latency_histogram"][name] == value


def test_a_row_has_the_latencies_of_its_runs_together(unix, timed):
    stream, pingpong = None, None
    for row in unix.get(f"/experiments/{timed}/results?histogram=1")["items"]:
        if row["point"]["workload"] == "stream":
            stream = row
        else:
            pingpong = row
    assert stream["latency_histogram"] is None
    merged = check(pingpong["latency_histogram"])
    runs = [
        HdrHistogram.decode(unix.get(f"/runs/{run['id']}/histogram")["latency_histogram"]["histogram"])
        for run in unix.items(f"/experiments/{timed}/runs")
        if run["point"]["workload"] == "pingpong"
    ]
    assert len(runs) == 3
    together = HdrHistogram(1, 100_000_000_000, 2)
    for run in runs:
        together.add(run)
    assert together.encode() == merged.encode()
    for row in unix.get(f"/experiments/{timed}/results?histogram=0")["items"]:
        assert "latency_histogram" not in row


def test_the_p99_of_a_row_is_of_its_runs(unix, timed):
    """Not of all messages together: the latter knows nothing of how runs differ."""
    rows = unix.get(f"/experiments/{timed}/results")["items"]
    (row,) = [row for row in rows if row["point"]["workload"] == "pingpong"]
    runs = [run for run in unix.items(f"/experiments/{timed}/runs") if run["point"]["workload"] == "pingpong"]
    for name in PERCENTILES:
        values = sorted(run["result"]["latency_ns"][name] for run in runs)
        found = row["latency_ns"][name]
        assert (found["n"], found["min"], found["median"], found["max"]) == (3, *values)


def test_csv_has_it_before_where_it_is_from(unix, timed):
    path = f"/experiments/{timed}/results"
    answer = unix.request("GET", f"{path}?histogram=1", headers={"Accept": "text/csv"})
    plain = unix.request("GET", path, headers={"Accept": "text/csv"})
    table = list(csv.DictReader(io.StringIO(answer.body.decode(), newline="")))
    assert list(table[0])[-7:-5] == ["latency_histogram", "experiment"] and b"latency_histogram" not in plain.body
    rows = unix.get(f"{path}?histogram=1")["items"]
    for line, row in zip(table, rows, strict=True):
        assert None not in line
        latency = row["latency_histogram"]
        assert line["latency_histogram"] == (latency["histogram"] if latency else "")


def test_scatter_over_the_runs(unix, timed):
    """n, the coefficient of variation, and Hodges and Lehmann's estimate, from the runs as they are shown."""
    (row,) = [row for row in unix.get(f"/experiments/{timed}/results")["items"] if row["point"]["workload"] == "stream"]
    a, b, c = sorted(
        run["result"]["throughput_bytes_per_second"]
        for run in unix.items(f"/experiments/{timed}/runs")
        if run["point"]["workload"] == "stream"
    )
    found = row["throughput_bytes_per_second"]
    mean = (a + b + c) / 3
    deviation = math.sqrt(sum((x - mean) ** 2 for x in (a, b, c)) / 2)
    walsh = sorted((x + y) / 2 for x, y in ((a, a), (a, b), (a, c), (b, b), (b, c), (c, c)))
    assert found["n"] == 3
    assert found["cov"] == pytest.approx(deviation / mean, rel=1e-9)
    assert found["hodges_lehmann"] == pytest.approx((walsh[2] + walsh[3]) / 2, rel=1e-12)


def test_no_percentile_is_an_average(unix, timed):
    """Nor is the least or the greatest latency: of two runs' means only is there a mean."""
    rows = unix.get(f"/experiments/{timed}/results")["items"]
    (row,) = [row for row in rows if row["point"]["workload"] == "pingpong"]
    for group in ("latency_ns", "latency_one_way_ns"):
        figures = {name: found for name, found in row[group].items() if name != "kind"}
        assert [name for name, found in figures.items() if found["hodges_lehmann"] is not None] == ["mean"]
        assert all(found["cov"] is not None for found in figures.values())


def test_bad_questions(unix, timed):
    unix.refused("GET", f"/experiments/{timed}/results?histogram=2", 400, "bad-parameter")
    unix.refused("GET", "/runs/999999999/histogram", 404, "not-found")
