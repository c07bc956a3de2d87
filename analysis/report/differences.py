"""The sentences on differences between conditions, of a reader and between readers: the estimate, SE, t, adjusted p and its interval.

A difference that is not significant is no evidence of equality; what the study would have detected follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from markupsafe import Markup, escape

from analysis import apa
from analysis.plan import ALPHA
from analysis.report.apa_tables import decimals
from analysis.report.equivalent import of_one
from analysis.report.felt import PERCENT, felt, p_said
from analysis.report.many_conditions import crowds, of_many_conditions
from analysis.report.many_readers import of_many, runs
from analysis.report.verdicts import scale_remark, verdict
from analysis.results import Analysis, Contrast

EQUALS = "\u00a0=\u00a0"


def differences(
    tested: Sequence[Contrast], analysis: Analysis, kinds: dict[str, str], table: str | None = None
) -> list[Markup]:
    """Write a paragraph for each difference between conditions: of each reader, then between readers; last what p is.

    Differences of many conditions from one reference are told together, in a paragraph of their own.
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
    after = (told_after(one, analysis), in_mixed_model(one, analysis), _detectable(one, analysis))
    return text + escape("".join(after))


def _bracketed(one: Contrast, analysis: Analysis) -> Markup:
    """Write the end of a sentence: the statistics of a difference in brackets."""
    return Markup(" ({}).").format(statistics(one, analysis))


def statistics(one: Contrast, analysis: Analysis) -> Markup:
    """Write the estimate in points or b, SE, z or t, adjusted p, and its interval."""
    in_points, measure = one.crossed is not None, analysis.plan.measure
    places = 1 if in_points and measure.scale == "points" else decimals(one.se, 2)
    test = (
        Markup("<i>z</i>")
        if one.df is None
        else Markup("<i>t</i>({})").format(apa.degrees_of_freedom(one.df))
    )
    tail = "" if one.direction == "two-sided" else " (one-sided)"
    size = apa.number(one.estimate, places)
    return Markup("{1}, <i>SE</i>{0}{2}, {3}{0}{4}, {5}{7}, {8}\u00a0{6}").format(
        EQUALS,
        f"{size} {measure.unit_of_difference}" if in_points else Markup("<i>b</i>{}{}").format(EQUALS, size),
        apa.number(one.se, places),
        test,
        apa.number(one.statistic),
        p_said(one.p_adjusted),
        apa.interval(one.low, one.high, places),
        tail,
        level_of(analysis).replace(" ", "\u00a0"),
    )


def level_of(analysis: Analysis) -> str:
    """Name the intervals of an analysis: ``95% CI``."""
    return f"{100 * (1 - analysis.plan.alpha):g}% CI"


def in_mixed_model(one: Contrast, analysis: Analysis) -> str:
    """Say where the mixed model of people comes to another conclusion; empty where it agrees, or there is none."""
    companion = analysis.companion
    if companion is None or one.crossed is None:
        return ""
    beside = next(
        (each for each in companion.contrasts if (each.label, each.groups) == (one.label, one.groups)), None
    )
    alpha = analysis.plan.alpha
    if beside is None or not beside.estimable or (beside.p_adjusted < alpha) == (one.p_adjusted < alpha):
        return ""
    verb = "is" if beside.p_adjusted < alpha else "is not"
    if analysis.plan.measure.scale == "raw":
        own = felt([beside], analysis.plan.measure)
        return f" In a linear mixed model, it {verb} significant ({own.size}, {level_of(analysis)} {own.interval})."
    ends = apa.ratio_interval(float(np.exp(beside.low)), float(np.exp(beside.high)))
    size = f"ratio of odds {apa.ratio(float(np.exp(beside.estimate)))}, {level_of(analysis)} {ends}"
    return f" On the scale of log odds, in a logistic mixed model, it {verb} significant ({size})."


def _detectable(one: Contrast, analysis: Analysis) -> str:
    """Say which difference would have been found, where this one is not significant."""
    if one.p_adjusted < analysis.plan.alpha or not np.isfinite(one.detectable):
        return ""
    size = felt([replace(one, estimate=one.detectable)], analysis.plan.measure).size
    return f" A difference of {size} would have been found in 80% of such studies."


def _felt(one: Contrast, analysis: Analysis) -> Markup:
    """Say the size of a difference in percent of time; the estimate says it on other scales."""
    size = felt([one], analysis.plan.measure)
    if size.scale != PERCENT:
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
        text = Markup("The <i>p</i> values and intervals are adjusted by {} {}; {}.").format(
            analysis.correction, family_in_words(analysis), sides
        )
    if any(one.p_adjusted >= analysis.plan.alpha for one in analysis.contrasts):
        text += Markup(" A difference that is not significant is no evidence that there is none.")
    return text


def family_in_words(analysis: Analysis) -> str:
    """Say over which tests an analysis is adjusted."""
    plan, many = analysis.plan, max(one.family for one in analysis.contrasts)
    if not plan.planned:
        return f"over the {apa.worded(many, 'test')} of this analysis"
    return f"over the {apa.worded(many, 'planned test')} of {f'the family {plan.family}' if plan.family else plan.measure.noun}"


def told_after(one: Contrast, analysis: Analysis) -> str:
    """Return what follows the sentence on a difference: on its scale, and on the bound that it was tested against."""
    return "".join(f" {one}" for one in (scale_remark(one), of_one(one, analysis)) if one)
