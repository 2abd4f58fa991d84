# SPDX-License-Identifier: MIT
"""Baselines: pinned from an experiment, listed, and the history of what came after, with its changes."""

import re

import pytest
from answers import Answers
from axe import violations
from documents import experiment
from page import SCREENS
from selenium.webdriver.common.keys import Keys

POINT = {"workload": "stream", "transport": "pipe", "threads": 1}
LATER = 14
CHANGED = 10  # from this one on: another kernel, and 10 % slower at 4 KiB
FIGURE = "throughput_bytes_per_second"


def ratio(size, at):
    return (0.9 if at >= CHANGED and size == 4096 else 1.0) + 0.004 * (-1) ** at


def value(size, at):
    middle = ratio(size, at)
    verdict = "slower" if middle < 0.95 else "equivalent" if at % 2 else "undecided"
    return {
        "experiment_id": 20 + at,
        "ratio": middle,
        "interval": [middle - 0.01, middle + 0.01],
        "level": 0.961,
        "verdict": verdict,
    }


def series(size, figure=FIGURE):
    changes = [20 + CHANGED] if size == 4096 else []
    begins, ends = [20, *changes], [*(change - 1 for change in changes), 19 + LATER]
    levels = zip(begins, ends, [1.0, 0.9], strict=False)
    return {
        "point": POINT | {"message_size": size},
        "figure": figure,
        "values": [value(size, at) for at in range(LATER)],
        "segments": [{"from": begin, "to": end, "ratio": level} for begin, end, level in levels],
        "change_points": changes,
        "change_points_reason": None,
    }


def later(at):
    late = at >= CHANGED
    kernel = {"key": "kernel_release", "baseline": "6.1", "candidate": "6.12", "unlike": True}
    load = {"key": "load", "baseline": 0.1, "candidate": 0.1 * at, "unlike": False}
    return {
        "experiment_id": 20 + at,
        "name": f"month {at}",
        "version": "0.1.0",
        "finished_at": f"2026-01-{at + 1:02}T12:00:00.000Z",
        "alike": not late,
        "differences": [load, kernel] if late else [load],
        "verdicts": {"undecided": 1, "faster": 0, "slower": int(late), "equivalent": 2},
        "error": None,
    }


HISTORY = {
    "baseline": {
        "name": "stock",
        "experiment_id": 12,
        "experiment_name": "nightly",
        "pinned_at": "2026-01-01T00:00:00.000Z",
    },
    "items": [later(at) for at in range(LATER)],
    "series": [series(64), series(4096), series(64, "latency_ns_p50")],
}


