# SPDX-License-Identifier: MIT
"""A guest with ipclab installed as its administrator would: dpkg, systemctl, curl. And what the kernel itself says of
the agents while they run, read by a loop in the guest that knows nothing of ipclab but its cgroup."""

import json
import re
import shlex
import time
from dataclasses import dataclass, field

from guest import Guest, GuestError

SOCKET = "/run/ipclab/ipclabd.sock"
CGROUP = "/sys/fs/cgroup/system.slice/ipclabd.service"

# A second and a half after a run's agents are there, each with a thread beside its first one, they are in their window
# (WINDOW), and are looked at once. In one process without a fork, as an emulated machine is slow at these.
LOOK = r"""
use strict;
sub text { open(my $f, "<", $_[0]) or return ""; local $/; my $t = <$f>; return defined $t ? $t : "" }
sub nap { select(undef, undef, undef, $_[0]) }
sub glob_count { my @found = glob($_[0]); return scalar @found }
sub tasks {
    my ($pid, $kind) = @_;
    my $out = "";
    for my $task (glob("/proc/$pid/task/*")) {
        my ($tid) = $task =~ m{(\d+)$};
        my @stat = split " ", text("$task/stat") =~ s/.*\)//sr;
        $out .= "== $kind $tid $stat[36]\n" . join("", text("$task/status") =~ /^.*_allowed_list.*\n/mg);
    }
    return $out;
}
# A file of the run's cgroup; where the run has not that controller, of the nearest above.
sub above {
    my ($group, $name) = @_;
    for (; $group =~ m{^/sys/fs/cgroup}; $group =~ s{/[^/]*$}{}) {
        my $text = text("$group/$name");
        return "== cgroup $name $group\n$text" if $text ne "";
    }
    return "";
}
mkdir "/run/looks";
my %seen;
for (;; nap(0.1)) {
    for my $group (glob("CGROUP/run-*")) {
        my ($run) = $group =~ /run-(\d+)/;
        my @pids = split " ", text("$group/cgroup.procs");
        next if $seen{$run} || @pids < 2;
        next if grep { text("/proc/$_/cmdline") !~ /^ipclab-agent\0/ || glob_count("/proc/$_/task/*") < 2 } @pids;
        nap(1.5);
        my $out = "";
        for my $pid (@pids) {
            $out .= "== process $pid " . text("/proc/$pid/cmdline") =~ tr/\0/ /r . "\n" . text("/proc/$pid/status");
            $out .= "== pages $pid\n" . text("/proc/$pid/numa_maps") . tasks($pid, "task");
        }
        $out .= above($group, $_) for ("cpuset.cpus.effective", "cpuset.mems.effective", "memory.numa_stat");
        my ($daemon) = text("CGROUP/cgroup.procs") =~ /^(\d+)/;
        $out .= tasks($daemon, "daemon");
        open(my $f, ">", "/run/looks/.$run");
        print $f $out;
        close $f;
        rename "/run/looks/.$run", "/run/looks/$run";
        $seen{$run} = 1;
    }
}
""".replace("CGROUP", CGROUP)
WINDOW = {"warmup_seconds": 0.5, "duration_seconds": 3}
STUDY = {"preset": "fifo-numa", "repetitions": 1, **WINDOW}  # of 30 s and three repetitions, as it comes


