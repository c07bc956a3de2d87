"""Tables of the Results: fixed and random effects, tested differences, Bayes factors, equivalence; ``tables.yaml`` lays them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from analysis import apa
from analysis.bayes import posterior_of
from analysis.exclusions import FURTHER
from analysis.mixed import VarianceComponent, r_squared
from analysis.plan import CODED, Measure
from analysis.planned import of_trials
from analysis.readers import headed, spoken
from analysis.report.apa_tables import ApaTable, Head, Origin, decimals
from analysis.report.effect_sizes import places_of
from analysis.report.filters import JUDGED, USED, Either, filled, where
from analysis.report.results import LAYOUT, adjusted_by
from analysis.report.terms import GROUPS, UNITS, component_in_words, in_order, term_in_words
from analysis.results import Analysis, Contrast, FittedModelResult

WAYS = {"two-sided": "", "greater": " > 0", "less": " < 0"}
"""How a table marks the direction of a test."""
OF_DIFFERENCES = "weights of the fixed effects, which models.R lists"
OF_POINTS = "condition means in which every item counts alike, with variances over participants and items; models.R recomputes them"


def model_table(analysis: Analysis, name: str) -> ApaTable:
    """Lay out fixed and random effects; tested differences have the adjusted interval and, unless the model is a check, p."""
    is_check, raw = analysis.companion is not None, analysis.plan.measure.scale == "raw"
    analysis = analysis.of_model
    model = analysis.model
    assert model is not None
    tested, rows = False, []
    for effect, coefficient in zip(analysis.effects, model.coefficients, strict=True):
        tested |= effect is not coefficient
        if is_check and raw and effect is not coefficient:
            # in the unit of the contrast, whose interval is not that of this model
            effect = replace(effect, statistic=np.nan, df=None, low=np.nan, high=np.nan)
        term = term_in_words(effect.term, analysis)
        rows.append({"one": effect, "term": term, "is_intercept": effect.term == "(Intercept)"})
    estimable = [coefficient.se for coefficient in model.coefficients if coefficient.estimable]
    table = LAYOUT.table(
        "model",
        rows,
        name,
        fits=(model.source,),
        model=model,
        measure=analysis.plan.measure,
        logistic=model.family == "binomial",
        raw=raw,
        statistic="z" if all(coefficient.df is None for coefficient in model.coefficients) else "t",
        places=decimals(min(estimable, default=1.0), 2),
        is_any_undetermined=len(estimable) < len(rows),
        is_any_without_interval=any(one.estimable and not one.has_interval for one in model.coefficients),
        tested=tested,
        is_check=is_check,
        who=_who(analysis),
        outcome=_outcome(analysis),
        units=_units(model, analysis),
        coding=_coding(analysis),
        exp=np.exp,
    )
    width = len(table.columns)
    widest = max((len(term.terms) for term in model.variance), default=1)
    more = [_padded(["Random effects", "Variance", "SD", "r" if widest > 1 else ""], width, is_head=True)]
    for random in sorted(model.variance, key=lambda term: in_order(term, analysis)):
        more += _variance_rows(random, analysis, width)
    if model.sigma is not None:
        cells = ["Residual", apa.number(model.sigma**2, 3), apa.number(model.sigma, 3)]
        more.append(_padded(cells, width))
    is_estimable = all(coefficient.estimable for coefficient in model.coefficients)
    if model.converged and model.determined and is_estimable:
        explained = r_squared(model.source)
        shares = {
            "Marginal (fixed effects)": explained.marginal,
            "Conditional (with random effects)": explained.conditional,
        }
        if np.isfinite([*shares.values()]).all():
            more.append(_padded(["Explained variance (Nakagawa)", "R²"], width, is_head=True))
            more += [
                _padded([name, apa.number(share, leading_zero=False)], width)
                for name, share in shares.items()
            ]
    withheld = "the likelihood of this model has no maximum" if model.runs_away else ""
    return replace(table, rows=(*table.rows, *more), withheld=withheld)


def _coding(analysis: Analysis) -> str:
    """State how conditions are coded, and what is the reference."""
    codings = analysis.plan.codings
    reader = [spoken(analysis.groups[0])] if len(analysis.groups) > 1 else []
    if set(codings.values()) == {"treatment"}:
        return f"Treatment coding with {' and '.join([analysis.levels[0], *reader])} as reference."
    used = analysis.model.settings.get("contrasts", {}) if analysis.model else {}
    named = [
        f"{CODED[coding if coding != 'planned' or isinstance(used.get(factor), dict) else 'sum']} of {factor}"
        for factor, coding in codings.items()
    ]
    with_reader = f"; {reader[0]} is the reference reader" if reader else ""
    text = f"{apa.listing(named)}{with_reader}."
    return f"{text[0].upper()}{text[1:]}"


def _who(analysis: Analysis) -> str:
    order = dict.fromkeys(group for contrast in analysis.contrasts for group in contrast.groups)
    groups = sorted(
        analysis.groups, key=lambda group: [*order].index(group) if group in order else len(order)
    )
    return apa.listing([spoken(group) for group in groups])


def _unit_head(measure: Measure) -> str:
    return measure.unit.capitalize() or "Difference"


def _outcome(analysis: Analysis) -> str:
    """Name the scale of a model's outcome."""
    measure = analysis.plan.measure
    if measure.family == "binomial":
        return f"log odds of {'a correct answer' if measure.response == 'correct' else measure.noun}"
    if measure.logged:
        return f"natural log of {measure.noun}" + (f" in {measure.unit}" if measure.unit == "ms" else "")
    return f"{measure.noun} in {measure.unit}" if measure.unit else measure.noun


