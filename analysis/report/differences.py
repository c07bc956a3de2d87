"""The sentences on differences between conditions, of a reader and between readers, with b, SE, z or t, p, intervals and odds ratios.

A difference that is not significant is no evidence of equality, and an interaction that only one scale shows is called that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from analysis import apa
from analysis.plan import ALPHA
from analysis.report.apa_tables import decimals
from analysis.report.equivalent import of_one
from analysis.report.felt import PERCENT, POINTS, felt, p_said
from analysis.report.many_conditions import crowds, of_many_conditions
from analysis.report.many_readers import of_many, runs
from analysis.report.verdicts import scale_remark, verdict
from analysis.results import Analysis, Contrast

EQUALS = "\u00a0=\u00a0"


def differences(
    tested: Sequence[Contrast], analysis: Analysis, kinds: dict[str, str], table: int | None = None
) -> list[Markup]:
    """Write a paragraph for each difference between conditions: of each reader, then between readers; last what p is.

    Differences of many conditions from one reference are told together, in a paragraph of their own.

    Parameters
    ----------
    tested : sequence of Contrast
    analysis : Analysis
    kinds : dict
        Reader kind of each group.
    table : int or None
        Number of the table that holds all differences.
    """
    if not tested:
        return []
    estimable = [one for one in tested if one.estimable]
    crowded, _ = crowds(estimable, lambda one: one, lambda _: analysis)
    told = [
        [of_many_conditions(crowd, analysis, kinds, lambda one: _bracketed(one, analysis))]
        for crowd in crowded
    ]
    in_crowds = {id(one) for crowd in crowded for one in crowd}
    others = [one for one in tested if id(one) not in in_crowds]
    is_short = bool(crowded)
    for label in dict.fromkeys(one.label for one in others):
        parted = runs(
            [one for one in others if one.label == label], lambda one: one, kinds, analysis.plan.alpha
        )
        is_short |= any(len(run) > 1 for run in parted)
        told.append([_said(run, analysis, kinds) for run in parted])
    last = _adjustment(analysis)
    if is_short:
        where = "The table of differences" if table is None else f"Table {table}"
        last = Markup(" ").join(
            [*([last] if last else []), f"{where} has each difference with its estimate, test, and interval."]
        )
    if len(told) == 1:
        told[0] += [last] if last else []
    elif last:
        told.append([last])
    return [Markup(" ").join(one) for one in told]


def _said(run: Sequence[Contrast], analysis: Analysis, kinds: dict[str, str]) -> Markup:
    if len(run) > 1:
        return of_many(run, analysis, kinds)
    one = run[0]
    said = verdict(run, analysis, kinds)
    if not one.estimable:
        return escape(f"{said}.")
    text = Markup("{}, {}{}.").format(said, statistics(one, analysis), _felt(one, analysis))
    return text + escape(told_after(one, analysis))


def _bracketed(one: Contrast, analysis: Analysis) -> Markup:
    """Write the end of a sentence: the statistics of a difference in brackets."""
    return Markup(" ({}).").format(statistics(one, analysis))


def statistics(one: Contrast, analysis: Analysis) -> Markup:
    """Write b, SE, z or t, adjusted p, the interval, and for accuracy the odds ratio."""
    places = decimals(one.se, 2)
    test = (
        Markup("<i>z</i>")
        if one.df is None
        else Markup("<i>t</i>({})").format(apa.degrees_of_freedom(one.df))
    )
    tail = "" if one.direction == "two-sided" else " (one-sided)"
    text = Markup("<i>b</i>{0}{1}, <i>SE</i>{0}{2}, {3}{0}{4}, {5}{7}, 95%\u00a0CI\u00a0{6}").format(
        EQUALS,
        apa.number(one.estimate, places),
        apa.number(one.se, places),
        test,
        apa.number(one.statistic),
        p_said(one.p_adjusted),
        apa.interval(one.low, one.high, places),
        tail,
    )
    if analysis.plan.measure.family == "binomial":
        ratio = (Markup("<i>OR</i>"), Markup("ratio of <i>OR</i>s"), Markup("ratio of ratios of <i>OR</i>s"))[
            one.orders - 1
        ]
        text += Markup(", {}{}{}").format(ratio, EQUALS, apa.ratio(float(np.exp(one.estimate))))
    return text


def _felt(one: Contrast, analysis: Analysis) -> Markup:
    """Say the size of a difference in percentage points of accuracy or percent of time; b says it on other scales."""
    size = felt([one], analysis.plan.measure)
    if size.scale not in (POINTS, PERCENT):
        return Markup("")
    return Markup(" ({}\u00a0{})").format(size.size, size.interval)


def _adjustment(analysis: Analysis) -> Markup:
    if not any(one.estimable for one in analysis.contrasts):
        return Markup("")
    sides = "all tests are two-sided"
    if any(one.direction != "two-sided" for one in analysis.contrasts):
        sides = "tests marked one-sided have the direction that was planned, the others are two-sided"
    if analysis.plan.alpha != ALPHA:
        sides += f"; alpha is {analysis.plan.alpha:g}".replace("0.", ".")
    text = escape(f"{sides[0].upper()}{sides[1:]}.")
    if any(one.family > 1 for one in analysis.contrasts):
        method = f"{analysis.correction}'s method"
        over = f" over the family {analysis.plan.family}" if analysis.plan.family else ""
        text = Markup("The <i>p</i> values are adjusted by {}{}; {}.").format(method, over, sides)
    if any(one.p_adjusted >= analysis.plan.alpha for one in analysis.contrasts):
        text += Markup(" A difference that is not significant is no evidence that there is none.")
    return text


def told_after(one: Contrast, analysis: Analysis) -> str:
    """Return what follows the sentence on a difference: on its scale, and on the bound that it was tested against."""
    return "".join(f" {one}" for one in (scale_remark(one), of_one(one, analysis)) if one)
