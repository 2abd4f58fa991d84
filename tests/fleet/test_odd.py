# SPDX-License-Identifier: MIT
"""The odd host out: how many of the slow ones are found and how many of the named are false; and the statistics'
parts."""

import json
import math
import random
import statistics
import uuid

import pytest
from conftest import LONG, export_here, fleet
from ipclab_fleet import odd, stats
from synthetic import SyntheticStore

SIZES = [64, 1024, 4096, 65536, 262144, 1048576]
POINTS = [(size, placement) for size in SIZES for placement in ("same-node", "cross-node")]


def simulated(chance, hosts, slow=0, loss=0.05, runs=5, between=0.007, within=0.01):
    """One class: (point, figure) -> rows. The slow hosts are the first ones, and only across nodes. Hosts differ a
    little from each other, in part by the same factor on every point."""
    factors = [chance.gauss(0, between / 2) for _ in range(hosts)]
    groups = {}
    for size, placement in POINTS:
        rows = []
        for host in range(hosts):
            level = math.log(1e9 / size) + factors[host] + chance.gauss(0, between)
            if host < slow and placement == "cross-node":
                level += math.log1p(-loss)
            logs = [level + chance.gauss(0, within) for _ in range(runs)]
            rows.append((f"host{host:04}", runs, statistics.median(logs), statistics.variance(logs)))
        groups[f"{size} {placement}", "throughput"] = rows
    return groups


def test_twenty_of_a_thousand():
    found = false = wrong_points = points = 0
    fleets = 20 if LONG else 2
    for seed in range(fleets):
        result = odd.judge("class", simulated(random.Random(seed), 1000, slow=20))
        slow = [host for host in result.odd if host.host < "host0020"]
        found, false = found + len(slow), false + len(result.odd) - len(slow)
        for host in slow:
            points += len(host.effects)
            wrong_points += sum("same-node" in effect.point for effect in host.effects)
            for effect in host.effects:
                if "cross-node" in effect.point:
                    assert effect.worse and 0.88 < effect.ratio < 0.99
                    assert effect.low < effect.ratio < effect.high < 1
    print(f"{found} of {20 * fleets} slow hosts found, {false} of the {found + false} named are false")
    assert found >= 0.95 * 20 * fleets, found
    assert false <= 0.05 * (found + false), (false, found)
    assert wrong_points <= 0.05 * points, (wrong_points, points)


@pytest.mark.parametrize("hosts, fleets", [(5, 600), (8, 400), (16, 300), (64, 150)])
def test_equal_hosts_are_rarely_named(hosts, fleets):
    """Where none is odd, a class in which any is named is a false alarm: at most 5 % of them, give or take the chance
    of so many trials."""
    chance, fleets = random.Random(hosts), fleets if LONG else fleets // 3
    alarms = sum(bool(odd.judge("class", simulated(chance, hosts)).odd) for _ in range(fleets))
    assert alarms <= 0.05 * fleets + 2 * math.sqrt(0.05 * 0.95 * fleets), (alarms, fleets)


def test_too_few_hosts_are_undecided():
    result = odd.judge("class", simulated(random.Random(1), 4, slow=1, loss=0.5))
    assert not result.odd and result.undecided == "4 hosts; 5 are the fewest that a host can be compared with"


def test_interval_covers():
    """The 95 % interval of an effect has the true one, for few hosts and for many."""
    for hosts in (8, 40):
        chance, covered, trials = random.Random(5), 0, 1500
        for _ in range(trials):
            values = [chance.gauss(0, 0.01) for _ in range(hosts)]
            values[0] -= 0.05
            effect, half, _ = stats.against_the_rest(values, [None] * hosts, [1] * hosts)[0]
            # the truth is of the hosts' levels, which the values are
            covered += abs(effect - (-0.05)) <= half
        assert covered >= 0.935 * trials, (hosts, covered / trials)


def test_students_t():
    """Quantiles as in every table, two-sided."""
    for freedom, quantile, p in [
        (1, 12.706204736432095, 0.05),
        (4, 2.7764451051977987, 0.05),
        (10, 3.169272667175838, 0.01),
        (30, 2.0422724563012373, 0.05),
        (1000, 1.9623390808264078, 0.05),
    ]:
        assert stats.t_two_sided(quantile, freedom) == pytest.approx(p, rel=1e-8)
        assert stats.t_quantile(freedom, p) == pytest.approx(quantile, rel=1e-8)
    assert stats.t_two_sided(0, 3) == 1 and stats.t_two_sided(1e6, 50) < 1e-100


def test_benjamini_hochberg():
    """The example of Benjamini & Hochberg (1995), section 3.2: four of fifteen at 5 %."""
    p = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
        0.7590,
        1,
    ]
    mixed = p[::-1]
    assert benjamini(p) == {0, 1, 2, 3} and benjamini(mixed) == {11, 12, 13, 14}
    assert benjamini([]) == set() and benjamini([0.06]) == set() and benjamini([0.05, 0.05]) == {0, 1}


