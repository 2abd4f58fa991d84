# SPDX-License-Identifier: MIT
"""What an experiment's runs let one conclude, over HTTP: on real runs, and on runs whose figures were made."""

import csv
import io
import itertools
import json
import re

import pytest
from conftest import Daemon
from ipclabtest import database
from made import measure, note_change, repeat, write_figures

SPEC = {"messages": 50, "warmup_seconds": 0, "seed": 14}


SIZES = [64, 256, 1024, 4096, 16384, 65536]


@pytest.fixture(scope="module")
def made_daemon():
    """For experiments whose figures are made: they stay in it."""
    d = Daemon()
    yield d
    d.remove()


@pytest.fixture
def measured(made_daemon):
    """The daemon, and an experiment of two transports and six sizes, eight blocks."""
    spec = SPEC | {"transport": ["pipe", "unix-stream"], "message_size": SIZES, "repetitions": 8}
    return made_daemon, measure(made_daemon, spec, law)


def of_kind(findings, kind):
    return [item for item in findings["items"] if item["kind"] == kind]


def figure(item, name):
    return next(one for one in item["figures"] if one["name"] == name)


def law(point):
    """The pipe overtakes the socket at 4000 bytes, and falls where its capacity ends."""
    size = point["message_size"]
    if point["transport"] == "unix-stream":
        return 1000 + 0.5 * size
    return (2000 + 0.25 * size) * (4 if size == 65536 else 1)


def test_settings_in_force_that_differ_are_named(made_daemon):
    """A ranking of unlike rows says so: of messages that carry times, and of readers that let messages gather."""
    spec = SPEC | {"transport": ["tcp", "pipe", "shm-posix"], "stamp": True, "repetitions": 6, "message_size": 64}
    times = {"tcp": 4000, "pipe": 2000, "shm-posix": 1000}
    experiment = measure(made_daemon, spec, lambda point: times[point["transport"]])
    (ranking,) = of_kind(made_daemon.unix.get(f"/experiments/{experiment}/findings"), "ranking")
    unlike = ranking["sentence"].partition("Their settings are unlike: ")[2]
    assert "tcp writes a time into each message" in unlike and "shm-posix lets messages gather" in unlike


def test_runs_that_are_alike_have_a_wider_interval(made_daemon):
    """The machine is half as fast for the second half of the runs, and the interval of a row says so."""
    spec = SPEC | {"transport": ["pipe", "fifo"], "repetitions": 16}
    slow = itertools.count()
    experiment = measure(made_daemon, spec, lambda point: 1000 if next(slow) < 16 else 2000)
    table = f"/experiments/{experiment}/results"
    for row in made_daemon.unix.get(table)["items"]:
        judged = row["autocorrelation"]
        assert judged["figure"] == "throughput_bytes_per_second" and "ci95_of" not in judged
        assert judged["lag1"] > 0.5 and judged["effective_runs"] < 6
        assert judged["interval"] is None, "the least and the greatest of 16 are no more than what five tell"
        assert "independent ones" in judged["interval_reason"]
        rate = row["throughput_bytes_per_second"]
        assert rate["ci95"] is None and rate["level"] is None and rate["ci95_reason"] == judged["interval_reason"]
        assert rate["widening"] == pytest.approx((rate["n"] / judged["effective_runs"]) ** 0.5)
    body = made_daemon.unix.request("GET", f"{table}?columns=all", headers={"Accept": "text/csv"}).body.decode()
    for line in csv.DictReader(io.StringIO(body, newline="")):
        assert line["throughput_bytes_per_second_max"] and not line["throughput_bytes_per_second_ci95_low"]
    report = made_daemon.unix.request("GET", f"/experiments/{experiment}/report").body.decode()
    cells = re.findall(r'<td class="number">([^<]*) <span class="range">([^<]*)</span>', report)
    assert cells and not any(shown.startswith("[") for _, shown in cells[:1]), cells
    few = measure(made_daemon, SPEC | {"repetitions": 6}, lambda _: 1000)
    (row,) = made_daemon.unix.get(f"/experiments/{few}/results")["items"]
    rate = row["throughput_bytes_per_second"]
    assert rate["ci95"] and rate["widening"] is None and "ci95_reason" not in rate
    assert row["autocorrelation"] is None and row["reasons"]["autocorrelation"].startswith("fewer than 12 runs")


