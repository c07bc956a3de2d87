"""The contrasts of a plan in shares or ratings, in points, and the influence of each participant and item on them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis import apa
from analysis.contrasts import compared, untested
from analysis.crossed_variance import (
    FEW,
    RARE,
    CrossedEstimate,
    ErrorSums,
    EstimateLayout,
    Floats,
    ItemAnswers,
    estimate,
    in_general,
    model_means,
    sums_of_model,
    sums_of_people,
)
from analysis.mixed import influence
from analysis.multiple_comparisons import two_one_sided
from analysis.plan import LevelDifference, Plan
from analysis.readers import PARTICIPANT_KINDS, headed, spoken
from analysis.results import SIDES, Analysis, Contrast, EstimateWithTest
from analysis.tables import Tables, item_names, joined

PERCENT = 100.0


class Means(NamedTuple):
    """A model's mean answers, and their variances over repeated answers, both of shape (I, C)."""

    mean: Floats
    noise: Floats


def _reader_names(rows: pd.DataFrame) -> pd.Series[str]:
    return joined(rows["reader_group"], rows["reader"], "/")


class ReaderSums:
    """The sums of each reader group of a plan, and of each compared pair of groups; computed on first use."""

    def __init__(self, plan: Plan, rows: pd.DataFrame, tables: Tables) -> None:
        value = plan.measure.value
        columns = dict.fromkeys(("reader_group", "reader_kind", "prompt_variant", plan.factor, value))
        self.rows = rows[list(columns)].assign(_item=item_names(rows), _reader=_reader_names(rows))
        trials = tables.trials
        people = trials.loc[trials["reader_kind"].isin(PARTICIPANT_KINDS), ["reader_group", "reader"]]
        items, participants = (pd.unique(names) for names in (item_names(trials), _reader_names(people)))
        span = (0.0, 1.0) if plan.measure.scale == "points" else (rows[value].min(), rows[value].max())
        self.layout = EstimateLayout(plan.levels, tuple(items), tuple(participants), span)
        self.factor, self.value = plan.factor, value
        self.people: dict[str, ItemAnswers] = {}
        self.models: dict[str, Means] = {}
        for group in plan.groups:
            self._read(group)

    def _read(self, group: str) -> None:
        rows = self.rows[self.rows["reader_group"] == group]
        if rows.empty:
            return
        y, item = rows[self.value].to_numpy(dtype=float), rows["_item"].to_numpy()
        condition = rows[self.factor].to_numpy(dtype=object)
        if rows["reader_kind"].isin(PARTICIPANT_KINDS).any():
            self.people[group] = ItemAnswers.of(y, rows["_reader"].to_numpy(), item, condition, self.layout)
        else:
            variant = rows["prompt_variant"].astype(str).to_numpy(dtype=object)
            self.models[group] = Means(*model_means(y, item, condition, variant, self.layout))

    def of(self, groups: tuple[str, ...]) -> ErrorSums | None:
        """Return the sums of a reader group, or of the first minus the second; None where one has no answer."""
        if not all(group in self.people or group in self.models for group in groups):
            return None
        return sums_of_readers(groups, self.people, self.models, self.layout)

    def item_means(self, without: int | None = None) -> dict[str, Floats]:
        """Return the mean answer of each reader group to each item in each condition, shape (I, C), without one participant."""
        by_group = {group: means.mean for group, means in self.models.items()}
        size = (len(self.layout.items), len(self.layout.conditions))
        for group, answers in self.people.items():
            is_used = answers.participant != (-1 if without is None else without)
            cell = (answers.item * size[1] + answers.condition)[is_used]
            with np.errstate(invalid="ignore"):
                total, count = (
                    np.bincount(cell, weights, size[0] * size[1])
                    for weights in (answers.value[is_used], None)
                )
                by_group[group] = (total / count).reshape(size)
        return by_group

    def in_general(self, people: str, weights: Mapping[str, float]) -> CrossedEstimate | None:
        """Estimate people's contrast minus that of models like these, of which those here are a sample."""
        answers = self.people.get(people)
        means = [model.mean for model in self.models.values()]
        return None if answers is None or len(means) < 2 else in_general(answers, means, weights)

    def log_odds(self, group: str, weights: Mapping[str, float]) -> float:
        """Return a contrast of the log odds of condition means; half an answer is added to either side."""
        return float(sum(w * self._log_odds.get((group, level), np.nan) for level, w in weights.items() if w))

    @cached_property
    def _log_odds(self) -> dict[tuple[str, str], float]:
        totals = self.rows.groupby(["reader_group", self.factor], observed=True)[self.value].agg(
            ["sum", "size"]
        )
        odds = np.log((totals["sum"] + 0.5) / (totals["size"] - totals["sum"] + 0.5))
        cells = ((str(group), str(level)) for group, level in totals.index)
        return dict(zip(cells, odds.tolist(), strict=True))

    def shown(self, group: str) -> list[str]:
        """Return the levels in which a reader group has answers."""
        levels = set(self.rows.loc[self.rows["reader_group"] == group, self.factor])
        return [level for level in self.layout.conditions if level in levels]


