# SPDX-License-Identifier: MIT
"""Placement on a machine of two nodes, by an installed service: what the daemon stored as proof is held against what
the guest's kernel said of the same processes at the same time."""

import pytest
from judge import agree, check_named_placement, nodes_of_pages, sysfs_nodes
from lab import SOCKET, WINDOW, Lab, ids

SHAPE = "two nodes"


def test_package_brings_user_units_and_manual(lab: Lab):
    text = lab.sh("dpkg -L ipclab; id ipclab; systemctl show ipclabd -p Type,WatchdogUSec,Restart,Delegate,NRestarts")
    for part in ("man8/ipclabd.8.gz", "man8/ipclab-agent.8.gz", "man5/ipclabd.conf.5.gz", "ipclabd.socket",
                 "sysusers.d/ipclab.conf", "tmpfiles.d/ipclab.conf", "Type=notify", "WatchdogUSec=30s",
                 "Restart=on-failure", "Delegate=yes", "NRestarts=0"):  # fmt: skip
        assert part in text, f"{part} is not in\n{text}"
    status = dict(line.split(":\t") for line in lab.sh("cat /proc/$(pidof ipclabd)/status").splitlines())
    assert status["CapEff"] == status["CapBnd"] == status["CapAmb"] == "0" * 16
    assert status["Uid"].split()[0] == lab.sh("id -u ipclab").strip()
    assert lab.sh(f"stat -c '%a %U %G' {SOCKET}").split() == ["660", "ipclab", "ipclab"]
    assert "ready {" in lab.sh("journalctl -u ipclabd --no-pager")


def test_preset_of_the_study(lab: Lab):
    runs = lab.done({"preset": "fifo-numa-quick", **WINDOW})
    words = {run["point"]["placement"] if isinstance(run["point"]["placement"], str) else "default" for run in runs}
    assert words == {"same-node", "cross-node", "default"} and len(runs) == 9
    cpus = sysfs_nodes(lab)
    for run in runs:
        check_named_placement(run, cpus)
        agree(run, lab.look(run["id"]))
        for agent in run["agents"]:
            isolation = agent["isolation"]
            assert isolation["cgroup"] == isolation["ipc_namespace"] == "own", isolation
    lab.nothing_left()


def test_every_transport_that_has_pages(lab: Lab):
    transports = [t["name"] for t in lab.get("/transports")["items"] if t["available"] and "stream" in t["workloads"]]
    assert {"pipe", "fifo", "unix-stream", "shm-posix"} <= set(transports)
    runs = lab.done({"transport": transports, "placement": ["same-node", "cross-node"], **WINDOW,
                     "skip_impossible": True}, timeout=400)  # fmt: skip
    assert len(runs) == 2 * len(transports)
    cpus = sysfs_nodes(lab)
    for run in runs:
        check_named_placement(run, cpus)
        agree(run, lab.look(run["id"]))
    lab.nothing_left()


def test_as_numactl_binds(lab: Lab):
    """{"node": N, "memory": bind M} is numactl --cpunodebind=N --membind=M."""
    first, second = sorted(sysfs_nodes(lab))
    place = {"node": second, "memory": {"policy": "bind", "nodes": [first]}}
    [run] = lab.done({"transport": "pipe", "placement": {"sender": place, "receiver": place}, **WINDOW})
    look = lab.look(run["id"])
    numactl = lab.sh(f"numactl --cpunodebind={second} --membind={first} sh -c "
                     "'grep Cpus_allowed_list /proc/self/status; numactl --show'")  # fmt: skip
    allowed = ids(numactl.splitlines()[0].partition(":")[2])
    assert "policy: bind" in numactl and f"membind: {first}" in numactl
    agree(run, look)
    for agent in run["agents"]:
        assert look.agents[agent["pid"]].tasks[agent["pid"]].allowed == allowed


def test_all_pairs_of_nodes(lab: Lab):
    runs = lab.done({"transport": "pipe", "placement": "all-node-pairs", "duration_seconds": 1})
    cpus = sysfs_nodes(lab)
    pairs = {tuple(frozenset(agent["placement"]["cpus"]) for agent in run["agents"]) for run in runs}
    assert pairs == {(frozenset(a), frozenset(b)) for a in cpus.values() for b in cpus.values()}


