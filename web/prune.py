# SPDX-License-Identifier: MIT
"""Runs at the installation: removes the assets of an earlier one, whose names have another hash.

prune.py INSTALLED BUILT: INSTALLED is below the prefix, as Meson's environment names it.
"""

import os
import sys
from pathlib import Path

installed = Path(os.environ["MESON_INSTALL_DESTDIR_PREFIX"], sys.argv[1])
built = Path(sys.argv[2])
for file in installed.iterdir():
    if file.is_file() and not (built / file.name).exists():
        file.unlink()
