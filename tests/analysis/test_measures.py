"""Measures against counts made by hand and printed figures: accuracy, ratios, recovery and signal detection."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import load
from analysis.exclusions import IDENTICAL, TIMED
from analysis.frames import missing_rows
from analysis.measures.accuracy import accuracy, adjusted_accuracy, against_chance, missingness, with_chance
from analysis.measures.recovery import (
    recovered_words,
    recovery,
    recovery_rate,
    recovery_trials,
    with_one_typo,
    words_of,
)
from analysis.measures.resampling import bootstrap, interval, resampled_means
from analysis.measures.retention import (
    as_printed,
    cost_ratio,
    cost_ratios,
    costs_of,
    relative_gain,
    relative_gains,
    retention,
    retentions,
)
from analysis.measures.signal_detection import (
    Classes,
    probit_data,
    probit_model,
    sensitivity,
    sensitivity_and_bias,
    signal_detection,
)
from analysis.measures.similarity import cosines, similarity
from analysis.mixed import fit
from analysis.plan_runner import analyse_missingness, analyse_shares
from analysis.planned import plans
from stimuli.errors import UserError
from tests.analysis.conftest import Make
from tests.analysis.letter_study import PLANNED, study_rows, timed_out
from tests.analysis.measured import trials_of


def ten_answers() -> pd.DataFrame:
    """Six right, one wrong, a refusal, a timeout, a reply that nobody could read; one that nobody judged."""
    rows = [{"correct": 1.0}] * 6 + [{"correct": 0.0}]
    rows += [{"correct": None, "response_status": one} for one in ("refused", "timeout", "unparsed")]
    rows += [{"correct": None, "response_status": "valid"}, {"correct": 1.0, "excluded_reason": "practice"}]
    return trials_of([{"cond": "kf", **row} for row in rows])


def test_answers_that_failed_are_counted_by_kind_as_wrong_left_out_and_at_chance() -> None:
    (row,) = accuracy(ten_answers().assign(chance=0.25), ["cond"]).to_dict("records")
    assert (row["trials"], row["valid"], row["missing"], row["correct"]) == (10, 7, 3, 6)
    shares = {
        "wrong": 6 / 10,
        "valid_only": 6 / 7,
        "chance": (6 + 3 * 0.25) / 10,
        "lowest": 0.6,
        "highest": 0.9,
    }
    assert {name: row[name] for name in shares} == pytest.approx(shares)
    for way in ("wrong", "valid_only", "chance"):
        assert row[f"{way}_low"] < row[way] < row[f"{way}_high"]
    (row,) = missingness(ten_answers(), ["cond"]).to_dict("records")
    assert (row["trials"], row["missing"], row["missing_share"]) == (11, 3, pytest.approx(3 / 11))
    assert (row["refused"], row["timeout"], row["unparsed"], row["valid"]) == (1, 1, 1, 8)
    nothing = trials_of([{"correct": None, "response_status": "unparsed", "answer": "A"}] * 4)
    for trials, expected in ((ten_answers(), (0.6, 6 / 7, 0.3)), (nothing, (0, np.nan, 1))):
        (row,) = adjusted_accuracy(trials).to_dict("records")
        found = row["accuracy"], row["adjusted_accuracy"], row["out_of_context_ratio"]
        assert found == pytest.approx(expected, nan_ok=True)


def test_a_persons_interval_is_over_participants() -> None:
    person = {"reader_kind": "human", "reader_group": "human"}
    rows = [
        {**person, "reader": reader, "session_id": reader, "correct": right}
        for reader, right in (("P1", 1.0), ("P2", 0.0), ("P3", 1.0))
        for _ in range(50)
    ]
    (row,) = accuracy(trials_of(rows)).to_dict("records")
    # three all-or-nothing people: any share of whole people may come up, so the interval spans everything
    assert (row["wrong_low"], row["wrong_high"]) == (0.0, 1.0)


def test_chance_is_one_of_the_items_choices() -> None:
    trials = trials_of([{"item_id": item, "cond": "kf"} for item in "aba"])
    trials.loc[2, "trial_type"] = "recover"
    choices = [json.dumps(list(letters)) for letters in ("xy", "abcd")]
    items = pd.DataFrame({"set": "words", "item_id": ["a", "b"], "cond": "kf", "choices": choices})
    assert list(with_chance(trials, items, {"cond": ["kf"]})["chance"]) == [0.5, 0.25, 0.0]
    with pytest.raises(UserError, match=r"choices 1\b"):
        with_chance(trials, items[:1], {"cond": ["kf"]})


def missing_study() -> pd.DataFrame:
    rows = study_rows(human=12, models=("restorer",), items=16, timeouts=0.0)
    test = ~rows["is_practice"].astype(bool)
    lost = test & (rows["position"] == "initial") & (rows["trial_index"] % 3 == 0)
    lost |= test & (rows["position"] != "initial") & (rows["trial_index"] % 11 == 0)
    return timed_out(rows, lost)


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


@pytest.mark.parametrize(("units", "has_interval"), [(1, False), (2, False), (3, True)])
def test_a_bootstrap_over_fewer_than_three_units_has_no_interval(units: int, has_interval: bool) -> None:
    values = np.arange(units, dtype=float)[:, None]
    assert np.isfinite(bootstrap(values, lambda drawn: drawn[:, 0], 1, 200).low) == has_interval
    assert np.isfinite(interval(resampled_means(values, 1, 200)[:, 0]).high) == has_interval


def test_a_bootstrap_interval_of_a_mean_is_the_normal_one_for_many_units() -> None:
    values = np.random.default_rng(5).normal(3, 2, (900, 1))
    found = bootstrap(values, lambda means: means[:, 0], 7, 8000)
    se = values.std() / 30
    assert found.low == pytest.approx(values.mean() - 1.96 * se, abs=0.2 * se)
    assert found.high == pytest.approx(values.mean() + 1.96 * se, abs=0.2 * se)
    assert resampled_means(values, 7, 3).tolist() == resampled_means(values, 7, 3).tolist()


TABLE_3 = Path(__file__).parent / "data" / "typobench_table3.csv"


def table_3() -> dict[tuple[str, str], dict[str, float]]:
    lines = [line for line in TABLE_3.read_text("utf-8").splitlines() if not line.startswith("#")]
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in csv.DictReader(lines):
        found.setdefault((row["dataset"], row["model"]), {})[row["row"]] = float(row["printed"])
    return found


@pytest.mark.parametrize(
    ("model", "cells"), table_3().items(), ids=lambda key: "-".join(key) if isinstance(key, tuple) else ""
)
def test_retention_is_what_typobench_prints(model: tuple[str, str], cells: dict[str, float]) -> None:
    """Cells are printed to 0.1, so a mean of four can be off by 0.05 before it is rounded by 0.05 itself."""
    kept = retention(cells["BASE"], [cells[row] for row in ("INS-BEG", "INS-END", "DEL-BEG", "DEL-END")])
    assert kept.absolute == pytest.approx(cells["absolute"], abs=0.1 + 1e-9)
    off = 0.05 + 100 * (0.05 + 0.05 * kept.relative / 100) / cells["BASE"]
    assert kept.relative == pytest.approx(cells["relative"], abs=off)


def test_typobenchs_example_of_retention() -> None:
    # Gemma-2-2B on GSM8K: (42.0 + 42.8 + 37.3 + 40.3) / 4 = 40.6 of 59.3, printed as 40.6/68.5%
    kept = retention(59.3, [42.0, 42.8, 37.3, 40.3])
    assert (round(kept.absolute, 1), round(kept.relative, 1)) == (40.6, 68.5)
    assert np.isnan(retention(0.0, [10.0]).relative)
    with pytest.raises(UserError, match="0 transforms"):
        retention(50.0, [])


def test_relative_gain_of_a_published_cell() -> None:
    # GPT-4 at 100%: 323, 338 and 215 of 346 questions right, printed as 87.80
    assert round(relative_gain(323 / 346, 338 / 346, 215 / 346), 2) == 87.80
    # Falcon-40b at 20% does better than on intact text, printed as 101.49
    assert relative_gain(59.25, 58.96, 39.60) == pytest.approx(101.49, abs=0.02)
    assert np.isnan(relative_gain(0.5, 0.4, 0.4))
    assert as_printed(relative_gain(38.73, 47.40, 39.31)) == "< 0"
    assert as_printed(0.0) == as_printed(relative_gain(0.6, 0.5, 0.6)) == "0.00"


def answered(shares: dict[str, float], items: int, group: str = "m") -> list[dict[str, object]]:
    return [
        {"item_id": f"i{n}", "cond": level, "correct": float(n < round(share * items)), "reader_group": group}
        for level, share in shares.items()
        for n in range(items)
    ]


def test_relative_gains_have_intervals_and_flags() -> None:
    weak = answered({"ori": 0.45, "kf": 0.44, "sub": 0.4}, 20, "weak")
    trials = trials_of([*answered({"ori": 0.9, "kf": 0.7, "sub": 0.4}, 100), *weak])
    table = relative_gains(trials, "cond", intact="ori", substituted="sub")
    table = table.set_index(["reader_group", "cond"])
    strong = table.loc[("m", "kf")]
    assert strong["rpg"] == pytest.approx(60.0)
    assert strong["rpg_low"] < 60 < strong["rpg_high"]
    assert strong["gap"] == pytest.approx(50)
    assert not strong["flagged"]
    assert table.loc[("weak", "kf"), "flagged"]
    assert table.loc[("m", "ori"), "printed"] == "100.00"
    assert table.loc[("m", "sub"), "rpg"] == 0
    # all levels of an item are drawn together: a level that equals the intact one has no uncertainty at all
    same = trials_of(answered({"ori": 0.9, "kf": 0.9, "sub": 0.4}, 100))
    exact = relative_gains(same, "cond", intact="ori", substituted="sub").set_index("cond").loc["kf"]
    assert (exact["rpg_low"], exact["rpg_high"]) == (100, 100)


def test_retentions_average_levels_and_keep_their_groups() -> None:
    trials = trials_of(answered({"base": 0.8, "beg": 0.4, "end": 0.6, "word": 0.8}, 50))
    groups = {"character": ["beg", "end"], "word": ["word"]}
    table = retentions(trials, "cond", intact="base", groups_of_levels=groups).set_index("levels")
    assert table.loc["character", ["absolute", "relative"]].to_list() == pytest.approx([50.0, 62.5])
    assert table.loc["word", "relative"] == pytest.approx(100)
    assert table.loc["character", "relative_low"] < 62.5 < table.loc["character", "relative_high"]
    assert not table["flagged"].any()
    whole = retentions(trials, "cond", intact="base")
    assert whole["absolute"].to_list() == pytest.approx([60.0])
    nothing = trials_of(answered({"base": 0.0, "beg": 0.1}, 20))
    assert retentions(nothing, "cond", intact="base")["flagged"].all()


def test_the_interval_of_retention_of_people_is_over_participants_too() -> None:
    draw = np.random.default_rng(1)
    able = {f"p{n}": draw.uniform(0.2, 0.95) for n in range(8)}
    rows = [
        {"reader": name, "reader_kind": "human", "reader_group": "human", "item_id": f"i{item}", "cond": cond,
         "correct": bool(draw.random() < (1 if cond == "base" else share))}
        for name, share in able.items() for item in range(60) for cond in ("base", "beg")
    ]  # fmt: skip
    trials = trials_of(rows)
    (found,) = retentions(trials, "cond", intact="base").to_dict("records")
    by_person = trials[trials["cond"] == "beg"].groupby("reader")["correct"].mean()
    se = 100 * float(by_person.astype(float).std()) / np.sqrt(8)
    assert found["relative_high"] - found["relative_low"] > 2.5 * se
    alike = trials.assign(correct=True)
    (same,) = retentions(alike, "cond", intact="base").to_dict("records")
    assert same["relative"] == 100 and np.isnan(same["relative_low"]), "nothing varies"


@pytest.mark.parametrize(("people", "verdict"), [(2, ""), (6, "above")])
def test_few_participants_give_no_verdict_on_chance(people: int, verdict: str) -> None:
    rows = [
        {"reader": f"p{n}", "reader_kind": "human", "reader_group": "human", "item_id": f"i{item}", "cond": "a",
         "correct": item > 0, "chance": 0.5, "trial_type": "choose"}
        for n in range(people) for item in range(20)
    ]  # fmt: skip
    (found,) = against_chance(trials_of(rows), ["cond"]).to_dict("records")
    assert found["p_adjusted"] < 0.001 and found["verdict"] == verdict


def test_cost_ratios_by_hand_published_and_corrected() -> None:
    found = cost_ratio(np.array([10.0, 20.0, 0.0, np.nan]), np.array([20.0, 10.0, 5.0, 9.0]))
    # ratios 2 and 1/2, and one item without: geometric 1, TypoBench's (2 + 0.5 + 0) / 3, sums 35 / 30
    assert found.corrected == pytest.approx(1.0)
    assert found.published == pytest.approx(2.5 / 3)
    assert found.of_sums == pytest.approx(35 / 30)
    assert (found.items, found.without) == (2, 1)
    there = cost_ratio(np.array([3.0, 8.0]), np.array([5.0, 9.0]))
    back = cost_ratio(np.array([5.0, 9.0]), np.array([3.0, 8.0]))
    assert there.corrected == pytest.approx(1 / back.corrected)
    assert np.isnan(cost_ratio(np.array([0.0]), np.array([4.0])).corrected)


def costly() -> pd.DataFrame:
    rows = []
    for n in range(12):
        for level, tokens, late in (("base", 20 + n, 100.0), ("kf", 30 + n, 150.0)):
            here = {"item_id": f"i{n}", "cond": level, "prompt_tokens": tokens, "completion_tokens": 10}
            rows.append({**here, "session_id": "answers"})
            rows.append({**here, "session_id": "again", "excluded_reason": IDENTICAL})
            timed = {"session_id": "timed", "excluded_reason": TIMED, "timed": True, "latency_ms": late}
            rows.append({**here, **timed})
    return trials_of(rows)


def test_timed_sessions_count_for_times_alone() -> None:
    trials = costly()
    assert set(costs_of(trials, "prompt_tokens")["session_id"]) == {"answers"}
    assert set(costs_of(trials, "latency_ms")["session_id"]) == {"timed"}
    table = cost_ratios(trials, "cond", intact="base").set_index("measure")
    assert table.loc["latency_ms", "ratio"] == pytest.approx(1.5)
    tokens = np.arange(12) + 20.0
    assert table.loc["prompt_tokens", "ratio"] == pytest.approx(np.exp(np.log((tokens + 10) / tokens).mean()))
    assert table.loc["total_tokens", "published"] == pytest.approx(((tokens + 20) / (tokens + 10)).mean())
    assert table.loc["completion_tokens", "ratio"] == 1
    assert table.loc["prompt_tokens", "ratio_low"] < table.loc["prompt_tokens", "ratio"]
    assert "ttft_ms" not in table.index
    with pytest.raises(UserError, match="prompt_tokens"):
        cost_ratios(trials, "cond", intact="base", measures=["prompt_token"])


def test_cosines_by_hand() -> None:
    one = np.array([[1.0, 0.0], [1.0, 1.0], [3.0, 4.0], [0.0, 0.0]])
    other = np.array([[0.0, 2.0], [2.0, 2.0], [4.0, 3.0], [1.0, 0.0]])
    found = cosines(one, other)
    assert found[:3].tolist() == pytest.approx([0.0, 1.0, 24 / 25])
    assert np.isnan(found[3])
    with pytest.raises(UserError, match=r"\(4, 2\) and \(3, 2\)"):
        cosines(one, other[:3])


def test_a_cosine_near_one_may_say_nothing_about_the_pairs() -> None:
    draw = np.random.default_rng(1)
    common = 10 * np.ones(32)
    one, other = common + draw.normal(size=(60, 32)), common + draw.normal(size=(60, 32))
    unrelated = similarity(one, other, seed=3, permutations=400)
    assert unrelated.cosine > 0.98
    assert abs(unrelated.centred) < 0.1
    assert unrelated.unpaired == pytest.approx(unrelated.cosine, abs=0.002)
    assert unrelated.p > 0.05
    related = similarity(one, one + draw.normal(0, 0.3, one.shape), seed=3, permutations=400)
    assert related.centred > 0.8
    assert related.p == pytest.approx(1 / 401)
    assert related.low <= related.cosine <= related.high


INTACT = "The judge slept in court today."
SHOWN = "The jugde slpet in cuort today."


def counts(answer: str | None, intact: str = INTACT, shown: str = SHOWN) -> tuple[int, int, int, int, int]:
    found = recovered_words(intact, shown, answer)
    return found.changed, found.recovered, found.with_one_typo, found.unchanged, found.kept


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (INTACT, (3, 3, 3, 3, 3)),
        ("the JUDGE slept in court, today", (3, 3, 3, 3, 3)),  # case and punctuation do not count
        (SHOWN, (3, 0, 0, 3, 3)),  # an echo is one exchange away and recovers nothing
        ("The judgge slept in cuort today", (3, 1, 2, 3, 3)),  # one letter too many; one echo
        ("The jdge slept in courtt tday", (3, 1, 3, 3, 2)),  # typing errors in changed and unchanged words
        ("The judge in court today.", (3, 2, 2, 3, 3)),  # a word left out does not shift the rest
        ("I think it says: the judge slept in court today", (3, 3, 3, 3, 3)),
        ("The magistrate slept in court today.", (3, 2, 2, 3, 3)),
        ("court slept judge", (3, 1, 1, 3, 0)),  # out of order
        ("", (3, 0, 0, 3, 0)),
        (None, (3, 0, 0, 3, 0)),
    ],
)
def test_words_recovered_of_words_changed(answer: str | None, expected: tuple[int, ...]) -> None:
    assert counts(answer) == expected


def test_words_count_as_changed_where_they_moved_or_got_lost_but_not_for_a_capital() -> None:
    intact, moved = "we read old books", "old we read books"
    assert counts(intact, intact, moved)[:2] == (3, 3)
    assert counts(moved, intact, moved)[1] < 3
    assert counts(intact, intact, "we read books") == (1, 1, 1, 3, 3)
    assert counts("ann reads", "Ann reads", "aNn reads") == (0, 0, 0, 2, 2)


def test_words_are_those_that_are_scrambled() -> None:
    assert words_of("The re-do don\u2019t caf\u0065\u0301!") == ("the", "re", "do", "don't", "caf\u00e9")


@pytest.mark.parametrize(
    ("given_word", "is_it"),
    [("judge", True), ("judgee", True), ("jdge", True), ("juxge", True), ("jugde", False), ("jugd", False)],
)
def test_a_typo_must_lead_nearer_to_the_intact_word(given_word: str, is_it: bool) -> None:
    assert with_one_typo(given_word, "judge", "jugde") is is_it


@given(st.lists(st.sampled_from(["ab", "cd", "ef", "gh", "abc"]), max_size=9), st.data())
def test_counts_never_pass_what_they_count(words: list[str], data: st.DataObject) -> None:
    shown = [word[::-1] if data.draw(st.booleans()) else word for word in words]
    answer = data.draw(st.lists(st.sampled_from(["ab", "dc", "ef", "x", "abc"]), max_size=9))
    changed, recovered, tolerant, unchanged, kept = counts(" ".join(answer), " ".join(words), " ".join(shown))
    assert 0 <= recovered <= tolerant <= changed
    assert 0 <= kept <= unchanged
    assert changed + unchanged == len(words)
    whole = counts(" ".join(words), " ".join(words), " ".join(shown))
    assert whole[1] == whole[0]
    assert whole[4] == whole[3]


def test_the_recovery_rate_is_one_minus_what_is_left() -> None:
    # GPT-4, few-shot, RS-20 in the released outputs: 11,043 characters before, 606 after
    assert recovery_rate(11_043, 606) == pytest.approx(94.51, abs=0.005)
    assert recovery_rate(11_043, 606, "printed") == pytest.approx(-94.51, abs=0.005)
    assert recovery_rate(100, 150) == -50
    assert recovery_rate(0, 3) != recovery_rate(0, 3)
    with pytest.raises(UserError, match="corrected"):
        recovery_rate(10, 5, "correct")


def recovery_study() -> tuple[pd.DataFrame, pd.DataFrame]:
    other, shown = "Old books smell of dust.", "Odl bokos smell of dsut."
    items = pd.DataFrame({"set": "words", "item_id": ["a", "b"], "cond": "kf"})
    items["shown"] = [json.dumps({"sentence": text}) for text in (SHOWN, shown)]
    items["intact"] = [json.dumps({"sentence": text}) for text in (INTACT, other)]
    task: dict[str, Any] = {"trial_type": "recover", "cond": "kf"}
    of_b = {**task, "item_id": "b", "answer": other, "response": other}
    refused = {"response": None, "response_status": "refused", "reader_group": "r"}
    trials = [
        {**task, "item_id": "a", "answer": INTACT, "response": "The judge slept in cuort today."},
        *(of_b, of_b | refused, of_b | {"excluded_reason": "practice"}),
        {"item_id": "a", "cond": "kf", "answer": "yes", "response": "yes"},
    ]
    return trials_of(trials), items


def test_each_restored_text_has_its_counts_for_a_binomial_model() -> None:
    measured = recovery_trials(*recovery_study(), ["cond"], rows_at_once=2)
    first, second, third = measured.to_dict("records")
    assert (first["ed_shown"], first["ed_given"]) == (6, 2)
    assert (first["changed"], first["recovered"], first["not_recovered"]) == (3, 2, 1)
    assert (second["changed"], second["recovered"], second["ed_given"]) == (3, 3, 0)
    assert third["recovered"] == 0
    assert third["ed_given"] == third["ed_shown"], "a missing answer recovers nothing"


def test_sums_by_cell_are_those_of_their_trials() -> None:
    table = recovery(recovery_trials(*recovery_study(), ["cond"]), ["cond"], resamples=200)
    row = table[table["reader_group"] == "m"].to_dict("records")[0]
    assert (row["changed"], row["recovered"]) == (6, 5)
    assert row["ed_shown"] == 6
    assert row["ed"] == 1
    assert row["rr"] == pytest.approx(100 * (12 - 2) / 12)
    assert np.isnan(row["rr_low"]) and np.isnan(row["rr_high"]), "no interval over two items"
    printed = recovery(recovery_trials(*recovery_study(), ["cond"]), ["cond"], sign="printed", resamples=0)
    assert printed["rr"].iloc[0] == pytest.approx(-row["rr"])


def test_a_text_that_no_item_shows_is_named() -> None:
    trials, items = recovery_study()
    with pytest.raises(UserError, match="shows item 'b'"):
        recovery_trials(trials, items[:1], ["cond"])
    with pytest.raises(UserError, match="'shown'"):
        recovery_trials(trials, items.drop(columns="shown"), ["cond"])


Z = NormalDist().inv_cdf
CDF = NormalDist().cdf


def answers(hits: int, signals: int, alarms: int, others: int, **more: Any) -> list[dict[str, Any]]:
    said = ["A"] * hits + ["B"] * (signals - hits) + ["A"] * alarms + ["B"] * (others - alarms)
    truth = ["A"] * signals + ["B"] * others
    return [
        {"answer": key, "response": given, "correct": float(key == given), **more}
        for key, given in zip(truth, said, strict=True)
    ]


def test_d_prime_and_criterion_have_the_log_linear_correction() -> None:
    found = sensitivity(hits=40, signals=50, false_alarms=10, others=50)
    high, low = Z(40.5 / 51), Z(10.5 / 51)
    assert found.d_prime == pytest.approx(high - low) == pytest.approx(1.6414, abs=5e-4)
    assert found.criterion == pytest.approx(0, abs=1e-12)
    biased = sensitivity(hits=45, signals=50, false_alarms=25, others=50)
    assert biased.criterion == pytest.approx(-(Z(45.5 / 51) + Z(25.5 / 51)) / 2)
    assert biased.criterion < 0  # leans to answering "signal"
    assert biased.beta == pytest.approx(biased.d_prime * biased.criterion)
    assert sensitivity(100, 100, 0, 100).d_prime == pytest.approx(2 * Z(100.5 / 101)), "perfect, and finite"
    assert sensitivity(50, 100, 50, 100).d_prime == 0
    (always_a,) = signal_detection(trials_of(answers(100, 100, 100, 100))).to_dict("records")
    assert always_a["d_prime"] == 0
    assert always_a["criterion"] == pytest.approx(-Z(100.5 / 101))


def test_the_standard_error_is_the_spread_of_d_prime_over_samples() -> None:
    draw = np.random.default_rng(2)
    hits, alarms = draw.binomial(100, CDF(0.9), 4000), draw.binomial(100, CDF(-0.4), 4000)
    found = [sensitivity(h, 100, f, 100) for h, f in zip(hits, alarms, strict=True)]
    spread = np.std([one.d_prime for one in found])
    assert np.mean([one.d_prime_se for one in found]) == pytest.approx(spread, rel=0.05)
    spread_c = np.std([one.criterion for one in found])
    assert np.mean([one.criterion_se for one in found]) == pytest.approx(spread_c, rel=0.05)


@pytest.mark.parametrize("counts", [(-1, 5, 0, 5), (6, 5, 0, 5), (1, 5, 6, 5)])
def test_impossible_counts_are_refused(counts: tuple[int, int, int, int]) -> None:
    said = "^{} hits of {} and {} false alarms of {}\n".format(*counts)
    with pytest.raises(UserError, match=said):
        sensitivity(*counts)


@pytest.mark.parametrize(("signals", "others"), [(30, 90), (5, 95), (100, 100)])
def test_one_answer_throughout_is_no_sensitivity_to_unequal_classes(signals: int, others: int) -> None:
    """Each class's share of the trials is added to its counts; of equal classes, these are the usual halves."""
    always = signal_detection(trials_of(answers(signals, signals, others, others))).iloc[0]
    never = signal_detection(trials_of(answers(0, signals, 0, others))).iloc[0]
    n = signals + others
    assert always["d_prime"] == pytest.approx(0, abs=1e-12) == never["d_prime"]
    assert always["criterion"] == pytest.approx(-Z((n + 1) / (n + 2))) == pytest.approx(-never["criterion"])
    share = signals / n
    found = sensitivity(signals - 1, signals, 2, others)
    rates = (signals - 1 + share) / (signals + 2 * share), (2 + 1 - share) / (others + 2 * (1 - share))
    assert found.d_prime == pytest.approx(Z(rates[0]) - Z(rates[1]))


