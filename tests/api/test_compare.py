# SPDX-License-Identifier: MIT
"""GET /compare: verdicts over stored runs whose figures are known, and everything that it refuses."""

import contextlib
import itertools
import json
import math
import socket
import statistics
import time
import urllib.parse

import pytest
from client import PATIENCE_SECONDS
from conftest import ENDLESS, SHORT, TIMED, Daemon
from made import repeat, write_figures
from stored import Stored

LATENCIES = ("p50", "p90", "p99", "p99_9")
PIPE, UNIX = {"transport": "pipe"}, {"transport": "unix-stream"}


def scatter(repetition, salt=0):
    """A percent or so, the same in every run of this test."""
    return 1 + 0.012 * math.sin(12.9898 * (repetition + 61 * salt)) + 1e-4 * repetition


def scaled(factor, salt=0, drift=0.0):
    def adapt(point, repetition, result):
        by = factor(point) if callable(factor) else factor
        by *= scatter(repetition, salt + 7 * (point["transport"] == "pipe")) * (1 + drift * repetition)
        result["throughput_bytes_per_second"] = 1e9 * by
        for name in LATENCIES:
            result["latency_ns"][name] = round(1e6 / by)
        result["latency_ns"]["count"] = 1_000_000

    return adapt


def counted(latencies, many_from=1):
    """The runs before that one have this number of latencies."""

    def adapt(point, repetition, result):
        scaled(1)(point, repetition, result)
        if repetition < many_from:
            result["latency_ns"]["count"] = latencies

    return adapt


def failing(point, repetition, result):
    scaled(1)(point, repetition, result)
    if repetition == 1:
        return "failed", []
    return "done", ["noisy:steal"] if repetition == 2 else []


def flagged(at, *flags):
    def adapt(point, repetition, result):
        scaled(1)(point, repetition, result)
        return "done", list(flags) if repetition == at else []

    return adapt


def probed(getpid, cpu=0, apart=1, others=None):
    """Probes on two CPUs so far apart, in which getpid takes that many times as long; a percent differs in each run.
    `others` has that of threads from 1 on of the initiator, by their CPUs."""

    def probes(repetition, taken):
        del taken
        rounds = [scatter(repetition) * (1000 + number) for number in range(15)]
        series = {"getpid_ns": {"rounds": [getpid * one for one in rounds]}, "memcpy_64k_ns": {"rounds": rounds}}
        end = {"cpu_share": 1, "cost_ns": 1, "hand_over_ns": None, "wake_up_ns": None} | series
        before = {"initiator": end | {"cpu": cpu}, "responder": end | {"cpu": cpu + apart}}
        if others:
            before["initiator"]["others"] = [
                {"thread": thread, "cpu": on, "cpu_share": 1, "cost_ns": 1}
                | {"getpid_ns": {"rounds": [times * one for one in rounds]}, "memcpy_64k_ns": {"rounds": rounds}}
                for thread, (on, times) in enumerate(others.items(), 1)
            ]
        return {"before": before, "cpus": [cpu, cpu + apart], "compared": True}

    return probes


