# SPDX-License-Identifier: MIT
"""The large chart of an experiment and the findings above it: what is drawn, chosen in the address, and saved."""

import itertools
import re
from xml.etree import ElementTree

import pytest
from answers import Answers
from axe import violations
from documents import experiment
from page import SCREENS
from selenium.webdriver.common.keys import Keys

SIZES = [64, 4096, 65536]


@pytest.fixture(scope="module", autouse=True)
def begun(daemon):
    """The experiments of lines and of a ranking. They are made beside the first tests, which need none of them."""
    common = {"messages": 200, "warmup_seconds": 0}
    return (
        daemon.submit(
            name="Over sizes", transport=["pipe", "unix-stream"], message_size=SIZES, repetitions=2, **common
        ),
        daemon.submit(
            name="One size",
            workload="pingpong",
            transport=["pipe", "unix-stream", "unix-dgram"],
            message_size=4096,
            repetitions=3,
            **common,
        ),
    )


@pytest.fixture(scope="module")
def lines(daemon, begun):
    daemon.wait_done(begun[0])
    return begun[0]


@pytest.fixture(scope="module")
def ranked(daemon, begun):
    daemon.wait_done(begun[1])
    return begun[1]


def statistic(median, spread=1, ci95=None):
    level = 0.969 if ci95 else None
    return {"median": median, "min": median - spread, "max": median + spread, "ci95": ci95, "level": level}


def row(median, flags=(), runs=2, ci95=None, **point):
    point = {"workload": "stream", "transport": "pipe", "message_size": 64, "threads": 1} | point
    return {
        "point": point,
        "runs": runs,
        "flags": list(flags),
        "throughput_bytes_per_second": statistic(median, ci95=ci95),
    }


LATENCY = {"kind": "message"} | {name: statistic(100) for name in ("p50", "p90", "p99", "p99_9")}


DATA = """const { figureData, runsByPoint, barsOfMarks } = await import('/assets/chart/figure-data.js');
    const data = figureData(args[0], args[1], runsByPoint(args[2] ?? []));
    return { shape: data.shape, axis: data.axis?.field ?? null,
        pinned: data.pinned.map((one) => [one.field, one.value]),
        series: data.series, bars: barsOfMarks(data.series, data.shape === 'curves') }"""


def drawn(modules, rows, choice=None, runs=None):
    return modules.call(DATA, rows, choice or {}, runs or [])


def test_one_size_over_many_transports_is_a_ranking(modules):
    rows = [row(10, transport="pipe"), row(30, transport="fifo"), row(20, transport="tcp")]
    data = drawn(modules, rows)
    assert data["shape"] == "ranking"
    assert [one["label"] for one in data["series"]] == ["fifo", "tcp", "pipe"]


def test_a_ranking_of_an_axis_is_of_one_point_of_it(modules):
    rows = [row(size, transport=name, message_size=size) for name in ("pipe", "fifo") for size in (64, 4096, 65536)]
    data = drawn(modules, rows, {"over": "ranking"})
    assert data["pinned"] == [["message_size", 4096]]
    assert [one["marks"][0]["y"] for one in data["series"]] == [4096, 4096]
    data = drawn(modules, rows, {"over": "ranking", "at": {"message_size": "64"}})
    assert [one["marks"][0]["y"] for one in data["series"]] == [64, 64]


def test_lines_have_their_runs_intervals_and_noise(modules):
    rows = [row(10, message_size=64, ci95=[9, 12], runs=6), row(20, message_size=4096, flags=["noisy:steal"], runs=2)]
    runs = [{"point": rows[0]["point"], "result": {"throughput_bytes_per_second": value}} for value in (9, 10, 13)]
    runs.append({"point": rows[0]["point"], "result": None})
    data = drawn(modules, rows, runs=runs)
    assert (data["shape"], data["axis"]) == ("lines", "message_size")
    first, second = data["series"][0]["marks"]
    assert (first["lo"], first["hi"], first["level"], first["dots"]) == (9, 12, 0.969, [9, 10, 13])
    assert (second["lo"], second["hi"], second["level"], second["noisy"]) == (19, 21, None, True)
    assert data["bars"] == "Bars: 96.9 % interval of the median; with fewer runs than 6, min–max of 2 runs."


