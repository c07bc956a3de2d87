"""Count what simulated studies found: power by size, the numbers needed, and a report of both."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Template
from scipy import optimize, stats

from analysis.arrays import Array
from analysis.intervals import wilson
from analysis.mixed.result import lined_up
from analysis.plan import LevelDifference, Measure, Plan
from analysis.power.assumptions import Assumptions, sides
from analysis.power.simulation import SimulatedStudy, SimulationQuestion, Sizes
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

DRAWS = 4000
"""Curves drawn for the interval of a needed size."""
AXES = ("participants", "items", "prompts", "replicates")


@dataclass(frozen=True)
class Test:
    """One test of a plan: a difference in a reader group or between two, or its equivalence to none."""

    __test__ = False

    kind: str
    difference: LevelDifference
    groups: tuple[str, ...]  # one reader group, or the first of the plan and another

    @property
    def readers(self) -> str:
        """The reader groups in words."""
        return " − ".join(self.groups)


def tests_of(plan: Plan) -> list[Test]:
    """List the tests of a plan in the order of its contrasts: within each reader group, between them, equivalences."""
    tests = []
    for difference in plan.contrasts:
        within = [(group,) for group in plan.groups]
        between = [(plan.groups[0], group) for group in plan.groups[1:]]
        tests += [Test("difference", difference, groups) for groups in [*within, *between]]
        if plan.equivalence is not None:
            tests += [Test("equivalence", difference, groups) for groups in between]
    return tests


def power_table(plan: Plan, assumptions: Assumptions, outcomes: Sequence[SimulatedStudy]) -> pd.DataFrame:
    """Count the effects that simulated studies detected.

    Parameters
    ----------
    plan : Plan
        With level (``alpha``) and bound (``equivalence``).
    assumptions : Assumptions
        What they were drawn from.
    outcomes : sequence of Outcome

    Returns
    -------
    DataFrame
        One row per test and size:

        =====================================  ====================================================================
        column                                 content
        =====================================  ====================================================================
        kind                                   ``difference`` or ``equivalence``
        contrast, readers                      ``initial − intact``; ``human``, or ``human − gpt``
        participants, items, prompts,          the size
        replicates
        studies                                simulated studies
        found                                  studies in which the adjusted p lies below alpha
        power, power_low, power_high           found / studies with the 95% Wilson interval
        power_unadjusted                       of differences: the same without the adjustment for the family
        power_of_usable                        found / (studies whose data and fit determine the contrast); nan for none
        wrong_sign                             share of the differences found that have the wrong sign; nan if none
                                               is found, or if there is nothing to find
        true_effect                            in percentage points for accuracy, else on the modelled scale
        mean_estimate, mean_se                 over the usable studies, on the same scale
        no_model, not_converged,               shares of the studies that found nothing for this reason
        not_determined
        singular, reduced                      shares whose mixed model is singular as reported; was reduced on the way
        =====================================  ====================================================================
    """
    by_size: dict[Sizes, list[SimulatedStudy]] = {}
    for outcome in outcomes:
        by_size.setdefault(outcome.sizes, []).append(outcome)
    rows = product(tests_of(plan), by_size.items())
    return pd.DataFrame([_row(test, sizes, studies, plan, assumptions) for test, (sizes, studies) in rows])


def _row(
    test: Test, sizes: Sizes, outcomes: list[SimulatedStudy], plan: Plan, truth: Assumptions
) -> dict[str, object]:
    key = test.difference.label, test.groups
    estimates = [
        {(estimate.difference.label, estimate.groups): estimate for estimate in reversed(study.found)}.get(
            key
        )
        for study in outcomes
    ]
    studies = pd.DataFrame(
        [(outcome.fitted, outcome.converged, outcome.singular, outcome.steps > 1) for outcome in outcomes]
    )
    fitted, converged, singular, reduced = studies.to_numpy(dtype=bool).T
    determined = np.array([estimate is not None for estimate in estimates])
    usable = converged & determined
    equal = test.kind == "equivalence"
    detected = usable & [
        estimate is not None and bool(estimate.equivalent if equal else estimate.significant)
        for estimate in estimates
    ]
    unadjusted = usable & [estimate is not None and estimate.p < plan.alpha for estimate in estimates]
    numbers = np.array(
        [(estimate.estimate, estimate.se) if estimate else (np.nan, np.nan) for estimate in estimates]
    )
    means = numbers[usable].mean(axis=0) if usable.any() else (np.nan, np.nan)
    effect = truth.effect(plan, test.difference, test.groups)
    wrong_sign = np.sign(numbers[detected, 0]) != np.sign(effect)
    low, high = wilson(float(detected.mean()), len(estimates))
    return {
        "kind": test.kind,
        "contrast": test.difference.label,
        "readers": test.readers,
        **{name: getattr(sizes, name) for name in AXES},
        "studies": len(estimates),
        "found": int(detected.sum()),
        "power": float(detected.mean()),
        "power_low": low,
        "power_high": high,
        "power_unadjusted": np.nan if equal else float(unadjusted.mean()),
        "power_of_usable": float(detected.sum() / usable.sum()) if usable.any() else np.nan,
        "wrong_sign": np.nan
        if equal or not len(wrong_sign) or abs(effect) < 1e-9
        else float(wrong_sign.mean()),
        "true_effect": effect,
        "mean_estimate": float(means[0]),
        "mean_se": float(means[1]),
        "no_model": float((~fitted).mean()),
        "not_converged": float((fitted & ~converged).mean()),
        "not_determined": float((converged & ~determined).mean()),
        "singular": float(singular.mean()),
        "reduced": float(reduced.mean()),
    }


def check_wanted(wanted: float) -> None:
    """Refuse a wanted power that is none."""
    if not 0.0 < wanted < 1.0:
        raise UserError(f"the wanted power is {wanted:g}; it lies between 0 and 1", mend="For example 0.8.")


def needed(table: pd.DataFrame, wanted: float) -> pd.DataFrame:
    """Find the smallest number of participants, items, prompts or replicates with a wanted power.

    Along each size that varies, all others fixed, power is made monotone (isotonic regression weighted by the number of studies)
    and interpolated on the probit scale in the root of the number, on which the power of a z test is a line. The interval
    holds 95 % of the numbers from curves drawn from what the studies leave open (Beta with Jeffreys' prior at every size).

    Parameters
    ----------
    table : DataFrame
        From :func:`power_table`.
    wanted : float
        Between 0 and 1.

    Returns
    -------
    DataFrame
        kind, contrast, readers, of (participants, items …), the other sizes, wanted, number (rounded up), low, high, and
        ``reached``: ``yes``, ``at the smallest`` (fewer may do) or ``no`` (number is nan). An end of the interval that lies
        beyond the grid is nan (high) or the smallest size (low).

    Raises
    ------
    UserError
        For a wanted power outside (0, 1).
    """
    check_wanted(wanted)
    rows: list[dict[str, object]] = []
    names = ["kind", "contrast", "readers"]
    for axis in AXES:
        others = [*names, *(name for name in AXES if name != axis)]
        for key, curve in table.groupby(others, sort=False):
            if curve[axis].nunique() > 1:
                numbers = _needed(curve.sort_values(axis), axis, wanted)
                rows.append({**dict(zip(others, key, strict=True)), "of": axis, "wanted": wanted, **numbers})
    return pd.DataFrame(rows, columns=[*names, "of", *AXES, "wanted", "number", "low", "high", "reached"])


def _needed(curve: pd.DataFrame, axis: str, wanted: float) -> dict[str, object]:
    sizes = curve[axis].to_numpy(dtype=float)
    detected, studies = curve["found"].to_numpy(dtype=float), curve["studies"].to_numpy(dtype=float)
    best = _crossing(sizes, detected / studies, studies, wanted)
    test = curve[["kind", "contrast", "readers"]].iloc[0].tolist()
    rng = np.random.default_rng(stable_seed("power", "needed", axis, *test))
    drawn = rng.beta(detected + 0.5, studies - detected + 0.5, size=(DRAWS, len(sizes)))
    numbers = np.sort([_crossing(sizes, power, studies, wanted) for power in drawn])
    # np.inf stands for beyond the grid, so the quantiles are taken from sorted numbers without interpolation
    low, high = numbers[int(0.025 * (DRAWS - 1))], numbers[int(np.ceil(0.975 * (DRAWS - 1)))]
    reached = "no" if np.isinf(best) else "at the smallest" if best <= sizes[0] else "yes"
    ends = [float(np.ceil(end - 1e-9)) if np.isfinite(end) else np.nan for end in (best, low, high)]
    return {"number": ends[0], "low": ends[1], "high": ends[2], "reached": reached}


def _crossing(sizes: Array, power: Array, studies: Array, wanted: float) -> float:
    """Return where a monotone curve through the powers crosses the wanted one; the smallest size, or infinity beyond the largest."""
    rising = np.asarray(optimize.isotonic_regression(power, weights=studies).x)
    reached = np.flatnonzero(rising >= wanted)
    if not len(reached):
        return float("inf")
    if reached[0] == 0:
        return float(sizes[0])
    left, right = reached[0] - 1, reached[0]
    edge = 0.5 / studies
    z = stats.norm.ppf(np.clip(rising, edge, 1.0 - edge)[[left, right]])
    target = float(np.clip(stats.norm.ppf(wanted), z[0], z[1]))
    share = (target - z[0]) / (z[1] - z[0]) if z[1] > z[0] else 1.0
    root = np.sqrt(sizes[left]) + share * (np.sqrt(sizes[right]) - np.sqrt(sizes[left]))
    return float(root**2)


@dataclass(frozen=True)
class PowerReport:
    """One plan's power."""

    question: SimulationQuestion
    table: pd.DataFrame  # see `analysis.power.power_table`
    needed: pd.DataFrame  # see `analysis.power.needed`
    wanted: float
    remarks: tuple[str, ...]  # what was assumed, left out or cannot be said

    @property
    def stem(self) -> str:
        """File name of this plan, without ending."""
        return "power_" + re.sub(r"[^A-Za-z0-9]+", "_", self.question.plan.name).strip("_")

    def to_json(self) -> dict[str, Any]:
        """Return plain values; what is not defined is None."""
        plan = self.question.plan
        bound = plan.equivalence
        return {
            "plan": plan.name,
            "alpha": plan.alpha,
            "equivalence": None if bound is None else {"value": bound.value, "unit": bound.unit},
            "wanted": self.wanted,
            "question": self.question.to_json(),
            "source": self.question.assumptions.source,
            "means": [
                {"reader": g, "condition": c, "mean": self.question.assumptions.mean(plan, g, c)}
                for g, c in product(plan.groups, plan.levels)
            ],
            "power": self.table.astype(object).where(self.table.notna(), None).to_dict("records"),
            "needed": self.needed.astype(object).where(self.needed.notna(), None).to_dict("records"),
            "remarks": list(self.remarks),
        }

    def text(self) -> str:
        """Write everything for a terminal."""
        plan, truth = self.question.plan, self.question.assumptions
        bound = plan.equivalence
        rows = [[g, *(_mean(truth.mean(plan, g, c), plan.measure) for c in plan.levels)] for g in plan.groups]
        distinct = self.table.drop_duplicates(list(AXES))
        template = Template(Path(__file__).with_name("power.txt.jinja").read_text("utf-8"))
        text: str = template.render(
            plan=plan,
            measure=plan.measure,
            bound=bound and (bound.said or f"{bound.value:g} {bound.unit}"),
            source=truth.source,
            means="\n".join(lined_up([["", *plan.levels], *rows], {0})),
            power="\n".join(lined_up(self._power_rows(), {0, 1})),
            studies=int(distinct["studies"].sum()),
            share=lambda name: f"{100 * np.average(distinct[name], weights=distinct['studies']):.1f}%",
            worst=self.table.sort_values("not_determined").iloc[-1],
            wanted=self.wanted,
            needed="\n".join(lined_up(self._needed_rows(), {0, 1, 2})) if len(self.needed) else "",
            remarks=self.remarks,
        )
        return text.rstrip()

    def _varying(self) -> list[str]:
        people, _ = sides(self.question.plan, self.question.assumptions.kinds)
        varied = [a for a in AXES[2:] if self.table[a].nunique() > 1]
        return [*(["participants"] if people else []), "items", *varied]

    def _power_rows(self) -> list[list[str]]:
        measure = self.question.plan.measure
        varying = self._varying()
        rows = [["test", "readers", *varying, "true", "power", "95% CI", "unadjusted"]]
        for row in self.table.to_dict("records"):
            true = {
                "points": f"{round(row['true_effect'], 1) + 0.0:+.1f} pts",
                "ratio": f"{100 * math.expm1(row['true_effect']):+.1f} %",
                "raw": f"{row['true_effect']:+.2f} {measure.unit}",
            }[measure.scale]
            ends = f"[{100 * row['power_low']:.1f}, {100 * row['power_high']:.1f}]"
            unadjusted = (
                "" if math.isnan(row["power_unadjusted"]) else f"{100 * row['power_unadjusted']:.1f}%"
            )
            sizes = [str(row[a]) for a in varying]
            rows.append([*_named(row), *sizes, true, f"{100 * row['power']:.1f}%", ends, unadjusted])
        return rows

    def _needed_rows(self) -> list[list[str]]:
        varying = self._varying()
        rows = [["test", "readers", "of", *varying, "number", "95% CI"]]
        for row in self.needed.to_dict("records"):
            sizes = self.table[row["of"]]
            ends = (row["low"], row["high"])
            low, high = (f"> {sizes.max()}" if math.isnan(end) else f"{end:.0f}" for end in ends)
            number = {"no": f"more than {sizes.max()}", "at the smallest": f"at most {sizes.min()}"}.get(
                row["reached"], f"{row['number']:.0f}"
            )
            fixed = ["" if math.isnan(row[a]) else f"{row[a]:.0f}" for a in varying]
            rows.append([*_named(row), str(row["of"]), *fixed, number, f"[{low}, {high}]"])
        return rows


def _named(row: Mapping[Any, Any]) -> tuple[str, str]:
    """Return the contrast, marked where it is an equivalence, and the readers."""
    return f"{'≈ ' if row['kind'] == 'equivalence' else ''}{row['contrast']}", str(row["readers"])


def _mean(value: float, measure: Measure) -> str:
    return f"{value:,.0f}" if measure.scale == "ratio" else f"{value:.1f}"


def tell(
    question: SimulationQuestion,
    outcomes: Sequence[SimulatedStudy],
    wanted: float,
    remarks: Sequence[str] = (),
) -> PowerReport:
    """Count what simulated studies found."""
    table = power_table(question.plan, question.assumptions, outcomes)
    all_remarks = (*remarks, *question.assumptions.remarks)
    return PowerReport(question, table, needed(table, wanted), wanted, tuple(dict.fromkeys(all_remarks)))


def write(report: PowerReport, folder: Path) -> list[Path]:
    """Write table and needed numbers as CSV, everything as JSON, and the figure as SVG and PNG."""
    from analysis.figures.simulation import power_figure

    folder.mkdir(parents=True, exist_ok=True)
    table, numbers, document = (folder / f"{report.stem}{end}" for end in (".csv", "_needed.csv", ".json"))
    report.table.to_csv(table, index=False)
    report.needed.to_csv(numbers, index=False)
    document.write_text(json.dumps(report.to_json(), ensure_ascii=False, indent=1) + "\n", "utf-8")
    plan = report.question.plan
    title = f"Power of {plan.name}"
    drawing = power_figure(report.stem, title, report.table, report.needed, report.wanted, plan.alpha)
    return [table, numbers, document, *drawing.save(folder)]
