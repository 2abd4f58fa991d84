# SPDX-License-Identifier: MIT
"""Tables as text, the same on a terminal and in a file: columns as wide as they need, figures to the right."""

import itertools
import json
import shutil
import typing

from ipclab_cli.words import LATENCIES, MESSAGES, RATES, field_text, micros_decimals, size_text

COSTS = {"syscall": "per call", "context-switch": "per switch"}
NOTES = {
    "call": "Percentiles are of means: the clock is read once in a batch of calls.",
    "switch": "A hop is a switch, and what the pipe and the working set cost without one.\n"
    "Its percentiles are of means: the clock is read once in a round of hops.",
}


class Column(typing.NamedTuple):
    top: str  # the first of two lines of heading
    bottom: str
    cells: list
    is_word: bool = False


def numbers(values, decimals, divisor=1):
    return ["–" if value is None else f"{value / divisor:,.{decimals}f}" for value in values]


def micros(values):
    """Formats a column, with as many decimals as its smallest value needs."""
    return numbers(values, micros_decimals(min([v for v in values if v is not None], default=0)), 1e3)


def varies(points, field):
    """Among the points that have the field, which depends on workload and transport."""
    return len({json.dumps(point[field], sort_keys=True) for point in points if field in point}) > 1


def word_columns(points):
    """The fields in which the points differ."""
    fields = [field for field in dict.fromkeys(key for point in points for key in point) if varies(points, field)]
    columns = []
    for field in fields:
        is_size = field == "message_size"
        cells = [field_text(point, field) for point in points]
        columns.append(Column("", "size" if is_size else field, cells, not is_size))
    return columns


def rate_columns(rows):
    """The rates of a search, which are of one point."""
    rates = [row.get("rate") for row in rows]
    if not any(rates):
        return []
    return [Column("", "rate", ["closed loop" if rate is None else f"{rate:,}" for rate in rates], True)]


def figure_column(figure, values, workload, kinds):
    """A column whose heading is the figure's title in the daemon's description, and its unit scaled for reading."""
    if figure.unit == "bytes/s":
        return Column(figure.title.removeprefix("Throughput").strip(), "MB/s", numbers(values, 1, 1e6))
    if figure.unit == "messages/s":
        return Column("", RATES.get(workload, MESSAGES), numbers(values, 0))
    if figure.group:
        top = "/".join(LATENCIES.get(kind, kind) for kind in kinds)
        return Column(top, f"{figure.name.replace('_', '.')} µs", micros(values))
    top, per, rest = figure.title.partition(" per ")
    bottom = f"{per.lstrip()}{rest}" if per else figure.title.lower()
    if figure.unit == "ns":
        return Column(
            COSTS.get(workload, "") if figure.name == "cost_ns" else top if per else "",
            f"{bottom}, ns",
            numbers(values, 1),
        )
    return Column(top if per else "", bottom, numbers(values, 3 if figure.unit == "cycles" else 0))


def figure_columns(rows, workload, figures, every):
    """The columns of the figures that any of the rows has."""
    columns, titled = [], None
    for figure in (one for one in figures if every or one.usual):
        values = [figure.of(row) for row in rows]
        if all(value is None for value in values):
            continue
        kinds = sorted({row[figure.group]["kind"] for row in rows if row.get(figure.group)}) if figure.group else []
        column = figure_column(figure, values, workload, kinds)
        if figure.group and figure.group == titled:
            column = column._replace(top="")  # only above the first
        titled = figure.group
        columns.append(column)
    return columns


def width_of(columns):
    widths = [max(len(cell) for cell in [column.top, column.bottom, *column.cells]) for column in columns]
    return sum(widths) + 2 * (len(widths) - 1)


def result_table(rows, figures, every, width):
    """For the rows of one workload: the settings that all points share, and the columns of the others and of the
    figures; without `every`, of the first figures that there is room for."""
    points = [row["point"] for row in rows]
    workload = points[0].get("workload", "")
    title = [workload]
    if "transport" in points[0] and not varies(points, "transport"):
        title.append(points[0]["transport"])
    if "message_size" in points[0] and not varies(points, "message_size"):
        title.append(size_text(points[0]["message_size"]))
    runs = {row["runs"] for row in rows}
    if len(runs) == 1 and max(runs) > 1:
        title.append(f"{max(runs)} runs" + (" each" if len(rows) > 1 else ""))
    words = [*word_columns(points), *rate_columns(rows)]
    shown = figure_columns(rows, workload, figures, every)
    last = [Column("", "runs", [str(row["runs"]) for row in rows])] if len(runs) > 1 else []
    while not every and len(shown) > 1 and width_of([*words, *shown, *last]) > width:
        shown.pop()
    return ", ".join(title), [*words, *shown, *last]


def sort_key(row):
    point = row["point"]
    return (
        point.get("workload") != "stream",
        str(point.get("workload")),
        str(point.get("transport")),
        point.get("message_size", 0),
    )


def lines_of(columns):
    """Two lines of heading, the first of which may be blank, and a line per row."""
    lists = [[column.top, column.bottom, *column.cells] for column in columns]
    widths = [max(len(cell) for cell in cells) for cells in lists]
    for line in zip(*lists, strict=True):
        yield "  ".join(
            cell.ljust(width) if column.is_word else cell.rjust(width)
            for column, cell, width in zip(columns, line, widths, strict=True)
        )


def remarks(row, common):
    """Flags that not all rows have, and why a row without a done run has no figure."""
    words = [flag for flag in row.get("flags") or [] if flag not in common]
    if row["runs"] == 0 and row.get("error"):
        words.append(f"failed: {row['error']}")
    return " ".join(words)


def show_results(rows, figures, every=False):
    """A table per workload: no two of them have the same figures, and all in one would not fit a terminal."""
    rows = sorted(rows, key=sort_key)
    if any(row.get("rate") for row in rows):
        rows.sort(key=lambda row: (sort_key(row), json.dumps(row["point"], sort_keys=True), row["rate"] or 0))
    flags = [row.get("flags") or [] for row in rows]
    common = set.intersection(*map(set, flags)) if len(rows) > 1 else set()
    width = shutil.get_terminal_size().columns
    for number, (_, group) in enumerate(itertools.groupby(rows, key=lambda row: row["point"].get("workload"))):
        group = list(group)
        title, columns = result_table(group, figures, every, width)
        own = [remarks(row, common) for row in group]
        print(("\n" if number else "") + title)
        for line, words in zip(lines_of(columns), ["", "flags" if any(own) else "", *own], strict=True):
            if line.strip() or words:
                print(f"{line}  {words}".rstrip())
        for kind, note in NOTES.items():
            if any(column.top == LATENCIES[kind] and column.bottom.endswith("µs") for column in columns):
                print(note)
    if common:
        print(f"\nFlags of every row: {' '.join(sorted(common))}")


def show_skipped(skipped):
    """Points that this host or the mechanism cannot do, by reason."""
    reasons = {}
    for item in skipped:
        reasons.setdefault(item["reason"], []).append(item["point"])
    for reason, points in reasons.items():
        print(f"\nLeft out, {len(points)} of the points: {reason}")


def show_list(headings, rows, right=()):
    """Rows of text under headings; columns whose heading is in `right` are figures."""
    columns = [
        Column("", heading, [row[i] for row in rows], heading not in right) for i, heading in enumerate(headings)
    ]
    for line in itertools.islice(lines_of(columns), 1, None):
        print(line.rstrip())
