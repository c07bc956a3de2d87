from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from analysis import load
from analysis.exclusions import TIMED, flow, time_bounds
from stimuli.errors import UserError
from tests.analysis.conftest import Make
from tests.analysis.letter_study import LEVELS, study_rows, write_handover


def test_no_row_is_dropped_and_each_left_out_says_why(handover: Make) -> None:
    rows = study_rows(human=2, items=8, pilot=True)
    rows.loc[rows["trial_index"] == 6, "is_filler"] = True
    rows.loc[rows["trial_index"] == 7, "is_attention_check"] = True
    rows.loc[(rows["reader"] == "P001") & (rows["trial_index"] == 8), "excluded_reason"] = "fire alarm"
    trials = load(handover(rows)).trials
    assert len(trials) == len(rows)
    counts = trials["excluded_reason"].value_counts()
    assert counts["practice"] == 8
    assert counts["filler"] == counts["attention check"] == 2
    assert counts["pilot session"] == 12
    assert counts["fire alarm"] == 1
    assert trials["excluded_reason"].isna().sum() == len(rows) - 25


def test_the_flow_begins_with_the_people_who_declined(handover: Make) -> None:
    trials = load(handover(human=3, models=("restorer",), items=8)).trials
    table = flow(trials, {"human": {"kind": "human", "sessions": 3, "finished": 3, "declined": 2}})
    assert dict(table.iloc[0]) == {"human": 2, "restorer": 0}
    assert table.index[0] not in flow(trials, {}).index


def test_a_trial_shown_again_counts_once_with_its_first_answer(handover: Make) -> None:
    rows = study_rows(human=2, items=8)
    again = rows[(rows["reader"] == "P001") & (rows["trial_index"] == 5)].assign(attempt=2)
    trials = load(handover(pd.concat([rows, again]))).trials
    flagged = trials[trials["excluded_reason"] == "shown again (a later attempt)"]
    assert list(flagged["attempt"]) == [2]


def test_of_a_trial_whose_first_attempt_was_never_stored_the_second_counts(handover: Make) -> None:
    rows = study_rows(human=2, items=8)
    lost = (rows["reader"] == "P001") & (rows["trial_index"] == 5)
    later = [rows[lost].assign(attempt=number) for number in (3, 2)]
    trials = load(handover(pd.concat([rows[~lost], *later]))).trials
    own = trials[(trials["reader"] == "P001") & (trials["trial_index"] == 5)].set_index("attempt")
    assert own["excluded_reason"].isna().to_dict() == {2: True, 3: False}
    assert own.loc[3, "excluded_reason"] == "shown again (a later attempt)"


def test_identical_answers_of_a_deterministic_model_count_once(handover: Make) -> None:
    rows = study_rows(models=("restorer",), items=8)
    again = rows.assign(session_id="second", replicate=2)
    changed = again["trial_index"] == 6
    again.loc[changed, "correct"] = ~again.loc[changed, "correct"].astype(bool)
    trials = load(handover(pd.concat([rows, again]))).trials
    repeats = trials["excluded_reason"] == "identical repeat of a deterministic answer"
    assert repeats.sum() == 31
    assert not repeats[(trials["session_id"] == "second") & (trials["trial_index"] == 6)].any()


def test_an_earlier_version_of_the_design_is_kept_apart(handover: Make) -> None:
    rows = study_rows(human=4, items=8)
    rows.loc[rows["reader"] == "P004", "version"] = 2
    trials = load(handover(rows)).trials
    assert set(trials.loc[trials["excluded_reason"].isna(), "reader"]) == {"P004"}


def test_a_session_of_another_design_is_left_out_and_counted(handover: Make) -> None:
    rows = study_rows(human=4, items=8)
    rows.loc[rows["reader"] == "P002", "design_hash"] = "d0"
    trials = load(handover(rows)).trials
    assert set(trials.loc[trials["excluded_reason"].isna(), "reader"]) == {"P001", "P003", "P004"}
    assert flow(trials, {}).loc["Excluded: session of another design", "human"] == 12


def test_the_store_says_which_design_is_the_newest_versions(handover: Make) -> None:
    rows = study_rows(human=3, items=8)
    rows.loc[rows["reader"] == "P003", "design_hash"] = "d2"
    dictionary = {"design_hash": "d2", "collected_design_hash": "d2"}
    tables = load(handover(rows, dictionary=dictionary))
    assert set(tables.trials.loc[tables.trials["excluded_reason"].isna(), "reader"]) == {"P003"}
    assert not tables.design_changed


