"""How long 1,000 simulated studies of 60 participants × 40 items take, and what keeping matrices and warm starts bring.

``make bench`` or ``python tests/benchmarks/bench_power.py [--fits 1000] [--processes 2] [--designs …] [--parts …]``. Single fits come
first: from the formula each time, with the matrices of the design kept, and with the search begun at the truth as well. Then every
design goes through ``wrods power``'s own path: draw, fit, reduce by the rule (or not), test, keep. CPU seconds are those of all
processes, the start of the worker processes included; the load says what else the machine did.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analysis.mixed import Fit, fit
from analysis.mixed.fitting import fit_model
from analysis.mixed.laplace import LaplaceDeviance
from analysis.plan import MEASURES, Bound, Plan, against_reference
from analysis.power import Given, Kept, Question, Sizes, Study, assumed, simulate

SIZE = Sizes(60, 40)
MEANS = {
    "people": {"human": (93.0, 86.0)},
    "people and a model": {"human": (93.0, 86.0), "model": (95.0, 85.0)},
    "people and a model, 4 conditions": {
        "human": (93.0, 80.0, 88.0, 85.0),
        "model": (95.0, 85.0, 90.0, 88.0),
    },
    "log times of people": {"human": (900.0, 960.0)},
}
LEVELS = ("intact", "initial", "internal", "final")


def question(design: str, *, reduce: bool = True) -> Question:
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
        Given("mean", group, level, value)
        for group, values in means.items()
        for level, value in zip(levels, values, strict=True)
    ]
    kinds = {group: group for group in groups}
    return Question(plan, assumed(plan, kinds, given, "benchmark"), "latin_square", reduce, 1)


def cpu_seconds() -> float:
    """CPU time of this process and those that have ended."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(resource.getrusage(kind).ru_utime + resource.getrusage(kind).ru_stime for kind in kinds)


def whole_path(design: str, fits: int, processes: int, *, reduce: bool) -> None:
    """Print one row: a design through draw, fit, reduction, tests and file."""
    asked = question(design, reduce=reduce)
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(Path(folder) / "fits.jsonl", asked)
        wall, cpu = time.perf_counter(), cpu_seconds()
        found = simulate(asked, [SIZE], fits, kept, processes=processes)
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    steps = np.mean([one.steps for one in found])
    rule = "reduced by the rule" if reduce else "full structure"
    load = os.getloadavg()[0]
    print(
        f"| {design} | {rule} | {len(found)} | {processes} | {wall:.0f} | {cpu:.0f} | {cpu / fits:.2f} | {steps:.1f} "
        f"| {60 * fits / wall:.0f} | {load:.1f} |",
        flush=True,
    )


def at_the_truth(theta: NDArray[np.float64]) -> mock._patch[object]:
    """Let the search begin at given variances instead of a guess from the spread of the modes."""

    def nearer(self: LaplaceDeviance, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([theta, x[self.covariance.size :]])

    return mock.patch.object(LaplaceDeviance, "nearer", nearer)


def single_fits(design: str, count: int) -> None:
    """Print one row: the full model of a design, fitted in three ways to the same draws."""
    study = Study(question(design), SIZE)
    rows, plan = study.data.rows, study.question.plan
    mixed = len(plan.groups) > 1
    columns = [str(name) for name in rows if str(name).startswith("people_")] if mixed else []
    people = (
        f"(0 + people + {' + '.join(columns)} | participant)" if mixed else "(1 + position | participant)"
    )
    fixed = "reader_group * position" if mixed else "position"
    formula = f"{plan.measure.response} ~ {fixed} + {people} + ({'1 + model' if mixed else '1'} | item)"
    levels = {"position": list(plan.levels)} | ({"reader_group": list(plan.groups)} if mixed else {})
    draws = [study.draw(number) for number in range(count)]
    first = fit(formula, rows.assign(correct=draws[0]), plan.measure.family, levels=levels)
    seconds: dict[str, list[float]] = {"formula": [], "kept": [], "warm": []}
    evaluations: dict[str, list[int]] = {"formula": [], "kept": [], "warm": []}
    apart = 0.0
    for y in draws[1:]:
        made: dict[str, Fit] = {}
        for way in seconds:
            begun = time.process_time()
            if way == "formula":
                made[way] = fit(formula, rows.assign(correct=y), plan.measure.family, levels=levels)
            else:
                again = replace(first.model, frame=replace(first.model.frame, y=y))
                if way == "warm":
                    with at_the_truth(first.theta):
                        made[way] = fit_model(again)
                else:
                    made[way] = fit_model(again)
            seconds[way].append(time.process_time() - begun)
            evaluations[way].append(made[way].evaluations)
        apart = max(apart, abs(made["warm"].loglik - made["formula"].loglik))
    cells = " | ".join(
        f"{np.median(seconds[way]):.3f} ({np.median(evaluations[way]):.0f})" for way in seconds
    )
    print(f"| {design} | {cells} | {apart:.0e} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--single", type=int, default=15, help="draws of the table of single fits")
    parser.add_argument("--designs", nargs="+", choices=list(MEANS), default=list(MEANS))
    parser.add_argument("--parts", nargs="+", choices=["path", "single"], default=["path", "single"])
    asked = parser.parse_args()
    if "single" in asked.parts:
        print(
            "| design | from the formula: CPU s (evaluations) | matrices kept | begun at the truth too | log-likelihoods apart |"
        )
        print("| --- | --- | --- | --- | --- |")
        for design in asked.designs:
            if "times" not in design:
                single_fits(design, asked.single)
        print()
    if "path" in asked.parts:
        print(
            "| design | random structure | studies | processes | wall s | CPU s | CPU s a study | fits a study | a minute | load |"
        )
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        for design in asked.designs:
            for reduce in (True, False):
                whole_path(design, asked.fits, asked.processes, reduce=reduce)


if __name__ == "__main__":
    main()
