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
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tests"))
from ipclabtest import PATIENCE_SECONDS  # noqa: E402
from ipclabtest.client import Client  # noqa: E402
from ipclabtest.daemon import Daemon  # noqa: E402

CLI = "usr/share/ipclab/cli"
PROGRAMS = {
    "command": f"{CLI}/ipclab",
    "daemon": "usr/sbin/ipclabd",
    "agent": "usr/libexec/ipclab/ipclab-agent",
    "tune": "usr/libexec/ipclab/ipclab-tune",
}
WEB = "usr/share/ipclab/web"
FLEET = "usr/share/ipclab-fleet"
# The links in bin to programs in share.
LINKS = {"usr/bin/ipclab": PROGRAMS["command"]} | {
    f"usr/bin/{name}": f"{FLEET}/{name}" for name in ("ipclab-export", "ipclab-fleet")
}
FILES = {
    "lib/systemd/system/ipclab-export.service",
    "lib/systemd/system/ipclab-export.timer",
    "lib/systemd/system/ipclab-tune.socket",
    "lib/systemd/system/ipclab-tune@.service",
    "lib/systemd/system/ipclabd.service",
    "lib/systemd/system/ipclabd.socket",
    "usr/lib/sysusers.d/ipclab.conf",
    "usr/lib/tmpfiles.d/ipclab.conf",
    "usr/share/doc/ipclab/README.md",
    *(f"usr/share/doc/ipclab/docs/{path.name}" for path in (SOURCE / "docs").iterdir()),
    *(f"{CLI}/ipclab_cli/{path.name}" for path in (SOURCE / "cli/ipclab_cli").glob("*.py")),
    "usr/share/bash-completion/completions/ipclab",
    "usr/share/man/man1/ipclab.1",
    "usr/share/man/man5/ipclabd.conf.5",
    "usr/share/man/man8/ipclab-agent.8",
    "usr/share/man/man8/ipclab-fleet.8",
    "usr/share/man/man8/ipclabd.8",
    "usr/share/zsh/vendor-completions/_ipclab",
    *PROGRAMS.values(),
    *LINKS,
    *LINKS.values(),
    *(f"{FLEET}/{path.relative_to(SOURCE / 'fleet')}" for path in (SOURCE / "fleet/ipclab_fleet").glob("*.*")),
    *(f"{FLEET}/{path.relative_to(SOURCE / 'fleet')}" for path in (SOURCE / "fleet/migrations").iterdir()),
    f"{FLEET}/ipclab_fleet/palette.css",
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
        executable = name in {*PROGRAMS.values(), *LINKS, *LINKS.values()}
        assert mode == (0o755 if executable else 0o644), f"{name} has mode {mode:o}"
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
    """The installed daemon, with an empty configuration: the settings in /etc belong to another installation."""
    d = Daemon(program=tree / PROGRAMS["daemon"], agent=tree / PROGRAMS["agent"], web=tree / WEB)
    config = d.base / "config"
    config.touch()
    d.command.append(f"--config={config}")
    try:
        d.start()
        yield d
        status = d.stop()
        assert status == 0, f"ipclabd ended with {status}: {d.log_tail()}"
    finally:
        d.remove()


def check_daemon(tree):
    with daemon(tree) as d:
        client = Client(port=d.port, token=d.token)
        presets = {preset["name"] for preset in client.get("/presets")["items"]}
        expected = {path.stem for path in (SOURCE / "schema/presets").glob("*.json")}
        assert presets == expected, f"presets: {sorted(presets ^ expected)}"
        for path in (path for path in (tree / WEB).rglob("*.*") if path.suffix != ".gz"):
            name = path.relative_to(tree / WEB)
            if str(name) == "report.html":
                continue  # what reports are made of; it is served with an experiment's figures in it alone
            answer = client.request("GET", "/" if str(name) == "index.html" else f"/{name}")
            assert answer.body == path.read_bytes(), f"{name} is not served: {answer}"
        check_command(tree, d)


def check_command(tree, d):
    """The installed command line, before the installed daemon."""
    spec = {
        "workload": ["stream", "pingpong"],
        "messages": 1000,
        "warmup_seconds": 0,
        "transport": "pipe",
        "message_size": 4096,
    }
    command = [tree / PROGRAMS["command"], "--socket", d.socket, "run", json.dumps(spec), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["state"] == "done", done.stdout


def main(tree):
    tree = Path(tree).resolve()
    for check in (check_files, check_units, check_programs, check_daemon):
        check(tree)


if __name__ == "__main__":
    main(*sys.argv[1:])
