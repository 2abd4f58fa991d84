# SPDX-License-Identifier: MIT
"""Two things compared: the environments first, a verdict in words for each row, and the drawing."""

import copy
import re

import documents
import pytest
from answers import Answers
from axe import violations
from page import SCREENS

TWO = "#/compare?baseline=1&candidate=2"
POINT = {"workload": "stream", "transport": "pipe", "threads": 1}


def compared(verdict, ratio, low, high, **more):
    return {
        "verdict": verdict,
        "ratio": ratio,
        "interval": {"low": low, "high": high, "level": 0.9513},
        "equivalence_interval": None,
        "p": 0.001,
        "p_adjusted": 0.01,
        "differs": verdict in ("faster", "slower"),
        "paired": True,
        "widening": 1,
        "test": "signed-rank",
        "runs_baseline": 12,
        "runs_candidate": 12,
        "visible_difference": None,
        "runs_needed": None,
    } | more


FIGURES = {
    64: compared("faster", 1.24, 1.2, 1.29),
    4096: compared("slower", 0.949, 0.944, 0.953),
    16384: compared("equivalent", 1.001, 0.99, 1.01),
    65536: compared("undecided", 1.02, 0.9, 1.15, visible_difference=0.08, runs_needed=31),
}


def side(size):
    return {"point": POINT | {"message_size": size}, "runs": 12, "runs_failed": 0, "runs_noisy": 0, "runs_disputed": {}}


def experiment(identity, name):
    created = "2026-01-31T12:00:00.000Z"
    about = {"experiment_id": identity, "name": name, "state": "done", "version": "0.1.0"}
    return about | {"created_at": created, "value": None, "environment_changed": []}


ANSWER = {
    "environment": {"alike": True, "forced": False, "differences": []},
    "settings": {"differences": []},
    "axis": None,
    "baseline": experiment(1, "before"),
    "candidate": experiment(2, "after"),
    "delta": 0.03,
    "correction": "holm",
    "tests": 4,
    "verdicts": {"undecided": 1, "faster": 1, "slower": 1, "equivalent": 1},
    "only_in_baseline": [POINT | {"message_size": 1}],
    "only_in_candidate": [],
    "rows": [
        {
            "baseline": side(size),
            "candidate": side(size),
            "figures": {"throughput_bytes_per_second": figure, "latency_ns_p50": None},
            "reasons": {"latency_ns_p50": "a stream has none"},
        }
        for size, figure in FIGURES.items()
    ],
}


