"""Tables of fitted models: fixed and random effects, tested differences, equivalence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analysis import apa
from analysis.bayes import posterior_of
from analysis.crossing import slopes_in_words
from analysis.mixed import RSquared, r_squared
from analysis.names import plain
from analysis.plan import RATING
from analysis.readers import headed, spoken
from analysis.report.apa_tables import NOT_ESTIMABLE, ApaTable, Head, Origin, as_percent, decimals
from analysis.report.filters import JUDGED, USED, filled, where
from analysis.report.results import family_in_words
from analysis.results import Analysis, Contrast, FittedModel, VarianceTerm

WAYS = {"two-sided": "", "greater": " > 0", "less": " < 0"}
"""How a table marks the direction of a test."""


def model_table(analysis: Analysis, name: str) -> ApaTable:
    """Lay out the fixed and random effects of a fitted model."""
    model = analysis.model
    assert model is not None
    logistic, raw = model.family == "binomial", analysis.plan.measure.scale == "raw"
    statistic = "z" if all(one.df is None for one in model.coefficients) else "t"
    columns = ["Fixed effects", "b", "SE", statistic]
    columns += [] if statistic == "z" else ["df"]
    columns += ["p", "95% CI"]
    ratio = "OR" if logistic else "ratio"
    columns += [] if raw else [ratio if logistic else "Ratio", f"95% CI of {ratio}"]
    rows: list[tuple[str, ...]] = []
    places = _places_of([one.se for one in model.coefficients if one.estimable])
    tested = _coefficients_tested(analysis)
    for place, one in enumerate(model.coefficients):
        if place in tested:
            contrast = tested[place]
            one = replace(one, p=contrast.p_adjusted, low=contrast.low, high=contrast.high)
        if not one.estimable:
            rows.append((term_in_words(one.term, analysis), *[apa.MISSING] * (len(columns) - 1)))
            continue
        cells = [term_in_words(one.term, analysis), apa.number(one.estimate, places)]
        cells += [apa.number(one.se, places), apa.number(one.statistic)]
        cells += [] if statistic == "z" else [apa.degrees_of_freedom(one.df)]
        cells += [apa.p_value(one.p), apa.interval(one.low, one.high, places)]
        intercept = one.term == "(Intercept)"
        cells += (
            []
            if raw
            else [apa.MISSING, apa.MISSING]
            if intercept
            else [apa.ratio(np.exp(one.estimate)), apa.ratio_interval(np.exp(one.low), np.exp(one.high))]
        )
        rows.append(tuple(cells))
    widest = max(len(term.terms) for term in model.variance) if model.variance else 1
    correlations = ["r" if widest > 1 else ""] + [""] * (len(columns) - 4)
    rows.append(Head(["Random effects", "Variance", "SD", *correlations]))
    for term in sorted(model.variance, key=lambda term: _place(term, analysis)):
        rows.extend(_variance_rows(term, analysis, len(columns)))
    if model.sigma is not None:
        sd = model.sigma
        rows.append(_padded(["Residual", apa.number(sd**2, 3), apa.number(sd, 3)], len(columns)))
    explained = explained_variance(model)
    if explained is not None:
        rows.append(Head(["Explained variance (Nakagawa)", "R²", *[""] * (len(columns) - 2)]))
        rows.append(_padded(["Marginal (fixed effects)", share(explained.marginal)], len(columns)))
        rows.append(
            _padded(["Conditional (with random effects)", share(explained.conditional)], len(columns))
        )
    scale = scale_in_words(analysis)
    title = f"{'Logistic' if logistic else 'Linear'} mixed model of {analysis.plan.measure.noun} ({_who(analysis)})"
    note = f"Outcome: {scale}. {model_note(model, analysis)}"
    if tested:
        note += " Differences that are tested as contrasts have the adjusted p and interval of these."
    return ApaTable(name, title, tuple(columns), tuple(rows), note, _of(model, OF_MODEL))


def _coefficients_tested(analysis: Analysis) -> dict[int, Contrast]:
    """Return the tested contrasts that are a coefficient by itself, by its place."""
    return {
        int(np.argmax(one.weights)): one
        for one in analysis.contrasts
        if one.estimable and sum(map(bool, one.weights)) == 1 and max(one.weights) == 1.0
    }


OF_MODEL = "fixed effects and variance components as R prints them; R² by Nakagawa's formula from these"
OF_DIFFERENCES = "weights of the fixed effects, which stand in models.R"
OF_POINTS = "condition means in which every item counts alike, with variances over participants and items; models.R recomputes them"


def _of(model: FittedModel | None, computed: str) -> Origin:
    return Origin(() if model is None or model.source is None else (model.source,), computed=computed)


def scale_in_words(analysis: Analysis) -> str:
    """Say on which scale the outcome of a model is."""
    measure = analysis.plan.measure
    if measure.family == "binomial":
        return f"log odds of {'a correct answer' if measure.response == 'correct' else measure.noun}"
    if measure.logged:
        return f"natural log of {measure.noun}" + (f" in {measure.unit}" if measure.unit == "ms" else "")
    return f"{measure.noun} in {measure.unit}"


def _who(analysis: Analysis) -> str:
    return apa.listing([spoken(group) for group in analysis.groups])


UNITS = {
    "participant": "participants",
    "item": "items",
    "item_cell": "item-by-condition cells",
    "item_reader": "item-by-reader cells",
    "prompt": "prompt wordings",
    "item_condition": "items in conditions",
    "model_session": "sessions of models",
    "machine": "models",
    "machine_condition": "models in conditions",
}
"""What the levels of each grouping factor of random effects are, by its name."""


def model_note(model: FittedModel, analysis: Analysis) -> str:
    """Say what stands behind a model table: rows, units, fit, coding."""
    units = [f"{apa.count(n)} {UNITS.get(group, group)}" for group, n in model.units.items()]
    if analysis.plan.formula is not None and _has_machines(analysis):
        units = [text.replace("participants", "readers (a model counts as one)") for text in units]
    told = (
        f"N = {apa.count(model.rows)} trials; {apa.listing(units)}. "
        if units
        else f"N = {apa.count(model.rows)}. "
    )
    told += f"Treatment coding with {analysis.levels[0]}"
    told += f" and {spoken(analysis.groups[0])}" if len(analysis.groups) > 1 else ""
    told += f" as reference. {model.method}. Log-likelihood = {apa.number(model.loglik)}, "
    told += f"AIC = {apa.number(model.aic)}, BIC = {apa.number(model.bic)}."
    if not all(one.estimable for one in model.coefficients):
        told += f" {NOT_ESTIMABLE}"
    if model.singular:
        told += " The fit is singular: a variance or a combination of effects is estimated as zero."
    if not model.converged:
        told += " The fit did not converge: its numbers are not to be trusted."
    return told


def explained_variance(model: FittedModel) -> RSquared | None:
    """Return Nakagawa's R² of a model; None where the data do not determine it."""
    if model.source is None or not model.determined or not all(one.estimable for one in model.coefficients):
        return None
    found = r_squared(model.source)
    return found if np.isfinite([found.marginal, found.conditional]).all() else None


