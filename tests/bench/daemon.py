#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What ipclabd itself costs: POST to the first measured message; CPU time and memory, idle and during a run.

Starts a daemon of its own in a directory of its own. Wants a quiet machine; fails only when something does not work.
"""

import argparse
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD = Path(os.environ.get("IPCLAB_BUILD_ROOT", Path(__file__).parents[2] / "build"))
READY_SECONDS = 20
STOP_SECONDS = 20
FIRST_MESSAGE = {"transport": "pipe", "message_size": 64, "duration_seconds": 0.1, "warmup_seconds": 0}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Daemon:
    def __init__(self, base):
        self.log = base / "log"
        self.socket = base / "socket"
        command = [
            BUILD / "daemon/ipclabd",
            f"--state-dir={base / 'state'}",
            f"--runtime-dir={base / 'run'}",
            f"--socket={self.socket}",
            "--listen=none",
            f"--agent={BUILD / 'agent/ipclab-agent'}",
        ]
        if os.geteuid() == 0:
            command.append("--agent-user=nobody")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.wait_ready()

    def wait_ready(self):
        deadline = time.monotonic() + READY_SECONDS
        while not re.search(r"ready \{", self.log.read_text(errors="replace")):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"ipclabd is not ready:\n{self.log.read_text(errors='replace')}")
            time.sleep(0.01)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def post(self, spec):
        connection = UnixConnection(str(self.socket))
        connection.request("POST", "/experiments", json.dumps(spec), {"Content-Type": "application/json"})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        if response.status != 201:
            raise SystemExit(f"POST was answered {response.status}: {body.decode()}")
        return json.loads(body)["id"]

    def events(self, experiment):
        """(arrival, event, data) of each event until the experiment has ended."""
        connection = UnixConnection(str(self.socket))
        connection.request("GET", f"/experiments/{experiment}/events")
        response = connection.getresponse()
        event = None
        with contextlib.closing(connection):
            for line in response:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "event":
                    event = value
                elif field == "data":
                    yield time.monotonic(), event, json.loads(value)
                    if event == "end":
                        return

    def cpu_ns(self):
        """Of all threads, to the nanosecond: the first field of each one's schedstat."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)

    def memory_kib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return {key: int(re.search(rf"^{key}:\s+(\d+)", status, re.MULTILINE)[1]) for key in ("VmRSS", "VmHWM")}


def first_message_seconds(daemon):
    """From before the POST to the window's begin: the first sample's arrival less its interval, so an upper bound."""
    begin = time.monotonic()
    experiment = daemon.post(FIRST_MESSAGE)
    first, state = None, None
    for arrival, event, data in daemon.events(experiment):
        if event == "sample" and first is None:
            first = arrival - begin - data["interval_ns"] / 1e9
        if event == "end":
            state = data["state"]
    if first is None or state != "done":
        raise SystemExit(f"experiment {experiment} ended {state}:\n{daemon.log.read_text(errors='replace')[-2000:]}")
    return first


def print_first_message(daemon, rounds):
    times = [first_message_seconds(daemon) * 1e3 for _ in range(rounds)]
    print(
        f"POST to first measured message: median {statistics.median(times):.1f} ms "
        f"(min {min(times):.1f}, max {max(times):.1f}, {rounds} experiments, one agent pair each)"
    )


def print_load(daemon, what, seconds, wait):
    cpu, begin = daemon.cpu_ns(), time.monotonic()
    wait()
    cpu, passed = daemon.cpu_ns() - cpu, time.monotonic() - begin
    memory = daemon.memory_kib()
    print(
        f"{what}: {cpu / 1e6 / passed:.3f} ms CPU per second over {passed:.1f} s (asked {seconds} s), "
        f"RSS {memory['VmRSS'] / 1024:.1f} MiB, peak {memory['VmHWM'] / 1024:.1f} MiB"
    )


def run_to_end(daemon, spec):
    experiment = daemon.post(spec)
    state = [data["state"] for _, event, data in daemon.events(experiment) if event == "end"]
    if state != ["done"]:
        raise SystemExit(f"experiment {experiment} ended {state}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="experiments for the first figure")
    parser.add_argument("--seconds", type=int, default=5, help="of idling, and of the run")
    options = parser.parse_args()

    base = Path(tempfile.mkdtemp(prefix="ipclab-bench-"))
    base.chmod(0o755)  # agents of another user pass through
    try:
        daemon = Daemon(base)
        try:
            print_first_message(daemon, options.rounds)
            print_load(daemon, "idle", options.seconds, lambda: time.sleep(options.seconds))
            for workload in ("stream", "pingpong"):
                spec = {"workload": workload, "message_size": 4096, "duration_seconds": options.seconds}
                what = f"during a run ({workload}, pipe, with one listener to its events)"
                print_load(daemon, what, options.seconds, lambda spec=spec: run_to_end(daemon, spec))
        finally:
            daemon.stop()
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