@pytest.fixture(scope="module")
def known():
    """A daemon whose experiments have known figures, and their ids by name."""
    first = Daemon()
    spec = TIMED | {"workload": "pingpong", "transport": ["pipe", "unix-stream"], "seed": 1}
    (real,) = [first.unix.wait_final(first.unix.post(spec)["id"])]
    other = first.unix.wait_final(first.unix.post(SHORT | {"message_size": 64})["id"])
    assert real["state"] == other["state"] == "done", first.log_tail()
    assert first.stop() == 0
    stored = Stored(first.base / "state/ipclab.db")
    ids = {"real": real["id"], "other": other["id"]}
    for name, options in {
        "base": {"repetitions": 12, "adapt": scaled(1)},
        "same": {"repetitions": 12, "adapt": scaled(1, salt=1)},
        "slow": {"repetitions": 12, "adapt": scaled(0.9, salt=2)},
        "few": {"repetitions": 3, "adapt": scaled(0.97, salt=3)},
        "pipe": {"repetitions": 12, "adapt": scaled(1), "points": lambda point: point["transport"] == "pipe"},
        "drifting": {
            "repetitions": 12,
            "adapt": scaled(lambda point: 1.04 if point["transport"] == "pipe" else 1, drift=0.2),
            "merged": {"order": "shuffled"},
        },
        "failing": {"repetitions": 6, "adapt": failing},
        "restarted": {"repetitions": 12, "adapt": scaled(1, salt=4), "environment": {"boot_id": "another"}},
        "updated": {
            "repetitions": 12,
            "adapt": scaled(1),
            "environment": lambda repetition: (
                {"kernel_release": "0.0.1", "boot_id": "another"} if repetition == 12 else {}
            ),
        },
        "disputed": {"repetitions": 12, "adapt": flagged(6, "ends_differ", "noisy:load", "migrations_unknown")},
        "put back": {
            "repetitions": 12,
            "adapt": flagged(6, "noisy:load", "environment-differs:kernel_release", "environment-differs:boot_id"),
            "environment": lambda repetition: {"kernel_release": "0.0.1", "boot_id": "0"} if repetition == 6 else {},
        },
        "within a run": {"repetitions": 12, "adapt": flagged(6, "environment-changed:clocksource")},
        "swapping": {"repetitions": 12, "adapt": flagged(6, "environment-changed:swappiness")},
        "one scheduler": {"repetitions": 12, "adapt": scaled(1), "environment": {"sched_ext_ops": "lavd"}},
        "another scheduler": {"repetitions": 12, "adapt": scaled(1), "environment": {"sched_ext_ops": "rusty"}},
        "usual machine": {"repetitions": 12, "adapt": scaled(1), "probes": probed(1)},
        "slow machine": {"repetitions": 12, "adapt": scaled(0.8), "probes": probed(1.25)},
        "one CPU": {"repetitions": 12, "adapt": scaled(1), "probes": probed(1, apart=0)},
        "slow CPU": {"repetitions": 12, "adapt": scaled(0.8), "probes": probed(1.25, apart=0)},
        "threads": {"repetitions": 12, "adapt": scaled(1), "probes": probed(1, others={0: 1, 2: 1, 3: 1})},
        "slow thread": {"repetitions": 12, "adapt": scaled(0.8), "probes": probed(1, others={0: 2, 2: 1, 3: 1.25})},
        "near threads": {"repetitions": 12, "adapt": scaled(1), "probes": probed(1.02, others={0: 1, 2: 1, 3: 1.02})},
        "fewer threads": {"repetitions": 12, "adapt": scaled(1), "probes": probed(1, others={2: 1})},
        "near machine": {"repetitions": 12, "adapt": scaled(0.96), "probes": probed(1.05)},
        "one run on it": {
            "repetitions": 1,
            "adapt": scaled(0.8),
            "points": lambda point: point["transport"] == "pipe",
            "probes": probed(1.25),
        },
        "other CPUs": {"repetitions": 12, "adapt": scaled(1), "probes": probed(1, cpu=2)},
        "no probes": {"repetitions": 12, "adapt": scaled(1), "probes": lambda repetition, taken: None},
        "half unprobed": {
            "repetitions": 24,
            "adapt": scaled(1),
            "probes": lambda repetition, taken: probed(1)(repetition, taken) if repetition % 2 else None,
        },
        "once elsewhere": {
            "repetitions": 12,
            "adapt": scaled(1),
            "probes": lambda repetition, taken: probed(1, cpu=2 if repetition == 12 else 0)(repetition, taken),
        },
        **{
            name: {
                "repetitions": 24,
                "adapt": scaled(1),
                "probes": lambda repetition, taken, cpu=cpu: probed(1, cpu=cpu + 2 * max(0, repetition - 12))(
                    repetition, taken
                ),
            }
            for name, cpu in {"13 places": 0, "13 places too": 0, "13 other places": 2}.items()
        },
        "kernel": {"repetitions": 12, "adapt": scaled(1), "environment": {"kernel_release": "0.0.1", "lsm": None}},
        "zero": {"repetitions": 6, "adapt": lambda point, repetition, result: result.update(cost_ns=0)},
        "999 latencies": {"repetitions": 12, "adapt": counted(999, many_from=2)},
        "1000 latencies": {"repetitions": 12, "adapt": counted(1000, many_from=13)},
        "99 latencies": {"repetitions": 12, "adapt": counted(99, many_from=13)},
        "many": {"repetitions": 61, "adapt": scaled(1), "points": lambda point: point["transport"] == "pipe"},
    }.items():
        ids[name] = stored.copy(real["id"], **options)
    for name in ("watched", "watched longer"):
        ids[name] = stored.copy(
            real["id"],
            12,
            scaled(lambda point: 1.02 if point["transport"] == "pipe" else 1),
            merged={
                "until": {
                    "relative_ci": 0.02,
                    "figure": "throughput",
                    "max_repetitions": 60,
                    "compare": {"axis": "transport"},
                }
            },
        )
    looks = json.dumps(
        {"repetitions_asked": 9, "looks": [{"repetitions": n, "pairs_reached": 0} for n in range(1, 12)]}
    )
    stored.db.execute("UPDATE experiments SET until = ? WHERE id = ?", (looks, ids["watched longer"]))
    ids["blocks"] = stored.copy(
        real["id"],
        12,
        scaled(lambda point: 1.04 if point["transport"] == "pipe" else 1, drift=0.2),
        merged={"order": "blocks", "duration_seconds": 0.4},
    )
    for name, repetitions in (("near", 12), ("retried", 13)):
        near = scaled(lambda point: 1.01 if point["transport"] == "pipe" else 1)
        ids[name] = stored.copy(real["id"], repetitions, near, merged={"order": "blocks"})
    stored.db.execute(
        "UPDATE runs SET block = 1000001 WHERE experiment_id = ? AND repetition = 13"
        " AND point_id IN (SELECT id FROM points WHERE json_extract(point, '$.transport') = 'pipe')",
        (ids["retried"],),
    )
    ids["extended"] = stored.copy(real["id"], 12, scaled(1))
    stored.db.execute(
        "UPDATE specs SET merged = json_set(merged, '$.repetitions', 8) WHERE experiment_id = ?", (ids["extended"],)
    )
    ids["wide"], ids["wide too"] = (stored.widen(real["id"], 600, 2, scaled(1, salt=salt)) for salt in (5, 6))
    stored.close()
    daemon = Daemon(f"--state-dir={first.base / 'state'}")
    yield daemon, ids
    assert daemon.stop() == 0, daemon.log_tail()
    daemon.remove()
    first.remove()


@pytest.fixture
def compare(known):
    daemon, ids = known

    def get(baseline, candidate, more=""):
        return daemon.unix.get(f"/compare?baseline={ids[baseline]}&candidate={ids[candidate]}{more}")

    return get


def logs(unix, identity, name, **point):
    runs = [run for run in unix.items(f"/experiments/{identity}/runs") if point.items() <= run["point"].items()]
    return [math.log(run["result"][name]) for run in runs if run["state"] == "done"]


def shift(base, candidate):
    """Hodges and Lehmann's estimate of a ratio."""
    return math.exp(statistics.median(c - b for b, c in itertools.product(base, candidate)))


