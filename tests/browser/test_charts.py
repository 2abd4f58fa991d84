# SPDX-License-Identifier: MIT
"""What a chart draws: marks of its axes, lines that end where a run ends, bars within the frame, colours that stay."""

from itertools import combinations, permutations
from xml.etree import ElementTree

import pytest
from answers import Answers
from axe import violations
from documents import experiment
from vision import VISIONS, delta_e, lab

COLOURS = 8
APART = 14  # ΔE; 2.3 is about what a person notices side by side


# colours, shapes, lines


@pytest.mark.parametrize(
    ("one", "other", "expected"),  # from the test data of Sharma, Wu and Dalal
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, -0.001, 2.49), (50.0, 0.0011, -2.49), 4.7461),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_delta_e_is_the_published_one(one, other, expected):
    assert delta_e(one, other) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_series_are_distinct_without_colour(page, scheme):
    page.media(scheme)
    script = """const style = getComputedStyle(document.documentElement);
        return args[0].map((name) => style.getPropertyValue(`--${name}`).trim())"""
    surface, *series = page.call(script, ["surface", *(f"series-{n + 1}" for n in range(COLOURS))])
    near = {
        (vision, one, other): round(apart, 1)
        for vision in VISIONS
        for one, other in combinations(series, 2)
        if (apart := delta_e(lab(one, vision), lab(other, vision))) < APART
    }
    assert near == {}
    for colour in series:
        assert abs(lab(colour)[0] - lab(surface)[0]) > 30, f"{colour} on {surface}"


def test_series_do_not_depend_on_their_colour(modules):
    script = """const { looks } = await import('/assets/chart/marks.js');
        return [...Array(16).keys()].map((slot) => [looks(slot), looks(slot, 1)])"""
    looks = modules.call(script)
    assert len({str(one) for pair in looks for one in pair}) == 32
    assert len({one["shape"] for one, _ in looks[:COLOURS]}) == COLOURS
    for one, variant in looks:
        assert all(variant[channel] != one[channel] for channel in ("colour", "shape", "dash"))


# pictures


def sample(second, agent):
    return {
        "run_id": 1,
        "second": second,
        "agent": agent,
        "thread": 0,
        "interval_ns": 1e9,
        "bytes": 1e6 * (2 + second),
        "messages": 1000,
        "latency_ns": None,
    }


SAMPLES = [sample(second, agent) for second in range(5) for agent in ("receiver", "sender")]
ROWS = [
    {
        "point": {"workload": "stream", "transport": "pipe", "message_size": size, "threads": 1, "copy_mode": mode},
        "runs": 2,
        "flags": [],
        "throughput_bytes_per_second": {"median": 1e6 * size, "min": 9e5 * size, "max": 2e6 * size, "ci95": None},
    }
    for size in (64, 4096)
    for mode in ("two-copy", "one-copy")
]
PIXELS = """const [bytes, slots] = args;
    const bitmap = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: 'image/png' }));
    const pen = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
    pen.drawImage(bitmap, 0, 0);
    const { data } = pen.getImageData(0, 0, bitmap.width, bitmap.height);
    const style = getComputedStyle(document.documentElement);
    return slots.map((slot) => {
        const wanted = parseInt(style.getPropertyValue(`--series-${slot}`).trim().slice(1), 16);
        let count = 0;
        for (let at = 0; at < data.length; at += 4)
            count += (data[at] << 16) + (data[at + 1] << 8) + data[at + 2] === wanted;
        return count;
    })"""


@pytest.mark.parametrize(
    ("chart", "title", "names", "slots", "note"),
    [
        (".charts .chart", "Throughput", {"receiver", "sender"}, [1, 4], "All runs (1)"),
        (".study .chart", "Throughput by size", {"two-copy", "one-copy"}, [1, 2], "Bars: min–max of 2 runs."),
    ],
)
def test_a_chart_is_saved_with_its_legend_and_settings(driver, unopened, chart, title, names, slots, note):
    page = unopened
    answers = Answers(driver, {}, **experiment(900017, ROWS, samples=SAMPLES))
    try:
        page.open("#/experiments/900017")
        page.wait(lambda: page.all(f"{chart} canvas.swatch"), "the chart")
        page.wait(lambda: page.text("#provenance dd") == "elsewhere", "where it was measured")
        assert violations(page) == []
        saved = ElementTree.fromstring(page.saved("SVG", chart))
        words = [one.text for one in saved.iter("{http://www.w3.org/2000/svg}text")]
        assert words[0] == title and names <= set(words)
        settings = " ".join(words)
        assert "Experiment 900017, Made up · seed 1 · " in settings
        assert settings.endswith(f"host elsewhere · kernel 5.10.0-elsewhere · ipclab 0.1.0 {note}")
        assert min(page.call(PIXELS, list(page.saved("PNG", chart)), slots)) > 100
        page.find(f"{chart} .legend button").click()
        page.wait(lambda: page.all(f"{chart} .legend [aria-pressed=false]"), "one series less")
        hidden = ElementTree.fromstring(page.saved("SVG", chart))
        left = {one.text for one in hidden.iter("{http://www.w3.org/2000/svg}text")}
        assert len(names & left) == 1
        page.size(360, 900)
        page.wait(lambda: page.run("return document.documentElement.scrollWidth <= innerWidth"), "nothing to the side")
    finally:
        answers.remove()


