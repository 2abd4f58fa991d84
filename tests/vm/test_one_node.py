# SPDX-License-Identifier: MIT
"""One node of three CPUs: the daemon and the agents' leaders keep off those that are measured. And what the package
brings, and leaves."""

import re
import shlex
import signal
import time
from pathlib import Path

from judge import agree, check_named_placement, sysfs_nodes
from lab import BRIEF, SOCKET, STUDY, Lab

SHAPE = "one node"


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


def test_everybody_else_keeps_off_the_measured_cpus(lab: Lab):
    observed = lab.observed({"transport": ["pipe", "unix-stream"], "placement": ["same-cpu", "same-node"]})
    assert len(observed) == 4
    for run, look in observed:
        agree(run, look)
        measured = {cpu for agent in run["agents"] for cpu in agent["placement"]["cpus"]}
        assert len(measured) == (1 if run["point"]["placement"] == "same-cpu" else 2)
        assert look.daemon
        for task in look.daemon.values():  # .cpu of one that sleeps is where it once was
            assert not task.allowed & measured
        for agent in run["agents"]:
            workers = {thread["tid"] for thread in agent["proof"]["threads"]}
            leaders = [t for tid, t in look.agents[agent["pid"]].tasks.items() if tid not in workers]
            assert leaders
            for task in leaders:
                assert not task.allowed & measured
        assert run["environment"]["daemon"]["off_the_measured_cpus"] is True
    status = lab.sh("grep -h Cpus_allowed_list /proc/$(pidof ipclabd)/task/*/status | sort -u").split()
    assert status[1:] == ["0-2"], "the daemon came back after the run"


def test_preset_of_the_study(lab: Lab):
    """Its placements, with one message size and once each; what the machine has not is left out and listed, as the
    preset asks."""
    observed = lab.observed({**STUDY, "message_size": 1024})
    found = lab.get(f"/experiments/{observed[0][0]['experiment_id']}")
    left_out = {str(skipped["point"]["placement"]): skipped["reason"] for skipped in found["skipped"]}
    assert "one node" in left_out["cross-node"], left_out
    cpus = sysfs_nodes(lab)
    for run, look in observed:
        check_named_placement(run, cpus)
        agree(run, look)


def test_a_guest_that_stood_still(lab: Lab):
    """Its clock goes on while the emulator is stopped, its CPUs do not, and no steal is counted: the figures of that
    second are of a machine that was not there."""
    spec = {"transport": "shm-posix", "wait": "spin", "message_size": 1024, "placement": "same-node"}
    experiment = lab.post({**spec, "warmup_seconds": 0.5, "duration_seconds": 12})
    deadline = time.monotonic() + 120
    while not any(lab.get(f"/runs/{run['id']}/samples")["items"] for run in lab.runs(experiment)):
        assert time.monotonic() < deadline, f"experiment {experiment} has no sample"
        time.sleep(0.2)
    lab.guest.process.send_signal(signal.SIGSTOP)
    time.sleep(1)
    lab.guest.process.send_signal(signal.SIGCONT)
    (run,) = lab.all_done(experiment)
    worst = max(second["worst_standstill_share"] or 0 for second in run["result"]["noise"]["seconds"])
    assert worst > 0.3, run["result"]["noise"]
    assert "noisy:standstill" in run["flags"]


def test_all_pairs_of_cpus(lab: Lab):
    spec = {"transport": "pipe", "placement": "all-cpu-pairs", "message_size": 1024, "skip_impossible": True}
    runs = lab.done({**spec, **BRIEF}, timeout=300)
    pairs = {tuple(agent["placement"]["cpus"][0] for agent in run["agents"]) for run in runs}
    assert pairs == {(a, b) for a in range(3) for b in range(3)}


def counter_reasons(lab: Lab) -> list[dict]:
    """Why there are none: an emulated machine has no counters, which is another reason than not to be allowed."""
    (run,) = lab.done({"transport": "pipe", **BRIEF})
    return [counted["reasons"] for counted in run["result"]["counters"].values()]


def test_the_daemon_may_count_what_its_agents_may_not(lab: Lab):
    dropin = "/run/systemd/system/ipclabd.service.d"
    level = "/proc/sys/kernel/perf_event_paranoid"
    assert lab.sh(f"cat {level}").strip() == "3"
    for reasons in counter_reasons(lab):
        assert "not allowed to ipclabd" in reasons["hardware"]

    lab.sh(f"echo 2 >{level}")
    for reasons in counter_reasons(lab):
        assert set(reasons) == {"hardware"} and "no such counter" in reasons["hardware"]

    bare = "[Service]\\nAmbientCapabilities=\\n"
    again = "systemctl daemon-reload; systemctl restart ipclabd"
    lab.sh(f"mkdir -p {dropin}; printf '{bare}' >{dropin}/bare.conf; {again}")
    for reasons in counter_reasons(lab):
        assert "hardware" not in reasons, "user and kernel mode have the same reason"
    lab.sh(f"rm -r {dropin}; echo 3 >{level}; {again}")


