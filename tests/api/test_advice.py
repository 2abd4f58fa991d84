# SPDX-License-Identifier: MIT
"""The ranking that stored runs support, what it leaves open, and the runs that settle it."""

import json
import os
import signal
from collections import Counter

import made
import pytest
from agents import wait_agents
from conftest import Daemon
from ipclabtest import database
from made import note_change, repeat, write_figures

SPEC = {"workload": "pingpong", "messages": 100, "warmup_seconds": 0, "seed": 14}
QUESTION = {"workload": "pingpong", "want": "latency_p50"}
BASE = {"pipe": 2000, "unix-stream": 3000, "shm-posix": 1000, "tcp": 5000, "msgq-sysv": 4000}


def law(point):
    return BASE[point["transport"]] + 0.25 * point["message_size"]


def measure(daemon, time_of=law, **spec):
    """An experiment with figures by the law; its id."""
    return made.measure(daemon, SPEC | spec, time_of)


def transports(advice, standing):
    return [item["point"]["transport"] for item in advice["items"] if item["standing"] == standing]


def test_the_best_is_found(own_daemon):
    """Over two experiments: what was measured together is ranked, what was not stays open, and can be settled."""
    unix = own_daemon.unix
    path = "/advice?workload=pingpong&message_size=1024&want=latency_p50"
    first = measure(own_daemon, transport=["pipe", "shm-posix", "unix-stream"], message_size=1024, repetitions=8)
    advice = unix.get(path)
    assert transports(advice, "best") == ["shm-posix"] and transports(advice, "worse") == ["pipe", "unix-stream"]
    assert advice["settle"] is None and advice["experiments"]["used"] == 1
    assert advice["settle_seconds"] is None
    assert "shm-posix has the lowest median latency" in advice["sentence"]
    best, worse = advice["items"][:2]
    assert best["experiment_id"] == first and best["runs"] == 8 and best["age_seconds"] >= 0 and best["fit"] is None
    assert best["interval"]["low"] <= best["value"] <= best["interval"]["high"] and best["interval"]["level"] >= 0.95
    assert worse["over_best"]["interval"]["low"] > 1
    row = next(
        row for row in unix.get(f"/experiments/{first}/results")["items"] if row["point"]["transport"] == "shm-posix"
    )
    assert best["value"] == row["latency_ns"]["p50"]["median"]
    unix.refused("POST", "/advice", 409, "nothing-open", QUESTION | {"message_size": 1024})

    measure(own_daemon, transport="tcp", message_size=1024, repetitions=8)
    advice = unix.get(path)
    assert transports(advice, "open") == ["tcp"]
    assert advice["items"][-1]["reason"] == "not-measured-together"
    question = QUESTION | {"message_size": 1024}
    answer = unix.request("POST", "/advice", question, {"Idempotency-Key": "once"})
    assert answer.status == 201
    queued = answer.json
    assert answer.headers["Location"] == f"/experiments/{queued['id']}"
    assert queued["spec"] == advice["settle"]
    plan = unix.request("POST", "/experiments?dry_run=true", advice["settle"]).json
    assert advice["settle_seconds"] == plan["estimated_seconds"]
    assert sorted(queued["spec"]["transport"]) == ["shm-posix", "tcp"]
    assert queued["spec"]["message_size"] == [1024] and queued["spec"]["repetitions"] >= 12
    unix.request("POST", f"/experiments/{queued['id']}/cancel")
    unix.wait_final(queued["id"])
    measure(own_daemon, transport=["tcp", "pipe"], message_size=1024, repetitions=1)  # the advice is another now
    again = unix.request("POST", "/advice", question, {"Idempotency-Key": "once"})
    assert again.status == 201 and again.json["id"] == queued["id"] and again.headers["Idempotency-Replayed"] == "true"
    other = question | {"latency_p99_below_us": 50}
    unix.refused("POST", "/advice", 422, "idempotency-key-reused", other, {"Idempotency-Key": "once"})


def test_sizes_between_are_interpolated(own_daemon):
    measure(own_daemon, transport=["pipe", "shm-posix"], message_size=[64, 256, 1024, 4096, 16384], repetitions=6)
    advice = own_daemon.unix.get("/advice?workload=pingpong&message_size=2000&want=latency_p99")
    assert transports(advice, "open") == ["shm-posix", "pipe"]
    for item in advice["items"]:
        assert item["reason"] == "interpolated" and item["fit"]["left_out_error"] < 0.1
        assert item["interval"]["low"] <= 2 * law(item["point"]) <= item["interval"]["high"]
        assert item["interval"]["level"] == 0.95 and item["point"]["message_size"] == 2000
    assert advice["settle"]["message_size"] == [2000]
    limited = own_daemon.unix.get(
        "/advice?workload=pingpong&message_size=1024&want=throughput&latency_p99_below_us=3.5"
    )
    assert transports(limited, "excluded") == ["pipe"] and limited["items"][-1]["reason"] == "limit"
    larger = own_daemon.unix.get("/advice?workload=pingpong&message_size=65536&want=latency_p99")
    assert larger["items"] == [] and larger["experiments"]["used"] == 1
    assert ": this size was not measured, and those that were do not tell it: " in larger["sentence"]