def figure(answer, transport="pipe", name="throughput_bytes_per_second"):
    (row,) = [row for row in answer["rows"] if row["baseline"]["point"]["transport"] == transport]
    return row["figures"][name]


def test_the_ratio_is_of_the_runs(known, compare):
    """As the API shows them."""
    daemon, ids = known
    found = figure(compare("base", "slow"))
    base, slow = (logs(daemon.unix, ids[name], "throughput_bytes_per_second", **PIPE) for name in ("base", "slow"))
    assert found["ratio"] == pytest.approx(shift(base, slow), rel=1e-12)
    assert found["interval"]["low"] < found["ratio"] < found["interval"]["high"]
    assert 0.95 <= found["interval"]["level"] < 1
    assert found["runs_baseline"] == found["runs_candidate"] == 12 and not found["paired"]


def test_what_is_slower_is_called_slower(compare):
    answer = compare("base", "slow")
    names = ["throughput_bytes_per_second", *(f"latency_ns_{name}" for name in LATENCIES)]
    for transport, name in itertools.product(("pipe", "unix-stream"), names):
        found = figure(answer, transport, name)
        assert found["verdict"] == "slower" and found["differs"] and found["p_adjusted"] <= 0.05
        assert found["p"] <= found["p_adjusted"]
        assert (found["ratio"] < 1) == (name == names[0])
        assert found["visible_difference"] is None and found["runs_needed"] is None
    assert answer["verdicts"]["slower"] == 10 and sum(answer["verdicts"].values()) == answer["tests"]
    assert figure(compare("slow", "base"))["verdict"] == "faster"


def test_what_is_the_same_is_equivalent(compare):
    answer = compare("base", "same")
    found = figure(answer)
    assert found["verdict"] == "equivalent"
    assert 0.97 <= found["equivalence_interval"]["low"] <= found["equivalence_interval"]["high"] <= 1.03
    assert answer["delta"] == 0.03 and answer["verdicts"]["slower"] == answer["verdicts"]["faster"] == 0
    narrow = figure(compare("base", "same", "&delta=0.0001"))
    assert narrow["verdict"] == "undecided"
    assert narrow["runs_needed"] is None and "it would take more than the 60 runs" in narrow["runs_needed_reason"]
    assert figure(compare("base", "slow", "&delta=0.5"))["verdict"] == "equivalent"


def test_undecided_has_what_would_decide(compare):
    found = figure(compare("base", "few"))
    assert found["verdict"] == "undecided" and not found["differs"]
    assert 3 < found["runs_needed"] <= 60 and "runs_needed_reason" not in found
    assert found["runs_candidate"] == 3 and found["runs_baseline"] == 12


def test_too_few_runs_are_not_called_independent(compare):
    """Nobody can tell of fewer than 12 runs whether each depends on the one before it: 1 would mean that none does."""
    cases = (("base", "few", "the candidate has fewer"), ("few", "base", "the baseline has fewer"))
    for baseline, candidate, reason in (*cases, ("few", "failing", "each side has fewer")):
        found = figure(compare(baseline, candidate))
        assert not found["paired"] and found["widening"] is None and reason in found["widening_reason"]
    found = figure(compare("base", "same"))
    assert not found["paired"] and found["widening"] >= 1 and "widening_reason" not in found


def test_unmatched_points_are_listed(compare):
    answer = compare("base", "pipe")
    assert [row["baseline"]["point"]["transport"] for row in answer["rows"]] == ["pipe"]
    assert [point["transport"] for point in answer["only_in_baseline"]] == ["unix-stream"]
    assert answer["only_in_candidate"] == []
    assert len(compare("pipe", "base")["only_in_candidate"]) == 1


def test_noisy_runs_count_and_failed_ones_do_not(compare):
    answer = compare("base", "failing")
    for row in answer["rows"]:
        assert (row["candidate"]["runs"], row["candidate"]["runs_failed"], row["candidate"]["runs_noisy"]) == (5, 1, 1)
        assert row["figures"]["throughput_bytes_per_second"]["runs_candidate"] == 5
        assert row["baseline"]["runs_noisy"] == 0


def test_runs_that_a_flag_disputes_count_and_are_told(compare):
    for row in compare("base", "disputed")["rows"]:
        assert (row["baseline"]["runs_disputed"], row["candidate"]["runs_disputed"]) == ({}, {"ends_differ": 1})
        assert row["candidate"]["runs"] == row["figures"]["throughput_bytes_per_second"]["runs_candidate"] == 12


def test_a_figure_that_is_missing_has_its_reason(compare):
    (row,) = compare("base", "pipe")["rows"]
    for name, value in row["figures"].items():
        assert (value is None) == (name in row["reasons"])
    assert row["figures"]["cost_ns"] is None and "neither" not in row["reasons"]["cost_ns"]
    assert "either side" in row["reasons"]["cost_ns"]
    row = compare("base", "zero")["rows"][0]
    assert "baseline" in row["reasons"]["cost_ns"]
    other = compare("zero", "base")["rows"][0]
    assert "candidate" in other["reasons"]["cost_ns"]


