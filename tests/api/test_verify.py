# SPDX-License-Identifier: MIT
"""What `ipclab verify` computes anew of real runs of every kind: a number that was changed in one is refused, or verify
says that it is measured."""

import copy
import fnmatch
import json
import random

import pytest
from bundles import change, document_of, fetch
from ipclab_cli import bundle, probes
from ipclab_fleet.stats import rank_sum_p
from ipclabtest import SOURCE
from ipclabtest.daemon import Daemon

KINDS = {
    "stamped": {"transport": "tcp", "messages": 300, "stamp": True, "threads": 2, "direction": ["down", "up", "both"]},
    "open loop": {"workload": ["stream", "pingpong"], "transport": "tcp", "messages": 60, "rate": 400, "threads": 2},
    "observed": {"transport": "tcp", "duration_seconds": 1.2, "threads": 2},
    "pingpong": {"workload": "pingpong", "transport": "pipe", "messages": 400},
    "calls": {"workload": ["syscall", "context-switch"], "messages": 500},
    "histogram": {"transport": "shm-posix", "messages": 400},
    "pinned": {"transport": "pipe", "messages": 300, "placement": "same-cpu"},
    "wide": {"transport": "pipe", "messages": 300, "placement": "same-node", "threads": 2},
}


@pytest.fixture(scope="module")
def documents():
    """kind -> the bundle of an experiment."""
    daemon, found = Daemon(), {}
    try:
        daemon.start()
        client = daemon.client()
        for kind, spec in KINDS.items():
            posted = client.post({"name": kind, "warmup_seconds": 0, "repetitions": 2, "message_size": 4096} | spec)
            ended = client.wait_final(posted["id"])
            assert ended["state"] == "done", (kind, ended["error"])
            found[kind] = document_of(fetch(client, posted["id"])[1])
        yield found
    finally:
        daemon.remove()


