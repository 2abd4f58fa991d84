# SPDX-License-Identifier: MIT
"""Which build a run was measured by."""

import hashlib
import subprocess

from conftest import BUILD, SHORT, SOURCE


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_run_names_its_build(unix):
    experiment = unix.wait_final(unix.post(SHORT)["id"])
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    build = run["environment"]["build"]
    assert build["daemon_sha256"] == sha256(BUILD / "daemon/ipclabd")
    assert build["agent_sha256"] == sha256(BUILD / "agent/ipclab-agent")
    described = subprocess.run(
        ["git", "-C", SOURCE, "--git-dir=.git", "describe", "--always", "--abbrev=12"],
        capture_output=True,
        text=True,
        check=False,
    )
    if described.returncode == 0 and build["commit"]:  # it may have been built at an earlier commit
        assert set(build["commit"].removesuffix("-dirty").split("-")[-1].removeprefix("g")) <= set("0123456789abcdef")
    else:
        assert build["commit"] or build["commit_reason"]


def test_a_run_can_require_what_its_environment_has(unix):
    """The settings that GET /environment shows and the build that the run before had: met by the next run."""
    first = unix.wait_final(unix.post(SHORT)["id"])
    (run,) = unix.items(f"/experiments/{first['id']}/runs")
    environment = run["environment"]["after"]
    named = ["kernel_release", "boot_id", "swappiness", "tcp_congestion_control", "cpufreq_governor", "cpu_model"]
    require = {name: environment[name] for name in named if environment[name] is not None}
    build = run["environment"]["build"]
    require["build"] = {name: build[name] for name in ("version", "daemon_sha256", "agent_sha256")}
    require["mitigations"] = environment["mitigations"] or {}
    assert len(require) >= 5
    experiment = unix.wait_final(unix.post(SHORT | {"require": require})["id"])
    assert experiment["state"] == "done", experiment["error"]
    assert experiment["effective_spec"]["require"] == require


def test_a_run_whose_requirement_does_not_hold_fails_and_names_it(unix):
    cases = {
        "build.agent_sha256 is required to be " + 64 * "0": {"build": {"agent_sha256": 64 * "0"}},
        "kernel_release is required to be 2.4.0, but it is ": {"kernel_release": "2.4.0"},
        "swappiness is required to be 987654, but it is ": {"swappiness": 987654},
        "mitigations.no_such_thing is required to be x, but it is not known": {"mitigations": {"no_such_thing": "x"}},
    }
    for error, require in cases.items():
        experiment = unix.wait_final(unix.post(SHORT | {"require": require})["id"])
        assert experiment["state"] == "failed"
        assert error in experiment["error"], experiment["error"]
