"""The planned contrasts as the figure of the Answer draws them: with the tables' intervals, their grades, and what was built in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from analysis.figures.drawing import Effect
from analysis.names import stem_of
from analysis.parameter_recovery import SIMULATED, TRUTH_OF, Recovered
from analysis.plan import RATING, WORDS, WORDS_WITH_ONE_TYPO, Plan
from analysis.readers import headed, spoken
from analysis.report.effect_sizes import ODDS, PERCENT, POINTS, felt
from analysis.report.grades import CONTRADICTED, FRAGILE, grade_of
from analysis.results import Analysis, Contrast, as_percent, each_test
from analysis.robustness import Matrix

Asked = Mapping[tuple[str, str], tuple[str, tuple[Effect, ...]]]
"""Unit and contrasts by measure and by the stem of the trials that are compared."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


def planned_effects(
    analyses: Sequence[Analysis],
    matrix: Matrix,
    recovered_effects: Sequence[Recovered],
    truth: Mapping[str, Any],
) -> Asked:
    """Return the planned contrasts of each measure once; an analysis of some of the trials is not drawn over the means of all."""
    effects_of_plans: dict[tuple[str, str], tuple[str, tuple[Effect, ...]]] = {}
    for analysis, tested in each_test(analysis for analysis in analyses if analysis.plan.planned):
        plan = analysis.plan
        if not _is_drawn(plan):
            continue
        scale = felt(tested[:1], plan.measure).scale
        unit = {POINTS: "percentage points", PERCENT: "%", ODDS: ODDS}.get(scale, plan.measure.unit)
        levels = _built_in(analysis, recovered_effects, truth)
        _, effects = effects_of_plans.get(planned_of(analysis), (unit, ()))
        effects += tuple(_effect(contrast, analysis, matrix, levels) for contrast in tested)
        labels = list(dict.fromkeys(effect.label for effect in effects))
        effects_of_plans[planned_of(analysis)] = (
            unit,
            tuple(sorted(effects, key=lambda effect: labels.index(effect.label))),
        )
    return effects_of_plans


def _is_drawn(plan: Plan) -> bool:
    """Return whether a figure of means shows the trials of a plan."""
    return not plan.subset or plan.measure in (WORDS, WORDS_WITH_ONE_TYPO)


def undrawn_plans(analyses: Sequence[Analysis], asked: Asked, drawn: Sequence[Effect]) -> list[str]:
    """Return the headings of planned analyses of whose contrasts a figure shows none."""
    headings = [
        analysis.plan.heading for analysis, is_shown in _shown_in(drawn, analyses, asked) if not is_shown
    ]
    return list(dict.fromkeys(headings))


def first_asked(analyses: Sequence[Analysis], asked: Asked, drawn: Sequence[Effect]) -> float:
    """Return the place of the first planned analysis of whose contrasts a figure shows any, by which figures are ordered."""
    shown = (is_shown for _, is_shown in _shown_in(drawn, analyses, asked))
    return next((place for place, is_shown in enumerate(shown) if is_shown), np.inf)


def _shown_in(
    drawn: Sequence[Effect], analyses: Sequence[Analysis], asked: Asked
) -> Iterator[tuple[Analysis, bool]]:
    """Yield each planned analysis, and whether a figure shows any of its contrasts."""
    for analysis, _ in each_test(analysis for analysis in analyses if analysis.plan.planned):
        is_any = any(effect in drawn for effect in asked.get(planned_of(analysis), ("", ()))[1])
        yield analysis, _is_drawn(analysis.plan) and is_any


def planned_of(analysis: Analysis) -> tuple[str, str]:
    """Return the measure of an analysis and how its means are named."""
    plan = analysis.plan
    return plan.measure.name, stem_of(plan.factor, plan.trials, plan.within)


def _effect(contrast: Contrast, analysis: Analysis, matrix: Matrix, levels: Mapping[str, float]) -> Effect:
    size = felt([contrast], analysis.plan.measure, analysis.estimable)
    grade = grade_of(contrast, analysis, matrix)
    reader = f"vs. {spoken(contrast.groups[1])}" if contrast.between else headed(contrast.groups[0])
    built_in = None
    if (
        contrast.groups == (SIMULATED,)
        and not contrast.at
        and {contrast.first, contrast.second} <= set(levels)
    ):
        difference = levels[contrast.first] - levels[contrast.second]
        built_in = as_percent(difference) if size.scale == PERCENT else difference
    group, ends = "" if contrast.between else contrast.groups[0], (size.values[0], *size.ends)
    is_uncertain, compared = grade in (FRAGILE, CONTRADICTED), (contrast.first, contrast.second)
    return Effect(contrast.label, reader, group, *ends, grade.word, is_uncertain, built_in, compared)


def _built_in(
    analysis: Analysis, recovered_effects: Sequence[Recovered], truth: Mapping[str, Any]
) -> dict[str, float]:
    """Return what simulated readers were given in each level, on the scale of the contrasts.

    Empty where that is not known; NaN where lapses change it.
    """
    plan = analysis.plan
    truths = {
        recovered.label: recovered.truth
        for recovered in recovered_effects
        if recovered.measure == plan.measure.name
    }
    levels = dict(_levels(truths))
    if plan.measure.logged or plan.measure == RATING or not levels:
        return levels
    if plan.measure.scale != "points":
        return {}
    if (truth.get("lapses") or {}).get("rate"):
        return dict.fromkeys(levels, np.nan)
    settings = truth[TRUTH_OF[plan.measure.name]]
    spread = np.hypot(float(settings.get("participant_sd", 0.0)), float(settings.get("item_sd", 0.0)))
    weights = _WEIGHTS / _WEIGHTS.sum()
    return {level: 100 * float(weights @ expit(logit + spread * _NODES)) for level, logit in levels.items()}


def _levels(truths: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Yield each level with its value, from an intercept and the differences from its level."""
    for label, value in truths.items():
        if label.startswith("intercept (") and label.endswith(")"):
            reference = label.removeprefix("intercept (").removesuffix(")")
            yield reference, value
            for other, difference in truths.items():
                level = other.removesuffix(f" − {reference}")
                if level != other:
                    yield level, value + difference
