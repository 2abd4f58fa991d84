# SPDX-License-Identifier: MIT
"""Following an experiment until it ends: its runs, the current figures of the active one, and the time left.

Receives the event stream instead of polling, because watching a measurement must cost the machine almost nothing.
Progress holds the state of the experiment; a display draws it: a bar by python3-rich on a terminal, else lines of text.
"""

import contextlib
import shutil
import sys
import time

from ipclab_cli.http import Unreachable
from ipclab_cli.screen import beneath, visible
from ipclab_cli.words import MESSAGES, RATES, bytes_text, micros_text, point_text, seconds_text

FINAL = ("done", "failed", "cancelled")
FIRST_ENDS = ("sender", "initiator", "server")  # of two agents, and the only one where there is one
QUIET_SECONDS = 5  # between two lines when there is no terminal
AWAY_SECONDS = 60  # for a daemon that restarts


def is_counted(point, agent):
    """Whether an agent's messages are those of the point: the receiver's, or both ends' where both receive. Round
    trips, calls and switches are those of the end that begins them."""
    direction = point.get("direction", "down")
    if point.get("workload") == "stream" and direction == "both":
        return True
    first = point.get("workload") != "stream" or direction == "up"
    return (agent in FIRST_ENDS) == first


class Progress:
    """The state of the experiment, and the newest samples of its active run."""

    def __init__(self, experiment, clock=time.monotonic):
        self.clock = clock
        self.update(experiment)
        self.run = None
        self.threads = {}  # (agent, thread) -> its newest sample

    def update(self, experiment):
        self.experiment = experiment
        self.updated_at = self.clock()  # the time left is sent when a run ends, and counts down meanwhile

    def take(self, event, data):
        """A line for what must not be overwritten; None for everything else."""
        if event == "experiment":
            self.update(data)
        elif event == "run":
            if data["state"] == "running":
                self.run, self.threads = data, {}
            elif data["state"] == "failed":
                return f"run {data['id']} ({point_text(data['point'])}) failed: {data['error']}"
        elif event == "sample" and self.run and data["run_id"] == self.run["id"]:
            self.threads[data["agent"], data["thread"]] = data
        return None

    @property
    def total(self):
        return self.experiment["progress"]["runs_total"]

    @property
    def ended(self):
        progress = self.experiment["progress"]
        return progress["runs_done"] + progress["runs_failed"]

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

    def activity(self):
        if self.experiment["state"] == "queued":
            return f"queued at position {self.experiment['queue_position']}"
        return f"{point_text(self.run['point'])}: {self.rate_text()}" if self.run else ""

    def time_left(self):
        if self.experiment.get("eta_seconds") is None:
            return ""
        left = round(self.experiment["eta_seconds"] - (self.clock() - self.updated_at))
        return f"about {seconds_text(left)} left" if left > 0 else "any moment now"

    def line(self):
        words = [f"[{self.ended}/{self.total}]", self.activity()]
        left = self.time_left()
        return " ".join(word for word in [*words, f"· {left}" if left else ""] if word)


class Lines:
    """Text: one line that is overwritten on a terminal, else a line every few seconds."""

    def __init__(self, clock=time.monotonic):
        self.clock = clock
        self.terminal = sys.stdout.isatty()
        self.shown_at = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.erase()
        sys.stdout.flush()

    def erase(self):
        if self.terminal:
            print("\r\033[K", end="", file=beneath(sys.stdout))

    def print(self, text):
        self.erase()
        print(text, flush=True)

    def show(self, progress):
        now = self.clock()
        if self.terminal:
            columns = shutil.get_terminal_size().columns
            self.erase()
            print(visible(progress.line())[: max(columns - 1, 20)], end="", flush=True)
        elif self.shown_at is None or now - self.shown_at >= QUIET_SECONDS:
            print(progress.line(), flush=True)
            self.shown_at = now


class Bars:
    """A bar of the runs by python3-rich, with the live figure and the time left below it."""

    def __init__(self):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self.bars = RichProgress(
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.description}", markup=False),
            console=Console(highlight=False, file=beneath(sys.stdout)),
            transient=True,
        )
        self.task = None

    def __enter__(self):
        self.bars.start()
        self.task = self.bars.add_task("", total=None)
        return self

    def __exit__(self, *_):
        self.bars.stop()

    def print(self, text):
        self.bars.console.print(visible(text), markup=False)

    def show(self, progress):
        words = [word for word in (progress.activity(), progress.time_left()) if word]
        description = visible(" · ".join(words))
        self.bars.update(self.task, completed=progress.ended, total=progress.total, description=description)


class Silence(contextlib.nullcontext):
    """For --json: standard output has one document alone."""

    def print(self, text):
        print(text, file=sys.stderr, flush=True)

    def show(self, progress):
        pass

    def __enter__(self):
        return self


def display_for(plain, silent):
    if silent:
        return Silence()
    if not plain and sys.stdout.isatty():
        with contextlib.suppress(ImportError):
            return Bars()
    return Lines()


def get_patiently(client, target):
    """client.get(), through a restart of the daemon."""
    deadline = time.monotonic() + AWAY_SECONDS
    while True:
        try:
            return client.get(target)
        except Unreachable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def stream(client, target, last_id):
    with contextlib.suppress(Unreachable):  # a restart: the caller reads the state, and reconnects
        yield from client.events(target, last_id)


def follow(client, identity, display):
    """Shows the progress until the experiment has ended; returns it."""
    target = f"/experiments/{identity}"
    progress = Progress(client.get(target))
    last_id = None
    with display:
        while progress.experiment["state"] not in FINAL:
            for event_id, event, data in stream(client, target + "/events", last_id):
                last_id = event_id
                if event:
                    line = progress.take(event, data)
                    if line:
                        display.print(line)
                elif progress.experiment["state"] == "queued":
                    progress.take("experiment", get_patiently(client, target))  # earlier changes have no events here
                display.show(progress)
                if progress.experiment["state"] in FINAL:
                    break
            else:
                time.sleep(0.2)
                progress.take("experiment", get_patiently(client, target))
    return get_patiently(client, target)
