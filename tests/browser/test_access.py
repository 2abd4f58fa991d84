# SPDX-License-Identifier: MIT
"""Without a mouse, in the dark, on a phone: the dashboard for everybody."""

import pytest
from selenium.webdriver.common.keys import Keys

PAIRS = [(text, ground) for text in ("text", "soft", "accent", "good", "bad", "idle") for ground in ("page", "surface")]
PAIRS += [("warn", "warn-surface"), ("bad", "bad-surface"), ("on-accent", "accent"), ("soft", "raised")]


def luminance(colour):
    def linear(channel):
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """WCAG 2.1, 1.4.3."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.fixture(scope="module")
def measured(daemon):
    """An experiment with something in every part of the page."""
    experiment = daemon.submit(
        name="Pipes, there and back",
        workload=["stream", "pingpong"],
        transport=["pipe", "fifo"],
        message_size=[64, 65536],
        duration_seconds=1,
        warmup_seconds=0.1,
    )
    daemon.wait(experiment)
    return experiment


def show(page, experiment):
    page.go(f"#/experiments/{experiment}")
    page.wait(lambda: page.drawn() and page.all("#results tbody tr"), "charts and results")


def test_post_with_the_keyboard_alone(page, daemon):
    page.expect_status(401)
    page.keys(Keys.TAB)
    assert page.focused().text == "Skip to the content"
    page.tab_to("#new-button")
    outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline not in ("none", "hidden")
    page.keys(Keys.ENTER)
    page.wait_for("#field-name")
    page.tab_to("#field-name").send_keys("By keyboard")
    page.tab_to("input[name=workload][value=pingpong]")
    page.keys(Keys.SPACE)
    for field, value in (("#field-message_size", "64"), ("#field-end", "1")):
        page.tab_to(field).send_keys(Keys.CONTROL + "a")
        page.keys(value)
    assert page.text(".form-foot [role=status]") == "Up to 2 points, 2 runs"
    page.tab_to("form.panel .form-foot button")
    page.keys(Keys.ENTER)
    page.wait(lambda: page.find("#token-dialog").is_displayed(), "the token dialog")
    # Esc leaves the dialog; the refusal is then shown, and the focus is back where it was.
    page.keys(Keys.ESCAPE)
    page.wait(lambda: not page.find("#token-dialog").is_displayed(), "the dialog to close")
    page.wait(lambda: page.text("form.panel .notice"), "the refusal")
    page.tab_to("form.panel .form-foot button")
    page.keys(Keys.ENTER)
    page.wait(lambda: page.focused() == page.find("#token-input"), "the token dialog")
    page.keys(daemon.token, Keys.ENTER)
    page.wait(lambda: page.text("main h1") == "By keyboard", "the experiment's page")
    page.wait(lambda: page.text("main .meta .state") == "done", "the end")
    page.wait(lambda: "By keyboard is done" in page.find("#announcer").get_property("textContent"), "the announcement")
    page.tab_to("#list a[aria-current=page]", 200)


def test_chart_is_read_out_by_the_arrow_keys(page, measured):
    show(page, measured)
    chart = page.find(".chart .canvas")
    page.run("arguments[0].focus()", chart)
    page.keys(Keys.ARROW_RIGHT)

    def announced():
        text = page.find("#announcer").get_property("textContent")
        return "second 1" in text and "/s" in text

    page.wait(announced, "the announcement of the first second")
    toggle = page.find(".chart .legend button")
    toggle.send_keys(Keys.SPACE)
    page.wait(lambda: toggle.get_attribute("aria-pressed") == "false", "the line to be hidden")


def test_every_control_is_reached_and_named(page, measured):
    show(page, measured)
    script = """return [...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
        .filter((e) => e.checkVisibility()).filter((e) => e.tabIndex < 0 ||
            !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).map((e) => e.outerHTML)"""
    assert page.run(script) == []
    assert (
        page.run("return document.querySelectorAll('[onclick], div[tabindex]:not([role]):not(#run-body)').length") == 0
    )
    page.go("#/new")
    page.wait_for("#field-name")
    assert page.run(script.replace("e.tabIndex < 0 ||", "e.role !== 'tab' && e.tabIndex < 0 ||")) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_enough_to_read(page, scheme):
    page.media(scheme)
    names = sorted({name for pair in PAIRS for name in pair})
    script = """const style = getComputedStyle(document.documentElement);
        return arguments[0].map((name) => style.getPropertyValue(`--${name}`).trim())"""
    colours = dict(zip(names, page.run(script, names), strict=True))
    poor = {
        pair: round(contrast(*map(colours.get, pair)), 2) for pair in PAIRS if contrast(*map(colours.get, pair)) < 4.5
    }
    assert poor == {}


def test_dark_scheme_reaches_the_charts(page, measured, picture):
    show(page, measured)
    light = page.wait(lambda: (n := page.drawn_in_series_colour()) > 50 and n, "the lines")
    page.media("dark")
    page.wait(lambda: page.drawn_in_series_colour() > light / 2, "the charts to be drawn in the dark scheme's colours")
    ground = page.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert max(int(part) for part in ground[4:-1].split(",")) < 50
    picture("experiment-dark")


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_is_cut_off_on_a_narrow_screen(page, measured, picture, width):
    page.size(width, 800)
    for fragment, awaited in (
        ("#/", "main table"),
        ("#/new", "#field-name"),
        (f"#/experiments/{measured}", ".chart .canvas canvas"),
    ):
        page.go(fragment)
        page.wait_for(awaited)
        page.run("return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
        assert page.run("return document.documentElement.scrollWidth") <= width, fragment
        picture(f"narrow-{width}-{fragment.strip('#/').replace('/', '-') or 'list'}")
    assert page.find(".back").is_displayed() == (width < 800)


def test_the_bar_of_a_telephone_is_one_row(page):
    page.size(360, 780)
    page.run("sessionStorage.setItem('ipclab.token', 'a token')")
    page.driver.refresh()
    page.wait(lambda: page.text("#token-button") == "Token set", "the widest words")
    middles = """return [...document.querySelectorAll('.bar > :is(.brand, .button, button)')].map((one) => {
        const { top, bottom } = one.getBoundingClientRect();
        return Math.round((top + bottom) / 2);
    })"""
    page.wait(lambda: len(set(page.run(middles))) == 1, "one row")
