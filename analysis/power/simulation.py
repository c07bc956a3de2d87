"""Draws the data of one study from the assumptions, analyses them as the study would, and keeps what was found.

The matrices of a model hang on the design and not on the answers, so each model that the reduction rule comes to is built once
for a design and then given one response after the other. All else is the analysis itself: :func:`analysis.estimation.analyse`.
What a fit gives hangs on the question, the size and the number of the fit alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.estimation import analyse
from analysis.frames import ModelData
from analysis.mixed import Fit
from analysis.mixed.fitting import fit_model, make_model
from analysis.mixed.result import Model
from analysis.plan import Plan
from analysis.power.assumptions import Assumptions
from analysis.power.layouts import Layout, Sizes, answered, trials
from analysis.results import Analysis, Contrast
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]
FORMAT = 3
"""Of a file of fits; another number when what a fit means changes."""


@dataclass(frozen=True)
class Question:
    """All that one simulated fit hangs on, beside its size and number.

    Attributes
    ----------
    plan : Plan
    assumptions : Assumptions
    layout : str
    reduce : bool
        Whether the random structure is reduced by the rule of the analysis, or the full one is taken as it is.
    seed : int
    """

    plan: Plan
    assumptions: Assumptions
    layout: Layout
    reduce: bool
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values, in a fixed order.

        Level, bound and wanted power are not among them: they judge fits and can change without new ones.
        """
        plan = self.plan
        return {
            "format": FORMAT,
            "wrods": _version(),
            "measure": plan.measure.name,
            "link": plan.measure.link,
            "factor": plan.factor,
            "levels": list(plan.levels),
            "groups": list(plan.groups),
            "contrasts": [[one.first, one.second, one.direction, *one.at] for one in plan.contrasts],
            **({"crossed": list(plan.crossing.factors)} if plan.crossing is not None else {}),
            "planned": plan.planned,
            "formula": plan.formula,
            "fallback": plan.fallback,
            "assumptions": self.assumptions.to_json(),
            "layout": self.layout,
            "reduce": self.reduce,
            "seed": self.seed,
        }

    def mark(self) -> str:
        """SHA-256 of the question, 16 hex digits: a file of fits belongs to one."""
        text = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _version() -> str:
    try:
        return metadata.version("wrods")
    except metadata.PackageNotFoundError:
        return ""


@dataclass(frozen=True)
class Found:
    """What one fit says of one contrast.

    Attributes
    ----------
    first, second : str
    groups : tuple of str
    at : tuple of str
        As in :class:`analysis.results.Contrast`.
    estimate, se, df : float or None
        On the modelled scale; df None for z.
    p, p_adjusted : float or None
        None where the data do not determine the contrast.
    points, points_low, points_high : float or None
        In percentage points with the 95 % interval.
    """

    first: str
    second: str
    groups: tuple[str, ...]
    estimate: float | None = None
    se: float | None = None
    df: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    points: float | None = None
    points_low: float | None = None
    points_high: float | None = None
    at: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """One simulated study.

    Attributes
    ----------
    sizes : Sizes
    number : int
        Which of the studies of that size, from 0.
    fitted : bool
        Whether there is a model.
    converged, singular : bool
        Of the reported fit.
    steps : int
        Fits on the way to it; more than one where the random structure was reduced.
    found : tuple of Found
        Contrasts that the data determine.
    """

    sizes: Sizes
    number: int
    fitted: bool
    converged: bool
    singular: bool
    steps: int
    found: tuple[Found, ...]


