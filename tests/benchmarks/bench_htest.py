"""How long a full H-TEST set takes: ten tasks with 50 exemplars and 200 test items each, in both makings.

Run by ``make bench``, or ``python tests/benchmarks/bench_htest.py``; the folder of the released files is taken from
``../shared/data/htest`` where it is there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from stimuli.htest.generation import generate  # noqa: E402
from stimuli.htest.released import RELEASED_TASKS  # noqa: E402
from stimuli.htest.rules import rules  # noqa: E402
from stimuli.recipes.htest import (  # noqa: E402
    ABTaskDesign,
    htest_published_items,
    htest_released_items,
    htest_rule_items,
)

EXEMPLARS, ITEMS, SEED = 50, 200, 20_240


def seconds(work: Callable[[], object]) -> float:
    """Return the wall-clock seconds that a piece of work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """Print a table of seconds."""
    print(
        f"{EXEMPLARS} exemplars and {ITEMS} test items a task; texts only, first use of a resource included"
    )
    for name in rules():
        took = seconds(lambda name=name: generate(name, exemplars=EXEMPLARS, items=ITEMS, seed=SEED))
        print(f"  {name:<18}{took:>8.2f} s")
    design = ABTaskDesign(exemplars=EXEMPLARS, items=ITEMS, seed=SEED)
    sets: dict[str, Callable[[], object]] = {
        "corrected, ten tasks": lambda: htest_rule_items(RELEASED_TASKS, design)
    }
    released = ROOT.parent / "shared" / "data" / "htest"
    if released.is_dir():
        sets["published making, ten tasks"] = lambda: htest_published_items(released, design)
        sets["released, ten tasks"] = lambda: htest_released_items(
            released, ABTaskDesign(exemplars=EXEMPLARS, seed=SEED)
        )
    print("items with covariates")
    for what, work in sets.items():
        print(f"  {what:<32}{seconds(work):>8.2f} s")


if __name__ == "__main__":
    main()
