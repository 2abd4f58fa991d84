# SPDX-License-Identifier: MIT
"""Bundles: an experiment as one file. What is in it follows from its runs, and nothing in it names the host."""

import gzip
import hashlib
import json
import random
import re
import sqlite3

import pytest
from bundles import SPEC, change, digest_of, document_of, fetch, known_experiments, send
from conftest import ENDLESS
from ipclab_cli import bundle
from ipclabtest.daemon import Daemon
from ipclabtest.database import live, seal


def write(path, text):
    """Under the name that the text has as a bundle."""
    file = path / f"ipclab-x-{hashlib.sha256(text).hexdigest()}.json.gz"
    file.write_bytes(gzip.compress(text, 1))
    return file


def fault_of(file):
    with pytest.raises(bundle.Fault) as caught:
        bundle.verify(file)
    return str(caught.value)


@pytest.fixture(scope="module")
def known():
    with known_experiments() as found:
        yield found


def test_two_bundles_of_one_experiment_are_the_same_bytes(known):
    daemon, ids = known
    client = daemon.client()
    for identity in ids.values():
        name, packed = fetch(client, identity)
        assert (name, packed) == fetch(client, identity)
        digest = hashlib.sha256(gzip.decompress(packed)).hexdigest()
        assert name == f"ipclab-a-few-of-each-{digest}.json.gz"
    unnamed = client.wait_final(client.post({"transport": "pipe", "messages": 500, "warmup_seconds": 0})["id"])["id"]
    assert fetch(client, unnamed)[0].startswith(f"ipclab-{unnamed}-")


def test_a_bundle_has_what_the_api_has(known):
    daemon, ids = known
    client = daemon.client()
    document = document_of(fetch(client, ids["real"])[1])
    assert document["bundle"] == 1 and document["host"] is None
    assert document["experiment"]["spec"] == SPEC
    runs = client.get(f"/experiments/{ids['real']}/runs")["items"]
    assert len(document["runs"]) == len(runs) > 10
    for one, run in zip(document["runs"], runs, strict=True):
        for member in ("point", "repetition", "block", "position", "state", "attempt", "flags", "started_at"):
            assert one[member] == run[member]
        for member in ("throughput_bytes_per_second", "messages", "window_ns", "latency_ns", "effective"):
            assert one["result"][member] == run["result"][member]
        assert [agent["role"] for agent in one["agents"]] == [agent["role"] for agent in run["agents"]]
        assert one["environment"]["build"] == run["environment"]["build"]
        for member in ("cpus", "cpus_unprobed", "compared"):
            assert one["probes"][member] == run["probes"][member]
        histogram = client.get(f"/runs/{run['id']}/histogram")["latency_histogram"]
        assert (one["latency_histogram"] or {}).get("histogram") == (histogram or {}).get("histogram")
    rows = client.get(f"/experiments/{ids['real']}/results?histogram=1")["items"]
    for one, row in zip(document["results"], rows, strict=True):
        del row["run_ids"]
        if row["latency_histogram"]:
            del row["latency_histogram"]["histogram"]
        assert {key: one[key] for key in row} == row


def test_verify_accepts_what_the_daemon_makes(known, tmp_path):
    daemon, ids = known
    for identity in ids.values():
        name, packed = fetch(daemon.client(), identity)
        (tmp_path / name).write_bytes(packed)
        document, digest = bundle.verify(tmp_path / name)
        assert digest in name and document == document_of(packed)


def test_a_search_has_a_row_for_each_rate(known, tmp_path):
    daemon, _ = known
    client = daemon.client()
    spec = {"message_size": 64, "duration_seconds": 0.5, "warmup_seconds": 0, "repetitions": 1}
    search = {"rate": {"latency_p99_below_us": 0.1}}  # which none keeps, and so few are tried
    posted = client.post(spec | {"workload": "pingpong", "transport": "pipe", "search": search})
    name, packed = fetch(client, client.wait_final(posted["id"])["id"])
    (tmp_path / name).write_bytes(packed)
    document, _ = bundle.verify(tmp_path / name)
    rates = [(row["point"]["transport"], row["rate"]) for row in document["results"]]
    assert len(set(rates)) == len(rates) > 2 and rates[0] == ("pipe", None)


