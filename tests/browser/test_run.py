# SPDX-License-Identifier: MIT
"""The details of a run: its placement with the proof of it, and what changed of the machine meanwhile."""

import json

import pytest
from answers import Answers
from axe import violations
from documents import experiment

GIVEN = 900003  # of an experiment that no daemon has
POINT = {"workload": "stream", "transport": "pipe", "message_size": 4096, "threads": 2}


def agent(role, cpus, node, seen, moved=0):
    """Two threads that were to be on these CPUs, with a buffer of 3 pages and a stack of 5 each."""
    threads = [
        {
            "thread": n,
            "tid": 70 + n,
            "affinity": cpus,
            "cpu": cpu,
            "node": node,
            "cpus_seen": [cpu],
            "migrations": moved,
        }
        for n, cpu in enumerate(seen)
    ]
    pages = [
        {"what": what, "thread": n, "total": total, "nodes": {str(node): total}, "nodes_seen": [node], "moved": moved}
        for what, total in (("buffer", 3), ("stack", 5))
        for n in range(2)
    ]
    return {
        "role": role,
        "pid": 70,
        "placement": {"cpus": cpus, "node": node, "memory": {"policy": "bind", "nodes": [node]}},
        "proof": {"affinity": cpus, "threads": threads, "pages": pages},
    }


def snapshot(**facts):
    passing = {"uptime_seconds": 1.5, "load": [0.1, 0.2, 0.3], "memory_free_bytes": 4096, "reasons": {}}
    return passing | {"smt": "on", "swappiness": 60, "cpus": [{"id": n} for n in range(4)]} | facts


def run(identity, agents, before, after, error=None):
    return {
        "id": identity,
        "experiment_id": GIVEN,
        "point": POINT,
        "repetition": 1,
        "position": 0,
        "state": "failed" if error else "done",
        "attempt": 1,
        "error": error,
        "flags": [],
        "agents": agents,
        "result": None,
        "environment": {"before": before, "after": after},
        "probes": None,
        "started_at": "2026-01-31T12:00:00.000Z",
        "finished_at": "2026-01-31T12:00:05.000Z",
    }


SENDER = agent("sender", [0, 1], 0, [0, 1])
RECEIVER = agent("receiver", [2, 3], 1, [2, 3])
MITIGATIONS = {"spectre_v1": "usercopy barriers", "spectre_v2": "Retpolines"}
CHANGED = run(
    71,
    [SENDER, RECEIVER],
    snapshot(mitigations=MITIGATIONS),
    snapshot(
        uptime_seconds=7.5,
        load=[3, 2, 1],
        memory_free_bytes=1,
        swappiness=10,
        mitigations=MITIGATIONS | {"spectre_v2": "off"},
        cpus=[{"id": n} for n in range(3)],
    ),
)
VIOLATED = run(
    72,
    [SENDER, agent("receiver", [2, 3], 1, [2, 0], moved=4)],
    snapshot(),
    snapshot(uptime_seconds=9),
    error="placement_violated: receiver: thread 1 was on CPU 0",
)
MEMORY = {"memory": {"policy": "local", "nodes": []}, "buffer": {"policy": "bind", "nodes": [1]}}
ANYWHERE = {"cpus": [], "node": None, "memory": {"policy": "default", "nodes": []}}
PUT_BACK = run(
    73, [SENDER | {"placement": ANYWHERE | MEMORY}, RECEIVER | {"placement": ANYWHERE}], snapshot(), snapshot()
) | {"flags": ["environment-changed:swappiness"]}

UNCOUNTED = {"retransmits": None, "retransmits_reason": "this kernel does not count them"}
IN_FORCE = run(
    74,
    [
        SENDER | {"effective": {"buffer_bytes": 65536, "huge_pages": False} | UNCOUNTED},
        RECEIVER | {"effective": {"buffer_bytes": 4096, "retransmits": 3, "memlock_bytes": None}},
    ],
    snapshot(),
    snapshot(),
)

