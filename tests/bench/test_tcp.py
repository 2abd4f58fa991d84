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
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)

    def test_missing_tool(self):
        for part, absent in (
            ("others", ["streams beside iperf3", "streams beside sockperf"]),
            ("pingpongs", ["pingpong beside sockperf"]),
        ):
            done = self.bench("--only", part, "--check")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            for what in absent:
                self.assertIn(f"not compared: {what}, which is not installed", done.stdout)
            self.assertEqual(self.bench("--only", part).returncode, 0)

    def test_no_tool_needed(self):
        done = self.bench("--only", "streams", "--check")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("24 limits reached, 0 undecided, 0 missed, 0 comparisons not made", done.stdout)

    def unsteady(self, *values, later=None, since=10**9):
        """Agents that move these in turn, and something else since a round; loops by hand always move 1000."""
        count = self.root / "count"
        count.write_text("0\n")
        cases = " ".join(f"{at}) value={value} ;;" for at, value in enumerate(values))
        (self.root / "tests/bench/tcp-once").write_text(f"""#!/bin/sh
value=1000
case " $* " in
*" --hand "*) ;;
*) read n < {count}; echo $((n + 1)) > {count}
   case $((n % {len(values)})) in {cases} esac
   [ "$n" -lt {since} ] || value={later} ;;
esac
echo '{{"bytes_per_second": '$value'}}'
""")

    def test_undecided(self):
        """The median decides, and each is named."""
        name = "streams beside loops by hand: two-copy, 16384 B × 1"
        for values, kind, code in (((900, 980, 990), "keeps", 0), ((900, 960, 990), "misses", 1)):
            self.unsteady(*values)
            done = self.bench("--only", "streams", "--check", "--minutes", "0")
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn("0 limits reached, 24 undecided, 0 missed", done.stdout)
            self.assertIn(
                f"  undecided, median {kind} the limit: {name}: 0.{values[1]}, ≥ 0.97, 6 rounds\n", done.stdout
            )
            self.assertNotIn("with more rounds", done.stdout)

    def test_more_rounds_decide(self):
        """The first 6 rounds of 24 rows are undecided; the next rounds decide."""
        for later, words, code in (
            (1100, "24 limits reached, 0 undecided, 0 missed", 0),
            (500, "0 limits reached, 0 undecided, 24 missed", 1),
        ):
            self.unsteady(900, 980, 990, later=later, since=24 * 6)
            done = self.bench("--only", "streams", "--check", "--minutes", "4")
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn(words, done.stdout)
            self.assertIn("streams beside loops by hand, with more rounds", done.stdout)

    def test_missed(self):
        self.unsteady(900)
        done = self.bench("--only", "streams", "--check")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("0 limits reached, 0 undecided, 24 missed", done.stdout)

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
            self.assertEqual(sum(f"× {threads} " in row for row in rows), 3 * 6 + 3 * 2)
        self.assertIn("pingpong by io_uring beside system calls", done.stdout)
        self.assertIn("0 limits reached", done.stdout)


if __name__ == "__main__":
    unittest.main()
