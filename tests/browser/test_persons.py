# SPDX-License-Identifier: MIT
"""Six persons, each with a purpose, walk through the dashboard to what they came for."""

import re

import pytest
from answers import Answers
from axe import violations
from documents import experiment
from ipclabd import Daemon
from page import Page
from selenium.webdriver.common.keys import Keys
from test_baselines import HISTORY
from test_compare import ANSWER
from test_list import names

THOUSAND = 1000
TRANSPORTS = ["pipe", "unix-stream"]
SIZES = [64, 4096]


@pytest.fixture(scope="module", autouse=True)
def begun(daemon):
    """Enough runs of each point for findings, and of a placement that advice can be asked for. They are made beside the
    first test, which needs none of them."""
    return daemon.submit(
        name="Round trips",
        workload="pingpong",
        transport=TRANSPORTS,
        message_size=SIZES,
        placement=["default", "same-cpu"],
        repetitions=6,
        messages=300,
        warmup_seconds=0,
    )


@pytest.fixture(scope="module")
def measured(daemon, begun):
    daemon.wait_done(begun)
    return begun


@pytest.fixture
def arrive(unopened):
    """On the first page, with a screen of that width and scheme."""

    def come(width, height, scheme="light"):
        unopened.size(width, height)
        unopened.media(scheme)
        unopened.open()
        unopened.wait_for("#quiet")
        return unopened

    return come


def choose(page, name, value):
    page.wait(lambda: page.all(f"#{name} option[value='{value}']"), name)
    page.run(
        """const s = document.getElementById(arguments[0]); s.value = arguments[1];
        s.dispatchEvent(new Event('change', { bubbles: true }))""",
        name,
        value,
    )


def fits(page):
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []


def test_the_administrator_finds_and_clears_a_queue_of_a_thousand(driver, picture):
    """A daemon of its own, which takes the queue with it. Nothing of it is measured."""
    daemon = Daemon()
    try:
        daemon.start()
        daemon.fill_queue(THOUSAND, "Lot")
        page = Page(driver, daemon.url)
        page.clear()
        page.sign(daemon.token)
        page.size(1920, 1200)
        page.media("dark")
        page.open()
        page.wait(lambda: f"and {THOUSAND - 10} more" in (page.text("#now") or ""), "the queue")
        assert "In front" in page.text("#now .tile")
        assert re.match(r"\d\d:\d\d\s+Lot 0\s", page.text("#now .queue li"))
        page.wait(lambda: names(page) == [f"Lot {n}" for n in range(999, 974, -1)], "the newest")
        fits(page)
        picture("person-administrator")
        page.fill("#list-search", "Lot 99")
        page.wait(lambda: names(page) == [f"Lot {n}" for n in (*range(999, 989, -1), 99)], "those of that name")
        assert "q=Lot" in page.driver.current_url
        page.find("#list-many summary").click()
        page.find("#list-delete").click()
        page.wait(lambda: page.text("#confirm-title") == "Delete 11 experiments?", "the question")
        page.find("#confirm-ok").click()
        page.wait(lambda: names(page) == [], "them to be gone")
        page.wait(lambda: f"and {THOUSAND - 21} more" in page.text("#now"), "the queue without them")
        assert page.complaints() == []
        page.close()
    finally:
        daemon.remove()


def test_the_newcomer_learns_which_mechanism_and_why(arrive, daemon, measured, picture):
    page = arrive(1280, 1400)
    choose(page, "ask-placement", "default")  # which asks at once
    page.wait(lambda: page.all("#advice .ranked li"), "the ranking")
    assert page.text("#advice .advice").endswith(".")
    ranked = [one.text.split()[0] for one in page.all("#advice .ranked strong")]
    requests = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    asked = next(url for url in reversed(requests) if "/advice?" in url)
    items = daemon.get(asked[asked.index("/advice?") :])["items"]
    assert ranked == [item["point"]["transport"] for item in items], "the order of the API's answer"
    assert set(ranked) >= set(TRANSPORTS)
    fits(page)
    picture("person-newcomer-advice")
    page.find(f"#advice a[href='#/experiments/{measured}']").click()
    page.wait(
        lambda: page.all("#figure .mark") and page.all("#findings .sentences, #findings .soft"), "what it rests on"
    )
    assert page.text("main h1") == "Round trips"
    fits(page)
    picture("person-newcomer")