def share(value: float) -> str:
    """Write a share that cannot exceed 1, as R² cannot."""
    return apa.number(value, 2, leading_zero=False)


def _has_machines(analysis: Analysis) -> bool:
    return any(group not in ("human", "simulated") for group in analysis.groups)


def _variance_rows(term: VarianceTerm, analysis: Analysis, width: int) -> list[tuple[str, ...]]:
    rows = []
    sd = term.sd
    confined = term.group not in ("item", "participant") and "(Intercept)" not in term.terms
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations = term.cov / np.outer(sd, sd)
    for place, name in enumerate(term.terms):
        label = f"{group_in_words(term.group)}: {component_in_words(name, analysis, confined=confined, alone=len(term.terms) == 1)}"
        cells = [label, apa.number(float(term.cov[place, place]), 3), apa.number(float(sd[place]), 3)]
        cells += [apa.correlation(float(correlations[place, earlier])) for earlier in range(place)]
        rows.append(_padded(cells, width))
    return rows


def _place(term: VarianceTerm, analysis: Analysis) -> tuple[int, int]:
    """Order random terms: participants, items, the rest; intercept first, then slopes by level."""
    groups = ["participant", "item"]
    if analysis.plan.crossing is not None:
        order = list(slopes_in_words(analysis.plan.crossing.among(analysis.levels)))
        at = order.index(term.terms[0]) if term.terms[0] in order else -1
        return (groups.index(term.group) if term.group in groups else len(groups), at)
    names = [component_in_words(term.terms[0], analysis).removesuffix(f" vs. {analysis.levels[0]}")]
    level = analysis.levels.index(names[0]) if names[0] in analysis.levels else -1
    return (groups.index(term.group) if term.group in groups else len(groups), level)


def _padded(cells: list[str], width: int) -> tuple[str, ...]:
    return tuple(cells[:width] + [""] * (width - len(cells)))


