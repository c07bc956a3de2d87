"""How long simulated studies of 60 participants × 40 items take in ``wrods power``: draw, analyse, adjust.

``make bench`` or ``python tests/benchmarks/bench_power.py [--studies 200] [--processes 1] [--designs …]``. CPU seconds are those of
all processes, the start of the worker processes included; the load is that of the whole machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analysis.plan import MEASURES, Bound, Plan, against_reference
from analysis.power.assumptions import EffectStatement, assumed
from analysis.power.simulation import SimulationQuestion, Sizes, simulate

SIZE = Sizes(60, 40)
MEANS = {
    "accuracy of people": {"human": (93.0, 86.0)},
    "accuracy of people and a model": {"human": (93.0, 86.0), "model": (95.0, 85.0)},
    "accuracy of people and a model, 4 conditions": {
        "human": (93.0, 80.0, 88.0, 85.0),
        "model": (95.0, 85.0, 90.0, 88.0),
    },
    "log times of people": {"human": (900.0, 960.0)},
}
LEVELS = ("intact", "initial", "internal", "final")


def question(design: str) -> SimulationQuestion:
    """Make the question of a design."""
    means = MEANS[design]
    levels = LEVELS[: len(means["human"])]
    measure = MEASURES["rt" if "times" in design else "correct"]
    groups = tuple(means)
    bound = Bound(5.0, "points") if len(groups) > 1 else None
    plan = Plan(
        design, True, measure, "position", levels, groups, against_reference(list(levels)), equivalence=bound
    )
    given = [
        EffectStatement("mean", group, level, value)
        for group, values in means.items()
        for level, value in zip(levels, values, strict=True)
    ]
    return SimulationQuestion(
        plan, assumed(plan, {group: group for group in groups}, given, "benchmark"), "latin_square", 1
    )


def cpu_seconds() -> float:
    """CPU time of this process and those that have ended."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(resource.getrusage(kind).ru_utime + resource.getrusage(kind).ru_stime for kind in kinds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--designs", nargs="+", choices=list(MEANS), default=list(MEANS))
    asked = parser.parse_args()
    print("| design | studies | processes | wall s | CPU ms a study | fits a study | load |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for design in asked.designs:
        wall, cpu = time.perf_counter(), cpu_seconds()
        found = simulate(question(design), [SIZE], asked.studies, processes=asked.processes)
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
        fits = "–" if "accuracy" in design else f"{np.mean([one.steps for one in found]):.1f}"
        print(
            f"| {design} | {len(found):,} | {asked.processes} | {wall:.1f} | {1000 * cpu / len(found):.1f} | {fits} | "
            f"{os.getloadavg()[0]:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
