# SPDX-License-Identifier: MIT
"""The fleet's report: one file without a network or a script, true to the base, for hostile names, too."""

import base64
import hashlib
import json
import re
import statistics
import uuid
from html.parser import HTMLParser

import pytest
from conftest import export_here, fleet
from filled import POINTS, fill
from synthetic import SyntheticStore

HOSTILE = "</script><script>broken = 1</script><!-- <b onclick='x' \"> & \u2028"


class Document(HTMLParser):
    """What a browser would load or run, the elements, and the text."""

    def __init__(self, path):
        super().__init__()
        self.text, self.tags, self.attributes, self.scripts, self.styles, self.inside = "", [], [], [], [], []
        self.source = path.read_text()
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attributes]
        if tag in ("script", "style"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if self.inside and tag == self.inside[-1]:
            self.inside.pop()

    def handle_data(self, data):
        if self.inside:
            (self.scripts if self.inside[-1] == "script" else self.styles).append(data)
        else:
            self.text += data

    @property
    def figures(self):
        (text,) = self.scripts
        return json.loads(text)


@pytest.fixture
def report(dsn, tmp_path):
    def make(*more):
        path = tmp_path / "report.html"
        assert fleet("report", path, *more, "--database", dsn) == f"{path}: {path.stat().st_size} bytes\n"
        assert [one.name for one in tmp_path.glob("report*")] == ["report.html"]
        return Document(path)

    return make


def test_it_stands_alone(report, base):
    fill(base, hosts=12, runs=24)
    document = report()
    assert [value for _, name, value in document.attributes if name in ("src", "href", "srcset", "data", "style")] == []
    assert not [name for _, name, _ in document.attributes if name.startswith("on")]
    assert [kind for tag, name, kind in document.attributes if (tag, name) == ("script", "type")] == [
        "application/json"
    ]
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(document.tags)
    (style,) = document.styles
    assert "url(" not in style and "@import" not in style
    policy = next(value for tag, name, value in document.attributes if name == "content" and "default-src" in value)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'"
    assert document.tags.count("svg") == 4 * len(POINTS) == document.tags.count("figure")


def test_a_thousand_hosts_of_twelve_points(report, base):
    fill(base, hosts=1000, runs=36)
    document = report()
    assert len(document.source.encode()) <= 1_000_000
    (one,) = document.figures["classes"]
    assert len(one["hosts"]) == 1000 and len(one["figures"]) == 48 and len(one["odd"]) >= 19
    assert all(len(figure["percent"]) == 1000 for figure in one["figures"])
    for host in one["odd"]:
        assert f'<h4 class="odd">{host["host"]}</h4>' in document.source
    # a dot for each host: a column has as many as its length has steps
    for path in re.findall(r'<path class="dots"[^>]*>', document.source):
        step = float(re.search(r'dasharray="0.01 ([0-9.]+)"', path)[1]) + 0.01
        lengths = [float(length) for length in re.findall(r"v-([0-9.]+)", path)]
        assert sum(round((length - 0.1) / step) + 1 for length in lengths) == pytest.approx(1000, abs=20)


def test_the_figures_are_the_bases(report, base):
    fill(base, hosts=10, runs=24, classes=2)
    document = report()
    data = document.figures
    assert data["schema_version"] == 1 and data["campaign"] is None and not data["mixed"]
    assert sorted(map(str, data["points"])) == sorted(map(str, (dict(sorted(point.items())) for point in POINTS)))
    assert {len(one["hosts"]) for one in data["classes"]} == {5} and len(data["classes"]) == 2
    for one in data["classes"]:
        for figure in one["figures"]:
            point = json.dumps(data["points"][figure["point"]], sort_keys=True, separators=(",", ":"))
            rows = dict(
                base.execute(
                    "SELECT host, exp(median_log) FROM host_points JOIN stores USING (store) JOIN points USING (point) "
                    "WHERE spec::text = %s AND figure = %s AND host = ANY(%s)",
                    (point, figure["figure"], one["hosts"]),
                )
            )
            assert figure["median"] == pytest.approx(statistics.median(rows.values()), rel=1e-5)
            for host, percent in zip(one["hosts"], figure["percent"], strict=True):
                assert rows[host] / figure["median"] - 1 == pytest.approx(percent / 100, abs=1e-4)
    assert "Example 0, 64 CPUs" in document.text and "Example 1, 64 CPUs" in document.text


def test_classes_are_mixed_only_when_told_to(report, base):
    fill(base, hosts=12, runs=24, classes=2)
    apart, mixed = report(), report("--mix")
    assert apart.tags.count("svg") == 2 * mixed.tags.count("svg") == 8 * len(POINTS)
    assert mixed.figures["mixed"] and "Charts mix hardware classes" in mixed.text
    assert "mix" not in apart.text and not apart.figures["mixed"]
    labels = [value for tag, name, value in mixed.attributes if (tag, name) == ("svg", "aria-label")]
    assert labels and all(": 12 hosts from" in label for label in labels)


def test_hostile_names(report, dsn, tmp_path):
    """The names of hosts, campaigns, settings and points."""
    name, points = str(uuid.uuid4()), [{"transport": HOSTILE, "message_size": size} for size in (1, 2)]
    (tmp_path / "spec").write_text("{}")
    (tmp_path / "hosts").write_text("host0\n")
    fleet("create", tmp_path / "spec", tmp_path / "hosts", "--id", name, "--name", HOSTILE, "--database", dsn)
    for i in range(7):
        store = SyntheticStore(tmp_path / f"s{i}", seed=i, host=f"{HOSTILE}{i}")
        store.facts.update(cpu_model=HOSTILE, governor=HOSTILE if i == 3 else "performance")
        level = 1e6 if i == 3 else 1e9
        store.measure(
            points,
            5,
            key=f"{name}/host{i}",
            throughput=lambda point, store=store, level=level: level * store.random.lognormvariate(0, 0.01),
        )
        export_here(dsn, store)
        store.close()
    for document in (report(), report("--campaign", name)):
        assert len(document.scripts) == 1 and document.tags.count("script") == 1 and "b" not in document.tags
        assert not [attribute for attribute in document.attributes if attribute[1] == "onclick"]
        ((odd,),) = [one["odd"] for one in document.figures["classes"]]
        assert document.text.count(HOSTILE) >= 5 and document.figures["points"][0]["transport"] == HOSTILE
        if document.figures["campaign"]:
            assert odd["host"] == "host3" and f"Campaign {HOSTILE}:" in document.text
        else:
            assert odd["host"] == f"{HOSTILE}3" and ["governor", HOSTILE, "performance", 6, 6] in odd["differs"]


def test_what_arrived(report, dsn, tmp_path):
    name = str(uuid.uuid4())
    (tmp_path / "spec").write_text("{}")
    (tmp_path / "hosts").write_text("a\nb\nc\n")
    fleet("create", tmp_path / "spec", tmp_path / "hosts", "--id", name, "--name", "a rack", "--database", dsn)
    empty = report("--campaign", name)
    assert "Campaign a rack: 0 of 3 hosts are complete; 0 of 0 runs" in empty.text
    store = SyntheticStore(tmp_path / "a", host="a")
    store.measure([{"transport": "pipe"}], 5, key=f"{name}/a")
    store.add([{"transport": "pipe"}], 4, key=f"{name}/b")
    export_here(dsn, store)
    store.close()
    document = report("--campaign", name)
    assert "Campaign a rack: 1 of 3 hosts are complete; 5 of 9 runs" in document.text
    assert re.search(r"<tr><td>b</td><td>queued</td><td[^>]*>0/4</td>", document.source)
    assert "<td>c</td><td>not received</td>" in document.source
    assert "undecided, 1 hosts; 5 are the fewest" in document.text
    assert re.search("a rack.*1.*3.*5.*9", report().text)


def test_where_it_cannot_be_written(dsn, tmp_path):
    path = tmp_path / "none" / "report.html"
    assert f"{path}: No such file or directory" in fleet("report", path, "--database", dsn, status=1)
    assert "there is no campaign" in fleet("report", path, "--campaign", uuid.uuid4(), "--database", dsn, status=1)
