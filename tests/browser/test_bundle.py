# SPDX-License-Identifier: MIT
"""Bundles on the page: offered as a file, taken in from one, and shown as what another host has measured."""

import re

import pytest
from axe import violations
from ipclabtest.client import Client
from selenium.webdriver.common.keys import Keys


@pytest.fixture(scope="module")
def measured(daemon):
    identity = daemon.submit(name="Sizes", message_size=[64, 4096], messages=50, warmup_seconds=0)
    daemon.wait_done(identity)
    return identity


@pytest.fixture(scope="module")
def file(daemon, measured, tmp_path_factory):
    """The bundle as another host would have made it, under its name."""
    answer = Client(port=daemon.port).request("GET", f"/experiments/{measured}/bundle?host=rack%201")
    assert answer.status == 200, answer
    path = tmp_path_factory.mktemp("bundle") / re.search(r'filename="(.*)"', answer.headers["Content-Disposition"])[1]
    path.write_bytes(answer.body)
    return path


def test_a_bundle_is_offered_and_taken_in(page, daemon, measured, file, tmp_path, picture):
    page.go(f"#/experiments/{measured}")
    page.wait_for("#bundle")
    assert page.find("#bundle").get_attribute("href").endswith(f"/experiments/{measured}/bundle")
    assert not page.all("#origin"), "it is of this host"

    page.find("#list-bundle summary").click()
    unnamed = tmp_path / "bundle.json.gz"
    unnamed.write_bytes(file.read_bytes())
    page.find("#bundle-file").send_keys(str(unnamed))
    page.wait(lambda: "64 hexadecimal digits" in (page.text("#bundle-error") or ""), "what is wrong with its name")

    page.expect_status(401)
    page.find("#bundle-file").send_keys(str(file))
    page.give_token(daemon.token)
    page.wait(lambda: page.text("#origin") == "of host rack 1, taken in as a bundle", "the experiment")
    taken = int(re.search(r"#/experiments/(\d+)", page.driver.current_url)[1])
    assert taken != measured and page.text("h1") == "Sizes"
    page.wait(lambda: page.text(f"#list [data-key='{taken}'] .origin") == "of host rack 1", "it in the list")
    assert page.text("#bundle-error") == ""
    page.wait(lambda: page.text("#provenance dd") == "rack 1", "where it was measured")
    assert violations(page) == []
    picture("bundle-taken-in")

    page.expect_status(409)  # another host's environment is unlike this one's
    page.go(f"#/compare?baseline={taken}&candidate={measured}")
    page.wait_for("#force")
    assert f"{taken}: Sizes, of host rack 1" in page.text("#compare-baseline")


def test_a_view_that_was_opened_during_an_upload_stays(page, daemon, measured, file):
    page.run(
        "const real = window.fetch;"
        "window.fetch = (...request) => String(request[0]).includes('/bundles?')"
        " ? new Promise((release) => { window.release = release; }).then(() => real(...request)) : real(...request);"
    )
    page.find("#token-button").click()
    page.give_token(daemon.token)
    page.find("#list-bundle summary").click()
    page.find("#bundle-file").send_keys(str(file))
    page.wait(lambda: page.run("return window.release !== undefined"), "the upload")
    page.go(f"#/experiments/{measured}")
    page.wait_for("#bundle")
    page.run("window.release()")
    page.wait(lambda: page.find("#bundle-file").is_enabled(), "the end of the upload")
    page.wait(lambda: page.all("#list .origin:not(:empty)"), "it in the list")
    assert page.driver.current_url.endswith(f"#/experiments/{measured}")
    assert page.text("#bundle-error") == ""


def test_values_of_an_axis_and_baselines_are_ticked(page, daemon, measured):
    pinned = daemon.submit(name="Sizes before", message_size=[64, 4096], messages=50, warmup_seconds=0)
    daemon.wait(pinned)
    assert daemon.request("PUT", "/baselines/before", {"experiment": pinned})[0] == 200
    page.go(f"#/experiments/{measured}")
    page.wait_for("#ticks input[data-list=message_size]")
    for value in ("4096", "64"):
        page.find(f"#ticks input[data-list=message_size][value='{value}']").click()
    page.wait(lambda: page.text("#ticks-compare") == "Compare 64 B and 4 KiB", "the link")
    page.driver.refresh()
    page.wait(lambda: page.text("#ticks-compare") == "Compare 64 B and 4 KiB", "the same after a reload")
    assert not page.find("#list-compare").is_displayed()  # the list's ticks are others
    page.find("#ticks input[value=before]").click()
    page.wait(lambda: page.text("#ticks-compare") == "Compare with the baseline before", "one list alone")
    assert [box.get_property("value") for box in page.all("#ticks input:checked")] == ["before"]
    assert violations(page) == []
    page.find("#ticks-compare").click()
    page.wait(lambda: f"#/compare?baseline=before&candidate={measured}" in page.driver.current_url, "the comparison")
    page.wait(lambda: page.text("#environment-title"), "its headline")
    assert daemon.request("DELETE", "/baselines/before")[0] == 204


def test_advice_of_another_host_is_had_by_its_label(page):
    page.go("#/")
    page.wait_for("#ask-host").click()
    page.wait(lambda: page.all("#ask-hosts option[value='rack 1']"), "the hosts of bundles that were taken in")
    page.keys("rack 1", Keys.ENTER)
    page.wait(lambda: "of host rack 1 in its newest environment" in page.text("#advice"), "advice")
    assert "host=rack+1" in page.driver.current_url or "host=rack%201" in page.driver.current_url
    page.driver.refresh()
    page.wait(lambda: "of host rack 1 in its newest environment" in (page.text("#advice") or ""), "the same again")
    assert page.find("#ask-host").get_property("value") == "rack 1"
    page.expect_status(404, 422)
    page.fill("#ask-host", "rack 9")
    page.keys(Keys.ENTER)
    page.wait(lambda: 'No experiment of a host "rack 9"' in page.text("#advice"), "the refusal")
    page.fill("#ask-host", "")
    page.keys(Keys.ENTER)
    page.wait(lambda: "of this host" in page.text("#advice"), "advice of this host")
