"""Takes away variances of items that ran away: so large that log odds no longer speak of shares correct."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analysis.frames import ModelData
from analysis.random_structure import RandomTerm
from analysis.results import FittedModel, VarianceTerm

HUGE = 4.0
"""A standard deviation of log odds above this spans from 2% to 98% within one of it on either side."""

OF_ITEMS = ("item", "item_condition", "item_reader")
"""Groupings whose effects let items differ in models otherwise than in people."""

OF_CELLS = "item_condition"
"""The grouping whose effects let conditions do otherwise to each item."""

IN_MODELS = (
    "a model answers most items alike in every condition, so that the variance of its items ran away; the variance was "
    "dropped (see the steps), which makes intervals of differences within that model wider than need be"
)

IN_CELLS = (
    "what conditions do to single items seems to differ without bound, since readers answered most items of a condition "
    "alike; that variance was dropped (see the steps), and intervals hold for these items in these conditions"
)


def without_runaway(
    terms: list[RandomTerm], model: FittedModel, data: ModelData
) -> tuple[list[RandomTerm], str, str]:
    """Take away an item variance of a logistic model where it is so large that log odds lose their meaning.

    The models' own variance goes first. A deterministic model that answers most items alike in every condition has
    items of two kinds, always right and always wrong. A normal distribution stretches over them, and the log odds of an
    item at its centre can then point the other way than the shares correct. Without that variance the fixed effects
    speak of shares again; differences within the model get intervals wider than need be. Where a model answers a cell
    more than once the variance is needed and stays, with a warning. Then what conditions do to items, where few answers
    to a cell, all alike, let it run away.

    Returns
    -------
    terms : list of RandomTerm
        What is left.
    told : str
        What was done; empty where nothing was.
    note : str
        The warning that the model that is reported then bears.
    """
    if model.family != "binomial":
        return terms, "", ""
    if dropped := _in_models(model, data):
        groups = {group for group, _ in dropped}
        left = [one for term in terms for one in (_without_models(term) if term.group in groups else [term])]
        told = [
            f"{group}: the models' own variance dropped (SD = {sd:.1f} log odds)"
            for (group, _), sd in dropped.items()
        ]
        return left, "; ".join(told), IN_MODELS
    widest = max((float(term.sd.max()) for term in model.variance if term.group == OF_CELLS), default=0.0)
    if widest > HUGE:
        for term in terms:
            if term.group == OF_CELLS:
                left = [one for other in terms for one in (term.instead if other is term else (other,))]
                what = "conditions taken alike" if term.instead else "term dropped"
                note = "" if term.instead else IN_CELLS
                return left, f"{OF_CELLS}: {what} (SD = {widest:.1f} log odds)", note
    return terms, "", ""


def _in_models(model: FittedModel, data: ModelData) -> dict[tuple[str, str], float]:
    """Return the standard deviations of items in models that ran away, by grouping column and effect."""
    own = data.rows[data.rows["model"] == 1]
    if own.empty or own.groupby("item_cell").size().median() > 1:
        return {}
    shared = {term.group: term for term in model.variance if "(Intercept)" in term.terms}
    return {
        (term.group, name): sd
        for term in model.variance
        for name, sd in zip(term.terms, term.sd.tolist(), strict=True)
        if min(sd, _whole(term, name, shared.get(term.group))) > HUGE
        and term.group in OF_ITEMS
        and ("model" in name.split(":") or term.group == "item_reader")
    }


def _whole(term: VarianceTerm, name: str, shared: VarianceTerm | None) -> float:
    """Return the standard deviation of items in models: of what they share with people and what models add, together.

    Where people's items ran away, what models add may only take that back: it is large, and the sum is not.
    """
    at = term.terms.index(name)
    if shared is None:
        return float(term.sd[at])
    base = shared.terms.index("(Intercept)")
    both = 2 * float(term.cov[base, at]) if shared is term else 0.0
    return float(np.sqrt(max(0.0, term.cov[at, at] + shared.cov[base, base] + both)))


def _without_models(term: RandomTerm) -> list[RandomTerm]:
    """Take from a term what lets items differ in models otherwise than in people."""
    if term.instead:
        return list(term.instead)
    if term.group == "item":
        return [replace(term, state="intercept", columns=())]
    if term.columns:
        return [replace(term, intercept="people", state="intercept", columns=())]
    return []
