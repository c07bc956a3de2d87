"""How readers stand to each other: size and robustness, recovery and task, error patterns; truths that were put in are found."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from analysis import Tables, load
from analysis.measures.levels import scrambled_levels
from analysis.rankings import (
    CELLS,
    CONDITIONS,
    SHAPE,
    ErrorVectors,
    error_consistency,
    error_vectors,
    matchings,
    rank_correlation,
    read_parameters,
    recovery_order,
    robustness,
    robustness_by_size,
    robustness_table,
    sizes,
)
from analysis.report.chapters.rankings import write
from stimuli.errors import UserError
from tests.analysis.chapters import chapter_of, tables_in, words_in
from tests.analysis.letter_study import LEVELS, trial_rows, write_handover

FLAT = {"intercept": 0.0, "initial": 0.0, "internal": 0.0, "final": 0.0}


def answers(
    name: str,
    items: int,
    draw: np.random.Generator,
    shift: dict[str, float] = FLAT,
    kind: str = "model",
    **more: Any,
) -> list[dict[str, Any]]:
    """Return a reader's answers to every item in every condition."""
    return trial_rows(name, kind, 0, items, draw, shift, None, all_conditions=True, timeouts=0, **more)


def test_rank_correlation_is_exact() -> None:
    found = rank_correlation(np.array([1.0, 2, 3]), np.array([10.0, 20, 30]))
    assert (found.tau, found.rho, found.readers, found.exact) == (1.0, 1.0, 3, True)
    assert found.p == found.smallest_p == pytest.approx(2 / 6)
    draw = np.random.default_rng(1)
    for many in (7, 12):
        x, y = draw.normal(size=(2, many))
        theirs = stats.kendalltau(x, y, method="exact")
        ours = rank_correlation(x, y)
        assert (ours.tau, ours.p) == (pytest.approx(theirs.statistic), pytest.approx(theirs.pvalue))
    tied = rank_correlation(np.repeat(np.arange(5.0), 2), draw.normal(size=10))
    assert not tied.exact and 0 < tied.p <= 1
    assert np.isnan(rank_correlation(np.ones(4), np.arange(4.0)).p)


def test_numbers_of_parameters_are_read() -> None:
    given = [read_parameters(one) for one in ("1.4B", "350M", "70 B", 124439808, "12K")]
    assert given == [1.4e9, 3.5e8, 7e10, 124439808.0, 12_000.0]
    with pytest.raises(UserError, match="'big'"):
        read_parameters("big")
    readers = {
        "a": {"kind": "model", "settings": {"family": "F", "parameters": "1B"}, "parameters": 5},
        "b": {"kind": "model", "parameters": 7},
        "human": {"kind": "human"},
    }
    known = sizes(readers)
    assert set(known) == {"a", "b"}
    assert (known["a"].family, known["a"].parameters, known["a"].counted) == ("F", 1e9, False)
    assert (known["b"].family, known["b"].parameters, known["b"].counted) == (None, 7.0, True)


def family_study(folder: Path, losses: dict[str, float], items: int = 400, **readers: Any) -> Tables:
    """Models whose accuracy on changed text is lower by a share of their own; named m1e8 for 1e8 parameters."""
    draw = np.random.default_rng(2)
    uniform = draw.random((items, len(LEVELS)))
    rows = []
    for name, loss in losses.items():
        made = pd.DataFrame(answers(name, items, draw))
        at = made["item_id"].str[1:].where(~made["is_practice"], "1").astype(int) - 1
        level = made["position"].map({one: place for place, one in enumerate(LEVELS)}).fillna(0).astype(int)
        right = uniform[at, level] < np.where(level > 0, 0.9 - loss, 0.9)
        rows.append(made.assign(correct=right.astype(object), response_status="valid"))
    told: dict[str, Any] = {name: {"kind": "model", "sessions": 1} for name in losses}
    for name, reader in told.items():
        reader["settings"] = {"family": "F", "parameters": float(name[1:])} | readers.get(name, {})
    return load(write_handover(folder, pd.concat(rows, ignore_index=True), readers=told))


