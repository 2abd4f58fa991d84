# SPDX-License-Identifier: MIT
"""The order of an experiment's runs: blocks by default, of which each has every point once."""

import pytest
from conftest import SHORT

SIZES = [1, 2, 4, 8, 16, 32, 64, 128]
SPEC = SHORT | {"message_size": SIZES, "messages": 10, "repetitions": 4, "seed": 4711}


def runs_of(client, spec):
    """As they stand in the queue, whether they have run or not."""
    experiment = client.post(spec)
    runs = client.items(f"/experiments/{experiment['id']}/runs")
    client.request("POST", f"/experiments/{experiment['id']}/cancel")
    client.wait_final(experiment["id"])
    return experiment, runs


@pytest.mark.parametrize("order", [None, "blocks", "shuffled"])
def test_each_repetition_has_each_point_once(unix, order):
    experiment, runs = runs_of(unix, SPEC | ({"order": order} if order else {}))
    assert experiment["effective_spec"]["order"] == (order or "blocks")
    assert [run["position"] for run in runs] == list(range(32))
    orders = []
    for number in range(1, 5):
        block = runs[8 * (number - 1) : 8 * number]
        assert {run["repetition"] for run in block} == {number}
        assert {run["block"] for run in block} == {None if order == "shuffled" else number}
        orders.append([run["point"]["message_size"] for run in block])
        assert sorted(orders[-1]) == SIZES
    assert len({tuple(one) for one in orders}) == 4, "each has an order of its own"


def test_the_seed_gives_the_order(unix):
    first, again, other = (
        [run["point"]["message_size"] for run in runs_of(unix, SPEC | {"seed": seed})[1]] for seed in (4711, 4711, 42)
    )
    assert first == again != other


def test_a_run_has_its_block_wherever_it_is_shown(unix):
    experiment = unix.wait_final(unix.post(SPEC | {"message_size": 64})["id"])
    assert experiment["state"] == "done", experiment
    runs = unix.items(f"/experiments/{experiment['id']}/runs")
    assert [run["block"] for run in runs] == [1, 2, 3, 4]
    assert [unix.get(f"/runs/{run['id']}")["block"] for run in runs] == [1, 2, 3, 4]


def orders_of(runs, number):
    """Each block's sizes, twice each; and whether the instances of a size are neighbours in it, and which is first."""
    blocks = [runs[at : at + number] for at in range(0, len(runs), number)]
    for block in blocks:
        assert len({run["block"] for run in block}) == 1
        for one, other in zip(block[::2], block[1::2], strict=True):
            assert one["point"]["message_size"] == other["point"]["message_size"], block
    return {
        tuple(run["point"]["instance"] for run in block if run["point"]["message_size"] == SIZES[0]) for block in blocks
    }


def test_what_is_compared_follows_each_other(unix):
    """The two halves of an A/A pair are neighbours in each block, and either may be the first; in an extension, too."""
    experiment = unix.post(SPEC | {"points": "twice", "message_size": SIZES[:3], "repetitions": 12, "messages": 2})
    try:
        assert unix.request("POST", f"/experiments/{experiment['id']}/extend", {"blocks": 12}).status == 200
        runs = unix.items(f"/experiments/{experiment['id']}/runs")
    finally:
        unix.request("POST", f"/experiments/{experiment['id']}/cancel")
        unix.wait_final(experiment["id"])
    assert len(runs) == 144
    assert orders_of(runs[:72], 6) == orders_of(runs[72:], 6) == {(1, 2), (2, 1)}


def test_pairs_of_until_follow_each_other(unix):
    spec = SPEC | {
        "transport": ["pipe", "fifo"],
        "message_size": SIZES[:2],
        "until": {"relative_ci": 0.001, "max_repetitions": 8, "compare": {"axis": "transport"}},
    }
    spec.pop("repetitions")
    experiment = unix.wait_final(unix.post(spec)["id"])
    assert experiment["state"] == "done", experiment
    runs = unix.items(f"/experiments/{experiment['id']}/runs")
    assert len(runs) > 4 * 6  # blocks that were added after a look
    for one, other in zip(runs[::2], runs[1::2], strict=True):
        assert one["point"]["message_size"] == other["point"]["message_size"]
        assert {one["point"]["transport"], other["point"]["transport"]} == {"pipe", "fifo"}