def test_buffers_apart_from_their_agents(lab: Lab):
    first, second = sorted(sysfs_nodes(lab))
    spec = {
        "transport": ["pipe", "shm-posix"],
        "message_size": 65536,
        **WINDOW,
        "placement": {
            "sender": {"node": first, "memory": {"policy": "bind", "nodes": [first]}, "buffer": {"node": second}},
            "receiver": {"node": first, "memory": {"policy": "bind", "nodes": [first]}, "buffer": {"node": second}},
        },
    }
    for run in lab.done(spec):
        look = lab.look(run["id"])
        agree(run, look)
        for agent in run["agents"]:
            assert nodes_of_pages(agent["proof"]["pages"], "buffer", "ring") == {second}
            assert nodes_of_pages(agent["proof"]["pages"], "stack") == {first}
            apart = [m for m in look.agents[agent["pid"]].maps if m.anonymous and m.policy == f"bind:{second}"]
            assert sum(m.pages.get(second, 0) for m in apart) >= 16


@pytest.mark.parametrize("back", [False, True], ids=["for good", "and back"])
def test_a_moved_thread_is_found_out(lab: Lab, back: bool):
    experiment = lab.post({"transport": "pipe", "placement": "same-node", "duration_seconds": 8})
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
    experiment = lab.post({"transport": "pipe", "placement": "same-node", "duration_seconds": 8})
    run = lab.meanwhile(f"migratepages $second {first} {second}")
    assert lab.wait(experiment)["state"] == "failed"
    error = lab.get(f"/runs/{run}")["error"]
    assert error.startswith("placement_violated: ") and f"on node {second}" in error, error


@pytest.mark.parametrize(
    "how", ["systemctl restart ipclabd", "systemctl kill -s KILL --kill-whom=main ipclabd"], ids=["restart", "kill -9"]
)
def test_daemon_gone_in_mid_run(lab: Lab, how: str):
    experiment = lab.post({"transport": "pipe", "placement": ["same-node", "cross-node"], "duration_seconds": 8})
    run = lab.meanwhile(
        f"{how}; until [ $(systemctl is-active ipclabd) = active ] && ! kill -0 $first 2>/dev/null; do sleep 0.5; done"
    )
    assert lab.wait(experiment)["state"] == "done"
    runs = lab.runs(experiment)
    assert len(runs) == 2 and all(r["state"] == "done" for r in runs)
    [again] = [r for r in runs if r["id"] == run]
    if "KILL" in how:
        assert again["attempt"] == 2
    else:  # a stop in order does not count as an attempt
        assert f"run {run} of experiment {experiment} is interrupted" in lab.sh("journalctl -u ipclabd --no-pager")
    lab.nothing_left()


BALANCING = "/proc/sys/kernel/numa_balancing"
CONFIG = "/etc/ipclab/ipclabd.conf"


def test_tuning_is_the_administrators_to_allow(lab: Lab):
    problem = lab.refused({"transport": "pipe", "tune": {"numa_balancing": True}})
    assert "host_tuning = true" in problem["detail"], problem
    asked = lab.sh("setpriv --reuid ipclab --clear-groups perl -MIO::Socket::UNIX -e '"
                   "$s = IO::Socket::UNIX->new(Peer => \"/run/ipclab-tune.sock\") or die; "
                   "print $s \"numa_balancing=0\\n\"; $s->flush; print <$s>'")  # fmt: skip
    assert "host_tuning is not true" in asked, "the daemon's word alone changes nothing"
    assert "Permission denied" in lab.sh("setpriv --reuid nobody --clear-groups perl -MIO::Socket::UNIX -e '"
                  "print IO::Socket::UNIX->new(Peer => \"/run/ipclab-tune.sock\") ? 1 : $!'")  # fmt: skip


