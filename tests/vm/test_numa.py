# SPDX-License-Identifier: MIT
"""Placement on a machine of two nodes, by an installed service: the daemon's stored proof is compared with the
guest kernel's report on the same processes at the same time."""

from collections import Counter

import pytest
from judge import CACHE, agree, check_named_placement, nodes_of_pages, pages_by_node, sysfs_nodes
from lab import BRIEF, PACED, SOCKET, STUDY, Lab, ids

SHAPE = "two nodes"
LONG = {"warmup_seconds": 0.5, "duration_seconds": 8, **PACED}  # of runs that something happens to


def test_package_brings_user_units_and_manual(lab: Lab):
    text = lab.sh("dpkg -L ipclab; id ipclab; systemctl show ipclabd -p Type,WatchdogUSec,Restart,Delegate,NRestarts")
    for part in ("man8/ipclabd.8.gz", "man8/ipclab-agent.8.gz", "man5/ipclabd.conf.5.gz", "ipclabd.socket",
                 "sysusers.d/ipclab.conf", "tmpfiles.d/ipclab.conf", "Type=notify", "WatchdogUSec=30s",
                 "Restart=on-failure", "Delegate=yes", "NRestarts=0"):  # fmt: skip
        assert part in text, f"{part} is not in\n{text}"
    status = dict(line.split(":\t") for line in lab.sh("cat /proc/$(pidof ipclabd)/status").splitlines())
    perfmon = f"{1 << 38:016x}"
    assert status["CapEff"] == status["CapBnd"] == status["CapAmb"] == perfmon
    assert status["Uid"].split()[0] == lab.sh("id -u ipclab").strip()
    assert lab.sh(f"stat -c '%a %U %G' {SOCKET}").split() == ["660", "ipclab", "ipclab"]
    assert "ready {" in lab.sh("journalctl -u ipclabd --no-pager")


def test_preset_of_the_study(lab: Lab):
    observed = lab.observed(STUDY)
    runs = [run for run, _ in observed]
    words = {run["point"]["placement"] if isinstance(run["point"]["placement"], str) else "default" for run in runs}
    assert words == {"same-node", "cross-node", "default"} and len(runs) == 9
    cpus = sysfs_nodes(lab)
    for run, look in observed:
        check_named_placement(run, cpus)
        agree(run, look)
        for agent in run["agents"]:
            isolation = agent["isolation"]
            assert isolation["cgroup"] == isolation["ipc_namespace"] == "own", isolation
    lab.nothing_left()


def apart(agent: int, buffer: int, roles: tuple[str, str] = ("sender", "receiver")) -> dict:
    """Both ends on one node, what carries their messages on another."""
    place = {"node": agent, "memory": {"policy": "bind", "nodes": [agent]}, "buffer": {"node": buffer}}
    return dict.fromkeys(roles, place)


def test_every_transport_that_has_pages(lab: Lab):
    first, second = sorted(sysfs_nodes(lab))
    transports = [t["name"] for t in lab.get("/transports")["items"] if t["available"] and "stream" in t["workloads"]]
    assert {"pipe", "fifo", "unix-stream", "shm-posix"} <= set(transports)
    places = ["cross-node", apart(second, first), apart(second, first, ("server", "client"))]
    observed = lab.observed({"transport": transports, "placement": places, "skip_impossible": True}, timeout=400)
    assert Counter(run["point"]["transport"] for run, _ in observed) == dict.fromkeys(transports, 2)
    cpus = sysfs_nodes(lab)
    for run, look in observed:
        check_named_placement(run, cpus)
        agree(run, look)
        if run["point"]["placement"] != "cross-node":
            for agent in run["agents"]:
                assert nodes_of_pages(agent["proof"]["pages"], "buffer", "ring", CACHE) == {first}, run["point"]
                assert nodes_of_pages(agent["proof"]["pages"], "stack") == {second}, run["point"]
    lab.nothing_left()


