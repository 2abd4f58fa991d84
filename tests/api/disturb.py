# SPDX-License-Identifier: MIT
"""A process that uses a CPU beside a run, and knows exactly how much of it in each moment: its own CPU time, which the
kernel accounts to the nanosecond, against CLOCK_MONOTONIC, on which a run's seconds are dated.

    disturb.py KIND CPU FILE

KIND: preemptor (40 µs, 1000 times a second), duty (30 % in bursts of 3 ms), spinner (all that it can have), tcp (a
connection to itself over loopback, at most a third of the time). It begins at once, ends with SIGTERM, and writes
lines of "MONOTONIC_NS CPU_NS" to FILE.
"""

import bisect
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

RECORD_NS = 5_000_000
EXCHANGES = 20


def spin(nanoseconds):
    """So much CPU time, not so much time: what displaces it does not shorten it."""
    end = time.thread_time_ns() + nanoseconds
    while time.thread_time_ns() < end:
        pass


def every(period_ns, work):
    """Calls work() each period; periods that were missed are left out."""
    due = time.monotonic_ns()
    while True:
        work()
        due = max(due + period_ns, time.monotonic_ns())
        yield
        time.sleep(max(0, due - time.monotonic_ns()) / 1e9)


def spinner():
    while True:
        spin(2_000_000)
        yield


def tcp():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        out = socket.create_connection(listener.getsockname())
        into, _ = listener.accept()
    data = bytes(65536)

    def exchange():
        for _ in range(EXCHANGES):
            out.sendall(data)
            got = 0
            while got < len(data):
                got += len(into.recv(len(data) - got))

    yield from every(5_000_000, exchange)


KINDS = {
    "preemptor": lambda: every(1_000_000, lambda: spin(40_000)),
    "duty": lambda: every(10_000_000, lambda: spin(3_000_000)),
    "spinner": spinner,
    "tcp": tcp,
}


class Disturber:
    """Such a process, from the moment when it has begun until end(); after that, what it used."""

    def __init__(self, kind, cpu, path):
        self.path = Path(path)
        self.process = subprocess.Popen([sys.executable, __file__, kind, str(cpu), path])
        deadline = time.monotonic() + 30
        while not (self.path.exists() and self.path.read_text().count("\n") > 2):
            if self.process.poll() is not None or time.monotonic() >= deadline:
                self.end()
                raise RuntimeError(f"the disturber {kind} does not begin")
            time.sleep(0.02)

    def end(self):
        self.process.terminate()
        self.process.wait(30)
        lines = [line.split() for line in self.path.read_text().splitlines()]
        self.records = [(int(at), int(cpu)) for at, cpu in (line for line in lines if len(line) == 2)]

    def share(self, begin_ns, interval_ns):
        """What it used of the CPU in that time, by the first and the last record within it."""
        first = bisect.bisect_left(self.records, (begin_ns, 0))
        last = bisect.bisect_right(self.records, (begin_ns + interval_ns, 0)) - 1
        if last <= first:
            return 0
        (since, before), (until, after) = self.records[first], self.records[last]
        return (after - before) / (until - since) if until - since > interval_ns / 2 else 0


def main(kind, cpu, path):
    os.sched_setaffinity(0, {int(cpu)})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    recorded = 0
    with open(path, "w", buffering=1) as file:
        for _ in KINDS[kind]():
            now = time.monotonic_ns()
            if now - recorded >= RECORD_NS:
                file.write(f"{now} {time.process_time_ns()}\n")
                recorded = now


if __name__ == "__main__":
    main(*sys.argv[1:])