def test_what_few_runs_show_is_not_confirmed(own_daemon):
    """A mechanism with one run leads when it is the only one. The answer says so, and does not call it the best."""
    unix = own_daemon.unix
    path = "/advice?workload=pingpong&message_size=1024&want=latency_p50"
    measure(own_daemon, transport="shm-posix", message_size=1024, repetitions=1)
    advice = unix.get(path)
    assert [(item["leads"], item["standing"], item["reason"]) for item in advice["items"]] == [
        (True, "open", "too-few-runs")
    ]
    assert "shm-posix alone was measured" in advice["sentence"]
    assert "This is not confirmed: fewer than 4 runs of it have this figure" in advice["sentence"]
    assert "12 runs of each transport that can answer are proposed." in advice["sentence"]
    assert {"shm-posix", "pipe", "fifo"} < set(advice["settle"]["transport"])
    measure(own_daemon, transport=["pipe", "unix-stream"], message_size=1024, repetitions=8)
    advice = unix.get(path)
    assert [(item["point"]["transport"], item["leads"], item["standing"]) for item in advice["items"]] == [
        ("pipe", True, "best"),
        ("shm-posix", False, "open"),
        ("unix-stream", False, "worse"),
    ]
    assert ": pipe leads: its median latency is " in advice["sentence"]
    assert "1 of them has a lower one by its own runs, which no experiment with both confirms." in advice["sentence"]
    assert sorted(advice["settle"]["transport"]) == ["pipe", "shm-posix"]


def test_an_experiment_with_both_decides_who_leads(own_daemon):
    """In the newest sitting, in which it was measured alone, the slower one was faster than the other had ever been."""
    both = measure(own_daemon, transport=["pipe", "shm-posix"], message_size=1024, repetitions=8)
    alone = measure(own_daemon, lambda point: 800, transport="pipe", message_size=1024, repetitions=8)
    advice = own_daemon.unix.get("/advice?workload=pingpong&message_size=1024&want=latency_p50")
    best, worse = advice["items"]
    assert (best["point"]["transport"], best["standing"], best["experiment_id"]) == ("shm-posix", "best", both)
    assert (worse["standing"], worse["experiment_id"]) == ("worse", alone) and worse["value"] < best["value"]
    assert worse["over_best"]["interval"]["low"] > 1
    assert ": shm-posix leads: " in advice["sentence"] and advice["settle"] is None


def p99_of(unix, experiment, transport):
    """The median of the row's runs, in microseconds."""
    rows = unix.get(f"/experiments/{experiment}/results")["items"]
    (row,) = [row for row in rows if row["point"]["transport"] == transport]
    return row["latency_ns"]["p99"]["median"] / 1000


def test_what_limits_exclude_is_counted_by_its_reason(own_daemon):
    """Those that exceed a limit apart from those without the figure; what is worse anyway may exceed one or not."""
    unix = own_daemon.unix
    path = "/advice?workload=pingpong&message_size=1024&want=throughput"
    first = measure(own_daemon, transport=["pipe", "shm-posix", "tcp"], message_size=1024, repetitions=9)
    for transport in ("unix-stream", "fifo"):  # too few messages for a percentile
        unix.wait_final(unix.post(SPEC | {"transport": transport, "message_size": 1024})["id"])
    limit = f"&latency_p99_below_us={p99_of(unix, first, 'pipe')}"
    advice = unix.get(path + limit)
    assert transports(advice, "best") == ["shm-posix"] and transports(advice, "worse") == ["pipe"]
    reasons = sorted(item["reason"] for item in advice["items"] if item["reason"])
    assert reasons == ["limit", "limit-not-known", "limit-not-known"]
    words = " Of the others 1 is worse, 1 is beyond the limits, 2 are without a figure that has a limit."
    assert words in advice["sentence"] and " of those that keep the limits, " in advice["sentence"]
    nothing = unix.get(f"{path}{limit}&throughput_above_mb_per_second=1000000")
    assert {item["standing"] for item in nothing["items"]} == {"excluded"}
    assert ": nothing that was measured is known to keep the limits: 5 are beyond the limits." in nothing["sentence"]


