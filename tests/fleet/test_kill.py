# SPDX-License-Identifier: MIT
"""Exporters, daemons and the server are killed at any moment: nothing is lost, nothing is there twice."""

import concurrent.futures
import random
import signal
import subprocess
import time
from collections import Counter

import canon
import psycopg
from conftest import LONG, PATIENCE_SECONDS, export, export_command, export_here
from synthetic import SyntheticStore
from test_campaign import SPEC, hosts_of, place, remove  # noqa: F401 - a fixture

STORES, DAEMONS, KILLS = (1000, 8, 200) if LONG else (6, 2, 20)
AT_ONCE = 8
ENDED = "exporter that had ended"  # which is no kill


def exporter(dsn, store):
    command = export_command(dsn, store, "--page", 20, "--even-while-measuring")
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compare(dsn, stores, hosts=()):
    with psycopg.connect(dsn, autocommit=True) as base:
        for store in stores:
            with store.opened():
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
        self.latest = stores[0]
        began = time.monotonic()
        export(dsn, stores[0])
        self.seconds = time.monotonic() - began  # of an export, on this machine as busy as it is

    def happens(self):
        """Something new in a store: the next that is exported."""
        source = self.chance.choice([*self.stores, *self.hosts])
        if source in self.stores:
            self.latest.close()
            self.latest = source  # stays open, with its log, as a daemon's is
            source.open()
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
        killed = process.wait() == -signal.SIGKILL
        self.killed["exporter" if killed else ENDED] += 1
        self.seconds *= 1.02 if killed else 0.9  # the machine may be less busy than it was, or more

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
    for store in stores:
        store.close()  # so many cannot be open at once
    hosts = hosts_of(place, DAEMONS)
    try:
        for store in stores:
            with store.opened():
                store.live(12)
        killer = Killer(postgres, dsn, stores, hosts)
        kinds = [killer.kill_server, *[killer.kill_daemon] * 2, *[killer.kill_exporter] * 12]
        while killer.killed.total() - killer.killed[ENDED] < KILLS:
            killer.chance.choice(kinds)()
        print(", ".join(f"{n} times: {what}" for what, n in killer.killed.items()))
        assert killer.killed["exporter"] > KILLS / 4, killer.killed
        for host in hosts:
            for experiment in host.experiments():
                host.client().wait_final(experiment["id"])
        for host, experiment in killer.posted:  # none that was accepted is lost
            assert host.client().get(f"/experiments/{experiment}")["state"] == "done"
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for exported in [pool.submit(export_here, dsn, store) for store in stores]:
                exported.result()
        for host in hosts:
            export(dsn, host)
        compare(dsn, stores, hosts)
    finally:
        remove(hosts)


def test_two_exporters_of_one_store(dsn, tmp_path):
    """The second waits for the cursor, and continues where the first has ended."""
    store = SyntheticStore(tmp_path / "store")
    store.live(150)
    store.close()
    running = [exporter(dsn, store) for _ in range(4)]
    assert [process.wait(PATIENCE_SECONDS) for process in running] == [0] * 4
    compare(dsn, [store])
