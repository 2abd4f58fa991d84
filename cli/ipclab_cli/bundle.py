# SPDX-License-Identifier: MIT
"""Verifies a bundle without a daemon: the digest in its name, the canonical form of its JSON, and every figure that
follows from others in it, computed anew from the runs and their histograms."""

import base64
import gzip
import hashlib
import itertools
import json
import math
import re
import struct
import zlib
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

from ipclab_cli.probes import roles_of, verdicts_of

FORMAT = 1
TEXT_MAX = 1 << 30
DEPTH_MAX = 40
LEVEL = Fraction(95, 100)
HODGES_LEHMANN_MAX = 200
SERIAL_RUNS_LEAST, SERIAL_MAX = 12, 0.9
LISTED_SECONDS = 600  # of a run; later ones are listed where they have flags
# Sums, roots and powers of doubles may differ in their last digits from one processor to another. All else is exact.
ROUNDED = {"cov", "level", "widening", "quantile", "lag1", "effective_runs", "ratio"}
TOLERANCE, TOLERANCE_OF_ZERO = 1e-9, 1e-12
WITHHELD = "withheld"  # instead of text that might name the host
NAME = re.compile(r"-([0-9a-f]{64})\.json\.gz$")
# The members of a row that are no statistics of figures.
OTHER_MEMBERS = {
    "point", "rate", "runs", "runs_planned", "runs_failed", "loop", "steady", "verify", "counted_by", "reasons",
    "effective", "flags", "flag_runs", "error", "latency_histogram", "autocorrelation",
}  # fmt: skip
LATENCIES = ("latency_ns", "latency_one_way_ns")
QUANTILES = ("min", "p50", "p90", "p99", "p99_9", "max")
# Quotients, whose names are their formulas: a counter of an end by its messages or its bytes.
QUOTIENTS = (
    "cpu_ns_per_message", "cpu_ns_per_gigabyte", "cycles_per_byte", "cycles_per_message", "instructions_per_message",
    "l1d_read_misses_per_message", "llc_misses_per_message", "dtlb_misses_per_message", "branch_misses_per_message",
    "context_switches_per_message",
)  # fmt: skip
UNITS = {"message": ("messages", 1.0), "byte": ("bytes", 1.0), "gigabyte": ("bytes", 1e9)}
RATES = ("throughput_bytes_per_second", "messages_per_second", "both_ways_bytes_per_second", "cost_ns", "hop_ns")
# Every figure of a row that is no latency.
ROW_FIGURES = {*RATES, *(name + end for name in QUOTIENTS for end in ("", "_sender", "_receiver"))}
LATER_FIGURES = {"ksoftirqd_ns_per_message"}  # rows of earlier versions have none of them
# What a run states and follows from nothing in a bundle, by its places in the run (a * stands for names and numbers).
MEASURED = {
    "agents": "where the agents' threads and pages were, and what was in force there, is read from the kernel",
    "environment": "the host's settings are read from the kernel",
    "repetition, block, attempt": "the daemon's plan: when a run was made, and how often",
    "result/*/messages, result/*/bytes, result/*/window_ns": "the agents count them; all rates are checked by them",
    "result/counters, result/threads": "the kernel and the processor count them; those of an end are the sums of its "
    "threads', and all quotients are checked by them",
    "result/clock": "the agents measure the cost, the step and the offset of the clock; stamp_cost is checked by it",
    "result/effective": "the kernel and the agents state what was in force; a row's values are checked against it",
    "result/latency_histogram": "the agents fill it; all latencies are checked against it",
    "result/noise/*_khz, result/noise/*load_cpus, result/noise/*_periods": "the kernel counts them for the machine",
    "result/noise/observed_share, result/noise/longest_interval_ns": "the daemon alone has what it saw of the window",
    "result/noise/*_segments, result/noise/*_timeouts": "the kernel counts them for the run's connections",
    "result/noise/ksoftirqd_ns": "the kernel counts it; ksoftirqd_ns_per_message is checked by it",
    "result/noise/seconds/*": "the kernel counts them in each second; seconds_flagged and worst are checked by them",
    "result/numa": "the kernel counts it; a bundle has the differences alone",
    "result/pipe_overhead_ns": "the agent measures it before the run; cost_ns is checked by it",
    "result/steadiness": "it follows from the samples of each second, which no bundle has; steady is checked by it",
    "probes/*/*/cost_ns, probes/*/*/cpu, probes/*/*/cpu_share, probes/*/*/*/rounds": "the agents measure them; "
    "quartiles and changes are checked by them",
    "probes/*/*/others/*/cost_ns, probes/*/*/others/*/cpu, probes/*/*/others/*/cpu_share, "
    "probes/*/*/others/*/*/rounds": "the agents measure them; quartiles and changes are checked by them",
    "probes/*/*/others_left_out": "the agents know what they had no time for",
    "probes/changes/*/usual": "the daemon knows what its earlier runs found; the flag is checked by it",
}
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}