def test_a_limit_within_the_interval_is_undecided(own_daemon):
    unix = own_daemon.unix
    first = measure(own_daemon, transport="pipe", message_size=1024, repetitions=9)
    question = QUESTION | {"message_size": 1024, "latency_p99_below_us": p99_of(unix, first, "pipe")}
    advice = unix.get("/advice?" + "&".join(f"{name}={value}" for name, value in question.items()))
    (item,) = advice["items"]
    assert (item["standing"], item["reason"], item["leads"]) == ("open", "limit-undecided", False)
    assert item["runs_needed"] is None and "To decide more" not in advice["sentence"], "the limit is its median"
    words = " No number of runs that an answer can use would decide pipe: a quieter machine or a longer window decides"
    assert words in advice["sentence"]
    assert {"pipe", "fifo", "tcp"} < set(advice["settle"]["transport"]), "the others are not known at all"
    words = ": nothing that was measured is known to keep the limits: 1 is too near a limit to tell whether it is kept."
    assert words in advice["sentence"]
    answer = unix.request("POST", "/advice", question)
    assert answer.status == 201 and answer.json["spec"] == advice["settle"]


def test_only_mechanisms_of_like_settings_are_proposed_together(own_daemon):
    unix = own_daemon.unix
    sizes = {"message_size": [64, 256, 1024, 4096, 16384], "repetitions": 6}
    measure(own_daemon, transport=["pipe", "shm-posix"], **sizes)
    measure(own_daemon, transport=["unix-stream", "tcp"], verify="checksum", **sizes)
    between = unix.get("/advice?workload=pingpong&message_size=2000&want=latency_p50")
    assert transports(between, "open") == ["shm-posix", "pipe", "unix-stream", "tcp"]
    assert sorted(between["settle"]["transport"]) == ["pipe", "shm-posix"]
    assert between["settle"].get("verify") != "checksum"
    left = ' They leave open unix-stream with {"verify":"checksum"}, tcp with {"verify":"checksum"}: all mechanisms of'
    assert left in between["sentence"]

    # The size has a best, whose settings are not theirs: no runs can bring them together.
    path = "/advice?workload=pingpong&message_size=1024&want=latency_p50"
    advice = unix.get(path)
    assert transports(advice, "best") == ["shm-posix"] and transports(advice, "open") == ["unix-stream", "tcp"]
    assert advice["settle"] is None and "No runs would decide unix-stream with " in advice["sentence"]
    refused = unix.refused("POST", "/advice", 409, "nothing-open", QUESTION | {"message_size": 1024})
    assert refused["detail"].startswith("There is nothing that runs would settle. ")

    # With settings of its own, but of too few runs: these can be had.
    measure(own_daemon, transport="fifo", message_size=1024, fresh=True, time_of=lambda point: 9000)
    advice = unix.get(path)
    assert advice["settle"]["transport"] == ["fifo"] and advice["settle"]["fresh"] is True
    assert " They leave open unix-stream with " in advice["sentence"]


@pytest.mark.parametrize(("fast", "reach"), [(2060, True), (1600, False)])
def test_more_runs_may_be_needed_than_are_proposed(own_daemon, fast, reach):
    """Now the one is faster, now the other."""
    calls = Counter()

    def alternating(point):
        calls[point["transport"]] += 1
        return 2150 if (calls[point["transport"]] + (point["transport"] == "pipe")) % 2 else fast

    measure(own_daemon, alternating, transport=["pipe", "fifo"], repetitions=8)
    advice = own_daemon.unix.get("/advice?workload=pingpong&want=latency_p50")
    (item,) = [item for item in advice["items"] if item["standing"] == "open"]
    assert item["reason"] == "overlap"
    if reach:
        assert 60 < item["runs_needed"] <= 200 and advice["settle"]["repetitions"] == 60
        words = f" To decide more takes about {item['runs_needed']} runs of each: the 60 that are proposed may not do."
        assert words in advice["sentence"]
        return
    assert item["runs_needed"] is None and advice["settle"] is None
    words = f" No number of runs that an answer can use would decide {item['point']['transport']}: a quieter machine"
    assert words in advice["sentence"] and "To decide more" not in advice["sentence"]
    own_daemon.unix.refused("POST", "/advice", 409, "nothing-open", QUESTION)


def test_versions_are_told(own_daemon):
    """The advice uses figures of another build in the same environment, and names both versions."""
    unix = own_daemon.unix
    path = "/advice?workload=pingpong&message_size=1024&want=latency_p50"
    old = measure(own_daemon, transport=["pipe", "shm-posix"], message_size=1024, repetitions=8)
    measure(own_daemon, transport="tcp", message_size=1024, repetitions=8)
    here = unix.get(f"/experiments/{old}")["version"]
    advice = unix.get(path)
    assert {item["version"] for item in advice["items"]} == {here} and "versions" not in advice["sentence"]
    with database.live(own_daemon.base / "state/ipclab.db") as db:
        db.execute("UPDATE experiments SET version = '0.0.1' WHERE id = ?", (old,))
        note_change(db, old)
    advice = unix.get(path)
    assert [item["version"] for item in advice["items"]] == ["0.0.1", "0.0.1", here]
    assert f" The figures come from different versions of ipclab: 0.0.1, {here}." in advice["sentence"]


