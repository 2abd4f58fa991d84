# SPDX-License-Identifier: MIT
"""The tests' fixtures: the guests' root (cached in .cache/vm), the package (built once), a guest per machine shape."""

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import guest as vm
import pytest
from lab import Lab

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "vm"

seconds: dict[str, float] = {}  # what took them
remarks: list[str] = []

SHAPES = {
    "two nodes": vm.Machine([vm.Node(2, 1024), vm.Node(2, 1024)]),
    # one node without CPUs, one without memory
    "four nodes": vm.Machine(
        [vm.Node(2, 896), vm.Node(2, 512), vm.Node(0, 512), vm.Node(2, 0)],
        {(0, 2): 17, (1, 2): 28, (0, 3): 31, (1, 3): 15, (2, 3): 31},
    ),
    "one node": vm.Machine([vm.Node(4, 1024)]),
}


def build(name: str, *command: str) -> str:
    log = CACHE / f"{name}.log"
    with log.open("w") as out:
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False)
    text = log.read_text()
    assert done.returncode == 0, f"{' '.join(command)} failed, see {log}: {text[-2000:]}"
    return text


def git(*arguments: str) -> str:
    """As git_here of tools/lib.sh: root may test another user's checkout."""
    command = ["git", "--no-optional-locks", "-c", f"safe.directory={ROOT}", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the package is made from the last commit, and git knows of none: {done.stderr}"
    return done.stdout


def package_of_commit() -> Path:
    """The package of the committed tree, cached until there is another commit."""
    out, commit = CACHE / "package", CACHE / "package/commit"
    head = git("rev-parse", "--verify", "HEAD")
    changed = git("status", "--porcelain").splitlines()
    if changed:
        remarks.append(f"the package is the last commit's, without what has changed since: {', '.join(changed)}")
    made = list(out.glob("ipclab_*.deb"))
    if len(made) == 1 and commit.exists() and commit.read_text() == head:
        return made[0]
    commit.unlink(missing_ok=True)
    lines = build("package", str(ROOT / "tools/package"), str(out)).splitlines()
    commit.write_text(head)
    return Path(lines[-1])


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
    for remark in remarks:
        terminalreporter.write_line(f"warning: {remark}")
    for what, spent in seconds.items():
        terminalreporter.write_line(f"spent {spent:.0f} s: {what}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """The boot is in a guest's time, and what had to be built for the first one."""
    with timed(f"guest of {item.module.SHAPE}"):
        return (yield)


def guest_root() -> Path:
    with timed("building the guests' root"):
        build("make-root", *vm.AS_ROOT, str(ROOT / "tests/vm/make-root"), str(CACHE / "root"))
        if vm.AS_ROOT:
            build("make-root-owner", *vm.AS_ROOT, "chown", "-R", f"{os.getuid()}:{os.getgid()}", str(CACHE / "root"))
    return CACHE / "root"


def package() -> Path:
    """IPCLAB_PACKAGE names one that is there."""
    if "IPCLAB_PACKAGE" in os.environ:
        return Path(os.environ["IPCLAB_PACKAGE"])
    with timed("building the package"):
        return package_of_commit()


@pytest.fixture(scope="session")
def built() -> tuple[Path, Path]:
    """The guests' root and the package, at once: the one fetches and unpacks, the other compiles."""
    reason = vm.why_not()
    if reason:
        pytest.skip(reason)
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock, ThreadPoolExecutor() as threads:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process finds them made
        both = [threads.submit(make) for make in (guest_root, package)]
        return both[0].result(), both[1].result()


@pytest.fixture(scope="session")
def labs(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory):
    """labs(shape): that machine with the service running on it, its state on a disk of its own. One at a time for each
    process of the suite."""
    root, package = built
    up: dict[str, Lab] = {}

    def get(shape: str) -> Lab:
        if shape not in up:
            for lab in up.values():
                lab.guest.close()
            up.clear()
            disk = vm.make_disk(tmp_path_factory.mktemp("disk") / "state.img")
            up[shape] = Lab(vm.Guest(root, SHAPES[shape], {"/root/ipclab.deb": package}, disk))
        return up[shape]

    yield get
    for lab in up.values():
        lab.guest.close()


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest, labs) -> Lab:
    """The guest of the test's module, which names its SHAPE; the service is idle."""
    return labs(request.module.SHAPE)
