# SPDX-License-Identifier: MIT
"""A disk of its own for a test: an ext4 file system in a file. Wants root."""

import contextlib
import subprocess


@contextlib.contextmanager
def ext4(directory, *options):
    """Yields where it is mounted, below the directory, or None where this host has no ext4 for a file. options: of
    mkfs.ext4."""
    image, disk = directory / "image", directory / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(96 << 20)
    make = ["mkfs.ext4", "-q", "-F", *options, image]
    mount = ["mount", "-o", "loop", image, disk]
    try:
        mounted = all(subprocess.run(command, capture_output=True).returncode == 0 for command in (make, mount))
    except FileNotFoundError:  # there is no such command
        mounted = False
    yield disk if mounted else None
    if mounted:
        subprocess.run(["umount", "--lazy", disk], check=True)
