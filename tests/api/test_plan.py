# SPDX-License-Identifier: MIT
"""POST /experiments?dry_run=true: what it would be, and nothing stored."""

import random
import statistics

import made
import pytest
from conftest import SHORT
from ipclabtest import database
from stored import Stored

PLAN = "/experiments?dry_run=true"


def plan(client, spec, **headers):
    answer = client.request("POST", PLAN, spec, headers)
    assert answer.status == 200, answer
    return answer.json


def newest(client):
    return [e["id"] for e in client.get("/experiments?limit=1")["items"]]


def test_it_tells_points_runs_and_seconds_and_stores_nothing(client):
    before = newest(client)
    spec = {"transport": ["pipe", "fifo"], "message_size": [64, 4096], "duration_seconds": 2, "repetitions": 3}
    answer = client.request("POST", PLAN, spec, {"Idempotency-Key": f"plan-{client.host}"})
    assert answer.status == 200 and answer.headers["Location"] is None
    planned = answer.json
    assert planned["runs"] == 12
    assert [p["runs"] for p in planned["points"]] == [3] * 4
    assert [(p["point"]["transport"], p["point"]["message_size"]) for p in planned["points"]] == [
        ("pipe", 64),
        ("pipe", 4096),
        ("fifo", 64),
        ("fifo", 4096),
    ]
    assert planned["estimated_seconds"] == pytest.approx(12 * 3.5)  # warm-up, window, and what is around them
    assert sum(p["estimated_seconds"] for p in planned["points"]) == pytest.approx(planned["estimated_seconds"])
    assert planned["skipped"] == []
    assert planned["effective_spec"]["order"] == "blocks" and planned["effective_spec"]["warmup_seconds"] == 1
    assert plan(client, spec | {"duration_seconds": 0.1})["estimated_seconds"] == 19.2  # and no 19.200000000000003
    assert newest(client) == before
    # the key is as new as it was: another body may have it
    other = client.request("POST", "/experiments", SHORT, {"Idempotency-Key": f"plan-{client.host}"})
    assert other.status == 201 and other.headers["Idempotency-Replayed"] is None
    assert client.wait_final(other.json["id"])["state"] == "done"


def test_a_known_key_is_not_looked_at(unix):
    key = {"Idempotency-Key": "plan-known"}
    first = unix.request("POST", "/experiments", SHORT, key)
    assert first.status == 201
    assert plan(unix, SHORT | {"repetitions": 2}, **key)["runs"] == 2
    unix.wait_final(first.json["id"])


def test_what_is_left_out_has_its_reason(unix):
    bad = {"sender": {"cpu": 8191}}
    planned = plan(unix, SHORT | {"placement": ["default", bad], "skip_impossible": True})
    assert planned["runs"] == len(planned["points"]) == 1
    assert [s["point"]["placement"] for s in planned["skipped"]] == [bad]
    assert "8191" in planned["skipped"][0]["reason"]


@pytest.mark.parametrize(
    ("body", "status", "slug", "pointer"),
    [
        ({"transport": "pigeon"}, 422, "unknown-value", "/transport"),
        ({"message_size": 4096, "repetitions": 0}, 422, "limit-exceeded", "/repetitions"),
        (b"{", 400, "invalid-json", None),
    ],
)
def test_what_a_submission_would_be_refused_for(unix, body, status, slug, pointer):
    problem = unix.refused("POST", PLAN, status, slug, body, {"Content-Type": "application/json"})
    assert problem.get("pointer") == pointer


@pytest.mark.parametrize("key", ["", "two words", "k" * 201])
def test_a_key_is_one(unix, key):
    unix.refused("POST", PLAN, 400, "invalid-idempotency-key", SHORT, {"Idempotency-Key": key})


@pytest.mark.parametrize("value", ["1", "True", "", "yes"])
def test_dry_run_is_true_or_false(unix, value):
    before = newest(unix)
    assert '"dry_run"' in unix.refused("POST", f"/experiments?dry_run={value}", 400, "bad-parameter", SHORT)["detail"]
    assert newest(unix) == before


def test_false_submits(unix):
    answer = unix.request("POST", "/experiments?dry_run=false", SHORT)
    assert answer.status == 201
    assert unix.wait_final(answer.json["id"])["state"] == "done"


