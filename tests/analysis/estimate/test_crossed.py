"""The crossed-variance estimator: its numbers, its edge cases, and p values and intervals that cannot disagree."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.crossed_variance import (
    CrossedEstimate,
    EstimateLayout,
    ItemAnswers,
    estimate,
    in_general,
    model_means,
    sums_of_model,
    sums_of_people,
)

W = {"b": 1.0, "a": -1.0}


def drawn(
    seed: int,
    people: int = 24,
    items: int = 16,
    shares: tuple[float, ...] = (0.75, 0.6),
    kept: float = 1.0,
    lists: int = 2,
) -> tuple[ItemAnswers, np.ndarray[Any, Any], list[tuple[float, int, int, str]]]:
    """Draw people in a Latin square of two conditions, and a model that answers every item in both."""
    rng = np.random.default_rng(seed)
    layout = EstimateLayout(
        tuple("ab"), tuple(f"i{n}" for n in range(items)), tuple(f"p{n}" for n in range(people))
    )
    able, hard = rng.normal(0, 0.5, people), rng.normal(0, 0.5, items)
    rows = []
    for p in range(people):
        for i in range(items):
            c = (p + i) % lists
            if c < 2 and rng.random() < kept:
                latent = stats.norm.ppf(shares[c]) + able[p] + hard[i] + rng.standard_normal()
                rows.append((float(latent > 0), p, i, "ab"[c]))
    model = (stats.norm.ppf(shares) + hard[:, None] + rng.standard_normal((items, 1)) > 0).astype(float)
    answers = answers_of(rows, layout)
    return answers, model, rows


def answers_of(rows: Sequence[tuple[float, int, int, str]], layout: EstimateLayout) -> ItemAnswers:
    return ItemAnswers.of(
        [y for y, *_ in rows], [f"p{p}" for _, p, _, _ in rows], [f"i{i}" for _, _, i, _ in rows], [c for *_, c in rows], layout
    )  # fmt: skip


def all_three(answers: ItemAnswers, model: np.ndarray[Any, Any]) -> list[CrossedEstimate | None]:
    """Return the contrast of people, of the model, and their difference."""
    sums = sums_of_people(answers), sums_of_model(answers.layout, model), sums_of_people(answers, model)
    return [estimate(one, W) for one in sums]


def three(answers: ItemAnswers, model: np.ndarray[Any, Any]) -> list[CrossedEstimate]:
    found = [one for one in all_three(answers, model) if one is not None]
    assert len(found) == 3
    return found


@pytest.fixture(scope="module")
def reference(shared: Path) -> ModuleType:
    """The reference implementation of the method's description."""
    path = shared / "facts/human-model-inference/crossed.py"
    spec = importlib.util.spec_from_file_location("reference_crossed", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kept", [1.0, 0.8])
@pytest.mark.parametrize("shares", [(0.75, 0.6), (0.99, 0.97), (0.05, 0.1)])
@pytest.mark.parametrize("size", [(24, 16), (2, 4)])
def test_it_gives_the_numbers_of_the_reference(
    reference: ModuleType, kept: float, shares: tuple[float, float], size: tuple[int, int]
) -> None:
    for seed in range(3):
        answers, model, rows = drawn(seed, *size, shares, kept)
        y, p, i, c = (np.array(one) for one in zip(*rows, strict=True))
        if len(set(c)) < 2:
            continue
        said = {(n, "ab"[k]): model[n, k] for n in range(size[1]) for k in range(2)}
        expected = [
            reference.crossed(y, p, i, c, W),
            reference.one_model(said, W),
            reference.crossed(y, p, i, c, W, said),
        ]
        for own, theirs in zip(three(answers, model), expected, strict=True):
            assert own.value == pytest.approx(theirs.estimate, abs=1e-9)
            assert own.se == pytest.approx(theirs.se, abs=1e-9)
            # with gaps, blocks of one condition may join in the other: fewer means are taken off
            if kept == 1.0:
                assert own.df == pytest.approx(theirs.df, rel=1e-9)
                assert own.p() == pytest.approx(theirs.p(), abs=1e-9)
                assert own.equivalence_p(0.1) == pytest.approx(theirs.equivalence(0.1), abs=1e-9)


def test_a_model_is_tested_by_a_paired_t_over_its_items() -> None:
    answers, _, _ = drawn(3, items=40)
    model = (np.random.default_rng(3).random((40, 2)) < 0.6).astype(float)
    found = three(answers, model)[1]
    wanted = stats.ttest_1samp(model[:, 1] - model[:, 0], 0)
    assert found.parts.one_more == 0
    assert (found.t, found.df) == pytest.approx((wanted.statistic, 39))
    assert found.p() == pytest.approx(wanted.pvalue)


def test_conditions_with_items_of_their_own_are_compared_as_by_welch() -> None:
    rng = np.random.default_rng(5)
    model = np.full((30, 2), np.nan)
    model[:10, 0], model[10:, 1] = rng.random(10) < 0.5, rng.random(20) < 0.7
    found = of_model(model)
    wanted = stats.ttest_ind(model[10:, 1], model[:10, 0], equal_var=False)
    assert found is not None
    assert (found.t, found.df, found.p()) == pytest.approx((wanted.statistic, wanted.df, wanted.pvalue))


def test_people_of_one_condition_each_are_compared_as_by_welch() -> None:
    rng = np.random.default_rng(6)
    many, items = (8, 14), 6
    layout = EstimateLayout(("a", "b"), tuple(range(items)), tuple(range(sum(many))), span=None)
    p = np.repeat(np.arange(sum(many)), items)
    i = np.tile(np.arange(items), sum(many))
    c = np.where(p < many[0], "a", "b")
    able = rng.normal(0, 5, sum(many))
    found = estimate(sums_of_people(ItemAnswers.of(able[p], p, i, c, layout)), W)
    wanted = stats.ttest_ind(able[many[0] :], able[: many[0]], equal_var=False)
    assert found is not None
    assert (found.t, found.parts.participant_df) == pytest.approx((wanted.statistic, wanted.df))


def test_names_orders_and_a_constant_added_to_the_model_change_nothing() -> None:
    answers, model, rows = drawn(7, kept=0.9)
    expected = three(answers, model)[2]
    order = np.random.default_rng(1).permutation(len(rows))
    layout = answers.layout
    renamed = EstimateLayout(
        layout.conditions, tuple(reversed(layout.items)), tuple(reversed(layout.participants))
    )
    shuffled = answers_of([rows[n] for n in order], renamed)
    again = three(shuffled, model[::-1] + 0.25)[2]
    for own, other in ((again.value, expected.value), (again.se, expected.se), (again.df, expected.df)):
        assert own == pytest.approx(other)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    people=st.integers(2, 12),
    items=st.integers(2, 12),
    share=st.sampled_from([0.02, 0.5, 0.9, 1.0]),
    kept=st.sampled_from([1.0, 0.6]),
)
def test_p_and_interval_agree_and_are_finite_in_any_study(
    seed: int, people: int, items: int, share: float, kept: float
) -> None:
    answers, model, _ = drawn(seed, people, items, (share, 0.9), kept)
    for one in filter(None, all_three(answers, model)):
        assert np.isfinite([one.value, one.se, one.df]).all() and one.se > 0 and one.df >= 1
        low, high = one.interval()
        assert (one.p() < 0.05) == (low > 0 or high < 0)
        low, high = one.interval(side=1)
        assert (one.p(side=1) < 0.05) == (low > 0)
        for bound in (0.05, 0.3):
            low, high = one.interval(0.9)
            assert (one.equivalence_p(bound) < 0.05) == (
                abs(one.value) + stats.t.ppf(0.95, one.df) * one.se < bound
            )


