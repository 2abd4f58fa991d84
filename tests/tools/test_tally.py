# SPDX-License-Identifier: MIT
"""The sum at the end of tools/test: nothing that failed, or was not there, passes."""

import json

import pytest
import tally

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.api.test_a" name="test_good"/>
{}</testsuite></testsuites>"""
FAILED = '<testcase classname="tests.api.test_a" name="test_bad"><failure message="no"/></testcase>'
BROKEN = '<testcase classname="tests.api.test_a" name="test_late"><error message="no"/></testcase>'
SKIPPED = '<testcase classname="tests.api.test_a" name="test_vm"><skipped message="no KVM"/></testcase>'


def meson(*tests):
    keys = ("name", "result", "returncode", "stdout", "stderr")
    return "".join(json.dumps(dict(zip(keys, test, strict=False))) + "\n" for test in tests)


@pytest.fixture
def add_up(tmp_path, capsys):
    def add_up(**suites):
        """name=(end of the file's name, contents; None: no such file) -> (exit status, lines)."""
        arguments = []
        for name, (ending, contents) in suites.items():
            path = tmp_path / f"{name}.{ending}"
            if contents is not None:
                path.write_text(contents)
            arguments.append(f"{name}={path}")
        status = tally.main(arguments)
        return status, capsys.readouterr().out.splitlines()

    return add_up


def test_all_passed(add_up):
    unit = meson(("json", "OK", 0, "ok   a\nok   b\n2 passed, 0 failed, 0 skipped\n"), ("plain", "OK", 0, ""))
    status, lines = add_up(unit=("json", unit), api=("xml", JUNIT.format("")))
    assert status == 0
    assert lines == [
        "unit:       3 passed, 0 failed, 0 skipped",
        "api:        1 passed, 0 failed, 0 skipped",
        "4 passed, 0 failed, 0 skipped",
    ]


def test_what_a_test_has_counted_is_printed(add_up):
    case = (
        '<testcase classname="a" name="b"><properties><property name="note" value="9 cases"/></properties></testcase>'
    )
    _, lines = add_up(api=("xml", JUNIT.format(case)))
    assert lines == [
        "api:        2 passed, 0 failed, 0 skipped",
        "    counted  9 cases",
        "2 passed, 0 failed, 0 skipped",
    ]


def test_failed_cases_are_named(add_up):
    unit = meson(("json", "FAIL", 1, "ok   a\nFAIL b\n1 passed, 1 failed, 0 skipped\n"))
    status, lines = add_up(unit=("json", unit), api=("xml", JUNIT.format(FAILED + BROKEN)))
    assert status == 1
    assert "    failed   json: b" in lines
    assert "    failed   test_a::test_bad" in lines
    assert "    failed   test_a::test_late" in lines
    assert lines[-1] == "2 passed, 3 failed, 0 skipped"


def test_failures_have_what_they_said(add_up):
    said = "".join(f"line {i}\n\n" for i in range(30)) + "x" * 1000 + "\n"
    cases = "ok   a\nFAIL b\n1 passed, 1 failed, 0 skipped\n"
    unit = meson(("json", "FAIL", 1, cases, said), ("end", "ERROR", -11, "", "gone\n"))
    _, lines = add_up(unit=("json", unit), api=("xml", JUNIT.format(FAILED)))
    at = lines.index("    failed   json: b")
    assert [line.strip() for line in lines[at + 1 : at + 13]] == [f"line {i}" for i in range(19, 30)] + ["x" * 200]
    assert lines[at + 13 : at + 15] == ["    failed   end: error, exit status -11", "               gone"]
    assert lines[lines.index("    failed   test_a::test_bad") + 1].strip() == "no"


def test_a_failed_check_is_found_among_a_log(add_up):
    log = "info starts\n" * 20
    said = log + "pipe stream: peer is gone\ntest-agent.c:150: failed: run_well(&d, &s)\n" + log
    _, lines = add_up(unit=("json", meson(("agent", "FAIL", 1, "FAIL b\n0 passed, 1 failed, 0 skipped\n", said))))
    at = lines.index("    failed   agent: b")
    assert [line.strip() for line in lines[at + 1 : -1]] == [
        "info starts",
        "pipe stream: peer is gone",
        "test-agent.c:150: failed: run_well(&d, &s)",
    ]


@pytest.mark.parametrize("result", ["FAIL", "ERROR", "TIMEOUT", "INTERRUPT", "UNEXPECTEDPASS"])
def test_a_program_that_failed_after_its_cases_is_a_failure(add_up, result):
    status, lines = add_up(unit=("json", meson(("json", result, -11, "ok   a\n1 passed, 0 failed, 0 skipped\n"))))
    assert status == 1
    assert f"    failed   json: {result.lower()}, exit status -11" in lines


def test_skips_have_their_reasons(add_up):
    cases = "skipped: needs two nodes\nSKIP far\nok   near\n1 passed, 0 failed, 1 skipped\n"
    unit = meson(("place", "OK", 0, cases), ("whole", "SKIP", 77, "no perf\n"))
    status, lines = add_up(unit=("json", unit), api=("xml", JUNIT.format(SKIPPED)))
    assert status == 0
    assert "    skipped  place: far: needs two nodes" in lines
    assert "    skipped  whole: no perf" in lines
    assert "    skipped  test_a::test_vm: no KVM" in lines
    assert lines[-1] == "2 passed, 0 failed, 3 skipped"


def test_a_suite_that_could_not_run_is_a_failure(add_up):
    status, lines = add_up(unit=("failed", "did not build\n"), api=("xml", JUNIT.format("")))
    assert status == 1
    assert "    failed   did not build" in lines


@pytest.mark.parametrize(
    "suite",
    [
        ("xml", None),
        ("json", None),
        ("xml", ""),
        ("xml", "<testsuites"),
        ("xml", "<testsuites/>"),
        ("json", ""),
        ("json", '{"name": "json"}\n'),
        ("json", "{"),
    ],
)
def test_a_suite_without_a_result_is_a_failure(add_up, suite):
    status, lines = add_up(unit=suite)
    assert status == 1
    assert lines[-1] == "0 passed, 1 failed, 0 skipped"
