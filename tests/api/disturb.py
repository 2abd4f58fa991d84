# SPDX-License-Identifier: MIT
"""A process that uses a CPU beside a run, and knows exactly how much of it in each moment: its own CPU time, which the
kernel accounts to the nanosecond, against CLOCK_MONOTONIC, on which a run's seconds are dated.

    disturb.py KIND CPU FILE

KIND: preemptor (40 µs, 1000 times a second), duty (30 % in bursts of 3 ms), spinner (all that it can have), tcp (a
connection to itself over loopback, at most a third of the time). It begins at once, ends with SIGTERM, and writes
lines of "MONOTONIC_NS CPU_NS" to FILE.
"""

import os
import signal
import socket
import sys
import time

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
