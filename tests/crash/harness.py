# SPDX-License-Identifier: MIT
"""An ipclabd of the tests' own that can be shot at, and the looks from outside at what it left behind.

Leftovers are never read from the daemon itself: processes come from /proc, files and cgroups from their directories.
The test process is made a subreaper, so that every orphan of a killed daemon becomes its child, and none can hide.
"""

import contextlib
import ctypes
import http.client
import os
import pwd
import signal
import time
from pathlib import Path

import ipclabtest.daemon
from ipclabtest import BUILD, FINAL, PATIENCE_SECONDS

__all__ = ["BUILD", "FINAL", "PATIENCE_SECONDS"]

ORPHAN_SECONDS = (
    20  # for agents of a killed daemon to exit, on the closed socket: without that they would stay for a minute
)
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS, CLONE_NEWIPC = 0x00020000, 0x08000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000


def become_subreaper():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


@contextlib.contextmanager
def frozen(tid):
    """Stops one thread of another process, by ptrace: a signal would stop all of its threads.

    Yields a function that reaps the thread, which its parent can do only after its tracer.
    """
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_ulong] * 4
    for what in (PTRACE_SEIZE, PTRACE_INTERRUPT):
        if ptrace(what, tid, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def reap():
        with contextlib.suppress(ChildProcessError):
            os.waitpid(tid, os.WNOHANG | WALL)

    yield reap
    reap()


def wait_for(condition, seconds, what):
    """Its first true value; fails when there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.01)


def process_table():
    """pid -> (parent, state, command) of every process."""
    table = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                text = Path("/proc", entry, "stat").read_text()
                command, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
                table[int(entry)] = (int(rest[1]), rest[0], command)
    return table


def descendants(pid):
    """pid -> (state, command) of everything below pid; zombies that are our own to reap are reaped and left out."""
    table, found, level = process_table(), {}, {pid}
    while level:
        level = {child for child, (parent, _, _) in table.items() if parent in level}
        found.update({child: table[child][1:] for child in level})
    return found


class Daemon(ipclabtest.daemon.Daemon):
    def __init__(self, *options, listen="none", **settings):
        super().__init__("--log-level=debug", *options, listen=listen, **settings)

    def remove(self):
        super().remove()
        for pid in self.left_processes() if self.process else ():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    # its API

    def request(self, method, target, body=None, headers=None, timeout=60):
        """(status, parsed body or None); OSError when there is no (whole) answer."""
        try:
            answer = self.client().request(method, target, body, headers, timeout)
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"broken answer: {error!r}") from error
        return answer.status, answer.json

    def get(self, target):
        status, body = self.request("GET", target)
        assert status == 200, f"GET {target}: {status} {body}"
        return body

    def items(self, target):
        return self.client().items(target)

    def post(self, spec, key=None):
        status, body = self.request("POST", "/experiments", spec, {"Idempotency-Key": key} if key else None)
        assert status in (200, 201), f"POST {spec}: {status} {body}"
        return body

    def experiment(self, identity):
        return self.get(f"/experiments/{identity}")

    def runs(self, identity):
        return self.items(f"/experiments/{identity}/runs")

    def wait_final(self, identity, seconds=PATIENCE_SECONDS):
        return wait_for(
            lambda: (e := self.experiment(identity))["state"] in FINAL and e, seconds, f"experiment {identity} to end"
        )

    def wait_running(self, identity, seconds=PATIENCE_SECONDS):
        """A run of the experiment that is running and whose agents are both there."""

        def look():
            return len(self.agents()) == 2 and [r for r in self.runs(identity) if r["state"] == "running"]

        return wait_for(look, seconds, f"a run of experiment {identity} to be running")[0]

    # from outside

    def agents(self):
        """role -> pid of the agents that run now."""
        found = {}
        for pid in descendants(self.process.pid):
            with contextlib.suppress(OSError, ValueError):
                name, role, _ = Path("/proc", str(pid), "cmdline").read_text().split("\0")
                if name == "ipclab-agent":
                    found[role] = pid
        return found

    def left_processes(self):
        """Descendants of the test that are no living daemon's, as pid -> (state, command); our zombies are reaped."""
        mine = {self.process.pid} | descendants(self.process.pid).keys() if self.process.poll() is None else set()
        left = {}
        for pid, (state, command) in descendants(os.getpid()).items():
            if pid in mine:
                continue
            if state == "Z":
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            else:
                left[pid] = (state, command)
        return left

    def left_cgroups(self):
        """The runs' cgroups; their names end in what names the state directory."""
        stat = self.state.stat()
        ending = f".ipclab-{stat.st_dev:x}-{stat.st_ino:x}"
        return [d + "/" + n for d, names, _ in os.walk("/sys/fs/cgroup") for n in names if n.endswith(ending)]

    def left_in_runtime(self):
        """All but the directory of the runs' directories, which stays, empty, for the next start."""
        return [str(path) for path in self.runtime.rglob("*") if path != self.runtime / "runs"]


def call(name, *arguments):
    """A function of the C library that is 0 or fails with errno."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


class Outside:
    """The namespaces that the tests were started in, for what is to run there: a function of a child, before exec."""

    def __init__(self):
        self.namespaces = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in ("ipc", "mnt")]

    def __call__(self):
        for namespace in self.namespaces:
            call("setns", namespace, 0)


def isolate_ipc():
    """Gives the tests, and every process that they start, IPC objects of their own: others' are never seen, and all
    that are seen are theirs. The namespaces of before; None where that takes privileges that the tests do not have.
    """
    if os.geteuid() != 0:
        return None
    outside = Outside()
    try:
        call("unshare", CLONE_NEWIPC | CLONE_NEWNS)
    except PermissionError:  # root of a container
        return None
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    call("mount", b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"mode=1777")
    if Path("/dev/mqueue").is_dir():
        call("mount", b"mqueue", b"/dev/mqueue", b"mqueue", 0, None)
    return outside


def agent_uid():
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()


def ipc_objects(isolated):
    """What outlives a process when nobody removes it: of any user where the tests are isolated. Where they are not,
    only that of the agents' user, who may have other programs, too.
    """
    found, uid = set(), agent_uid()
    for kind, column in (("msg", 7), ("sem", 4), ("shm", 7)):
        rows = [line.split() for line in Path("/proc/sysvipc", kind).read_text().splitlines()[1:]]
        found |= {f"{kind} {row[0]} {row[1]}" for row in rows if isolated or int(row[column]) == uid}
    for directory in ("/dev/shm", "/dev/mqueue"):
        with contextlib.suppress(OSError):
            for entry in os.scandir(directory):
                with contextlib.suppress(OSError):  # gone since
                    if isolated or entry.stat().st_uid == uid:
                        found.add(entry.path)
    return found
