# SPDX-License-Identifier: MIT
"""A guest with ipclab as its administrator has it: the package, or its files, and systemctl. And the kernel's own
report on the agents while they run, read by a loop in the guest that knows nothing of ipclab but its cgroup."""

import contextlib
import json
import re
import shlex
import time
import warnings
from dataclasses import dataclass, field

from guest import Guest, GuestError

SOCKET = "/run/ipclab/ipclabd.sock"
CGROUP = "/sys/fs/cgroup/system.slice/ipclabd.service"

# A look at each run, once its agents are seen at work: since a reading before it no page has come or gone, the first
# thread of each has used so many ticks of a CPU, or left one so often (MOVED), and all are there still. A pause of
# fixed length instead would be too short on a slow day. The first thread of an agent wakes up ten times a second in its
# window, which has thirty of these. In one process without a fork, as an emulated machine is slow at these.
MOVED = 12
LOOK = r"""
use strict;
sub text { open(my $f, "<", $_[0]) or return ""; local $/; my $t = <$f>; return defined $t ? $t : "" }
sub nap { select(undef, undef, undef, $_[0]) }
sub glob_count { my @found = glob($_[0]); return scalar @found }
sub stat_of { return split " ", text("$_[0]/stat") =~ s/.*\)//sr }
sub tasks {
    my ($pid, $kind) = @_;
    my $out = "";
    for my $task (glob("/proc/$pid/task/*")) {
        my ($tid) = $task =~ m{(\d+)$};
        my @stat = stat_of($task);
        $out .= "== $kind $tid $stat[36]\n" . join("", text("$task/status") =~ /^.*_allowed_list.*\n/mg);
    }
    return $out;
}
# Ticks on a CPU and changes of what runs there.
sub work {
    my $task = "/proc/$_[0]/task/$_[0]";
    my @stat = stat_of($task);
    my $sum = $stat[11] + $stat[12];
    $sum += $_ for text("$task/status") =~ /^\w*voluntary_ctxt_switches:\s*(\d+)/mg;
    return $sum;
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
sub reading {
    my ($group, @pids) = @_;
    my ($out, $pages, @work) = ("", 0);
    for my $pid (@pids) {
        my $maps = text("/proc/$pid/numa_maps");
        $pages += $_ for $maps =~ /\bN\d+=(\d+)/g;
        push @work, work($pid);
        $out .= "== process $pid " . text("/proc/$pid/cmdline") =~ tr/\0/ /r . "\n" . text("/proc/$pid/status");
        $out .= "== pages $pid\n" . $maps . tasks($pid, "task");
    }
    $out .= above($group, $_) for ("cpuset.cpus.effective", "cpuset.mems.effective", "memory.numa_stat");
    my ($daemon) = text("CGROUP/cgroup.procs") =~ /^(\d+)/;
    $out .= tasks($daemon, "daemon");
    return {pids => "@pids", pages => $pages, work => \@work, text => $out};
}
sub same {
    my ($was, $is) = @_;
    return $was && $was->{pids} eq $is->{pids} && $was->{pages} == $is->{pages};
}
sub moved {
    my ($was, $is) = @_;
    return !grep { $is->{work}[$_] - $was->{work}[$_] < MOVED } 0 .. $#{$is->{work}};
}
mkdir "/run/looks";
my (%before, %seen);
for (;; nap(0.2)) {
    for my $group (glob("CGROUP/run-*")) {
        my ($run) = $group =~ /run-(\d+)/;
        next if $seen{$run};
        my @pids = split " ", text("$group/cgroup.procs");
        next if @pids < 2;
        next if grep { text("/proc/$_/cmdline") !~ /^ipclab-agent\0/ || glob_count("/proc/$_/task/*") < 2 } @pids;
        my $is = reading($group, @pids);
        $before{$run} = $is if !same($before{$run}, $is);
        next if !moved($before{$run}, $is) || join(" ", split " ", text("$group/cgroup.procs")) ne $is->{pids};
        open(my $f, ">", "/run/looks/.$run");
        print $f $is->{text};
        close $f;
        rename "/run/looks/.$run", "/run/looks/$run";
        $seen{$run} = 1;
        delete $before{$run};
    }
}
""".replace("CGROUP", CGROUP).replace("MOVED", str(MOVED))
LOOKED = "== end of the look at run"  # after each, when they are fetched
# Where an agent's threads and pages are does not depend on how many messages it sends; without a rate the emulation of
# two agents takes two of the host's CPUs, and everything else in the guest is slow.
PACED = {"rate": 100}
WINDOW = {"warmup_seconds": 0.5, "duration_seconds": 3, **PACED}
LONG_WINDOW = {"warmup_seconds": 0.5, "duration_seconds": 12, **PACED}  # when the machine stood still in the other one
LONG = {"warmup_seconds": 0.5, "duration_seconds": 8, **PACED}  # of runs that something happens to
ENDLESS = {"warmup_seconds": 0.5, "duration_seconds": 3600, **PACED}  # of those that are cancelled
# Nobody reads the figures of these runs. They end by count: a busy host may let half a second pass without a message.
BRIEF = {"warmup_seconds": 0, "messages": 200}
STUDY = {"preset": "fifo-numa", "repetitions": 1}  # the preset has three repetitions of 30 s


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
    pages: dict[int, int]  # by node, counted as the smallest
    page_kib: int

    @property
    def shared(self) -> bool:
        return bool(re.match(r"/(memfd:|SYSV|anon_hugepage|dev/zero|dev/shm|dev/mqueue|run/ipclab)", self.file))