class Fault(Exception):
    """What is wrong, and where: a JSON pointer, or a row and its field."""


def fault(where, words):
    raise Fault(f"{where}: {words}")


# ---- the canonical form (RFC 8785) ----


def number_text(value):
    """As ECMAScript writes it: plain from 1e-6 to below 1e21."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        raise ValueError("a number that is not finite")
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, rest = mantissa.partition(".")
    digits = (whole + rest).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + rest) - len(digits))
    digits = digits.rstrip("0")
    sign, n = "-" if value < 0 else "", len(digits)
    if n <= point <= 21:
        return sign + digits + "0" * (point - n)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}{'.' if n > 1 else ''}{digits[1:]}e{point - 1:+d}"


def canonical(value):
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(key)}:{canonical(one)}" for key, one in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number_text(value)
    return json.dumps(value, ensure_ascii=False)


def object_of(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} twice in one object")
    return found


def not_json(word):
    raise ValueError(f"{word}, which is not JSON")


def depth_of(text):
    """The depth of brackets outside strings: a decoder recurses."""
    depth = deepest = 0
    for bracket in re.findall(rb'"(?:[^"\\]|\\.)*"|([][{}])', text):
        if bracket:
            depth += 1 if bracket in b"[{" else -1
            deepest = max(deepest, depth)
    return deepest


def parse(text):
    if depth_of(text) > DEPTH_MAX:
        fault("the JSON", f"arrays and objects are more than {DEPTH_MAX} deep")
    try:
        document = json.loads(text.decode(), object_pairs_hook=object_of, parse_constant=not_json)
        again = canonical(document).encode()
    except (ValueError, RecursionError) as error:
        fault("the JSON", str(error))
    if again != text:
        at = next((i for i, (a, b) in enumerate(zip(again, text, strict=False)) if a != b), len(again))
        fault(f"byte {at}", f"not canonical: {text[at : at + 20]!r} where {again[at : at + 20]!r} belongs")
    return document


def read(path):
    """The JSON text, whose digest the name has."""
    named = NAME.search(Path(path).name)
    if not named:
        fault(Path(path).name, "no bundle's name: it has no SHA-256, as in ipclab-NAME-SHA256.json.gz")
    try:
        with gzip.open(path) as file:
            text = file.read(TEXT_MAX + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        fault(Path(path).name, f"not gzip, or not all of it: {error}")
    if len(text) > TEXT_MAX:
        fault(Path(path).name, f"more than {TEXT_MAX} bytes of JSON")
    digest = hashlib.sha256(text).hexdigest()
    if digest != named[1]:
        fault(Path(path).name, f"the SHA-256 of the JSON is {digest}, which is not the name's")
    return text, digest


# ---- histograms ----

SUB_BUCKETS, HALF, COUNTS, HIGHEST = 256, 128, 31 * 128, 100_000_000_000


def lowest_of(index):
    if index < SUB_BUCKETS:
        return index
    return (index % HALF + HALF) << (index // HALF - 1)


def middle_of(index):
    return lowest_of(index) + (lowest_of(index + 1) - lowest_of(index)) // 2


def counts_of(text):
    """The counts of an HdrHistogram V2, compressed, in base64."""
    packed = base64.b64decode(text, validate=True)
    cookie, length = struct.unpack_from(">II", packed)
    if cookie != 0x1C849314 or length != len(packed) - 8:
        raise ValueError("no compressed HdrHistogram V2")
    unpack = zlib.decompressobj()
    data = unpack.decompress(packed[8:], 40 + 9 * COUNTS)
    if not unpack.eof or unpack.unused_data:
        raise ValueError("its compressed counts are too many, or not all of them")
    head = struct.unpack_from(">IIIIQQd", data)
    if head != (0x1C849313, len(data) - 40, 0, 2, 1, HIGHEST, 1.0):
        raise ValueError("another layout than two digits from 1 ns to 100 s")
    counts, at, index = {}, 40, 0
    while at < len(data):
        value = shift = 0
        for place in range(9):
            byte = data[at]
            at += 1
            value |= (byte if place == 8 else byte & 0x7F) << shift
            shift += 7
            if place == 8 or not byte & 0x80:
                break
        value = value >> 1 if not value & 1 else -(value + 1 >> 1)
        if value < 0:
            index -= value
        else:
            if value:
                counts[index] = value
            index += 1
    if index > COUNTS:
        raise ValueError("counts beyond 100 s")
    return counts


def quantile(counts, total, share):
    rank = min(max(math.ceil(math.nextafter(share, 0) * total), 1), total)
    seen = 0
    for index in sorted(counts):
        seen += counts[index]
        if seen >= rank:
            return middle_of(index)
    raise ValueError("a quantile beyond the counts")


def summary_of(counts, sum_ns):
    total = sum(counts.values())
    found = {name: quantile(counts, total, share) for name, share in PERCENTILES.items()}
    found |= {"min": lowest_of(min(counts)), "max": lowest_of(max(counts) + 1) - 1, "count": total}
    # A double as the daemon's, not the exact quotient.
    return found | {"mean": math.floor(float(sum_ns) / float(total) + 0.5)}


def percentiles_of(counts):
    """0, 0.1, 0.2 … nines, as far as a value stands for them, and the highest."""
    total, found, tick = sum(counts.values()), [], 0
    while True:
        nines = tick / 10
        beyond = 10.0**-nines
        if beyond * total < 1:
            highest = lowest_of(max(counts) + 1) - 1
            return [*found, {"nines": None, "quantile": 1, "value_ns": highest}]
        found.append({"nines": nines, "quantile": 1 - beyond, "value_ns": quantile(counts, total, 1 - beyond)})
        tick += 1


# ---- statistics of repetitions ----


def tail_rank(n, level=LEVEL):
    """How many of n values may lie beyond either end of the median's interval, and the probability that they do."""
    at_most, below, term = Fraction(0), Fraction(0), Fraction(1, 2**n)
    for k in range(n):
        at_most += term
        if at_most > (1 - level) / 2:
            return k, below
        below = at_most
        term = term * (n - k) / (k + 1)
    return n, below


