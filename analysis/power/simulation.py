"""Draws the data of one study from the assumptions, analyses them as the report does, and keeps what was found.

Accuracy is estimated in percentage points by :mod:`analysis.estimate`, in a few milliseconds per study. Other measures have their
mixed model: its matrices depend on the design and not on the answers, so each model to which the reduction rule leads is built
once for a design and then given one response after the other. The result depends on the question, the size and the number of the
study alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.estimate.crossed import Answers, estimate, model_means
from analysis.estimate.crossed import Layout as Units
from analysis.estimation import analyse
from analysis.families import adjusted
from analysis.frames import ModelData
from analysis.mixed import Fit
from analysis.mixed.fitting import fit_model, make_model
from analysis.mixed.result import Model
from analysis.plan import Difference, Plan
from analysis.power.assumptions import Assumptions
from analysis.power.layouts import Layout, Sizes, answered, trials
from analysis.readers import PARTICIPANT_KINDS
from analysis.results import Contrast
from analysis.shares import Means, contrast_in_points, sums_of_readers
from analysis.untested import compared
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """Everything that determines a simulated study except its size and number."""

    plan: Plan
    assumptions: Assumptions
    layout: Layout
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values, in a fixed order."""
        plan = self.plan
        return {
            "measure": plan.measure.name,
            "factor": plan.factor,
            "levels": list(plan.levels),
            "groups": list(plan.groups),
            "contrasts": [one.label for one in plan.contrasts],
            "assumptions": self.assumptions.to_json(),
            "layout": self.layout,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Found:
    """The result of one contrast in one study."""

    difference: Difference
    groups: tuple[str, ...]  # the reader group, or the two whose differences are compared
    estimate: float  # in percentage points, as a logarithm, or in the measure's unit
    se: float
    p: float  # unadjusted
    significant: bool  # whether the adjusted p lies below the plan's level
    equivalent: bool | None = None  # whether equivalence is concluded; None if the plan has no bound for it


@dataclass(frozen=True)
class Outcome:
    """One simulated study."""

    sizes: Sizes
    number: int  # which of the studies of that size, from 0
    found: tuple[Found, ...]  # contrasts that the data determine
    fitted: bool = True  # of the reported mixed model; an estimate in percentage points needs none
    converged: bool = True
    singular: bool = False
    steps: int = 1  # fits on the way to it; more than one where the random structure was reduced


class _Asked(NamedTuple):
    """Items, conditions and prompt variants of a model's answers, all of shape (answers,)."""

    item: NDArray[Any]
    condition: NDArray[Any]
    variant: NDArray[Any]


class Study:
    """A planned study of one size, ready to be simulated again and again."""

    def __init__(self, question: Question, sizes: Sizes) -> None:
        self.question, self.sizes = question, sizes
        self.table = trials(question.plan, question.assumptions.kinds, sizes, question.layout)
        self._models: dict[str, Model] = {}

    @cached_property
    def data(self) -> ModelData:
        """The data of a mixed model, with normal noise instead of answers."""
        return answered(self.question.plan, self.table, _noise(len(self.table)))

    @cached_property
    def cells(self) -> tuple[NDArray[np.intp], list[tuple[str, str]]]:
        """Reader group and condition of each trial, as a place among those that occur."""
        pairs = pd.MultiIndex.from_frame(self.table[["reader_group", self.question.plan.factor]])
        codes, known = pairs.factorize()
        return codes, [(str(group), str(level)) for group, level in known]

    @cached_property
    def eta(self) -> Array:
        """The fixed part of the linear predictor, shape (trials,)."""
        codes, known = self.cells
        return np.array([self.question.assumptions.cells[cell] for cell in known])[codes]

    @cached_property
    def effects(self) -> list[tuple[NDArray[np.intp], int, Array, Array]]:
        """Random effects to draw: level of each trial, number of levels, columns (trials, k), square root of the covariance."""
        plan, truth = self.question.plan, self.question.assumptions
        codes, known = self.cells
        made = []
        for term in truth.variance:
            units = pd.MultiIndex.from_arrays(self._units(term.group)).factorize()
            z = np.array([truth.columns(term, plan, group, level) for group, level in known])[codes]
            sizes, axes = np.linalg.eigh(term.cov)
            made.append((units[0], len(units[1]), z, axes * np.sqrt(np.clip(sizes, 0.0, None))))
        return made

    def _units(self, group: str) -> list[Any]:
        """Return the columns that tell the levels of a grouping factor apart."""
        own = {
            "participant": ["reader"],
            "item": ["item_id"],
            "item_condition": ["item_id", self.question.plan.factor],
            "item_reader": ["item_id", "reader_group"],
            "item_cell": ["item_id", "reader_group", self.question.plan.factor],
            "prompt": ["reader_group", "prompt_variant"],
            "model_session": ["reader_group", "session_id"],
        }[group]
        return [self.table[name].fillna(-1) for name in own]

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
        """Draw one study and analyse it as a report does."""
        values = self.draw(number)
        if self.question.plan.measure.family == "binomial":
            return Outcome(self.sizes, number, self._estimated(values))
        plan, data = self.question.plan, self.data
        analysis = analyse(plan, data, engine=self._engine(values))
        model = analysis.model
        if model is None:
            return Outcome(self.sizes, number, (), fitted=False, converged=False, steps=0)
        found = _found(plan, analysis.contrasts)
        return Outcome(self.sizes, number, found, True, model.converged, model.singular, len(model.steps))

    def _engine(self, values: Array) -> Callable[..., Fit]:
        """Return a replacement for ``fit``: the same model with these answers, its matrices made once."""

        def engine(formula: str, rows: pd.DataFrame, **settings: Any) -> Fit:
            if formula not in self._models:
                self._models[formula] = make_model(formula, rows, **settings)
            model = self._models[formula]
            return fit_model(replace(model, frame=replace(model.frame, y=values)))

        return engine

    @cached_property
    def _readers(self) -> tuple[Units, dict[str, tuple[NDArray[np.intp], Answers | _Asked]]]:
        """Return what all estimates share, and the rows of each reader group with what is known about them before the answers."""
        plan, table = self.question.plan, self.table
        people = table["reader_kind"].isin(PARTICIPANT_KINDS)
        item, items = pd.factorize(table["item_id"])
        reader, readers = pd.factorize(table["reader"].where(people))
        units = Units(plan.levels, tuple(items), tuple(readers))
        condition = pd.Categorical(table[plan.factor], plan.levels).codes.astype(np.intp)
        found: dict[str, tuple[NDArray[np.intp], Answers | _Asked]] = {}
        for group in plan.groups:
            rows = np.flatnonzero(table["reader_group"] == group)
            if people.iloc[rows].any():
                empty = np.zeros(len(rows))
                found[group] = rows, Answers(units, empty, reader[rows], item[rows], condition[rows])
            else:
                own = table.iloc[rows]
                found[group] = (
                    rows,
                    _Asked(*(own[name].to_numpy() for name in ("item_id", plan.factor, "prompt_variant"))),
                )
        return units, found

    def _estimated(self, values: Array) -> tuple[Found, ...]:
        """Estimate the planned contrasts in percentage points, adjusted as one family."""
        plan = self.question.plan
        people: dict[str, Answers] = {}
        models: dict[str, Means] = {}
        units, readers = self._readers
        for group, (rows, known) in readers.items():
            if isinstance(known, Answers):
                people[group] = replace(known, value=values[rows])
            else:
                means = model_means(values[rows], known.item, known.condition, known.variant, units)
                models[group] = Means(*means)
        held = {groups: sums_of_readers(groups, people, models, units) for groups in compared(plan.groups)}
        made = [
            contrast_in_points(difference, groups, plan, one)
            for difference in plan.contrasts
            for groups, sums in held.items()
            if (one := estimate(sums, plan.weights(difference), fixed_items=plan.items == "fixed"))
            is not None
        ]
        return _found(plan, adjusted([(plan, made)])[0])


def _found(plan: Plan, contrasts: Iterable[Contrast]) -> tuple[Found, ...]:
    """Keep what a study says of the contrasts that its data determine."""
    return tuple(
        Found(
            Difference(one.first, one.second, at=one.at),
            one.groups,
            one.estimate,
            one.se,
            one.p,
            bool(one.p_adjusted < plan.alpha),
            None if one.equivalence is None else one.equivalence.equivalent,
        )
        for one in contrasts
        if one.estimable
    )


def _noise(rows: int) -> Array:
    """Return answers that only fill their place, shape (rows,)."""
    return np.random.default_rng(stable_seed("power", "placed")).normal(size=rows)
