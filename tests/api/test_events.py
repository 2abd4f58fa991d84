# SPDX-License-Identifier: MIT
"""Server-sent events: from the beginning, from where one was, and while it happens."""

import threading
import time

import pytest
from client import PATIENCE_SECONDS, Events
from conftest import ENDLESS, OF_PIPE, SHORT


def test_a_finished_experiment_is_sent_from_the_beginning(client, done):
    with Events(client, f"/experiments/{done['id']}/events") as events:
        assert events.response.status == 200
        assert events.response.headers["Content-Type"] == "text/event-stream"
        assert events.response.headers["Cache-Control"] == "no-store"
        received = list(events)
    assert [event for _, event, _ in received].count("end") == 1
    assert received[-1][1:] == ("end", {"experiment_id": done["id"], "state": "done"})
    ids = [identity for identity, event, _ in received if event != "end"]
    assert ids == sorted(set(ids)) and None not in ids
    assert [data for _, event, data in received if event == "sample"] == client.items(
        f"/experiments/{done['id']}/samples"
    )
    runs = sorted((data for _, event, data in received if event == "run"), key=lambda run: run["position"])
    assert runs == client.items(f"/experiments/{done['id']}/runs")
    assert [data for _, event, data in received if event == "experiment"] == [client.get(f"/experiments/{done['id']}")]
    for _, event, data in received:
        if event in ("experiment", "run", "sample"):
            client.validate({"$ref": f"#/components/schemas/{event.capitalize()}"}, data)


