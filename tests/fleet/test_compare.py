# SPDX-License-Identifier: MIT
"""Hosts, campaigns and experiments of the base against each other."""

import json
import math
import uuid

import pytest
from conftest import export_here, fleet
from ipclab_fleet import stats
from synthetic import SyntheticStore

POINTS = [
    {"workload": "stream", "transport": "pipe", "message_size": size, "placement": placement}
    for size in (4096, 65536)
    for placement in ("same-node", "cross-node")
]


class Rack:
    """Synthetic hosts, exported as soon as they have measured."""

    def __init__(self, dsn, path):
        self.dsn, self.path, self.stores = dsn, path, {}

    def measure(self, host, factor=1, runs=8, campaign=None, points=POINTS, blocks=False, **facts):
        """Throughput and latency are that many times better across nodes. Returns the experiment's id."""
        if host not in self.stores:
            self.stores[host] = SyntheticStore(self.path / host, seed=len(self.stores), host=host)
        store = self.stores[host]
        store.facts.update(facts)

        def level(point, sign):
            better = factor if point["placement"] == "cross-node" else 1
            return 1e6 * better**sign * store.random.lognormvariate(0, 0.005)

        experiment = store.measure(
            points,
            runs,
            key=f"{campaign}/{host}" if campaign else None,
            throughput=lambda point: level(point, 1),
            latency=lambda point: level(point, -1),
        )
        block = "repetition" if blocks else "NULL"
        store.db.execute(f"UPDATE runs SET block = {block} WHERE experiment_id = ?", (experiment,))
        export_here(self.dsn, store)
        return experiment

    def compare(self, baseline, candidate, *more):
        return json.loads(fleet("compare", baseline, candidate, "--json", *more, "--database", self.dsn))


@pytest.fixture
def rack(dsn, tmp_path):
    made = Rack(dsn, tmp_path)
    yield made
    for store in made.stores.values():
        store.close()


def verdicts(answer, figure, placement):
    """The verdicts on a figure, each once, at the points of one placement."""
    rows = [row for group in answer["groups"] for row in group["rows"] if row["figure"] == figure]
    return {row["verdict"] for row in rows if json.loads(row["point"])["placement"] == placement}


def test_two_equal_hosts_and_a_slow_one(rack):
    for host, factor in (("a", 1), ("b", 1), ("c", 0.8)):
        rack.measure(host, factor)
    answer = rack.compare("a", "b")
    (group,) = answer["groups"]
    assert (group["comparison"], group["settings"], answer["mixed"]) == (2, [], False)
    assert group["hardware"] == ["Example 9000, 2 CPUs, 64 GiB, kernel 6.1"]
    assert len(group["rows"]) == 12 and {row["verdict"] for row in group["rows"]} == {"equivalent"}
    answer = rack.compare("a", "c")
    for figure in ("throughput", "latency_p50", "latency_p99"):
        assert verdicts(answer, figure, "cross-node") == {"slower"}
        assert verdicts(answer, figure, "same-node") == {"equivalent"}
    assert verdicts(rack.compare("c", "a"), "latency_p99", "cross-node") == {"faster"}
    answer = rack.compare("a", "c", "--figure", "throughput")
    (row,) = [row for row in answer["groups"][0]["rows"] if json.loads(row["point"]) == POINTS[1]]
    assert {row["figure"] for row in answer["groups"][0]["rows"]} == {"throughput"}
    assert row["interval"][0] < row["ratio"] < row["interval"][1] and row["level"] >= 0.95
    assert row["ratio"] == pytest.approx(0.8, rel=0.01)
    assert (row["baseline"], row["candidate"], row["unit"], row["paired"]) == (8, 8, "run", False)
    text = fleet("compare", "a", "c", "--database", rack.dsn)
    assert "c against a\nclass 2, the same model: Example 9000" in text
    assert "12 rows: 0 faster, 6 slower, 6 equivalent, 0 undecided" in text and " slower  throughput of {" in text


def test_the_figures_are_those_of_the_statistics(rack, base):
    rack.measure("a")
    rack.measure("b", 0.97)
    answer = rack.compare("a", "b", "--figure", "throughput")
    pairs = []
    for row in answer["groups"][0]["rows"]:
        sides = [
            [
                math.log(value)
                for (value,) in base.execute(
                    "SELECT throughput FROM own_runs JOIN points USING (point) WHERE host = %s AND spec::text = %s",
                    (host, row["point"]),
                )
            ]
            for host in "ab"
        ]
        pairs.append((*sides, False, True))
    for row, found in zip(answer["groups"][0]["rows"], stats.compare(pairs), strict=True):
        assert (row["ratio"], row["interval"]) == (pytest.approx(found.ratio), pytest.approx(found.interval))
        assert (row["p"], row["p_adjusted"], row["verdict"]) == (found.p, found.p_adjusted, found.verdict)


