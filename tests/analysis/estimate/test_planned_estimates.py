"""Planned contrasts of shares: p and interval agree, nothing falls out, and one family holds all tests of a measure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis import Tables, load
from analysis.plan_runner import carry_out_all
from analysis.planned import plans
from analysis.report.results import paragraphs
from analysis.results import Analysis, Contrast
from tests.analysis.letter_study import study_rows

Make = Callable[..., Path]
PLANNED = {
    "cost of reading": {
        "compare": "position",
        "measure": "correct",
        "between": ["human", "restorer"],
        "contrasts": ["initial - internal", "final - internal"],
        "equivalence": "30 points",
    }
}


def tables_of(handover: Make, rows: pd.DataFrame, planned: dict[str, Any] | None = None) -> Tables:
    return load(handover(rows, dictionary={"planned": planned or PLANNED}))


def study(**readers: Any) -> pd.DataFrame:
    return study_rows(human=16, items=16, models=("restorer",), **readers)


def only(analyses: list[Analysis]) -> Analysis:
    (one,) = [one for one in analyses if one.plan.planned]
    return one


@pytest.fixture
def carried(handover: Make) -> Analysis:
    tables = tables_of(handover, study())
    return only(carry_out_all(plans(tables), tables))


def test_an_adjusted_p_is_below_alpha_exactly_where_its_interval_excludes_zero(handover: Make) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = study()
        people = rows["reader_kind"] == "human"
        chance = np.where(rows["position"] == "internal", 0.85, 0.7)
        rows.loc[people, "correct"] = (rng.random(len(rows)) < chance)[people]
        tables = tables_of(handover, rows)
        found = only(carry_out_all(plans(tables), tables)).contrasts
        assert len(found) == 6
        for one in found:
            assert (one.p_adjusted < 0.05) == one.excludes_zero
            assert one.p_adjusted >= one.p - 1e-4
            assert one.low <= one.estimate <= one.high


def test_all_contrasts_of_people_the_model_and_their_difference_are_one_family(carried: Analysis) -> None:
    assert {one.family for one in carried.contrasts} == {6}
    assert {one.groups for one in carried.contrasts} == {("human",), ("restorer",), ("human", "restorer")}
    tails = [stats.t.sf(one.reach, one.df) for one in carried.contrasts]
    assert tails == pytest.approx([tails[0]] * 6) and 0.025 / 6 <= tails[0] < 0.025


def test_two_plans_of_one_measure_share_a_family(handover: Make) -> None:
    second = {**PLANNED["cost of reading"], "contrasts": ["initial - final"]}
    tables = tables_of(handover, study(), {**PLANNED, "again": second})
    found = [one for one in carry_out_all(plans(tables), tables) if one.plan.planned]
    assert {contrast.family for one in found for contrast in one.contrasts} == {9}


def test_the_difference_is_that_of_people_and_model_over_the_same_items(carried: Analysis) -> None:
    by = {(one.label, one.groups): one.estimate for one in carried.contrasts}
    for label in {one.label for one in carried.contrasts}:
        apart = by[label, ("human",)] - by[label, ("restorer",)]
        assert by[label, ("human", "restorer")] == pytest.approx(apart, abs=1e-9)


@pytest.mark.parametrize("right", [True, False])
def test_a_model_at_the_end_of_the_scale_stays_in_the_comparison(handover: Make, right: bool) -> None:
    rows = study()
    rows.loc[rows["reader"] == "restorer", "correct"] = right
    tables = tables_of(handover, rows)
    found = only(carry_out_all(plans(tables), tables)).contrasts
    assert all(one.estimable and one.se > 0 for one in found)
    assert all(one.equivalence is not None for one in found if one.between)


def test_an_equivalence_test_agrees_with_its_interval(carried: Analysis) -> None:
    tests = [one.equivalence for one in carried.contrasts if one.between]
    assert len(tests) == 2
    for one in tests:
        assert one is not None
        assert one.family == 2 and one.level == pytest.approx(0.95)
        inside = -one.half_width < one.low and one.high < one.half_width
        assert one.equivalent == inside == (one.p_adjusted < 0.05)


def test_a_directed_test_has_an_interval_with_one_end(handover: Make) -> None:
    directed = {**PLANNED["cost of reading"], "direction": "less"}
    tables = tables_of(handover, study(), {"cost of reading": directed})
    own = [one for one in only(carry_out_all(plans(tables), tables)).contrasts if not one.between]
    assert all(one.low == -one.furthest for one in own)
    assert all((one.p_adjusted < 0.05) == (one.high < 0) for one in own)


def test_with_fixed_items_a_deterministic_model_is_known_and_the_report_says_which_items(
    handover: Make,
) -> None:
    fixed = {**PLANNED["cost of reading"], "items": "fixed"}
    tables = tables_of(handover, study(), {"cost of reading": fixed})
    analysis = only(carry_out_all(plans(tables), tables))
    by = {(one.label, one.groups): one for one in analysis.contrasts}
    model = by["initial − internal", ("restorer",)]
    assert model.se == 0 and model.low == model.high == model.estimate
    apart = by["initial − internal", ("human", "restorer")]
    assert apart.se > 0 and apart.crossed is not None and apart.crossed.to == "participants"
    assert "for these items" in " ".join(str(one) for one in paragraphs(analysis, [], {}, None))


def test_people_and_a_model_are_in_no_logistic_model_together(carried: Analysis) -> None:
    assert carried.companion is not None and carried.model is not None
    assert carried.companion.groups == ("human",)
    assert "reader_group" not in carried.model.formula


def test_repeated_answers_of_a_model_are_averaged_and_not_counted_as_items(handover: Make) -> None:
    once, often = study(), study()
    own = often[often["reader"] == "restorer"]
    again = [own.assign(session_id=own["session_id"] + f"-{n}", replicate=float(n)) for n in (1, 2)]
    often = pd.concat([often, *again], ignore_index=True)
    first, second = (
        only(carry_out_all(plans(tables), tables)).contrasts
        for tables in (tables_of(handover, rows) for rows in (once, often))
    )
    by: dict[Any, Contrast] = {(one.label, one.groups): one for one in first}
    assert [one.se for one in second] == pytest.approx([by[one.label, one.groups].se for one in second])


def test_people_who_are_always_right_in_a_condition_stay_in(handover: Make) -> None:
    rows = study()
    ends = (rows["reader_kind"] == "human") & (rows["position"] == "internal")
    rows.loc[ends, "correct"] = True
    tables = tables_of(handover, rows)
    found = only(carry_out_all(plans(tables), tables)).contrasts
    assert all(one.estimable for one in found)
