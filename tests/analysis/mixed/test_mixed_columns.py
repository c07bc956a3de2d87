"""Kinds of columns that a model takes: objects, dates, truth values, words of any alphabet, vectors outside the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import fit, linear_contrasts, margins, predict, residuals
from analysis.mixed.formula import expand_terms, read_expression, read_formula
from stimuli.errors import UserError
from tests.analysis.mixed.conftest import Simulate


@pytest.fixture(scope="module")
def data(crossed: Simulate) -> pd.DataFrame:
    return crossed(seed=51)


def estimates(found: Any) -> np.ndarray:
    return np.asarray(found.fixed["estimate"], dtype=float)


def test_weights_given_as_a_series_find_their_rows(data: pd.DataFrame) -> None:
    named = fit("rt ~ cond + (1 | item)", data, weights="trials")
    shuffled = fit("rt ~ cond + (1 | item)", data, weights=data["trials"].sample(frac=1.0, random_state=1))
    assert estimates(shuffled) == pytest.approx(estimates(named), abs=1e-12)
    with pytest.raises(UserError, match=r"Series.*index"):
        fit("rt ~ cond + (1 | item)", data, weights=data["trials"].set_axis(range(7, 7 + len(data))))


@pytest.mark.parametrize("kind", [float, Decimal])
def test_numbers_in_a_column_of_objects_are_numbers(kind: Any, data: pd.DataFrame) -> None:
    boxed = data.assign(boxed=pd.Series([kind(str(v)) for v in data["log.freq"]], dtype=object))
    plain, other = fit("rt ~ log.freq + (1 | item)", boxed), fit("rt ~ boxed + (1 | item)", boxed)
    assert list(other.fixed["term"]) == ["(Intercept)", "boxed"]
    assert estimates(other) == pytest.approx(estimates(plain))


def test_a_response_does_not_explain_itself() -> None:
    with pytest.raises(UserError, match=re.escape("y ~ y + x + (1 | g)")):
        read_formula("y ~ y + x + (1 | g)")
    assert read_formula("log(y) ~ y + (1 | g)").fixed.labels() == ("y",)


@pytest.mark.parametrize(
    ("formula", "labels"),
    [
        ("(x + a*b)^2", "x a b x:a x:b a:b x:a:b"),
        ("(a + b + x + z)^3", "a b x z a:b a:x a:z b:x b:z x:z a:b:x a:b:z a:x:z b:x:z"),
        ("(a*b)^2", "a b a:b"),
    ],
)
def test_powers_of_sums_list_their_terms_as_r_does(formula: str, labels: str) -> None:
    assert expand_terms(read_expression(formula), formula).labels() == tuple(labels.split())


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("rt ~ cond + (1 + three | item)", "(1 + three | item): three can be written by the other columns"),
        ("rt ~ cond + (log.freq + I(2 * log.freq) | participant)", "I(2 * log.freq) can be written by"),
        (
            "rt ~ cond + (1 | item) + (1 | item)",
            "(1 | item) and (1 | item) are one random effect written twice",
        ),
        (
            "rt ~ cond + (cond || item)",
            "(1 | item) is over-parameterised: (0 + cond | item) already allows all of its variation",
        ),
        (
            "rt ~ cond + (1 | agent)",
            "agent has 2 levels; a variance estimated from two levels is very imprecise",
        ),
    ],
)
def test_random_columns_that_no_data_could_tell_apart_are_told(
    formula: str, says: str, data: pd.DataFrame
) -> None:
    found = fit(formula, data.assign(three=3.0))
    assert any(says in warning for warning in found.warnings)
    plain = fit('rt ~ cond + (1 + dummy(cond, "initial") || item) + (0 + agent | participant)', data)
    assert not any(
        word in warning for warning in plain.warnings for word in ("written", "over-", "imprecise")
    )


def test_ordered_categories_have_polynomial_contrasts_unless_others_are_given(data: pd.DataFrame) -> None:
    degrees = ["intact", "internal", "initial"]
    ordered = data.assign(cond=pd.Categorical(data["cond"], degrees, ordered=True))
    for more, terms in (
        ({}, ["cond.L", "cond.Q"]),
        ({"contrasts": {"cond": "treatment"}}, ["condinternal", "condinitial"]),
        ({"levels": {"cond": degrees}}, ["condinternal", "condinitial"]),
    ):
        found = fit("rt ~ cond + (1 | item)", ordered, **more)  # type: ignore[arg-type]
        assert list(found.fixed["term"]) == ["(Intercept)", *terms]


REFUSED: dict[str, Callable[[pd.DataFrame], Any]] = {
    "'day'": lambda data: fit("rt ~ day + (1 | item)", data.assign(day=pd.Timestamp("2026-01-01"))),
    "code .* 192 levels": lambda data: fit(
        "rt ~ code + (1 | item)", data.assign(code=[f"c{i}" for i in range(len(data))])
    ),
    "pandas DataFrame": lambda data: fit("rt ~ cond + (1 | item)", data.to_dict("list")),
    "condintact": lambda data: linear_contrasts(fit("rt ~ cond + (1 | item)", data), [[1.0, 0.0]]),
    "'cond'": lambda data: margins(fit("rt ~ cond + (1 | item)", data), "kond"),
    "'holm'": lambda data: margins(fit("rt ~ cond", data), "cond").pairs(adjust="Holm"),
    "model log": lambda data: margins(fit("rt ~ cond", data), "cond").pairs(scale="ratio"),
    r"'log\.freq'": lambda data: predict(
        fit("rt ~ log.freq + (1 | item)", data), pd.concat([data, data[["log.freq"]]], axis=1)
    ),
    "kind of residual 'raw'": lambda data: residuals(fit("rt ~ cond", data), "raw"),
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_columns_and_tables_cannot_give_is_refused(says: str, data: pd.DataFrame) -> None:
    with pytest.raises(UserError, match=says):
        REFUSED[says](data)


def test_a_linear_model_takes_truth_values_for_one_and_zero(data: pd.DataFrame) -> None:
    flagged = data.assign(right=data["correct"] == 1)
    truth, number = (fit(f"{y} ~ cond + (1 | item)", flagged) for y in ("right", "correct"))
    assert estimates(truth) == pytest.approx(estimates(number), abs=1e-12)