def test_one_setting_changed_on_the_same_machine(rack):
    """Class 1 by the experiments; with a second setting it is of class 2; a kernel is one setting, too."""
    first = rack.measure("a", numa_balancing=0)
    second = rack.measure("a", 0.9, numa_balancing=1)
    third = rack.measure("a", 0.9, swappiness=10)
    kernel = {"kernel_release": "6.12.1-1-amd64", "kernel_version": "#1 SMP Debian 6.12"}
    fourth = rack.measure("a", 0.9, **kernel)
    answer = rack.compare(f"a/{first}", f"a/{second}")
    (group,) = answer["groups"]
    assert (group["comparison"], group["settings"]) == (1, [["numa_balancing", [0], [1]]])
    assert verdicts(answer, "throughput", "cross-node") == {"slower"}
    text = fleet("compare", f"a/{first}", f"a/{second}", "--database", rack.dsn)
    assert "class 1, the same machines" in text and "numa_balancing: 1; the baseline has 0" in text
    (group,) = rack.compare(f"a/{first}", f"a/{third}")["groups"]
    assert group["comparison"] == 2 and [name for name, *_ in group["settings"]] == ["numa_balancing", "swappiness"]
    (group,) = rack.compare(f"a/{third}", f"a/{fourth}")["groups"]
    assert (group["comparison"], [name for name, *_ in group["settings"]]) == (1, ["kernel_release"])
    assert len(group["hardware"]) == 2


def test_of_the_command_line_what_matters_is_a_setting(rack):
    """A kernel names its image there, and every host its disk: neither makes other machines of them."""
    kernel = {"kernel_release": "6.12.1-1-amd64", "kernel_cmdline": "BOOT_IMAGE=/vmlinuz-6.12 root=UUID=1 isolcpus=1"}
    first = rack.measure("a", kernel_cmdline="BOOT_IMAGE=/vmlinuz-6.1 root=UUID=1 isolcpus=1")
    second = rack.measure("a", **kernel)
    (group,) = rack.compare(f"a/{first}", f"a/{second}")["groups"]
    assert (group["comparison"], [name for name, *_ in group["settings"]]) == (1, ["kernel_release"])
    rack.measure("b", kernel_cmdline="BOOT_IMAGE=/vmlinuz-6.1 root=UUID=2 isolcpus=2 nohz-full=2")
    (group,) = rack.compare(f"a/{first}", "b")["groups"]
    assert group["settings"] == [["kernel_cmdline", ["isolcpus=1"], ["isolcpus=2 nohz-full=2"]]]


def test_blocks_of_one_stores_experiments_are_paired(rack):
    first, second = rack.measure("a", blocks=True), rack.measure("a", 0.9, blocks=True)
    mixed, other = rack.measure("a"), rack.measure("b", blocks=True)
    rows = rack.compare(f"a/{first}", f"a/{second}")["groups"][0]["rows"]
    assert all(row["paired"] for row in rows)
    assert "(8 and 8 runs in pairs)" in fleet("compare", f"a/{first}", f"a/{second}", "--database", rack.dsn)
    for baseline, candidate in ((f"a/{first}", f"a/{mixed}"), (f"a/{first}", f"b/{other}"), ("a", f"a/{first}")):
        rows = rack.compare(baseline, candidate)["groups"][0]["rows"]
        assert not any(row["paired"] for row in rows)


def test_classes_are_mixed_only_when_told_to(rack):
    rack.measure("a")
    rack.measure("z", 0.9, cpu_model="Another 7")
    refused = fleet("compare", "a", "z", "--database", rack.dsn, status=1)
    assert "z against a: class 3, different machines: Another 7, 2 CPUs" in refused and "Example 9000" in refused
    assert "differing: cpu_model" in refused and "--mix" in refused
    answer = rack.compare("a", "z", "--mix")
    (group,) = answer["groups"]
    assert answer["mixed"] and group["comparison"] == 3 and len(group["hardware"]) == 2
    assert verdicts(answer, "throughput", "cross-node") == {"slower"}
    assert "\nMIXED: runs of different hardware classes" in fleet("compare", "a", "z", "--mix", "--database", rack.dsn)


def test_campaigns(rack):
    """Two campaigns over the same rack of two hardware classes: each class for itself. Over other hosts, each host is
    one value."""
    names = [str(uuid.uuid4()) for _ in range(3)]
    for name, factor in zip(names[:2], (1, 0.9), strict=True):
        for host in ("a", "b", "y", "z"):
            model = "Another 7" if host in "yz" else "Example 9000"
            rack.measure(host, factor, runs=4, campaign=name, cpu_model=model)
    answer = rack.compare(*names[:2])
    assert [group["hardware"][0].partition(",")[0] for group in answer["groups"]] in (
        ["Another 7", "Example 9000"],
        ["Example 9000", "Another 7"],
    )
    assert not answer["mixed"] and verdicts(answer, "throughput", "cross-node") == {"slower"}
    assert {row["candidate"] for group in answer["groups"] for row in group["rows"]} == {8}
    (group,) = rack.compare(*names[:2], "--mix")["groups"]
    assert len(group["hardware"]) == 2 and {row["candidate"] for row in group["rows"]} == {16}
    for host in "cdefgh":
        rack.measure(host, 0.9, runs=4, campaign=names[2])
    answer = rack.compare(names[0], names[2])
    (group,) = answer["groups"]
    assert answer["left_out"] == ["y", "z"] and group["comparison"] == 2
    assert {(row["unit"], row["baseline"], row["candidate"]) for row in group["rows"]} == {("host", 2, 6)}
    text = fleet("compare", names[0], names[2], "--database", rack.dsn)
    assert "left out, as the other side has none of their class: y, z" in text and "c, d, e, f, g and 1 more" in text


