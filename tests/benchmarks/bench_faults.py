"""A server that fails: what becomes of each request, in wrods and in three peers.

``python tests/benchmarks/bench_faults.py [--requests 400] [--at-once 50] [--peers DIR]``. Of all requests, drawn by a
seed, 20% are answered by 429 (with Retry-After: 1), 5% by 500, 2% by half a JSON, 3% by a closed connection, and 1% never.
An attempt may take 5 s, and each peer may try eight times again. Each client meets a fresh server in a process of its own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_api import NAMES, ask, environments, scripted_server

RATES = ("429:1=0.2", "500=0.05", "malformed=0.02", "drop=0.03", "stall=0.01")
SECONDS = "5"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--at-once", type=int, default=50)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=["wrods", "bare", "lm-eval", "inspect"])
    given = parser.parse_args()
    print("| client | wall s | answered | recorded as faults | without a trace | how it ended | faults met |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    arguments = ["--latency", "0.2", "--seed", str(given.seed)]
    for rate in RATES:
        arguments += ["--rate", rate]
    with tempfile.TemporaryDirectory() as made_in:
        pythons = environments(given.peers, Path(made_in))
        for name in given.only:
            with scripted_server(*arguments) as (url, met):
                found = ask(name, pythons[name], url, given.requests, given.at_once, SECONDS)
            faults = sum(met["met"].get(one.partition("=")[0].partition(":")[0], 0) for one in RATES)
            print(
                f"| {NAMES[name]} | {found['wall']:.1f} | {found['answered']} | {found['faults']} | {found['missing']} | "
                f"{found['ended']} | {faults} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
