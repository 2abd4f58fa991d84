# SPDX-License-Identifier: MIT
"""ipclab-export: takes what changed in this host's store into the base, exactly once.

The cursor is in the base, in the transaction of the rows that it stands for: whatever is killed, either both are
there or neither. An exporter that begins again reads the same rows again, and a row replaces only an older one."""

import json
import os
import uuid
from collections import Counter
from pathlib import Path

import psycopg
from psycopg import sql

from ipclab_fleet import PAGE_ROWS, FleetError
from ipclab_fleet.rows import DELETION, DERIVED, FIGURES, KINDS, RUN
from ipclab_fleet.store import WITNESSES

ADOPT = "If that is intended, adopt it once with: ipclab-export --adopt"


# The identity under which a store exports


class Identity:
    """The store's own UUID, or the one that --adopt made for it, which a file of the exporter holds."""

    def __init__(self, path, store_uuid):
        self.path, self.store_uuid = Path(path), store_uuid
        self.uuid, self.adopted_from = store_uuid, None
        try:
            saved = json.loads(self.path.read_text())
            if saved["store_uuid"] == str(store_uuid):  # else the database is a new one
                self.uuid, self.adopted_from = uuid.UUID(saved["identity"]), uuid.UUID(saved["adopted_from"])
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FleetError(f"{self.path}: not an identity that ipclab-export wrote: {error}") from error

    def adopt(self):
        """A new identity, durable before anything is exported under it."""
        adopted = uuid.uuid4()
        saved = {"store_uuid": str(self.store_uuid), "identity": str(adopted), "adopted_from": str(self.uuid)}
        fresh = self.path.with_name(self.path.name + ".new")
        try:
            with fresh.open("w") as file:
                file.write(json.dumps(saved) + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.path)
            directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            raise FleetError(f"{self.path}: cannot keep the new identity: {error.strerror}") from error
        self.uuid, self.adopted_from = adopted, self.uuid


# Whether the store is the one that was read before


def newest_in_base(base, store):
    """The newest rows of the base, as (kind, id, experiment_id) -> (change, digest)."""
    parts = [
        sql.SQL(
            "(SELECT {name}, id, {experiment}, change, digest FROM {table} WHERE store = %(store)s {newest})"
        ).format(
            name=sql.Literal(kind.name),
            experiment=sql.SQL("experiment_id" if kind is RUN else "id"),
            table=sql.Identifier(kind.table),
            newest=sql.SQL("ORDER BY change DESC LIMIT {}").format(WITNESSES),
        )
        for kind in KINDS.values()
    ]
    parts.append(
        sql.SQL(
            "(SELECT kind, id, experiment_id, change, digest FROM set_aside WHERE store = %(store)s "
            "ORDER BY change DESC LIMIT {})"
        ).format(WITNESSES)
    )
    query = sql.SQL("{} ORDER BY 4 DESC LIMIT {}").format(sql.SQL(" UNION ALL ").join(parts), WITNESSES)
    return {row[:3]: row[3:] for row in base.execute(query, {"store": store})}


def find_in_base(base, store, row):
    """(change, digest) of the same row in the base, or None."""
    query = sql.SQL("SELECT change, digest FROM {} WHERE store = %s AND id = %s").format(sql.Identifier(row.kind.table))
    return (
        base.execute(query, (store, row.id)).fetchone()
        or base.execute(
            "SELECT change, digest FROM set_aside WHERE store = %s AND kind = %s AND id = %s",
            (store, row.kind.name, row.id),
        ).fetchone()
    )


def fork_reason(base, store, cursor, newest, page):
    """Why the store is not the one whose changes up to the cursor are in the base, or None. A row that has not changed
    since is in both with the same digest, and a row of the base is in the store unless its experiment was deleted."""
    if page.last_change < cursor:
        return f"its newest change is {page.last_change}, and {cursor} was exported already"
    for (kind, identity, experiment_id), (change, digest) in newest.items():
        row = page.known[kind, identity]
        if kind != DELETION.name and experiment_id in page.deletions:
            continue  # its rows are being removed
        if row is None:
            return f"{kind} {identity} of change {change} was exported and is not in it, nor was it deleted"
        if row.change < change or row.change == change and row.digest != digest:
            return f"{kind} {identity} of change {change} was exported with other contents"
        if change < row.change <= cursor:
            return f"{kind} {identity} was exported with change {change}, and has change {row.change} in it"
    for row in page.witnesses:
        found = find_in_base(base, store, row)
        if found is None or found != (row.change, row.digest):
            return f"{row.kind.name} {row.id} of change {row.change} is not what was exported up to change {cursor}"
    return None


# Merging a page


def columns_of(kind):
    return ("store", "id", "change", "digest", *kind.columns, *DERIVED[kind.name])


COPY_BYTES = 2**18  # that are sent at once
ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))


