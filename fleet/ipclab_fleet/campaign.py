# SPDX-License-Identifier: MIT
"""Campaigns: one spec, a list of hosts, a UUID. Any dispatcher carries the same command to each host, as often as it
likes: the daemon takes the Idempotency-Key CAMPAIGN/HOST once. What is complete is read from the base alone."""

import argparse
import base64
import concurrent.futures
import json
import os
import re
import selectors
import shlex
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from ipclab_cli.http import Unreachable
from ipclab_cli.screen import visible

from ipclab_fleet import FleetError, daemon

HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")  # CAMPAIGN/HOST is within the API's 200 characters
SPEC_BYTES = 64 * 1024  # as an argument it becomes a third longer, and the kernel's limit of one is 128 KiB
DISPATCH_SECONDS = 120
TAIL_BYTES = 65536  # of what a dispatcher prints: its last line is stored
AT_ONCE = 32
GAP_ROUNDS, GAP_ROUNDS_MOST = 10, 80  # to the next dispatch to a host that took one: twice as many each time
BAR = 30

# The commands that run {post}, a command, on {host}. A word that is {post} becomes the command's words, none of which
# needs quotes where a remote shell reads them; inside another word it becomes one quoted line.
DISPATCHERS = {
    "ssh": "ssh -o BatchMode=yes -o ConnectTimeout=10 {host} {post}",
    "clush": "clush -S -w {host} {post}",
    "sbatch": "sbatch --parsable --job-name=ipclab-{campaign} --ntasks=1 --nodelist={host} --output=/dev/null "
    "'--wrap={post}'",
    "local": "{post}",
}


def parse_uuid(text):
    try:
        return uuid.UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a UUID") from None


def parse_host(text):
    if not HOST.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a host: 1 to 128 letters, digits, dots, dashes, underscores")
    return text


def parse_seconds(text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def read_hosts(path):
    hosts = []
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FleetError(f"{path}: {error}") from error
    for number, line in enumerate(lines, 1):
        host = line.partition("#")[0].strip()
        if not host:
            continue
        if not HOST.fullmatch(host):
            raise FleetError(f"{path}:{number}: {host!r} is not a host name")
        if host in hosts:
            raise FleetError(f"{path}:{number}: {host} is there twice")
        hosts.append(host)
    if not hosts:
        raise FleetError(f"{path}: no hosts")
    return hosts


def create(base, path, hosts, name=None, campaign=None):
    """Returns the UUID. The spec itself is validated by each daemon."""
    try:
        spec = Path(path).read_bytes()
        if len(spec) > SPEC_BYTES:
            raise FleetError(f"{path}: {len(spec)} bytes; a spec has at most {SPEC_BYTES}")
        if not isinstance(json.loads(spec), dict):
            raise FleetError(f"{path}: not a JSON object")
        text = spec.decode()
    except (OSError, ValueError, RecursionError) as error:
        raise FleetError(f"{path}: {error}") from error
    campaign = campaign or uuid.uuid4()
    with base.transaction():
        made = base.execute(
            "INSERT INTO campaigns (campaign, name, spec) VALUES (%s, %s, %s) ON CONFLICT DO "
            "NOTHING RETURNING campaign",
            (campaign, name, text),
        ).fetchone()
        if made is None:
            raise FleetError(f"there is a campaign {campaign} already")
        with base.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO campaign_hosts (campaign, host) VALUES (%s, %s)", [(campaign, host) for host in hosts]
            )
    return campaign


# On the host


def post(socket, campaign, host, spec_base64):
    """Posts to the local daemon; a repetition finds the first experiment. Returns the exit status."""
    try:
        spec = base64.b64decode(spec_base64, validate=True)
    except ValueError as error:
        raise FleetError(f"the spec is not base64: {error}") from error
    try:
        key = {"Idempotency-Key": f"{campaign}/{host}"}
        status, answer, body = daemon.request(socket, "POST", "/experiments", spec, key)
    except Unreachable as error:
        raise FleetError(str(error)) from error
    if status != 201:
        raise FleetError(f"{host}: {status}: {body.get('detail', body) if isinstance(body, dict) else body}")
    print(f"{host}: experiment {body['id']}{' as before' if answer.get('Idempotency-Replayed') else ''}")
    return 0


# From the middle


@dataclass
class Progress:
    host: str
    dispatches: int
    last_error: str | None
    experiment_id: int | None
    state: str | None
    error: str | None
    expected: int | None
    received: int
    complete: bool


def progress(base, campaign):
    rows = base.execute(
        "SELECT host, dispatches, last_error, experiment_id, state, error, expected, received, complete "
        "FROM campaign_progress WHERE campaign = %s ORDER BY host",
        (campaign,),
    ).fetchall()
    if not rows:
        raise FleetError(f"there is no campaign {campaign}")
    return [Progress(*row) for row in rows]