FRAMED = """const { Figure } = await import('/assets/chart/figure.js');
    const figure = new Figure(() => '', { id: 'framed', fixed: { scale: args[2] } });
    document.body.append(figure.element);
    figure.update(args[0]);
    figure.setRuns(args[1]);
    while (!figure.element.querySelector('.dot')) await new Promise(requestAnimationFrame);
    const places = [...figure.element.querySelectorAll('.dot')].map((one) => Number(one.getAttribute('cy')));
    figure.destroy();
    figure.element.remove();
    return [places, figure.height]"""


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_a_run_beyond_the_interval_is_within_the_frame(modules, scale):
    rows = [row(10, message_size=64, ci95=[9, 11], runs=8), row(12, message_size=4096, ci95=[11, 13], runs=8)]
    runs = [{"point": rows[0]["point"], "result": {"throughput_bytes_per_second": value}} for value in (2, 10, 50)]
    places, height = modules.call(FRAMED, rows, runs, scale)
    assert len(places) == 3 and 22 <= min(places) and max(places) <= height - 46


def test_relative_to_a_series_is_over_it_at_the_same_point(modules):
    rows = [row(10, message_size=64), row(40, message_size=4096)]
    rows += [row(20, transport="fifo", message_size=64), row(20, transport="fifo", message_size=4096)]
    data = drawn(modules, rows, {"relative": "pipe"})
    values = {one["label"]: [mark["y"] for mark in one["marks"]] for one in data["series"]}
    assert values == {"pipe": [1, 1], "fifo": [2, 0.5]}
    other = next(one for one in data["series"] if one["label"] == "fifo")
    assert other["marks"][1]["lo"] == 19 / 40


def test_percentiles_have_the_histogram_and_the_runs_as_a_band(modules):
    own = {name: statistic(value) for name, value in (("p50", 100), ("p90", 200), ("p99", 300), ("p99_9", 400))}
    curve = [{"nines": nines, "quantile": 1 - 10**-nines, "value_ns": 100 * (nines + 1)} for nines in (0, 1, 2, 3)]
    timed = row(0, workload="pingpong") | {"throughput_bytes_per_second": None, "latency_ns": {"kind": "rtt"} | own}
    data = drawn(modules, [timed], {"figure": "percentiles"})
    assert data["shape"] == "curves"
    assert [round(mark["x"], 2) for mark in data["series"][0]["marks"]] == [0.3, 1, 2, 3]
    whole = timed | {"latency_histogram": {"percentiles": [*curve, {"nines": None, "quantile": 1, "value_ns": 999}]}}
    marks = drawn(modules, [whole], {"figure": "percentiles"})["series"][0]["marks"]
    assert [mark["y"] for mark in marks if mark.get("bare")] == [100, 200, 300, 400]
    assert [mark["lo"] for mark in marks if mark.get("band")] == [99, 199, 299, 399]


PANELS = """const { figureData } = await import('/assets/chart/figure-data.js');
    const data = figureData(args[0], args[1]);
    return { facets: data.facets, labels: data.labels, relative: data.relative, panels: data.panels.map((panel) =>
        [panel.title, panel.series.map((one) => [one.label, one.slot, one.marks.map(({ y }) => y)])]) }"""

GRID = [
    row(place * kind * size, transport=name, message_size=size, placement=where)
    for where, place in (("same-node", 1), ("cross-node", 0.5))
    for name, kind in (("pipe", 1), ("fifo", 2))
    for size in (64, 4096)
]


