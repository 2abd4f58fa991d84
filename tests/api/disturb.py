# SPDX-License-Identifier: MIT
"""A process that takes time away from a run, and knows exactly how much of it in each moment, against CLOCK_MONOTONIC,
on which a run's seconds are dated.

    disturb.py KIND CPU FILE [TARGET]

On CPU, by its own CPU time, which the kernel accounts to the nanosecond: preemptor (40 µs, 1000 times a second), duty
(30 % in bursts of 3 ms), spinner (all that it can have), tcp (a connection to itself over loopback, at most a third of
the time), interrupts (reads from the disk that FILE is on, each of which ends with an interrupt). On the other
hardware thread of CPU's core: sibling. On another CPU: softirq (sends packets that CPU receives in softirqs; by what a
loop on CPU lost for each before the disturbance began). Without CPU time of its own: stop (stops the agent on CPU of
the daemon TARGET for 100 ms, twice a second; the time of the stops), quota (limits the cgroup TARGET to a tenth of one
CPU; the time that it is throttled). It begins at once, ends with SIGTERM, and writes lines of "MONOTONIC_NS TAKEN_NS"
to FILE.
"""

import bisect
import contextlib
import mmap
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from flood import Flood

RECORD_NS = 5_000_000
END_SECONDS = 180  # for an interpreter to begin or to end, on a machine that may stand still for a while
EXCHANGES = 20
STOP_SECONDS = 0.1
BLOCK = 4096  # of a read that passes the page cache by
BLOCKS = 1024
READS = 3  # in a millisecond
FLOOD_BATCHES = 3
FLOOD_PAUSE = 0.0002, 0.0015
FLOOD = """
import sys
from flood import Flood
try:
    Flood(int(sys.argv[1]))
except OSError as error:
    sys.exit(str(error))
"""
LEAST_GAP_NS, MOST_GAP_NS = 2_000, 1_000_000
WATCHED_SECONDS, WATCHED_TURN_SECONDS, LEAST_WATCHED_NS, WATCHED_WITHIN_SECONDS = 1.5, 0.05, 100_000_000, 20
INTERRUPTS_PER_SECOND = 1500  # half as many again as a run is flagged for


class UnavailableError(Exception):
    """This machine cannot make the disturbance; the text is the reason."""


def spin(nanoseconds):
    """So much CPU time, not so much time: what displaces it does not shorten it."""
    end = time.thread_time_ns() + nanoseconds
    while time.thread_time_ns() < end:
        pass


def every(period_ns, work):
    """Calls work() each period; periods that were missed are left out."""
    due = time.monotonic_ns()
    while True:
        work()
        due = max(due + period_ns, time.monotonic_ns())
        yield
        time.sleep(max(0, due - time.monotonic_ns()) / 1e9)


def spinner():
    while True:
        spin(2_000_000)
        yield


def tcp():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        out = socket.create_connection(listener.getsockname())
        into, _ = listener.accept()
    data = bytes(65536)

    def exchange():
        for _ in range(EXCHANGES):
            out.sendall(data)
            got = 0
            while got < len(data):
                got += len(into.recv(len(data) - got))

    yield from every(5_000_000, exchange)


