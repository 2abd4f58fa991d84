# SPDX-License-Identifier: MIT
"""The commands of ipclab-fleet, and what ipclab-export does once it may."""

import argparse
import os
import sys
import threading
import time
from pathlib import Path

import psycopg
from ipclab_cli import screen

from ipclab_fleet import FleetError, base, campaign, compare, daemon, odd, report
from ipclab_fleet.export import Identity, adopt, export
from ipclab_fleet.exporter import add_database, add_socket
from ipclab_fleet.rows import FIGURES
from ipclab_fleet.store import Store


def run(function, *arguments):
    """The exit status: 1 with a line on stderr for what a person has to correct, or for a base that went away."""
    try:
        return function(*arguments) or 0
    except FleetError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
    except psycopg.Error as error:
        print(f"{Path(sys.argv[0]).name}: the base: {str(error).strip()}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    return 1


# ipclab-export

WATCH_SECONDS = 0.1  # less than an experiment takes from its start to its first window


def end_when(may_go_on, report):
    """In a thread of its own: ends this program in the middle of a page once that is not to go on, wherever it is. The
    base then has nothing of the page, as after a kill."""

    def watch():
        while not (reason := may_go_on()):
            time.sleep(WATCH_SECONDS)
        report(f"stopped: {reason}; the next export continues at the cursor")
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def export_program(parsed):
    def report(text):
        print(text, file=sys.stderr, flush=True)

    def may_go_on():
        return None if parsed.even_while_measuring else daemon.busy(parsed.socket, store.uuid)

    def acknowledge(change):
        return daemon.acknowledge(parsed.socket, store.uuid, change)  # the daemon's own name for it, also of a fork

    store = Store(parsed.state_dir)
    try:
        reason = may_go_on()
        if reason:
            report(f"nothing exported: {reason}")
            return 0
        identity = Identity(parsed.identity, store.uuid)
        if not parsed.even_while_measuring:
            end_when(may_go_on, report)
        with base.connect(parsed.database) as connection:
            base.require_version(connection)
            if parsed.adopt:
                adopt(connection, store, identity)
                report(f"adopted as {identity.uuid}, a fork of {identity.adopted_from}")
            counts = export(connection, store, identity, parsed.host, may_go_on, report, parsed.page, acknowledge)
    finally:
        store.close()
    print(", ".join(f"{name}: {count}" for name, count in sorted(counts.items())) or "nothing new")
    return 0


# ipclab-fleet


def migrate_program(parsed):
    with base.connect(parsed.database) as connection:
        applied = base.migrate(connection)
    print("\n".join(applied) or "the base has the newest schema")


def odd_program(parsed):
    with base.connect(parsed.database) as connection:
        base.require_version(connection)
        print(odd.report(odd.find(connection, parsed.campaign), as_json=parsed.json))


def compare_program(parsed):
    with base.connect(parsed.database) as connection:
        base.require_version(connection)
        answer = compare.find(connection, parsed.baseline, parsed.candidate, parsed.figure or (), parsed.mix)
    print(compare.report(answer, as_json=parsed.json))


def report_program(parsed):
    with base.connect(parsed.database) as connection:
        base.require_version(connection)
        size = report.write(connection, parsed.file, parsed.campaign, parsed.mix)
    print(f"{parsed.file}: {size} bytes")


def campaign_create(parsed):
    with base.connect(parsed.database) as connection:
        base.require_version(connection)
        print(campaign.create(connection, parsed.spec, campaign.read_hosts(parsed.hosts), parsed.name, parsed.id))


def campaign_run(parsed):
    with base.connect(parsed.database) as connection:
        base.require_version(connection)
        return campaign.run(connection, parsed.campaign, parsed.via, parsed.rounds, parsed.pause)


def campaign_show(parsed):
    with base.connect(parsed.database) as connection:
        base.require_version(connection)
        rows = campaign.progress(connection, parsed.campaign)
    print(campaign.bars(rows))
    return 0 if campaign.complete(rows) else 3


def post_program(parsed):
    return campaign.post(parsed.socket, parsed.campaign, parsed.host, parsed.spec_base64)


def parse_fleet(arguments):
    parser = argparse.ArgumentParser(
        prog="ipclab-fleet", description="The same study on many machines, and their base."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name, function, text, database=True):
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(function=function)
        if database:
            add_database(sub)
        return sub

    command("migrate", migrate_program, "bring the base's schema to the newest version")
    sub = command("create", campaign_create, "make a campaign of a spec and a list of hosts, and print its UUID")
    sub.add_argument("spec", help="file with the experiment as JSON")
    sub.add_argument("hosts", help="file with a host a line")
    sub.add_argument("--name", help="for people")
    sub.add_argument("--id", type=campaign.parse_uuid, help="a UUID of one's own instead of a random one")
    sub = command(
        "run", campaign_run, "dispatch a campaign until the base has all of it; exit status 3 when it has not"
    )
    sub.add_argument("campaign", type=campaign.parse_uuid)
    sub.add_argument("--via", default="ssh", help="ssh, clush, sbatch or local, or a command with {host} and {post}")
    sub.add_argument(
        "--rounds", type=int, default=0, help="how often to look, and to dispatch what failed (0: until it is complete)"
    )
    sub.add_argument(
        "--pause", type=campaign.parse_seconds, default=30, help="seconds between the rounds (%(default)s)"
    )
    sub = command("show", campaign_show, "a bar for each host; exit status 3 while something is missing")
    sub.add_argument("campaign", type=campaign.parse_uuid)
    sub = command("odd", odd_program, "name the hosts that differ from their equals")
    sub.add_argument("--campaign", type=campaign.parse_uuid, help="only its runs")
    sub.add_argument("--json", action="store_true")
    sub = command("compare", compare_program, "compare a host, campaign or experiment with another, point by point")
    for side in ("baseline", "candidate"):
        sub.add_argument(side, help="a host, the UUID of a campaign, or HOST/EXPERIMENT_ID")
    figures = [name for name, _, _ in FIGURES]
    sub.add_argument("--figure", action="append", choices=figures, help="only this one; may be repeated")
    sub.add_argument("--mix", action="store_true", help="compare what is of different classes, too, as one")
    sub.add_argument("--json", action="store_true")
    sub = command("report", report_program, "write what arrived, the distributions and the odd hosts as one HTML file")
    sub.add_argument("file", help="what it is written to; one that is there is replaced")
    sub.add_argument("--campaign", type=campaign.parse_uuid, help="only its runs")
    sub.add_argument("--mix", action="store_true", help="charts with the hosts of all hardware classes together")
    sub = command("post", post_program, "post a campaign's spec to the local ipclabd; may be repeated", database=False)
    add_socket(sub)
    sub.add_argument("campaign", type=campaign.parse_uuid)
    sub.add_argument("host", type=campaign.parse_host)
    sub.add_argument("spec_base64")
    return parser.parse_args(arguments)


def fleet_program(arguments):
    parsed = parse_fleet(arguments)
    return parsed.function(parsed)


def fleet_main():
    screen.put_up()  # hosts, and the errors of their runs, are others' words
    return run(fleet_program, sys.argv[1:])