class Study:
    """A planned study of one size, ready to be simulated again and again.

    Parameters
    ----------
    question : Question
    sizes : Sizes

    Raises
    ------
    UserError
        Where the layout cannot be made in this size.
    """

    def __init__(self, question: Question, sizes: Sizes) -> None:
        self.question, self.sizes = question, sizes
        self.table = trials(question.plan, question.assumptions.kinds, sizes, question.layout)
        self._models: dict[tuple[str, ...], Model] = {}

    @cached_property
    def data(self) -> ModelData:
        """The data of the model with answers that only fill their place: right and wrong ones in every cell."""
        return answered(self.question.plan, self.table, _placed(self.table, self.question.plan))

    @cached_property
    def eta(self) -> Array:
        """The fixed part of the linear predictor, shape (trials,)."""
        cells = self.question.assumptions.cells
        pairs = zip(self.table["reader_group"], self.table[self.question.plan.factor], strict=True)
        return np.array([cells[pair] for pair in pairs])

    @cached_property
    def effects(self) -> list[tuple[NDArray[np.intp], int, Array, Array]]:
        """Random effects to draw: level of each trial, number of levels, columns (trials, k), square root of the covariance."""
        plan, columns = self.question.plan, self.data.rows
        made = []
        for term in self.question.assumptions.variance:
            codes, names = pd.factorize(columns[term.group])
            z = np.column_stack([_column(name, columns, plan) for name in term.terms])
            sizes, axes = np.linalg.eigh(term.cov)
            made.append((codes, len(names), z, axes * np.sqrt(np.clip(sizes, 0.0, None))))
        return made

    def draw(self, number: int | str) -> Array:
        """Draw the answers of one study: 0 and 1, logarithms, or bits and nats, shape (trials,)."""
        question = self.question
        seed = stable_seed("power", question.seed, question.plan.name, self.sizes.key, number)
        rng = np.random.default_rng(seed)
        eta = self.eta.copy()
        for codes, count, z, root in self.effects:
            b = rng.normal(size=(count, root.shape[1])) @ root.T
            eta += np.einsum("nk,nk->n", z, b[codes])
        if question.plan.measure.family == "binomial":
            return (rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
        return np.asarray(eta + rng.normal(scale=question.assumptions.sigma or 0.0, size=len(eta)))

    def simulate(self, number: int) -> Outcome:
        """Draw one study, analyse it and keep what was found."""
        return _outcome(self.sizes, number, self.analysed(number))

    def analysed(self, number: int) -> Analysis:
        """Draw one study and analyse it as a report does, reduction included."""
        values = self.draw(number)
        plan, data = self.question.plan, self.data
        if self._constant_somewhere(values):
            # A reader group or condition that is all right or all wrong leaves the model.
            data = answered(plan, self.table, values)
            values = data.rows[plan.measure.response].to_numpy(dtype=float)
        return analyse(plan, data, engine=self._engine(data, values), reduce=self.question.reduce)

    def _constant_somewhere(self, values: Array) -> bool:
        if self.question.plan.measure.family != "binomial":
            return False
        codes, count = self._cells
        share = np.bincount(codes, values, count) / np.bincount(codes, minlength=count)
        return bool(((share == 0.0) | (share == 1.0)).any())

    @cached_property
    def _cells(self) -> tuple[NDArray[np.intp], int]:
        cells = (
            self.table.groupby(["reader_group", self.question.plan.factor], sort=False).ngroup().to_numpy()
        )
        return cells.astype(np.intp), int(cells.max()) + 1

    def _engine(self, data: ModelData, values: Array) -> Callable[..., Fit]:
        """Return what stands in for ``fit``: the same model with these answers, its matrices made once.

        Equal groups and levels have equal rows, so matrices are kept by these and the formula; they are made with answers that
        fill their place, so that it does not matter which study came first.
        """
        plan = self.question.plan

        def engine(formula: str, rows: pd.DataFrame, **settings: Any) -> Fit:
            key = (formula, *data.groups, "/", *data.levels)
            if key not in self._models:
                placed = rows.assign(**{plan.measure.response: _placed(rows, plan)})
                self._models[key] = make_model(formula, placed, **settings)
            model = self._models[key]
            return fit_model(replace(model, frame=replace(model.frame, y=values)))

        return engine


def _placed(rows: pd.DataFrame, plan: Plan) -> Array:
    """Answers that only fill their place, shape (rows,): right and wrong in turn in every cell, or normal noise."""
    if plan.measure.family == "binomial":
        turn = rows.groupby(["reader_group", plan.factor]).cumcount().to_numpy()
        return np.asarray(turn % 2, dtype=np.float64)
    rng = np.random.default_rng(stable_seed("power", "placed"))
    return np.asarray(rng.normal(size=len(rows)), dtype=np.float64)


def _column(name: str, rows: pd.DataFrame, plan: Plan) -> Array:
    if ":" in name and name not in rows:
        return np.asarray(np.prod([_column(part, rows, plan) for part in name.split(":")], axis=0))
    if name == "(Intercept)":
        return np.ones(len(rows))
    if name in rows:
        return rows[name].to_numpy(dtype=float)
    for factor in (plan.factor,) if plan.crossing is None else plan.crossing.factors:
        if name.startswith(factor) and (rows[factor] == name.removeprefix(factor)).any():
            return np.asarray(rows[factor] == name.removeprefix(factor), dtype=np.float64)
    return np.zeros(len(rows))


def _outcome(sizes: Sizes, number: int, analysis: Analysis) -> Outcome:
    model = analysis.model
    if model is None:
        return Outcome(sizes, number, False, False, False, 0, ())
    found = tuple(_found(one) for one in analysis.contrasts if one.estimable)
    return Outcome(sizes, number, True, model.converged, model.singular, len(model.steps), found)


def _found(one: Contrast) -> Found:
    return Found(
        one.first,
        one.second,
        one.groups,
        one.estimate,
        one.se,
        one.df,
        one.p,
        one.p_adjusted,
        one.points,
        one.points_low,
        one.points_high,
        one.at,
    )
