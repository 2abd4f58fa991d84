# SPDX-License-Identifier: MIT
"""The local daemon's API, over its unix socket.

An exporter whose timer fires during a run competes with that run for CPUs until it has found it. HTTP by the standard
library takes more CPU time to import than all else that it does until then: read_health() does without, and the other
functions import it themselves."""

import contextlib
import json
import socket
import time

from ipclab_fleet import FleetError

ANSWER_SECONDS = 30
DEFAULT_SOCKET = "/run/ipclab/ipclabd.sock"
ANSWER_BYTES = 16 * 2**20


def request(path, method, target, body=None, headers=None):
    """(status, headers, parsed JSON), whatever the status. Unreachable when there is no whole answer."""
    import http.client

    from ipclab_cli.http import Client, Unreachable

    connection, response = Client(path).open(method, target, body, headers, ANSWER_SECONDS)
    with contextlib.closing(connection):
        try:
            return response.status, response.headers, json.loads(response.read(ANSWER_BYTES))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(f"{path}: no whole answer to {method} {target}: {error}") from error


AWAY = (FileNotFoundError, ConnectionRefusedError)  # nothing listens at the socket


def read_health(path):
    """The document of GET /health. OSError where there is no answer, ValueError for one that is no JSON."""
    deadline, parts, size = time.monotonic() + ANSWER_SECONDS, [], 0
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(str(path))
        # 1.0: the answer ends with the connection
        connection.sendall(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
        while part := connection.recv(65536):
            parts.append(part)
            size += len(part)
            if size > ANSWER_BYTES:
                raise ValueError(f"more than {ANSWER_BYTES} bytes")
            connection.settimeout(max(0.001, deadline - time.monotonic()))
    return json.loads(b"".join(parts).partition(b"\r\n\r\n")[2])


def busy(path, store=None):
    """Why nothing may be exported now, or None. A daemon that does not run measures nothing. With `store`, a UUID, it
    has to be that store's daemon."""
    try:
        health = read_health(path)
    except AWAY:
        return None
    except (OSError, ValueError) as error:
        return f"it is not known whether a run is under way: {path}: {error}"
    if not isinstance(health, dict) or "running_experiment" not in health:
        return f"{path} did not answer whether a run is under way"
    if store is not None and health.get("store") != str(store):
        return f"the daemon at {path} has the store {health.get('store')}, not {store}"
    if health["running_experiment"] is not None:
        return f"experiment {health['running_experiment']} is running"
    if health.get("damaged_pages"):
        return f"the daemon has found {health['damaged_pages']} damaged pages in its store"
    return None


def acknowledge(path, store, change):
    """Has the daemon note that everything of its store, a UUID, up to the change is in the base. None, or why that has
    to wait for the next export. A daemon that does not run, or knows no acknowledgements, misses nothing: the next
    export repeats it."""
    from ipclab_cli.http import Unreachable

    body = json.dumps({"store": str(store), "change": change}).encode()
    try:
        status, _, answer = request(path, "PUT", "/exported", body)
    except Unreachable as error:
        return None if isinstance(error.__cause__, AWAY) else str(error)
    if status in (200, 404):
        return None
    detail = answer.get("detail", answer) if isinstance(answer, dict) else answer
    if status in (409, 422):
        raise FleetError(f"the rows are in the base, but the daemon at {path} refuses the acknowledgement: {detail}")
    return f"{status}: {detail}"