def test_an_earlier_version_may_have_levels_that_the_study_no_longer_has(handover: Make) -> None:
    rows = study_rows(human=3, items=8)
    old = rows["reader"] == "P001"
    rows["version"] = old.map({True: 1, False: 2})
    rows.loc[old, "position"] = rows.loc[old, "position"].replace("final", "last")
    trials = load(handover(rows)).trials
    assert set(trials.loc[trials["excluded_reason"].isna(), "reader"]) == {"P002", "P003"}


@pytest.mark.parametrize("column", ["reader_kind", "is_pilot", "position", "correct"])
def test_a_missing_column_is_named(handover: Make, column: str) -> None:
    folder = handover(human=1, items=4)
    pd.read_parquet(folder / "trials.parquet").drop(columns=column).to_parquet(folder / "trials.parquet")
    with pytest.raises(UserError, match=rf"trials\.parquet: column '{column}'"):
        load(folder)


def test_a_column_of_the_wrong_type_is_named(handover: Make) -> None:
    folder = handover(human=1, items=4)
    trials = pd.read_parquet(folder / "trials.parquet")
    trials.assign(rt="slow").to_parquet(folder / "trials.parquet")
    with pytest.raises(UserError, match=r"'rt' .*row \d+: '"):
        load(folder)
    trials.assign(correct="yes").to_parquet(folder / "trials.parquet")
    with pytest.raises(UserError, match=r"'correct' .*row \d+: "):
        load(folder)


def test_a_level_that_the_dictionary_does_not_know_is_named(handover: Make) -> None:
    folder = handover(study_rows(human=1, items=4).replace({"position": {"final": "finnal"}}))
    with pytest.raises(UserError, match="'finnal'"):
        load(folder)


def test_a_missing_folder_or_dictionary_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"dictionary\.json"):
        load(tmp_path)
    (tmp_path / "dictionary.json").write_text("{", "utf-8")
    with pytest.raises(UserError, match=r"dictionary\.json.*JSON"):
        load(tmp_path)
    (tmp_path / "dictionary.json").write_text(json.dumps({"factors": {}}), "utf-8")
    with pytest.raises(UserError, match=r"trials\.parquet"):
        load(tmp_path)


def test_time_bounds_are_read_in_milliseconds_and_seconds() -> None:
    bounds = time_bounds({"trials": {"rt": "outside 200 ms to 10 s"}}, "rt")
    assert bounds is not None
    assert (bounds.low, bounds.high) == (200, 10_000)
    assert time_bounds({}, "rt") is None
    with pytest.raises(UserError, match="'below 200 ms'"):
        time_bounds({"trials": {"rt": "below 200 ms"}}, "rt")


def test_timed_sessions_count_for_times_alone_where_the_model_has_others(handover: Make) -> None:
    rows = study_rows(human=1, models=("restorer", "other"), items=8)
    people, restorer, other = (
        rows[rows["reader"] == name] for name in (rows["reader"][0], "restorer", "other")
    )
    sampled = restorer.assign(temperature=0.7, timed=False)
    again = sampled.assign(session_id="timed", timed=True)
    # sessions that a person left out leave the timed ones to count
    left_out = other.assign(timed=False, excluded_reason="wrong endpoint")
    alone = other.assign(session_id="alone", timed=True)
    tables = load(handover(pd.concat([people.assign(timed=None), again, sampled, left_out, alone])))
    trials = tables.trials[~tables.trials["is_practice"]]
    used = trials[trials["excluded_reason"].isna()].groupby(["reader", "session_id"]).size()
    assert used.to_dict() == {
        (people["reader"].iloc[0], people["session_id"].iloc[0]): 8,
        ("restorer", "restorer-session"): 32,
        ("other", "alone"): 32,
    }
    assert any(TIMED in stage for stage in flow(trials, {}).index)


def test_repeats_of_a_sampling_model_all_count(handover: Make) -> None:
    rows = study_rows(models=("restorer",), items=8).assign(temperature=0.7)
    trials = load(handover(pd.concat([rows, rows.assign(session_id="second", replicate=2)]))).trials
    assert (trials["excluded_reason"].isna()).sum() == 64


def test_the_reference_level_comes_first(tmp_path: Path) -> None:
    factors = {"position": {"levels": LEVELS, "reference": "final"}}
    tables = load(write_handover(tmp_path / "h", study_rows(human=1, items=4), factors=factors))
    assert tables.factors["position"][0] == "final"