@pytest.mark.parametrize(
    ("spec", "figure"),
    [
        ({"workload": "pingpong"}, "latency_ns_p50"),
        ({"workload": "pingpong", "until": {"figure": "latency_p90"}}, "latency_ns_p90"),
        ({"transport": "shm-posix", "rate": 20000}, "latency_ns_p50"),
        ({"transport": "tcp", "direction": "both", "rate": 20000, "message_size": 8}, "cpu_ns_per_message"),
    ],
)
def test_the_figure_is_the_one_that_is_judged(daemon, unix, spec, figure):
    """A plan of an open loop never has the throughput, which was requested."""
    spec = {"message_size": 3335, "messages": 2000, "warmup_seconds": 0} | spec
    plain = {name: value for name, value in spec.items() if name != "until"}
    ran = unix.wait_final(unix.post(plain)["id"])
    assert ran["state"] == "done", ran
    made.repeat(daemon, ran["id"], 6)
    enough = plan(unix, spec)["points"][0]["enough"]
    assert enough["figure"] == figure and enough["runs"] == 6


def test_earlier_runs_show_how_long_messages_take(unix):
    """Runs of the same point count, whatever ended their window; all transports share a guess from other points."""
    whole = {"transport": "pipe", "message_size": 3331, "warmup_seconds": 0}
    spec = whole | {"messages": 20000}
    (guess,) = plan(unix, spec)["points"]
    assert guess["estimated_seconds"] == pytest.approx(0.5 + 20000 * (1000 + 3331) / 1e9)
    ran = unix.wait_final(unix.post(whole | {"bytes": 3331 * 40000})["id"])
    (run,) = unix.items(f"/experiments/{ran['id']}/runs")
    each = run["result"]["window_ns"] / run["result"]["messages"] / 1e9
    known, other = plan(unix, spec | {"transport": ["pipe", "fifo"]})["points"]
    assert known["estimated_seconds"] == pytest.approx(0.5 + 20000 * each)
    assert other["estimated_seconds"] == guess["estimated_seconds"]
    open_loop = plan(unix, spec | {"rate": 1000})  # which waits for its times
    assert open_loop["estimated_seconds"] == pytest.approx(0.5 + 20000 / 1000)
    assert plan(unix, whole | {"duration_seconds": 3})["estimated_seconds"] == pytest.approx(0.5 + 3)


def test_it_needs_the_token(stranger):
    stranger.refused("POST", PLAN, 401, "token-required", SHORT)


def test_earlier_runs_show_how_many_are_enough(unix):
    spec = {"message_size": 3333, "messages": 20000, "warmup_seconds": 0}
    (point,) = plan(unix, spec)["points"]
    assert point["enough"] is None and "6 done runs" in point["enough_reason"]
    few = unix.wait_final(unix.post(spec | {"repetitions": 5})["id"])
    assert few["state"] == "done", few
    assert plan(unix, spec)["points"][0]["enough"] is None
    ran = unix.wait_final(unix.post(spec | {"repetitions": 7, "message_size": [3333, 3334]})["id"])
    assert ran["state"] == "done", ran
    enough = plan(unix, spec | {"name": "again", "repetitions": 3})["points"][0]["enough"]
    runs = [r for r in unix.items(f"/experiments/{ran['id']}/runs") if r["point"]["message_size"] == 3333]
    values = [run["result"]["throughput_bytes_per_second"] for run in runs]
    assert enough["experiment_id"] == ran["id"] and enough["runs"] == 7
    assert enough["figure"] == "throughput_bytes_per_second"
    assert enough["variation"] == pytest.approx(statistics.stdev(values) / statistics.mean(values))
    assert (enough["difference"], enough["power"], enough["comparisons"]) == (0.05, 0.95, 1)
    # normal approximation: two sides, 5 % of false alarms, 95 % of power
    least = 2 * ((1.96 + 1.645) * enough["variation"] / 0.0488) ** 2
    if enough["repetitions"] is None:  # runs differ by more than an eighth here
        assert least * 1.3 + 6 > 200 and "more than the 200 runs of each" in enough["repetitions_reason"]
    else:
        assert least * 0.9 <= enough["repetitions"] <= min(200, least * 1.3 + 6)
    sizes = [spec.get("message_size", 4096), *range(1, 40)]
    more = plan(unix, spec | {"message_size": sizes})["points"][0]["enough"]
    # the best size is compared with 39 others, and each with the next
    assert more["comparisons"] == 78
    assert more["repetitions"] is None or more["repetitions"] > enough["repetitions"]
    both = plan(unix, spec | {"transport": ["tcp", "pipe"]})["points"][1]
    assert both["enough"]["comparisons"] == 1
    until = {"until": {"compare": {"axis": "transport"}}}  # which is looked at seven times
    watched = plan(unix, spec | {"transport": ["tcp", "pipe"]} | until)["points"][1]
    assert watched["enough"]["comparisons"] == 7
    # which instance of a point it is does not matter
    twice = plan(unix, spec | {"points": "twice"})["points"]
    assert [point["point"]["instance"] for point in twice] == [1, 2]
    assert [point["enough"]["experiment_id"] for point in twice] == [ran["id"]] * 2
    assert {point["estimated_seconds"] for point in twice} == {plan(unix, spec)["points"][0]["estimated_seconds"]}
    # runs that were measured in another way do not count
    for other in (
        {"messages": 20001},
        {"warmup_seconds": 0.1},
        {"verify": "none"},
        {"rate": 1000},
        {"message_size": 3335},
        {"transport_options": {"pipe_size": 65536}},
    ):
        assert plan(unix, spec | other)["points"][0]["enough"] is None, other