def test_another_environment_is_left_out(own_daemon):
    """Figures of another kernel are no figures of this one."""
    experiment = measure(own_daemon, transport="pipe", message_size=4096, repetitions=1)
    path = "/advice?workload=pingpong&want=latency_p50"
    assert own_daemon.unix.get(path)["experiments"]["used"] == 1
    with database.live(own_daemon.base / "state/ipclab.db") as db:
        db.execute("UPDATE runs SET environment = json_set(environment, '$.before.kernel_release', '2.6.32')")
    write_figures(own_daemon, experiment, law)  # which is a change
    advice = own_daemon.unix.get(path)
    assert advice["items"] == [] and advice["experiments"] == {
        "used": 0,
        "other_environment": 1,
        "open_loop_or_tuned": 0,
        "unreadable": 0,
    }
    assert " 1 other experiment was left out: the environment was another in kernel_release." in advice["sentence"]
    assert "nothing that can be ranked is known of it under the environment" in advice["sentence"]


def test_what_cannot_be_read_is_left_out(own_daemon):
    """One damaged result, and one point of another version: neither takes the other experiments' figures away."""
    unix = own_daemon.unix
    damaged, foreign, good = (measure(own_daemon, transport="pipe", repetitions=1) for _ in range(3))
    with database.live(own_daemon.base / "state/ipclab.db") as db:
        db.execute("UPDATE runs SET result = '{' WHERE experiment_id = ?", (damaged,))
        db.execute("""UPDATE points SET point = '{"workload": "song"}' WHERE experiment_id = ?""", (foreign,))
        db.execute("UPDATE experiments SET change = change + 1000000 WHERE id < ?", (good,))
    advice = unix.get("/advice?workload=pingpong&want=latency_p50")
    assert advice["experiments"] == {"used": 1, "other_environment": 0, "open_loop_or_tuned": 0, "unreadable": 1}
    assert [item["experiment_id"] for item in advice["items"]] == [good]
    assert unix.get(f"/experiments/{foreign}/findings")["comparisons"] == 0
    unix.refused("GET", f"/experiments/{damaged}/findings", 500, "damaged")


def test_where_nothing_is_known(own_daemon):
    """The spec that would settle it has every transport, and is one that this daemon takes."""
    advice = own_daemon.unix.get("/advice?message_size=512&threads=2&placement=same-cpu")
    assert advice["items"] == [] and "nothing is known" in advice["sentence"]
    transports_here = {one["name"] for one in own_daemon.unix.get("/transports")["items"]}
    assert set(advice["settle"]["transport"]) == transports_here
    assert " 12 runs of each transport that can answer are proposed." in advice["sentence"]
    assert own_daemon.stranger.request("POST", "/advice", {"message_size": 512}).status == 401
    answer = own_daemon.tcp.request("POST", "/advice", {"message_size": 512, "threads": 2, "placement": "same-cpu"})
    assert answer.status == 201 and answer.json["spec"] == advice["settle"]


def test_where_only_another_placement_is_known(own_daemon):
    measure(own_daemon, transport=["pipe", "unix-stream"], message_size=4096, placement="same-cpu")
    advice = own_daemon.unix.get("/advice?message_size=4096&workload=pingpong")
    assert advice["items"] == [] and advice["other_placements"] == ["same-cpu"]
    assert advice["sentence"].endswith(" Runs with another placement are stored: same-cpu.")
    other = own_daemon.unix.get("/advice?message_size=4096&workload=pingpong&placement=same-cpu")
    assert len(other["items"]) == 2 and other["other_placements"] == []
    assert own_daemon.unix.get("/advice?message_size=4096&workload=stream")["other_placements"] == []


def test_streams_both_ways_are_a_question_of_their_own(own_daemon):
    """Their throughput is a sum, beside which one stream is no worse."""
    unix = own_daemon.unix
    spec = {"workload": "stream", "transport": "tcp", "direction": ["down", "both"], "message_size": 1024}
    measure(own_daemon, lambda point: 500 if point["direction"] == "both" else 1000, **spec, repetitions=8)
    asked = "/advice?message_size=1024"
    (one,) = unix.get(asked)["items"]
    both = unix.get(f"{asked}&direction=both")
    (two,) = both["items"]
    assert [one["point"]["direction"], two["point"]["direction"]] == ["down", "both"]
    assert two["value"] > 1.9 * one["value"] and ", both ways together: tcp " in both["sentence"]
    nothing = unix.get("/advice?message_size=2048&direction=both")
    assert nothing["settle"]["direction"] == "both" and nothing["settle"]["name"].endswith(", both ways")
    assert "tcp" in nothing["settle"]["transport"] and "pipe" not in nothing["settle"]["transport"]
    problem = unix.refused("POST", "/advice", 422, "wrong-combination", {"workload": "pingpong", "direction": "both"})
    assert problem["pointer"] == "/direction"
    unix.refused("GET", "/advice?workload=pingpong&direction=both", 422, "wrong-combination")