def test_a_percentile_takes_ten_latencies_beyond_it(known, compare):
    """In every run: without the slow ones, which have few messages, the others are no fair choice. Everywhere alike."""
    daemon, ids = known
    for latencies, least in ((10_000_000, 0), (1000, 1000), (999, 1000), (99, 100)):
        name = f"{latencies} latencies" if least else "same"
        missing = [p for p, n in (("p90", 100), ("p99", 1000), ("p99_9", 10_000)) if latencies < n]
        for pair in (("base", name), (name, "base")):
            row = compare(*pair)["rows"][0]
            assert row["figures"]["latency_ns_p50"] and row["figures"]["throughput_bytes_per_second"]
            for p in ("p90", "p99", "p99_9"):
                assert (row["figures"][f"latency_ns_{p}"] is None) == (p in missing), (latencies, p)
            for p in missing:
                assert "latencies, and too few of them lie beyond the" in row["reasons"][f"latency_ns_{p}"]
        row = daemon.unix.get(f"/experiments/{ids[name]}/results")["items"][0]
        assert row["latency_ns"]["p99"]["n"] == 12, "shown as the runs report it"
        assert {f"latency_ns_{p}" for p in missing} == {k for k in row["reasons"] if k.startswith("latency_ns_")}
        findings = daemon.unix.get(f"/experiments/{ids[name]}/findings")["items"]
        assert ("p99" in missing) == any(item["reason"] == "few-messages" for item in findings)


def test_sixty_runs_a_side_take_part(compare):
    found = figure(compare("many", "pipe"))
    assert (found["runs_baseline"], found["runs_candidate"]) == (60, 12)
    assert compare("many", "pipe")["rows"][0]["baseline"]["runs"] == 61


def test_environments_are_the_headline(known, compare):
    daemon, ids = known
    answer = daemon.unix.request("GET", f"/compare?baseline={ids['base']}&candidate={ids['same']}")
    assert answer.body.startswith(b'{"environment":')
    assert answer.json["environment"] == {"alike": True, "forced": False, "differences": []}
    assert not answer.json["interleaved"]
    restarted = compare("base", "restarted")["environment"]
    assert restarted["alike"]
    (boot,) = restarted["differences"]
    assert boot["key"] == "boot_id" and boot["candidate"] == "another" and not boot["unlike"]


def test_unlike_environments_are_refused_unless_forced(known, compare):
    daemon, ids = known
    target = f"/compare?baseline={ids['base']}&candidate={ids['kernel']}"
    problem = daemon.unix.refused("GET", target, 409, "unlike-environments")
    assert "kernel_release" in problem["detail"] and "0.0.1" in problem["detail"] and "force=true" in problem["detail"]
    assert "lsm" not in problem["detail"]
    environment = compare("base", "kernel", "&force=true")["environment"]
    assert environment["forced"] and not environment["alike"]
    unlike = {one["key"]: one["unlike"] for one in environment["differences"]}
    assert unlike["kernel_release"] and unlike.get("lsm") in (None, False)
    daemon.unix.refused("GET", target + "&force=false", 409, "unlike-environments")
    assert not compare("base", "same", "&force=true")["environment"]["forced"]


def test_two_schedulers_of_sched_ext_are_unlike(known):
    daemon, ids = known
    target = f"/compare?baseline={ids['one scheduler']}&candidate={ids['another scheduler']}"
    assert "sched_ext_ops" in daemon.unix.refused("GET", target, 409, "unlike-environments")["detail"]


def test_an_environment_that_changed_within_an_experiment_is_unlike(known, compare):
    """Its first run is like those of the other side."""
    daemon, ids = known
    target = f"/compare?baseline={ids['base']}&candidate={ids['updated']}"
    detail = daemon.unix.refused("GET", target, 409, "unlike-environments")["detail"]
    assert f"experiment {ids['updated']} changed between its first run and its last in kernel_release" in detail
    answer = compare("base", "updated", "&force=true")
    assert answer["environment"] == {"alike": False, "forced": True, "differences": []}
    assert answer["baseline"]["environment_changed"] == []
    (changed,) = answer["candidate"]["environment_changed"]
    assert (changed["key"], changed["last"]) == ("kernel_release", "0.0.1") and changed["first"] != "0.0.1"


def test_a_change_that_was_undone_before_the_last_run_is_known(known, compare):
    """The first run and the last are alike, and so are those of the other side."""
    daemon, ids = known
    target = f"/compare?baseline={ids['base']}&candidate={ids['put back']}"
    detail = daemon.unix.refused("GET", target, 409, "unlike-environments")["detail"]
    assert f"environment of experiment {ids['put back']} changed" in detail and "0.0.1" in detail
    (changed,) = compare("base", "put back", "&force=true")["candidate"]["environment_changed"]
    assert (changed["key"], changed["last"]) == ("kernel_release", "0.0.1") and changed["first"] != "0.0.1"

    target = f"/compare?baseline={ids['within a run']}&candidate={ids['base']}"
    detail = daemon.unix.refused("GET", target, 409, "unlike-environments")["detail"]
    assert "clocksource (" in detail and "another meanwhile)" in detail
    (changed,) = compare("within a run", "base", "&force=true")["baseline"]["environment_changed"]
    assert changed["key"] == "clocksource" and isinstance(changed["first"], str) and changed["last"] is None
    assert compare("swapping", "base")["environment"]["alike"], "figures are comparable all the same, as in findings"

    target = f"/compare?experiment={ids['put back']}&axis=transport&baseline=pipe&candidate=unix-stream"
    differences = daemon.unix.get(target)["environment"]["differences"]
    assert {one["key"]: one["unlike"] for one in differences} == {"kernel_release": True, "boot_id": False}


