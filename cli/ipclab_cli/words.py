# SPDX-License-Identifier: MIT
"""Numbers, sizes, times and points as people read them."""

import json
import math

LATENCIES = {"rtt": "round trip", "one_way": "one way", "call": "per call", "switch": "per hop"}
MESSAGES = "messages/s"
RATES = {"syscall": "calls/s", "context-switch": "rounds/s"}


def number_text(value):
    """Four significant digits at least, never an exponent: 17,747, 132.6, 0.02513."""
    magnitude = math.floor(math.log10(abs(value))) + 1 if value else 1
    return f"{value:,.{min(max(4 - magnitude, 0), 6)}f}"


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def bytes_text(rate):
    return f"{rate / 1e6:,.1f} MB/s"


def micros_decimals(nanoseconds):
    """Decimals of a time: a call of 25 ns must not read 0.03 µs, and milliseconds need no tens of ns."""
    return 3 if nanoseconds < 1e3 else 2 if nanoseconds < 1e5 else 1


def micros_text(nanoseconds):
    return f"{nanoseconds / 1e3:,.{micros_decimals(nanoseconds)}f} µs"


def seconds_text(seconds):
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def minute_text(moment):
    """A time of the API, to the minute."""
    return moment[:16].replace("T", " ")


def field_text(point, field):
    value = point.get(field, "")
    if field == "message_size" and field in point:
        return size_text(value)
    return value if isinstance(value, str) else json.dumps(value)


def point_text(point):
    return " ".join(field_text(point, key) for key in ("workload", "transport", "message_size") if key in point)
