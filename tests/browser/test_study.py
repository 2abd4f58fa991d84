# SPDX-License-Identifier: MIT
"""The plots of an experiment that compares copy modes: from real runs over TCP, and from tables made up."""

import pytest

MODES = ["two-copy", "one-copy", "zero-copy"]
SIZES = [16384, 65536]
TITLES = ["Throughput by size", "Latency by threads, median", "LLC misses per message by size"]


@pytest.fixture(scope="module")
def study(daemon):
    identity = daemon.submit(
        transport="tcp",
        message_size=SIZES,
        threads=[1, 2],
        copy_mode=MODES,
        stamp=True,  # without it a stream has no latency
        messages=300,
        warmup_seconds=0,
        name="Copy modes",
    )
    daemon.wait_done(identity)
    return identity


def headings(page):
    return [heading.text for heading in page.all(".study .plots h3")]


def legends(page):
    return [
        [item.text.split("\n")[0] for item in panel.find_elements("css selector", ".legend button")]
        for panel in page.all(".study .plots > .panel")
    ]


def test_a_study_of_copy_modes_has_its_four_plots(page, daemon, study, picture):
    page.go(f"#/experiments/{study}")
    page.wait(lambda: len(headings(page)) == 4, "the four plots")
    rows = daemon.get(f"/experiments/{study}/results")["items"]
    cycles = all(row["cycles_per_byte_sender"] for row in rows)
    unit = "Cycles" if cycles else "CPU time"
    assert headings(page) == [*TITLES, f"{unit} per byte by size, two-copy = 1"]
    lines = legends(page)
    for at in (0, 1, 3):
        assert [line.split(" ")[0] for line in lines[at]] == MODES
    notes = [note.text for note in page.all(".study .plots > .panel > .hint")]
    if not all(row["llc_misses_per_message_sender"] for row in rows):
        assert lines[2] == []
        assert rows[0]["reasons"]["llc_misses_per_message_sender"] in notes[2]
    for at in (2, 3):
        assert "Counted at the server." in notes[at]
    if not cycles:
        assert rows[0]["reasons"]["cycles_per_byte_sender"] in notes[3]
    for name, size, scheme in (
        ("study", (1280, 2600), "light"),
        ("study-dark", (1280, 2600), "dark"),
        ("study-narrow", (390, 4600), "light"),
    ):
        page.size(*size)
        page.media(scheme)
        page.wait(lambda: page.run("return document.documentElement.scrollWidth <= innerWidth"), "nothing to the side")
        picture(name)


def test_lines_follow_the_choice(page, daemon, study):
    page.go(f"#/experiments/{study}")
    page.wait(lambda: len(headings(page)) == 4, "the four plots")
    chosen = page.run("return [...document.querySelectorAll('.study select')].map((select) => select.value)")
    assert chosen == ["2", "65536"]
    page.run(
        "const s = document.getElementById('study-threads'); s.value = 'all'; s.dispatchEvent(new Event('change'))"
    )
    page.wait(lambda: len(legends(page)[0]) == len(MODES) * 2, "a line for each number of threads")
    assert len(legends(page)[1]) == len(MODES)
    page.run(
        "const s = document.getElementById('study-message_size'); s.value = 16384; s.dispatchEvent(new Event('change'))"
    )
    page.wait(lambda: "?study-threads=all&study-message_size=16384" in page.driver.current_url, "the address")
    page.driver.refresh()
    page.wait(lambda: len(headings(page)) == 4, "the four plots after a reload")
    page.wait(lambda: len(legends(page)[0]) == len(MODES) * 2, "the same lines")
    values = "return [...document.querySelectorAll('.study select')].map((select) => select.value)"
    assert page.run(values) == ["all", "16384"]


