# SPDX-License-Identifier: MIT
"""The commands in tools/ and the command line as tests see them: Python ones as modules, the others as programs."""

import sys

import pytest
from ipclabtest import SOURCE
from ipclabtest.daemon import Daemon, started

sys.path.insert(0, str(SOURCE / "tools"))


@pytest.fixture(scope="session")
def daemon():
    with started(Daemon()) as d:
        yield d
