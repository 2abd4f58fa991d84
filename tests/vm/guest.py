# SPDX-License-Identifier: MIT
"""A QEMU guest with a NUMA topology of the test's choice, and a root shell in it.

The guest is software-emulated (tcg): it needs no /dev/kvm and no privilege. Its whole system is the initial RAM disk
that make-root builds, with further files appended as a second archive; the shell talks over a Unix socket that is
the guest's second serial line. Killing the guest is a power cut: what it had not written to its disk is lost.
"""

import gzip
import os
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

QEMU = "qemu-system-x86_64"
MKE2FS = shutil.which("mke2fs", path=f"{os.environ['PATH']}:/usr/sbin") or "mke2fs"  # in the path of root alone
# In front of make-root; nothing else of this needs to be root.
AS_ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]
# Without what is the faster on a processor and the slower in its emulation: strings byte by byte (erms), a fifth level
# of page tables (la57), a lock around each access to a user's memory (smap).
CPU = "max,erms=off,la57=off,smap=off,smep=off"
# And without mitigations, auditing, watchdogs and self-tests. Programs and the kernel lie at the same addresses each
# time, so that the emulator finds what it has translated before: to start a program takes it less than half as long.
# The clock is the TSC, which takes neither a system call nor a device; by itself the kernel does not trust that of this
# processor.
APPEND = (
    "console=ttyS0 rdinit=/lib/systemd/systemd quiet panic=-1 mitigations=off init_on_alloc=0 audit=0 nowatchdog "
    "norandmaps nokaslr tsc=reliable cryptomgr.notests"
)
SHELL_GRACE = 30  # seconds in which the guest ends a command past its deadline, and reports it


@dataclass
class Node:
    """One NUMA node: its CPUs (a count, from the guest's next free one) and its memory in MiB; either may be 0."""

    cpus: int
    memory: int


@dataclass
class Machine:
    nodes: list[Node]
    distances: dict[tuple[int, int], int] = field(default_factory=dict)
    threads_per_core: int = 1

    def arguments(self) -> list[str]:
        cpus = sum(node.cpus for node in self.nodes)
        memory = sum(node.memory for node in self.nodes)
        args = ["-m", f"{memory}M", "-smp", f"{cpus},threads={self.threads_per_core}"]
        first = 0
        for number, node in enumerate(self.nodes):
            numa = f"node,nodeid={number}"
            if node.cpus:
                numa += f",cpus={first}-{first + node.cpus - 1}"
                first += node.cpus
            if node.memory:
                args += ["-object", f"memory-backend-ram,id=m{number},size={node.memory}M"]
                numa += f",memdev=m{number}"
            args += ["-numa", numa]
        for source in range(len(self.nodes)):
            for target in range(source + 1, len(self.nodes)):
                distance = self.distances.get((source, target), 21)
                args += ["-numa", f"dist,src={source},dst={target},val={distance}"]
        return args


class GuestError(Exception):
    pass


def why_not() -> str | None:
    """None where guests can be had; else the reason."""
    for tool in (QEMU, "mmdebstrap", "cpio", MKE2FS):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    if AS_ROOT and (
        not shutil.which("sudo") or subprocess.run([*AS_ROOT, "true"], capture_output=True).returncode != 0
    ):
        return "building the guests' root needs root, or a sudo without a password"
    return None


