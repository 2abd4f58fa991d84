# SPDX-License-Identifier: MIT
"""Runs, results and samples of a finished experiment, in every form they come in."""

import csv
import io
import json
import re

import pytest
from client import Events
from conftest import SHORT
from hdrh.histogram import HdrHistogram


def table(text):
    return list(csv.DictReader(io.StringIO(text.decode(), newline="")))


def test_runs_have_their_results(client, done):
    runs = client.items(f"/experiments/{done['id']}/runs")
    assert [run["position"] for run in runs] == [0, 1, 2, 3]
    assert sorted((run["point"]["workload"], run["repetition"]) for run in runs) == [
        ("pingpong", 1),
        ("pingpong", 2),
        ("stream", 1),
        ("stream", 2),
    ]
    for run in runs:
        assert run["state"] == "done" and run["attempt"] == 1 and run["error"] is None
        assert run["experiment_id"] == done["id"]
        roles = {agent["role"] for agent in run["agents"]}
        assert roles == ({"sender", "receiver"} if run["point"]["workload"] == "stream" else {"initiator", "responder"})
        for agent in run["agents"]:
            assert agent["pid"] > 0 and agent["proof"] is not None
        assert run["result"]["throughput_bytes_per_second"] > 0
        assert isinstance(run["result"]["messages"], int) and isinstance(run["result"]["window_ns"], int)
        assert run == client.get(f"/runs/{run['id']}")


def test_runs_are_paged(unix, done):
    path = f"/experiments/{done['id']}/runs"
    answer = unix.request("GET", f"{path}?limit=3")
    assert len(answer.json["items"]) == 3
    assert answer.headers["Link"] == f'<{path}?limit=3&cursor={answer.json["next"]}>; rel="next"'
    assert unix.items(f"{path}?limit=3") == unix.items(path) == unix.items(f"{path}?limit=1")
    for cursor in ("r-4", "r-999999999999999999"):
        beyond = unix.get(f"{path}?cursor={cursor}")
        assert beyond["items"] == [] and beyond["next"] is None
    unix.refused("GET", f"{path}?cursor=r-9999999999999999999", 400, "bad-parameter")


def test_a_page_of_runs_without_a_limit_is_as_long_as_one_of_experiments(unix):
    """A run has kilobytes of JSON: a thousand of them are megabytes that few have asked for. A table has every run."""
    stopped = unix.post(SHORT | {"message_size": 64, "repetitions": 60})["id"]
    unix.request("POST", f"/experiments/{stopped}/cancel")
    unix.wait_final(stopped)
    path = f"/experiments/{stopped}/runs"
    answer = unix.request("GET", path)
    assert [run["position"] for run in answer.json["items"]] == list(range(50))
    assert answer.headers["Link"] == f'<{path}?limit=50&cursor={answer.json["next"]}>; rel="next"'
    assert len(unix.items(path)) == 60 == len(unix.get(f"{path}?limit=1000")["items"])
    assert len(table(unix.request("GET", path, headers={"Accept": "text/csv"}).body)) == 60


def test_results_have_a_row_per_point(client, done):
    results = client.get(f"/experiments/{done['id']}/results")
    assert results["next"] is None
    assert [row["point"]["workload"] for row in results["items"]] == ["stream", "pingpong"]
    for row in results["items"]:
        assert row["runs"] == row["runs_planned"] == 2 and row["runs_failed"] == 0
        rate = row["throughput_bytes_per_second"]
        assert 0 < rate["min"] <= rate["median"] <= rate["max"]
        assert rate["ci95"] is None  # two repetitions claim no interval
    latency = results["items"][1]["latency_ns"]
    assert latency["kind"] == "rtt"
    assert 0 < latency["min"]["min"] <= latency["p50"]["median"] <= latency["p99"]["median"] <= latency["max"]["max"]


def test_results_as_csv_are_the_same(client, done):
    answer = client.request("GET", f"/experiments/{done['id']}/results?columns=all", headers={"Accept": "text/csv"})
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"
    assert answer.body.endswith(b"\r\n")
    rows = client.get(f"/experiments/{done['id']}/results")["items"]
    for line, row in zip(table(answer.body), rows, strict=True):
        assert None not in line and None not in line.values()  # as many fields as the header has
        for key, value in row["point"].items():
            assert line[key] == (value if isinstance(value, str) else json.dumps(value, separators=(",", ":")))
        assert int(line["runs"]) == row["runs"]
        assert float(line["throughput_bytes_per_second_median"]) == row["throughput_bytes_per_second"]["median"]
        assert line["throughput_bytes_per_second_ci95_low"] == ""
        if row["latency_ns"]:
            assert line["latency_kind"] == row["latency_ns"]["kind"]
            assert float(line["latency_ns_p99_9_max"]) == row["latency_ns"]["p99_9"]["max"]
        for word in ("loop", "verify", "counted_by"):
            assert line[word] == row[word]
        assert line["steady"] == {True: "true", False: "false", None: ""}[row["steady"]]
        assert line["flags"].split() == row["flags"] == list(row["flag_runs"])


