# SPDX-License-Identifier: MIT
"""The first page: what runs and what waits, which mechanism to take, where the CPUs are, the presets."""

import json
import re
from urllib.parse import unquote

import pytest
from answers import Answers
from axe import violations


@pytest.fixture
def signed(page, daemon):
    page.run("sessionStorage.setItem('ipclab.token', arguments[0])", daemon.token)
    return page


def test_what_runs_and_what_waits_stand_on_top(signed, daemon, picture):
    page = signed
    ids = [
        daemon.submit(name=name, duration_seconds=30, warmup_seconds=0, repetitions=count)
        for name, count in (("Running one", 72), ("First in the queue", 2), ("Second in the queue", 1))
    ]
    try:
        page.wait(lambda: re.search(r"run 1 of 72, ends \d\d:\d\d", page.text("#now") or ""), "the tile")
        assert "Running one" in page.text("#now .tile")
        page.wait(lambda: len(page.all("#now .queue li")) == 2, "the queue")
        first, second = [one.text for one in page.all("#now .queue li")]
        assert re.match(r"\d\d:\d\d\s+First in the queue\s+2 runs", first), first
        assert re.match(r"\d\d:\d\d\s+Second in the queue\s+1 run", second), second
        assert violations(page) == []
        picture("home")
        page.size(360, 900)
        assert page.run("return document.documentElement.scrollWidth") <= 360
    finally:
        for identity in reversed(ids):
            daemon.request("POST", f"/experiments/{identity}/cancel")
    page.wait(lambda: "Nothing runs" in page.text("#now"), "the end")


def item(transport, standing, value, age, **more):
    return {
        "point": {"workload": "pingpong", "transport": transport, "message_size": 4096},
        "settings": {},
        "standing": standing,
        "reason": None,
        "value": value,
        "unit": "ns",
        "interval": {"low": value * 0.95, "high": value * 1.05, "level": 0.96},
        "over_best": None,
        "fit": None,
        "experiment_id": 7,
        "measured_at": "2026-01-31T12:00:00.000Z",
        "age_seconds": age,
        "runs": 12,
        "noisy": False,
        "unsteady": False,
        "runs_needed": None,
    } | more


SENTENCE = "shm-posix has the lowest typical latency, 4.1 µs."
ADVICE = {
    "sentence": SENTENCE,
    "want": "latency_p50",
    "items": [
        item("shm-posix", "best", 4100, 3600),
        item("pipe", "worse", 9300, 7200),
        item("tcp", "open", 15000, 60, reason="overlap", noisy=True),
    ],
    "next": None,
    "experiments": {"used": 3, "other_environment": 1, "open_loop_or_tuned": 0},
    "settle": {"transport": ["pipe", "tcp"]},
}


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "light"), (1280, "dark"), (1920, "dark")])
def test_a_newcomer_is_told_which_mechanism(driver, signed, daemon, picture, width, scheme):
    page = signed
    answers = Answers(driver, {"/advice": []}, **{"/advice": ADVICE})
    try:
        page.size(width, 1200)
        page.media(scheme)
        page.driver.refresh()
        page.wait_for("#ask").click()
        page.wait(lambda: page.text("#advice .advice") == SENTENCE, "the advice")
        rows = [one.text for one in page.all("#advice .ranked li")]
        assert [row.split()[0] for row in rows] == ["shm-posix", "pipe", "tcp"]
        assert "4.10 µs" in rows[0] and "1 h 00 min ago" in rows[0]
        assert "cannot be told apart · noisy · 1 min 00 s ago" in rows[2].replace("\n", " ")
        hollow = "return [...document.querySelectorAll('#advice .mark')].map((one) => one.classList.contains('hollow'))"
        assert page.run(hollow) == [False, False, True]
        target = unquote(page.run("return asked.filter(([, target]) => target.startsWith('/advice')).at(-1)[1]"))
        question = {"message_size=4096", "workload=pingpong", "placement=same-node", "want=latency_p50"}
        assert set(target.split("?")[1].split("&")) == question
        assert "want=latency_p50" in page.driver.current_url
        assert violations(page) == []
        assert page.run("return document.documentElement.scrollWidth") <= width
        picture(f"advice-{width}-{scheme}")
        page.driver.refresh()
        page.wait(lambda: page.text("#advice .advice") == SENTENCE, "the advice of the address")
    finally:
        answers.remove()


def test_without_the_route_the_card_says_so(page, daemon):
    if "/advice" in daemon.get("/openapi.json")["paths"]:
        pytest.skip("this daemon gives advice")
    page.wait_for("#ask").click()
    page.wait(lambda: "gives no advice" in (page.text("#advice .notice") or ""), "the words")


def test_two_cpus_are_a_placement(page, daemon):
    cpus = [cpu["id"] for cpu in daemon.get("/topology")["cpus"] if cpu["online"]]
    page.wait_for("#places .cpu")
    assert [int(one.get_attribute("data-cpu")) for one in page.all("#places .cpu")] == cpus
    for cpu in (cpus[0], cpus[-1]):
        page.run("document.querySelector(`[data-cpu='${arguments[0]}']`).click()", cpu)
    page.run("document.getElementById('place').click()")
    page.wait_for("#field-message_size")
    page.find("#tab-json").click()
    spec = json.loads(page.find("#spec-json").get_property("value"))
    assert spec == {"placement": {"sender": {"cpu": cpus[0]}, "receiver": {"cpu": cpus[-1]}}}


def test_a_preset_is_opened_from_its_card(page, daemon):
    presets = [preset["name"] for preset in daemon.get("/presets")["items"]]
    page.run("document.querySelector('#presets summary').click()")
    page.wait(lambda: len(page.all("#presets .card")) == len(presets), "the cards")
    assert violations(page) == []
    page.run("document.querySelector('[aria-label=\"Open the preset fifo-numa\"]').click()")
    page.wait_for("#field-message_size")
    assert page.find("#field-preset").get_property("value") == "fifo-numa"
