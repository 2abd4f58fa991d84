#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What queue_depth is worth to a stream by io_uring: the throughput of depth 1 and of depth 8 beside each other, in
blocks of a random order, with the 95 % interval of their ratio. Run by tools/bench; wants an otherwise idle machine.
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from ipclabtest.daemon import Daemon  # noqa: E402
from paired import blocks_of, figure_of, ratio_line  # noqa: E402

DEPTHS = (1, 8)
TRANSPORTS = ("pipe", "unix-stream", "unix-seqpacket", "tcp")
SIZES = (64, 4096)


def available(client):
    """Those of TRANSPORTS that io_uring can have on this host; the others are named."""
    rows = {row["name"]: row for row in client.get("/transports")["items"]}
    for transport in TRANSPORTS:
        engine = rows[transport]["engines"]["io_uring"]
        if engine["available"]:
            yield transport
        else:
            print(f"{transport:15} not by io_uring: {engine['reason']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0].splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20, help="of runs, of each transport and size")
    parser.add_argument("--seconds", type=float, default=2, help="of a run")
    arguments = parser.parse_args()
    daemon = Daemon(listen="none")
    try:
        daemon.start()
        for transport in available(daemon.client()):
            for size in SIZES:
                spec = {"engine": "io_uring", "transport": transport, "message_size": size, "warmup_seconds": 0.2}
                spec |= {"queue_depth": list(DEPTHS), "repetitions": arguments.pairs}
                blocks = blocks_of(daemon.client(), spec | {"duration_seconds": arguments.seconds}, "queue_depth")
                figures = {depth: [figure_of(block[depth]) for block in blocks] for depth in DEPTHS}
                each = "  ".join(f"depth {d}: {statistics.median(figures[d]) / 1e6:8.1f} MB/s" for d in DEPTHS)
                line, _ = ratio_line([b / a for a, b in zip(*figures.values(), strict=True)])
                print(f"{transport:15} {size:5} B  {each}  {line}", flush=True)
    finally:
        daemon.remove()


if __name__ == "__main__":
    main()
