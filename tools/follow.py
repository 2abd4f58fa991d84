#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Follows one experiment over ipclabd's unix socket until it ends: a progress line, then the table of its results.

Used by tools/run. Receives the event stream instead of polling, because watching a measurement must cost the machine
almost nothing. Needs only Python's standard library.
"""

import argparse
import http.client
import itertools
import json
import os
import socket
import sys
import time
import typing

FINAL = ("done", "failed", "cancelled")
LATENCIES = {"rtt": "round trip", "one_way": "one way", "call": "per call", "switch": "per hop"}
COSTS = {"syscall": "per call", "context-switch": "per switch"}
MESSAGES = "messages/s"
RATES = {"syscall": "calls/s", "context-switch": "rounds/s"}
NOTES = {
    "call": "Percentiles are of means: the clock is read once in a batch of calls.",
    "switch": "A hop is a switch, and what the pipe and the working set cost without one.\n"
              "Its percentiles are of means: the clock is read once in a round of hops.",
}
FIRST_ENDS = ("sender", "initiator", "server")  # of two agents, and the only one where there is one
QUIET_SECONDS = 5  # between two progress lines when there is no terminal


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket, where the host name has no meaning."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def parse_events(lines, last_id):
    """(id, event, data) of server-sent events; (id of the last event, None, None) for a comment, which the server
    sends as a heartbeat."""
    identity, event, data = last_id, "message", []
    for line in lines:
        text = line.decode().rstrip("\r\n")
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "id":
            identity = value
        elif field == "event":
            event = value
        elif field == "data":
            data.append(value)
        elif not text:
            last_id = identity
            if data:
                yield last_id, event, json.loads("\n".join(data))
            event, data = "message", []
        elif not field:
            yield last_id, None, None


class Client:
    def __init__(self, path):
        self.path = path

    def get(self, target):
        connection = UnixConnection(self.path, timeout=30)
        try:
            connection.request("GET", target, headers={"Accept": "application/json"})
            response = connection.getresponse()
            body = json.load(response)
        finally:
            connection.close()
        if response.status != 200:
            raise RuntimeError(f"GET {target}: {response.status} {body.get('detail') or body.get('title')}")
        return body

    def items(self, target):
        """All items of a list, page by page."""
        cursor = None
        while True:
            page = self.get(target + (f"?cursor={cursor}" if cursor is not None else ""))
            yield from page["items"]
            cursor = page.get("next")
            if cursor is None:
                return

    def events(self, target, last_id):
        """Yields the events of a stream; ends with the stream, or when it is silent for a minute."""
        connection = UnixConnection(self.path, timeout=60)
        try:
            headers = {"Accept": "text/event-stream"}
            if last_id:
                headers["Last-Event-ID"] = last_id
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                raise RuntimeError(f"GET {target}: {response.status}")
            yield from parse_events(response, last_id)
        except (OSError, http.client.HTTPException):
            return  # the caller reads the state, and reconnects after the last id
        finally:
            connection.close()


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def bytes_text(rate):
    return f"{rate / 1e6:,.1f} MB/s"


def micros_decimals(nanoseconds):
    """Decimals of a time: a call of 25 ns must not read 0.03 µs, and milliseconds need no tens of ns."""
    return 3 if nanoseconds < 1e3 else 2 if nanoseconds < 1e5 else 1


def micros_text(nanoseconds):
    return f"{nanoseconds / 1e3:,.{micros_decimals(nanoseconds)}f} µs"


def point_text(point):
    words = [str(point[key]) for key in ("workload", "transport") if key in point]
    if "message_size" in point:
        words.append(size_text(point["message_size"]))
    return " ".join(words)


def is_counted(point, agent):
    """Whether an agent's messages are those of the point: the receiver's, or both ends' where both receive. Round
    trips, calls and switches are those of the end that begins them."""
    direction = point.get("direction", "down")
    if point.get("workload") == "stream" and direction == "both":
        return True
    first = point.get("workload") != "stream" or direction == "up"
    return (agent in FIRST_ENDS) == first


class Progress:
    """The progress line: the state of the experiment, and the current figures of its active run."""

    def __init__(self, experiment, clock=time.monotonic):
        self.clock = clock
        self.learn(experiment)
        self.run = None
        self.threads = {}  # (agent, thread) -> its newest sample
        self.terminal = sys.stdout.isatty()
        self.told_at = 0.0

    def learn(self, experiment):
        self.experiment = experiment
        self.learned_at = self.clock()  # the time left is sent when a run ends, and counts down meanwhile

    def take(self, event, data):
        if event == "experiment":
            self.learn(data)
        elif event == "run":
            if data["state"] == "running":
                self.run, self.threads = data, {}
            elif data["state"] == "failed":
                self.clear()
                print(f"run {data['id']} ({point_text(data['point'])}) failed: {data['error']}", flush=True)
        elif event == "sample" and self.run and data["run_id"] == self.run["id"]:
            self.threads[data["agent"], data["thread"]] = data

    def rate_text(self):
        counted = [s for (agent, _), s in self.threads.items() if is_counted(self.run["point"], agent)]
        if not counted:
            return "starting"
        words = []
        workload = self.run["point"].get("workload")
        if workload == "stream":
            words.append(bytes_text(sum(s["bytes"] * 1e9 / s["interval_ns"] for s in counted)))
        rate = sum(s["messages"] * 1e9 / s["interval_ns"] for s in counted)
        words.append(f"{rate:,.0f} {RATES.get(workload, MESSAGES)}")
        latency = counted[0].get("latency_ns")
        if latency and latency.get("p50") is not None:
            words.append(f"p50 {micros_text(latency['p50'])}")
        return ", ".join(words)

    def line(self):
        progress = self.experiment["progress"]
        ended = progress["runs_done"] + progress["runs_failed"]
        words = [f"[{ended}/{progress['runs_total']}]"]
        if self.experiment["state"] == "queued":
            words.append(f"queued at position {self.experiment['queue_position']}")
        elif self.run:
            words.append(f"{point_text(self.run['point'])}: {self.rate_text()}")
        if self.experiment.get("eta_seconds") is not None:
            left = round(self.experiment["eta_seconds"] - (self.clock() - self.learned_at))
            words.append(f"· about {left} s left" if left > 0 else "· any moment now")
        return " ".join(words)

    def show(self):
        now = self.clock()
        if self.terminal:
            columns = os.get_terminal_size(sys.stdout.fileno()).columns
            print("\r\033[K" + self.line()[: max(columns - 1, 20)], end="", flush=True)
        elif now - self.told_at >= QUIET_SECONDS:
            print(self.line(), flush=True)
            self.told_at = now

    def clear(self):
        if self.terminal:
            print("\r\033[K", end="", flush=True)


def follow(client, identity):
    """Shows the progress until the experiment has ended; returns it."""
    target = f"/experiments/{identity}"
    progress = Progress(client.get(target))
    last_id = None
    while progress.experiment["state"] not in FINAL:
        for event_id, event, data in client.events(target + "/events", last_id):
            last_id = event_id
            if event:
                progress.take(event, data)
            elif progress.experiment["state"] == "queued":
                progress.take("experiment", client.get(target))  # earlier changes have no events here
            progress.show()
            if progress.experiment["state"] in FINAL:
                break
        else:
            time.sleep(0.2)
            progress.take("experiment", client.get(target))
    progress.clear()
    return client.get(target)


def median(value):
    return value.get("median") if isinstance(value, dict) else value


def numbers(values, decimals, divisor=1):
    return ["–" if value is None else f"{value / divisor:,.{decimals}f}" for value in values]


def micros(values):
    """Formats a column, with as many decimals as its smallest value needs."""
    return numbers(values, micros_decimals(min([v for v in values if v is not None], default=0)), 1e3)


class Column(typing.NamedTuple):
    top: str  # the first of two lines of heading
    bottom: str
    cells: list
    is_word: bool = False


def field_text(point, field):
    value = point.get(field, "")
    return value if isinstance(value, str) else json.dumps(value)


def varies(points, field):
    """Among the points that have the field, which depends on workload and transport."""
    return len({json.dumps(point[field], sort_keys=True) for point in points if field in point}) > 1


def word_columns(points):
    """The fields in which the points differ."""
    fields = [field for field in dict.fromkeys(key for point in points for key in point) if varies(points, field)]
    columns = []
    for field in fields:
        if field == "message_size":
            sizes = [size_text(point[field]) if field in point else "" for point in points]
            columns.append(Column("", "size", sizes))
        else:
            columns.append(Column("", field, [field_text(point, field) for point in points], True))
    return columns


def rate_columns(rows, workload):
    """The columns of throughput and of the rate."""
    columns = []
    if any("transport" in row["point"] for row in rows):
        columns.append(Column("", "MB/s", numbers([median(r["throughput_bytes_per_second"]) for r in rows], 1, 1e6)))
    both_ways = [median(row.get("both_ways_bytes_per_second")) for row in rows]
    if any(value is not None for value in both_ways):
        columns.append(Column("both ways", "MB/s", numbers(both_ways, 1, 1e6)))
    messages = [median(row["messages_per_second"]) for row in rows]
    return [*columns, Column("", RATES.get(workload, MESSAGES), numbers(messages, 0))]


def time_columns(rows, workload):
    columns = []
    costs = [median(row.get("cost_ns")) for row in rows]
    if any(value is not None for value in costs):
        columns.append(Column(COSTS.get(workload, ""), "cost, ns", numbers(costs, 1)))
    for field, percentiles in (("latency_ns", ("p50", "p99")), ("latency_one_way_ns", ("p50",))):
        latencies = [row.get(field) or {} for row in rows]
        kinds = sorted({latency["kind"] for latency in latencies if latency})
        if kinds:
            top = "/".join(LATENCIES.get(kind, kind) for kind in kinds)
            for percentile in percentiles:
                values = [median(latency.get(percentile)) for latency in latencies]
                columns.append(Column(top, f"{percentile} µs", micros(values)))
                top = ""  # only above the first
    return columns


def table(rows):
    """For the rows of one workload: the settings that all points share, and the columns of the others and of the
    figures."""
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
    columns = [*word_columns(points), *rate_columns(rows, workload), *time_columns(rows, workload)]
    if len(runs) > 1:
        columns.append(Column("", "runs", [str(row["runs"]) for row in rows]))
    return ", ".join(title), columns


def sort_key(row):
    point = row["point"]
    return (point.get("workload") != "stream", str(point.get("workload")), str(point.get("transport")),
            point.get("message_size", 0))


def lines_of(columns):
    """Two lines of heading, the first of which may be blank, and a line per row, all as wide as they need."""
    lists = [[column.top, column.bottom, *column.cells] for column in columns]
    widths = [max(len(cell) for cell in cells) for cells in lists]
    for line in zip(*lists, strict=True):
        yield "  ".join(cell.ljust(width) if column.is_word else cell.rjust(width)
                        for column, cell, width in zip(columns, line, widths, strict=True))


def show_table(rows):
    """A table per workload: no two of them have the same figures, and all in one would not fit a terminal."""
    rows = sorted(rows, key=sort_key)
    flags = [row.get("flags") or [] for row in rows]
    common = set.intersection(*map(set, flags)) if len(rows) > 1 else set()
    for number, (_, group) in enumerate(itertools.groupby(rows, key=lambda row: row["point"].get("workload"))):
        group = list(group)
        title, columns = table(group)
        own = [" ".join(flag for flag in row.get("flags") or [] if flag not in common) for row in group]
        print(("\n" if number else "") + title)
        for line, told in zip(lines_of(columns), ["", "flags" if any(own) else "", *own], strict=True):
            if line.strip():
                print(f"{line}  {told}".rstrip())
        for kind, note in NOTES.items():
            if any(column.top == LATENCIES[kind] and column.bottom.startswith("p50") for column in columns):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--socket", required=True, help="ipclabd's unix socket")
    parser.add_argument("id", type=int, help="the experiment")
    arguments = parser.parse_args()
    client = Client(arguments.socket)
    try:
        experiment = follow(client, arguments.id)
        print()
        show_table(list(client.items(f"/experiments/{arguments.id}/results")))
        show_skipped(experiment.get("skipped") or [])
    except KeyboardInterrupt:
        print()
        return 130
    except (OSError, RuntimeError, http.client.HTTPException) as error:
        print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
        return 2
    progress = experiment["progress"]
    if experiment["state"] == "done" and progress["runs_done"] == progress["runs_total"]:
        return 0
    reason = f": {experiment['error']}" if experiment.get("error") else ""
    print(f"\nExperiment {experiment['id']} is {experiment['state']}, {progress['runs_done']} of "
          f"{progress['runs_total']} runs done{reason}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
