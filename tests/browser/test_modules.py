# SPDX-License-Identifier: MIT
"""The dashboard's pure modules, called in the browser that runs them."""

import pytest


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("integer(1234567)", "1\u202f234\u202f567"),
        ("integer(-1234)", "−1\u202f234"),
        ("integer(0)", "0"),
        ("integer(null)", "—"),
        ("figure(0.012345)", "0.01235"),
        ("figure(12.3456)", "12.35"),
        ("figure(123456.7)", "123\u202f457"),
        ("figure(null)", "—"),
        ("figure(NaN)", "—"),
        ("throughput(1.234e9)", "1.23 GB/s"),
        ("throughput(999)", "999 B/s"),
        ("throughput(null)", "—"),
        ("nanoseconds(850)", "850 ns"),
        ("nanoseconds(12300)", "12.3 µs"),
        ("nanoseconds(4.2e9)", "4.20 s"),
        ("nanoseconds(500, 2000)", "0.500 µs"),
        ("throughput(0, 2e9)", "0 GB/s"),
        ("size(64)", "64 B"),
        ("size(65536)", "64 KiB"),
        ("size(1500)", "1\u202f500 B"),
        ("size(1073741824)", "1 GiB"),
        ("size(8335204352, true)", "7.76 GiB"),
        ("duration(0.4)", "0 s"),
        ("duration(200)", "3 min 20 s"),
        ("duration(3599.7)", "1 h 00 min"),
        ("duration(7500)", "2 h 05 min"),
        ("round('50.0 µs')", "50 µs"),
        ("round('1.50 GB/s')", "1.5 GB/s"),
        ("round('100 MB/s')", "100 MB/s"),
        ("plural(1, 'run')", "1 run"),
        ("plural(1000, 'run')", "1\u202f000 runs"),
        ("pointLabel({transport: 'pipe', message_size: 4096, threads: 2})", "pipe · 4 KiB · 2 threads"),
        ("latencyKind('of_a_new_kind')", "of a new kind"),
        ("reasonFor({x: null, x_reason: 'no such counter'}, 'x')", "no such counter"),
        ("factWords('smt', 'notsupported')", "none: each core has one thread"),
        ("factWords('smt', 'on')", "on"),
        ("factWords('swappiness', 60)", "60"),
        ("sentence('the queue is full')", "The queue is full."),
        ("sentence('message_size is 1 … 9, not 0')", "Message size is 1 … 9, not 0."),
        ("sentence('msgq-sysv carries at most 16 MiB.')", "msgq-sysv carries at most 16 MiB."),
        ("sentence('fs.pipe-max-size is 1 MiB')", "fs.pipe-max-size is 1 MiB."),
        ("sentence('Is it still running?')", "Is it still running?"),
    ],
)
def test_format(modules, call, expected):
    assert modules.call(f"const {{ {NAMES} }} = await import('/assets/format.js'); return {call}") == expected


