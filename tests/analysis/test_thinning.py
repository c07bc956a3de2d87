"""Exploratory models of very many rows have whole people and sessions; planned models have every row."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from analysis import estimation, load
from analysis.estimation import thinned
from analysis.frames import ModelData, accuracy_data
from analysis.plan import Plan
from analysis.plan_runner import analyse_shares
from analysis.planned import plans
from tests.analysis.conftest import Make
from tests.analysis.letter_study import PLANNED, study_rows


@pytest.fixture
def planned(handover: Make, monkeypatch: pytest.MonkeyPatch) -> tuple[Plan, ModelData]:
    rows = study_rows(human=60, models=("restorer",), items=16)
    tables = load(handover(rows, dictionary={"planned": PLANNED}))
    plan = plans(tables)[0]
    monkeypatch.setattr(estimation, "MOST_ROWS", 400)
    return plan, accuracy_data(tables.trials, plan)


def of_people(data: ModelData) -> pd.DataFrame:
    return data.rows[data.rows["people"] == 1]


def test_an_exploratory_model_has_all_rows_of_some_people(planned: tuple[Plan, ModelData]) -> None:
    plan, whole = planned
    data, told = thinned(replace(plan, planned=False), whole)
    before, after = (of_people(one).groupby("participant").size() for one in (whole, data))
    assert estimation.FEWEST <= len(after) < len(before)
    assert (after == before[after.index]).all()
    # the one session of the model is no sample of anything
    assert (data.rows["model"] == 1).sum() == (whole.rows["model"] == 1).sum()
    assert f"{len(data.rows):,} of {len(whole.rows):,} rows" in told[0]
    assert f"{len(after)} of {len(before)} participants" in told[0]


def test_the_same_people_are_drawn_in_any_order_of_rows(planned: tuple[Plan, ModelData]) -> None:
    plan, whole = planned
    plan = replace(plan, planned=False)
    other = replace(whole, rows=whole.rows.sample(frac=1.0, random_state=1).reset_index(drop=True))
    first, second = (set(of_people(thinned(plan, one)[0])["participant"]) for one in (whole, other))
    assert first == second


def test_the_report_is_told(handover: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = load(handover(study_rows(human=40, models=("restorer",), items=12)))
    monkeypatch.setattr(estimation, "MOST_ROWS", 300)
    found = analyse_shares(replace(plans(tables)[0], planned=False), tables)
    assert found.model is not None
    assert found.model.rows == len(found.of_model.rows) < 40 * 12
    assert any("300" in remark for remark in found.remarks)


def test_a_planned_model_has_every_row(planned: tuple[Plan, ModelData]) -> None:
    plan, data = planned
    assert plan.planned and len(data.rows) > 400
    assert thinned(plan, data) == (data, [])


def test_linear_models_have_every_row(planned: tuple[Plan, ModelData]) -> None:
    plan, data = planned
    linear = replace(plan, planned=False, measure=replace(plan.measure, family="gaussian"))
    assert thinned(linear, data) == (data, [])
