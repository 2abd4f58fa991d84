#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often conclusions are right on this machine: trials with real runs, counted.

same      points of one pipe that stand twice, in 12 blocks: no figure differs
slowed    the second instance is 5 % slower (tests/unit/slowed-agent.c), with as many blocks as `until` chose: it is
          called slower by its throughput
delayed   the same of round trips: it is called slower by their median
advice    what /advice says that leads is not called slower than any other in fresh blocks of all of them
fitted    sizes that were not measured, which /advice interpolates: the throughput that another daemon measures at them,
          in blocks between those of the first, is within the interval of it
knee      a ring whose reader takes a message every 200 µs (tests/unit/throttled-agent.c): the rates between which
          `search` finds the knee are within 5 % of that one

Run by tools/bench; wants an otherwise idle machine. One trial of each part follows the other, so that where the time is
over, each part has its counts. On a busy machine runs that got no CPU at all are retried, as the API offers, and
`--figure cpu_per_message` judges the slowed agent by what other programs disturb least. A trial that cannot be made
counts as wrong.
"""

import argparse
import itertools
import math
import os
import statistics
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]
from ipclabtest import BUILD  # noqa: E402
from ipclabtest.daemon import Daemon  # noqa: E402

PATIENCE_SECONDS = 900
SIZE = 4096
TRANSPORTS = ["pipe", "fifo", "unix-stream", "unix-seqpacket", "shm-posix"]
QUESTIONS = list(itertools.product([256, SIZE, 65536], [("stream", "throughput"), ("pingpong", "latency_p50")]))
FITTED_FROM = [4**n for n in range(3, 10)]
FITTED = [700, 3000, 12000, 50000]
DIFFERS = ("faster", "slower")
FIGURES = {
    "throughput": "throughput_bytes_per_second",
    "cpu_per_message": "cpu_ns_per_message",
    "latency_p50": "latency_ns_p50",
}
RETRIES = 3
SERVED = 5000  # messages per second: SERVICE_NS of tests/unit/throttled-agent.c
LATE_US = 10000  # reached 2 % beyond that rate by the last message of half a second


def go_first():
    """Before all programs that do not: a knee is of the machine, and the trial is about the throttle."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