def copy_text(value):
    """As COPY reads it. psycopg's own way, for every type, takes several times as long."""
    if value is None:
        return "\\N"
    if isinstance(value, bytes):
        return f"\\\\x{value.hex()}"
    text = str(value)
    for plain, escaped in ESCAPES:
        if plain in text:
            text = text.replace(plain, escaped)
    return text


def copy_rows(copy, store, rows):
    lines, size = [], 0
    for row in rows:
        values = (store, row.id, row.change, row.digest, *row.values, *row.derived)
        lines.append("\t".join(map(copy_text, values)) + "\n")
        size += len(lines[-1])
        if size >= COPY_BYTES:
            copy.write("".join(lines))
            lines, size = [], 0
    copy.write("".join(lines))


def merge_kind(base, store, kind, rows):
    table, incoming = sql.Identifier(kind.table), sql.Identifier(f"incoming_{kind.table}")
    columns = columns_of(kind)
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    base.execute(
        sql.SQL("CREATE TEMPORARY TABLE {incoming} ON COMMIT DROP AS SELECT {names} FROM {table} WITH NO DATA").format(
            incoming=incoming, names=names, table=table
        )
    )
    with base.cursor().copy(sql.SQL("COPY {} ({}) FROM STDIN").format(incoming, names)) as copy:
        copy_rows(copy, store, rows)
    base.execute(
        sql.SQL(
            "INSERT INTO {table} ({names}) SELECT {names} FROM {incoming} "
            "ON CONFLICT (store, id) DO UPDATE SET {updates} WHERE excluded.change > {table}.change"
        ).format(
            table=table,
            names=names,
            incoming=incoming,
            updates=sql.SQL(", ").join(
                sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name))
                for name in columns
                if name not in ("store", "id")
            ),
        )
    )
    base.execute(sql.SQL("DROP TABLE {}").format(incoming))
    base.execute(
        "DELETE FROM set_aside WHERE store = %s AND kind = %s AND id = ANY(%s)",
        (store, kind.name, [row.id for row in rows]),
    )


def set_aside(base, store, row, reason):
    """The older version of the row leaves with it: it is not what the store has."""
    base.execute(
        "INSERT INTO set_aside (store, kind, id, change, digest, experiment_id, reason, contents) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (store, kind, id) DO UPDATE SET change = excluded.change, "
        "digest = excluded.digest, reason = excluded.reason, contents = excluded.contents, set_aside_at = now() "
        "WHERE excluded.change > set_aside.change",
        (
            *(store, row.kind.name, row.id, row.change, row.digest, row.experiment_id, reason.replace("\0", "\\0")),
            json.dumps(row.values, default=str),
        ),
    )
    query = sql.SQL("DELETE FROM {} WHERE store = %s AND id = %s").format(sql.Identifier(row.kind.table))
    base.execute(query, (store, row.id))


def merge_rows(base, store, kind, rows):
    """Returns what was set aside, as (row, reason). A row that the base refuses is found by halving."""
    if not rows:
        return []
    try:
        with base.transaction():
            merge_kind(base, store, kind, rows)
        return []
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        if len(rows) == 1:
            return [(rows[0], str(error).splitlines()[0])]
    middle = len(rows) // 2
    return merge_rows(base, store, kind, rows[:middle]) + merge_rows(base, store, kind, rows[middle:])


def delete_experiments(base, store, ids):
    """Returns the points whose runs went."""
    for table, column in (("experiments", "id"), ("set_aside", "experiment_id")):
        query = sql.SQL("DELETE FROM {} WHERE store = %s AND {} = ANY(%s)").format(
            sql.Identifier(table), sql.Identifier(column)
        )
        base.execute(query, (store, ids))
    gone = base.execute(
        "DELETE FROM runs WHERE store = %s AND experiment_id = ANY(%s) RETURNING point", (store, ids)
    ).fetchall()
    return {point for (point,) in gone}


def refresh_host_points(base, store, points):
    """The summaries of the touched points, from the runs that are there now."""
    base.execute("DELETE FROM host_points WHERE store = %s AND point = ANY(%s)", (store, points))
    for figure, _, _ in FIGURES:
        base.execute(
            sql.SQL(
                "INSERT INTO host_points (store, point, class, figure, runs, median_log, var_log) "
                "SELECT r.store, r.point, e.class, {literal}, count(*), "
                "percentile_cont(0.5) WITHIN GROUP (ORDER BY ln(r.{figure})), var_samp(ln(r.{figure})) "
                "FROM own_runs r JOIN environments e USING (environment) "
                "WHERE r.store = %s AND r.point = ANY(%s) AND r.state = 'done' AND r.rate IS NULL "
                "AND r.{figure} IS NOT NULL "
                "GROUP BY r.store, r.point, e.class"
            ).format(literal=sql.Literal(figure), figure=sql.Identifier(figure)),
            (store, points),
        )


