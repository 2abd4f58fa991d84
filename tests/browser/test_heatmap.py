# SPDX-License-Identifier: MIT
"""The map of pairs: nodes by nodes and CPUs by CPUs of a recorded machine of eight nodes, of a guest of four in which
they were measured (recorded by tests/vm/record.py), and of this one."""

import gzip
import json
import os
from pathlib import Path

import pytest
from answers import Answers
from axe import violations
from documents import experiment
from ipclabtest import PATIENCE_SECONDS
from machines import topology
from page import SCREENS
from selenium.webdriver.common.keys import Keys
from test_access import contrast

MACHINE = topology("eight-nodes")
GIVEN = 900001  # of an experiment that no daemon has
RUNS = 910000  # where the ids of its runs begin
GUEST = json.loads(gzip.decompress((Path(__file__).parent / "data/four-nodes.json.gz").read_bytes()))


def statistic(median):
    return {"n": 3, "median": median, "min": median * 0.9, "max": median * 1.2, "ci95": None, "level": None}


def latency_of(first, second):
    """Nanoseconds between two CPUs of that machine: by what they share."""
    node = {cpu: one["id"] for one in MACHINE["nodes"] for cpu in one["cpus"]}
    if first == second:
        return 900
    return 1500 if node[first] == node[second] else 4000 + 400 * abs(node[first] - node[second])


def row(at, placement, nanoseconds, **point):
    latencies = {name: statistic(nanoseconds * by) for name, by in (("p50", 1), ("p90", 2), ("p99", 4), ("p99_9", 9))}
    common = {"workload": "pingpong", "transport": "pipe", "message_size": 64, "threads": 1}
    return {
        "point": common | point | {"placement": placement},
        "runs": 3,
        "runs_planned": 3,
        "runs_failed": 0,
        "run_ids": [RUNS + 3 * at + k for k in range(3)],
        "throughput_bytes_per_second": statistic(1e9 / nanoseconds * 64),
        "latency_ns": {"kind": "rtt"} | latencies,
        "flags": ["noisy:steal"] if at == 3 else [],
        "error": None,
        "effective": {},
    }


def rows_of(kind, ids, time_of, **point):
    pairs = [(first, second) for first in ids for second in ids]
    return [
        row(at, {"initiator": {kind: first}, "responder": {kind: second}}, time_of(first, second), **point)
        for at, (first, second) in enumerate(pairs)
    ]


NODES = rows_of("node", range(8), lambda a, b: latency_of(2 * a, 2 * b + (a == b)))
CPUS = rows_of("cpu", range(16), latency_of)


@pytest.fixture(scope="module", autouse=True)
def every_pair(daemon):
    """Each CPU with each, of those that the daemon has from this process. They run beside the tests of given rows."""
    spec = {"workload": "pingpong", "message_size": 64, "placement": "all-cpu-pairs", "repetitions": 2, "rate": 1000}
    return daemon.submit(name="Every pair here", duration_seconds=2, warmup_seconds=0, **spec)


@pytest.fixture
def show(driver, unopened):
    """Opens the experiment of these rows on that machine."""
    given = []

    def open_rows(rows, query=""):
        given.append(Answers(driver, {}, **{"/topology": MACHINE}, **experiment(GIVEN, rows=rows)))
        unopened.open(f"#/experiments/{GIVEN}{query}")
        unopened.wait(lambda: unopened.all("#heatmap [role=gridcell]"), "the map")
        return unopened

    yield open_rows
    for one in given:
        one.remove()


def label(page, first, second):
    return page.find(f'#heatmap [data-at="{first}-{second}"]').get_attribute("aria-label")


def opacity(page, first, second):
    return float(page.find(f'#heatmap [data-at="{first}-{second}"] .heat-fill').get_attribute("fill-opacity"))


def places(page, selector="rect.ground"):
    """Left edges of the cells of the first row."""
    script = """return [...document.querySelector('#heatmap [role=row]').querySelectorAll(arguments[0])]
        .map((one) => Number(one.getAttribute('x')))"""
    return page.run(script, selector)


