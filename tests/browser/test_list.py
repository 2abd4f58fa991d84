# SPDX-License-Identifier: MIT
"""The list of experiments: searched and filtered in the address, and many handled at once."""

import pytest
from axe import violations
from ipclabd import ENDLESS

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


def test_a_search_stays_when_a_view_is_opened(page, daemon, several):
    alpha = several[0]
    page.fill("#list-search", "alpha")
    page.find("#list-filter option[value=done]").click()
    page.wait(lambda: names(page) == ["Alpha socket", "Alpha pipe"], "those with that name")
    link = next(one for one in page.all("#list a") if "Alpha pipe" in one.text)
    assert link.get_attribute("href").endswith(f"#/experiments/{alpha}?state=done&q=alpha")  # for a tab of its own, too
    link.click()
    page.wait(lambda: page.text("main h1") == "Alpha pipe", "the experiment")
    for _ in range(2):
        page.wait(lambda: names(page) == ["Alpha socket", "Alpha pipe"], "the same list")
        page.wait(lambda: "state=done&q=alpha" in page.driver.current_url, "the address")
        page.driver.refresh()
        page.wait(lambda: page.text("main h1") == "Alpha pipe", "the experiment after a reload")
    page.go("#/")
    page.wait(lambda: page.text("main h1") == "This machine", "the first page")
    assert page.driver.current_url.endswith("#/?state=done&q=alpha")
    page.run("document.querySelector('#list-search').value = ''")
    page.find("#list-filter option[value='']").click()
    page.wait(lambda: page.driver.current_url.endswith("#/"), "the address without a search")
    page.wait(lambda: "Beta pipe" in names(page), "all")


def test_a_bar_stands_where_runs_are_missing_or_failed(page, daemon, several):
    failing = daemon.submit(name="Failing", require={"build": {"commit": "000000000000"}}, **SHORT)
    daemon.wait(failing)
    waiting = daemon.submit(name="Waiting", **ENDLESS)
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


def test_what_matches_stays_in_sight_until_the_answer_comes(page, daemon, several):
    """The page shows every listed experiment while a person cancels or deletes all of them."""
    page.wait(lambda: "Alpha pipe" in names(page), "the list")
    page.run(
        """const real = window.fetch;
        window.fetch = async (path, ...rest) => {
            if (new URL(path, location).searchParams.get('q') === 'a pipe')
                await new Promise((resolve) => { window.letItGo = resolve; });
            return real(path, ...rest);
        };"""
    )
    page.fill("#list-search", "a pipe")
    page.wait(lambda: page.run("return Boolean(window.letItGo)"), "the search to be requested")
    assert names(page) == ["Beta pipe", "Alpha pipe"]
    assert page.text("#list-empty") == ""
    page.run("window.letItGo()")
    page.call("await new Promise((resolve) => setTimeout(resolve, 300))")
    assert names(page) == ["Beta pipe", "Alpha pipe"]


def test_an_answer_takes_out_what_it_does_not_name_but_for_what_came_meanwhile(page, daemon, several):
    page.wait(lambda: "Alpha pipe" in names(page), "the list")
    page.run(
        # The page reads its list again by itself: each answer waits.
        """const real = window.fetch;
        window.held = [];
        window.fetch = async (path, ...rest) => {
            if (new URL(path, location).searchParams.get('q') !== 'pipe') return real(path, ...rest);
            const answer = await (await real(path, ...rest)).json();
            if (window.held) await new Promise((resolve) => { window.held.push(resolve); });
            const items = answer.items.filter(({ name }) => name !== 'Beta pipe');
            return new Response(JSON.stringify({ ...answer, items }));
        };"""
    )
    page.fill("#list-search", "pipe")
    page.wait(lambda: page.run("return window.held.length > 0"), "the search to be requested")
    assert "Beta pipe" in names(page)
    daemon.wait(daemon.submit(name="Late pipe", **SHORT))
    page.wait(lambda: "Late pipe" in names(page), "the one that an event brings")
    page.run("const held = window.held; window.held = null; held.forEach((release) => release())")
    page.wait(lambda: "Beta pipe" not in names(page), "what the answer does not name to go")
    assert {"Late pipe", "Alpha pipe"} <= set(names(page))


def test_many_are_cancelled_and_deleted(page, daemon):
    page.sign(daemon.token)
    ids = [daemon.submit(name=f"Lot {n}", **ENDLESS) for n in range(4)]
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
    page.wait_for(f"#list input[value='{beta}']").click()
    page.wait(lambda: not page.find("#list-compare").is_displayed(), "the link to go with a tick")
    page.find(f"#list input[value='{beta}']").click()
    page.find("#list-compare").click()
    page.wait(lambda: f"#/compare?baseline={alpha}&candidate={beta}" in page.driver.current_url, "the comparison")
    page.wait(lambda: page.text("#environment-title"), "its headline")
