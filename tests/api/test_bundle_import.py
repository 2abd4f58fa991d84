# SPDX-License-Identifier: MIT
"""Bundles of another host that are taken in: read like what was measured here, changed by nobody, and nothing comes in
that no daemon would have written."""

import gzip
import hashlib
import http.client
import json
import random
import re
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from bundles import SPEC, change, digest_of, fetch, known_experiments, send
from ipclab_cli import bundle
from ipclab_fleet.store import Store
from ipclabtest import database
from ipclabtest.client import Events
from ipclabtest.daemon import Daemon
from searches import had_an_empty_window


@pytest.fixture(scope="module")
def known():
    with known_experiments() as found:
        yield found


@pytest.fixture(scope="module")
def other():
    """A daemon on what the bundles are told to be another host."""
    daemon = Daemon()
    daemon.start()
    yield daemon
    assert daemon.stop() == 0, daemon.log_tail()
    text = daemon.log_text()
    assert "Sanitizer" not in text and "runtime error" not in text, text
    daemon.remove()


def without_ids(row):
    return {key: value for key, value in row.items() if key != "run_ids"}


@pytest.mark.parametrize("which", ["real", "many"])
def test_what_is_taken_in_is_read_as_at_home(known, other, which):
    daemon, ids = known
    home, client, identity = daemon.client(), other.client(), ids[which]
    name, packed = fetch(home, identity, "?host=rack%201")
    taken = send(client, packed)
    assert taken.status == 201, taken
    there = taken.json["id"]
    assert taken.headers["Location"] == f"/experiments/{there}"
    imported = taken.json["imported"]
    assert (imported["host"], imported["sha256"]) == ("rack 1", digest_of(packed))
    assert home.get(f"/experiments/{identity}")["imported"] is None
    mine = home.get(f"/experiments/{identity}")
    for member in ("state", "progress", "seed", "spec", "effective_spec", "name", "started_at", "finished_at"):
        assert taken.json[member] == mine[member]
    for query in ("", "?histogram=1"):
        rows = [without_ids(row) for row in client.get(f"/experiments/{there}/results{query}")["items"]]
        expected = [without_ids(row) for row in home.get(f"/experiments/{identity}/results{query}")["items"]]
        for row in expected:
            row["error"] = row["error"] and row["error"].partition(":")[0]
        assert rows == expected
    runs = home.get(f"/experiments/{identity}/runs")["items"]
    for run, of_home in zip(client.get(f"/experiments/{there}/runs")["items"], runs, strict=True):
        assert run["point"] == of_home["point"] and run["flags"] == of_home["flags"]
        if of_home["result"] is None:
            continue  # a bundle has the latencies of windows
        histograms = [
            one.get(f"/runs/{run_id}/histogram")["latency_histogram"]
            for one, run_id in ((client, run["id"]), (home, of_home["id"]))
        ]
        assert histograms[0] == histograms[1]
    for path in ("findings", "report", "samples", "runs"):
        assert client.request("GET", f"/experiments/{there}/{path}").status == 200, path
    for path in ("findings", "results", "runs", "samples"):
        assert client.get(f"/experiments/{there}/{path}")["provenance"]["host"] == "rack 1", path
    report = client.request("GET", f"/experiments/{there}/report").body.decode()
    (text,) = re.findall(r'<script type="application/json" id="report-data">(.*?)</script>', report, re.DOTALL)
    data = json.loads(text)
    assert data["results"]["provenance"] == client.get(f"/experiments/{there}/results")["provenance"]
    assert data["caches"] == [], "those of this host are none of the other's"
    assert client.get("/experiments")["items"][0]["id"] == there
    assert fetch(client, there) == (name, packed)


SEARCH = {
    "workload": "pingpong",
    "message_size": [64, 4096],
    "duration_seconds": 0.2,
    "warmup_seconds": 0,
    "repetitions": 3,  # more runs than are stored at once
    "search": {"rate": {"latency_p99_below_us": 50}},
}
RUNS_AT_ONCE = 32


@pytest.fixture(scope="module")
def searched(known):
    """The bundle of a search, and the experiment that it is of. On a busy machine one of its short windows may pass
    without a message: up to three tries."""
    client = known[0].client()
    for _ in range(3):
        experiment = client.wait_final(client.post(SEARCH)["id"])
        if not had_an_empty_window(client, experiment):
            break
    assert experiment["state"] == "done", experiment["error"]
    assert experiment["progress"]["runs_total"] > RUNS_AT_ONCE, experiment
    return fetch(client, experiment["id"], "?host=searched")[1], experiment


