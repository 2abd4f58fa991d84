# SPDX-License-Identifier: MIT
"""The real disturbance beside a real run: what it used of a measured CPU, by its own exact account, is in the run's
figures of that second. The machine may be busy with other things, too: they add, and never take away."""

import contextlib
import csv
import ctypes
import fcntl
import io
import itertools
import json
import os
import signal
import socket
import struct
import threading
import time
from datetime import datetime
from pathlib import Path

import pytest
from agents import wait_agents, wait_window
from client import PATIENCE_SECONDS
from conftest import Daemon
from disturb import FOREIGN, Disturber, QuotaGroup, UnavailableError, lost, require

POINTS_OFF = 0.03  # of a CPU: readings at not quite one instant, and records that are up to 5 ms apart
LOAD_OFF = 0.1  # likewise, of both ends' CPUs together, by a daemon that waits for one of them
CPUS = sorted(os.sched_getaffinity(0))[:2]
TRIES = 3
PACED = {"rate": 1000}  # for what lies in the seconds of a run, and not in how many messages it moves in them
WORKLOADS = ["stream", "pingpong"]
TRANSPORTS = ["tcp", "pipe"]

pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="both ends need a CPU of their own: this machine has one")


def spec_of(workload, transport, **more):
    names = {"stream": ("sender", "receiver"), "pingpong": ("initiator", "responder")}[workload]
    if transport == "tcp":
        names = ("server", "client")
    placement = {name: {"cpu": cpu} for name, cpu in zip(names, CPUS, strict=True)}
    return {
        "workload": workload,
        "transport": transport,
        "message_size": 4096,
        "placement": placement,
        "duration_seconds": 2,
        "warmup_seconds": 0,
    } | more


def run_of(unix, spec):
    """On a machine so busy that no message passes for seconds a run fails, and has no figures: up to three tries."""
    for _ in range(TRIES):
        experiment = unix.wait_final(unix.post(spec)["id"])
        if experiment["state"] == "done":
            break
    assert experiment["state"] == "done", experiment
    return unix.items(f"/experiments/{experiment['id']}/runs")[0]


def disturbed_run(unix, kind, spec, path, least=0.01):
    """(the run, what the disturber used of each of its seconds). On a machine so busy that the disturber gets next to
    nothing there is nothing to be seen: up to three tries."""
    for n in range(TRIES):
        disturber = Disturber(kind, CPUS[1], path / f"records-{n}")
        try:
            run = run_of(unix, spec)
        finally:
            disturber.end()
        used = [disturber.share(s["begin_ns"], s["interval_ns"]) for s in run["result"]["noise"]["seconds"]]
        if max(used) > least:
            return run, used
    pytest.skip(f"the machine is busy: the disturber got {max(used):.1%} of a CPU at most in the last of {TRIES} runs")


# Each kind with each workload and each transport, and each workload with each transport.
DISTURBED = [
    (kind, workload, TRANSPORTS[(i + j) % 2])
    for (i, kind), (j, workload) in itertools.product(enumerate(FOREIGN), enumerate(WORKLOADS))
]


@pytest.mark.parametrize("kind, workload, transport", DISTURBED)
def test_what_a_disturber_used_is_seen(unix, tmp_path, kind, workload, transport):
    for n in range(TRIES):
        (folder := tmp_path / str(n)).mkdir()
        run, used = disturbed_run(unix, kind, spec_of(workload, transport), folder)
        noise = run["result"]["noise"]
        assert [s["second"] for s in noise["seconds"]] == list(range(noise["seconds_total"]))
        assert 1 <= noise["seconds_total"] <= 2  # one where the daemon came by late
        assert noise["worst"]["foreign_share"] == max(seen_in(run))
        assert ("noisy:foreign-cpu" in run["flags"]) == (max(seen_in(run)) >= 0.05)
        check_load(run)
        check_observed(run, 2 * 10**9)
        assert sum(seen_in(run)) > sum(used) / 2 - POINTS_OFF, (used, seen_in(run))
        if is_seen(run, used):
            break
    assert is_seen(run, used), (used, seen_in(run), noise["seconds"])