def test_a_field_divides_the_chart_into_panels_of_the_same_series(modules):
    data = modules.call(PANELS, GRID, {"facet": "placement"})
    assert sorted(data["facets"]) == ["placement", "transport"]  # not the axis
    assert data["panels"] == [
        ["placement same-node", [["pipe", 0, [64, 4096]], ["fifo", 1, [128, 8192]]]],
        ["placement cross-node", [["pipe", 0, [32, 2048]], ["fifo", 1, [64, 4096]]]],
    ]
    undivided = modules.call(PANELS, GRID, {"facet": "message_size"})
    assert [title for title, _ in undivided["panels"]] == [None]
    ranked = modules.call(PANELS, GRID, {"over": "ranking", "facet": "message_size"})
    assert [title for title, _ in ranked["panels"]] == ["message 64 B", "message 4 KiB"]
    assert ranked["panels"][0][1][0][0] == "same-node · fifo"


def test_relative_in_a_panel_is_over_the_series_of_that_panel(modules):
    data = modules.call(PANELS, GRID, {"facet": "placement", "relative": "pipe"})
    assert data["labels"] == ["pipe", "fifo"] and data["relative"] == "pipe"
    for _, series in data["panels"]:
        assert [(label, values) for label, _, values in series] == [("pipe", [1, 1]), ("fifo", [2, 2])]


def test_a_series_that_one_panel_lacks_divides_nothing_there(modules):
    rows = [one for one in GRID if one["point"]["transport"] != "pipe" or one["point"]["placement"] == "same-node"]
    data = modules.call(PANELS, rows, {"facet": "placement", "relative": "pipe"})
    assert [title for title, _ in data["panels"]] == ["placement same-node"]


def open_figure(page, experiment, query=""):
    page.go(f"#/experiments/{experiment}{query}")
    page.wait(lambda: page.all("#figure svg .mark"), "the chart")
    page.wait(lambda: page.all("#figure svg .dot") or "percentiles" in query, "the runs")


def select(page, name, value):
    script = """const s = document.getElementById(arguments[0]); s.value = arguments[1];
        s.dispatchEvent(new Event('change', { bubbles: true }))"""
    page.run(script, f"figure-{name}", value)


def labels(page, selector="#figure svg .series"):
    return page.run(f"return [...document.querySelectorAll('{selector}')].map((one) => one.dataset.label)")


