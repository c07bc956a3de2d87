"""Exclusions, time rules, declared signs and their tables, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis import load
from analysis.exclusions import (
    Bounds,
    EveryTime,
    SpreadTrimming,
    alternatives,
    declared_rules,
    flow_steps,
    session_signs,
    sessions_against_rules,
    time_bounds,
    time_steps,
)
from experiment.people import quality
from stimuli.errors import UserError
from tests.analysis.conftest import Make
from tests.analysis.letter_study import study_rows, timed_out


def times(*values: float, reader: str = "P1", level: str = "intact") -> pd.DataFrame:
    return pd.DataFrame(
        {"reader_group": "human", "reader": reader, "position": level, "rt": np.array(values, dtype=float)}
    )


def test_two_standard_deviations_are_those_of_the_participant_in_the_condition() -> None:
    # nine deviations of -150 and one of 1,350 from the mean of 550
    own = times(*[400.0] * 9, 1900.0)
    other = times(1800, 1900, 2000, reader="P2")
    rows = pd.concat([own, other], ignore_index=True)
    sd = own["rt"].std(ddof=1)
    k = (1900 - own["rt"].mean()) / sd
    assert k == pytest.approx(1350 / np.sqrt((9 * 150**2 + 1350**2) / 9))
    assert not SpreadTrimming(k - 0.1, by=("position",)).keeps(rows, "rt")[9]
    assert SpreadTrimming(k + 0.1, by=("position",)).keeps(rows, "rt").all()
    assert SpreadTrimming(k - 0.1, by=("position",)).keeps(rows, "rt")[10:].all()


def test_median_deviations_are_scaled_to_standard_deviations() -> None:
    # median 500, absolute deviations 100, 50, 0, 50, 1500: their median is 50, so 1.4826 x 50 = 74.13
    rows = times(400, 450, 500, 550, 2000)
    for spreads, first in ((2.5, True), (100 / 74.13 - 0.01, False), (100 / 74.13 + 0.01, True)):
        assert list(SpreadTrimming(spreads, "mad").keeps(rows, "rt")) == [first, True, True, True, False]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Bounds(900, 200), "900 to 200 ms"),
        (lambda: SpreadTrimming(0), "0 spreads"),
        (lambda: SpreadTrimming(2, "iqr"), "'iqr'"),
        (lambda: time_bounds({"trials": {"rt": "outside 3 s to 200 ms"}}, "rt"), "outside 3 s to 200 ms"),
        (lambda: declared_rules({"sessions": {"pasts": "2 or more"}}), "pastes"),
        (lambda: declared_rules({"sessions": {"pastes": "many"}}), "2 or more"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_its_value(make: object, told: str) -> None:
    with pytest.raises(UserError, match=told):
        make()  # type: ignore[operator]


def test_the_studys_own_bounds_come_first_among_the_alternatives() -> None:
    own = alternatives("rt", {"trials": {"rt": "outside 200 ms to 10 s"}}, ["position"])
    assert own[0].rule == Bounds(200, 10_000)
    assert [one.is_own for one in own].count(True) == 1
    none = alternatives("rt", {}, ["position"])
    assert [one.name for one in none if one.is_own] == ["no rule"]
    kinds = {type(one.rule) for one in none}
    assert kinds == {EveryTime, Bounds, SpreadTrimming}
    spreads = [one.rule for one in none if isinstance(one.rule, SpreadTrimming)]
    assert {(one.kind, one.k) for one in spreads} >= {("sd", 2.0), ("sd", 2.5), ("sd", 3.0), ("mad", 2.5)}
    assert all(one.by == ("position",) for one in spreads)


def test_a_time_outside_the_bounds_is_marked_and_its_answer_still_counts(handover: Make) -> None:
    rows = study_rows(human=2, items=8)
    rows.loc[rows.index[6], "rt"] = 12.0
    tables = load(handover(rows, dictionary={"exclude": {"trials": {"rt": "outside 150 ms to 30 s"}}}))
    assert tables.trials.loc[6, "rt_excluded"] == "rt outside 150 ms to 30 s"
    assert tables.trials.loc[6, "excluded_reason"] is None
    assert tables.trials["rt_excluded"].notna().sum() == 1
    assert tables.trials["reading_time_excluded"].isna().all()


def test_each_step_of_the_flow_says_who_is_left_and_why_the_others_went(handover: Make) -> None:
    rows = study_rows(human=4, models=("restorer",), items=8, pilot=True)
    rows.loc[rows["reader"] == "P002", "excluded_reason"] = "missed both checks"
    rows.loc[(rows["reader"] == "P003") & (rows["trial_index"] == 5), "excluded_reason"] = "fire alarm"
    steps = flow_steps(load(handover(rows)).trials)
    people = steps[steps["group"] == "human"].set_index("why")
    # 4 participants and a pilot, 4 practice and 8 test trials each
    counted = {"recorded": (5, 60, 0, 0), "missed both checks": (4, 48, 1, 12), "fire alarm": (4, 47, 0, 1),
               "pilot session": (3, 35, 1, 12), "practice": (3, 23, 0, 12)}  # fmt: skip
    columns = ["readers", "trials", "readers_lost", "trials_lost"]
    assert {why: tuple(people.loc[why, columns]) for why in counted} == counted
    model = steps[steps["group"] == "restorer"].set_index("why")
    assert model.loc["recorded", ["readers", "trials"]].to_list() == [1, 36]
    assert model["trials"].iloc[-1] == 32
    for _, own in steps.groupby("group"):
        before = own["trials"].shift(fill_value=own["trials"].iloc[0])
        assert (before - own["trials_lost"] == own["trials"]).all()
    assert list(people.index[1:3]) == ["missed both checks", "fire alarm"]


def signs_study() -> pd.DataFrame:
    rows = study_rows(human=2, items=8, timeouts=0.0)
    rows["hidden_ms"], rows["paste_count"], rows["keyless_chars"], rows["dropped_frames"] = 0.0, 0.0, 0.0, 0.0
    own = rows.index[(rows["reader"] == "P001") & ~rows["is_practice"].astype(bool)]
    rows.loc[own[0], ["rt", "hidden_ms", "paste_count", "dropped_frames"]] = [120.0, 4000.0, 2.0, 3.0]
    rows.loc[own[1], ["rt", "hidden_ms", "keyless_chars"]] = [199.0, 2500.0, 11.0]
    rows.loc[own[:3], "is_attention_check"] = True
    rows.loc[own[:3], "correct"] = [False, True, False]
    rows.loc[own[3:], "correct"] = [True, True, True, False, False]
    return rows


def test_signs_of_a_session_are_those_of_the_dashboard(handover: Make) -> None:
    rows = signs_study()
    trials = load(handover(rows)).trials
    found = session_signs(trials).loc["P001-session"]
    session = trials[trials["session_id"] == "P001-session"]
    told = session.astype(object).where(session.notna(), None).to_dict("records")
    for row in told:
        row["correct"] = None if row["correct"] is None else bool(row["correct"])
        row["key_log"] = row["response_raw"] = None
    measured = quality.measures(told, {}, {"question_accuracy": 0.3})
    dashboard = {one.kind: one.value for one in measured}
    assert found["question_accuracy"] == pytest.approx(1 - dashboard.pop("question_accuracy")) == 0.6
    assert dashboard.keys() >= {"too_fast", "hidden", "dropped_frames", "pastes", "keyless"}
    for sign, value in dashboard.items():
        assert found[sign] == pytest.approx(value), sign
    assert found["attention_checks_failed"] == 2
    assert found["too_fast"] == 0.25
    further = trials.assign(step_name="confidence", rt=50.0, hidden_ms=9000.0, paste_count=3.0, correct=0.0)
    assert session_signs(pd.concat([trials, further])).equals(session_signs(trials))


def test_sessions_that_meet_a_rule_and_were_kept_are_found(handover: Make) -> None:
    rules = {"attention_checks_failed": "2 or more", "question_accuracy": "below 60%", "hidden": "above 6 s"}
    rules["same_key"] = "above 99%"
    tables = load(handover(signs_study(), dictionary={"exclude": {"sessions": rules}}))
    held = sessions_against_rules(tables.trials, tables.dictionary["exclude"])
    own = held[held["session_id"] == "P001-session"].set_index("sign")["meets"]
    assert own["attention_checks_failed"]
    assert not own["question_accuracy"]  # exactly 60%
    assert own["hidden"]
    assert own.isna()["same_key"]
    assert not held["excluded"].any()


def test_the_flow_of_times_goes_on_from_the_analysed_trials(handover: Make) -> None:
    rows = study_rows(human=3, models=("restorer",), items=8, timeouts=0.0)
    test = rows.index[~rows["is_practice"].astype(bool) & (rows["reader"] == "P001")]
    rows = timed_out(rows, rows.index == test[0])
    rows.loc[test[1], "reading_time"] = None
    rows.loc[test[2], "reading_time"] = 5.0
    trials = load(handover(rows)).trials
    steps = time_steps(trials, "reading_time", Bounds(100, 1e6))
    assert list(steps["group"].unique()) == ["human"]
    assert steps["trials"].to_list() == [24, 23, 22, 21]
    assert steps["trials_lost"].to_list() == [0, 1, 1, 1]
    assert steps["why"].iloc[-1] == "outside the study's bounds (100 to 1,000,000 ms)"


def test_bounds_hold_both_their_ends() -> None:
    assert list(Bounds(200, 1000).keeps(times(199.9, 200, 1000, 1000.1), "rt")) == [False, True, True, False]