@pytest.fixture
def given(driver, unopened):
    made = []

    def give(history, **answers):
        made.append(Answers(driver, {}, **{"/baselines/stock/history": history}, **answers))
        unopened.open("#/baselines/stock")
        unopened.wait(lambda: unopened.text("main h1") == "Baseline stock", "the history")
        return unopened

    yield give
    for one in made:
        one.remove()


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_a_history_has_its_changes_of_level_and_of_environment(given, picture, width, scheme):
    page = given(HISTORY)
    page.size(width, 1200)
    page.media(scheme)
    page.wait(lambda: len(page.all("#history .held")) == 2 * LATER, "the marks")
    assert page.text("#environment-title") == "The environment changed: kernel release"
    changed = page.text("section.unlike li")
    assert changed == f"From experiment {20 + CHANGED} on: kernel release 6.1 → 6.12"
    assert page.text("#history-title") == "Throughput: the level of 1 of 2 points changed"
    strips = "return [...document.querySelectorAll('#history .strip')].map((one) => one.dataset.label)"
    assert page.run(strips) == ["4 KiB", "64 B"]  # what changed stands on top
    assert [one.get_attribute("data-experiment") for one in page.all("#history .change")] == [str(20 + CHANGED)]
    assert len(page.all("#history .environment")) == 1
    between = """const x = (selector) => document.querySelector(selector).getBoundingClientRect().x;
        return [x('#history [data-experiment="29"] .mark'), x('#history .environment'),
            x('#history .change'), x('#history [data-experiment="30"].place .mark')]"""
    before, environment, change, after = page.run(between)
    assert before < environment < after and before < change < after
    within = """const box = document.querySelector('#history svg').getBoundingClientRect();
        return [...document.querySelectorAll('#history svg text')].map((text) => [text.textContent,
            text.getBoundingClientRect()]).filter(([, one]) => one.left < box.left - 1 || one.right > box.right + 1)
            .map(([words]) => words)"""
    page.wait(lambda: page.run(within) == [], "all words within the frame")
    assert page.run("return document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    picture(f"history-{width}-{scheme}")


def test_its_table_has_the_newest_first_with_verdict_and_environment(given):
    page = given(HISTORY)
    rows = [one.text.split("\n") for one in page.all("section[aria-labelledby=later-title] tbody tr")]
    assert len(rows) == LATER
    newest, oldest = " ".join(rows[0]), " ".join(rows[-1])
    assert "33, month 13" in newest and "1 slower, 2 equivalent, 1 undecided" in newest
    assert "kernel release 6.12" in newest
    assert "20, month 0" in oldest and "as the baseline’s" in oldest
    links = [one.get_attribute("href") for one in page.all("section[aria-labelledby=later-title] td:last-child a")]
    assert links[0].endswith("#/compare?baseline=stock&candidate=33&force=true")
    assert links[-1].endswith("#/compare?baseline=stock&candidate=20")


def test_its_marks_are_read_out_by_keys_and_the_figure_stands_in_the_address(given):
    page = given(HISTORY)
    page.tab_to("#history .drawing")
    page.keys(Keys.ARROW_RIGHT)
    first = page.text("#history .readout").split(" · ")
    assert (first[0], first[2], first[3]) == ("month 0 (20)", "4 KiB", "undecided: 1.00 ×")
    page.keys(Keys.ARROW_RIGHT)
    assert page.text("#history .readout").endswith("equivalent: 0.996 × · 0.9860 to 1.006, 96.1 %")
    page.run(
        """const s = document.getElementById('history-figure'); s.value = 'latency_ns_p50';
        s.dispatchEvent(new Event('change', { bubbles: true }))"""
    )
    page.wait(lambda: len(page.all("#history .held")) == LATER, "the other figure")
    assert page.driver.current_url.endswith("?figure=latency_ns_p50")
    assert page.text("#history-title").startswith("Latency, p50 over the baseline’s: no change of level")


def test_an_environment_that_comes_back_is_a_change_too(page):
    script = """const { environmentChanges } = await import('/assets/compare/baselines.js');
        return environmentChanges(args[0].map((candidate) => ({ differences: candidate === null ? [] :
            [{ key: 'turbo', baseline: true, candidate, unlike: true }] })))"""
    assert page.call(script, [None, False, False, None]) == [
        {"at": 1, "changed": [{"key": "turbo", "from": True, "to": False}]},
        {"at": 3, "changed": [{"key": "turbo", "from": False, "to": True}]},
    ]


def test_too_few_experiments_for_a_change_are_called_so(given):
    reason = "not searched: there are fewer than 8 experiments"
    few = series(64) | {"segments": None, "change_points": None, "change_points_reason": reason}
    page = given(HISTORY | {"series": [few]})
    page.wait(lambda: page.text("#history-title") == "Throughput over the baseline’s", "the chart")
    assert f"Changes of level were {reason}." in page.text("#history .hint")


def test_an_experiment_is_pinned_and_held_against_later_ones(unopened, daemon, picture):
    page = unopened
    page.sign(daemon.token)
    page.open()
    spec = {"message_size": [64, 4096], "messages": 100, "warmup_seconds": 0, "name": "To be pinned"}
    first = daemon.submit(**spec)
    daemon.wait_done(first)
    page.go(f"#/experiments/{first}")
    page.wait(lambda: page.all("#pin") and page.find("#pin").is_displayed(), "the button")
    page.find("#pin").click()
    name = page.wait_for("#pin-name")
    assert page.focused() == name
    page.expect_status(422)
    name.send_keys("12", Keys.ENTER)
    page.wait(lambda: page.text("#pin-error"), "the refusal of a number")
    assert violations(page) == []
    page.fill("#pin-name", "stock")
    page.find("#pin-form .primary").click()
    page.wait(lambda: page.text("main h1") == "Baseline stock", "its history")
    assert "No later experiment" in page.text("#nothing-later")
    second = daemon.submit(**spec | {"name": "The next"})
    daemon.wait_done(second)

    def held():
        page.driver.refresh()
        page.wait(lambda: page.text("main h1") == "Baseline stock", "its history")
        return page.all("#history .held")

    page.wait(held, "the next one")
    assert f"{second}, The next" in page.text("section[aria-labelledby=later-title]")
    page.go("#/compare")
    page.wait(lambda: page.all("#compare-baseline option[value=stock]"), "the baseline among what is compared with")
    page.go("#/")
    page.wait_for("#baselines").click()
    page.wait(lambda: page.text("main h1") == "Baselines", "the list")
    assert "To be pinned" in page.text("main table")
    assert violations(page) == []
    picture("baselines")
    page.find("main tbody a").click()
    page.wait_for("#forget").click()
    page.wait(lambda: page.find("#confirm-dialog").is_displayed(), "the question")
    page.find("#confirm-ok").click()
    page.wait(lambda: "Nothing is pinned yet" in (page.text("main .panel") or ""), "the empty list")
    page.expect_status(404)
    page.go("#/baselines/stock")
    page.wait(lambda: page.text("main h1") == "There is no such baseline", "the words")


def test_an_experiment_that_became_slower_leads_to_its_history(driver, unopened, daemon):
    page = unopened
    identity = daemon.submit(messages=100, warmup_seconds=0)
    ended = daemon.wait(identity)
    flagged = {f"/experiments/{identity}": ended | {"flags": ["slower_than_baseline:stock"]}}
    answers = Answers(driver, {}, **{"/baselines/stock/history": HISTORY}, **flagged)
    try:
        page.open(f"#/experiments/{identity}")
        flag = page.wait_for(".meta .flag")
        assert flag.text == "slower than the baseline stock"
        flag.click()
        page.wait(lambda: page.text("main h1") == "Baseline stock", "the history")
    finally:
        answers.remove()


def test_the_saved_history_names_its_baseline_and_the_host_of_its_runs(given):
    page = given(HISTORY, **experiment(12))
    page.wait(lambda: page.text("#host-line"), "the page's own host")
    page.wait(lambda: page.all("#history .held"), "the marks")
    words = " ".join(re.findall(r">([^<>]+)</text>", page.saved("SVG", "#history")))
    assert "Baseline stock: Experiment 12, Made up" in words and "14 later experiments · ipclab 0.1.0" in words
    assert "host elsewhere · kernel 5.10.0-elsewhere · ipclab 0.1.0" in words
    assert page.text("#host-line").split(" · ")[0] not in words
