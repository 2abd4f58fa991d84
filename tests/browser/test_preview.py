# SPDX-License-Identifier: MIT
"""Before an experiment is posted: what it would be, and the lines that post it."""

import json
import shlex

import pytest
from answers import Answers
from axe import violations

POINT = {"workload": "stream", "transport": "pipe", "message_size": 64, "threads": 1}
ENOUGH = {
    "repetitions": 12,
    "difference": 0.05,
    "power": 0.95,
    "figure": "throughput_bytes_per_second",
    "variation": 0.031,
    "experiment_id": 41,
    "runs": 8,
}
SPLIT = {
    "repetitions": 20,
    "duration_seconds": 1,
    "relative_error": 0.011,
    "relative_error_as_planned": 0.024,
    "between_runs": 0.048,
    "between_seconds": 0.01,
    "experiment_id": 41,
    "runs": 8,
    "seconds": 40,
}
PLAN = {
    "runs": 8,
    "estimated_seconds": 78,
    "points": [{"point": POINT, "runs": 4, "estimated_seconds": 39, "enough": ENOUGH, "split": SPLIT}] * 2,
    "skipped": [
        {"point": POINT | {"placement": name}, "reason": f"no {name} here"} for name in ("cross-node", "same-core")
    ],
    "effective_spec": {},
}
TARGET = "/experiments?dry_run=true"


@pytest.fixture
def planned(driver, daemon, unopened):
    made = []

    def plan(answer):
        made.append(Answers(driver, {"/experiments": ["dry_run"]}, **{TARGET: answer}))
        unopened.sign(daemon.token)
        unopened.open("#/new")
        unopened.wait_for("#field-message_size")
        return unopened

    yield plan
    for one in made:
        one.remove()


def test_what_it_would_be_stands_there_before_it_is_posted(planned, picture):
    page = planned(PLAN)
    page.wait(lambda: "2 points, 8 runs, about 1 min 18 s" in page.text("#plan"), "the plan")
    assert "12 repetitions of each point show a difference of 5 %; this has 4." in page.text("#plan")
    words = "20 repetitions of 1 s would give the mean of the point that scatters most a standard error of 1.1 %"
    assert f"In the same time, {words} in place of 2.4 %." in page.text("#plan")
    page.run("document.querySelector('#plan summary').click()")
    assert "cross-node: no cross-node here" in page.text("#plan")
    posts = "return requests.filter(([method]) => method === 'POST')"
    before_edit = page.run(posts)
    page.fill("#field-message_size", "2 KiB")
    page.wait(lambda: len(page.run(posts)) > len(before_edit), "it anew")
    last = page.run(posts)[-1]
    assert last[1] == TARGET and json.loads(last[2])["message_size"] == 2048
    assert violations(page) == []
    picture("preview")
    page.size(360, 900)
    assert page.run("return document.documentElement.scrollWidth") <= 360


def test_a_point_out_of_reach_does_not_speak_for_the_others(planned, picture):
    reason = "it would take more than the 200 runs of each that take part in a comparison"
    near, far = PLAN["points"][0], ENOUGH | {"repetitions": None, "repetitions_reason": reason}
    page = planned(PLAN | {"points": [near, near | {"enough": far}]})
    page.wait(lambda: f"for 1 of 2 points {reason} to show a difference of 5 %." in page.text("#plan"), "the point")
    assert "12 repetitions of each of the others show a difference of 5 %; this has 4." in page.text("#plan")
    assert violations(page) == []
    page.run("document.querySelector('#plan').scrollIntoView({block: 'center'})")
    picture("preview-out-of-reach")


def test_the_only_point_is_not_counted_where_it_is_out_of_reach(planned):
    far = ENOUGH | {"repetitions": None, "repetitions_reason": "it would take more than 200 runs"}
    page = planned(PLAN | {"points": [PLAN["points"][0] | {"enough": far}]})
    words = "By earlier runs here, it would take more than 200 runs to show a difference of 5 %."
    page.wait(lambda: words in page.text("#plan"), "the point")


def test_a_refusal_is_shown_in_advance(planned):
    body = {"title": "Unprocessable", "detail": "message_size is at most 1073741824.", "pointer": "/message_size"}
    page = planned({"status": 422, "body": body})
    page.wait(lambda: "It would be refused. Message size is at most" in page.text("#plan"), "the refusal")


def test_no_token_dialog_for_a_preview(planned):
    page = planned(PLAN)
    page.run("sessionStorage.clear()")
    before = page.run("return requests.length")
    page.fill("#field-message_size", "2 KiB")
    page.call("await new Promise((resolve) => setTimeout(resolve, 1000))")
    assert [one for one in page.run("return requests")[before:] if one[0] == "POST"] == []
    assert not page.find("#token-dialog").is_displayed()


def test_the_lines_post_the_same_spec(page, daemon):
    page.sign(daemon.token)
    page.go("#/new")
    page.wait_for("#field-message_size")
    page.fill("#field-name", "It's mine")
    page.run("document.querySelector('#lines summary').click()")
    shown = page.run("return [...document.querySelectorAll('#lines pre')].map((line) => line.textContent)")
    spec = json.loads(shown[0])
    assert spec["name"] == "It's mine"
    curl = shlex.split(shown[1])
    assert curl[0] == "curl" and f"{daemon.url}/experiments" in curl and json.loads(curl[-1]) == spec
    command = shlex.split(shown[2])
    assert command[:2] == ["ipclab", "run"] and json.loads(command[2]) == spec and len(command) == 3