@pytest.mark.parametrize(("repetitions", "workloads"), [(12, ["stream", "pingpong", "syscall"]), (40, ["syscall"])])
def test_verify_judges_how_much_a_run_depends_on_the_one_before(tmp_path, repetitions, workloads):
    spec = {"workload": workloads, "transport": "pipe", "messages": 300, "warmup_seconds": 0}
    daemon = Daemon()
    try:
        daemon.start()
        client = daemon.client()
        identity = client.wait_final(client.post(spec | {"repetitions": repetitions})["id"])["id"]
        name, packed = fetch(client, identity)
        document = document_of(packed)
        assert all(row["autocorrelation"]["lag1"] for row in document["results"])
        (tmp_path / name).write_bytes(packed)
        bundle.verify(tmp_path / name)
        document["results"][0]["autocorrelation"]["effective_runs"] /= 2
        fault = fault_of(write(tmp_path, bundle.canonical(document).encode()))
        assert fault.startswith("/results/0/autocorrelation/effective_runs: ")
    finally:
        daemon.remove()


def fail_and_retry(daemon, identity, position):
    """As if one run in the middle had failed: it is done again after all the others."""
    client = daemon.client()
    with live(daemon.state / "ipclab.db") as db:
        failing = "UPDATE runs SET state = 'failed', error = 'sent too little' WHERE experiment_id = ? AND position = ?"
        db.execute(failing, (identity, position))
        ended = "UPDATE experiments SET state = 'failed', runs_done = runs_done - 1, runs_failed = 1 WHERE id = ?"
        db.execute(ended, (identity,))
    assert client.request("POST", f"/experiments/{identity}/retry").status == 200
    assert client.wait_final(identity)["state"] == "done"


def test_verify_takes_runs_in_the_order_in_which_they_ran(tmp_path):
    """After a retry it is not that of their positions, which earlier versions took them in."""
    spec = {"transport": "pipe", "messages": 300, "warmup_seconds": 0, "repetitions": 14}
    daemon = Daemon()
    try:
        daemon.start()
        client = daemon.client()
        identity = client.wait_final(client.post(spec)["id"])["id"]
        fail_and_retry(daemon, identity, 5)
        with live(daemon.state / "ipclab.db") as db:
            db.execute("UPDATE runs SET probes = NULL, flags = '[]' WHERE experiment_id = ?", (identity,))
            for position, flag in ((5, "noisy:load"), (9, "noisy:steal")):
                flagging = "UPDATE runs SET flags = ? WHERE experiment_id = ? AND position = ?"
                db.execute(flagging, (json.dumps([flag]), identity, position))
        name, packed = fetch(client, identity)
        document = document_of(packed)
        begun = [run["started_at"] for run in document["runs"]]
        assert begun != sorted(begun) and max(begun) == begun[5]
        assert document["results"][0]["flags"] == ["noisy:steal", "noisy:load"]
        (tmp_path / name).write_bytes(packed)
        bundle.verify(tmp_path / name)
        runs = sorted(document["runs"], key=lambda run: run["started_at"])
        for position, run in enumerate(runs):  # the row is of these positions then, and not of their times
            run |= {"position": position, "started_at": begun[position]}
        of_earlier = document | {"runs": runs}
        bundle.verify(write(tmp_path, bundle.canonical(of_earlier).encode()))
        of_earlier["results"][0]["flags"].reverse()
        assert fault_of(write(tmp_path, bundle.canonical(of_earlier).encode())).startswith("/results/0/")
    finally:
        daemon.remove()


