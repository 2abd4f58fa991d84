# SPDX-License-Identifier: MIT
"""The commands in tools/ as tests see them: Python ones as modules, the others as programs."""

import os
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2]
BUILD = Path(os.environ.get("IPCLAB_BUILD_ROOT", SOURCE / "build"))

sys.path.insert(0, str(SOURCE / "tools"))