def test_robustness_that_grows_with_size_is_found(tmp_path: Path) -> None:
    tables = family_study(tmp_path, {"m1e8": 0.5, "m1e9": 0.35, "m1e10": 0.2, "m1e11": 0.05})
    known = sizes(tables.dictionary["readers"])
    found = robustness(tables, "position", resamples=400)
    table = robustness_table(found, known).set_index("model")
    assert table.loc["m1e8", "lost"] == pytest.approx(50, abs=6)
    assert table.loc["m1e8", "retention"] == pytest.approx(100 * 0.4 / 0.9, abs=6)
    assert table.loc["m1e8", "lost_low"] < table.loc["m1e8", "lost"] < table.loc["m1e8", "lost_high"]
    slopes = robustness_by_size(found, known).set_index("measure")
    lost = slopes.loc["lost"]
    assert lost["items_low"] < -15 < lost["items_high"] and lost["items_high"] < 0
    assert lost["low"] < -15 < lost["high"]
    assert (lost["models"], lost["tau"]) == (4, -1.0)
    assert lost["p"] == lost["smallest_p"] == pytest.approx(2 / 24)
    assert slopes.loc["retention", "slope"] > 0


def recovery_study(folder: Path, recovered: dict[str, float], right: dict[str, float]) -> Tables:
    draw = np.random.default_rng(4)
    rows = []
    for name in recovered:
        made = pd.DataFrame(answers(name, 120, draw))
        task = made.assign(correct=draw.random(len(made)) < right[name], response_status="valid")
        typed = made.assign(
            trial_type="recover",
            set="texts",
            response_status="valid",
            score=np.clip(draw.normal(recovered[name], 0.1, len(made)), 0, 1),
            correct=False,
            trial_index=made["trial_index"] + 1000,
        )
        rows += [task, typed]
    return load(write_handover(folder, pd.concat(rows, ignore_index=True)))


def test_the_order_of_models_in_recovery_is_held_against_that_in_the_task(tmp_path: Path) -> None:
    recovered = {"a": 0.2, "b": 0.4, "c": 0.6, "d": 0.8}
    same, turned = (
        recovery_order(
            recovery_study(tmp_path / order, recovered, dict(zip("abcd", right, strict=True))),
            "position", resamples=300,
        )
        for order, right in {"same": (0.3, 0.5, 0.7, 0.9), "turned": (0.9, 0.7, 0.5, 0.3)}.items()
    )  # fmt: skip
    assert (same.correlation.tau, same.rho_low) == (1.0, 1.0)
    assert same.correlation.p == pytest.approx(2 / 24)
    assert list(same.table["recovery_rank"]) == [4, 3, 2, 1]
    assert same.table.set_index("model").loc["d", "recovery"] == pytest.approx(80, abs=2)
    assert turned.correlation.tau == -1.0 and turned.tau_high < 0
    few = recovery_study(tmp_path / "few", {"a": 0.2, "b": 0.3}, {"a": 0.2, "b": 0.3})
    with pytest.raises(UserError, match=r"^2 models"):
        recovery_order(few, "position")


def test_models_at_chance_with_intact_text_have_no_place_in_the_order_of_recovery(tmp_path: Path) -> None:
    recovered = {"a": 0.2, "b": 0.4, "c": 0.6, "d": 0.8}
    right = {"a": 0.5, "b": 0.7, "c": 0.8, "d": 0.9}
    chapter = chapter_of(write, recovery_study(tmp_path / "all", recovered, right))
    assert [row[0] for row in tables_in(chapter)["recovery_order"].rows] == ["d", "c", "b"]
    told = words_in(chapter)
    assert "Over 3 models" in told and " a is not ranked" in told
    few = recovery_study(tmp_path / "few", recovered, right | {"b": 0.5})
    assert "2 models have both" in words_in(chapter_of(write, few))


