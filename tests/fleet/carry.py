# SPDX-License-Identifier: MIT
"""A dispatcher no better than it has to be: carry.py DIRECTORY HOST ipclab-fleet post … runs the command for the
daemon DIRECTORY/HOST at least once. It may do so twice, report a failure after it has delivered, or deliver nothing."""

import random
import subprocess
import sys
from pathlib import Path

FLEET = Path(__file__).parents[2] / "fleet"

directory, host, program, post, *arguments = sys.argv[1:]
assert (program, post) == ("ipclab-fleet", "post"), sys.argv
command = [sys.executable, FLEET / program, post, "--socket", f"{directory}/{host}/socket", *arguments]
luck = random.random()
if luck < 0.2:
    sys.exit("the network is down")
for _ in range(1 + (luck > 0.6)):
    status = subprocess.run(command).returncode
if luck > 0.9:
    sys.exit("delivered, but nobody knows")
sys.exit(status)
