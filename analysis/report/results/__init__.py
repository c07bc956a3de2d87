"""The Results: means, the model, and each difference between conditions, within a reader and between readers.

``text.md.j2`` holds every sentence. Many models, or many conditions, share a sentence on what they have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from analysis import apa
from analysis.descriptives import ConditionMean
from analysis.multiple_comparisons import family_name
from analysis.plan import ALPHA, COVARIATES, RATING, Measure, remarks_about
from analysis.random_structure import on_models_in_general
from analysis.readers import PARTICIPANT_KINDS, is_several, listed, spoken, theirs
from analysis.report.condense_levels import MOST_DIFFERENCES_NAMED, MOST_TOLD, by_level, is_tied, where_told
from analysis.report.effect_sizes import PERCENT, ResponseScaleEffect, felt, places_of
from analysis.report.layout import ChapterLayout
from analysis.results import Analysis, Contrast
from analysis.robustness import SAME, outcome_of

LAYOUT = ChapterLayout(Path(__file__).parent)
MOST_SINGLY = 3
"""Largest number of models, or pairs of readers, whose differences are described one by one."""
MOST_LEVELS = 6
"""Largest number of conditions whose differences from one reference are described one by one."""
MOST_OPEN = 8
"""Largest number of sentences on planned comparisons of and with models that remain open."""
NOT_ESTIMABLE, NOT_SIGNIFICANT, DIFFERENT = "not estimable", "not significant", "different"
EQUIVALENT = {
    True: "are equivalent within the bound fixed beforehand",
    False: "were not shown to be equivalent within the bound fixed beforehand",
}
Kinds = dict[str, str]
"""Reader kind of each reader group."""


def _said(passage: str, analysis: Analysis, kinds: Kinds, **values: Any) -> Markup:
    plan = analysis.plan
    level = f"{100 * (1 - plan.alpha):g}%"
    return LAYOUT.sentences(
        passage, analysis=analysis, plan=plan, measure=plan.measure, kinds=kinds, level=level, **values
    )


class TableNumbers(NamedTuple):
    """The numbers of an analysis's tables: of its model, its differences, and its means."""

    model: str | None = None
    differences: str | None = None
    means: str | None = None


def paragraphs(
    analysis: Analysis,
    cells: Sequence[ConditionMean],
    kinds: Kinds,
    tables: TableNumbers = TableNumbers(),  # noqa: B008 (a tuple)
    said: set[Markup] | None = None,
    reported: dict[tuple[object, ...], str] | None = None,
) -> list[Markup]:
    """Write the Results of one analysis with the numbers of its tables.

    Means that were ``said``, and tests that another analysis has ``reported``, are not told again.
    """
    texts, said, reported = [], set() if said is None else said, {} if reported is None else reported
    analysed_cells = [cell for cell in cells if cell.group in analysis.plan.groups]
    if analysed_cells:
        fresh = [sentence for sentence in _means(analysed_cells, analysis) if sentence not in said]
        said.update(fresh)
        texts.append(LAYOUT.sentences("all_means", means=fresh, table=tables.means))
    if analysis.has_results:
        texts.append(_model(analysis, analysed_cells, tables.model))
        tested = {
            analysis.test_of(contrast): contrast for contrast in analysis.contrasts if not contrast.left_out
        }
        fresh_tests = [contrast for test, contrast in tested.items() if test not in reported]
        texts += differences(fresh_tests, analysis, kinds, tables.differences)
        for name in dict.fromkeys(reported[test] for test in tested if test in reported):
            labels = dict.fromkeys(
                contrast.label for test, contrast in tested.items() if reported.get(test) == name
            )
            texts.append(LAYOUT.sentences("reported", name=name, labels=list(labels)))
        reported.update({test: analysis.plan.heading for test in tested if test not in reported})
    # how far results for these models go is the same in each analysis
    general = on_models_in_general(analysis.rows) if analysis.has_results else None
    # a model whose likelihood has no maximum is not reported, nor how it began
    is_endless = analysis.model is not None and analysis.model.runs_away
    silent = remarks_about(analysis.remarks, "model", "uncorrelated slopes") if is_endless else []
    silent += remarks_about(
        analysis.remarks, "no bound"
    )  # a departure from the plan, which the Method reports
    remarks = [
        escape(remark)
        for remark in analysis.remarks
        if remark not in silent and (remark != general or escape(remark) not in said)
    ]
    said.update([escape(general)] if general else [])
    texts.append(Markup(" ").join(remarks))
    return [text for text in texts if text]


