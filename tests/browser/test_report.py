# SPDX-License-Identifier: MIT
"""The report: one file with findings, charts, tables, proof and spec, which needs neither a network nor a script."""

import base64
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from axe import violations
from ipclabtest import PATIENCE_SECONDS, SOURCE
from ipclabtest.client import Client
from page import SCREENS, Page

HOSTILE = "</script><script>window.broken = 1</script><!--ipclab:data--><b onclick='x' \"> & \u2028 <!--"
REPORT_BYTES_MAX = 1_000_000


TEN = ["pipe", "fifo", "unix-stream", "unix-dgram", "tcp", "shm-posix", "msgq-posix", "msgq-sysv", "memfd", "mmap-file"]
SPECS = {
    "measured": {
        "name": HOSTILE,
        "workload": "pingpong",
        "transport": ["pipe", "unix-stream"],
        "message_size": [64, 4096],
        "placement": ["default", {"initiator": {"cpu": 0}, "responder": {"cpu": 0}}],
        "repetitions": 4,
        "messages": 300,
    },
    # more points than a sheet of paper has lines for, with names that wrap
    "wide": {
        "name": "Many points of many transports, whose names are long enough to need a second line on a narrow screen",
        "transport": ["pipe", "fifo", "unix-stream", "unix-seqpacket"],
        "message_size": [2**power for power in range(6, 18)],
        "messages": 50,
    },
    # mechanisms and workloads of which each has settings that the others lack
    "mixed": {
        "name": "Six mechanisms both ways",
        "workload": ["stream", "pingpong"],
        "transport": ["pipe", "fifo", "unix-stream", "tcp", "shm-posix", "msgq-posix"],
        "message_size": [64, 1024, 4096, 65536],
        "messages": 50,
    },
    # a ranking of twenty rows, which is high, and findings that name them all
    "ranked": {
        "name": "Which mechanism?",
        "workload": ["stream", "pingpong"],
        "transport": TEN,
        "repetitions": 4,
        "messages": 50,
    },
}


@pytest.fixture(scope="module")
def finished(daemon):
    """The experiment of a name in SPECS, done. All are posted at once, so that the later ones run beside the tests of
    the first."""
    ids = {name: daemon.submit(warmup_seconds=0, **spec) for name, spec in SPECS.items()}

    def wait(name):
        daemon.wait_done(ids[name])
        return ids[name]

    return wait


@pytest.fixture(scope="module")
def measured(finished):
    return finished("measured")


def report(daemon, experiment):
    return Client(port=daemon.port).request("GET", f"/experiments/{experiment}/report")


@pytest.fixture
def opened(driver, daemon, finished, request, tmp_path):
    """A page that shows the report as a file of its own, without the daemon behind it."""
    path = tmp_path / "report.html"
    path.write_bytes(report(daemon, finished(getattr(request, "param", "measured"))).body)
    page = Page(driver, path.as_uri())
    page.size(1280, 1000)
    page.media()
    driver.get("about:blank")
    driver.get_log("browser")
    driver.get(page.url)
    page.wait(lambda: len(page.all("#charts svg.plot .mark")) > 0, "the charts")
    yield page
    complaints = page.complaints()
    page.close()
    assert complaints == []


