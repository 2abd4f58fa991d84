# SPDX-License-Identifier: MIT
"""Records what the dashboard reads of an experiment over the pairs of the four-node guest, for tests/browser, which
draws its heat map from it:

    python3 tests/vm/record.py tests/browser/data/four-nodes.json.gz

The file has answers of the API by their targets, reduced to what the page shows there. Of the runs' details and samples
those of one pair of nodes are kept: what a press on its cell shows.
"""

import gzip
import json
import sys
import tempfile
from pathlib import Path

import guest as vm
import prepare
from conftest import SHAPES
from lab import Lab

SPEC = {
    "name": "Every pair of the guest",
    "workload": "pingpong",
    "transport": "pipe",
    "message_size": 64,
    "placement": ["all-node-pairs", "all-cpu-pairs"],
    "duration_seconds": 1,
    "warmup_seconds": 0.2,
    "repetitions": 2,
}
PRESSED = (0, 1)  # the two nodes with CPUs and memory


# What the map, the chart and the tables show of a row and of a listed run; the rest is mostly null in a guest.
ROW = ("point runs runs_planned runs_failed run_ids throughput_bytes_per_second messages_per_second latency_ns "
       "latency_histogram effective flags flag_runs error reasons").split()  # fmt: skip
RUN = "id experiment_id point repetition block position state attempt error flags started_at finished_at result".split()
RESULT = "throughput_bytes_per_second messages_per_second messages bytes window_ns latency_ns flags".split()


def is_pressed(point: dict) -> bool:
    return tuple(end.get("node") for end in point["placement"].values()) == PRESSED


def some(document: dict, names: list[str]) -> dict:
    return {name: value for name, value in document.items() if name in names}


def reduced(rows: list[dict], runs: list[dict]) -> None:
    for row in rows:
        row["reasons"] = some(row["reasons"], ROW)
    rows[:] = [some(row, ROW) for row in rows]
    runs[:] = [some(run, RUN) | {"result": some(run["result"], RESULT)} for run in runs]


def answers(lab: Lab, experiment: int) -> dict[str, dict]:
    """By target."""
    base = f"/experiments/{experiment}"
    targets = ["/topology", base, f"{base}/results", f"{base}/runs", f"{base}/findings"]
    found = dict(zip(targets, lab.get_all(*targets[:2], f"{base}/results?histogram=1", f"{base}/runs?limit=1000",
                                          targets[4]), strict=True))  # fmt: skip
    rows, runs = (found[f"{base}/{name}"]["items"] for name in ("results", "runs"))
    reduced(rows, runs)
    for run in [run["id"] for run in runs if is_pressed(run["point"])]:
        for part in ("", "/samples", "/histogram"):
            found[f"/runs/{run}{part}"] = lab.get(f"/runs/{run}{part}")
        found[f"/runs/{run}"]["environment"] = None  # of some ten kilobytes, which the map does not show
    return found


def main(path: Path) -> None:
    reason = vm.why_not()
    if reason:
        sys.exit(reason)
    root, package = prepare.made()
    with tempfile.TemporaryDirectory(prefix="ipclab-record-") as directory:
        disk = vm.make_disk(Path(directory) / "state.img")
        files = prepare.unpacked(package, Path(directory) / "files")
        lab = Lab(vm.Guest(root, SHAPES["four nodes"], {"/": files}, disk))
        try:
            experiment = lab.post(SPEC)
            lab.all_done(experiment, timeout=1800)
            found = answers(lab, experiment)
        finally:
            lab.guest.close()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(found, separators=(",", ":")).encode(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