def _means(cells: Sequence[ConditionMean], analysis: Analysis) -> list[Markup]:
    """Write the means of each reader; of many models, in each condition the least and the greatest."""
    by_group: dict[str, list[ConditionMean]] = {}
    for cell in cells:
        by_group.setdefault(cell.group, []).append(cell)
    models = [group for group, group_cells in by_group.items() if group_cells[0].kind == "model"]
    models = models if len(models) > MOST_SINGLY else []
    texts = [
        _descriptive(group_cells, analysis) for group, group_cells in by_group.items() if group not in models
    ]
    if not models:
        return texts
    levels = []
    for level in dict.fromkeys(cell.level for cell in cells if cell.group in models):
        means = [cell.mean for cell in cells if cell.group in models and cell.level == level]
        ends = dict.fromkeys(
            mean_in_words(value, analysis.plan.measure) for value in (min(means), max(means))
        )
        levels.append((str(escape(level)), " to ".join(ends)))
    names, values = zip(*levels, strict=True)
    told = Markup(
        by_level(names, values, [0.0] * len(names)) if len(set(values)) == 1 else where_told(levels)
    )
    return [*texts, _said("means_of_models", analysis, {}, models=len(models), levels=told)]


def mean_in_words(value: float, measure: Measure) -> str:
    """Write a mean with its unit."""
    if measure.family == "binomial":
        return apa.percent(value)
    if measure.logged and measure.unit == "ms":
        return apa.milliseconds(value)
    return f"{apa.number(value, 2)} {measure.unit}".rstrip()


def _descriptive(cells: Sequence[ConditionMean], analysis: Analysis) -> Markup:
    """Write the means of one reader, of accuracy and times with their SD."""
    measure, group, kind = analysis.plan.measure, cells[0].group, cells[0].kind
    spread = words_of_direction(measure) is not None
    has_sd = spread or measure == RATING
    times, places = (1, 2) if measure.logged or measure == RATING else (100, 1)
    pairs = [
        (
            mean_in_words(cell.mean, measure),
            apa.number(times * cell.sd, places) if has_sd and np.isfinite(cell.sd) else "",
        )
        for cell in cells
    ]
    is_told = len(cells) <= MOST_TOLD or len(set(pairs)) == 1
    of_trials = " of trials" if spread and not measure.logged and is_told else ""
    values = []
    for index, (mean, sd) in enumerate(pairs):
        facts = {
            "unit": of_trials if len(set(pairs)) == 1 or not index else "",
            "spread": sd,
            "logged": measure.logged,
        }
        values.append(str(LAYOUT.sentences("value", person=kind in PARTICIPANT_KINDS, mean=mean, **facts)))
    levels = [str(escape(cell.level)) for cell in cells]
    told = Markup(by_level(levels, values, [cell.mean for cell in cells]))
    told_of: dict[str, Any] = {"group": group, "levels": told, "has_direction": spread}
    is_range = len(cells) > MOST_TOLD and len(set(values)) > 1
    return _said("means", analysis, {group: kind}, **told_of, is_range=is_range)


def adds_up(values: Sequence[float], size: ResponseScaleEffect, places: int) -> bool:
    """Whether the effect printed with two numbers is that between them, unrounded or as printed with so many decimals."""
    effect = size.values[0]
    exact, printed = (
        100 * (first / second - 1) if size.scale == PERCENT and second else first - second
        for first, second in (values, [float(apa.rounded(value, places)) for value in values])
    )
    return bool(np.isclose(exact, effect, rtol=0.0, atol=1e-6)) or (
        apa.rounded(printed, size.places) == apa.rounded(effect, size.places)
    )