def statistic_of(values):
    values = sorted(values)
    n = len(values)
    found = {"n": n, "median": values[math.ceil(n / 2) - 1], "min": values[0], "max": values[-1]}
    mean = math.fsum(values) / n
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else 0
    found["cov"] = deviation / abs(mean) if n > 1 and mean else None
    found["hodges_lehmann"] = None
    if n <= HODGES_LEHMANN_MAX:
        walsh = sorted(values[i] / 2 + values[j] / 2 for i in range(n) for j in range(i, n))
        low, high = walsh[(len(walsh) - 1) // 2], walsh[len(walsh) // 2]
        found["hodges_lehmann"] = low if low == high else low + (high - low) / 2
    rank, below = tail_rank(n)
    found["ci95"] = [values[rank - 1], values[n - rank]] if rank else None
    found["level"] = float(1 - 2 * below) if rank else None
    return found


def level_of(level, times):
    """The level of an interval that is `times` as wide as one at `level`."""
    return min(math.erf(NormalDist().inv_cdf((1 + level) / 2) * times / math.sqrt(2)), math.nextafter(1, 0))


def autocorrelation_of(values):
    """How far each run depends on the one before, and the interval of the median that counts it; None: unknown."""
    found = serial_of(values)
    return found and {name: found[name] for name in ("lag1", "effective_runs", "interval")}


def widened(values):
    """What the correlation of the runs makes of a statistic's interval."""
    found = serial_of(values)
    if not found or not found["material"]:
        return {"widening": 1 if found else None}
    interval = found["interval"]
    return {
        "widening": found["times"],
        "ci95": interval and [interval["low"], interval["high"]],
        "level": interval and interval["level"],
    }


def serial_of(values):
    n = len(values)
    if n < SERIAL_RUNS_LEAST or min(values) == max(values):
        return None
    mean = math.fsum(values) / n
    apart = [value - mean for value in values]
    squares = math.fsum(one * one for one in apart)
    if not squares > 0:
        return None
    lag1 = math.fsum(one * before for before, one in itertools.pairwise(apart)) / squares
    corrected = min(SERIAL_MAX, max(0, (n * lag1 + 1) / (n - 4)))
    times = math.sqrt((1 + corrected) / (1 - corrected))
    rank, below = tail_rank(n, Fraction(level_of(float(LEVEL), times)) if corrected > 0 else LEVEL)
    interval = None
    if rank:
        level = float(1 - 2 * below)
        low, high = sorted(values)[rank - 1], sorted(values)[n - rank]
        interval = {"low": low, "high": high, "level": level_of(level, 1 / times) if corrected > 0 else level}
    return {
        "lag1": lag1,
        "effective_runs": n * (1 - corrected) / (1 + corrected),
        "interval": interval,
        "times": times,
        "material": lag1 > -1 / n + NormalDist().inv_cdf(0.95) / math.sqrt(n),
    }


# ---- comparing ----


def near(where, a, b):
    if where.rpartition("/")[2] in ROUNDED:
        return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE_OF_ZERO)
    return a == b


