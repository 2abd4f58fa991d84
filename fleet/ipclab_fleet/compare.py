# SPDX-License-Identifier: MIT
"""Two hosts, campaigns or experiments of the base against each other, point by point.

A comparison is of class 1 (the same machines, at most one setting differs), 2 (the same hardware class) or 3 (other).
An answer has one class, unless --mix is given: then everything is one comparison, which names what it mixes."""

import json
import math
import re
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field

from ipclab_fleet import FleetError
from ipclab_fleet.odd import describe_class
from ipclab_fleet.rows import FIGURES, settings_of
from ipclab_fleet.stats import MARGIN, Ratio, compare

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
EXPERIMENT = re.compile(r"(.+)/([1-9][0-9]{0,17})")
FEWEST_PAIRS = 6  # of which the signed ranks' interval has a level of 95 %
CLASSES = {1: "the same machines", 2: "the same model", 3: "different machines"}
# Facts that change together, as one setting has them: the one that stands for both.
TOGETHER = {"kernel_version": "kernel_release"}

RUNS = """
SELECT r.host, r.store, r.block, r.point, r.environment, e.class, {figures}
FROM own_runs r JOIN environments e USING (environment)
JOIN experiments x ON x.store = r.store AND x.id = r.experiment_id
WHERE {where} AND r.state = 'done' AND r.rate IS NULL ORDER BY r.store, r.change"""


@dataclass
class Run:
    host: str
    store: object
    block: int | None
    point: object
    environment: object
    hardware: object
    figures: dict  # name -> value; those that it has


@dataclass
class Side:
    name: str
    runs: list

    def hosts(self):
        return sorted({run.host for run in self.runs})

    def hardware(self):
        return {run.hardware for run in self.runs}

    def only(self, keep):
        return Side(self.name, [run for run in self.runs if keep(run)])


@dataclass
class Row(Ratio):
    point: str
    figure: str
    baseline: int  # values
    candidate: int
    unit: str  # of a value: "run", or "host", whose value is the median of its runs
    paired: bool  # by host and block, or by host
    paired_reason: str | None  # why it is not


@dataclass
class Group:
    """What is compared with each other."""

    comparison: int  # class
    hardware: list  # descriptions of the hardware classes in it
    baseline_hosts: list
    candidate_hosts: list
    settings: list  # (fact, the baseline's values, the candidate's)
    rows: list = field(default_factory=list)
    unpaired_hosts: list = field(default_factory=list)  # that one side alone has, where the others are pairs
    unmatched: list = field(default_factory=list)  # points that one side lacks: of the baseline alone, of the candidate


@dataclass
class Answer:
    baseline: str
    candidate: str
    margin: float
    mixed: bool  # runs of several hardware classes, or comparisons of several classes, are one here
    groups: list
    left_out: list  # hosts of whose hardware class the other side has none


# What is compared


def read_side(base, text):
    """A Side of a campaign's UUID, HOST/EXPERIMENT_ID, or a host."""
    experiment = EXPERIMENT.fullmatch(text)
    if UUID.fullmatch(text):
        name, where, values = f"campaign {text}", "x.campaign = %s", (text,)
    elif experiment:
        name, where, values = text, "r.host = %s AND r.experiment_id = %s", (experiment[1], int(experiment[2]))
    else:
        name, where, values = text, "r.host = %s", (text,)
    columns = ", ".join(f"r.{figure}" for figure, _, _ in FIGURES)
    runs = []
    for *row, hardware, throughput, p50, p99, cost in base.execute(RUNS.format(figures=columns, where=where), values):
        figures = dict(zip((figure for figure, _, _ in FIGURES), (throughput, p50, p99, cost), strict=True))
        runs.append(Run(*row, hardware, {figure: value for figure, value in figures.items() if value is not None}))
    side = Side(name, runs)
    if not runs:
        raise FleetError(f"the base has no done runs of {name}")
    stores = {run.store for run in runs}
    if experiment and len(stores) > 1:
        raise FleetError(f"{text}: {len(stores)} stores of that host have an experiment of that number")
    return side


def facts_of(base, side):
    """fact -> the set of its values, as JSON, over the side's environments."""
    found, used = defaultdict(set), list({run.environment for run in side.runs})
    for (facts,) in base.execute("SELECT facts FROM environments WHERE environment = ANY(%s)", (used,)):
        for fact, value in settings_of(facts).items():
            found[fact].add(json.dumps(value, sort_keys=True))
    return found