def test_the_machine_is_compared_by_its_probes(compare):
    """Both points of an experiment have one pair of CPUs; with the tolerance of getpid, 5 % more is no other state."""
    machine = compare("usual machine", "slow machine")["machine"]
    assert machine["state"] == "differs" and machine["reason"] is None
    for probe in machine["probes"]:
        assert probe["cpus"] == [0, 1] and probe["cpu"] in probe["cpus"]
        assert probe["runs_baseline"] == probe["runs_candidate"] == 24
        assert probe["differs"] == (probe["what"] == "getpid_ns")
        assert probe["ratio"] == pytest.approx(1.25 if probe["differs"] else 1, rel=0.01)
        assert probe["interval"]["low"] <= probe["ratio"] <= probe["interval"]["high"]
        assert probe["candidate"] / probe["baseline"] == pytest.approx(probe["ratio"], rel=0.02)
    assert sum(probe["differs"] for probe in machine["probes"]) == 2  # ends
    near = compare("usual machine", "near machine")["machine"]
    assert near["state"] == "no-difference" and not any(probe["differs"] for probe in near["probes"])


def test_a_cpu_of_both_ends_is_compared_once(compare):
    machine = compare("one CPU", "slow CPU")["machine"]
    assert machine["state"] == "differs"
    assert [(probe["cpus"], probe["what"]) for probe in machine["probes"]] == [
        ([0, 0], "getpid_ns"),
        ([0, 0], "memcpy_64k_ns"),
    ]


def test_the_cpus_of_further_threads_are_compared(compare):
    """The one that is on a CPU of thread 0 adds nothing; one that is probed on a side only leaves it unknown."""
    machine = compare("threads", "slow thread")["machine"]
    assert machine["state"] == "differs"
    assert [(probe["cpu"], probe["what"]) for probe in machine["probes"]] == [
        (cpu, what) for cpu in (0, 1, 2, 3) for what in ("getpid_ns", "memcpy_64k_ns")
    ]
    assert [probe["cpu"] for probe in machine["probes"] if probe["differs"]] == [3]
    assert {tuple(probe["cpus"]) for probe in machine["probes"]} == {(0, 1)}
    assert compare("threads", "near threads")["machine"]["state"] == "no-difference"
    for pair in (("threads", "fewer threads"), ("fewer threads", "threads"), ("usual machine", "threads")):
        machine = compare(*pair)["machine"]
        assert machine["state"] == "unknown" and "were probed in one experiment alone" in machine["reason"]
        assert 3 not in [probe["cpu"] for probe in machine["probes"]], pair
        assert machine["runs_uncompared"] == {"baseline": 0, "candidate": 0}


def test_a_machine_of_which_too_little_is_known(known, compare):
    few = compare("usual machine", "one run on it")["machine"]
    assert few["state"] == "unknown" and "too few runs" in few["reason"] and few["probes"]
    for other in ("other CPUs", "no probes"):
        machine = compare("usual machine", other)["machine"]
        uncompared = {"baseline": 24, "candidate": 24}
        assert machine == {
            "state": "unknown",
            "reason": machine["reason"],
            "runs_uncompared": uncompared,
            "probes": [],
        }
        assert "no runs of both on the same CPUs" in machine["reason"]
    daemon, ids = known
    target = f"/compare?experiment={ids['slow machine']}&axis=transport&baseline=pipe&candidate=unix-stream"
    assert daemon.unix.get(target)["machine"] is None  # the runs took turns


def test_runs_that_were_not_compared_leave_the_machine_unknown(compare):
    """What was probed on other CPUs, or not at all, is not known to be unchanged; what differs differs all the same."""
    for other, n in (("half unprobed", 24), ("once elsewhere", 2)):
        for pair, side in ((("usual machine", other), "candidate"), ((other, "usual machine"), "baseline")):
            machine = compare(*pair)["machine"]
            assert machine["state"] == "unknown" and "some runs have no probes" in machine["reason"], pair
            assert machine["probes"] and not any(probe["differs"] for probe in machine["probes"])
            assert machine["runs_uncompared"] == {"baseline": 0, "candidate": 0} | {side: n}
        machine = compare("slow machine", other)["machine"]
        assert machine["state"] == "differs" and machine["runs_uncompared"]["candidate"] == n
    assert compare("usual machine", "near machine")["machine"]["runs_uncompared"] == {"baseline": 0, "candidate": 0}


def test_that_only_the_first_sets_of_cpus_are_compared_is_told(compare):
    """Runs of a further set are not said to have no probes of CPUs that both have."""
    for candidate, why in (
        ("usual machine", "some runs were on others, and those that were compared show no difference"),
        ("13 places too", "too few runs of both on the same of these have probes to find a difference"),
        ("slow CPU", "no runs of both on the same of these have probes"),
    ):
        machine = compare("13 places" if candidate != "slow CPU" else "13 other places", candidate)["machine"]
        assert machine["state"] == "unknown"
        assert machine["reason"] == f"only the first 8 sets of CPUs of the baseline are compared: {why}"
    both = compare("13 places", "13 places too")["machine"]
    assert len({tuple(probe["cpus"]) for probe in both["probes"]}) == 8
    assert both["runs_uncompared"] == {"baseline": 10, "candidate": 10}


def test_findings_name_runs_whose_machine_is_unknown(known):
    """Within a row: each run is held against the first one on its own CPUs, or, without a probe, against none."""
    daemon, ids = known
    for name, doubted in (("usual machine", False), ("once elsewhere", True), ("half unprobed", True)):
        items = daemon.unix.items(f"/experiments/{ids[name]}/findings")
        said = [item["sentence"] for item in items if item["reason"] == "machine-unknown"]
        assert len(said) == doubted and all("2 of 2 rows have" in sentence for sentence in said), name


def test_settings_that_differ_are_listed(compare):
    assert compare("base", "same")["settings"]["differences"] == []
    (difference,) = compare("base", "blocks")["settings"]["differences"]
    assert difference == {"key": "duration_seconds", "baseline": TIMED["duration_seconds"], "candidate": 0.4}