@pytest.fixture
def given(driver, unopened):
    made = []

    def give(fragment, **answers):
        compared = documents.experiment(1) | documents.experiment(2) if fragment.startswith("#/compare") else {}
        made.append(Answers(driver, {"/compare": []}, **(compared | answers)))
        unopened.open(fragment)
        return unopened

    yield give
    for one in made:
        one.remove()


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_each_row_has_its_verdict_in_words(given, picture, width, scheme):
    page = given(TWO, **{"/compare": ANSWER})
    page.size(width, 1000)
    page.media(scheme)
    page.wait(lambda: len(page.all(".dumbbell")) == 4, "the rows")
    page.wait(lambda: len(page.all("#comparison .sides li")) == 2, "where and when they were measured")
    title = "2, after against 1, before: of 4 figures, 1 faster, 1 slower, 1 equivalent, 1 undecided"
    assert page.text("#verdicts-title") == title
    words = [one.text for one in page.all(".verdicts .verdict")]
    assert words == [
        "faster: 24 % more, 1.240 times (1.200 to 1.290, level 95.1 %)",
        "slower: 5.1 % less, 0.9490 times (0.9440 to 0.9530, level 95.1 %)",
        "equivalent: 1.001 times (0.9900 to 1.010, level 95.1 %)",
        "undecided: 1.020 times (0.9000 to 1.150, level 95.1 %); 8.0 % would have been seen; "
        "31 runs a side would decide",
    ]
    assert page.text("#environment-title") == "Both were measured in the same environment"
    assert page.run("return document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    picture(f"compare-{width}-{scheme}")


def test_the_saved_picture_names_both_sides(given):
    page = given(TWO, **{"/compare": ANSWER})
    page.wait(lambda: len(page.all(".dumbbell")) == 4, "the rows")
    words = " ".join(re.findall(r">([^<>]+)</text>", page.saved("SVG", "#comparison")))
    for side, identity in (("Baseline", 1), ("Candidate", 2)):
        assert f"{side}: Experiment {identity}, Made up · seed 1 · " in words
    assert words.count("host elsewhere · kernel 5.10.0-elsewhere · ipclab 0.1.0") == 2
    page.wait(lambda: len(page.all("#comparison .sides li")) == 2, "where and when they were measured")
    for line, side in zip(
        page.all("#comparison .sides li"), ("Baseline: Experiment 1", "Candidate: Experiment 2"), strict=True
    ):
        assert line.text.startswith(side) and line.text.endswith("kernel 5.10.0-elsewhere · ipclab 0.1.0")


def test_runs_with_flags_are_named_beside_the_verdict(given):
    answer = copy.deepcopy(ANSWER)
    answer["rows"][1]["baseline"] |= {"runs_noisy": 3, "runs_disputed": {"ends_differ": 1}}
    answer["rows"][2]["candidate"] |= {"runs_disputed": {"pipes_differ": 2}}
    page = given(TWO, **{"/compare": answer})
    page.wait(lambda: len(page.all(".dumbbell")) == 4, "the rows")
    assert [one.text for one in page.all(".verdicts .flags")] == [
        "(of the 12 runs of the baseline 3 are noisy, 1 has the flag ends_differ)",
        "(of the 12 runs of the candidate 2 have the flag pipes_differ)",
    ]


def test_an_environment_that_changed_within_one_of_them_is_named(given):
    updated = copy.deepcopy(ANSWER)
    updated["environment"] = {"alike": False, "forced": True, "differences": []}
    updated["candidate"]["environment_changed"] = [
        {"key": "kernel_release", "first": "6.1", "last": "6.12"},
        {"key": "swappiness", "first": 60, "last": None},
    ]
    page = given(TWO, **{"/compare": updated})
    headline = "The environments differ: kernel release within the candidate, swappiness within the candidate"
    page.wait(lambda: page.text("#environment-title") == headline, "the headline")
    notices = [one.text for one in page.all("#comparison .notice")]
    assert "Between the runs of the candidate, kernel release changed from 6.1 to 6.12." in notices
    assert (
        "Between the runs of the candidate, swappiness changed from 60 to another value and back within a run."
        in notices
    )
    assert violations(page) == []


@pytest.mark.parametrize(
    ("axis", "added", "words"),
    [
        (None, (0, 0), ""),
        (None, (0, 1), "1 repetition of the candidate"),
        (None, (20, 3), "20 repetitions of the baseline and 3 repetitions of the candidate"),
        ("transport", (3, 3), "3 repetitions of the experiment"),
    ],
)
def test_repetitions_that_were_added_are_told(given, axis, added, words):
    answer = copy.deepcopy(ANSWER) | {"axis": axis}
    for side, n in zip(("baseline", "candidate"), added, strict=True):
        answer[side] |= {"repetitions_added": n, "value": axis and side}
    page = given(TWO, **{"/compare": answer})
    page.wait(lambda: len(page.all(".dumbbell")) == 4, "the rows")
    (hint,) = [one.text for one in page.all("#comparison .hint") if "corrected after Holm over 4 figures." in one.text]
    said = hint.split("over 4 figures.")[1].strip()
    assert said.split(" came by hand")[0] == words
    assert ("a false difference is more likely than the correction allows." in said) == (words != "")


def test_a_machine_in_another_state_is_named(given):
    probe = {"cpus": [0, 1], "cpu": 1, "what": "memcpy_64k_ns", "baseline": 1200, "candidate": 1500, "ratio": 1.25}
    probes = [probe | {"differs": True}, probe | {"what": "getpid_ns", "differs": False}]
    words = (
        "The machine was in another state: beside the candidate, memcpy 64k on CPU 1 took 1.250 times as long. "
        "A verdict below may be of that."
    )
    none = {"baseline": 0, "candidate": 0}
    differs = {"state": "differs", "reason": None, "runs_uncompared": none, "probes": probes}
    page = given(TWO, **{"/compare": ANSWER | {"machine": differs}})
    page.wait(lambda: words in [one.text for one in page.all("#comparison .notice")], "the machine's state")
    assert violations(page) == []
    reason = "no runs of both on the same CPUs have probes"
    unknown = {"state": "unknown", "reason": reason, "runs_uncompared": dict.fromkeys(none, 12), "probes": []}
    page = given(TWO, **{"/compare": ANSWER | {"machine": unknown}})
    words = "Whether the machine was in the same state is not known: no runs of both on the same CPUs have probes."
    page.wait(lambda: words in [one.text for one in page.all("#comparison .notice")], "that nothing is known")


def test_unlike_environments_are_compared_only_when_forced(given, picture):
    detail = "The environments are unlike: kernel_release."
    unlike = copy.deepcopy(ANSWER)
    difference = {"key": "kernel_release", "baseline": "6.1", "candidate": "6.12", "unlike": True}
    unlike["environment"] = {"alike": False, "forced": True, "differences": [difference]}
    forced = "/compare?baseline=1&candidate=2&force=true"
    page = given(TWO, **{"/compare": {"status": 409, "body": {"detail": detail}}, forced: unlike})
    page.wait(lambda: page.text("#comparison .notice") == detail, "the refusal")
    page.find("#force").click()
    page.wait(lambda: page.text("#environment-title") == "The environments differ: kernel release", "the headline")
    assert "may be the environment’s" in page.text("#comparison .notice")
    sections = [one.get_attribute("aria-labelledby") for one in page.all("#comparison section")]
    assert sections == ["environment-title", "verdicts-title"]
    picture("compare-unlike")


def test_settings_that_are_unlike_beside_the_axis_are_named(given):
    answer = copy.deepcopy(ANSWER) | {"axis": "transport"}
    answer["rows"][0]["unlike"] = "fields 8 is of tcp alone; buffers of 64 KiB (pipe), 4 MiB (tcp)"
    page = given("#/compare?experiment=1&axis=transport&baseline=pipe&candidate=tcp", **{"/compare": answer})
    page.wait(lambda: len(page.all(".dumbbell")) == 4, "the rows")
    named, unnamed = [one.text for one in page.all(".verdicts .verdict")][:2]
    assert named == (
        "faster: 24 % more, 1.240 times (1.200 to 1.290, level 95.1 %). "
        "The settings of the two sides are unlike, too: fields 8 is of tcp alone; "
        "buffers of 64 KiB (pipe), 4 MiB (tcp)."
    )
    assert "unlike" not in unnamed


def test_values_of_an_axis_are_chosen_by_name(given, daemon):
    identity = daemon.submit(transport=["pipe", "fifo"], messages=100, warmup_seconds=0, name="Both")
    daemon.wait_done(identity)
    answer = ANSWER | {"axis": "transport", "candidate": ANSWER["candidate"] | {"experiment_id": identity}}
    page = given(f"#/experiments/{identity}", **{"/compare": answer})
    page.wait_for("#compare").click()
    page.wait_for("#compare-axis")
    choose = """const s = document.getElementById(arguments[0]); s.value = arguments[1];
        s.dispatchEvent(new Event('change', { bubbles: true }))"""
    page.run(choose, "compare-axis", "transport")
    page.wait(lambda: page.all("#compare-experiment"), "the axis' values")
    for name, value in (("baseline", "pipe"), ("candidate", "fifo")):
        page.wait(lambda name=name: page.all(f"#compare-{name} option[value=fifo]"), name)
        page.run(choose, f"compare-{name}", value)
        page.wait(lambda name=name, value=value: f"{name}={value}" in page.driver.current_url, name)
    page.wait(lambda: page.all(".dumbbell"), "the comparison")
    target = page.run("return requests.filter(([, target]) => target.startsWith('/compare')).at(-1)[1]")
    wanted = {"axis=transport", f"experiment={identity}", "baseline=pipe", "candidate=fifo"}
    assert set(target.split("?")[1].split("&")) == wanted
