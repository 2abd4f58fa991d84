# SPDX-License-Identifier: MIT
"""The odd hosts of each hardware class: which differ from their equals, on which points, by how much, and what else
differs.

Many points of one host are one question, "is this host odd": they are brought together by Simes' procedure, and
Benjamini-Hochberg at 5 % decides over the hosts. The points of a named host are then named at 5 % times the share of
hosts that are named (Benjamini & Bogomolov 2014). Over single points the false ones would spread over many hosts."""

import json
import math
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field

from ipclab_fleet.rows import FIGURES, settings_of
from ipclab_fleet.stats import FEW, against_the_rest, benjamini_hochberg, simes

LEVEL = 0.05
MORE_IS_BETTER = {name: better for name, _, better in FIGURES}

# A row per point, as JSON: a thousand hosts with a hundred figures would be a hundred thousand rows.
GROUPED = """
SELECT class, point, figure, json_agg(json_build_array(host, runs, median_log, var_log) ORDER BY host) FROM ({hosts}) h
GROUP BY class, point, figure"""

ALL_RUNS = """
SELECT hp.class, hp.point, hp.figure, s.host, sum(hp.runs) AS runs,
        sum(hp.runs * hp.median_log) / sum(hp.runs) AS median_log,
        sum(hp.runs * hp.var_log) / sum(hp.runs) FILTER (WHERE hp.var_log IS NOT NULL) AS var_log
FROM host_points hp JOIN stores s USING (store) GROUP BY 1, 2, 3, 4"""

OF_A_CAMPAIGN = """
SELECT e.class, r.point, f.figure, x.campaign_host AS host, count(*) AS runs,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY ln(f.value)) AS median_log, var_samp(ln(f.value)) AS var_log
FROM own_runs r JOIN experiments x ON x.store = r.store AND x.id = r.experiment_id
JOIN environments e USING (environment) CROSS JOIN LATERAL (VALUES {figures}) AS f (figure, value)
WHERE x.campaign = %s AND r.state = 'done' AND r.rate IS NULL AND f.value IS NOT NULL GROUP BY 1, 2, 3, 4"""

NEWEST_FACTS = """
SELECT s.host, e.facts FROM stores s
JOIN LATERAL (SELECT r.environment FROM runs r JOIN environments USING (environment)
        WHERE r.store = s.store AND environments.class = %s ORDER BY r.change DESC LIMIT 1) n ON true
JOIN environments e USING (environment) WHERE s.host = ANY(%s) ORDER BY s.last_export"""

# A campaign's hosts have the names of its list, which may be addresses.
NEWEST_FACTS_OF_A_CAMPAIGN = """
SELECT DISTINCT ON (x.campaign_host) x.campaign_host, e.facts
FROM own_runs r JOIN experiments x ON x.store = r.store AND x.id = r.experiment_id
JOIN environments e USING (environment)
WHERE e.class = %s AND x.campaign_host = ANY(%s) AND x.campaign = %s ORDER BY x.campaign_host, r.change DESC"""


@dataclass
class Effect:
    point: str  # uuid
    figure: str
    ratio: float  # to the median of the other hosts
    low: float
    high: float
    p: float
    hosts: int
    worse: bool


@dataclass
class OddHost:
    host: str
    p: float
    effects: list
    differs: list = field(default_factory=list)  # (fact, its value, the others' value, how many have that, of how many)


@dataclass
class Class:
    name: str
    hosts: int
    points: int
    described: str = ""
    odd: list = field(default_factory=list)
    undecided: str | None = None


def judge(name, groups):
    """groups: (point, figure) -> [(host, runs, median_log, var_log)] of one class."""
    effects, hosts = defaultdict(list), {row[0] for rows in groups.values() for row in rows}
    for (point, figure), rows in groups.items():
        found = against_the_rest([row[2] for row in rows], [row[3] for row in rows], [row[1] for row in rows])
        for row, (effect, half, p) in zip(rows, found or [], strict=False):
            effects[row[0]].append(
                Effect(
                    *(str(point), figure, math.exp(effect), math.exp(effect - half), math.exp(effect + half), p),
                    *(len(rows), (effect < 0) == MORE_IS_BETTER[figure]),
                )
            )
    result = Class(str(name), len(hosts), len(groups))
    if not effects:
        result.undecided = f"{len(hosts)} hosts; {FEW} are the fewest that a host can be compared with"
        return result
    names = sorted(effects)
    together = [simes([effect.p for effect in effects[host]]) for host in names]
    named = benjamini_hochberg(together, LEVEL)
    for i in sorted(named, key=lambda i: together[i]):
        own = effects[names[i]]
        points = benjamini_hochberg([effect.p for effect in own], LEVEL * len(named) / len(names))
        result.odd.append(OddHost(names[i], together[i], [own[k] for k in sorted(points, key=lambda k: own[k].p)]))
    return result


