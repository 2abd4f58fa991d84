# SPDX-License-Identifier: MIT
"""Campaigns on real daemons: dispatched at least once by a bad dispatcher, killed in between, complete once."""

import contextlib
import json
import re
import resource
import shutil
import sqlite3
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import canon
import psycopg
import pytest
from conftest import PATIENCE_SECONDS, PYTHON, SOURCE, export, export_command, fleet
from ipclab_fleet import campaign, daemon
from ipclabtest.daemon import Daemon

HOSTS = 8
SPEC = {
    **{"transport": ["pipe", "fifo"], "message_size": [64, 4096], "messages": 200, "warmup_seconds": 0},
    "repetitions": 2,
}
RUNS = 8


class Host(Daemon):
    """A real ipclabd as one of several hosts, below a place where carry.py finds its socket."""

    def __init__(self, place, name, *options):
        super().__init__(*options, listen="none")
        self.host, self.directory = name, self.state
        (place / name).symlink_to(self.base)
        self.start()

    @property
    def uuid(self):
        return uuid.UUID(daemon.request(self.socket, "GET", "/health")[2]["store"])

    def experiments(self):
        return daemon.request(self.socket, "GET", "/experiments")[2]["items"]

    @contextlib.contextmanager
    def stored(self):
        """Its database as another reader has it, which moves nothing from the log into it."""
        with contextlib.closing(sqlite3.connect(f"file:{self.directory}/ipclab.db?mode=ro", uri=True)) as self.db:
            yield self


@pytest.fixture
def place():
    """Not below pytest's directory, as a socket's path is short."""
    base = Path(tempfile.mkdtemp(prefix="ipclab-hosts-"))
    base.chmod(0o755)
    yield base
    shutil.rmtree(base, ignore_errors=True)


def hosts_of(place, n):
    with contextlib.ExitStack() as stack:
        hosts = []
        for i in range(n):
            hosts.append(Host(place, f"host{i}"))
            stack.callback(hosts[-1].remove)
        stack.pop_all()
        return hosts


def remove(hosts):
    for host in hosts:
        host.remove()


def create(place, dsn, hosts):
    (place / "spec.json").write_text(json.dumps(SPEC, indent=1))
    (place / "hosts").write_text("# the rack\n" + "".join(f"{host.host}\n" for host in hosts))
    return fleet("create", place / "spec.json", place / "hosts", "--name", "a rack", "--database", dsn).strip()


def export_or_busy(dsn, host):
    while "nothing exported: experiment" in export(dsn, host):
        time.sleep(0.1)


def test_every_host_once(dsn, base, place):
    hosts = hosts_of(place, HOSTS)
    try:
        name = create(place, dsn, hosts)
        carry = f"{PYTHON} {Path(__file__).parent / 'carry.py'} {place} {{host}} {{post}}"
        run = ("run", name, "--via", carry, "--rounds", 1, "--pause", 0, "--database", dsn)
        shown = fleet("show", name, "--database", dsn, status=3)
        assert "host3 [..............................] not received" in shown and "0/8 hosts, 0.0 %" in shown
        for _ in range(3):  # nothing has been exported yet, so each time to all of them
            fleet(*run, status=3)
            for host in hosts[:3]:
                host.kill()
                host.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            for host in hosts:
                export_or_busy(dsn, host)
            if fleet(*run, status=None).count("incomplete") == 0:
                break
            assert time.monotonic() < deadline, fleet("show", name, "--database", dsn, status=None)
        assert "8/8 hosts, 100.0 %" in fleet("show", name, "--database", dsn)
        command = [SOURCE / "cli/ipclab", "campaign", "show", name, "--database", dsn]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        assert (shown.returncode, shown.stdout) == (0, fleet("show", name, "--database", dsn)), shown
        summary = base.execute(
            "SELECT hosts_expected, hosts_received, hosts_complete, runs_expected, runs_received, percent::float8 "
            "FROM campaign_summary"
        ).fetchall()
        assert summary == [(HOSTS, HOSTS, HOSTS, HOSTS * RUNS, HOSTS * RUNS, 100.0)]
        for host in hosts:
            (experiment,) = host.experiments()
            assert experiment["state"] == "done" and experiment["progress"]["runs_done"] == RUNS
        assert base.execute("SELECT max(dispatches) >= 3 FROM campaign_hosts").fetchone() == (True,)
        for host in hosts:
            with host.stored():
                assert canon.of_store(host) == canon.of_base(base, host.uuid)
        found = json.loads(fleet("odd", "--json", "--campaign", name, "--database", dsn))
        assert [(c["hosts"], c["points"], c["undecided"]) for c in found] == [(HOSTS, 4, None)]
    finally:
        remove(hosts)


