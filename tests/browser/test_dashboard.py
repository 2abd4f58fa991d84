# SPDX-License-Identifier: MIT
"""The dashboard's ways from end to end: post, watch, read, cancel, delete, be refused, lose the daemon."""

import http.client
import json
import re

import pytest
from ipclabd import ENDLESS, Daemon
from page import Page
from selenium.webdriver.common.keys import Keys

# What the console has of requests to a daemon that is stopping or not there.
AWAY = [
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_RESET",
    "ERR_EMPTY_RESPONSE",
    "ERR_INCOMPLETE_CHUNKED_ENCODING",
    "ERR_SOCKET_NOT_CONNECTED",
    "the server responded with a status of 503",
]
MARKUP = """<img src=x onerror="document.title='owned'"><script>document.title='owned'</script> & </h1>"""


def choose(page, field, *values):
    """Checks exactly these boxes of a field."""
    for box in page.all(f"input[name={field}]"):
        if box.is_selected() != (box.get_attribute("value") in values):
            page.run("arguments[0].scrollIntoView({block: 'center'})", box)  # the form's foot covers its last line
            box.click()


def open_experiment(page, experiment):
    page.go(f"#/experiments/{experiment}")
    page.wait(lambda: f"Experiment {experiment}" in (page.text("main .meta") or ""), "the experiment's page")


def table(page, within):
    """The rows of a table: of each, its cells' texts by their columns' titles."""
    titles, *rows = page.run(
        """return [...document.querySelectorAll(`${arguments[0]} tr`)].map((row) =>
            [...row.cells].map((cell) => cell.firstChild?.textContent ?? ''))""",
        within,
    ) or [[]]
    return [dict(zip(titles, row, strict=True)) for row in rows]


def number(text):
    return float(text.replace("\u202f", ""))


def test_page_is_served_with_a_strict_policy_and_loads_nothing_foreign(page, daemon):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    connection.request("GET", "/")
    response = connection.getresponse()
    policy = response.getheader("Content-Security-Policy")
    html = response.read().decode()
    connection.close()
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=|https?://", html)
    loaded = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert any(re.search(r"/assets/chunk-[A-Z2-7]{8}\.js$", name) for name in loaded)
    assert [name for name in loaded if not name.startswith(daemon.url + "/")] == []
    assert page.find("#list-heading").text == "Experiments"
    assert page.find("link[rel=icon]").get_attribute("href")


def test_the_longest_message_stands_beside_what_ends_it(page, daemon):
    """A pipe carries any message in pieces: it is the spec that ends it, and a setting that ends a piece."""
    capacities = {item["name"]: item["capacity"] for item in daemon.get("/transports")["items"]}
    page.wait_for("[aria-label=Transports] td")
    rows = {row.text.split()[0]: row.text for row in page.all("[aria-label=Transports] tbody tr")}
    assert rows.keys() == capacities.keys()
    assert capacities["pipe"]["message_limit"] and not capacities["msgq-posix"]["message_limit"]
    for name in ("pipe", "msgq-posix"):
        limits = [limit["name"] for key in ("message_limit", "limit") if (limit := capacities[name][key])]
        assert all(f"{limit}, " in rows[name] for limit in limits), rows[name]
        assert ("message_size of a spec" in rows[name]) == (name == "pipe")


