"""Effects and lapses put into simulated readers and oracles are recovered, and only where their truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from analysis import load
from analysis.intervals import wilson
from analysis.parameter_recovery import (
    LAPSING,
    Recovered,
    expected_deviations,
    expected_levels,
    recovered,
    recovered_lapses,
    recovered_words,
    recovery_plans,
)
from analysis.plan_runner import carry_out
from tests.analysis.letter_study import study_rows, write_handover
from tests.analysis.word_study import BASE_MS, COSTS_MS, TARGETS, rewrite_dictionary, study, with_forms

RATE, ITEMS = 0.3, 250


def found(folder: Path, reader: dict[str, Any], *, wrong: int, empty: int = 0) -> list[Recovered]:
    """Let an oracle answer 1,000 trials of two choices, so many of them wrong and others not at all."""
    rows = study_rows(baselines=("oracle",), items=ITEMS, timeouts=0.0)
    test = rows.index[~rows["is_practice"].astype(bool)]
    rows["correct"] = pd.Series(True, index=rows.index, dtype="boolean")
    shuffled = np.random.default_rng(1).permutation(test)
    rows.loc[shuffled[:wrong], "correct"] = False
    rows.loc[shuffled[wrong : wrong + empty], ["correct", "response_status"]] = [pd.NA, "empty"]
    own = {"kind": "baseline", "sessions": 1, **reader}
    return recovered_lapses(load(write_handover(folder, rows, readers={"oracle": own})))


def stated(**changes: Any) -> dict[str, Any]:
    return {"use": LAPSING, "settings": {"use": LAPSING, "lapse_rate": RATE}} | changes


def test_half_of_the_lapses_among_two_choices_are_wrong(tmp_path: Path) -> None:
    (one,) = found(tmp_path, stated(), wrong=150)
    assert (one.truth, one.scale, one.estimate) == (RATE, "share", pytest.approx(0.30))
    assert (one.low, one.high) == pytest.approx([2 * end for end in wilson(0.15, 1000)])
    assert one.covered


def test_a_lapse_without_an_answer_counts_as_wrong(tmp_path: Path) -> None:
    (one,) = found(tmp_path, stated(), wrong=150, empty=100)
    assert one.estimate == pytest.approx(0.5) and not one.covered


@pytest.mark.parametrize("reader", [stated(settings={}), stated(use="baseline:random"), {}])
def test_without_a_stated_rate_nothing_is_compared(tmp_path: Path, reader: dict[str, Any]) -> None:
    assert found(tmp_path, reader, wrong=150) == []


def test_a_moving_windows_words_are_held_against_the_costs_of_words_not_of_texts(tmp_path: Path) -> None:
    changed = {place: float(np.log1p(cost / BASE_MS)) for place, cost in COSTS_MS.items()}
    effects = {"scale": "log_ms", "intercept": 8.0, "effects": {"position": dict.fromkeys(COSTS_MS, 1.0)}}
    truth = {"time": effects, "words": {"changed": changed, "substituted": 3.0, "farther": 2.0}}
    study(tmp_path, kind="simulated", dictionary={"truth": truth})
    with_forms(tmp_path)
    tables = load(tmp_path)
    assert "reading_time" not in [plan.measure.name for plan in recovery_plans(tables)]
    rows = recovered_words(tables, "position")
    assert [one.label for one in rows] == ["initial − intact", "internal − intact", "final − intact"]
    assert [one.truth for one in rows] == pytest.approx([changed[one.label.split()[0]] for one in rows])
    assert [one.estimate for one in rows] == pytest.approx([one.truth for one in rows], abs=0.06)
    assert all(one.covered for one in rows)
    wrong = {"time": effects, "words": {"changed": {place: cost + 0.2 for place, cost in changed.items()}}}
    rewrite_dictionary(tmp_path, truth=wrong)
    assert not any(one.covered for one in recovered_words(load(tmp_path), "position"))


def test_effects_of_a_region_and_costs_of_changes_add_up_on_the_same_words(tmp_path: Path) -> None:
    changed = {place: float(np.log1p(cost / BASE_MS)) for place, cost in COSTS_MS.items()}
    of_words = {"word_ms": BASE_MS, "letter_ms": 0.0, "spill_over": 0.0}
    own = {place: cost - 0.1 for place, cost in changed.items()}
    truth = {
        "time": {"scale": "log_ms", "intercept": 8.0, "effects": {}},
        "words": {**of_words, "changed": own},
        "regions": {"scale": "log_ms", "effects": {"goal": {"position": dict.fromkeys(own, 0.1)}}},
    }
    plan = {"measure": "region_time", "compare": "position", "region": "goal", "between": ["simulated"]}
    study(tmp_path, kind="simulated", dictionary={"truth": truth, "planned": {"p": plan}})
    with_forms(tmp_path)
    regions = pd.read_parquet(tmp_path / "regions.parquet")
    regions["region_names"] = np.where(regions["region"].isin(TARGETS), "goal,other", None)
    regions.to_parquet(tmp_path / "regions.parquet")
    tables = load(tmp_path)
    in_words = {one.label: one.truth for one in recovered_words(tables, "position")}
    (plan_of_region,) = [plan for plan in recovery_plans(tables) if plan.measure.region]
    in_region = recovered(carry_out(plan_of_region, tables), tables)
    assert in_words == pytest.approx({f"{place} − intact": cost for place, cost in changed.items()})
    assert {one.label: one.truth for one in in_region} == pytest.approx(in_words)
    assert all(one.covered for one in in_region)


def test_an_oracle_that_is_mostly_wrong_lapses_in_no_more_than_all_trials(tmp_path: Path) -> None:
    (one,) = found(tmp_path, stated(), wrong=700)
    assert (one.estimate, one.high) == (1.0, 1.0)


ACCURACY: dict[str, Any] = {
    "scale": "logit",
    "intercept": 3.0,
    "effects": {"form": {"mild": -0.6, "strong": -1.6}, "speed": {"fast": -0.8}, "band": {"rare": -0.5}},
    "participant_sd": 0.6,
    "item_sd": 0.5,
}
TIME: dict[str, Any] = {
    "scale": "log_ms",
    "intercept": 6.0,
    "effects": {"form": {"strong": 0.26}, "speed": {"fast": -0.2}},
    "participant_sd": 0.2,
    "item_sd": 0.06,
    "residual_sd": 0.28,
    "tail_ms": 90.0,
    "learning": -0.05,
}
FORMS = ("intact", "mild", "strong")


def crossed(people: int = 8, items: int = 12) -> pd.DataFrame:
    """Every participant, in one speed, sees every item, in one band, in every form."""
    rows = pd.MultiIndex.from_product(
        [range(people), range(items), FORMS], names=["participant", "item", "form"]
    ).to_frame(index=False)
    rows["speed"] = np.where(rows["participant"] % 4 == 0, "fast", "slow")
    rows["band"] = np.where(rows["item"] % 2 == 0, "rare", "common")
    rows["before"] = rows.groupby("participant").cumcount()
    return rows.assign(chance=0.5)


def test_an_intercept_is_that_over_the_levels_of_the_other_factors() -> None:
    found = expected_levels(crossed(), "form", FORMS, ACCURACY)
    assert found == pytest.approx({"intact": 2.55, "mild": 1.95, "strong": 0.95})
    only = {**ACCURACY, "effects": {"form": ACCURACY["effects"]["form"]}}
    assert expected_levels(crossed(), "form", FORMS, only)["intact"] == pytest.approx(3.0)


def test_a_factor_between_the_same_participants_adds_to_the_difference() -> None:
    """Each participant has one dose; of those with the high one half are fast, of the others none."""
    rows = crossed().assign(dose=lambda rows: np.where(rows["participant"] % 2 == 0, "high", "low"))
    given = {**ACCURACY, "effects": {**ACCURACY["effects"], "dose": {"high": 0.0}}}
    found = expected_levels(rows.query("form == 'intact'"), "dose", ("low", "high"), given)
    speed = ACCURACY["effects"]["speed"]
    added = (speed.get("fast", 0.0) + speed.get("slow", 0.0)) / 2 - speed.get("slow", 0.0)
    assert added and found["high"] - found["low"] == pytest.approx(added)


def test_a_factor_within_participants_and_items_is_averaged_over_answers() -> None:
    found = expected_levels(crossed(), "speed", ("slow", "fast"), ACCURACY)
    right = expit(2.75 + np.array([0.0, -0.6, -1.6])).mean()
    assert found["slow"] == pytest.approx(logit(right))
    assert logit(right) < 2.75 - (0.6 + 1.6) / 3


def test_a_combination_is_averaged_over_the_levels_of_the_other_factor() -> None:
    rows = crossed().assign(tempo=lambda rows: np.where(rows["before"] // 3 % 2 == 0, "fast", "slow"))
    effects = {"form": {"strong": 0.2}, "tempo": {"fast": -0.1}, "form x tempo": {"strong x fast": 0.3}}
    given = {**TIME, "effects": effects, "tail_ms": 0.0, "learning": 0.0}
    forms = expected_levels(rows, "form", FORMS, given)
    assert forms["strong"] - forms["intact"] == pytest.approx(0.2 + 0.3 / 2)
    tempi = expected_levels(rows, "tempo", ("slow", "fast"), given)
    assert tempi["fast"] - tempi["slow"] == pytest.approx(-0.1 + 0.3 / 3)


LAPSES = {"rate": 0.05, "slower": 2.0}


@pytest.fixture(scope="module")
def timed() -> pd.DataFrame:
    """Many participants' times with everything that can be put into them."""
    rows, draw = crossed(people=2000, items=20), np.random.default_rng(4)
    eta = TIME["intercept"] + rows["form"].map(TIME["effects"]["form"]).fillna(0.0)
    eta += rows["speed"].map(TIME["effects"]["speed"]).fillna(0.0) - 0.05 * np.log1p(rows["before"])
    eta += draw.normal(0, 0.2, 2000)[rows["participant"]] + draw.normal(0, 0.28, len(rows))
    own = draw.normal(0, 0.1, 2000)[rows["participant"]]  # of the fast
    eta += draw.normal(0, 0.06, len(rows)) + np.where(rows["speed"] == "fast", own, 0.0)
    times = np.exp(eta) + draw.exponential(90.0, len(rows))
    times *= np.where(draw.random(len(rows)) < 0.05, 2.0, 1.0)
    return rows.assign(log=np.log(times))


