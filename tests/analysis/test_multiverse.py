"""The multiverse: each universe against what its choices give by hand, and the mixed model in some."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis import Tables, load
from analysis.measures.recovery import recovery_trials
from analysis.planned import plans
from analysis.preprocessing.exclusions import alternatives
from analysis.robustness import share_multiverse, time_multiverse
from stimuli.errors import UserError
from tests.analysis.conftest import Make
from tests.analysis.letter_study import PLANNED, study_rows
from tests.analysis.measured_study import RECOVERED_WORDS, typed_study

BOUNDS = {"trials": {"reading_time": "outside 300 ms to 9 s"}}
READING = {"reading": {**PLANNED["reading"], "contrasts": ["initial - intact"]}}


def tables_of(handover: Make, rows: pd.DataFrame | None = None, **exclude: object) -> Tables:
    rows = study_rows(human=16, models=("restorer",), items=24) if rows is None else rows
    dictionary = {
        "exclude": {**BOUNDS, **exclude},
        "planned": {**READING, "comprehension": PLANNED["comprehension"]},
    }
    return load(handover(rows, dictionary=dictionary))


def test_every_usual_choice_is_a_universe_and_one_is_the_studys_own(handover: Make) -> None:
    tables = tables_of(handover)
    found = time_multiverse(tables, plans(tables)[0])
    assert set(found["scale"]) == {"log", "ms"}
    assert set(found["answers"]) == {"all valid answers", "right answers only"}
    rules = {one.name for one in alternatives("reading_time", tables.dictionary["exclude"])}
    assert set(found["rule"]) == rules
    assert len(found) == 2 * 2 * len(rules)
    own = found[found["is_primary"]]
    assert own[["rule", "scale", "answers"]].to_numpy().tolist() == [
        ["the study's bounds", "log", "all valid answers"]
    ]
    assert found["removed"].min() == 0
    assert found["removed"].max() > 0.02


def test_a_universes_difference_is_students_over_participants(handover: Make) -> None:
    tables = tables_of(handover)
    found = time_multiverse(tables, plans(tables)[0])
    found = found[(found["scale"] == "ms") & (found["answers"] == "all valid answers")]
    row = found[found["rule"] == "the study's bounds"].iloc[0]
    trials = tables.trials
    used = trials[
        trials["excluded_reason"].isna()
        & (trials["reader_kind"] == "human")
        & (trials["response_status"] == "valid")
        & trials["reading_time"].between(300, 9000)
    ]
    means = used.pivot_table(index="reader", columns="position", values="reading_time")
    test = stats.ttest_rel(means["initial"], means["intact"])
    assert row["estimate"] == pytest.approx((means["initial"] - means["intact"]).mean())
    assert (row["t"], row["p"], row["df"]) == pytest.approx((test.statistic, test.pvalue, 15))
    ends = test.confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high))
    assert row["trials"] == len(used)


def test_bounds_and_answers_that_a_plan_fixed_are_its_own_universe_and_open_in_the_others(
    handover: Make,
) -> None:
    """The plan narrows the study's upper bound, and takes right answers alone."""
    tables = tables_of(handover)
    of_plan = {"trials": {"reading_time": "outside 200 ms to 2 s"}, "answers": "wrong"}
    plan = replace(plans(tables)[0], exclude=of_plan)
    found = time_multiverse(tables, plan)
    own = found[found["is_primary"]]
    assert own[["rule", "scale", "answers"]].to_numpy().tolist() == [
        ["the study's bounds", "log", "right answers only"]
    ]
    trials = tables.trials
    used = trials[
        trials["excluded_reason"].isna()
        & (trials["reader_kind"] == "human")
        & (trials["correct"] == 1)
        & trials["reading_time"].between(300, 2000)
    ]
    means = np.log(used["reading_time"]).groupby([used["reader"], used["position"]]).mean().unstack()
    difference = (means["initial"] - means["intact"]).mean()
    assert own["estimate"].item() == pytest.approx(100 * np.expm1(difference))
    assert own["trials"].item() == len(used)
    every = found[(found["rule"] == "no rule") & (found["scale"] == "log")].set_index("answers")
    assert every.loc["all valid answers", "trials"] > every.loc["right answers only", "trials"] > len(used)
    assert (every["removed"] == 0).all()


def test_bounds_of_study_and_plan_without_a_common_time_are_told(handover: Make) -> None:
    tables = tables_of(handover)
    plan = replace(plans(tables)[0], exclude={"trials": {"reading_time": "outside 10 s to 20 s"}})
    with pytest.raises(UserError, match="time bounds 10000 to 9000 ms"):
        time_multiverse(tables, plan)


