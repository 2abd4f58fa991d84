#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up the results of the suites of tools/test: a line per suite, each failure with its output, each skip with its
reason, what tests have counted (pytest's record_property("note", ...)), the sum at the end.

Reads meson's testlog.json (a unit test program counts its cases itself, see tests/unit/check.h) and pytest's JUnit XML.
"""

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

OUTPUT_LINES = 12
LINES_BEFORE = 2  # a failed check, which may explain its cause
FINDING = re.compile(r"\.[ch]:\d+: |^SUMMARY: ")  # tests/unit/check.h, sanitizers
WIDTH = 200
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)


class Tally:
    def __init__(self):
        self.passed = 0
        self.failures = []  # (name, output)
        self.skips = []  # (name, reason)
        self.notes = []  # what a test has counted

    def add(self, other):
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips

    def __str__(self):
        return f"{self.passed} passed, {len(self.failures)} failed, {len(self.skips)} skipped"


def unit_cases(name, output):
    """The output of a unit test program: "ok   case", "FAIL case", "SKIP case" after "skipped: reason"."""
    tally, reason = Tally(), "no reason given"
    for line in output.splitlines():
        word, _, case = line.partition(" ")
        if line.startswith("skipped: "):
            reason = line.removeprefix("skipped: ")
        elif word == "ok":
            tally.passed += 1
        elif word == "FAIL":
            tally.failures.append((f"{name}: {case.strip()}", ""))
        elif word == "SKIP":
            tally.skips.append((f"{name}: {case.strip()}", reason))
            reason = "no reason given"
    return tally


def read_meson(path):
    """testlog.json: an object a line. A program without counts of its own counts as one test."""
    sum_ = Tally()
    for line in path.read_text().splitlines():
        test = json.loads(line)
        name, output = test["name"], test.get("stdout", "")
        tally = unit_cases(name, output) if COUNTS.search(output) else Tally()
        if test["result"] in ("OK", "EXPECTEDFAIL"):
            tally.passed += not (tally.passed or tally.skips)
        elif test["result"] == "SKIP":
            if not tally.skips:
                tally.skips.append((name, (output.strip().splitlines() or ["no reason given"])[-1]))
        else:
            if not tally.failures:  # crashed, timed out, or a sanitizer reported at exit
                tally.failures.append((f"{name}: {test['result'].lower()}, exit status {test['returncode']}", ""))
            tally.failures[-1] = (tally.failures[-1][0], test.get("stderr", ""))  # of all its cases
        sum_.add(tally)
    return sum_


def read_junit(path):
    tally = Tally()
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        skipped = case.find("skipped")
        failed = [case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None]
        tally.notes += [p.get("value") for p in case.iter("property") if p.get("name") == "note"]
        if failed:
            tally.failures.append((name, failed[0].get("message") or ""))
        elif skipped is not None:
            tally.skips.append((name, skipped.get("message") or "no reason given"))
        else:
            tally.passed += 1
    return tally


def read_suite(path):
    """A suite without a readable result has failed as a whole, and so has one without a test."""
    try:
        tally = read_junit(path) if path.suffix == ".xml" else read_meson(path)
    except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
        tally = Tally()
        tally.failures.append((f"no result of this suite: {error}", ""))
    if not (tally.passed or tally.failures or tally.skips):
        tally.failures.append(("this suite has no test", ""))
    return tally


def excerpt(output):
    lines = [line for line in output.splitlines() if line.strip()]
    findings = [i for i, line in enumerate(lines) if FINDING.search(line)]
    near = sorted({max(i - k, 0) for i in findings for k in range(LINES_BEFORE + 1)})
    return ([lines[i] for i in near] or lines)[-OUTPUT_LINES:]


def main(arguments):
    """Arguments: NAME=PATH per suite; PATH ends in .xml (JUnit), .json (meson) or .failed (its text is the reason)."""
    total = Tally()
    for argument in arguments:
        name, _, path = argument.partition("=")
        if path.endswith(".failed"):
            tally = Tally()
            tally.failures.append((Path(path).read_text().strip(), ""))
        else:
            tally = read_suite(Path(path))
        print(f"{name + ':':12}{tally}")
        for failure, output in tally.failures:
            print(f"    failed   {failure}")
            for line in excerpt(output):
                print(f"               {line[:WIDTH]}")
        for case, reason in tally.skips:
            print(f"    skipped  {case}: {reason}")
        for note in tally.notes:
            print(f"    counted  {note}")
        total.add(tally)
    print(total)
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
