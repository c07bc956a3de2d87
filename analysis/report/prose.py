"""The Results paragraphs, filled in: means with M and SD, the model, and what :mod:`analysis.report.differences` says of it.

Sentences say what was found and no more, and simulated readers are never called people.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from analysis import apa
from analysis.descriptives import Cell
from analysis.readers import PARTICIPANT_KINDS, headed_as, named, spoken
from analysis.report.differences import EQUALS, differences
from analysis.report.many_levels import MOST_TOLD, by_level
from analysis.report.many_readers import MOST_SINGLY
from analysis.report.warned import in_words
from analysis.results import Analysis, FittedModel


def paragraphs(
    analysis: Analysis,
    cells: Sequence[Cell],
    kinds: dict[str, str],
    table: str | None,
    said: set[Markup] | None = None,
    of_differences: str | None = None,
    of_means: str | None = None,
) -> list[Markup]:
    """Write the Results paragraphs of one analysis."""
    told = []
    said = set() if said is None else said
    own = [cell for cell in cells if cell.group in analysis.plan.groups]
    if own:
        means = _means(own, analysis)
        fresh = [sentence for sentence in means if sentence not in said]
        said.update(fresh)
        if fresh and of_means is not None:
            fresh.append(escape(f"These are means of the trials that the model analyses (Table {of_means})."))
        told += [Markup(" ").join(fresh)] if fresh else []
    if analysis.has_results:
        told.append(_model_sentences(analysis, analysis.model, table))
        tested = [one for one in analysis.contrasts if not one.left_out]
        told += differences(tested, analysis, kinds, of_differences)
    if analysis.remarks:
        told.append(Markup(" ").join(escape(one) for one in analysis.remarks))
    return told


def _means(cells: Sequence[Cell], analysis: Analysis) -> list[Markup]:
    """Write the means of each reader; of many models, in each condition the least and the greatest."""
    models = dict.fromkeys(cell.group for cell in cells if cell.kind == "model")
    together = models if len(models) > MOST_SINGLY else {}
    singly = dict.fromkeys(cell.group for cell in cells if cell.group not in together)
    told = [_descriptive([cell for cell in cells if cell.group == group], analysis) for group in singly]
    return (
        [*told, _of_models([cell for cell in cells if cell.group in together], analysis)]
        if together
        else told
    )


def _of_models(cells: Sequence[Cell], analysis: Analysis) -> Markup:
    measure = analysis.plan.measure
    by_level: dict[str, list[float]] = {}
    for cell in cells:
        by_level.setdefault(cell.level, []).append(cell.mean)
    told = []
    for level, means in by_level.items():
        ends = [_mean(value, analysis) for value in (min(means), max(means))]
        told.append(f"{ends[0] if ends[0] == ends[1] else ' to '.join(ends)} in the {level}")
    many = apa.worded(len({cell.group for cell in cells}), "model")
    averaged = " (geometric means)" if measure.logged else ""
    return escape(
        f"{measure.title} of the {many}, least to greatest: {apa.listing(told)} condition{averaged}."
    )


def _mean(value: float, analysis: Analysis) -> str:
    measure = analysis.plan.measure
    if measure.family == "binomial":
        return apa.percent(value)
    if measure.logged and measure.unit == "ms":
        return apa.milliseconds(value)
    return f"{apa.number(value, 2)} {measure.unit}"


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
    values = []
    for cell in cells:
        mean = _mean(cell.mean, analysis)
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


def _model_sentences(analysis: Analysis, model: FittedModel | None, table: str | None) -> Markup:
    measure = analysis.plan.measure
    if analysis.companion is not None or model is None:
        return _shares_sentences(analysis, model, table)
    of_logs = f" of natural logarithms ({measure.unit})" if measure.unit != "ms" else " of log times"
    kind = "linear mixed-effects model" + (of_logs if measure.logged else f" ({measure.unit})")
    kind = "logistic mixed-effects model" if model.family == "binomial" else kind
    crossed = len(analysis.groups) > 1
    compared = [analysis.plan.factor] if analysis.plan.crossing is None else [*analysis.plan.crossing.factors]
    compared += ["reader group"] if crossed else []
    several = {1: " as fixed effect", 2: ", and their interaction as fixed effects"}
    effects = ", ".join(compared) + several.get(
        len(compared), ", and all their interactions as fixed effects"
    )
    effects = effects if analysis.plan.formula is None else "the fixed effects of the planned formula"
    where = f" (Table {table})" if table else ""
    rule = RULES.get(measure.name, "")
    were = "were" if "words" in measure.title.casefold() else "was"
    text = f"{measure.title} {were} analysed in a {kind} with {effects}{where}, fitted to {apa.count(model.rows)} trials"
    code = Markup(": <code>{}</code>.").format(model.formula)
    steps = len(model.steps) - 1
    reduced = f" Its random-effects structure was reduced in {apa.worded(steps, 'step')} (Supplement)."
    return escape(text) + code + escape(f" {rule}" if rule else "") + escape(reduced if steps else "")


def _shares_sentences(analysis: Analysis, model: FittedModel | None, table: str | None) -> Markup:
    """Say how shares were estimated, and which model of people accompanies them."""
    measure = analysis.plan.measure
    over = "for these items" if analysis.plan.items == "fixed" else "over participants and items"
    in_points = f"in {measure.unit_of_difference}, {over}, from {apa.count(len(analysis.rows))} trials"
    text = f"Differences in {measure.noun} were estimated {in_points}."
    rule = RULES.get(measure.name, "")
    text += f" {rule}" if rule else ""
    if model is None:
        return escape(text)
    who = apa.listing([spoken(group) for group in analysis.of_model.groups])
    where = f" (Table {table})" if table else ""
    kind, scale = ("logistic", " on the scale of log odds") if model.family == "binomial" else ("linear", "")
    said = f" A {kind} mixed-effects model of {who}{where} checks them{scale}"
    return escape(text + said) + Markup(": <code>{}</code>.").format(model.formula)


RULES = {
    "missing": "An answer is missing where it could not be scored: timeouts, refusals, unreadable replies.",
    "recovered": "An answer that is not there recovers none of its words.",
    "recovered_with_one_typo": "An answer that is not there recovers none of its words; a word may have one typo.",
}
"""What a model does with answers that are not valid, by measure, where the Method section does not say it."""


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
    notes = [text for text in model.warnings if not any(word in text for word in said)]
    return [*told, *(f"{in_words(text, analysis)}." for text in notes)]