def test_what_a_search_has_found_follows_from_its_runs(known, other, searched):
    packed, experiment = searched
    home, client = known[0].client(), other.client()
    taken = send(client, packed)
    assert taken.status == 201, taken
    assert taken.json["search"] == experiment["search"] and taken.json["until"] is None
    assert [point["point"]["message_size"] for point in taken.json["search"]["points"]] == [64, 4096]
    rows = [
        [without_ids(row) for row in one.get(f"/experiments/{identity}/results")["items"]]
        for one, identity in ((client, taken.json["id"]), (home, experiment["id"]))
    ]
    assert rows[0] == rows[1] and {row["rate"] for row in rows[0]} > {None}
    for run, of_home in zip(
        client.items(f"/experiments/{taken.json['id']}/runs"),
        home.items(f"/experiments/{experiment['id']}/runs"),
        strict=True,
    ):
        assert (run["rate"], run["point"]) == (of_home["rate"], of_home["point"])
    for path in ("findings", "report"):
        assert client.request("GET", f"/experiments/{taken.json['id']}/{path}").status == 200, path
    again = send(client, fetch(home, experiment["id"], "?host=another")[1]).json["id"]
    compared = client.get(f"/compare?baseline={taken.json['id']}&candidate={again}&force=true")
    assert len(compared["rows"]) == 2


def test_a_search_that_was_cancelled(known, other):
    home = known[0].client()
    running = home.post(SEARCH | {"seed": 3})["id"]
    with Events(home, f"/experiments/{running}/events") as events:
        next(data for _, event, data in events if event == "run" and data["rate"] and data["state"] == "done")
    assert home.request("POST", f"/experiments/{running}/cancel").status == 200
    assert home.wait_final(running)["state"] == "cancelled"
    taken = send(other.client(), fetch(home, running)[1])
    assert taken.status == 201 and taken.json["search"]["state"] == "cancelled", taken


def test_post_refuses_a_search_that_none_has_made(other, searched):
    document, client = json.loads(gzip.decompress(searched[0])), other.client()
    rated = next(index for index, row in enumerate(document["results"]) if row["rate"])

    def refused(changed, pointer, words):
        text = bundle.canonical(changed).encode()
        answer = send(client, gzip.compress(text, 1), hashlib.sha256(text).hexdigest())
        assert answer.status == 422 and answer.json["pointer"] == pointer and words in answer.json["detail"], answer

    def changed(path, value):
        return change(document, path, lambda _: value)

    rate = document["results"][rated]["rate"]
    refused(changed(("results", rated, "rate"), 0), f"/results/{rated}/rate", "rates from 1")
    refused(changed(("results", rated, "rate"), 10**10), f"/results/{rated}/rate", "to 1000000000")
    refused(changed(("results", rated, "rate"), None), "/results", "one point and rate")
    refused(changed(("results", rated, "rate"), rate + 1), f"/runs/{first_of(document, rate)}", "point and rate")
    rows = document["results"]
    refused(document | {"results": [rows[rated], *rows[:rated], *rows[rated + 1 :]]}, "/results", "own row")
    refused(document | {"results": []}, "/results", "without a row")
    many = [rows[rated] | {"rate": 10**8 + number} for number in range(40)]
    refused(document | {"results": [*rows, *many]}, "/results", "more rates")
    plain = change(document, ("experiment", "effective_spec"), lambda spec: without(spec, "search"))
    refused(plain, f"/results/{rated}/rate", "no search")


def first_of(document, rate):
    return next(index for index, run in enumerate(document["runs"]) if run["rate"] == rate)


def without(members, name):
    return {key: value for key, value in members.items() if key != name}


def test_the_same_bundle_is_one_experiment(known, other):
    daemon, ids = known
    client = other.client()
    _, packed = fetch(daemon.client(), ids["real"], "?host=twice")
    first, second = send(client, packed), send(client, gzip.compress(gzip.decompress(packed), 1))
    assert (first.status, second.status) == (201, 200) and first.json["id"] == second.json["id"]
    assert client.request("DELETE", f"/experiments/{first.json['id']}").status == 204
    third = send(client, packed)
    assert third.status == 201 and third.json["id"] > first.json["id"]


