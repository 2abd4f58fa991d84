# SPDX-License-Identifier: MIT
"""What stands in the tables of an experiment: places in words, what was varied and nothing else, and on a telephone."""

import base64

import pytest
from page import Page

FORMAT = "const { fieldValue, splitFields } = await import('/assets/format.js'); return "


@pytest.fixture(scope="module")
def modules(driver, daemon):
    page = Page(driver, daemon.url)
    page.reset()
    return page


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
            "CPU 4, memory on node 1 → node 0, memory on nodes 0, 1",
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
        # all that tells them apart
        ([{"transport": "pipe"}, {"transport": "pipe", "rate": 1000}], ["rate"]),
    ],
)
def test_what_nobody_varied_is_no_column(modules, points, varying):
    split = modules.call(f"{FORMAT} splitFields(args[0])", points)
    assert sorted(split["varying"]) == varying
    assert sorted(split["varying"] + split["common"]) == sorted({field for point in points for field in point})


@pytest.fixture(scope="module")
def measured(daemon):
    identity = daemon.submit(
        name="Places",
        transport=["pipe", "shm-posix"],
        message_size=[64, 4096, 65536],
        placement=[{"sender": {"cpu": 0}, "receiver": {"cpu": 0}}, "default"],
        messages=2000,
        warmup_seconds=0,
        repetitions=2,
    )
    experiment = daemon.wait(identity)
    failed = [run["error"] for run in daemon.get(f"/experiments/{identity}/runs")["items"] if run["error"]]
    assert experiment["state"] == "done", failed
    return identity


def show(page, experiment):
    page.go(f"#/experiments/{experiment}")
    page.wait(lambda: page.drawn("Throughput by") and page.all("#results tbody tr"), "charts and results")


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