def ids(text: str) -> set[int]:
    """The numbers in a list as the kernel writes it: 0-3,8."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


@dataclass
class Mapping:
    policy: str
    anonymous: bool
    file: str
    pages: dict[int, int]  # by node

    @property
    def shared(self) -> bool:
        return bool(re.match(r"/(memfd:|SYSV|dev/zero|dev/shm|dev/mqueue|run/ipclab)", self.file))


@dataclass
class Task:
    cpu: int
    allowed: set[int]


@dataclass
class Process:
    pid: int
    roles: list[str]  # two where an agent has made its twin, which has its command line, too
    status: dict[str, str] = field(default_factory=dict)
    maps: list[Mapping] = field(default_factory=list)
    tasks: dict[int, Task] = field(default_factory=dict)


@dataclass
class Look:
    agents: dict[int, Process]
    daemon: dict[int, Task]
    cgroup: dict[str, str] = field(default_factory=dict)  # file -> text


def parse_mapping(line: str) -> Mapping:
    _, policy, *rest = line.split()
    pairs = dict(word.partition("=")[::2] for word in rest)
    pages = {int(key[1:]): int(value) for key, value in pairs.items() if re.fullmatch(r"N\d+", key)}
    return Mapping(policy, "anon" in pairs, pairs.get("file", ""), pages)


def parse_look(text: str) -> Look:
    look = Look({}, {})
    process: Process | None = None
    task: Task | None = None
    section = file = ""
    for line in text.splitlines():
        if line.startswith("== "):
            section, *words = line[3:].split()
            if section == "process":
                process = Process(int(words[0]), words[2:4])
                look.agents[process.pid] = process
            elif section == "cgroup":
                file = words[0]
                look.cgroup[file] = ""
            elif section in ("task", "daemon"):
                task = Task(int(words[1]), set())
                (process.tasks if section == "task" and process else look.daemon)[int(words[0])] = task
        elif section == "process" and process:
            key, _, value = line.partition(":")
            process.status[key] = value.strip()
        elif section == "cgroup":
            look.cgroup[file] += line + "\n"
        elif section == "pages" and process and re.match(r"[0-9a-f]+ ", line):
            process.maps.append(parse_mapping(line))
        elif line.startswith("Cpus_allowed_list:") and task:
            task.allowed = ids(line.partition(":")[2])
    return look


class Lab:
    def __init__(self, guest: Guest):
        self.guest = guest
        self.boot()

    def boot(self, before: str = "true") -> None:
        """Up to a running service. The disk is the machine's memory of all this; the rest is new at each boot. `before`
        is what the administrator does before the service starts."""
        self.guest.start(timeout=240)
        self.sh("modprobe virtio_blk; mkdir -p /var/lib/ipclab; mount /dev/vda /var/lib/ipclab")
        self.install = self.sh("dpkg -i /root/ipclab.deb", timeout=180)
        self.sh(f"{before}; systemctl start ipclabd", timeout=120)
        self.sh(f"nohup perl -e {shlex.quote(LOOK)} >/run/look.log 2>&1 &")

    def sh(self, command: str, timeout: float = 120, check: bool = True) -> str:
        return self.guest.run(command, timeout, check)

    def curl(self, arguments: str, timeout: float = 60) -> str:
        return self.sh(f"curl -sS -m 30 --unix-socket {SOCKET} {arguments}", timeout)

    def get(self, path: str):
        return json.loads(self.curl(shlex.quote(f"http://localhost{path}")))

    def post(self, spec: dict) -> int:
        """The id of the experiment that was acknowledged."""
        answer = self.curl(f"-w '\\n%{{http_code}}' -d {shlex.quote(json.dumps(spec))} http://localhost/experiments")
        body, _, status = answer.rpartition("\n")
        assert status == "201", f"POST answered {status}: {body}"
        return json.loads(body)["id"]

    def refused(self, spec: dict) -> dict:
        answer = self.curl(f"-w '\\n%{{http_code}}' -d {shlex.quote(json.dumps(spec))} http://localhost/experiments")
        body, _, status = answer.rpartition("\n")
        assert status == "422", f"POST answered {status}: {body}"
        return json.loads(body)

    def wait(self, experiment: int, timeout: float = 240) -> dict:
        """The experiment once it has ended. The guest is left alone between looks: they cost it CPU time."""
        deadline = time.monotonic() + timeout
        while True:
            found = self.get(f"/experiments/{experiment}")
            if found["state"] not in ("queued", "running"):
                return found
            if time.monotonic() > deadline:
                journal = self.sh("journalctl -u ipclabd -n 20 --no-pager")
                raise GuestError(f"experiment {experiment} has not ended in {timeout} s: {found}\n{journal}")
            time.sleep(2)

    def experiments(self) -> list[dict]:
        """All there are, newest first."""
        found, path = [], "/experiments?limit=50"
        while path:
            page = self.get(path)
            found += page["items"]
            path = f"/experiments?limit=50&cursor={page['next']}" if page["next"] else None
        return found

    def runs(self, experiment: int) -> list[dict]:
        return self.get(f"/experiments/{experiment}/runs?limit=200")["items"]

    def done(self, spec: dict, timeout: float = 240) -> list[dict]:
        """Posts, waits, and holds every run to be done."""
        experiment = self.post(spec)
        found = self.wait(experiment, timeout)
        runs = self.runs(experiment)
        assert found["state"] == "done", [(run["point"], run["error"]) for run in runs if run["state"] != "done"]
        assert runs and all(run["state"] == "done" for run in runs)
        return runs

    def meanwhile(self, command: str, timeout: float = 90) -> int:
        """Runs a command while a run is in its window, with $first and $second its agents' pids. In one go: to ask and
        to be answered takes an emulated machine long. The run's id."""
        text = self.sh(f"until set -- {CGROUP}/run-*/cgroup.procs && [ -e $1 ] && [ $(wc -l <$1) -ge 2 ]; "
                       "do sleep 0.1; done 2>/dev/null; sleep 2; echo $1; set -- $(sort -n $1); first=$1 second=$2; "
                       + command, timeout)  # fmt: skip
        found = re.match(r".*/run-(\d+)\.", text)
        assert found, text
        return int(found[1])

    def look(self, run: int) -> Look:
        return parse_look(self.sh(f"cat /run/looks/{run}"))

    def nothing_left(self) -> None:
        left = self.sh(f"pgrep -a ipclab-agent; ls -d {CGROUP}/run-* 2>/dev/null; ls -A /run/ipclab/runs; "
                       "ls -A /dev/mqueue /dev/shm | grep -v :; ipcs | grep ^0x; true")  # fmt: skip
        assert not left.strip(), f"left behind: {left}"