def test_what_is_there_is_found(measured):
    daemon, experiment = measured
    findings = daemon.unix.get(f"/experiments/{experiment}/findings")
    assert findings["next"] is None and findings["comparisons"] > 0
    crossovers = of_kind(findings, "crossover")
    assert [figure(item, "crossover")["interval"] for item in crossovers][0] | {"level": 0} == {
        "low": 1024,
        "high": 16384,
        "level": 0,
    }
    assert crossovers[0]["axis"] == "transport" and crossovers[0]["subject"]["workload"] == "stream"
    assert "pipe overtakes unix-stream" in crossovers[0]["sentence"]
    (cliff,) = of_kind(findings, "cliff")
    assert cliff["subject"]["transport"] == "pipe"
    assert "the pipe's capacity (64 KiB)" in cliff["sentence"]
    assert figure(cliff, "stands_there")["value"] == 65536
    rankings = of_kind(findings, "ranking")
    assert len(rankings) == 6 and {item["subject"]["message_size"] for item in rankings} == {
        64,
        256,
        1024,
        4096,
        16384,
        65536,
    }
    rows = daemon.unix.get(f"/experiments/{experiment}/results")["items"]
    for item in rankings:
        assert item["confidence"] == "high" and item["runs"] == 16
        assert {rows[row]["point"]["message_size"] for row in item["rows"]} == {item["subject"]["message_size"]}
        medians = {one["of"]: one for one in item["figures"] if one["name"] == "throughput_bytes_per_second"}
        for row in item["rows"]:
            shown = rows[row]["throughput_bytes_per_second"]
            one = medians[rows[row]["point"]["transport"]]
            assert one["value"] == shown["median"] and one["unit"] == "bytes/s"
            assert [one["interval"]["low"], one["interval"]["high"]] == shown["ci95"]
            assert one["interval"]["level"] == shown["level"]
    knees = {item["subject"]["transport"]: figure(item, "knee") for item in of_kind(findings, "knee")}
    assert knees["unix-stream"]["interval"]["low"] <= 2000 <= knees["unix-stream"]["interval"]["high"]


def test_they_follow_the_experiment(measured):
    """What is remembered of an experiment is forgotten when it changes."""
    daemon, experiment = measured
    path = f"/experiments/{experiment}/findings"
    first = daemon.unix.get(path)
    assert daemon.unix.get(path) == first
    write_figures(daemon, experiment, lambda point: point["message_size"])
    second = daemon.unix.get(path)
    assert of_kind(first, "crossover") and not of_kind(second, "crossover")
    assert daemon.unix.request("DELETE", f"/experiments/{experiment}").status == 204
    daemon.unix.refused("GET", path, 404, "not-found")


def test_as_markdown(measured):
    daemon, experiment = measured
    path = f"/experiments/{experiment}/findings"
    answer = daemon.unix.request("GET", path, headers={"Accept": "text/markdown"})
    assert answer.status == 200 and answer.headers["Vary"] == "Accept, Accept-Encoding"
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    text = answer.body.decode()
    assert text.startswith(f"# Findings of experiment {experiment}\n")
    assert "\n\nAll points share: placement default.\n\n" in text
    findings = daemon.unix.get(path)
    assert sum(line.startswith("- ") for line in text.splitlines()) == len(findings["items"])
    assert f"\n{findings['comparisons']} comparisons; " in text and " In brackets are intervals" in text
    assert re.search(
        r"\n- .*: throughput by transport, best first: \S+ \(\S+ \S+ \\\[\S+ \S+, \S+ \S+\\\]\), then ", text
    )
    for heading in ("Rankings", "Cliffs", "Crossovers", "The best message size", "Time per message"):
        assert f"\n## {heading}\n" in text


def counts(point):
    """Half the cycles, and three times the misses."""
    one = point["copy_mode"] == "one-copy"
    return {"cycles_per_byte": 0.5 if one else 1, "llc_misses_per_message": 300 if one else 100}


def test_a_choice_costs_cycles_where_they_are_counted(made_daemon):
    spec = SPEC | {"transport": "pipe", "fields": 8, "copy_mode": ["two-copy", "one-copy"]}
    client = made_daemon.unix
    experiment = client.wait_final(client.post(spec)["id"])["id"]
    repeat(made_daemon, experiment, 8)
    path = f"/experiments/{experiment}/findings"
    run = client.items(f"/experiments/{experiment}/runs")[0]["result"]
    doubts = [item for item in client.get(path)["items"] if item["reason"] == "no-counters"]
    if run["cycles_per_byte"] is None:
        (doubt,) = doubts
        assert doubt["rows"] == [0, 1] and doubt["kind"] == "undecided"
        assert doubt["sentence"].endswith(f"is not known for 2 rows: {run['cycles_per_byte_reason']}.")
    else:
        assert doubts == []
    write_figures(made_daemon, experiment, lambda _: 1000, counts)
    findings = client.get(path)
    (cost,) = of_kind(findings, "cost")
    assert "% fewer cycles per byte [" in cost["sentence"]
    assert "% more misses of the last cache per message [" in cost["sentence"]
    ratios = {one["of"]: one for one in cost["figures"] if one["name"] == "ratio"}
    assert ratios["cycles per byte"]["value"] == pytest.approx(0.5, rel=0.05)
    assert ratios["misses of the last cache per message"]["value"] == pytest.approx(3, rel=0.05)
    assert not [item for item in findings["items"] if item["reason"] == "no-counters"]


