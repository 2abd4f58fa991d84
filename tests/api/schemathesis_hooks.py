# SPDX-License-Identifier: MIT
"""How schemathesis writes a body whose media type it does not know."""

import json

import schemathesis


@schemathesis.serializer("application/gzip")
def as_bytes(_context, value):
    """What it made up, byte for byte: no bundle, which the daemon has to refuse."""
    value = getattr(value, "data", value)
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode()
