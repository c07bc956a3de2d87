"""Shares and ratings: accuracy, missing answers, recovered words, each estimated in points from every analysed answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from analysis.estimation import COUNTED, PLANNED_UNTESTED, analyse
from analysis.families import adjusted, correction_of
from analysis.frames import WRONG, ModelData, accuracy_rows, in_model, missing_rows
from analysis.measures.accuracy import with_chance
from analysis.plan import MISSING, Plan
from analysis.random_structure import on_models_in_general
from analysis.readers import PARTICIPANT_KINDS, headed
from analysis.results import Analysis
from analysis.shares import ReaderSums, contrasts_in_points
from analysis.tables import Tables
from analysis.untested import untested_in_words


def analyse_accuracy(plan: Plan, tables: Tables, failures: str = WRONG, companion: bool = True) -> Analysis:
    """Carry out a plan whose measure is ``correct``."""
    trials = (
        with_chance(tables.trials, tables.items, tables.factors) if failures == "chance" else tables.trials
    )
    rows, remarks = accuracy_rows(trials, plan, failures)
    return analyse_shares(plan, (rows, remarks), "correct", tables, "correct" if companion else None)


def analyse_missingness(plan: Plan, tables: Tables) -> Analysis:
    """Carry out a plan's comparison for missing answers: whether a trial brought no valid answer, by condition."""
    asked = replace(plan, name=f"{plan.name}: missing answers", measure=MISSING)
    return analyse_shares(asked, missing_rows(tables.trials, asked), "missing", tables, "missing")


def analyse_shares(
    plan: Plan, analysed: tuple[pd.DataFrame, list[str]], share: str, tables: Tables, modelled: str | None
) -> Analysis:
    """Estimate the contrasts of a plan in points, and fit the mixed model of people that accompanies them."""
    rows, remarks = analysed
    found, limits = contrasts_in_points(ReaderSums(plan, rows, share, tables), plan)
    contrasts = tuple(adjusted([(plan, found)])[0])
    untested = untested_in_words(contrasts)
    told = [*plan.remarks, *remarks, *_without_trials(plan, rows), *limits]
    told += [f"{PLANNED_UNTESTED}: {untested}. {COUNTED}"] if untested else []
    scope = on_models_in_general(rows)
    told += [scope] if scope else []
    shown = dict.fromkeys(rows["reader_group"])
    beside = None if modelled is None else _of_people(plan, rows, modelled)
    if beside is not None:
        told += [remark for remark in beside.remarks if not remark.startswith(PLANNED_UNTESTED)]
    return Analysis(
        plan,
        None if beside is None else beside.model,
        tuple(group for group in plan.groups if group in shown),
        tuple(level for level in plan.levels if (rows[plan.factor] == level).any()),
        contrasts,
        correction_of(plan),
        tuple(dict.fromkeys(told)),
        rows,
        beside,
    )


def _without_trials(plan: Plan, rows: pd.DataFrame) -> Iterator[str]:
    """Say which readers and conditions have no trials, and what an exploratory analysis therefore does not test."""
    for group in plan.groups:
        shown = set(rows.loc[rows["reader_group"] == group, plan.factor])
        missing = [level for level in plan.levels if level not in shown]
        if not shown:
            yield f"{headed(group)}: no trials to analyse."
        elif missing:
            yield f"{headed(group)}: no trials in {', '.join(missing)}."
    every = set(rows[plan.factor])
    left_out = [one.label for one in plan.contrasts if not set(plan.weights(one)) <= every]
    if left_out and not plan.planned:
        yield f"Not tested, since a condition has no trials: {', '.join(left_out)}."


def _of_people(plan: Plan, rows: pd.DataFrame, share: str) -> Analysis | None:
    """Fit the mixed model of people, or the one that the plan writes out; None where it cannot be fitted."""
    kinds = rows.drop_duplicates("reader_group").set_index("reader_group")["reader_kind"]
    people = [group for group in plan.groups if kinds.get(group) in PARTICIPANT_KINDS]
    if plan.formula is not None and "reader_group" in plan.formula:
        people = list(plan.groups)
    asked = replace(plan, groups=tuple(people), equivalence=None, bayes=None, remarks=())
    own = rows[rows["reader_group"].isin(people)]
    data: ModelData = in_model(own, asked, share=share if plan.measure.scale == "points" else None)
    if not data.can_be_fitted or own[share].nunique() < 2:
        return None
    found = analyse(asked, data)
    return None if found.model is None else found
