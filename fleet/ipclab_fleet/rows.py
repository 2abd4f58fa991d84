# SPDX-License-Identifier: MIT
"""The rows that are exported: one table of kinds with their columns, what a column has to be, and the digest of a row.

A row of the store becomes a Row whose values are those of the base's columns. The digest is over these values, so it
is the same whether it is computed from the store or from the base."""

import functools
import hashlib
import json
import math
import re
import uuid
from dataclasses import dataclass

FAMILY = re.compile(r"(\d+\.\d+)")
CAMPAIGN_KEY = re.compile(r'"?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})/([^"]+)"?')
# The members of a run's environment that change from one second to the next, or only explain a null.
VARYING = {
    "uptime_seconds",
    "load",
    "memory_available_bytes",
    "memory_free_bytes",
    "memory_total_bytes",
    "nodes",
    "vmstat",
    "reasons",
    "cpus",
}
# The parameters of the kernel's command line that change what is measured. The others name disks, images and consoles.
PARAMETERS = frozenset(
    "clocksource cpuidle.off hugepages hugepagesz default_hugepagesz idle init_on_alloc init_on_free "
    "intel_idle.max_cstate intel_iommu amd_iommu iommu intel_pstate amd_pstate irqaffinity isolcpus kpti maxcpus "
    "mem mitigations nmi_watchdog nohz nohz_full nokaslr nopti nosmt nospectre_v1 nospectre_v2 nosoftlockup "
    "nowatchdog nr_cpus numa numa_balancing page_poison pcie_aspm preempt processor.max_cstate psi pti "
    "rcu_nocb_poll rcu_nocbs rcupdate.rcu_expedited retbleed selinux skew_tick slab_nomerge slub_debug "
    "spec_rstack_overflow spec_store_bypass_disable spectre_v2 swiotlb threadirqs transparent_hugepage tsc".split()
)
INT64 = range(-(2**63), 2**63)


# Figures that hosts are compared by: the run's column in the base, where the result has it, and whether more is better.
FIGURES = (
    ("throughput", ("throughput_bytes_per_second",), True),
    ("latency_p50", ("latency_ns", "p50"), False),
    ("latency_p99", ("latency_ns", "p99"), False),
    ("cost", ("cost_ns",), False),
)
# A run needs at least this many latencies for a percentile, so that ten lie beyond it (schema/figures.c). Neither the
# daemon nor this program concludes anything from a run with fewer.
LATENCIES_LEAST = {"latency_p99": 1000}
# How many latencies a run has: messages, where a run of an early version has no count of its latencies.
COUNTS = (("latency_ns", "count"), ("messages",))
# The figures and the counts as a JSON list, or NULL where the result is no JSON: SQLite finds them in a fifth of the
# time that parsing the result here takes.
EXTRACTED = "CASE WHEN json_valid(it.result) THEN json_extract(it.result, {}) END".format(
    ", ".join(f"'$.{'.'.join(path)}'" for path in (*(path for _, path, _ in FIGURES), *COUNTS))
)


@dataclass(frozen=True)
class Kind:
    """`select` yields id, change, experiment_id, then `columns`, and of a run EXTRACTED; {where} is filled in.
    `shown` leaves out the rows of an experiment that is not stored as a whole yet, or that was deleted and whose rows
    are not removed yet."""

    name: str
    table: str
    shown: str
    columns: tuple
    select: str
    json_columns: frozenset = frozenset()
    experiment: str | None = None  # the column with the experiment's id, where its rows are left out with it


EXPERIMENT = Kind(
    "experiment",
    "experiments",
    "it.id NOT IN (SELECT experiment_id FROM forgotten)",
    (
        *("state", "seed", "created_at", "started_at", "finished_at", "runs_total", "runs_done", "runs_failed"),
        *("runs_cancelled", "idempotency_key", "version", "name", "error", "skipped", "merged", "spec"),
        "until",
    ),
    "SELECT id, change, id AS experiment_id, state, seed, created_at, started_at, finished_at, runs_total, runs_done, "
    "runs_failed, runs_cancelled, idempotency_key, version, name, error, skipped, merged, spec, until "
    "FROM experiments AS it JOIN specs ON specs.experiment_id = it.id WHERE {where}",
    frozenset({"skipped", "merged", "spec", "until"}),
    "it.id",
)
RUN = Kind(
    "run",
    "runs",
    "it.experiment_id NOT IN (SELECT experiment_id FROM forgotten)",
    (
        *("experiment_id", "point", "environment", "rate", "repetition", "block", "position", "state"),
        *("attempt", "started_at", "finished_at", "error", "flags", "result"),
    ),
    "SELECT it.id, it.change, it.experiment_id, it.experiment_id, points.point, it.environment, points.rate, "
    "it.repetition, it.block, it.position, it.state, it.attempt, it.started_at, it.finished_at, it.error, "
    f"it.flags, it.result, {EXTRACTED} "
    "FROM runs AS it JOIN points ON points.id = it.point_id WHERE {where}",
    frozenset({"flags", "result"}),
    "it.experiment_id",
)
DELETION = Kind(
    "deletion",
    "deletions",
    "1",
    (),
    "SELECT experiment_id AS id, change, experiment_id FROM deletions AS it WHERE {where}",
)
KINDS = {kind.name: kind for kind in (EXPERIMENT, RUN, DELETION)}

# Columns of the base that follow from others, and are no part of a row's digest.
DERIVED = {
    "experiment": ("campaign", "campaign_host"),
    "run": tuple(name for name, _, _ in FIGURES),
    "deletion": (),
}