def of_model(model: np.ndarray[Any, Any], **settings: Any) -> CrossedEstimate | None:
    layout = EstimateLayout(("a", "b"), tuple(f"i{n}" for n in range(len(model))))
    return estimate(sums_of_model(layout, model), W, **settings)


def test_a_model_whose_answers_vary_little_or_not_at_all_has_an_interval() -> None:
    """All right; always wrong and then always right; always wrong where the conditions share one of eleven items."""
    sharing_one = np.full((11, 2), np.nan)
    sharing_one[:6, 0] = sharing_one[5:, 1] = 0.0
    found = [of_model(model) for model in (np.ones((32, 2)), np.tile([0.0, 1.0], (12, 1)), sharing_one)]
    ends = [(one.value, *one.interval()) for one in found if one is not None]
    assert ends[0] == pytest.approx((0, -0.0648, 0.0648), abs=2e-4)
    assert ends[1][:2] == (1, pytest.approx(0.8084, abs=1e-3))
    assert ends[2][0] == 0 < ends[2][2]


def test_four_items_that_differ_one_way_are_undecided_as_by_mcnemar() -> None:
    model = np.ones((40, 2))
    for differing, is_decided in ((4, False), (5, True)):
        model[:differing, 1] = 0
        found = of_model(model)
        assert found is not None and (found.p() < 0.05) == is_decided
    assert found.parts.one_more == 0


