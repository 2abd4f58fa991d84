# SPDX-License-Identifier: MIT
"""A daemon's SQLite store, read only: one snapshot at a time, never longer than a page, so that the daemon's
checkpoints are not held up."""

import contextlib
import sqlite3
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from ipclab_fleet import PAGE_ROWS, FleetError
from ipclab_fleet.rows import DELETION, KINDS, from_store

BUSY_SECONDS = 10
INT64_MAX = 2**63 - 1
PAGE_BYTES = 64 * 2**20  # of text; a page ends after the row that passes it
WITNESSES = 64  # rows before the cursor that are compared with the base


@dataclass
class Page:
    rows: list = field(default_factory=list)
    last_change: int = 0  # of the whole store
    end: int = 0  # the last change that can be read: less where an experiment is being stored
    cursor: int = 0  # the change up to which the rows are complete
    witnesses: list = field(default_factory=list)  # the newest rows up to the old cursor
    known: dict = field(default_factory=dict)  # (kind, id) -> Row or None: the requested rows
    deletions: set = field(default_factory=set)  # ids of deleted experiments among the requested rows


def decode(raw):
    return raw.decode("utf-8", "surrogateescape")  # what is not UTF-8 is found by rows.check_value()


class Store:
    def __init__(self, state_dir):
        path = Path(state_dir).resolve() / "ipclab.db"
        if not path.is_file():
            raise FleetError(f"{path}: no such database")
        self.path = path
        try:
            self.db = sqlite3.connect(
                f"file:{str(path).replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?mode=ro",
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
            )
            self.db.execute("PRAGMA query_only = 1")
            self.db.text_factory = decode
            self.uuid = self.read_uuid()
        except sqlite3.Error as error:
            raise FleetError(f"{path}: {error}") from error

    def close(self):
        self.db.close()

    def shown(self, kind):
        """The rows that are exported: what came from another host as a bundle is exported there, or not at all."""
        if kind.experiment is None:
            return kind.shown
        return f"{kind.shown} AND {kind.experiment} NOT IN (SELECT experiment_id FROM bundles)"

    def read_uuid(self):
        """The identity that ipclabd gave the database when it made it, in the one row of the table identity."""
        tables = {name for (name,) in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in ("identity", "deletions", "specs"):
            if table not in tables:
                raise FleetError(f"{self.path}: no table {table}; the ipclabd that wrote it is too old to be exported")
        row = self.db.execute("SELECT store FROM identity").fetchone()
        try:
            return uuid.UUID(row[0])
        except (TypeError, ValueError, AttributeError) as error:
            raise FleetError(f"{self.path}: the table identity has no UUID") from error

    @contextlib.contextmanager
    def snapshot(self):
        self.db.execute("BEGIN")
        try:
            yield
        finally:
            self.db.execute("ROLLBACK")

    def page(self, after, requested=(), limit=PAGE_ROWS):
        """The rows that changed after `after`, in the order of their changes, and the witnesses that identify the store
        that was read up to there. requested: (kind, id, experiment_id) of rows to look up."""
        try:
            with self.snapshot():
                page = Page(cursor=after)
                page.last_change = self.db.execute("SELECT value FROM counters WHERE name = 'change'").fetchone()[0]
                page.end = min(page.last_change, self.unfinished() - 1)
                page.witnesses = self.newest(after)
                for kind, identity, experiment_id in requested:
                    page.known[kind, identity] = self.row(KINDS[kind], identity)
                    if self.row(DELETION, experiment_id):
                        page.deletions.add(experiment_id)
                self.read_changes(page, after, limit)
                return page
        except sqlite3.Error as error:
            raise FleetError(f"{self.path}: {error}") from error

    def unfinished(self):
        """The first change of an experiment that the daemon stores in several transactions and has not finished, or
        that a crash has left so until the daemon removes it. Its runs have their changes from the first transaction
        on, so what changes later has higher ones."""
        sql = (
            "SELECT min(it.change) FROM forgotten JOIN experiments AS it ON it.id = forgotten.experiment_id "
            "WHERE it.id NOT IN (SELECT experiment_id FROM deletions)"
        )
        first = self.db.execute(sql).fetchone()[0]
        return INT64_MAX if first is None else first

    def row(self, kind, identity):
        column = "experiment_id" if kind is DELETION else "id"
        where = f"it.{column} = ? AND {self.shown(kind)}"
        record = self.db.execute(kind.select.format(where=where), (identity,)).fetchone()
        return from_store(kind, record) if record else None

    def newest(self, change):
        rows = []
        for kind in KINDS.values():
            sql = kind.select.format(where=f"it.change <= ? AND {self.shown(kind)} ORDER BY it.change DESC LIMIT ?")
            rows += [from_store(kind, record) for record in self.db.execute(sql, (change, WITNESSES))]
        return sorted(rows, key=lambda row: -row.change)[:WITNESSES]

    def changes(self, after, end, limit):
        """(change, kind) in order."""
        found = []
        for kind in KINDS.values():
            sql = f"SELECT change FROM {kind.table} AS it WHERE change > ? AND change <= ? AND {self.shown(kind)} "
            found += [
                (change, kind) for (change,) in self.db.execute(f"{sql} ORDER BY change LIMIT ?", (after, end, limit))
            ]
        return sorted(found, key=lambda pair: pair[0])[:limit]

    def read_changes(self, page, after, limit):
        found, size = self.changes(after, page.end, limit), 0
        for change, kind in found:
            if size >= PAGE_BYTES:
                break
            record = self.db.execute(kind.select.format(where="it.change = ?"), (change,)).fetchone()
            if record is None:
                raise FleetError(f"{self.path}: the {kind.name} with change {change} has no point")
            page.rows.append(from_store(kind, record))
            size += sum(len(value) for value in page.rows[-1].values if isinstance(value, str))
            page.cursor = change
        if len(page.rows) == len(found) < limit:
            page.cursor = max(after, page.end)  # the changes in between are samples'
