# SPDX-License-Identifier: MIT
"""The local daemon's API, over its unix socket."""

import contextlib
import http.client
import json

from ipclab_cli.http import Client, Unreachable

from ipclab_fleet import FleetError

ANSWER_SECONDS = 30
DEFAULT_SOCKET = "/run/ipclab/ipclabd.sock"
ANSWER_BYTES = 16 * 2**20


def request(path, method, target, body=None, headers=None):
    """(status, headers, parsed JSON), whatever the status. Unreachable when there is no whole answer."""
    connection, response = Client(path).open(method, target, body, headers, ANSWER_SECONDS)
    with contextlib.closing(connection):
        try:
            return response.status, response.headers, json.loads(response.read(ANSWER_BYTES))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(f"{path}: no whole answer to {method} {target}: {error}") from error


def is_away(error):
    """Whether nothing listens at the socket."""
    return isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError)


def busy(path, store=None):
    """Why nothing may be exported now, or None. A daemon that does not run measures nothing. With `store`, a UUID, it
    has to be that store's daemon."""
    try:
        _, _, health = request(path, "GET", "/health")
    except Unreachable as error:
        if is_away(error):
            return None
        return f"it is not known whether a run is under way: {error}"
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
    body = json.dumps({"store": str(store), "change": change}).encode()
    try:
        status, _, answer = request(path, "PUT", "/exported", body)
    except Unreachable as error:
        return None if is_away(error) else str(error)
    if status in (200, 404):
        return None
    detail = answer.get("detail", answer) if isinstance(answer, dict) else answer
    if status in (409, 422):
        raise FleetError(f"the rows are in the base, but the daemon at {path} refuses the acknowledgement: {detail}")
    return f"{status}: {detail}"
