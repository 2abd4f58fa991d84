# SPDX-License-Identifier: MIT
"""The tests' fixtures: a guest per machine shape, and one for each module that names its own."""

import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import guest as vm
import prepare
import pytest
from lab import Lab
from prepare import remarks

seconds: dict[str, float] = {}  # what took them

SHAPES = {
    "two nodes": vm.Machine([vm.Node(2, 1024), vm.Node(2, 1024)]),
    # one node without CPUs, one without memory
    "four nodes": vm.Machine(
        [vm.Node(2, 896), vm.Node(2, 512), vm.Node(0, 512), vm.Node(2, 0)],
        {(0, 2): 17, (1, 2): 28, (0, 3): 31, (1, 3): 15, (2, 3): 31},
    ),
    "one node": vm.Machine([vm.Node(3, 1024)]),
}
# Where dpkg installs the package, and at last removes it. The other machines boot with what is in it: an installation
# takes an emulated one as long as the boot.
INSTALLING = "one node"


def guest_of(module: ModuleType) -> str:
    """Modules of one shape share a guest, but for one that names a guest of its own."""
    return getattr(module, "GUEST", module.SHAPE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """Where guests run side by side, all tests of one are for one process."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGuest(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return guest_of(importlib.import_module(Path(nodeid.partition("::")[0]).stem))

    return ByGuest(config, log)


@contextmanager
def timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        seconds[what] = seconds.get(what, 0) + time.monotonic() - began


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where the modules run side by side, each process reports to the one that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["spent"] = {"seconds": seconds, "remarks": remarks}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    spent = getattr(node, "workeroutput", {}).get("spent", {"seconds": {}, "remarks": []})
    remarks.extend(spent["remarks"])
    for what, took in spent["seconds"].items():
        seconds[what] = seconds.get(what, 0) + took


def pytest_terminal_summary(terminalreporter) -> None:
    for remark in dict.fromkeys(remarks):
        terminalreporter.write_line(f"warning: {remark}")
    for what, spent in seconds.items():
        terminalreporter.write_line(f"spent {spent:.0f} s: {what}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """The boot is in a guest's time, and what had to be built for the first one."""
    with timed(f"guest of {guest_of(item.module)}"):
        return (yield)


@pytest.fixture(scope="session")
def built() -> tuple[Path, Path]:
    reason = vm.why_not()
    if reason:
        pytest.skip(reason)
    with timed("making the guests' root and the package, or waiting for them"):
        return prepare.made()


@pytest.fixture(scope="session")
def labs(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory):
    """labs(module): its guest with the service running on it, its state on a disk of its own. One at a time for each
    process of the suite."""
    root, package = built
    up: dict[str, Lab] = {}

    def get(module: ModuleType) -> Lab:
        name = guest_of(module)
        if name not in up:
            for lab in up.values():
                lab.guest.close()
            up.clear()
            directory = tmp_path_factory.mktemp("guest")
            disk = vm.make_disk(directory / "state.img")
            installs = name == INSTALLING
            given = {"/root/ipclab.deb": package} if installs else {"/": prepare.unpacked(package, directory / "files")}
            up[name] = Lab(vm.Guest(root, SHAPES[module.SHAPE], given, disk), installs)
        return up[name]

    yield get
    for lab in up.values():
        lab.guest.close()


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest, labs) -> Lab:
    """The guest of the test's module, which names its SHAPE; the service is idle."""
    return labs(request.module)
