# SPDX-License-Identifier: MIT
"""Searches, which have many short windows: on a busy machine one of these may pass without a message, and its run
fails."""

import re

EMPTY_WINDOW = re.compile(r" completed no (message|round trip|call|round of switches) in its window of ")


def had_an_empty_window(client, experiment):
    """Whether each of its runs that have failed did so for that reason, and there are some."""
    runs = client.items(f"/experiments/{experiment['id']}/runs")
    errors = [run["error"] for run in runs if run["state"] == "failed"]
    return errors != [] and all(EMPTY_WINDOW.search(error) for error in errors)