def test_why_a_condition_has_no_z_follows_from_its_counts() -> None:
    counts = {
        "all_a": (9, 9, 9, 9), "no_a": (0, 9, 0, 9), "all_and_no_a": (9, 9, 0, 9), "all_hits": (9, 9, 4, 9),
        "no_hits": (0, 9, 4, 9), "all_alarms": (4, 9, 9, 9),
    }  # fmt: skip
    trials = trials_of([row for cond, of in counts.items() for row in answers(*of, cond=cond)])
    remarks = probit_model(Classes("A", "B", (), trials), "cond", list(counts))
    assert isinstance(remarks, list)
    words = {
        level: set(remark.partition(", ")[2].split())
        for level in counts
        for remark in remarks
        if re.search(rf"\b{level}\b", remark)
    }
    (always,) = words["all_a"] - words["no_a"]
    (never,) = words["no_a"] - words["all_a"]
    assert {level: {always, never} & found for level, found in words.items()} == {
        "all_a": {always}, "no_a": {never}, "all_and_no_a": {always, never}, "all_hits": {always}, "no_hits": {never},
        "all_alarms": {always},
    }  # fmt: skip
    assert words["all_hits"] == words["all_alarms"] != words["all_a"], "of one class, not of both"
    assert sum("modeled" in remark for remark in remarks) == 1, "without a model, nothing is absent from it"
    several = pd.concat([trials.assign(reader_group=name, reader=name) for name in ("first", "second")])
    together = probit_model(Classes("A", "B", (), several), "cond", list(counts))
    assert isinstance(together, list) and len(together) == len(remarks), (
        "readers with one reason share a sentence"
    )


