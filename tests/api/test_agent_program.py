# SPDX-License-Identifier: MIT
"""Which program ipclabd takes for its agent: it starts it with all its privileges until they are laid down."""

import os
import shutil
import subprocess

import pytest
from conftest import BUILD


def start(tmp_path, agent):
    """The output of a daemon that fails before it serves."""
    arguments = [
        f"--state-dir={tmp_path / 'state'}",
        f"--runtime-dir={tmp_path / 'run'}",
        "--listen=none",
        f"--socket={tmp_path / 'socket'}",
        f"--agent={agent}",
    ]
    if os.geteuid() == 0:
        arguments.append("--agent-user=nobody")
    done = subprocess.run(
        [BUILD / "daemon/ipclabd", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert done.returncode not in (0, -6), done.stderr
    return done.stderr


@pytest.fixture
def agent(tmp_path):
    return shutil.copy(BUILD / "agent/ipclab-agent", tmp_path / "agent")


def test_a_link_is_not_followed(tmp_path, agent):
    link = tmp_path / "link"
    link.symlink_to(agent)
    assert f"the agent {link} is a symbolic link" in start(tmp_path, link)


def test_one_that_belongs_to_somebody_else_is_refused(tmp_path, agent):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(agent, 65534, -1)
    assert f"the agent {agent} belongs to user 65534" in start(tmp_path, agent)


def test_one_that_everybody_may_change_is_refused(tmp_path, agent):
    os.chmod(agent, 0o757)
    assert f"the agent {agent} can be changed by everybody" in start(tmp_path, agent)
