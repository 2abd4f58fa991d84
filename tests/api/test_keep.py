# SPDX-License-Identifier: MIT
"""keep_until_exported: what an exporter has not acknowledged is not deleted; and the acknowledgement itself."""

import re

import pytest
from conftest import ENDLESS, SHORT, Daemon

POINTS = SHORT | {"message_size": [64, 4096]}


@pytest.fixture(scope="module")
def keeper():
    """A daemon with the setting."""
    d = Daemon("--keep-until-exported=true")
    yield d
    d.remove()


def health(client):
    return client.get("/health")


def acknowledge(client, change, store=None):
    answer = client.request("PUT", "/exported", {"store": store or health(client)["store"], "change": change})
    assert answer.status == 200, answer
    return answer.json["change"]


def newest(client):
    """The newest change of the store, which the refusal of a later one names."""
    problem = client.refused(
        "PUT", "/exported", 422, "limit-exceeded", {"store": health(client)["store"], "change": 10**15}
    )
    assert (problem["pointer"], problem["limit"]["name"], problem["value"]) == ("/change", "newest_change", 10**15)
    return int(problem["limit"]["value"])


def test_what_was_not_exported_is_kept(keeper):
    client = keeper.unix
    first = client.wait_final(client.post(POINTS)["id"])["id"]
    problem = client.refused("DELETE", f"/experiments/{first}", 409, "not-exported")
    assert "nothing of this store was exported" in problem["detail"] and f"experiment {first} " in problem["detail"]
    assert "ipclab-export" in problem["detail"] and "keep_until_exported" in problem["detail"]
    # the experiment was stored last, at its end, so its newest change is the store's
    last = newest(client)
    assert acknowledge(client, last - 1) == last - 1
    problem = client.refused("DELETE", f"/experiments/{first}", 409, "not-exported")
    assert f"its newest change is {last}, and the store was exported up to {last - 1}" in problem["detail"]
    assert acknowledge(client, last) == last
    # more of it: it has changed, and is kept again
    assert client.request("POST", f"/experiments/{first}/extend", {"repetitions": 1}).status == 200
    client.wait_final(first)
    client.refused("DELETE", f"/experiments/{first}", 409, "not-exported")
    acknowledge(client, newest(client))
    assert client.request("DELETE", f"/experiments/{first}").status == 204
    client.refused("GET", f"/experiments/{first}", 404, "not-found")


def test_nearer_reasons_come_first(keeper):
    client = keeper.unix
    running = client.post(ENDLESS)["id"]
    client.wait_state(running, ("running",))
    client.refused("DELETE", f"/experiments/{running}", 409, "running")
    client.request("POST", f"/experiments/{running}/cancel")
    client.wait_final(running)
    client.refused("DELETE", f"/experiments/{running}", 409, "not-exported")
    done = client.wait_final(client.post(POINTS)["id"])["id"]
    assert client.request("PUT", "/baselines/kept", {"experiment": done}).status == 200
    client.refused("DELETE", f"/experiments/{done}", 409, "pinned")
    client.request("DELETE", "/baselines/kept")
    client.refused("DELETE", f"/experiments/{done}", 409, "not-exported")


def test_it_is_remembered(keeper):
    client = keeper.unix
    client.wait_final(client.post(POINTS)["id"])
    last = newest(client)
    acknowledge(client, last)
    keeper.kill()
    keeper.start()
    assert health(client)["exported_change"] == last


def test_acknowledgements_never_go_back(own_daemon):
    client = own_daemon.unix
    assert health(client)["exported_change"] is None
    client.wait_final(client.post(POINTS)["id"])
    last = newest(client)
    assert acknowledge(client, 0) == 0 and health(client)["exported_change"] == 0
    assert acknowledge(client, last) == last and acknowledge(client, last) == last
    assert acknowledge(client, 1) == last and health(client)["exported_change"] == last
    last += 1  # the acknowledgement is a change; of nothing but that one it is none, or exporters would go on for ever
    assert newest(client) == last
    assert acknowledge(client, last) == last and newest(client) == last
    # over TCP as any other write
    assert acknowledge(own_daemon.tcp, last) == last
    own_daemon.stranger.refused(
        "PUT", "/exported", 401, "token-required", {"store": health(client)["store"], "change": last}
    )


def test_without_the_setting_nothing_is_kept(unix):
    done = unix.wait_final(unix.post(POINTS)["id"])["id"]
    assert unix.request("DELETE", f"/experiments/{done}").status == 204


@pytest.mark.parametrize(
    "body, slug, pointer",
    [
        ([], "wrong-type", None),
        ({"change": 1}, "missing-field", "/store"),
        ({"store": "STORE"}, "missing-field", "/change"),
        ({"store": "STORE", "change": 1, "host": "x"}, "unknown-field", None),
        ({"store": 7, "change": 1}, "wrong-type", "/store"),
        ({"store": "A" * 36, "change": 1}, "wrong-type", "/store"),
        ({"store": "STORE", "change": -1}, "wrong-type", "/change"),
        ({"store": "STORE", "change": 1.5}, "wrong-type", "/change"),
        ({"store": "STORE", "change": "1"}, "wrong-type", "/change"),
    ],
)
def test_bad_acknowledgements(unix, body, slug, pointer):
    if isinstance(body, dict) and body.get("store") == "STORE":
        body = body | {"store": health(unix)["store"]}
    assert unix.refused("PUT", "/exported", 422, slug, body).get("pointer") == pointer
    assert health(unix)["exported_change"] is None


def test_another_stores_acknowledgement(unix):
    other = "6e1c0000-0000-4000-8000-000000000000"
    problem = unix.refused("PUT", "/exported", 409, "other-store", {"store": other, "change": 0})
    assert other in problem["detail"] and health(unix)["store"] in problem["detail"]
    assert re.fullmatch("/store", problem["pointer"])
