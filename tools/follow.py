#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Follows one experiment over ipclabd's unix socket until it ends: a progress line, then the table of its results.

Used by tools/run. Listens to the event stream rather than asking again and again: what watches a measurement shall
cost the machine next to nothing. Needs nothing but Python's standard library.
"""

import argparse
import http.client
import json
import os
import socket
import sys
import time

FINAL = ("done", "failed", "cancelled")
FIRST_ENDS = ("sender", "initiator", "server")  # of two agents, and the only one where there is one
QUIET_SECONDS = 5  # between two progress lines when there is no terminal


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket; the name that HTTP wants for the host is of no consequence there."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def parse_events(lines, last_id):
    """(id, event, data) of server-sent events; (id of the last event, None, None) for a comment, which is a sign of
    life when there is nothing to tell."""
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
        """What parse_events() makes of a stream; ends when the stream does or is silent for a minute."""
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
            return  # the caller asks for the state, and listens again from the last id
        finally:
            connection.close()


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def bytes_text(rate):
    return f"{rate / 1e6:,.1f} MB/s"


def micros_text(nanoseconds):
    return f"{nanoseconds / 1e3:,.2f} µs"


def point_text(point):
    words = [str(point[key]) for key in ("workload", "transport") if key in point]
    if "message_size" in point:
        words.append(size_text(point["message_size"]))
    return " ".join(words)


def is_counted(point, agent):
    """Whether the messages that an agent tells are those of the point: who receives them, both ends where both do; of
    round trips and of what is no message who began them."""
    direction = point.get("direction", "down")
    if point.get("workload") == "stream" and direction == "both":
        return True
    first = point.get("workload") != "stream" or direction == "up"
    return (agent in FIRST_ENDS) == first


class Progress:
    """The line that tells how far the experiment is, and what the running run does right now."""

    def __init__(self, experiment, clock=time.monotonic):
        self.clock = clock
        self.learn(experiment)
        self.run = None
        self.threads = {}  # (agent, thread) -> its newest sample
        self.terminal = sys.stdout.isatty()
        self.told_at = 0.0

    def learn(self, experiment):
        self.experiment = experiment
        self.learned_at = self.clock()  # the time left is told when a run ends, and runs on meanwhile

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
        if self.run["point"].get("workload") == "stream":
            words.append(bytes_text(sum(s["bytes"] * 1e9 / s["interval_ns"] for s in counted)))
        words.append(f"{sum(s['messages'] * 1e9 / s['interval_ns'] for s in counted):,.0f} messages/s")
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
                progress.take("experiment", client.get(target))  # those before it are no events of its own
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


def latency_cells(row):
    latency = row.get("latency_ns") or {}
    return [median(latency.get(name)) for name in ("p50", "p99")]


def table(rows):
    """Header and cells of a results table: the fields in which the points differ, then the figures."""
    fields = [key for key in rows[0]["point"] if len({json.dumps(r["point"].get(key)) for r in rows}) > 1]
    fields = [f for f in fields if f not in ("workload", "transport", "message_size")]
    repeated = any(row["runs"] > 1 for row in rows)
    kinds = {(row.get("latency_ns") or {}).get("kind") for row in rows} - {None}
    header = ["workload", "transport", "size", *fields, "MB/s", "messages/s"]
    if kinds:
        header += [f"p50 µs ({'/'.join(sorted(kinds))})", "p99 µs"]
    if repeated:
        header.append("runs")
    cells = []
    for row in rows:
        point = row["point"]
        line = [point.get("workload", ""), point.get("transport", ""), size_text(point["message_size"])
                if "message_size" in point else ""]
        line += [point[f] if isinstance(point.get(f), str) else json.dumps(point.get(f, "")) for f in fields]
        throughput, messages = median(row["throughput_bytes_per_second"]), median(row["messages_per_second"])
        line.append("–" if throughput is None else f"{throughput / 1e6:,.1f}")
        line.append("–" if messages is None else f"{messages:,.0f}")
        if kinds:
            line += ["–" if v is None else f"{v / 1e3:,.2f}" for v in latency_cells(row)]
        if repeated:
            line.append(str(row["runs"]))
        cells.append((line, row.get("flags") or []))
    return header, cells


def sort_key(row):
    point = row["point"]
    return (point.get("workload") != "stream", str(point.get("workload")), str(point.get("transport")),
            point.get("message_size", 0))


def show_table(rows):
    if not rows:
        return
    header, cells = table(sorted(rows, key=sort_key))
    left = header.index("MB/s") - 1  # the words before the figures; sizes are figures too
    widths = [max(len(header[i]), *(len(line[i]) for line, _ in cells)) for i in range(len(header))]

    def render(line, flags):
        columns = [
            cell.ljust(width) if i < 2 or 2 < i <= left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        return "  ".join([*columns, flags]).rstrip()

    common = set.intersection(*(set(flags) for _, flags in cells)) if len(cells) > 1 else set()
    own = [" ".join(flag for flag in flags if flag not in common) for _, flags in cells]
    print(render(header, "flags" if any(own) else ""))
    for (line, _), flags in zip(cells, own, strict=True):
        print(render(line, flags))
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
