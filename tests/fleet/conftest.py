# SPDX-License-Identifier: MIT
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from ipclabtest import PATIENCE_SECONDS, SOURCE

FLEET = SOURCE / "fleet"
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
PYTHON = "/usr/bin/python3"
# More stores and more kills than there is time for at every change.
LONG = bool(os.environ.get("IPCLAB_FLEET_LONG"))

# The programs use Debian's psycopg, and so do the tests.
sys.path.append("/usr/lib/python3/dist-packages")
sys.path.insert(0, str(FLEET))


class Postgres:
    """A server of its own, on a unix socket only, as a user who is not root."""

    def __init__(self):
        self.base = Path(tempfile.mkdtemp(prefix="ipclab-fleet-"))
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        self.binaries = BINARIES[-1].parent
        self.data = self.base / "data"
        self.base.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(self.base, self.user.pw_uid, self.user.pw_gid)
        self.process = None
        self.made = 0
        self.command("initdb", "-D", self.data, "-U", "ipclab", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
        self.start()
        with self.connect() as base:
            base.execute("CREATE DATABASE template")
        fleet("migrate", "--database", self.dsn("template"))

    def connect(self):
        import psycopg

        return psycopg.connect(self.dsn("postgres"), autocommit=True)

    def privileges(self):
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}

    def command(self, name, *arguments):
        done = subprocess.run(
            [self.binaries / name, *arguments], capture_output=True, text=True, cwd=self.base, **self.privileges()
        )
        assert done.returncode == 0, (name, done.stdout, done.stderr)

    def start(self):
        with (self.base / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(self.binaries / "postgres", "-D", self.data, "-k", self.base, "-c", "listen_addresses="),
                    *("-c", "max_connections=60", "-c", "shared_buffers=32MB", "-c", "max_wal_size=256MB"),
                    *("-c", "fsync=off"),  # the tests kill processes, not the power
                ],
                **{"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "cwd": self.base},
                **self.privileges(),
            )
        self.wait()

    def wait(self):
        import psycopg

        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError as error:
                assert self.process.poll() is None, (self.base / "log").read_text()[-2000:]
                assert time.monotonic() < deadline, error
                time.sleep(0.05)

    def crash(self):
        """kill -9 of the postmaster; its children end by themselves when they see that it is gone."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.left():
            assert time.monotonic() < deadline, self.left()
            time.sleep(0.02)
        (self.data / "postmaster.pid").unlink()

    def left(self):
        """Its processes that are still there, which have the data directory open as their own."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if (
                        os.readlink(entry / "cwd") == str(self.data)
                        and (entry / "stat").read_text().split(")")[-1].split()[0] != "Z"
                    ):
                        found.append(int(entry.name))
                except OSError:
                    pass
        return found

    def dsn(self, name):
        return f"host={self.base} user=ipclab dbname={name}"

    def database(self):
        """The DSN of a new database with the fleet's schema."""
        self.made += 1
        name = f"fleet{self.made}"
        with self.connect() as base:
            base.execute(f"CREATE DATABASE {name} TEMPLATE template")
        return self.dsn(name)

    def remove(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)  # at once: nobody reads the data again
            try:
                self.process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.base, ignore_errors=True)


def program(name, *arguments, status=0):
    """Runs it, and returns what it has printed on stdout and stderr. status: None for any."""
    done = subprocess.run(
        [PYTHON, FLEET / name, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert status in (done.returncode, None), (name, arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def fleet(*arguments, status=0):
    return program("ipclab-fleet", *arguments, status=status)


def export_command(dsn, store, *more):
    """Where the store has no socket there is no daemon: nothing answers."""
    directory = Path(store.directory)
    return [
        *(PYTHON, str(FLEET / "ipclab-export"), "--database", dsn, "--state-dir", str(directory)),
        *(
            "--socket",
            getattr(store, "socket", str(directory / "none")),
            "--identity",
            str(directory / "identity"),
            "--host",
            store.host,
        ),
        *map(str, more),
    ]


def export(dsn, store, *more, status=0):
    return program(*(word.removeprefix(f"{FLEET}/") for word in export_command(dsn, store, *more)[1:]), status=status)


def export_here(dsn, store, page=10_000):
    """As export(), without a process of its own: for stores of which nobody has a daemon."""
    import psycopg
    from ipclab_fleet.export import Identity, export
    from ipclab_fleet.store import Store

    reader, reported = Store(store.directory), []
    try:
        with psycopg.connect(dsn, autocommit=True) as base:
            identity = Identity(Path(store.directory) / "identity", reader.uuid)
            export(base, reader, identity, store.host, lambda: None, reported.append, page)
    finally:
        reader.close()
    assert not reported, reported


@pytest.fixture(scope="session")
def postgres():
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        pytest.skip(f"no PostgreSQL driver: {error} (Debian's python3-psycopg)")
    if not BINARIES:
        pytest.skip("no PostgreSQL: /usr/lib/postgresql/*/bin/initdb is missing (Debian's postgresql-15)")
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture
def dsn(postgres):
    return postgres.database()


@pytest.fixture
def base(dsn):
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection
