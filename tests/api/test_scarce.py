# SPDX-License-Identifier: MIT
"""Few descriptors: what cannot be run is refused before it is stored, and what is admitted is run whatever clients
take."""

import contextlib
import resource

import pytest
from conftest import SHORT, Daemon

LEAST = 120  # the daemon's own, those of a run, and a few clients


def limited(files):
    return Daemon(preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))


@pytest.mark.parametrize("files", [64, LEAST - 1])
def test_too_few_descriptors_are_named_beforehand(files):
    """By every spec, also of agents that need fewer than the daemon does."""
    d = limited(files)
    try:
        for spec in (SHORT, SHORT | {"transport": "shm-posix", "threads": 8}):
            problem = d.unix.refused("POST", "/experiments", 422, "limit-exceeded", spec)
            assert problem["limit"] == {"name": "RLIMIT_NOFILE", "value": files} and problem["value"] > files
        assert d.unix.get("/experiments")["items"] == []
        assert d.unix.get("/health")["status"] == "ok"
    finally:
        d.remove()


def test_clients_leave_descriptors_for_the_run():
    d = limited(LEAST)
    try:
        with contextlib.ExitStack() as stack:
            for client in (d.tcp, d.unix):
                for _ in range(20):
                    stack.enter_context(client.raw_socket())
            for threads in (1, 8):
                spec = SHORT | {"transport": "shm-posix", "threads": threads}
                experiment = d.unix.wait_final(d.unix.post(spec)["id"])
                assert experiment["state"] == "done", (experiment, d.log_tail())
    finally:
        d.remove()