AXIS = "/compare?experiment={}&axis=transport&baseline=pipe&candidate=unix-stream"


def test_two_values_of_an_axis(known):
    """The drift of 20 % a repetition hides 4 % from runs that are not paired by block."""
    daemon, ids = known
    shuffled = daemon.unix.get(AXIS.format(ids["drifting"]))
    assert shuffled["axis"] == "transport" and shuffled["interleaved"]
    assert (shuffled["baseline"]["value"], shuffled["candidate"]["value"]) == ("pipe", "unix-stream")
    assert not figure(shuffled)["paired"] and figure(shuffled)["verdict"] == "undecided"
    paired = figure(daemon.unix.get(AXIS.format(ids["blocks"])))
    assert paired["paired"] and paired["verdict"] == "slower"
    base, candidate = (
        logs(daemon.unix, ids["blocks"], "throughput_bytes_per_second", **point) for point in (PIPE, UNIX)
    )
    shifts = [c - b for b, c in zip(base, candidate, strict=True)]
    walsh = [(one + two) / 2 for one, two in itertools.combinations_with_replacement(shifts, 2)]
    assert paired["ratio"] == pytest.approx(math.exp(statistics.median(walsh)), rel=1e-12)


@pytest.mark.parametrize("name, made", [("watched", 7), ("watched longer", 11)])
@pytest.mark.parametrize(
    "query",
    [
        "experiment={watched}&axis=transport&baseline=pipe&candidate=unix-stream",
        "baseline={slow}&candidate={watched}",
        "baseline={watched}&candidate={slow}",
    ],
)
def test_each_look_at_a_figure_is_a_test(known, query, name, made):
    """60 blocks at most have 7 looks, and more where blocks were added. Holm's limits are those of as many tests, and a
    figure that is found takes all of its own with it. Whichever side was looked at has as many runs as its looks made
    them."""
    daemon, ids = known
    answer = daemon.unix.get(f"/compare?{query.format(slow=ids['slow'], watched=ids[name])}")
    figures = [(name, one) for row in answer["rows"] for name, one in row["figures"].items() if one]
    looks = {name: made if name == "throughput_bytes_per_second" else 1 for name, _ in figures}
    assert len(looks) > 2 and answer["tests"] == len(figures)
    assert min(one["p"] for _, one in figures) * (len(figures) + made - 1) < 0.1
    left, worst = sum(looks[name] for name, _ in figures), 0
    for name, one in sorted(figures, key=lambda item: item[1]["p"]):
        worst = max(worst, min(1, one["p"] * left))
        left -= looks[name]
        assert math.isclose(one["p_adjusted"], worst, rel_tol=1e-9), (name, figures)


def test_repetitions_that_were_added_are_told(known):
    daemon, ids = known
    answers = [daemon.unix.get(f"/compare?baseline={ids['base']}&candidate={ids['extended']}")]
    answers.append(daemon.unix.get(AXIS.format(ids["extended"])))
    answers.append(daemon.unix.get(AXIS.format(ids["watched longer"])))
    added = [[answer[side]["repetitions_added"] for side in ("baseline", "candidate")] for answer in answers]
    assert added == [[0, 4], [4, 4], [3, 3]]


def test_a_retried_run_counts_as_a_run(known):
    """It is in no pair. What is needed is a number of runs: one that a side has already would decide nothing."""
    daemon, ids = known
    near, retried = (figure(daemon.unix.get(AXIS.format(ids[name]) + "&delta=0.001")) for name in ("near", "retried"))
    assert near["verdict"] == "undecided" and near["runs_needed"] > 12
    assert retried["paired"] and retried["ratio"] == near["ratio"] and retried["runs_baseline"] == 12
    assert retried["runs_needed"] == near["runs_needed"] + 1


def test_an_axis_of_numbers(unix):
    spec = {"message_size": [64, 65536], "repetitions": 8, "messages": 2000, "warmup_seconds": 0, "order": "shuffled"}
    experiment = unix.wait_final(unix.post(spec)["id"])
    answer = unix.get(f"/compare?experiment={experiment['id']}&axis=message_size&baseline=64&candidate=65536")
    assert answer["baseline"]["value"] == 64 and len(answer["rows"]) == 1
    base, candidate = (
        logs(unix, experiment["id"], "throughput_bytes_per_second", message_size=size) for size in (64, 65536)
    )
    assert figure(answer)["ratio"] == pytest.approx(shift(base, candidate), rel=1e-12)
    assert answer["rows"][0]["candidate"]["point"]["message_size"] == 65536


def test_unlike_buffers_of_an_axis_are_named(unix):
    """Beside the transports the rows differ in what these were given: nobody takes that for the transports' own."""

    gathers = set()  # nanoseconds that a reader waits, of which the machine decides

    def unlike(candidate, **options):
        spec = {"transport": ["pipe", candidate], "message_size": 1024, "messages": 50, "warmup_seconds": 0}
        experiment = unix.wait_final(unix.post(spec | {"transport_options": options})["id"])
        assert experiment["state"] == "done", experiment
        runs = unix.items(f"/experiments/{experiment['id']}/runs")
        gathers.update(run["result"]["effective"].get("gather_ns") or 0 for run in runs)
        target = f"/compare?experiment={experiment['id']}&axis=transport&baseline=pipe&candidate={candidate}"
        (row,) = unix.get(target)["rows"]
        return row["unlike"]

    assert unlike("fifo", buffer_bytes=65536) is None
    assert unlike("unix-stream", pipe_size=4096, sndbuf=65536).startswith("buffers of 4 KiB (the baseline), ")
    for gather in (True, False):
        words = unlike("shm-posix", buffer_bytes=65536, gather=gather)
        assert words.startswith("buffers of 64 KiB (the baseline), 63.8 KiB (the candidate)")
        assert words.endswith("; the candidate lets messages gather") == bool(gather and max(gathers))