class Guest:
    def __init__(self, root: Path, machine: Machine, files: dict[str, Path] | None = None, disk: Path | None = None):
        """root: make-root's output. files: path in the guest -> file or directory of the host, appended to the RAM
        disk."""
        self.root = root
        self.machine = machine
        self.disk = disk
        self.dir = Path(tempfile.mkdtemp(prefix="ipclab-vm-"))
        self.process: subprocess.Popen[bytes] | None = None
        self.shell: socket.socket | None = None
        self.pending = b""
        self.initrd = self._initrd(files or {})

    def _initrd(self, files: dict[str, Path]) -> Path:
        if not files:
            return self.root / "root.cpio"
        extra = self.dir / "extra"
        for name, source in files.items():
            target = extra / name.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copyfile(source, target)
        initrd = self.dir / "initrd.cpio"
        shutil.copyfile(self.root / "root.cpio", initrd)
        names = "\n".join(str(p.relative_to(extra)) for p in sorted(extra.rglob("*")))
        # whoever packs it, the directories are root's in the guest
        archive = subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet", "--owner=+0:+0"],
            cwd=extra,
            input=names.encode(),
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        with initrd.open("ab") as out:
            out.write(archive)
        return initrd

    def start(self, timeout: float = 120) -> None:
        line = self.dir / "shell.sock"
        line.unlink(missing_ok=True)
        self.pending = b""
        command = [
            QEMU, "-accel", "tcg,thread=multi", "-cpu", CPU, *self.machine.arguments(),
            "-kernel", str(self.root / "vmlinuz"), "-initrd", str(self.initrd),
            "-append", APPEND,
            "-display", "none", "-monitor", "none", "-no-reboot", "-nic", "none",
            "-serial", f"file:{self.dir / 'console.log'}", "-serial", f"unix:{line},server=on,wait=off",
        ]  # fmt: skip
        if self.disk:  # the host outlives the power cut: what the guest wrote is safe in its page cache
            command += ["-drive", f"file={self.disk},if=virtio,format=raw,cache=unsafe"]
        with (self.dir / "qemu.log").open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + timeout
        try:
            self.shell = self._connect(line, deadline)
            self._wait_for_shell(deadline)
        except BaseException:
            self.kill()
            raise

    def _connect(self, line: Path, deadline: float) -> socket.socket:
        while True:
            shell = socket.socket(socket.AF_UNIX)
            try:
                shell.connect(str(line))
                return shell
            except OSError:
                shell.close()
                self._check(deadline, "QEMU did not open its serial line")
                time.sleep(0.1)

    def _check(self, deadline: float, what: str) -> None:
        assert self.process
        if self.process.poll() is not None:
            raise GuestError(f"QEMU ended with {self.process.returncode}: {(self.dir / 'qemu.log').read_text()}")
        if time.monotonic() > deadline:
            console = (self.dir / "console.log").read_text(errors="replace")[-2000:]
            raise GuestError(f"{what} in time; the console's end: {console}")

    def _wait_for_shell(self, deadline: float) -> None:
        """The loop prints `ready` when the line is raw; an earlier command would be lost."""
        self._read_line(deadline)

    def _receive(self, deadline: float) -> None:
        assert self.shell
        self._check(deadline, f"the guest's shell did not answer (so far: {self.pending[-500:]!r})")
        self.shell.settimeout(1)
        try:
            part = self.shell.recv(1 << 16)
        except TimeoutError:
            return
        if not part:
            raise GuestError("the guest closed its serial line")
        self.pending += part

    def _read(self, length: int, deadline: float) -> bytes:
        while len(self.pending) < length:
            self._receive(deadline)
        answer, self.pending = self.pending[:length], self.pending[length:]
        return answer

    def _read_line(self, deadline: float) -> bytes:
        while b"\n" not in self.pending:
            self._receive(deadline)
        line, _, self.pending = self.pending.partition(b"\n")
        return line

    def _ask(self, given: bytes, timeout: float, socket_path: str = "") -> tuple[int, bytes]:
        """The status and the answer of the host's hands in the guest (make-root)."""
        assert self.shell
        deadline = time.monotonic() + timeout + SHELL_GRACE
        self.shell.settimeout(timeout)
        self.shell.sendall(f"{len(given)} {timeout:.0f} {socket_path}\n".encode() + given)
        status, length, packed = self._read_line(deadline).split()
        answer = self._read(int(length), deadline)
        return int(status), gzip.decompress(answer) if packed == b"gzip" else answer

    def run(self, command: str, timeout: float = 60, check: bool = True) -> str:
        """Runs a shell command in the guest and returns its output (both streams); with check it must exit 0. One that
        takes too long is ended there, so that the shell is free for what comes next."""
        status, answer = self._ask(command.encode(), timeout)
        output = answer.decode(errors="replace")
        if check and status != 0:
            raise GuestError(f"`{command}` exited {status} in the guest:\n{output}")
        return output

    def exchange(self, path: str, request: bytes, timeout: float) -> bytes:
        """What the guest's Unix socket answers to the request before it is closed."""
        status, answer = self._ask(request, timeout, path)
        if status != 0:
            raise GuestError(f"{path} in the guest: {answer.decode(errors='replace')}")
        return answer

    def kill(self) -> None:
        """The power cut."""
        if self.shell:
            self.shell.close()
            self.shell = None
        if self.process:
            self.process.kill()
            self.process.wait(10)
            self.process = None

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


def make_disk(path: Path, megabytes: int = 256) -> Path:
    with path.open("wb") as disk:
        disk.truncate(megabytes << 20)
    subprocess.run([MKE2FS, "-q", "-F", "-t", "ext4", str(path)], check=True)
    return path
