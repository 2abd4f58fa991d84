# SPDX-License-Identifier: MIT
"""A daemon's database, changed from outside. Its pages end in a checksum (store/database/pages.h), which Python's
SQLite knows nothing of: what it writes into the log is sealed when the daemon moves it into the database, and what it
writes into the database itself has to be sealed here."""

import contextlib
import sqlite3
import zlib

PAGE = 4096
TRAILER = 16
MARK = 4


@contextlib.contextmanager
def live(path):
    """A transaction beside the daemon, which alone moves pages from the log into the database."""
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as db, db:
        db.execute("PRAGMA wal_autocheckpoint = 0")
        yield db


def seal(path):
    """Gives every page of a database that nobody uses its mark, number and checksum. The first page has the marks."""
    with open(path, "r+b") as file:
        data = file.read()
        marks = data[PAGE - TRAILER : PAGE - TRAILER + 2 * MARK]
        for number, begin in enumerate(range(0, len(data), PAGE), 1):
            end = begin + PAGE - TRAILER
            page = data[begin:end] + (marks if number == 1 else marks[:MARK] + bytes(MARK)) + number.to_bytes(4, "big")
            file.seek(end)
            file.write(page[PAGE - TRAILER :] + zlib.crc32(page).to_bytes(4, "big"))
