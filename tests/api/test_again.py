# SPDX-License-Identifier: MIT
"""More of an experiment that there is: POST /experiments/{id}/extend and /retry."""

import re

import pytest
from client import Events
from conftest import SHORT, Daemon
from ipclabtest import database

SMALL = {"transport": "pipe", "message_size": [64, 4096], "messages": 100, "warmup_seconds": 0}


def extend(client, identity, body, **headers):
    answer = client.request("POST", f"/experiments/{identity}/extend", body, headers)
    assert answer.status == 200, answer
    return answer.json


def runs_of(client, identity):
    return client.items(f"/experiments/{identity}/runs")


def test_a_done_experiment_goes_back_to_the_queue(tcp):
    spec = SMALL | {"repetitions": 2, "seed": 11}
    first = tcp.wait_final(tcp.post(spec)["id"])
    assert first["state"] == "done", first
    before = runs_of(tcp, first["id"])
    more = extend(tcp, first["id"], {"blocks": 3})
    assert more["id"] == first["id"] and more["state"] in ("queued", "running", "done")
    assert more["progress"]["runs_total"] == 10
    final = tcp.wait_final(first["id"])
    assert final["state"] == "done" and final["progress"]["runs_done"] == 10
    assert final["started_at"] == first["started_at"] and final["finished_at"] > first["finished_at"]
    runs = runs_of(tcp, first["id"])
    assert runs[:4] == before, "what had been measured stays"
    assert [run["position"] for run in runs] == list(range(10))
    assert [run["block"] for run in runs] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    # as if it had been submitted so
    whole = tcp.wait_final(tcp.post(spec | {"repetitions": 5})["id"])
    assert [r["point"] for r in runs] == [r["point"] for r in runs_of(tcp, whole["id"])]


def test_the_rows_have_the_new_runs(unix):
    identity = unix.wait_final(unix.post(SMALL)["id"])["id"]
    extend(unix, identity, {"repetitions": 6})
    unix.wait_final(identity)
    rows = unix.get(f"/experiments/{identity}/results")["items"]
    assert [(row["runs"], row["runs_planned"]) for row in rows] == [(7, 7), (7, 7)]
    assert all(row["throughput_bytes_per_second"]["ci95"] for row in rows)


def doubts_of(client, identity):
    return {item["reason"]: item for item in client.get(f"/experiments/{identity}/findings")["items"]}


def test_findings_say_what_was_added(unix):
    """Nobody knows whether it was because of what the others showed."""
    path = "/experiments/{}/findings"
    condition = "unless runs were added because of what earlier ones showed"
    spec = SMALL | {"transport": ["pipe", "fifo"]}
    identity, whole = (unix.wait_final(unix.post(spec | {"repetitions": n})["id"])["id"] for n in (4, 6))
    assert "repetitions-added" not in doubts_of(unix, identity)
    extend(unix, identity, {"blocks": 2})
    unix.wait_final(identity)
    doubt = doubts_of(unix, identity)["repetitions-added"]
    assert doubt["sentence"].startswith("2 repetitions were added to the 4 that were planned.")
    assert doubt["kind"] == "undecided" and doubt["rows"] == list(range(len(doubt["rows"])))
    assert "repetitions-added" not in doubts_of(unix, whole)
    for experiment in (identity, whole):
        text = unix.request("GET", path.format(experiment), headers={"Accept": "text/markdown"}).body.decode()
        assert (condition in text) == (experiment == identity)
        report = unix.request("GET", f"/experiments/{experiment}/report").body.decode()
        assert (condition in report) == (experiment == identity)


def test_a_shuffled_one_has_no_blocks(unix):
    spec = SMALL | {"order": "shuffled", "repetitions": 2, "seed": 5}
    identity = unix.wait_final(unix.post(spec)["id"])["id"]
    extend(unix, identity, {"repetitions": 2})
    unix.wait_final(identity)
    runs = runs_of(unix, identity)
    assert [run["repetition"] for run in runs] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert {run["block"] for run in runs} == {None}


def longest(client, operation):
    """The most CPU time, in seconds, that one such event took of the main loop."""
    text = client.request("GET", "/metrics").body.decode()
    name = re.escape(f'ipclab_main_loop_longest_cpu_seconds{{operation="{operation}"}}')
    return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])


