"""The Results paragraphs, filled in: sentences with M, SD, b, SE, z or t, p, intervals and odds ratios in APA style.

Sentences say what was found and no more: a difference that is not significant is no evidence of equality, an
interaction that only one scale shows is called that, and simulated readers are never called people.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from analysis import apa
from analysis.descriptives import Cell
from analysis.plan import ALPHA
from analysis.readers import MODELS_IN_GENERAL, PARTICIPANT_KINDS, headed, spoken
from analysis.report.apa_tables import as_percent, decimals
from analysis.report.many_levels import MOST_TOLD, by_level
from analysis.results import Analysis, Contrast, FittedModel

EQUALS = "\u00a0=\u00a0"


def paragraphs(
    analysis: Analysis,
    cells: Sequence[Cell],
    kinds: dict[str, str],
    table: int | None,
    said: set[Markup] | None = None,
) -> list[Markup]:
    """Write the Results paragraphs of one analysis.

    Parameters
    ----------
    analysis : Analysis
    cells : sequence of Cell
        Descriptive values of its measure and factor, all reader groups.
    kinds : dict
        Reader kind of each group.
    table : int or None
        Number of the model's table in the report.
    said : set of Markup, optional
        Sentences on means that the report has told already; they are left out, and those of this analysis are put in.
    """
    told = []
    said = set() if said is None else said
    own = [cell for cell in cells if cell.group in analysis.plan.groups]
    if own:
        groups = dict.fromkeys(cell.group for cell in own)
        means = [_descriptive([cell for cell in own if cell.group == group], analysis) for group in groups]
        fresh = [sentence for sentence in means if sentence not in said]
        said.update(fresh)
        told += [Markup(" ").join(fresh)] if fresh else []
    if analysis.model is not None:
        told.append(_model_sentences(analysis, analysis.model, table))
        told += _differences([one for one in analysis.contrasts if not one.left_out], analysis, kinds)
    if analysis.remarks:
        told.append(Markup(" ").join(escape(one) for one in analysis.remarks))
    return told


def _differences(tested: Sequence[Contrast], analysis: Analysis, kinds: dict[str, str]) -> list[Markup]:
    """Write a paragraph for each difference between conditions: of each reader, then between readers; last what p is."""
    if not tested:
        return []
    told = []
    for label in dict.fromkeys(one.label for one in tested):
        own = sorted((one for one in tested if one.label == label), key=lambda one: one.between)
        told.append([(_between if one.between else _within)(one, analysis, kinds) for one in own])
    last = _adjustment(analysis)
    if len(told) == 1:
        told[0] += [last] if last else []
    elif last:
        told.append([last])
    return [Markup(" ").join(one) for one in told]


def named(group: str, kinds: dict[str, str]) -> str:
    """Name a reader group inside a sentence, a model or baseline as what it is."""
    if group == MODELS_IN_GENERAL:
        return group
    kind = kinds.get(group, "model")
    return spoken(group) if kind in PARTICIPANT_KINDS else f"the {kind} {group}"


def headed_as(group: str, kinds: dict[str, str]) -> str:
    """Name a reader group at the head of a sentence."""
    name = named(group, kinds)
    return headed(group) if name == spoken(group) else "The" + name.removeprefix("the")


def _descriptive(cells: Sequence[Cell], analysis: Analysis) -> Markup:
    measure = analysis.plan.measure
    logged = measure.logged
    person = cells[0].kind in PARTICIPANT_KINDS
    if measure.response != "correct" and not (logged and measure.unit == "ms"):
        return _quantity(cells, analysis, person)
    many = len(cells) > MOST_TOLD
    values = [
        _value(cell, logged, person, "" if logged or place or many else " of trials")
        for place, cell in enumerate(cells)
    ]
    who = headed_as(cells[0].group, {cells[0].group: cells[0].kind})
    how = f"{who} took" if logged else f"{who} was right in" if not person else f"{who} were right in"
    text = escape(how) + Markup(" ") + _over_levels(cells, values) + Markup(" condition")
    return text + Markup(" (geometric means)." if logged else ".")


def _quantity(cells: Sequence[Cell], analysis: Analysis, person: bool) -> Markup:
    """Say the means of what is neither accuracy nor a time: shares of words, missing answers, bits, tokens."""
    measure = analysis.plan.measure
    shares = measure.family == "binomial"
    values = []
    for cell in cells:
        mean = apa.percent(cell.mean) if shares else f"{apa.number(cell.mean, 2)} {measure.unit}"
        symbol = Markup("<i>M</i>{}").format(EQUALS) if person else Markup("")
        values.append(symbol + escape(mean))
    who = named(cells[0].group, {cells[0].group: cells[0].kind})
    text = escape(f"{measure.title} of {who}: ") + _over_levels(cells, values) + Markup(" condition")
    return text + Markup(" (geometric means)." if measure.logged else ".")


def _over_levels(cells: Sequence[Cell], values: Sequence[Markup]) -> Markup:
    levels = [str(escape(cell.level)) for cell in cells]
    return Markup(by_level(levels, [str(one) for one in values], [cell.mean for cell in cells]))


def _value(cell: Cell, logged: bool, person: bool, unit: str) -> Markup:
    mean = apa.milliseconds(cell.mean) if logged else apa.percent(cell.mean)
    text = (Markup("<i>M</i>{}{}").format(EQUALS, mean) if person else escape(mean)) + escape(unit)
    if np.isfinite(cell.sd):
        spread = apa.number(cell.sd, 0) if logged else apa.number(100 * cell.sd, 1)
        text += Markup(" (<i>SD</i>{}{})").format(EQUALS, spread)
    return text


def _model_sentences(analysis: Analysis, model: FittedModel, table: int | None) -> Markup:
    measure = analysis.plan.measure
    logistic = model.family == "binomial"
    of_logs = f" of natural logarithms ({measure.unit})" if measure.unit != "ms" else " of log times"
    kind = "linear mixed-effects model" + (of_logs if measure.logged else f" ({measure.unit})")
    kind = "logistic mixed-effects model" if logistic else kind
    crossed = len(analysis.groups) > 1
    effects = f"{analysis.plan.factor}, reader group, and their interaction as fixed effects"
    effects = effects if crossed else f"{analysis.plan.factor} as fixed effect"
    effects = effects if analysis.plan.formula is None else "the fixed effects of the planned formula"
    where = f" (Table {table})" if table else ""
    rule = RULES.get(measure.name, "")
    were = "were" if "words" in measure.title.casefold() else "was"
    text = f"{measure.title} {were} analysed in a {kind} with {effects}{where}, fitted to {apa.count(model.rows)} trials"
    code = Markup(": <code>{}</code>.").format(model.formula)
    steps = len(model.steps) - 1
    reduced = f" Its random-effects structure was reduced in {apa.worded(steps, 'step')} (Supplement)."
    return escape(text) + code + escape(f" {rule}" if rule else "") + escape(reduced if steps else "")


RULES = {
    "missing": "An answer is missing where it could not be scored: timeouts, refusals, unreadable replies.",
    "recovered": "An answer that is not there recovers none of its words.",
    "recovered_with_one_typo": "An answer that is not there recovers none of its words; a word may have one typo.",
}
"""What a model does with answers that are not valid, by measure, where the Method section does not say it."""


def statistics(one: Contrast, analysis: Analysis) -> Markup:
    """Write b, SE, z or t, adjusted p, the interval, and for accuracy the odds ratio."""
    places = decimals(one.se, 2)
    test = (
        Markup("<i>z</i>")
        if one.df is None
        else Markup("<i>t</i>({})").format(apa.degrees_of_freedom(one.df))
    )
    tail = "" if one.direction == "two-sided" else " (one-sided)"
    p = apa.p_phrase(one.p_adjusted).removeprefix("p ").replace(" ", "\u00a0")
    text = Markup(
        "<i>b</i>{0}{1}, <i>SE</i>{0}{2}, {3}{0}{4}, <i>p</i>\u00a0{5}{7}, 95%\u00a0CI\u00a0{6}"
    ).format(
        EQUALS,
        apa.number(one.estimate, places),
        apa.number(one.se, places),
        test,
        apa.number(one.statistic),
        p,
        apa.interval(one.low, one.high, places),
        tail,
    )
    if analysis.plan.measure.family == "binomial":
        ratio = Markup("ratio of <i>OR</i>s") if one.between else Markup("<i>OR</i>")
        text += Markup(", {}{}{}").format(ratio, EQUALS, apa.ratio(float(np.exp(one.estimate))))
    return text


def _within(one: Contrast, analysis: Analysis, kinds: dict[str, str]) -> Markup:
    group = one.groups[0]
    both = f"the {one.first} and the {one.second} condition"
    if not one.estimable:
        what = f"The difference in {analysis.plan.measure.noun} between {both} is not estimable"
        return escape(f"{what} for {named(group, kinds)}: these data do not determine it.")
    if one.p_adjusted < analysis.plan.alpha:
        how = higher_or_lower(one, analysis)
        if how is None:
            return _higher(one, analysis, kinds)
        several = kinds.get(group) in PARTICIPANT_KINDS or group == MODELS_IN_GENERAL
        verb = "were" if several else "was"
        verdict = (
            f"{headed_as(group, kinds)} {verb} {how} in the {one.first} than in the {one.second} condition,"
        )
    else:
        noun = analysis.plan.measure.title
        verdict = f"{noun} of {named(group, kinds)} did not differ significantly between {both},"
    return escape(verdict) + Markup(" ") + statistics(one, analysis) + _felt(one, analysis) + Markup(".")


def higher_or_lower(one: Contrast, analysis: Analysis) -> str | None:
    """Say a difference in accuracy or time in a word of its own; None of any other measure."""
    measure = analysis.plan.measure
    if measure.response != "correct" and not (measure.logged and measure.unit == "ms"):
        return None
    accurate = measure.family == "binomial"
    lower, higher = ("less accurate", "more accurate") if accurate else ("faster", "slower")
    return lower if one.estimate < 0 else higher


def _higher(one: Contrast, analysis: Analysis, kinds: dict[str, str]) -> Markup:
    """Say a difference in what is neither right or wrong nor fast or slow."""
    how = "lower" if one.estimate < 0 else "higher"
    noun = analysis.plan.measure.noun
    who = f"{noun[0].upper()}{noun[1:]} of {named(one.groups[0], kinds)}"
    verdict = f"{who}: {how} in the {one.first} than in the {one.second} condition,"
    return escape(verdict) + Markup(" ") + statistics(one, analysis) + _felt(one, analysis) + Markup(".")


def _between(one: Contrast, analysis: Analysis, kinds: dict[str, str]) -> Markup:
    first, second = (named(group, kinds) for group in one.groups)
    if not one.estimable:
        what = f"the difference between the {one.first} and the {one.second} condition"
        return escape(
            f"Whether {what} differs between {first} and {second} is not estimable: these data do not determine it."
        )
    found = "differed" if one.p_adjusted < analysis.plan.alpha else "did not differ significantly"
    what = f"The difference between the {one.first} and the {one.second} condition"
    verdict = escape(f"{what} {found} between {first} and {second}, ")
    text = verdict + statistics(one, analysis) + _felt(one, analysis) + Markup(".")
    return text + escape(scale_remark(one)) + escape(equivalence_sentence(one, analysis))


def equivalence_sentence(one: Contrast, analysis: Analysis) -> str:
    """Say whether two readers are equivalent within the plan's bound; a difference within it is not shown to be none."""
    test, bound = one.equivalence, analysis.plan.equivalence
    if test is None or bound is None:
        return ""
    level = f"{round(100 * test.level)}%"
    if bound.unit == "ratio":
        ends = apa.interval(float(np.exp(test.low)), float(np.exp(test.high)))
        edges = f"ratios from {apa.number(1 / bound.value)} to {apa.number(bound.value)}"
    else:
        ends = apa.interval(test.low, test.high, 1 if bound.unit == "points" else 2)
        unit = "percentage points" if bound.unit == "points" else analysis.plan.measure.unit
        edges = f"±{bound.value:g} {unit}"
    p = apa.p_phrase(test.p_adjusted)
    verdict = "counts as none" if test.equivalent else "is not shown to be so small as to count as none"
    return f" Against the bound fixed beforehand ({edges}) the difference between these readers {verdict}: {level} CI {ends}, {p}."


