# SPDX-License-Identifier: MIT
"""tests/bench/tcp with a round that takes no time in the place of the real ones: what it prints, and how it ends."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROUND = """#!/bin/sh
echo '{"bytes_per_second": 1000, "messages_per_second": 10, "p50_ns": 100}'
"""


class Bench(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        once = self.root / "tests/bench/tcp-once"
        once.parent.mkdir(parents=True)
        once.write_text(ROUND)
        once.chmod(0o755)

    def bench(self, *options):
        """Where no tool is installed."""
        command = [sys.executable, Path(__file__).parent / "tcp", "--rounds", "6", *options]
        environment = {**os.environ, "IPCLAB_BUILD_ROOT": str(self.root), "PATH": str(self.root)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    def test_missing_tool(self):
        for part, absent in (("others", ["streams beside iperf3", "streams beside sockperf"]),
                             ("pingpongs", ["pingpong beside sockperf"])):
            done = self.bench("--only", part, "--check")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            for what in absent:
                self.assertIn(f"not compared: {what}, which is not installed", done.stdout)
            self.assertEqual(self.bench("--only", part).returncode, 0)

    def test_no_tool_needed(self):
        done = self.bench("--only", "streams", "--check")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("24 limits reached, 0 not told apart, 0 missed, 0 comparisons not made", done.stdout)

    def test_idle_round(self):
        once = self.root / "tests/bench/tcp-once"
        once.write_text(ROUND.replace("1000", "0"))
        done = self.bench("--only", "engines")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing moved in a round of 0.5 s", done.stderr)

    def test_engines(self):
        """Streams and pingpongs, of one thread and of two, in each copy mode; no row has a limit."""
        done = self.bench("--only", "engines", "--check")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [line for line in done.stdout.splitlines() if " B × " in line]
        for threads in (1, 2):
            self.assertEqual(sum(f"× {threads} " in row for row in rows), 3 * 4 + 3 * 2)
        self.assertIn("pingpong by io_uring beside system calls", done.stdout)
        self.assertIn("0 limits reached", done.stdout)


if __name__ == "__main__":
    unittest.main()