# Leaves a process behind that has the state directory as another daemon would, and prints its number.
TAKE_STATE = """
open $lock, "+>>", "/var/lib/ipclab/ipclab.lock" or die $!;
flock $lock, LOCK_EX | LOCK_NB or die $!;
$pid = fork // die $!;
if ($pid) { print $pid } else { close STDOUT; close STDERR; sleep }
"""


def test_a_service_that_cannot_start(lab: Lab):
    """What may pass is tried again for as long as it lasts, however few starts systemd would bear in ten seconds where
    it counted them; a bad setting, which a person has to mend, is not."""
    dropin = "/run/systemd/system/ipclabd.service.d"
    lab.sh(
        f"""
        systemctl stop ipclabd
        mkdir -p {dropin}; printf '[Unit]\\nStartLimitBurst=1\\n[Service]\\nRestartSec=100ms\\n' >{dropin}/soon.conf
        systemctl daemon-reload
        taker=$(perl -MFcntl=:flock -e {shlex.quote(TAKE_STATE)}) || exit 3
        systemctl start ipclabd
        until [ $(systemctl show ipclabd -P NRestarts) -gt 6 ]; do
            [ $(systemctl is-active ipclabd) != failed ] || {{ systemctl status ipclabd; exit 3; }}
            sleep 0.5
        done
        kill $taker
        until [ $(systemctl is-active ipclabd) = active ]; do sleep 0.5; done""",
        timeout=300,
    )
    assert lab.get("/health")["status"]

    lab.sh("mkdir -p /etc/ipclab; echo listen = nowhere >/etc/ipclab/ipclabd.conf; ! systemctl restart ipclabd")
    shown = lab.sh("systemctl show ipclabd -p ActiveState,ExecMainStatus,NRestarts")
    assert shown.split() == ["NRestarts=0", "ExecMainStatus=2", "ActiveState=failed"], shown
    lab.sh(f"rm -r {dropin} /etc/ipclab/ipclabd.conf; systemctl daemon-reload; systemctl start ipclabd")


def test_the_exporter_is_not_started_while_a_run_is_measured(lab: Lab):
    """The conditions of its unit with another program, as the guest has no Python. A timer goes on after them."""
    unit = (Path(__file__).parents[2] / "systemd/ipclab-export.service.in").read_text()
    conditions = "\\n".join(re.findall("^Condition.*", unit, re.MULTILINE))
    service = f"[Unit]\\n{conditions}\\n[Service]\\nType=oneshot\\nExecStart=/bin/touch /run/exported\\n"
    timer = "[Timer]\\nOnActiveSec=0\\nOnUnitInactiveSec=1s\\nAccuracySec=1ms\\n"
    lab.sh(f"cd /run/systemd/system; printf '{service}' >export.service; printf '{timer}' >export.timer")
    experiment = lab.post({"transport": "pipe", "warmup_seconds": 0, "duration_seconds": 3600, "rate": 10})
    lab.meanwhile("""systemctl daemon-reload; systemctl start export.timer
        show="systemctl show export.service -P"
        for i in $(seq 100); do [ -z "$($show ConditionTimestamp)" ] || break; sleep 0.2; done
        [ "$($show ConditionResult)" = no ] && [ ! -e /run/exported ]""")
    lab.cancel(experiment)
    lab.wait(experiment)
    lab.sh("for i in $(seq 300); do [ ! -e /run/exported ] || exit 0; sleep 0.2; done; exit 3")
    lab.sh("systemctl stop export.timer; cd /run/systemd/system; rm export.*; systemctl daemon-reload")


def test_upgrade_and_removal(lab: Lab):
    """Last of this machine: after an upgrade the new daemon serves where the old one did; after a removal nobody is
    left, and what was stored is; after a purge that has gone, too."""
    units = "systemctl is-active ipclabd.service ipclabd.socket ipclab-tune.socket"
    found = lab.get("/experiments")
    for started, wanted in (("ipclabd", ["active", "inactive", "active"]), ("ipclabd.socket", ["active"] * 3)):
        lab.sh(f"systemctl stop ipclabd; systemctl start {started}")
        assert lab.get("/health")["status"]
        before = lab.sh("pidof ipclabd")
        lab.sh("dpkg -i /root/ipclab.deb", timeout=240)
        assert lab.get("/experiments") == found
        assert lab.sh(units, check=False).split() == wanted
        assert lab.sh("pidof ipclabd") != before
    lab.sh("dpkg -r ipclab", timeout=240)
    assert lab.sh(units, check=False).split() == ["inactive"] * 3
    assert not lab.sh("pgrep -a ipclab; ls -d /run/ipclab*.sock /run/ipclab/*.sock 2>/dev/null; true")
    lab.sh("test -e /var/lib/ipclab/ipclab.db")
    lab.sh("dpkg -P ipclab && mountpoint /var/lib/ipclab")
    assert lab.sh("ls -A /var/lib/ipclab").split() == ["lost+found"]
    lab.sh("umount /var/lib/ipclab; touch /var/lib/ipclab/ipclab.db")
    # without its configuration, which takes an emulated machine eight times as long
    lab.sh("dpkg --unpack /root/ipclab.deb && dpkg -P ipclab && test ! -e /var/lib/ipclab", timeout=240)
