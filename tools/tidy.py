#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs clang-tidy over every C file of a build directory; a file is checked again when one of its inputs has changed.
clang's own warnings are among its findings, whichever compiler the directory is for: it passes over gcc's own options.

The inputs are known to ninja: the file, every header of this project that it includes, its command line, .clang-tidy.
"""

import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path


def ninja_deps(build):
    """Object file -> the files it was compiled from, as the compiler reported them."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True).stdout
    deps, target = {}, None
    for line in text.splitlines():
        if line and not line.startswith((" ", "ninja:")):
            target = line.partition(":")[0]
            deps[target] = []
        elif line.startswith("    "):
            deps[target].append(line.strip())
    return deps


def fingerprint(root, build, entry, deps, common):
    """A hash of everything that decides clang-tidy's findings (the system's headers change with its version)."""
    digest = hashlib.sha256(common)
    digest.update(entry["command"].encode())
    for name in sorted({entry["file"], *deps.get(entry["output"], [])}):
        path = (build / name).resolve()
        if path.is_relative_to(root):
            digest.update(path.read_bytes())
    return digest.hexdigest()


# gcc's options are passed over. The analyzer follows a function's paths to a tenth of its usual depth, and into calls
# of the least functions alone: so it comes to the end of nearly every function's paths, and in half the time. With
# calls of greater ones it breaks off in a quarter of the functions.
ARGUMENTS = (
    "-Wno-unknown-warning-option",
    *("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=20000,max-inlinable-size=4"),
)


def tidy(build, source):
    command = ["clang-tidy", "--quiet", "-p", build, *(f"--extra-arg={word}" for word in ARGUMENTS), source]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def main(build, stamps):
    root, build, stamps = Path(__file__).resolve().parent.parent, Path(build).resolve(), Path(stamps)
    stamps.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True).stdout
    common = (
        version
        + repr(ARGUMENTS).encode()
        + b"".join(path.read_bytes() for path in (root / ".clang-tidy", root / "tests/.clang-tidy"))
    )
    deps = ninja_deps(build)
    todo = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = (build / entry["file"]).resolve()
        if source.is_relative_to(build):
            continue  # made by the build
        stamp = stamps / fingerprint(root, build, entry, deps, common)
        if not stamp.exists():
            todo[source] = stamp
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (source, stamp), (clean, output) in zip(
            todo.items(), pool.map(lambda source: tidy(build, source), todo), strict=True
        ):
            if clean:
                stamp.touch()
            else:
                bad += 1
                print(f"{source.relative_to(root)}:\n{output}")
    print(f"clang-tidy: {len(todo)} files checked, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
