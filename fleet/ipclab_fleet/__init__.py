# SPDX-License-Identifier: MIT
"""Campaigns over many machines, and the exporter of their stores into PostgreSQL. Python 3.11 and psycopg 3."""

import sys
from pathlib import Path

# The command line's modules, whose HTTP client is the only one: beside this room, or where they are installed.
place = Path(__file__).resolve().parents[2]
sys.path += [str(path) for path in (place / "cli", place / "ipclab/cli") if (path / "ipclab_cli").is_dir()]


PAGE_ROWS = 10_000  # of a store in one transaction of the base


class FleetError(Exception):
    """An error for the user to correct: its text is printed, and the program exits with status 1."""