def test_what_is_chosen_stands_in_the_address(page, daemon, lines, ranked):
    open_figure(page, lines)
    assert page.text("#figure h2") == "Throughput by message size"
    assert labels(page) == ["pipe", "unix-stream"]
    assert len(page.all("#figure .dot")) == 2 * 2 * len(SIZES)
    select(page, "relative", "pipe")
    select(page, "scale", "linear")
    select(page, "over", "ranking")
    page.wait(lambda: "relative to pipe at message 4 KiB" in page.text("#figure h2"), "the ranking")
    address = page.driver.current_url
    assert all(part in address for part in ("relative=pipe", "scale=linear", "over=ranking"))
    page.go("#/")
    page.wait(lambda: page.text("main h1") == "This machine", "another page")
    page.driver.get("about:blank")
    page.driver.get(address)
    page.wait(lambda: "relative to pipe at message 4 KiB" in (page.text("#figure h2") or ""), "the same chart")
    assert "1.00 ×" in [one.text for one in page.all("#figure .value")]
    open_figure(page, ranked)
    assert page.text("#figure h2") == "Latency, round trip: p50"
    assert sorted(labels(page)) == ["pipe", "unix-dgram", "unix-stream"]


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_chart_fits_every_screen(page, lines, ranked, picture, scheme, width):
    page.size(width, 1200)
    page.media(scheme)
    for name, identity, query in (
        ("lines", lines, ""),
        ("ranking", ranked, ""),
        ("linear", lines, "?over=ranking&scale=linear"),
        ("curves", ranked, "?figure=percentiles"),
    ):
        open_figure(page, identity, query)
        page.wait(lambda: page.run("return document.documentElement.scrollWidth <= innerWidth"), "nothing to the side")
        within = """const box = document.querySelector('#figure svg').getBoundingClientRect();
            return [...document.querySelectorAll('#figure svg text')].map((text) => [text.textContent,
                text.getBoundingClientRect()]).filter(([, one]) => one.left < box.left - 1 || one.right > box.right + 1)
                .map(([words]) => words)"""
        assert page.run(within) == []
        picture(f"figure-{name}-{width}-{scheme}")
    if width != 1920:
        assert violations(page) == []


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_panels_share_their_axes_and_stand_in_the_address(driver, unopened, picture, width, scheme):
    page = unopened
    rows = [
        one
        | {"runs_planned": 2, "runs_failed": 0, "run_ids": [], "error": None, "effective": {}, "reasons": {}}
        | {"throughput_bytes_per_second": statistic(1e6 * one["throughput_bytes_per_second"]["median"], 1e5)}
        for one in GRID
    ]
    answers = Answers(driver, {}, **experiment(900010, rows))
    try:
        page.size(width, 1000)
        page.media(scheme)
        page.open("#/experiments/900010")
        page.wait(lambda: len(page.all("#figure .drawing .mark")) == len(GRID), "the chart")
        select(page, "facet", "placement")
        panels = "return [...document.querySelectorAll('#figure .panel-of')].map((one) => one.dataset.panel)"
        page.wait(lambda: page.run(panels) == ["placement same-node", "placement cross-node"], "the panels")
        assert page.text("#figure h2") == "Throughput by message size, for each placement"
        assert page.driver.current_url.endswith("?facet=placement")
        ticks = """return [...document.querySelectorAll('#figure .panel-of')].map((one) =>
            [...one.querySelectorAll('.tick')].map(({ textContent }) => textContent))"""
        first, second = page.run(ticks)
        assert first == second
        abreast = "return new Set([...document.querySelectorAll('#figure .panel-of .name')].map((one) => " + (
            "Math.round(one.getBoundingClientRect().y))).size"
        )
        assert page.run(abreast) == (2 if width == 360 else 1)
        assert [one.text for one in page.all("#figure .keys li")] == ["pipe", "fifo"]
        within = """const box = document.querySelector('#figure svg').getBoundingClientRect();
            return [...document.querySelectorAll('#figure svg text')].map((text) => [text.textContent,
                text.getBoundingClientRect()]).filter(([, one]) => one.left < box.left - 1 || one.right > box.right + 1)
                .map(([words]) => words)"""
        assert page.run(within) == []
        assert violations(page) == []
        picture(f"panels-{width}-{scheme}")
        page.run("document.querySelector('#figure .drawing').focus()")
        page.keys(Keys.END)
        assert page.text("#figure .readout").startswith("placement cross-node · fifo · 4 KiB")
        select(page, "over", "ranking")
        page.wait(lambda: len(page.run(panels)) == 2 and len(page.all("#figure .value")) == 4, "two rankings")
        picture(f"panels-ranking-{width}-{scheme}")
    finally:
        answers.remove()


def test_points_are_read_out_by_the_arrow_keys(page, lines):
    open_figure(page, lines)
    page.run("document.querySelector('#figure .drawing').focus()")
    page.keys(Keys.ARROW_RIGHT)
    readout = page.text("#figure .readout")
    assert re.match(r"pipe · 64 B · [\d.]+ .B/s · min–max .* · 2 runs", readout), readout
    page.keys(Keys.END)
    assert page.text("#figure .readout").startswith("unix-stream · 64 KiB · ")