def sums_of_readers(
    groups: tuple[str, ...],
    people: Mapping[str, ItemAnswers],
    models: Mapping[str, Means],
    layout: EstimateLayout,
) -> ErrorSums:
    """Return the sums of a reader group, or of the first minus the second."""
    of_people = [people[group] for group in groups if group in people]
    of_models = [models[group] for group in groups if group in models]
    if not of_people:
        mean, noise = of_models[0]
        if len(of_models) > 1:
            mean, noise = mean - of_models[1].mean, noise + of_models[1].noise
        return sums_of_model(layout, mean, noise)
    if len(of_people) > 1:
        return sums_of_people(of_people[0]).minus(sums_of_people(of_people[1]))
    sums = sums_of_people(of_people[0], *(of_models[0] if of_models else ()))
    return sums.turned() if groups[0] in models else sums


def contrasts_in_points(sums: ReaderSums, plan: Plan) -> tuple[list[Contrast], list[str]]:
    """Estimate every contrast of a plan in each reader group, and between the first and each other."""
    sums_by_groups = {groups: sums.of(groups) for groups in compared(plan.groups)}
    shown = {group: sums.shown(group) for group in plan.groups}
    contrasts: list[Contrast] = []
    estimates: list[tuple[Contrast, CrossedEstimate]] = []
    for difference in plan.contrasts:
        weights = plan.weights(difference)
        for groups, group_sums in sums_by_groups.items():
            estimated = (
                None
                if group_sums is None
                else estimate(group_sums, weights, fixed_items=plan.items == "fixed")
            )
            if estimated is None:
                if plan.planned:
                    contrasts.append(untested(difference, groups, _why_not(groups, weights, shown)))
                continue
            both_models = len(groups) == 2 and set(groups) <= sums.models.keys()
            estimated = replace(estimated, furthest=2 * estimated.furthest) if both_models else estimated
            contrast = contrast_in_points(difference, groups, plan, estimated)
            if plan.measure.scale == "points":
                odds = [sums.log_odds(group, weights) for group in groups]
                contrast = replace(contrast, log_odds=odds[0] - sum(odds[1:]))
            contrasts.append(contrast)
            estimates.append((contrast, estimated))
    return contrasts, list(_remarks(estimates))


def _why_not(groups: tuple[str, ...], weights: Mapping[str, float], shown: Mapping[str, list[str]]) -> str:
    """State why readers have no estimate of a contrast."""
    reasons = []
    for group in groups:
        missing = [level for level in weights if level not in shown[group]]
        if not shown[group]:
            reasons.append(f"{headed(group)}: no trials to analyze")
        elif missing:
            reasons.append(f"{headed(group)}: no trials in {apa.listing(missing)}")
    return "; ".join(reasons) or "too few items were answered by both"


def contrast_in_points(
    difference: LevelDifference, groups: tuple[str, ...], plan: Plan, done: CrossedEstimate
) -> Contrast:
    """Turn an estimate into a contrast in percentage points or scale points, not yet adjusted."""
    points = PERCENT if plan.measure.scale == "points" else 1.0
    side = SIDES[difference.direction_in(groups)]
    low, high = done.interval(1 - plan.alpha, side)
    value, se = points * done.value, points * done.se
    df = None if np.isinf(done.df) else round(done.df, 9)
    bound = plan.equivalence if len(groups) == 2 else None
    simple: tuple[float, ...] = ()
    if len(difference.at) == 2 and len(groups) == 1:
        means = dict(zip(done.sums.layout.conditions, done.sums.mean.tolist(), strict=True))
        sides = [plan.weights(replace(difference, at=(level,))) for level in difference.at]
        simple = tuple(points * sum(w * means[name] for name, w in side.items() if w) for side in sides)
    tested = EstimateWithTest(value, se, done.t, df, done.p(side), (points * low, points * high))
    return Contrast.of(
        difference,
        groups,
        tested,
        estimable=bool(np.isfinite([value, se]).all()),
        equivalence=bound and two_one_sided(value, se, df, bound.half_width, plan.alpha),
        simple=simple,
        furthest=points * done.furthest,
        crossed=done,
    )