STATISTICS = ("median", "min", "max", "level", "widening", "n", "cov", "hodges_lehmann")


def check_statistics(line, schema, row, prefix=""):
    """Every member of each statistic of the row, in its column; how many figures there were."""
    n = 0
    for name, figure in schema.items():
        if "x-unit" not in figure:
            kept = {one: of for one, of in figure["properties"].items() if one != "kind"}
            n += check_statistics(line, kept, row[name] or {}, f"{name}_")
            continue
        stated = row.get(name) or {}
        expected = {one: stated.get(one) for one in STATISTICS}
        expected |= dict(zip(("ci95_low", "ci95_high"), stated.get("ci95") or (None, None), strict=True))
        assert set(stated) - {"ci95", "ci95_reason"} <= set(STATISTICS)
        for one, value in expected.items():
            cell = line[f"{prefix}{name}_{one}"]
            assert (float(cell) if cell else None) == value, (name, one)
        n += 1
    return n


def test_every_statistic_has_a_column(unix):
    """The row has enough runs for their correlation to be known."""
    spec = {"workload": "pingpong", "messages": 50, "warmup_seconds": 0, "repetitions": 12}
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert experiment["state"] == "done", experiment
    path = f"/experiments/{experiment['id']}/results"
    schema = unix.openapi["components"]["schemas"]["ResultFigures"]["properties"]
    every = unix.request("GET", f"{path}?columns=all", headers={"Accept": "text/csv"}).body
    rows = unix.get(path)["items"]
    assert all(row["throughput_bytes_per_second"]["n"] == 12 for row in rows)
    for line, row in zip(table(every), rows, strict=True):
        assert check_statistics(line, schema, row) > 40
        judged = row["autocorrelation"]
        assert line["autocorrelation_figure"] == judged["figure"]
        for name in ("lag1", "effective_runs"):
            assert float(line[f"autocorrelation_{name}"]) == judged[name]
        interval = judged["interval"] or {}
        for name in ("low", "high", "level"):
            cell = line[f"autocorrelation_interval_{name}"]
            assert (float(cell) if cell else None) == interval.get(name)
        assert json.loads(line["flag_runs"] or "{}") == row["flag_runs"]
        scaled = [name for name in line if name.startswith("throughput_gbit_per_second_")]
        assert {name.removeprefix("throughput_gbit_per_second_") for name in scaled} == {
            "median", "min", "max", "ci95_low", "ci95_high", "hodges_lehmann"
        }  # fmt: skip


PROVENANCE = ["experiment", "host", "kernel", "version", "date", "seed"]


def told_of(client, experiment):
    """The expected provenance, from the experiment and its first run."""
    experiment = client.get(f"/experiments/{experiment}")
    before = client.items(f"/experiments/{experiment['id']}/runs")[0]["environment"]["before"]
    return {
        "experiment": experiment["id"],
        "host": before["hostname"],
        "kernel": before["kernel_release"],
        "version": experiment["version"],
        "date": experiment["started_at"],
        "seed": experiment["seed"],
    }


def test_every_table_has_its_provenance(client, done):
    expected = told_of(client, done["id"])
    for name in ("results", "results?columns=all", "runs", "samples"):
        path = f"/experiments/{done['id']}/{name}"
        rows = table(client.request("GET", path, headers={"Accept": "text/csv"}).body)
        assert rows
        for row in rows:
            assert list(row)[-6:] == PROVENANCE
            assert {key: row[key] for key in PROVENANCE} == {key: str(value) for key, value in expected.items()}
        provenance = client.get(path.split("?")[0])["provenance"]
        assert {key: provenance[key] for key in PROVENANCE} == expected and provenance["name"] == done["name"]
        units = provenance["units"]
        assert units["throughput_bytes_per_second"] == "bytes/s" and units["latency_ns"] == "ns"
    run = client.items(f"/experiments/{done['id']}/runs")[0]
    for of_run in ("samples", "histogram"):
        assert client.get(f"/runs/{run['id']}/{of_run}")["provenance"]["experiment"] == done["id"]
    findings = f"/experiments/{done['id']}/findings"
    provenance = client.get(findings)["provenance"]
    assert {key: provenance[key] for key in PROVENANCE} == expected
    text = client.request("GET", findings, headers={"Accept": "text/markdown"}).body.decode()
    for key in ("kernel", "version", "date", "seed"):
        assert re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", str(expected[key])) in text, key