def test_the_saved_picture_has_its_settings_and_needs_no_style_sheet(page, lines):
    open_figure(page, lines)
    text = page.saved("SVG", "#figure")
    ElementTree.fromstring(text)
    assert text.count(' class="') == 1  # the drawing's own, which has no effect
    image = page.saved("PNG", "#figure")
    assert image.startswith(b"\x89PNG") and int.from_bytes(image[16:20]) > 600  # its width
    words = " ".join(re.findall(r">([^<>]+)</text>", text))
    assert f"Experiment {lines}, Over sizes" in words and "seed " in words and "ipclab 0." in words
    assert "Throughput by message size" in text and "var(--" not in text


def test_the_saved_picture_names_the_host_that_it_was_measured_on(driver, unopened):
    page = unopened
    documents = experiment(900014, [row(9, message_size=size) for size in SIZES])
    answers = Answers(driver, {}, **documents)
    try:
        page.open("#/experiments/900014")
        page.wait(lambda: page.text("#host-line"), "the page's own host")
        page.wait(lambda: page.all("#figure svg .mark"), "the chart")
        words = " ".join(re.findall(r">([^<>]+)</text>", page.saved("SVG", "#figure")))
        assert "host elsewhere · kernel 5.10.0-elsewhere · ipclab 0.1.0" in words and "seed 1" in words
        assert page.text("#host-line").split(" · ")[0] not in words
    finally:
        answers.remove()


@pytest.mark.parametrize(("width", "query"), [(360, ""), (1280, "?facet=placement"), (360, "?facet=placement")])
def test_the_saved_picture_names_every_series(driver, unopened, width, query):
    page = unopened
    page.size(width, 900)
    answers = Answers(driver, {}, **experiment(900015, GRID))
    try:
        page.open(f"#/experiments/900015{query}")
        page.wait(lambda: len(page.all("#figure .drawing .mark")) == len(GRID), "the chart")
        names = [one.text for one in page.all("#figure .keys li")]
        assert len(names) == (2 if query else 4)
        saved = ElementTree.fromstring(page.saved("SVG", "#figure"))
        words = ["".join(one.itertext()) for one in saved.iter("{http://www.w3.org/2000/svg}text")]
        assert [one for one in words if one in names] == names
        swatches = [one for one in saved.findall("{http://www.w3.org/2000/svg}svg") if one.get("width") == "32"]
        assert len({tuple(path.get("stroke") for path in one) for one in swatches}) == len(names)
        beyond = """const parsed = new DOMParser().parseFromString(arguments[0], 'image/svg+xml');
            const box = document.body.appendChild(document.importNode(parsed.documentElement, true));
            const most = box.getBoundingClientRect();
            const found = [...box.querySelectorAll('text')].filter((one) => {
                const { right, bottom } = one.getBoundingClientRect();
                return right > most.right || bottom > most.bottom;
            }).map(({ textContent }) => textContent);
            box.remove();
            return found"""
        assert page.run(beyond, page.saved("SVG", "#figure")) == []
    finally:
        answers.remove()


@pytest.mark.parametrize(("count", "bands"), [(4, 4), (5, 0)])
def test_bands_are_named_where_they_are_drawn(driver, unopened, count, bands):
    page = unopened
    transports = ["pipe", "fifo", "tcp", "unix-stream", "memfd"][:count]
    rows = [row(9, transport=name, message_size=64) | {"latency_ns": LATENCY} for name in transports]
    answers = Answers(driver, {}, **experiment(900016, rows))
    try:
        page.open("#/experiments/900016?figure=percentiles")
        page.wait(lambda: len(page.all("#figure .series")) == count, "the curves")
        assert len(page.all("#figure .band")) == bands
        note = page.text("#figure .hint")
        assert ("Band: min–max of 2 runs." in note) == (bands > 0)
        assert ("No band where there are more than 4 curves" in note) == (bands == 0)
    finally:
        answers.remove()