def test_a_great_extension_goes_in_portions(own_daemon):
    """As a submission of as many runs does: no event of it holds the main loop for longer than a few of those do."""
    client = own_daemon.unix
    spec = {"transport": "pipe", "message_size": list(range(1, 513)), "duration_seconds": 60, "rate": 10}
    client.post(spec)  # ahead of it
    identity = client.post(spec | {"repetitions": 8})["id"]
    more = extend(client, identity, {"blocks": 24}, **{"Idempotency-Key": "portions"})
    assert more["progress"]["runs_total"] == 512 * 32
    runs = runs_of(client, identity)
    assert [run["position"] for run in runs] == list(range(512 * 32))
    assert [run["block"] for run in runs] == [1 + i // 512 for i in range(512 * 32)]
    assert len({(run["block"], run["point"]["message_size"]) for run in runs}) == 512 * 32
    assert longest(client, "extend or retry") < 4 * longest(client, "submit")
    again = client.request("POST", f"/experiments/{identity}/extend", {"blocks": 24}, {"Idempotency-Key": "portions"})
    assert again.headers["Idempotency-Replayed"] == "true"


@pytest.fixture
def early(unix):
    return unix.wait_final(unix.post(SMALL)["id"])


def test_it_waits_behind_those_that_wait_already(unix, early, long_run):
    """Queued again, it has no right of way before what was queued meanwhile; one that waits keeps its place."""
    waiting = unix.post(SMALL)
    total = early["progress"]["runs_total"]
    more = extend(unix, early["id"], {"blocks": 1})
    assert more["state"] == "queued" and more["finished_at"] is None
    assert more["queue_position"] > unix.get(f"/experiments/{waiting['id']}")["queue_position"]
    assert more["eta_seconds"] > 0 and more["progress"]["runs_total"] > total
    place = unix.get(f"/experiments/{waiting['id']}")["queue_position"]
    assert extend(unix, waiting["id"], {"blocks": 2})["queue_position"] == place
    unix.request("POST", f"/experiments/{long_run['id']}/cancel")
    assert unix.wait_final(waiting["id"])["progress"]["runs_done"] == 6
    assert unix.wait_final(early["id"])["state"] == "done"


def test_a_running_one_gets_more(unix, long_run):
    more = extend(unix, long_run["id"], {"blocks": 2})
    assert more["state"] == "running" and more["progress"]["runs_total"] == 3
    assert more["queue_position"] is None


def test_events_follow(unix):
    experiment = unix.wait_final(unix.post(SMALL)["id"])
    target = f"/experiments/{experiment['id']}/events"
    with Events(unix, target) as events:
        last = max(identity for identity, _, _ in events if identity)
    extend(unix, experiment["id"], {"blocks": 1})
    with Events(unix, target, last_id=last) as events:
        seen = [(kind, data) for _, kind, data in events]
    assert seen[-1][0] == "end"
    assert {data["repetition"] for kind, data in seen if kind == "run"} == {2}
    assert [data["state"] for kind, data in seen if kind == "experiment"][-1] == "done"


@pytest.mark.parametrize(
    ("body", "status", "slug", "pointer"),
    [
        (b"{", 400, "invalid-json", None),
        ([], 422, "wrong-type", None),
        ({}, 422, "missing-field", "/blocks"),
        ({"block": 1}, 422, "unknown-field", "/block"),
        ({"blocks": "2"}, 422, "wrong-type", "/blocks"),
        ({"blocks": 0}, 422, "limit-exceeded", "/blocks"),
        ({"blocks": 1001}, 422, "limit-exceeded", "/blocks"),
        ({"repetitions": -1}, 422, "limit-exceeded", "/repetitions"),
        ({"blocks": 1, "repetitions": 1}, 422, "wrong-combination", "/repetitions"),
        ({"blocks": 1000}, 422, "limit-exceeded", "/blocks"),
    ],
)
def test_bad_extensions_are_refused(unix, done, body, status, slug, pointer):
    target = f"/experiments/{done['id']}/extend"
    problem = unix.refused("POST", target, status, slug, body, {"Content-Type": "application/json"})
    assert problem.get("pointer") == pointer
    assert unix.get(f"/experiments/{done['id']}")["progress"] == done["progress"]


def test_the_limits_are_named(unix, long_run):
    problem = unix.refused("POST", f"/experiments/{long_run['id']}/extend", 422, "limit-exceeded", {"blocks": 1000})
    assert problem["limit"] == {"name": "repetitions", "value": 1000} and problem["value"] == 1001
    many = unix.post(SMALL | {"message_size": list(range(1, 1001))})  # behind the long one
    problem = unix.refused("POST", f"/experiments/{many['id']}/extend", 422, "limit-exceeded", {"repetitions": 16})
    assert problem["limit"] == {"name": "runs", "value": 16384} and problem["value"] == 17000
    unix.request("POST", f"/experiments/{many['id']}/cancel")
    unix.refused("POST", f"/experiments/{many['id']}/extend", 409, "not-extensible", {"blocks": 1})


def test_what_is_refused_reads_no_points(own_daemon):
    """Many points take long to read: state and limits are checked first."""
    unix = own_daemon.unix
    spec = SMALL | {"points": "twice", "message_size": 64}
    done, cancelled = unix.wait_final(unix.post(spec)["id"]), unix.post(spec | {"messages": 10**12})
    unix.request("POST", f"/experiments/{cancelled['id']}/cancel")
    unix.wait_final(cancelled["id"])
    with database.live(own_daemon.base / "state/ipclab.db") as db:
        db.execute("""UPDATE points SET point = '{"workload": "song"}'""")
    unix.refused("POST", f"/experiments/{cancelled['id']}/extend", 409, "not-extensible", {"blocks": 1})
    unix.refused("POST", f"/experiments/{done['id']}/extend", 422, "limit-exceeded", {"blocks": 1000})
    unix.refused("POST", f"/experiments/{done['id']}/extend", 500, "damaged", {"blocks": 1})
    assert unix.request("PUT", "/baselines/kept", {"experiment": done["id"]}).status in (200, 201, 204)
    unix.refused("POST", f"/experiments/{done['id']}/extend", 409, "pinned", {"blocks": 1})


def test_runs_of_another_build_say_so(own_daemon):
    """An experiment may be extended after ipclab was built anew. It is compared, with reduced confidence."""
    unix = own_daemon.unix
    done = unix.wait_final(unix.post(SMALL | {"repetitions": 4})["id"])
    path = f"/experiments/{done['id']}"
    with database.live(own_daemon.base / "state/ipclab.db") as db:
        other = "UPDATE runs SET environment = json_set(environment, '$.build.agent_sha256', ?) WHERE experiment_id = ?"
        db.execute(other, ("0" * 64, done["id"]))
    assert unix.request("POST", f"{path}/extend", {"blocks": 1}).status == 200
    unix.wait_final(done["id"])
    flagged = ["environment-differs:build" in run["flags"] for run in unix.items(f"{path}/runs")]
    assert sorted(flagged) == [False] * 8 + [True] * 2
    by_size = unix.get(f"/compare?experiment={done['id']}&axis=message_size&baseline=64&candidate=4096")
    of_build = [d for d in by_size["environment"]["differences"] if d["key"].startswith("build.")]
    assert [(one["key"], one["baseline"]) for one in of_build] == [("build.agent_sha256", "0" * 64)]
    assert by_size["environment"]["alike"] and not by_size["environment"]["forced"]
    doubts = {item["reason"] for item in unix.get(f"{path}/findings")["items"]}
    assert "environment-changed" in doubts


@pytest.mark.parametrize("what", ["extend", "retry"])
def test_only_existing_runs_and_authorized_clients(unix, stranger, done, what):
    body = {"blocks": 1} if what == "extend" else None
    unix.refused("POST", f"/experiments/999999999/{what}", 404, "not-found", body)
    stranger.refused("POST", f"/experiments/{done['id']}/{what}", 401, "token-required", body)


def test_the_same_key_extends_once(client):
    identity = client.wait_final(client.post(SMALL)["id"])["id"]
    key = {"Idempotency-Key": f"extend-{client.host}"}
    target = f"/experiments/{identity}/extend"
    first = client.request("POST", target, {"blocks": 2}, key)
    again = client.request("POST", target, {"blocks": 2}, key)
    assert first.status == again.status == 200
    assert first.headers["Idempotency-Replayed"] is None and again.headers["Idempotency-Replayed"] == "true"
    assert again.json["progress"]["runs_total"] == 6
    client.refused("POST", target, 422, "idempotency-key-reused", {"blocks": 3}, key)
    client.refused("POST", "/experiments", 422, "idempotency-key-reused", SHORT, key)
    client.refused("POST", target, 400, "invalid-idempotency-key", {"blocks": 1}, {"Idempotency-Key": "a b"})
    assert client.wait_final(identity)["progress"]["runs_done"] == 6


def test_the_key_of_a_submission_is_taken(unix):
    key = {"Idempotency-Key": "submitted-and-extended"}
    identity = unix.request("POST", "/experiments", SMALL, key).json["id"]
    unix.wait_final(identity)
    unix.refused("POST", f"/experiments/{identity}/extend", 422, "idempotency-key-reused", {"blocks": 1}, key)


def test_what_was_cancelled_runs_when_it_is_retried(unix, long_run):
    identity = unix.post(SMALL | {"repetitions": 2})["id"]
    unix.request("POST", f"/experiments/{identity}/cancel")
    cancelled = unix.get(f"/experiments/{identity}")
    assert cancelled["state"] == "cancelled" and cancelled["progress"]["runs_cancelled"] == 4
    answer = unix.request("POST", f"/experiments/{identity}/retry", None, {"Idempotency-Key": "retry-once"})
    assert answer.status == 200
    assert answer.json["state"] == "queued" and answer.json["finished_at"] is None
    assert answer.json["progress"] == {"runs_total": 4, "runs_done": 0, "runs_failed": 0, "runs_cancelled": 0}
    unix.request("POST", f"/experiments/{long_run['id']}/cancel")
    final = unix.wait_final(identity)
    assert final["state"] == "done" and final["progress"]["runs_done"] == 4
    again = unix.request("POST", f"/experiments/{identity}/retry", None, {"Idempotency-Key": "retry-once"})
    assert again.status == 200 and again.headers["Idempotency-Replayed"] == "true"
    unix.refused("POST", f"/experiments/{identity}/retry", 409, "nothing-to-retry")


def test_what_is_being_cancelled_is_not_retried_yet(unix, long_run):
    unix.refused("POST", f"/experiments/{long_run['id']}/retry", 409, "nothing-to-retry")
    unix.request("POST", f"/experiments/{long_run['id']}/cancel")
    unix.wait_final(long_run["id"])
    (run,) = runs_of(unix, long_run["id"])
    assert unix.request("POST", f"/experiments/{long_run['id']}/retry").status == 200
    unix.wait_state(long_run["id"], ("running",))
    (again,) = runs_of(unix, long_run["id"])
    assert (again["id"], again["attempt"]) == (run["id"], run["attempt"] + 1)


def test_one_of_which_a_run_failed_gets_more():
    """What failed stays failed, and so does the experiment in the end; what could be measured has more runs."""
    d = Daemon("--run-timeout=2")
    try:
        spec = SMALL | {"message_size": [64, 8 << 20], "messages": 100_000}
        failed = d.unix.wait_final(d.unix.post(spec)["id"])
        assert failed["state"] == "failed" and failed["progress"]["runs_done"] == 1, failed
        before = runs_of(d.unix, failed["id"])
        more = extend(d.unix, failed["id"], {"blocks": 1})
        assert more["state"] in ("queued", "running") and more["error"] is None and more["finished_at"] is None
        assert more["progress"] == failed["progress"] | {"runs_total": 4}
        final = d.unix.wait_final(failed["id"])
        runs = runs_of(d.unix, failed["id"])
        assert runs[:2] == before, "what had failed is not tried again"
        assert [run["block"] for run in runs] == [1, 1, 2, 2] and [run["attempt"] for run in runs] == [1] * 4
        assert (final["state"], final["error"]) == ("failed", failed["error"])
        assert final["progress"] == {"runs_total": 4, "runs_done": 2, "runs_failed": 2, "runs_cancelled": 0}
        rows = d.unix.get(f"/experiments/{failed['id']}/results")["items"]
        assert [(row["runs"], row["runs_failed"], row["runs_planned"]) for row in rows] == [(2, 0, 2), (0, 2, 2)]
    finally:
        d.remove()


def test_what_failed_runs_again_and_its_attempt_counts():
    """More messages than run_timeout has time for."""
    d = Daemon("--run-timeout=2")
    try:
        spec = {"transport": "pipe", "messages": 10**12, "warmup_seconds": 0}
        failed = d.unix.wait_final(d.unix.post(spec)["id"])
        assert failed["state"] == "failed" and failed["error"], failed
        target = f"/experiments/{failed['id']}"
        assert d.unix.request("POST", f"{target}/retry", {}).json["error"] is None
        final = d.unix.wait_final(failed["id"])
        (run,) = runs_of(d.unix, failed["id"])
        assert (final["state"], run["state"], run["attempt"]) == ("failed", "failed", 2)
        assert final["progress"] == failed["progress"]
        d.unix.refused("POST", f"{target}/retry", 422, "unknown-field", {"force": True})
    finally:
        d.remove()