def test_post_by_the_form_and_watch_it(page, daemon, picture):
    page.expect_status(401)
    before = daemon.get("/experiments?limit=1")["items"]
    page.find("#new-button").click()
    page.wait_for("#field-message_size")
    choose(page, "workload", "stream", "pingpong")
    page.fill("#field-name", "From the form")
    page.fill("#field-message_size", "1 KiB")
    page.fill("#field-end", "4")
    page.fill("#field-warmup_seconds", "0.2")
    assert page.text(".form-foot [role=status]") == "Up to 2 points, 2 runs"
    page.find("form.panel .primary").click()

    # Without a token nothing is written; a wrong one has another message than none.
    page.give_token("not the token")
    page.wait(lambda: "refused" in page.text("#token-error"), "the token to be refused")
    assert daemon.get("/experiments?limit=1")["items"] == before
    page.give_token(daemon.token)

    page.wait(lambda: page.text("main h1") == "From the form", "the experiment's page")
    experiment = int(re.search(r"#/experiments/(\d+)$", page.driver.current_url)[1])
    assert daemon.get(f"/experiments/{experiment}")["spec"]["message_size"] == 1024
    states, counts, seen = [], [], set()

    def ended():
        state = page.text("main .meta .state")
        if state not in states:
            states.append(state)
        drawn = page.drawn()
        if drawn not in seen:
            seen.add(drawn)
            counts.append(drawn)
        return state == "done"

    page.wait(ended, "the end of the experiment")
    assert "running" in states and states[-1] == "done"
    # 2 runs of 4 s with two agents each: the chart grew as they went, not all at once or run by run.
    assert counts == sorted(counts) and len(counts) >= 4, counts
    page.wait(lambda: page.drawn() >= 16, "all samples")
    page.wait(lambda: page.drawn("Latency") >= 8, "all latencies")
    page.wait(lambda: page.drawn_in_series_colour() > 50, "the lines")

    runs = lambda: [row["Runs"] for row in table(page, "#results")]  # noqa: E731
    page.wait(lambda: runs() == ["1", "1"], "the results of both points")
    rows = table(page, "#results")
    results = daemon.get(f"/experiments/{experiment}/results")["items"]
    assert len(rows) == len(results) == 2
    for row, result in zip(rows, results, strict=True):
        assert row["Workload"] == result["point"]["workload"]
        median = result["throughput_bytes_per_second"]["median"] / 1e6
        assert number(row["Throughput"]) == pytest.approx(median, rel=2e-3)
        pingpong = result["point"]["workload"] == "pingpong"
        of_round_trips = ("Throughput both ways", "p50", "p50 one way")
        assert [row[title].startswith("—") for title in of_round_trips] == [not pingpong] * 3
        if pingpong:
            assert number(row["Throughput both ways"]) == pytest.approx(2 * median, rel=2e-3)
    listed = page.find(f"#list a[href='#/experiments/{experiment}']")
    assert "done" in listed.text and "2 runs" in listed.text and listed.get_attribute("aria-current") == "page"
    picture("experiment-light")


def test_costs_of_calls_and_switches(page, daemon, picture):
    experiment = daemon.submit(
        name="Calls and switches", workload=["syscall", "context-switch"], messages=2000, warmup_seconds=0
    )
    daemon.wait_done(experiment)
    open_experiment(page, experiment)
    rows = page.wait(lambda: table(page, "#results"), "the results")
    results = daemon.get(f"/experiments/{experiment}/results")["items"]
    assert [row["Workload"] for row in rows] == [result["point"]["workload"] for result in results]
    for row, result in zip(rows, results, strict=True):
        assert number(row["Cost"]) == pytest.approx(result["cost_ns"]["median"], rel=2e-3)
    caption = page.text("#results-caption")
    assert "per call, means of batches (syscall)" in caption
    assert "per hop, mean of each round, pipe included (context-switch)" in caption
    page.wait(lambda: page.drawn("Calls") and page.drawn("Rounds"), "what was done a second")
    assert page.drawn() == 0, "a throughput of what moves nothing"
    picture("costs")
    runs = daemon.get(f"/experiments/{experiment}/runs")["items"]
    run = next(run for run in runs if run["point"]["workload"] == "context-switch")
    page.wait_for(f"button[aria-label='Details of run {run['id']}']").click()
    page.wait(lambda: "pipe overhead" in page.text("#run-body"), "the run's details")
    assert "per context switch" in page.text("#run-body") and "per hop, mean of" in page.text("#run-body")
    picture("costs-of-a-run")