def test_the_wall_has_the_chart_alone(page, lines):
    open_figure(page, lines, "?relative=pipe")
    page.find("#present").click()
    page.wait(lambda: not page.find(".bar").is_displayed(), "the view alone")
    assert page.driver.current_url.endswith("?relative=pipe&present")
    page.wait(lambda: page.all("#figure svg .mark"), "the chart")
    assert "relative to pipe" in page.text("#figure h2")
    page.wait(lambda: page.find("#findings").is_displayed(), "the findings below it")
    top = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
    assert page.run(top, "#figure") < page.run("return innerHeight") / 4 < page.run(top, "#findings")
    page.keys(Keys.ESCAPE)
    page.wait(lambda: page.find(".bar").is_displayed(), "the page")
    assert page.driver.current_url.endswith("?relative=pipe")


def test_the_pages_own_address_is_for_the_wall_too(page, lines, daemon):
    """As the address is typed: /?present, for whatever view follows it; Esc takes it out of the address."""
    page.driver.get(f"{daemon.url}/?present#/experiments/{lines}?relative=pipe")
    page.wait(lambda: page.all("#figure svg .mark"), "the chart")
    assert not page.find(".bar").is_displayed()
    tall = page.run("return document.querySelector('#figure svg').getBoundingClientRect().height")
    assert tall > 0.5 * page.run("return innerHeight")
    page.keys(Keys.ESCAPE)
    page.wait(lambda: page.find(".bar").is_displayed(), "the page")
    assert page.driver.current_url == f"{daemon.url}/#/experiments/{lines}?relative=pipe"
    page.driver.get(f"{daemon.url}/?present")
    page.wait(lambda: page.all("#now"), "what runs")
    assert not page.find(".sidebar").is_displayed()
    page.go("#/")


def test_names_of_wide_letters_are_not_cut_in_a_ranking(driver, unopened):
    page = unopened
    rows = [row(9, transport=name, message_size=4096) for name in ("mmap-anonymous", "fifo", "shm-sysv")]
    answers = Answers(driver, {}, **experiment(900012, rows))
    try:
        page.open("#/experiments/900012")
        page.wait(lambda: len(page.all("#figure .series .name")) == len(rows), "the names")
        beyond = """const { left } = document.querySelector('#figure svg').getBoundingClientRect();
            return [...document.querySelectorAll('#figure .series .name')].filter((text) =>
                text.getBoundingClientRect().left < left).map(({ textContent }) => textContent)"""
        assert page.run(beyond) == []
        assert "mmap-anonymous" in [one.text for one in page.all("#figure .series .name")]
    finally:
        answers.remove()


def test_the_name_of_a_series_that_ends_early_has_its_mark(driver, unopened, picture):
    """As while it runs: a line from its last point to its name would cross the chart and the other series."""
    page = unopened
    long = [row(9, transport=name, message_size=size) for name in ("pipe", "tcp") for size in SIZES]
    early = [row(9, transport=name, message_size=size) for name, size in (("fifo", 64), ("shm-posix", 4096))]
    answers = Answers(driver, {}, **experiment(900013, long + early))
    try:
        page.open("#/experiments/900013")
        page.wait(lambda: len(page.all("#figure .label")) == 4, "the names")
        script = """return [...document.querySelectorAll('#figure .label')].map((one) => [
            one.querySelector('title').textContent, one.querySelectorAll('.mark').length,
            one.querySelector('.leader')?.getBBox().width ?? null])"""
        found = {name: (marks, leader) for name, marks, leader in page.run(script)}
        assert found["fifo"] == found["shm-posix"] == (1, None)
        assert all(found[name][0] == 0 and found[name][1] < 40 for name in ("pipe", "tcp"))
        page.run("document.getElementById('figure').scrollIntoView()")
        picture("figure-series-that-end-early")
    finally:
        answers.remove()


