# SPDX-License-Identifier: MIT
"""What stands in the tables of an experiment: places in words, what was varied and nothing else, and on a telephone."""

import base64

import pytest

FORMAT = "const { fieldValue, splitFields } = await import('/assets/format.js'); return "


@pytest.fixture(scope="module", autouse=True)
def begun(daemon):
    """The experiments of the tables below. They are made beside the first tests, which need none of them."""
    return (
        daemon.submit(
            name="Places",
            transport=["pipe", "shm-posix"],
            message_size=[64, 65536],
            placement=[{"sender": {"cpu": 0}, "receiver": {"cpu": 0}}, "default"],
            messages=2000,
            warmup_seconds=0,
            repetitions=2,
        ),
        daemon.submit(
            name="To be sorted",
            workload="pingpong",
            transport=["pipe", "unix-stream"],
            message_size=[64, 4096],
            messages=100,
            warmup_seconds=0,
        ),
    )


@pytest.fixture(scope="module")
def measured(daemon, begun):
    daemon.wait_done(begun[0])
    return begun[0]


@pytest.fixture(scope="module")
def sizes(daemon, begun):
    daemon.wait_done(begun[1])
    return begun[1]


def bind(*nodes):
    return {"policy": "bind", "nodes": list(nodes)}


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        ({"sender": {"cpu": 0}, "receiver": {"cpu": 12}}, "CPU 0 → CPU 12"),
        ({"receiver": {"cpu": 1}, "sender": {"cpu": 0}}, "CPU 0 → CPU 1"),
        (
            {"sender": {"node": 0, "memory": bind(0)}, "receiver": {"node": 1, "memory": bind(1)}},
            "node 0 → node 1",
        ),
        ({"initiator": {"node": 3}, "responder": {"node": 3}}, "node 3 → node 3"),
        ({"server": {"node": 0}, "client": {"node": 1}}, "server node 0; client node 1"),
        ({"sender": {"cpu": 4}}, "sender CPU 4"),
        (
            {"sender": {"cpu": 4, "memory": bind(1)}, "receiver": {"node": 0, "memory": bind(0, 1)}},
            "CPU 4 → node 0, memory on node 1 → on nodes 0, 1",
        ),
        (
            {"initiator": {"cpu": 4, "memory": bind(1)}, "responder": {"cpu": 2, "memory": bind(1)}},
            "CPU 4 → CPU 2, memory on node 1",
        ),
        (
            {"sender": {"node": 0, "memory": bind(0), "buffer": {"node": 1}}, "receiver": {"node": 1}},
            "node 0, buffer on node 1 → node 1",
        ),
        (
            {"sender": {"cpu": 0, "memory": bind(0)}, "receiver": {"cpu": 1}},
            "CPU 0, memory on node 0 → CPU 1",
        ),
        (
            {"sender": {"memory": {"policy": "interleave", "nodes": [0, 1]}, "buffer": {"node": 1}}},
            "sender memory interleaved on nodes 0, 1, buffer on node 1",
        ),
        ({"sender": {"memory": {"policy": "local"}}}, "sender memory local"),
        ({"sender": {"cpu": 0}, "require": {"numa_balancing": False}}, "sender CPU 0, numa_balancing off"),
        ("same-core", "same-core"),
    ],
)
def test_placements_are_words(modules, placement, expected):
    assert modules.call(f"{FORMAT} fieldValue('placement', args[0])", placement) == expected


def test_requirements_of_any_depth_are_words(modules):
    require = {"build": {"commit": "4ab1c0de", "version": "1"}, "smt": False, "swappiness": 60}
    shown = modules.call(f"{FORMAT} fieldValue('require', args[0])", require)
    assert shown == "build.commit 4ab1c0de, build.version 1, smt off, swappiness 60"


@pytest.mark.parametrize(
    ("points", "varying"),
    [
        ([{"transport": "pipe", "threads": 1}, {"transport": "fifo", "threads": 1}], ["transport"]),
        # a ring has neither, and nobody varied them
        (
            [
                {"transport": "pipe", "copy_mode": "two-copy", "engine": "syscall"},
                {"transport": "shm-posix", "wait": "block"},
            ],
            ["transport"],
        ),
        # varied where there is a choice
        (
            [
                {"transport": "pipe", "engine": "syscall"},
                {"transport": "pipe", "engine": "io_uring"},
                {"transport": "shm-posix"},
            ],
            ["engine", "transport"],
        ),
        # the only field that distinguishes them
        ([{"transport": "pipe"}, {"transport": "pipe", "rate": 1000}], ["rate"]),
    ],
)
def test_what_nobody_varied_is_no_column(modules, points, varying):
    split = modules.call(f"{FORMAT} splitFields(args[0])", points)
    assert sorted(split["varying"]) == varying
    assert sorted(split["varying"] + split["common"]) == sorted({field for point in points for field in point})


def show(page, experiment):
    page.go(f"#/experiments/{experiment}")
    page.wait(
        lambda: page.drawn() and page.all("#figure .mark") and page.all("#results tbody tr"), "charts and results"
    )


def test_the_table_has_what_was_varied_and_the_caption_the_rest(page, measured):
    show(page, measured)
    heads = page.run("return [...document.querySelectorAll('#results th')].map((head) => head.firstChild.textContent)")
    assert sorted(heads[: heads.index("Runs")]) == ["Message", "Placement", "Transport"]
    caption = page.text("#results-caption")
    for words in ("workload stream", "threads 1", "copy mode two-copy where it applies", "wait block where it applies"):
        assert words in caption
    cells = [cell.text for cell in page.all("#results td")]
    assert "CPU 0 → CPU 0" in cells and not any("{" in cell for cell in cells)


