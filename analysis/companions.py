"""Analyses that stand beside those of accuracy, whatever was planned: exploratory, each named by what it does otherwise.

*With a weak prior*: a model that is always right in some condition has no finite log odds and is in no plain logistic model; a
weakly informative prior (Gelman et al., 2008) keeps it in the comparison. *Models in general*: from eight models on, models are
a sample of models as participants are of people. *By label probabilities*: of models that tell how probable each label was,
how far the correct label leads, which needs no repeated answers and says more than right or wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from analysis.estimation import analyse
from analysis.families import adjusted
from analysis.frames import ModelData, accuracy_data, accuracy_rows, in_model
from analysis.intervals import reach
from analysis.plan import Plan
from analysis.quantities import LEAD, lead_data
from analysis.random_structure import MODELS_FOR_A_CLAIM
from analysis.readers import MODELS_IN_GENERAL, PARTICIPANT_KINDS
from analysis.results import Analysis, Contrast
from analysis.tables import Tables

Kind = Literal["weak prior", "models in general", "label probabilities"]
PENALTY = "normal"


@dataclass(frozen=True)
class Companion:
    """An analysis beside another.

    Attributes
    ----------
    kind : {'weak prior', 'models in general', 'label probabilities'}
    beside : Plan
        The plan of the analysis that it stands beside.
    analysis : Analysis
    """

    kind: Kind
    beside: Plan
    analysis: Analysis


def companions(
    analyses: Iterable[Analysis], tables: Tables, told: Callable[[str], None] = lambda _: None
) -> list[Companion]:
    """Carry out what belongs beside each analysis of accuracy.

    Parameters
    ----------
    analyses : iterable of Analysis
        Those of a report; others than of ``correct`` have no companions.
    tables : Tables
    told : callable
        Called with a line before each fit.

    Returns
    -------
    list of Companion
        Empty where no cell is at 0 or 100%, models are fewer than eight, and none told label probabilities.
    """
    found: list[Companion] = []
    done: set[tuple[object, ...]] = set()
    for one in analyses:
        if one.plan.measure.name != "correct":
            continue
        makers: tuple[tuple[Kind, Callable[[Plan, Tables], Analysis | None]], ...] = (
            ("weak prior", with_weak_prior),
            ("models in general", in_general),
            ("label probabilities", by_label_probabilities),
        )
        for kind, make in makers:
            asked = _asked(kind, one.plan, tables)
            if asked in done:
                continue
            done.add(asked)
            told(f"model: {one.plan.name}, {kind}")
            analysis = make(one.plan, tables)
            if analysis is not None:
                found.append(Companion(kind, one.plan, analysis))
    return found


def _asked(kind: Kind, plan: Plan, tables: Tables) -> tuple[object, ...]:
    """Name what a companion asks: the same question of two plans is answered once."""
    models = set(tables.trials.loc[tables.trials["reader_kind"] == "model", "reader_group"])
    groups = tuple(group for group in plan.groups if kind != "models in general" or group not in models)
    labels = tuple(one.label for one in plan.contrasts)
    return (kind, plan.factor, plan.levels, groups, labels, plan.trials, plan.within, repr(plan.exclude))


def _beside(plan: Plan, what: str) -> Plan:
    """Return the same comparison as an exploratory one with the usual model."""
    return replace(
        plan,
        name=f"{plan.name}: {what}",
        planned=False,
        key="",
        family="",
        equivalence=None,
        formula=None,
        fallback=None,
        stop=None,
        contrasts=tuple(replace(one, direction="two-sided") for one in plan.contrasts),
    )


def with_weak_prior(plan: Plan, tables: Tables) -> Analysis | None:
    """Fit a plan's model with a weak prior; None where no reader is always right or always wrong in a condition."""
    asked = _beside(plan, "with a weak prior")
    data = accuracy_data(tables.trials, asked, penalty=PENALTY)
    return analyse(asked, data) if data.at_edge else None