def test_only_unlike_pieces_are_named(unix):
    spec = {"transport": "msgq-sysv", "message_size": [1024, 16384, 32768], "messages": 50, "warmup_seconds": 0}
    experiment = unix.wait_final(unix.post(spec | {"chunk": True})["id"])
    assert experiment["state"] == "done", experiment
    target = f"/compare?experiment={experiment['id']}&axis=message_size&candidate=32768&baseline="
    (row,) = unix.get(target + "16384")["rows"]
    assert row["unlike"] is None
    (row,) = unix.get(target + "1024")["rows"]
    assert row["unlike"].startswith("the candidate sends a message in pieces of ")


def test_a_setting_of_one_side_alone_is_named(unix):
    spec = {"transport": ["pipe", "tcp"], "fields": 4, "stamp": True, "messages": 50, "warmup_seconds": 0}
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert experiment["state"] == "done", experiment
    target = f"/compare?experiment={experiment['id']}&axis=transport&baseline=pipe&candidate=tcp"
    (row,) = unix.get(target)["rows"]
    assert row["unlike"].startswith("fields 4 is of the candidate alone; buffers of ")
    assert row["unlike"].endswith("; the candidate writes a time into each message")


def test_an_axis_without_meaning_for_one_value_separates_nothing(unix):
    spec = SHORT | {"transport": ["pipe", "shm-posix"], "wait": ["block", "hybrid"]}
    experiment = unix.wait_final(unix.post(spec)["id"])
    answer = unix.get(f"/compare?experiment={experiment['id']}&axis=transport&baseline=pipe&candidate=shm-posix")
    assert [row["candidate"]["point"]["wait"] for row in answer["rows"]] == ["block", "hybrid"]
    assert all("wait" not in row["baseline"]["point"] for row in answer["rows"])
    waits = unix.get(f"/compare?experiment={experiment['id']}&axis=wait&baseline=block&candidate=hybrid")
    assert [row["baseline"]["point"]["transport"] for row in waits["rows"]] == ["shm-posix"]


def titled(problem):
    """The title is of the problem (RFC 9457), not of the status that many problems have."""
    assert problem["title"] not in ("Bad Request", "Conflict", "Unprocessable Content"), problem
    return problem


def test_bad_questions(known):
    daemon, ids = known
    base, same = ids["base"], ids["same"]

    def refused(query, status, slug):
        return titled(daemon.unix.refused("GET", f"/compare?{query}", status, slug))["detail"]

    pair = f"baseline={base}&candidate={same}"
    missing = refused("candidate=1", 400, "missing-parameter")
    assert "\"baseline\" is missing: an experiment's id or a baseline's name." in missing
    assert "candidate" in refused("baseline=1", 400, "missing-parameter")
    assert "axis" in refused(f"experiment={base}&baseline=1&candidate=2", 400, "missing-parameter")
    assert "experiment" in refused("axis=transport&baseline=pipe&candidate=tcp", 400, "missing-parameter")
    for bad in ("0", "1", "-0.1", "nan", "x", "1e999"):
        assert bad in refused(f"{pair}&delta={bad}", 400, "bad-parameter")
    assert "yes" in refused(f"{pair}&force=yes", 400, "bad-parameter")
    assert "999999" in refused(f"baseline=999999&candidate={base}", 404, "not-found")
    assert "999999" in refused(f"baseline={base}&candidate=999999", 404, "not-found")
    assert str(base) in refused(f"baseline={base}&candidate={base}", 422, "same-experiment")
    nothing = refused(f"baseline={base}&candidate={ids['other']}", 422, "nothing-in-common")
    assert str(base) in nothing and str(ids["other"]) in nothing


def test_bad_axes(known):
    daemon, ids = known

    def refused(axis, baseline, candidate, slug):
        query = f"experiment={ids['base']}&axis={axis}&baseline={baseline}&candidate={candidate}"
        return titled(daemon.unix.refused("GET", f"/compare?{query}", 422, slug))["detail"]

    assert "colour" in refused("colour", "red", "green", "unknown-axis")
    detail = refused("transport", "pipe", "tcp", "no-such-value")
    assert "tcp" in detail and '"pipe", "unix-stream"' in detail
    assert "none" in refused("wait", "block", "spin", "no-such-value")
    assert "pipe" in refused("transport", "pipe", "pipe", "same-value")
    assert daemon.unix.request(
        "GET", f"/compare?experiment={ids['base']}&axis=transport&baseline=pigeon&candidate=pipe"
    ).status == 422  # fmt: skip


def test_a_queued_experiment_has_rows_without_figures(own_daemon):
    unix = own_daemon.unix
    blocker = unix.post(ENDLESS)
    one, two = (unix.post(SHORT) for _ in range(2))
    answer = unix.get(f"/compare?baseline={one['id']}&candidate={two['id']}")
    (row,) = answer["rows"]
    assert set(row["figures"].values()) == {None} and answer["tests"] == 0
    assert all("no done run" in reason for reason in row["reasons"].values())
    unix.request("POST", f"/experiments/{blocker['id']}/cancel")


