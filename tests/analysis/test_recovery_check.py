"""How often an oracle lapsed is found from its wrong answers and the number of choices, and only where its rate is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import load
from analysis.intervals import wilson
from analysis.parameter_recovery import LAPSING, Recovered, recovered_lapses, recovered_words, recovery_plans
from tests.analysis.letter_study import study_rows, write_handover
from tests.analysis.word_study import BASE_MS, COSTS_MS, rewrite_dictionary, study, with_forms

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


def test_an_oracle_that_is_mostly_wrong_lapses_in_no_more_than_all_trials(tmp_path: Path) -> None:
    (one,) = found(tmp_path, stated(), wrong=700)
    assert (one.estimate, one.high) == (1.0, 1.0)