class Text(HTMLParser):
    """What a browser makes of the document where it runs no script: elements and their text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.scripts, self.cells, self.headings, self.attributes = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.attributes += [(tag, *one) for one in attributes]
        if tag in ("meta", "link", "br"):
            return
        self.open.append(tag)
        texts = {"script": self.scripts, "td": self.cells, "h1": self.headings, "h2": self.headings}.get(tag)
        if texts is not None:
            texts.append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        for tag, texts in (("script", self.scripts), ("td", self.cells), ("h1", self.headings), ("h2", self.headings)):
            if tag in self.open:
                texts[-1] += data


def test_it_is_one_file_that_names_no_other(daemon, measured):
    answer = report(daemon, measured)
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert f'filename="ipclab-{measured}.html"' in answer.headers["Content-Disposition"]
    text = answer.body.decode()
    assert 40_000 < len(answer.body) <= REPORT_BYTES_MAX
    document = Text(text)
    loads = [one for one in document.attributes if one[1] in ("src", "href", "srcset", "action", "style")]
    assert loads == [("link", "href", "data:,")]
    assert not [one for one in document.attributes if one[1].startswith("on")]
    assert "<!--ipclab:" not in re.sub(r"(?s)<script.*?</script>", "", text) and "<!--build:" not in text


def test_a_hostile_name_is_text_and_nothing_more(daemon, measured, opened):
    document = Text(report(daemon, measured).body.decode())
    assert document.headings[0] == HOSTILE
    assert len(document.scripts) == 2  # the data, and the build's
    assert json.loads(document.scripts[0])["experiment"]["name"] == HOSTILE
    assert opened.text("h1") == " ".join(HOSTILE.split())
    assert opened.run("return window.broken ?? null") is None
    assert json.loads(opened.text("#spec"))["name"] == HOSTILE


def test_the_figures_are_inside_as_the_api_has_them(daemon, measured):
    data = json.loads(Text(report(daemon, measured).body.decode()).scripts[0])
    rows = daemon.get(f"/experiments/{measured}/results")["items"]
    assert len(data["results"]["items"]) == len(rows) == 8
    for ours, row in zip(data["results"]["items"], rows, strict=True):
        assert ours["point"] == row["point"] and ours["flags"] == row["flags"]
        for name in ("throughput_bytes_per_second", "messages_per_second", "cpu_ns_per_message"):
            assert ours.get(name) == row[name]
        assert ours["latency_ns"] == row["latency_ns"]
    runs = daemon.get(f"/experiments/{measured}/runs")["items"]
    assert [one["point"] for one in data["runs"]["items"]] == [run["point"] for run in runs]
    for ours, run in zip(data["runs"]["items"], runs, strict=True):
        wanted = run["result"]["throughput_bytes_per_second"]
        assert ours["result"]["throughput_bytes_per_second"] == wanted
        assert ours["result"]["latency_ns"]["p99"] == run["result"]["latency_ns"]["p99"]
    of_results = {"provenance": data["results"]["provenance"]}
    assert data["findings"] | of_results == daemon.get(f"/experiments/{measured}/findings")


def test_its_tables_need_no_script(daemon, measured):
    document = Text(report(daemon, measured).body.decode())
    assert document.headings[1:] == [
        "What it shows",
        "Results",
        "Method",
        "Proof of placement",
        "Environment, before the first run",
        "To repeat it",
    ]
    rows = daemon.get(f"/experiments/{measured}/results")["items"]
    cells = " | ".join(document.cells)
    for row in rows:
        microseconds = row["latency_ns"]["p50"]["median"] / 1e3
        assert re.search(rf"\b{re.escape(f'{microseconds:.4g}')}", cells), microseconds
    assert "initiator CPU 0; responder CPU 0" in document.cells
    environment = daemon.get("/environment")
    text = report(daemon, measured).body.decode()
    assert environment["kernel_release"] in text and environment["hostname"] in text


def test_its_charts_are_the_experiments(opened):
    shown = "return [...document.querySelectorAll('#charts section')].map((one) => one.querySelector('h2').textContent)"
    assert opened.run(shown) == [
        "Latency, round trip: p50 by message size",
        "Latency by percentile, round trip at message 4 KiB",
    ]


def test_a_picture_saved_from_it_names_the_host_of_its_runs(daemon, measured, opened):
    words = " ".join(re.findall(r">([^<>]+)</text>", opened.saved("SVG", "#figure")))
    provenance = daemon.get(f"/experiments/{measured}/results")["provenance"]
    assert f"host {provenance['host']} · kernel {provenance['kernel']} · ipclab {provenance['version']}" in words


def test_the_switches_of_its_first_chart_work_from_a_file(opened):
    opened.run(
        """const s = document.getElementById('figure-scale'); s.value = 'linear';
        s.dispatchEvent(new Event('change', { bubbles: true }))"""
    )
    opened.wait(lambda: opened.driver.current_url.endswith("#?scale=linear"), "the choice in the address")
    assert opened.run("return document.querySelectorAll('#second select').length") == 0


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_it_fits_every_screen(opened, pictures, scheme, width):
    opened.size(width, 2600)
    opened.media(scheme)
    opened.wait(lambda: opened.run("return document.documentElement.scrollWidth <= innerWidth"), "nothing to the side")
    shot = opened.driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
    (pictures / f"report-{width}-{scheme}.png").write_bytes(base64.b64decode(shot))
    assert violations(opened) == []


def pages_of(page, path):
    pdf = page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})["data"]
    path.write_bytes(base64.b64decode(pdf))
    return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(pdf)))


@pytest.mark.parametrize("opened", SPECS, indirect=True)
def test_it_prints_on_two_pages(opened, pictures, request):
    assert pages_of(opened, pictures / f"{request.node.name}.pdf") == 2


def test_served_by_the_daemon_it_has_an_origin_of_its_own(page, daemon, measured):
    page.go(f"#/experiments/{measured}")
    page.wait_for("#report").click()
    page.wait(lambda: page.all("#charts svg.plot .mark"), "the charts")
    assert page.driver.current_url == f"{daemon.url}/experiments/{measured}/report"
    reach = "try { return String(sessionStorage.length) } catch (error) { return error.name }"
    assert page.run(reach) == "SecurityError"
    assert page.run("return window.origin") == "null"
    policy = report(daemon, measured).headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "sandbox allow-scripts" in policy and "allow-same-origin" not in policy


def test_the_command_line_saves_it(daemon, measured, tmp_path):
    path = tmp_path / "out.html"
    command = [sys.executable, SOURCE / "cli/ipclab", "--socket", daemon.socket, "report", str(measured), "-o", path]
    subprocess.run(command, check=True, timeout=PATIENCE_SECONDS)
    assert path.read_bytes() == report(daemon, measured).body


def test_of_none_there_is_none(daemon):
    assert report(daemon, 999999).status == 404
