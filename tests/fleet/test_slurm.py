# SPDX-License-Identifier: MIT
"""A campaign through Slurm as Debian has it: munge, slurmctld and a slurmd per host on this machine, over loopback."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from conftest import LONG, PATIENCE_SECONDS, PYTHON, fleet
from test_campaign import RUNS, create, export_or_busy, hosts_of, place, remove  # noqa: F401 - a fixture

HOSTS, KILLS = (8, 3) if LONG else (3, 1)
PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}

CONFIGURATION = """
ClusterName=ipclab
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={base}/munge/socket
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort={port}
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool/%n
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/%n.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def free_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Slurm:
    def __init__(self, hosts):
        self.base = Path(tempfile.mkdtemp(prefix="ipclab-slurm-"))
        self.base.chmod(0o755)
        for name in ("munge", "state", *(f"spool/{host}" for host in hosts)):
            (self.base / name).mkdir(parents=True)
        self.hosts, self.processes, self.resumed = hosts, [], []
        self.environment = os.environ | {"SLURM_CONF": str(self.base / "slurm.conf")}
        self.configure()
        try:
            self.start_munge()
            self.start_controller()
            for host in hosts:
                self.start("slurmd", "-D", "-N", host)
            self.wait_idle()
        except BaseException:
            self.stop()
            raise

    def configure(self):
        machine, (port, *ports) = socket.gethostname().partition(".")[0], free_ports(1 + len(self.hosts))
        text = CONFIGURATION.format(host=machine, user=pwd.getpwuid(os.geteuid()).pw_name, base=self.base, port=port)
        for host, node_port in zip(self.hosts, ports, strict=True):
            text += f"NodeName={host} NodeHostname={machine} NodeAddr=127.0.0.1 Port={node_port} CPUs=1 State=UNKNOWN\n"
        (self.base / "slurm.conf").write_text(text)

    def start(self, *command, **more):
        with (self.base / f"{command[0]}.out").open("ab") as out:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environment, **more
            )
        self.processes.append(process)
        return process

    def start_munge(self):
        where, more = self.base / "munge", {}
        (where / "key").write_bytes(os.urandom(128))
        (where / "key").chmod(0o600)
        where.chmod(0o755)
        if os.geteuid() == 0:  # munged refuses to have its files belong to somebody else
            user = pwd.getpwnam("munge")
            more = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            for path in (where, where / "key"):
                os.chown(path, user.pw_uid, user.pw_gid)
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        self.start("munged", "--foreground", *(f"--{option}={where / name}" for option, name in files.items()), **more)
        self.wait(lambda: (where / "socket").exists(), "munged")

    def start_controller(self):
        self.controller = self.start("slurmctld", "-D")

    def kill_controller(self):
        self.controller.kill()
        self.controller.wait()

    def wait(self, condition, what):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            logs = {path.name: path.read_text()[-800:] for path in self.base.glob("*.log")}
            assert time.monotonic() < deadline, (what, self.states(), logs)
            time.sleep(0.2)

    def ask(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=PATIENCE_SECONDS)
        return done.stdout.splitlines()

    def states(self):
        """host -> its state, and the reason for it"""
        return dict(line.split(" ", 1) for line in self.ask("sinfo", "--noheader", "--Node", "--format=%N %T %E"))

    def wait_idle(self):
        self.wait(self.are_idle, "idle nodes")

    def are_idle(self):
        """A controller that was killed before it saved gives the numbers of its jobs a second time, and drains a node
        whose job has such a number still. Slurm leaves it to the administrator to resume that (docs/fleet.md)."""
        states = self.states()
        for host, state in states.items():
            if state.startswith("drain") and "Duplicate jobid" in state:
                self.ask("scontrol", "update", f"NodeName={host}", "State=RESUME")
                self.resumed.append(host)
        return states == dict.fromkeys(self.hosts, "idle none")

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        shutil.rmtree(self.base, ignore_errors=True)


@pytest.fixture
def slurm():
    missing = sorted(package for program, package in PROGRAMS.items() if not shutil.which(program))
    if missing:
        pytest.skip(f"no Slurm: Debian's {', '.join(missing)}")
    cluster = Slurm([f"host{i}" for i in range(HOSTS)])
    yield cluster
    cluster.stop()


def test_controller_killed_while_it_accepts(slurm, dsn, base, place, monkeypatch):  # noqa: F811
    """slurmctld is killed as soon as it has accepted the jobs, each time. Jobs that it lost are dispatched again, those
    that it saved run twice, and each host has the campaign once."""
    monkeypatch.setenv("SLURM_CONF", slurm.environment["SLURM_CONF"])
    hosts = hosts_of(place, HOSTS)
    try:
        name = create(place, dsn, hosts)
        carry = f"{PYTHON} {Path(__file__).parent / 'carry.py'} {place} {{host}} {{post}}"
        via = f"sbatch --parsable --nodelist={{host}} --ntasks=1 --chdir=/ --output=/dev/null '--wrap={carry}'"
        run = ("run", name, "--via", via, "--rounds", 1, "--pause", 0, "--database", dsn)
        for _ in range(KILLS):
            fleet(*run, status=3)
            slurm.kill_controller()
            slurm.start_controller()
        assert base.execute("SELECT min(dispatches) FROM campaign_hosts").fetchone() == (KILLS,)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            slurm.wait_idle()
            for host in hosts:
                export_or_busy(dsn, host)
            if "incomplete" not in fleet(*run, status=None):
                break
            assert time.monotonic() < deadline, fleet("show", name, "--database", dsn, status=None)
        for host in hosts:
            (experiment,) = host.experiments()
            assert experiment["progress"]["runs_done"] == RUNS
        summary = "SELECT hosts_complete, runs_received, percent::float8 FROM campaign_summary"
        assert base.execute(summary).fetchall() == [(HOSTS, HOSTS * RUNS, 100.0)]
        print(f"{KILLS} times slurmctld; {len(slurm.resumed)} nodes resumed that it had drained")
    finally:
        remove(hosts)
