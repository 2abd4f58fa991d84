# SPDX-License-Identifier: MIT
"""What the suites and tools/ share: the real daemon in directories of its own, and a client that hides nothing.

The unix connection and the reading of event streams are the command line's (cli/ipclab_cli/http.py): there is one of
each. A suite's conftest.py and modules add what only that suite looks at.
"""

import os
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("IPCLAB_BUILD_ROOT", SOURCE / "build"))
FINAL = ("done", "failed", "cancelled")
# For what must come, on a machine that may stand still for a while. What comes sooner is not waited for.
PATIENCE_SECONDS = 180

if str(SOURCE / "cli") not in sys.path:  # for programs that are not started by pytest
    sys.path.append(str(SOURCE / "cli"))
