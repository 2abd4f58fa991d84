# SPDX-License-Identifier: MIT
"""The JSON Schema of an experiment says what the parser does: both read the rows of tests/unit/data/spec/documents.json
(the parser in tests/unit/test-spec.c). A row whose "schema" is true and which has a "code" is refused for what a schema
does not know: what this build has, which fields go together across points."""

import json
import pathlib

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "schema/experiment.schema.json").read_text(encoding="utf-8"))
ROWS = json.loads((ROOT / "tests/unit/data/spec/documents.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

# What a schema cannot say: what this build has, how many points there are, which words of two fields go together.
BEYOND = {
    ("limit-exceeded", ""),
    ("limit-exceeded", "/repetitions"),
    ("unknown-value", "/preset"),
    ("wrong-combination", "/transport_options"),
    ("wrong-combination", "/chunk"),
    ("wrong-combination", "/copy_mode"),
    ("wrong-combination", "/engine"),
    ("wrong-combination", "/wait"),
    ("wrong-combination", "/direction"),
    ("wrong-combination", "/rate"),
    ("duplicate-value", "/placement"),
    ("impossible-combination", "/placement"),
    ("no-points", ""),
}


def test_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{json.dumps(r['spec'])[:60]}" for i, r in enumerate(ROWS)])
def test_row(row):
    errors = [e.message[:200] for e in VALIDATOR.iter_errors(row["spec"])]
    assert (errors == []) == row["schema"], errors
    if "code" not in row:
        assert row["schema"], "the parser accepts what the schema does not"
    elif row["schema"]:
        parent = row["pointer"].rsplit("/", 1)[0]
        assert row["code"] == "not-available" or {(row["code"], row["pointer"]), (row["code"], parent)} & BEYOND


def walk(schema):
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from walk(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from walk(value)


def test_objects_are_closed():
    for part in walk(SCHEMA):
        if part.get("type") == "object":
            assert part.get("additionalProperties") is False


def test_presets_fit():
    presets = sorted((ROOT / "schema/presets").glob("*.json"))
    assert presets
    for path in presets:
        VALIDATOR.validate(json.loads(path.read_text(encoding="utf-8"))["spec"])


# What a run takes beyond warm-up and window, as the daemon expects it (daemon/service-submit.c).
START_SECONDS = 0.5
LASTS = {
    "Under half a minute.": (0, 30),
    "in under a minute.": (0, 60),
    "Under a minute.": (0, 60),
    "five minutes.": (270, 330),
    "A quarter of an hour.": (810, 990),
}
AXES = ("workload", "transport", "message_size", "threads", "copy_mode", "placement")


@pytest.mark.parametrize("path", sorted((ROOT / "schema/presets").glob("*.json")), ids=lambda path: path.stem)
def test_a_preset_lasts_as_long_as_it_says(path):
    preset = json.loads(path.read_text(encoding="utf-8"))
    spec = preset["spec"]
    if "duration_seconds" not in spec:
        pytest.skip("how long its messages take, the host decides")
    points = 1
    for axis in AXES:
        values = spec.get(axis) if isinstance(spec.get(axis), list) else [None]
        points *= len([value for value in values if not (isinstance(value, dict) and value.get("otherwise"))])
    run = spec["duration_seconds"] + spec.get("warmup_seconds", 1) + START_SECONDS
    told = [span for words, span in LASTS.items() if preset["description"].endswith(words)]
    assert len(told) == 1, preset["description"]
    assert told[0][0] <= points * spec.get("repetitions", 1) * run <= told[0][1], preset["description"]
