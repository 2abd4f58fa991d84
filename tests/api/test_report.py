# SPDX-License-Identifier: MIT
"""The report of experiments that are larger than a report may be, and of texts that are made to break out of it."""

import html
import json
import re

import pytest
from conftest import TIMED
from ipclabtest.daemon import Daemon
from stored import Stored

BYTES_MAX = 1_000_000
HOSTILE = "</script><script>alert(1)</script><!--ipclab:data--><b title=\"x' onclick='\">&amp;"


@pytest.fixture(scope="module")
def known():
    """A daemon, and the ids of an experiment of 1500 points and of one with hostile texts."""
    daemon = Daemon()
    daemon.start()
    real = daemon.client().wait_final(daemon.client().post(TIMED | {"seed": 1, "name": HOSTILE})["id"])
    assert real["state"] == "done", daemon.log_tail()
    assert daemon.stop() == 0
    stored = Stored(daemon.state / "ipclab.db")
    wide = stored.widen(real["id"], 1500, 2, lambda point, repetition, result: None)
    stored.db.execute("UPDATE runs SET error = ?, flags = ?", (HOSTILE, json.dumps([HOSTILE])))
    stored.close()
    daemon.start()
    yield daemon, {"wide": wide, "hostile": real["id"]}
    assert daemon.stop() == 0, daemon.log_tail()
    daemon.remove()


def report_of(known, name):
    daemon, ids = known
    answer = daemon.client().request("GET", f"/experiments/{ids[name]}/report")
    assert answer.status == 200, answer.body
    return answer.body.decode()


def data_of(text):
    (data,) = re.findall(r'<script type="application/json" id="report-data">(.*?)</script>', text, re.DOTALL)
    return json.loads(data)


def test_a_report_stays_within_its_bytes_and_names_what_it_left_out(known):
    text = report_of(known, "wide")
    assert len(text.encode()) <= BYTES_MAX
    data = data_of(text)
    drawn = len(data["results"]["items"])
    (table,) = re.findall(r"<tbody>(.*?)</tbody>", text[text.index('id="results-title"') :], re.DOTALL)[:1]
    listed = table.count("<tr")
    assert 100 < drawn <= listed <= 400
    assert f"The first {listed} points are here" in text and f"The charts have the first {drawn}." in text
    assert [row["point"]["message_size"] for row in data["results"]["items"]] == list(range(1, drawn + 1))


def test_no_text_of_an_experiment_is_markup(known):
    text = report_of(known, "hostile")
    assert len(re.findall(r"<script", text)) == 2 and len(re.findall(r"</script", text)) == 2
    assert "<b title" not in text and "<b " not in text and "<!--" not in text
    assert data_of(text)["experiment"]["name"] == HOSTILE
    assert data_of(text)["results"]["items"][0]["flags"] == [HOSTILE]
    (heading,) = re.findall(r"<h1>(.*?)</h1>", text, re.DOTALL)
    assert "<" not in heading and '"' not in heading and html.unescape(heading) == HOSTILE


def test_a_field_that_nobody_varied_is_no_column(known):
    """Also where only some mechanisms have it: copy modes and waiting are in the words above the table."""
    client = known[0].client()
    spec = {"transport": ["pipe", "shm-posix", "msgq-posix"], "messages": 50, "warmup_seconds": 0}
    identity = client.post(spec | {"message_size": [64, 512]})["id"]
    assert client.wait_final(identity)["state"] == "done"
    text = client.request("GET", f"/experiments/{identity}/report").body.decode()
    results = text[text.index('id="results-title"') :]
    head = re.sub(r"<[^>]+>", " ", re.search(r"<thead>(.*?)</thead>", results, re.DOTALL)[1]).split()
    assert head[:4] == ["transport", "message", "size", "bytes"] and head[4] == "runs"
    caption = re.sub(r"<[^>]+>", "", re.search(r"Of all points: (.*?)</p>", results, re.DOTALL)[1])
    assert "copy mode two-copy where it applies" in caption and "wait block where it applies" in caption
    assert "threads 1," in caption


def test_its_first_rows_have_their_whole_curves(known):
    """The others are drawn from four percentiles, and none is left out for it."""
    client = known[0].client()
    sizes = list(range(1, 13))
    spec = {"workload": "pingpong", "messages": 500, "warmup_seconds": 0, "repetitions": 1, "message_size": sizes}
    identity = client.post(spec)["id"]
    assert client.wait_final(identity)["state"] == "done"
    rows = data_of(client.request("GET", f"/experiments/{identity}/report").body.decode())["results"]["items"]
    whole = client.get(f"/experiments/{identity}/results?histogram=1")["items"]
    assert ["latency_histogram" in row for row in rows] == [size <= 10 for size in sizes]
    for row, expected in list(zip(rows, whole, strict=True))[:10]:
        assert row["latency_histogram"]["percentiles"] == expected["latency_histogram"]["percentiles"]
        assert len(row["latency_histogram"]["percentiles"]) > 20


def test_a_report_is_html_or_nothing(known):
    daemon, ids = known
    client = daemon.client()
    target = f"/experiments/{ids['hostile']}/report"
    assert client.request("GET", target, headers={"Accept": "application/json"}).status == 406
    assert client.request("GET", f"{target}?columns=all").status == 400
    assert client.request("GET", "/experiments/999999/report").status == 404


def test_without_the_document_there_is_no_report(known, tmp_path):
    daemon, ids = known
    other = Daemon(web=tmp_path)
    try:
        other.start()
        identity = other.client().post(TIMED)["id"]
        answer = other.client().request("GET", f"/experiments/{identity}/report")
        assert answer.status == 503 and "report.html" in answer.json["detail"] and "--web-dir" in answer.json["detail"]
    finally:
        other.remove()