def test_as_numactl_binds(lab: Lab):
    """{"node": N, "memory": bind M} is numactl --cpunodebind=N --membind=M; over tcp each thread
    has one of N's CPUs."""
    first, second = sorted(sysfs_nodes(lab))
    place = {"node": second, "memory": {"policy": "bind", "nodes": [first]}}
    [(run, look)] = lab.observed({"transport": "pipe", "placement": {"sender": place, "receiver": place}})
    numactl = lab.sh(f"numactl --cpunodebind={second} --membind={first} sh -c "
                     "'grep Cpus_allowed_list /proc/self/status; numactl --show'")  # fmt: skip
    allowed = ids(numactl.splitlines()[0].partition(":")[2])
    assert "policy: bind" in numactl and f"membind: {first}" in numactl
    agree(run, look)
    for agent in run["agents"]:
        assert look.agents[agent["pid"]].tasks[agent["pid"]].allowed == allowed
    [(run, look)] = lab.observed({"transport": "tcp", "placement": {"server": place, "client": place}})
    agree(run, look)
    used = []
    for agent in run["agents"]:
        assert not agent["placement"]["roam"] and agent["placement"]["memory"]["nodes"] == [first]
        used += [look.agents[agent["pid"]].tasks[thread["tid"]].allowed for thread in agent["proof"]["threads"]]
    assert len(used) == 2 and all(len(cpus) == 1 for cpus in used)
    assert used[0] | used[1] == allowed, "there are two, and each end has its own"


def test_all_pairs_of_nodes(lab: Lab):
    runs = lab.done({"transport": "pipe", "placement": "all-node-pairs", **BRIEF})
    cpus = sysfs_nodes(lab)
    pairs = {tuple(frozenset(agent["placement"]["cpus"]) for agent in run["agents"]) for run in runs}
    assert pairs == {(frozenset(a), frozenset(b)) for a in cpus.values() for b in cpus.values()}


def test_buffers_apart_from_their_agents(lab: Lab):
    first, second = sorted(sysfs_nodes(lab))
    spec = {"transport": ["pipe", "shm-posix"], "message_size": 1 << 20, "placement": apart(first, second)}
    for run, look in lab.observed(spec):
        agree(run, look)
        for agent in run["agents"]:
            assert nodes_of_pages(agent["proof"]["pages"], "buffer", "ring") == {second}
            assert nodes_of_pages(agent["proof"]["pages"], "stack") == {first}
            buffers = [m for m in look.agents[agent["pid"]].maps if m.anonymous and m.policy == f"bind:{second}"]
            assert sum(m.pages.get(second, 0) for m in buffers) >= 256
        if run["point"]["transport"] == "shm-posix":
            rings = sum((pages_by_node(agent["proof"]["pages"], "ring") for agent in run["agents"]), Counter())
            assert rings[second] > 256, "so many that the cgroup's count, which is a little late, cannot but show them"


def test_memory_policies(lab: Lab):
    first, second = sorted(sysfs_nodes(lab))
    policies = [{"policy": "preferred", "nodes": [second]}, {"policy": "local"},
                {"policy": "interleave", "nodes": [first, second]}]  # fmt: skip
    places = [{"node": first, "memory": memory} for memory in policies]
    spec = {"transport": "shm-posix", "message_size": 65536}
    observed = lab.observed({**spec, "placement": [{"sender": place, "receiver": place} for place in places]})
    assert len(observed) == 3
    expected = {"preferred": {second}, "local": {first}, "interleave": {first, second}}
    for run, look in observed:
        agree(run, look)
        nodes = expected.pop(run["agents"][0]["placement"]["memory"]["policy"])
        for agent in run["agents"]:
            if agent["role"] == "receiver":
                assert nodes_of_pages(agent["proof"]["pages"], "ring") == nodes, run["point"]
            assert nodes_of_pages(agent["proof"]["pages"], "buffer") <= nodes, run["point"]
            if len(nodes) == 2:
                private = [m.pages for m in look.agents[agent["pid"]].maps if m.anonymous and not m.shared]
                assert {node for pages in private for node in pages} == nodes, run["point"]
    assert not expected


@pytest.mark.parametrize("back", [False, True], ids=["for good", "and back"])
def test_a_moved_thread_is_found_out(lab: Lab, back: bool):
    experiment = lab.post({"transport": "pipe", "placement": "same-node", **LONG})
    run = lab.meanwhile(
        "was=$(taskset -pc $first | sed 's/.*: //'); other=$(((was + 1) % 4)); taskset -pc $other $first; "
        + ("taskset -pc $was $first" if back else "")
    )
    assert lab.wait(experiment)["state"] == "failed"
    error = lab.get(f"/runs/{run}")["error"]
    assert error.startswith("placement_violated: "), error
    lab.nothing_left()


def test_migrated_pages_are_found_out(lab: Lab):
    first, second = sorted(sysfs_nodes(lab))
    experiment = lab.post({"transport": "pipe", "placement": "same-node", **LONG})
    run = lab.meanwhile(f"migratepages $second {first} {second}")
    assert lab.wait(experiment)["state"] == "failed"
    error = lab.get(f"/runs/{run}")["error"]
    assert error.startswith("placement_violated: ") and f"on node {second}" in error, error


