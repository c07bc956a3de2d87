"""Condition × layer maps: cosines of paired states, what they share with any other map, and whose they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.measures.pattern_similarity import alike, between_readers, common, exchanged, identified_models
from experiment.papers.inside.chapters.layers import layer_maps
from experiment.papers.inside.chapters.layers.layer_maps import layer_cosines, means, pair_rows
from stimuli.errors import UserError

CONDITIONS, LAYERS = 8, 13
SHARED = 0.92 - 0.05 * np.linspace(0, 1, LAYERS)
"""What the maps of all models share: cosines between .85 and 1 that fall with depth."""


def a_truth(random: np.random.Generator) -> np.ndarray:
    """Draw how a model's cells differ, shape (conditions, layers)."""
    walk = np.cumsum(random.normal(size=(CONDITIONS, LAYERS)) * 0.01, axis=1)
    return random.normal(size=(CONDITIONS, 1)) * 0.02 + walk


def of_items(truth: np.ndarray, random: np.random.Generator, items: int = 60, sd: float = 0.04) -> np.ndarray:
    """Draw what each item shows of it, shape (items, conditions, layers)."""
    noise = random.normal(size=(items, CONDITIONS, 1)) + random.normal(size=(items, CONDITIONS, LAYERS))
    return SHARED + truth + sd * noise


def trials(wordings: int = 1) -> pd.DataFrame:
    cells = [
        {"set": "s", "item_id": f"i{item:02d}", "f": level, "prompt_variant": 1.0 + (item + place) % wordings}
        for item in range(30)
        for place, level in enumerate(("base", "near", "far"))
    ]
    return pd.DataFrame(cells)


def states(rows: pd.DataFrame, common_part: float, seed: int = 1) -> np.ndarray:
    """Draw states of items that share a large part; near ones move by half of what far ones do."""
    random = np.random.default_rng(seed)
    item = {name: random.normal(size=24) for name in rows["item_id"].unique()}
    moved = {"base": 0.0, "near": 0.5, "far": 1.0}
    found = [
        item[name] + moved[level] * random.normal(size=24) + common_part
        for name, level in zip(rows["item_id"], rows["f"], strict=True)
    ]
    return np.array(found, dtype=np.float32)


def plain_cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