def members_once(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), names
    return dict(pairs)


@pytest.mark.parametrize("name", ["", "/runs", "/results", "/results?histogram=1", "/samples", "/findings"])
def test_no_object_has_a_member_twice(client, done, name):
    answer = client.request("GET", f"/experiments/{done['id']}{name}")
    assert answer.status == 200
    json.loads(answer.body, object_pairs_hook=members_once)


def test_each_figure_of_a_row_has_its_unit(client, done):
    results = client.get(f"/experiments/{done['id']}/results")
    row = results["items"][0]
    figures = {name for name, value in row.items() if isinstance(value, dict) and "median" in value}
    assert "cpu_ns_per_message" in figures and "cpu_ns_per_message_sender" in figures
    assert figures <= set(results["provenance"]["units"])


def test_before_the_first_run_nothing_is_known_of_the_host(unix, long_run):
    waiting = unix.post({"transport": "pipe", "duration_seconds": 0.1})
    waiting_from = unix.get(f"/experiments/{waiting['id']}/results")["provenance"]
    assert [waiting_from[key] for key in ("host", "kernel", "date")] == [None] * 3
    (row,) = table(unix.request("GET", f"/experiments/{waiting['id']}/runs", headers={"Accept": "text/csv"}).body)
    assert row["state"] == "queued" and row["host"] == row["date"] == row["throughput_bytes_per_second"] == ""
    unix.request("POST", f"/experiments/{waiting['id']}/cancel")


def test_usual_columns_are_few_and_of_the_table(client, done, unix):
    """Those whose figures are usual and that the workloads can have, by their medians; an unknown choice is refused."""
    path = f"/experiments/{done['id']}/results"
    usual = client.request("GET", path, headers={"Accept": "text/csv"}).body
    assert usual == client.request("GET", f"{path}?columns=usual", headers={"Accept": "text/csv"}).body
    every = client.request("GET", f"{path}?columns=all", headers={"Accept": "text/csv"}).body
    few, all_ = table(usual), table(every)
    figures = unix.openapi["components"]["schemas"]["ResultFigures"]["properties"]
    expected = []
    for name, figure in figures.items():
        members = {name: figure} if "x-unit" in figure else figure["properties"]
        prefix = "" if "x-unit" in figure else f"{name}_"
        for one, schema in members.items():
            if schema.get("x-usual") and {"stream", "pingpong"} & set(schema.get("x-workloads", ["stream"])):
                expected.append(f"{prefix}{one}_median")
    assert [column for column in few[0] if column.endswith("_median")] == expected
    assert {"latency_one_way_ns_p50_median", "latency_ns_p99_median"} < set(expected) and "cost_ns_median" in all_[0]
    assert "cost_ns_median" not in expected and "reasons" not in few[0]
    assert len(few[0]) < 30 < 180 < len(all_[0])
    for row, wide in zip(few, all_, strict=True):
        assert row == {name: wide[name] for name in row}
    client.refused("GET", f"{path}?columns=some", 400, "bad-parameter")


# The columns of a study beside those of any experiment, which are two dozen and the axes that it has.
OF_STUDIES = {
    "pipe-block-sweep": ["throughput_mib_per_second"],
    "fifo-numa-quick": ["operations_per_second"],
    "syscall-and-switch-quick": ["context_switch_us"],
    "tcp-copy-modes-quick": ["throughput_gbit_per_second", "latency_us_mean", "cycles_per_byte_sender",
                             "cycles_per_message_sender", "l1d_read_misses_per_message_sender",
                             "llc_misses_per_message_sender", "context_switches_per_message_sender"],
    "ipc-4mib": ["both_ways_gbit_per_second", "latency_one_way_ms_mean"],
}  # fmt: skip


def header(client, spec, columns="usual"):
    """The header of the CSV of an experiment that is stopped at once."""
    identity = client.post(spec)["id"]
    client.request("POST", f"/experiments/{identity}/cancel")
    answer = client.request("GET", f"/experiments/{identity}/results?columns={columns}", headers={"Accept": "text/csv"})
    return answer.body.decode().split("\r\n")[0].split(",")


def test_a_study_has_its_own_figures_in_its_own_units(unix):
    for preset, own in OF_STUDIES.items():
        names = [f"{name}_median" for name in own]
        few, every = header(unix, {"preset": preset}), header(unix, {"preset": preset}, "all")
        study = preset.removesuffix("-quick")
        others = {f"{name}_median" for key, of in OF_STUDIES.items() for name in of if not key.startswith(study)}
        assert set(names) <= set(few) <= set(every) and not others & set(few)
        assert len(few) - len(own) <= 26, (preset, few)