def test_names_on_the_wall_are_not_cut(driver, unopened):
    page = unopened
    points = [(name, place) for name in ("unix-stream", "unix-seqpacket") for place in ("same-node", "same-cpu")]
    rows = [row(9, transport=name, placement=place, message_size=size) for name, place in points for size in (64, 4096)]
    answers = Answers(driver, {}, **experiment(900011, rows))
    try:
        page.size(1920, 1080)
        page.open("#/experiments/900011?present")
        page.wait(lambda: len(page.all("#figure .label")) == len(points), "the names")
        beyond = """const box = document.querySelector('#figure svg').getBoundingClientRect();
            return [...document.querySelectorAll('#figure .label text')].filter((text) =>
                text.getBoundingClientRect().right > box.right + 1).map(({ textContent }) => textContent)"""
        assert page.run(beyond) == []
        heights = "return [...document.querySelectorAll('#figure .label text')].map((one) => one.getAttribute('y'))"
        places = sorted(float(one) for one in page.run(heights))
        assert min(b - a for a, b in zip(places, places[1:], strict=False)) >= 15  # the height of the letters
    finally:
        answers.remove()


FINDINGS = {
    "items": [
        {
            "kind": "crossover",
            "reason": None,
            "axis": "transport",
            "subject": {"workload": "stream"},
            "sentence": "stream: pipe overtakes unix-stream in throughput at about 3.91 KiB.",
            "figures": [],
            "rows": [0, 3],
            "runs": 4,
            "confidence": "reduced",
            "runs_needed": None,
        },
        {
            "kind": "undecided",
            "reason": "too-few-runs",
            "axis": None,
            "subject": {},
            "sentence": "Two runs of a point are too few to compare it.",
            "figures": [],
            "rows": [],
            "runs": 12,
            "confidence": "none",
            "runs_needed": 8,
        },
    ],
    "next": None,
    "comparisons": 41,
    "study": {
        "name": "fifo-numa",
        "source": "the lab",
        "answers": [
            {
                "question": "How many operations a second of 1 byte are there, each end on a node of its own?",
                "kind": "figure",
                "figures": [{"name": "rate", "of": "1 B", "value": 400000, "unit": "/s", "interval": None}],
                "sentence": None,
                "reason": None,
                "rows": [0],
                "published": {"value": 500000, "unit": "/s", "words": None},
            },
            {
                "question": "How many of a kilobyte?",
                "kind": "figure",
                "figures": [
                    {"name": "rate", "of": None, "value": 9e5, "unit": "/s", "interval": {"low": 8e5, "high": 1e6}}
                ],
                "sentence": None,
                "reason": None,
                "rows": [1],
                "published": {"value": 300000, "unit": "/s", "words": None},
            },
            {
                "question": "How long does a switch take?",
                "kind": "figure",
                "figures": [],
                "sentence": None,
                "reason": "it was not measured",
                "rows": [],
                "published": {"value": 2714, "unit": "ns", "words": None},
            },
            {
                "question": "Which is best?",
                "kind": "finding",
                "figures": [],
                "sentence": "The first is.",
                "reason": None,
                "rows": [0],
                "published": {"value": None, "unit": None, "words": "the second"},
            },
        ],
    },
}


@pytest.fixture
def concluded(driver, daemon, lines):
    """Pages that are given findings of the experiment."""
    target = f"/experiments/{lines}/findings"
    answers = Answers(driver, {"/experiments/{id}/findings": []}, **{target: FINDINGS})
    yield
    answers.remove()


