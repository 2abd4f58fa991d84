# SPDX-License-Identifier: MIT
"""Text on its way to a terminal. Names, errors and addresses are others' words: of a daemon that nobody vouches for, or
of a stranger's bundle. A terminal would execute an escape sequence in them."""

import sys

# C0 but for tab and newline, DEL, C1, what reorders a line, and lone surrogates, which no encoding has.
ORDERS = (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
VISIBLE = {code: f"\\u{code:04x}" for code in (*ORDERS, *range(0xD800, 0xE000))}


def visible(text):
    """The text with every order to a terminal as JSON escapes it, so that JSON stays what it was."""
    return text.translate(VISIBLE)


class Screen:
    """A text stream to which nothing is written but what is visible; all else is the stream's that is `beneath`."""

    def __init__(self, beneath):
        self.beneath = beneath

    def write(self, text):
        return self.beneath.write(visible(text))

    def __getattr__(self, name):
        return getattr(self.beneath, name)


def put_up():
    """Sets up standard output and error, once. A character that their encoding lacks is written as its escape."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = Screen(sys.stdout), Screen(sys.stderr)


def beneath(stream):
    """Where this program's own orders to the terminal go."""
    return getattr(stream, "beneath", stream)