def test_one_is_taken_in_at_a_time(known, other):
    """What is refused while another one is under way is taken when it is sent again."""
    daemon, ids = known
    _, packed = fetch(daemon.client(), ids["real"], "?host=at%20once")
    clients = [other.client() for _ in range(6)]
    with ThreadPoolExecutor(len(clients)) as pool:
        for _ in range(50):
            answers = list(pool.map(lambda client: send(client, packed), clients))
            if any(answer.status == 503 for answer in answers):
                break
    refused = [answer for answer in answers if answer.status == 503]
    assert refused and {answer.status for answer in answers} <= {200, 201, 503}, answers
    assert all("Another bundle is being taken in" in answer.json["detail"] for answer in refused)
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
    assert send(clients[0], packed).status == 200


def test_one_of_another_host_is_read_only(known, other):
    daemon, ids = known
    client = other.client()
    there = send(client, fetch(daemon.client(), ids["many"], "?host=fixed")[1]).json["id"]
    for path, body in (("extend", {"blocks": 1}), ("retry", None), ("cancel", None)):
        refused = client.request("POST", f"/experiments/{there}/{path}", body)
        assert refused.status == 409, refused
    assert client.request("GET", f"/experiments/{there}/bundle?host=mine").status == 409
    assert [one for one in client.get("/experiments?state=queued")["items"]] == []


def test_comparison_names_the_hosts(known, other):
    daemon, ids = known
    client = other.client()
    there = send(client, fetch(daemon.client(), ids["real"], "?host=compared")[1]).json["id"]
    again = send(client, fetch(daemon.client(), ids["many"], "?host=compared")[1]).json["id"]
    here = client.wait_final(client.post(SPEC)["id"])["id"]
    refused = client.request("GET", f"/compare?baseline={there}&candidate={here}")
    assert refused.status == 409 and "host" in refused.json["detail"] and "compared" in refused.json["detail"], refused
    forced = client.get(f"/compare?baseline={there}&candidate={here}&force=true")
    (difference,) = [one for one in forced["environment"]["differences"] if one["key"] == "host"]
    assert (difference["baseline"], difference["candidate"]) == ("other host compared", "this host")
    assert len(forced["rows"]) > 0
    same = client.get(f"/compare?baseline={there}&candidate={again}")
    assert [one for one in same["environment"]["differences"] if one["key"] == "host"] == []


def test_advice_estimates_and_the_exporter_leave_it_out(known):
    daemon, ids = known
    empty = Daemon()
    try:
        empty.start()
        client = empty.client()
        there = send(client, fetch(daemon.client(), ids["many"])[1])
        assert there.status == 201
        advice = client.get("/advice?message_size=1024")
        assert set(advice["experiments"].values()) == {0} and "pipe" not in json.dumps(advice["items"])
        assert advice["host"] is None
        plan = client.request("POST", "/experiments?dry_run=true", SPEC)
        assert plan.status == 200 and '"experiment_id":1' not in plan.body.decode().replace(" ", "")
        own = client.wait_final(client.post(SPEC)["id"])
        assert own["state"] == "done"
        store = Store(empty.state)
        exported = {row.experiment_id for row in store.page(0).rows}
        store.close()
        assert exported == {own["id"]} != {there.json["id"]}
        empty.kill()  # an experiment of another host is nothing that a crash interrupts
        empty.start()
        assert client.get(f"/experiments/{there.json['id']}") == there.json
    finally:
        empty.remove()


def test_advice_of_another_host_names_it(known, other):
    daemon, ids = known
    client = other.client()
    question = "/advice?message_size=1024&want=throughput"
    here = daemon.client().get(question)
    assert here["host"] is None and here["items"]
    refused = client.request("GET", f"{question}&host=rack%207")
    assert refused.status == 404 and "rack 7" in refused.json["detail"], refused
    assert "with a run that is done" in refused.json["detail"], "an experiment without one may be there"
    taken = [send(client, fetch(daemon.client(), ids[which], "?host=rack%207")[1]).json["id"] for which in ids]
    advice = client.get(f"{question}&host=rack%207")
    assert advice["host"] == "rack 7" and advice["sentence"].startswith("Host rack 7, ")
    assert advice["settle"] is None, "nothing can be queued there"
    assert {item["experiment_id"] for item in advice["items"]} <= set(taken)
    assert [(item["point"], item["value"]) for item in advice["items"]] == [
        (item["point"], item["value"]) for item in here["items"]
    ]
    assert not {item["experiment_id"] for item in client.get(question)["items"]} & set(taken)
    assert client.request("GET", f"{question}&host=a/b").status == 400