def test_run_details_and_downloads(page, daemon, tmp_path):
    experiment = daemon.submit(name="Details", message_size=4096, messages=2000, warmup_seconds=0)
    daemon.wait(experiment)
    open_experiment(page, experiment)
    run = daemon.get(f"/experiments/{experiment}/runs")["items"][0]
    page.wait_for(f"button[aria-label='Details of run {run['id']}']").click()
    page.wait(lambda: "throughput" in page.text("#run-body"), "the run's details")
    assert "4 KiB" in page.text("#run-body")
    page.keys(Keys.ESCAPE)
    page.wait(lambda: not page.find("#run-dialog").is_displayed(), "the dialog to close")
    assert page.focused().get_attribute("aria-label") == f"Details of run {run['id']}"
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    for name, first in (("results.csv", "workload"), ("results.json", "{"), ("samples.csv", "run_id")):
        file = tmp_path / f"ipclab-{experiment}-{name}"
        page.find(f"a[download='{file.name}']").click()
        page.wait(file.exists, f"the download of {file.name}")
        assert file.read_text().startswith(first)


def test_an_experiment_states_where_its_figures_come_from(page, daemon):
    experiment = daemon.submit(name="Origin", message_size=4096, messages=50, warmup_seconds=0)
    daemon.wait_done(experiment)
    open_experiment(page, experiment)
    facts = """return Object.fromEntries([...document.querySelectorAll('#provenance dt')].map((term) =>
        [term.textContent, term.nextSibling.textContent]))"""
    given = daemon.get(f"/experiments/{experiment}/runs?limit=1")["provenance"]
    page.wait(lambda: page.run(facts)["host"] == given["host"], "the host")
    date = page.run(facts).pop("date")
    assert re.search(given["date"][:4], date) and re.search(r"\d\d:\d\d$", date)
    assert page.run(facts) == {
        "host": given["host"],
        "kernel": given["kernel"],
        "date": date,
        "accepted by": f"ipclab {given['version']}",
        "order of the runs": f"seed {given['seed']}",
    }
    page.find("#provenance summary").click()
    assert '"message_size": 4096' in page.find("#provenance pre").text


def test_refusal_stands_beside_its_field(page, daemon):
    page.expect_status(422)
    page.sign(daemon.token)
    page.go("#/new")
    page.wait_for("#field-message_size")
    page.fill("#field-message_size", "64, 2 GiB")
    page.find("form.panel .primary").click()
    page.wait(lambda: page.text("#field-message_size-error"), "the server's refusal")
    assert re.search(r"1073741824|1 GiB", page.text("#field-message_size-error"))
    field = page.find("#field-message_size")
    assert field.get_attribute("aria-invalid") == "true" and page.focused() == field
    assert "field-message_size-error" in field.get_attribute("aria-describedby")
    # An error that the page itself can detect is shown without a request, and removed when it is corrected.
    page.fill("#field-message_size", "12 parsecs")
    assert page.text("#field-message_size-error") == ""
    page.find("form.panel .primary").click()
    assert "12 parsecs" in page.text("#field-message_size-error")


def test_what_means_nothing_is_neither_shown_nor_posted(page, daemon):
    page.sign(daemon.token)
    page.go("#/new")
    page.wait_for("#field-message_size")
    choose(page, "transport", "pipe", "shm-posix")
    choose(page, "wait", "hybrid")
    choose(page, "copy_mode", "one-copy")
    assert all(page.find(f"#field-{name}-0").is_displayed() for name in ("copy_mode", "engine", "wait"))
    choose(page, "transport", "msgq-posix")
    assert not any(page.find(f"#field-{name}-0").is_displayed() for name in ("copy_mode", "engine", "wait"))
    choose(page, "transport", "pipe")
    assert page.find("#field-copy_mode-0").is_displayed() and not page.find("#field-wait-0").is_displayed()
    page.fill("#field-name", "Of a pipe")
    page.fill("#field-message_size", "64")
    page.fill("#field-end", "0.2")
    page.find("#tab-json").click()
    spec = json.loads(page.find("#spec-json").get_property("value"))
    assert spec["copy_mode"] == "one-copy" and "wait" not in spec
    page.find("form.panel .primary").click()
    page.wait(lambda: page.text("main h1") == "Of a pipe", "the experiment's page")