def test_few_runs_conclude_nothing(client, done):
    findings = client.get(f"/experiments/{done['id']}/findings")
    assert findings["comparisons"] == 0
    assert {item["kind"] for item in findings["items"]} == {"undecided"}
    text = client.request(
        "GET", f"/experiments/{done['id']}/findings", headers={"Accept": "text/markdown"}
    ).body.decode()
    assert "\n\nNothing was compared.\n\n## What cannot be said\n\n- " in text
    few = next(item for item in findings["items"] if item["reason"] == "too-few-runs")
    assert few["rows"] == [0, 1] and few["runs"] == 4 and few["runs_needed"] is None and few["confidence"] == "none"


def test_a_study_has_its_answers(unix):
    """Each question beside the published figure; the figures are those of the results, in the study's units."""
    spec = {"preset": "pipe-block-sweep-quick", "bytes": 655360, "warmup_seconds": 0}
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert experiment["state"] == "done", experiment
    path = f"/experiments/{experiment['id']}/findings"
    study = unix.get(path)["study"]
    rows = unix.get(f"/experiments/{experiment['id']}/results")["items"]
    assert study["name"] == "pipe-block-sweep" and "on its own machine" in study["source"]
    published = [answer["published"]["value"] for answer in study["answers"][:8]]
    assert published == [250.91, 933.07, 2534.25, 1532.90, 3184.68, 2093.62, 1508.83, 1096.92]
    placed = {row["point"]["placement"] for row in rows}
    for answer, size in zip(study["answers"], (64, 256, 1024, 4096, 8192, 16384, 32768, 65536), strict=False):
        assert str(size) in answer["question"] and answer["published"]["unit"] == "MiB/s"
        if "same-node" not in placed:
            assert answer["figures"] == [] and "no such row" in answer["reason"]
            continue
        (one,) = answer["figures"]
        (row,) = (rows[index] for index in answer["rows"])
        assert row["point"]["message_size"] == size and row["point"]["placement"] == "same-node"
        assert one["value"] == pytest.approx(row["throughput_bytes_per_second"]["median"] / 2**20)
    best = next(answer for answer in study["answers"] if "best" in answer["question"] and answer["kind"] == "finding")
    assert best["sentence"] is None and best["reason"]  # of one run each nothing is concluded
    text = unix.request("GET", path, headers={"Accept": "text/markdown"}).body.decode()
    assert "\n| question | here | published |\n" in text and "3185 MiB/s" in text


def test_a_study_that_was_changed_is_not_answered(unix):
    """What a pipe moves in blocks is not asked of a named pipe."""
    spec = {"preset": "pipe-block-sweep-quick", "transport": "fifo", "bytes": 6553600, "message_size": [64, 65536]}
    experiment = unix.wait_final(unix.post(spec | {"warmup_seconds": 0})["id"])
    assert experiment["state"] == "done", experiment
    answers = unix.get(f"/experiments/{experiment['id']}/findings")["study"]["answers"]
    for answer in answers:
        assert answer["figures"] == [] and answer["sentence"] is None
        assert answer["reason"].startswith("the experiment changes the preset's transport")
        assert answer["reason"].endswith("it does not ask this, and the published answer does not apply")
    named = {"blocks of 64 bytes": False, "blocks of 256 bytes": True, "Which range": True}
    for words, sizes in named.items():
        (reason,) = (answer["reason"] for answer in answers if words in answer["question"])
        assert ("transport and message_size" in reason) == sizes


@pytest.mark.parametrize("messages", [999, 1000])
def test_few_messages_have_no_99th_percentile(made_daemon, messages):
    """Nothing could be concluded from the percentile of so few."""
    unix = made_daemon.unix
    spec = SPEC | {"workload": "pingpong", "transport": ["pipe", "shm-posix"], "messages": messages}
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert experiment["state"] == "done", experiment
    repeat(made_daemon, experiment["id"], 8)
    items = unix.get(f"/experiments/{experiment['id']}/findings")["items"]
    few = [item for item in items if item["reason"] == "few-messages"]
    about = [item for item in items if "p99 of the round trip" in item["sentence"]]
    assert (len(few), bool(about)) == ((1, False) if messages < 1000 else (0, True))