def test_figures_are_seen_on_a_telephone(page, measured, picture):
    page.size(360, 800)
    show(page, measured)
    script = """const row = document.querySelector('#results tbody tr');
        row.scrollIntoView();
        return [...row.cells].map((cell) => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            const { left, right } = range.getBoundingClientRect();
            return [cell.dataset.title, left, right, cell.innerText];
        })"""
    cells = page.run(script)
    titles = {title for title, *_ in cells}
    assert {"Message", "Throughput, MB/s", "min – max, MB/s", "Messages, /s"} <= titles
    assert [cell for cell in cells if cell[1] < 0 or cell[2] > 360] == []
    picture("results-360")


PRINTED = """window.printed = null;
    addEventListener('beforeprint', () => queueMicrotask(() => (window.printed =
        [...document.querySelectorAll('.chart .canvas canvas')].map((canvas) => canvas.clientWidth))));"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_print_cuts_no_chart(page, measured, scheme, pictures):
    """A sheet is 718 pixels wide between its margins; what was drawn for a wide screen does not fit on it."""
    page.size(1920, 1080)
    page.media(scheme)
    show(page, measured)
    before = page.run("return [...document.querySelectorAll('.chart .canvas canvas')].map((c) => c.clientWidth)")
    assert max(before) > 718
    page.run(PRINTED)
    pdf = page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    (pictures / f"print-{scheme}.pdf").write_bytes(base64.b64decode(pdf))
    widths = page.wait(lambda: page.run("return window.printed"), "the print")
    assert len(widths) == len(before) and max(widths) <= 680
    # and the screen has its own again
    page.wait(
        lambda: (
            page.run("return [...document.querySelectorAll('.chart .canvas canvas')].map((c) => c.clientWidth)")
            == before
        ),
        "the charts as wide as before",
    )
    assert page.run("return document.documentElement.className") == ""


# sorted, narrowed, copied


def columns(page, at):
    return page.run(
        "return [...document.querySelectorAll('#results tr')].map((row) => row.cells[arguments[0]].textContent)", at
    )


def head(page, title):
    return next(one for one in page.all("#results th .sort") if one.text == title)


def test_a_table_is_sorted_and_narrowed_in_the_address(page, sizes):
    page.go(f"#/experiments/{sizes}")
    page.wait(lambda: len(page.all("#results tbody tr")) == 4, "the table")
    head(page, "Message").click()
    assert columns(page, 1) == ["Message", "64 B", "64 B", "4 KiB", "4 KiB"]
    head(page, "Message").click()
    assert columns(page, 1)[1:] == ["4 KiB", "4 KiB", "64 B", "64 B"]
    assert page.find("#results th[aria-sort=descending]").text.startswith("Message")
    page.find(".columns-choice summary").click()
    next(one for one in page.all(".columns-choice label") if one.text.strip() == "Runs").click()
    page.wait(lambda: "Runs" not in [one.text for one in page.all("#results th")], "the column to go")
    assert "sort=-Message" in page.driver.current_url and "without=Runs" in page.driver.current_url
    page.driver.refresh()
    page.wait(lambda: len(page.all("#results tbody tr")) == 4, "the table")
    assert columns(page, 1)[1:] == ["4 KiB", "4 KiB", "64 B", "64 B"]
    assert page.run("return [...document.querySelectorAll('#results th')].every((one) => one.textContent !== 'Runs')")


def test_a_table_is_copied_whole(page, sizes):
    page.go(f"#/experiments/{sizes}?sort=Message")
    page.wait(lambda: len(page.all("#results tbody tr")) == 4, "the table")
    page.run("navigator.clipboard.writeText = async (text) => { (window.copied ??= []).push(text) }")
    for label in ("TSV", "Markdown"):
        next(one for one in page.all(".reader-tools button") if one.text == f"Copy {label}").click()
    page.wait(lambda: page.run("return window.copied?.length") == 2, "both copies")
    tsv, markdown = ([line for line in text.split("\n")] for text in page.run("return copied"))
    assert tsv[0].split("\t")[:4] == ["Transport", "Message", "Runs", "Throughput (MB/s)"]
    assert [line.split("\t")[1] for line in tsv[1:]] == ["64 B", "64 B", "4 KiB", "4 KiB"]
    assert markdown[1].startswith("| --- | ---: | --- |") or markdown[1].startswith("| --- | ---: | ---: |")
    assert len(markdown) == 6 and markdown[2].startswith("| pipe | 64 B | 1 |")


def test_the_first_column_stays_in_sight(page, sizes):
    page.size(700, 900)
    page.go(f"#/experiments/{sizes}")
    page.wait(lambda: len(page.all("#results tbody tr")) == 4, "the table")
    script = """const box = document.querySelector('#results .table');
        const cell = box.querySelector('tbody td');
        const before = cell.getBoundingClientRect().left;
        box.scrollLeft = 200;
        return [box.scrollLeft, before, cell.getBoundingClientRect().left]"""
    scrolled, before, after = page.run(script)
    assert scrolled > 50 and abs(before - after) <= 21, (scrolled, before, after)
