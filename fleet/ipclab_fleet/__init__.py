# SPDX-License-Identifier: MIT
"""Campaigns over many machines, and the exporter of their stores into PostgreSQL. Python 3.11 and psycopg 3."""

import sys
from os import path

# The command line's modules, with the HTTP client: beside this room, or where they are installed. pathlib would take
# more time than an exporter may that finds a run (daemon.py).
place = path.dirname(path.dirname(path.dirname(path.realpath(__file__))))
for modules in (path.join(place, "cli"), path.join(place, "ipclab", "cli")):
    if path.isdir(path.join(modules, "ipclab_cli")):
        sys.path.append(modules)

PAGE_ROWS = 10_000  # of a store in one transaction of the base


class FleetError(Exception):
    """An error for the user to correct: its text is printed, and the program exits with status 1."""
