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