def test_the_same_hosts_of_two_campaigns_are_pairs(rack):
    """Hosts that differ by far more than the campaigns do: each against itself tells these apart."""
    names = [str(uuid.uuid4()) for _ in range(2)]
    for name, factor in zip(names, (1, 0.9), strict=True):
        for i in range(8):
            rack.measure(f"h{i}", factor * 2**i, runs=4, campaign=name, points=POINTS[1:2])
    answer = rack.compare(*names)
    rows = answer["groups"][0]["rows"]
    assert {(row["paired"], row["unit"], row["candidate"]) for row in rows} == {(True, "host", 8)}
    assert {row["verdict"] for row in rows} == {"slower"}
    assert all(row["interval"][1] / row["interval"][0] < 1.05 for row in rows)


@pytest.fixture
def two_campaigns(rack):
    """measure(baseline's hosts, candidate's hosts): their UUIDs; the candidate is 10 % slower across nodes, and hosts
    differ by far more."""

    def measure(*sides, **more):
        names = [str(uuid.uuid4()) for _ in sides]
        for name, hosts, factor in zip(names, sides, (1, 0.9), strict=True):
            for host in hosts:
                rack.measure(host, factor * 2 ** "abcdefghijk".index(host), campaign=name, points=POINTS[1:2], **more)
        return names

    return measure


def test_hosts_of_one_side_only_are_named_where_the_others_are_pairs(rack, two_campaigns):
    names = two_campaigns("abcdefgh", "bcdefghik", runs=2)
    (group,) = rack.compare(*names)["groups"]
    assert {(row["paired"], row["unit"], row["baseline"], row["candidate"]) for row in group["rows"]} == {
        (True, "host", 7, 7)
    }
    assert group["unpaired_hosts"] == ["a", "i", "k"] and {row["paired_reason"] for row in group["rows"]} == {None}
    text = fleet("compare", *names, "--database", rack.dsn)
    assert "left out of the pairs, as one side alone has them: a, i, k\n" in text


def test_few_hosts_that_both_sides_have_are_not_pairs_and_that_is_said(rack, two_campaigns):
    names = two_campaigns("abc", "bcd", runs=2)
    (group,) = rack.compare(*names)["groups"]
    assert {(row["paired"], row["unit"], row["baseline"]) for row in group["rows"]} == {(False, "host", 3)}
    assert group["unpaired_hosts"] == []
    (reason,) = {row["paired_reason"] for row in group["rows"]}
    assert reason.startswith("of 2 hosts that both sides have there are no pairs, of which 6 are the fewest")
    assert f"  not in pairs: {reason} (3 rows)\n" in fleet("compare", *names, "--database", rack.dsn)


def test_blocks_of_few_hosts_are_paired(rack, two_campaigns):
    """Each run with that of the same host and block: what the host's level is cancels."""
    names = two_campaigns("abc", "abc", runs=6, blocks=True)
    (group,) = rack.compare(*names)["groups"]
    assert {(row["paired"], row["unit"], row["candidate"]) for row in group["rows"]} == {(True, "run", 18)}
    assert {row["verdict"] for row in group["rows"]} == {"slower"}
    assert all(row["interval"][1] / row["interval"][0] < 1.02 for row in group["rows"])
    for more in ({"runs": 6}, {"runs": 1, "blocks": True}):
        (group,) = rack.compare(*two_campaigns("abc", "abc", **more))["groups"]
        assert {(row["paired"], row["verdict"]) for row in group["rows"]} == {(False, "undecided")}
        assert all("nor have both sides the same hosts with" in row["paired_reason"] for row in group["rows"])


def test_points_of_one_side_alone(rack):
    rack.measure("a", points=POINTS)
    rack.measure("b", points=POINTS[:1])
    (group,) = rack.compare("a", "b")["groups"]
    assert group["unmatched"] == [3, 0] and len(group["rows"]) == 3
    rack.measure("c", points=POINTS[2:3])
    assert "no point with such a figure in common" in fleet("compare", "b", "c", "--database", rack.dsn, status=1)


@pytest.mark.parametrize("text", ["nobody", "a/99", "6e1c0000-0000-4000-8000-000000000000", "a'; --", "a/"])
def test_what_the_base_lacks(rack, text):
    rack.measure("a")
    assert f"no done runs of {'campaign ' if '-4000-' in text else ''}{text}" in fleet(
        "compare", "a", text, "--database", rack.dsn, status=1
    )