def group_in_words(group: str) -> str:
    """Name a grouping factor of random effects."""
    known = {"participant": "Participant", "item": "Item", "item_cell": "Item × condition × reader"}
    known |= {
        "item_reader": "Item × reader",
        "prompt": "Prompt wording",
        "model_session": "Session of a model",
    }
    known |= {
        "item_condition": "Item × condition",
        "machine": "Model",
        "machine_condition": "Model × condition",
    }
    return known.get(group, group)


def term_in_words(term: str, analysis: Analysis) -> str:
    """Name a fixed effect in words instead of column names."""
    factor, reference = analysis.plan.factor, analysis.levels[0]
    if term == "(Intercept)":
        where = f"{spoken(analysis.groups[0])}, {reference}" if len(analysis.groups) > 1 else reference
        return f"Intercept ({where})"
    parts = _parts_of(term, analysis)
    if analysis.plan.crossing is not None and not any(part.startswith("reader_group") for part in parts):
        known = slopes_in_words(analysis.plan.crossing.among(analysis.levels))
        return known.get(term, term)
    if len(parts) > 1:
        parts.sort(key=lambda part: not part.startswith(factor))
        return " × ".join(_level_of(part, analysis) for part in parts)
    if term.startswith("reader_group"):
        return f"{headed(term.removeprefix('reader_group'))} vs. {spoken(analysis.groups[0])}"
    column = _column_of(term, analysis)
    if column is None:
        return f"{term.removeprefix(factor)} vs. {reference}"
    return f"{_level_of(term, analysis)} vs. {_reference_of(column, analysis)}"


def _parts_of(term: str, analysis: Analysis) -> list[str]:
    """Take an interaction apart; names of readers (``hf:path``) and levels may hold colons themselves."""
    known = [f"reader_group{group}" for group in analysis.groups]
    known += [f"{name}{level}" for name, own in _compared(analysis).items() for level in own]
    known = sorted((one for one in known if ":" in one), key=len, reverse=True)
    parts: list[str] = []
    rest = term
    while rest:
        whole = next(
            (one for one in known if rest == one or rest.startswith(f"{one}:")), rest.partition(":")[0]
        )
        parts.append(whole)
        rest = rest[len(whole) + 1 :]
    return parts


def _compared(analysis: Analysis) -> dict[str, tuple[str, ...]]:
    """Return the levels of what is compared: of one factor, or of both that are compared together."""
    crossing = analysis.plan.crossing
    if crossing is None:
        return {analysis.plan.factor: analysis.levels}
    return dict(zip(crossing.factors, crossing.among(analysis.levels).levels, strict=True))


def _column_of(term: str, analysis: Analysis) -> str | None:
    """Return the other factor of a planned formula that a term is a level of; None of the factor that is compared."""
    if analysis.plan.formula is None or term.startswith(analysis.plan.factor):
        return None
    rows = analysis.rows
    found = [
        str(name)
        for name in rows.columns
        if term.startswith(str(name)) and (rows[name].astype(str) == term.removeprefix(str(name))).any()
    ]
    return max(found, key=len, default=None)


def _level_of(term: str, analysis: Analysis) -> str:
    """Name the level that a term stands for."""
    if term.startswith("reader_group"):
        return spoken(term.removeprefix("reader_group"))
    column = _column_of(term, analysis)
    if column is None:
        column = next((one for one in _compared(analysis) if term.startswith(one)), analysis.plan.factor)
    return term.removeprefix(column)


def _reference_of(column: str, analysis: Analysis) -> str:
    """Name the level of a factor that has no term of its own."""
    model = analysis.model
    terms = {one.term for one in model.coefficients} if model is not None else set()
    levels = [str(level) for level in analysis.rows[column].dropna().unique()]
    return next((level for level in levels if f"{column}{level}" not in terms), analysis.levels[0])


def component_in_words(name: str, analysis: Analysis, *, confined: bool = False, alone: bool = False) -> str:
    """Name a random effect in words; ``confined``: its term is of people or models alone; ``alone``: it correlates with no other.

    The column of a condition is its difference from the reference beside an intercept that it correlates with, and by itself a
    deviation in that condition (:mod:`analysis.random_structure`).
    """
    factor = analysis.plan.factor
    if analysis.plan.crossing is not None:
        crossed = slopes_in_words(analysis.plan.crossing.among(analysis.levels))
        if name in crossed:
            return crossed[name]
    if name in ("(Intercept)", "people"):
        return "intercept" if name == "(Intercept)" or not confined else "intercept of people"
    kind, _, slope = name.partition(":")
    if slope and kind == "model":
        return f"{component_in_words(slope, analysis)}, model vs. people"
    if name == "model" and confined:
        return "intercept of models"
    if name == "model":
        return "model vs. " + ("people" if "human" in analysis.groups else "simulated readers")
    for stem in (f"{factor}_", "people_", "model_", factor):
        if name.startswith(stem):
            column = name.removeprefix(stem)
            level = next((one for one in analysis.levels if plain(one) == column), column)
            is_deviation = alone and stem.endswith("_")
            return f"in {level}" if is_deviation else f"{level} vs. {analysis.levels[0]}"
    return name