def same(where, stated, found):
    """Refuses what is stated where it is not what was found."""
    if isinstance(found, dict) and isinstance(stated, dict):
        for name in sorted(found.keys() | stated.keys()):
            if name not in found or name not in stated:
                fault(f"{where}/{name}", "is missing" if name in found else "follows from nothing here")
            same(f"{where}/{name}", stated[name], found[name])
    elif isinstance(found, list) and isinstance(stated, list) and len(found) == len(stated):
        for index, (one, other) in enumerate(zip(stated, found, strict=True)):
            same(f"{where}/{index}", one, other)
    else:
        numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (stated, found))
        if not (near(where, stated, found) if numbers else type(stated) is type(found) and stated == found):
            fault(where, f"{json.dumps(stated)} is stated, and {json.dumps(found)} follows from the runs")


# ---- a run ----


def check_rates(where, figures):
    window = figures["window_ns"]
    for count, rate in (("bytes", "throughput_bytes_per_second"), ("messages", "messages_per_second")):
        found = figures[count] * 1e9 / window if figures[count] or count == "messages" else None
        same(f"{where}/{rate}", figures[rate], found)


def check_run(where, run):
    """Its counts, sums and latencies; returns its histogram."""
    result, histogram = run["result"], run["latency_histogram"]
    counts, sum_ns = {}, 0
    if histogram is not None:
        try:
            counts, sum_ns = counts_of(histogram["histogram"]), int(histogram["sum_ns"])
        except (ValueError, IndexError, struct.error, zlib.error) as error:
            fault(f"{where}/latency_histogram", str(error))
        if not counts:
            fault(f"{where}/latency_histogram", "it is empty")
    if result is None:
        if run["state"] == "done" or counts:
            fault(f"{where}/result", "the run is done, or has latencies, and has none")
        return counts, sum_ns
    check_rates(f"{where}/result", result)
    roles = roles_of(result)
    up = run["point"].get("direction") == "up"
    both = run["point"].get("direction") == "both"
    if run["point"]["workload"] == "pingpong" and result["measured_by"] in roles:
        pass  # both ends receive: in earlier versions it was the responder
    else:
        same(f"{where}/result/measured_by", result["measured_by"], "both" if both else roles[0 if up else -1])
    same(f"{where}/result/counted_by", result["counted_by"], roles[-1 if up else 0])
    measured = [result[role] for role in roles if both or role == result["measured_by"]]
    for role in roles:
        check_rates(f"{where}/result/{role}", result[role])
        check_threads(f"{where}/result", role, result)
    for name, found in (
        ("bytes", sum(end["bytes"] for end in measured)),
        ("messages", sum(end["messages"] for end in measured)),
        ("window_ns", max(end["window_ns"] for end in measured)),
    ):
        same(f"{where}/result/{name}", result[name], found)
    check_quotients(f"{where}/result", run["point"], result)
    check_costs(f"{where}/result", run["point"], result)
    check_stamps(f"{where}/result", run["point"], result, counts)
    stopped = [agent["effective"].get("stopped_ns") for agent in run["agents"]]
    check_beside(f"{where}/result", run["point"], result, stopped)
    check_latencies(f"{where}/result", result, counts, sum_ns)
    return counts, sum_ns


