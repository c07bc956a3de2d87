"""Planned contrasts of shares: p and interval agree, nothing falls out, and one family holds all tests of a measure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis import load
from analysis.report.inline import plain_text
from analysis.report.method import method_parts
from analysis.report.results import paragraphs
from analysis.results import Analysis
from tests.analysis.conftest import Make, planned_analyses
from tests.analysis.letter_study import comparison, study_rows, write_handover

PLANNED = {
    "cost of reading": {
        "compare": "position",
        "measure": "correct",
        "between": ["human", "restorer"],
        "contrasts": ["initial - internal", "final - internal"],
        "equivalence": "30 points",
    }
}
SMALL = "correct ~ position + (1 | participant)"


def study(**readers: Any) -> pd.DataFrame:
    return study_rows(human=12, items=12, models=("restorer",), **readers)


def analysed(handover: Make, rows: pd.DataFrame, **changes: Any) -> Analysis:
    """Carry out the plan above, with changes, on these trials; the model that checks it is quick to fit."""
    planned = {"cost of reading": {**PLANNED["cost of reading"], "formula": SMALL, **changes}}
    (analysis,) = planned_analyses(load(handover(rows, dictionary={"planned": planned})))
    return analysis


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    (analysis,) = planned_analyses(
        load(write_handover(tmp_path_factory.mktemp("carried"), study(), planned=PLANNED))
    )
    return analysis


def test_an_adjusted_p_is_below_alpha_exactly_where_its_interval_excludes_zero(handover: Make) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = study()
        people = rows["reader_kind"] == "human"
        chance = np.where(rows["position"] == "internal", 0.85, 0.7)
        rows.loc[people, "correct"] = (rng.random(len(rows)) < chance)[people]
        found = analysed(handover, rows).contrasts
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
    first = {**PLANNED["cost of reading"], "formula": SMALL}
    second = {**first, "contrasts": ["initial - final"]}
    found = planned_analyses(
        load(handover(study(), dictionary={"planned": {"cost": first, "again": second}}))
    )
    assert {contrast.family for one in found for contrast in one.contrasts} == {9}


def test_the_difference_is_that_of_people_and_model_over_the_same_items(carried: Analysis) -> None:
    by = {(one.label, one.groups): one.estimate for one in carried.contrasts}
    for label in {one.label for one in carried.contrasts}:
        apart = by[label, ("human",)] - by[label, ("restorer",)]
        assert by[label, ("human", "restorer")] == pytest.approx(apart, abs=1e-9)


@pytest.mark.parametrize(
    ("readers", "right"),
    [
        ("reader == 'restorer'", True),
        ("reader == 'restorer'", False),
        ("reader_kind == 'human' and position == 'internal'", True),
    ],
)
def test_readers_at_the_end_of_the_scale_stay_in_the_comparison(
    handover: Make, readers: str, right: bool
) -> None:
    rows = study()
    rows.loc[rows.query(readers).index, "correct"] = right
    found = analysed(handover, rows).contrasts
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
    own = [one for one in analysed(handover, study(), direction="less").contrasts if not one.between]
    assert all(one.low == -np.inf for one in own)
    assert all((one.p_adjusted < 0.05) == (one.high < 0) for one in own)


def test_with_fixed_items_a_deterministic_model_is_known_and_the_report_says_which_items(
    handover: Make,
) -> None:
    analysis = analysed(handover, study(), items="fixed")
    by = {(one.label, one.groups): one for one in analysis.contrasts}
    model = by["initial − internal", ("restorer",)]
    assert model.se == 0 and model.low == model.high == model.estimate
    apart = by["initial − internal", ("human", "restorer")]
    assert apart.se > 0 and apart.crossed is not None and apart.crossed.to == "participants"
    sampled = replace(analysis, plan=replace(analysis.plan, items="random"))
    assert paragraphs(analysis, [], {}) != paragraphs(sampled, [], {})


def test_people_and_a_model_are_in_no_logistic_model_together(carried: Analysis) -> None:
    assert carried.companion is not None and carried.model is not None
    assert carried.companion.groups == ("human",)
    assert "reader_group" not in carried.model.formula


def test_repeated_answers_of_a_model_are_averaged_and_not_counted_as_items(
    handover: Make, carried: Analysis
) -> None:
    rows = study()
    own = rows[rows["reader"] == "restorer"]
    again = [own.assign(session_id=own["session_id"] + f"-{n}", replicate=float(n)) for n in (1, 2)]
    often = analysed(handover, pd.concat([rows, *again])).contrasts
    once = {(one.label, one.groups): one.se for one in carried.contrasts}
    assert {(one.label, one.groups): one.se for one in often} == pytest.approx(once)


def test_what_is_said_of_items_and_of_a_check_is_true_of_conditions_with_items_of_their_own(
    handover: Make,
) -> None:
    """The model always right in one condition is not in the check, and no item is in two conditions."""
    rows = study_rows(human=8, models=("restorer", "judge"), items=12)
    own = rows["item_id"].where(rows["position"].isna(), rows["item_id"] + "-" + rows["position"].astype(str))
    rows = rows.assign(item_id=own, rt=None)
    always = (rows["reader"] == "restorer") & (rows["position"] == "initial")
    rows.loc[always, ["correct", "response_status"]] = [True, "valid"]
    planned = comparison("initial - intact", between=("human", "restorer", "judge"))
    planned["a"]["formula"] = "correct ~ position * reader_group + (1 | participant) + (1 | item)"
    tables = load(handover(rows, dictionary={"planned": planned}))
    (analysis,) = planned_analyses(tables)
    said = " ".join(analysis.remarks)
    assert "two items were answered alike (restorer in initial − intact)" in said
    assert "changed in the same way" not in said
    assert "checks the estimates does not include restorer." in said and "No model can be" not in said
    parts = {part.heading: part.paragraphs for part in method_parts(tables, (analysis,), None)}
    method = plain_text(" ".join(parts["Data analysis"]))
    assert "two items of a condition alike" in method and "changed in the same way" not in method