@dataclass
class Task:
    cpu: int
    allowed: set[int]


@dataclass
class Process:
    pid: int
    roles: list[str]  # two where an agent has forked its peer, which has its command line, too
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
    page_kib = int(pairs.get("kernelpagesize_kB", 4))
    pages = {int(k[1:]): int(n) * page_kib // 4 for k, n in pairs.items() if re.fullmatch(r"N\d+", k)}
    return Mapping(policy, "anon" in pairs, pairs.get("file", ""), pages, page_kib)


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
    def __init__(self, guest: Guest, installs: bool = False):
        """installs: /root/ipclab.deb is to be installed; else the guest's RAM disk has what it contains."""
        self.guest = guest
        self.installs = installs
        self.boot()

    def boot(self, before: str = "true") -> None:
        """Up to a running service. The disk is the machine's memory of all this; the rest is new at each boot. `before`
        is what the administrator does before the service starts."""
        self.guest.start(timeout=240)
        self.sh("modprobe -a virtio_pci virtio_blk; mkdir -p /var/lib/ipclab; mount /dev/vda /var/lib/ipclab")
        if self.installs:
            self.sh("dpkg -i /root/ipclab.deb", timeout=180)
        self.sh(f"{before}; systemctl start ipclabd; nohup perl -e {shlex.quote(LOOK)} >/run/look.log 2>&1 &")

    def sh(self, command: str, timeout: float = 120, check: bool = True) -> str:
        return self.guest.run(command, timeout, check)

    def succeeds(self, command: str) -> bool:
        return self.sh(f"({command}) >/dev/null 2>&1 && echo yes", check=False).strip() == "yes"

    def ask(self, method: str, path: str, body: dict | None = None, timeout: float = 30) -> tuple[int, str]:
        """The status and the body of an answer of the API. By the shell's own loop, as to start a client takes an
        emulated machine longer than the answer."""
        text = "" if body is None else json.dumps(body)
        request = f"{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {len(text.encode())}\r\n"
        if text:
            request += "Content-Type: application/json\r\n"
        answer = self.guest.exchange(SOCKET, f"{request}\r\n{text}".encode(), timeout)
        head, _, content = answer.decode().partition("\r\n\r\n")
        if not head.startswith("HTTP/1."):
            raise GuestError(f"{method} {path}: no answer, but {answer}")
        return int(head.split()[1]), content

    def get(self, path: str):
        status, text = self.ask("GET", path)
        assert status == 200, f"GET {path} answered {status}: {text}"
        return json.loads(text)

    def get_all(self, *paths: str) -> list:
        return [self.get(path) for path in paths]

    def post(self, spec: dict) -> int:
        """The id of the experiment that was acknowledged."""
        status, text = self.ask("POST", "/experiments", spec)
        assert status == 201, f"POST answered {status}: {text}"
        return json.loads(text)["id"]

    def post_all(self, *specs: dict) -> list[int]:
        return [self.post(spec) for spec in specs]

    def refused(self, spec: dict) -> dict:
        status, text = self.ask("POST", "/experiments", spec)
        assert status == 422, f"POST answered {status}: {text}"
        return json.loads(text)

    def cancel(self, experiment: int) -> None:
        status, text = self.ask("POST", f"/experiments/{experiment}/cancel")
        assert 200 <= status < 300, f"the cancellation was answered {status}: {text}"

    def wait(self, experiment: int, timeout: float = 240) -> dict:
        """The experiment once it has ended."""
        return self.wait_for_runs(experiment, timeout)[0]

    def wait_for_runs(self, experiment: int, timeout: float = 240) -> tuple[dict, list[dict]]:
        """The experiment and its runs once it has ended. The stream of its events ends with it (or with the daemon,
        which is why the state is read), so that no polling is needed."""
        where = f"/experiments/{experiment}"
        deadline = time.monotonic() + timeout
        while True:
            # The stream may time out, or no daemon may answer; the next request fails if that persists.
            with contextlib.suppress(GuestError):
                self.ask("GET", f"{where}/events", timeout=max(1, deadline - time.monotonic()))
            found, runs = self.get_all(where, f"{where}/runs?limit=200")
            if found["state"] not in ("queued", "running"):
                return found, runs["items"]
            if time.monotonic() > deadline:
                journal = self.sh("journalctl -u ipclabd -n 20 --no-pager")
                raise GuestError(f"experiment {experiment} has not ended in {timeout} s: {found}\n{journal}")

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
        return self.all_done(self.post(spec), timeout)

    def all_done(self, experiment: int, timeout: float = 240) -> list[dict]:
        """Waits, and holds every run to be done; where one is not, its error is the assertion's message."""
        found, runs = self.wait_for_runs(experiment, timeout)
        assert found["state"] == "done", [(run["point"], run["error"]) for run in runs if run["state"] != "done"]
        assert runs and all(run["state"] == "done" for run in runs)
        return runs

    def observed(self, spec: dict, timeout: float = 240) -> list[tuple[dict, Look]]:
        """done(), and each run with its observation. A run that was over before it could be observed, as its machine
        stood still for so long, is done again, in a window that is longer than that."""
        runs = self.done({**spec, **WINDOW}, timeout)
        looks = self.looks(runs)
        missed = [run["point"] for run in runs if run["id"] not in looks]
        if missed:
            warnings.warn(f"runs were over before they were observed: {missed}", stacklevel=2)
            # where that were all, as one experiment, which then also has what is left out of it
            specs = [{**spec, **LONG_WINDOW, **point} for point in missed] if looks else [{**spec, **LONG_WINDOW}]
            again = [run for experiment in self.post_all(*specs) for run in self.all_done(experiment, timeout)]
            runs = [run for run in runs if run["id"] in looks] + again
            looks.update(self.looks(again))
            missed = [run["point"] for run in again if run["id"] not in looks]
            if missed:
                raise GuestError(f"runs were over before they were observed, the second time too: {missed}")
        return [(run, looks[run["id"]]) for run in runs]

    def meanwhile(self, command: str, timeout: float = 120) -> int:
        """Runs a command while a run is in its window, with $first and $second its agents' pids. In one command, as a
        round trip to an emulated machine takes long. Returns the run's id."""
        text = self.sh(f"""
            exec 9<> <(:)
            until set -- {CGROUP}/run-* && run=${{1##*/run-}} && run=${{run%%.*}} && [ -e "/run/looks/$run" ]; do
                [ $SECONDS -lt {timeout / 2:.0f} ] || {{ echo no run was seen at work; exit 3; }}
                read -r -t 0.1 -u 9
            done
            echo run $run
            set -- $(sort -n $1/cgroup.procs)
            [ $# -eq 2 ] || {{ echo it was over before anything could be done to it; exit 3; }}
            first=$1 second=$2
            {command}""", timeout)  # fmt: skip
        found = re.match(r"run (\d+)\n", text)
        assert found, text
        return int(found[1])

    def cancelled_at_work(self, experiment: int, seen: str = "true") -> dict:
        """Cancels the experiment once its only run is at work and the command `seen` succeeds. The run that ended."""
        deadline = time.monotonic() + 120
        while not any(run["state"] == "running" for run in self.runs(experiment)) or not self.succeeds(seen):
            assert time.monotonic() < deadline, f"no run of experiment {experiment} was seen at work"
            time.sleep(0.2)
        self.cancel(experiment)
        found, [run] = self.wait_for_runs(experiment)
        assert found["state"] == run["state"] == "cancelled", (found, run)
        return run

    def looks(self, runs: list[dict]) -> dict[int, Look]:
        """By run; without those that were over too early for one."""
        wanted = " ".join(str(run["id"]) for run in runs)
        text = self.sh(f"cd /run/looks; for n in {wanted}; do [ ! -e $n ] || {{ cat $n; echo {LOOKED} $n; }}; done")
        *parts, rest = re.split(rf"^{LOOKED} (\d+)\n", text, flags=re.MULTILINE)
        assert not rest, rest
        return {int(run): parse_look(part) for part, run in zip(parts[::2], parts[1::2], strict=True)}

    def journal_end(self) -> str:
        """The cursor for wait_for_journal(): an entry of the service's own. journalctl takes the first
        entry that passes its filter for the cursor's, and skips it; with a cursor of another unit that was the awaited
        one."""
        last = self.sh("journalctl --sync; journalctl -u ipclabd -q -n 1 -o cat --show-cursor")
        return last.splitlines()[-1].removeprefix("-- cursor: ")

    def wait_for_journal(self, after: str, words: str) -> None:
        """Waits until the service has logged this since: an entry appears later than the event."""
        journal = f"journalctl --sync; journalctl -u ipclabd --after-cursor={shlex.quote(after)} -o cat --no-pager"
        self.sh(f"until ({journal}) | grep -qF {shlex.quote(words)}; do sleep 0.5; done", timeout=60)

    def nothing_left(self) -> None:
        left = self.sh(f"pgrep -a ipclab-agent; ls -d {CGROUP}/run-* 2>/dev/null; ls -A /run/ipclab/runs; "
                       "ls -A /dev/mqueue /dev/shm | grep -v :; ipcs | grep ^0x; true")  # fmt: skip
        assert not left.strip(), f"left behind: {left}"