def rates_of(client, run):
    """The messages per second of both ends, by whole second."""
    seconds = {}
    for sample in client.items(f"/runs/{run}/samples"):
        if 0.9e9 <= sample["interval_ns"] <= 1.1e9:
            seconds.setdefault(sample["second"], []).append(sample["messages"] * 1e9 / sample["interval_ns"])
    whole = max(map(len, seconds.values()), default=0)
    return [sum(rates) for _, rates in sorted(seconds.items()) if len(rates) == whole]


def scatter(daemon, experiment, repetitions):
    """Copies the experiment's only run until there are `repetitions` runs. Each run gets samples of its own, of whole
    seconds, whose rates differ within the run and between runs."""
    made.repeat(daemon, experiment, repetitions)
    noise = random.Random(3)
    with database.live(daemon.base / "state/ipclab.db") as db:
        names = [name for (name,) in db.execute("SELECT name FROM pragma_table_info('samples')")]
        whole = "SELECT * FROM samples WHERE experiment_id = ? AND interval_ns > 500000000"
        samples = [dict(zip(names, row, strict=True)) for row in db.execute(whole, (experiment,)).fetchall()]
        db.execute("DELETE FROM samples WHERE experiment_id = ?", (experiment,))
        for (run,) in db.execute("SELECT id FROM runs WHERE experiment_id = ?", (experiment,)).fetchall():
            of_run = noise.gauss(1, 0.05)
            for sample in samples:
                own = {"change": made.note_change(db, experiment), "run_id": run, "interval_ns": 1_000_000_000}
                own["messages"] = round(sample["messages"] * of_run * noise.gauss(1, 0.02))
                row = sample | own
                db.execute(f"INSERT INTO samples VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
        db.execute("UPDATE counters SET value = (SELECT count(*) FROM samples) WHERE name = 'samples'")


def test_the_time_is_divided_by_how_earlier_runs_scatter(daemon, unix):
    spec = {"message_size": 2223, "duration_seconds": 3, "warmup_seconds": 0, "repetitions": 8}
    point = plan(unix, spec)["points"][0]
    assert point["split"] is None and "no earlier runs" in point["split_reason"]
    ran = unix.wait_final(unix.post(spec | {"repetitions": 1})["id"])
    assert ran["state"] == "done", ran
    scatter(daemon, ran["id"], 8)
    split = plan(unix, spec)["points"][0]["split"]
    values = [rates_of(unix, run["id"]) for run in unix.items(f"/experiments/{ran['id']}/runs")]
    assert len(values) == 8 and all(len(of_run) >= 2 for of_run in values)
    assert (split["experiment_id"], split["runs"]) == (ran["id"], len(values))
    assert split["seconds"] == sum(map(len, values))
    means = [statistics.mean(of_run) for of_run in values]
    mean = statistics.mean(means)
    squares = sum((one - of) ** 2 for of_run, of in zip(values, means, strict=True) for one in of_run)
    within = squares / (split["seconds"] - len(values))
    assert split["between_seconds"] == pytest.approx(within**0.5 / mean)
    if len({len(of_run) for of_run in values}) == 1:
        between = max(0, statistics.variance(means) - within / len(values[0]))
        assert split["between_runs"] == pytest.approx(between**0.5 / mean, abs=1e-9)

    def error(runs, seconds):
        return ((split["between_runs"] ** 2 + split["between_seconds"] ** 2 / seconds) / runs) ** 0.5

    assert split["relative_error_as_planned"] == pytest.approx(error(8, 3))
    longest = 4 * max(map(len, values))
    plans = [(int(8 * 3.5 / (seconds + 0.5)), seconds) for seconds in range(1, longest + 1)]
    plans = [one for one in plans if one[0] >= 6]
    least = min(error(*one) for one in plans)
    assert split["relative_error"] == pytest.approx(least)
    best = [one for one in plans if error(*one) == pytest.approx(least)]  # where runs are alike, 8 of 3 s are 6 of 4 s
    assert (split["repetitions"], split["duration_seconds"]) in best
    point = plan(unix, spec | {"repetitions": 1})["points"][0]
    assert point["split"] is None and "too short for 6 runs" in point["split_reason"]
    point = plan(unix, {"message_size": 2223, "messages": 1000})["points"][0]
    assert point["split"] is None and "a number of messages" in point["split_reason"]


def test_the_rate_of_an_open_loop_divides_nothing(daemon, unix):
    """Its seconds have the rate that was asked for, however many runs there are."""
    spec = {"message_size": 2224, "duration_seconds": 3, "warmup_seconds": 0, "repetitions": 8, "rate": 1000}
    ran = unix.wait_final(unix.post(spec | {"repetitions": 1})["id"])
    assert ran["state"] == "done", ran
    scatter(daemon, ran["id"], 8)
    point = plan(unix, spec)["points"][0]
    assert point["enough"]["figure"] != "throughput_bytes_per_second" and point["enough"]["runs"] == 8
    assert point["split"] is None and "open loop" in point["split_reason"]


def test_of_calls_it_is_their_cost(unix):
    spec = {"workload": "syscall", "messages": 20000, "warmup_seconds": 0}
    ran = unix.wait_final(unix.post(spec | {"repetitions": 6})["id"])
    assert ran["state"] == "done", ran
    assert plan(unix, spec)["points"][0]["enough"]["figure"] == "cost_ns"


ROWS_OF_A_RUN = 4096  # RATES_ROWS_MAX of daemon/store/samples.c


def test_it_reads_no_more_earlier_runs_than_a_second_takes(own_daemon):
    """250 000 rows of samples, and a result counts as 20 of them: those of ten points and a bit."""
    spec = {"transport": "pipe", "duration_seconds": 1, "warmup_seconds": 0}
    real = own_daemon.unix.wait_final(own_daemon.unix.post(spec)["id"])
    assert own_daemon.stop() == 0
    stored = Stored(own_daemon.state / "ipclab.db")
    wide = stored.widen(real["id"], 12, 6, lambda point, repetition, result: None)
    stored.db.execute(
        "WITH RECURSIVE seconds (second) AS (SELECT 0 UNION ALL SELECT second + 1 FROM seconds WHERE second < ?)"
        " INSERT INTO samples (change, experiment_id, run_id, thread, second, begin_ns, interval_ns, messages, bytes,"
        " agent) SELECT ? + row_number() OVER (), ?, runs.id, 0, second, second * 1000000000, 1000000000, 1000,"
        " 4096, 'sender' FROM runs, seconds WHERE runs.experiment_id = ?",
        (ROWS_OF_A_RUN - 1, stored.next_change(12 * 6 * ROWS_OF_A_RUN), wide, wide),
    )
    stored.close()
    own_daemon.start()
    spec["repetitions"] = 60
    points = plan(own_daemon.unix, spec | {"message_size": list(range(1, 13))})["points"]
    assert [point["split"]["seconds"] for point in points[:11]] == [6 * ROWS_OF_A_RUN] * 11
    assert points[11]["enough"] is None and points[11]["split"] is None
    assert "plan fewer points at once" in points[11]["enough_reason"] == points[11]["split_reason"]
    (last,) = plan(own_daemon.unix, spec | {"message_size": 12})["points"]
    assert last["enough"]["runs"] == 6 and last["split"]["seconds"] == 6 * ROWS_OF_A_RUN