def _units(model: FittedModelResult, analysis: Analysis) -> list[str]:
    """Count the levels of each grouping factor in words."""
    names = dict(UNITS)
    if analysis.plan.formula is not None and set(analysis.groups) - {"human", "simulated"}:
        names["participant"] = "readers (a model counts as one)"
    return [f"{apa.count(count)} {names.get(group, group)}" for group, count in model.units.items()]


def _variance_rows(term: VarianceComponent, analysis: Analysis, width: int) -> list[tuple[str, ...]]:
    rows, sd, alone = [], term.sd, len(term.terms) == 1
    confined = term.group not in ("item", "participant") and "(Intercept)" not in term.terms
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations = term.cov / np.outer(sd, sd)
    for index, name in enumerate(term.terms):
        component = component_in_words(name, analysis, confined=confined, alone=alone)
        spreads = [apa.number(float(value), 3) for value in (term.cov[index, index], sd[index])]
        row_correlations = [apa.correlation(float(value)) for value in correlations[index, :index]]
        rows.append(
            _padded(
                [f"{GROUPS.get(term.group, term.group)}: {component}", *spreads, *row_correlations], width
            )
        )
    return rows


def _padded(cells: list[str], width: int, *, is_head: bool = False) -> tuple[str, ...]:
    row = tuple(cells[:width] + [""] * (width - len(cells)))
    return Head(row) if is_head else row


def _row(contrast: Contrast) -> dict[str, Any]:
    """Return what each table of differences says of one: its label with the direction of its test, and the readers above it."""
    return {
        "one": contrast,
        "label": contrast.label + (WAYS[contrast.direction] if contrast.estimable else ""),
        "heading": " vs. ".join(spoken(group) for group in contrast.groups),
    }


def contrast_table(analysis: Analysis, name: str, others: Sequence[Analysis] = ()) -> ApaTable:
    """Lay out the tested differences of an analysis, and of others of its kind: each with the p value and interval that agree."""
    plan, analyses = analysis.plan, (analysis, *others)
    contrasts = [contrast for member in analyses for contrast in member.contrasts]
    in_points = any(contrast.crossed is not None for contrast in contrasts)
    of_shares = in_points and plan.measure.scale == "points"
    rows = []
    for member in analyses:
        part = f"{part_of(member)}: " if others else ""
        for reader in _by_readers(sorted(member.contrasts, key=lambda contrast: len(contrast.groups))):
            row = _row(reader)
            title = (
                f"Difference of differences: {row['heading']}" if reader.between else headed(reader.groups[0])
            )
            rows.append({**row, "heading": part + title})
    return LAYOUT.table(
        "differences",
        rows,
        name,
        origin=origin_of_contrasts(analyses),
        plan=plan,
        measure=plan.measure,
        who=apa.worded(len(analyses), "analysis", "analyses") if others else _who(analysis),
        estimate="Points" if of_shares else _unit_head(plan.measure) if in_points else "b",
        raw=in_points or plan.measure.scale == "raw",
        places=1 if of_shares else places_of(contrasts),
        statistic="z" if all(contrast.df is None for contrast in contrasts) else "t",
        level=f"{100 * (1 - plan.alpha):g}",
        adjusted_by=adjusted_by(*analyses) if any(contrast.family > 1 for contrast in contrasts) else "",
        is_any_directed=any(contrast.direction != "two-sided" for contrast in contrasts),
        has_common_items=any(_differs_from_rows(member) for member in analyses),
        is_any_undetermined=not all(contrast.estimable or contrast.left_out for contrast in contrasts),
        left_out="; ".join(dict.fromkeys(contrast.left_out for contrast in contrasts if contrast.left_out)),
    )


def _differs_from_rows(analysis: Analysis) -> bool:
    """Whether a difference between readers, over the items that both answered, is not that of the differences of each."""
    of_each = {(one.label, one.groups): one.estimate for one in analysis.estimable if not one.between}
    return any(
        abs(of_each[first] - of_each[second] - one.estimate) > 1e-9 * max(1.0, abs(one.estimate))
        for one in analysis.estimable
        if one.between and one.crossed is not None
        if (first := (one.label, one.groups[:1])) in of_each
        and (second := (one.label, one.groups[1:])) in of_each
    )


def part_of(analysis: Analysis) -> str:
    """Name the trials of an analysis of a part of a study."""
    return of_trials(analysis.plan.trials, analysis.plan.within).strip(" ()")