def test_missing_answers_are_counted_and_belong_to_neither_rate() -> None:
    lost = [{"answer": "A", "response": None, "response_status": "refused", "correct": None}] * 7
    trials = trials_of([*answers(40, 50, 10, 50, cond="kf"), *[{**one, "cond": "kf"} for one in lost]])
    (row,) = signal_detection(trials, ["cond"]).to_dict("records")
    assert (row["hits"], row["signals"], row["false_alarms"], row["others"]) == (40, 50, 10, 50)
    assert row["missing"] == 7
    other = signal_detection(trials, ["cond"], signal="B").to_dict("records")[0]
    assert other["d_prime"] == pytest.approx(row["d_prime"])
    assert other["criterion"] == pytest.approx(-row["criterion"])


def test_more_than_two_classes_are_refused() -> None:
    trials = trials_of([{"answer": one, "response": one} for one in "ABC"])
    with pytest.raises(UserError, match=r"\b3 \('A', 'B', 'C'\)"):
        signal_detection(trials)
    with pytest.raises(UserError, match="signal: 'C'"):
        signal_detection(trials_of(answers(1, 2, 1, 2)), signal="C")


def test_the_probit_models_coefficients_are_the_z_differences_of_the_cells() -> None:
    """Items that are all answered alike leave them no variance, and the counts uncorrected."""
    cells = {"intact": (4, 5, 2, 5), "kf": (3, 5, 1, 5)}
    rows = [
        row
        for n in range(20)
        for cond, of in cells.items()
        for row in answers(*of, cond=cond, item_id=f"i{n}")
    ]
    data = probit_data(trials_of(rows), "cond", ["intact", "kf"], ["m"])
    assert data.formula == "said_signal ~ truth * cond + (1 | item)"
    table = sensitivity_and_bias(fit(data.formula, data.rows, **data.settings), data)
    told = table.set_index(["cond", "measure"])["estimate"]
    for cond, (high, low) in {"intact": (Z(0.8), Z(0.4)), "kf": (Z(0.6), Z(0.2))}.items():
        assert told[cond, "d_prime"] == pytest.approx(high - low, abs=1e-4)
        assert told[cond, "criterion"] == pytest.approx(-(high + low) / 2, abs=1e-4)


def test_a_models_repeated_answers_make_its_sensitivity_no_more_certain() -> None:
    """Four copies of each answer are one answer to an item; of people, every answer counts in the mean over them."""
    draw = np.random.default_rng(4)
    once = pd.DataFrame({"item_id": [f"i{n}" for n in range(80)], "answer": ["A", "B"] * 40})
    other = once["answer"].map({"A": "B", "B": "A"})
    once["response"] = once["answer"].where(draw.random(80) < 0.75, other)
    once = trials_of(once.to_dict("records"))
    four = pd.concat([once] * 4, ignore_index=True)
    (alone,), (copied,) = (signal_detection(rows).to_dict("records") for rows in (once, four))
    for name in ("d_prime_se", "criterion_se"):
        assert copied[name] == pytest.approx(alone[name], rel=0.1)
    constant = signal_detection(four.assign(response="A")).iloc[0]
    assert constant["d_prime_se"] > 0.8 * signal_detection(once.assign(response="A")).iloc[0]["d_prime_se"]