def _places_of(ses: Sequence[float]) -> int:
    """Return how many decimals a column of estimates has: as many as its smallest standard error asks for."""
    return decimals(min(ses, default=1.0), 2)


def contrast_table(analysis: Analysis, name: str) -> ApaTable:
    """Lay out the tested differences of an analysis: each with the p value and the interval that agree."""
    in_points, measure = any(one.crossed is not None for one in analysis.contrasts), analysis.plan.measure
    of_shares = in_points and measure.scale == "points"
    adjusted = any(one.family > 1 for one in analysis.contrasts)
    statistic = "z" if all(one.df is None for one in analysis.contrasts) else "t"
    raw = in_points or measure.scale == "raw"
    level = f"{100 * (1 - analysis.plan.alpha):g}% CI"
    estimate = "Points" if of_shares else measure.unit.capitalize() if in_points else "b"
    columns = ["Difference", estimate, "SE", statistic]
    columns += [] if statistic == "z" else ["df"]
    columns += ["p adjusted" if adjusted else "p", level]
    columns += [] if raw else [f"Percent [{level}]"]
    rows: list[tuple[str, ...]] = []
    places = 1 if of_shares else _places_of([one.se for one in analysis.contrasts if one.estimable])
    for groups in sorted(dict.fromkeys(one.groups for one in analysis.contrasts), key=len):
        who = " vs. ".join(spoken(group) for group in groups)
        rows.append(Head([f"Difference of differences: {who}" if len(groups) > 1 else headed(groups[0])]))
        for one in analysis.contrasts:
            if one.groups == groups:
                row = _contrast_row(one, statistic, raw, places) if one.estimable else (one.label,)
                rows.append((*row, *[apa.MISSING] * (len(columns) - len(row))))
    note = ""
    if adjusted:
        note = f"p and intervals adjusted by {analysis.correction} {family_in_words(analysis)}."
    if any(one.direction != "two-sided" for one in analysis.contrasts):
        note = f"{note} p and the interval of a difference with a direction (> or <) are one-sided.".strip()
    if not all(one.estimable or one.left_out for one in analysis.contrasts):
        note = f"{note} {NOT_ESTIMABLE}".strip()
    left_out = "; ".join(dict.fromkeys(one.left_out for one in analysis.contrasts if one.left_out))
    if left_out:
        note = (
            f"{note} En dashes: planned, not estimated ({left_out}), and counted in the adjustment.".strip()
        )
    title = f"Differences in {measure.noun} between conditions of {analysis.plan.factor} ({_who(analysis)})"
    return ApaTable(name, title, tuple(columns), tuple(rows), note, origin_of_contrasts([analysis]))


def origin_of_contrasts(analyses: Sequence[Analysis]) -> Origin:
    """Return where the differences of analyses come from: trials, if they are estimated as shares, and mixed models."""
    shares = [one for one in analyses if any(each.crossed is not None for each in one.contrasts)]
    fits = tuple(
        one.model.source
        for one in analyses
        if one not in shares and one.model is not None and one.model.source is not None
    )
    if not shares:
        return Origin(fits, computed=OF_DIFFERENCES)
    factors = tuple(dict.fromkeys(one.plan.factor for one in shares))
    groups = tuple(dict.fromkeys(group for one in shares for group in one.groups))
    shown = factors if len(factors) == 1 else ()
    rated = all(one.plan.measure is RATING for one in shares)
    judged, used = (
        (("rating",), (USED, *filled("rating"))) if rated else (("correct", "response_status"), JUDGED)
    )
    return Origin(
        fits,
        columns=(*judged, *factors, "reader_group", "reader", "item_id"),
        rows="less what each plan leaves out" if len(shares) > 1 else "less what the plan leaves out",
        where=(*used, where("reader_group", *groups), *filled("item_id", *shown)),
        computed=f"{OF_POINTS}; {OF_DIFFERENCES}" if fits else OF_POINTS,
    )


