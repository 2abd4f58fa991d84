# SPDX-License-Identifier: MIT
"""What the guests are made of, kept in .cache/vm: their root, and the package of the last commit. As a program it makes
both, which tools/test does beside its other parts: the tests find them made."""

import fcntl
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import guest as vm

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "vm"

remarks: list[str] = []


# No guest reads what debuggers do, and a quarter of the package's compilation is for that.
WITHOUT_DEBUGGING = {"DEB_CFLAGS_STRIP": "-g", "DEB_BUILD_OPTIONS": "noautodbgsym"}


def build(name: str, *command: str) -> str:
    log, environment = CACHE / f"{name}.log", os.environ | WITHOUT_DEBUGGING
    with log.open("w") as out:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        )
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


def guest_root() -> Path:
    build("make-root", *vm.AS_ROOT, str(ROOT / "tests/vm/make-root"), str(CACHE / "root"))
    if vm.AS_ROOT:
        build("make-root-owner", *vm.AS_ROOT, "chown", "-R", f"{os.getuid()}:{os.getgid()}", str(CACHE / "root"))
    return CACHE / "root"


def package() -> Path:
    """IPCLAB_PACKAGE names one that is there."""
    if "IPCLAB_PACKAGE" in os.environ:
        return Path(os.environ["IPCLAB_PACKAGE"])
    return package_of_commit()


def unpacked(package: Path, into: Path) -> Path:
    """The package's files as a machine has them that boots after the installation. Its users and directories are made
    at the boot."""
    into.mkdir()
    subprocess.run(["dpkg-deb", "-x", str(package), str(into)], check=True)
    # where the guest has a link from its root into usr, which a directory in the RAM disk would replace
    if (into / "lib").exists():
        shutil.copytree(into / "lib", into / "usr/lib", symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(into / "lib")
    return into


def made() -> tuple[Path, Path]:
    """The guests' root and the package, at once: the one fetches and unpacks, the other compiles."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock, ThreadPoolExecutor() as threads:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process finds them made
        both = [threads.submit(make) for make in (guest_root, package)]
        return both[0].result(), both[1].result()


if __name__ == "__main__":
    reason = vm.why_not()
    if reason:
        sys.exit(reason)
    made()