def test_people_who_are_always_right_stay_in_with_a_variance() -> None:
    answers, _, _ = drawn(2, shares=(1.0, 1.0))
    found = estimate(sums_of_people(answers), W)
    assert found is not None and found.value == 0
    n = len(answers.value) / 2
    assert found.se**2 == pytest.approx(2 * (3 / n) * (1 - 3 / n) / n)


def test_one_participant_has_an_interval_over_items_alone() -> None:
    answers, _, _ = drawn(4, people=1)
    found = estimate(sums_of_people(answers), W)
    assert found is not None and found.to == "items" and found.se > 0


def test_items_as_fixed_make_a_deterministic_model_known() -> None:
    answers, model, _ = drawn(9)
    alone = estimate(sums_of_model(answers.layout, model), W, fixed_items=True)
    both = estimate(sums_of_people(answers, model), W, fixed_items=True)
    people = estimate(sums_of_people(answers), W, fixed_items=True)
    assert alone is not None and both is not None and people is not None
    assert (alone.se, alone.to, both.to) == (0.0, "these answers", "participants")
    assert both.se == pytest.approx(people.se)
    assert both.se < three(answers, model)[2].se


def test_a_sampled_model_has_the_noise_of_its_repetitions_where_items_are_fixed() -> None:
    layout = EstimateLayout(("a", "b"), ("x", "y"))
    value = np.array([1, 0, 1, 1, 0, 0, 1, 0], dtype=float)
    mean, noise = model_means(value, list("xxxxyyyy"), list("aabbaabb"), ["1"] * 8, layout)
    assert mean.tolist() == [[0.5, 1.0], [0.0, 0.5]]
    assert noise.tolist() == [[0.25, 0.0], [0.0, 0.25]]
    found = estimate(sums_of_model(layout, mean, noise), W, fixed_items=True)
    assert found is not None and found.se**2 == pytest.approx((0.25 + 0.25) / 4)


def test_repetitions_are_averaged_before_prompt_variants() -> None:
    layout = EstimateLayout(("a",), ("x",))
    mean, _ = model_means(np.array([1.0, 1.0, 1.0, 0.0]), ["x"] * 4, ["a"] * 4, ["1", "1", "1", "2"], layout)
    assert mean.tolist() == [[0.5]]


def test_a_person_who_answers_an_item_twice_counts_once() -> None:
    layout = EstimateLayout(("a", "b"), ("x", "y"), ("p", "q"))
    once = ItemAnswers.of([1, 0, 1, 1], list("pqpq"), list("xyyx"), list("aabb"), layout)
    twice = ItemAnswers.of([1, 1, 0, 1, 1], list("ppqpq"), list("xxyyx"), list("aaabb"), layout)
    assert twice.value.tolist() == once.value.tolist()


def test_an_item_that_the_model_did_not_answer_leaves_the_difference_alone() -> None:
    answers, model, _ = drawn(11)
    model[0] = np.nan
    people, alone, difference = three(answers, model)
    kept = answers.item != 0
    columns = (answers.value, answers.participant, answers.item, answers.condition)
    fewer = ItemAnswers(answers.layout, *(one[kept] for one in columns))
    assert people.value == three(answers, np.nan_to_num(model))[0].value
    assert difference.sums.lost == int((~kept).sum())
    without = estimate(sums_of_people(fewer), W)
    assert without is not None and difference.value == pytest.approx(without.value - alone.value)
    model[:, -1] = np.nan  # a condition in which the model answered nothing is no loss of the others
    assert sums_of_people(answers, model).lost == int(
        (~kept & (answers.condition != model.shape[1] - 1)).sum()
    )


def models(seed: int, many: int) -> Iterator[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    for _ in range(many):
        yield (rng.random((16, 2)) < 0.5 + rng.normal(0, 0.2)).astype(float)


def test_one_item_says_nothing_of_a_model_on_other_items() -> None:
    model = np.array([[0.0, 1.0], [np.nan, np.nan]])
    assert of_model(model) is None
    known = of_model(model, fixed_items=True)
    assert known is not None and (known.value, known.se) == (1.0, 0.0)
    assert of_model(np.array([[0.0, np.nan], [np.nan, 1.0]])) is None


def test_models_that_differ_widen_what_is_said_of_models_in_general() -> None:
    answers, _, _ = drawn(15)
    own = list(models(1, 8))
    mean = estimate(sums_of_people(answers, np.mean(own, axis=0)), W)
    general = in_general(answers, own, W)
    assert mean is not None and general is not None
    assert general.value == pytest.approx(mean.value) and general.se >= mean.se
    assert general.to == "participants, items and models"
    same = in_general(answers, [own[0]] * 8, W)
    alone = estimate(sums_of_people(answers, own[0]), W)
    assert same is not None and alone is not None and same.se == pytest.approx(alone.se)
