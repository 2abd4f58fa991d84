# SPDX-License-Identifier: MIT
"""The benches of tools/bench that are drawn from many runs, with few of them: that they run, not what they measure."""

import os
import subprocess
import sys

import pytest
from ipclabtest import BUILD, PATIENCE_SECONDS, SOURCE

BENCHES = SOURCE / "tests/bench"


def run(program, *arguments):
    done = subprocess.run(
        [sys.executable, BENCHES / program, *arguments],
        env=os.environ | {"IPCLAB_BUILD_ROOT": str(BUILD)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_bench_of_answers_runs():
    shown = run("answers.py", "--repetitions=1", "--times=1")
    assert "MiB resident" in shown and "/findings" in shown and "taken in within" in shown


@pytest.mark.parametrize("program", ("answers.py", "store.py"))
def test_a_bench_finds_what_it_imports(program):
    assert "--check" in run(program, "--help")
