# SPDX-License-Identifier: MIT
"""Exporters, daemons and the server are killed at any moment: nothing is lost, nothing is there twice."""

import random
import signal
import subprocess
import time
from collections import Counter

import canon
import psycopg
from conftest import LONG, PATIENCE_SECONDS, export, export_command
from synthetic import SyntheticStore
from test_campaign import SPEC, hosts_of, place, remove  # noqa: F401 - a fixture

STORES, DAEMONS = 6, 2
KILLS = 210 if LONG else 20  # some exporters end before they are killed


def exporter(dsn, store):
    command = export_command(dsn, store, "--page", 20, "--even-while-measuring")
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compare(dsn, stores, hosts=()):
    with psycopg.connect(dsn, autocommit=True) as base:
        for store in stores:
            assert canon.of_store(store) == canon.of_base(base, store.uuid), store.directory
        for host in hosts:
            with host.stored():
                assert canon.of_store(host) == canon.of_base(base, host.uuid), host.host
        summaries = base.execute("SELECT sum(runs) FROM host_points WHERE figure = 'throughput'").fetchone()
        assert summaries == base.execute("SELECT count(throughput) FROM runs WHERE state = 'done'").fetchone()


class Killer:
    def __init__(self, postgres, dsn, stores, hosts):
        self.postgres, self.dsn, self.stores, self.hosts = postgres, dsn, stores, hosts
        self.chance, self.killed, self.posted = random.Random(20), Counter(), []
        began = time.monotonic()
        export(dsn, stores[0])
        self.seconds = time.monotonic() - began  # of an export, on this machine as busy as it is

    def happens(self):
        """Something new in a store: the next that is exported."""
        source = self.chance.choice([*self.stores, *self.hosts])
        if source in self.stores:
            source.live(12)
        else:
            key = f"{len(self.posted)}"
            experiment = source.client().post(SPEC | {"repetitions": 1}, **{"Idempotency-Key": key})
            self.posted.append((source, experiment["id"]))
        return source

    def kill_exporter(self):
        """At any moment of its life; half of that is the start of Python."""
        process = exporter(self.dsn, self.happens())
        time.sleep(self.chance.uniform(0.3, 1.1) * self.seconds)
        process.send_signal(signal.SIGKILL)
        self.killed["exporter" if process.wait() == -signal.SIGKILL else "exporter that had ended"] += 1

    def kill_daemon(self):
        host = self.chance.choice(self.hosts)
        host.client().post(SPEC)
        process = exporter(self.dsn, host)
        time.sleep(self.chance.uniform(0, 1.5) * self.seconds)
        host.kill()
        process.wait()
        host.start()
        self.killed["daemon"] += 1

    def kill_server(self):
        running = [exporter(self.dsn, self.happens()) for _ in range(4)]
        time.sleep(self.chance.uniform(0.5, 1.5) * self.seconds)
        self.postgres.crash()
        for process in running:
            process.wait()
        self.postgres.start()
        self.killed["server"] += 1


def test_killed_at_random(postgres, dsn, tmp_path, place):  # noqa: F811
    stores = [SyntheticStore(tmp_path / f"s{i}", seed=i, host=f"store{i}") for i in range(STORES)]
    hosts = hosts_of(place, DAEMONS)
    try:
        for store in stores:
            store.live(12)
        killer = Killer(postgres, dsn, stores, hosts)
        kinds = [killer.kill_server] * (KILLS // 15) + [killer.kill_daemon] * (KILLS // 10)
        kinds += [killer.kill_exporter] * (KILLS - len(kinds))
        killer.chance.shuffle(kinds)
        for kill in kinds:
            kill()
        print(", ".join(f"{n} times: {what}" for what, n in killer.killed.items()))
        assert killer.killed["exporter"] > KILLS / 4, killer.killed
        for host in hosts:
            for experiment in host.experiments():
                host.client().wait_final(experiment["id"])
        for host, experiment in killer.posted:  # none that was accepted is lost
            assert host.client().get(f"/experiments/{experiment}")["state"] == "done"
        for source in (*stores, *hosts):
            export(dsn, source)
        compare(dsn, stores, hosts)
    finally:
        remove(hosts)
        for store in stores:
            store.close()


def test_two_exporters_of_one_store(dsn, tmp_path):
    """The second waits for the cursor, and continues where the first has ended."""
    store = SyntheticStore(tmp_path / "store")
    store.live(150)
    running = [exporter(dsn, store) for _ in range(4)]
    assert [process.wait(PATIENCE_SECONDS) for process in running] == [0] * 4
    compare(dsn, [store])
    store.close()