def test_spec_as_json(page, daemon):
    page.expect_status(400, 422)
    page.sign(daemon.token)
    page.go("#/new")
    page.wait_for("#tab-json").click()
    assert json.loads(page.find("#spec-json").get_property("value"))["message_size"] == [64, 1024, 4096, 65536]
    for text, words in (
        ('{"transport": "pipe", "transport": "fifo"}', "transport"),
        ('{"message_size": 4096, "colour": "red"}', "/colour"),
        ("[", ""),
    ):
        page.fill("#spec-json", text)
        page.find("form.panel .primary").click()
        page.wait(
            lambda words=words: words in page.text("#json-error") and page.text("#json-error"),
            f"what is wrong with {text}",
        )
    page.fill("#spec-json", '{"name": "By hand", "duration_seconds": 0.2, "warmup_seconds": 0}')
    page.find("form.panel .primary").click()
    page.wait(lambda: page.text("main h1") == "By hand", "the experiment's page")


def test_names_are_text(page, daemon):
    page.sign(daemon.token)
    experiment = daemon.submit(name=MARKUP, messages=50, warmup_seconds=0)
    daemon.wait(experiment)
    open_experiment(page, experiment)
    assert page.text("main h1") == MARKUP
    assert page.wait_for(f"#list a[href='#/experiments/{experiment}'] .name").text == MARKUP
    page.find("main .buttons .danger").click()
    assert MARKUP in page.text("#confirm-text")
    page.keys(Keys.ESCAPE)
    assert page.all("main img, main script, #list img, #list script, dialog img, dialog script") == []
    assert page.driver.title == f"{MARKUP} · ipclab"


def test_cancel_and_delete(page, daemon):
    page.sign(daemon.token)
    experiment = daemon.submit(name="Too long", **ENDLESS)
    open_experiment(page, experiment)
    page.wait(lambda: page.text("main .meta .state") == "running", "the run")
    assert not page.find("main .buttons .danger").is_displayed()
    page.find("#cancel").click()
    page.find("#confirm-ok").click()
    page.wait(lambda: page.text("main .meta .state") == "cancelled", "the end")
    page.find("main .buttons .danger").click()
    page.find("#confirm-dialog [data-cancel]").click()
    assert daemon.get(f"/experiments/{experiment}")["state"] == "cancelled"
    page.expect_status(404)  # of what the page reads of it at that moment
    page.find("main .buttons .danger").click()
    page.find("#confirm-ok").click()
    page.wait(lambda: not page.all(f"#list a[href='#/experiments/{experiment}']"), "it to be gone")
    assert daemon.request("GET", f"/experiments/{experiment}")[0] == 404


def test_more_runs_of_an_experiment_that_is_done(page, daemon):
    """The page follows it again, and proposes as many runs as allow a finding."""
    page.sign(daemon.token)
    experiment = daemon.submit(name="Some more", message_size=[64, 4096], messages=50, warmup_seconds=0)
    daemon.wait(experiment)
    open_experiment(page, experiment)
    assert not page.find("#retry").is_displayed()
    page.wait(lambda: "fewer than 4 runs" in (page.text("#findings .sentences") or ""), "what is open, in sight")
    assert "0 comparisons" not in page.text("#findings")
    page.find("#extend").click()
    page.wait(lambda: page.focused().get_attribute("id") == "extend-repetitions", "the form")
    assert page.find("#extend-repetitions").get_attribute("value") == "5"
    assert page.text("#extend-hint").startswith("10 runs in all, about ")
    page.fill("#extend-repetitions", "2000")
    assert not page.run("return document.querySelector('#extend-repetitions').checkValidity()")
    page.fill("#extend-repetitions", "3")
    page.find("#extend-form .primary").click()
    page.wait(lambda: not page.all("#extend-form"), "the form to close")
    page.wait(lambda: page.text("main .meta .state") == "done" and "8 runs" in page.text("main .meta"), "8 runs")
    runs = lambda: [row["Runs"] for row in table(page, "#results table")[-2:]]  # noqa: E731
    page.wait(lambda: runs() == ["4", "4"], "the rows of all runs")


