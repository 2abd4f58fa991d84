# SPDX-License-Identifier: MIT
"""No event holds the main loop for long, however much there is to do: the daemon's own count of what each has taken.

The bound is on CPU time of the loop's thread, as the wall clock of a busy host measures its neighbours.
"""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import time

import ipclabtest.daemon
import pytest
from bundles import fetch, send
from client import PATIENCE_SECONDS, Client
from conftest import ENDLESS, Daemon
from stored import Stored
from test_memory import attack, long_spec, submit

LIMIT_SECONDS = 0.05
DONE = {"transport": "pipe", "message_size": 4096, "messages": 1000, "warmup_seconds": 0}
MANY = ENDLESS | {"message_size": list(range(1, 1025)), "repetitions": 16}
RUNS_OF_BUNDLE = 400
FILES = 120_000
SPECS = 16  # of a megabyte
TRIES = 3


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """The state directory of a daemon that has ended, with an experiment that has a bundle."""
    daemon, copied = Daemon(), tmp_path_factory.mktemp("stopped") / "state"
    try:
        done = daemon.unix.wait_final(daemon.unix.post(DONE)["id"])
        assert done["state"] == "done", (done, daemon.log_tail())
        assert daemon.stop() == 0
        stored = Stored(daemon.state / "ipclab.db")
        stored.copy(done["id"], RUNS_OF_BUNDLE, lambda *_: ("done", []))
        stored.close()
        shutil.copytree(daemon.state, copied)
    finally:
        daemon.remove()
    return copied


@contextlib.contextmanager
def blocked(state):
    """A daemon that measures all the while."""
    daemon = ipclabtest.daemon.Daemon("--log-level=debug", "--max-queued-runs=40000")
    try:
        shutil.copytree(state, daemon.state)
        daemon.start()
        daemon.unix = daemon.client(Client)  # without a schema: to check megabytes by it takes minutes
        measure(daemon)
        yield daemon
    finally:
        daemon.remove()


def restart(daemon):
    assert daemon.stop() == 0
    daemon.start()
    wait_until(lambda: daemon.unix.get("/experiments?state=running")["items"])


def measure(daemon):
    """The experiment that is measured from now on."""
    identity = daemon.unix.post(ENDLESS)["id"]
    daemon.unix.wait_state(identity, ("running",))
    return identity


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def rows(daemon, experiment):
    database = sqlite3.connect(f"file:{daemon.state / 'ipclab.db'}?mode=ro", uri=True)
    try:
        return database.execute("SELECT count(*) FROM runs WHERE experiment_id = ?", (experiment,)).fetchone()[0]
    finally:
        database.close()


def delete_many_runs(daemon):
    """The rows of the experiment's runs are deleted when nothing is measured any more."""
    client = daemon.unix
    identity = client.post(MANY)["id"]
    client.request("POST", f"/experiments/{identity}/cancel")
    client.wait_final(identity)
    assert client.request("DELETE", f"/experiments/{identity}").status == 204
    running = [e["id"] for e in client.get("/experiments?state=running")["items"]]
    client.request("POST", f"/experiments/{running[0]}/cancel")
    wait_until(lambda: rows(daemon, identity) == 0)
    measure(daemon)


def list_large_specs(daemon):
    body = long_spec()
    for _ in range(SPECS):
        daemon.unix.request("POST", f"/experiments/{submit(daemon, body)['id']}/cancel")
    restart(daemon)  # what they took when they were submitted is not counted
    attack(daemon, "/experiments?limit=1000")