def differing(base, baseline, candidate):
    """(fact, the values that the baseline's environments have, the candidate's) where these differ."""
    left, right = facts_of(base, baseline), facts_of(base, candidate)
    differ = {fact for fact in left.keys() | right.keys() if left.get(fact) != right.get(fact)}
    together = {fact for fact in differ if TOGETHER.get(fact) in differ}
    return [
        (fact, *([json.loads(value) for value in sorted(side.get(fact, ()))] for side in (left, right)))
        for fact in sorted(differ - together)
    ]


def make_group(base, baseline, candidate):
    settings = differing(base, baseline, candidate)
    hardware = baseline.hardware() | candidate.hardware()
    same = baseline.hosts() == candidate.hosts()
    comparison = 1 if same and len(settings) <= 1 else 2 if len(hardware) == 1 else 3
    described = sorted(describe_class(base, one) for one in hardware)
    return Group(comparison, described, baseline.hosts(), candidate.hosts(), settings)


def split(base, baseline, candidate):
    """(Group, its baseline, its candidate) for each hardware class that both have, and for the machines of which one
    setting has made another class (a kernel); and the hosts that are left."""
    both = baseline.hardware() & candidate.hardware()
    found = []
    for hardware in sorted(both):
        sides = [side.only(lambda run, hardware=hardware: run.hardware == hardware) for side in (baseline, candidate)]
        found.append((make_group(base, *sides), *sides))
    rest = [side.only(lambda run: run.hardware not in both) for side in (baseline, candidate)]
    if all(side.runs for side in rest):
        group = make_group(base, *rest)
        if group.comparison == 1 or not found:
            return [*found, (group, *rest)], []
    return found, sorted({host for side in rest for host in side.hosts()})


# Comparing


def values_of(side, figure):
    """point -> host -> [((store, block), logarithm)]"""
    found = defaultdict(lambda: defaultdict(list))
    for run in side.runs:
        if figure in run.figures:
            found[run.point][run.host].append(((run.store, run.block), math.log(run.figures[figure])))
    return found


def by_block(side):
    """(store, block) -> logarithm, or None where a run has no block or shares it."""
    runs = [run for of_host in side.values() for run in of_host]
    found = dict(runs)
    return found if len(found) == len(runs) and all(block is not None for _, block in found) else None


def medians(side, hosts):
    return [middle([value for _, value in side[host]]) for host in hosts]


def no_pairs(both, several):
    """Why there are none."""
    if not both:
        return "both sides have no host in common"
    if not several:
        return "both sides have not the same blocks of runs"
    return (
        f"of {len(both)} hosts that both sides have there are no pairs, of which {FEWEST_PAIRS} are the fewest with an "
        f"interval, nor have both sides the same hosts with the same {FEWEST_PAIRS} blocks of runs or more"
    )


def pair(baseline, candidate):
    """(values of the baseline, of the candidate, unit, why they are no pairs or None) of one point: host -> runs on
    either side. The same host on both sides is a pair: what its level is cancels. Of different hosts each is one value:
    hosts differ by more than the runs of one do."""
    both, several = sorted(baseline.keys() & candidate.keys()), min(len(baseline), len(candidate)) > 1
    if len(both) >= FEWEST_PAIRS:
        return medians(baseline, both), medians(candidate, both), "host", None
    blocks = [by_block(side) for side in (baseline, candidate)]
    if None not in blocks and blocks[0].keys() == blocks[1].keys() and (not several or len(blocks[0]) >= FEWEST_PAIRS):
        return *([side[block] for block in sorted(side)] for side in blocks), "run", None
    why = no_pairs(both, several)
    if several and baseline.keys() != candidate.keys():
        return *(medians(side, side) for side in (baseline, candidate)), "host", why
    return *([value for runs in side.values() for _, value in runs] for side in (baseline, candidate)), "run", why


def middle(values):
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def fill_group(group, baseline, candidate, figures):
    """The rows, without what compare() adds: yields (Row's own fields, what compare() takes)."""
    alone = set()
    for figure, _, more_is_better in figures:
        left, right = values_of(baseline, figure), values_of(candidate, figure)
        for point in sorted(left.keys() & right.keys()):
            *values, unit, why = pair(left[point], right[point])
            if unit == "host" and not why:
                alone |= left[point].keys() ^ right[point].keys()
            own = {"point": point, "figure": figure, "unit": unit, "paired": not why, "paired_reason": why}
            yield own | {"baseline": len(values[0]), "candidate": len(values[1])}, (*values, not why, more_is_better)
    group.unpaired_hosts = sorted(alone)
    points = [{run.point for run in side.runs} for side in (baseline, candidate)]
    group.unmatched = [len(points[0] - points[1]), len(points[1] - points[0])]