def test_nothing_is_exported_while_something_is_measured(dsn, place):
    (host,) = hosts_of(place, 1)
    try:
        spec = json.dumps({"transport": "pipe", "duration_seconds": 600, "rate": 10}).encode()
        experiment = daemon.request(host.socket, "POST", "/experiments", spec)[2]["id"]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while daemon.busy(host.socket) is None:
            assert time.monotonic() < deadline, host.experiments()
            time.sleep(0.05)
        more = ("--socket", host.socket)
        assert f"nothing exported: experiment {experiment} is running" in export(dsn, host, *more)
        # and what is not needed for that is not even imported
        poll = [PYTHON, "-X", "importtime", *export_command(dsn, host, *more)[1:]]
        imported = subprocess.run(poll, capture_output=True, text=True, timeout=PATIENCE_SECONDS).stderr
        assert "ipclab_fleet.daemon" in imported
        assert not [name for name in ("psycopg", "sqlite3", "http.client", "pathlib") if name in imported]
        assert "experiment: 1" in export(dsn, host, *more, "--even-while-measuring")
        daemon.request(host.socket, "POST", f"/experiments/{experiment}/cancel")
        while daemon.busy(host.socket):
            assert time.monotonic() < deadline, host.experiments()
            time.sleep(0.05)
        assert "run: 1" in export(dsn, host, *more)
    finally:
        remove([host])


def test_an_export_gives_way_to_an_experiment_in_the_middle_of_a_page(dsn, base, place):
    (host,) = hosts_of(place, 1)
    client = host.client()
    try:
        client.wait_final(client.post(SPEC)["id"])
        assert f"run: {RUNS}" in export(dsn, host)
        cursor = base.execute("SELECT change FROM cursors").fetchone()
        client.wait_final(client.post(SPEC)["id"])
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        deadline = time.monotonic() + PATIENCE_SECONDS
        with psycopg.connect(dsn) as holder:  # of the cursor, at which the exporter begins its page
            holder.execute("SELECT FROM cursors FOR UPDATE")
            exporter = subprocess.Popen(export_command(dsn, host), stderr=subprocess.PIPE, text=True)
            while base.execute(waiting).fetchone() == (0,):
                assert exporter.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
            running = client.post({"transport": "pipe", "duration_seconds": 600, "rate": 10})["id"]
            _, printed = exporter.communicate(timeout=PATIENCE_SECONDS)
            assert (exporter.returncode, f"stopped: experiment {running} is running" in printed) == (0, True), printed
            while base.execute(waiting).fetchone() != (0,):  # its backend has noticed
                assert time.monotonic() < deadline
                time.sleep(0.05)
        assert base.execute("SELECT change FROM cursors").fetchone() == cursor
        daemon.request(host.socket, "POST", f"/experiments/{running}/cancel")
        client.wait_final(running)
        assert f"run: {RUNS + 1}" in export(dsn, host)
    finally:
        remove([host])


