"""The scripted server in a process of its own: ``python tests/benchmarks/api_server.py --latency 0.2 [--rate 429:1=0.2]…``.

Prints its address, then serves until its standard input ends.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.scripted_openai import ScriptedOpenAI


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", action="append", default=[], help="BEHAVIOUR[:DETAIL]=SHARE")
    given = parser.parse_args()
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    with ScriptedOpenAI(delay=given.latency) as server:
        server.keeps_requests = False
        server.seed = given.seed
        for one in given.rate:
            name, _, share = one.partition("=")
            behaviour, _, detail = name.partition(":")
            server.rates[(behaviour, detail) if detail else behaviour] = float(share)
        print(server.url, flush=True)
        sys.stdin.read()
        print(json.dumps({"met": dict(server.counts), "most_at_once": server.most_at_once}), flush=True)


if __name__ == "__main__":
    main()