def _are_differences_of(means: Sequence[ConditionMean], analysis: Analysis) -> bool:
    """Whether differences between shares or ratings are those between the means that are printed with them."""
    measure = analysis.plan.measure
    times, places = (100.0, 1) if measure.scale == "points" else (1.0, 2)
    printed = {(cell.group, cell.level): times * cell.mean for cell in means}
    pairs = [
        (
            [printed.get((contrast.groups[0], level), np.nan) for level in (contrast.first, contrast.second)],
            felt([contrast], measure, analysis.estimable),
        )
        for contrast in analysis.estimable
        if contrast.crossed is not None and not contrast.between and not contrast.at
    ]
    return all(adds_up(values, size, places) for values, size in pairs if np.isfinite(values).all())


def _model(analysis: Analysis, cells: Sequence[ConditionMean], table: str | None) -> Markup:
    """State how differences were estimated: the model, its program, or as shares with the model of people."""
    model, plan = analysis.model, analysis.plan
    compared = [plan.factor] if plan.crossing is None else [*plan.crossing.factors]
    return _said(
        "model",
        analysis,
        {},
        model=model,
        estimated=model is None or (analysis.companion is not None and bool(analysis.contrasts)),
        is_weighted=not _are_differences_of(cells, analysis),
        has_people=analysis.rows["reader_kind"].isin(PARTICIPANT_KINDS).any(),
        binomial=model is not None and model.family == "binomial",
        who=apa.listing([spoken(group) for group in analysis.of_model.groups]),
        where=f" (Table {table})" if table else "",
        compared=[*compared, *(["reader group"] if len(analysis.groups) > 1 else [])],
        covariates=apa.listing([COVARIATES[name] for name in plan.covariates]),
        steps=0 if model is None else len(model.steps) - 1,
    )


def differences(
    tested: Sequence[Contrast], analysis: Analysis, kinds: Kinds, table: str | None = None
) -> list[Markup]:
    """Write a paragraph for each difference, or for those of many conditions from one reference; last what p is."""
    if not tested:
        return []
    crowded, others = crowds(tested)
    texts = [of_many_conditions(crowd, analysis, kinds) for crowd in crowded]
    silent = _summarized(others, analysis, kinds)
    summarized = {id(contrast) for contrast in silent}
    others = [other for other in others if id(other) not in summarized]
    is_short = bool(crowded or silent)
    for label in dict.fromkeys(other.label for other in others):
        parted = runs([other for other in others if other.label == label], kinds, analysis.plan.alpha)
        is_short |= any(len(run) > 1 for run in parted)
        texts.append(Markup(" ").join(of_one_outcome(run, analysis, kinds) for run in parted))
    if silent:
        size = felt(silent, analysis.plan.measure, analysis.estimable)
        texts.append(_said("silent", analysis, kinds, silent=silent, others=bool(texts), size=size))
    last = adjustment([analysis], kinds, table, is_short=is_short)
    if len(texts) == 1:
        return [Markup(" ").join(text for text in (*texts, last) if text)]
    return [*texts, *([last] if last else [])]


def _summarized(contrasts: Sequence[Contrast], analysis: Analysis, kinds: Kinds) -> list[Contrast]:
    """Return the open comparisons that share one sentence: exploratory ones, or planned ones of and with models that take many."""
    still_open = [contrast for contrast in contrasts if _is_open(contrast, analysis)]
    if not analysis.plan.planned:
        return still_open if len(still_open) > 1 else []
    with_models = [
        contrast for contrast in still_open if contrast.between or not is_several(contrast.groups[0], kinds)
    ]
    by_label = {contrast.label: list[Contrast]() for contrast in with_models}
    for contrast in with_models:
        by_label[contrast.label].append(contrast)
    sentences = sum(len(runs(alike, kinds, analysis.plan.alpha)) for alike in by_label.values())
    return with_models if sentences > MOST_OPEN else []


def _is_open(contrast: Contrast, analysis: Analysis) -> bool:
    return contrast.estimable and contrast.p_adjusted >= analysis.plan.alpha and contrast.equivalence is None