def add_contents(base, rows):
    """Points and environments, in one order for all exporters so that none waits for another in a circle."""
    points, environments = {}, {}
    for row in rows:
        points.update(row.points or {})
        environments.update(row.environments or {})
    with base.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO points (point, spec) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            sorted(points.items()),
        )
        cursor.executemany(
            "INSERT INTO environments (environment, class, cpu_model, cpus, memory_gib, kernel_family, facts) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [(name, *values) for name, values in sorted(environments.items(), key=lambda item: item[0])],
        )


def merge_page(base, store, page):
    """Returns what was set aside, as (row, reason). Everything is in the caller's transaction."""
    gone = [row.id for row in page.rows if row.kind is DELETION]
    aside = [(row, row.fault) for row in page.rows if row.fault]
    # A point that a run of this page has left is touched, too.
    before = base.execute(
        "SELECT DISTINCT point FROM runs WHERE store = %s AND id = ANY(%s)",
        (store, [row.id for row in page.rows if row.kind is RUN]),
    ).fetchall()
    touched = {point for (point,) in before} | delete_experiments(base, store, gone)
    for kind in KINDS.values():
        aside += merge_rows(base, store, kind, [row for row in page.rows if row.kind is kind and not row.fault])
    for row, reason in aside:
        set_aside(base, store, row, reason)
    refused = {id(row) for row, _ in aside}
    taken = [row for row in page.rows if id(row) not in refused]
    add_contents(base, taken)
    for row in taken:
        touched.update(row.points or {})
    refresh_host_points(base, store, sorted(touched))
    return aside


# The export


def register(base, identity, host):
    base.execute(
        "INSERT INTO stores (store, store_uuid, adopted_from, host) VALUES (%s, %s, %s, %s) ON "
        "CONFLICT (store) DO NOTHING",
        (identity.uuid, identity.store_uuid, identity.adopted_from, host),
    )
    base.execute("INSERT INTO cursors (store) VALUES (%s) ON CONFLICT DO NOTHING", (identity.uuid,))


def read_page(base, store, name, limit):
    """The next page, and why the store is a fork, or None. Holds the cursor until the end of the transaction."""
    cursor = base.execute("SELECT change FROM cursors WHERE store = %s FOR UPDATE", (name,)).fetchone()[0]
    newest = newest_in_base(base, name)
    page = store.page(cursor, newest, limit)
    return page, fork_reason(base, name, cursor, newest, page)


def adopt(base, store, identity):
    """Gives a fork an identity of its own. What is no fork keeps the one that it has."""
    known = base.execute("SELECT FROM cursors WHERE store = %s", (identity.uuid,)).fetchone()
    if known is not None:
        with base.transaction():
            _, reason = read_page(base, store, identity.uuid, 1)
    if known is None or reason is None:
        raise FleetError(
            f"{store.path} is no fork of the store {identity.uuid} in this base: there is nothing to adopt"
        )
    identity.adopt()


# Results are most of a page. PostgreSQL's default, pglz, makes them no smaller, and takes most of the server's time.
COMPRESSION = """
SELECT set_config(name, 'lz4', true) FROM pg_settings
WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)"""


def export_page(base, store, identity, host, limit=PAGE_ROWS):
    """One page in one transaction. Returns the Page and what was set aside."""
    try:
        with base.transaction():
            base.execute(COMPRESSION)
            register(base, identity, host)
            page, reason = read_page(base, store, identity.uuid, limit)
            if reason:
                raise FleetError(
                    f"{store.path} is not the store {identity.uuid} that this base knows, but a "
                    f"fork of it (a restored or a "
                    f"cloned database): {reason}. Nothing was exported. {ADOPT}"
                )
            aside = merge_page(base, identity.uuid, page)
            base.execute("UPDATE cursors SET change = %s WHERE store = %s", (page.cursor, identity.uuid))
            base.execute("UPDATE stores SET last_export = now(), host = %s WHERE store = %s", (host, identity.uuid))
    except psycopg.errors.LockNotAvailable as error:
        raise FleetError(f"another exporter holds the cursor of store {identity.uuid}") from error
    return page, aside


def export(base, store, identity, host, may_go_on, report, limit=PAGE_ROWS, acknowledge=lambda change: None):
    """Pages until nothing is left, or until may_go_on() has a reason to stop. acknowledge() gets the change up to which
    the store is in the base, after each commit, and returns None or why that has to be repeated. Returns the counts of
    rows by kind."""
    counts = Counter()
    while True:
        reason = may_go_on()
        if reason:
            report(f"stopped: {reason}; the next export continues at the cursor")
            return counts
        page, aside = export_page(base, store, identity, host, limit)
        counts.update(row.kind.name for row in page.rows)
        for row, fault in aside:
            counts["set aside"] += 1
            report(f"set aside: {row.kind.name} {row.id} of change {row.change}: {fault}")
        reason = acknowledge(page.cursor)
        if reason:
            report(f"not acknowledged: {reason}; the next export repeats it")
        if page.cursor >= page.end:
            if page.end < page.last_change:
                report(f"stopped after change {page.end}: the daemon is storing an experiment")
            return counts
