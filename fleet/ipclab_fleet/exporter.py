# SPDX-License-Identifier: MIT
"""The command line of ipclab-export. Its timer fires while runs are measured, too, which must not change their figures:
it polls the daemon with little more than the interpreter, and imports the rest, which takes several times as much, only
when nothing is measured."""

import argparse
import os
import socket
import sys

from ipclab_fleet import PAGE_ROWS, daemon

STATE_DIR = "/var/lib/ipclab"
IDENTITY = "/var/lib/ipclab-fleet/identity"


def add_database(parser):
    parser.add_argument(
        "--database",
        metavar="DSN",
        default=os.environ.get("IPCLAB_FLEET_DATABASE", ""),
        help="PostgreSQL, as libpq takes it ($IPCLAB_FLEET_DATABASE; what it lacks comes from PGHOST, PGSERVICE, …)",
    )


def add_socket(parser):
    parser.add_argument("--socket", default=daemon.DEFAULT_SOCKET, help="of the local ipclabd (%(default)s)")


def parse_export(arguments):
    parser = argparse.ArgumentParser(
        prog="ipclab-export",
        description="Takes what changed in this host's store into PostgreSQL, exactly once. Does "
        "nothing while the daemon "
        "measures.",
    )
    add_database(parser)
    add_socket(parser)
    parser.add_argument("--state-dir", default=STATE_DIR, help="of ipclabd (%(default)s)")
    parser.add_argument("--host", default=socket.gethostname(), help="name of this host in the base (%(default)s)")
    parser.add_argument("--identity", default=IDENTITY, help="where --adopt keeps a new identity (%(default)s)")
    parser.add_argument("--page", type=int, default=PAGE_ROWS, help=f"rows in one transaction, 1 to {PAGE_ROWS}")
    parser.add_argument(
        "--adopt", action="store_true", help="export this store, a fork, under a new identity from now on"
    )
    parser.add_argument("--even-while-measuring", action="store_true", help="do not wait for the end of the experiment")
    parsed = parser.parse_args(arguments)
    if not 1 <= parsed.page <= PAGE_ROWS:
        parser.error(f"--page is 1 to {PAGE_ROWS}, not {parsed.page}")
    return parsed


def export_main():
    """The exit status."""
    parsed = parse_export(sys.argv[1:])
    reason = None if parsed.even_while_measuring else daemon.busy(parsed.socket)
    if reason:
        print(f"nothing exported: {reason}", file=sys.stderr)
        return 0
    from ipclab_fleet.programs import export_program, run

    return run(export_program, parsed)