def test_times_with_a_tail_lead_to_the_mean_of_their_logarithms(timed: pd.DataFrame) -> None:
    found = expected_levels(timed, "form", FORMS, TIME, LAPSES)
    assert found == pytest.approx(timed.groupby("form")["log"].mean().to_dict(), abs=0.012)
    assert found["intact"] > 6.0 and found["strong"] - found["intact"] < 0.25


def test_standard_deviations_contain_what_the_model_does_not(timed: pd.DataFrame) -> None:
    # items' deviations of ``timed`` are drawn anew in each trial
    given = {**TIME, "slope_sd": 0.1, "item_sd": 0.0, "residual_sd": float(np.hypot(0.28, 0.06))}
    found = expected_deviations(timed, "form", FORMS, given, LAPSES)
    centred = timed["log"] - timed.groupby("form")["log"].transform("mean")
    by_participant = centred.groupby(timed["participant"])
    within = float((centred - by_participant.transform("mean")).var()) * 60 / 59
    between = float(by_participant.mean().var()) - within / 60
    assert found["participant"] == pytest.approx(np.sqrt(between), rel=0.03)
    assert found["residual"] == pytest.approx(np.sqrt(within), rel=0.03)


def test_a_factor_adds_to_the_deviations_of_those_between_whom_it_varies() -> None:
    found = expected_deviations(crossed(), "form", FORMS, ACCURACY)
    assert found["participant"] == pytest.approx(
        np.hypot(0.6, 0.8 * np.std([1, 1, 0, 0, 0, 0, 0, 0], ddof=1))
    )
    assert found["item"] == pytest.approx(np.hypot(0.5, 0.5 * np.std([1, 0] * 6, ddof=1)))
    of_speed = expected_deviations(crossed(), "speed", ("slow", "fast"), ACCURACY)
    assert 0.5 < of_speed["participant"] < 0.6, "forms within participants make log odds smaller"
    only = {**ACCURACY, "effects": {"form": ACCURACY["effects"]["form"]}}
    assert expected_deviations(crossed(), "form", FORMS, only)["participant"] == pytest.approx(0.6)


def test_lapses_are_right_by_chance() -> None:
    found = expected_levels(crossed(), "form", FORMS, ACCURACY, {"rate": 0.1, "slower": 2.0})
    assert found["intact"] == pytest.approx(logit(0.9 * expit(2.55) + 0.05))
