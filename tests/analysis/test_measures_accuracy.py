"""Accuracy three ways, missingness and H-TEST's three numbers, against counts made by hand."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from analysis import load
from analysis.frames import accuracy_rows, missing_rows
from analysis.measures.accuracy import accuracy, adjusted_accuracy, missingness, with_chance
from analysis.measures.resampling import BootstrapInterval, bootstrap, interval, resampled_means
from analysis.plan_runner import analyse_missingness, analyse_shares
from analysis.planned import plans
from stimuli.errors import UserError
from tests.analysis.conftest import Make
from tests.analysis.letter_study import PLANNED, study_rows
from tests.analysis.measured import trials_of


def ten_answers() -> pd.DataFrame:
    """Six right, one wrong, a refusal, a timeout, a reply that nobody could read; one that nobody judged."""
    rows = [{"correct": 1.0}] * 6 + [{"correct": 0.0}]
    rows += [{"correct": None, "response_status": one} for one in ("refused", "timeout", "unparsed")]
    rows += [{"correct": None, "response_status": "valid"}, {"correct": 1.0, "excluded_reason": "practice"}]
    return trials_of([{"cond": "kf", **row} for row in rows])


def test_accuracy_is_given_with_failures_wrong_left_out_and_at_chance() -> None:
    (row,) = accuracy(ten_answers().assign(chance=0.25), ["cond"]).to_dict("records")
    assert (row["trials"], row["valid"], row["missing"], row["correct"]) == (10, 7, 3, 6)
    assert row["wrong"] == pytest.approx(6 / 10)
    assert row["valid_only"] == pytest.approx(6 / 7)
    assert row["chance"] == pytest.approx((6 + 3 * 0.25) / 10)
    assert (row["lowest"], row["highest"]) == (pytest.approx(0.6), pytest.approx(0.9))
    for way in ("wrong", "valid_only", "chance"):
        assert row[f"{way}_low"] < row[way] < row[f"{way}_high"]


def test_a_persons_interval_is_over_participants() -> None:
    rows = [
        {
            "reader_kind": "human",
            "reader_group": "human",
            "reader": reader,
            "correct": right,
            "session_id": reader,
        }
        for reader, right in (("P1", 1.0), ("P2", 0.0), ("P3", 1.0))
        for _ in range(50)
    ]
    (row,) = accuracy(trials_of(rows)).to_dict("records")
    # three all-or-nothing people: any share of whole people may come up, so the interval spans everything
    assert (row["wrong_low"], row["wrong_high"]) == (0.0, 1.0)


def test_missing_answers_are_counted_by_kind() -> None:
    (row,) = missingness(ten_answers(), ["cond"]).to_dict("records")
    assert (row["trials"], row["missing"], row["missing_share"]) == (11, 3, pytest.approx(3 / 11))
    assert (row["refused"], row["timeout"], row["unparsed"], row["valid"]) == (1, 1, 1, 8)


def test_adjusted_accuracy_is_that_of_the_answered() -> None:
    (row,) = adjusted_accuracy(ten_answers()).to_dict("records")
    assert (row["accuracy"], row["adjusted_accuracy"]) == (pytest.approx(0.6), pytest.approx(6 / 7))
    assert row["out_of_context_ratio"] == pytest.approx(0.3)
    nothing = trials_of([{"correct": None, "response_status": "unparsed", "answer": "A"}] * 4)
    (row,) = adjusted_accuracy(nothing).to_dict("records")
    assert row["accuracy"] == 0
    assert np.isnan(row["adjusted_accuracy"])
    assert row["out_of_context_ratio"] == 1


def test_chance_is_one_of_the_items_choices() -> None:
    trials = trials_of(
        [
            {"item_id": "a", "cond": "kf"},
            {"item_id": "b", "cond": "kf"},
            {"item_id": "a", "cond": "kf", "trial_type": "recover"},
        ]
    )
    items = pd.DataFrame(
        {
            "set": "words",
            "item_id": ["a", "b"],
            "cond": "kf",
            "choices": [json.dumps(["x", "y"]), json.dumps(list("abcd"))],
        }
    )
    assert list(with_chance(trials, items, {"cond": ["kf"]})["chance"]) == [0.5, 0.25, 0.0]
    with pytest.raises(UserError, match="does not say how many choices 1 trials had"):
        with_chance(trials, items[:1], {"cond": ["kf"]})


def missing_study() -> pd.DataFrame:
    rows = study_rows(human=12, models=("restorer",), items=16, timeouts=0.0)
    test = ~rows["is_practice"].astype(bool)
    lost = test & (rows["position"] == "initial") & (rows["trial_index"] % 3 == 0)
    lost |= test & (rows["position"] != "initial") & (rows["trial_index"] % 11 == 0)
    rows["correct"] = rows["correct"].astype(object)
    rows.loc[lost, "response_status"] = "timeout"
    rows.loc[lost, ["correct", "response"]] = None
    return rows


def test_failures_count_as_wrong(handover: Make) -> None:
    tables = load(handover(missing_study(), dictionary={"planned": PLANNED}))
    plan = plans(tables)[0]
    wrong, _ = accuracy_rows(tables.trials, plan)
    failed = wrong["response_status"] != "valid"
    assert failed.sum() > 20
    assert wrong.loc[failed, "correct"].eq(0).all()


def test_missingness_is_modelled_by_condition(handover: Make) -> None:
    tables = load(handover(missing_study(), dictionary={"planned": PLANNED}))
    plan = plans(tables)[0]
    rows, _ = missing_rows(tables.trials, plan)
    assert rows["missing"].sum() == (rows["response_status"] != "valid").sum()
    analysis = analyse_missingness(plan, tables)
    assert analysis.plan.measure.name == "missing"
    assert analysis.model is not None
    one = next(c for c in analysis.contrasts if c.groups == ("human",) and c.label == "initial − internal")
    shares = rows[rows["reader_group"] == "human"].groupby("position")["missing"].mean()
    assert shares["initial"] > shares["internal"]
    assert one.estimate == pytest.approx(100 * (shares["initial"] - shares["internal"]), abs=10)
    assert analyse_shares(plan, tables, "left out").model is not None


def test_resampled_means_average_the_units_that_have_a_value() -> None:
    values = np.array([[1.0, np.nan], [1.0, 4.0], [1.0, 8.0]])
    drawn = resampled_means(values, 1, 4000)
    assert (drawn[:, 0] == 1).all()
    known = drawn[np.isfinite(drawn[:, 1]), 1]
    assert 4 <= known.min() <= known.max() <= 8
    assert np.isnan(drawn[:, 1]).mean() == pytest.approx(1 / 27, abs=0.015)
    assert known.mean() == pytest.approx(6, abs=0.15)


def test_a_bootstrap_interval_of_a_mean_is_the_normal_one_for_many_units() -> None:
    values = np.random.default_rng(5).normal(3, 2, (900, 1))
    found = bootstrap(values, lambda means: means[:, 0], 7, 8000)
    se = values.std() / 30
    assert found.low == pytest.approx(values.mean() - 1.96 * se, abs=0.2 * se)
    assert found.high == pytest.approx(values.mean() + 1.96 * se, abs=0.2 * se)
    assert resampled_means(values, 7, 3).tolist() == resampled_means(values, 7, 3).tolist()


def test_an_interval_that_is_mostly_undefined_is_none() -> None:
    assert np.isnan(interval(np.array([1.0, np.nan, np.nan])).low)
    assert interval(np.array([1.0, 2.0, np.inf])).undefined == pytest.approx(1 / 3)
    assert BootstrapInterval(-1, 1).includes_zero
    assert not BootstrapInterval(0.1, 1).includes_zero
    assert BootstrapInterval(float("nan"), float("nan")).includes_zero
    with pytest.raises(UserError, match="0 units"):
        resampled_means(np.empty((0, 2)), 1)