def complete(rows):
    return all(row.complete for row in rows)


def bar(done, total):
    filled = BAR * done // total if total else 0
    return "[" + "#" * filled + "." * (BAR - filled) + "]"


def bars(rows):
    width = max(len(row.host) for row in rows)
    lines = []
    for row in rows:
        if row.experiment_id is None:
            times = "once" if row.dispatches == 1 else f"{row.dispatches} times"
            note = f"not received; dispatched {times}" + (f"; {row.last_error}" if row.last_error else "")
        else:
            note = f"{row.received}/{row.expected} {row.state}" + (f": {row.error}" if row.error else "")
        lines.append(f"{row.host:<{width}} {bar(row.received, row.expected)} {note}")
    done = sum(row.complete for row in rows)
    lines.append(f"{'all':<{width}} {bar(done, len(rows))} {done}/{len(rows)} hosts, {100 * done / len(rows):.1f} %")
    return "\n".join(lines)


def dispatch_command(via, campaign, host, spec):
    """The words to execute; no shell reads them here."""
    command = ["ipclab-fleet", "post", str(campaign), host, base64.b64encode(spec.encode()).decode()]
    words = []
    for word in shlex.split(DISPATCHERS.get(via, via)):
        if word == "{post}":
            words += command
        else:
            words.append(
                word.replace("{host}", host).replace("{campaign}", str(campaign)).replace("{post}", shlex.join(command))
            )
    return words


def follow(streams, deadline):
    """The last bytes of each of the streams, once all have ended; None where the deadline comes first."""
    tails = dict.fromkeys(streams, b"")
    with selectors.DefaultSelector() as ready:
        for stream in streams:
            ready.register(stream, selectors.EVENT_READ)
        while ready.get_map():
            events = ready.select(max(0, deadline - time.monotonic()))
            if time.monotonic() >= deadline:
                return None
            for stream in [key.fileobj for key, _ in events]:
                piece = os.read(stream.fileno(), TAIL_BYTES)
                tails[stream] = (tails[stream] + piece)[-TAIL_BYTES:]
                if not piece:
                    ready.unregister(stream)
    return [tails[stream].decode(errors="replace").strip() for stream in streams]


def dispatch(command):
    """None, or what went wrong, in the host's last words as far as text can hold them."""
    deadline = time.monotonic() + DISPATCH_SECONDS
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
    except OSError as error:
        return f"{command[0]}: {error}"
    with process:
        tails = follow((process.stderr, process.stdout), deadline)
        try:
            status = process.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            return f"no end within {DISPATCH_SECONDS} s"
    if status == 0:
        return None
    last = (next(filter(None, tails or ()), "").splitlines() or [f"exit status {status}"])[-1]
    return visible(last[:500])


def dispatch_all(base, campaign, via, hosts):
    spec = base.execute("SELECT spec FROM campaigns WHERE campaign = %s", (campaign,)).fetchone()[0]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = {pool.submit(dispatch, dispatch_command(via, campaign, host, spec)): host for host in hosts}
        for future in concurrent.futures.as_completed(waiting):
            base.execute(
                "UPDATE campaign_hosts SET dispatches = dispatches + 1, last_error = %s WHERE "
                "campaign = %s AND host = %s",
                (future.result(), campaign, waiting[future]),
            )


def run(base, campaign, via, rounds=0, pause=30.0):
    """Dispatches to the hosts that the base has nothing of, and watches until it has everything: again at once where
    that failed, and elsewhere, as a job may be lost, after ever more rounds. Returns the exit status."""
    if via not in DISPATCHERS and "{post}" not in via:
        raise FleetError(f"--via is one of {', '.join(DISPATCHERS)}, or a command with {{post}}, not {via!r}")
    try:
        shlex.split(via)
    except ValueError as error:
        raise FleetError(f"--via: {error}: {via}") from error
    done, gaps, due_at = 0, {}, {}
    while True:
        rows = progress(base, campaign)
        print(bars(rows), flush=True)
        if complete(rows):
            return 0
        if rounds and done == rounds:
            print(f"incomplete after {rounds} rounds; what is missing may only wait for its export", file=sys.stderr)
            return 3
        missing = [row for row in rows if row.experiment_id is None]
        due = [row.host for row in missing if row.last_error or done >= due_at.get(row.host, 0)]
        dispatch_all(base, campaign, via, due)
        for host in due:
            gaps[host] = min(2 * gaps.get(host, GAP_ROUNDS // 2), GAP_ROUNDS_MOST)
            due_at[host] = done + gaps[host]
        done += 1
        time.sleep(pause)