# axes


@pytest.mark.parametrize(
    ("most", "log", "words"),
    [(1500, False, ["0 µs", "0.5 µs", "1 µs", "1.5 µs"]), (1000, True, ["10 ns", "100 ns", "1 µs"])],
)
def test_a_linear_axis_has_one_unit(modules, most, log, words):
    script = """const { linearMarks, logMarks, markWords } = await import('/assets/chart/scales.js');
        const { nanoseconds } = await import('/assets/format.js');
        const marks = args[1] ? logMarks(10, args[0], { most: 4 }) : linearMarks(0, args[0], { most: 4 });
        return marks.map((mark) => markWords(nanoseconds, mark, marks, args[1]));"""
    assert modules.call(script, most, log) == words


@pytest.mark.parametrize(
    ("least", "largest", "unit", "most", "expected"),
    [
        (1, 1000, 1, 8, [1, 3, 10, 30, 100, 300, 1000]),
        (1, 1000, 1, 10, [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]),
        (1, 1e9, 1, 8, [1, 1e2, 1e4, 1e6, 1e8]),
        (1, 30, 1, 8, [1, 2, 5, 10, 20]),
        (3000, 4600, 1, 8, [3000, 3500, 4000, 4500]),  # no power of ten lies between
        (8.1e8, 1.3e9, 1, 6, [9e8, 1e9, 1.1e9, 1.2e9, 1.3e9]),
        (5e8, 5e9, 8, 8, [5e9, 1e10, 2e10]),  # bytes, shown as bits: 5, 10, 20 Gbit/s and not 4, 8, 16, 40
        (0.02, 0.9, 1, 8, [0.02, 0.05, 0.1, 0.2, 0.5]),
    ],
)
def test_marks_of_a_logarithmic_axis(modules, least, largest, unit, most, expected):
    script = "const { logMarks } = await import('/assets/chart/scales.js'); return logMarks(args[0], args[1], args[2])"
    marks = modules.call(script, least, largest, {"unit": unit, "most": most})
    assert [mark * unit for mark in marks] == pytest.approx(expected)


def test_every_logarithmic_axis_has_three_marks_that_fit(modules):
    script = """const { logMarks } = await import('/assets/chart/scales.js');
        return args[0].map(([min, max, unit, most]) => logMarks(min, max, { unit, most }).map((mark) => mark * unit))"""
    axes = [
        (least * 1.37, least * 1.37 * ratio, unit, most)
        for least in (1e-3, 0.4, 6, 9e4, 2e9)
        for ratio in (1.05, 1.3, 2, 4, 9, 40, 900, 1e5, 1e9)
        for unit in (1, 8)
        for most in (6, 8)
    ]
    for axis, marks in zip(axes, modules.call(script, axes), strict=True):
        least, largest, unit, most = axis
        assert 3 <= len(marks) <= most + 1, (axis, marks)
        assert marks == sorted(marks) and least * unit * 0.999 <= marks[0] and marks[-1] <= largest * unit * 1.001
        digits = {f"{mark:.12e}".split("e")[0].rstrip("0") for mark in marks}
        assert all(len(one) <= 6 for one in digits), (axis, marks)


