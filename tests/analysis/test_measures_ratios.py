"""Relative gain, retention, cost ratios and cosines: printed figures, values by hand, and flags where a ratio says nothing."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

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
from analysis.measures.similarity import cosines, similarity
from analysis.preprocessing.exclusions import IDENTICAL, TIMED
from stimuli.errors import UserError
from tests.analysis.measured import trials_of

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
    trials = trials_of(
        [
            *answered({"ori": 0.9, "kf": 0.7, "sub": 0.4}, 100),
            *answered({"ori": 0.45, "kf": 0.44, "sub": 0.4}, 20, "weak"),
        ]
    )
    table = relative_gains(trials, "cond", intact="ori", substituted="sub").set_index(
        ["reader_group", "cond"]
    )
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
        for level, tokens in (("base", 20 + n), ("kf", 30 + n)):
            here = {"item_id": f"i{n}", "cond": level, "prompt_tokens": tokens, "completion_tokens": 10}
            rows.append({**here, "session_id": "answers"})
            rows.append({**here, "session_id": "again", "excluded_reason": IDENTICAL})
            late = {"timed": True, "latency_ms": 100.0 if level == "base" else 150.0}
            rows.append({**here, **late, "session_id": "timed", "excluded_reason": TIMED})
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
