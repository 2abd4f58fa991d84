# SPDX-License-Identifier: MIT
"""How schemathesis writes a body whose media type it does not know, and how many values its longest axes have."""

import json

import schemathesis
from schemathesis.specs.openapi.coverage._schema import CoverageContext

AXIS_VALUES, DRAWN_VALUES = 1024, 64
generate_from_schema = CoverageContext.generate_from_schema


def with_short_axes(context, schema):
    """To make up 1024 values that differ takes a fifth of all the time: where an axis is to have as many as it may, or
    one less, it has 64 or 63, which the description allows, too. Answers, and values that are too many, are judged by
    the description as it is; other tests send axes of 1024 and of 1025."""
    least = schema.get("minItems", 0) if isinstance(schema, dict) else 0
    if AXIS_VALUES - 1 <= least <= AXIS_VALUES:
        drawn = least - AXIS_VALUES + DRAWN_VALUES
        schema = schema | {"minItems": drawn, "maxItems": drawn}
    return generate_from_schema(context, schema)


CoverageContext.generate_from_schema = with_short_axes


@schemathesis.serializer("application/gzip")
def as_bytes(_context, value):
    """What it made up, byte for byte: no bundle, which the daemon has to refuse."""
    value = getattr(value, "data", value)
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode()