CHART = """const { Chart } = await import('/assets/chart/charts.js');
    const chart = new Chart({ title: 'A chart', format: String, ...args[0] });
    document.body.prepend(chart.element);
    if (args[3]) chart.element.style.width = `${args[3]}px`;
    chart.set(args[1], args[2]);
    while (!chart.plot) await new Promise(requestAnimationFrame);
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const { plot } = chart;
    const { left, top, width, height } = plot.bbox;
    /* how many pixels of a column of the frame have the first series' colour, or are not the ground at all */
    const own = getComputedStyle(document.documentElement).getPropertyValue('--series-1').trim();
    const wanted = [1, 3, 5].map((at) => parseInt(own.slice(at, at + 2), 16));
    const near = (data, at) => wanted.every((value, channel) => Math.abs(data[at + channel] - value) < 60);
    const columns = (from = left, to = left + width, y = top, h = height) => {
        const image = plot.ctx.getImageData(from, y, to - from, h);
        return Array.from({ length: to - from }, (_, x) => {
            let count = 0;
            for (let row = 0; row < h; row++) {
                const at = (row * image.width + x) * 4;
                count += image.data[at + 3] > 100 && near(image.data, at);
            }
            return count;
        });
    };
    const result = await (async () => { %s })();
    chart.destroy();
    return result;"""


def series(ys, **more):
    return [{"label": "a", "slot": 0, "ys": ys, **more}]


def test_single_seconds_are_drawn_however_many_they_are(modules):
    """400 runs of one second: a point each, with nothing between."""
    xs = [x / 2 for x in range(800)]
    ys = [None if at % 2 else 100 + at for at in range(800)]
    counts = modules.call(CHART % "return columns()", {}, xs, series(ys))
    drawn = [at for at, count in enumerate(counts) if count]
    assert len(drawn) > len(counts) * 0.5
    assert max(counts) < 60, "a column of colour from top to bottom: the points are joined"


@pytest.mark.parametrize("width", [None, 300])
def test_a_line_ends_where_its_run_ends(modules, width):
    """The level changes between runs: not even a sliver of a joining line stands at their ends, like an error bar."""
    xs = [part for run in range(12) for part in (run * 2, run * 2 + 1, run * 2 + 1.5)]
    ys = [part for run in range(12) for part in (*[1000 if run % 2 else 10] * 2, None)]
    body = """const [high, low] = [1000, 10].map((y) => Math.round(plot.valToPos(y, 'y', true)));
        return columns(plot.bbox.left, plot.bbox.left + plot.bbox.width, high + 12, low - high - 24)"""
    assert sum(modules.call(CHART % body, {}, xs, series(ys), width)) == 0


@pytest.mark.parametrize(("options", "low", "high"), [({}, 2.5, 3.5), ({"x": "log2"}, 3 / 1.25, 3 * 1.25)])
def test_a_single_point_stands_in_the_middle(modules, options, low, high):
    body = """const { min, max } = plot.scales.x;
        return [min, max, plot.valToPos(3, 'x') / plot.over.clientWidth]"""
    assert modules.call(CHART % body, options, [3], series([100])) == pytest.approx([low, high, 0.5], abs=0.01)


def test_many_short_runs_are_no_oscillating_line(modules):
    """Two seconds a run and two levels in turn, with more runs than a telephone has pixels."""
    xs, ys = [], []
    for run in range(400):
        xs += [run * 3, run * 3 + 1, run * 3 + 1.5]
        ys += [10 if run % 2 else 1000] * 2 + [None]
    body = """const [high, low] = [1000, 10].map((y) => Math.round(plot.valToPos(y, 'y', true)));
        return columns(plot.bbox.left, plot.bbox.left + plot.bbox.width, high + 12, low - high - 24)"""
    assert sum(modules.call(CHART % body, {}, xs, series(ys), 360)) == 0


@pytest.mark.parametrize("log", [False, True])
def test_bars_stay_within_the_frame(modules, log):
    body = "return [plot.scales.y.min, plot.scales.y.max]"
    low, high = modules.call(CHART % body, {"log": log}, [1, 2], series([100, 110], lo=[2, 100], hi=[5000, 120]))
    assert low < 2 and high > 5000
    above = "return columns(0, plot.ctx.canvas.width, 0, plot.bbox.top)"
    assert sum(modules.call(CHART % above, {"log": log}, [1, 2], series([100, 110], lo=[2, 100], hi=[5000, 120]))) == 0


# identity


def row(size, runs=1, ci95=None, level=0.96875, **point):
    figure = {"median": 10, "min": 9, "max": 11, "ci95": ci95, "level": ci95 and level} if runs else None
    return {
        "point": {"workload": "stream", "message_size": size, **point},
        "runs": runs,
        "throughput_bytes_per_second": figure,
    }