def test_a_field_that_nobody_chose_is_no_usual_column(unix):
    """A plain experiment has two dozen columns; an axis is one where it has another value than the standard one."""
    plain = header(unix, {"transport": "pipe"})
    assert 20 <= len(plain) <= 24 and plain[:5] == ["workload", "transport", "message_size", "threads", "placement"]
    chosen = header(unix, {"transport": "pipe", "engine": ["syscall", "io_uring"], "source": "cold"})
    assert [name for name in chosen if name not in plain] == ["engine", "source"]
    assert {"copy_mode", "engine", "source", "runs_planned"} <= set(header(unix, {"transport": "pipe"}, "all"))


def test_columns_of_a_point_are_those_that_its_workloads_have(unix):
    """Known from the spec, before a row is read: every field that any point has, and no other."""
    for spec in (
        {"workload": ["syscall", "stream"], "transport": ["pipe", "shm-posix"]},
        {"workload": "context-switch", "processes": [2, 3]},
        {"transport": "tcp", "direction": ["up", "down"], "copy_mode": ["two-copy", "one-copy"]},
    ):
        experiment = unix.post(spec | {"messages": 100, "warmup_seconds": 0})
        unix.wait_final(experiment["id"])
        runs = unix.items(f"/experiments/{experiment['id']}/runs")
        fields = {field for run in runs for field in run["point"]}
        for name in ("results?columns=all", "runs", "samples"):
            answer = unix.request("GET", f"/experiments/{experiment['id']}/{name}", headers={"Accept": "text/csv"})
            properties = unix.openapi["components"]["schemas"]["Point"]["properties"]
            assert {column for column in table(answer.body)[0] if column in properties} == fields, (name, spec)


def test_runs_as_csv_are_the_same(client, done):
    path = f"/experiments/{done['id']}/runs"
    answer = client.request("GET", path, headers={"Accept": "text/csv"})
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
    runs = client.items(path)
    for line, run in zip(table(answer.body), runs, strict=True):
        assert None not in line and None not in line.values()
        for name in ("id", "position", "repetition", "attempt"):
            assert int(line[name]) == run[name]
        for name in ("state", "started_at", "finished_at"):
            assert line[name] == run[name]
        result = run["result"]
        assert float(line["throughput_bytes_per_second"]) == result["throughput_bytes_per_second"]
        assert int(line["window_ns"]) == result["window_ns"]
        latency = result["latency_ns"]
        assert line["latency_ns_p99"] == ("" if latency is None else str(latency["p99"]))
        of_one = result[result["counted_by"]]["context_switches_per_message"]
        assert float(line["context_switches_per_message_sender"]) == of_one
        assert line["flags"].split() == run["flags"] and line["error"] == ""
        assert line["workload"] == run["point"]["workload"]
    paged = client.request("GET", f"{path}?limit=3", headers={"Accept": "text/csv"})
    assert len(table(paged.body)) == 3 and 'rel="next"' in paged.headers["Link"]


def test_samples_as_csv_have_the_point(client, done):
    runs = {run["id"]: run for run in client.items(f"/experiments/{done['id']}/runs")}
    rows = table(client.request("GET", f"/experiments/{done['id']}/samples", headers={"Accept": "text/csv"}).body)
    assert {int(row["run_id"]) for row in rows} == runs.keys()
    for row in rows:
        point = runs[int(row["run_id"])]["point"]
        assert row["workload"] == point["workload"] and int(row["message_size"]) == point["message_size"]


HARDWARE = ("cycles", "instructions", "l1d_read_misses", "llc_misses", "dtlb_misses", "branch_misses")
ACCOUNTS = ("context_switches", "page_faults", "task_clock_ns")


def test_each_agent_has_counters(client, done):
    for run in client.items(f"/experiments/{done['id']}/runs"):
        counters = run["result"]["counters"]
        assert set(counters) == {agent["role"] for agent in run["agents"]}
        for counted in counters.values():
            assert all(isinstance(counted[name], int) for name in ACCOUNTS)
            assert counted["task_clock_ns"] > 0
            assert counted["context_switches"] == counted["voluntary_switches"] + counted["involuntary_switches"]
            for name in HARDWARE:
                reasons = counted.get("reasons", {})
                assert counted[name] is not None or reasons.get(name) or reasons.get("hardware")


def test_samples_count_what_the_run_counts(client, done):
    for run in client.items(f"/experiments/{done['id']}/runs"):
        samples = client.items(f"/runs/{run['id']}/samples")
        for role, counted in run["result"]["counters"].items():
            own = [sample["counters"] for sample in samples if sample["agent"] == role]
            for name in ACCOUNTS:
                assert sum(counters[name] for counters in own) == counted[name]
            for name in HARDWARE:
                assert all((counters[name] is None) == (counted[name] is None) for counters in own)