def crowds(
    contrasts: Sequence[Contrast], most_levels: int = MOST_LEVELS
) -> tuple[list[list[Contrast]], list[Contrast]]:
    """Separate comparisons of more than ``most_levels`` conditions with one reference, of all readers, from the rest."""
    together: dict[str, list[Contrast]] = {}
    for contrast in contrasts:
        if contrast.estimable and not contrast.at:
            together.setdefault(contrast.second, []).append(contrast)
    large = [
        group for group in together.values() if len({contrast.first for contrast in group}) > most_levels
    ]
    crowded = {id(contrast) for group in large for contrast in group}
    return large, [contrast for contrast in contrasts if id(contrast) not in crowded]


def runs(contrasts: Sequence[Contrast], kinds: Kinds, alpha: float) -> list[list[Contrast]]:
    """Divide comparisons of one difference, within readers and then between them, into lists that share an outcome."""
    parted: list[list[Contrast]] = []
    for between in (False, True):
        side = [contrast for contrast in contrasts if contrast.between == between]
        free = {id(contrast) for contrast in side if between or not is_several(contrast.groups[0], kinds)}
        together: dict[tuple[str, str], list[Contrast]] = {}
        for contrast in side:
            first = contrast.groups[0]
            key = (first if between else kinds.get(first, "model"), outcome(contrast, alpha))
            if len(free) <= MOST_SINGLY or id(contrast) not in free:
                parted.append([contrast])
            elif key in together:
                together[key].append(contrast)
            else:
                parted.append(together.setdefault(key, [contrast]))
    return parted


def outcome(contrast: Contrast, alpha: float) -> str:
    """Name the outcome of a comparison in a word; for an interaction, how the first level's difference compares with the other."""
    if not contrast.estimable:
        return NOT_ESTIMABLE
    if contrast.p_adjusted >= alpha:
        return NOT_SIGNIFICANT
    if len(contrast.simple) == 2:
        first_effect, second_effect = contrast.simple
        if first_effect * second_effect < 0:  # neither is tested, so that no opposite directions are shown
            return DIFFERENT
        return "larger" if abs(first_effect) > abs(second_effect) else "smaller"
    return "lower" if contrast.estimate < 0 else "higher"


def verdict(contrasts: Sequence[Contrast], analysis: Analysis, kinds: Kinds) -> Markup:
    """Write the outcome of comparisons that share one difference and one outcome, without the full stop."""
    return _said("verdict", analysis, kinds, **_compared(contrasts, analysis, kinds))


def _compared(contrasts: Sequence[Contrast], analysis: Analysis, kinds: Kinds) -> dict[str, Any]:
    groups = [contrast.groups[-1] for contrast in contrasts]
    return {
        "found": contrasts,
        "first": contrasts[0],
        "who": listed(groups, kinds),
        "whose": theirs(analysis.plan.measure.subject, list(dict.fromkeys(groups)), kinds),
        "several": len(contrasts) > 1 or is_several(groups[0], kinds),
        "result": outcome(contrasts[0], analysis.plan.alpha),
        "direction": words_of_direction(analysis.plan.measure),
        "reversed": [contrast for contrast in contrasts if contrast.reverses],
        "equivalent": EQUIVALENT,
        "exp": np.exp,
    }


def of_one_outcome(contrasts: Sequence[Contrast], analysis: Analysis, kinds: Kinds) -> Markup:
    """Write a difference with its statistics and what follows from them, or what several (:func:`runs`) have in common."""
    first, values = contrasts[0], _compared(contrasts, analysis, kinds)
    if not first.estimable:
        return _said("several", analysis, kinds, **values)
    size = felt(contrasts, analysis.plan.measure, analysis.estimable)
    if len(contrasts) > 1:
        return _said("several", analysis, kinds, size=size, **values)
    bound, bounded = _bound(first, analysis)
    other, found = in_mixed_model(first, analysis) or (None, "")
    return _said(
        "difference",
        analysis,
        kinds,
        size=size,
        places=_places(first, analysis),
        bound=bound,
        bounded=bounded,
        other=other,
        found_there=found,
        other_size=None if other is None else felt([other], analysis.plan.measure, analysis.estimable),
        **values,
    )


def _places(contrast: Contrast, analysis: Analysis) -> int:
    return (
        1
        if contrast.crossed is not None and analysis.plan.measure.scale == "points"
        else places_of(analysis.contrasts)
    )