def pattern_study(
    folder: Path, patterns: dict[str, np.ndarray], sessions: int, people: int = 0, slope_sd: float = 0.0
) -> Tables:
    """Models that answer anew in every session, each with item difficulties (log odds) of its own."""
    draw = np.random.default_rng(5)
    rows: list[dict[str, Any]] = []
    items = len(next(iter(patterns.values()))) if patterns else 96
    for name, pattern in patterns.items():
        for session in range(sessions):
            made = answers(name, items, draw, item_effects=pattern)
            told = {"session_id": f"{name}-{session}", "temperature": 1.0, "replicate": session + 1}
            rows += [row | told for row in made]
    for number in range(people):
        shift = FLAT | {level: float(draw.normal(0, slope_sd)) for level in LEVELS[1:]}
        rows += answers(f"P{number:03d}", items, draw, shift, "human")
    return load(write_handover(folder, pd.DataFrame(rows)))


def test_models_with_item_difficulties_of_their_own_are_told_apart(tmp_path: Path) -> None:
    draw = np.random.default_rng(6)
    names = "abcd"
    own = {name: draw.normal(0, 2, 60) for name in names}
    vectors = error_vectors(pattern_study(tmp_path / "own", own, 4), "position")
    found = {one.of: one for one in matchings(vectors, list(names))}
    assert found[SHAPE].features == CELLS and found[SHAPE].accuracy > 0.95
    assert found[SHAPE].p == found[SHAPE].smallest_p == pytest.approx(1 / 24)
    assert found[SHAPE].chance == pytest.approx(1 / 4)


def vectors_of(right: np.ndarray, groups: tuple[str, ...], strata: np.ndarray) -> ErrorVectors:
    """Error vectors of units that met every item in two conditions."""
    items = right.shape[1] // 2
    return ErrorVectors(
        sparse.csr_matrix(right),
        sparse.csr_matrix(np.ones_like(right)),
        tuple(map(str, range(len(right)))),
        groups,
        strata,
        np.repeat(np.arange(items), 2),
        np.tile([0, 1], items),
        dict.fromkeys(groups, "human" if "human" in groups else "model"),
        {},
    )


@pytest.mark.parametrize("kind", ["people", "copies of a model"])
def test_readers_who_are_alike_are_told_apart_no_more_often_than_the_p_says(kind: str) -> None:
    """Of 100 sets of readers without any difference, about one in twenty has p <= .05."""
    groups = ("human",) * 12 if kind == "people" else tuple(f"m{unit // 4}" for unit in range(20))
    strata = np.repeat([0, 1], 6) if kind == "people" else np.zeros(20, dtype=int)
    found = []
    for seed in range(100):
        draw = np.random.default_rng(seed)
        right = (draw.random((len(groups), 48)) < np.repeat(draw.random(24), 2)).astype(float)
        vectors = vectors_of(right, groups, strata)
        found += [one.p <= 0.05 for one in matchings(vectors, list(dict.fromkeys(groups)), str(seed))]
    assert len(found) == 200 and 1 <= sum(found) <= 21


def test_error_consistency_is_cohens_kappa_within_conditions_by_hand(tmp_path: Path) -> None:
    tables = family_study(tmp_path, {"m1": 0.2, "m2": 0.5}, items=60)
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    wide = used.pivot_table(index=["item_id", "position"], columns="reader", values="correct").reset_index()
    agreed, expected = 0.0, 0.0
    for _, own in wide.groupby("position"):
        p, q = own["m1"].mean(), own["m2"].mean()
        agreed += (own["m1"] == own["m2"]).sum()
        expected += len(own) * (p * q + (1 - p) * (1 - q))
    found = error_consistency(error_vectors(tables, "position"))
    (row,) = found.to_dict("records")
    assert (row["one"], row["other"], row["pairs"], row["cells"]) == ("m1", "m2", 1, 240)
    assert row["kappa"] == pytest.approx((agreed - expected) / (len(wide) - expected))
    # both draw on the same random numbers, so that errors agree as far as accuracies allow
    assert row["kappa"] == pytest.approx(row["highest"]) and row["low"] < row["kappa"] < row["high"]