def quotients_of(point, result, role):
    """The load of one end. A round trip carries its bytes twice; with streams both ways, an end's load is what it
    received and what it sent, which follows from the other end's rate."""
    if point["workload"] == "context-switch":  # a round passes through several processes, of which one is counted
        return dict.fromkeys(QUOTIENTS)
    end, counters = result[role], result["counters"][role]
    load = {"messages": float(end["messages"]), "bytes": float(end["bytes"])}
    if point["workload"] == "pingpong":
        load["bytes"] *= 2
    for other in (result[one] for one in result["counters"] if one != role):
        if point.get("direction") == "both" and other["window_ns"]:
            windows = end["window_ns"] / other["window_ns"]
            load = {name: value + other[name] * windows for name, value in load.items()}
    found = dict.fromkeys(QUOTIENTS)
    for name in QUOTIENTS:
        count, _, unit = name.partition("_per_")
        by, scale = UNITS[unit]
        if counters[count] is not None and load[by] > 0:
            found[name] = float(counters[count]) * scale / load[by]
    return found


def all_quotients_of(point, result):
    """The ends' own, by their roles, and under None the sums; null where one end has none."""
    found = {role: quotients_of(point, result, role) for role in result["counters"]}
    values = {name: [end[name] for end in found.values()] for name in QUOTIENTS}
    return found | {None: {name: None if None in of else sum(of) for name, of in values.items()}}


def check_quotients(where, point, result):
    for role, figures in all_quotients_of(point, result).items():
        holder, at = (result, where) if role is None else (result[role], f"{where}/{role}")
        for name, found in figures.items():
            require(at, holder, name)
            same(f"{at}/{name}", holder[name], found)


def require(where, holder, name):
    """A figure is there, and where it is null its reason is."""
    if name not in holder:
        fault(f"{where}/{name}", "is missing")
    if holder[name] is None and f"{name}_reason" not in holder:
        fault(f"{where}/{name}", "null, without a reason")


def check_costs(where, point, result):
    """The CPU time of a call, and a context switch without the pipe's overhead."""
    messages = result["messages"] or math.inf
    found = {"cost_ns": None}
    if point["workload"] == "syscall":
        found = {"cost_ns": result["counters"]["initiator"]["cpu_ns"] / messages}
    elif point["workload"] == "context-switch":
        hop = result["window_ns"] / messages / point["processes"]
        found = {"cost_ns": hop - result["pipe_overhead_ns"], "hop_ns": hop}
    for name in ("cost_ns", "hop_ns"):
        if name in found or name in result:
            require(where, result, name)
            same(f"{where}/{name}", result[name], found.get(name))
    both = 2 * result["throughput_bytes_per_second"] if point["workload"] == "pingpong" else None
    require(where, result, "both_ways_bytes_per_second")
    same(f"{where}/both_ways_bytes_per_second", result["both_ways_bytes_per_second"], both)


def check_stamps(where, point, result, counts):
    """The share of the window in which the clock was read."""
    require(where, result, "stamp_cost")
    if result["stamp_cost"] is None:
        return
    cost = max(result["clock"][role]["cost_ns"] for role in result["counters"])
    window = min(result[role]["window_ns"] for role in result["counters"])
    messages = sum(counts.values())
    share = float(messages) * cost / (float(window) * point["threads"])
    found = {"messages": messages, "clock_cost_ns": cost, "window_share": share}
    same(f"{where}/stamp_cost", result["stamp_cost"], found)


def check_counters(where, counters):
    """The counters that are sums of others; and the shares of a tick are of the exact time."""
    for name, parts in (
        ("context_switches", ("voluntary_switches", "involuntary_switches")),
        ("page_faults", ("minor_faults", "major_faults")),
        ("task_clock_ns", ("cpu_ns",)),
        ("cpu_ns", ("user_ns", "system_ns")),
    ):
        if counters[parts[-1]] is not None:
            same(f"{where}/{name}", counters[name], sum(counters[part] for part in parts))


