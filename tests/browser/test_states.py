# SPDX-License-Identifier: MIT
"""The daemon's state on the page: the same in all its parts, also while it is away, and nothing that jumps."""

import pytest
from ipclabd import ENDLESS, Daemon
from page import Page
from selenium.webdriver.common.keys import Keys
from test_dashboard import AWAY, open_experiment

# Read at once: the experiments that the list shows as running, and the overview's "now".
LOOK = """const fact = [...document.querySelectorAll('main dt')].find((term) => term.textContent === 'now');
    return { running: [...document.querySelectorAll('#list .state[data-state=running]')].length,
        now: fact?.nextElementSibling.textContent ?? null }"""


@pytest.fixture
def own(driver):
    """A daemon that may go, and the page in front of it."""
    daemon = Daemon()
    try:
        daemon.start()
        page = Page(driver, daemon.url)
        page.reset()
        page.expected += AWAY
        page.sign(daemon.token)
        yield daemon, page
        assert page.complaints() == []
        page.close()
    finally:
        daemon.remove()


def test_the_overview_and_the_list_agree_on_what_runs(page, daemon):
    page.wait(lambda: page.run(LOOK)["now"] == "idle", "the overview")
    experiment = daemon.submit(name="Seen by both", duration_seconds=2, warmup_seconds=0, rate=100)
    looks = []

    def ended():
        looks.append(page.run(LOOK))
        return page.text(f"#list a[href='#/experiments/{experiment}'] .state") == "done"

    page.wait(ended, "the end")
    page.wait(lambda: page.run(LOOK)["now"] == "idle", "the overview to know of the end")
    while_running = {look["now"] for look in looks if look["running"]}
    assert while_running == {f"running experiment {experiment}"}
    assert {look["now"] for look in looks if not look["running"]} <= {"idle"}


def test_nothing_goes_on_while_the_daemon_is_away(own):
    daemon, page = own
    experiment = daemon.submit(name="Interrupted", repetitions=2, **ENDLESS)
    open_experiment(page, experiment)
    page.wait(lambda: "left" in page.text(".progress-box"), "the time that is left")
    page.wait(lambda: "left" in page.text(f"#list a[href='#/experiments/{experiment}'] .words"), "that in the list")
    daemon.stop()
    page.wait(lambda: "does not answer" in page.text("#connection"), "the loss to be known")
    for part in (".progress-box", f"#list a[href='#/experiments/{experiment}'] .words"):
        assert " left" not in page.text(part), page.text(part)
    assert "does not answer" in page.text(".progress-box")
    # what is tried now fails in sight, and in the past tense once the daemon is back
    page.find("#cancel").click()
    page.find("#confirm-ok").click()
    page.wait(lambda: "does not answer" in (page.text("main .notice") or ""), "the failure")
    daemon.start()
    page.wait(lambda: page.text("#connection") == "Live", "the daemon to be found again")
    assert "does not answer" not in page.text("body")
    assert "did not answer" in page.text("main .notice")
    page.wait(lambda: " left" in page.text(".progress-box"), "the time that is left")


def test_a_view_that_could_not_be_read_comes_with_the_daemon(own):
    daemon, page = own
    experiment = daemon.submit(name="Still there", messages=50, warmup_seconds=0)
    daemon.wait(experiment)
    page.wait_for("#daemon-facts")
    daemon.stop()
    page.wait(lambda: "does not answer" in page.text("#connection"), "the loss to be known")
    page.wait(lambda: "does not answer" in (page.text("#daemon-facts") or ""), "the same in the daemon's facts")
    assert "idle" not in page.text("#daemon-facts")
    page.go(f"#/experiments/{experiment}")
    page.wait(lambda: "does not answer" in page.text("main"), "the failure")
    page.find("#list-filter option[value=done]").click()
    page.wait(lambda: "does not answer" in page.text("#list-empty"), "the list's failure")
    daemon.start()
    page.wait(lambda: page.text("main h1") == "Still there", "the experiment")
    page.wait_for(f"#list [data-key='{experiment}']")
    page.wait(lambda: page.text("#connection") == "Live", "the event stream")
    assert "does not answer" not in page.text("body")


def test_a_refused_token_is_not_set(page, daemon):
    page.expect_status(401)
    experiment = daemon.submit(name="Not to be deleted", messages=50, warmup_seconds=0)
    daemon.wait(experiment)
    open_experiment(page, experiment)  # where no plan is made with the token, as it is for a preset below the pointer
    page.find("#token-button").click()
    page.give_token("of another daemon")
    page.wait(lambda: page.text("#token-button") == "Token set", "the token to be taken")
    page.find("main .buttons .danger").click()
    page.find("#confirm-ok").click()
    page.wait(lambda: "refused" in page.text("#token-error"), "the refusal")
    assert page.text("#token-button") == "Token refused"
    page.keys(Keys.ESCAPE)
    page.wait(lambda: page.text("main .notice"), "the failure")
    assert page.text("#token-button") == "Token refused"
    assert page.run("return sessionStorage.getItem('ipclab.token')") is None
    page.find("#token-button").click()
    page.give_token(daemon.token)
    page.wait(lambda: page.text("#token-button") == "Token set", "the token to be taken")


def test_one_state_follows_from_requests_and_stream(page):
    states = page.call(
        """const { connection } = await import('/assets/api.js');
        const fresh = new connection.constructor();
        const seen = [fresh.state];
        for (const [what, yes] of args[0]) {
            fresh[what](yes);
            seen.push(fresh.state);
        }
        return seen""",
        [
            ["answered", True],
            ["streams", True],
            ["answered", False],  # a stream may be open to a server that is stuck,
            ["answered", True],  # and still be there when it goes on
            ["streams", False],
            ["answered", False],
            ["answered", True],
            ["streams", True],
        ],
    )
    assert states == ["connecting", "connecting", "live", "gone", "live", "polling", "gone", "polling", "live"]