def test_a_file_with_a_part_missing_is_never_whole(known, other):
    daemon, ids = known
    client = other.client()
    _, packed = fetch(daemon.client(), ids["many"], "?host=parts")
    there = send(client, packed).json["id"]
    third = len(packed) // 3
    parts = [packed[:third], packed[third : 2 * third], packed[2 * third :]]

    def store(numbers):
        with database.live(other.state / "ipclab.db") as db:
            db.execute("DELETE FROM bundle_parts WHERE experiment_id = ?", (there,))
            db.executemany("INSERT INTO bundle_parts VALUES (?, ?, ?)", [(there, n, parts[n]) for n in numbers])

    store([0, 1, 2])
    assert fetch(client, there)[1] == packed, "parts may have any length"
    store([0, 2])
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        client.request("GET", f"/experiments/{there}/bundle")
    store([1, 2])
    gone = client.request("GET", f"/experiments/{there}/bundle")
    assert gone.status == 404 and gone.json["type"].endswith("not-found"), gone
    assert client.request("DELETE", f"/experiments/{there}").status == 204


def test_what_another_host_exports_is_not_kept_for_an_export(known):
    daemon, ids = known
    keeper = Daemon("--keep-until-exported=true")
    try:
        keeper.start()
        client = keeper.client()
        there = send(client, fetch(daemon.client(), ids["real"], "?host=exported")[1]).json["id"]
        own = client.wait_final(client.post({"transport": "pipe", "messages": 50, "warmup_seconds": 0})["id"])["id"]
        kept = client.request("DELETE", f"/experiments/{own}")
        assert kept.status == 409 and kept.json["type"].endswith("not-exported"), kept
        assert client.request("DELETE", f"/experiments/{there}").status == 204
    finally:
        keeper.remove()


def test_post_refuses_one_changed_digit(known, other):
    daemon, ids = known
    client = other.client()
    name, packed = fetch(daemon.client(), ids["real"], "?host=digits")
    text, digest = gzip.decompress(packed), digest_of(packed)
    before = client.get("/experiments?limit=1000")["items"]
    places = [found.start() for found in re.finditer(rb"[0-9]", text)]
    for at in random.Random(3).sample(places, 200):
        changed = bytes([ord("0") + (text[at] - ord("0") + 1) % 10])
        refused = send(client, gzip.compress(text[:at] + changed + text[at + 1 :], 1), digest)
        assert refused.status == 422 and refused.json["type"].endswith("wrong-digest"), refused
    assert client.get("/experiments?limit=1000")["items"] == before