@pytest.mark.parametrize(
    "how", ["systemctl restart ipclabd", "systemctl kill -s KILL --kill-whom=main ipclabd"], ids=["restart", "kill -9"]
)
def test_daemon_gone_in_mid_run(lab: Lab, how: str):
    before = lab.journal_end()
    specs = [{"placement": "same-node", **LONG}, {"placement": "cross-node", **BRIEF}]
    experiment, behind = lab.post_all(*({"transport": "pipe", **spec} for spec in specs))
    run = lab.meanwhile(
        f"{how}; until [ $(systemctl is-active ipclabd) = active ] && ! kill -0 $first 2>/dev/null; do sleep 0.5; done"
    )
    [again] = lab.all_done(experiment)
    assert again["id"] == run
    lab.all_done(behind)
    if "KILL" in how:
        assert again["attempt"] == 2
    else:  # a stop in order does not count as an attempt
        lab.wait_for_journal(before, f"run {run} of experiment {experiment} is interrupted")
    lab.nothing_left()


BALANCING = "/proc/sys/kernel/numa_balancing"
CONFIG = "/etc/ipclab/ipclabd.conf"


def test_tuning_is_the_administrators_to_allow(lab: Lab):
    problem = lab.refused({"transport": "pipe", "tune": {"numa_balancing": True}})
    assert "host_tuning = true" in problem["detail"], problem
    reply = lab.sh("setpriv --reuid ipclab --clear-groups perl -MIO::Socket::UNIX -e '"
                   "$s = IO::Socket::UNIX->new(Peer => \"/run/ipclab-tune.sock\") or die; "
                   "print $s \"numa_balancing=0\\n\"; $s->flush; print <$s>'")  # fmt: skip
    assert "host_tuning is not true" in reply, "the daemon's request alone changes nothing"
    assert "Permission denied" in lab.sh("setpriv --reuid nobody --clear-groups perl -MIO::Socket::UNIX -e '"
                  "print IO::Socket::UNIX->new(Peer => \"/run/ipclab-tune.sock\") ? 1 : $!'")  # fmt: skip


ALLOW = f"mkdir -p /etc/ipclab; echo 'host_tuning = true' >{CONFIG}"


@pytest.fixture
def tuned(lab: Lab) -> Lab:
    """host_tuning is on, balancing off, as an administrator may have left it. It stays so."""
    lab.sh(f"systemctl -q is-active ipclabd && grep -qsx 'host_tuning = true' {CONFIG} || "
           f"{{ {ALLOW}; systemctl restart ipclabd; }}; echo 0 >{BALANCING}")  # fmt: skip
    return lab


def test_balancing_is_switched_for_the_run_and_put_back(tuned: Lab):
    spec = {"transport": "pipe", **LONG, "require": {"numa_balancing": True}}
    experiment = tuned.post({**spec, "tune": {"numa_balancing": True}})
    tuned.meanwhile(f"[ $(cat {BALANCING}) = 1 ]")
    found, [run] = tuned.wait_for_runs(experiment)
    assert found["state"] == "done"
    assert tuned.sh(f"cat {BALANCING}").strip() == "0"
    numa = run["result"]["numa"]
    for name in ("numa_hit", "numa_miss", "numa_pages_migrated", "numa_hint_faults"):
        assert isinstance(numa[name], int), numa
    assert numa["numa_hit"] > 0

    # one run's way back and the next one's change come one upon the other
    runs = tuned.done({**spec, "tune": {"numa_balancing": True}, "repetitions": 5, **BRIEF})
    assert len(runs) == 5
    assert tuned.sh(f"cat {BALANCING}").strip() == "0"

    experiment = tuned.post(spec)  # without tune nothing is changed, and the precondition is not met
    found, [run] = tuned.wait_for_runs(experiment)
    assert found["state"] == "failed" and "kernel.numa_balancing" in run["error"]


