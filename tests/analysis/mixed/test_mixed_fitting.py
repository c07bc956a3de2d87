"""Fits on simulated data: invariants that need no reference, and what a fit must own up to."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.mixed import Fit, fit, margins, predict
from analysis.mixed.optimise import minimise
from stimuli.errors import UserError
from tests.analysis.mixed.conftest import Simulate

LINEAR = "rt ~ cond * agent + (1 + cond | participant) + (1 + log.freq || item)"
BINARY = "correct ~ cond + agent + (1 + log.freq | participant) + (1 | item)"


JSON_KEYS = (
    "formula family link method nobs groups loglik aic bic deviance converged singular warnings "
    "fixed vcov variance sigma"
)
FIXED_KEYS = "term estimate se statistic df p ci_low ci_high"


def same(one: Fit, other: Fit, tolerance: float = 1e-6) -> None:
    assert one.loglik == pytest.approx(other.loglik, abs=1e-7)
    distance = (one.fixed["estimate"] - other.fixed["estimate"]) / one.fixed["se"]
    assert np.abs(distance).max() < tolerance
    assert one.fixed["se"].to_numpy() == pytest.approx(other.fixed["se"].to_numpy(), rel=1e-4)


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(seed: int, crossed: Simulate) -> None:
    data = crossed(seed=2)
    shuffled = data.sample(frac=1.0, random_state=seed)
    same(
        fit("rt ~ cond + (1 + cond | participant) + (1 | item)", data),
        fit("rt ~ cond + (1 + cond | participant) + (1 | item)", shuffled),
    )
    same(
        fit("correct ~ cond + (1 | participant) + (1 | item)", data, "binomial"),
        fit("correct ~ cond + (1 | participant) + (1 | item)", shuffled, "binomial"),
        1e-4,
    )


@settings(max_examples=5, deadline=None)
@given(factor=st.floats(1e-4, 1e5), shift=st.floats(-1e4, 1e4))
def test_units_of_the_response_only_rescale_a_linear_model(
    factor: float, shift: float, crossed: Simulate
) -> None:
    data = crossed(seed=3)
    moved = data.assign(rt=shift + factor * data["rt"])
    one, other = fit(LINEAR, data), fit(LINEAR, moved)
    assert other.sigma == pytest.approx(factor * one.sigma, rel=1e-4)
    slopes, scaled = one.fixed["estimate"].to_numpy()[1:], other.fixed["estimate"].to_numpy()[1:]
    assert np.abs(scaled - factor * slopes).max() < 1e-4 * factor * one.fixed["se"].max()
    assert other.loglik == pytest.approx(one.loglik - (one.nobs - len(one.fixed)) * np.log(factor), abs=1e-4)


def test_coding_changes_coefficients_but_not_the_model(crossed: Simulate) -> None:
    data = crossed(seed=5)
    fits = [
        fit(LINEAR, data, reml=False, contrasts={"cond": c, "agent": c})
        for c in ("treatment", "sum", "helmert")
    ]
    for other in fits[1:]:
        assert other.loglik == pytest.approx(fits[0].loglik, abs=1e-6)
        ours, theirs = (margins(f, ["cond", "agent"]).table() for f in (fits[0], other))
        assert ours["estimate"].to_numpy() == pytest.approx(theirs["estimate"].to_numpy(), abs=1e-5)
        assert ours["df"].to_numpy() == pytest.approx(theirs["df"].to_numpy(), rel=1e-3)


def test_binary_rows_and_their_counts_give_the_same_estimates(crossed: Simulate) -> None:
    data = crossed(seed=6, participants=20, items=18)
    cells = data.groupby(["participant", "cond"], as_index=False).agg(
        hit=("correct", "sum"), n=("correct", "size")
    )
    rows = fit("correct ~ cond + (1 | participant)", data, "binomial")
    counts = fit("cbind(hit, n - hit) ~ cond + (1 | participant)", cells, "binomial")
    assert counts.fixed["estimate"].to_numpy() == pytest.approx(rows.fixed["estimate"].to_numpy(), abs=1e-6)
    assert counts.fixed["se"].to_numpy() == pytest.approx(rows.fixed["se"].to_numpy(), rel=1e-4)


def test_missing_rows_are_dropped_counted_and_explained(crossed: Simulate) -> None:
    data = crossed(seed=10)
    data.loc[[0, 1, 2], "rt"] = np.nan
    data.loc[[2, 3], "cond"] = None
    found = fit("rt ~ cond + (1 | participant)", data)
    assert found.nobs == len(data) - 4
    assert found.rows.tolist() == list(range(4, len(data)))
    (note,) = found.warnings
    assert (note.values["dropped"], note.values["rows"]) == (4, 192) and "rt in 3, cond in 2" in note


def test_a_singular_term_is_named(crossed: Simulate) -> None:
    data = crossed(seed=11)
    data["noise"] = np.tile([-1.0, 1.0], len(data) // 2)
    data["rt"] = np.random.default_rng(0).normal(size=len(data))
    # Within every item the residuals sum to zero, so that no variance can be left between items.
    data["rt"] -= data.groupby("item")["rt"].transform("mean")
    found = fit("rt ~ 1 + (1 | participant) + (1 | item)", data)
    assert found.singular
    (note,) = found.warnings
    assert (note.code, note.values["group"]) == ("singular_variance", "item")
    assert found.converged


def test_columns_that_others_explain_are_dropped_by_name(crossed: Simulate) -> None:
    data = crossed(seed=12)
    data["twice"] = 2 * data["log.freq"] + 1
    found = fit("rt ~ log.freq + twice + cond + (1 | participant)", data)
    assert "twice" not in set(found.fixed["term"])
    (note,) = found.warnings
    assert note.code == "columns_dropped" and "twice" in note


def test_a_cell_without_variation_is_pointed_out(crossed: Simulate) -> None:
    data = crossed(seed=14)
    data.loc[(data["agent"] == "model") & (data["cond"] == "intact"), "correct"] = 1
    found = fit("correct ~ agent * cond + (1 | participant)", data, "binomial")
    cells = {w.values["cell"]: w.values["n"] for w in found.warnings if w.code == "uniform_cell"}
    assert cells == {"agent = model, cond = intact": 32}
    assert any(w.code == "large_se" for w in found.warnings) or not found.converged


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_complete_separation_never_yields_a_small_standard_error(link: str, crossed: Simulate) -> None:
    data = crossed(seed=14)
    data["correct"] = (data["agent"] == "model").astype(int)
    found = fit("correct ~ agent + (1 | item)", data, "binomial", link=link)
    assert (found.fixed["se"] > 100).all()
    assert (found.fixed["p"] > 0.5).all()
    assert sum("possible separation" in w for w in found.warnings) >= 2


def test_a_model_without_fixed_effects_can_be_fitted(crossed: Simulate) -> None:
    data = crossed(seed=14)
    found = fit("rt ~ 0 + (1 | participant)", data)
    assert found.fixed.empty
    assert found.variance[0].sd[0] == pytest.approx(data["rt"].mean(), rel=0.2)
    assert "Random effects" in found.summary()


def test_the_modelled_level_of_a_text_response_is_the_second(crossed: Simulate) -> None:
    data = crossed(seed=15)
    data["answer"] = np.where(data["correct"] == 1, "yes", "no")
    text, number = (fit(f"{y} ~ cond + (1 | item)", data, "binomial") for y in ("answer", "correct"))
    same(text, number)
    assert "'yes'" in text.summary()
    flipped = fit("answer ~ cond + (1 | item)", data, "binomial", levels={"answer": ["yes", "no"]})
    assert flipped.fixed["estimate"].to_numpy() == pytest.approx(
        -number.fixed["estimate"].to_numpy(), abs=1e-5
    )


WRONG = [
    ("rt ~ condd + (1 | item)", {}, "column 'condd'", "'cond'?"),
    ("agent ~ cond + (1 | item)", {}, "response 'agent'", "human, model"),
    ("rt ~ cond + (1 | item)", {"family": "binomial"}, "response 'rt'", "weights"),
    ("rt ~ cond + (1 | item)", {"family": "poisson"}, "'rt' holds", "0, 1, 2"),
    ("cond ~ agent + (1 | item)", {"family": "binomial"}, "3 levels", "two levels"),
    ("rt ~ cond + (1 | item)", {"family": "gama"}, "family 'gama'", "binomial"),
    ("correct ~ cond + (1 | item)", {"family": "binomial", "link": "cauchit"}, "link", "logit, probit"),
    ("rt ~ cond + (1 | one)", {}, "'one' in (1 | one)", "'a'"),
    ("rt ~ cond + (1 | row)", {}, "(192)", "repeats"),
    ("rt ~ cond + (1 + log.freq + cond | participant:cond)", {}, "random effects", "slopes"),
    ("rt ~ one + (1 | item)", {}, "'one'", "two levels"),
    ("log(zero) ~ cond + (1 | item)", {}, "'log(zero)'", "zero = 0"),
    ("rt ~ log(cond) + (1 | item)", {}, "text", "numbers"),
    ("rt ~ cond + (1 | item)", {"weights": "zero"}, "weights", "positive"),
    ("rt ~ cond + (1 | item)", {"weights": [1.0]}, "shape (1,)", "192 rows"),
    ("rt ~ cond + (1 | item)", {"levels": {"cond": ["intact"]}}, "initial, internal", "intact"),
    ("rt ~ cond + (1 | item)", {"levels": {"kond": ["a"]}}, "'kond'", "'cond'"),
    ("rt ~ cond + (1 | item)", {"contrasts": {"cond": "simple"}}, "contrast of cond 'simple'", "helmert"),
    ("zero ~ cond + (1 | item)", {}, "is 0 in every row", "zero"),
    ("cbind(correct, rt) ~ cond + (1 | item)", {"family": "binomial"}, "count 'rt'", "0, 1, 2"),
    ("gone ~ cond + (1 | item)", {}, "192", "gone in 192"),
    ("mean ~ log.freq + (1 | item)", {}, "exactly", "constant"),
]


@pytest.mark.parametrize(("formula", "options", "says", "mend"), WRONG, ids=[w[2] for w in WRONG])
def test_what_cannot_be_fitted_is_refused_with_value_rule_and_mend(
    formula: str, options: dict[str, object], says: str, mend: str, crossed: Simulate
) -> None:
    data = crossed(seed=16).assign(one="a", zero=0.0, gone=np.nan)
    data["row"] = np.arange(len(data))
    data["mean"] = data.groupby("item")["rt"].transform("mean")
    with pytest.raises(UserError) as error:
        fit(formula, data, **options)  # type: ignore[arg-type]
    assert says in str(error.value)
    assert mend in str(error.value)


def test_levels_that_do_not_occur_are_left_out_and_reported(crossed: Simulate) -> None:
    found = fit(
        "rt ~ cond + (1 | item)", crossed(), levels={"cond": ["intact", "final", "internal", "initial"]}
    )
    assert found.fixed["term"].tolist() == ["(Intercept)", "condinternal", "condinitial"]
    (note,) = found.warnings
    assert note.code == "levels_absent" and "cond" in note and "final" in note


def test_prediction_for_new_rows_needs_their_columns_and_known_levels(crossed: Simulate) -> None:
    data = crossed(seed=23)
    found = fit("rt ~ cond + scale(log.freq) + (1 | item)", data)
    some, whole = (predict(found, rows, random=False)["estimate"] for rows in (data.tail(3), data))
    assert some.to_numpy() == pytest.approx(whole.to_numpy()[-3:])
    with pytest.raises(UserError, match=r"column 'log\.freq'"):
        predict(found, data[["cond"]], random=False)
    with pytest.raises(UserError, match="cond 'final'"):
        predict(found, data.assign(cond="final"), random=False)


def test_json_holds_exactly_the_agreed_keys_and_plain_values(crossed: Simulate) -> None:
    found = fit(BINARY, crossed(seed=24), "binomial")
    content = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert set(content) == set(JSON_KEYS.split())
    assert set(content["fixed"][0]) == set(FIXED_KEYS.split())
    assert content["fixed"][0]["df"] is None
    assert set(content["variance"][0]) == {"group", "terms", "cov"}
    assert np.array(content["vcov"]).shape == (len(content["fixed"]), len(content["fixed"]))


@pytest.mark.parametrize(
    "formula", ["rt ~ cond + (1 | participant)", "cbind(rt, n) ~ cond + (1 | participant)"]
)
def test_a_text_among_numbers_is_named_with_its_row(crossed: Simulate, formula: str) -> None:
    data = crossed(seed=3, participants=6, items=4)
    data["n"] = 5
    data["rt"] = data["rt"].round(2).astype(object)
    data.loc[1, "rt"] = None
    data.loc[9, "rt"] = "fast"
    family = "binomial" if formula.startswith("cbind") else "gaussian"
    with pytest.raises(UserError) as error:
        fit(formula, data, family)
    assert re.search("'rt' .*'fast' in row 10", error.value.message) and error.value.mend


def test_the_search_leaves_a_saddle_at_zero() -> None:
    class Saddle:
        def __call__(self, x: np.ndarray, /) -> tuple[float, np.ndarray]:
            value = x[0] ** 4 - 2.0 * x[0] ** 2 + (x[1] - 1.0) ** 2
            return float(value), np.array([4.0 * x[0] ** 3 - 4.0 * x[0], 2.0 * (x[1] - 1.0)])

        def metric(self, x: np.ndarray) -> np.ndarray:
            return 2.0 * np.eye(2)

        def nearer(self, x: np.ndarray) -> np.ndarray:
            return x

        def scales(self) -> np.ndarray:
            return np.ones(2)

        def diagonal(self) -> np.ndarray:
            return np.array([True, False])

        def standardise(self, x: np.ndarray) -> np.ndarray:
            return np.abs(x)

    found = minimise(Saddle(), np.array([0.0, 0.0]))
    assert found.x == pytest.approx([1.0, 1.0], abs=1e-5)
    assert found.converged