def test_what_is_left_out_is_named(own_daemon):
    """Runs of a rate and of another number of threads are no figures of the question, and are named."""
    unix = own_daemon.unix
    measure(own_daemon, transport="pipe", rate=2000)
    measure(own_daemon, transport="pipe", threads=2)
    advice = unix.get("/advice?workload=pingpong&want=latency_p50")
    assert advice["items"] == [] and advice["experiments"]["open_loop_or_tuned"] == 1
    assert "nothing that can be ranked is known of it under the environment that is in force now" in advice["sentence"]
    assert " Runs with another number of threads are stored: 2." in advice["sentence"]
    words = " 1 experiment of this question was left out: 1 with an open loop, whose figures are of the specified rate."
    assert words in advice["sentence"]
    known = unix.get("/advice?workload=pingpong&want=latency_p50&threads=2")
    assert len(known["items"]) == 1 and "left out" not in known["sentence"]


def test_an_experiment_that_is_left_out_for_both_reasons_is_told_as_one(own_daemon):
    both = measure(own_daemon, transport="pipe", rate=2000)
    with database.live(own_daemon.base / "state/ipclab.db") as db:
        tuned = "UPDATE specs SET merged = json_set(merged, '$.tune', json('{}')) WHERE experiment_id = ?"
        db.execute(tuned, (both,))
        note_change(db, both)
    path = "/advice?workload=pingpong&want=latency_p50"
    end = ", 1 with settings of the host that were made for the runs (%s)."
    sentence = own_daemon.unix.get(path)["sentence"]
    assert (
        " 1 experiment of this question was left out: 1 with an open loop" in sentence
        and end % "it is both" in sentence
    )
    measure(own_daemon, transport="pipe", rate=3000)
    sentence = own_daemon.unix.get(path)["sentence"]
    assert " 2 experiments of this question were left out: 2 with an open loop" in sentence
    assert end % "some are both" in sentence


def test_repetitions_that_were_added_are_told(own_daemon):
    """A rank that somebody waited for is of runs whose number may depend on it."""
    client = own_daemon.unix
    both = measure(own_daemon, transport=["pipe", "shm-posix"], message_size=1024, repetitions=4)
    path = "/advice?workload=pingpong&message_size=1024&want=latency_p50"
    assert [item["repetitions_added"] for item in client.get(path)["items"]] == [0, 0]
    client.request("POST", f"/experiments/{both}/extend", {"blocks": 2})
    client.wait_final(both)
    assert [(item["runs"], item["repetitions_added"]) for item in client.get(path)["items"]] == [(6, 2), (6, 2)]


def test_flags_of_the_leader_are_told(own_daemon):
    """That nothing disturbed it is not known of runs that nobody watched."""
    both = measure(own_daemon, transport=["pipe", "shm-posix"], message_size=1024, repetitions=8)
    path = "/advice?workload=pingpong&message_size=1024&want=latency_p50"
    assert "Some runs of" not in own_daemon.unix.get(path)["sentence"]
    with database.live(own_daemon.base / "state/ipclab.db") as db:
        flags = """UPDATE runs SET flags = '["not_observed", "environment-changed:load"]' WHERE experiment_id = ?"""
        db.execute(flags, (both,))
        note_change(db, both)
    advice = own_daemon.unix.get(path)
    assert all(item["not_observed"] and item["environment_changed"] and not item["noisy"] for item in advice["items"])
    words = " Some runs of shm-posix were not watched, or in an environment that changed, or of another build."
    assert words in advice["sentence"]


@pytest.mark.parametrize(
    ("flag", "named"), [("pipes_differ", True), ("latency_counts_differ", True), ("ends_differ", False)]
)
def test_a_flag_that_disputes_the_leader_is_named(own_daemon, flag, named):
    """The sentence names it where it disputes the requested figure."""
    both = measure(own_daemon, transport=["pipe", "shm-posix"], message_size=1024, repetitions=8)
    path = "/advice?workload=pingpong&message_size=1024&want=latency_p50"
    with database.live(own_daemon.base / "state/ipclab.db") as db:
        of_ring = (
            "point_id IN (SELECT id FROM points WHERE experiment_id = ? AND point ->> '$.transport' = 'shm-posix')"
        )
        db.execute("UPDATE runs SET flags = '[]' WHERE experiment_id = ?", (both,))
        db.execute(f"UPDATE runs SET flags = ? WHERE {of_ring} AND repetition <= 3", (json.dumps([flag]), both))
        note_change(db, both)
    advice = own_daemon.unix.get(path)
    leader, other = advice["items"]
    assert leader["point"]["transport"] == "shm-posix" and leader["leads"]
    assert (leader["runs_disputed"], other["runs_disputed"]) == ({flag: 3}, {})
    assert (f" 3 of the 8 runs of shm-posix have the flag {flag}: " in advice["sentence"]) == named


