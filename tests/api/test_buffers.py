# SPDX-License-Identifier: MIT
"""transport_options.buffer_bytes through the real daemon: every transport that has it gets a buffer of that size, as
the kernel reports and the row shows; and a size that the host does not allow is refused before anything runs."""

import pytest
from ipclabtest.transports import where

BYTES = 65536
MESSAGE = 4096
SPEC = {"warmup_seconds": 0, "messages": 500, "message_size": MESSAGE, "verify": "checksum"}
# Where one slot of a ring is a message and a line beside it, a buffer holds so many whole ones.
RINGS = where("carrier", "CARRIER_RING")


@pytest.fixture(scope="module")
def rows(daemon):
    return daemon.unix.get("/transports")["items"]


def sized(rows):
    return [row["name"] for row in rows if row["available"] and "buffer_bytes" in row["options"]]


def expected(transport):
    return BYTES // (MESSAGE + 64) * (MESSAGE + 64) if transport in RINGS else BYTES


def test_every_transport_gets_the_same(unix, rows):
    names = sized(rows)
    assert len(names) >= 10
    spec = SPEC | {"transport": names, "transport_options": {"buffer_bytes": BYTES}}
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert experiment["state"] == "done", experiment
    runs = unix.items(f"/experiments/{experiment['id']}/runs")
    assert sorted(run["point"]["transport"] for run in runs) == sorted(names)
    own = {"pipe_size": 1, "sndbuf_bytes": 2, "queue_bytes": 1}
    for run in runs:
        transport = run["point"]["transport"]
        effective = run["result"]["effective"]
        assert effective["buffer_bytes"] == expected(transport), run
        for name, times in own.items():
            assert effective.get(name, times * BYTES) == times * BYTES, (name, run)
        if transport == "tcp":
            assert effective["rcvbuf_bytes"] == 2 * BYTES
        if transport == "msgq-posix":
            assert effective["queue_messages"] * effective["queue_message_bytes"] == BYTES
    for row in unix.items(f"/experiments/{experiment['id']}/results"):
        assert row["effective"]["buffer_bytes"] == expected(row["point"]["transport"]), row


def test_without_it_each_has_its_own(unix, rows):
    names = [row["name"] for row in rows if row["available"]]
    experiment = unix.wait_final(unix.post(SPEC | {"transport": names})["id"])
    assert experiment["state"] == "done", experiment
    table = unix.items(f"/experiments/{experiment['id']}/results")
    sizes = {row["point"]["transport"]: row["effective"]["buffer_bytes"] for row in table}
    assert sorted(sizes) == sorted(names)
    assert all(size > 0 for one in sizes.values() for size in ([one] if isinstance(one, int) else one))
    assert sizes["pipe"] == sizes["fifo"] != sizes["shm-posix"]


def test_the_own_option_goes_before_it(unix):
    options = {"buffer_bytes": BYTES, "pipe_size": 16384}
    spec = SPEC | {"transport": ["pipe", "unix-stream"], "transport_options": options}
    experiment = unix.wait_final(unix.post(spec)["id"])
    table = unix.items(f"/experiments/{experiment['id']}/results")
    sizes = {row["point"]["transport"]: row["effective"]["buffer_bytes"] for row in table}
    assert sizes == {"pipe": 16384, "unix-stream": BYTES}


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        ({"transport": "pipe"}, "fs.pipe-max-size"),
        ({"transport": "unix-stream"}, "net.core.wmem_max"),
        ({"transport": "tcp"}, "net.core.wmem_max"),
        ({"transport": "msgq-posix", "message_size": 1}, "fs.mqueue.msg_max"),
    ],
)
def test_what_the_host_does_not_allow(unix, spec, limit):
    body = spec | {"transport_options": {"buffer_bytes": 2**29}}
    problem = unix.refused("POST", "/experiments", 422, "limit-exceeded", body)
    assert problem["pointer"] == "/transport_options/buffer_bytes"
    assert problem["limit"]["name"] == limit
    assert int(problem["value"]) > int(problem["limit"]["value"])


@pytest.mark.parametrize("transport", ["shm-posix", "msgq-sysv"])
def test_one_message_must_fit(unix, transport):
    body = {"transport": transport, "message_size": 2 * BYTES, "transport_options": {"buffer_bytes": BYTES}}
    problem = unix.refused("POST", "/experiments", 422, "limit-exceeded", body)
    assert problem["pointer"] == "/transport_options/buffer_bytes"
    assert problem["limit"] == {"name": "buffer_bytes", "value": BYTES}