def test_one_comes_back_where_one_was(unix, done):
    with Events(unix, f"/experiments/{done['id']}/events") as events:
        received = list(events)
    for at in (0, len(received) // 2, len(received) - 2):
        with Events(unix, f"/experiments/{done['id']}/events", last_id=received[at][0]) as events:
            assert list(events) == received[at + 1 :]
    with Events(unix, f"/experiments/{done['id']}/events", last_id=2**53) as events:  # of another database
        assert list(events) == received


@pytest.mark.parametrize("last_id", ["x", "-1", "1.5", ""])
@pytest.mark.parametrize("path", ["/events", "/experiments/{id}/events"])
def test_an_id_that_is_none_is_refused(unix, done, path, last_id):
    target = path.format(id=done["id"])
    unix.refused("GET", target, 400, "bad-header", headers={"Last-Event-ID": last_id})


def test_pins_and_their_removal_are_sent(unix, done):
    """Each name's last change, as that of an experiment. A pin of what is pinned is none."""
    other = unix.wait_final(unix.post(SHORT)["id"])["id"]
    received = []
    with Events(unix, "/events") as events:
        for identity in (done["id"], done["id"], other, None):
            if identity is None:
                assert unix.request("DELETE", "/baselines/sent").status == 204
            else:
                assert unix.request("PUT", "/baselines/sent", {"experiment": identity}).status in (200, 201)
            if not received or received[-1][2]["experiment_id"] != identity:
                received.append(next(e for e in events if e[1] == "baseline"))
                assert received[-1][2] == {"name": "sent", "experiment_id": identity}
    assert len(received) == 3
    with Events(unix, "/events", last_id=int(received[0][0]) - 1) as events:
        assert next(e for e in events if e[1] == "baseline") == received[-1]


def test_samples_arrive_while_it_runs(client):
    """The run is cancelled once its first seconds have been received: they did not wait for the end."""
    experiment = client.post(OF_PIPE | {"duration_seconds": 600})
    arrived = []
    try:
        with Events(client, f"/experiments/{experiment['id']}/events") as events:
            for _, event, data in events:
                arrived.append((event, data))
                if event == "sample" and data["second"] == 1 and data["agent"] == "receiver":
                    client.request("POST", f"/experiments/{experiment['id']}/cancel")
    finally:
        client.request("POST", f"/experiments/{experiment['id']}/cancel")
    assert {data["second"] for event, data in arrived if event == "sample"} >= {0, 1}
    states = [data["state"] for event, data in arrived if event == "run"]
    assert states[-1] == "cancelled" and set(states) <= {"queued", "running", "cancelled"}
    assert arrived[-1][1]["state"] == "cancelled"


def test_events_follow_a_run(client):
    experiment = client.post(SHORT)
    with Events(client, f"/experiments/{experiment['id']}/events") as events:
        received = [(event, data) for _, event, data in events]
    states = [data["state"] for event, data in received if event == "run"]
    assert states[-1] == "done" and set(states) <= {"queued", "running", "done"}
    assert received[-1][1]["state"] == "done"


def check_samples(received, unix, experiment):
    """Each of them, but for the noise of those that were sent before their run had ended."""
    samples = unix.items(f"/experiments/{experiment['id']}/samples")
    assert samples and len(received) == len(samples)
    for got, stored in zip(received, samples, strict=True):
        if "has not ended" in got.get("noise_reason", ""):
            stored = stored | {"noise": None, "noise_reason": got["noise_reason"]}
        assert got == stored


def test_an_interrupted_stream_misses_nothing(unix):
    """Reads one event, leaves, comes back with its id, and so on."""
    experiment = unix.post(SHORT | {"repetitions": 3})
    target, last, received = f"/experiments/{experiment['id']}/events", None, []
    while not received or received[-1][1] != "end":
        with Events(unix, target, last_id=last) as events:
            received.append(next(iter(events)))
            last = received[-1][0]
    check_samples([data for _, event, data in received if event == "sample"], unix, experiment)


def test_a_cancelled_experiment_ends_its_stream(unix):
    experiment = unix.post(ENDLESS)
    unix.wait_state(experiment["id"], ("running",))
    with Events(unix, f"/experiments/{experiment['id']}/events") as events:
        stream = iter(events)
        next(stream)
        unix.request("POST", f"/experiments/{experiment['id']}/cancel")
        *_, last = stream
    assert last[1:] == ("end", {"experiment_id": experiment["id"], "state": "cancelled"})


def test_a_forgotten_experiment_ends_its_stream(unix, long_run):
    experiment = unix.post(SHORT)  # waits behind the long one
    with Events(unix, f"/experiments/{experiment['id']}/events") as events:
        stream = iter(events)
        next(stream)
        with Events(unix, "/events") as all_events:
            assert unix.request("DELETE", f"/experiments/{experiment['id']}").status == 204
            deletion = next(e for e in all_events if e[1] == "deletion")
        *_, deleted, last = stream
    assert deletion[2] == {"experiment_id": experiment["id"]}
    assert deleted == deletion  # with its change as its id
    assert last[1:] == ("end", {"experiment_id": experiment["id"], "state": "deleted"})
    unix.refused("GET", f"/experiments/{experiment['id']}/events", 404, "not-found")


def test_events_of_all_experiments_start_now(client, done):
    with Events(client, "/events") as events:
        stream = iter(events)
        experiment = client.post(SHORT)
        seen = set()
        for identity, event, data in stream:
            assert event in ("experiment", "run") and identity is not None
            assert data.get("experiment_id", data["id"]) == experiment["id"] or event == "experiment"
            seen.add((event, data["state"]))
            if event == "experiment" and data["id"] == experiment["id"] and data["state"] == "done":
                break
        first = identity
    assert ("run", "done") in seen
    with Events(client, "/events", last_id=first - 1) as events:
        assert next(iter(events))[0] == first


def test_too_many_subscribers_are_refused(own_daemon):
    client, streams = own_daemon.tcp, []
    try:
        for _ in range(200):
            stream = Events(client, "/events")
            streams.append(stream)
            if stream.response.status != 200:
                break
        refused = streams[-1].response
        assert refused.status == 503 and refused.headers["Retry-After"] == "5"
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert client.get("/health")["status"] == "ok"
        assert own_daemon.unix.get("/health")["status"] == "ok"
        with Events(own_daemon.unix, "/events") as other:  # the socket's share is its own
            assert other.response.status == 200
    finally:
        for stream in streams:
            stream.connection.close()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:  # places come free again
        with Events(client, "/events") as stream:
            if stream.response.status == 200:
                return
        time.sleep(0.1)
    raise AssertionError("no place came free")


def test_many_listen_to_one_experiment(unix):
    experiment = unix.post(OF_PIPE | {"duration_seconds": 1})
    received = [None] * 20

    def listen(i):
        with Events(unix, f"/experiments/{experiment['id']}/events") as events:
            received[i] = [data for _, event, data in events if event == "sample"]

    threads = [threading.Thread(target=listen, args=(i,)) for i in range(len(received))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    for one in received:
        check_samples(one, unix, experiment)


def test_streams_end_when_the_daemon_stops(own_daemon):
    experiment = own_daemon.unix.post(ENDLESS)
    streams = [Events(own_daemon.tcp, f"/experiments/{experiment['id']}/events"), Events(own_daemon.unix, "/events")]
    assert own_daemon.stop(25) == 0  # and not when the streams would have ended by themselves
    for stream in streams:
        assert all(event != "end" for _, event, _ in stream)