def test_lists_leave_out_what_each_of_many_threads_did(unix):
    spec = {"transport": "pipe", "threads": 17, "message_size": 64, "messages": 3000, "warmup_seconds": 0}
    experiment = unix.wait_final(unix.post(spec)["id"])["id"]
    (listed,) = unix.items(f"/experiments/{experiment}/runs")
    run = unix.get(f"/runs/{listed['id']}")
    unix.validate({"$ref": "#/components/schemas/Run"}, listed)
    with Events(unix, f"/experiments/{experiment}/events") as events:
        assert [data for _, event, data in events if event == "run"] == [listed]
    where = f"17 of them, too many for a list: GET /runs/{run['id']} has them"
    assert listed["result"].pop("threads") is None and listed["result"].pop("threads_reason") == where
    assert {role: len(threads) for role, threads in run["result"].pop("threads").items()} == {
        "sender": 17,
        "receiver": 17,
    }
    for short, full in zip(listed["agents"], run["agents"], strict=True):
        for proof in ("proof", "proof_at_start"):
            assert short[proof].pop("threads") is None and short[proof].pop("threads_reason") == where
            assert len(full[proof].pop("threads")) == 17
    assert listed == run  # all else is there


@pytest.mark.parametrize(("end", "shares"), [({"messages": 8}, [3, 3, 2]), ({"bytes": 4 * 64 + 1}, [2, 2, 1])])
def test_threads_divide_the_messages_of_a_window_among_them(unix, end, shares):
    spec = {"transport": "pipe", "threads": 3, "message_size": 64, "warmup_seconds": 0} | end
    (run,) = unix.items(f"/experiments/{unix.wait_final(unix.post(spec)['id'])['id']}/runs")
    assert run["result"]["messages"] == sum(shares)
    for threads in run["result"]["threads"].values():
        assert [thread["messages"] for thread in threads] == shares


def test_threads_add_up_to_their_agent(unix):
    spec = {"transport": "pipe", "threads": 3, "duration_seconds": 1, "warmup_seconds": 0}
    (run,) = unix.items(f"/experiments/{unix.wait_final(unix.post(spec)['id'])['id']}/runs")
    result = run["result"]
    assert set(result["threads"]) == set(result["counters"])
    (row,) = unix.get(f"/experiments/{run['experiment_id']}/results")["items"]
    assert row["effective"]["threads"] == result["effective"]["threads"] == {"sender": 3, "receiver": 3}
    for role, threads in result["threads"].items():
        assert [thread["thread"] for thread in threads] == [0, 1, 2]
        assert all(thread["messages"] > 0 for thread in threads)
        for name in ("messages", "bytes"):
            assert sum(thread[name] for thread in threads) == result[role][name]
        for name in ACCOUNTS:
            assert sum(thread["counters"][name] for thread in threads) == result["counters"][role][name]
        for thread in threads:
            assert set(thread["counters"]) >= set(HARDWARE)


def test_derived_figures_follow_from_counters(client, done):
    for run in client.items(f"/experiments/{done['id']}/runs"):
        result = run["result"]
        together = 0
        ways = 2 if run["point"]["workload"] == "pingpong" else 1
        for role, counted in result["counters"].items():
            agent = result[role]
            assert agent["cpu_ns_per_message"] == pytest.approx(counted["task_clock_ns"] / agent["messages"])
            carried = ways * agent["bytes"]
            assert agent["cpu_ns_per_gigabyte"] == pytest.approx(counted["task_clock_ns"] * 1e9 / carried)
            if counted["cycles"] is None:
                assert agent["cycles_per_byte"] is None and agent["cycles_per_byte_reason"]
            else:
                assert agent["cycles_per_byte"] == pytest.approx(counted["cycles"] / carried)
            together += agent["cpu_ns_per_message"]
        assert result["cpu_ns_per_message"] == pytest.approx(together)


PER_UNIT = (
    "cpu_ns_per_message", "cpu_ns_per_gigabyte", "cycles_per_byte", "context_switches_per_message",
    *(f"{name}_per_message" for name in HARDWARE),
)  # fmt: skip
OTHER = {"sender": "receiver", "initiator": "responder"}


