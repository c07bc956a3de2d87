"""Processor time to match items: a full H-TEST set (ten tasks, 50 exemplars, 200 items), and 2,000 words in three conditions.

Run with ``make bench`` or alone. ``bench_htest.py`` times the making of the set; here its items are dealt to exemplars
and test items, and to counterbalancing lists, so that both agree on their covariates.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from stimuli.matching import SMD_LIMIT, MatchCandidate, Matched, match_lists, match_sets

TASKS, EXEMPLARS, ITEMS, LISTS = 10, 50, 200, 4
CANDIDATES, GROUPS = 2000, 3
ON = {"letters": 1, "zipf": 0.3, "old20": 0.4}


def candidates(number: int, groups: int, seed: int) -> list[MatchCandidate]:
    """Make candidates with covariates of the size of English words; groups differ a little in frequency."""
    draw = random.Random(seed)
    return [
        MatchCandidate(
            f"c{place:05d}",
            f"group-{place % groups + 1}",
            {
                "letters": draw.randint(4, 9),
                "zipf": round(draw.gauss(4.0 + 0.15 * (place % groups), 0.8), 2),
                "old20": round(draw.gauss(1.9, 0.4), 2),
            },
        )
        for place in range(number)
    ]


def match_htest_set(tasks: int = TASKS, exemplars: int = EXEMPLARS, items: int = ITEMS) -> list[Matched]:
    """Match a full set: per task A and B items agree, one by one; then the test items go to lists that agree."""
    found = []
    for task in range(tasks):
        pool = candidates(2 * (exemplars + items), 2, seed=task)
        matched = match_sets(pool, ON, (exemplars + items) // 2, seed=1).require()
        chosen = {name for ids in matched.sets.values() for name in ids[:items]}
        lists = match_lists([one for one in pool if one.id in chosen], LISTS, ON, seed=1).require()
        found += [matched, lists]
    return found


def worst(found: list[Matched]) -> float:
    """Return the largest absolute standardised mean difference."""
    return max(abs(one.smd or 0.0) for matched in found for one in matched.balance.contrasts)


def timed(work: Callable[[], list[Matched]]) -> tuple[float, list[Matched]]:
    """Return the processor seconds that work takes, and what it gives."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def main() -> None:
    """Print the table."""
    pool = candidates(CANDIDATES, GROUPS, seed=1)
    import scipy.optimize  # noqa: F401  (its import is no part of matching)

    rows = [
        (f"H-TEST set: {TASKS} tasks, {EXEMPLARS} + {ITEMS} items, {LISTS} lists", match_htest_set),
        (
            f"{CANDIDATES:,} candidates, {GROUPS} groups, size 200",
            lambda: [match_sets(pool, ON, 200, seed=1)],
        ),
        (f"{CANDIDATES:,} candidates, {GROUPS} groups, largest size", lambda: [match_sets(pool, ON, seed=1)]),
        (f"{CANDIDATES:,} items in {LISTS} lists", lambda: [match_lists(pool, LISTS, ON, seed=1)]),
    ]
    print(f"{'matching':60} {'CPU s':>8} {'largest |SMD|':>14}   (limit {SMD_LIMIT})")
    for name, work in rows:
        seconds, found = timed(work)
        reached = f", {found[0].reachable} per set" if "largest" in name else ""
        print(f"{name + reached:60} {seconds:8.2f} {worst(found):14.4f}")


if __name__ == "__main__":
    main()
