"""A fitted model answers as the engine does, and refuses what would have no effect or no answer."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import apa
from analysis.fitted_model import FittedModel, fit, table_text
from stimuli.errors import UserError

FORMULA = "correct ~ cond * group + (1 | participant)"


@pytest.fixture(scope="module")
def trials() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    rows = [(f"p{p}", ("a", "b")[p % 2], ("x", "y", "z")[i % 3]) for p in range(16) for i in range(18)]
    data = pd.DataFrame(rows, columns=["participant", "group", "cond"], index=range(100, 388))
    chance = 0.5 + 0.35 * (data["cond"] == "x")
    return data.assign(correct=(rng.random(len(data)) < chance).astype(float))


@pytest.fixture(scope="module")
def model(trials: pd.DataFrame) -> FittedModel:
    return fit(trials, FORMULA, "binomial")


def test_sentences_give_means_direction_and_intervals_that_agree_with_p(model: FittedModel) -> None:
    text = model.to_apa("cond | group")
    first, *_, last = text.splitlines()
    table = model.contrasts("cond | group", adjust="mvt")
    assert re.match(r".*group = a, .*correct .* x \(\*M\* = ", first)
    assert "*z* = " in first and "OR = " in first and "95% CI of *b* [" in first
    assert re.search(r"\b3 .*\(mvt\)", last)
    for line, row in zip(text.splitlines(), table.itertuples(), strict=False):
        assert ("remains open" in line) == (row.ci_low < 0 < row.ci_high)


def test_p_is_written_alike_in_the_summary_and_in_every_table(model: FittedModel) -> None:
    summary = {
        row.split()[0]: row.split()[4] for row in model.summary().splitlines() if row.startswith("  group")
    }
    tests = {row.split()[0]: row.split()[-1] for row in table_text(model.anova()).splitlines()}
    assert tests["group"] == apa.p_value(model.anova()["p"][1])
    assert summary["groupb"].startswith(".")


def test_predictions_and_simulations_have_the_rows_of_the_data(
    model: FittedModel, trials: pd.DataFrame
) -> None:
    one = trials.iloc[[3]].assign(participant="new")
    assert len(model.predict()) == len(trials)
    assert list(model.predict(one, se=True, new_levels="population").columns) == [
        "estimate",
        "se",
        "ci_low",
        "ci_high",
    ]
    drawn = model.simulate(3, seed=5)
    assert drawn.shape == (len(trials), 3) and drawn.index.equals(trials.index)
    assert drawn.equals(model.simulate(3, seed=5))


def test_a_plot_has_a_mark_for_each_mean(model: FittedModel) -> None:
    axes = model.plot("cond | group").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y", "z"]
    assert axes.get_ylabel() == "Probability of correct, 95% CI"
    assert len(model.plot().axes[0].get_yticklabels()) == 5


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda m, t: fit(t, FORMULA, "binomial", nagc=9), "'nagq'"),
        (lambda m, t: fit(t, FORMULA, "binomial", contrasts={"participant": "sum"}), "groups rows"),
        (lambda m, t: m.contrasts("| cond"), "one mean"),
        (lambda m, t: m.contrasts("cond", control="w"), "control"),
        (lambda m, t: m.intervals("wald"), "profile"),
        (lambda m, t: m.intervals("profile", seed=3), "seed"),
        (lambda m, t: m.to_apa("cond", scale="ratio"), "link scale"),
        (lambda m, t: fit("nowhere.csv", FORMULA), "nowhere.csv"),
    ],
)
def test_wrong_use_says_what_to_correct(
    call: Any, says: str, model: FittedModel, trials: pd.DataFrame
) -> None:
    with pytest.raises(UserError) as caught:
        call(model, trials)
    assert says in str(caught.value)


def test_a_sentence_about_a_control_compares_with_it(model: FittedModel) -> None:
    lines = model.to_apa("cond", control="z").splitlines()
    assert len(lines) == 3 and " higher for x (*M* = " in lines[0] and " than for z (*M* = " in lines[0]
    assert " between y (*M* = " in lines[1] and " and z (*M* = " in lines[1]