def test_every_pair_of_nodes_has_a_cell(show):
    page = show(NODES)
    assert page.text("#heatmap h2") == "Latency, round trip: p50, node by node"
    assert len(page.all("#heatmap [role=row]")) == 8 and len(page.all("#heatmap [role=gridcell]")) == 64
    assert label(page, 0, 7).startswith("Node 0 → Node 7 · 6.80 µs · min–max 6.12 µs to 8.16 µs · 3 runs")
    assert label(page, 0, 3).endswith("noisy") and not label(page, 0, 2).endswith("noisy")
    assert opacity(page, 0, 0) < opacity(page, 0, 1) < opacity(page, 0, 7) == 1
    assert page.find('#heatmap [data-at="0-7"] text').text == "6.80 µs"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_figure_of_every_cell_is_readable(show, scheme):
    """On each shade from the least to the most: a contrast of 4.5, which axe does not compute of what lies one over the
    other."""
    page = show(rows_of("node", range(8), lambda a, b: 1000 + 100 * (8 * a + b)))
    page.media(scheme)
    script = """const rgb = (one, name) => getComputedStyle(one)[name].match(/\\d+/g).map(Number);
        return [...document.querySelectorAll('#heatmap .cell')].map((cell) => {
            const [ground, heat, words] = ['.ground', '.heat-fill', 'text'].map((one) => cell.querySelector(one));
            const opacity = Number(heat.getAttribute('fill-opacity'));
            const under = rgb(ground, 'fill');
            const mixed = rgb(heat, 'fill').map((one, at) => Math.round(opacity * one + (1 - opacity) * under[at]));
            const hex = (one) => one.map((channel) => channel.toString(16).padStart(2, '0')).join('');
            return [mixed, rgb(words, 'fill')].map((one) => `#${hex(one)}`);
        })"""
    cells = page.run(script)
    assert len(cells) == 64 and min(contrast(*cell) for cell in cells) >= 4.5


def test_cpus_are_grouped_as_they_lie_in_the_machine(show):
    page = show(CPUS)
    assert len(page.all("#heatmap [role=gridcell]")) == 256
    edges = places(page)
    steps = [round(b - a, 2) for a, b in zip(edges, edges[1:], strict=False)]
    assert len(set(steps)) == 2 and all((step == max(steps)) == (at % 2 == 1) for at, step in enumerate(steps))
    words = page.run("return [...document.querySelectorAll('#heatmap .bracket + text')].map((one) => one.textContent)")
    assert {f"node {n}" for n in range(8)} <= set(words)


def test_the_cpus_that_no_run_was_at_are_named(show):
    page = show(rows_of("cpu", [0, 1, 2, 3, 8], latency_of))
    note = page.text("#heatmap > .hint, #heatmap .hint")
    assert "25 of 25 pairs are measured. CPUs 4–7, 9–15 of this machine are not among them." in note
    page = show(NODES)
    assert "64 of 64 pairs are measured. The stronger" in page.text("#heatmap > .hint, #heatmap .hint")


@pytest.mark.parametrize("width", [360, 1280])
def test_labels_of_many_cpus_stand_whole_and_apart(show, unopened, width):
    unopened.size(width, 900)
    page = show(rows_of("cpu", range(0, 1024, 24), lambda a, b: 900 + a + b))
    boxes = page.run("""const of = (one) => {
            const { left, top, right, bottom } = one.getBoundingClientRect();
            return [left, top, right, bottom];
        };
        const plot = document.querySelector('#heatmap svg');
        return [of(plot), [...plot.querySelectorAll(':scope > text')].map(of)]""")
    (left, top, right, bottom), labels = boxes
    assert len(labels) > 20
    assert all(left <= a and top <= b and c <= right and d <= bottom for a, b, c, d in labels)
    for at, (a, b, c, d) in enumerate(labels):
        assert not any(a < g and e < c and b + 2 < h and f < d - 2 for e, f, g, h in labels[at + 1 :]), labels[at]


ORDER = """const { placesOf, borderOf, kindsOf } = await import('/assets/chart/pairs.js');
    const places = placesOf(args[0], args[1], args[2]);
    const borders = places.slice(1).map((place, at) => borderOf(places[at], place));
    return [places.map(({ id }) => id), borders, kindsOf(args[0])]"""