def test_a_rule_says_what_it_took_from_either_condition(handover: Make) -> None:
    rows = study_rows(human=8, items=24, timeouts=0.0)
    late = (
        (rows["position"] == "initial") & (rows["trial_index"] % 3 == 0) & ~rows["is_practice"].astype(bool)
    )
    rows.loc[late, "reading_time"] = 50_000.0
    tables = tables_of(handover, rows)
    found = time_multiverse(tables, plans(tables)[0])
    found = found[(found["scale"] == "log") & (found["answers"] == "all valid answers")]
    row = found[found["rule"] == "the study's bounds"].iloc[0]
    test = rows[~rows["is_practice"].astype(bool)]
    expected = (test[test["position"] == "initial"]["reading_time"] > 9000).mean()
    assert row["removed_first"] == pytest.approx(expected)
    assert row["removed_second"] < 0.1
    every = found[found["rule"] == "no rule"].iloc[0]
    assert every["removed"] == 0
    assert every["estimate"] > row["estimate"] + 20


def test_results_are_given_with_and_without_flagged_sessions(handover: Make) -> None:
    rows = study_rows(human=10, items=24, timeouts=0.0)
    rows.loc[rows["reader"] == "P001", "excluded_reason"] = "missed both checks"
    checks = rows.index[(rows["reader"] == "P002") & ~rows["is_practice"].astype(bool)][:2]
    rows.loc[checks, "is_attention_check"] = True
    rows.loc[checks, "correct"] = False
    tables = tables_of(handover, rows, sessions={"attention_checks_failed": "2 or more"})
    found = time_multiverse(tables, plans(tables)[0])
    found = found[(found["scale"] == "log") & (found["answers"] == "all valid answers")]
    units = found.groupby("sessions", sort=False)["units"].max().to_dict()
    assert units == {
        "as the study excluded": 9,
        "excluded sessions back": 10,
        "without all that meet a rule": 8,
    }
    assert found.loc[found["is_primary"], "sessions"].unique().tolist() == ["as the study excluded"]


@pytest.mark.full
def test_accuracy_is_compared_with_failures_wrong_left_out_and_at_chance(handover: Make) -> None:
    rows = study_rows(human=12, models=("restorer",), items=24, timeouts=0.0)
    rows["correct"] = rows["correct"].astype(object)
    lost = (rows["position"] == "initial") & (rows["trial_index"] % 4 == 0) & (rows["reader_kind"] == "human")
    rows.loc[lost, "response_status"] = "timeout"
    rows.loc[lost, "correct"] = None
    tables = tables_of(handover, rows)
    found = share_multiverse(tables, plans(tables)[1])
    people = found[(found["group"] == "human") & (found["contrast"] == "initial − internal")].set_index(
        "rule"
    )
    assert list(people.index) == ["failures wrong", "failures left out", "failures at chance"]
    wrong, left_out, chance = (people.loc[name, "estimate"] for name in people.index)
    assert wrong < chance < left_out
    assert people["is_primary"].tolist() == [True, False, False]
    model = found[(found["group"] == "restorer") & (found["contrast"] == "initial − internal")]
    assert model["estimate"].nunique() == 1


def test_a_multiverse_of_the_wrong_measure_is_refused(handover: Make) -> None:
    tables = tables_of(handover)
    reading, comprehension = plans(tables)[:2]
    with pytest.raises(UserError, match="accuracy is no time"):
        time_multiverse(tables, comprehension)
    with pytest.raises(UserError, match="reading time is no share"):
        share_multiverse(tables, reading)


def test_recovered_words_are_compared_under_each_scoring_and_treatment_of_failures(tmp_path: Path) -> None:
    folder = typed_study(tmp_path, people=12, planned=RECOVERED_WORDS)
    trials = pd.read_parquet(folder / "trials.parquet")
    lost = (trials["position"] == "blue") & (trials["trial_index"] % 5 == 0)
    trials.loc[lost, "response_status"] = "timeout"
    trials.loc[lost, ["correct", "response"]] = None
    trials.to_parquet(folder / "trials.parquet")
    tables = load(folder)
    plan = plans(tables)[0]
    found = share_multiverse(tables, plan)
    assert set(found["rule"]) == {"failures wrong", "failures left out"}
    by = found.set_index(["rule", "scale"])["estimate"]
    measured = recovery_trials(tables.trials, tables.items, list(tables.factors))
    for rule, rows in (
        ("failures wrong", measured),
        ("failures left out", measured[measured["response_status"] == "valid"]),
    ):
        shares = rows.assign(share=rows["recovered"] / rows["changed"]).groupby(["reader", "position"])
        sums = shares[["recovered", "changed", "ed_shown", "ed_given"]].sum()
        expected = {
            "points": shares["share"].mean(),
            "with every word counted alike": sums["recovered"] / sums["changed"],
            "as the recovery rate": 1 - sums["ed_given"] / sums["ed_shown"],
        }
        for scale, means in expected.items():
            table = means.unstack()
            assert by[rule, scale] == pytest.approx(100 * (table["blue"] - table["green"]).mean()), (
                rule,
                scale,
            )
    assert found[found["is_primary"]]["scale"].tolist() == ["points"]
    assert by["failures wrong", "points"] < by["failures left out", "points"]