def test_unlike_buffers_are_named(own_daemon):
    """A pipe of a page beside a ring of a megabyte: the ranking says that they had these."""
    unix = own_daemon.unix
    both = {"message_size": 1024, "repetitions": 8}
    measure(
        own_daemon, **both, transport=["pipe", "unix-stream"], transport_options={"pipe_size": 4096, "sndbuf": 65536}
    )
    (pipe, other) = unix.get("/advice?workload=pingpong&message_size=1024&want=latency_p50")["items"]
    assert pipe["buffer_bytes"] == 4096 and other["buffer_bytes"] > 4096 and not pipe["gathers"]
    sentence = unix.get("/advice?workload=pingpong&message_size=1024&want=latency_p50")["sentence"]
    assert " Their settings are unlike: buffers of 4 KiB (pipe), " in sentence and " KiB (unix-stream)." in sentence


def test_unlike_pieces_of_a_message_are_named(own_daemon):
    spec = {"transport": ["pipe", "msgq-sysv"], "message_size": 32768, "chunk": True, "repetitions": 4}
    measure(own_daemon, **spec)
    sentence = own_daemon.unix.get("/advice?workload=pingpong&message_size=32768&want=latency_p50")["sentence"]
    assert "Their settings are unlike: msgq-sysv sends a message in pieces of " in sentence


def test_one_mechanism_is_no_ranking(own_daemon):
    """All others are open."""
    measure(own_daemon, transport="pipe", message_size=1024, repetitions=8)
    advice = own_daemon.unix.get("/advice?workload=pingpong&message_size=1024&want=latency_p50")
    assert transports(advice, "best") == ["pipe"] and len(advice["items"]) == 1
    assert "pipe alone was measured: its median latency is " in advice["sentence"]
    assert {"pipe", "fifo", "tcp"} < set(advice["settle"]["transport"])
    assert "12 runs of each transport that can answer are proposed." in advice["sentence"]
    limited = own_daemon.unix.get(
        "/advice?workload=pingpong&message_size=1024&want=latency_p50&latency_p99_below_us=50"
    )
    assert limited["settle"]["name"].endswith("1024 B, threads 1, default, p99 below 50 us")


def test_equal_figures_have_no_lowest(own_daemon):
    """A clock's steps make medians equal to the last digit."""
    measure(own_daemon, lambda point: 8, transport=["pipe", "unix-stream"], message_size=1024, repetitions=8)
    advice = own_daemon.unix.get("/advice?workload=pingpong&message_size=1024&want=latency_p50")
    assert [item["value"] for item in advice["items"]] == [8, 8]
    assert " leads: its median latency is 8 ns" in advice["sentence"] and "lowest" not in advice["sentence"]
    assert " 1 of them has the same median latency." in advice["sentence"]


def test_a_streams_latency_needs_stamps(own_daemon):
    """What would settle it are runs that have one."""
    question = {"message_size": 512, "want": "latency_p99"}
    advice = own_daemon.unix.get("/advice?message_size=512&want=latency_p99")
    assert advice["settle"]["transport"] == ["tcp"] and advice["settle"]["stamp"] is True
    assert "carry the time of their sending over tcp alone" in advice["sentence"]
    for _ in range(2):  # what was measured for it is no stream without stamps
        answer = own_daemon.unix.request("POST", "/advice", question)
        assert answer.status == 201, answer
        own_daemon.unix.request("POST", f"/experiments/{answer.json['id']}/cancel")
        own_daemon.unix.wait_final(answer.json["id"])
    short = own_daemon.unix.get("/advice?message_size=8&want=latency_p99")
    assert short["settle"] is None and "nothing is known" in short["sentence"]
    own_daemon.unix.refused("POST", "/advice", 409, "nothing-open", question | {"message_size": 8})


