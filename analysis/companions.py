"""Analyses that accompany those of accuracy, whatever was planned: exploratory, each named by what it does otherwise.

*Models in general*: from eight models on, models are a sample of models as participants are of people. *By label
probabilities*: of models that report how probable each label was, how far the correct label leads, which needs no repeated
answers and says more than right or wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from analysis.estimation import analyse
from analysis.families import adjusted, correction_of
from analysis.frames import accuracy_rows
from analysis.plan import Plan
from analysis.quantities import LEAD, lead_data
from analysis.random_structure import MODELS_FOR_A_CLAIM
from analysis.readers import MODELS_IN_GENERAL, PARTICIPANT_KINDS
from analysis.results import Analysis
from analysis.shares import ReaderSums, contrast_in_points
from analysis.tables import Tables

Kind = Literal["models in general", "label probabilities"]


@dataclass(frozen=True)
class Companion:
    """An analysis beside another."""

    kind: Kind  # one of 'models in general', 'label probabilities'
    beside: Plan  # the plan of the analysis that it stands beside
    analysis: Analysis


def companions(
    analyses: Iterable[Analysis], tables: Tables, told: Callable[[str], None] = lambda _: None
) -> list[Companion]:
    """Carry out what belongs beside each analysis of accuracy."""
    found: list[Companion] = []
    done: set[tuple[object, ...]] = set()
    for one in analyses:
        if one.plan.measure.name != "correct":
            continue
        makers: tuple[tuple[Kind, Callable[[Plan, Tables], Analysis | None]], ...] = (
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
        bayes=None,
        formula=None,
        fallback=None,
        stop=None,
        contrasts=tuple(replace(one, direction="two-sided") for one in plan.contrasts),
    )


def in_general(plan: Plan, tables: Tables) -> Analysis | None:
    """Compare people with models in general, of which all of the study are a sample; None below eight models, and without people."""
    trials = tables.trials
    every = trials.loc[trials["reader_kind"] == "model", "reader_group"].unique().tolist()
    rows, remarks = accuracy_rows(trials, replace(plan, groups=tuple(dict.fromkeys([*plan.groups, *every]))))
    is_model = rows["reader_kind"] == "model"
    met = rows[is_model].groupby("reader_group")[plan.factor].nunique()
    whole = met.index[met == met.max()].tolist() if len(met) else []
    kinds = rows.drop_duplicates("reader_group").set_index("reader_group")["reader_kind"]
    people = [group for group in plan.groups if kinds.get(group) in PARTICIPANT_KINDS]
    many = len(whole)
    if many < MODELS_FOR_A_CLAIM or not people:
        return None
    rows = rows[rows["reader_group"].isin([people[0], *whole])]
    asked = replace(_beside(plan, "models in general"), groups=(people[0], MODELS_IN_GENERAL))
    sums = ReaderSums(replace(asked, groups=(people[0], *whole)), rows, "correct", tables)
    found = []
    for difference in asked.contrasts:
        done = sums.in_general(people[0], asked.weights(difference))
        if done is not None:
            found.append(contrast_in_points(difference, asked.groups, asked, done))
    if not found:
        return None
    told = (
        f"The {many} models are a sample of models, as participants are of people: how much they differ from one another widens the "
        "intervals. The differences hold for models like these on items like these."
    )
    shown = tuple(level for level in plan.levels if (rows[plan.factor] == level).any())
    contrasts = tuple(adjusted([(asked, found)])[0])
    return Analysis(asked, None, asked.groups, shown, contrasts, correction_of(asked), (*remarks, told), rows)


def by_label_probabilities(plan: Plan, tables: Tables) -> Analysis | None:
    """Compare conditions by how far the correct label leads in models; None where no model told label probabilities."""
    trials = tables.trials
    telling = trials["margin"].notna() & (trials["reader_kind"] == "model")
    groups = tuple(group for group in plan.groups if (telling & (trials["reader_group"] == group)).any())
    if not groups:
        return None
    asked = replace(_beside(plan, "label probabilities"), groups=groups, measure=LEAD)
    return analyse(asked, lead_data(tables, asked))