def seen_in(run):
    return [second["foreign_share"] for second in run["result"]["noise"]["seconds"]]


def is_seen(run, used):
    """Whether each second has at least what a disturber used of it, as far as it is known. Not so where the daemon had
    to wait for a CPU between its look at the clock and that at the CPU times: such a run is tried again."""
    loads = [second["load_cpus"] for second in run["result"]["noise"]["seconds"]]
    return all(u - POINTS_OFF < share < 1 + POINTS_OFF for share, u in zip(seen_in(run), used, strict=True)) and all(
        load is None or load > u - LOAD_OFF for load, u in zip(loads, used, strict=True)
    )


def check_load(run):
    noise = run["result"]["noise"]
    known = [second["load_cpus"] for second in noise["seconds"] if second["load_cpus"] is not None]
    assert noise["worst_load_cpus"] == max(known, default=None)
    assert ("noisy:load" in run["flags"]) == (max([*known, noise["load_cpus"] or 0]) > 0.5)


def check_observed(run, planned_ns):
    """An end that begins late has the planned end all the same."""
    noise = run["result"]["noise"]
    window_ns = noise["window_ns"]
    assert 0 < window_ns <= planned_ns
    spans = [(second["begin_ns"] - noise["begin_ns"], second["interval_ns"]) for second in noise["seconds"]]
    covered = sum(min(begin + length, window_ns) - max(begin, 0) for begin, length in spans)
    assert noise["observed_share"] == pytest.approx(covered / window_ns, abs=1e-3)
    assert noise["longest_interval_ns"] == max(length for _, length in spans)
    late = window_ns - covered > max(window_ns / 20, 10**8) or noise["longest_interval_ns"] > 1.6e9
    assert ("not_observed" in run["flags"]) == late == ("not_observed_reason" in noise)


LITTLE = 0.1  # of the shorter one of a sample and a second, from which on the second counts


def seconds_of(sample, noise):
    """Those of a run's noise that count for a sample."""
    begin, end = sample["begin_ns"], sample["begin_ns"] + sample["interval_ns"]
    for second in noise["seconds"]:
        common = min(end, second["begin_ns"] + second["interval_ns"]) - max(begin, second["begin_ns"])
        if common >= LITTLE * min(sample["interval_ns"], second["interval_ns"]):
            yield second


def forms_of(unix, run):
    """The samples of a run as JSON, from NDJSON, and as rows of the CSV."""
    path, got = f"/runs/{run['id']}/samples", {}
    for kind in ("application/x-ndjson", "text/csv"):
        got[kind] = unix.request("GET", path, headers={"Accept": kind}).body.decode()
    lines = [json.loads(line) for line in got["application/x-ndjson"].splitlines()]
    return unix.items(path), lines, list(csv.DictReader(io.StringIO(got["text/csv"])))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_samples_of_a_disturbed_second_are_marked(daemon, unix, tmp_path, transport):
    """A run of six seconds, one of which a spinner took a part of; the others have the noise of theirs."""
    for n in range(TRIES):
        run, disturber = run_beside_a_spinner(daemon, unix, transport, tmp_path / f"records-{n}")
        seconds = run["result"]["noise"]["seconds"]
        used = [disturber.least_share(second["begin_ns"], second["interval_ns"]) for second in seconds]
        enough = max(used) > 0.05 + POINTS_OFF and min(used) == 0
        if enough and all(share > u - POINTS_OFF for share, u in zip(seen_in(run), used, strict=True)):
            break
    check_marks(unix, run, disturber)