def test_other_experiments_are_no_study(page, daemon):
    identity = daemon.submit(transport="pipe", message_size=SIZES, messages=50, warmup_seconds=0)
    daemon.wait_done(identity)
    page.go(f"#/experiments/{identity}")
    page.wait(lambda: page.text("#figure h2") == "Throughput by message size", "its chart")
    assert [heading.text for heading in page.all(".plots h3") if heading.text] == []
    assert not page.find(".study").is_displayed()


ROWS = """const statistic = (median) => (median === null ? null : { median, min: median, max: median, ci95: null });
const row = (copy_mode, message_size, threads, cycles, cpu, fields = copy_mode === 'two-copy' ? 1 : 8, runs = 1) => ({
    point: { transport: 'tcp', copy_mode, message_size, threads, fields }, runs,
    cycles_per_byte_sender: statistic(cycles), cpu_ns_per_gigabyte_sender: statistic(cpu),
    llc_misses_per_message_sender: null, throughput_bytes_per_second: statistic(1e9), latency_ns: null,
    reasons: { cycles_per_byte_sender: 'none here', llc_misses_per_message_sender: 'no LLC' } });
const { isStudy, costUnit, countedBy, relativeCost, studyPlots } = await import('/assets/experiment/study.js');
const { missing, plotData } = await import('/assets/chart/plots.js');
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("isStudy([row('two-copy', 1, 1, 1, 1), row('two-copy', 2, 1, 1, 1)])", False),
        ("isStudy([row('two-copy', 1, 1, 1, 1), row('one-copy', 1, 1, 1, 1)])", True),
        ("isStudy([row(undefined, 1, 1, 1, 1), row('one-copy', 1, 1, 1, 1)])", False),
        ("costUnit([row('two-copy', 1, 1, 2, 1)]).field", "cycles_per_byte_sender"),
        ("costUnit([row('two-copy', 1, 1, 2, 1), row('one-copy', 1, 1, null, 1)]).field", "cpu_ns_per_gigabyte_sender"),
        ("costUnit([row('two-copy', 1, 1, null, 1)]).why", "CPU time, as there are no cycles: none here."),
        ("countedBy([row('two-copy', 1, 1, 2, 1)])", ""),
        ("countedBy(['client', 'client'].map((counted_by) => ({ counted_by })))", "Counted at the client."),
        (
            "countedBy(['server', 'client', null].map((counted_by) => ({ counted_by })))",
            "Counted at the end that sends: client or server.",
        ),
        (
            "studyPlots([{ ...row('two-copy', 1, 1, 2, 1), counted_by: 'client' }]).map((plot) => plot.note ?? null)",
            ["", "", "Counted at the client.", "Counted at the client."],
        ),
        # each against two-copy of its own size and threads, whatever else a mode brings with it
        (
            "(() => { const rows = [row('two-copy', 1, 1, 4, 8), row('two-copy', 1, 2, 10, 8),"
            " row('one-copy', 1, 2, 5, 8)];"
            " return rows.map(relativeCost(rows, 'cycles_per_byte_sender')).map((one) => one.median) })()",
            [1, 1, 0.5],
        ),
        (
            "(() => { const rows = [row('two-copy', 1, 1, 4, 8), row('one-copy', 2, 1, 5, 8),"
            " row('zero-copy', 1, 1, null, 8)];"
            " return rows.map(relativeCost(rows, 'cycles_per_byte_sender')).map((one) => one?.median ?? null) })()",
            [1, None, None],
        ),
        ("relativeCost([row('two-copy', 1, 1, 0, 8)], 'cycles_per_byte_sender')(row('one-copy', 1, 1, 1, 8))", None),
        # rows have the cost, and there is none to compare it with; or there is one, which was not measured
        *(
            (f"(() => {{ const rows = {rows}; return missing(rows, studyPlots(rows, {{ threads: 1 }})[3]) }})()", words)
            for rows, words in (
                ("[row('one-copy', 1, 1, 4, 8), row('zero-copy', 1, 1, 4, 8)]", "No two-copy point to compare with."),
                ("[row('two-copy', 1, 2, 4, 8), row('one-copy', 1, 1, 4, 8)]", "No two-copy point to compare with."),
                ("[row('two-copy', 1, 1, null, null), row('one-copy', 1, 1, null, 8)]", "Not measured."),
            )
        ),
        # a line per mode: the number of fields makes none of its own
        (
            "(() => { const rows = [row('two-copy', 1, 1, 4, 8), row('one-copy', 1, 1, 4, 8),"
            " row('one-copy', 1, 2, 4, 8)];"
            " return plotData(rows, studyPlots(rows, { threads: 1 })[0]).series.map((one) => one.label) })()",
            ["two-copy", "one-copy"],
        ),
        # unless it is an axis: then each has its own line, and its own base
        (
            "(() => { const rows = ['two-copy', 'one-copy'].flatMap((mode) =>"
            " [1, 8].map((fields) => row(mode, 1, 1, 4, 8, fields)));"
            " return plotData(rows, studyPlots(rows)[0]).series.map((one) => one.label) })()",
            ["two-copy · 1", "two-copy · 8", "one-copy · 1", "one-copy · 8"],
        ),
        (
            "(() => { const rows = [row('two-copy', 1, 1, 4, 8, 1), row('two-copy', 1, 1, 10, 8, 8),"
            " row('one-copy', 1, 1, 2, 8, 1), row('one-copy', 1, 1, 2, 8, 8)];"
            " return rows.map(relativeCost(rows, 'cycles_per_byte_sender')).map((one) => one.median) })()",
            [1, 1, 0.5, 0.2],
        ),
        # two-copy has no fields where it sends what lies in one place: the base of all
        (
            "(() => { const rows = [row('two-copy', 1, 1, 4, 8), row('one-copy', 1, 1, 2, 8, 1),"
            " row('one-copy', 1, 1, 1, 8, 8)];"
            " return rows.map(relativeCost(rows, 'cycles_per_byte_sender')).map((one) => one.median) })()",
            [1, 0.5, 0.25],
        ),
        # a round trip's figures are others than a stream's, and not in one plot with them
        (
            "(() => { const of = (workload, one) => ({ ...one, point: { workload, ...one.point } });"
            " const rows = ['stream', 'pingpong'].flatMap((workload) => ['two-copy', 'one-copy'].map((mode) =>"
            " of(workload, row(mode, 1, 1, 4, 8))));"
            " return studyPlots(rows).map((plot) => plotData(rows, plot).series.map((one) => one.label)) })()",
            [["two-copy", "one-copy"], [], [], ["two-copy", "one-copy"]],
        ),
        (
            "(() => { const of = (workload, one) => ({ ...one, point: { workload, ...one.point } });"
            " const rows = ['stream', 'pingpong'].flatMap((workload) => ['two-copy', 'one-copy'].map((mode) =>"
            " of(workload, row(mode, 1, 1, 4, 8))));"
            " return studyPlots(rows).map((plot) => plot.note) })()",
            ["Of workload stream only."] * 4,
        ),
        # streams of one mode are no study: the round trips are
        (
            "(() => { const of = (workload, one) => ({ ...one, point: { workload, ...one.point } });"
            " const rows = [of('stream', row('two-copy', 1, 1, 4, 8)), of('pingpong', row('two-copy', 1, 1, 4, 8)),"
            " of('pingpong', row('one-copy', 1, 1, 4, 8))];"
            " return plotData(rows, studyPlots(rows)[0]).series.map((one) => one.label) })()",
            ["two-copy", "one-copy"],
        ),
        # a point that was not measured yet shows nothing about the machine
        (
            "costUnit([row('two-copy', 1, 1, 2, 1), row('one-copy', 1, 1, null, null, 8, 0)]).field",
            "cycles_per_byte_sender",
        ),
    ],
)
def test_what_is_plotted(modules, call, expected):
    assert modules.call(f"{ROWS} return {call}") == expected