def statistics(contrast: Contrast, analysis: Analysis) -> Markup:
    """Write the estimate in points or b, SE, z or t, adjusted p, and its interval."""
    return _said("statistics", analysis, {}, first=contrast, places=_places(contrast, analysis))


def _bound(contrast: Contrast, analysis: Analysis) -> tuple[str, str]:
    """Return the bound of an equivalence test and the interval compared with it; empty without one."""
    test, bound = contrast.equivalence, analysis.plan.equivalence
    if test is None or bound is None:
        return "", ""
    if bound.unit == "ratio":
        edges = f"ratios from {apa.number(1 / bound.value)} to {apa.number(bound.value)}"
        return edges, apa.interval(float(np.exp(test.low)), float(np.exp(test.high)))
    unit, places = ("percentage points", 1) if bound.unit == "points" else (analysis.plan.measure.unit, 2)
    return f"±{bound.value:g} {unit}".rstrip(), apa.interval(test.low, test.high, places)


def in_mixed_model(contrast: Contrast, analysis: Analysis) -> tuple[Contrast, str] | None:
    """Return the difference in the mixed model of people where that comes to another conclusion, and which."""
    if analysis.companion is None or contrast.crossed is None:
        return None
    for other in analysis.companion.contrasts:
        if (other.label, other.groups) == (contrast.label, contrast.groups) and other.estimable:
            outcome = outcome_of(contrast, analysis.plan.alpha, other.estimate, other.low, other.high)
            return None if outcome == SAME else (other, outcome)
    return None


def adjustment(analyses: Sequence[Analysis], kinds: Kinds, table: str | None, *, is_short: bool) -> Markup:
    """State how analyses of one measure are adjusted, what they could have detected, and where their table is."""
    plan, contrasts = analyses[0].plan, [contrast for analysis in analyses for contrast in analysis.contrasts]
    least = [
        replace(contrast, estimate=contrast.detectable)
        for analysis in analyses
        for contrast in analysis.estimable
    ]
    least = [contrast for contrast in least if not np.isnan(contrast.estimate)]
    finite = [contrast for contrast in least if np.isfinite(contrast.estimate)]
    return _said(
        "adjustment",
        analyses[0],
        kinds,
        detectable=felt(finite, plan.measure) if finite else None,
        undetectable=len(least) - len(finite),
        estimable=any(contrast.estimable for contrast in contrasts),
        alpha="" if plan.alpha == ALPHA else f"{plan.alpha:g}".removeprefix("0"),
        adjusted_by=adjusted_by(*analyses) if any(contrast.family > 1 for contrast in contrasts) else "",
        is_any_open=any(contrast.p_adjusted >= plan.alpha for contrast in contrasts),
        is_short=is_short,
        table=table,
    )


def adjusted_by(analysis: Analysis, *others: Analysis) -> str:
    """State by what and over which tests p is adjusted; ``others`` are analyses of other parts of a study, each adjusted alone."""
    plan, by_correction = analysis.plan, dict[str, dict[str, None]]()
    for contrast in analysis.contrasts:
        name = contrast.elsewhere or family_name(plan)
        tests = apa.worded(contrast.family, "planned test" if plan.planned else "test")
        family = f"the {tests} of {name if plan.planned else 'this analysis'}"
        by_correction.setdefault(contrast.correction, {})[
            "the tests of each analysis" if others else family
        ] = None
    return ", and by ".join(
        f"{correction} over {apa.listing(list(families))}" for correction, families in by_correction.items()
    )


def words_of_direction(measure: Measure) -> tuple[str, str] | None:
    """Return what readers are where their accuracy or time is lower, and where it is higher; None of any other measure."""
    if measure.response != "correct" and not (measure.logged and measure.unit == "ms"):
        return None
    return ("less accurate", "more accurate") if measure.family == "binomial" else ("faster", "slower")


