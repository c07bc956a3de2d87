"""Known effects go through tables, models and contrasts and come back; structures and families are the stated ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis import estimation, load
from analysis.estimation import thinned
from analysis.frames import ModelData, accuracy_data
from analysis.letters.letter_costs import agreeing
from analysis.mixed.inference import corrected
from analysis.multiple_comparisons import interval_levels, with_adjusted
from analysis.parameter_recovery import recovered, recovery_plans
from analysis.plan import Plan
from analysis.plan_runner import analyse_shares, analyse_time
from analysis.planned import plans
from tests.analysis.conftest import Make
from tests.analysis.letter_study import PLANNED, TRUTH, study_rows, write_handover


def test_effects_put_into_simulated_readers_come_back(tmp_path: Path) -> None:
    rows = study_rows(simulated=32, items=32, timeouts=0.0, seed=11)
    tables = load(write_handover(tmp_path, rows, truth=TRUTH))
    for plan in recovery_plans(tables):
        if plan.measure.name == "rt":
            continue
        run = analyse_shares if plan.measure.name == "correct" else analyse_time
        found = recovered(run(plan, tables), tables)
        effects = [one for one in found if one.covered is not None]
        assert len(effects) == 4
        assert all(one.covered for one in effects), [
            (one.label, one.truth, one.low, one.high) for one in effects
        ]
        spreads = {one.label: one for one in found if one.covered is None}
        for name in ("SD of participants", "SD of items"):
            assert spreads[name].estimate == pytest.approx(spreads[name].truth, rel=0.5)


def test_estimates_are_differences_of_shares_in_which_every_item_counts_alike(tmp_path: Path) -> None:
    rows = study_rows(human=24, models=("restorer",), items=24, seed=5)
    tables = load(write_handover(tmp_path, rows, planned=PLANNED))
    plan = plans(tables)[0]
    used = tables.trials[tables.trials["excluded_reason"].isna() & tables.trials["position"].notna()]
    right = used.assign(correct=used["correct"].fillna(0.0))
    items = right.groupby(["reader_group", "position", "item_id"])["correct"].mean()
    raw = (100 * items.groupby(level=[0, 1]).mean()).to_dict()
    within = [one for one in analyse_shares(plan, tables, companion=False).contrasts if not one.between]
    assert len(within) == 4
    for one in within:
        (group,) = one.groups
        assert one.estimate == pytest.approx(raw[group, one.first] - raw[group, one.second])
        assert one.low < one.estimate < one.high


def test_times_outside_the_studys_bounds_are_counted_and_left_out(handover: Make) -> None:
    rows = study_rows(human=8, items=16, timeouts=0.0)
    test = rows.index[~rows["is_practice"].astype(bool)]
    rows.loc[test[:3], "reading_time"] = [50.0, 90_000.0, 70_000.0]
    exclude = {"trials": {"reading_time": "outside 200 ms to 60 s"}}
    tables = load(handover(rows, dictionary={"exclude": exclude}))
    plan = next(plan for plan in plans(tables) if plan.measure.name == "reading_time")
    analysis = analyse_time(plan, tables)
    assert analysis.model is not None and analysis.model.rows == 8 * 16 - 3
    assert any("3 of 128" in remark for remark in analysis.remarks)


def test_every_step_of_a_reduction_is_kept(handover: Make) -> None:
    rows = study_rows(human=12, models=("restorer",), items=12, seed=5)
    tables = load(handover(rows, dictionary={"planned": PLANNED}))
    model = analyse_shares(plans(tables)[0], tables).model
    assert model is not None and len(model.steps) > 1
    assert model.steps[-1].formula == model.formula
    assert all("dropped" in step.verdict for step in model.steps[:-1])
    assert "reported" in model.steps[-1].verdict


@pytest.mark.parametrize("seed", range(10))
def test_intervals_of_corrected_tests_agree_with_their_p_values(seed: int) -> None:
    """Of normal estimates, of t tests, and of bootstraps, however few draws there are."""
    rng = np.random.default_rng(seed)
    estimate = rng.normal(scale=rng.choice([0.5, 3.0]), size=rng.integers(1, 12))
    for df in (np.inf, 7.0):
        p = 2 * stats.t.sf(np.abs(estimate), df)
        table = with_adjusted(
            pd.DataFrame({"estimate": estimate, "se": 1.0, "df": df, "p": p}), "low", "high"
        )
        excludes = (table["low"] > 0) | (table["high"] < 0)
        assert (excludes == (table["p_adjusted"] < 0.05)).all()
    draws = np.sort(estimate[:, None] + rng.normal(size=(len(estimate), 400)), axis=1)
    beyond = np.minimum((draws <= 0).mean(axis=1), (draws >= 0).mean(axis=1))
    q = corrected(np.minimum(1, 2 * np.maximum(beyond, 1 / 400)), "BH")
    for own, adjusted, level in zip(draws, q, interval_levels(q), strict=True):
        low, high = agreeing(own, level, bool(adjusted < 0.05))
        assert (low > 0 or high < 0) == (adjusted < 0.05)


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