@pytest.mark.parametrize("at_once", [7, 1024])
def test_cosines_of_a_layer_are_those_of_its_pairs(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(layer_maps, "ROWS_AT_ONCE", at_once)
    rows = trials()
    vectors = states(rows, 2.0).astype(float)
    pairs = pair_rows(rows, "f", "base", ["near", "far"])
    largest: list[int] = []

    def read(places: np.ndarray) -> np.ndarray:
        largest.append(len(places))
        return vectors[places].astype(np.float32)

    found = layer_cosines(read, pairs)
    base, far = vectors[(rows["f"] == "base").to_numpy()], vectors[(rows["f"] == "far").to_numpy()]
    np.testing.assert_allclose(found.cosine[:, 1], plain_cosines(far, base), atol=1e-6)
    mean = vectors.mean(axis=0)
    np.testing.assert_allclose(found.centred[:, 1], plain_cosines(far - mean, base - mean), atol=1e-5)
    unit = base / np.linalg.norm(base, axis=1, keepdims=True)
    assert found.apart == pytest.approx((unit @ unit.T)[~np.eye(30, dtype=bool)].mean(), abs=1e-6)
    assert max(largest) <= at_once


def test_a_common_part_lifts_the_raw_cosine_of_all_texts_and_not_the_centred_one() -> None:
    rows = trials()
    pairs = pair_rows(rows, "f", "base", ["near", "far"])
    alone, shared = (layer_cosines(states(rows, part).__getitem__, pairs) for part in (0.0, 8.0))
    assert shared.cosine.min() > 0.97 and shared.apart > 0.97 > alone.cosine[:, 1].mean() + 0.1
    np.testing.assert_allclose(shared.centred, alone.centred, atol=2e-3)
    assert abs(shared.apart_centred) < 0.1


def test_texts_are_paired_in_the_same_wording_where_there_is_one() -> None:
    rows = pd.concat([trials(), trials().assign(prompt_variant=2.0)], ignore_index=True)
    pairs = pair_rows(rows, "f", "base", ["near", "far"])
    assert len(pairs.item) == 120 and pairs.same_wording.all()
    variant = rows["prompt_variant"].to_numpy()
    assert (variant[pairs.changed] == variant[pairs.intact]).all()
    mixed = pair_rows(trials(wordings=2), "f", "base", ["near", "far"])
    assert mixed.same_wording.mean() == pytest.approx(0.5) and len(mixed.item) == 60


def test_two_maps_that_have_nothing_in_common_have_a_cosine_near_1_and_p_says_so() -> None:
    random = np.random.default_rng(11)
    found = []
    for seed in range(120):
        one, other = (of_items(a_truth(random), random).mean(0) for _ in range(2))
        found.append(alike(one, other, seed, orders=199))
    assert min(one.cosine for one in found) > 0.98
    assert abs(np.mean([one.r for one in found])) < 0.08
    for p in (np.array([one.p for one in found]), np.array([one.p_both for one in found])):
        assert 0.008 < (p <= 0.05).mean() < 0.11, "size of a test at .05"
        assert 0.41 < p.mean() < 0.59


def test_two_maps_of_the_same_pattern_are_found_alike() -> None:
    random = np.random.default_rng(12)
    truth = a_truth(random)
    found = alike(of_items(truth, random).mean(0), of_items(truth, random).mean(0), 1)
    assert found.r > 0.9 and found.r_both > 0.8 and found.p == found.p_both == found.least_p == 1e-4
    assert not found.exact and found.cosine > 0.99
    few = alike(truth[:4], truth[:4], 1)
    assert few.exact and few.least_p == few.p == pytest.approx(1 / 24) and few.r == pytest.approx(1)


def test_models_of_one_pattern_cannot_be_told_apart() -> None:
    random = np.random.default_rng(15)
    shares, p_identified, p_exchanged = [], [], []
    for seed in range(150):
        truth = a_truth(random)
        of_item = 0.05 * random.normal(size=(60, CONDITIONS, 1))
        maps = np.stack([of_items(truth, random) + of_item for _ in range(4)])
        found = identified_models(maps, random.permutation(60), seed, many=10)
        shares.append(found.share)
        p_identified.append(found.p)
        p_exchanged.append(exchanged(maps[0], maps[1], seed, swaps=99))
    assert np.mean(shares) == pytest.approx(0.25, abs=0.04)
    assert (np.array(p_identified) <= 0.05).mean() < 0.07
    assert 0.02 < (np.array(p_exchanged) <= 0.05).mean() < 0.1


def test_models_of_different_patterns_are_told_apart() -> None:
    random = np.random.default_rng(16)
    maps = np.stack([of_items(a_truth(random), random) for _ in range(4)])
    found = identified_models(maps, random.permutation(60), 1)
    assert found.share == 1 and found.matched == found.halves == 8
    assert found.p == found.least_p == pytest.approx(1 / 24) and found.within > found.between + 0.4
    beside = between_readers(maps, 1)
    off = ~np.eye(4, dtype=bool)
    assert (beside.p[off] == beside.least_p).all() and np.diag(beside.r).min() > beside.r[off].max()
    same = between_readers(np.stack([maps[0], of_items(maps[0].mean(0) - SHARED, random)]), 1)
    assert same.corrected[0, 1] > 0.9


def test_maps_of_unlike_conditions_are_compared_in_those_that_both_have() -> None:
    one, other = np.arange(6.0).reshape(3, 2), np.arange(8.0).reshape(4, 2)
    other[0] = np.nan
    kept, (a, b) = common([(("x", "y", "z"), one), (("x", "z", "w", "y"), other)])
    assert kept == ("y", "z") and (a == one[1:]).all() and (b == other[[3, 1]]).all()
    with pytest.raises(UserError, match=r"\(2, 2\)(?s:.*)\b3\b"):
        alike(a, b, 1)


def test_missing_items_do_not_shift_the_means_of_others() -> None:
    cells = np.array([[[1.0]], [[3.0]], [[np.nan]]])
    assert means(cells)[0, 0] == 2 and np.isnan(means(cells[2:])[0, 0])
    with pytest.raises(UserError, match=r"\(2, 5, 3, 2\)"):
        between_readers(np.full((2, 5, 3, 2), np.nan), 1)
