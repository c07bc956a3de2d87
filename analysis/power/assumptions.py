"""What a power analysis takes to be true: a linear predictor in every cell, and how participants, items and answers scatter.

All ways to say it (a pilot's fitted model, a table of the literature, values by hand) end here, on the scale of the model: log
odds or logarithms of milliseconds. Random effects are named as the fitted models name them, so that what is drawn and what
is fitted can be held against each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from analysis.contrasts import averaged_probability
from analysis.crossing import slopes_in_cell
from analysis.frames import indicator
from analysis.plan import Difference, Plan
from analysis.readers import PARTICIPANT_KINDS
from analysis.results import VarianceTerm
from stimuli.errors import UserError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Assumptions:
    """The truth that data are drawn from."""

    cells: Mapping[tuple[str, str], float]  # linear predictor for a participant and an item at the centre
    variance: tuple[VarianceTerm, ...]
    sigma: float | None  # residual standard deviation; None for accuracy
    kinds: Mapping[str, str]  # reader kind of each group
    source: str  # where the values come from, in words
    remarks: tuple[str, ...] = ()  # what was assumed without being said, and what was left out

    def variance_in(self, plan: Plan, group: str, level: str) -> float:
        """Variance of the linear predictor over participants, items and prompts in one cell, the residual left out."""
        person = self.kinds[group] in PARTICIPANT_KINDS
        total = 0.0
        for term in self.variance:
            if term.group == "participant" and not person:
                continue
            z = self.columns(term, plan, group, level)
            total += float(z @ term.cov @ z)
        return total

    def columns(self, term: VarianceTerm, plan: Plan, group: str, level: str) -> Array:
        """Return the columns of a random term in one cell, shape (k,)."""
        person = self.kinds[group] in PARTICIPANT_KINDS
        cell = cell_name(group, level)
        return np.array([1.0 if name == cell else _active(name, plan, level, person) for name in term.terms])

    def mean(self, plan: Plan, group: str, level: str) -> float:
        """Mean of a cell as people speak of it: percent correct averaged over everything, or the geometric mean in ms."""
        eta = self.cells[group, level]
        if plan.measure.family == "binomial":
            return 100.0 * averaged_probability(eta, self.variance_in(plan, group, level))[0]
        return float(np.exp(eta)) if plan.measure.logged else eta

    def effect(self, plan: Plan, difference: Difference, groups: tuple[str, ...]) -> float:
        """Return the true contrast within one group, or of the first group minus the second."""
        values = []
        for group in groups:
            own = {
                level: self.mean(plan, group, level)
                if plan.measure.family == "binomial"
                else self.cells[group, level]
                for level in plan.levels
            }
            values.append(sum(weight * own[level] for level, weight in plan.weights(difference).items()))
        found = values[0] - values[1] if len(values) == 2 else values[0]
        return 0.0 if abs(found) < 1e-9 else found

    def to_json(self) -> dict[str, Any]:
        """Return plain values, in a fixed order: what a question's hash covers and a result records."""
        return {
            "cells": [[group, level, float(value)] for (group, level), value in sorted(self.cells.items())],
            "variance": [
                {"group": term.group, "terms": list(term.terms), "cov": term.cov.tolist()}
                for term in self.variance
            ],
            "sigma": self.sigma,
            "kinds": dict(sorted(self.kinds.items())),
        }


def cell_name(group: str, level: str) -> str:
    """Name the column that is 1 for one reader group in one condition."""
    return f"{group} in {level}"


def log_odds_at(share: float, variance: float) -> float:
    """Return the log odds at the centre for which the mean over a normal predictor of this variance is a share."""
    reach = (
        abs(float(special.logit(share))) * float(np.sqrt(1.0 + variance))
        + 5.0
        + 3.0 * float(np.sqrt(variance))
    )
    return float(
        optimize.brentq(lambda eta: averaged_probability(eta, variance)[0] - share, -reach, reach, xtol=1e-10)
    )


def _active(name: str, plan: Plan, level: str, person: bool) -> float:
    if ":" in name:
        return float(np.prod([_active(part, plan, level, person) for part in name.split(":")]))
    if name == "(Intercept)":
        return 1.0
    if name in ("people", "model"):
        return float(person == (name == "people"))
    if name in (f"{plan.factor}{level}", indicator(plan.factor, level)):
        return 1.0
    if plan.crossing is not None:
        values = slopes_in_cell(plan.crossing, level) | slopes_in_cell(
            plan.crossing, level, "people" if person else "model"
        )
        if name in values:
            return values[name]
    return float(person and name == indicator("people", level))


def without_effects(assumptions: Assumptions, plan: Plan) -> Assumptions:
    """Return the null hypothesis: every condition is as its reader group's reference."""
    reference = plan.levels[0]
    cells = {}
    for group, level in assumptions.cells:
        cells[group, level] = assumptions.cells[group, reference]
        if plan.measure.family == "binomial" and level in plan.levels:
            share = assumptions.mean(plan, group, reference) / 100.0
            cells[group, level] = log_odds_at(share, assumptions.variance_in(plan, group, level))
    source = f"{assumptions.source}; all differences between conditions set to zero"
    return replace(assumptions, cells=cells, source=source)


def check(assumptions: Assumptions, plan: Plan) -> Assumptions:
    """Return the assumptions if data can be drawn from them."""
    for group in plan.groups:
        for level in plan.levels:
            if (group, level) not in assumptions.cells:
                raise UserError(
                    f"nothing says how {group} does in {level} ({assumptions.source})",
                    mend=f"Give its mean, such as --mean {group}:{level}=90 (percent or ms), or its effect.",
                )
            if not np.isfinite(assumptions.cells[group, level]):
                raise UserError(f"the assumed value of {group} in {level} is not finite")
    for term in assumptions.variance:
        if not np.isfinite(term.cov).all():
            raise UserError(
                f"the variance of {term.group} is not a number", mend="Give standard deviations from 0 up."
            )
        smallest = float(np.linalg.eigvalsh(term.cov)[0])
        if smallest < -1e-8 * max(1.0, float(np.abs(term.cov).max())):
            raise UserError(
                f"the standard deviations and correlations of {term.group} contradict each other",
                mend="Bring the correlations nearer to 0.",
            )
    if plan.measure.family != "binomial" and not (assumptions.sigma or 0.0) > 0:
        raise UserError(
            f"{plan.measure.noun} without a residual standard deviation cannot be drawn",
            mend="Give it, such as --sd residual=0.4.",
        )
    return assumptions