def test_a_name_means_the_same_in_a_run_and_in_a_row(client, done):
    runs = client.items(f"/experiments/{done['id']}/runs")
    for row in client.get(f"/experiments/{done['id']}/results")["items"]:
        own = [run["result"] for run in runs if run["point"] == row["point"]]
        assert {result["counted_by"] for result in own} <= set(OTHER)
        assert row["counted_by"] == own[-1]["counted_by"]
        assert all((result["loop"], result["verify"]) == ("closed", "touch") for result in [row, *own])
        for name in PER_UNIT:
            ends = {
                "": own,
                "_sender": [result[result["counted_by"]] for result in own],
                "_receiver": [result[OTHER[result["counted_by"]]] for result in own],
            }
            for suffix, of in ends.items():
                values = [one[name] for one in of if one[name] is not None]
                if not values:
                    assert row[name + suffix] is None and row["reasons"][name + suffix]
                    continue
                assert (row[name + suffix]["min"], row[name + suffix]["max"]) == (min(values), max(values))
        assert row["latency_ns"] is not None or row["reasons"]["latency_ns"]


def test_what_ksoftirqd_used_is_in_the_row(unix):
    """Runs over tcp have it; a row of others has its runs' reason."""
    name = "ksoftirqd_ns_per_message"
    spec = {"transport": ["tcp", "pipe"], "message_size": 64, "duration_seconds": 1, "warmup_seconds": 0}
    path = f"/experiments/{unix.wait_final(unix.post(spec | {'repetitions': 2})['id'])['id']}"
    runs, rows = unix.items(f"{path}/runs"), unix.get(f"{path}/results")["items"]
    lines = table(unix.request("GET", f"{path}/results", headers={"Accept": "text/csv"}).body)
    for line, row in zip(lines, rows, strict=True):
        own = [run["result"] for run in runs if run["point"] == row["point"]]
        values = [result[name] for result in own if result[name] is not None]
        if values:
            assert row["point"]["transport"] == "tcp"
            assert (row[name]["min"], row[name]["max"]) == (min(values), max(values))
            assert float(line[f"{name}_median"]) == row[name]["median"]
        else:
            assert row[name] is None and line[f"{name}_median"] == ""
            assert row["reasons"][name] in {result[f"{name}_reason"] for result in own}


def test_counts_are_per_message(client, done):
    for run in client.items(f"/experiments/{done['id']}/runs"):
        result = run["result"]
        together = dict.fromkeys(("context_switches", *HARDWARE), 0)
        for role, counted in result["counters"].items():
            for name in together:
                each = result[role][f"{name}_per_message"]
                if counted[name] is None:
                    assert each is None and result[role][f"{name}_per_message_reason"]
                    together[name] = None
                else:
                    assert each == pytest.approx(counted[name] / result[role]["messages"])
                    together[name] = None if together[name] is None else together[name] + each
        for name, value in together.items():
            assert result[f"{name}_per_message"] == (None if value is None else pytest.approx(value))


def untold(row):
    """Figures of a row that are null without a word; neither an error nor the rate of a search is a figure."""
    return {k for k, v in row.items() if v is None and k not in ("error", "rate")} - set(row["reasons"])


def test_no_null_is_without_a_reason(client, done):
    rows = client.get(f"/experiments/{done['id']}/results")["items"]
    assert [untold(row) for row in rows] == [set(), set()]
    assert rows[0]["reasons"]["both_ways_bytes_per_second"] == "of pingpong only"
    assert rows[0]["reasons"]["latency_one_way_ns"] == "of pingpong only"
    assert "latency_one_way_ns" not in rows[1]["reasons"]
    for row in rows:
        assert row["reasons"]["cost_ns"] == "of syscall and context-switch only"


def test_csv_has_the_columns_that_studies_plot(client, done):
    answer = client.request("GET", f"/experiments/{done['id']}/results?columns=all", headers={"Accept": "text/csv"})
    rows = client.get(f"/experiments/{done['id']}/results")["items"]
    for line, row in zip(table(answer.body), rows, strict=True):
        gbit = float(line["throughput_gbit_per_second_median"])
        assert gbit == pytest.approx(row["throughput_bytes_per_second"]["median"] * 8 / 1e9)
        if row["latency_ns"]:
            # as short as it can be written: 11627.068, not 11627.068000000001
            assert line["latency_us_mean_median"] == repr(row["latency_ns"]["mean"]["median"] / 1e3).removesuffix(".0")
        else:
            assert line["latency_us_mean_median"] == ""
        assert line["reasons"] == "" if not row["reasons"] else json.loads(line["reasons"]) == row["reasons"]
        for name in (name + suffix for name in PER_UNIT for suffix in ("", "_sender", "_receiver")):
            figure = line[f"{name}_median"]
            assert figure == "" if row[name] is None else float(figure) == row[name]["median"]


