#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the tree that `DESTDIR=TREE meson install` makes of a build with --prefix=/usr.

Checks its files, their modes and the paths in its units, and starts the daemon, which has to respond, to serve every
file of the dashboard and to measure with the installed agent.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 120
PROGRAMS = {
    "daemon": "usr/sbin/ipclabd",
    "agent": "usr/libexec/ipclab/ipclab-agent",
    "tune": "usr/libexec/ipclab/ipclab-tune",
}
WEB = "usr/share/ipclab/web"
FILES = {
    "lib/systemd/system/ipclab-tune.socket",
    "lib/systemd/system/ipclab-tune@.service",
    "lib/systemd/system/ipclabd.service",
    "lib/systemd/system/ipclabd.socket",
    "usr/lib/sysusers.d/ipclab.conf",
    "usr/lib/tmpfiles.d/ipclab.conf",
    "usr/share/doc/ipclab/README.md",
    *(f"usr/share/doc/ipclab/docs/{path.name}" for path in (SOURCE / "docs").iterdir()),
    "usr/share/man/man5/ipclabd.conf.5",
    "usr/share/man/man8/ipclab-agent.8",
    "usr/share/man/man8/ipclabd.8",
    *PROGRAMS.values(),
}
REFERENCE = re.compile(r"""(?:href|src|from|import)\s*=?\s*\(?["'](?:/assets/|\./)([\w.-]+)["']""")


def check_files(tree):
    """No listed file is missing and no other exists; the dashboard has every file that its files refer to."""
    found = {str(path.relative_to(tree)) for path in tree.rglob("*") if not path.is_dir()}
    rest = {name for name in found - FILES if not name.startswith(f"{WEB}/")}
    assert FILES <= found, f"not installed: {sorted(FILES - found)}"
    assert not rest, f"installed, and in no list of {Path(__file__).name}: {sorted(rest)}"
    for name in found:
        mode = (tree / name).stat().st_mode & 0o777
        assert mode == (0o755 if name in PROGRAMS.values() else 0o644), f"{name} has mode {mode:o}"
    for path in (path for path in (tree / WEB).rglob("*.[hj][ts]*") if path.suffix != ".gz"):
        for name in REFERENCE.findall(path.read_text()):
            assert (tree / WEB / "assets" / name).is_file(), f"{path.name} refers to {name}, which is not installed"


def check_units(tree):
    for unit in (tree / "lib/systemd/system").iterdir():
        text = unit.read_text()
        assert not re.search(r"@[A-Z]+@", text), f"{unit.name} has a path that was not put in"
        for program in re.findall(r"^ExecStart=(\S+)", text, re.MULTILINE):
            assert os.access(f"{tree}{program}", os.X_OK), f"{unit.name} starts {program}, which is not installed"


def check_programs(tree):
    version = re.search(r"^ +version : '(.*)',$", (SOURCE / "meson.build").read_text(), re.MULTILINE)[1]
    for name in ("daemon", "agent"):
        for option, expected in (("--version", version), ("--help", "--version")):
            done = subprocess.run([tree / PROGRAMS[name], option], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0 and expected in done.stdout, f"{name} {option}: {done}"
    compiled_in = (tree / PROGRAMS["daemon"]).read_bytes()
    for path in (PROGRAMS["agent"], WEB):
        assert f"/{path}\0".encode() in compiled_in, f"ipclabd does not look for /{path}"


@contextlib.contextmanager
def daemon(tree):
    """The installed daemon; yields its address and the token."""
    with tempfile.TemporaryDirectory(prefix="ipclab-installed-") as base:
        os.chmod(base, 0o755)  # agents of another user pass through
        config = Path(base, "config")
        config.touch()  # the settings in /etc belong to another installation
        paths = {"state-dir": "state", "runtime-dir": "run", "socket": "socket", "token-file": "token"}
        command = [
            tree / PROGRAMS["daemon"],
            "--listen=127.0.0.1:0",
            f"--config={config}",
            f"--agent={tree / PROGRAMS['agent']}",
            f"--web-dir={tree / WEB}",
        ]
        command += [f"--{option}={base}/{name}" for option, name in paths.items()]
        if os.geteuid() == 0:
            command.append("--agent-user=nobody")
        log = Path(base, "log")
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not (ready := re.search(r"ready (\{.*\})", log.read_text())):
                assert process.poll() is None and time.monotonic() < deadline, f"no daemon: {log.read_text()}"
                time.sleep(0.02)
            yield json.loads(ready[1])["url"].rstrip("/"), Path(base, "token").read_text().strip()
            process.send_signal(signal.SIGTERM)
            status = process.wait(PATIENCE_SECONDS)
            assert status == 0, f"ipclabd ended with {status}: {log.read_text()}"
        finally:
            process.kill()
            process.wait()


def check_daemon(tree):
    with daemon(tree) as (url, token):

        def fetch(path, body=None):
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            request = urllib.request.Request(url + path, body and json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read()

        presets = {preset["name"] for preset in json.loads(fetch("/presets"))["items"]}
        expected = {path.stem for path in (SOURCE / "schema/presets").glob("*.json")}
        assert presets == expected, f"presets: {sorted(presets ^ expected)}"
        for path in (path for path in (tree / WEB).rglob("*.*") if path.suffix != ".gz"):
            name = path.relative_to(tree / WEB)
            assert fetch("/" if str(name) == "index.html" else f"/{name}") == path.read_bytes(), f"{name} is not served"
        spec = {"workload": ["stream", "pingpong"], "duration_seconds": 0.1, "warmup_seconds": 0}
        experiment = json.loads(fetch("/experiments", spec | {"transport": "pipe", "message_size": 4096}))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while experiment["state"] in ("queued", "running"):
            assert time.monotonic() < deadline, experiment
            time.sleep(0.1)
            experiment = json.loads(fetch(f"/experiments/{experiment['id']}"))
        assert experiment["state"] == "done", experiment


def main(tree):
    tree = Path(tree).resolve()
    for check in (check_files, check_units, check_programs, check_daemon):
        check(tree)


if __name__ == "__main__":
    main(*sys.argv[1:])
