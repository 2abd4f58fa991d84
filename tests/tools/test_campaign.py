# SPDX-License-Identifier: MIT
"""The command line of tools/campaign; what its parts run is in the other suites."""

import re
import subprocess

import pytest
from ipclabtest import SOURCE


def campaign(*arguments):
    return subprocess.run([SOURCE / "tools/campaign", *arguments], capture_output=True, text=True, timeout=60)


def test_every_part_is_in_the_guide():
    usage = campaign("--help")
    assert usage.returncode == 0
    parts = re.findall(r"^  (\w+) +\d+  \S", usage.stdout, re.MULTILINE)
    guide = (SOURCE / "docs/measuring-and-testing.md").read_text().partition("## The campaign")[2]
    assert parts == re.findall(r"^\| `(\w+)` \|", guide, re.MULTILINE) and len(parts) > 5


@pytest.mark.parametrize(
    "word", ["kills=0", "kills=-1", "kills=", "fuzz=ten", "bits=123456789", "kills=1:x", "bits=1:2", "soak=1:x"]
)
def test_a_bad_count_is_named_before_anything_runs(word):
    refused = campaign("powercuts=1", word)
    assert refused.returncode == 1 and word in refused.stderr and "number" in refused.stderr
    assert refused.stdout == ""


def test_an_unknown_part_is_answered_with_the_usage():
    refused = campaign("kill")
    assert refused.returncode == 2 and "powercuts" in refused.stderr