def check_threads(where, role, result):
    """The counts of an end are the sums of its threads'; but the shares of a tick, which each thread has rounded."""
    threads, counters, end = result["threads"][role], result["counters"][role], result[role]
    check_counters(f"{where}/counters/{role}", counters)
    for index, thread in enumerate(threads):
        same(f"{where}/threads/{role}/{index}/thread", thread["thread"], index)
        check_counters(f"{where}/threads/{role}/{index}/counters", thread["counters"])
    for count in ("messages", "bytes"):
        same(f"{where}/{role}/{count}", end[count], sum(thread[count] for thread in threads))
    for name, value in counters.items():
        parts = [thread["counters"].get(name) for thread in threads]
        if isinstance(value, int) and name not in ("user_ns", "system_ns") and None not in parts:
            same(f"{where}/counters/{role}/{name}", value, sum(parts))
    used = sum(thread["messages"] > 0 for thread in threads)
    same(f"{where}/effective/threads/{role}", result["effective"]["threads"][role], used)


def check_beside(where, point, result, stopped):
    """What was observed of the machine, how long each agent stood still, and what ksoftirqd used in the window if it
    went on so. A long run's result has not all of its seconds."""
    noise, classes = result["noise"], [series["class"] for series in result["steadiness"]]
    lost, known = {*classes} - {"flat", None}, classes and None not in classes
    same(f"{where}/steady", result["steady"], not lost if lost or known else None)
    require(where, result, "ksoftirqd_ns_per_message")
    if noise is None:
        same(f"{where}/ksoftirqd_ns_per_message", result["ksoftirqd_ns_per_message"], None)
        return
    if "stopped_ns" in noise:  # as in runs of this version
        same(f"{where}/noise/stopped_ns", noise["stopped_ns"], None if None in stopped else max(stopped))
    seconds = noise["seconds"]
    if LISTED_SECONDS <= len(seconds) < noise["seconds_total"]:
        return
    same(f"{where}/noise/seconds_total", noise["seconds_total"], len(seconds))
    same(f"{where}/noise/seconds_flagged", noise["seconds_flagged"], sum(bool(one["flags"]) for one in seconds))
    for index, one in enumerate(seconds):
        same(f"{where}/noise/seconds/{index}/second", one["second"], index)
    known = [one for one in seconds if one["foreign_share"] is not None]
    worst = max(known, key=lambda one: one["foreign_share"], default=None)
    found = worst and {name: worst[name] for name in ("cpu", "second", "foreign_share")}
    same(f"{where}/noise/worst", noise["worst"], found)
    each, observed = None, sum(one["interval_ns"] for one in seconds)
    if point.get("transport") == "tcp" and observed and noise["ksoftirqd_ns"] is not None:
        each = float(noise["ksoftirqd_ns"]) / observed * result["window_ns"] / result["messages"]
    same(f"{where}/ksoftirqd_ns_per_message", result["ksoftirqd_ns_per_message"], each)


def check_probes(where, run, others):
    """The probes state one of the verdicts that their rounds may have; a difference is to the first of them."""
    stated, first = run["probes"], None
    if stated is None:
        return
    habits = {change.get("usual", False) for change in stated["changes"]}  # without one: of an earlier version
    left = ({name: one[name] for name in one if not name.startswith("usual")} for one in stated["changes"])
    stated = stated | {"changes": list(left)}
    for found in verdicts_of(run["probes"], others):
        try:
            same(where, {name: stated[name] for name in found}, found)
            break
        except Fault as difference:
            first = first or difference
    else:
        raise first
    for habit, flag in {False: "machine_state_changed", None: "machine_state_unknown"}.items():
        if run["state"] == "done" and (habit in habits) != (flag in run["flags"]):
            fault(f"{where}/changes", f"a change that is not usual, and its flag {flag}, are there together or not")