NAMES = """integer, figure, throughput, nanoseconds, size, duration, round, plural, pointLabel, reasonFor, latencyKind,
    factWords, sentence"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("64", [64]),
        ("64, 4 KiB;1MiB", [64, 4096, 1048576]),
        ("0.5 KiB", [512]),
        ("1 kB", [1000]),
        ("", "At least one"),
        ("1.5", "not a size"),
        ("-1", "not a size"),
        ("4 KiX", "not a size"),
        ("1e3", "not a size"),
    ],
)
def test_sizes(modules, text, expected):
    script = """const { parseSizes } = await import('/assets/form/spec.js');
        try { return parseSizes(args[0]); } catch (error) { return error.message; }"""
    answer = modules.call(script, text)
    assert answer == expected if isinstance(expected, list) else expected in answer


PRESET = {
    "name": "p",
    "spec": {"workload": ["stream", "pingpong"], "duration_seconds": 2, "require": {"numa_balancing": True}},
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {"preset": "p"}),
        ({"repetitions": 3}, {"preset": "p", "repetitions": 3}),
        ({"points": "twice"}, {"preset": "p", "points": "twice"}),
        ({"workload": ["stream"]}, {"preset": "p", "workload": "stream"}),
        ({"message_size": [1, 2]}, {"preset": "p", "message_size": [1, 2]}),
        ({"end": {"end": "duration_seconds", "value": 9}}, {"preset": "p", "duration_seconds": 9}),
        ({"end": {"end": "messages", "value": 1000}}, {"preset": "p", "messages": 1000}),
    ],
)
def test_only_what_differs_from_a_preset_is_posted(modules, change, expected):
    script = """const { toSpec, toValues } = await import('/assets/form/spec.js');
        const { defaultsOf } = await import('/assets/schema.js');
        const defaults = defaultsOf(await (await fetch('/openapi.json')).json());
        const base = { preset: 'p' };
        const before = toValues(base, [args[0]], defaults);
        return toSpec(base, before, { ...before, ...args[1] }, [args[0]], defaults)"""
    assert modules.call(script, PRESET, change) == expected


@pytest.mark.parametrize(("points", "expected"), [("once", 6), ("twice", 12)])
def test_points_that_stand_twice_are_counted_twice(modules, points, expected):
    script = """const { amount, toValues } = await import('/assets/form/spec.js');
        const { appliesOf, defaultsOf } = await import('/assets/schema.js');
        const openapi = await (await fetch('/openapi.json')).json();
        const defaults = defaultsOf(openapi);
        const values = toValues({ message_size: [1, 2], threads: [1, 2, 4], points: args[0] }, [], defaults);
        return amount({ ...values, repetitions: 5 }, appliesOf(openapi), {})"""
    counted = modules.call(script, points)
    assert (counted["points"], counted["runs"]) == (expected, 5 * expected)


ALONE = ["call", "processes", "working_set"]  # of workloads that move nothing
MOVING = ["transport", "message_size", "threads", "copy_mode", "engine", "queue_depth", "source", "wait"]


@pytest.mark.parametrize(
    ("workload", "transport", "expected"),
    [
        (["stream"], ["pipe"], [*ALONE, "wait"]),
        (["pingpong"], ["pipe"], [*ALONE, "queue_depth", "wait"]),
        (["pingpong"], ["shm-posix"], [*ALONE, "copy_mode", "engine", "queue_depth"]),
        (["stream"], ["file"], [*ALONE, "copy_mode", "queue_depth", "wait"]),
        (["stream"], ["msgq-sysv"], [*ALONE, "copy_mode", "engine", "queue_depth", "wait"]),
        (["stream", "syscall"], ["pipe", "shm-posix"], ["processes", "working_set"]),
        (["context-switch", "stream"], ["pipe", "shm-posix"], ["call"]),
        (["syscall"], ["pipe"], ["processes", "working_set", *MOVING]),
        (["syscall", "context-switch"], ["pipe"], MOVING),
    ],
)
def test_fields_without_a_meaning_are_known(modules, workload, transport, expected):
    script = """const { meaningless } = await import('/assets/form/spec.js');
        const { appliesOf } = await import('/assets/schema.js');
        return meaningless(args[0], appliesOf(await (await fetch('/openapi.json')).json()))"""
    assert modules.call(script, {"workload": workload, "transport": transport}) == expected


def sample(run, second, agent, size, thread=0, p50=None, kind="rtt", messages=0):
    latency = {"p50": p50, "p99": p50 * 2, "kind": kind} if p50 else None
    return {
        "run_id": run,
        "agent": agent,
        "thread": thread,
        "second": second,
        "interval_ns": 2_000_000_000,
        "messages": messages,
        "bytes": size,
        "latency_ns": latency,
    }


def test_samples_become_series(modules):
    samples = [
        sample(1, 0, "receiver", 200),
        sample(1, 0, "receiver", 100, thread=1),
        sample(1, 0, "receiver", 200),  # received twice
        sample(1, 1, "receiver", 400),
        sample(2, 0, "initiator", 600, p50=30),
        sample(2, 0, "initiator", 600, thread=1, p50=50),
    ]
    script = """const { Samples } = await import('/assets/experiment/samples.js');
        const samples = new Samples(args[1]);
        args[0].forEach((one) => samples.add(one));
        const line = samples.timeline([...samples.runs.keys()]);
        return { xs: line.xs, throughput: Object.fromEntries(line.throughput), p50: Object.fromEntries(line.p50),
            p99: Object.fromEntries(line.p99), order: [...line.throughput.keys()],
            count: samples.count, truncated: samples.truncated }"""
    line = modules.call(script, samples, 100)
    assert line["xs"] == [0, 1, 1.5, 2, 2.5]
    assert line["throughput"]["receiver"] == [150, 200, None, None, None]
    assert line["throughput"]["initiator"] == [None, None, None, 600, None]
    assert line["p50"] == {"initiator": [None, None, None, 50, None]}
    assert line["p99"] == {"initiator": [None, None, None, 100, None]}
    assert (line["count"], line["truncated"]) == (5, False)
    late = [sample(1, 0, "initiator", 200), sample(1, 1, "server", 200), sample(1, 1, "receiver", 100)]
    assert modules.call(script, late, 100)["order"] == ["receiver", "initiator", "server"]
    short = modules.call(script, samples, 3)
    assert short["count"] <= 3 and short["truncated"] and "initiator" in short["throughput"]


def charts(modules, samples):
    """The titles and the lines of the live charts that are shown, from top to bottom."""
    script = """const { Live } = await import('/assets/experiment/live.js');
        const live = new Live(1);
        for (const one of args[0]) {
            live.addSample(one);
            await new Promise(requestAnimationFrame);
        }
        const shown = Object.values(live.charts).filter((chart) => chart.element.parentNode);
        const place = (chart) => [...live.body.children].indexOf(chart.element);
        shown.sort((a, b) => place(a) - place(b));
        live.destroy();
        return shown.map((chart) => [chart.heading.textContent,
            Object.fromEntries(chart.series.map((one) => [one.label, one.ys]))])"""
    return dict(modules.call(script, samples))


CALLS = {"agent": "initiator", "size": 0, "p50": 30, "kind": "call"}
ROUNDS = CALLS | {"kind": "switch"}


def test_what_moves_nothing_has_its_calls_drawn(modules):
    calls = [sample(1, 0, **CALLS, messages=4000), sample(1, 1, **CALLS, messages=6000)]
    rounds = [sample(2, 0, **ROUNDS, messages=200), sample(2, 0, thread=1, **ROUNDS, messages=100)]
    shown = charts(modules, calls)
    assert shown.keys() == {"Calls per second", "Latency, per call, means of batches"}
    assert shown["Calls per second"] == {"initiator": [2000, 3000]}
    assert charts(modules, rounds)["Rounds of context switches per second"] == {"initiator": [150]}
    # one on the other's axis would be flat again
    shown = charts(modules, calls + rounds)
    assert shown["Calls per second"] == {"initiator": [2000, 3000, None, None, None]}
    assert shown["Rounds of context switches per second"] == {"initiator": [None, None, None, 150, None]}


def test_what_moves_bytes_has_its_throughput_drawn(modules):
    """Also in a second in which nothing comes; what moves nothing has no part in it."""
    stream = [sample(1, 0, "receiver", 0), sample(1, 1, "receiver", 400, messages=4)]
    assert charts(modules, stream) == {"Throughput": {"receiver": [0, 200]}}
    shown = charts(modules, [sample(2, 0, **CALLS, messages=4000), *stream])
    assert list(shown) == ["Throughput", "Calls per second", "Latency, per call, means of batches"]
    assert shown["Throughput"] == {"receiver": [None, None, 0, 200, None]}
    assert shown["Calls per second"] == {"initiator": [2000, None, None, None, None]}


@pytest.mark.parametrize(
    ("attempt", "started_at", "state", "remaining"),
    [
        (1, "2026-01-31T12:00:00.000Z", "done", 1),
        (2, "2026-01-31T12:00:09.000Z", "running", 0),
        (1, "2026-01-31T12:00:09.000Z", "running", 0),  # a stop of the daemon does not count as an attempt
        (1, None, "queued", 0),
    ],
)
def test_samples_of_an_earlier_beginning_are_forgotten(modules, attempt, started_at, state, remaining):
    script = """const { Live } = await import('/assets/experiment/live.js');
        const live = new Live(1);
        live.updateRun({ id: 1, attempt: 0, started_at: null, state: 'queued' });
        live.updateRun({ id: 1, attempt: 1, started_at: '2026-01-31T12:00:00.000Z', state: 'running' });
        live.addSample(args[0]);
        live.updateRun({ id: 1, ...args[1] });
        live.destroy();
        return live.samples.count"""
    run = {"attempt": attempt, "started_at": started_at, "state": state}
    assert modules.call(script, sample(1, 0, "receiver", 200), run) == remaining


def test_results_become_plots(modules):
    def row(size, transport, median):
        figure = {"median": median, "min": median - 1, "max": median + 1} if median else None
        return {
            "point": {"workload": "stream", "transport": transport, "message_size": size},
            "throughput_bytes_per_second": figure,
            "runs": 3,
        }

    rows = [row(4096, "pipe", 40), row(64, "pipe", 20), row(64, "fifo", 30), row(4096, "fifo", None)]
    script = """const { plotData } = await import('/assets/chart/plots.js');
        const value = (row) => row.throughput_bytes_per_second;
        return plotData(args[0], { title: 'Throughput', x: 'message_size', value })"""
    assert modules.call(script, rows) == {
        "xs": [64, 4096],
        "omitted": 0,
        "bars": "Bars: min–max of 3 runs.",
        "series": [
            {"label": "pipe", "slot": 0, "ys": [20, 40], "lo": [19, 39], "hi": [21, 41]},
            {"label": "fifo", "slot": 1, "ys": [30, None], "lo": [29, None], "hi": [31, None]},
        ],
    }


KINDS = {  # of latencies: the workload that has it, and what it is called
    "rtt": ("pingpong", "round trip"),
    "one_way": ("stream", "one way"),
    "call": ("syscall", "per call, means of batches"),
    "switch": ("context-switch", "per hop, mean of each round, pipe included"),
}


def figure(median, **more):
    return {"median": median, "min": median - 1, "max": median + 1, "ci95": None} | more


def timed(kind, **point):
    """A row of a results table that has a latency of that kind and nothing else."""
    latency = figure(1000)
    return {
        "point": {"workload": KINDS[kind][0], **point},
        "runs": 1,
        "flags": [],
        "latency_ns": {"kind": kind, "p50": latency, "p99": latency, "p99_9": latency},
    }


FIGURES = """const { figuresOf, figureData } = await import('/assets/chart/figure-data.js');
    return figuresOf(args[0]).map(({ key, title }) => [title,
        figureData(args[0], { figure: key }).series.map(({ marks }) => marks.map(({ y }) => y))])"""


def test_each_kind_of_latency_is_a_figure_of_its_own(modules):
    rows = [timed(kind, threads=threads) for kind in KINDS for threads in (1, 2)]
    figures = [one for one in modules.call(FIGURES, rows) if one[0].endswith(": p50")]
    assert figures == [[f"Latency, {words}: p50", [[1000, 1000]]] for _, words in KINDS.values()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_latency_is_called_the_same_everywhere(modules, kind):
    script = """const { Results } = await import('/assets/experiment/results.js');
        const { Live } = await import('/assets/experiment/live.js');
        const { resultFacts } = await import('/assets/experiment/run.js');
        const { columnsOf } = await import('/assets/schema.js');
        const [row, sample] = args;
        const results = new Results(1, columnsOf(await (await fetch('/openapi.json')).json()));
        results.update([row], 'done');
        const caption = results.element.querySelector('#results-caption').textContent;
        results.destroy();
        const live = new Live(1);
        live.addSample(sample);
        await new Promise(requestAnimationFrame);
        const title = live.charts.latency.heading.textContent;
        live.destroy();
        const facts = resultFacts({ latency_ns: { kind: row.latency_ns.kind, p50: 1, p99: 2, max: 3 } });
        return [caption, title, Object.fromEntries(facts).latency]"""
    caption, title, fact = modules.call(script, timed(kind), sample(1, 0, "initiator", 0, p50=30, kind=kind))
    words = KINDS[kind][1]
    assert caption.endswith(f" Latency: {words}.")
    assert title == f"Latency, {words}"
    assert fact.startswith(f"{words}: p50 ")


def test_kinds_of_latency_are_named_in_the_caption(modules):
    caption, _ = table(modules, [timed("rtt"), timed("one_way")])
    assert caption.endswith(" Latency: round trip (pingpong); one way (stream).")


RTT = {"agent": "initiator", "size": 0, "p50": 30, "kind": "rtt"}
ONE_WAY = {"agent": "receiver", "size": 0, "p50": 20, "kind": "one_way"}


@pytest.mark.parametrize(
    ("samples", "title", "labels"),
    [
        ([sample(1, 0, **RTT), sample(1, 1, **RTT)], "Latency, round trip", ["p50", "p99"]),
        (
            [sample(1, 0, **RTT), sample(1, 0, thread=1, **RTT), sample(1, 0, "responder", 0)],
            "Latency, round trip",
            ["p50, slowest thread", "p99, slowest thread"],
        ),
        # one after the other are not two at once
        ([sample(1, 0, **RTT), sample(1, 1, thread=1, **RTT)], "Latency, round trip", ["p50", "p99"]),
        # two runs, of two kinds
        (
            [sample(1, 0, **RTT), sample(2, 0, **ONE_WAY), sample(2, 0, thread=1, **ONE_WAY)],
            "Latency",
            ["p50 receiver, slowest thread", "p99 receiver, slowest thread", "p50 initiator", "p99 initiator"],
        ),
        # the first sample has no latency, and so no kind
        ([sample(1, 0, "sender", 0), sample(1, 0, **ONE_WAY)], "Latency, one way", ["p50", "p99"]),
    ],
)
def test_lines_of_latency_have_their_kind(modules, samples, title, labels):
    script = """const { Live } = await import('/assets/experiment/live.js');
        const live = new Live(1);
        args[0].forEach((one) => live.addSample(one));
        await new Promise(requestAnimationFrame);
        const { latency } = live.charts;
        live.destroy();
        return [latency.heading.textContent, latency.series.map((one) => one.label)]"""
    assert modules.call(script, samples) == [title, labels]


def table(modules, rows):
    """The caption of a results table, and a row's texts by their columns' titles."""
    script = """const { Results } = await import('/assets/experiment/results.js');
        const { columnsOf } = await import('/assets/schema.js');
        const results = new Results(1, columnsOf(await (await fetch('/openapi.json')).json()));
        results.update(args[0], 'done');
        const { element } = results;
        const texts = (parent, what) => [...parent.querySelectorAll(what)].map((one) => one.textContent);
        const table = [...element.querySelectorAll('tr')].map((row) => texts(row, 'th, td'));
        const caption = element.querySelector('#results-caption').textContent;
        results.destroy();
        return [caption, table]"""
    caption, (titles, *lines) = modules.call(script, rows)
    return caption, [list(zip(titles, line, strict=True)) for line in lines]


def test_a_range_that_is_the_interval_is_not_shown_twice(modules):
    few = timed("switch") | {"runs": 6, "cost_ns": figure(10, ci95=[9, 11], level=0.96875)}
    ((_, *titles), *_) = [[title for title, _ in row] for row in table(modules, [few, few])[1]]
    assert "96.9 % intervalns" in titles and "min – maxns" not in titles
    more = timed("switch") | {"runs": 9, "cost_ns": figure(10, ci95=[9.5, 11], level=0.961)}
    without = timed("switch") | {"runs": 2, "cost_ns": figure(10)}
    for other in (more, without):
        (cells, *_) = table(modules, [few, other])[1]
        assert dict(cells)["min – maxns"] == "9.000 – 11.00"


def test_columns_are_the_usual_figures_of_the_daemon(modules, daemon):
    """Names, order and units come from its description: the page has no list of its own."""
    script = """const { columnsOf } = await import('/assets/schema.js');
        const openapi = await (await fetch('/openapi.json')).json();
        return columnsOf(openapi).map(({ field, title, unit }) => [field, title, unit])"""
    columns = modules.call(script)
    figures = daemon.get("/openapi.json")["components"]["schemas"]["ResultFigures"]["properties"]
    usual = [name for name, figure in figures.items() if figure.get("x-usual")]
    assert [field for field, _, _ in columns if "latency" not in field] == usual
    for field, title, unit in columns:
        if "latency" in field:
            assert unit == "µs" and title.split()[0].replace(".", "_") in figures[field]["properties"]
        else:
            assert title == figures[field]["title"] and unit in ("MB/s", "/s", figures[field]["x-unit"])
    invented = {"components": {"schemas": {"ResultFigures": {"properties": {
        "watts": {"title": "Power", "x-unit": "W", "x-usual": True},
        "volts": {"title": "Voltage", "x-unit": "V", "x-usual": False},
    }}}}}  # fmt: skip
    script = """const { columnsOf } = await import('/assets/schema.js');
        return columnsOf(args[0]).map(({ title, unit }) => [title, unit])"""
    assert modules.call(script, invented) == [["Power", "W"]]


def test_defaults_and_words_are_those_of_the_schema(modules, daemon):
    spec = daemon.get("/openapi.json")["components"]["schemas"]["ExperimentSpec"]
    script = """const { defaultsOf, wordsOf } = await import('/assets/schema.js');
        const openapi = await (await fetch('/openapi.json')).json();
        return [defaultsOf(openapi), args[0].map((name) => wordsOf(openapi, name))]"""
    names = ["workload", "call", "verify", "placement_word"]
    defaults, words = modules.call(script, names)
    assert defaults == {name: field["default"] for name, field in spec["properties"].items() if "default" in field}
    assert words == [spec["$defs"][name]["enum"] if name != "verify" else spec["properties"]["verify"]["enum"]
                     for name in names]  # fmt: skip


def test_costs_have_a_column_where_there_are_any(modules):
    switch = timed("switch") | {
        "runs": 6,
        "cost_ns": figure(1234.6, ci95=[1234, 1235], level=0.96875),
        "hop_ns": figure(1500),
    }
    reasons = {"cost_ns": "of syscall and context-switch only", "hop_ns": "of context-switch only"}
    stream = timed("one_way") | {"reasons": reasons}
    caption, (first, second) = table(modules, [switch, stream])
    cost = [title for title, _ in first].index("Costns")
    spread = ["min – maxns", "96.9 % intervalns"]
    assert first[cost] == ("Costns", "1\u202f235")
    assert [title for title, _ in first[cost + 1 : cost + 3]] == spread
    assert first[cost + 2][1] == "1\u202f234 – 1\u202f235"
    assert first[cost + 3] == ("Hopns", "1\u202f500")
    assert {text for _, text in second[cost : cost + 3]} == {"— (of syscall and context-switch only)"}
    assert second[cost + 3][1] == "— (of context-switch only)"
    assert "Cost: of a context switch, without the pipe's part. Hop: the same with it." in caption
    assert "A message is a round of context switches (context-switch)." in caption
    assert "A message is a call (syscall)." in table(modules, [timed("call")])[0]
    caption, (only,) = table(modules, [stream])
    assert "Cost" not in caption and "Costns" not in dict(only) and "Hopns" not in dict(only)
    for cpus, where in (([1], "1"), ([1, [1, 0]], "0 or 1")):
        caption, _ = table(modules, [switch | {"effective": {"cpu": cpu}} for cpu in cpus])
        assert f"Cost: of a context switch on CPU {where}, without the pipe's part. Hop:" in caption


def test_an_interval_says_when_its_runs_may_be_alike(modules):
    script = """const { Results } = await import('/assets/experiment/results.js');
        const { columnsOf } = await import('/assets/schema.js');
        const results = new Results(1, columnsOf(await (await fetch('/openapi.json')).json()));
        results.update([args[0]], 'done');
        const titles = [...results.element.querySelectorAll('td.number abbr')]
            .filter((one) => one.textContent.includes('–')).map((one) => one.title);
        results.destroy();
        return titles"""
    row = timed("switch") | {"runs": 6, "cost_ns": figure(1234.6, ci95=[1234, 1235], level=0.96875)}
    few = {"autocorrelation": None, "reasons": {"autocorrelation": "fewer than 12 runs"}}
    (title,) = modules.call(script, row | few)
    assert "could not be judged (fewer than 12 runs)" in title
    judged = row | {"runs": 12, "autocorrelation": {"lag1": 0, "effective_runs": 12}}
    for widening, titles in ((1, []), (2.5, ["Neighbouring runs are alike: it is 2.500 times as wide as"])):
        cost = figure(1234.6, ci95=[1234, 1235], level=0.96875, n=12, widening=widening)
        found = modules.call(script, judged | {"cost_ns": cost})
        assert len(found) == len(titles) and all(map(str.startswith, found, titles))


def test_round_trips_have_both_ways_and_one_way(modules):
    trips = [
        timed("rtt", message_size=size)
        | {
            "throughput_bytes_per_second": figure(4e6),
            "both_ways_bytes_per_second": figure(8e6),
            "latency_one_way_ns": {"kind": "one_way", "p50": figure(500)},
        }
        for size in (64, 4096)
    ]
    caption, (first, _) = table(modules, trips)
    both = {"ThroughputMB/s": "4.000", "Throughput both waysMB/s": "8.000"}
    shown = both | {"p50µs": "1.000", "p50 one wayµs": "0.5000"}
    assert shown.items() <= dict(first).items()
    assert "both ways" in caption
    drawn = dict(modules.call(FIGURES, trips))
    assert drawn["Throughput both ways"] == [[8e6, 8e6]] and drawn["Latency, round trip: p50"] == [[1000, 1000]]
    stream = timed("one_way") | {"throughput_bytes_per_second": figure(4e6)}
    caption, (only,) = table(modules, [stream])
    assert not {"Throughput both waysMB/s", "p50 one wayµs"} & dict(only).keys() and "both ways" not in caption


def test_round_trips_of_an_open_loop_have_no_half(modules):
    trip = timed("rtt") | {"both_ways_bytes_per_second": figure(8e6), "latency_one_way_ns": None}
    caption, (only,) = table(modules, [trip])
    assert dict(only)["Throughput both waysMB/s"] == "8.000" and "p50 one wayµs" not in dict(only)
    assert "Of a round trip, both ways is what went there and back." in caption and "one way" not in caption


def test_a_run_tells_both_ways_and_one_way(modules):
    script = "const { resultFacts } = await import('/assets/experiment/run.js'); return resultFacts(args[0])"
    latency = {"kind": "rtt", "p50": 2000, "p99": 4000, "max": 6000}
    half = {"kind": "one_way", "p50": 1000, "p99": 2000, "max": 3000}
    trip = {"both_ways_bytes_per_second": 8e6, "latency_ns": latency, "latency_one_way_ns": half}
    facts = dict(modules.call(script, trip))
    assert facts["both ways"] == "8.00 MB/s, there and back together"
    assert facts["latency"] == "round trip: p50 2.000 µs, p99 4.000 µs, max 6.000 µs"
    assert facts["half of it"] == "one way: p50 1.000 µs, p99 2.000 µs, max 3.000 µs"
    facts = dict(modules.call(script, {"both_ways_bytes_per_second": None, "latency_ns": None}))
    assert not {"both ways", "latency", "half of it"} & facts.keys()


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (
            {"cost_ns": 812.34, "cost_of": "context switch", "hop_ns": 1012.34, "pipe_overhead_ns": 200}
            | {"effective": {"cpu": 0}},
            {
                "CPU": "0",
                "cost": "812.3 ns per context switch",
                "hop": "1\u202f012 ns, pipe included",
                "pipe overhead": "200.0 ns, not in the cost",
            },
        ),
        ({"cost_ns": 95.5, "cost_of": "call"}, {"cost": "95.50 ns per call"}),
        ({"cost_ns": None, "cost_of": None}, {}),
    ],
)
def test_a_run_tells_its_costs(modules, result, expected):
    script = """const { resultFacts } = await import('/assets/experiment/run.js');
        return Object.fromEntries(resultFacts(args[0]))"""
    facts = modules.call(script, result)
    assert {term: facts[term] for term in ("CPU", "cost", "hop", "pipe overhead") if term in facts} == expected


MENUS = """const { Ticks } = await import('/assets/compare/ticks.js');
    const ticks = new Ticks(77);
    document.body.append(ticks.element);
    const points = args[0].map((size) => ({ workload: 'stream', transport: 'pipe', message_size: size }));
    ticks.update(points, []);
    const menus = [...ticks.element.querySelectorAll('select[data-list=message_size]')];
    const found = [menus.map((menu) => menu.options.length)];
    for (const [side, value] of args[1]) {
        menus[side].value = value;
        menus[side].dispatchEvent(new Event('change', { bubbles: true }));
        found.push([menus.map((menu) => menu.value), ticks.element.querySelector('a')?.textContent ?? null]);
    }
    ticks.element.remove();
    const again = new Ticks(77);
    again.update(points, []);
    found.push([...again.element.querySelectorAll('select')].map((menu) => menu.value));
    return found;"""


def test_a_long_list_of_values_is_two_menus(modules):
    """None of forty sizes is left out, and each choice stays where it was made."""
    sizes = [64 * (i + 1) for i in range(40)]
    lengths, one, both, again = modules.call(MENUS, sizes, [[1, "2048"], [0, "128"]])
    assert lengths == [len(sizes) + 1] * 2
    assert one == [["", "2048"], None]
    assert both == [["128", "2048"], "Compare 128 B and 2 KiB"]
    assert again == ["128", "2048"]


@pytest.mark.parametrize(
    ("made", "module"),
    [("new made.Live(1)", "live"), ("new made.Results(1, [])", "results")],
)
def test_nothing_is_said_of_figures_that_are_not_loaded(modules, made, module):
    """An experiment that ended long ago has its samples and rows a moment later than its page."""
    script = f"const made = await import('/assets/experiment/{module}.js');"
    script += f" return [...({made}).element.querySelectorAll('p')]"
    assert "Loading…" in modules.call(f"{script}.map((p) => p.textContent)")
