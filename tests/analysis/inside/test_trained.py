"""Trained models beside their base: gains that are known beforehand, tests that hold their level, and the printed Table 8."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis import Tables
from analysis.mixed import fit
from experiment.papers.h_test.chapter.measures import TASKS, asked
from experiment.papers.inside.chapters.trained.measures import (
    AVERAGE,
    Modelled,
    Transfer,
    diagonal,
    differences,
    families,
    loss_of,
    modelled,
    parts_of,
    printed_diagonal,
    printed_transfer,
    transfer,
)
from stimuli.errors import UserError
from tests.analysis.trained_study import RESTORED, h_test_study, scrambled_study

FIVE = ("uppercase", "palindrome", "end_ly", "rhyme", "repeated_word")


@pytest.fixture(scope="module")
def h_test(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return h_test_study(tmp_path_factory.mktemp("h"), FIVE)


@pytest.fixture(scope="module")
def scrambled(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return scrambled_study(tmp_path_factory.mktemp("s"))


def transfer_of(tables: Tables) -> Transfer:
    (family,) = families(tables)
    found = asked(tables)
    assert found is not None
    made = transfer(found.trials, family, 0.05, 1)
    assert made is not None
    return made


def test_trained_models_are_known_by_their_base_and_their_records(h_test: Tables, scrambled: Tables) -> None:
    (family,) = families(h_test)
    assert family.base == "base" and family.base_was_asked
    assert [one.task for one in family.models] == list(FIVE)
    assert family.control is None
    (family,) = families(scrambled)
    assert [one.rule for one in family.models] == ["FT-RS", "FT-KF&Adj", "FT-Ori"]
    assert family.control is not None and family.control.group == "ft-ori"
    losses = loss_of(scrambled, "ft-rs")
    assert losses is not None and list(losses["step"]) == list(range(41))
    assert np.isnan(losses["training_loss"].iloc[0]) and losses["validation_loss"].iloc[0] == 2.0


def test_a_broken_record_is_named(tmp_path: Path) -> None:
    tables = h_test_study(tmp_path, FIVE[:2])
    (tmp_path / "tuning" / "each-palindrome" / "tuning.json").write_text("{")
    with pytest.raises(UserError, match=r"each-palindrome.*tuning\.json"):
        families(tables)


def test_cells_are_shares_right_and_tests_agree_with_their_intervals(h_test: Tables) -> None:
    made = transfer_of(h_test)
    assert made.tasks == FIVE and len(made.cells) == 25
    rows = h_test.trials
    for cell in made.cells:
        base, own = (
            rows[(rows["reader"] == name) & (rows["task"] == cell.task)]
            .set_index("item_id")["correct"]
            .astype(float)
            for name in ("base", cell.model.group)
        )
        gains = (own - base).to_numpy()
        assert made.accuracy.loc[cell.task, cell.model.group] == pytest.approx(own.mean())
        assert cell.compared.difference == pytest.approx(gains.mean())
        if (gains != 0).sum() >= 5:
            assert cell.compared.p == pytest.approx(stats.ttest_1samp(gains, 0.0).pvalue)
        assert (cell.p_adjusted < 0.05) == (cell.compared.low * cell.compared.high > 0)
    assert [one.p_adjusted for one in made.cells] == pytest.approx(
        stats.false_discovery_control([one.compared.p for one in made.cells], method="bh")
    )
    assert all((one.p_adjusted < 0.05) is one.in_domain for one in made.cells)
    assert made.base_accuracy[AVERAGE] == pytest.approx(0.5)
    assert [made.accuracy.loc[AVERAGE, one.group] for one in made.models] == pytest.approx([0.57] * 5)


def test_gains_in_domain_stand_out_from_the_rest(h_test: Tables) -> None:
    found = transfer_of(h_test).diagonal
    assert found is not None
    assert (found.within, found.across) == (pytest.approx(0.35), pytest.approx(0.0))
    assert found.low < found.difference < found.high
    assert found.p == found.smallest_p == pytest.approx(1 / 120)
    assert diagonal(np.eye(2)).smallest_p == 1, "both orders of two trainings are equally far from their mean"


def test_orders_of_trainings_give_the_exact_p() -> None:
    gains = np.random.default_rng(3).normal(size=(5, 5))
    found = diagonal(gains)
    sums = [sum(gains[row, order[row]] for row in range(5)) for order in itertools.permutations(range(5))]
    centre = np.mean(sums)
    wanted = np.mean([abs(one - centre) >= abs(np.trace(gains) - centre) - 1e-12 for one in sums])
    assert found.p == pytest.approx(wanted)
    moved = gains + np.arange(5)[:, None] * 10 + np.arange(5)[None, :] * 7
    assert diagonal(moved).p == pytest.approx(found.p)


def test_recovery_rates_are_compared_over_the_same_items(scrambled: Tables) -> None:
    (family,) = families(scrambled)
    (part,) = parts_of(scrambled, family)
    assert list(part.levels.values()) == ["100%", "KF", "KFL"]
    found = differences(part, family)
    sums = part.measured.groupby(["reader_group", "condition"])[["ed_shown", "ed_given"]].sum()
    for one in found:
        rates = [
            100
            * (1 - sums.loc[(name, one.condition), "ed_given"] / sums.loc[(name, one.condition), "ed_shown"])
            for name in (one.first, one.second)
        ]
        assert (one.before, one.after) == (pytest.approx(rates[0]), pytest.approx(rates[1]))
        assert one.difference == pytest.approx(rates[1] - rates[0]) and one.low <= one.difference <= one.high
        assert one.items == 40
    assert {(one.first, one.second) for one in found} == {
        ("base", "ft-rs"), ("base", "ft-kf"), ("base", "ft-ori"), ("ft-ori", "ft-rs"), ("ft-ori", "ft-kf"),
    }  # fmt: skip
    levels = {"100%": "RS", "KF": "KF", "KFL": "KFL"}
    for one in found:
        apart = RESTORED[one.second][levels[one.condition]] - RESTORED[one.first][levels[one.condition]]
        assert (one.p_adjusted < 0.05) is (apart > 0.1) is (one.low * one.high > 0)


def test_the_mixed_model_finds_what_training_does_and_where(scrambled: Tables) -> None:
    (family,) = families(scrambled)
    (part,) = parts_of(scrambled, family)
    found = modelled(part, family)
    assert isinstance(found, Modelled) and found.interaction is not None
    assert (found.training.df, found.interaction.df) == (3, 6)
    assert found.training.p < 1e-10 and found.interaction.p < 1e-10
    rows = part.measured
    data = pd.DataFrame(
        {
            "recovered": rows["recovered"], "lost": rows["not_recovered"], "g": rows["reader_group"].astype(str),
            "c": rows["condition"], "item": rows["item_id"], "answer": np.arange(len(rows)).astype(str),
        }
    )  # fmt: skip
    alike = fit("cbind(recovered, lost) ~ g + c + (1 | item) + (1 | answer)", data, "binomial")
    whole = fit("cbind(recovered, lost) ~ g * c + (1 | item) + (1 | answer)", data, "binomial")
    assert found.interaction.statistic == pytest.approx(2 * (whole.loglik - alike.loglik), abs=1e-4)


def test_the_printed_averages_are_the_means_of_the_printed_cells() -> None:
    table = printed_transfer()
    assert table.shape == (11, 11) and table.notna().all().all()
    means = table.loc[list(TASKS)].mean()
    # one decimal or two, rounded or cut
    assert (table.loc["average"] - means).abs().max() < 0.1
    assert table.loc["spelled_math", "start_vowel"] == 32.5


def test_one_printed_cell_is_no_share_of_200_items() -> None:
    right = printed_transfer().loc[list(TASKS)].stack() * 2
    assert list(right[(right - right.round()).abs() > 1e-6].items()) == [
        (("uppercase", "spelled_number"), pytest.approx(2 * 56.6))
    ]


def test_the_printed_diagonal_is_higher_than_the_rest() -> None:
    found = printed_diagonal()
    assert 100 * found.within == pytest.approx(0.5) and 100 * found.across == pytest.approx(-1.888, abs=0.001)
    assert found.p < 0.05