def run_beside_a_spinner(daemon, unix, transport, path):
    """On a busy machine the spinner may begin when the run has ended, or get next to nothing, and what it used may be
    in a neighbour of its second, see is_seen(): such a run is tried again."""
    log_from = daemon.log.stat().st_size
    experiment = unix.post(spec_of("stream", transport, duration_seconds=6, **PACED))
    wait_window(daemon, unix, experiment, log_from)
    running = unix.items(f"/experiments/{experiment['id']}/samples")
    assert all(sample["noise"] is None and "has not ended" in sample["noise_reason"] for sample in running)
    time.sleep(1.5)
    disturber = Disturber("spinner", CPUS[1], path)
    time.sleep(0.8)
    disturber.end()
    assert unix.wait_final(experiment["id"])["state"] == "done"
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    return run, disturber


def check_marks(unix, run, disturber):
    samples, lines, rows = forms_of(unix, run)
    assert lines == samples and len(rows) == len(samples)
    noise, (first, *_, last) = run["result"]["noise"], [at for at, _ in disturber.records]
    disturbed = []
    for sample, row in zip(samples, rows, strict=True):
        found, seconds = sample["noise"], list(seconds_of(sample, noise))
        if not seconds:
            assert found is None and sample["noise_reason"] == row["noise_reason"]
            continue
        worst = max(seconds, key=lambda second: second["foreign_share"])
        assert (found["cpu"], found["foreign_share"]) == (worst["cpu"], worst["foreign_share"])
        assert found["worst_softirq_share"] == max(second["worst_softirq_share"] for second in seconds)
        assert found["stopped_ns"] == int(row["noise_stopped_ns"]) == max(second["stopped_ns"] for second in seconds)
        assert sorted(found["flags"]) == sorted({flag for second in seconds for flag in second["flags"]})
        cells = [row[f"noise_{name}"] for name in ("cpu", "foreign_share", "worst_softirq_share", "flags")]
        figures = [str(found["cpu"]), found["foreign_share"], found["worst_softirq_share"], " ".join(found["flags"])]
        assert [cells[0], float(cells[1]), float(cells[2]), cells[3]] == figures
        used = max(disturber.least_share(second["begin_ns"], second["interval_ns"]) for second in seconds)
        assert found["foreign_share"] > used - POINTS_OFF
        begin, end = sample["begin_ns"], sample["begin_ns"] + sample["interval_ns"]
        if used > 0.05 + POINTS_OFF:
            assert begin < last and first < end
            assert "noisy:foreign-cpu" in found["flags"]
            disturbed.append(sample["second"])
    assert disturbed and {sample["second"] for sample in samples} - set(disturbed), (disturbed, noise["seconds"])


@pytest.mark.alone
def test_a_daemon_that_did_not_run_has_not_observed(daemon, unix):
    """Its agents go on, and what disturbed them meanwhile is in a mean over two seconds."""
    log_from = daemon.log.stat().st_size
    experiment = unix.post(spec_of("stream", "pipe", duration_seconds=4, **PACED))
    wait_window(daemon, unix, experiment, log_from)
    time.sleep(0.3)
    os.kill(daemon.process.pid, signal.SIGSTOP)
    time.sleep(2)
    os.kill(daemon.process.pid, signal.SIGCONT)
    assert unix.wait_final(experiment["id"])["state"] == "done"
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    noise = run["result"]["noise"]
    assert "not_observed" in run["flags"]
    assert noise["longest_interval_ns"] > 1.6e9 and "longest_interval_ns" in noise["not_observed_reason"]
    samples = unix.items(f"/runs/{run['id']}/samples")
    long = [s for s in samples if max(second["interval_ns"] for second in seconds_of(s, noise)) > 1.6e9]
    assert long and all("1.6 s" in sample["noise"]["not_observed_reason"] for sample in long)