def test_verify_judges_intervals_of_runs_that_are_alike():
    """By the rule of the version that stated them: earlier ones took each run as new."""
    for apart, widened in ((1, True), (-1, False)):
        values = [100 + number // 6 if apart > 0 else 100 + number % 2 for number in range(24)]
        results = [{"throughput_bytes_per_second": value} for value in values]
        earlier = bundle.statistic_of(values)
        now = earlier | bundle.widened(values)
        assert (now["widening"] > 1, now["ci95"] != earlier["ci95"]) == (widened, widened)
        for stated in (earlier, now):
            bundle.check_statistic("/row", stated, results, None, "throughput_bytes_per_second")
        wrong = now | {"widening": now["widening"] + 1}
        with pytest.raises(bundle.Fault, match="/row/widening"):
            bundle.check_statistic("/row", wrong, results, None, "throughput_bytes_per_second")


def test_a_host_that_has_been_up_for_long_has_bundles(tmp_path):
    """Its clock's nanoseconds are beyond 2^53 after 104 days, up to which a reader of JSON has integers exactly."""
    daemon = Daemon()
    try:
        daemon.start()
        client = daemon.client()
        identity = client.wait_final(client.post({"transport": "pipe", "messages": 500, "warmup_seconds": 0})["id"])[
            "id"
        ]
        with live(daemon.state / "ipclab.db") as db:
            db.execute("UPDATE runs SET result = json_set(result, '$.begin_ns', 9007199254740993)")
        [run] = client.get(f"/experiments/{identity}/runs")["items"]
        assert run["result"]["begin_ns"] == 2**53 + 1
        name, packed = fetch(client, identity)
        (tmp_path / name).write_bytes(packed)
        bundle.verify(tmp_path / name)
    finally:
        daemon.remove()


def test_a_label_is_the_host(known):
    daemon, ids = known
    client = daemon.client()
    assert document_of(fetch(client, ids["real"], "?host=rack%201-02")[1])["host"] == "rack 1-02"
    for label in ("", "%20", "x" * 65, "a/b", "a@b"):
        refused = client.request("GET", f"/experiments/{ids['real']}/bundle?host={label}")
        assert refused.status == 400 and "host" in refused.json["detail"], refused


def test_one_that_has_not_finished_has_none(known):
    daemon, _ = known
    client = daemon.client()
    identity = client.post(ENDLESS)["id"]
    refused = client.request("GET", f"/experiments/{identity}/bundle")
    assert refused.status == 409 and refused.json["type"].endswith("not-finished"), refused
    assert client.request("POST", f"/experiments/{identity}/cancel").status == 200
    assert client.wait_final(identity)["state"] == "cancelled"
    assert document_of(fetch(client, identity)[1])["experiment"]["state"] == "cancelled"
    assert client.request("GET", "/experiments/999999/bundle").status == 404


def test_one_changed_digit_is_refused(known, tmp_path):
    daemon, ids = known
    name, packed = fetch(daemon.client(), ids["real"])
    text = gzip.decompress(packed)
    places = [found.start() for found in re.finditer(rb"[0-9]", text)]
    for at in random.Random(1).sample(places, 220):
        other = bytes([ord("0") + (text[at] - ord("0") + 1) % 10])
        (tmp_path / name).write_bytes(gzip.compress(text[:at] + other + text[at + 1 :], 1))
        assert "is not the name's" in fault_of(tmp_path / name)


def numbers_of(value, path=()):
    if isinstance(value, dict):
        for key in value:
            yield from numbers_of(value[key], (*path, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from numbers_of(one, (*path, index))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


def test_a_figure_that_does_not_follow_is_refused_by_its_name(known, tmp_path):
    """Also with the right digest: whoever changes a figure can compute that, too."""
    daemon, ids = known

    def checked(changed):
        with pytest.raises(bundle.Fault) as caught:
            bundle.check(changed)
        return str(caught.value)

    document = document_of(fetch(daemon.client(), ids["many"])[1])
    followed = [path for path in numbers_of(document["results"], ("results",)) if path[2] not in ("point", "effective")]
    followed += [path for path in numbers_of(document["experiment"]["progress"], ("experiment", "progress"))]
    for path in random.Random(2).sample(followed, 40):
        changed = change(document, path, lambda value: value + 1)
        where = "/".join(map(str, path))
        assert where in checked(changed), where
    assert where in fault_of(write(tmp_path, bundle.canonical(changed).encode()))
    run = next(index for index, run in enumerate(document["runs"]) if run["point"].get("workload") == "pingpong")
    for member in (
        ("throughput_bytes_per_second",),
        ("messages_per_second",),
        ("window_ns",),
        ("bytes",),
        ("latency_ns", "p99"),
        ("latency_ns", "mean"),
        ("latency_one_way_ns", "p50"),
        ("initiator", "messages_per_second"),
    ):
        changed = change(document, ("runs", run, "result", *member), lambda value: value + 1)
        assert f"/runs/{run}/result/" in checked(changed)


FALSIFIED = (
    ("pingpong", ("cpu_ns_per_message",)),
    ("pingpong", ("responder", "cpu_ns_per_gigabyte")),
    ("stream", ("receiver", "context_switches_per_message")),
    ("stream", ("counters", "sender", "cpu_ns")),
    ("syscall", ("cost_ns",)),
    ("context-switch", ("hop_ns",)),
    ("context-switch", ("pipe_overhead_ns",)),
)


@pytest.mark.parametrize(("workload", "member"), FALSIFIED)
def test_a_falsified_quotient_is_refused_where_its_row_agrees(known, workload, member):
    """The run alone tells: the row's statistics need not be looked at."""
    daemon, ids = known
    runs = document_of(fetch(daemon.client(), ids["real"])[1])["runs"]
    run = next(run for run in runs if run["point"]["workload"] == workload)
    bundle.check_run("/runs/0", run)
    with pytest.raises(bundle.Fault, match="/runs/0/result/"):
        bundle.check_run("/runs/0", change(run, ("result", *member), lambda value: value + 1))


@pytest.mark.parametrize("name", ["cpu_ns_per_message", "cost_ns", "hop_ns", "both_ways_bytes_per_second"])
def test_a_figure_that_was_removed_is_missed(known, name):
    daemon, ids = known
    document = document_of(fetch(daemon.client(), ids["real"])[1])
    for run in document["runs"]:
        run["result"].pop(name, None)
    for row in document["results"]:
        row.pop(name, None)
    with pytest.raises(bundle.Fault, match=name):
        bundle.check(document)


def test_what_is_computed_anew_is_listed(known):
    daemon, ids = known
    computed, others = bundle.coverage(document_of(fetch(daemon.client(), ids["real"])[1]))
    assert {"throughput_bytes_per_second", "cpu_ns_per_message", "cost_ns", "hop_ns", "latency_ns"} <= set(computed)
    assert "samples" in others["result/steadiness"] and not others.keys() & set(computed)
    assert all(others.values())


def test_other_damage_is_refused(known, tmp_path):
    daemon, ids = known
    name, packed = fetch(daemon.client(), ids["real"])
    text = gzip.decompress(packed)
    for spoiled, words in (
        (packed[:-20], "not gzip"),
        (text, "not gzip"),
        (b"", "is not the name's"),
        (gzip.compress(text + b"\n"), "is not the name's"),
    ):
        (tmp_path / name).write_bytes(spoiled)
        assert words in fault_of(tmp_path / name)
    (tmp_path / "some.json.gz").write_bytes(packed)
    assert "no bundle's name" in fault_of(tmp_path / "some.json.gz")
    for other, words in (
        (text + b" ", "not canonical"),
        (text.replace(b'{"bundle":1,', b'{"bundle":1,"bundle":1,'), "twice"),
        (text.replace(b'{"bundle":1,', b'{"bundle":2,'), "/bundle"),
        (text.replace(b'"seed":7', b'"seed":7.0'), "not canonical"),
        (text.replace(b'"seed":7', b'"seed":NaN'), "NaN"),
        (b"[" * 100000, "deep"),
        (b"{}", "/bundle"),
        (text.replace(b'"latency_histogram":{"histogram":"H', b'"latency_histogram":{"histogram":"I'), "histogram"),
    ):
        assert words in fault_of(write(tmp_path, other)), other[:40]


def test_a_reason_that_is_no_text_is_refused(known, tmp_path):
    """No figure follows from it, and the summary of what was verified has it."""
    daemon, ids = known
    document = document_of(fetch(daemon.client(), ids["real"])[1])
    assert document["runs"][0]["result"]["stamp_cost"] is None
    changed = change(document, ("runs", 0, "result", "stamp_cost_reason"), lambda _: 1.5)
    assert "it has not the shape of a bundle" in fault_of(write(tmp_path, bundle.canonical(changed).encode()))


def test_canonical_numbers_are_those_of_rfc_8785():
    for value, text in (
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (-5e-324, "-5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (9007199254740992, "9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (1e23, "1e+23"),
        (1.0000000000000001e23, "1.0000000000000001e+23"),
        (999999999999999700000.0, "999999999999999700000"),
        (1e21, "1e+21"),
        (9.999999999999997e-7, "9.999999999999997e-7"),
        (0.000001, "0.000001"),
        (333333333.3333332, "333333333.3333332"),
        (1424953923781206.2, "1424953923781206.2"),
    ):
        assert bundle.number_text(value) == text


# ---- privacy ----

SECRETS = [f"SECRET{number:02}" for number in range(48)]


def plant(state):
    """Each secret in another place of every run that is stored, as a host's names, serials, addresses and tokens would
    be. Returns those that were planted."""
    left = list(SECRETS)
    db = sqlite3.connect(state / "ipclab.db")
    take = left.pop
    host, serial, machine, boot = take(), take(), take(), take()
    tokens = [take() for _ in range(8)]
    cmdline = (
        f"BOOT_IMAGE=/boot/{tokens[0]} root=UUID={tokens[1]} isolcpus=1 ip=10.0.0.1::{tokens[2]} mitigations=off "
        f"rd.luks.key={tokens[3]} token={tokens[4]} systemd.hostname={tokens[5]} console={tokens[6]} "
        f"isolcpus=/{tokens[7]} nohz_full=1"
    )
    state_of = {
        "hostname": host,
        "machine": machine,
        "boot_id": boot,
        "kernel_cmdline": cmdline,
        "kernel_version": f"#1 SMP {take()}@{take()}",
        "kernel_release": f"6.1.0-18-cloud-amd64-{take()}",
        "virtualization": f"{take()} {serial}",
        "sched_ext_ops": take(),
        "clocksource": f"/{take()}",
        "isolated_cpus": f"host@{take()}",
        "cgroup_cpu_limit": f"/user.slice/{take()}",
        "reasons": {"lsm": f"cannot read {take()}", take().lower(): "x"},
        "dmi_serial": take(),
        "addresses": [take(), {"mac": take()}],
        "cpus": [{"id": 0, "name": take()}],
        "nodes": [{"name": take()}],
        "vmstat": {take().lower(): take()},
        "mitigations": {f"/{take()}": "x"},
    }
    user, path, comm, group, ipc, seccomp, error, tokens_of = [take() for _ in range(8)]
    reason, series, noise, effective, flag, extra, probe = [take() for _ in range(7)]
    for identity, *texts in db.execute(
        "SELECT id, environment, agents, result, probes, flags FROM runs WHERE result IS NOT NULL"
    ).fetchall():
        environment, agents, result, probes, flags = map(json.loads, texts)
        environment["before"] |= state_of
        environment["after"] |= state_of
        environment[tokens_of] = tokens_of
        environment["build"]["commit_reason"] = f"/home/{user}"
        for agent in agents:
            agent |= {"pid": 4242424, "comm": comm, "path": f"/home/{path}"}
            agent["isolation"] = {"uid": 4242424, "user": user, "cgroup": f"/{group}", "ipc_namespace_reason": ipc}
            agent["isolation"]["seccomp_reason"] = seccomp
            agent["proof"]["tid"] = 4242424
            agent["proof"]["policy_reason"] = f"/proc/{extra}"
        result["latency_reason"] = f"/run/{reason}"
        result["steadiness"] = [{"figure": f"/{series}", "class": None}]
        result["noise"]["error"] = noise
        result["effective"]["object"] = effective
        result["effective"]["file_system"] = f"/mnt/{effective}"
        probes["after_reason"] = f"a@{probe}"
        db.execute(
            "UPDATE runs SET environment = ?, agents = ?, result = ?, probes = ?, flags = ?, error = ? WHERE id = ?",
            (
                *map(json.dumps, (environment, agents, result, probes, [*flags, f"/{flag}"])),
                f"cannot open /{error}",
                identity,
            ),
        )
    db.commit()
    db.close()
    seal(state / "ipclab.db")
    return [one for one in SECRETS if one not in left]


def test_no_secret_of_the_host_is_in_a_bundle(tmp_path):
    daemon = Daemon()
    try:
        daemon.start()
        identity = daemon.client().wait_final(daemon.client().post(SPEC)["id"])["id"]
        assert daemon.stop() == 0
        planted = plant(daemon.state)
        assert len(planted) >= 40
        daemon.start()
        stored = daemon.client().request("GET", f"/experiments/{identity}/runs").body.decode().upper()
        assert [one for one in planted if one not in stored] == [], "a secret that is not served shows nothing"
        name, packed = fetch(daemon.client(), identity)
        text = gzip.decompress(packed).decode().upper()
        assert [one for one in planted if one in text] == []
        assert "4242424" not in text and '"kernel_cmdline":"isolcpus=1 mitigations=off nohz_full=1"' in text.lower()
        before = document_of(packed)["runs"][0]["environment"]["before"]
        assert (before["kernel_release"], before["virtualization"]) == ("6.1.0-18-cloud-amd64", "other")
        (tmp_path / name).write_bytes(packed)
        bundle.verify(tmp_path / name)
    finally:
        daemon.remove()


BUNDLES = 120  # more than a page of the list


def test_bundles_in_any_order_are_one_set(known):
    """The set is known by a hash over what is served of it, by digest, without the ids of one database."""
    home = known[0].client()
    small = home.wait_final(home.post({"transport": "pipe", "messages": 50, "warmup_seconds": 0})["id"])
    assert small["state"] == "done"
    document = document_of(fetch(home, small["id"])[1])
    packed = [
        gzip.compress(bundle.canonical(document | {"host": f"host-{number}"}).encode(), 1) for number in range(BUNDLES)
    ]

    def content_of(client, one):
        rows = client.get(f"/experiments/{one['id']}/results")["items"]
        of_store = {"id": None, "imported": one["imported"] | {"taken_at": None}}
        served = [one | of_store, [row | {"run_ids": None} for row in rows], digest_of(fetch(client, one["id"])[1])]
        return bundle.canonical(served)

    def merged(order):
        target = Daemon()
        try:
            target.start()
            client = target.client()
            for one in order:
                assert send(client, one).status == 201
            found = client.items("/experiments?limit=100")
            assert sorted(one["imported"]["sha256"] for one in found) == sorted(map(digest_of, packed))
            text = "".join(sorted(content_of(client, one) for one in found))
            return hashlib.sha256(text.encode()).hexdigest()
        finally:
            target.remove()

    orders = [random.Random(seed).sample(packed, BUNDLES) for seed in (1, 2)]
    assert merged(orders[0]) == merged(orders[1])
