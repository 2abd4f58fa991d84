# SPDX-License-Identifier: MIT
"""What the address leads to, and the questions before something is stopped."""

import pytest
from ipclabd import ENDLESS
from page import Page
from selenium.webdriver.common.keys import Keys
from test_dashboard import open_experiment


@pytest.mark.parametrize("given", ["abc-DEF_1", "a%2Fb%3D", "100%25"])
def test_a_token_in_the_address_is_taken_and_removed(page, daemon, given):
    token = {"a%2Fb%3D": "a/b=", "100%25": "100%"}.get(given, given)
    page.driver.get("about:blank")
    page.driver.get(f"{daemon.url}/#token={given}")
    page.wait(lambda: page.text("main h1") == "This machine" and page.all("main table"), "the page")
    assert page.driver.current_url == f"{daemon.url}/#/"
    assert page.run("return sessionStorage.getItem('ipclab.token')") == token
    assert page.text("#token-button") == "Token set"
    history = page.driver.execute_cdp_cmd("Page.getNavigationHistory", {})
    assert not [entry for entry in history["entries"] if "token=" in entry["url"]]


def test_a_token_in_the_address_of_an_open_page_is_taken_too(page, daemon):
    """The daemon's own: the form is still asking for a preview, and a token that is refused there is forgotten."""
    page.go("#/new")
    page.wait_for("#field-name")
    page.go(f"#token={daemon.token}")
    page.wait(lambda: page.text("main h1") == "This machine", "the page")
    assert page.driver.current_url == f"{daemon.url}/#/"
    assert page.run("return sessionStorage.getItem('ipclab.token')") == daemon.token


@pytest.mark.parametrize(
    "address",
    [
        "#/nowhere",
        "#nowhere",
        "#/experiments",
        "#/experiments/12x",
        "#/experiments/999999",
        "#/experiments/99999999999999999999",
        "#/new?from=999999",
        "#/new?from=none",
    ],
)
def test_an_unknown_address_leads_home(page, daemon, address):
    page.expect_status(400, 404, 422)
    page.driver.get("about:blank")
    page.driver.get(f"{daemon.url}/{address}")
    home = page.wait_for("main #home")
    assert home.is_displayed() and "Loading" not in page.text("main")
    assert page.text("main h1").startswith("There is no")
    home.click()
    page.wait(lambda: page.text("main h1") == "This machine" and page.all("main table"), "the page")


def test_the_way_to_the_content_leaves_the_address_alone(page):
    page.go("#/new")
    page.wait_for("#field-name")
    page.find("#skip").send_keys(Keys.ENTER)
    assert page.focused() == page.find("main")
    assert page.driver.current_url.endswith("#/new") and page.all("#field-name")


def test_a_view_that_was_left_does_not_come_back(page, daemon):
    """The answer that a view waited for comes when another one is shown."""
    page.run(
        """const real = window.fetch;
        window.fetch = async (path, options) => {
            const answer = await real(path, options);
            if (path === '/openapi.json') await new Promise((resolve) => (window.release = resolve));
            return answer;
        }"""
    )
    page.go("#/new")
    page.wait(lambda: page.run("return Boolean(window.release)"), "the description")
    page.go("#/")
    page.wait(lambda: page.all("main table"), "the machine")
    page.run("release()")
    page.call("await new Promise((resolve) => setTimeout(resolve, 100))")
    assert page.text("main h1") == "This machine"


def test_cancelling_by_the_keyboard_is_confirmed_too(page, daemon):
    page.sign(daemon.token)
    experiment = daemon.submit(name="Not by accident", **ENDLESS)
    open_experiment(page, experiment)
    page.wait(lambda: page.text("main .meta .state") == "running", "the run")
    page.tab_to("#cancel")
    page.keys(Keys.ENTER)
    page.wait(lambda: page.find("#confirm-dialog").is_displayed(), "the question")
    assert "Not by accident" in page.text("#confirm-text")
    assert page.focused() == page.find("#confirm-dialog [data-cancel]")  # what Enter does at once harms nothing
    page.keys(Keys.ESCAPE)
    page.wait(lambda: not page.find("#confirm-dialog").is_displayed(), "the dialog to close")
    assert page.focused() == page.find("#cancel")
    assert daemon.get(f"/experiments/{experiment}")["state"] == "running"
    page.keys(Keys.ENTER)
    page.wait(lambda: page.find("#confirm-dialog").is_displayed(), "the question")
    page.keys(Keys.TAB)
    assert page.focused() == page.find("#confirm-ok")
    page.keys(Keys.ENTER)
    page.wait(lambda: page.text("main .meta .state") == "cancelled", "the end")