def of_many_conditions(
    contrasts: Sequence[Contrast], analysis: Analysis, kinds: Kinds, *, brief: bool = False
) -> Markup:
    """Write the differences of many conditions from one reference; ``brief``: only estimate, interval and *p*."""
    texts: list[Markup] = []
    for between in (False, True):
        readers: dict[tuple[str, ...], list[Contrast]] = {}
        for contrast in contrasts:
            if contrast.between == between:
                readers.setdefault(contrast.groups, []).append(contrast)
        models = [groups for groups in readers if not is_several(groups[-1], kinds)]
        models = models if len(models) > MOST_SINGLY else []
        by_readers: dict[tuple[str, str], list[list[Contrast]]] = {}
        for groups, reader_contrasts in readers.items():
            if groups in models:
                key = (groups[0] if between else "", kinds.get(groups[-1], "model"))
                by_readers.setdefault(key, []).append(reader_contrasts)
            else:
                texts.append(_of_reader(reader_contrasts, analysis, kinds, brief))
        texts += [_of_models(by_model, analysis, kinds, brief) for by_model in by_readers.values()]
    return Markup(" ").join(texts)


def _size(contrast: Contrast) -> float:
    return abs(contrast.estimate)


def _differing(contrasts: Iterable[Contrast], analysis: Analysis) -> list[Contrast]:
    return [contrast for contrast in contrasts if outcome(contrast, analysis.plan.alpha) != NOT_SIGNIFICANT]


def _in_brackets(contrast: Contrast, analysis: Analysis, brief: bool) -> Markup:
    if not brief:
        return statistics(contrast, analysis)
    return _said(
        "brief",
        analysis,
        {},
        first=contrast,
        size=felt([contrast], analysis.plan.measure, analysis.estimable),
    )


def _of_reader(contrasts: Sequence[Contrast], analysis: Analysis, kinds: Kinds, brief: bool) -> Markup:
    """State of one reader, or one pair, in how many conditions it differs from the reference, and where most and least."""
    differ, direction = _differing(contrasts, analysis), words_of_direction(analysis.plan.measure)
    shown = differ or contrasts
    greatest, smallest = max(map(_size, shown)), min(map(_size, shown))

    def told_of(size: float) -> tuple[Markup, int]:
        extreme = [contrast for contrast in shown if is_tied(_size(contrast), size)]
        told = where_told(
            ((str(escape(one.first)), str(_in_brackets(one, analysis, brief))) for one in extreme),
            "{where} ({value})",
        )
        return Markup(told), len(extreme)

    lower = sum(contrast.estimate < 0 for contrast in differ)
    words = zip(direction or ("lower", "higher"), (lower, len(differ) - lower), strict=True)
    return _said(
        "crowd",
        analysis,
        kinds,
        differ=differ,
        ways=[(word, count) for word, count in words if count],
        greatest=told_of(greatest),
        smallest=told_of(smallest) if differ and not is_tied(smallest, greatest) else None,
        alike=_in_brackets(shown[0], analysis, brief)
        if len(shown) > 1 and len({contrast.estimate for contrast in shown}) == 1
        else None,
        is_brief=brief,
        **_compared(contrasts, analysis, kinds) | {"several": is_several(contrasts[0].groups[-1], kinds)},
    )


def _of_models(
    by_model: Sequence[Sequence[Contrast]], analysis: Analysis, kinds: Kinds, brief: bool
) -> Markup:
    """State of many models in how many conditions the one with fewest and the one with most differ, and where most."""
    order = sorted(by_model, key=lambda contrasts: len(_differing(contrasts, analysis)))
    each = [contrast for contrasts in by_model for contrast in contrasts]
    greatest = [contrast for contrast in each if is_tied(_size(contrast), max(map(_size, each)))]
    return _said(
        "crowd_of_models",
        analysis,
        kinds,
        few=len(_differing(order[0], analysis)),
        most=len(_differing(order[-1], analysis)),
        least_of=order[0][0].groups[-1],
        most_of=order[-1][0].groups[-1],
        many=max(len(contrasts) for contrasts in by_model),
        greatest=greatest,
        most_named=MOST_DIFFERENCES_NAMED,
        size=felt(greatest, analysis.plan.measure, analysis.estimable),
        in_brackets=lambda contrast: _in_brackets(contrast, analysis, brief),
        **_compared([contrasts[0] for contrasts in by_model], analysis, kinds),
    )
