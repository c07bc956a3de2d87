"""Families of tests and their corrections: Holm for what was planned, Benjamini and Hochberg for what was not.

A planned family holds one hypothesis, a contrast, over reader groups, also where these have measures of their own. A plan
may name a larger family; then all contrasts of all analyses that name it belong together. Either way three questions are
corrected each by itself: differences within readers, differences between readers, and equivalences. In an exploratory
analysis all tests of the analysis are one family. A planned test that could not be made (its reader or condition is not in
the model) stays in its family as one that found nothing, so that what is left is corrected as much as was planned.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.mixed.adjustments import corrected as by_p_alone
from analysis.plan import Plan
from analysis.results import Analysis, Contrast

Place = tuple[int, int]
"""Of a contrast: which analysis, which of its contrasts."""


def across_analyses(analyses: Sequence[Analysis]) -> list[Analysis]:
    """Adjust the p values of all analyses of a report, families that span several of them included."""
    found = adjusted([(one.plan, one.contrasts) for one in analyses])
    return [replace(one, contrasts=tuple(contrasts)) for one, contrasts in zip(analyses, found, strict=True)]


def adjusted(tested: Sequence[tuple[Plan, Sequence[Contrast]]]) -> list[list[Contrast]]:
    """Return the contrasts of each analysis with adjusted p values.

    Parameters
    ----------
    tested : sequence of (Plan, sequence of Contrast)
        A pair for each analysis; p values are adjusted anew, whatever was adjusted before.
    """
    found = [list(contrasts) for _, contrasts in tested]
    families: dict[Hashable, list[Place]] = {}
    equivalences: dict[Hashable, list[Place]] = {}
    for number, (plan, contrasts) in enumerate(tested):
        for place, one in enumerate(contrasts):
            name = family_of(plan, one, number)
            families.setdefault(name, []).append((number, place))
            if one.equivalence is not None or (one.between and plan.equivalence is not None):
                equivalences.setdefault(name, []).append((number, place))
    for places in families.values():
        method = "holm" if tested[places[0][0]][0].planned else "BH"
        family = corrected([found[number][place] for number, place in places], method)
        for (number, place), one in zip(places, family, strict=True):
            found[number][place] = one
    for places in equivalences.values():
        _equivalences(places, found, [tested[number][0].alpha for number, _ in places])
    return found


def family_of(plan: Plan, one: Contrast, number: int = 0) -> Hashable:
    """Name the family to which a contrast belongs.

    Parameters
    ----------
    plan : Plan
    one : Contrast
    number : int
        Of the analysis, which keeps exploratory ones apart.
    """
    if not plan.planned:
        return ("exploratory", number)
    if plan.family:
        return ("named", plan.family, one.between)
    return ("contrast", plan.key or plan.name, one.label, one.between)


def _equivalences(places: Sequence[Place], found: list[list[Contrast]], alphas: Iterable[float]) -> None:
    tests = [found[number][place].equivalence for number, place in places]
    adjusted_ps = by_p_alone(np.array([1.0 if one is None else one.p for one in tests]), "holm")
    for (number, place), test, p, alpha in zip(places, tests, adjusted_ps, alphas, strict=True):
        if test is None:
            continue
        test = replace(test, p_adjusted=float(p), family=len(places), equivalent=bool(p < alpha))
        found[number][place] = replace(found[number][place], equivalence=test)


def corrected(family: Sequence[Contrast], method: str) -> list[Contrast]:
    """Return the contrasts of one family with adjusted p values (``holm`` or ``BH``).

    One that is not estimable stays in the family, as a test that found nothing, and has no adjusted p value.
    """
    if not family:
        return []
    adjusted_ps = by_p_alone(np.array([one.p if one.estimable else 1.0 for one in family]), method)
    return [
        replace(one, p_adjusted=float(q) if one.estimable else float("nan"), family=len(family))
        for one, q in zip(family, adjusted_ps, strict=True)
    ]


def with_adjusted(table: pd.DataFrame) -> pd.DataFrame:
    """Add ``p_adjusted`` by Benjamini and Hochberg over the rows that have a p."""
    known = table["p"].notna()
    adjusted = pd.Series(np.nan, index=table.index)
    if known.any():
        adjusted[known] = by_p_alone(table.loc[known, "p"].to_numpy(dtype=float), "BH")
    return table.assign(p_adjusted=adjusted)