def _contrast_row(one: Contrast, statistic: str, raw: bool, places: int) -> tuple[str, ...]:
    cells = [
        one.label + WAYS[one.direction],
        apa.number(one.estimate, places),
        apa.number(one.se, places),
        apa.number(one.statistic),
    ]
    cells += [] if statistic == "z" else [apa.degrees_of_freedom(one.df)]
    cells += [apa.p_value(one.p_adjusted), apa.interval(one.low, one.high, places)]
    if raw:
        return tuple(cells)
    ends = apa.interval(as_percent(one.low), as_percent(one.high), 1)
    return (*cells, apa.joined(apa.number(as_percent(one.estimate), 1), ends))


def bayes_table(analysis: Analysis, name: str) -> ApaTable | None:
    """Lay out Bayes factors and posteriors of an analysis whose plan declares a prior; else None."""
    plan, prior = analysis.plan, analysis.plan.bayes
    tested = [one for one in analysis.contrasts if one.estimable]
    if prior is None or not tested:
        return None
    bounded = any(one.equivalence is not None for one in tested)
    places = 1 if plan.measure.scale == "points" else 3
    rows: list[tuple[str, ...]] = []
    for groups in dict.fromkeys(one.groups for one in tested):
        rows.append(Head([" vs. ".join(spoken(group) for group in groups)]))
        for one in tested:
            if one.groups != groups:
                continue
            found = posterior_of(one, prior)
            rows.append(
                (
                    one.label + WAYS[one.direction],
                    apa.bayes_factor(found.factor),
                    apa.number(found.median, places),
                    apa.interval(found.low, found.high, places),
                    *([apa.bayes_factor(found.within)] if bounded else []),
                )
            )
    unit = "natural-log units" if plan.measure.scale == "ratio" else plan.measure.unit_of_difference
    note = (
        f"BF10 > 1 favors a difference, BF10 < 1 no difference; {prior.said}. The posterior ({unit}) is that given a difference. "
        "Bayes factors are not adjusted for the number of tests."
    )
    if bounded and plan.equivalence is not None:
        note += f" BF within: inside against outside {plan.equivalence.said}."
    columns = ("Difference", "BF10", "Posterior median", "95% CrI", *(["BF within"] if bounded else []))
    title = f"Bayes factors of differences in {plan.measure.noun}"
    return ApaTable(name, title, columns, tuple(rows), note, origin_of_contrasts([analysis]), of_paper=True)


def equivalence_table(analysis: Analysis, name: str) -> ApaTable | None:
    """Lay out the equivalence tests of an analysis; None where it has none."""
    bound = analysis.plan.equivalence
    tested = [one for one in analysis.contrasts if one.equivalence is not None]
    if bound is None or not tested:
        return None
    ratio = bound.unit == "ratio"
    places = 1 if bound.unit == "points" else 2
    level = f"{100 * next(one.equivalence.level for one in tested if one.equivalence):.3g}"
    rows: list[tuple[str, ...]] = []
    for groups in dict.fromkeys(one.groups for one in tested):
        rows.append(Head([" vs. ".join(spoken(group) for group in groups)]))
        for one in tested:
            test = one.equivalence
            if one.groups != groups or test is None:
                continue
            values = np.array([test.estimate, test.low, test.high])
            estimate, low, high = (np.exp(values) if ratio else values).tolist()
            rows.append(
                (
                    one.label,
                    apa.number(estimate, places),
                    apa.interval(low, high, places),
                    apa.number(test.statistic),
                    apa.p_value(test.p),
                    apa.p_value(test.p_adjusted),
                    "yes" if test.equivalent else "not shown",
                )
            )
    many = max(one.equivalence.family for one in tested if one.equivalence)
    unit = {"points": "percentage points", "ratio": "ratio of ratios", "raw": analysis.plan.measure.unit}
    edges = f"{1 / bound.value:.3g} to {bound.value:.3g}" if ratio else f"±{bound.value:g}"
    note = (
        f"Two one-sided tests against {edges} ({bound.said}, fixed beforehand); p of the less favorable one and the interval are "
        f"adjusted by Bonferroni's method over {apa.worded(many, 'test')}. "
        "Not shown does not mean different."
    )
    statistic = "z" if all(one.equivalence and one.equivalence.df is None for one in tested) else "t"
    columns = (
        "Difference", unit[bound.unit].capitalize(), f"{level}% CI", statistic, "p", "p adjusted", "Equivalent"
    )  # fmt: skip
    title = f"Equivalence of readers in differences in {analysis.plan.measure.noun}"
    return ApaTable(name, title, columns, tuple(rows), note, origin_of_contrasts([analysis]))