def test_a_pingpong_goes_both_ways(client, done):
    """As the study counts: 2 x size / round trip, and half a round trip."""
    runs = client.items(f"/experiments/{done['id']}/runs")
    rows = client.get(f"/experiments/{done['id']}/results")["items"]
    answer = client.request("GET", f"/experiments/{done['id']}/results?columns=all", headers={"Accept": "text/csv"})
    for line, row in zip(table(answer.body), rows, strict=True):
        own = [run["result"] for run in runs if run["point"] == row["point"]]
        if row["point"]["workload"] != "pingpong":
            assert row["both_ways_bytes_per_second"] is None and row["latency_one_way_ns"] is None
            assert line["both_ways_bytes_per_second_median"] == line["latency_one_way_ns_p50_median"] == ""
            assert all(result["both_ways_bytes_per_second"] is None for result in own)
            continue
        both = [2 * row["point"]["message_size"] * result["messages"] * 1e9 / result["window_ns"] for result in own]
        assert [result["both_ways_bytes_per_second"] for result in own] == pytest.approx(both)
        assert row["both_ways_bytes_per_second"]["max"] == pytest.approx(max(both))
        assert row["latency_one_way_ns"]["kind"] == "one_way"
        assert row["latency_one_way_ns"]["mean"]["median"] == pytest.approx(
            row["latency_ns"]["mean"]["median"] / 2, 0.01
        )
        assert float(line["latency_one_way_ns_mean_median"]) == row["latency_one_way_ns"]["mean"]["median"]
        gbit = float(line["both_ways_gbit_per_second_max"])
        assert gbit == pytest.approx(row["both_ways_bytes_per_second"]["max"] * 8e-9)


@pytest.mark.parametrize(
    ("options", "kind"),
    [({}, "handed-over"), ({"verify": "checksum"}, "before-sending"), ({"verify": "checksum", "rate": 1000}, "due")],
)
def test_round_trips_name_what_they_are_timed_from(unix, options, kind):
    spec = {"workload": ["stream", "pingpong", "syscall"], "messages": 100, "warmup_seconds": 0} | options
    path = f"/experiments/{unix.wait_final(unix.post(spec)['id'])['id']}"
    kinds = {"stream": None, "pingpong": kind, "syscall": None}
    for item in [run | run["result"] for run in unix.items(f"{path}/runs")] + unix.get(f"{path}/results")["items"]:
        workload = item["point"]["workload"]
        assert item["effective"].get("round_trip") == kinds[workload], workload
    lines = table(unix.request("GET", f"{path}/results?columns=all", headers={"Accept": "text/csv"}).body)
    assert [line["effective_round_trip"] for line in lines] == ["", kind, ""]


def test_results_have_the_settings_in_force(client, done):
    """Each mechanism has settings of its own, which a client need not look up in the agents' reports."""
    runs = client.items(f"/experiments/{done['id']}/runs")
    path = f"/experiments/{done['id']}/results"
    rows = client.get(path)["items"]
    for row in rows:
        own = [run["result"]["effective"] for run in runs if run["point"] == row["point"]]
        assert all(effective == row["effective"] for effective in own)
        assert row["effective"]["pipe_size"] == runs[0]["agents"][0]["effective"]["pipe_size"]
        assert row["effective"]["send_method"] == "write"
    answer = client.request("GET", f"{path}?columns=all", headers={"Accept": "text/csv"})
    for line, row in zip(table(answer.body), rows, strict=True):
        assert int(line["effective_pipe_size"]) == row["effective"]["pipe_size"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "application/json"),
        ("text/*", "text/csv"),
        ("text/csv;q=0.9, application/json;q=0.8", "text/csv"),
        ("text/csv;q=0.8, application/json", "application/json"),
        ("application/json;q=0, */*;q=0.1", "text/csv"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "application/json"),
    ],
)
def test_the_form_is_negotiated(unix, done, accept, kind):
    answer = unix.request("GET", f"/experiments/{done['id']}/results", headers={"Accept": accept})
    assert answer.status == 200
    assert answer.headers["Content-Type"].split(";")[0] == kind


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "text/csv;q=0", ""])
@pytest.mark.parametrize("path", ["results", "samples"])
def test_forms_that_are_not_there_are_refused(unix, done, path, accept):
    problem = unix.refused(
        "GET", f"/experiments/{done['id']}/{path}", 406, "not-acceptable", headers={"Accept": accept}
    )
    assert "text/csv" in problem["detail"]


def test_samples_add_up_to_the_run(unix, done):
    samples = unix.items(f"/experiments/{done['id']}/samples")
    for run in unix.items(f"/experiments/{done['id']}/runs"):
        own = [sample for sample in samples if sample["run_id"] == run["id"]]
        assert own == unix.items(f"/runs/{run['id']}/samples")
        assert {sample["agent"] for sample in own} == {agent["role"] for agent in run["agents"]}
        measured = [s for s in own if s["agent"] in ("receiver", "initiator")]
        assert sum(s["messages"] for s in measured) == run["result"]["messages"]
        assert sum(s["bytes"] for s in measured) == run["result"]["bytes"]
        assert sum(s["interval_ns"] for s in measured) == run["result"]["window_ns"]
    assert all(sample["interval_ns"] > 0 for sample in samples)