def test_readers_who_err_independently_have_a_kappa_of_0_however_conditions_differ(tmp_path: Path) -> None:
    """Pooled over conditions their errors would agree, since conditions differ; within them they do not."""
    draw = np.random.default_rng(8)
    shift = {"intercept": 3.0, "initial": -5.0, "internal": -2.0, "final": -4.0}
    rows: list[dict[str, Any]] = []
    for name in ("a", "b"):
        rows += answers(name, 300, draw, shift)
    found = error_consistency(error_vectors(load(write_handover(tmp_path, pd.DataFrame(rows))), "position"))
    assert found.iloc[0]["low"] < 0 < found.iloc[0]["high"]
    assert abs(found.iloc[0]["kappa"]) < 0.08


def test_text_with_other_letters_throughout_is_no_scramble(tmp_path: Path) -> None:
    tables = family_study(tmp_path, {"m1e8": 0.3, "m1e9": 0.1})
    trials = tables.trials.copy()
    floor = trials["position"] == LEVELS[-1]
    trials.loc[floor, "correct"] = 0.0
    operation = {LEVELS[0]: "none", LEVELS[-1]: "substitute:all"}
    items = tables.items.copy()
    items["provenance"] = [
        json.dumps({"operation": operation.get(level, "transpose:initial")}) for level in items["position"]
    ]
    told = replace(tables, trials=trials, items=items)
    assert scrambled_levels(told, "position") == list(LEVELS[1:-1])
    lost = robustness_table(robustness(told, "position", resamples=20), {}).set_index("model")["lost"]
    used = trials[~trials["is_practice"].astype(bool)]
    shares = used.assign(right=used["correct"].astype(float)).groupby(["reader", "position"])["right"].mean()
    for model in ("m1e8", "m1e9"):
        kept = np.mean([shares[model, level] for level in LEVELS[1:-1]])
        assert lost[model] == pytest.approx(100 * (shares[model, LEVELS[0]] - kept))


def test_people_with_slopes_of_their_own_are_told_apart_and_people_alike_are_not(tmp_path: Path) -> None:
    apart = error_vectors(pattern_study(tmp_path / "apart", {}, 0, people=30, slope_sd=2.0), "position")
    found = {one.of: one for one in matchings(apart, ["human"])}
    assert found[SHAPE].features == CONDITIONS and found[SHAPE].readers == 30
    assert found[SHAPE].p < 0.01 and found[SHAPE].accuracy > 2 * found[SHAPE].chance
    assert found[SHAPE].chance == pytest.approx(1 / 30, abs=0.005)
    with pytest.raises(UserError, match=r"^0 readers of human"):
        matchings(replace(apart, strata=np.arange(30)), ["human"])


def test_the_ceiling_of_a_pair_is_what_either_side_agrees_with_itself(tmp_path: Path) -> None:
    draw = np.random.default_rng(9)
    pattern = draw.normal(0, 2, 80)
    tables = pattern_study(tmp_path, {"a": pattern, "b": pattern}, 3, people=4)
    found = error_consistency(error_vectors(tables, "position")).set_index(["one", "other"])
    assert list(found.index) == list(combinations_with_replacement(("human", "a", "b"), 2))
    assert found.loc[("a", "a"), "pairs"] == 3 and found.loc[("a", "b"), "pairs"] == 9
    top = np.sqrt(found.loc[("a", "a"), "kappa"] * found.loc[("b", "b"), "kappa"])
    assert found.loc[("a", "b"), "ceiling"] == pytest.approx(top)
    # copies: they agree with each other as with themselves
    assert found.loc[("a", "b"), "kappa"] == pytest.approx(top, abs=0.06)
    assert abs(found.loc[("human", "a"), "kappa"]) < 0.1