def disk_reads(folder):
    """Reads READS blocks with each call, past the page cache, from a file that is there no more."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(os.urandom(BLOCK * BLOCKS))
            file.flush()
            os.fsync(file.fileno())
            fd = os.open(file.name, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        raise UnavailableError(f"{folder} has no reads past the page cache: {error.strerror}") from error
    block, at = mmap.mmap(-1, BLOCK), 0

    def read():
        nonlocal at
        for _ in range(READS):
            os.preadv(fd, [block], at % BLOCKS * BLOCK)
            at += 1

    return read


def device_interrupts(cpu):
    """Those that a CPU has served: the numbered lines."""
    header, *lines = Path("/proc/interrupts").read_text().splitlines()
    column = header.split().index(f"CPU{cpu}") + 1
    return sum(int(line.split()[column]) for line in lines if line.split(":")[0].strip().isdigit())


def sibling_of(cpu):
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    words = path.read_text().strip().replace("-", ",").split(",")  # two of a core, or one
    others = [int(word) for word in words if int(word) != int(cpu)]
    if not others:
        raise UnavailableError(f"CPU {cpu} has its core for itself: there is no SMT")
    return others[0]


def another(cpu):
    others = sorted(os.sched_getaffinity(0) - {int(cpu)})
    if not others:
        raise UnavailableError(f"CPU {cpu} is the only one")
    return others[0]


def stat_ns(name):
    """The times of "cpu" or of "cpuN" in /proc/stat: user nice system idle iowait irq softirq."""
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith(f"{name} "):
            return [int(word) * 1_000_000_000 // os.sysconf("SC_CLK_TCK") for word in line.split()[1:8]]
    raise UnavailableError(f"{name} is not listed in /proc/stat")


def interrupts_are_apart():
    """As disturbance/cpu-time.c decides: the kernel accounts interrupts and softirqs exactly, and to no thread."""
    user, nice, system, _, _, irq, softirq = stat_ns("cpu")
    return irq > 0.0005 * (user + nice + system + irq + softirq)


def lost(readings):
    """Each reading of a thread's own CPU time but the first, and how far it is from the one before, if that is further
    than the loop takes: by interrupts, and softirqs, which the kernel adds to whatever thread they interrupt. What is
    longer than any such is a CPU that its host took away."""
    before = next(readings)
    for now in readings:
        yield now, now - before if LEAST_GAP_NS < now - before < MOST_GAP_NS else 0
        before = now


def watching_on(cpu, used, missed):
    """Spins, and keeps how much CPU time this process has had, and how much of it it missed."""
    os.sched_setaffinity(0, {cpu})
    for now, gap in lost(iter(time.thread_time_ns, None)):
        used.value = now
        missed.value += gap


class Watcher:
    """What interrupts and softirqs take of a CPU that is busy, as in a run: those of a CPU that idles cost more."""

    def __init__(self, cpu):
        self.used, self.missed = multiprocessing.RawValue("q", 0), multiprocessing.RawValue("q", 0)
        self.process = multiprocessing.Process(target=watching_on, args=(cpu, self.used, self.missed))
        self.process.start()

    def share(self, others):
        """How much more of its time it loses while others(seconds) is called, in turn with calls of sleep(): what else
        the machine does is in both."""
        ends = time.monotonic() + WATCHED_SECONDS, time.monotonic() + WATCHED_WITHIN_SECONDS
        sums = {time.sleep: [0, 0], others: [0, 0]}
        while time.monotonic() < ends[0] or min(used for used, _ in sums.values()) < LEAST_WATCHED_NS:
            for work, total in sums.items():
                before = self.used.value, self.missed.value
                work(WATCHED_TURN_SECONDS)
                total[0] += self.used.value - before[0]
                total[1] += self.missed.value - before[1]
            if time.monotonic() > ends[1]:
                raise UnavailableError("a process that only spins got next to nothing of its CPU")
        without, beside = (missed / used for used, missed in sums.values())
        return max(0, beside - without)

    def end(self):
        self.process.kill()
        self.process.join()


def softirq(cpu):
    """The packets come at random, as the clock interrupt does not see softirqs that come in step with it. What one
    takes is what a busy CPU loses to them beyond what it loses without. /proc/stat has it only where that is exact: the
    clock interrupt is a sample, and has from a third to twice of what the softirqs of a second took."""
    flood, sent, flooded_ns = Flood(cpu), 0, 0

    def turn():
        nonlocal sent
        sent += sum(flood.send() for _ in range(FLOOD_BATCHES))
        time.sleep(random.uniform(*FLOOD_PAUSE))

    def turns(seconds):
        nonlocal flooded_ns
        began = time.monotonic_ns()
        while time.monotonic_ns() < began + seconds * 1e9:
            turn()
        flooded_ns += time.monotonic_ns() - began

    watcher = Watcher(cpu)
    try:
        before, share = stat_ns(f"cpu{cpu}")[6], watcher.share(turns)
        taken = stat_ns(f"cpu{cpu}")[6] - before if interrupts_are_apart() else share * flooded_ns
        cost = taken / sent
    finally:
        watcher.end()
    while True:
        turn()
        yield int(sent * cost)


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def agent_on(cpu, daemon):
    for pid in children_of(daemon):
        with contextlib.suppress(OSError):  # gone since
            threads = [int(tid) for tid in os.listdir(f"/proc/{pid}/task")]
            named = Path(f"/proc/{pid}/comm").read_text().strip() == "ipclab-agent"
            if named and any(os.sched_getaffinity(tid) == {cpu} for tid in threads):
                return pid
    return None


def stopped(pid):
    """Stops a process for a while; how long."""
    agent, began = os.pidfd_open(pid), time.monotonic_ns()
    try:
        signal.pidfd_send_signal(agent, signal.SIGSTOP)
        time.sleep(STOP_SECONDS)
    finally:
        signal.pidfd_send_signal(agent, signal.SIGCONT)
        os.close(agent)
    return time.monotonic_ns() - began


def stop(cpu, daemon):
    """Yields before each stop and after it how long all of them were."""
    taken = 0
    while True:
        yield taken
        if pid := agent_on(cpu, daemon):
            with contextlib.suppress(ProcessLookupError):
                taken += stopped(pid)
        yield taken
        time.sleep(0.5 - STOP_SECONDS)


def quota(group):
    limited = QuotaGroup(group)
    limited.limit(0.1)  # less than the agents get of a busy machine, too
    try:
        while True:
            yield limited.throttled_ns()
            time.sleep(0.02)
    finally:
        limited.limit(None)


class QuotaGroup:
    """A cgroup below this process's own whose CPU time can be limited, in whichever version has the CPU controller."""

    def __init__(self, path):
        self.path = Path(path)
        self.v2 = (self.path / "cpu.max").exists()

    @classmethod
    def make(cls):
        path = cls.own() / f"ipclab-quota-{os.getpid()}"
        try:
            path.mkdir()
        except OSError as error:
            raise UnavailableError(f"no cgroup can be made: {error}") from error
        group = cls(path)
        if not group.v2 and not (path / "cpu.cfs_quota_us").exists():
            path.rmdir()
            raise UnavailableError(f"{path.parent} passes no CPU controller on")
        return group

    @staticmethod
    def own():
        """This process's, of the hierarchy with the CPU controller."""
        lists = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        groups = {word: path for _, words, path in lists for word in words.split(",")}
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
        for _, point, kind, options, *_ in mounts:
            if kind == "cgroup" and "cpu" in options.split(",") and "cpu" in groups:
                return Path(point + groups["cpu"])
        for _, point, kind, *_ in mounts:
            if kind == "cgroup2" and "cpu" not in groups and "" in groups:
                return Path(point + groups[""])
        raise UnavailableError("no cgroup hierarchy with a CPU controller is mounted")

    def join(self):
        """As preexec of a process whose children are to be limited."""
        (self.path / "cgroup.procs").write_text("0")

    def limit(self, cpus):
        quota = None if cpus is None else int(cpus * 100_000)
        if self.v2:
            (self.path / "cpu.max").write_text(f"{'max' if quota is None else quota} 100000")
        else:
            (self.path / "cpu.cfs_quota_us").write_text(str(-1 if quota is None else quota))

    def throttled_ns(self):
        count = dict(line.split() for line in (self.path / "cpu.stat").read_text().splitlines())
        return int(count["throttled_usec"]) * 1000 if self.v2 else int(count["throttled_time"])

    def remove(self):
        self.path.rmdir()


