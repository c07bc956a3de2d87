"""Compares the effects that simulated readers were given with the effects that the models recover from their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import expit, logit

from analysis.answers import failures_as_wrong, judged
from analysis.arrays import Array
from analysis.costs.words import TARGET, region_rows, used_regions, word_table
from analysis.factorial import cells_shown
from analysis.intervals import half_width, wilson
from analysis.letters import letter_changes
from analysis.measures.accuracy import with_chance
from analysis.plan import (
    MEASURES,
    PLANNABLE,
    RATING,
    CrossedFactors,
    Measure,
    Plan,
    against_reference,
    compared_together,
    usual_contrasts,
)
from analysis.planned import scale_of_ratings
from analysis.regions import NAMES
from analysis.results import Analysis, FittedModelResult
from analysis.tables import Tables
from stimuli.errors import UserError

TRUTH_OF = {"correct": "accuracy", "reading_time": "time", "rt": "time", "rating": "rating"}
SIMULATED = "simulated"
TYPED = ("answer", "recover")
CROSSED = " x "
"""Between the factors, and the levels, of a simulated effect of a combination."""


RECOVERY_OF = "recovery of "
"""Begins the names of plans that look for simulated effects."""


@dataclass(frozen=True)
class Recovered:
    """A simulated effect and its estimate."""

    measure: str  # the measure's column and its heading
    title: str
    scale: str  # ``logit``, ``log_ms``, ``latent`` or ``share``
    label: str  # the effect, in words
    truth: float  # what the effect that was put in leads to in this model
    estimate: float
    low: float | None  # 95% confidence interval; None for standard deviations; nan: not estimable
    high: float | None
    reference: str = ""  # the level from which ``label`` is a difference
    put_in: float | None = None  # as the study states it; None where that is ``truth`` itself
    converged: bool = True  # whether the fit behind it did

    @property
    def covered(self) -> bool | None:
        """Whether the interval contains the value that the simulated effect implies; None where that cannot be checked."""
        if self.low is None or self.high is None or np.isnan(self.low) or not self.converged:
            return None
        return self.low <= self.truth <= self.high


def reads_word_by_word(tables: Tables) -> bool:
    """Whether simulated readers have times on single words: their reading time is then the sum of these."""
    return any(
        ((batch["reader_kind"] == SIMULATED) & (pd.to_numeric(batch["rt"]) > 0)).any()
        for batch in tables.region_batches()
        if "rt" in batch and "reader_kind" in batch
    )


def recovery_plans(tables: Tables) -> list[Plan]:
    """Return the analyses of simulated readers alone that the truth in the dictionary can be compared with."""
    truth = tables.dictionary["truth"]
    used = tables.trials[
        tables.trials["excluded_reason"].isna() & (tables.trials["reader_group"] == SIMULATED)
    ]
    if not truth or used.empty:
        return []
    summed = {"reading_time"} if reads_word_by_word(tables) else set()
    if (truth.get("typing") or {}).get("key_ms") and used["trial_type"].isin(TYPED).any():
        summed.add("rt")  # of the time to the first key and those between keys
    measures = [
        measure
        for name, measure in (MEASURES | {RATING.name: RATING}).items()
        if name not in summed and name in used and used[name].notna().any()
        if measure != RATING or scale_of_ratings(tables) is not None
        if truth.get(TRUTH_OF[name])
    ]
    of_regions = [
        PLANNABLE["region_time"].in_region(region)
        for region in (truth.get("regions") or {}).get("effects", {})
    ]
    measures += [one for one in of_regions if one.name in used and used[one.name].notna().any()]

    plans = []
    for factor, levels in tables.factors.items():
        for measure in measures:
            if any(factor in effect.split(CROSSED) for effect in _given(measure, tables)["effects"]):
                contrasts = against_reference(levels)
                by = f" by {factor}" if len(tables.factors) > 1 or measure.region else ""
                label = f"{RECOVERY_OF}{measure.noun}{by}"
                plans.append(Plan(label, False, measure, factor, tuple(levels), ("simulated",), contrasts))
    pairs = compared_together(tables.dictionary["planned"], tables.factors)
    factors = {name: tuple(levels) for name, levels in tables.factors.items()}
    for measure, pair in product(measures, pairs):
        if any(set(effect.split(CROSSED)) == set(pair) for effect in _given(measure, tables)["effects"]):
            crossing = CrossedFactors(pair, (factors[pair[0]], factors[pair[1]]))
            label = f"{RECOVERY_OF}{measure.noun} by {crossing.name}"
            asked = usual_contrasts(crossing.by_factor)
            plan = Plan(label, False, measure, crossing.name, crossing.cells, ("simulated",), asked)
            plans.append(replace(plan, factors=factors, crossing=crossing))
    return plans


def _given(measure: Measure, tables: Tables) -> dict[str, Any]:
    """Return the simulated effects on a measure with their scale, and whatever else the simulation had for it."""
    truth = tables.dictionary["truth"]
    if measure.region is not None:
        return {"scale": "log_ms", "effects": truth["regions"]["effects"][measure.region]}
    return {**truth[TRUTH_OF[measure.name]], **(scale_of_ratings(tables) or {} if measure == RATING else {})}


def recovered(analysis: Analysis, tables: Tables) -> list[Recovered]:
    """Compare one analysis of simulated readers with what they were given."""
    if analysis.plan.crossing is not None:
        return list(_recovered_interactions(analysis, analysis.plan.crossing, tables))
    if analysis.model is None:
        return []
    effects = _recovered_levels(analysis, analysis.model, tables)
    return [replace(effect, converged=analysis.model.converged) for effect in effects]


def _recovered_levels(analysis: Analysis, model: FittedModelResult, tables: Tables) -> list[Recovered]:
    measure, factor = analysis.plan.measure, analysis.plan.factor
    truth = tables.dictionary["truth"]
    given = _given(measure, tables)
    if measure.region is not None:
        return list(_recovered_of_region(analysis, given, tables))
    quantity, reference = (measure.name, measure.title, str(given["scale"])), analysis.levels[0]
    of_model = _generated(analysis, tables), factor, analysis.levels, given, truth.get("lapses")
    expected = expected_levels(*of_model)
    effects = {level: float(value) for level, value in given["effects"].get(factor, {}).items()}
    results = []
    for effect in analysis.effects:
        level, compared_with = effect.term.removeprefix(factor), ""
        if effect.term == "(Intercept)":
            put_in = float(given["intercept"]) + effects.get(reference, 0.0)
            label, leads_to = f"intercept ({reference})", expected[reference]
        elif effect.term.startswith(factor) and level in analysis.levels:
            put_in = effects.get(level, 0.0) - effects.get(reference, 0.0)
            label, leads_to = f"{level} − {reference}", expected[level] - expected[reference]
            compared_with = reference
        else:
            continue
        numbers = float("nan"), float("nan"), float("nan")
        if effect.estimable:
            numbers = effect.estimate, effect.low, effect.high
        results.append(Recovered(*quantity, label, leads_to, *numbers, compared_with, put_in))
    if measure == RATING:
        return results  # what a scale cuts off changes its deviations in ways that no formula tells
    deviations = expected_deviations(*of_model)
    for unit, label, sd in _standard_deviations(model):
        put_in = float(given.get(f"{unit}_sd", 0.0))
        if put_in:
            results.append(Recovered(*quantity, label, deviations[unit], sd, None, None, put_in=put_in))
    return results


def _recovered_interactions(
    analysis: Analysis, crossing: CrossedFactors, tables: Tables
) -> Iterator[Recovered]:
    """Compare interactions, on the scale of their contrasts, with what the simulated effects lead to in the cells."""
    measure, given = analysis.plan.measure, _given(analysis.plan.measure, tables)
    inside = [name for name in given["effects"] if set(name.split(CROSSED)) <= set(crossing.factors)]
    put_in = {}
    for cell in crossing.cells:
        shown = dict(zip(crossing.factors, crossing.pair_of(cell), strict=True))
        levels = {name: CROSSED.join(shown[factor] for factor in name.split(CROSSED)) for name in inside}
        put_in[cell] = sum(float(given["effects"][name].get(level, 0.0)) for name, level in levels.items())
    others = {name: effects for name, effects in given["effects"].items() if name not in inside}
    if measure.region is not None:
        cells = cells_shown(analysis.rows, crossing.factors).to_numpy()
        of_changes = _costs_of_changes(analysis.rows, tables, measure.region).groupby(cells).agg(_known_mean)
        expected = {cell: value + float(of_changes.get(cell, 0.0)) for cell, value in put_in.items()}
    else:
        rows = _generated(analysis, tables)
        rows = rows.assign(**{crossing.name: cells_shown(rows, crossing.factors)})
        in_cells, lapses = (
            given | {"effects": {crossing.name: put_in, **others}},
            tables.dictionary["truth"].get("lapses"),
        )
        expected = expected_levels(rows, crossing.name, crossing.cells, in_cells, lapses)
    quantity = measure.name, measure.title, str(given["scale"])
    if given["scale"] == "logit":
        expected = {cell: 100 * float(expit(value)) for cell, value in expected.items()}
        quantity = f"{measure.name}_points", measure.title, "points"
    for contrast in analysis.contrasts:
        if contrast.interaction and contrast.estimable and len(contrast.groups) == 1:
            weights = crossing.weights(contrast.first, contrast.second, contrast.at)
            in_model, simulated = (
                sum(weight * of_cell[cell] for cell, weight in weights.items())
                for of_cell in (expected, put_in)
            )
            if np.isnan(in_model):  # a change of no known cost
                continue
            numbers = in_model, contrast.estimate, contrast.low, contrast.high
            model = None if contrast.crossed is not None else analysis.model
            converged = model is None or model.converged
            yield Recovered(*quantity, contrast.label, *numbers, put_in=simulated, converged=converged)


def _recovered_of_region(analysis: Analysis, given: Mapping[str, Any], tables: Tables) -> Iterator[Recovered]:
    """Compare what was added to the log time of every word of a region with the differences of its log times."""
    measure, factor, reference = analysis.plan.measure, analysis.plan.factor, analysis.levels[0]
    own = given["effects"].get(factor, {})
    of_changes = _costs_of_changes(analysis.rows, tables, str(measure.region))
    expected = {
        level: float(own.get(level, 0.0))
        + _known_mean(of_changes[(analysis.rows[factor] == level).to_numpy()])
        + sum(float(effect.mean()) for _, effect, _ in _other_factors(analysis.rows, factor, given, level))
        for level in analysis.levels
    }
    for effect in analysis.effects:
        level = effect.term.removeprefix(factor)
        is_known = not np.isnan(expected.get(level, np.nan) - expected[reference])
        if effect.term != "(Intercept)" and is_known and effect.estimable:
            put_in = float(own.get(level, 0.0)) - float(own.get(reference, 0.0))
            yield Recovered(
                measure.name,
                measure.title,
                "log_ms",
                f"{level} − {reference}",
                expected[level] - expected[reference],
                effect.estimate,
                effect.low,
                effect.high,
                reference,
                put_in,
            )


def _known_mean(values: pd.Series[float]) -> float:
    """Return a mean that is nan if any value is."""
    return float(values.mean(skipna=False))


def _costs_of_changes(rows: pd.DataFrame, tables: Tables, region: str) -> pd.Series[float]:
    """Return what changed words add to the log time of a region in each row; nan where a change has no known cost."""
    given = tables.dictionary["truth"].get("words") or {}
    if not given.get("changed"):
        return pd.Series(0.0, rows.index)
    of_items = _costs_of_items(tables, given)
    cell = [str(name) for name in of_items if name != "cost"]
    place = [*cell, "region"]
    found = [batch for batch in used_regions(tables) if NAMES in batch]
    words = pd.concat([batch[[*place, "shown", "is_changed", NAMES]] for batch in found])
    words = words.drop_duplicates(place).sort_values(place).merge(of_items, on=cell, how="left")
    costs = words["cost"].where(words["is_changed"].fillna(False).astype(bool), 0.0)
    spilled = costs.groupby([words[name] for name in cell], dropna=False).shift(fill_value=0.0)
    texts = words["shown"].fillna("").astype(str)
    letters = texts.str.replace(r"\s+", "", regex=True).str.len()
    intact = float(given["word_ms"]) * texts.str.count(r"\S+") + float(given["letter_ms"]) * letters
    shift = (costs + float(given["spill_over"]) * spilled).to_numpy(dtype=float)
    changed = intact.to_numpy(dtype=float) * np.exp(shift)
    times = words[cell].assign(intact=intact, shown=changed)[_in_region(words, region)]
    of_cell = [times[name] for name in cell]
    is_unknown = times["shown"].isna().groupby(of_cell, dropna=False).transform("any")
    times = times.assign(shown=times["shown"].mask(is_unknown))
    sums = times.groupby(cell, dropna=False).sum(min_count=1).reset_index()
    of_rows = rows[cell].merge(sums, on=cell, how="left")
    ratio = (of_rows["shown"] / of_rows["intact"]).to_numpy(dtype=float)
    return pd.Series(np.log(ratio), rows.index)


def _costs_of_items(tables: Tables, given: Mapping[str, Any]) -> pd.DataFrame:
    """Return the cost of the changed words of each item and condition."""
    factors = tuple(tables.factors)
    changes = letter_changes(tables.items, factors)
    cell = [name for name in ("set", "item_id", *factors) if name in changes and name in tables.trials]
    return changes[cell].assign(cost=[_cost(change, given) for change in changes.to_dict("records")])


def _in_region(rows: pd.DataFrame, region: str) -> pd.Series[bool]:
    return rows[NAMES].fillna("").astype(str).str.split(",").map(lambda names: region in names).astype(bool)


def _generated(analysis: Analysis, tables: Tables) -> pd.DataFrame:
    """Return the rows of a model with what else decided their answers: chance, and how many trials came before."""
    rows, truth = analysis.rows, tables.dictionary["truth"]
    if (truth.get("lapses") or {}).get("rate") and analysis.plan.measure.name == "correct":
        rows = with_chance(rows, tables.items, tables.factors)
    if truth[TRUTH_OF[analysis.plan.measure.name]].get("learning"):
        keys = ["session_id", "trial_index", "attempt"]
        trials = tables.trials[keys].drop_duplicates().sort_values(keys)
        numbered = trials.assign(before=trials.groupby("session_id").cumcount())
        rows = rows.merge(numbered, on=keys, how="left")
    return rows


LAPSING = "baseline:oracle_with_lapses"


def recovered_lapses(tables: Tables) -> list[Recovered]:
    """Compare how often an oracle lapsed, wrong answers over n (1 - 1/m) of m choices, with the rate that it was given."""
    results = []
    for name, reader in tables.dictionary["readers"].items():
        rate = (reader.get("settings") or {}).get("lapse_rate")
        answers = tables.trials[
            tables.trials["excluded_reason"].isna() & (tables.trials["reader_group"] == name)
        ]
        answers = answers[judged(answers)]
        if reader.get("use") != LAPSING or rate is None or answers.empty:
            continue
        is_wrong = 1.0 - failures_as_wrong(answers)
        wrong_at_chance = float((1.0 - with_chance(answers, tables.items, tables.factors)["chance"]).mean())
        low, high = (min(end / wrong_at_chance, 1.0) for end in wilson(float(is_wrong.mean()), len(answers)))
        estimate = min(float(is_wrong.mean()) / wrong_at_chance, 1.0)
        label = f"lapses of {name}"
        results.append(Recovered("lapses", "Lapses", "share", label, float(rate), estimate, low, high))
    return results


def _standard_deviations(model: FittedModelResult) -> Iterator[tuple[str, str, float]]:
    for group in ("participant", "item"):
        for term in model.variance:
            if term.group == group and "(Intercept)" in term.terms:
                yield group, f"SD of {group}s", float(term.sd[term.terms.index("(Intercept)")])
    if model.sigma is not None:
        yield "residual", "SD of single times", model.sigma


_NODES = 60
"""Of both quadratures."""
_STEP = 0.05
"""Half the distance over which a slope is taken."""


def expected_levels(
    rows: pd.DataFrame,
    factor: str,
    levels: Sequence[str],
    given: Mapping[str, Any],
    lapses: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """Return what a mixed model of one factor should find in each of its levels."""
    by_level = given["effects"].get(factor, {})
    predicted = {"logit": _right, "latent": _mean_rating}.get(given["scale"], _mean_log)
    return {
        level: predicted(
            _predictor(rows, factor, given, level) + float(by_level.get(level, 0.0)),
            rows,
            given,
            lapses or {},
        )
        for level in levels
    }


def expected_deviations(
    rows: pd.DataFrame,
    factor: str,
    levels: Sequence[str],
    given: Mapping[str, Any],
    lapses: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """Return what standard deviations of participants, of items, and of single times a mixed model of one factor should find.

    Other factors and participants' own effects of them add to these; what makes all differences smaller (lapses, tails, what
    varies within participants and items) makes these smaller.
    """
    lapses, sds = (
        lapses or {},
        {unit: float(given.get(f"{unit}_sd", 0.0)) for unit in ("participant", "item")},
    )
    eta = _predictor(rows, factor, given) + float(given["effects"].get(factor, {}).get(levels[0], 0.0))
    variances = {unit: sd**2 for unit, sd in sds.items()} | {"residual": float(eta.var())}
    for varied, effect, constant in _other_factors(rows, factor, given):
        for unit in constant[:1]:
            variances[unit] += float(effect.groupby(rows[unit]).first().var())
        shares = pd.crosstab(rows["participant"], varied.fillna(""), normalize="index").drop(
            columns="", errors="ignore"
        )
        own = float(given.get("slope_sd", 0.0)) ** 2
        variances["participant"] += own * float((shares**2).sum(axis=1).mean())
        variances["residual"] += own * float((shares - shares**2).sum(axis=1).mean())
    predicted = _right if given["scale"] == "logit" else _mean_log
    above, below = (predicted(eta + step, rows, given, lapses) for step in (_STEP, -_STEP))
    flattened = ((above - below) / (2 * _STEP)) ** 2
    variances = {unit: flattened * variance for unit, variance in variances.items()}
    if given["scale"] != "logit":
        grid = np.linspace(eta.min(), eta.max(), 41)
        _, of_times = _log_times(grid, float(given.get("residual_sd", 0.0)), float(given.get("tail_ms", 0.0)))
        rate, slower = float(lapses.get("rate", 0.0)), float(lapses.get("slower", 1.0))
        of_lapses = rate * (1 - rate) * float(np.log(slower)) ** 2
        variances["residual"] += float(np.interp(eta, grid, of_times).mean()) + of_lapses
    return {unit: float(np.sqrt(variance)) for unit, variance in variances.items()}


def _predictor(rows: pd.DataFrame, factor: str, given: Mapping[str, Any], level: str | None = None) -> Array:
    """Return what was put into each row apart from the factor, with the mean of what varies between participants or items.

    Where the factor varies between the same participants or items, the mean is over those of one level: the model cannot tell the
    two apart.
    """
    eta = np.full(len(rows), float(given["intercept"]))
    for _, effect, constant in _other_factors(rows, factor, given, level):
        shared = [unit for unit in constant if (rows.groupby(unit)[factor].nunique() <= 1).all()]
        is_of_level = rows[factor] == level
        if shared and is_of_level.any():
            eta += effect[is_of_level].groupby(rows[shared[0]]).first().mean()
        else:
            eta += effect.mean() if constant else effect.to_numpy(dtype=float)
    if given.get("learning"):
        eta += float(given["learning"]) * np.log1p(rows["before"].to_numpy(dtype=float))
    return eta


def _other_factors(
    rows: pd.DataFrame, factor: str, given: Mapping[str, Any], level: str | None = None
) -> Iterator[tuple[pd.Series[str], pd.Series[float], list[str]]]:
    """Yield the levels of the other factors, their effects in each row, and the units (participants, items) with one level each.

    Combinations of factors are among them, also those with the factor itself; with ``level``, as if every row had that level.
    """
    at_level = rows if level is None else rows.assign(**{factor: level})
    for name, effects in given["effects"].items():
        of_rows = levels_in(at_level, name)
        if name != factor and of_rows is not None:
            effect = of_rows.map({str(level): float(value) for level, value in effects.items()})
            counts = {unit: of_rows.groupby(rows[unit]).nunique() for unit in ("participant", "item")}
            yield (
                of_rows.where(of_rows.isin(list(effects))),
                effect.astype(float).fillna(0.0),
                [unit for unit, count in counts.items() if (count <= 1).all()],
            )


def levels_in(rows: pd.DataFrame, factor: str) -> pd.Series[str] | None:
    """Return the level of a factor, or of several crossed ones (``a x b``), in each row; None without a column of it."""
    names = factor.split(CROSSED)
    if not set(names) <= set(rows):
        return None
    levels = rows[names[0]].astype(str)
    for name in names[1:]:
        levels = levels + CROSSED + rows[name].astype(str)
    return levels


def _right(eta: Array, rows: pd.DataFrame, given: Mapping[str, Any], lapses: Mapping[str, Any]) -> float:
    """Return the log odds of a right answer where some trials are answered by chance."""
    rate = float(lapses.get("rate", 0.0))
    right = (1 - rate) * expit(eta)
    if rate:
        right = right + rate * rows["chance"].to_numpy(dtype=float)
    return float(logit(right.mean()))


def _mean_rating(
    eta: Array, rows: pd.DataFrame, given: Mapping[str, Any], lapses: Mapping[str, Any]
) -> float:
    """Return the mean of normal values cut at thresholds between buttons, or clipped to a slider, of which some are any point."""
    low, high = float(given["from"]), float(given["to"])
    variance = sum(float(given.get(f"{unit}_sd", 0.0)) ** 2 for unit in ("participant", "item", "residual"))
    slopes = sum(
        levels.isin(list(effects)).to_numpy()
        for name, effects in given["effects"].items()
        if (levels := levels_in(rows, name)) is not None
    )
    spread = np.maximum(np.sqrt(variance + float(given.get("slope_sd", 0.0)) ** 2 * slopes), 1e-9)
    if given["labels"] is None:
        above, beyond = (eta - low) / spread, (eta - high) / spread
        means = low + spread * (
            above * stats.norm.cdf(above)
            + stats.norm.pdf(above)
            - beyond * stats.norm.cdf(beyond)
            - stats.norm.pdf(beyond)
        )
    else:
        thresholds = np.array(given.get("thresholds") or np.arange(low, high) + 0.5)
        means = low + stats.norm.sf((thresholds - eta[:, None]) / spread[:, None]).sum(axis=1)
    rate = float(lapses.get("rate", 0.0))
    return float(((1 - rate) * means + rate * (low + high) / 2).mean())


def _mean_log(eta: Array, rows: pd.DataFrame, given: Mapping[str, Any], lapses: Mapping[str, Any]) -> float:
    """Return the mean log of times with an exponential tail, of which some are longer by a lapse."""
    spread = np.sqrt(
        sum(float(given.get(f"{unit}_sd", 0.0)) ** 2 for unit in ("participant", "item", "residual"))
    )
    slower = float(lapses.get("rate", 0.0)) * np.log(float(lapses.get("slower", 1.0)))
    grid = np.linspace(eta.min(), eta.max(), 41)
    means, _ = _log_times(grid, float(spread), float(given.get("tail_ms", 0.0)))
    return float(np.interp(eta, grid, means).mean() + slower)


def _log_times(grid: Array, spread: float, tail: float) -> tuple[Array, Array]:
    """Return the mean and the variance of the log of times with an exponential tail around each log of a median."""
    z, of_z = np.polynomial.hermite_e.hermegauss(_NODES)
    t, of_t = np.polynomial.laguerre.laggauss(_NODES)
    logs = np.log(np.exp(grid[:, None, None] + spread * z[:, None]) + tail * t)
    means, squares = (np.einsum("gzt,z,t->g", values, of_z / of_z.sum(), of_t) for values in (logs, logs**2))
    return means, squares - means**2


MEASURE, TITLE = "time_changed", "Time on changed words"
_PLACE_OF = {"initial": "initial", "internal": "internal", "final": "final", "outer": "external"}
_KINDS = ("transposition", "substitution", "shuffle")


def recovered_words(tables: Tables, factor: str) -> list[Recovered]:
    """Compare costs given for changed words with mean log times on them less those on the intact words; t over readers."""
    given = (tables.dictionary["truth"] or {}).get("words") or {}
    if not given.get("changed") or not reads_word_by_word(tables):
        return []
    try:
        words = word_table(tables, factor)
        cost = _costs_of_items(tables, given)
    except UserError:
        return []
    intact, *levels = words.levels
    if words.words.loc[words.words[factor] == intact, "is_changed"].any():
        return []
    cell = [name for name in cost if name != "cost"]
    changed = words.words.loc[words.words["is_changed"], ["set", "item_id", "region"]]
    following = changed.assign(region=changed["region"] + 1, behind=True).drop_duplicates()
    parts = []
    for batch in region_rows(tables, words):
        times = batch[(batch["reader_kind"] == SIMULATED) & (batch["zone"] == TARGET) & (batch["rt"] > 0)]
        times = times.merge(cost, on=cell, how="left").merge(
            following, on=["set", "item_id", "region"], how="left"
        )
        times["in_regions"] = _of_regions(times, tables)
        parts.append(times.loc[times["behind"].isna(), ["reader", factor, "rt", "cost", "in_regions"]])
    rows = pd.concat(parts, ignore_index=True)
    rows["log_rt"] = np.log(rows["rt"])
    results = []
    for level in levels:
        rows_of_level = rows[rows[factor] == level]
        if rows_of_level.empty or rows_of_level["cost"].isna().any():
            continue
        of_intact = rows[rows[factor] == intact].assign(cost=0.0)
        columns = ["log_rt", "cost", "in_regions"]
        base, of_level = (part.groupby("reader")[columns].mean() for part in (of_intact, rows_of_level))
        of_reader = (of_level - base).dropna()
        if len(of_reader) < 2:
            continue
        differences = of_reader["log_rt"].to_numpy(dtype=float)
        mean, truth = float(differences.mean()), float((of_reader["cost"] + of_reader["in_regions"]).mean())
        wide = half_width(differences)
        label = f"{level} − {intact}"
        results.append(
            Recovered(MEASURE, TITLE, "log_ms", label, truth, mean, mean - wide, mean + wide, intact)
        )
    return results


def _of_regions(rows: pd.DataFrame, tables: Tables) -> pd.Series[float]:
    """Return what conditions add to the log time of each word by the named regions that it is in."""
    added = pd.Series(0.0, rows.index)
    of_regions = (tables.dictionary["truth"].get("regions") or {}).get("effects", {})
    for region, effects in of_regions.items() if NAMES in rows else ():
        for name, by_level in effects.items():
            levels = levels_in(rows, name)
            if levels is not None:
                added += levels.map(by_level).astype(float).fillna(0.0) * _in_region(rows, region)
    return added


def _cost(change: Mapping[Any, Any], given: Mapping[str, Any]) -> float:
    """Return what an item's changed words cost on the log scale; nan where its words differ in place, kind or distance."""
    if change["zone"] not in _PLACE_OF or change["kind"] not in _KINDS:
        return float("nan")
    costs, position = given["changed"], _PLACE_OF[change["zone"]]
    if position == "external" and position not in costs:
        position = "initial"
    replaced = float(given.get("substituted", 1.0)) if change["kind"] == "substitution" else 1.0
    farther, between = float(given.get("farther", 1.0)), 0.0
    if farther != 1.0 and change["zone"] != "outer":
        if not change["same_distance"]:
            return float("nan")
        between = max(float(change["distance"]) - 1.0, 0.0)
    return float(costs.get(position, 0.0) * replaced * farther**between)