def check_latencies(where, result, counts, sum_ns):
    latency, half = result["latency_ns"], result["latency_one_way_ns"]
    if latency is None or not counts:
        same(f"{where}/latency_ns", latency, None)
        same(f"{where}/latency_one_way_ns", half, None)
        if counts:
            fault(f"{where}/latency_ns", "null, but there is a histogram")
        return
    found = summary_of(counts, sum_ns)
    same(f"{where}/latency_ns", latency, found | {"kind": latency["kind"]})
    if half is not None:
        halves = {name: value // 2 for name, value in found.items()}
        halves |= {"mean": math.floor(sum_ns / found["count"] / 2 + 0.5), "count": found["count"], "kind": "one_way"}
        same(f"{where}/latency_one_way_ns", half, halves)


# ---- a row ----


def figure_of(result, group, name):
    """A run's own figure, where a row has the statistic; None: the run has none."""
    if group == "latency_one_way_ns" and result.get("loop") == "open":
        return None
    holder = result.get(group) if group else result
    if name.endswith(("_sender", "_receiver")):
        name, _, end = name.rpartition("_")
        role = result.get("counted_by")
        if end == "receiver":
            role = next((one for one in (result.get("counters") or {}) if one != role), None)
        holder = result.get(role)
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def check_statistic(where, stated, results, group, name):
    values = [value for result in results if (value := figure_of(result, group, name)) is not None]
    found = statistic_of(values) if values else None
    if found and stated and group and name in QUANTILES and stated.get("hodges_lehmann") is None:
        found["hodges_lehmann"] = None  # earlier versions state the mean of two percentiles there
    if found and stated and "widening" in stated:  # earlier versions state the interval of independent runs
        found |= widened(values)
    same(where, stated, found)


def once(values):
    found = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def in_force_of(results):
    found = {}
    for result in results:
        for name, value in (result.get("effective") or {}).items():
            if not name.endswith("_reason"):
                found.setdefault(name, []).append(value)
    lists = {name: once(values) for name, values in found.items()}
    return {name: values if len(values) > 1 else values[0] for name, values in lists.items()}


def steady_of(results):
    known = [result.get("steady") for result in results]
    return False if False in known else True if known and all(one is True for one in known) else None


def first_figure(results):
    """The group and the name of the figure that a row's runs are judged by."""
    if any(figure_of(result, None, "cost_ns") is not None for result in results):
        return None, "cost_ns"
    timed = [result["latency_ns"]["kind"] for result in results if figure_of(result, "latency_ns", "p50") is not None]
    is_open = any(result.get("loop") == "open" for result in results)
    return ("latency_ns", "p50") if timed and (timed[0] == "rtt" or is_open) else (None, "throughput_bytes_per_second")


def check_row(where, row, runs, histograms):
    done = [run for run in runs if run["state"] == "done"]
    failed = [run for run in runs if run["state"] == "failed"]
    results = [run["result"] for run in done]
    same(f"{where}/runs", row["runs"], len(done))
    same(f"{where}/runs_planned", row["runs_planned"], len(runs))
    same(f"{where}/runs_failed", row["runs_failed"], len(failed))
    same(f"{where}/error", row["error"], failed[-1]["error"] if failed else None)
    flags = [flag for run in runs for flag in run["flags"] if flag != WITHHELD]
    same(f"{where}/flags", [flag for flag in row["flags"] if flag != WITHHELD], once(flags))
    same(f"{where}/flag_runs", row["flag_runs"], {flag: flags.count(flag) for flag in once(flags)})
    same(f"{where}/steady", row["steady"], steady_of(results))
    for word in ("loop", "verify", "counted_by"):
        last = [result[word] for result in results if result.get(word) is not None]
        same(f"{where}/{word}", row[word], last[-1] if last else None)
    same(f"{where}/effective", row["effective"], in_force_of(results))
    values = [value for result in results if (value := figure_of(result, *first_figure(results))) is not None]
    same(f"{where}/autocorrelation", row["autocorrelation"], autocorrelation_of(values))
    figures = ROW_FIGURES | (LATER_FIGURES & row.keys())
    same(where, sorted(row), sorted(figures | OTHER_MEMBERS | set(LATENCIES)))
    for name in sorted(figures):
        check_statistic(f"{where}/{name}", row[name], results, None, name)
    for group in LATENCIES:
        check_group(f"{where}/{group}", row[group], results, group)
    check_merged(f"{where}/latency_histogram", row["latency_histogram"], histograms)


def check_group(where, stated, results, group):
    names = (*QUANTILES, "mean")
    kinds = [result[group]["kind"] for result in results if figure_of(result, group, "p50") is not None]
    if stated is None or not kinds:
        same(where, stated, None if not kinds else {"kind": kinds[0]})
        return
    same(where, sorted(stated), sorted([*names, "kind"]))
    same(f"{where}/kind", stated["kind"], kinds[0])
    for name in names:
        check_statistic(f"{where}/{name}", stated[name], results, group, name)


def check_merged(where, stated, histograms):
    counts, sum_ns = {}, 0
    for one, its_sum in histograms:
        for index, count in one.items():
            counts[index] = counts.get(index, 0) + count
        sum_ns += its_sum
    if not counts or stated is None:
        same(where, stated, None if not counts else summary_of(counts, sum_ns))
        return
    same(where, stated, summary_of(counts, sum_ns) | {"kind": stated["kind"], "percentiles": percentiles_of(counts)})


def by_time(run):
    """The order of a row's runs (daemon/store/internal.h): a retried one stands after those that ran before it was."""
    return run["started_at"] is None, run["started_at"] or "", run["position"]


def check_row_in_order(where, row, runs, histograms):
    in_time = sorted(runs, key=by_time)
    try:
        check_row(where, row, in_time, histograms)
    except Fault:
        if in_time == runs:
            raise
        try:
            check_row(where, row, runs, histograms)  # earlier versions took them by their positions
        except Fault:
            pass
        else:
            return
        raise


# ---- the whole ----


def place_runs(document):
    """The runs of each row: those of its point, and of its rate where a search has tried several."""

    def place(one):
        return canonical([one["point"], one["rate"]])

    rows = {place(row): index for index, row in enumerate(document["results"])}
    if len(rows) < len(document["results"]):
        fault("/results", "two rows have one point and one rate")
    found = {}
    for index, run in enumerate(document["runs"]):
        if place(run) not in rows:
            fault(f"/runs/{index}/point", "no row has this point and rate")
        found.setdefault(rows[place(run)], []).append(index)
    return found


def check(document):
    if document.get("bundle") != FORMAT:
        fault("/bundle", f"format {document.get('bundle')}; this program verifies format {FORMAT}")
    same("/", sorted(document), ["bundle", "experiment", "host", "results", "runs", "topology"])
    runs, states = document["runs"], [run["state"] for run in document["runs"]]
    for index, run in enumerate(runs):
        same(f"/runs/{index}/position", run["position"], index)
    progress = {f"runs_{state}": states.count(state) for state in ("done", "failed", "cancelled")}
    same("/experiment/progress", document["experiment"]["progress"], progress | {"runs_total": len(runs)})
    histograms = [check_run(f"/runs/{index}", run) for index, run in enumerate(runs)]
    done = [run for run in runs if run["state"] == "done" and run["probes"]]
    for index, run in enumerate(runs):
        check_probes(f"/runs/{index}/probes", run, (one["probes"] for one in done if one is not run))
    places = place_runs(document)
    for index, row in enumerate(document["results"]):
        its = places.get(index, [])
        done = [histograms[one] for one in its if runs[one]["state"] == "done"]
        check_row_in_order(f"/results/{index}", row, [runs[one] for one in its], done)


def coverage(document):
    """(the figures that are computed anew; why the others are not, by their names) of a document that is verified."""
    results = [run["result"] for run in document["runs"] if run["result"] is not None]
    computed, others = [], {}
    for name in (*RATES, *QUOTIENTS, *LATENCIES, "stamp_cost", "ksoftirqd_ns_per_message"):
        if any(result.get(name) is not None for result in results):
            computed.append(name)
            continue
        reason = name.removesuffix("_ns") if name == "latency_ns" else name
        found = once([result[f"{reason}_reason"] for result in results if f"{reason}_reason" in result])
        others[name] = f"null in every run: {'; '.join(found) or 'their workloads have none'}"
    if any(len(noise["seconds"]) < noise["seconds_total"] for result in results if (noise := result["noise"])):
        others["ksoftirqd_ns_per_message, seconds_flagged and worst of long runs"] = (
            f"a bundle has their first {LISTED_SECONDS} seconds, and later ones with flags"
        )
    return computed, others | MEASURED


def verify(path):
    """The document and its digest; Fault with what is wrong first."""
    text, digest = read(path)
    document = parse(text)
    try:
        check(document)
        coverage(document)  # reads what nothing follows from
    except (KeyError, TypeError, AttributeError, IndexError, ZeroDivisionError, OverflowError, ValueError) as error:
        fault("the document", f"it has not the shape of a bundle ({type(error).__name__}: {error})")
    return document, digest