def test_samples_of_a_pingpong_have_latencies(unix, done):
    run = next(r for r in unix.items(f"/experiments/{done['id']}/runs") if r["point"]["workload"] == "pingpong")
    samples = [s for s in unix.items(f"/runs/{run['id']}/samples?histogram=1") if s["latency_ns"]]
    assert samples
    for sample in samples:
        latency = sample["latency_ns"]
        assert latency["kind"] == "rtt"
        assert (
            0
            < latency["min"]
            <= latency["p50"]
            <= latency["p90"]
            <= latency["p99"]
            <= latency["p99_9"]
            <= latency["max"]
        )
        histogram = HdrHistogram.decode(latency["histogram"])
        assert histogram.get_total_count() == latency["count"]
        assert histogram.get_value_at_percentile(50) == pytest.approx(latency["p50"], rel=0.01)
    plain = unix.items(f"/runs/{run['id']}/samples")
    assert all("histogram" not in (s["latency_ns"] or {}) for s in plain)


def test_each_round_trip_has_its_latency_in_a_sample(unix):
    """By count, since by time the two are read one after the other, while the run continues."""
    spec = {"workload": "pingpong", "transport": "pipe", "message_size": 64, "messages": 20000, "warmup_seconds": 0}
    (run,) = unix.items(f"/experiments/{unix.wait_final(unix.post(spec)['id'])['id']}/runs")
    assert run["state"] == "done", run["error"]
    latencies = [s["latency_ns"] for s in unix.items(f"/runs/{run['id']}/samples")]
    assert sum(latency["count"] for latency in latencies if latency) == 20000


def test_samples_come_in_three_forms(client, done):
    path = f"/experiments/{done['id']}/samples"
    items = client.items(path)
    lines = client.request("GET", path, headers={"Accept": "application/x-ndjson"})
    assert lines.headers["Content-Type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.body.splitlines()] == items
    rows = client.request("GET", path, headers={"Accept": "text/csv"})
    for row, sample in zip(table(rows.body), items, strict=True):
        assert None not in row and None not in row.values()
        for key in ("run_id", "thread", "second", "interval_ns", "messages", "bytes"):
            assert int(row[key]) == sample[key]
        assert row["agent"] == sample["agent"]
        assert row["latency_ns_p50"] == ("" if sample["latency_ns"] is None else str(sample["latency_ns"]["p50"]))
        assert (
            row["counters"] == "" if sample["counters"] is None else json.loads(row["counters"]) == sample["counters"]
        )
    wide = client.request("GET", f"{path}?histogram=1", headers={"Accept": "text/csv"})
    assert len(table(wide.body)[0]) == len(table(rows.body)[0]) + 1


def test_samples_are_paged(unix, done):
    path = f"/experiments/{done['id']}/samples"
    items = unix.items(path)
    assert unix.items(f"{path}?limit=1") == unix.items(f"{path}?limit=3") == items
    answer = unix.request("GET", f"{path}?limit=1&histogram=1", headers={"Accept": "text/csv"})
    assert len(table(answer.body)) == 1
    assert "histogram=1" in answer.headers["Link"] and 'rel="next"' in answer.headers["Link"]
    exact = unix.request("GET", f"{path}?limit={len(items)}")
    assert exact.json["next"] is None and exact.headers["Link"] is None


@pytest.mark.parametrize(
    ("query", "slug"),
    [
        ("limit=10001", "bad-parameter"),
        ("limit=0", "bad-parameter"),
        ("histogram=yes", "bad-parameter"),
        ("cursor=e-1", "bad-parameter"),
        ("second=1", "unknown-parameter"),
    ],
)
def test_bad_parameters_of_samples(unix, done, query, slug):
    unix.refused("GET", f"/experiments/{done['id']}/samples?{query}", 400, slug)


def test_an_experiment_without_results_has_empty_figures(unix, long_run):
    rows = unix.get(f"/experiments/{long_run['id']}/results")["items"]
    assert [row["runs"] for row in rows] == [0]
    assert rows[0]["throughput_bytes_per_second"] is None and rows[0]["latency_ns"] is None
    answer = unix.request("GET", f"/experiments/{long_run['id']}/results?columns=all", headers={"Accept": "text/csv"})
    assert table(answer.body)[0]["throughput_bytes_per_second_median"] == ""