def refuse(groups):
    """Why the groups are no one answer, or None."""
    classes = {group.comparison for group, _, _ in groups}
    words = "--mix compares everything as one, and the report states it"
    if 3 in classes:
        hardware = sorted({one for group, _, _ in groups if group.comparison == 3 for one in group.hardware})
        settings = sorted({fact for group, _, _ in groups if group.comparison == 3 for fact, _, _ in group.settings})
        return f"class 3, different machines: {'; '.join(hardware)} (differing: {', '.join(settings)}); {words}"
    if len(classes) > 1:
        parts = [f"{'; '.join(group.hardware)}: class {group.comparison}" for group, _, _ in groups]
        return f"comparisons of more than one class: {'. '.join(parts)}; {words}"
    return None


def find(base, baseline, candidate, names=(), mix=False):
    """An Answer. names: of figures, all where there is none."""
    sides = [read_side(base, text) for text in (baseline, candidate)]
    groups, left_out = split(base, *sides)
    refused = refuse(groups)
    if refused and not mix:
        raise FleetError(f"{sides[1].name} against {sides[0].name}: {refused}")
    mixed = mix and len(sides[0].hardware() | sides[1].hardware()) > 1
    if mixed:
        groups, left_out = [(make_group(base, *sides), *sides)], []
    answer = Answer(sides[0].name, sides[1].name, MARGIN, mixed, [group for group, _, _ in groups], left_out)
    figures = [row for row in FIGURES if not names or row[0] in names]
    prepared = [(group, *row) for group, *of in groups for row in fill_group(group, *of, figures)]
    for (group, own, _), ratio in zip(prepared, compare([values for _, _, values in prepared]), strict=True):
        group.rows.append(Row(**asdict(ratio), **own))
    if not prepared:
        raise FleetError(f"{sides[1].name} against {sides[0].name}: they have no point with such a figure in common")
    points = list({own["point"] for _, own, _ in prepared})
    texts = dict(base.execute("SELECT point, spec::text FROM points WHERE point = ANY(%s)", (points,)))
    for group in answer.groups:
        for row in group.rows:
            row.point = texts.get(row.point, str(row.point))
        group.rows.sort(key=lambda row: (row.figure, row.point))
    return answer


# Showing


def percent(ratio):
    return f"{100 * (ratio - 1):+.1f}"


def interval_text(row):
    return "[too few values]" if row.interval is None else f"[{percent(row.interval[0])}, {percent(row.interval[1])}]"


def hosts_text(hosts):
    return ", ".join(hosts[:5]) + (f" and {len(hosts) - 5} more" if len(hosts) > 5 else "")


def count_verdicts(rows):
    words = [row.verdict for row in rows]
    return ", ".join(f"{words.count(one)} {one}" for one in ("faster", "slower", "equivalent", "undecided"))


def report(answer, as_json=False):
    if as_json:
        return json.dumps(asdict(answer))
    lines = [f"{answer.candidate} against {answer.baseline}"]
    if answer.mixed:
        lines.append("MIXED: runs of different hardware classes are compared as one")
    if answer.left_out:
        lines.append(f"left out, as the other side has none of their class: {hosts_text(answer.left_out)}")
    for group in answer.groups:
        lines.append(f"class {group.comparison}, {CLASSES[group.comparison]}: {'; '.join(group.hardware)}")
        lines.append(f"  {hosts_text(group.candidate_hosts)} against {hosts_text(group.baseline_hosts)}")
        for fact, left, right in group.settings:
            shown = [" or ".join(map(json.dumps, values)) or "nothing" for values in (left, right)]
            lines.append(f"  {fact}: {shown[1]}; the baseline has {shown[0]}")
        if group.comparison == 1 and not group.settings:
            lines.append("  no setting differs")
        lines.append(f"  {len(group.rows)} rows: {count_verdicts(group.rows)}")
        if group.unpaired_hosts:
            lines.append(f"  left out of the pairs, as one side alone has them: {hosts_text(group.unpaired_hosts)}")
        for why, n in Counter(row.paired_reason for row in group.rows if row.paired_reason).items():
            lines.append(f"  not in pairs: {why} ({n} rows)")
        for row in group.rows:
            how = " in pairs" if row.paired else ""
            lines.append(
                f"    {percent(row.ratio)} % {interval_text(row)} {row.verdict}  {row.figure} of {row.point} "
                f"({row.candidate} and {row.baseline} {row.unit}s{how})"
            )
        if any(group.unmatched):
            lines.append(f"  points of one side alone: {group.unmatched[1]} and {group.unmatched[0]}")
    return "\n".join(lines)