def test_an_experiment_that_is_extended_or_deleted_elsewhere(page, daemon):
    experiment = daemon.submit(name="Elsewhere", messages=50, warmup_seconds=0)
    daemon.wait(experiment)
    open_experiment(page, experiment)
    page.wait(lambda: page.text("main .meta .state") == "done", "the end")
    assert daemon.request("POST", f"/experiments/{experiment}/extend", {"blocks": 2})[0] == 200
    page.wait(lambda: "3 runs" in page.text("main .meta"), "3 runs")
    page.expect_status(404)  # of what the page reads of it at that moment
    assert daemon.request("DELETE", f"/experiments/{experiment}")[0] == 204
    page.wait(lambda: "was deleted" in (page.text("[data-notice=action]") or ""), "the deletion to be shown")
    page.wait(lambda: not page.all(f"#list a[href='#/experiments/{experiment}']"), "it to leave the list")
    assert not page.find("#again").is_displayed()


def test_a_queued_experiment_that_is_deleted_elsewhere(page, daemon):
    first = daemon.submit(name="In front of it", **ENDLESS)
    experiment = daemon.submit(name="Behind it", messages=50)
    open_experiment(page, experiment)
    page.wait(lambda: page.text("main .meta .state") == "queued", "its state")
    page.expect_status(404)
    assert daemon.request("DELETE", f"/experiments/{experiment}")[0] == 204
    page.wait(lambda: "was deleted" in (page.text("[data-notice=action]") or ""), "the deletion to be shown")
    assert "Behind it" in page.text("main h1")
    daemon.request("POST", f"/experiments/{first}/cancel")
    daemon.wait(first)


def test_cancelled_runs_are_made_again(page, daemon):
    page.sign(daemon.token)
    spec = {"message_size": [64, 4096], "duration_seconds": 1, "warmup_seconds": 0, "rate": 100}
    experiment = daemon.submit(name="Once more", **spec)
    daemon.request("POST", f"/experiments/{experiment}/cancel")
    daemon.wait(experiment)
    open_experiment(page, experiment)
    page.wait(lambda: (page.text("#retry") or "").startswith("Retry "), "the button")
    assert not page.find("#extend").is_displayed()
    page.find("#retry").click()
    page.wait(lambda: page.text("main .meta .state") == "done", "the end")
    assert daemon.get(f"/experiments/{experiment}")["progress"]["runs_done"] == 2
    assert not page.find("#retry").is_displayed()


def test_list_is_live_filtered_and_paged(page, daemon):
    ids = [daemon.submit(name=f"Paged {n}", **ENDLESS) for n in range(30)]
    page.wait_for(f"#list a[href='#/experiments/{ids[-1]}']")
    for identity in reversed(ids):
        assert daemon.request("POST", f"/experiments/{identity}/cancel")[0] == 200
    daemon.wait(ids[0])
    page.driver.refresh()
    page.wait(lambda: len(page.all("#list a")) == 25, "the first page")
    page.find("#list-older").click()
    page.wait(lambda: len(page.all("#list a")) > 25, "the next page")
    shown = [int(link.get_attribute("href").rsplit("/", 1)[1]) for link in page.all("#list a")]
    assert shown == sorted(shown, reverse=True) and len(set(shown)) == len(shown)
    page.find("#list-filter option[value=running]").click()
    page.wait(lambda: page.text("#list-empty") == "No experiment is in this state.", "the filter")


def test_daemon_goes_and_comes_back(driver):
    own = Daemon()
    try:
        own.start()
        page = Page(driver, own.url)
        page.reset()
        own.stop()
        page.wait(lambda: "does not answer" in page.text("#connection"), "the loss to be shown")
        own.start()
        page.wait(lambda: page.text("#connection") == "Live", "the daemon to be found again")
        experiment = own.submit(name="After the break", messages=50, warmup_seconds=0)
        page.wait_for(f"#list a[href='#/experiments/{experiment}']")
        page.expected += AWAY
        assert page.complaints() == []
        page.close()
    finally:
        own.remove()
