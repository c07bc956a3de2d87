"""Tables in APA style: bold number, italic title, three rules, a note; the same rows go to CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import apa
from analysis.descriptives import Cell
from analysis.measures import Measure
from analysis.readers import headed, marked, spoken
from analysis.recovery_check import Recovered
from analysis.results import Analysis, Contrast, FittedModel, VarianceTerm

SYMBOLS = {"M exact", "M recovery", "b", "SE", "z", "t", "df", "p", "M", "SD", "n", "OR", "r", "p adjusted"}


NOT_ESTIMABLE = f"A row of en dashes ({apa.MISSING}) is not estimable: the data do not determine that effect."


class Head(tuple[str, ...]):
    """A row that heads the rows below it: one cell across the table, or a head for each column."""

    __slots__ = ()


@dataclass(frozen=True)
class ApaTable:
    """A table of a report.

    Attributes
    ----------
    name : str
        File name without ending.
    title : str
    columns : tuple of str
        Head of each column; statistical symbols are set in italics.
    rows : tuple of tuple of str
        A ``Head`` among them heads the rows below it.
    note : str
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    @property
    def has_heads(self) -> bool:
        """Whether rows are grouped under heads."""
        return any(isinstance(row, Head) for row in self.rows)

    def is_symbol(self, column: str) -> bool:
        """Whether a column head is a statistical symbol."""
        return column in SYMBOLS

    def save(self, folder: Path) -> Path:
        """Write ``name.csv`` (UTF-8 with a mark that spreadsheets read) and return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.csv"
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)
        return path


def flow_table(flow: pd.DataFrame, kinds: dict[str, str]) -> ApaTable:
    """Lay out who and what is analysed and why the rest is not."""
    columns = ("", *(marked(group, kinds.get(group, "model")) for group in flow.columns))
    rows = tuple(
        (str(stage), *(apa.count(value) for value in values)) for stage, *values in flow.itertuples()
    )
    note = (
        "Every trial stays in trials.csv; one that no model uses says why in excluded_reason. Reasons are blind to "
        "condition and answer. Which trials a single model leaves out beyond these stands under that model."
    )
    return ApaTable("flow", "Sessions and trials, recorded and analysed", columns, rows, note)


def descriptive_table(cells: Sequence[Cell], measure: Measure, factor: str) -> ApaTable:
    """Lay out means, spreads and intervals of every reader group in every condition."""
    rows: list[tuple[str, ...]] = []
    for group in dict.fromkeys(cell.group for cell in cells):
        own = [cell for cell in cells if cell.group == group]
        rows.append(Head([marked(group, own[0].kind)]))
        for cell in own:
            values = (
                (apa.number(cell.mean, 0), apa.number(cell.sd, 0), apa.interval(cell.low, cell.high, 0))
                if measure.logged
                else (
                    apa.number(100 * cell.mean, 1),
                    apa.number(100 * cell.sd, 1),
                    apa.interval(100 * cell.low, 100 * cell.high, 1),
                )
            )
            rows.append((cell.level, apa.count(cell.trials), apa.count(cell.units), *values))
    unit = "ms" if measure.logged else "% correct"
    note = "n = participants, or items for a model or baseline. SD is between participants. "
    note += "Intervals are within-participant ones (Cousineau–Morey)"
    note += "; means are geometric." if measure.logged else "; for a model or baseline, Wilson's over items."
    name = f"descriptives_{measure.name}_{factor}"
    columns = (factor, "Trials", "n", "M", "SD", "95% CI")
    return ApaTable(name, f"{measure.title} ({unit}) by {factor} and reader", columns, tuple(rows), note)


def accuracy_and_recovery_table(
    exact: Sequence[Cell], near: Sequence[Cell], factor: str, prose: str
) -> ApaTable:
    """Lay out exact accuracy and mean recovery of typed answers side by side.

    Parameters
    ----------
    exact, near : sequence of Cell
        Accuracy and mean recovery of the same groups and levels; a cell without typed answers has no recovery.
    factor : str
    prose : str
        What the study's dictionary says of the recovery score.
    """
    recovery = {(cell.group, cell.level): cell for cell in near}
    rows: list[tuple[str, ...]] = []
    for group in dict.fromkeys(cell.group for cell in exact):
        own = [cell for cell in exact if cell.group == group]
        rows.append(Head([marked(group, own[0].kind)]))
        for cell in own:
            both = [_shares(cell), _shares(recovery.get((group, cell.level)))]
            rows.append((cell.level, apa.count(cell.trials), apa.count(cell.units), *both[0], *both[1]))
    note = "n = participants, or items for a model or baseline. SD is between participants. Failures count as wrong "
    note += f"and as a recovery of 0. {f'Score: {prose}. ' if prose else ''}Intervals are within-participant ones "
    note += (
        "(Cousineau–Morey); for a model or baseline, over items: Wilson's of accuracy, Student's of recovery."
    )
    columns = (factor, "Trials", "n", "M exact", "SD", "95% CI", "M recovery", "SD", "95% CI")
    title = f"Exact accuracy and mean recovery (%) by {factor} and reader"
    return ApaTable(f"descriptives_correct_{factor}", title, columns, tuple(rows), note)


def _shares(cell: Cell | None) -> tuple[str, str, str]:
    if cell is None:
        return (apa.MISSING, apa.MISSING, apa.MISSING)
    ends = apa.interval(100 * cell.low, 100 * cell.high, 1)
    return (apa.number(100 * cell.mean, 1), apa.number(100 * cell.sd, 1), ends)


def valid_only_table(shares: pd.DataFrame, factor: str) -> ApaTable:
    """Lay out accuracy with failures as wrong beside accuracy of valid answers only."""
    rows: list[tuple[str, ...]] = []
    for group, own in shares.groupby("group", sort=False):
        rows.append(Head([marked(str(group), str(own["kind"].iloc[0]))]))
        for one in own.to_dict("records"):
            trials, failures = int(one["trials"]), int(one["trials"]) - int(one["valid"])
            both = (apa.number(100 * one["all_trials"], 1), apa.number(100 * one["valid_trials"], 1))
            rows.append((str(one["level"]), apa.count(trials), apa.count(failures), *both))
    note = (
        "The first share is the primary one: an answer that cannot be read, a refusal and a timeout count as wrong. The "
        "second leaves them out, which conditions on an outcome; it is a bound, not a correction."
    )
    columns = (factor, "Trials", "Failures", "% correct, failures wrong", "% correct, valid only")
    return ApaTable(
        f"valid_only_{factor}", "Accuracy with and without failed answers", columns, tuple(rows), note
    )


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
    for one in model.coefficients:
        if not one.estimable:
            rows.append((term_in_words(one.term, analysis), *[apa.MISSING] * (len(columns) - 1)))
            continue
        cells = [term_in_words(one.term, analysis), apa.number(one.estimate, decimals(one.se, 2))]
        cells += [apa.number(one.se, decimals(one.se, 2)), apa.number(one.statistic)]
        cells += [] if statistic == "z" else [apa.degrees_of_freedom(one.df)]
        cells += [apa.p_value(one.p), apa.interval(one.low, one.high, decimals(one.se, 2))]
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
    scale = scale_in_words(analysis)
    title = f"{'Logistic' if logistic else 'Linear'} mixed model of {analysis.plan.measure.noun} ({_who(analysis)})"
    return ApaTable(
        name, title, tuple(columns), tuple(rows), f"Outcome: {scale}. {model_note(model, analysis)}"
    )


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


def model_note(model: FittedModel, analysis: Analysis) -> str:
    """Say what stands behind a model table: rows, units, fit, coding."""
    names = {"participant": "participants", "item": "items", "item_cell": "item-by-condition cells"}
    names |= {"item_reader": "item-by-reader cells", "prompt": "prompt wordings"}
    units = [f"{apa.count(n)} {names.get(group, group)}" for group, n in model.units.items()]
    if any(group in model.units for group in ("participant",)) and _has_machines(analysis):
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


def _has_machines(analysis: Analysis) -> bool:
    return any(group not in ("human", "simulated") for group in analysis.groups)


def _variance_rows(term: VarianceTerm, analysis: Analysis, width: int) -> list[tuple[str, ...]]:
    rows = []
    sd = term.sd
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations = term.cov / np.outer(sd, sd)
    for place, name in enumerate(term.terms):
        label = f"{_group_words(term.group)}: {component_in_words(name, analysis)}"
        cells = [label, apa.number(float(term.cov[place, place]), 3), apa.number(float(sd[place]), 3)]
        cells += [apa.correlation(float(correlations[place, earlier])) for earlier in range(place)]
        rows.append(_padded(cells, width))
    return rows


def _place(term: VarianceTerm, analysis: Analysis) -> tuple[int, int]:
    """Order random terms: participants, items, the rest; intercept first, then slopes by level."""
    groups = ["participant", "item"]
    names = [component_in_words(term.terms[0], analysis).removesuffix(f" vs. {analysis.levels[0]}")]
    level = analysis.levels.index(names[0]) if names[0] in analysis.levels else -1
    return (groups.index(term.group) if term.group in groups else len(groups), level)


def _padded(cells: list[str], width: int) -> tuple[str, ...]:
    return tuple(cells[:width] + [""] * (width - len(cells)))


def _group_words(group: str) -> str:
    known = {"participant": "Participant", "item": "Item", "item_cell": "Item × condition × reader"}
    return known.get(group, {"item_reader": "Item × reader", "prompt": "Prompt wording"}.get(group, group))


def term_in_words(term: str, analysis: Analysis) -> str:
    """Name a fixed effect in words instead of column names."""
    factor, reference = analysis.plan.factor, analysis.levels[0]
    if term == "(Intercept)":
        where = f"{spoken(analysis.groups[0])}, {reference}" if len(analysis.groups) > 1 else reference
        return f"Intercept ({where})"
    first, _, second = term.partition(":")
    if second:
        level, group = (first, second) if first.startswith(factor) else (second, first)
        return f"{level.removeprefix(factor)} × {spoken(group.removeprefix('reader_group'))}"
    if term.startswith("reader_group"):
        return f"{headed(term.removeprefix('reader_group'))} vs. {spoken(analysis.groups[0])}"
    return f"{term.removeprefix(factor)} vs. {reference}"


def component_in_words(name: str, analysis: Analysis) -> str:
    """Name a random effect in words."""
    factor = analysis.plan.factor
    if name in ("(Intercept)", "people"):
        return "intercept"
    if name == "model":
        return "model vs. " + ("people" if "human" in analysis.groups else "simulated readers")
    for stem in (f"{factor}_", "people_", factor):
        if name.startswith(stem):
            return f"{name.removeprefix(stem)} vs. {analysis.levels[0]}"
    return name


def contrast_table(analysis: Analysis, name: str) -> ApaTable:
    """Lay out the tested differences of an analysis."""
    logistic = analysis.plan.measure.family == "binomial"
    adjusted = any(one.family > 1 for one in analysis.contrasts)
    statistic = "z" if all(one.df is None for one in analysis.contrasts) else "t"
    columns = ["Difference", "b", "SE", statistic, *([] if statistic == "z" else ["df"]), "p"]
    columns += [*(["p adjusted"] if adjusted else []), "95% CI"]
    raw = analysis.plan.measure.scale == "raw"
    columns += ["OR", "Points [95% CI]"] if logistic else [] if raw else ["Percent [95% CI]"]
    rows: list[tuple[str, ...]] = []
    for groups in sorted(dict.fromkeys(one.groups for one in analysis.contrasts), key=len):
        who = " vs. ".join(spoken(group) for group in groups)
        rows.append(Head([f"Difference of differences: {who}" if len(groups) > 1 else headed(groups[0])]))
        for one in analysis.contrasts:
            if one.groups == groups:
                known = one.estimable
                row = _contrast_row(one, statistic, analysis, adjusted) if known else (one.label,)
                rows.append((*row, *[apa.MISSING] * (len(columns) - len(row))))
    note = ""
    if adjusted:
        over = "the reader groups of one difference" if analysis.plan.planned else "all rows of this table"
        if analysis.plan.family:
            over = f"all tests of the family {analysis.plan.family}"
        note = f"p adjusted by {analysis.correction}'s method over {over}. "
    if logistic:
        note += "Points are percentage points, averaged over participants and items (delta-method intervals)."
    if any(one.direction != "two-sided" for one in analysis.contrasts):
        note = f"{note.strip()} p of a difference with a direction (> or <) is one-sided; intervals are two-sided."
    if not all(one.estimable for one in analysis.contrasts):
        note = f"{note.strip()} {NOT_ESTIMABLE}".strip()
    return ApaTable(name, f"Differences in {analysis.plan.measure.noun}", tuple(columns), tuple(rows), note)


def _contrast_row(one: Contrast, statistic: str, analysis: Analysis, adjusted: bool) -> tuple[str, ...]:
    places = decimals(one.se, 2)
    cells = [
        one.label + {"two-sided": "", "greater": " > 0", "less": " < 0"}[one.direction],
        apa.number(one.estimate, places),
        apa.number(one.se, places),
        apa.number(one.statistic),
    ]
    cells += [] if statistic == "z" else [apa.degrees_of_freedom(one.df)]
    cells += [apa.p_value(one.p), *([apa.p_value(one.p_adjusted)] if adjusted else [])]
    cells.append(apa.interval(one.low, one.high, places))
    scale = analysis.plan.measure.scale
    if scale == "raw":
        return tuple(cells)
    if scale == "points":
        points = f"{apa.number(one.points, 1)} {apa.interval(one.points_low, one.points_high, 1)}"
        return (*cells, apa.ratio(np.exp(one.estimate)), points)
    ends = apa.interval(as_percent(one.low), as_percent(one.high), 1)
    return (*cells, f"{apa.number(as_percent(one.estimate), 1)} {ends}")


def equivalence_table(analysis: Analysis, name: str) -> ApaTable | None:
    """Lay out the equivalence tests of an analysis; None where it has none."""
    bound = analysis.plan.equivalence
    tested = [one for one in analysis.contrasts if one.equivalence is not None]
    if bound is None or not tested:
        return None
    ratio = bound.unit == "ratio"
    places = 1 if bound.unit == "points" else 2
    level = round(100 * (1 - 2 * analysis.plan.alpha))
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
    unit = {"points": "percentage points", "ratio": "ratio of ratios", "raw": analysis.plan.measure.unit}
    edges = f"{1 / bound.value:.3g} to {bound.value:.3g}" if ratio else f"±{bound.value:g}"
    note = (
        f"Two one-sided tests against {edges} ({bound.said}, fixed beforehand); p of the less favourable one, adjusted by Holm's "
        "method over the readers of a difference or the plan's family. Not shown does not mean different."
    )
    statistic = "z" if all(one.equivalence and one.equivalence.df is None for one in tested) else "t"
    columns = (
        "Difference", unit[bound.unit].capitalize(), f"{level}% CI", statistic, "p", "p adjusted", "Equivalent"
    )  # fmt: skip
    title = f"Equivalence of readers in differences in {analysis.plan.measure.noun}"
    return ApaTable(name, title, columns, tuple(rows), note)


def as_percent(log_ratio: float) -> float:
    """Turn a difference of logs into percent."""
    return 100.0 * (float(np.exp(log_ratio)) - 1.0)


def decimals(se: float, fewest: int) -> int:
    """Return two decimals, or three where a standard error is below 0.05."""
    return fewest if not se < 0.05 else fewest + 1


def recovery_table(recovered: Sequence[Recovered]) -> ApaTable:
    """Lay out effects put in beside effects recovered."""
    rows: list[tuple[str, ...]] = []
    for title in dict.fromkeys(one.title for one in recovered):
        own = [one for one in recovered if one.title == title]
        rows.append(Head([f"{title} ({'log odds' if own[0].scale == 'logit' else 'log ms'})"]))
        for one in own:
            inside = {True: "yes", False: "no", None: apa.MISSING}[one.covered]
            ends = apa.MISSING if one.low is None else apa.interval(one.low, one.high)
            rows.append((one.label, apa.number(one.truth), apa.number(one.estimate), ends, inside))
    note = (
        "Simulated readers only; not data. Of 100 such intervals about 95 hold the effect that was put in, so that one "
        "outside is no fault by itself. Standard deviations have no interval. Timeouts count as wrong, which pulls "
        "accuracy effects towards those of time."
    )
    columns = ("Effect", "Put in", "Recovered", "95% CI", "Put in lies inside")
    return ApaTable(
        "recovery", "Effects put into simulated readers and effects recovered", columns, tuple(rows), note
    )