SERIES = {"median": 160, "low": 159, "high": 162, "operations": 2000, "rounds": [160] * 15}
PROBE = {"cpu_share": 1, "cost_ns": 1, "getpid_ns": SERIES, "memcpy_64k_ns": None, "hand_over_ns": None}
SITTING = {"sender": PROBE | {"cpu": 0, "wake_up_ns": None}, "receiver": PROBE | {"cpu": 4, "wake_up_ns": None}}
PROBES = {"before": SITTING, "after": SITTING, "cpus": [0, 4], "compared": True, "first_run_id": None, "changes": []}
PROBED = run(75, [SENDER, RECEIVER], snapshot(), snapshot()) | {"probes": PROBES | {"cpus_unprobed": [1, 2, 3, 5]}}
OLDER = run(76, [SENDER, RECEIVER], snapshot(), snapshot()) | {"probes": PROBES}
WHY = "the two probes are not both known, or not of the same CPUs"
MOVED = PROBES | {"cpus": None, "compared": False, "compared_reason": WHY}
ELSEWHERE = run(77, [SENDER, RECEIVER], snapshot(), snapshot()) | {"probes": MOVED}
OTHERS = [PROBE | {"thread": thread, "cpu": cpu, "wake_up_ns": None} for thread, cpu in ((1, 7), (2, 9))]
LEFT = {"others_left_out": 1, "others_left_out_reason": "the probes of the threads before them took too long"}
BEFORE = {"sender": SITTING["sender"] | {"others": OTHERS, "others_left_out": 0}}
BEFORE["receiver"] = SITTING["receiver"] | {"others": []} | LEFT
AFTER = BEFORE | {"sender": BEFORE["sender"] | {"others": OTHERS[:1]} | LEFT}
CHANGES = [{"since": "before", "role": "sender", "thread": 1, "cpu": 7, "figure": "getpid_ns", "ratio": 1.5}]
FEW = {"usual": None, "usual_reason": "7 earlier sittings on these CPUs are known, and 36 are needed"}
HABITS = [{"ratio": 2}, {"ratio": 3} | FEW, {"ratio": 4, "usual": True}, {"ratio": 5, "usual": False}]
KNOWN = [CHANGES[0] | habit for habit in HABITS]
SLOWER = PROBES | {"before": BEFORE, "after": AFTER, "changes": CHANGES}
RESTLESS = run(79, [SENDER, RECEIVER], snapshot(), snapshot()) | {"probes": SLOWER | {"changes": KNOWN}}
MANY = run(78, [SENDER, RECEIVER], snapshot(), snapshot()) | {"probes": SLOWER}


@pytest.fixture
def show(driver, unopened):
    """Opens that experiment, and the details of one of its runs."""
    runs = [CHANGED, VIOLATED, PUT_BACK, IN_FORCE, PROBED, OLDER, ELSEWHERE, MANY, RESTLESS]
    answers = Answers(driver, {}, **experiment(GIVEN, runs=runs), **{f"/runs/{run['id']}": run for run in runs})

    def open_run(identity):
        unopened.open(f"#/experiments/{GIVEN}")
        unopened.wait_for(f"button[aria-label='Details of run {identity}']").click()
        unopened.wait(lambda: "As stored" in (unopened.text("#run-body") or ""), "the run's details")
        return unopened

    yield open_run
    answers.remove()


def facts(page):
    """The words of each term, by agent."""
    return page.run(
        """return Object.fromEntries([...document.querySelectorAll('#run-body .proofs > div')].map((agent) => [
            agent.firstChild.textContent, Object.fromEntries([...agent.querySelectorAll('dt')].map((term) =>
                [term.textContent, term.nextSibling.textContent]))]))"""
    )


@pytest.mark.parametrize("width", [360, 1280])
def test_both_ends_have_the_proof_of_their_placement(show, picture, width):
    page = show(71)
    page.size(width, 900)
    assert facts(page) == {
        role: {
            "proven": "yes: each was where it was to be",
            "specified": f"CPU {cpus}, node {node}, memory bind {node}",
            "allowed on": f"CPU {cpus}",
            "seen on": f"CPU {cpus}, node {node}",
            "moved": "0 times",
            "buffer pages": f"6 on node {node}",
            "stack pages": f"10 on node {node}",
        }
        for role, cpus, node in (("sender", "0–1", 0), ("receiver", "2–3", 1))
    }
    fits = "const { scrollWidth, clientWidth } = document.getElementById('run-body'); return scrollWidth <= clientWidth"
    page.wait(lambda: page.run(fits), "nothing to the side")
    assert violations(page) == []
    picture(f"run-{width}")


def test_an_end_that_was_elsewhere_is_named(show):
    agents = facts(show(72))
    sender, receiver = agents["sender"], agents["receiver"]
    assert sender["proven"] == "not known: the run is failed"
    assert receiver["proven"] == "no: thread 1 was on CPU 0"
    assert receiver["seen on"] == "CPU 0, 2, node 1" and receiver["moved"] == "8 times"
    assert receiver["buffer pages"] == "6 on node 1, 8 moved"


