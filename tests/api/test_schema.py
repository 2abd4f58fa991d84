# SPDX-License-Identifier: MIT
"""The JSON Schema that the daemon serves and the parser agree: both are checked against the rows of
tests/unit/data/spec/documents.json (the parser in tests/unit/test-spec.c). A row whose "schema" is true and which has a
"code" is refused for what a schema does not know: which fields go together across points."""

import itertools
import json
import pathlib

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = json.loads((ROOT / "tests/unit/data/spec/documents.json").read_text(encoding="utf-8"))

# Rules that a schema cannot express: how many points there are, which words of two fields go together.
BEYOND = {
    ("limit-exceeded", ""),
    ("limit-exceeded", "/repetitions"),
    ("limit-exceeded", "/until/max_repetitions"),
    ("limit-exceeded", "/until/compare"),
    ("unknown-value", "/preset"),
    ("wrong-combination", "/transport_options"),
    ("wrong-combination", "/chunk"),
    ("wrong-combination", "/copy_mode"),
    ("wrong-combination", "/engine"),
    ("wrong-combination", "/wait"),
    ("wrong-combination", "/direction"),
    ("wrong-combination", "/queue_depth"),
    ("impossible-combination", "/queue_depth"),
    ("wrong-combination", "/source"),
    ("impossible-combination", "/source"),
    ("wrong-combination", "/fresh"),
    ("wrong-combination", "/stamp"),
    ("wrong-combination", "/rate"),
    ("wrong-combination", "/search"),
    ("wrong-combination", "/until/figure"),
    ("wrong-combination", "/until/compare"),
    ("wrong-combination", "/until/compare/axis"),
    ("wrong-combination", "/until/compare/baseline"),
    ("unknown-value", "/until/compare/baseline"),
    ("wrong-type", "/until/compare/baseline"),
    ("duplicate-value", "/placement"),
    ("impossible-combination", "/placement"),
    ("no-points", ""),
}


@pytest.fixture(scope="module")
def schema(daemon):
    """The component of /openapi.json as a document of its own."""
    component = json.dumps(daemon.unix.openapi["components"]["schemas"]["ExperimentSpec"])
    return json.loads(component.replace("#/components/schemas/ExperimentSpec/$defs/", "#/$defs/"))


@pytest.fixture(scope="module")
def validator(schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{json.dumps(r['spec'])[:60]}" for i, r in enumerate(ROWS)])
def test_row(validator, row):
    errors = [e.message[:200] for e in validator.iter_errors(row["spec"])]
    assert (errors == []) == row["schema"], errors
    if "code" not in row:
        assert row["schema"], "the parser accepts what the schema does not"
    elif row["schema"]:
        parent = row["pointer"].rsplit("/", 1)[0]
        assert {(row["code"], row["pointer"]), (row["code"], parent)} & BEYOND


def walk(schema):
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from walk(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from walk(value)


def test_objects_are_closed(schema):
    for part in walk(schema):
        if part.get("type") == "object":
            assert part.get("additionalProperties") is False


def test_presets_fit(validator):
    presets = sorted((ROOT / "schema/presets").glob("*.json"))
    assert presets
    for path in presets:
        validator.validate(json.loads(path.read_text(encoding="utf-8"))["spec"])


# What a run takes beyond warm-up and window, as the daemon expects it (daemon/service/submit.c).
START_SECONDS = 0.5
# A window of messages or bytes has no length. These are rates of a slow machine, below what the published studies that
# the presets repeat found slowest: 376 642 messages a second on a named pipe across nodes, 2.7 µs for a context switch
# without a working set, 1.2 GB/s for 4 MiB there and back through a plain file.
SLOW_MESSAGES = 300_000  # a second, and as many system calls
SLOW_HOPS = 100_000  # a second, from one process to the next
SLOW_BYTES = 700_000_000  # a second, beside what each message takes
LASTS = {
    "Under half a minute.": (0, 30),
    "in under a minute.": (0, 60),
    "Under a minute.": (0, 60),
    "A minute and a half at most.": (0, 90),
    "Half an hour.": (1620, 2040),
    "Half an hour at most.": (60, 2040),
    "Forty minutes.": (2160, 2640),
}
MOVING = (
    "transport",
    "message_size",
    "threads",
    "copy_mode",
    "engine",
    "wait",
    "fields",
    "direction",
    "queue_depth",
    "source",
    "placement",
)
AXES = {
    "stream": MOVING,
    "pingpong": MOVING,
    "syscall": ("call", "placement"),
    "context-switch": ("processes", "working_set", "placement"),
}
DEFAULTS = {"workload": "stream", "processes": 2}
PRESETS = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "schema/presets").glob("*.json"))
}
COUNTED = [name for name, preset in PRESETS.items() if "duration_seconds" not in preset["spec"]]


def listed(spec, axis):
    value = spec.get(axis, DEFAULTS.get(axis))
    values = value if isinstance(value, list) else [value]
    return [value for value in values if not (isinstance(value, dict) and value.get("otherwise"))]


def points(spec):
    for workload in listed(spec, "workload"):
        for values in itertools.product(*(listed(spec, axis) for axis in AXES[workload])):
            yield {"workload": workload, **dict(zip(AXES[workload], values, strict=True))}


def window_seconds(spec, point):
    if "duration_seconds" in spec:
        return spec["duration_seconds"]
    if point["workload"] == "syscall":
        return spec["messages"] / SLOW_MESSAGES
    if point["workload"] == "context-switch":
        return spec["messages"] * point["processes"] / SLOW_HOPS
    messages = spec["messages"] if "messages" in spec else spec["bytes"] / point["message_size"]
    messages *= 2 if point["workload"] == "pingpong" else 1
    return messages / SLOW_MESSAGES + messages * point["message_size"] / SLOW_BYTES


def seconds(spec):
    around = spec.get("warmup_seconds", 1) + START_SECONDS
    return spec.get("repetitions", 1) * sum(window_seconds(spec, point) + around for point in points(spec))


def described_seconds(preset):
    spans = [span for words, span in LASTS.items() if preset["description"].endswith(words)]
    assert len(spans) == 1, preset["description"]
    return spans[0]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_lasts_as_long_as_described(name):
    least, most = described_seconds(PRESETS[name])
    assert least <= seconds(PRESETS[name]["spec"]) <= most


@pytest.mark.parametrize("name", [name for name in PRESETS if f"{name}-quick" in PRESETS])
def test_a_study_has_runs_enough_for_an_interval(name):
    """The fewest runs that give an interval of the median, at 95 %: six."""
    assert PRESETS[name]["spec"]["repetitions"] >= 6


# The quick presets, described as half a minute; the grid of connections alone has more points than that.
QUICK_SECONDS = dict.fromkeys(
    ("pipe-block-sweep-quick", "fifo-numa-quick", "syscall-and-switch-quick", "ipc-4mib-quick"), 30
) | {"tcp-copy-modes-quick": 60}


@pytest.mark.parametrize("name", [name for name in PRESETS if name.endswith("-quick")])
def test_a_quick_preset_is_over_in_time(name):
    assert described_seconds(PRESETS[name])[1] <= QUICK_SECONDS.get(name, 60)
    assert seconds(PRESETS[name]["spec"]) <= QUICK_SECONDS.get(name, 60)


@pytest.mark.parametrize("name", COUNTED)
def test_ten_times_the_messages_last_longer_than_described(name):
    spec = PRESETS[name]["spec"]
    more = {key: 10 * spec[key] for key in ("messages", "bytes") if key in spec}
    assert seconds({**spec, **more}) > described_seconds(PRESETS[name])[1]
