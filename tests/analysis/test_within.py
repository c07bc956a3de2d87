"""Comparisons stay within what sessions were asked: another factor by which sessions differ is neither pooled nor their variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import Tables, load
from analysis.frames import accuracy_data
from analysis.plan_runner import carry_out
from analysis.planned import parted_by_sessions, plans
from analysis.random_structure import justified
from tests.analysis.conftest import Make
from tests.analysis.letter_study import LEVELS, study_rows

MANNERS = ("without", "behind")
FACTORS = {
    "position": {"levels": LEVELS, "reference": "intact"},
    "examples": {"levels": list(MANNERS), "reference": "without"},
}
RIGHT = {"without": (0.9, 0.6, 0.5, 0.7), "behind": (0.95, 0.35, 0.2, 0.3)}
"""Share right by manner and position."""


def asked_in_two_ways(sessions: int = 1) -> pd.DataFrame:
    """Return answers of two models: each session holds all items in one position and one manner, as released outputs do."""
    plain, draw = study_rows(models=("a", "b"), items=40), np.random.default_rng(9)
    tests = plain[~plain["is_practice"]]
    parts = []
    for manner in MANNERS:
        for number in range(sessions):
            named = tests["reader"] + "-" + tests["position"] + f"-{manner}-{number}"
            own = tests.assign(examples=manner, session_id=named, replicate=number + 1, temperature=1.0)
            share = own["position"].map(dict(zip(LEVELS, RIGHT[manner], strict=True)))
            parts.append(own.assign(correct=draw.random(len(own)) < share, response_status="valid"))
    return pd.concat(parts, ignore_index=True)


def tables_of(handover: Make, rows: pd.DataFrame, **planned: Any) -> Tables:
    plan = {"x": {"measure": "correct", "between": ["a", "b"], **planned}} if planned else {}
    return load(handover(rows, dictionary={"factors": FACTORS, "planned": plan}))


def test_unplanned_comparisons_are_made_within_each_way_of_asking(handover: Make) -> None:
    found = plans(tables_of(handover, asked_in_two_ways()))
    assert [plan.name for plan in found] == [
        *(f"accuracy by position (examples {manner})" for manner in MANNERS),
        *(f"accuracy by examples (position {level})" for level in LEVELS),
        "accuracy by position × examples",
    ]
    assert found[1].within == (("examples", "behind"),)


def test_a_comparison_within_one_way_of_asking_sees_none_of_the_other(handover: Make) -> None:
    rows = asked_in_two_ways()
    tables = tables_of(handover, rows)
    for plan in plans(tables)[:2]:
        analysis = carry_out(plan, tables)
        assert len(analysis.rows) == len(rows) / 2
        own = rows[(rows["examples"] == dict(plan.within)["examples"]) & (rows["reader"] == "a")]
        shares = own.groupby("position")["correct"].mean()
        (tested,) = [
            one for one in analysis.contrasts if one.label == "final − intact" and one.groups == ("a",)
        ]
        assert tested.estimate == pytest.approx(100 * (shares["final"] - shares["intact"]), abs=2.5)


def test_factors_that_vary_within_sessions_are_averaged_over(handover: Make) -> None:
    rows = asked_in_two_ways()
    rows["session_id"] = rows["reader"]
    assert parted_by_sessions(rows, "position", FACTORS) == [()]
    found = [plan.name for plan in plans(tables_of(handover, rows))]
    assert found == ["accuracy by position", "accuracy by examples", "accuracy by position × examples"]


def test_a_factor_that_is_one_level_wherever_the_other_has_several_parts_nothing() -> None:
    rows = pd.DataFrame({"session_id": [*"aabb"], "text": [*"xyzz"], "manner": [*"ppqq"]})
    factors = {"text": [*"xyz"], "manner": [*"pq"]}
    assert parted_by_sessions(rows, "text", factors) == [(("manner", "p"),)]
    assert parted_by_sessions(rows.iloc[2:], "text", factors) == [()]


def test_a_plan_says_within_which_levels_it_compares(handover: Make) -> None:
    rows = asked_in_two_ways()
    (plan,) = plans(tables_of(handover, rows, compare="position", within={"examples": "behind"}))
    assert plan.within == (("examples", "behind"),)


@pytest.mark.parametrize(("sessions", "has_a_variance"), [(2, False), (6, True)])
def test_sessions_are_counted_per_cell_of_all_factors(
    handover: Make, sessions: int, has_a_variance: bool
) -> None:
    """Two sessions of each position and manner are eight of each manner, and no variance that could be told from positions."""
    tables = tables_of(handover, asked_in_two_ways(sessions), compare="examples")
    (plan,) = plans(tables)
    terms, remarks = justified(accuracy_data(tables.trials, plan), plan.factor)
    told = "Each session of a model holds one condition of examples and one of the design's other factors"
    assert any(term.group == "model_session" for term in terms) == has_a_variance
    assert any(told in remark for remark in remarks) != has_a_variance