def test_a_killed_daemons_store_is_read_as_it_is(dsn, base, place):
    """With its log, whose pages the exporter does not move into the database, where each page has a checksum that only
    the daemon writes."""
    (host,) = hosts_of(place, 1)
    try:
        name, client = host.uuid, host.client()
        experiment = client.wait_final(client.post(SPEC)["id"])
        host.kill()
        files = [host.directory / "ipclab.db", host.directory / "ipclab.db-wal"]
        before = [path.read_bytes() for path in files]
        assert len(before[1]) > 4096
        assert f"run: {RUNS}" in export(dsn, host)
        assert [path.read_bytes() for path in files] == before
        with host.stored():
            assert canon.of_store(host) == canon.of_base(base, name)
        host.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while client.get("/health")["checking"] is not None:
            assert time.monotonic() < deadline, client.get("/health")
            time.sleep(0.05)
        health = client.get("/health")
        assert (health["damaged_pages"], health["store"]) == (0, str(name))
        assert client.get(f"/experiments/{experiment['id']}")["progress"]["runs_done"] == RUNS
        assert "nothing new" in export(dsn, host)
    finally:
        remove([host])


def test_the_daemon_has_to_be_the_stores(dsn, place):
    hosts = hosts_of(place, 2)
    try:
        refused = export(dsn, hosts[0], "--socket", hosts[1].socket)
        assert f"nothing exported: the daemon at {hosts[1].socket} has the store {hosts[1].uuid}, not" in refused
    finally:
        remove(hosts)


def test_refusals(dsn, base, tmp_path):
    good, hosts = tmp_path / "spec", tmp_path / "hosts"
    good.write_text("{}")
    for text, words in [
        ("a\nb\na\n", ":3: a is there twice"),
        ("a b\n", ":1: 'a b' is not a host name"),
        ("-oProxyCommand=x\n", "is not a host name"),
        ("# none\n", "no hosts"),
    ]:
        hosts.write_text(text)
        assert words in fleet("create", good, hosts, "--database", dsn, status=1)
    hosts.write_text("a\n")
    for text, words in [
        ("[]", "not a JSON object"),
        ("{", "spec: "),
        ("[" * 60000, "spec: maximum recursion depth"),
        (" " * 70000, "70000 bytes; a spec has at most"),
    ]:
        good.write_text(text)
        answer = fleet("create", good, hosts, "--database", dsn, status=1)
        assert words in answer and "Traceback" not in answer
    good.write_text("{}")
    name = str(uuid.uuid4())
    fleet("create", good, hosts, "--id", name, "--database", dsn)
    assert "already" in fleet("create", good, hosts, "--id", name, "--database", dsn, status=1)
    assert base.execute("SELECT count(*) FROM campaign_hosts").fetchone() == (1,)
    assert "no campaign" in fleet("show", uuid.uuid4(), "--database", dsn, status=1)
    assert "--via is one of ssh, clush" in fleet("run", name, "--via", "rsh", "--database", dsn, status=1)
    assert "ipclab-fleet: --via: No closing" in fleet("run", name, "--via", "'{post}", "--database", dsn, status=1)
    for pause in ("-1", "nan", "soon"):
        assert "is not a number of seconds" in fleet("run", name, "--pause", pause, "--database", dsn, status=2)
    assert "is not a UUID" in fleet("show", "12", "--database", dsn, status=2)
    assert "No such file" in fleet("post", "--socket", tmp_path / "none", name, "a", "e30=", status=1)
    assert "ipclab-fleet: the spec is not base64" in fleet("post", name, "a", "\u20ac", status=1)


def test_a_spec_that_a_daemon_refuses_is_shown(dsn, base, place):
    (host,) = hosts_of(place, 1)
    try:
        (place / "spec.json").write_text('{"transport": "pigeon"}')
        (place / "hosts").write_text(host.host)
        name = fleet("create", place / "spec.json", place / "hosts", "--database", dsn).strip()
        via = f"{PYTHON} {place / 'carry.py'} {{post}}"
        (place / "carry.py").write_text(
            "import os, sys\n"
            f"os.execv({PYTHON!r}, [{PYTHON!r}, {str(Path(campaign.__file__).parents[1] / 'ipclab-fleet')!r}, 'post', "
            f"'--socket', {host.socket!r}, *sys.argv[3:]])\n"
        )
        fleet("run", name, "--via", via, "--rounds", 1, "--pause", 0, "--database", dsn, status=3)
        shown = fleet("show", name, "--database", dsn, status=3)
        assert re.search(r"host0 .* not received; dispatched once; .*host0: 422: .*pigeon", shown), shown
    finally:
        remove([host])


