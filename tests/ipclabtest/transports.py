# SPDX-License-Identifier: MIT
"""The rows of the table of transports (schema/transport/table.h), for lists that a new row should be in."""

import re

from . import SOURCE

TABLE = (SOURCE / "schema/transport/table.h").read_text(encoding="utf-8")
COPIES = {"COPIES_TWO_ONE": {"one-copy"}, "COPIES_ALL": {"one-copy", "zero-copy"}}


def read():
    """The members of each row as they are written, by the transport's name."""
    text = re.sub(r"\s*\\\n\s*", " ", TABLE.partition("#define TRANSPORTS(ROW)")[2].partition("\n\n")[0])
    rows = [dict(re.findall(r"\.(\w+) = (.+?)(?=, \.|\)\s*$)", row)) for row in text.split("ROW(")[1:]]
    return {row["name"].strip('"'): row for row in rows}


ROWS = read()


def values(text):
    """OPTION(A) | OPTION(B) are A and B, and COPIES_… the copy modes beside two-copy."""
    return COPIES.get(text) or set(re.sub(r"OPTION\((\w+)\)", r"\1", text).split(" | "))


def where(member, value="true"):
    """The names of those rows whose member is this value, or has it among others."""
    return [name for name, row in ROWS.items() if value in values(row.get(member, ""))]


def listed(names):
    """As a sentence has them: "pipe, fifo and tcp"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