def test_unknown_shares_are_null(unix):
    """The share of interrupts is unknown where the kernel counts them by the tick; the worst softirqs are those of any
    measured CPU."""
    noise = run_of(unix, spec_of("stream", "pipe", duration_seconds=1, **PACED))["result"]["noise"]
    by_tick = noise["irq_source"] == "tick"
    assert by_tick == ("worst_irq_share_reason" in noise)
    for second in noise["seconds"]:
        assert (second["worst_irq_share"] is None) == by_tick
        assert second["worst_softirq_share"] >= second["softirq_share"]
        unknown = {name for name, value in second.items() if name.endswith("_share") and value is None}
        threads = {"run_queue_delay_share"} if "threads_reason" in noise else set()
        assert all(f"{name}_reason" in second for name in unknown - threads - {"worst_irq_share"}), second
        assert (second["slowest_khz"] is None) == ("frequency_reason" in noise)
        assert (second["throttled_periods"] is None) == ("quota_throttled_periods_reason" in noise)


@pytest.mark.alone
def test_a_quota_is_seen_wherever_it_is(tmp_path):
    """The quota is one of the cgroup that the daemon is in, of either version, and not of the run's own."""
    try:
        group = QuotaGroup.make()
    except UnavailableError as error:
        pytest.skip(str(error))
    daemon = None
    try:
        daemon = Daemon(preexec=group.join)
        disturber = Disturber("quota", CPUS[1], tmp_path / "records", group.path)
        try:
            run = run_of(daemon.unix, spec_of("stream", "pipe"))
        finally:
            disturber.end()
        quiet = run_of(daemon.unix, spec_of("stream", "pipe"))
    finally:
        if daemon:
            daemon.remove()
        group.remove()
    assert max(disturber.share(s["begin_ns"], s["interval_ns"]) for s in run["result"]["noise"]["seconds"]) > 0.05
    assert run["result"]["noise"]["quota_throttled_periods"] > 0
    for second in run["result"]["noise"]["seconds"]:
        assert (second["throttled_periods"] > 0) == ("noisy:quota" in second["flags"])
    assert any("noisy:quota" in second["flags"] for second in run["result"]["noise"]["seconds"])
    assert "noisy:quota" in run["flags"]
    assert quiet["result"]["noise"]["quota_throttled_periods"] == 0 and "noisy:quota" not in quiet["flags"]


@pytest.mark.alone
def test_interrupts_are_seen(unix, tmp_path):
    try:
        require("interrupts", CPUS[1], tmp_path)
    except UnavailableError as error:
        pytest.skip(str(error))
    disturber = Disturber("interrupts", CPUS[1], tmp_path / "records")
    try:
        run = run_of(unix, spec_of("stream", "pipe"))
    finally:
        disturber.end()
    assert "noisy:interrupts" in run["flags"]
    seconds = run["result"]["noise"]["seconds"]
    assert max(second["device_interrupts_per_second"] for second in seconds) > 1000
    assert any("noisy:interrupts" in second["flags"] for second in seconds)


@pytest.mark.alone
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_softirqs_of_others_are_seen(unix, tmp_path, transport):
    """Also beside those that a run over tcp raises itself, which alone are no reason for a flag."""
    try:
        require("softirq", CPUS[1], tmp_path)
    except UnavailableError as error:
        pytest.skip(str(error))
    run, _ = disturbed_run(unix, "softirq", spec_of("stream", transport), tmp_path, least=0.05)
    assert "noisy:softirq" in run["flags"], run["result"]["noise"]["seconds"]
    for _ in range(TRIES):  # the machine's disk and clock raise some, too
        quiet = run_of(unix, spec_of("stream", transport))
        for noise in (run["result"]["noise"], quiet["result"]["noise"]):
            check_softirq_flags(noise, "foreign_softirq_share" if transport == "tcp" else "worst_softirq_share")
        if "noisy:softirq" not in quiet["flags"]:
            break
    assert "noisy:softirq" not in quiet["flags"], quiet["result"]["noise"]["seconds"]


def check_softirq_flags(noise, figure):
    """A share that the clock's tick has sampled may have come about by chance: twice as much has not."""
    certain = 0.1 if noise["irq_source"] == "tick" else 0.05
    for second in noise["seconds"]:
        many = second["foreign_packets_per_second"] >= 16000 and second["interval_ns"] >= 4e8
        if "noisy:softirq" in second["flags"]:
            assert many or second[figure] >= 0.05, second
        else:
            assert not many and second[figure] < certain, second


