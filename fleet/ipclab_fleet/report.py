# SPDX-License-Identifier: MIT
"""The fleet's report: one HTML file that needs no network and no script. What arrived, the hardware classes, how their
hosts are distributed at each point, the odd ones, the method, and the figures inside as JSON."""

import base64
import hashlib
import html
import json
import math
import os
import statistics
from collections import defaultdict
from datetime import UTC
from pathlib import Path

from ipclab_fleet import FleetError, chart, odd
from ipclab_fleet.base import version
from ipclab_fleet.campaign import progress
from ipclab_fleet.rows import FIGURES

BYTES_MAX = 1_000_000
LISTED = 40  # rows of a table that could have one per host; the rest is counted
TITLES = {
    "throughput": "throughput",
    "latency_p50": "latency, median",
    "latency_p99": "latency, 99th percentile",
    "cost": "cost of a call",
}
HERE = Path(__file__).resolve().parent
# The palette is the page's: installed beside this file, and in the source tree where the page has it.
PALETTE = next(
    path for path in (HERE / "palette.css", HERE.parents[1] / "web/assets/style/palette.css") if path.exists()
)
STYLE = PALETTE.read_text() + (HERE / "report.css").read_text()
MIXED = (
    "Charts mix hardware classes, as --mix has it: a dot is a host of any class, and 0 is the median of all. "
    "Who is odd is still decided within each class."
)
METHOD = """
<p>A host's figure at a point is the median of its runs. A point is one combination of an experiment's axes; runs at a
rate that a search has chosen are left out. Hosts are compared within their hardware class, which are those of the same
CPU model, number of CPUs, memory and kernel family, on a logarithmic scale.</p>
<p>In a chart each dot is a host, at the difference of its figure from the median of all hosts that are shown. The
thick line on the axis holds the middle half of them. Below it are the odd hosts with their 95 % intervals.</p>
<p>The effect of a host is the ratio to the median of the others. Its 95 % interval comes from the spread between hosts
(the median absolute deviation, which odd hosts do not widen) with Student's t. All points of a host are one question
and one p value (Simes). Benjamini-Hochberg at 5 % decides over the hosts of a class: of the named hosts, at most 5 %
are expected to be named falsely. The points of a named host are decided at 5 % times the share of named hosts. A class
of fewer than 5 hosts is undecided. Beside an odd host stand the facts of its environment in which more than half of the
others agree on another value.</p>
"""


def text(value):
    return html.escape(str(value))


