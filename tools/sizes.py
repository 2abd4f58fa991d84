#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the sizes of the sources: a file has at most 1000 lines, a C function 60, and each file names its licence.

Tests may be half as long again: a table of cases is one thing. Takes the files as arguments. Leans on the formatting
that clang-format enforces: a function's brace closes in column 0.
"""

import re
import sys
from pathlib import Path

FILE_LINES = 1000
FUNCTION_LINES = 60
FUNCTION = re.compile(r"^[A-Za-z_][^;=]*\b(\w+)\(")
LICENCE = "SPDX-License-Identifier: MIT"


def functions(lines):
    """(name, line, length) of each function that a C file defines."""
    name, begin = None, 0
    for number, line in enumerate(lines, 1):
        match = FUNCTION.match(line)
        if match and not line.startswith(("typedef", "struct {", "#")):
            name, begin = match.group(1), number
        elif line.startswith("}") and name:
            yield name, begin, number - begin + 1
            name = None
        elif line and line[0] not in " \t{})#":
            name = None


def faults(path):
    lines = path.read_text().splitlines()
    longer = 1.5 if "tests" in path.parts else 1
    file_lines, function_lines = int(FILE_LINES * longer), int(FUNCTION_LINES * longer)
    if not any(LICENCE in line for line in lines[:3]):
        yield 1, f"the first lines lack {LICENCE}"
    if len(lines) > file_lines:
        yield len(lines), f"{len(lines)} lines; a file has at most {file_lines}"
    if path.suffix == ".c":
        for name, begin, length in functions(lines):
            if length > function_lines:
                yield begin, f"{name}() has {length} lines; a function has at most {function_lines}"


def main(paths):
    bad = [f"{path}:{line}: {fault}" for path in paths for line, fault in faults(Path(path))]
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