def test_what_a_loop_loses_is_between_its_own_readings():
    """A turn of the loop, two interrupts, and a CPU that its host took away."""
    readings = [0, 400, 900, 60_900, 61_300, 66_300, 9_066_300, 9_066_700]
    assert [gap for _, gap in lost(iter(readings))] == [0, 0, 60_000, 0, 5_000, 0, 0]


def ksoftirqd_ns():
    """What the threads of CPUS have used, by /proc; None where they are not to be seen."""
    wanted, used = {f"ksoftirqd/{cpu}" for cpu in CPUS}, []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() in wanted:
                used.append(int((comm.parent / "schedstat").read_text().split()[0]))
        except OSError:  # a process that has ended since
            continue
    return sum(used) if len(used) == len(wanted) else None


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_time_of_ksoftirqd_is_in_the_result(unix, transport):
    """Not more than the threads used from before the run until after it; on behalf of tcp alone."""
    before = ksoftirqd_ns()
    result = run_of(unix, spec_of("stream", transport, message_size=64, threads=4, duration_seconds=1))["result"]
    after, noise = ksoftirqd_ns(), result["noise"]
    if before is None:
        assert noise["ksoftirqd_ns"] is None and "PID namespace" in noise["ksoftirqd_ns_reason"]
    else:
        assert 0 <= noise["ksoftirqd_ns"] <= after - before
    each = result["ksoftirqd_ns_per_message"]
    if transport != "tcp" or before is None:
        assert each is None and result["ksoftirqd_ns_per_message_reason"]
    else:
        observed = sum(second["interval_ns"] for second in noise["seconds"])
        share = noise["ksoftirqd_ns"] / observed
        assert each == pytest.approx(share * result["window_ns"] / result["messages"], rel=1e-6)


def segments_sent_again():
    """By all of this network namespace."""
    names, values = (line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line[:4] == "Tcp:")
    return int(values[names.index("RetransSegs")])