def submit_large_specs(daemon):
    """And the first run of one, for which its spec is read and parsed, after others were removed between two runs."""
    body = long_spec()
    for _ in range(SPECS // 2):
        identity = submit(daemon, body)["id"]
        daemon.unix.request("POST", f"/experiments/{identity}/cancel")
        assert daemon.unix.request("DELETE", f"/experiments/{identity}").status == 204
    last = submit(daemon, body)["id"]
    for running in daemon.unix.get("/experiments?state=running")["items"]:
        daemon.unix.request("POST", f"/experiments/{running['id']}/cancel")
    daemon.unix.wait_state(last, ("running",))


def decide_after_a_restart(daemon):
    """Whether an experiment with a long spec needs more runs, all of which had ended when the daemon was."""
    spec = json.loads(long_spec()) | {"until": {"relative_ci": 0.0001, "max_repetitions": 13}}
    decide_about(daemon, submit(daemon, json.dumps(spec, separators=(",", ":")).encode())["id"])


def decide_on_many_pairs(daemon):
    """Each pair has sixty runs, that differ."""
    until = {"relative_ci": 0.0001, "figure": "cpu_per_message", "max_repetitions": 60}
    until["compare"] = {"axis": "message_size"}
    identity = daemon.unix.post(ENDLESS | {"message_size": list(range(1, 46)), "until": until})["id"]
    assert daemon.unix.request("POST", f"/experiments/{identity}/extend", {"blocks": 54}).status == 200
    decide_about(daemon, identity)
    assert daemon.unix.get(f"/experiments/{identity}")["until"]["pairs"] == 990


def decide_about(daemon, identity):
    """All runs of the experiment have ended when the daemon starts."""
    assert daemon.stop() == 0
    stored = Stored(daemon.state / "ipclab.db")
    (result,) = stored.db.execute("SELECT result FROM runs WHERE state = 'done' LIMIT 1").fetchone()
    stored.db.execute(
        "UPDATE runs SET state = 'done', attempt = 1, flags = '[]', started_at = 1, finished_at = 2, result = "
        "json_set(?, '$.throughput_bytes_per_second', 1000000000 + abs(random()) % 1000000, "
        "'$.cpu_ns_per_message', 1000 + abs(random()) % 1000) WHERE experiment_id = ?",
        (result, identity),
    )
    stored.db.execute("UPDATE experiments SET runs_done = runs_total, state = 'running' WHERE id = ?", (identity,))
    stored.close()
    daemon.start()
    wait_until(lambda: daemon.unix.get(f"/experiments/{identity}")["until"]["looks"])
    wait_until(lambda: daemon.unix.get("/experiments?state=running")["items"])


def fill_a_runs_directory(daemon):
    """As a process of the agents' user could, were it not kept from that; the run ends by it."""
    (running,) = daemon.unix.get("/experiments?state=running")["items"]
    found = []
    wait_until(lambda: found.extend((daemon.runtime / "runs").iterdir()) or found)
    (directory,) = found
    full = daemon.runtime / "full"
    full.mkdir()
    folder = os.open(full, os.O_RDONLY | os.O_DIRECTORY)
    for number in range(FILES):
        os.mknod(str(number), dir_fd=folder)
    os.close(folder)
    full.rename(directory / full.name)
    ended = daemon.unix.wait_final(running["id"])
    assert ended["state"] == "failed" and "directory" in ended["error"]
    wait_until(lambda: not directory.exists())
    measure(daemon)


def import_a_bundle(daemon):
    _, packed = fetch(daemon.unix, 2)
    forgotten = daemon.unix.request("DELETE", "/experiments/2")  # its bundle is that of another host then
    assert forgotten.status == 204
    assert send(daemon.unix, packed).status == 201


def extend_by_many_runs(daemon):
    identity = daemon.unix.post(ENDLESS | {"message_size": list(range(1, 513))})["id"]
    answer = daemon.unix.request("POST", f"/experiments/{identity}/extend", {"blocks": 31})
    assert answer.status == 200 and answer.json["progress"]["runs_total"] == 512 * 32


def export_pages(daemon):
    for path in ("runs?limit=1000", "samples?limit=10000", "results", "findings", "report", "bundle"):
        assert daemon.unix.request("GET", f"/experiments/2/{path}").status == 200, path


def run_many_threads(daemon):
    """Each of which asks for its hardware counters, which the daemon opens."""
    (running,) = daemon.unix.get("/experiments?state=running")["items"]
    daemon.unix.request("POST", f"/experiments/{running['id']}/cancel")
    # The run ends by a count: with so many threads it may be that none of them has a CPU in a short window.
    spec = {"workload": "pingpong", "transport": "pipe", "threads": 1024, "messages": 10240, "message_size": 64}
    ended = daemon.unix.wait_final(daemon.unix.post(spec)["id"])
    assert ended["state"] == "done", daemon.unix.items(f"/experiments/{ended['id']}/runs")[0]["error"]
    measure(daemon)


# Beside other tests an event takes up to twice as long. The loads that would come near the bound then run alone.
LOADS = [
    delete_many_runs,
    list_large_specs,
    pytest.param(submit_large_specs, marks=pytest.mark.alone),
    decide_after_a_restart,
    decide_on_many_pairs,
    fill_a_runs_directory,
    import_a_bundle,
    extend_by_many_runs,
    export_pages,
    pytest.param(run_many_threads, marks=pytest.mark.alone),
]


def longest(daemon):
    """operation -> seconds of CPU time of its longest event."""
    text = daemon.unix.request("GET", "/metrics").body.decode()
    found = re.findall(r'^ipclab_main_loop_longest_cpu_seconds\{operation="([^"]+)"\} (\S+)$', text, re.MULTILINE)
    return {operation: float(seconds) for operation, seconds in found}


@pytest.mark.parametrize("load", LOADS)
def test_no_event_holds_the_main_loop(state, load):
    """One of three tries is to keep the bound: CPU time, too, is longer where a host shares the CPU."""
    for _ in range(TRIES):
        with blocked(state) as daemon:
            load(daemon)
            taken = longest(daemon)
        print({operation: seconds for operation, seconds in taken.items() if seconds > 0})
        assert any(taken.values())
        above = {operation: seconds for operation, seconds in taken.items() if seconds > LIMIT_SECONDS}
        if not above:
            break
    assert above == {}
