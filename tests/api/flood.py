# SPDX-License-Identifier: MIT
"""Packets of others that a CPU receives in softirqs while no process of theirs runs on it, as those of a network card
are: a pair of devices in a network namespace of their own, the second of which hands what arrives to that CPU
(Documentation/networking/scaling.rst, RPS). The sender is on another CPU."""

import ctypes
import errno
import fcntl
import os
import socket
import struct
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_PRIVATE = 1 << 18 | 1 << 14  # and all below
ETH_P_IP = 0x0800
RTM_NEWLINK, REQUEST_CREATE_ACK = 16, 0x605
IFLA_IFNAME, IFLA_LINKINFO, IFLA_INFO_KIND = 3, 18, 1
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
OUT, INTO = "veth0", "flood"  # the kernel names the first of a pair, the caller the other
BATCH = 128


def check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def attribute(kind, data):
    length = 4 + len(data)
    return struct.pack("HH", length, kind) + data + bytes(-length % 4)


def add_pair():
    info = attribute(IFLA_LINKINFO, attribute(IFLA_INFO_KIND, b"veth\0"))
    body = bytes(16) + attribute(IFLA_IFNAME, INTO.encode() + b"\0") + info
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(struct.pack("IHHII", 16 + len(body), RTM_NEWLINK, REQUEST_CREATE_ACK, 1, 0) + body)
        (result,) = struct.unpack_from("i", netlink.recv(4096), 16)
    if result < 0:
        raise OSError(-result, f"a pair of devices cannot be made: {os.strerror(-result)}")


def bring_up(name):
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", name.encode(), IFF_UP))


class Header(ctypes.Structure):
    """struct msghdr of Linux, as sendmsg(2) has it."""

    _fields_ = (
        ("name", ctypes.c_void_p), ("name_length", ctypes.c_uint32), ("parts", ctypes.c_void_p),
        ("n_parts", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )  # fmt: skip


class Message(ctypes.Structure):
    _fields_ = (("header", Header), ("length", ctypes.c_uint))


class Part(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Flood:
    """Changes the network and mount namespaces of this process. OSError where it may not, or the kernel cannot."""

    def __init__(self, cpu):
        check(LIBC.unshare(CLONE_NEWNET | CLONE_NEWNS), "unshare")
        check(LIBC.mount(None, b"/", None, MS_PRIVATE, None), "mount")
        check(LIBC.mount(b"sysfs", b"/sys", b"sysfs", 0, None), "mount of /sys")  # of this network namespace
        add_pair()
        steering = Path(f"/sys/class/net/{INTO}/queues/rx-0/rps_cpus")
        if not steering.exists():
            raise OSError(errno.ENOENT, "the kernel does not hand packets to other CPUs (CONFIG_RPS)")
        words = [f"{(1 << cpu) >> shift & 0xFFFFFFFF:08x}" for shift in range(cpu // 32 * 32, -1, -32)]
        steering.write_text(",".join(words))
        for name in (OUT, INTO):
            bring_up(name)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.bind((OUT, 0))
        udp = struct.pack(">HHHH", 1, 9, 26, 0) + bytes(18)
        ends = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, *ends)
        self.frame = b"\xff" * 6 + b"\2\0\0\0\0\1" + struct.pack(">H", ETH_P_IP) + ip + udp
        part = Part(ctypes.cast(ctypes.c_char_p(self.frame), ctypes.c_void_p), len(self.frame))
        self.part = part
        self.messages = (Message * BATCH)(
            *(Message(Header(parts=ctypes.addressof(part), n_parts=1)) for _ in range(BATCH))
        )

    def send(self):
        """A batch of packets; how many."""
        sent = LIBC.sendmmsg(self.socket.fileno(), self.messages, BATCH, 0)
        check(sent, "sendmmsg")
        return sent
