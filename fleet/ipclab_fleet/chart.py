# SPDX-License-Identifier: MIT
"""The drawing of one figure at one point: a dot per host at its ratio to the median of its class, and below it the odd
hosts, each with its interval and its name. SVG without a script or a style of its own: the classes are report.css's."""

import html
import math
import statistics
from collections import Counter

WIDTH = 300  # of the view box
MARGIN = 8
BINS = 71  # columns in which the dots are stacked: as wide as a dot
DOT = 4
STACK = 56  # height of the highest column
ROW = 15  # of an odd host
LABEL = 20  # half of the widest label of a mark
LABELLED = 6  # odd hosts that a drawing names; the table has all of them


def nice_step(span):
    """1, 2 or 5 times a power of ten: the greatest of which there are three in the span at least."""
    power = 10 ** math.floor(math.log10(span / 3))
    return max(step * power for step in (1, 2, 5) if step * power * 3 <= span * (1 + 1e-9))


class Scale:
    def __init__(self, low, high):
        """low and high are in percent from the median, which is within."""
        room = max(0.5, 0.04 * (high - low))
        self.low, self.high = low - room, high + room

    def __call__(self, value):
        value = min(max(value, self.low), self.high)
        return MARGIN + (WIDTH - 2 * MARGIN) * (value - self.low) / (self.high - self.low)

    def marks(self):
        step = nice_step(self.high - self.low)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        marks = [step * k for k in range(first, last + 1)]
        return [mark for mark in marks if LABEL <= self(mark) <= WIDTH - LABEL]


def number(value):
    return f"{value:.1f}".removesuffix(".0")


def percent(value):
    text = f"{value:+.1f}"
    return "0" if text in ("+0.0", "-0.0") else f"{text.replace('-', '−')} %"


def dots(scale, values):
    """(height, path): a subpath per column, dashed so that it has a dot for each host."""
    wide = (WIDTH - 2 * MARGIN) / BINS
    columns = Counter(math.floor((scale(value) - MARGIN) / wide) for value in values)
    highest = max(columns.values())
    step = min(DOT + 0.5, STACK / highest)
    base = math.ceil(step * (highest - 1)) + MARGIN
    path = "".join(
        f"M{number(MARGIN + (k + 0.5) * wide)} {base}v{number(-step * (count - 1) - 0.1)}"
        for k, count in sorted(columns.items())
    )
    # a dash has no length but its round ends
    drawn = f'<path class="dots" stroke-width="{DOT}" stroke-dasharray="0.01 {step - 0.01:.2f}" d="{path}"/>'
    return base, drawn


def axis(scale, y):
    parts = [f'<path class="axis" d="M{MARGIN} {y}H{WIDTH - MARGIN}"/>']
    for mark in scale.marks():
        words = percent(mark).replace(".0 ", " ")
        parts.append(f'<text x="{number(scale(mark))}" y="{y + 13}" text-anchor="middle">{words}</text>')
    return "".join(parts)


def odd_row(scale, y, host, ratio, low, high):
    """ratio, low, high: in percent from the others' median."""
    x = scale(ratio)
    left = scale(low) - 6 if x > WIDTH / 2 else scale(high) + 6
    anchor = "end" if x > WIDTH / 2 else "start"
    name = host if len(host) <= 24 else host[:23] + "…"
    return (
        f'<path class="out" d="M{number(scale(low))} {y}H{number(scale(high))}"/>'
        f'<circle class="at" cx="{number(x)}" cy="{y}" r="3"/>'
        f'<text class="name" x="{number(left)}" y="{y + 4}" text-anchor="{anchor}">{html.escape(name)}</text>'
    )


def draw(label, values, odd):
    """label: of the whole, for who cannot see it. values: of all hosts, in percent from the median. odd: (host, ratio,
    low, high), in percent from the median of the others."""
    shown = odd[:LABELLED]
    scale = Scale(min(*values, 0, *(row[2] for row in shown)), max(*values, 0, *(row[3] for row in shown)))
    height, path = dots(scale, values)
    y = height + 6
    parts = [axis(scale, y)]
    if len(values) > 3:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
        parts.append(f'<path class="band" d="M{number(scale(low))} {y}H{number(scale(high))}"/>')
    parts.append(path)
    y += 22
    for row in shown:
        y += ROW
        parts.append(odd_row(scale, y, *row))
    return f'<svg viewBox="0 0 {WIDTH} {y + 6}" role="img" aria-label="{html.escape(label)}">{"".join(parts)}</svg>'
