# SPDX-License-Identifier: MIT
import pytest
from harness import ORPHAN_SECONDS, Daemon, become_subreaper, ipc_objects, isolate_ipc, wait_for


@pytest.fixture(scope="session", autouse=True)
def subreaper():
    become_subreaper()


@pytest.fixture(scope="session", autouse=True)
def outside():
    return isolate_ipc()


@pytest.fixture
def daemon(outside):
    """A running daemon; at the end, nothing of it may be left, whatever the test did to it."""
    before = ipc_objects(outside is not None)
    d = Daemon()
    try:
        d.start()
        yield d
        if d.process.poll() is None:
            assert d.stop() == 0, d.log_tail()
        wait_for(lambda: not d.left_processes(), ORPHAN_SECONDS, f"the end of {d.left_processes()}")
        assert d.left_in_runtime() == []
        assert d.left_cgroups() == []
        assert ipc_objects(outside is not None) - before == set()
    finally:
        d.remove()
