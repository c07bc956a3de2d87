"""Costs of people and models: what was put into simulated readers comes out, and small cases come out as by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis import Tables, load
from analysis.costs.ratios import (
    cost_profiles,
    crossed_profile,
    log_ratios,
    paired_profile,
    profiles,
    unit_costs,
)
from analysis.costs.times import time_scales
from analysis.costs.words import frequency_of, linking, spill_over, word_table
from analysis.planned import plans
from stimuli.errors import UserError
from tests.analysis import decision_study, word_study
from tests.analysis.letter_study import LEVELS, TIME, study_rows, write_handover
from tests.analysis.word_study import BASE_MS, COSTS_MS, MS_PER_BIT, SPILL, study


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return load(study(tmp_path_factory.mktemp("words")))


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return load(study(tmp_path_factory.mktemp("linked"), linked=True))


def rows_of(values: dict[tuple[str, str, str], float]) -> pd.DataFrame:
    return pd.DataFrame(
        [(reader, item, level, value) for (reader, item, level), value in values.items()],
        columns=["reader", "item", "position", "value"],
    )


def test_a_profile_is_the_mean_over_participants_of_their_own_differences() -> None:
    rows = rows_of(
        {
            ("a", "1", "intact"): 1.0,
            ("a", "2", "intact"): 3.0,
            ("a", "3", "final"): 5.0,
            ("b", "1", "intact"): 10.0,
            ("b", "2", "final"): 11.0,
            ("b", "3", "final"): 14.0,
        }
    )
    found = crossed_profile(rows, "position", ("intact", "final"), seed=1, resamples=200)
    assert found.estimate[0] == pytest.approx(((5 - 2) + (12.5 - 10)) / 2)
    assert (found.participants, found.items, found.resampled) == (2, 3, "participants and items")


def test_a_models_profile_pairs_its_items_and_leaves_out_those_without_both() -> None:
    rows = rows_of(
        {
            ("m", "1", "intact"): 1.0,
            ("m", "1", "final"): 2.0,
            ("m", "2", "intact"): 4.0,
            ("m", "2", "final"): 7.0,
            ("m", "3", "final"): 100.0,
        }
    )
    found = paired_profile(rows, "position", ("intact", "final"), seed=1, resamples=200)
    assert found.estimate[0] == pytest.approx(2.0)
    assert found.items == 2
    assert found.draws.min() == pytest.approx(1.0)
    assert found.draws.max() == pytest.approx(3.0)


def test_a_profile_of_one_participant_has_no_interval() -> None:
    rows = rows_of({("a", "1", "intact"): 1.0, ("a", "2", "final"): 3.0})
    found = crossed_profile(rows, "position", ("intact", "final"), seed=1, resamples=50)
    assert found.estimate[0] == 2.0
    assert np.isnan(found.interval(0).low)


def test_a_profile_without_an_intact_level_is_refused() -> None:
    with pytest.raises(UserError, match="no value in 'intact'"):
        crossed_profile(rows_of({("a", "1", "final"): 1.0}), "position", ("intact", "final"), seed=1)
    with pytest.raises(UserError, match="no item has a value both"):
        paired_profile(rows_of({("a", "1", "final"): 1.0}), "position", ("intact", "final"), seed=1)


def test_the_crossed_bootstrap_covers_the_true_cost_about_as_often_as_it_says() -> None:
    """Items and participants vary in the effect; an interval over participants alone would miss it far more often."""
    draw = np.random.default_rng(7)
    covered, narrow = 0, 0
    for run in range(100):
        slopes_p, slopes_i = draw.normal(0, 0.05, 16), draw.normal(0, 0.15, 16)
        rows = [
            (
                f"p{p}",
                f"i{i}",
                level,
                (0.2 + slopes_p[p] + slopes_i[i]) * (level == "final") + draw.normal(0, 0.1),
            )
            for p in range(16)
            for i in range(16)
            for level in ("intact", "final")
        ]
        table = pd.DataFrame(rows, columns=["reader", "item", "position", "value"])
        ends = crossed_profile(table, "position", ("intact", "final"), seed=run, resamples=400).interval(0)
        covered += ends.low <= 0.2 <= ends.high
        own = table.pivot_table(index="reader", columns="position", values="value")
        difference = own["final"] - own["intact"]
        narrow += abs(difference.mean() - 0.2) <= 2.13 * difference.std() / 4
    assert covered >= 88
    assert narrow < 60


def test_log_ratios_of_people_are_those_put_in(tmp_path: Path) -> None:
    tables = load(write_handover(tmp_path, study_rows(human=48, items=48, seed=8)))
    found = cost_profiles(unit_costs(tables, "position"), study="t", resamples=500)
    table = log_ratios(found, "position").query("measure == 'reading_time'").set_index("position")
    for level in LEVELS[1:]:
        assert table.loc[level, "low"] < TIME[level] < table.loc[level, "high"]
        assert table.loc[level, "log_ratio"] == pytest.approx(TIME[level], abs=0.05)
    assert (table["participants"] == 48).all()
    assert table.loc["final", "percent"] == pytest.approx(100 * np.expm1(table.loc["final", "log_ratio"]))


def test_tokens_and_people_stand_side_by_side_as_ratios_and_profiles(tmp_path: Path) -> None:
    rows = study_rows(human=24, models=("m",), items=24)
    tokens = {"intact": 100.0, "initial": 200.0, "internal": 125.0, "final": 150.0}
    rows["reasoning_tokens"] = rows["position"].map(tokens).where(rows["reader_kind"] == "model")
    tables = load(write_handover(tmp_path, rows))
    found = cost_profiles(unit_costs(tables, "position"), study="t", resamples=300)
    table = log_ratios(found, "position").query("measure == 'reasoning_tokens'").set_index("position")
    assert table["log_ratio"].to_dict() == pytest.approx(
        {k: np.log(v / 100) for k, v in tokens.items() if v > 100}
    )
    shapes = profiles(found, "position")
    own = shapes.query("measure == 'reasoning_tokens'").set_index("position")
    logs = np.log([2.0, 1.25, 1.5])
    assert own["scaled"].to_numpy() == pytest.approx(logs / logs.mean())
    people = shapes.query("measure == 'reading_time'").set_index("position")
    assert people["scaled"].mean() == pytest.approx(1.0)
    assert own["difference"].to_numpy() == pytest.approx((own["scaled"] - people["scaled"]).to_numpy())
    assert people["difference"].isna().all()
    with pytest.raises(UserError, match="no profile of nobody"):
        profiles(found, "position", ("nobody", "rt"))


def test_latency_counts_only_where_a_trial_was_timed_alone(tmp_path: Path) -> None:
    rows = study_rows(models=("m", "n"), items=6)
    rows["latency_ms"] = (
        rows["position"].map({"intact": 100.0, "initial": 300.0}).where(rows["reader"] == "m")
    )
    rows["timed"] = rows["reader"] == "m"
    costs = unit_costs(load(write_handover(tmp_path, rows)), "position")
    latency = costs.rows.query("measure == 'latency_ms'")
    assert set(latency["reader_group"]) == {"m"}
    table = log_ratios(cost_profiles(costs, resamples=50), "position").set_index(["measure", "position"])
    assert table.loc[("latency_ms", "initial"), "log_ratio"] == pytest.approx(np.log(3))


def test_words_know_their_zone_length_and_the_words_before(words: Tables) -> None:
    table = word_table(words, "position").words
    first = table[(table["item_id"] == "s01") & (table["position"] == "initial")].set_index("region")
    zones = [first["zone"].get(n) for n in range(len(word_study.WORDS))]
    expected: list[str | None] = [None] * len(word_study.WORDS)
    for at in word_study.TARGETS:
        expected[at : at + 3] = ["target", "target + 1", "target + 2"]
    assert [None if pd.isna(zone) else zone for zone in zones] == expected
    assert first.loc[3, "letters"] == 7
    assert first.loc[4, "previous_letters"] == 7
    assert first.loc[5, "second_letters"] == 7
    assert np.isnan(first.loc[0, "previous_letters"])
    assert first.loc[3, "zipf"] == frequency_of("counted", "en")
    intact = table[(table["item_id"] == "s01") & (table["position"] == "intact")].set_index("region")
    assert intact["zone"].fillna("").tolist() == first["zone"].fillna("").tolist()


def test_spill_over_in_milliseconds_is_what_was_put_in(words: Tables) -> None:
    found = spill_over(words, "position", covariates=())
    table = found.table[found.table["scale"] == "ms"].set_index(["zone", "position"])
    shares = {"target": 1.0, "target + 1": SPILL[0], "target + 2": SPILL[1]}
    for zone, share in shares.items():
        for level, cost in COSTS_MS.items():
            row = table.loc[(zone, level)]
            assert abs(row["estimate"] - share * cost) < 3.5 * row["se"]
            assert row["low"] < row["estimate"] < row["high"]
    assert table.loc[("target", "initial"), "low"] > 60
    assert table["intact"].to_numpy() == pytest.approx(BASE_MS, rel=0.06)
    logs = found.table[found.table["scale"] == "log"].set_index(["zone", "position"])
    ratio = 100 * (COSTS_MS["initial"] / BASE_MS)
    assert logs.loc[("target", "initial"), "percent"] == pytest.approx(ratio, abs=6)
    assert set(found.table["reader_group"]) == {"human"}


def test_surprisal_of_changed_words_and_of_those_after_is_told_apart(words: Tables) -> None:
    costs = unit_costs(words, "position")
    table = costs.rows.groupby(["measure", "position"])["cost"].mean()
    for level, bits in word_study.BITS.items():
        rise = table["surprisal_changed"][level] - table["surprisal_changed"]["intact"]
        assert rise == pytest.approx(bits)
        assert table["surprisal_after"][level] == pytest.approx(table["surprisal_after"]["intact"])
    times = table["time_after"]
    assert times["initial"] > times["internal"] > times["intact"]


def test_milliseconds_per_bit_are_recovered_and_surprisal_foretells_unseen_items(linked: Tables) -> None:
    told = linking(linked, "position", words=("all", "unchanged"))
    found = told.set_index(["words", "baseline", "spill_over"])
    for key in (("all", False, False), ("unchanged", True, True), ("all", True, True)):
        row = found.loc[key]
        assert row["slope_low"] < MS_PER_BIT < row["slope_high"]
        assert row["total_low"] < MS_PER_BIT < row["total_high"]
        assert row["gain"] > 0.1
        assert row["gain_high"] > row["gain"] > row["gain_low"] > 0
        assert row["delta_aic"] < -50
        assert row["sound"]
    assert len(found) == 8
    assert np.isfinite(found["slope"]).all()


def test_times_on_both_scales_agree_with_what_was_put_in(tmp_path: Path) -> None:
    planned = {
        "reading": {"measure": "reading_time", "compare": "position", "between": ["human"], "contrasts": []}
    }
    tables = load(write_handover(tmp_path, study_rows(human=24, items=24), planned=planned))
    plan = next(one for one in plans(tables) if one.measure.name == "reading_time")
    found = time_scales(plan, tables)
    assert found.own.model is not None
    assert (found.own.model.family, found.own.model.link) == ("Gamma", "identity")
    table = found.table.set_index("contrast")
    middle = np.exp(TIME["intercept"] + 0.2**2 / 2 + 0.1**2 / 2 + 0.3**2 / 2)
    for level in LEVELS[1:]:
        row = table.loc[f"{level} − intact"]
        assert row["percent_low"] < 100 * np.expm1(TIME[level]) < row["percent_high"]
        assert row["ms_low"] < middle * np.expm1(TIME[level]) * 1.25
        assert row["ms_high"] > middle * np.expm1(TIME[level]) * 0.75
    assert table.loc["initial − intact", "agree"] == "same"
    with pytest.raises(UserError, match="is no time"):
        time_scales(replace(plan, measure=replace(plan.measure, unit="")), tables)
    with pytest.raises(UserError, match="'poisson'"):
        time_scales(plan, tables, "poisson")


@pytest.fixture(scope="module")
def decisions(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return load(decision_study.study(tmp_path_factory.mktemp("decisions"), shared))


@pytest.mark.shared
def test_real_decisions_on_transposed_nonwords_take_longer_on_either_scale(decisions: Tables) -> None:
    found = time_scales(next(one for one in plans(decisions) if one.planned), decisions)
    row = found.table.iloc[0]
    used = decisions.trials[decisions.trials["rt_excluded"].isna()]
    own = used.assign(log=np.log(used["rt"])).pivot_table(
        index="reader", columns="position", values=["rt", "log"]
    )
    assert row["log_low"] > 0
    assert row["ms_low"] > 0
    assert row["agree"] == "same"
    log = (own["log"]["transposed"] - own["log"]["replaced"]).mean()
    assert row["log_estimate"] == pytest.approx(log, abs=0.01)
    ms = (own["rt"]["transposed"] - own["rt"]["replaced"]).mean()
    assert row["ms_low"] < ms < row["ms_high"]


@pytest.mark.shared
def test_real_log_ratios_are_those_of_the_mixed_model(decisions: Tables) -> None:
    profile = cost_profiles(unit_costs(decisions, "position"), study="t", resamples=300)
    row = log_ratios(profile, "position").iloc[0]
    plan = next(one for one in plans(decisions) if one.planned)
    model = time_scales(plan, decisions).log.contrasts[0]
    assert row["participants"] == 124
    assert row["log_ratio"] == pytest.approx(model.estimate, abs=0.01)
    assert row["low"] < model.estimate < row["high"]
