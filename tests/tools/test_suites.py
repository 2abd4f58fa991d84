# SPDX-License-Identifier: MIT
"""run_meson of tools/test, with a meson that does what the test wants: only a result of this very run counts."""

import json
import subprocess

import pytest
from conftest import SOURCE

# The function itself, out of the script, which would otherwise install and build.
SCRIPT = """
set -euo pipefail
root=$1 cache=$2 results=$2 reports=()
source <(sed -nE '/^(report|report_failed|run_meson)\\(\\) \\{/,/^\\}/p' "$root/tools/test")
apart() { "$@"; }
shift 2
run_meson "$@"
python3 "$root/tools/tally.py" "${reports[@]}"
"""


@pytest.fixture
def run(tmp_path):
    log = tmp_path / "build/meson-logs/testlog.json"
    log.parent.mkdir(parents=True)

    def run(tests, status, *arguments, old=()):
        log.write_text("".join(result(name) for name in old))
        fake = tmp_path / "meson"
        lines = "".join(f"printf '%s' '{result(name)}' >>'{log}'\n" for name in tests)
        fake.write_text(f"#!/bin/bash\n{lines}exit {status}\n")
        fake.chmod(0o755)
        return subprocess.run(
            ["bash", "-c", SCRIPT, "bash", SOURCE, tmp_path, "threads", tmp_path / "build", *arguments],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def result(name):
    return json.dumps({"name": name, "stdout": "", "result": "OK", "returncode": 0}) + "\n"


def test_what_was_asked_for_ran(run):
    done = run(["api", "agent"], 0, "api", "agent")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "2 passed, 0 failed, 0 skipped")


def test_a_suite_is_no_test(run):
    assert run(["api"], 0, "--suite", "unit").returncode == 0


@pytest.mark.parametrize("status", [0, 1])
def test_an_old_result_does_not_count(run, status):
    done = run([], status, "--suite", "unit", old=["api"])
    assert done.returncode == 1
    assert "no result of this suite" in done.stdout


def test_an_early_end_is_a_failure(run):
    done = run(["api"], 143, "--suite", "unit")
    assert done.returncode == 1
    assert "exit status 143" in done.stdout


def test_a_named_test_that_is_not_there_is_a_failure(run):
    done = run(["api"], 0, "api", "agents")
    assert done.returncode == 1
    assert "the test agents did not run" in done.stdout