@pytest.mark.alone
def test_segments_that_others_send_again_are_not_the_runs(unix):
    """Connections to a listener whose queue is full send their first segment again after a second."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        before = segments_sent_again()
        for _ in range(8):
            connection = stack.enter_context(socket.socket())
            connection.setblocking(False)
            connection.connect_ex(listener.getsockname())
        run = run_of(unix, spec_of("stream", "tcp"))
        others = segments_sent_again() - before
    noise, agents = run["result"]["noise"], [agent["effective"] for agent in run["agents"]]
    sent_again, lost = noise["retransmitted_segments"], noise["lost_segments"]
    assert others >= 6
    assert sent_again <= sum(agent["retransmits"] for agent in agents)
    assert sent_again - lost <= sum(agent["spurious_retransmits"] for agent in agents)
    assert 0 <= lost <= sent_again
    if noise["retransmission_timeouts"] is not None:
        assert noise["retransmission_timeouts"] <= sum(agent["retransmission_timeouts"] for agent in agents)
    timeouts = noise["retransmission_timeouts"]
    many = lost >= (1 if timeouts is None else 3) and lost > sent_again / 4
    assert ("noisy:retransmits" in run["flags"]) == bool(timeouts or many)


IFF_UP, SIOCGIFFLAGS, SIOCSIFFLAGS, CLONE_NEWNET = 1, 0x8913, 0x8914, 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def set_loopback(up):
    with socket.socket() as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request), 16)
        flags = flags | IFF_UP if up else flags & ~IFF_UP
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags))


def leave_network():
    assert LIBC.unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    set_loopback(True)


def interrupt_loopback(pid):
    """For a moment, in the network namespace of a process; a thread's own is changed for it."""

    def down_and_up():
        with open(f"/proc/{pid}/ns/net") as namespace:
            assert LIBC.setns(namespace.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        set_loopback(False)
        time.sleep(0.3)
        set_loopback(True)

    thread = threading.Thread(target=down_and_up)
    thread.start()
    thread.join()


INTERRUPTIONS = 4  # at one of them a busy machine may have two segments under way, or none


@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace, and may not")
def test_segments_that_the_run_sends_again_are_seen():
    """Those that were under way when the loopback device went down for a moment."""
    daemon = Daemon(preexec=leave_network)
    try:
        spec = spec_of("stream", "tcp", duration_seconds=3)
        log_from = daemon.log.stat().st_size
        experiment = daemon.unix.post(spec)
        wait_window(daemon, daemon.unix, experiment, log_from)
        for _ in range(INTERRUPTIONS):
            interrupt_loopback(daemon.process.pid)
            time.sleep(0.2)
        assert daemon.unix.wait_final(experiment["id"])["state"] == "done"
        (run,) = daemon.unix.items(f"/experiments/{experiment['id']}/runs")
    finally:
        daemon.remove()
    noise = run["result"]["noise"]
    assert noise["lost_segments"] > 0, noise
    assert "noisy:retransmits" in run["flags"], noise
    again = ["noisy:retransmits" in second["flags"] for second in noise["seconds"]]
    assert any(again), noise
    for flagged, second in zip(again, noise["seconds"], strict=True):
        assert not flagged or second["lost_segments"] or second["retransmission_timeouts"], second
        assert flagged or not second["retransmission_timeouts"], second
    for name in ("retransmitted_segments", "retransmission_timeouts"):
        assert noise[name] == (None if noise[name] is None else sum(second[name] for second in noise["seconds"]))


STOPS = [("stream", "shm-posix"), ("stream", "tcp"), ("pingpong", "pipe"), ("open loop", "unix-stream")]


@pytest.mark.alone
@pytest.mark.parametrize("workload, transport", STOPS)
def test_a_stop_is_seen(daemon, unix, workload, transport):
    """A stop of two tenths of a second, beside a run that had none. A busy machine stands still by itself."""
    fields = {"workload": "pingpong", "rate": 2000} if workload == "open loop" else {"workload": workload}
    spec = {"transport": transport, "message_size": 4096, "duration_seconds": 1.5, "warmup_seconds": 0.2} | fields
    log_from = daemon.log.stat().st_size
    experiment = unix.post(spec)
    wait_window(daemon, unix, experiment, log_from)
    victim = sorted(wait_agents(daemon, 2).values())[0]
    time.sleep(0.5)
    began = time.monotonic_ns()
    os.kill(victim, signal.SIGSTOP)
    time.sleep(0.2)
    os.kill(victim, signal.SIGCONT)
    assert unix.wait_final(experiment["id"])["state"] == "done"
    (run,) = unix.items(f"/experiments/{experiment['id']}/runs")
    assert "noisy:stopped" in run["flags"]
    each = [agent["effective"]["stopped_ns"] for agent in run["agents"]]
    noise = run["result"]["noise"]
    assert noise["stopped_ns"] == max(each) >= 95e6  # the sleep that it began in ends in it
    stopped = [second["stopped_ns"] for second in noise["seconds"]]
    assert [ns > 0 for ns in stopped] == ["noisy:stopped" in second["flags"] for second in noise["seconds"]]
    begin = int(began - noise["begin_ns"]) // 10**9
    assert sum(stopped[begin : begin + 2]) >= 95e6, (begin, stopped)
    for _ in range(3):
        (quiet,) = unix.items(f"/experiments/{unix.wait_final(unix.post(spec)['id'])['id']}/runs")
        if "noisy:stopped" not in quiet["flags"]:
            break
    assert "noisy:stopped" not in quiet["flags"] and quiet["result"]["noise"]["stopped_ns"] == 0


def test_migrations_are_in_their_seconds(unix):
    """The threads may move among all CPUs. The seconds together have as many migrations as the agents counted in all
    samples that have a second; where the daemon looked late, a sample may have none."""
    run = run_of(unix, spec_of("stream", "pipe", placement="default", threads=2))
    counted = [counters["migrations"] for counters in run["result"]["counters"].values()]
    noise = run["result"]["noise"]
    seconds = [second["migrations"] for second in noise["seconds"]]
    assert seconds
    if None in counted:
        assert set(seconds) == {None} and noise["migrations_reason"]
    else:
        samples = unix.items(f"/runs/{run['id']}/samples")
        assert sum(sample["counters"]["migrations"] for sample in samples) == sum(counted)
        assert sum(seconds) == sum(s["counters"]["migrations"] for s in samples if has_a_second(s, noise))


def has_a_second(sample, noise):
    begin, end = sample["begin_ns"], sample["begin_ns"] + sample["interval_ns"]
    return any(begin < s["begin_ns"] + s["interval_ns"] and s["begin_ns"] < end for s in noise["seconds"])


@pytest.mark.parametrize("window", [{"messages": 300_000}, {"duration_seconds": 1} | PACED])
def test_it_begins_with_the_window(unix, window):
    """That of a count begins when both ends have ended the warm-up, which no one knows before."""
    spec = {"transport": "pipe", "message_size": 64, "warmup_seconds": 0.3} | window
    (run,) = unix.items(f"/experiments/{unix.wait_final(unix.post(spec)['id'])['id']}/runs")
    result = run["result"]
    assert result["noise"]["begin_ns"] == result["begin_ns"]
    begun = datetime.fromisoformat(result["begun_at"]).timestamp()
    assert result["noise"]["begin_unix_ms"] == round(begun * 1e3)


SWAPPINESS = Path("/proc/sys/vm/swappiness")  # which a run that moves bytes does not feel


@pytest.mark.host
@pytest.mark.skipif(not os.access(SWAPPINESS, os.W_OK), reason=f"changes {SWAPPINESS}, and may not")
def test_a_setting_that_is_put_back_has_changed(unix):
    before = SWAPPINESS.read_text()
    identity = unix.post(spec_of("stream", "pipe", duration_seconds=5, **PACED))["id"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not unix.items(f"/experiments/{identity}/samples"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    SWAPPINESS.write_text(str(int(before) ^ 1))
    try:
        time.sleep(2.2)  # two looks, or one that comes late
    finally:
        SWAPPINESS.write_text(before)
    assert unix.wait_final(identity)["state"] == "done"
    (run,) = unix.items(f"/experiments/{identity}/runs")
    assert run["environment"]["before"]["swappiness"] == run["environment"]["after"]["swappiness"] == int(before)
    assert "environment-changed:swappiness" in run["flags"]


@pytest.mark.host
@pytest.mark.skipif(not os.access(SWAPPINESS, os.W_OK), reason=f"changes {SWAPPINESS}, and may not")
def test_a_run_that_begins_under_another_setting_differs_from_the_first(unix):
    """The setting is another from within the first run until within the second; the third is as the first."""
    usual = SWAPPINESS.read_text()
    identity = unix.post(spec_of("stream", "pipe", repetitions=3, **PACED))["id"]

    def wait_for_window(number):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            runs = unix.items(f"/experiments/{identity}/runs")
            if unix.items(f"/runs/{runs[number]['id']}/samples"):
                return
            assert time.monotonic() < deadline
            time.sleep(0.05)

    wait_for_window(0)
    SWAPPINESS.write_text(str(int(usual) ^ 1))
    try:
        wait_for_window(1)
    finally:
        SWAPPINESS.write_text(usual)
    assert unix.wait_final(identity)["state"] == "done"
    runs = unix.items(f"/experiments/{identity}/runs")
    assert ["environment-differs:swappiness" in run["flags"] for run in runs] == [False, True, False]
    (row,) = unix.get(f"/experiments/{identity}/results")["items"]
    assert "environment-differs:swappiness" in row["flags"]
    target = f"/experiments/{identity}/findings"
    assert any(one.get("reason") == "environment-changed" for one in unix.items(target))