class Kind(NamedTuple):
    work: object  # (CPU, folder, target) -> a generator of the time taken; of None where that is its CPU time
    flag: str = "noisy:foreign-cpu"
    needs: str | None = None  # what the target is
    where: object = int  # CPU -> the one that it runs on


KINDS = {
    "preemptor": Kind(lambda *_: every(1_000_000, lambda: spin(40_000))),
    "duty": Kind(lambda *_: every(10_000_000, lambda: spin(3_000_000))),
    "spinner": Kind(lambda *_: spinner()),
    "tcp": Kind(lambda *_: tcp()),
    "interrupts": Kind(lambda _cpu, folder, _: every(1_000_000, disk_reads(folder)), "noisy:interrupts"),
    "sibling": Kind(lambda *_: spinner(), "noisy:smt-sibling", where=sibling_of),
    "softirq": Kind(lambda cpu, *_: softirq(cpu), "noisy:softirq", where=another),
    "stop": Kind(lambda cpu, _, daemon: stop(cpu, int(daemon)), "noisy:stopped", "daemon"),
    "quota": Kind(lambda _cpu, _, group: quota(group), "noisy:quota", "group"),
}
FOREIGN = [name for name, kind in KINDS.items() if kind.flag == "noisy:foreign-cpu"]


def require(kind, cpu, folder):
    """UnavailableError where this machine cannot make it."""
    KINDS[kind].where(cpu)
    if kind == "softirq":
        tried = subprocess.run(
            [sys.executable, "-c", FLOOD, str(cpu)], cwd=Path(__file__).parent, stderr=subprocess.PIPE
        )
        if tried.returncode:
            raise UnavailableError(f"no packets for CPU {cpu}: {tried.stderr.decode().strip()}")
    if kind == "quota":
        QuotaGroup.make().remove()
    if kind == "interrupts":
        before, own = device_interrupts(cpu), os.sched_getaffinity(0)
        os.sched_setaffinity(0, {cpu})
        try:
            until, read = time.monotonic() + 0.5, every(1_000_000, disk_reads(folder))
            while time.monotonic() < until:
                next(read)
        finally:
            os.sched_setaffinity(0, own)
        served = 2 * (device_interrupts(cpu) - before)
        if served < INTERRUPTS_PER_SECOND:
            raise UnavailableError(f"reads from the disk of {folder} raise {served} interrupts a second on CPU {cpu}")