def test_post_refuses_what_is_no_bundle(known, other):
    """Each with the digest that it has: nothing but what a daemon would have written comes in."""
    daemon, ids = known
    client = other.client()
    _, packed = fetch(daemon.client(), ids["real"], "?host=hostile")
    text = gzip.decompress(packed)
    before = [one["id"] for one in client.get("/experiments?limit=1000")["items"]]

    def refused(text, words, status=422):
        answer = send(client, gzip.compress(text, 1), hashlib.sha256(text).hexdigest())
        assert answer.status == status, (words, answer)
        assert words in json.dumps(answer.json), answer

    def replaced(old, new, count=1):
        assert old in text, old
        return text.replace(old, new, count)

    document = json.loads(text)
    run = next(index for index, one in enumerate(document["runs"]) if one["latency_histogram"])

    def changed(path, value):
        return bundle.canonical(change(document, path, lambda _: value)).encode()

    refused(replaced(b'"seed":7', b'"seed":7,"zzz":1'), "zzz")
    refused(replaced(b'"position":0', b'"position":0,"seeds":1'), "seeds")
    refused(replaced(b'"seed":7', b'"seed":7.0'), "7.0")
    refused(replaced(b'"seed":7', b'"seed": 7'), "seed")
    refused(replaced(b'"seed":7', b'"seed":7,"seed":7'), "/experiment")
    refused(replaced(b'"seed":7', b'"seed":-7'), "seed")
    refused(replaced(b'"bundle":1', b'"bundle":2'), "bundle")
    refused(text + b" ", "after the bundle's end")
    refused(text[:-1], "}")
    refused(text[: len(text) // 2], "")
    refused(b"", "bundle")
    refused(b"[" * 100000, "bundle")
    refused(b'{"bundle":1,"experiment":' + b"[" * 100000, "/experiment")
    refused(b'{"bundle":1,"experiment":' + b'{"a":' * 50 + b"1" + b"}" * 50, "/experiment")
    refused(b'{"bundle":1,"experiment":"' + b"x" * (9 << 20) + b'"}', "/experiment")
    refused(changed(("runs", run, "result", "messages"), -5), "messages")
    refused(changed(("runs", run, "result", "bytes"), 1.5), "bytes")
    refused(changed(("runs", 1, "position"), 7), "position")
    refused(changed(("runs", 1, "state"), "running"), "running")
    refused(changed(("runs", 1, "state"), "failed"), "progress")
    refused(changed(("runs", 1, "flags"), [1]), "flags")
    refused(changed(("runs", 1, "agents"), None), "agents")
    refused(changed(("runs", 1, "result"), None), "result")
    refused(changed(("runs", 1, "started_at"), "yesterday"), "yesterday")
    sized = next(index for index, one in enumerate(document["runs"]) if "message_size" in one["point"])
    refused(changed(("runs", sized, "point", "message_size"), 0), "point")
    refused(changed(("runs", sized, "latency_histogram"), {"histogram": "", "sum_ns": 1}), "latency_histogram")
    refused(changed(("runs", 1, "repetition"), 2**33), "repetition")
    refused(changed(("runs", 1, "environment", "before"), {"hostname": "lab-17"}), "hostname")
    refused(changed(("experiment", "progress", "runs_total"), 3), "position")
    refused(changed(("experiment", "progress", "runs_done"), 3), "progress")
    refused(changed(("experiment", "effective_spec", "message_size"), [0]), "effective_spec")
    refused(changed(("experiment", "name"), "another"), "name")
    refused(changed(("experiment", "state"), "queued"), "queued")
    refused(changed(("host",), "a/b"), "/host")
    refused(changed(("topology",), None), "/topology")
    refused(changed(("results", 1, "point"), document["results"][0]["point"]), "/results")
    histogram = document["runs"][run]["latency_histogram"]
    for spoiled in (histogram["histogram"][:-8], "A" * 80, "!" + histogram["histogram"][1:], ""):
        refused(changed(("runs", run, "latency_histogram", "histogram"), spoiled), "latency_histogram")
    for spoiled in ("0", "-1", str(2**63), "1" + histogram["sum_ns"]):
        refused(changed(("runs", run, "latency_histogram", "sum_ns"), spoiled), "sum_ns")
    for body, words in ((text, "gzip"), (packed[:-9], "gzip"), (packed + b"x", "gzip"), (packed + packed, "gzip")):
        answer = send(client, body, digest_of(packed))
        assert answer.status == 422 and words in answer.json["detail"], answer
    assert [one["id"] for one in client.get("/experiments?limit=1000")["items"]] == before


def test_a_value_of_very_many_is_not_parsed(other):
    text = b'{"bundle":1,"experiment":[' + b"1," * (3 << 20) + b"1]}"
    refused = send(other.client(), gzip.compress(text, 1))
    assert refused.status == 422 and "more than 1048576 values" in refused.json["detail"], refused
    assert refused.json["pointer"] == "/experiment"


def test_post_is_bounded(other, known):
    daemon, ids = known
    client = other.client()
    packer = zlib.compressobj(1, wbits=31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(600)) + packer.flush()
    refused = send(client, bomb, "0" * 64)
    assert refused.status == 413 and "536870912" in refused.json["detail"], refused
    with client.raw_socket() as sock:  # the body is not waited for
        head = f"POST /bundles?sha256={'0' * 64} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/gzip\r\n"
        sock.sendall(f"{head}Content-Length: {65 << 20}\r\n\r\n".encode())
        answer = sock.recv(65536)
        assert answer.startswith(b"HTTP/1.1 413 ") and b"67108864" in answer, answer
    _, packed = fetch(daemon.client(), ids["real"])
    for digest in ("", "0" * 63, "G" * 64, "0" * 64):
        answer = client.request("POST", f"/bundles?sha256={digest}", packed, {"Content-Type": "application/gzip"})
        assert answer.status == (422 if digest == "0" * 64 else 400), answer
    assert client.request("POST", "/bundles", packed, {"Content-Type": "application/gzip"}).status == 400
    assert send(client, packed, **{"Content-Type": "application/json"}).status == 415
    stranger = type(client)(port=other.port)
    assert send(stranger, packed).status == 401
