# SPDX-License-Identifier: MIT
"""The exporter's acknowledgement to a real daemon that keeps what was not exported."""

import shutil

import pytest
from conftest import export
from ipclab_fleet import FleetError, daemon
from test_campaign import SPEC, Host, place  # noqa: F401 - a fixture


@pytest.fixture
def host(place):  # noqa: F811
    made = Host(place, "host0", "--keep-until-exported=true")
    yield made
    made.remove()


def exported(host):
    return daemon.request(host.socket, "GET", "/health")[2]["exported_change"]


def delete(host, experiment):
    """The status, and the refusal's text."""
    answer = host.client().request("DELETE", f"/experiments/{experiment}")
    return answer.status, answer.body.decode()


def cursor(base, store):
    return base.execute("SELECT change FROM cursors WHERE store = %s", (store,)).fetchone()[0]


def test_it_is_kept_until_it_is_exported(dsn, base, host):
    client = host.client()
    first = client.wait_final(client.post(SPEC)["id"])["id"]
    status, text = delete(host, first)
    assert status == 409 and "not-exported" in text and exported(host) is None
    export(dsn, host, "--page", 3)
    assert exported(host) == cursor(base, host.uuid) > 0
    second = client.wait_final(client.post(SPEC)["id"])["id"]
    assert delete(host, second)[0] == 409
    assert delete(host, first) == (204, "")
    export(dsn, host)
    assert delete(host, second) == (204, "")  # which is exported next
    assert base.execute("SELECT count(*) FROM experiments").fetchone() == (1,)
    export(dsn, host)
    assert base.execute("SELECT count(*) FROM experiments").fetchone() == (0,)


def test_a_daemon_that_is_away_gets_it_with_the_next_export(dsn, base, host):
    client = host.client()
    client.wait_final(client.post(SPEC)["id"])
    assert host.stop() == 0
    assert "acknowledge" not in export(dsn, host)
    host.start()
    assert exported(host) is None
    assert export(dsn, host) == "nothing new\n"
    assert exported(host) == cursor(base, host.uuid)


def test_a_fork_acknowledges_to_its_own_daemon(dsn, base, host):
    client, name = host.client(), host.uuid
    client.wait_final(client.post(SPEC)["id"])
    assert host.stop() == 0
    copy = host.directory.with_name("copy")
    shutil.copytree(host.directory, copy)
    host.start()
    client.wait_final(client.post(SPEC)["id"])
    export(dsn, host)
    assert host.stop() == 0
    shutil.rmtree(host.directory)
    copy.rename(host.directory)  # a restored backup: it is a fork of what the base has
    host.start()
    assert exported(host) is None
    assert "fork" in export(dsn, host, status=1) and exported(host) is None
    export(dsn, host, "--adopt")
    ((adopted, own),) = base.execute("SELECT store, store_uuid FROM stores WHERE adopted_from IS NOT NULL").fetchall()
    assert adopted != own == name == host.uuid
    assert exported(host) == cursor(base, adopted)


def test_refused_acknowledgements_are_errors(host):
    with pytest.raises(FleetError, match="refuses the acknowledgement: change 99 cannot have been exported"):
        daemon.acknowledge(host.socket, host.uuid, 99)
    with pytest.raises(FleetError, match="this ipclabd has the store"):
        daemon.acknowledge(host.socket, "6e1c0000-0000-4000-8000-000000000000", 0)
    assert daemon.acknowledge(host.directory / "none", host.uuid, 99) is None
