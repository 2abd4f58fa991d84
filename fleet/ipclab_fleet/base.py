# SPDX-License-Identifier: MIT
"""The PostgreSQL base: connecting, and its schema, which is numbered files that are applied once each, in order."""

import re
from pathlib import Path

import psycopg

from ipclab_fleet import FleetError

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"
MIGRATION_LOCK = 0x6970636C  # "ipcl": two programs that migrate at once would both create the first table
CONNECT_SECONDS = 10
LOCK_MILLISECONDS = 60_000
CHECK_MILLISECONDS = 500  # a backend whose exporter was killed, or gave way to a run, keeps its cursor no longer


def connect(dsn):
    """dsn: libpq's form or URL; what it lacks comes from libpq's environment variables (PGHOST, PGSERVICE, …)."""
    options = (
        f"-c lock_timeout={LOCK_MILLISECONDS} -c client_connection_check_interval={CHECK_MILLISECONDS} "
        "-c synchronous_commit=on -c TimeZone=UTC "
        "-c jit=off"  # compiling takes four times as long as what an export computes, and is not kept for the next
    )
    try:
        return psycopg.connect(
            dsn, connect_timeout=CONNECT_SECONDS, options=options, application_name="ipclab-fleet", autocommit=True
        )
    except psycopg.OperationalError as error:
        raise FleetError(f"cannot connect to the base: {str(error).strip()}") from error


def migrations():
    """(number, name, SQL) of each file, in order; the numbers are 1, 2, 3, …"""
    found = []
    for path in sorted(MIGRATIONS.glob("*.sql")):
        match = re.fullmatch(r"(\d{4})-([a-z0-9-]+)\.sql", path.name)
        if not match or int(match[1]) != len(found) + 1:
            raise FleetError(f"{path}: migrations are numbered 0001, 0002, … without a gap")
        found.append((int(match[1]), path.stem, path.read_text()))
    if not found:
        raise FleetError(f"{MIGRATIONS}: no migrations; the installation is incomplete")
    return found


def version(base):
    """0 for an empty base."""
    if base.execute("SELECT to_regclass('schema_version')").fetchone()[0] is None:
        return 0
    return base.execute("SELECT max(version) FROM schema_version").fetchone()[0] or 0


def migrate(base):
    """Takes the base to the newest version, all or nothing. Returns the names of the applied migrations."""
    known = migrations()
    with base.transaction():
        base.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        base.execute(
            "CREATE TABLE IF NOT EXISTS schema_version "
            "(version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        present = version(base)
        if present > len(known):
            raise FleetError(f"the base has version {present}, this ipclab-fleet supports up to {len(known)}")
        for number, name, sql in known[present:]:
            base.execute(sql)
            base.execute("INSERT INTO schema_version (version, name) VALUES (%s, %s)", (number, name))
    return [name for _, name, _ in known[present:]]


def require_version(base):
    present, wanted = version(base), len(migrations())
    if present != wanted:
        raise FleetError(
            f"the base has schema version {present}, this ipclab-fleet needs {wanted}: run ipclab-fleet migrate"
            if present < wanted
            else f"the base has schema version {present}, this ipclab-fleet supports up to {wanted}: upgrade it"
        )