def test_the_researcher_compares_two_kernels(driver, arrive, daemon, measured, picture):
    difference = {"key": "kernel_release", "baseline": "6.1", "candidate": "6.12", "unlike": True}
    unlike = {"alike": False, "forced": True, "differences": [difference]}
    side = {"name": "stock", "experiment_id": 12, "experiment_name": "nightly", "pinned_at": "2026-01-01T00:00:00.000Z"}
    held = f"/compare?candidate={measured}&baseline=stock"
    sides = {"baseline": 900201, "candidate": measured}
    answer = ANSWER | {which: ANSWER[which] | {"experiment_id": identity} for which, identity in sides.items()}
    answers = Answers(
        driver,
        {},
        **{
            "/baselines": {"items": [side], "next": None},
            "/baselines/stock/history": HISTORY,
            held: {"status": 409, "body": {"detail": "The environments are unlike: kernel_release."}},
            f"{held}&force=true": answer | {"environment": unlike},
            **experiment(900201),
        },
    )
    try:
        page = arrive(1280, 1300, "dark")
        page.go(f"#/experiments/{measured}")
        page.wait_for("#compare").click()
        choose(page, "compare-baseline", "stock")
        page.wait_for("#force").click()
        page.wait(lambda: page.text("#environment-title") == "The environments differ: kernel release", "the headline")
        assert page.text(".verdicts .verdict").startswith("faster: 24 % more")
        fits(page)
        picture("person-researcher-compare")
        page.go("#/baselines")
        page.wait_for("main tbody a").click()
        page.wait(lambda: page.all("#history .change"), "the history")
        assert page.text("#environment-title") == "The environment changed: kernel release"
        fits(page)
        picture("person-researcher")
    finally:
        answers.remove()


def test_the_teacher_shows_one_chart_on_the_wall(arrive, measured, picture):
    page = arrive(1920, 1080)
    page.go(f"#/experiments/{measured}?facet=placement")
    page.wait(lambda: len(page.all("#figure .panel-of")) == 2, "a panel for each placement")
    page.find("#present").click()
    page.wait(lambda: not page.find(".bar").is_displayed(), "the view alone")
    assert page.driver.current_url.endswith("?facet=placement&present")
    page.wait(lambda: len(page.all("#figure .panel-of")) == 2, "the same panels")
    least = "return Math.min(...[...document.querySelectorAll('#figure svg text')].map((one) => " + (
        "parseFloat(getComputedStyle(one).fontSize)))"
    )
    assert page.run(least) >= 15
    page.run("document.getElementById('figure').scrollIntoView()")
    fits(page)
    picture("person-teacher")
    page.keys(Keys.ESCAPE)
    page.wait(lambda: page.find(".bar").is_displayed(), "the page")


def test_the_keyboard_alone_reaches_finding_mark_and_run(arrive, measured, picture):
    page = arrive(1280, 1200)
    page.wait_for(f"#list a[href='#/experiments/{measured}']")
    page.tab_to(f"#list a[href='#/experiments/{measured}']", 200)
    page.keys(Keys.ENTER)
    page.wait(lambda: page.all("#findings .sentence") and page.all("#figure .mark"), "the experiment")
    page.tab_to("#findings .sentence")
    page.keys(Keys.ENTER)
    page.wait(lambda: page.all("#figure .lit"), "the marks that it is about")
    page.tab_to("#figure .drawing")
    page.keys(Keys.ARROW_RIGHT)
    assert re.match(r".* · \d+ runs", page.text("#figure .readout"))
    outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline not in ("none", "hidden")
    fits(page)
    picture("person-keyboard")
    page.tab_to("#timeline .drawing", 200)
    page.keys(Keys.ARROW_RIGHT, Keys.ENTER)
    page.wait(lambda: page.find("#run-dialog").is_displayed(), "the run")
    page.keys(Keys.ESCAPE)
    page.wait(lambda: not page.find("#run-dialog").is_displayed(), "the page")
    assert page.focused() == page.find("#timeline .drawing")


def test_the_telephone_shows_figures_without_scrolling_aside(arrive, measured, picture):
    page = arrive(360, 780, "dark")
    fits(page)
    picture("person-telephone-home")
    page.wait_for(f"#list a[href='#/experiments/{measured}']").click()
    page.wait(lambda: page.all("#figure .mark"), "the chart")
    page.wait(lambda: page.run("return document.documentElement.scrollWidth <= innerWidth"), "nothing to the side")
    fits(page)
    page.run("document.getElementById('figure').scrollIntoView()")
    picture("person-telephone")
    page.run("document.getElementById('results').scrollIntoView()")
    cell = "#results tbody tr:first-child td.number"
    page.wait(
        lambda: page.run("return arguments[0].getBoundingClientRect().right <= innerWidth", page.find(cell)), cell
    )
    picture("person-telephone-table")
    page.find(".back").click()
    page.wait(lambda: page.find("#list").is_displayed(), "the list")
