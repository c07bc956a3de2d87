"""Puts the effects that simulated readers were given beside the effects that the models recover from their answers.

The check uses simulated readers alone, in models of their own, and oracles that lapse as often as the study says. It tells
whether the whole path (items, lists, server, store, scoring, models) brings back what was put in; about people it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from analysis.answers import failures_as_wrong, judged
from analysis.expected_effects import expected_levels
from analysis.intervals import wilson
from analysis.measures.accuracy import with_chance
from analysis.plan import MEASURES, Measure, Plan, against_reference
from analysis.results import Analysis, FittedModel
from analysis.tables import Tables

TRUTH_OF = {"correct": "accuracy", "reading_time": "time", "rt": "time"}
SIMULATED = "simulated"


@dataclass(frozen=True)
class Recovered:
    """One effect that was put in, beside its estimate."""

    measure: str  # the measure's column and its heading
    title: str
    scale: str  # ``logit``, ``log_ms`` or ``share``
    label: str  # the effect, in words
    truth: float  # what the effect that was put in leads to in this model (:mod:`analysis.expected_effects`)
    estimate: float
    low: float | None  # 95% confidence interval; None for standard deviations, which have none here
    high: float | None
    put_in: float | None = None  # as the study states it; None where that is ``truth`` itself

    @property
    def covered(self) -> bool | None:
        """Whether the interval holds what the effect that was put in leads to."""
        return None if self.low is None or self.high is None else self.low <= self.truth <= self.high


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
    summed = "reading_time" if reads_word_by_word(tables) else None
    found = []
    for factor, levels in tables.factors.items():
        for name, measure in MEASURES.items():
            given = truth.get(TRUTH_OF[name])
            if name == summed:
                continue
            if given and factor in given.get("effects", {}) and used[name].notna().any():
                contrasts = against_reference(levels)
                label = f"recovery of {measure.noun}"
                found.append(Plan(label, False, measure, factor, tuple(levels), ("simulated",), contrasts))
    return found


def recovered(analysis: Analysis, tables: Tables) -> list[Recovered]:
    """Compare one analysis of simulated readers with what they were given."""
    if analysis.model is None:
        return []
    measure, factor = analysis.plan.measure, analysis.plan.factor
    truth = tables.dictionary["truth"]
    given = truth[TRUTH_OF[measure.name]]
    reference = analysis.levels[0]
    expected = expected_levels(
        _generated(analysis, tables), factor, analysis.levels, given, truth.get("lapses")
    )
    effects = {level: float(value) for level, value in given["effects"][factor].items()}
    found = []
    for one in analysis.model.coefficients:
        level = one.term.removeprefix(factor)
        if one.term == "(Intercept)":
            put_in = float(given["intercept"]) + effects.get(reference, 0.0)
            label, leads_to = f"intercept ({reference})", expected[reference]
        elif one.term.startswith(factor) and level in analysis.levels:
            put_in = effects.get(level, 0.0) - effects.get(reference, 0.0)
            label, leads_to = f"{level} − {reference}", expected[level] - expected[reference]
        else:
            continue
        row = Recovered(
            measure.name,
            measure.title,
            str(given["scale"]),
            label,
            leads_to,
            one.estimate,
            one.low,
            one.high,
            put_in,
        )
        found.append(row if one.estimable else replace(row, estimate=float("nan"), low=None, high=None))
    return [*found, *_standard_deviations(analysis.model, measure, given)]


def _generated(analysis: Analysis, tables: Tables) -> pd.DataFrame:
    """Return the rows of a model with what else decided their answers: chance, and how many trials came before."""
    rows, truth = analysis.rows, tables.dictionary["truth"]
    if (truth.get("lapses") or {}).get("rate") and analysis.plan.measure.name == "correct":
        rows = with_chance(rows, tables.items, tables.factors)
    if truth[TRUTH_OF[analysis.plan.measure.name]].get("learning"):
        keys = ["session_id", "trial_index", "attempt"]
        trials = tables.trials[keys].drop_duplicates().sort_values(keys)
        before = trials.assign(before=trials.groupby("session_id").cumcount())
        rows = rows.merge(before, on=keys, how="left")
    return rows


LAPSING = "baseline:oracle_with_lapses"


def recovered_lapses(tables: Tables) -> list[Recovered]:
    """Compare how often an oracle lapsed, wrong answers over n (1 - 1/m) of m choices, with the rate that it was given."""
    found = []
    for name, reader in tables.dictionary["readers"].items():
        rate = (reader.get("settings") or {}).get("lapse_rate")
        own = tables.trials[tables.trials["excluded_reason"].isna() & (tables.trials["reader_group"] == name)]
        own = own[judged(own)]
        if reader.get("use") != LAPSING or rate is None or own.empty:
            continue
        wrong = 1.0 - failures_as_wrong(own)
        most = float((1.0 - with_chance(own, tables.items, tables.factors)["chance"]).mean())
        low, high = (min(end / most, 1.0) for end in wilson(float(wrong.mean()), len(own)))
        estimate = min(float(wrong.mean()) / most, 1.0)
        label = f"lapses of {name}"
        found.append(Recovered("lapses", "Lapses", "share", label, float(rate), estimate, low, high))
    return found


def _standard_deviations(model: FittedModel, measure: Measure, given: dict[str, Any]) -> Iterator[Recovered]:
    blank = Recovered(measure.name, measure.title, str(given["scale"]), "", 0.0, 0.0, None, None)
    for group, key in (("participant", "participant_sd"), ("item", "item_sd")):
        for term in model.variance:
            if term.group == group and "(Intercept)" in term.terms and key in given:
                sd = float(term.sd[term.terms.index("(Intercept)")])
                yield replace(blank, label=f"SD of {group}s", truth=float(given[key]), estimate=sd)
    if model.sigma is not None and given.get("residual_sd"):
        yield replace(
            blank, label="SD of single times", truth=float(given["residual_sd"]), estimate=model.sigma
        )