def test_of_the_environment_only_what_changed_is_shown(show):
    page = show(71)
    rows = """return [...document.querySelectorAll('#run-environment tbody tr')].map((row) =>
        [...row.cells].map((cell) => cell.textContent))"""
    assert page.run(rows) == [
        ["swappiness", "60", "10"],
        ["mitigation of spectre v2", "Retpolines", "off"],
        ["CPUs online", "0–3", "0–2"],
    ]
    page = show(72)
    assert "It was the same before and after the run." in page.text("#run-body")
    assert not page.all("#run-environment")
    assert "within the run swappiness changed and was put back." in show(73).text("#run-body")


def test_memory_alone_is_asked_for_and_proven_too(show):
    agents = facts(show(73))
    assert agents["sender"]["specified"] == "memory local, buffers bind 1"
    assert agents["sender"]["proven"].startswith("yes")
    assert agents["receiver"]["specified"] == "any place" and agents["receiver"]["proven"].startswith("nothing")


def test_what_was_in_force_stands_side_by_side(show):
    page = show(74)
    page.find("#run-effective summary").click()
    rows = """return [...document.querySelectorAll('#run-effective tr')].map((row) =>
        [...row.cells].map((cell) => cell.textContent))"""
    assert page.run(rows) == [
        ["What", "sender", "receiver"],
        ["buffer bytes", "64 KiB", "4 KiB"],
        ["huge pages", "false", "—"],
        ["retransmits", "— (this kernel does not count them)", "3"],
        ["memlock bytes", "—", "unlimited"],
    ]
    assert violations(page) == []


def test_cpus_without_a_probe_are_named(show):
    words = "which the run may have measured, a probe is missing."
    assert f"Of CPU 1–3, 5, {words}" in show(75).text("#run-body")
    page = show(76)  # of a version that does not say it
    assert "getpid(), sender" in page.text("#run-body") and words not in page.text("#run-body")


def test_probes_of_further_threads_are_folded(show):
    page = show(78)
    body = page.text("#run-body")
    assert "The machine’s state changed: getpid_ns of sender, thread 1 on CPU 7, × 1.500 during the run." in body
    assert "Of receiver, 1 further thread took no probe: the probes of the threads before them took too long." in body
    page.find("#run-other-probes summary").click()
    rows = """return [...document.querySelectorAll('#run-other-probes tbody tr')].map((row) =>
        [...row.cells].map((cell) => cell.textContent))"""
    assert page.run(rows) == [
        ["getpid(), sender, thread 1, CPU 7", "160.0 ns", "160.0 ns"],
        ["getpid(), sender, thread 2, CPU 9", "160.0 ns", "—"],
    ]
    assert violations(page) == []
    assert not show(76).all("#run-other-probes")  # of a version that had none


def test_changes_that_are_usual_or_not_known_are_apart(show):
    """One of an earlier version, which did not judge that, counts as not usual."""
    body = show(79).text("#run-body")
    what = "getpid_ns of sender, thread 1 on CPU 7,"
    unusual = f"The machine’s state changed: {what} × 2.000 during the run; {what} × 5.000 during the run."
    unknown = f"{what} × 3.000 during the run. Whether it does so of itself is not known: {FEW['usual_reason']}."
    assert unusual in body and unknown in body
    assert f"The machine’s state changed as it does of itself again and again: {what} × 4.000 during the run." in body


def test_a_machine_that_was_not_compared_is_not_shown_as_unchanged(show):
    words = "Whether the machine’s state changed during the run is not known"
    assert f"{words}: {WHY}." in show(77).text("#run-body")
    assert words not in show(76).text("#run-body")


def test_what_cannot_be_shown_is_named(show):
    page = show(71)
    page.run("document.getElementById('run-dialog').close()")
    page.expect_status(404)
    page.go(f"#/experiments/{GIVEN}?run=99999999")
    page.wait(lambda: "99999999" in (page.text("#run-body .notice") or ""), "the daemon's words")


def test_what_is_stored_is_folded_at_the_end(show):
    page = show(71)
    stored = page.find("#run-body .stack > :last-child")
    assert [one.text for one in page.all("#run-body summary")] == ["As stored"]
    assert stored.tag_name == "details" and stored.get_attribute("open") is None
    assert json.loads(stored.find_element("css selector", "pre").get_property("textContent")) == CHANGED
