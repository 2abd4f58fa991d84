# SPDX-License-Identifier: MIT
"""Strangers' requests: what schemathesis makes of openapi.json is sent to the real daemon, and each answer is checked
by it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ENDLESS, SHORT, Daemon

SECONDS_MAX = 900  # against hanging: it takes about a minute where nothing else runs


@pytest.fixture
def lived_in():
    """A daemon with results, a baseline, and agents that are silent: what is posted takes no CPU from the daemon."""
    d = Daemon()
    spec = SHORT | {"name": "two workloads", "workload": ["stream", "pingpong"], "repetitions": 2}
    done = d.unix.wait_final(d.unix.post(spec)["id"])
    assert done["state"] == "done", d.log_tail()
    assert d.unix.request("PUT", "/baselines/good", {"experiment": done["id"]}).status == 200
    assert d.stop() == 0, d.log_tail()
    d.command = ["--agent=/bin/cat" if str(word).startswith("--agent=") else word for word in d.command]
    d.start()
    d.unix.post(ENDLESS)
    yield d
    d.remove()


def test_what_is_described_holds_for_every_request(lived_in, tmp_path, record_property):
    """All phases and all checks, on every operation; what is set is in schemathesis.toml, with the reasons."""
    description, report = tmp_path / "openapi.json", tmp_path / "report.json"
    description.write_text(json.dumps(lived_in.unix.openapi))  # fetched, its own route would be left out
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli"),
            f"--config-file={Path(__file__).with_name('schemathesis.toml')}",
            *("run", description, f"--url={lived_in.url}", f"--header=Authorization: Bearer {lived_in.token}"),
            *("--no-color", "--report=json", f"--report-json-path={report}"),
        ],
        cwd=tmp_path,
        env=os.environ | {"SCHEMATHESIS_HOOKS": str(Path(__file__).with_name("schemathesis_hooks.py"))},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads(report.read_text())
    operations, cases = found["operations"], found["test_cases"]
    described = sum(len(item) for item in lived_in.unix.openapi["paths"].values())
    assert operations["tested"] == operations["total"] == described
    assert {phase["status"] for phase in found["phases"].values()} == {"success"}
    assert found["complete"] and not found["failures"] and not found["errors"]
    record_property(
        "note", f"schemathesis: {cases['generated']} cases of {described} operations, {cases['with_failures']} failures"
    )
    assert lived_in.stop() == 0, lived_in.log_tail()