def test_answers_that_nobody_takes_are_bounded(known):
    """Each is held until it has been sent; so many are refused, and come again when the others have gone."""
    daemon, ids = known
    unix = daemon.unix
    target = f"/compare?baseline={ids['wide']}&candidate={ids['wide too']}"
    assert len(unix.get(target)["rows"]) == 600
    with contextlib.ExitStack() as held:
        for _ in range(40):
            sock = held.enter_context(unix.raw_socket())
            sock.sendall(f"GET {target} HTTP/1.1\r\nHost: {unix.host}\r\n\r\n".encode())
            if sock.recv(12, socket.MSG_PEEK | socket.MSG_WAITALL) == b"HTTP/1.1 503":
                break
        else:
            raise AssertionError("40 answers that nobody takes are held")
        unix.refused("GET", target, 503, "unavailable")
        assert unix.get("/health")["status"] == "ok"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while unix.request("GET", target).status == 503:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_the_report_is_json_of_the_size_it_must_be(known, compare):
    """A row at a time leaves no comma out."""
    daemon, ids = known
    answer = daemon.unix.request("GET", f"/compare?baseline={ids['base']}&candidate={ids['same']}")
    assert len(json.loads(answer.body)["rows"]) == 2


def test_a_sum_of_streams_is_not_compared_with_one(unix):
    spec = SHORT | {"transport": "tcp", "direction": ["down", "up", "both"]}
    identity = unix.wait_final(unix.post(spec)["id"])["id"]
    for values, compared in (("baseline=down&candidate=up", True), ("baseline=down&candidate=both", False)):
        (row,) = unix.get(f"/compare?experiment={identity}&axis=direction&{values}")["rows"]
        assert (row["figures"]["throughput_bytes_per_second"] is not None) == compared
        assert row["figures"]["cpu_ns_per_message"] is not None
        reason = row["reasons"].get("throughput_bytes_per_second", "")
        assert compared or "the sum of two streams at once" in reason


def test_an_open_loops_throughput_is_not_compared(unix):
    """It follows from the rate: of two rates it differs, and of one it is equal, whatever was measured."""
    spec = TIMED | {"workload": "pingpong", "rate": 2000, "repetitions": 4}
    ids = [unix.wait_final(unix.post(spec)["id"])["id"] for _ in range(2)]
    (row,) = unix.get(f"/compare?baseline={ids[0]}&candidate={ids[1]}")["rows"]
    assert row["figures"]["throughput_bytes_per_second"] is None
    assert "specified rate" in row["reasons"]["throughput_bytes_per_second"]
    assert row["figures"]["latency_ns_p50"] and row["figures"]["cpu_ns_per_message"]
    (result,) = unix.get(f"/experiments/{ids[0]}/results")["items"]
    assert result["throughput_bytes_per_second"]["n"] == 4, "shown as it was carried"


def benjamini_hochberg(p):
    order = sorted(range(len(p)), key=p.__getitem__, reverse=True)
    adjusted, least = [0] * len(p), 1
    for rank, at in enumerate(order):
        least = adjusted[at] = min(least, p[at] * len(p) / (len(p) - rank))
    return adjusted


def test_a_map_bounds_the_share_of_false_differences(own_daemon):
    """Many pairs of CPUs are the cells of a map: of an answer in which some differ, the others may show more."""
    unix = own_daemon.unix
    if len(unix.get("/topology")["cpus"]) < 2:
        pytest.skip("one CPU has one pair")
    spec = {"transport": "pipe", "placement": "all-cpu-pairs", "messages": 100, "warmup_seconds": 0}
    ids = [unix.wait_final(unix.post(spec)["id"])["id"] for _ in range(2)]
    for identity in ids:
        repeat(own_daemon, identity, 6)
    cells = [row["point"]["placement"] for row in unix.get(f"/experiments/{ids[0]}/results")["items"]]
    for identity, slower in zip(ids, (0, 0.006), strict=True):
        write_figures(own_daemon, identity, lambda p, by=slower: 1000 * (1 + by * cells.index(p["placement"])))
    answer = unix.get(f"/compare?baseline={ids[0]}&candidate={ids[1]}&delta=0.001&force=true")
    assert len(cells) >= 4 and answer["correction"] == "benjamini-hochberg"
    tests = [one for row in answer["rows"] for one in row["figures"].values() if one]
    assert len(tests) == answer["tests"]
    assert [one["p_adjusted"] for one in tests] == pytest.approx(benjamini_hochberg([one["p"] for one in tests]))
    one = unix.get(
        f"/compare?experiment={ids[1]}&axis=placement"
        f"&baseline={urllib.parse.quote(json.dumps(cells[0]))}&candidate={urllib.parse.quote(json.dumps(cells[1]))}"
    )
    assert one["correction"] == "holm"


def test_a_baseline_knows_that_the_machine_was_another(known):
    """Over months a slower figure is of the kernel, unless the probes are slower as well."""
    daemon, ids = known
    assert daemon.unix.request("PUT", "/baselines/usual", {"experiment": ids["usual machine"]}).status == 200
    deadline = time.monotonic() + PATIENCE_SECONDS
    items = {}
    while not {ids["slow machine"], ids["near machine"]} <= items.keys():
        assert time.monotonic() < deadline, items.keys()
        time.sleep(0.05)
        history = daemon.unix.get("/baselines/usual/history?limit=1000")
        items = {item["experiment_id"]: item for item in history["items"]}
    assert daemon.unix.request("DELETE", "/baselines/usual").status == 204
    slow, near = (
        {one["key"]: one for one in items[ids[name]]["differences"] if one["unlike"]}
        for name in ("slow machine", "near machine")
    )
    assert items[ids["slow machine"]]["verdicts"]["slower"] > 0 and near == {}
    assert slow.keys() == {"machine.getpid_ns.cpu0", "machine.getpid_ns.cpu1"}
    assert {(probe["baseline"], probe["candidate"]) for probe in slow.values()} == {("usual", "slower")}