PLOTS = """const { plotData } = await import('/assets/chart/plots.js');
    const streams = { value: (row) => row.throughput_bytes_per_second, rows: (row) => row.point.workload === 'stream' };
    const trips = { value: (row) => row.latency_ns?.p50, rows: (row) => row.point.workload === 'pingpong' };
    return [{ x: 'message_size', ...streams }, { x: 'threads', ...streams }, { x: 'message_size', ...trips }]
        .filter((plot) => new Set(args[0].filter(plot.rows).map((row) => row.point[plot.x])).size > 1)
        .map((plot) => plotData(args[0], { title: 'A plot', ...plot }))"""


def slots(modules, rows):
    return [{one["label"]: one["slot"] for one in plot["series"]} for plot in modules.call(PLOTS, rows)]


def test_colours_stay_while_an_experiment_runs(modules):
    """Whichever points come first, and in whichever chart: a transport has its colour from the beginning."""
    points = [(size, threads, name) for name in ("pipe", "fifo", "unix") for threads in (1, 2) for size in (64, 4096)]
    table = [row(size, transport=name, threads=threads) for size, threads, name in points]
    by_size, by_threads = slots(modules, table)
    assert list(by_size) == [f"{t} · {name}" for name in ("pipe", "fifo", "unix") for t in ("1 thread", "2 threads")]
    assert list(by_size.values()) == [0, 1, 2, 3, 4, 5]
    for first in ((11,), (5, 0), (8, 2, 7)):
        rows = [row(size, at in first, transport=name, threads=t) for at, (size, t, name) in enumerate(points)]
        for full, some in zip((by_size, by_threads), slots(modules, rows), strict=True):
            assert some and some.items() <= full.items()
    # neighbours: what only one of two charts has does not shift the colours of the other
    pingpong = {"workload": "pingpong", "latency_ns": {"kind": "rtt", "p50": {"median": 1, "min": 1, "max": 1}}}
    mixed = [row(size, transport=name) for name in ("pipe", "fifo", "unix") for size in (64, 4096)]
    mixed += [
        row(size, 0, transport=name, workload="pingpong") | {"runs": 1, "latency_ns": pingpong["latency_ns"]}
        for name in ("unix", "pipe")
        for size in (64, 4096)
    ]
    throughput, latency = slots(modules, mixed)
    assert latency.items() <= throughput.items() and len(latency) == 2


def test_agents_have_their_colours_in_any_order(modules):
    script = """const { Live } = await import('/assets/experiment/live.js');
        const live = new Live(1);
        for (const agent of args[0])
            live.addSample({ run_id: 1, agent, thread: 0, second: 0, interval_ns: 1e9, messages: 1, bytes: 10,
                latency_ns: agent === 'responder' ? null : { p50: 3, p99: 4, kind: 'rtt' } });
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);
        const { throughput, latency } = live.charts;
        const looks = [throughput, latency].map((chart) => Object.fromEntries(
            chart.series.map((one, at) => [one.label, chart.styles[at]])));
        live.destroy();
        return looks"""
    seen = [modules.call(script, list(order)) for order in permutations(("initiator", "responder", "receiver"))]
    assert all(one == seen[0] for one in seen)
    throughput, latency = seen[0]
    assert throughput["initiator"]["colour"] == latency["p50 initiator"]["colour"]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row(64, 1), row(128, 1)], ""),
        ([row(64, 3), row(128, 3)], "Bars: min–max of 3 runs."),
        ([row(64, 3), row(128, 5)], "Bars: min–max of 3 to 5 runs."),
        ([row(64, 6, [9.5, 10.5]), row(128, 6, [9.5, 10.5])], "Bars: 96.9 % interval of the median."),
        (
            [row(64, 6, [9.5, 10.5]), row(128, 8, [9.5, 10.5], level=0.9922)],
            "Bars: 96.9 to 99.2 % interval of the median.",
        ),
        (
            [row(64, 6, [9.5, 10.5]), row(128, 2)],
            "Bars: 96.9 % interval of the median; with fewer runs than 6, min–max of 2 runs.",
        ),
    ],
)
def test_bars_are_named_for_what_they_are(modules, rows, expected):
    (plot,) = modules.call(PLOTS, rows)
    assert plot["bars"] == expected
    one = plot["series"][0]
    for at, each in enumerate(rows):
        ci95 = each["throughput_bytes_per_second"]["ci95"]
        bar = ci95 or ([9, 11] if each["runs"] > 1 else [None, None])
        assert [one["lo"][at], one["hi"][at]] == bar