def test_runs_of_all_are_advised_until_each_has_been_measured(own_daemon):
    """A mechanism with an option and no percentile gets none from runs without the option."""
    unix = own_daemon.unix
    size = 1 << 18  # too long for some transport's datagrams or queues, on most hosts
    question = QUESTION | {"message_size": size, "latency_p99_below_us": 0.001}
    path = f"/advice?workload=pingpong&want=latency_p50&message_size={size}&latency_p99_below_us=0.001"
    short = SPEC | {"message_size": size, "messages": 50, "transport_options": {"pipe_size": 65536}}
    assert unix.wait_final(unix.post(short | {"transport": "pipe"})["id"])["state"] == "done"
    ranked = unix.get(f"/advice?workload=pingpong&want=latency_p99&message_size={size}")
    assert ranked["items"] == [] and ranked["experiments"]["used"] == 1
    few = "it was measured, but has no 99th percentile of latency to rank by: a run has fewer than 1000 latencies, and "
    assert few in ranked["sentence"]
    advice = unix.get(path)
    assert [(item["standing"], item["reason"]) for item in advice["items"]] == [("excluded", "limit-not-known")]
    every = {one["name"] for one in unix.get("/transports")["items"]}
    assert set(advice["settle"]["transport"]) == every

    assert advice["settle"]["messages"] == 1000 and "duration_seconds" not in advice["settle"]  # enough for a p99
    spec = SPEC | {"message_size": size, "transport": sorted(every), "skip_impossible": True, "messages": 1000}
    assert unix.wait_final(unix.post(spec)["id"])["state"] == "done"
    advice = unix.get(path)
    assert sorted(item["reason"] for item in advice["items"]).count("limit-not-known") == 1
    assert advice["settle"] is None
    unix.refused("POST", "/advice", 409, "nothing-open", question)


def test_runs_of_minutes_are_not_proposed(unix):
    """A percentile of long messages needs as many of them as one of short ones; their bytes are known before."""
    question = {"workload": "pingpong", "message_size": 1 << 30, "want": "latency_p99"}
    path = "/advice?workload=pingpong&want={}&message_size={}"
    advice = unix.get(path.format("latency_p99", 1 << 30))
    assert advice["settle"] is None and "No runs are proposed" in advice["sentence"]
    assert "too long" in unix.refused("POST", "/advice", 409, "nothing-open", question)["detail"]
    limited = unix.get(path.format("latency_p50", 1 << 30) + "&latency_p99_below_us=1000")
    assert limited["settle"] is None and "No runs are proposed" in limited["sentence"]
    median = unix.get(path.format("latency_p50", 1 << 30))
    assert "messages" not in median["settle"] and "No runs" not in median["sentence"]
    shorter = unix.get(path.format("latency_p99", 30_000_000))
    assert shorter["settle"]["messages"] == 1000 and "No runs" not in shorter["sentence"]
    assert unix.get(path.format("latency_p99", 30_000_001))["settle"] is None


def test_a_limit_of_a_streams_latency_needs_stamps(own_daemon):
    """Streams without them, of whatever transport, leave open whether the limit is kept."""
    unix = own_daemon.unix
    path = "/advice?message_size=512&want=throughput&latency_p99_below_us=0.001"
    spec = {"messages": 10_000, "warmup_seconds": 0, "message_size": 512}  # one in eight carries a time
    for transport in ("pipe", "tcp"):
        assert unix.wait_final(unix.post(spec | {"transport": transport})["id"])["state"] == "done"
        settle = unix.get(path)["settle"]
        assert settle["transport"] == ["tcp"] and settle["stamp"] is True
    assert unix.wait_final(unix.post(spec | {"transport": "tcp", "stamp": True})["id"])["state"] == "done"
    advice = unix.get(path)
    assert sorted(item["reason"] for item in advice["items"]) == ["limit", "limit-not-known", "limit-not-known"]
    assert advice["settle"] is None


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("message_size", "0"),
        ("message_size", "1073741825"),
        ("workload", "syscall"),
        ("placement", "all-cpu-pairs"),
        ("threads", "1025"),
        ("direction", "down"),
        ("want", "beauty"),
        ("latency_p99_below_us", "-1"),
        ("latency_p99_below_us", "nan"),
        ("throughput_above_mb_per_second", "0"),
        ("throughput_above_mb_per_second", "1000000000001"),
    ],
)
def test_bad_questions(unix, name, bad):
    problem = unix.refused("GET", f"/advice?{name}={bad}", 400, "bad-parameter")
    assert name in problem["detail"] and bad in problem["detail"]
    body = {name: float(bad) if bad.lstrip("-").isdigit() else bad}
    problem = unix.refused("POST", "/advice", 422, "bad-value", body)
    assert problem["pointer"] == f"/{name}" and name in problem["detail"]


def test_a_limit_may_have_an_exponent(unix):
    """As JSON writes numbers that are very small."""
    sentences = [unix.get(f"/advice?cpu_per_message_below_us={limit}")["sentence"] for limit in ("1e-7", "0.0000001")]
    assert sentences[0] == sentences[1]
    answer = unix.request("POST", "/advice", {"cpu_per_message_below_us": 1e-7})
    assert answer.status in (201, 409), answer
    if answer.status == 201:
        unix.request("POST", f"/experiments/{answer.json['id']}/cancel")


