# SPDX-License-Identifier: MIT
"""The list of experiments: searched and filtered in the address, many handled at once, and a thousand of them."""

import pytest
from axe import violations

SHORT = {"messages": 1, "warmup_seconds": 0}


def names(page):
    return page.run("return [...document.querySelectorAll('#list .name')].map((one) => one.textContent)")


def states(page):
    return set(page.run("return [...document.querySelectorAll('#list .state')].map((one) => one.textContent)"))


@pytest.fixture(scope="module")
def several(daemon):
    specs = [("Alpha pipe", 4096), ("Alpha socket", 54321), ("Beta pipe", 4096)]
    ids = [daemon.submit(name=name, message_size=size, **SHORT) for name, size in specs]
    for identity in ids:
        daemon.wait(identity)
    return ids


def test_a_search_stands_in_the_address(page, daemon, several):
    page.fill("#list-search", "alpha")
    page.wait(lambda: names(page) == ["Alpha socket", "Alpha pipe"], "those with that name")
    page.find("#list-filter option[value=done]").click()
    page.wait(lambda: "q=alpha" in page.driver.current_url and "state=done" in page.driver.current_url, "the address")
    daemon.wait(daemon.submit(name="Gamma", **SHORT))  # an event brings it, and it is none of these
    page.call("await new Promise((resolve) => setTimeout(resolve, 300))")
    assert names(page) == ["Alpha socket", "Alpha pipe"]
    page.driver.refresh()
    page.wait(lambda: names(page) == ["Alpha socket", "Alpha pipe"], "the same after a reload")
    assert page.find("#list-search").get_property("value") == "alpha"
    page.fill("#list-search", "54321")
    page.wait(lambda: names(page) == ["Alpha socket"], "the one with that in its spec")
    page.fill("#list-search", "nothing like it")
    page.wait(lambda: "No experiment has these words" in page.text("#list-empty"), "the words")
    assert violations(page) == []


def test_a_bar_stands_where_runs_are_missing_or_failed(page, daemon, several):
    failing = daemon.submit(name="Failing", require={"build": {"commit": "000000000000"}}, **SHORT)
    daemon.wait(failing)
    waiting = daemon.submit(name="Waiting", duration_seconds=300)
    try:
        for identity, bar in ((failing, True), (waiting, True), (several[0], False)):
            entry = f"#list a[href='#/experiments/{identity}']"
            page.wait_for(entry)
            assert page.find(f"{entry} progress").is_displayed() == bar
            page.go(f"#/experiments/{identity}")
            page.wait(lambda: page.text("#list [aria-current=page] .name") == page.text("main h1"), "its page")
            page.wait(lambda bar=bar: page.find("main progress").is_displayed() == bar, "its progress")
        assert "1 run" in page.text("main .meta").split("\n")
    finally:
        daemon.request("POST", f"/experiments/{waiting}/cancel")


def test_a_late_answer_to_no_search_is_dropped(page, daemon, several):
    """The page reads its list again by itself; whoever searches meanwhile sees what was searched for."""
    page.run(
        """const real = window.fetch;
        window.fetch = async (path, ...rest) => {
            const answer = await real(path, ...rest);
            if (String(path).startsWith('/experiments?') && !String(path).includes('q='))
                await new Promise((resolve) => { window.letItCome = resolve; });
            return answer;
        };"""
    )
    daemon.wait(daemon.submit(name="Delta", **SHORT))
    page.wait(lambda: page.run("return Boolean(window.letItCome)"), "the list to be read again")
    page.fill("#list-search", "alpha pipe")
    page.wait(lambda: names(page) == ["Alpha pipe"], "the one with that name")
    page.run("window.letItCome()")
    page.call("await new Promise((resolve) => setTimeout(resolve, 300))")
    assert names(page) == ["Alpha pipe"]


def test_many_are_cancelled_and_deleted(page, daemon):
    page.run("sessionStorage.setItem('ipclab.token', arguments[0])", daemon.token)
    ids = [daemon.submit(name=f"Lot {n}", duration_seconds=300) for n in range(4)]
    page.fill("#list-search", "Lot ")
    page.wait(lambda: len(names(page)) == 4, "the lot")
    page.run("document.querySelector('#list-many summary').click()")
    for action in ("cancel", "delete"):
        page.run(f"document.getElementById('list-{action}').click()")
        page.wait(lambda: page.find("#confirm-dialog").is_displayed(), "the question")
        assert page.text("#confirm-title") == f"{action.capitalize()} 4 experiments?"
        page.find("#confirm-ok").click()
        if action == "cancel":
            page.wait(lambda: states(page) == {"cancelled"}, "all to be cancelled")
    page.wait(lambda: names(page) == [], "all to be gone")
    assert [daemon.request("GET", f"/experiments/{identity}")[0] for identity in ids] == [404] * 4


def test_a_thousand_experiments_are_a_page_and_a_search_away(page, daemon):
    """All queued: nothing is measured here."""
    page.leave()
    with daemon.queue(1000, "Thousand"):
        page.reset()
        page.wait(lambda: names(page)[:1] == ["Thousand 999"], "the newest")
        assert len(names(page)) == 25
        page.wait(lambda: "and 990 more" in (page.text("#now") or ""), "the queue")
        page.fill("#list-search", "Thousand 37")
        wanted = [f"Thousand {n}" for n in (*range(379, 369, -1), 37)]
        page.wait(lambda: names(page) == wanted, "the matching ones")
        page.leave()


def test_two_that_are_ticked_are_compared(page, daemon, several):
    page.fill("#list-search", "a pipe")
    page.wait(lambda: names(page) == ["Beta pipe", "Alpha pipe"], "those with that name")
    alpha, _, beta = several
    assert not page.find(f"#list input[value='{alpha}']").is_displayed(), "boxes stand where they are asked for"
    page.find("#list-ticks summary").click()
    for identity in (beta, alpha):
        page.find(f"#list input[value='{identity}']").click()
    page.wait(lambda: page.text("#list-compare") == f"Compare {alpha} and {beta}", "the link")
    assert f"experiments={beta}%2C{alpha}" in page.driver.current_url
    assert violations(page) == []
    page.driver.refresh()
    page.wait(lambda: page.text("#list-compare") == f"Compare {alpha} and {beta}", "the same after a reload")
    page.find(f"#list input[value='{beta}']").click()
    page.wait(lambda: not page.find("#list-compare").is_displayed(), "the link to go with a tick")
    page.find(f"#list input[value='{beta}']").click()
    page.find("#list-compare").click()
    page.wait(lambda: f"#/compare?baseline={alpha}&candidate={beta}" in page.driver.current_url, "the comparison")
    page.wait(lambda: page.text("#environment-title"), "its headline")
