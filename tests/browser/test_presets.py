# SPDX-License-Identifier: MIT
"""The cards of the presets: how long each took on this host, in its whole and in its short form."""

import pytest
from answers import Answers

BEGIN = "2026-01-31T12:00:00.000Z"


def done(identity, preset, finished, imported=None):
    return {
        "id": identity,
        "name": None,
        "state": "done",
        "spec": {"preset": preset},
        "progress": {"runs_total": 1, "runs_done": 1, "runs_failed": 0, "runs_cancelled": 0},
        "eta_seconds": None,
        "created_at": BEGIN,
        "started_at": BEGIN,
        "finished_at": f"2026-01-31T12:{finished}.000Z",
        "imported": imported,
    }


RECENT = [
    done(900015, "tcp-copy-modes-quick", "00:50", imported={"host": "rack 1"}),
    done(900014, "ipc-4mib-quick", "00:20"),
    done(900013, "fifo-numa", "25:00"),
    done(900012, "fifo-numa-quick", "01:30"),
    done(900011, "fifo-numa-quick", "09:00"),
]


@pytest.fixture
def cards(driver, unopened):
    """The cards, with these experiments for those that presets were measured in; no token is set."""
    recent = {"items": RECENT, "next": None}
    findings = {f"/experiments/{one['id']}/findings": {"items": []} for one in RECENT}
    answers = Answers(driver, {}, **{"/experiments?state=done&q=preset&limit=50": recent}, **findings)
    unopened.open()
    unopened.wait_for("#presets summary")
    unopened.run("document.querySelector('#presets details').open = true")
    unopened.wait(lambda: unopened.all("#presets .card"), "the cards")
    yield unopened
    answers.remove()


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("fifo-numa", "Took 25 min 00 s here. In brief: took 1 min 30 s here."),
        ("ipc-4mib", "In brief: took 20 s here."),
        ("tcp-copy-modes", None),  # another host has measured it
    ],
)
def test_a_preset_that_was_run_has_the_time_of_each_form(cards, preset, words):
    script = """const card = [...document.querySelectorAll('#presets .card')].find((one) =>
        one.querySelector(`[aria-label="Open the preset ${arguments[0]}"]`));
        return card.querySelector('.takes')?.textContent ?? null"""
    assert cards.run(script, preset) == words