def differing_facts(facts, host):
    """The facts of a host that more than half of the others have with one other value."""
    others = [settings_of(f) for name, f in facts.items() if name != host]
    found = []
    for key, value in sorted(settings_of(facts.get(host, {})).items()):
        if not others:
            break
        usual, count = Counter(json.dumps(f.get(key), sort_keys=True) for f in others).most_common(1)[0]
        if 2 * count > len(others) and json.dumps(value, sort_keys=True) != usual:
            found.append((key, value, json.loads(usual), count, len(others)))
    return found


def describe_class(base, name):
    """A hardware class in words."""
    model, cpus, memory, kernel = base.execute(
        "SELECT cpu_model, cpus, memory_gib, kernel_family FROM environments WHERE class = %s LIMIT 1", (name,)
    ).fetchone()
    return f"{model or 'unknown CPU'}, {cpus} CPUs, {memory} GiB, kernel {kernel}"


def describe(base, result, hosts, campaign):
    found = (NEWEST_FACTS_OF_A_CAMPAIGN, [campaign]) if campaign else (NEWEST_FACTS, [])
    facts = dict(base.execute(found[0], (result.name, sorted(hosts), *found[1])))
    result.described = describe_class(base, result.name)
    for odd in result.odd:
        odd.differs = differing_facts(facts, odd.host)


def read_classes(base, campaign=None):
    """class -> what judge() takes, of the base, or of one campaign."""
    if campaign:
        figures = ", ".join(f"('{name}', r.{name})" for name, _, _ in FIGURES)
        rows = base.execute(GROUPED.format(hosts=OF_A_CAMPAIGN.format(figures=figures)), (campaign,))
    else:
        rows = base.execute(GROUPED.format(hosts=ALL_RUNS))
    classes = defaultdict(dict)
    for name, point, figure, hosts in rows:
        classes[str(name)][str(point), figure] = hosts
    return dict(sorted(classes.items()))


def read_points(base, points):
    """uuid as text -> canonical JSON"""
    return dict(
        base.execute("SELECT point::text, spec::text FROM points WHERE point = ANY(%s::uuid[])", (list(points),))
    )


def judge_all(base, classes, campaign=None):
    """A Class for each hardware class. Its effects name points by their uuid."""
    results = []
    for name, groups in classes.items():
        result = judge(name, groups)
        describe(base, result, {row[0] for rows in groups.values() for row in rows}, campaign)
        results.append(result)
    return results


def find(base, campaign=None):
    """What judge_all() finds, with the points as JSON."""
    results = judge_all(base, read_classes(base, campaign), campaign)
    texts = read_points(base, {effect.point for result in results for odd in result.odd for effect in odd.effects})
    for result in results:
        for odd in result.odd:
            for effect in odd.effects:
                effect.point = texts.get(effect.point, effect.point)
    return results


def report(results, as_json=False):
    if as_json:
        return json.dumps([asdict(result) for result in results])
    lines = []
    for result in results:
        lines.append(f"{result.described}: {result.hosts} hosts, {result.points} figures, {len(result.odd)} odd")
        if result.undecided:
            lines.append(f"  undecided: {result.undecided}")
        for odd in result.odd:
            lines.append(f"  {odd.host}")
            for e in odd.effects:
                change, low, high = (100 * (v - 1) for v in (e.ratio, e.low, e.high))
                word = "worse" if e.worse else "better"
                lines.append(f"    {change:+.1f} % [{low:+.1f}, {high:+.1f}] {word}  {e.figure} of {e.point}")
            for key, value, usual, count, of in odd.differs:
                lines.append(f"    {key}: {json.dumps(value)}; {count} of {of} others have {json.dumps(usual)}")
    return "\n".join(lines) or "the base has no finished runs"