class Disturber:
    """Such a process, from the moment when it has begun until end(); after that, what it took."""

    def __init__(self, kind, cpu, path, target=None):
        self.path = Path(path)
        words = [kind, str(cpu), path] + ([] if target is None else [str(target)])
        self.process = subprocess.Popen([sys.executable, __file__, *words])
        deadline = time.monotonic() + END_SECONDS
        while not (self.path.exists() and self.path.read_text().count("\n") > 2):
            if self.process.poll() is not None or time.monotonic() >= deadline:
                self.end()
                raise RuntimeError(f"the disturber {kind} does not begin")
            time.sleep(0.02)

    def end(self):
        self.process.terminate()
        self.process.wait(END_SECONDS)
        lines = [line.split() for line in self.path.read_text().splitlines()]
        self.records = [(int(at), int(cpu)) for at, cpu in (line for line in lines if len(line) == 2)]

    def between(self, begin_ns, interval_ns):
        """How long it was observed of that time, by the first and the last record within it, and what it took."""
        first = bisect.bisect_left(self.records, (begin_ns, 0))
        last = bisect.bisect_right(self.records, (begin_ns + interval_ns, 0)) - 1
        if last <= first:
            return 0, 0
        (since, before), (until, after) = self.records[first], self.records[last]
        return until - since, after - before

    def share(self, begin_ns, interval_ns):
        """What it took of that time, if it was there for most of it."""
        observed, taken = self.between(begin_ns, interval_ns)
        return taken / observed if observed > interval_ns / 2 else 0

    def least_share(self, begin_ns, interval_ns):
        """What it took of that time, if it was there for a part of it alone."""
        return self.between(begin_ns, interval_ns)[1] / interval_ns


def main(kind, cpu, path, target=None):
    if not KINDS[kind].needs:
        os.sched_setaffinity(0, {KINDS[kind].where(cpu)})
    ending = threading.Event()  # an exception is lost where the interpreter is in a finalizer
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    recorded = 0
    work = KINDS[kind].work(int(cpu), Path(path).parent, target)
    with open(path, "w", buffering=1) as file, contextlib.closing(work):
        for taken in work:
            now = time.monotonic_ns()
            if taken is not None or now - recorded >= RECORD_NS:
                file.write(f"{now} {time.process_time_ns() if taken is None else taken}\n")
                recorded = now
            if ending.is_set():
                break


if __name__ == "__main__":
    main(*sys.argv[1:])
