# SPDX-License-Identifier: MIT
"""Points that stand twice: each is measured as instance 1 and 2, and what the two differ by is the noise floor."""

import csv
import io
import json
import re

import pytest
from ipclabtest import BUILD
from ipclabtest.daemon import Daemon

SPEC = {
    "points": "twice",
    "transport": ["pipe", "fifo"],
    "messages": 200,
    "warmup_seconds": 0,
    "repetitions": 8,
    "seed": 13,
}


@pytest.fixture(scope="module")
def twice(daemon):
    experiment = daemon.unix.wait_final(daemon.unix.post(SPEC)["id"])
    assert experiment["state"] == "done", experiment
    return experiment["id"]


def test_each_point_has_two_rows(daemon, twice):
    rows = daemon.unix.get(f"/experiments/{twice}/results")["items"]
    assert [(row["point"]["transport"], row["point"]["instance"], row["runs"]) for row in rows] == [
        ("pipe", 1, 8),
        ("pipe", 2, 8),
        ("fifo", 1, 8),
        ("fifo", 2, 8),
    ]
    runs = daemon.unix.get(f"/experiments/{twice}/runs?limit=100")["items"]
    for block in range(1, 9):
        of_block = [(run["point"]["transport"], run["point"]["instance"]) for run in runs if run["block"] == block]
        assert sorted(of_block) == [("fifo", 1), ("fifo", 2), ("pipe", 1), ("pipe", 2)], block


def test_the_table_has_the_instance(daemon, twice):
    answer = daemon.unix.request("GET", f"/experiments/{twice}/results", headers={"Accept": "text/csv"})
    lines = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert [line["instance"] for line in lines] == ["1", "2", "1", "2"]


def test_the_instances_are_compared_in_pairs(daemon, twice):
    answer = daemon.unix.get(f"/compare?experiment={twice}&axis=instance&baseline=1&candidate=2")
    assert len(answer["rows"]) == 2
    for row in answer["rows"]:
        throughput = row["figures"]["throughput_bytes_per_second"]
        assert throughput["paired"] and throughput["interval"], throughput
        assert row["baseline"]["point"]["transport"] == row["candidate"]["point"]["transport"]
    other = daemon.unix.get(f"/compare?experiment={twice}&axis=transport&baseline=pipe&candidate=fifo")
    assert [row["baseline"]["point"]["instance"] for row in other["rows"]] == [1, 2]


def test_findings_report_the_noise_floor(daemon, twice):
    items = daemon.unix.get(f"/experiments/{twice}/findings")["items"]
    floors = [item for item in items if item["kind"] == "noise-floor"]
    assert [item["subject"]["transport"] for item in floors] == ["pipe", "fifo"]
    for item in floors:
        assert item["axis"] == "instance" and item["runs"] == 16
        assert "equal points measured twice differ by" in item["sentence"]
        assert any(figure["name"] == "ratio" and figure["interval"] for figure in item["figures"])
    assert not [item for item in items if item["axis"] == "instance" and item["kind"] != "noise-floor"]


def test_an_instance_is_no_mechanism_of_its_own(daemon, twice):
    advice = daemon.unix.get("/advice?message_size=4096&want=throughput&placement=default")
    mechanisms = [json.dumps([item["point"], item["settings"]]) for item in advice["items"]]
    assert sorted(mechanisms) == sorted(set(mechanisms))
    assert all("instance" not in item["point"] for item in advice["items"])


def test_the_agents_of_an_instance_know_it():
    """tests/unit/slowed-agent.c, which tools/bench trials holds conclusions against, slows no other than the second."""
    daemon = Daemon(agent=BUILD / "tests/unit/slowed-agent")
    try:
        daemon.start()
        client = daemon.client()
        experiment = client.wait_final(client.post(SPEC | {"transport": "pipe", "repetitions": 2})["id"])
        assert experiment["state"] == "done", experiment
        runs = client.get(f"/experiments/{experiment['id']}/runs")["items"]
        slowed = {run["id"] for run in runs if run["point"]["instance"] == 2}
        log = daemon.log_text()
        for end in ("sender", "receiver"):
            found = re.findall(rf"run (\d+): {end} wrote: instance 2 is slowed\n", log)
            assert sorted(map(int, found)) == sorted(slowed), log
    finally:
        daemon.remove()
