# SPDX-License-Identifier: MIT
import os
import time
from pathlib import Path

import ipclabtest.daemon
import pytest
from client import PATIENCE_SECONDS, Client, description_of
from ipclabtest import BUILD, SOURCE

__all__ = ["BUILD", "OF_PIPE", "SHORT", "SOURCE", "TIMED", "Daemon"]

# Modules that tools/test runs against the sanitizers' build: those in which the daemon parses what a stranger or a
# damaged file gives it, streams or pages what it answers, or is held up in the middle of it. What the others make it
# compute is under the sanitizers in tests/unit; they are about the agents' work and what the answers contain.
SANITIZED = {
    "test_bad_specs",
    "test_bundle_import",
    "test_damage",
    "test_events",
    "test_experiments",
    "test_http",
    "test_limits",
    "test_openapi",
    "test_results",
    "test_schema",
    "test_security",
    "test_slow",
}
# Modules that look for what is left on all of the host: one at a time. Elsewhere single tests have the mark `alone`:
# those that judge how evenly agents run, or a CPU time that is so near its limit that it would exceed it beside other
# tests.
ALONE = {"test_neighbour"}
# Modules that change a setting of the host, and judge nothing that depends on what else is there: one at a time, beside
# what has a kernel of its own. Elsewhere single tests have the mark `host`.
HOST = {"test_page_sizes"}
if os.geteuid() != 0:  # and agents have no user of their own, by whom what they leave is known
    ALONE.add("test_killed_agents")
OF_PIPE = {"transport": "pipe", "message_size": 4096, "warmup_seconds": 0}
# By count: on a busy machine a window of some tenths of a second may be over without a message.
SHORT = OF_PIPE | {"messages": 3000}
TIMED = OF_PIPE | {"duration_seconds": 0.8}  # for what a window by count has not
# Runs until somebody stops it, and takes next to no CPU time from the tests beside it.
ENDLESS = OF_PIPE | {"duration_seconds": 600, "rate": 10}


class Daemon(ipclabtest.daemon.Daemon):
    """A running one, with a client for each way in."""

    def __init__(self, *options, web_dir=None, **more):
        super().__init__("--log-level=debug", *options, web=web_dir, **more)
        self.start()
        self.unix = self.client(Client)
        self.tcp = Client(port=self.port, token=self.token)
        self.stranger = Client(port=self.port)
        openapi = description_of(self.described())
        for client in (self.unix, self.tcp, self.stranger):
            client.openapi = openapi

    def described(self):
        """On a machine so busy that the daemon answers nothing in its time, it asks for another try."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (answer := self.unix.request("GET", "/openapi.json")).status == 503:
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)
        assert answer.status == 200, answer
        return answer.body


# Those that take longest, in this order and before all others: two processes that take a file each then end together.
LONGEST = (
    "schemathesis",
    "main_loop",
    "memory",
    "bundle",
    "bundle_import",
    "noise",
    "until",
    "verify",
    "search",
    "slow",
)


def pytest_configure(config):
    config.option.loadscopereorder = False  # which would begin with the files that have the most tests


@pytest.hookimpl(tryfirst=True)  # before -m looks at them
def pytest_collection_modifyitems(items):
    order = [f"test_{name}" for name in LONGEST]
    assert set(order) <= {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    items.sort(key=lambda item: order.index(item.path.stem) if item.path.stem in order else len(order))
    for item in items:
        name = item.module.__name__.rpartition(".")[2]
        if name in SANITIZED:
            item.add_marker("sanitized")
        if name in ALONE:
            item.add_marker("alone")
        if name in HOST:
            item.add_marker("host")


@pytest.fixture(scope="session")
def daemon():
    """One for all tests: what they leave in its list, the others must bear, as in life. Ends cleanly or fails."""
    d = Daemon()
    yield d
    try:
        assert d.stop() == 0, d.log_tail()
        text = d.log_text()
        assert "Sanitizer" not in text and "runtime error" not in text, text
    finally:
        d.remove()


@pytest.fixture
def own_daemon():
    """One for a single test, which may stop or choke it."""
    d = Daemon()
    yield d
    d.remove()


@pytest.fixture
def unix(daemon):
    return daemon.unix


@pytest.fixture
def tcp(daemon):
    return daemon.tcp


@pytest.fixture
def stranger(daemon):
    """Over TCP, without the token."""
    return daemon.stranger


@pytest.fixture(params=["unix", "tcp"])
def client(request, daemon):
    return getattr(daemon, request.param)


@pytest.fixture(scope="session")
def done(daemon):
    """A finished experiment with two points, pingpong among them."""
    spec = SHORT | {"name": "two workloads", "workload": ["stream", "pingpong"], "repetitions": 2, "seed": 7}
    experiment = daemon.unix.post(spec)
    experiment = daemon.unix.wait_final(experiment["id"])
    assert experiment["state"] == "done", (experiment, daemon.log_tail())
    return experiment


@pytest.fixture
def long_run(daemon):
    """An experiment that runs until somebody stops it."""
    experiment = daemon.unix.post(ENDLESS | {"name": "long"})
    daemon.unix.wait_state(experiment["id"], ("running",))
    yield experiment
    daemon.unix.request("POST", f"/experiments/{experiment['id']}/cancel")
    daemon.unix.wait_final(experiment["id"])
