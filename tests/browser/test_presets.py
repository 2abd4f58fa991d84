# SPDX-License-Identifier: MIT
"""The cards of the presets: how long each takes on this host, in its whole and in its short form."""

import pytest
from answers import Answers

FINISHED = "2026-01-31T12:00:00.000Z"
TOOK = {"ipc-4mib-quick": 20, "fifo-numa": 1500, "fifo-numa-quick": 90}
PLANNED = {"ipc-4mib": 67, "tcp-copy-modes": 2304, "tcp-copy-modes-quick": 42}
REASON = "there is one CPU here."


def given(at, preset):
    """As an answer has it, with what was measured and what is planned above; what is in neither cannot be done."""
    took, planned = TOOK.get(preset["name"]), PLANNED.get(preset["name"])
    last = {"experiment_id": 900000 + at, "finished_at": FINISHED, "took_seconds": took}
    here = {
        "estimated_seconds": planned,
        "reason": None if planned else REASON,
        "last": last if took else None,
        "last_reason": None,
    }
    return preset | {"here": here}


@pytest.fixture
def cards(driver, unopened, daemon):
    """No token is set."""
    items = [given(at, preset) for at, preset in enumerate(daemon.get("/presets")["items"])]
    findings = {f"/experiments/{900000 + at}/findings": {"items": []} for at in range(len(items))}
    answers = Answers(driver, {}, **{"/presets": {"items": items, "next": None}}, **findings)
    unopened.open()
    unopened.wait_for("#presets .card")
    yield unopened
    answers.remove()


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("fifo-numa", "Took 25 min 00 s here. In brief: took 1 min 30 s here."),
        ("ipc-4mib", "Takes about 1 min 07 s here. In brief: took 20 s here."),
        ("tcp-copy-modes", "Takes about 38 min 24 s here. In brief: takes about 42 s here."),
        ("quick", f"Cannot be done here: {REASON}"),
    ],
)
def test_each_form_has_its_time_here(cards, preset, words):
    script = """const card = [...document.querySelectorAll('#presets .card')].find((one) =>
        one.querySelector(`[aria-label="Open the preset ${arguments[0]}"]`));
        return card.querySelector('.takes').textContent"""
    assert cards.run(script, preset) == words