def in_general(plan: Plan, tables: Tables) -> Analysis | None:
    """Compare people with models in general; None below eight models that answered in the conditions.

    Models are levels of a random factor, with what conditions do to each: all of the study's, also those that the plan does not
    name; baselines are none of them. Tests have Student's t with
    as many degrees of freedom as there are models but one, since Wald's z is too sure of few clusters.
    """
    trials = tables.trials
    every = trials.loc[trials["reader_kind"] == "model", "reader_group"].unique().tolist()
    rows, remarks = accuracy_rows(trials, replace(plan, groups=tuple(dict.fromkeys([*plan.groups, *every]))))
    is_model = rows["reader_kind"] == "model"
    rows = rows[is_model | rows["reader_kind"].isin(PARTICIPANT_KINDS)].copy()
    is_model = rows["reader_kind"] == "model"
    met = rows[is_model].groupby("reader_group")[plan.factor].nunique()
    whole = met.index[met == met.max()] if len(met) else met.index
    many = len(whole)
    if many < MODELS_FOR_A_CLAIM:
        return None
    rows = rows[~is_model | rows["reader_group"].isin(whole)]
    is_model = rows["reader_kind"] == "model"
    people = [group for group in plan.groups if not is_model[rows["reader_group"] == group].any()]
    people = [group for group in people if (rows["reader_group"] == group).any()]
    asked = replace(_beside(plan, "models in general"), groups=(*people, MODELS_IN_GENERAL))
    data = replace(sampled(rows, asked), remarks=())
    found = analyse(asked, data)
    df = float(many - 1)
    told = (
        f"The {many} models are a sample of models: each has its own level and its own effects of {plan.factor}. Tests of them "
        f"have Student's t with {many - 1} degrees of freedom. They hold for models like these on items like these."
    )
    contrasts = [_by_models(one, df) for one in found.contrasts]
    return replace(
        found,
        contrasts=tuple(adjusted([(asked, contrasts)])[0]),
        remarks=(*remarks, *found.remarks, told),
    )


def sampled(rows: pd.DataFrame, plan: Plan) -> ModelData:
    """Return the data of a model in which all models are one reader group and each is a level of ``machine``."""
    is_model = rows["reader_kind"] == "model"
    rows = rows.assign(
        machine=rows["reader_group"],
        reader_group=rows["reader_group"].mask(is_model, MODELS_IN_GENERAL),
        sampled_model=True,
    )
    return in_model(rows, plan, share="correct")


def _by_models(one: Contrast, df: float) -> Contrast:
    """Take t instead of z for a contrast that models are in."""
    if MODELS_IN_GENERAL not in one.groups or not one.estimable:
        return one
    half = reach(one.se, df)
    wider = float(stats.t.ppf(0.975, df) / stats.norm.ppf(0.975))
    p = float(2 * stats.t.sf(abs(one.statistic), df))
    ends: Sequence[float | None] = (one.points_low, one.points_high)
    if one.points is not None and one.points_low is not None and one.points_high is not None:
        most = 100.0 * len(one.groups)
        moved = one.points + wider * (np.array([one.points_low, one.points_high]) - one.points)
        ends = np.clip(moved, -most, most).tolist()
    return replace(
        one,
        df=df,
        p=p,
        p_adjusted=p,
        low=one.estimate - half,
        high=one.estimate + half,
        points_low=ends[0],
        points_high=ends[1],
    )


def by_label_probabilities(plan: Plan, tables: Tables) -> Analysis | None:
    """Compare conditions by how far the correct label leads in models; None where no model told label probabilities."""
    trials = tables.trials
    telling = trials["margin"].notna() & (trials["reader_kind"] == "model")
    groups = tuple(group for group in plan.groups if (telling & (trials["reader_group"] == group)).any())
    if not groups:
        return None
    asked = replace(_beside(plan, "label probabilities"), groups=groups, measure=LEAD)
    return analyse(asked, lead_data(tables, asked))