@dataclass
class Row:
    kind: Kind
    id: int
    change: int
    experiment_id: int
    values: list  # of kind.columns
    digest: bytes
    derived: list  # of DERIVED
    fault: str | None = None  # why the base cannot take it
    points: dict | None = None  # uuid -> canonical JSON
    environments: dict | None = None  # uuid -> (class and its four columns, canonical JSON)


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@functools.lru_cache(4096)  # points and environments are few beside the runs
def content_uuid(text):
    return uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16])


def digest(kind, identity, change, values):
    """The hash of a row, from its kind, numbers and values as they are in the base."""
    plain = [kind.name, identity, change, *(str(v) if isinstance(v, uuid.UUID) else v for v in values)]
    return hashlib.sha256(json.dumps(plain, separators=(",", ":")).encode()).digest()


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON number")


DECODER = json.JSONDecoder(parse_constant=refuse_constant)
BEFORE = '{"before":'


def parse(column, text):
    try:
        return DECODER.decode(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{column} is not JSON: {error}") from error


def check_value(column, value):
    """Checks for values that PostgreSQL would refuse, or that SQLite should not hold."""
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError(f"{column} has a NUL character at {value.index(chr(0))}")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{column} is not UTF-8 at character {error.start}") from error
    elif isinstance(value, int):
        if value not in INT64:
            raise ValueError(f"{column} is {value}, beyond 64 bits")
    elif value is not None:
        raise ValueError(f"{column} is of type {type(value).__name__}")


def before_of(text):
    """The snapshot before the run; None for a run that failed before it was taken. It comes first in the text. The
    rest, more than half, is not exported, and not parsed."""
    try:
        if text.startswith(BEFORE):
            before, _ = DECODER.raw_decode(text, len(BEFORE))
        else:
            before = DECODER.decode(text)["before"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"environment is no JSON with the member before: {error}") from error
    if before is not None and not isinstance(before, dict):
        raise ValueError("the environment's before is no object")
    return before


def environment_of(before):
    """(uuid, (class, cpu_model, cpus, memory_gib, kernel_family, canonical facts)) of a snapshot."""
    facts = {key: value for key, value in before.items() if key not in VARYING}
    cpus, memory, kernel = before.get("cpus"), before.get("memory_total_bytes"), before.get("kernel_release")
    family = FAMILY.match(kernel) if isinstance(kernel, str) else None
    klass = [
        before.get("cpu_model"),
        len(cpus) if isinstance(cpus, list) else None,
        round(memory / 2**30) if isinstance(memory, int) else None,
        family[1] if family else None,
    ]
    # The boot and the host's names are not settings: with them every boot of every host would be an environment.
    facts = {key: value for key, value in facts.items() if key not in ("boot_id", "hostname", "machine")}
    facts["cpus"] = klass[1]
    text = canonical(facts)
    return content_uuid(text), (content_uuid(canonical(klass)), *klass, text)


def parameters_of(cmdline):
    """The words of a kernel's command line that change what is measured, sorted; of one parameter in their order."""
    words = [word for word in cmdline.split() if word.partition("=")[0].replace("-", "_") in PARAMETERS]
    return " ".join(sorted(words, key=lambda word: word.partition("=")[0]))


def settings_of(facts):
    """Facts as machines are compared by them; the base has the whole command line."""
    cmdline = facts.get("kernel_cmdline")
    return facts | {"kernel_cmdline": parameters_of(cmdline)} if isinstance(cmdline, str) else facts


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def figure_of(name, value, latencies):
    """None where the result has none, or too few latencies for it. `latencies`: how many it has; None: not known."""
    few = latencies is not None and latencies < LATENCIES_LEAST.get(name, 0)
    return float(value) if is_number(value) and value > 0 and not few else None


def figures_of(extracted):
    *values, timed, messages = json.loads(extracted)
    latencies = next((n for n in (timed, messages) if is_number(n)), None)
    return [figure_of(name, value, latencies) for (name, _, _), value in zip(FIGURES, values, strict=True)]


def fill_experiment(row, named, extracted):
    match = CAMPAIGN_KEY.fullmatch(named["idempotency_key"] or "")
    row.derived = [uuid.UUID(match[1]), match[2]] if match else [None, None]


@functools.lru_cache(4096)
def canonical_point(text):
    """The base has hot sources as points had them before there were others, so that a series goes on over an upgrade,
    and rows that were exported before it are known again."""
    point = parse("point", text)
    if isinstance(point, dict) and point.get("source") == "hot":
        del point["source"]
    return canonical(point)


def fill_run(row, named, extracted):
    point = canonical_point(named["point"])
    named["point"] = content_uuid(point)
    row.points = {named["point"]: point}
    before = named["environment"] and before_of(named["environment"])
    named["environment"] = None
    if before:
        named["environment"], environment = environment_of(before)
        row.environments = {named["environment"]: environment}
    if extracted is not None:
        row.derived = figures_of(extracted)


FILL = {"experiment": fill_experiment, "run": fill_run, "deletion": lambda row, named, extracted: None}


def from_store(kind, record):
    """record: a row of kind.select. A row that the base cannot take has a fault and its raw values."""
    identity, change, experiment_id, *values = record
    extracted = values.pop() if kind is RUN else None
    row = Row(kind, identity, change, experiment_id, values, b"", [None] * len(DERIVED[kind.name]))
    named = dict(zip(kind.columns, values, strict=True))
    try:
        for column, value in named.items():
            check_value(column, value)
        for column in kind.json_columns:
            if named[column] is not None and not (column == "result" and extracted is not None):
                parse(column, named[column])
        FILL[kind.name](row, named, extracted)
        row.values = [named[column] for column in kind.columns]
    except ValueError as error:
        row.fault = str(error)
    row.digest = digest(kind, identity, change, [v.hex() if isinstance(v, bytes) else v for v in row.values])
    return row