def benjamini(p):
    return stats.benjamini_hochberg(p, 0.05)


def test_simes():
    assert stats.simes([0.01, 0.5, 0.9]) == pytest.approx(0.03)
    assert stats.simes([0.04, 0.04]) == pytest.approx(0.04)
    assert stats.simes([0.9]) == 0.9


def test_median_without():
    for n in range(2, 9):
        ordered = [float(i * i) for i in range(n)]
        for i in range(n):
            assert stats.median_without(ordered, i) == statistics.median(ordered[:i] + ordered[i + 1 :])


def test_scale_and_order_change_nothing():
    chance = random.Random(9)
    values = [chance.gauss(0, 1) for _ in range(21)]
    plain = stats.against_the_rest(values, [None] * 21, [1] * 21)
    scaled = stats.against_the_rest([3 * v + 7 for v in values], [None] * 21, [1] * 21)
    turned = stats.against_the_rest(values[::-1], [None] * 21, [1] * 21)[::-1]
    for a, b, c in zip(plain, scaled, turned, strict=True):
        assert b == (pytest.approx(3 * a[0]), pytest.approx(3 * a[1]), pytest.approx(a[2]))
        assert c == pytest.approx(a)


def test_hosts_from_stores_to_the_report(dsn, tmp_path):
    """Twelve hosts of one class, one of them slower across nodes and with another setting, and three of another
    class."""
    points = [
        {"workload": "stream", "transport": "pipe", "message_size": size, "placement": placement}
        for size in (4096, 65536)
        for placement in ("same-node", "cross-node")
    ]
    for i in range(15):
        store = SyntheticStore(tmp_path / f"s{i}", seed=i, host=f"host{i:02}")
        if i >= 12:
            store.facts["cpu_model"] = "Another 7"
        store.facts["kernel_cmdline"] = f"root=UUID={i} mitigations={'off' if i == 7 else 'auto'}"
        if i == 7:
            store.facts["numa_balancing"] = 1

        def throughput(point, store=store, i=i):
            slow = 0.8 if i == 7 and point["placement"] == "cross-node" else 1
            return slow * 1e9 * store.random.lognormvariate(0, 0.01)

        store.measure(points, 5, throughput=throughput)
        export_here(dsn, store)
        store.close()
    first, second = sorted(json.loads(fleet("odd", "--json", "--database", dsn)), key=lambda found: -found["hosts"])
    assert (first["hosts"], second["hosts"]) == (12, 3)
    assert first["described"] == "Example 9000, 2 CPUs, 64 GiB, kernel 6.1"
    (host,) = first["odd"]
    assert host["host"] == "host07" and host["differs"] == [
        ["kernel_cmdline", "mitigations=off", "mitigations=auto", 11, 11],
        ["numa_balancing", 1, 0, 11, 11],
    ]
    slow = [effect for effect in host["effects"] if effect["figure"] == "throughput"]
    assert sorted(json.loads(effect["point"])["message_size"] for effect in slow) == [4096, 65536]
    assert all(json.loads(effect["point"])["placement"] == "cross-node" and effect["worse"] for effect in slow)
    assert all(effect["ratio"] == pytest.approx(0.8, rel=0.03) for effect in slow)
    assert second["undecided"].startswith("3 hosts")
    text = fleet("odd", "--database", dsn)
    assert "host07" in text and "numa_balancing: 1; 11 of 11 others have 0" in text


def test_odd_hosts_of_a_campaign_are_named_as_in_its_list(dsn, tmp_path):
    """A campaign's list may have other names than the hosts have themselves: the facts are the hosts'."""
    campaign = str(uuid.uuid4())
    for i in range(12):
        store = SyntheticStore(tmp_path / f"s{i}", seed=i, host=f"host{i:02}")
        store.facts["numa_balancing"] = int(i == 7)

        def throughput(_point, store=store, i=i):
            return (0.8 if i == 7 else 1) * 1e9 * store.random.lognormvariate(0, 0.01)

        point = {"workload": "stream", "transport": "pipe", "message_size": 4096, "placement": "default"}
        store.measure([point], 5, key=f"{campaign}/10.0.0.{i}", throughput=throughput)
        export_here(dsn, store)
        store.close()
    found = json.loads(fleet("odd", "--json", "--campaign", campaign, "--database", dsn))
    (host,) = found[0]["odd"]
    assert host["host"] == "10.0.0.7" and host["differs"] == [["numa_balancing", 1, 0, 11, 11]]
    lines = fleet("odd", "--campaign", campaign, "--database", dsn).splitlines()
    assert lines[1] == "  10.0.0.7" and "worse  throughput of {" in lines[2]
    assert lines[-1] == "    numa_balancing: 1; 11 of 11 others have 0"