def test_a_queued_experiment_is_taken_from_the_queue(page, daemon):
    page.sign(daemon.token)
    before, queued = (daemon.submit(name=name, **ENDLESS) for name in ("First", "Second"))
    open_experiment(page, queued)
    page.find("#cancel").click()
    assert "queue" in page.text("#confirm-text")
    page.find("#confirm-ok").click()
    page.wait(lambda: page.text("main .meta .state") == "cancelled", "the end")
    daemon.request("POST", f"/experiments/{before}/cancel")


def test_a_missing_experiment_is_found_missing_while_it_is_shown(driver, daemon):
    page = Page(driver, daemon.url)
    page.reset()
    page.expect_status(404)
    experiment = daemon.submit(name="Soon gone", messages=50, warmup_seconds=0)
    daemon.wait(experiment)
    daemon.request("DELETE", f"/experiments/{experiment}")
    page.go(f"#/experiments/{experiment}")
    page.wait_for("main #home")
    assert page.text("main h1") == f"There is no experiment {experiment}"
    page.close()


@pytest.fixture(scope="module")
def two_runs(daemon):
    spec = {"message_size": 4096, "repetitions": 2, "duration_seconds": 2, "warmup_seconds": 0, "rate": 100}
    identity = daemon.submit(name="Two runs", **spec)
    daemon.wait_done(identity)
    return identity, [run["id"] for run in daemon.get(f"/experiments/{identity}/runs")["items"]]


def test_the_samples_that_are_shown_are_chosen_in_the_address(page, two_runs):
    experiment, (_, second) = two_runs
    open_experiment(page, experiment)
    page.wait_for(f"#live-run option[value='{second}']").click()
    page.wait(lambda: page.drawn() == 4, "the two seconds of two agents")
    page.find("#live-log").click()
    for _ in range(2):
        page.wait(lambda: f"?live-run={second}&live-scale=log" in page.driver.current_url, "the address")
        page.wait(lambda: page.drawn() == 4, "the same run")
        assert page.find("#live-run").get_property("value") == str(second)
        assert page.find("#live-log").is_selected()
        page.driver.refresh()
        page.wait(lambda: page.text("main h1") == "Two runs", "the experiment after a reload")
    page.wait(lambda: page.drawn() == 4, "the same run")
    page.wait_for("#live-run option[value='0']").click()
    page.wait(lambda: page.drawn() == 8, "all runs")
    assert "live-run" not in page.driver.current_url


def test_a_run_is_opened_by_the_address_and_closed_with_the_view(page, two_runs):
    experiment, (first, second) = two_runs
    details = lambda run: page.text("#run-title") == f"Run {run}" and "throughput" in page.text("#run-body")  # noqa: E731
    open_experiment(page, experiment)
    page.wait_for(f"button[aria-label='Details of run {first}']").click()
    page.wait(lambda: details(first), "the details")
    assert page.driver.current_url.endswith(f"#/experiments/{experiment}?run={first}")
    page.driver.refresh()
    page.wait(lambda: details(first), "the same after a reload")
    page.go(f"#/experiments/{experiment}?run={second}")
    page.wait(lambda: details(second), "the other run")
    assert page.driver.current_url.endswith(f"?run={second}")
    page.go("#/new")
    page.wait_for("#field-name")
    assert not page.find("#run-dialog").is_displayed()
    assert page.driver.current_url.endswith("#/new")
    page.driver.back()
    page.wait(lambda: details(second), "the run again")
    page.keys(Keys.ESCAPE)
    page.wait(lambda: page.driver.current_url.endswith(f"#/experiments/{experiment}"), "the address without it")
    assert not page.find("#run-dialog").is_displayed()