def test_a_studys_figures_stand_beside_the_published_ones(concluded, page, lines, picture):
    """An axis for each unit; a question without a published figure is in the table alone."""
    page.go(f"#/experiments/{lines}")
    page.wait(lambda: len(page.all("#published .answer")) == 3, "the questions that have one")
    parts = """return [...document.querySelectorAll('#published .answer')].map((one) => [
        one.querySelector('text').textContent, one.querySelector('.value')?.textContent ?? null,
        one.querySelectorAll('.mark').length, one.querySelectorAll('.bar-line').length])"""
    assert page.run(parts) == [
        [FINDINGS["study"]["answers"][0]["question"], "0.800 ×", 2, 0],
        ["How many of a kilobyte?", "3.00 ×", 2, 1],
        ["How long does a switch take?", None, 1, 0],
    ]
    places = """return [...document.querySelectorAll('#published .answer')].slice(0, 2).map((one) =>
        [one.querySelector('circle'), one.querySelector('.hollow')].map((mark) => mark.getBoundingClientRect().x))"""
    (less, published), (more, published_less) = page.run(places)
    assert less < published < more and published_less < less
    assert [one.text for one in page.all("#published .plot > .name")] == ["/s", "ns"]
    page.find("#published .drawing").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    read = "How many of a kilobyte? here 900 000 /s [800 000 – 1 000 000], published 300 000 /s"
    assert page.text("#published .readout").replace("\u202f", " ") == read
    assert "Experiment" in " ".join(re.findall(r">([^<>]+)</text>", page.saved("SVG", "#published")))
    assert violations(page) == []
    picture("published")
    page.size(320, 900)
    page.wait(lambda: page.run("return document.querySelector('#published svg').clientWidth") < 300, "a narrow drawing")
    boxes = """const { left, right } = document.querySelector('#published svg').getBoundingClientRect();
        return [...document.querySelectorAll('#published .tick')].map((tick) => tick.getBoundingClientRect())
            .map((tick) => [tick.left - left, right - tick.right, tick.top, tick.left, tick.right])"""
    ticks = page.run(boxes)
    assert len(ticks) >= 4 and all(before >= -1 and behind >= -1 for before, behind, *_ in ticks)
    for (_, _, top, _, end), (_, _, lower, begin, _) in itertools.pairwise(ticks):
        assert top != lower or end < begin, ticks
    lines_of = """const edge = document.querySelector('#published svg').getBoundingClientRect().right;
        return [...document.querySelectorAll('#published .answer')].map((one) =>
            [...one.querySelectorAll('text:not(.value)')].map((line) => {
                const { top, bottom, right } = line.getBoundingClientRect();
                return [line.textContent, top, bottom, edge - right];
            }))"""
    questions = page.run(lines_of)
    whole = [" ".join(line[0] for line in lines) for lines in questions]
    assert whole == [one["question"] for one in FINDINGS["study"]["answers"][:3]] and len(questions[0]) > 1
    assert all(line[3] >= 0 for lines in questions for line in lines)
    for (_, _, bottom, _), (_, top, *_) in itertools.pairwise([line for lines in questions for line in lines]):
        assert bottom <= top + 2
    picture("published-narrow")


def test_a_finding_leads_to_the_marks_that_it_speaks_of(concluded, page, lines, picture):
    open_figure(page, lines)
    sentence = page.wait_for("#findings .sentence")
    assert sentence.text == FINDINGS["items"][0]["sentence"]
    assert "few, disturbed or unsteady runs" in page.text("#findings")
    shown = page.run("return document.getElementById('findings').textContent")
    assert "would decide" not in shown, "how many runs would decide is part of the daemon's sentence"
    order = [one.get_attribute("id") for one in page.all("#findings, #figure, #results, #live-title")]
    assert order == ["findings", "figure", "results", "live-title"]
    sentence.click()
    lit = "return [...document.querySelectorAll('#figure .lit')].map((mark) => Number(mark.dataset.row))"
    page.wait(lambda: page.run(lit) == [0, 3], "its marks")
    assert page.driver.current_url.endswith("?finding=0")
    assert sentence.get_attribute("aria-pressed") == "true"
    assert violations(page) == []
    picture("findings")
    page.driver.refresh()
    page.wait(lambda: page.run(lit) == [0, 3], "the marks of the address' finding")
    page.wait_for("#findings .sentence").click()
    page.wait(lambda: page.run(lit) == [], "all marks alike")
    assert "400 000 /s (1 B)" in page.text("#findings table").replace("\u202f", " ")
    page.find("#findings details summary").click()
    assert page.all("#findings .flag")