def test_the_words_of_a_host_are_shown_and_not_obeyed(dsn, tmp_path):
    """A host fails: PostgreSQL stores no NUL, and a terminal would obey an escape sequence, or C1."""
    (tmp_path / "spec").write_text("{}")
    (tmp_path / "hosts").write_text("bad\ngood\n")
    via = tmp_path / "via"
    via.write_text("#!/bin/sh\n[ \"$1\" = good ] || printf 'a\\000b\\033]0;title\\007\\302\\233c\\n' >&2; exit 1\n")
    via.chmod(0o755)
    name = fleet("create", tmp_path / "spec", tmp_path / "hosts", "--database", dsn).strip()
    run = ("run", name, "--via", f"{via} {{host}} {{post}}", "--rounds", 1, "--pause", 0, "--database", dsn)
    assert "incomplete after 1 rounds" in fleet(*run, status=3)
    shown = fleet("show", name, "--database", dsn, status=3)
    assert r"dispatched once; a\u0000b\u001b]0;title\u0007\u009bc" in shown, ascii(shown)
    assert "dispatched once; exit status 1" in shown
    assert shown.replace("\n", "").isprintable(), ascii(shown)


def test_what_is_dispatched_is_watched_then(dsn, base, tmp_path):
    """The base has nothing of a study until its first export; what was refused is dispatched in the next round."""
    (tmp_path / "spec").write_text("{}")
    (tmp_path / "hosts").write_text("good\nbad\n")
    name = fleet("create", tmp_path / "spec", tmp_path / "hosts", "--database", dsn).strip()
    (tmp_path / "carry").write_text('#!/bin/sh\ntest "$1" = good\n')
    (tmp_path / "carry").chmod(0o755)
    run = ("run", name, "--via", f"{tmp_path / 'carry'} {{host}} {{post}}", "--pause", 0, "--database", dsn)
    assert "incomplete after 4 rounds" in fleet(*run, "--rounds", 4, status=3)
    query = "SELECT host, dispatches FROM campaign_hosts ORDER BY host"
    assert base.execute(query).fetchall() == [("bad", 4), ("good", 1)]
    fleet(*run, "--rounds", 31, status=3)  # the dispatcher may have lost the first: in rounds 0, 10 and 30
    assert base.execute(query).fetchall() == [("bad", 35), ("good", 4)]


def test_a_dispatcher_is_heard_to_its_last_line(monkeypatch):
    """However much it says; of its error output where there is some, and it does not stay for longer than its time."""
    loud = "head -c 200000000 /dev/zero | tr '\\0' x; echo; echo last; exit 3"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert campaign.dispatch(["sh", "-c", loud]) == "last"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
    assert campaign.dispatch(["sh", "-c", "echo why >&2; echo output; exit 3"]) == "why"
    assert campaign.dispatch(["sh", "-c", "exit 4"]) == "exit status 4"
    assert campaign.dispatch(["sh", "-c", "echo fine"]) is None
    assert "No such file" in campaign.dispatch(["/nowhere/at-all"])
    monkeypatch.setattr(campaign, "DISPATCH_SECONDS", 1)
    for stays in ("exec sleep 60", "exec >/dev/null 2>&1; exec sleep 60", "exec yes"):
        assert campaign.dispatch(["sh", "-c", stays]) == "no end within 1 s"


@pytest.mark.parametrize("via", campaign.DISPATCHERS)
def test_commands_of_the_dispatchers(via):
    """Every one gets the whole command, as words or as one line that a shell splits into the same words."""
    name = uuid.uuid4()
    words = campaign.dispatch_command(via, name, "node7", json.dumps({"name": 'it\'s "quoted" $HOME'}))
    line = words[-1].removeprefix("--wrap=") if via == "sbatch" else " ".join(words[words.index("ipclab-fleet") :])
    split = subprocess.run(["sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True).stdout.splitlines()
    assert split[:4] == ["ipclab-fleet", "post", str(name), "node7"] and len(split) == 5
    assert via == "local" or any(
        "node7" in word for word in words[: words.index(split[0]) if split[0] in words else -1]
    )