def numbers_of(value, path=()):
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers_of(one, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def is_measured(path):
    where = "/".join(map(str, path))
    places = [place for places in bundle.MEASURED for place in places.split(", ")]
    return any(fnmatch.fnmatchcase(where, pattern) for place in places for pattern in (place, f"{place}/*"))


def is_refused(document, path):
    """By the run alone, where it is a figure of the run: its row could have been changed, too."""
    changed = change(document, path, lambda value: value + 1 if isinstance(value, int) else value * 1.001 + 1e-6)
    try:
        if path[0] == "runs" and path[2] == "result":
            bundle.check_run("", changed["runs"][path[1]])
        else:
            bundle.check(changed)
    except bundle.Fault:
        return True
    return False


def of_one_run_each(document, paths):
    """One path of those by which the runs of a point have a number in the same place: that of each run in turn."""
    found = {}
    for path in paths:
        found.setdefault((json.dumps(document["runs"][path[1]]["point"]), *path[2:]), []).append(path)
    return [same[number % len(same)] for number, same in enumerate(found.values())]


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_of_a_run_is_refused_or_measured(documents, kind):
    document = documents[kind]
    bundle.check(document)
    paths = [path for path in numbers_of(document["runs"], ("runs",)) if not is_measured(path[2:])]
    assert len(paths) > 100
    paths = of_one_run_each(document, paths)
    assert len(paths) > 50
    assert {path[1] for path in paths} == set(range(len(document["runs"])))
    assert [path for path in paths if not is_refused(document, path)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_of_a_row_is_refused(documents, kind):
    document = documents[kind]
    paths = list(numbers_of(document["results"], ("results",)))
    tried = random.Random(kind).sample(paths, min(150, len(paths)))
    assert [path for path in tried if not is_refused(document, path)] == []


def test_what_was_observed_beside_a_run_is_held_against_its_seconds(documents):
    document = documents["observed"]
    result = document["runs"][0]["result"]
    place = ("runs", 0, "result")
    if result["ksoftirqd_ns_per_message"] is not None:
        for path in (("ksoftirqd_ns_per_message",), ("noise", "ksoftirqd_ns"), ("noise", "seconds", 0, "interval_ns")):
            assert is_refused(change(document, (*place, "noise", "ksoftirqd_ns"), lambda ns: ns + 1), (*place, *path))
    assert result["noise"]["seconds_total"] > 0
    assert is_refused(document, (*place, "noise", "worst", "foreign_share"))
    assert is_refused(document, (*place, "noise", "seconds_flagged"))


def test_counts_of_an_end_are_those_of_its_threads(documents):
    document = documents["stamped"]
    result = document["runs"][0]["result"]
    for role in result["counters"]:
        for member in ("messages", "bytes"):
            assert is_refused(document, ("runs", 0, "result", "threads", role, 1, member))
        for name in ("cpu_ns", "voluntary_switches", "minor_faults", "eagain"):
            assert is_refused(document, ("runs", 0, "result", "threads", role, 0, "counters", name))


def test_the_state_of_the_machine_is_judged_by_the_rounds(documents):
    """Also where the machine has changed, which these rounds are made to show: the run's own two probes, and the first
    run's."""
    runs = [copy.deepcopy(documents["calls"]["runs"][0]) for _ in range(2)]  # on the same CPUs
    last, others = runs[1]["probes"], [runs[0]["probes"]]
    for factor, ends in ((1.0, others[0]["before"]), (2.0, last["before"]), (5.0, last["after"])):
        for end in ends.values():
            rounds = [round(factor * (190 + number / 7), 3) for number in range(probes.ROUNDS)]
            end["getpid_ns"] = probes.series_of("getpid_ns", rounds)
    verdicts = list(probes.verdicts_of(last, others))
    changes = [[one["since"] for one in verdict["changes"] if one["figure"] == "getpid_ns"] for verdict in verdicts]
    if last["cpus"] is None:
        assert changes == [[], []]
        return
    if last["compared"]:
        assert all(found[0] == "before" for found in changes)
        ratio = next(one["ratio"] for one in verdicts[0]["changes"] if one["figure"] == "getpid_ns")
        assert ratio == pytest.approx(2.5, rel=1e-3)
    assert "first_run" in changes[0] and "first_run" not in changes[1]
    runs[-1]["probes"] |= verdicts[0]
    runs[-1]["flags"] = ["machine_state_changed"]
    bundle.check_probes("", runs[-1], others)
    for changed in (
        change(runs[-1], ("probes", "changes", 0, "ratio"), lambda ratio: ratio * 1.01),
        change(runs[-1], ("probes", "changes"), lambda _: []),
        change(runs[-1], ("flags",), lambda _: []),
        change(runs[-1], ("probes", "compared"), lambda compared: not compared),
    ):
        with pytest.raises(bundle.Fault, match="/(changes|compared)"):
            bundle.check_probes("", changed, others)


def test_the_state_of_further_cpus_is_judged_too(documents):
    """A thread that is not the first has rounds that are made to differ; in runs of earlier versions none has."""
    first, run = copy.deepcopy(documents["wide"]["runs"])
    taken = run["probes"]
    ends = [taken[time]["sender"] for time in ("before", "after")]
    if not all(end.get("others") for end in ends) or not taken["compared"]:
        pytest.skip("no further thread has a CPU of its own, or its probe before and after")
    for factor, end in zip((1.0, 2.0), ends, strict=True):
        rounds = [round(factor * (190 + number / 7), 3) for number in range(probes.ROUNDS)]
        end["others"][0]["getpid_ns"] = probes.series_of("getpid_ns", rounds)
    verdict = next(probes.verdicts_of(taken, [first["probes"]]))
    (changed,) = (one for one in verdict["changes"] if one["thread"] == 1 and one["role"] == "sender"
                  and one["since"] == "before" and one["figure"] == "getpid_ns")  # fmt: skip
    assert changed["cpu"] == ends[0]["others"][0]["cpu"] and changed["ratio"] == pytest.approx(2, rel=1e-3)
    assert set(verdict["cpus_compared"]["before"]) >= {*taken["cpus"], changed["cpu"]}
    taken |= verdict
    run["flags"] = ["machine_state_changed"]
    bundle.check_probes("", run, [first["probes"]])
    for place in (("changes", verdict["changes"].index(changed), "cpu"), ("cpus_compared", "before", 0)):
        with pytest.raises(bundle.Fault):
            bundle.check_probes("", change(run, ("probes", *place), lambda cpu: cpu + 1), [first["probes"]])
    for one in (first["probes"], taken):
        one.pop("cpus_compared")
        for end in (*one["before"].values(), *one["after"].values()):
            del end["others"], end["others_left_out"]
        one["changes"] = [c for c in one["changes"] if c.pop("cpu") is not None and c.pop("thread") == 0]
    run["flags"] = ["machine_state_changed"] if taken["changes"] else []
    bundle.check_probes("", run, [first["probes"]])


def test_the_exact_test_of_two_probes():
    """As the fleet's, which is held to recorded answers of R and SciPy; with ties and without."""
    chance = random.Random(3)
    for digits in (0, 1, 9):
        x, y = ([round(chance.gauss(100 + shift, 2), digits) for _ in range(probes.ROUNDS)] for shift in (0, 2))
        assert probes.p_of(x, y) == pytest.approx(rank_sum_p(x, y), rel=1e-12)
        assert probes.ratio_of(x, y, 0.08) is None
        assert probes.ratio_of(x, [2 * value for value in x], 0.08) == pytest.approx(2, rel=0.01)


def test_the_quotients_are_those_of_the_daemon():
    """verify has them by their names."""
    required = json.loads((SOURCE / "api/openapi/components.json").read_text())["AgentResult"]["required"]
    assert [name for name in required if "_per_" in name and not name.endswith("_second")] == list(bundle.QUOTIENTS)


def test_what_is_measured_is_listed_with_its_reason(documents):
    for document in documents.values():
        computed, others = bundle.coverage(document)
        assert others.items() >= bundle.MEASURED.items() and all(others.values())
        assert not {"ksoftirqd_ns_per_message", "stamp_cost"} - others.keys() - set(computed)