def origin_of_contrasts(analyses: Sequence[Analysis]) -> Origin:
    """Return where the differences of analyses come from: trials, if they are estimated as shares, and mixed models."""
    shares = [
        analysis
        for analysis in analyses
        if any(contrast.crossed is not None for contrast in analysis.contrasts)
    ]
    fits = tuple(analysis.fit for analysis in analyses if analysis not in shares and analysis.fit is not None)
    if not shares:
        return Origin(fits, computed=OF_DIFFERENCES)
    computed = f"{OF_POINTS}; {OF_DIFFERENCES}" if fits else OF_POINTS
    return replace(origin_of_trials(shares, computed), fits=fits)


def origin_of_trials(shares: Sequence[Analysis], computed: str) -> Origin:
    """Return the trials of every reader that analyses compare as the source of what is computed from them."""
    factors = tuple(dict.fromkeys(share.plan.factor for share in shares))
    groups = tuple(dict.fromkeys(group for share in shares for group in share.groups))
    shown = factors if len(factors) == 1 else ()
    planned = {share.plan.name for share in shares if share.plan.planned}
    columns: tuple[str, ...] = ("correct", "response_status")
    used = JUDGED
    if (
        len(names := {share.plan.measure.name for share in shares}) == 1
        and shares[0].plan.measure.scale != "points"
    ):
        columns, used = tuple(names), (USED, *filled(*names))
    elif all(share.plan.measure.value == "share" for share in shares):
        columns = ("trial_type", "answer", "response", "response_status")
        used = (USED, where("trial_type", "recover"), *filled("answer", "response_status"))
    further = [share for share in shares if _is_of_further_answers(share)]
    if further:
        counted = where("excluded_reason", FURTHER)
        either = counted if len(further) == len(shares) else Either((USED, counted))
        used = tuple(either if condition == USED else condition for condition in used)
        used += (
            (where("step_name", *{str(share.plan.trials) for share in further}),) if either is counted else ()
        )
    return Origin(
        columns=(*columns, *factors, "reader_group", "reader", "item_id"),
        rows=f"less what {'each' if len(planned) > 1 else 'the'} plan leaves out" if planned else "",
        where=(*used, where("reader_group", *groups), *filled("item_id", *shown)),
        computed=computed,
    )


def _is_of_further_answers(analysis: Analysis) -> bool:
    """Whether an analysis is of the answers to a step with a name."""
    rows = analysis.rows
    return "step_name" in rows and len(rows) > 0 and bool(rows["step_name"].notna().all())


def bayes_table(analysis: Analysis, name: str) -> ApaTable | None:
    """Lay out Bayes factors and posteriors of an analysis whose plan declares a prior; else None."""
    plan, prior = analysis.plan, analysis.plan.bayes
    tested = _by_readers(analysis.estimable)
    if prior is None or not tested:
        return None
    is_bounded = any(contrast.equivalence is not None for contrast in tested)
    return LAYOUT.table(
        "bayes",
        [{**_row(contrast), "posterior": posterior_of(contrast, prior)} for contrast in tested],
        name,
        origin=origin_of_contrasts([analysis]),
        measure=plan.measure,
        prior=prior,
        places=1 if plan.measure.scale == "points" else 3,
        unit="natural-log units" if plan.measure.scale == "ratio" else plan.measure.unit_of_difference,
        bound=plan.equivalence if is_bounded else None,
    )


def _by_readers(contrasts: Sequence[Contrast]) -> list[Contrast]:
    order = list(dict.fromkeys(contrast.groups for contrast in contrasts))
    return sorted(contrasts, key=lambda contrast: order.index(contrast.groups))


def equivalence_table(analysis: Analysis, name: str) -> ApaTable | None:
    """Lay out the equivalence tests of an analysis; None where it has none."""
    bound, measure = analysis.plan.equivalence, analysis.plan.measure
    tested = [
        (reader, reader.equivalence) for reader in _by_readers(analysis.contrasts) if reader.equivalence
    ]
    if bound is None or not tested:
        return None
    is_ratio, tests = bound.unit == "ratio", [test for _, test in tested]
    rows = []
    for contrast, test in tested:
        values = np.array([test.estimate, test.low, test.high])
        ends = dict(zip(("estimate", "low", "high"), np.exp(values) if is_ratio else values, strict=True))
        rows.append({**_row(contrast), "label": contrast.label, "test": test, **ends})
    units = {"points": "Percentage points", "ratio": "Ratio of ratios", "raw": _unit_head(measure)}
    return LAYOUT.table(
        "equivalence",
        rows,
        name,
        origin=origin_of_contrasts([analysis]),
        measure=measure,
        bound=bound,
        edges=f"{1 / bound.value:.3g} to {bound.value:.3g}" if is_ratio else f"±{bound.value:g}",
        places=1 if bound.unit == "points" else 2,
        unit=units[bound.unit],
        level=f"{100 * tests[0].level:.3g}",
        statistic="z" if all(test.df is None for test in tests) else "t",
        many=max(test.family for test in tests),
    )