@pytest.fixture
def tuned(lab: Lab):
    """host_tuning is on, balancing off, as an administrator may have left it."""
    lab.sh(f"mkdir -p /etc/ipclab; echo 'host_tuning = true' >{CONFIG}; systemctl restart ipclabd; echo 0 >{BALANCING}")
    yield lab
    lab.sh(f"rm {CONFIG}; systemctl restart ipclabd; echo 1 >{BALANCING}")


def test_balancing_is_switched_for_the_run_and_put_back(tuned: Lab):
    spec = {"transport": "pipe", "duration_seconds": 3, "require": {"numa_balancing": True}}
    experiment = tuned.post({**spec, "tune": {"numa_balancing": True}})
    tuned.meanwhile(f"[ $(cat {BALANCING}) = 1 ]")
    assert tuned.wait(experiment)["state"] == "done"
    assert tuned.sh(f"cat {BALANCING}").strip() == "0"
    [run] = tuned.runs(experiment)
    numa = run["result"]["numa"]
    for name in ("numa_hit", "numa_miss", "numa_pages_migrated", "numa_hint_faults"):
        assert isinstance(numa[name], int), numa
    assert numa["numa_hit"] > 0

    experiment = tuned.post(spec)  # without tune nothing is changed, and the precondition is not met
    assert tuned.wait(experiment)["state"] == "failed"
    assert "kernel.numa_balancing" in tuned.runs(experiment)[0]["error"]


def test_balancing_is_put_back_after_a_kill(tuned: Lab):
    experiment = tuned.post({"transport": "pipe", "duration_seconds": 8, "tune": {"numa_balancing": True}})
    dropin = "/run/systemd/system/ipclabd.service.d"
    tuned.sh(f"mkdir -p {dropin}; printf '[Service]\\nRestart=no\\n' >{dropin}/once.conf; systemctl daemon-reload")
    tuned.meanwhile(f"[ $(cat {BALANCING}) = 1 ] && systemctl kill -s KILL ipclabd; "
                    "until [ $(systemctl is-active ipclabd) = failed ]; do sleep 0.2; done")  # fmt: skip
    tuned.sh(f"rm -r {dropin}; systemctl daemon-reload")
    assert tuned.sh(f"cat {BALANCING}").strip() == "1", "nobody is there to put it back"
    tuned.sh("systemctl start ipclabd")
    journal = tuned.sh("journalctl -u ipclabd -n 50 --no-pager")
    assert "kernel.numa_balancing is 0 again" in journal
    assert tuned.wait(experiment)["state"] == "done"
    assert tuned.sh(f"cat {BALANCING}").strip() == "0"


def test_the_socket_unit_starts_the_service(lab: Lab):
    lab.sh("systemctl stop ipclabd; test ! -e /run/ipclab/ipclabd.sock; systemctl start ipclabd.socket")
    assert lab.get("/health")["status"]
    lab.sh("systemctl stop ipclabd; test -S /run/ipclab/ipclabd.sock")
    assert "200" in lab.sh("curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8620/health")
    lab.sh("systemctl stop ipclabd.socket ipclabd; systemctl start ipclabd")
    assert lab.get("/health")["status"]


def test_power_cut_in_the_middle_of_the_queue(lab: Lab):
    """Last of this machine: what was acknowledged before the cut is there after it, and ends."""
    spec = {"transport": "pipe", "placement": ["same-node", "default"], "duration_seconds": 2}
    acknowledged = [lab.post({**spec, "name": f"queue {n}"}) for n in range(4)]
    lab.meanwhile("true")
    lab.guest.kill()
    lab.boot()
    for n, experiment in enumerate(acknowledged):
        found = lab.wait(experiment)
        assert found["name"] == f"queue {n}" and found["state"] == "done", found
        runs = lab.runs(experiment)
        assert len(runs) == 2 and all(run["state"] == "done" for run in runs)
        assert all(sum(s["messages"] for s in lab.get(f"/runs/{run['id']}/samples?limit=1000")["items"]
                       if s["agent"] == "receiver") == run["result"]["messages"] for run in runs)  # fmt: skip
    lab.nothing_left()