def test_cpus_that_share_a_core_or_a_cache_are_neighbours(page):
    cpus = [
        {"id": id, "package": id % 2, "node": id % 2, "core": id // 4, "siblings": [id]} for id in range(8)
    ]  # a machine that deals its CPUs out to packages and cores in turn
    caches = [{"level": 3, "cpus": [0, 4]}, {"level": 3, "cpus": [2, 6]}, {"level": 3, "cpus": [1, 3, 5, 7]}]
    given = rows_of("cpu", range(8), lambda a, b: 1)
    order, borders, kinds = page.call(ORDER, given, "cpu", {"cpus": cpus, "caches": caches, "nodes": []})
    assert order == [0, 4, 2, 6, 1, 3, 5, 7]
    assert borders == [None, "cache", None, "package", None, None, None]
    assert kinds == ["cpu"]
    few = rows_of("cpu", [0], lambda a, b: 1) + rows_of("node", [0, 1], lambda a, b: 1)
    assert page.call(ORDER, few, "node", {"cpus": cpus, "caches": [], "nodes": []})[2] == ["node"]


def test_what_is_shown_is_chosen_in_the_address(show):
    both = rows_of("node", range(8), lambda a, b: 1000) + rows_of("node", range(8), lambda a, b: 3000, transport="fifo")
    page = show(both, "?figure=throughput")
    assert page.text("#heatmap h2") == "Throughput, node by node at transport pipe"
    page.run(
        """const s = document.getElementById('heatmap-with.transport'); s.value = '"fifo"';
        s.dispatchEvent(new Event('change', { bubbles: true }))"""
    )
    page.wait(lambda: page.text("#heatmap h2").endswith("at transport fifo"), "the other transport")
    assert "throughput" in page.text("#figure h2").lower()
    page.run(
        """const s = document.getElementById('heatmap-figure'); s.value = 'latency';
        s.dispatchEvent(new Event('change', { bubbles: true }))"""
    )
    page.wait(lambda: page.text("#figure h2").startswith("Latency, round trip"), "the large chart with it")
    page.run(
        """const s = document.getElementById('figure-figure'); s.value = 'throughput';
        s.dispatchEvent(new Event('change', { bubbles: true }))"""
    )
    page.wait(lambda: page.text("#heatmap h2").startswith("Throughput"), "the map with the large chart")
    page.driver.refresh()
    page.wait(lambda: (page.text("#heatmap h2") or "").endswith("at transport fifo"), "the same map")
    assert label(page, 2, 5).startswith("Node 2 → Node 5 · 21.3 MB/s")


def focused(page):
    return page.run("return document.activeElement.dataset.at ?? null")


def test_cells_are_reached_by_keys(show):
    page = show(NODES)
    page.tab_to('#heatmap [data-at="0-0"]')
    for key, at in (
        (Keys.ARROW_RIGHT, "0-1"),
        (Keys.ARROW_DOWN, "1-1"),
        (Keys.END, "1-7"),
        (Keys.ARROW_RIGHT, "1-7"),
        (Keys.ARROW_UP, "0-7"),
        (Keys.HOME, "0-0"),
        (Keys.ARROW_UP, "0-0"),
    ):
        page.keys(key)
        assert focused(page) == at
        assert page.text("#heatmap .readout") == label(page, *at.split("-"))
    assert len(page.all("#heatmap [tabindex='0'][role=gridcell]")) == 1
    page.keys(Keys.ARROW_DOWN, Keys.ENTER)
    page.expect_status(404)  # no daemon has its runs
    page.wait(lambda: page.find("#cell").is_displayed(), "the runs beside it")
    assert page.text("#cell h3") == "Node 1 → Node 0" and focused(page) == "1-0"
    assert page.driver.current_url.endswith("cell=1-0")
    page.wait(lambda: page.all("#cell [role=alert]"), "that the run is not there")
    page.keys(Keys.ENTER)
    page.wait(lambda: not page.find("#cell").is_displayed(), "the map alone")


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_map_fits_every_screen(show, picture, scheme, width):
    for name, rows in (("nodes", NODES), ("cpus", CPUS)):
        page = show(rows)
        page.size(width, 1200)
        page.media(scheme)
        fits = "return document.documentElement.scrollWidth <= innerWidth"
        page.wait(lambda page=page, fits=fits: page.run(fits), "nothing to the side")
        page.run("document.getElementById('heatmap').scrollIntoView()")
        picture(f"heatmap-{name}-{width}-{scheme}")
        assert violations(page) == []


@pytest.fixture
def guest(driver, unopened):
    """Opens the experiment of the guest, whose machine is then this one; it has one node without CPUs, one without
    memory."""
    recorded = {target.replace("/experiments/1", f"/experiments/{GIVEN}"): body for target, body in GUEST.items()}
    samples = [one for target, body in GUEST.items() if target.endswith("/samples") for one in body["items"]]
    given = recorded | {f"/experiments/{GIVEN}/samples": {"items": samples, "next": None}}
    given[f"/experiments/{GIVEN}"] = GUEST["/experiments/1"] | {"id": GIVEN}  # the daemon has a 1 of its own
    answers = Answers(driver, {}, **given)

    def open_guest(query):
        unopened.open(f"#/experiments/{GIVEN}{query}")
        unopened.wait(lambda: unopened.all("#heatmap [role=gridcell]"), "the map")
        return unopened

    yield open_guest
    answers.remove()


def medians(kind):
    """The nanoseconds of the guest's pairs, by their nodes or CPUs."""
    rows = [row for row in GUEST["/experiments/1/results"]["items"] if kind in row["point"]["placement"]["initiator"]]
    ends = lambda row: tuple(end[kind] for end in row["point"]["placement"].values())  # noqa: E731
    return {ends(row): row["latency_ns"]["p50"]["median"] for row in rows}


GUEST_MAPS = [("node", "nodes", 3), ("cpu", "CPUs", 6), ("node", "nodes", 3)]  # one for each of SCREENS


@pytest.mark.parametrize(("width", "scheme", "kind", "plural", "places"),
                         [screen + one for screen, one in zip(SCREENS, GUEST_MAPS, strict=True)])  # fmt: skip
def test_the_guest_of_four_nodes_has_a_map(guest, unopened, picture, width, scheme, kind, plural, places):
    unopened.size(width, 1200)
    unopened.media(scheme)
    page = guest(f"?pairs={kind}")
    measured = medians(kind)
    assert len(measured) == len(page.all("#heatmap [role=gridcell]")) == places**2
    longest, shortest = max(measured, key=measured.get), min(measured, key=measured.get)
    assert opacity(page, *shortest) < opacity(page, *longest) == 1
    note = page.text("#heatmap > .hint, #heatmap .hint")
    assert f"{places**2} of {places**2} pairs are measured." in note
    assert ("Node 3 of this machine is not among them." in note) == (kind == "node")
    words = page.run("return [...document.querySelectorAll('#heatmap .bracket + text')].map((one) => one.textContent)")
    assert ({"node 0", "node 1", "node 2"} <= set(words)) == (kind == "cpu")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    page.run("document.getElementById('heatmap').scrollIntoView()")
    picture(f"heatmap-guest-{plural}-{width}-{scheme}")
    assert violations(page) == []


def test_a_press_on_a_pair_of_the_guest_shows_where_its_pages_were(guest, picture):
    page = guest("?pairs=node")
    page.find('#heatmap [data-at="0-1"]').click()
    page.wait(lambda: page.all("#cell .u-over"), "the series")
    page.wait(lambda: page.all("#cell-latency svg .line"), "the latencies")
    proof = page.text("#cell")
    assert "CPU 0–1, node 0, memory bind 0" in proof and "CPU 2–3, node 1, memory bind 1" in proof
    assert "yes: each was where it was to be" in proof and "on node 1" in proof
    page.run("document.getElementById('heatmap').scrollIntoView()")
    picture("heatmap-guest-cell")


@pytest.fixture
def paired(daemon, every_pair):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this process may use one CPU, and so one pair")
    daemon.wait_done(every_pair, 4 * PATIENCE_SECONDS)
    return every_pair


def test_a_press_shows_the_runs_of_a_pair(page, daemon, paired, picture):
    page.size(1280, 1400)
    page.go(f"#/experiments/{paired}")
    sender, receiver = sorted(os.sched_getaffinity(0))[:2]
    page.wait_for(f'#heatmap [data-at="{sender}-{receiver}"]').click()
    page.wait(lambda: page.all("#cell .u-over"), "the series")
    page.wait(lambda: page.all("#cell-latency svg .line"), "the latencies")
    results = daemon.get(f"/experiments/{paired}/results")["items"]
    (wanted,) = [one for one in results if one["point"]["placement"]["responder"]["cpu"] == receiver
                 and one["point"]["placement"]["initiator"]["cpu"] == sender]  # fmt: skip
    options = page.run("return [...document.querySelectorAll('#cell-run option')].map((one) => Number(one.value))")
    assert options == wanted["run_ids"] and len(options) == 2
    runs = {run["id"]: run for run in daemon.get(f"/experiments/{paired}/runs")["items"]}
    assert all(runs[id]["point"] == wanted["point"] for id in options)
    proof = page.text("#cell")
    assert "seen on" in proof and "initiator" in proof and "stack pages" in proof
    picture("heatmap-cell")
    assert violations(page) == []
    page.run(
        """const s = document.getElementById('cell-run'); s.value = String(arguments[0]);
        s.dispatchEvent(new Event('change', { bubbles: true }))""",
        options[1],
    )
    page.wait(lambda: page.run("return document.getElementById('cell-run').value") == str(options[1]), "the other run")
    page.wait(lambda: f"cell-run={options[1]}" in page.driver.current_url, "the address")
    page.driver.refresh()
    page.wait(lambda: page.all("#cell .u-over"), "the series after a reload")
    assert page.find("#cell-run").get_property("value") == str(options[1])
    page.find(f'#heatmap [data-at="{receiver}-{sender}"]').click()
    page.wait(lambda: f"cell={receiver}-{sender}" in page.driver.current_url, "another pair")
    assert "cell-run" not in page.driver.current_url
    page.size(360, 1400)
    page.wait(lambda: page.run("return document.documentElement.scrollWidth <= innerWidth"), "nothing to the side")
    picture("heatmap-cell-360")
