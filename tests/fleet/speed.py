# SPDX-License-Identifier: MIT
"""How long the fleet's base takes when it is full: the view of odd hosts, and an export of 10 000 rows. Makes a
PostgreSQL of its own, which takes 300 bytes and 100 us a run, and prints the figures beside the load of the machine.

Usage: python tests/fleet/speed.py [--runs 5000000] [--hosts 1000]"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from conftest import Postgres, export, fleet  # noqa: E402
from filled import POINTS, fill  # noqa: E402
from synthetic import SyntheticStore  # noqa: E402

ROWS = 10_000
RESULT_BYTES = 6200  # of the result of a run of five seconds


def client_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def server_seconds(postgres):
    """CPU time of the backends that have ended."""
    fields = Path(f"/proc/{postgres.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")  # cutime, cstime


def measure(postgres, what, function):
    """Prints the time that passed, and the CPU time: on a busy machine, what it would be on an idle one."""
    client, server, begin = client_seconds(), server_seconds(postgres), time.monotonic()
    answer = function()
    elapsed = time.monotonic() - begin
    deadline = time.monotonic() + 2
    while server_seconds(postgres) == server and time.monotonic() < deadline:
        time.sleep(0.05)  # until the postmaster has noticed that the backend ended
    client, server = client_seconds() - client, server_seconds(postgres) - server
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    cpu = f"{client:.2f} s CPU of the client and {server:.2f} s of the server"
    print(f"{what}: {elapsed:.2f} s, with {cpu}; load {load}", flush=True)
    return answer


def full_page(directory):
    """A store with as many rows as one page has, each with a result as long as real ones."""
    store = SyntheticStore(directory, host="rack0-00")
    experiment = store.add(POINTS, (ROWS - 1) // len(POINTS))
    result = {"throughput_bytes_per_second": 1e9, "latency_ns": {"p50": 8000, "p99": 24000}, "cost_ns": None}
    while len(json.dumps(result)) < RESULT_BYTES:
        second = {"begin_ns": 44240011251540 + store.random.getrandbits(34), "foreign_share": store.random.random()}
        second |= {"cpu": None, "daemon_share": 0, "run_queue_delay_share": store.random.random(), "flags": []}
        result.setdefault("seconds", []).append(second)
    environment = json.dumps({"before": store.facts, "after": store.facts, "daemon": {}}, separators=(",", ":"))
    store.db.execute("BEGIN")
    store.db.execute(
        "UPDATE runs SET state = 'done', attempt = 1, begun = 1, started_at = 1, finished_at = 2, result = ?, "
        "environment = ? WHERE experiment_id = ?",
        (json.dumps(result), environment, experiment),
    )
    store.db.execute("COMMIT")
    return store


def fill_quickly(postgres, dsn, hosts, runs):
    import psycopg

    def progress(done):
        print(f"\r{done} of {hosts} hosts", end="", file=sys.stderr, flush=True)

    with psycopg.connect(dsn, autocommit=True) as base:
        base.execute("SET session_replication_role = replica")  # no foreign key is looked up
        indexes = base.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'runs' AND indexname <> 'runs_pkey'"
        ).fetchall()
        for name, _ in indexes:
            base.execute(f"DROP INDEX {name}")
        filled = fill(base, hosts, runs, progress=progress)
        for _, definition in indexes:
            base.execute(definition)
        size = base.execute("SELECT pg_size_pretty(pg_database_size(current_database()))").fetchone()[0]
    print(f"\r{filled} runs of {hosts} hosts in the base, {size}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5_000_000)
    parser.add_argument("--hosts", type=int, default=1000)
    parsed = parser.parse_args()
    postgres = Postgres()
    try:
        dsn = postgres.database()
        fill_quickly(postgres, dsn, parsed.hosts, parsed.runs // parsed.hosts)
        with tempfile.TemporaryDirectory() as directory:
            store = full_page(directory)
            for _ in range(3):
                measure(postgres, "the view of odd hosts", lambda: fleet("odd", "--database", dsn))
            print(measure(postgres, f"an export of {ROWS} rows", lambda: export(dsn, store)).strip())
            measure(postgres, "an export of nothing", lambda: export(dsn, store))
            measure(postgres, "the report", lambda: fleet("report", Path(directory) / "report.html", "--database", dsn))
            store.close()
    finally:
        postgres.remove()


main()