@pytest.mark.parametrize("allowed", [True, False], ids=["as before", "no longer allowed"])
def test_balancing_is_put_back_after_a_kill(tuned: Lab, allowed: bool):
    """To put back is always allowed; to change again is not."""
    dropin = "/run/systemd/system/ipclabd.service.d"
    tuned.sh(f"mkdir -p {dropin}; printf '[Service]\\nRestart=no\\n' >{dropin}/once.conf; systemctl daemon-reload")
    specs = [{**LONG, "tune": {"numa_balancing": True}}, BRIEF]
    experiment, plain = tuned.post_all(*({"transport": "pipe", **spec} for spec in specs))
    tuned.meanwhile(f"[ $(cat {BALANCING}) = 1 ] || exit 1; systemctl kill -s KILL ipclabd; "
                    "until [ $(systemctl is-active ipclabd) = failed ]; do sleep 0.2; done")  # fmt: skip
    tuned.sh(f"rm -r {dropin}; systemctl daemon-reload")
    assert tuned.sh(f"cat {BALANCING}").strip() == "1", "nobody is there to put it back"
    before = tuned.journal_end()
    tuned.sh(f"echo host_tuning = {str(allowed).lower()} >{CONFIG}; systemctl start ipclabd")
    tuned.wait_for_journal(before, "kernel.numa_balancing is 0, as before run")
    found, [run] = tuned.wait_for_runs(experiment)
    if allowed:
        assert found["state"] == "done"
    else:
        assert found["state"] == "failed" and "host_tuning" in run["error"]
    tuned.all_done(plain)
    assert tuned.sh(f"cat {BALANCING}").strip() == "0"
    assert tuned.get("/health")["problem"] is None


def test_a_failed_restore_is_reported_and_retried(tuned: Lab):
    """Nobody submits anything meanwhile."""
    experiment = tuned.post({"transport": "pipe", **LONG, "tune": {"numa_balancing": True}})
    tuned.meanwhile("systemctl stop ipclab-tune.socket")
    tuned.all_done(experiment)
    assert "kernel.numa_balancing cannot be restored to 0" in tuned.get("/health")["problem"]
    assert tuned.sh(f"cat {BALANCING}").strip() == "1"
    before = tuned.journal_end()
    tuned.sh(f"systemctl start ipclab-tune.socket; until [ $(cat {BALANCING}) = 0 ]; do sleep 0.2; done")
    tuned.wait_for_journal(before, "kernel.numa_balancing is 0, as before run")


def test_the_socket_unit_starts_the_service(lab: Lab):
    lab.sh("systemctl stop ipclabd; test ! -e /run/ipclab/ipclabd.sock; systemctl start ipclabd.socket")
    assert lab.get("/health")["status"]
    lab.sh("systemctl stop ipclabd; test -S /run/ipclab/ipclabd.sock")
    assert "200" in lab.sh("curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8620/health")
    lab.sh("systemctl stop ipclabd.socket ipclabd; systemctl start ipclabd")
    assert lab.get("/health")["status"]


def test_power_cut_in_the_middle_of_the_queue(tuned: Lab):
    """Last of this machine: what was acknowledged before the cut is there after it, and ends; what had ended is what it
    was; what the cut undid is not put back."""
    lab = tuned
    default = {"transport": "pipe", "placement": ["same-node", "default"], **BRIEF}
    # long enough that the first still runs when one has been deleted
    first = {"transport": "pipe", "duration_seconds": 15, "tune": {"numa_balancing": True}}
    specs = [first, default, default]
    named = [{**spec, "name": f"queue {n}"} for n, spec in enumerate(specs)]
    *acknowledged, gone = lab.post_all(*named, {**default, "name": "forgotten"})
    lab.curl(f"-X DELETE http://localhost/experiments/{gone}")
    lab.meanwhile(f"[ $(cat {BALANCING}) = 1 ]")
    before = lab.experiments()
    assert {found["id"] for found in before} >= set(acknowledged)
    lab.guest.kill()
    lab.boot(ALLOW)
    for n, experiment in enumerate(acknowledged):
        found, runs = lab.wait_for_runs(experiment)
        assert found["name"] == f"queue {n}" and found["state"] == "done", found
        assert len(runs) == len(specs[n].get("placement", [0])) and all(run["state"] == "done" for run in runs)
        samples = lab.get_all(*(f"/runs/{run['id']}/samples?limit=1000" for run in runs))
        assert all(sum(s["messages"] for s in its["items"] if s["agent"] == "receiver") == run["result"]["messages"]
                   for its, run in zip(samples, runs, strict=True))  # fmt: skip
    after = {found["id"]: found for found in lab.experiments()}
    assert set(after) == {found["id"] for found in before}
    for found in before:
        if found["state"] in ("done", "failed", "cancelled"):
            assert after[found["id"]] == found
    lab.nothing_left()
    assert lab.post(default) > gone, "an id is never used again, not even of one that was deleted"
    assert lab.sh(f"cat {BALANCING}").strip() == "1", "this boot's default, which no row of the last one changes"