def table(label, heads, rows):
    """heads: (title, whether it is a number). The cells of rows are text."""
    kinds = [' class="number"' if is_number else "" for _, is_number in heads]
    head = "".join(f'<th scope="col"{kind}>{title}</th>' for kind, (title, _) in zip(kinds, heads, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{text(cell)}</td>" for kind, cell in zip(kinds, row, strict=True)) + "</tr>"
        for row in rows
    )
    # what scrolls can be reached by the keyboard
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(label)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def section(title, *parts):
    return f"<section><h2>{title}</h2>{''.join(parts)}</section>"


def rest(count, what):
    return f'<p class="soft">and {count} more {what}</p>' if count > 0 else ""


def difference(ratio):
    return 100 * (ratio - 1)


def difference_text(effect):
    ratio, low, high = (chart.percent(difference(value)) for value in (effect.ratio, effect.low, effect.high))
    return f"{ratio} [{low}, {high}]"


def amount(figure, value):
    """The value with its unit."""
    units = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s") if figure == "throughput" else ("ns", "µs", "ms", "s")
    value = float(f"{value:.3g}")
    power = min(max(0, int(math.log10(value) // 3)), len(units) - 1)
    return f"{value / 1000**power:g} {units[power]}"


# What was sent, and what arrived


def put_campaign(base, campaign):
    rows = progress(base, campaign)
    name = base.execute("SELECT name FROM campaigns WHERE campaign = %s", (campaign,)).fetchone()[0]
    missing = [row for row in rows if not row.complete]
    received, expected = sum(row.received for row in rows), sum(row.expected or 0 for row in rows)
    parts = [
        f"<p>Campaign {text(name or campaign)}: {len(rows) - len(missing)} of {len(rows)} hosts are complete; "
        f"{received} of {expected} runs that they have planned have arrived.</p>"
    ]
    if missing:
        parts.append(
            table(
                "hosts that are not complete",
                [("host", False), ("state", False), ("runs", True), ("dispatched", True), ("last error", False)],
                [
                    (
                        *(row.host, row.state or "not received"),
                        *(f"{row.received}/{row.expected}" if row.expected else "", row.dispatches),
                        row.error or row.last_error or "",
                    )
                    for row in missing[:LISTED]
                ],
            )
        )
        parts.append(rest(len(missing) - LISTED, "hosts that are not complete"))
    return parts


def put_campaigns(base):
    rows = base.execute(
        "SELECT COALESCE(name, campaign::text), hosts_complete, hosts_expected, runs_received, runs_expected "
        "FROM campaign_summary ORDER BY created_at DESC"
    ).fetchall()
    if not rows:
        return ["<p>No campaign was sent.</p>"]
    heads = [("campaign", False), ("hosts complete", True), ("of", True), ("runs received", True), ("of", True)]
    return [table("campaigns", heads, rows[:LISTED]), rest(len(rows) - LISTED, "campaigns")]


def put_stores(base):
    stores, oldest = base.execute("SELECT count(*), min(last_export) FROM stores").fetchone()
    aside = base.execute("SELECT count(*) FROM set_aside").fetchone()[0]
    when = f"; the one that was exported longest ago, {oldest:%Y-%m-%d %H:%M} UTC" if oldest else ""
    bad = f" {aside} rows were set aside, as the base could not take them." if aside else ""
    return f"<p>{stores} stores have exported to the base{when}.{bad}</p>"


def put_arrived(base, campaign):
    return section(
        "What arrived", *(put_campaign(base, campaign) if campaign else put_campaigns(base)), put_stores(base)
    )


# Points in words


def point_words(points):
    """(what all points have in common, point -> what is its own), from point -> JSON."""
    specs = {point: json.loads(spec) for point, spec in points.items()}
    values = defaultdict(set)
    for spec in specs.values():
        for axis, value in spec.items():
            values[axis].add(json.dumps(value, sort_keys=True))
    same = {axis for axis, found in values.items() if len(found) == 1 and all(axis in spec for spec in specs.values())}

    def words(spec, shown):
        axes = [(axis, value) for axis, value in spec.items() if shown(axis)]
        return " · ".join(f"{axis} {value if isinstance(value, str) else json.dumps(value)}" for axis, value in axes)

    common = words(next(iter(specs.values()), {}), lambda axis: axis in same)
    return common, {
        point: words(spec, lambda axis: axis not in same) or "the only point" for point, spec in specs.items()
    }


def point_order(points):
    """The order of the points by the values of the axes, numbers as such."""

    def key(point):
        spec = json.loads(points[point])
        return [(axis, value if isinstance(value, int) else 0, json.dumps(value)) for axis, value in spec.items()]

    return sorted(points, key=key)


# The classes


def put_classes(results, classes):
    parts = []
    for result in results:
        hosts = sorted({row[0] for rows in classes[result.name].values() for row in rows})
        parts.append(f"<h3>{text(result.described)}</h3>")
        words = f"{result.hosts} hosts, {result.points} figures, {len(result.odd)} odd"
        parts.append(f"<p>{words}{f': undecided, {result.undecided}' if result.undecided else ''}.</p>")
        opened = " open" if len(hosts) <= 100 else ""
        parts.append(f"<details{opened}><summary>The hosts</summary><p>{text(', '.join(hosts))}</p></details>")
    return section("Hardware classes", *parts)


def put_odd(results, words):
    parts = []
    for result in results:
        if not result.odd:
            continue
        parts.append(f"<h3>{text(result.described)}</h3>")
        for host in result.odd[:LISTED]:
            parts.append(f'<h4 class="odd">{text(host.host)}</h4>')
            rows = [
                (words[e.point], TITLES[e.figure], difference_text(e), "worse" if e.worse else "better")
                for e in host.effects[:LISTED]
            ]
            heads = [("point", False), ("figure", False), ("effect [95 %]", True), ("which is", False)]
            parts.append(table(f"effects of {host.host}", heads, rows))
            parts.append(rest(len(host.effects) - LISTED, "effects"))
            for key, value, usual, count, of in host.differs:
                parts.append(
                    f"<p>{text(key)}: {text(json.dumps(value, ensure_ascii=False))}; {count} of {of} others have "
                    f"{text(json.dumps(usual, ensure_ascii=False))}</p>"
                )
        more = [host.host for host in result.odd[LISTED:]]
        if more:
            parts.append(f"<p>Odd, too: {text(', '.join(more))}</p>")
    return section("Odd hosts", *(parts or ["<p>None.</p>"]))


def draw_point(title, point, figure, rows, odd_hosts):
    """rows: (host, runs, median_log, var_log)."""
    middle = statistics.median(row[2] for row in rows)
    values = [difference(math.exp(row[2] - middle)) for row in rows]
    at = {row[0]: math.exp(row[2] - middle) for row in rows}
    # The effects are ratios to the others of the class; here they are drawn where the host's dot is.
    named = [
        (
            host.host,
            *(difference(at[host.host] * value / effect.ratio) for value in (effect.ratio, effect.low, effect.high)),
        )
        for host in odd_hosts
        for effect in host.effects
        if (effect.point, effect.figure) == (point, figure)
    ]
    spread = f"from {chart.percent(min(values))} to {chart.percent(max(values))}"
    label = f"{TITLES[figure]}, {title}: {len(rows)} hosts {spread} of their median, {len(named)} of them odd"
    caption = f"{TITLES[figure]}: median {amount(figure, math.exp(middle))}"
    more = f", {len(named)} odd" if len(named) > chart.LABELLED else ""
    return f"<figure><figcaption>{caption}{more}</figcaption>{chart.draw(label, values, named)}</figure>"


def put_charts(described, groups, odd_hosts, points, words, notes):
    parts = [*notes]
    for point in points:
        drawings = [
            draw_point(words[point], point, figure, rows, odd_hosts)
            for figure, _, _ in FIGURES
            for (at, of), rows in groups.items()
            if (at, of) == (point, figure)
        ]
        if drawings:
            parts.append(f'<h3>{text(words[point])}</h3><div class="charts">{"".join(drawings)}</div>')
    return section(text(described), *parts)


def mix(classes):
    """All classes as one."""
    mixed = defaultdict(list)
    for groups in classes.values():
        for key, rows in groups.items():
            mixed[key] += rows
    return mixed


# The figures


def data_of(results, classes, points, with_hosts):
    """Indices in place of names, which would be there thousands of times."""
    order = {point: i for i, point in enumerate(points)}
    found = []
    for result in results:
        groups = classes[result.name]
        hosts = sorted({row[0] for rows in groups.values() for row in rows})
        at, figures = {host: i for i, host in enumerate(hosts)}, []
        for (point, figure), rows in groups.items():
            middle = statistics.median(row[2] for row in rows)
            own = {"point": order[point], "figure": figure, "median": float(f"{math.exp(middle):.6g}")}
            if with_hosts:
                percents = [None] * len(hosts)
                for row in rows:
                    percents[at[row[0]]] = round(difference(math.exp(row[2] - middle)), 2)
                own["percent"] = percents
            figures.append(own)
        named = [
            {
                "host": host.host,
                "p": host.p,
                "differs": host.differs,
                "effects": [
                    [order[e.point], e.figure, *(round(value, 5) for value in (e.ratio, e.low, e.high))]
                    for e in host.effects
                ],
            }
            for host in result.odd
        ]
        found.append(
            {
                **{"class": result.described, "undecided": result.undecided, "odd": named},
                **({"hosts": hosts} if with_hosts else {"hosts_left_out": "the report would be too large"}),
                "figures": figures,
            }
        )
    return found


def document(title, parts, data):
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    # "<" cannot end the element; JSON has another word for it
    figures = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{digest}'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head><body><main>\n"
        + "\n".join(parts)
        + f'\n</main><script type="application/json" id="report-data">{figures}</script></body></html>\n'
    )


def make(base, campaign=None, mixed=False):
    """The document."""
    classes = odd.read_classes(base, campaign)
    results = odd.judge_all(base, classes, campaign)
    specs = odd.read_points(base, {point for groups in classes.values() for point, _ in groups})
    common, words = point_words(specs)
    points = point_order(specs)
    when = base.execute("SELECT now()").fetchone()[0].astimezone(UTC)
    title = f"ipclab fleet report{f' of campaign {campaign}' if campaign else ''}"
    several = mixed and len(classes) > 1
    parts = [
        f'<header><h1>{text(title)}</h1><p class="soft">Schema version {version(base)} of the base, read on '
        f"{when:%Y-%m-%d at %H:%M} UTC.</p></header>"
    ]
    if several:
        parts.append(f'<p class="warn">{MIXED}</p>')
    parts += [put_arrived(base, campaign), put_classes(results, classes), put_odd(results, words)]
    notes = [f'<p class="soft">All points: {text(common)}.</p>'] if common else []
    if several:
        everyone = [host for result in results for host in result.odd]
        described = f"All hosts of {len(classes)} hardware classes, mixed"
        parts.append(
            put_charts(described, mix(classes), everyone, points, words, [f'<p class="warn">{MIXED}</p>', *notes])
        )
    else:
        parts += [
            put_charts(result.described, classes[result.name], result.odd, points, words, notes) for result in results
        ]
    parts.append(section("Method", METHOD))
    data = {
        "schema_version": version(base),
        "read_at": when.isoformat(),
        "campaign": str(campaign) if campaign else None,
        "mixed": several,
        "points": [json.loads(specs[point]) for point in points],
        "units": "median: bytes per second for throughput, else ns; percent: of each host from that; effects: "
        "[index of the point, figure, ratio to the others' median, low, high]",
    }
    for with_hosts in (True, False):
        data["classes"] = data_of(results, classes, points, with_hosts)
        made = document(title, parts, data).encode()
        if len(made) <= BYTES_MAX:
            break
    return made


def write(base, path, campaign=None, mixed=False):
    """Replaces the file when the report is whole. Returns its size."""
    made, path = make(base, campaign, mixed), Path(path)
    fresh = path.with_name(path.name + ".new")
    try:
        fresh.write_bytes(made)
        os.replace(fresh, path)
    except OSError as error:
        raise FleetError(f"{path}: {error.strerror}") from error
    return len(made)