def _felt(one: Contrast, analysis: Analysis) -> Markup:
    """Say the size of a difference in percentage points of accuracy or percent of time."""
    if analysis.plan.measure.scale == "raw":
        return Markup("")
    if analysis.plan.measure.family != "binomial":
        ends = apa.interval(as_percent(one.low), as_percent(one.high), 1)
        return Markup(" ({}%\u00a0{})").format(apa.number(as_percent(one.estimate), 1), ends)
    if one.points is None:
        return Markup("")
    ends = apa.interval(one.points_low, one.points_high, 1)
    return Markup(" ({} percentage points\u00a0{})").format(apa.number(one.points, 1), ends)


def scale_remark(one: Contrast) -> str:
    """Say where an interaction on the logit scale is not one in percentage points, or the other way round."""
    if one.points is None or one.points_low is None or one.points_high is None:
        return ""
    on_logit = not one.low <= 0 <= one.high
    in_points = not one.points_low <= 0 <= one.points_high
    if on_logit and in_points and np.sign(one.estimate) != np.sign(one.points):
        return " Its direction depends on the scale: log odds and percentage points disagree."
    if on_logit and not in_points:
        return " In percentage points the interval holds 0: this interaction depends on the logit scale."
    if in_points and not on_logit:
        return " In percentage points the interval leaves 0 out: whether there is an interaction depends on the scale."
    return ""


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


def warnings_of(analysis: Analysis) -> list[str]:
    """Say in sentences what is doubtful about the fit of an analysis."""
    model = analysis.model
    if model is None:
        return []
    told = []
    if not model.converged:
        told.append("The fit did not converge; its numbers are not to be trusted.")
    if model.singular:
        told.append(
            "The fit is singular: some variance between participants or items is estimated as zero. That is common where "
            "there are few of them; intervals may be too narrow."
        )
    said = ("singular", "failed to converge")
    told += [
        f"{text[0].upper()}{text[1:]}." for text in model.warnings if not any(word in text for word in said)
    ]
    return told