def test_bad_bodies(unix):
    unix.refused("POST", "/advice", 422, "unknown-field", {"colour": "red"})
    unix.refused("POST", "/advice", 422, "bad-value", {"message_size": "4096"})
    unix.refused("POST", "/advice", 422, "wrong-type", [])
    unix.refused("POST", "/advice", 400, "invalid-json", "{", {"Content-Type": "application/json"})


def fail(daemon, spec, repetitions):
    """An experiment whose runs have all failed, as an agent was killed; its id."""
    experiment = daemon.unix.post(spec)["id"]
    os.kill(wait_agents(daemon, 2)["initiator"], signal.SIGKILL)
    assert daemon.unix.wait_final(experiment)["state"] == "failed"
    repeat(daemon, experiment, repetitions)
    return experiment


def test_a_transport_that_only_fails_is_not_proposed_for_ever():
    """Its runs fail on the machine as it is: they are not proposed again before that has changed."""
    d = Daemon()
    try:
        unix = d.unix
        question = {"workload": "pingpong", "message_size": 100, "want": "latency_p50"}
        path = "/advice?workload=pingpong&message_size=100&want=latency_p50"
        every = set(unix.get(path)["settle"]["transport"])
        endless = {"workload": "pingpong", "message_size": 100, "messages": 10**12, "warmup_seconds": 0}
        ids = [
            fail(d, endless | {"transport": "fifo"}, 3),
            fail(d, endless | {"transport": "pipe"}, 2),  # too few to be sure
            fail(d, endless | {"transport": "unix-stream", "message_size": 101}, 3),  # another size
            fail(d, endless | {"transport": "shm-posix", "wait": "hybrid"}, 3),  # not by default
        ]
        required = SPEC | {"message_size": 100, "transport": "tcp", "repetitions": 3, "require": {"swappiness": -1}}
        ids.append(unix.wait_final(unix.post(required)["id"])["id"])  # by what the spec requires
        failed = [unix.get(f"/experiments/{experiment}")["progress"]["runs_failed"] for experiment in ids]
        assert failed == [3, 2, 3, 3, 3]
        advice = unix.get(path)
        (run, *_) = unix.items(f"/experiments/{ids[0]}/runs")
        assert advice["failing"] == [
            {"transport": "fifo", "experiment_id": ids[0], "runs_failed": 3, "error": run["error"]}
        ]
        assert set(advice["settle"]["transport"]) == every - {"fifo"}
        assert f"No runs of fifo are proposed: all its 3 runs of experiment {ids[0]} failed" in advice["sentence"]
        answer = unix.request("POST", "/advice", question)
        assert answer.status == 201 and answer.json["spec"] == advice["settle"]
        unix.request("POST", f"/experiments/{answer.json['id']}/cancel")
        unix.wait_final(answer.json["id"])
        check_damaged(d, path, ids[0])
        set_fact(d, ids[0], "build.agent_sha256", "00")  # another program may do better
        assert unix.get(path)["failing"] == []
        set_fact(d, ids[0], "build.agent_sha256", run["environment"]["build"]["agent_sha256"])
        assert unix.get(path)["failing"] != []
        set_fact(d, ids[0], "before.boot_id", "another")
        advice = unix.get(path)
        assert advice["failing"] == [] and set(advice["settle"]["transport"]) == every
    finally:
        d.remove()


def check_damaged(daemon, path, experiment):
    """What cannot be read of an experiment whose runs failed does not take the advice away."""
    for table, column, damaged in (("runs", "error", None), ("specs", "merged", "{")):
        with database.live(daemon.base / "state/ipclab.db") as db:
            kept = db.execute(f"SELECT rowid, {column} FROM {table} WHERE experiment_id = ?", (experiment,)).fetchall()
            db.execute(f"UPDATE {table} SET {column} = ? WHERE experiment_id = ?", (damaged, experiment))
            note_change(db, experiment)
        advice = daemon.unix.get(path)
        assert advice["experiments"]["unreadable"] == 1 and advice["failing"] == []
        assert "fifo" in advice["settle"]["transport"]
        with database.live(daemon.base / "state/ipclab.db") as db:
            db.executemany(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", [(text, row) for row, text in kept])
            note_change(db, experiment)
    assert [f["experiment_id"] for f in daemon.unix.get(path)["failing"]] == [experiment]


def set_fact(daemon, experiment, fact, value):
    """As if its runs had been with another one, as before a restart of the machine."""
    with database.live(daemon.base / "state/ipclab.db") as db:
        db.execute(
            "UPDATE runs SET environment = json_set(environment, '$.' || ?, ?) WHERE experiment_id = ?",
            (fact, value, experiment),
        )
        note_change(db, experiment)
