# SPDX-License-Identifier: MIT
"""The service on a machine of two nodes: an end in mid-run, host settings that are changed for a run and put back,
socket activation, and the power cut."""

import json

import pytest
from lab import BRIEF, ENDLESS, LONG, SOCKET, Lab

SHAPE = "two nodes"
GUEST = "two nodes, the service"  # of its own, beside the other one of this shape


@pytest.mark.parametrize(
    "how", ["systemctl restart ipclabd", "systemctl kill -s KILL --kill-whom=main ipclabd"], ids=["restart", "kill -9"]
)
def test_daemon_gone_in_mid_run(lab: Lab, how: str):
    before = lab.journal_end()
    specs = [{"placement": "same-node", **ENDLESS}, {"placement": "cross-node", **BRIEF}]
    experiment, behind = lab.post_all(*({"transport": "pipe", **spec} for spec in specs))
    run = lab.meanwhile(
        f"{how}; until [ $(systemctl is-active ipclabd) = active ] && ! kill -0 $first 2>/dev/null; do sleep 0.5; done"
    )
    again = lab.cancelled_at_work(experiment)
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
    spec = {"transport": "pipe", "require": {"numa_balancing": True}}
    experiment = tuned.post({**spec, **LONG, "tune": {"numa_balancing": True}})
    tuned.meanwhile(f"[ $(cat {BALANCING}) = 1 ]")
    found, [run] = tuned.wait_for_runs(experiment)
    assert found["state"] == "done"
    assert tuned.sh(f"cat {BALANCING}").strip() == "0"
    numa = run["result"]["numa"]
    for name in ("numa_hit", "numa_miss", "numa_pages_migrated", "numa_hint_faults"):
        assert isinstance(numa[name], int), numa
    assert numa["numa_hit"] > 0

    # one run's way back and the next one's change come one upon the other
    runs = tuned.done({**spec, "tune": {"numa_balancing": True}, "repetitions": 3, **BRIEF})
    assert len(runs) == 3
    assert tuned.sh(f"cat {BALANCING}").strip() == "0"

    experiment = tuned.post({**spec, **BRIEF})  # without tune nothing is changed, and the precondition is not met
    found, [run] = tuned.wait_for_runs(experiment)
    assert found["state"] == "failed" and "kernel.numa_balancing" in run["error"]


@pytest.mark.parametrize("allowed", [True, False], ids=["as before", "no longer allowed"])
def test_balancing_is_put_back_after_a_kill(tuned: Lab, allowed: bool):
    """To put back is always allowed; to change again is not."""
    dropin = "/run/systemd/system/ipclabd.service.d"
    tuned.sh(f"mkdir -p {dropin}; printf '[Service]\\nRestart=no\\n' >{dropin}/once.conf; systemctl daemon-reload")
    specs = [{**ENDLESS, "tune": {"numa_balancing": True}}, BRIEF]
    experiment, plain = tuned.post_all(*({"transport": "pipe", **spec} for spec in specs))
    tuned.meanwhile(f"[ $(cat {BALANCING}) = 1 ] || exit 1; systemctl kill -s KILL ipclabd; "
                    "until [ $(systemctl is-active ipclabd) = failed ]; do sleep 0.2; done")  # fmt: skip
    tuned.sh(f"rm -r {dropin}; systemctl daemon-reload")
    assert tuned.sh(f"cat {BALANCING}").strip() == "1", "nobody is there to put it back"
    before = tuned.journal_end()
    tuned.sh(f"echo host_tuning = {str(allowed).lower()} >{CONFIG}; systemctl start ipclabd")
    tuned.wait_for_journal(before, "kernel.numa_balancing is 0, as before run")
    if allowed:
        tuned.cancelled_at_work(experiment, f"[ $(cat {BALANCING}) = 1 ]")
    else:
        found, [run] = tuned.wait_for_runs(experiment)
        assert found["state"] == "failed" and "host_tuning" in run["error"]
    tuned.all_done(plain)
    assert tuned.sh(f"cat {BALANCING}").strip() == "0"
    assert tuned.get("/health")["problem"] is None


def test_a_failed_restore_is_reported_and_retried(tuned: Lab):
    """Nobody submits anything meanwhile."""
    experiment = tuned.post({"transport": "pipe", **ENDLESS, "tune": {"numa_balancing": True}})
    tuned.meanwhile("systemctl stop ipclab-tune.socket")
    tuned.cancelled_at_work(experiment)
    status, health = tuned.ask("GET", "/health")
    assert status == 503 and "kernel.numa_balancing cannot be restored to 0" in json.loads(health)["problem"], health
    assert tuned.sh(f"cat {BALANCING}").strip() == "1"
    before = tuned.journal_end()
    tuned.sh(f"systemctl start ipclab-tune.socket; until [ $(cat {BALANCING}) = 0 ]; do sleep 0.2; done")
    tuned.wait_for_journal(before, "kernel.numa_balancing is 0, as before run")


def test_the_socket_unit_starts_the_service(lab: Lab):
    lab.sh("systemctl stop ipclabd; test ! -e /run/ipclab/ipclabd.sock; systemctl start ipclabd.socket")
    assert lab.get("/health")["status"]
    lab.sh("systemctl stop ipclabd; test -S /run/ipclab/ipclabd.sock")
    where = ("http://127.0.0.1:8620/health", f"--unix-socket {SOCKET} http://localhost/health")
    for given in where:  # as its administrator asks
        assert lab.sh(f"curl -s -o /dev/null -w '%{{http_code}}' {given}") == "200"
    lab.sh("systemctl stop ipclabd.socket ipclabd; systemctl start ipclabd")
    assert lab.get("/health")["status"]


def test_power_cut_in_the_middle_of_the_queue(tuned: Lab):
    """Last of this machine: what was acknowledged before the cut is there after it, and ends; what had ended is what it
    was; what the cut undid is not put back."""
    lab = tuned
    default = {"transport": "pipe", "placement": ["same-node", "default"], **BRIEF}
    # long enough that the first still runs when one has been deleted
    first = {"transport": "pipe", **LONG, "duration_seconds": 15, "tune": {"numa_balancing": True}}
    specs = [first, default, default]
    named = [{**spec, "name": f"queue {n}"} for n, spec in enumerate(specs)]
    *acknowledged, gone = lab.post_all(*named, {**default, "name": "forgotten"})
    status, text = lab.ask("DELETE", f"/experiments/{gone}")
    assert status == 204, text
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