def _remarks(estimates: list[tuple[Contrast, CrossedEstimate]]) -> Iterator[str]:
    """State where an estimate rests on few readers, few items or hardly any answers that differ."""
    few: dict[str, None] = {}
    few_differ: dict[str, None] = {}
    alike: dict[str, None] = {}  # in conditions with items of their own
    lost: dict[str, int] = {}
    single: dict[str, None] = {}
    most_items = 0
    for contrast, estimated in estimates:
        reader = contrast.groups[-1]
        if estimated.few_units:
            few.setdefault(" vs. ".join(spoken(group) for group in contrast.groups))
        if len(contrast.groups) == 1 and estimated.parts.one_more > 0:
            has_own_items = estimated.items_of_model < 2
            (alike if has_own_items else few_differ).setdefault(f"{spoken(reader)} in {contrast.label}")
            most_items = max(most_items, estimated.items_of_model)
        if len(contrast.groups) == 1 and estimated.to == "items" and estimated.sums.of_people:
            single.setdefault(contrast.label)
        if estimated.sums.lost:
            lost[reader] = max(lost.get(reader, 0), estimated.sums.lost)
    if single:
        alone = "this estimate concerns" if len(single) == 1 else "each of these estimates concerns"
        yield f"In {apa.few_named(list(single), 'contrast')}, one participant answered; {alone} a single participant."
    if few:
        yield (
            f"Estimates for {apa.few_named(list(few), 'comparison')} have very few degrees of freedom, so that their intervals "
            "are wide and imprecise."
        )
    changed = f"All but at most {apa.worded(FEW - 1, 'item')} changed in the same way between the conditions, or not at all"
    if most_items < FEW:
        changed = f"At most {apa.worded(most_items, 'item')} could be compared between the conditions"
    alike_in_one = f"In a condition, all but at most {apa.worded(RARE - 1, 'item')} were answered alike"
    for said, names in ((changed, few_differ), (alike_in_one, alike)):
        if names:
            yield (
                f"{said} ({apa.few_named(list(names), 'contrast')}); "
                f"{'the interval allows' if len(names) == 1 else 'their intervals allow'} for one more exception."
            )
    for reader, count in lost.items():
        yield (
            f"The comparison with {spoken(reader)} left out {apa.worded(count, 'trial')} of items that it did not answer in that "
            "condition."
        )


PARTICIPANTS, ITEMS = UNITS = ("participant", "item")


def influences(analysis: Analysis, tables: Tables) -> dict[str, pd.DataFrame]:
    """Return the changes of each contrast in its standard errors, by unit; shape (units, contrasts) each."""
    tested = [contrast for contrast in analysis.estimable if contrast.se > 0]
    names = [f"{contrast.label}, {' − '.join(contrast.groups)}" for contrast in tested]
    if any(contrast.crossed is not None for contrast in tested):
        changes = _without_each(analysis, tested, tables)
    elif analysis.model is not None:
        fit = analysis.model.source
        weights = np.array([contrast.weights for contrast in tested]).T
        by_unit = {unit: influence(fit, unit) for unit in UNITS if unit in fit.groups}
        changes = {unit: (table.index, table.to_numpy() @ weights) for unit, table in by_unit.items()}
    else:
        return {}
    se = np.array([contrast.se for contrast in tested])
    moved_by = {unit: pd.DataFrame(table / se, index, names) for unit, (index, table) in changes.items()}
    # without the only participant, say, nothing can be estimated
    complete = {unit: table.dropna() for unit, table in moved_by.items()}
    return {unit: table for unit, table in complete.items() if len(table)}


def _without_each(
    analysis: Analysis, tested: list[Contrast], tables: Tables
) -> dict[str, tuple[pd.Index, Floats]]:
    """Return by how much each contrast changes without each participant, and without each item."""
    plan = analysis.plan
    sums = ReaderSums(plan, analysis.rows, tables)
    points = PERCENT if plan.measure.scale == "points" else 1.0
    weighted = [
        (contrast, {} if contrast.crossed is None else contrast.crossed.weights) for contrast in tested
    ]
    weights = [
        (contrast, np.array([by_level.get(name, 0.0) for name in plan.levels]))
        for contrast, by_level in weighted
    ]

    def contrasts(means: Mapping[str, Floats]) -> list[float]:
        return [_contrast(contrast, w, means, sums.people) for contrast, w in weights]

    means = sums.item_means()
    answered = np.flatnonzero(np.any([np.isfinite(table).any(axis=1) for table in means.values()], axis=0))
    people = [
        number for answers in sums.people.values() for number in np.unique(answers.participant).tolist()
    ]
    of_people = [contrasts(sums.item_means(number)) for number in people]
    of_items = [
        contrasts({group: np.delete(table, number, axis=0) for group, table in means.items()})
        for number in answered.tolist()
    ]
    names = [sums.layout.participants[number].partition("/")[2] for number in people]
    estimates = np.array(of_people).reshape(len(names), len(tested))
    items, full = [sums.layout.items[n].partition("/") for n in answered.tolist()], np.array(contrasts(means))
    has_sets = len({item_set for item_set, _, _ in items}) > 1
    return {
        PARTICIPANTS: (pd.Index(names), points * (estimates - full)),
        ITEMS: (
            pd.Index(["".join(item) if has_sets else item[2] for item in items]),
            points * (np.array(of_items) - full),
        ),
    }


def _contrast(contrast: Contrast, w: Floats, means: Mapping[str, Floats], people: Collection[str]) -> float:
    """Return a contrast of item means, shape (items, conditions) by reader group, paired by item with a model's."""
    used = w != 0
    tables = [means[group][:, used] for group in contrast.groups]
    if len(tables) == 2 and not set(contrast.groups) <= set(people):
        tables = [tables[0] - tables[1]]
    with np.errstate(invalid="ignore"):
        values = [np.nansum(table, axis=0) / np.isfinite(table).sum(axis=0) for table in tables]
    return float(w[used] @ (values[0] - sum(values[1:])))