class Trials:
    """A daemon, and what its experiments show. Each trial yields (whether it was right, what it saw)."""

    def __init__(self, seconds, figure):
        self.seconds = seconds
        self.figure = figure
        self.daemons = {}

    def client(self, agent="agent/ipclab-agent", preexec=None, which=1):
        if (agent, which) not in self.daemons:
            self.daemons[agent, which] = Daemon(agent=BUILD / agent, preexec=preexec)
            self.daemons[agent, which].start()
        return self.daemons[agent, which].client()

    def end(self):
        for daemon in self.daemons.values():
            daemon.remove()

    def run(self, spec, agent="agent/ipclab-agent", preexec=None):
        """(the client, the id of the experiment) when it has ended well."""
        client = self.client(agent, preexec)
        return client, self.post(client, spec)

    def post(self, client, spec):
        times = {"duration_seconds": self.seconds, "warmup_seconds": self.seconds / 4}
        return self.wait_done(client, client.post(times | spec)["id"])

    def wait_done(self, client, identity):
        experiment = client.wait_final(identity, PATIENCE_SECONDS)
        for _ in range(RETRIES):
            if experiment["state"] == "failed":
                client.request("POST", f"/experiments/{identity}/retry")
                experiment = client.wait_final(identity, PATIENCE_SECONDS)
        if experiment["state"] != "done":
            raise RuntimeError(f"experiment {identity} is {experiment['state']}: {experiment['error']}")
        return identity

    def alternate(self, specs, blocks):
        """[(client, experiment)] of a daemon each, a block of one after a block of the other: what the machine does
        meanwhile is in both, and neither daemon knows of the other's sizes."""
        clients = [self.client(which=which) for which in range(len(specs))]
        posted = [(client, self.post(client, spec)) for client, spec in zip(clients, specs, strict=True)]
        for _ in range(blocks - 1):
            for client, identity in posted:
                client.request("POST", f"/experiments/{identity}/extend", {"blocks": 1})
                self.wait_done(client, identity)
        return posted

    def instances(self, spec, agent="agent/ipclab-agent"):
        """The figures of /compare's one row."""
        client, identity = self.run({"points": "twice", "message_size": SIZE} | spec, agent)
        answer = client.get(f"/compare?experiment={identity}&axis=instance&baseline=1&candidate=2")
        (row,) = answer["rows"]
        figures = {name: figure for name, figure in row["figures"].items() if figure}
        return row["baseline"]["runs"], figures

    def results(self, part, number):
        """The result of one trial: [(whether it was right, what it saw)]."""
        try:
            return list(getattr(self, part)(number))
        except (RuntimeError, AssertionError) as error:
            return [(False, str(error))]

    def same(self, _):
        runs, figures = self.instances({"repetitions": 12})
        found = {name: figure["verdict"] for name, figure in figures.items()}
        yield not set(found.values()) & set(DIFFERS), f"{runs} blocks, {found}"

    def slowed(self, _):
        return self.slower("stream", self.figure)

    def delayed(self, _):
        return self.slower("pingpong", "latency_p50")

    def slower(self, workload, name):
        until = {"relative_ci": 0.02, "figure": name, "max_repetitions": 60, "budget_seconds": 600}
        until["compare"] = {"axis": "instance", "baseline": 1}
        # On one CPU: on two, where they wait for each other's locks, a pause between two calls makes them no slower.
        spec = {"workload": workload, "until": until, "placement": "same-cpu"}
        runs, figures = self.instances(spec, "tests/unit/slowed-agent")
        figure = figures[FIGURES[name]]
        interval = "{low:.3f}, {high:.3f}".format_map(figure["interval"]) if figure["interval"] else "no interval"
        yield figure["verdict"] == "slower", f"{runs} blocks, {figure['verdict']}, {figure['ratio']:.3f} [{interval}]"

    def advice(self, number):
        size, (workload, want) = QUESTIONS[number % len(QUESTIONS)]
        spec = {"workload": workload, "message_size": size, "transport": TRANSPORTS, "repetitions": 8}
        client, first = self.run(spec)
        answer = client.get(f"/advice?workload={workload}&message_size={size}&want={want}&placement=default")
        first_of_all = next((item for item in answer["items"] if item["leads"]), None)
        if not first_of_all:
            raise RuntimeError(answer["sentence"])
        winner = first_of_all["point"]["transport"]
        client, fresh = self.run(spec)
        figure = "throughput_bytes_per_second" if want == "throughput" else "latency_ns_p50"
        better = []
        for other in TRANSPORTS:
            if other != winner:
                target = f"/compare?experiment={fresh}&axis=transport&baseline={winner}&candidate={other}"
                (row,) = client.get(target)["rows"]
                if row["figures"][figure]["verdict"] == "faster":
                    better.append(f"{other} is faster by {row['figures'][figure]['ratio']:.3f}")
        for identity in (first, fresh):  # so that each trial has its own evidence
            client.request("DELETE", f"/experiments/{identity}")
        yield not better, f"{workload} {size}: {winner} ({first_of_all['standing']}) {', '.join(better)}"

    def fitted(self, number):
        transport = TRANSPORTS[number % len(TRANSPORTS)]
        specs = [{"transport": transport, "message_size": sizes} for sizes in (FITTED_FROM, FITTED)]
        (client, first), (other, fresh) = self.alternate(specs, 8)
        expected = {}
        for size in FITTED:
            items = client.get(f"/advice?message_size={size}&want=throughput&placement=default")["items"]
            (expected[size],) = (item["interval"] for item in items if item["point"]["transport"] == transport)
        rows = other.get(f"/experiments/{fresh}/results")["items"]
        client.request("DELETE", f"/experiments/{first}")  # so that each trial has its own evidence
        runs = other.items(f"/experiments/{fresh}/runs")
        for row in rows:
            size = row["point"]["message_size"]
            mine = [run["result"] for run in runs if run["point"] == row["point"] and run["state"] == "done"]
            # The median of a row is the lower one of two, which is too low where runs differ by half.
            value = statistics.median(result["throughput_bytes_per_second"] for result in mine)
            low, high = expected[size]["low"], expected[size]["high"]
            yield low <= value <= high, f"{transport} {size}: {value:.3e} beside [{low:.3e}, {high:.3e}]"

    def knee(self, _):
        spec = {"transport": "shm-posix", "duration_seconds": 0.5, "warmup_seconds": 0, "repetitions": 1}
        spec["search"] = {"rate": {"latency_p99_below_us": LATE_US}}
        client, identity = self.run(spec, "tests/unit/throttled-agent", go_first)
        (point,) = client.get(f"/experiments/{identity}")["search"]["points"]
        kept, lost = point["highest_rate"], point["lowest_rate_not_kept"]
        right = point["state"] == "found" and all(abs(rate / SERVED - 1) <= 0.05 for rate in (kept, lost))
        yield right, f"{point['state']}, {kept} to {lost} beside {SERVED}, {len(point['curve'])} rates"


# What is to hold, of how many
PARTS = {"same": 0.95, "slowed": 0.95, "delayed": 0.95, "advice": 0.95, "fitted": 0.9, "knee": 0.95}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help=f"{', '.join(PARTS)}; all of them")
    parser.add_argument("--trials", type=int, default=20, help="of each part")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which no further trial begins")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a run")
    parser.add_argument("--figure", choices=FIGURES, default="throughput", help="by which the slowed agent is judged")
    parser.add_argument("--verbose", action="store_true", help="a line for each trial")
    parser.add_argument("--check", action="store_true", help="exit 1 when a part is right less often than it is to be")
    arguments = parser.parse_args()
    trials = Trials(arguments.seconds, arguments.figure)
    counts = {part: [0, 0] for part in arguments.parts or PARTS}
    end = time.monotonic() + 60 * arguments.minutes
    try:
        for number, part in itertools.product(range(arguments.trials), counts):
            if time.monotonic() >= end:
                break
            for good, seen in trials.results(part, number):
                counts[part][0] += good
                counts[part][1] += 1
                if arguments.verbose or not good:
                    print(f"  {part} {number + 1}: {'right' if good else 'wrong'}, {seen}", flush=True)
    finally:
        trials.end()
    for part, (right, of) in counts.items():
        print(f"{part:8} right in {right} of {of} (to be at least {PARTS[part]:.0%})")
    bad = any(of == 0 or right < PARTS[part] * of for part, (right, of) in counts.items())
    return 1 if bad and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