def test_what_a_flag_disputes_is_told(made_daemon):
    """Sends were refused, and a rate was not reached."""
    unix = made_daemon.unix
    zero = SPEC | {"transport": "tcp", "message_size": 65536, "copy_mode": ["two-copy", "zero-copy"], "repetitions": 6}
    rate = SPEC | {"workload": "pingpong", "transport": ["pipe", "fifo"], "rate": 2000, "repetitions": 6}
    cases = (
        (zero, lambda p: 2000 if p["copy_mode"] == "zero-copy" else 1000, ("copy_mode", "zero-copy"), "cost"),
        (rate, lambda p: 2000 if p["transport"] == "pipe" else 1000, ("transport", "pipe"), "ranking"),
    )
    for (spec, times, (axis, value), kind), flag in zip(cases, ("zerocopy:enobufs", "rate_not_reached"), strict=True):
        identity = measure(made_daemon, spec, times)
        concluded = {}
        for flagged in (0, 2):
            with database.live(made_daemon.base / "state/ipclab.db") as db:
                db.execute("UPDATE runs SET flags = '[]' WHERE experiment_id = ?", (identity,))
                of_point = "point_id IN (SELECT id FROM points WHERE experiment_id = ? AND point ->> ? = ?)"
                change = f"UPDATE runs SET flags = ? WHERE {of_point} AND repetition <= ?"
                db.execute(change, (json.dumps([flag]), identity, f"$.{axis}", value, flagged))
                note_change(db, identity)
            findings = unix.get(f"/experiments/{identity}/findings")
            doubts = [item for item in findings["items"] if item["reason"] == "disputed"]
            assert len(doubts) == (flagged > 0)
            concluded[flagged] = of_kind(findings, kind)
            assert {item["confidence"] for item in concluded[flagged]} == {"reduced" if flagged else "high"}
            markdown = {"Accept": "text/markdown"}
            text = unix.request("GET", f"/experiments/{identity}/findings", headers=markdown).body.decode()
            assert ("a flag that disputes their figures" in text) == (flagged > 0)
        assert len(concluded[0]) == len(concluded[2])
        assert f": 2 of 6 runs have the flag {flag}. Conclusions that rest on them" in doubts[0]["sentence"]
        assert not any("Their throughput is the requested rate" in item["sentence"] for item in findings["items"])


def test_an_open_loop_has_no_throughput(made_daemon):
    """How many messages come follows from the requested rate, and is no finding."""
    spec = SPEC | {"message_size": [64, 4096], "rate": 2000, "messages": 100, "repetitions": 6}
    experiment = measure(made_daemon, spec, lambda point: point["message_size"])
    findings = made_daemon.unix.get(f"/experiments/{experiment}/findings")
    assert {item["kind"] for item in findings["items"]} <= {"undecided"} and findings["comparisons"] == 0
    assert "open-loop" in {item["reason"] for item in findings["items"]}


def test_the_latency_of_an_open_loop_ranks_it(made_daemon):
    """A stream at a rate has a latency one way, from the intended send time."""
    spec = SPEC | {"transport": ["pipe", "unix-stream"], "rate": 2000, "messages": 100, "repetitions": 8}
    experiment = measure(made_daemon, spec, lambda point: 2000 if point["transport"] == "pipe" else 1000)
    findings = made_daemon.unix.get(f"/experiments/{experiment}/findings")
    ranked = [item["sentence"] for item in of_kind(findings, "ranking")]
    assert [("p99 of the " in text, "unix-stream (" in text) for text in ranked] == [(False, True), (True, True)]
    assert "median one-way latency by transport, best first: unix-stream (" in ranked[0]
    assert "throughput" not in " ".join(ranked)


def test_before_there_are_runs(unix, long_run):
    findings = unix.get(f"/experiments/{long_run['id']}/findings")
    assert findings.pop("provenance")["experiment"] == long_run["id"]
    assert findings == {"items": [], "next": None, "comparisons": 0, "study": None}


def test_what_is_refused(unix, done):
    path = f"/experiments/{done['id']}/findings"
    unix.refused("GET", "/experiments/999999999/findings", 404, "not-found")
    unix.refused("GET", f"{path}?kind=knee", 400, "unknown-parameter")
    unix.refused("GET", path, 406, "not-acceptable", headers={"Accept": "text/csv"})
