"""Formulas as R users write them, and the columns that R makes of them (R 4.2.2's ``model.matrix``)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.mixed import fit, lme4_program
from analysis.mixed.formula import (
    as_r,
    expand_terms,
    read_expression,
    read_formula,
)
from analysis.mixed.matrices import independent_columns
from analysis.mixed.variables import Variables
from stimuli.errors import UserError
from tests.analysis.mixed.drawn_programs import make_data


def test_a_factor_of_numbers_lists_its_levels_by_size() -> None:
    data = pd.DataFrame({"y": range(4), "n": [10, 9, 100, 9]})
    assert Variables(data, {}, {}).factor("n").levels == ("9", "10", "100")


def test_text_levels_are_alphabetical_whatever_their_case() -> None:
    data = pd.DataFrame({"n": ["b", "A", "a", "B"]})
    assert Variables(data, {}, {}).factor("n").levels == ("a", "A", "b", "B")


def test_a_categorical_column_keeps_the_order_of_its_categories() -> None:
    data = pd.DataFrame({"n": pd.Categorical(["lo", "hi", "lo"], categories=["lo", "mid", "hi"])})
    assert Variables(data, {}, {}).factor("n").levels == ("lo", "hi")


@pytest.mark.parametrize(
    ("formula", "groups"),
    [
        ("y ~ x + (1 | g)", [("1 | g", "g")]),
        ("y ~ (x + z || g)", [("1 | g", "g"), ("0 + x | g", "g"), ("0 + z | g", "g")]),
        ("y ~ (0 + x || g)", [("0 + x | g", "g")]),
        ("y ~ (1 | a/b)", [("1 | b:a", "b:a"), ("1 | a", "a")]),
        ("y ~ (1 | a/b/c)", [("1 | c:(b:a)", "c:(b:a)"), ("1 | b:a", "b:a"), ("1 | a", "a")]),
        ("y ~ (1 | a:b)", [("1 | a:b", "a:b")]),
        ("y ~ ((1 | g))", [("1 | g", "g")]),
        ("y ~ (x - 1 | g)", [("0 + x | g", "g")]),
    ],
)
def test_random_terms_expand_as_in_lme4(formula: str, groups: list[tuple[str, str]]) -> None:
    assert [(t.text(), t.name) for t in read_formula(formula).random] == groups


@pytest.mark.parametrize(
    ("formula", "labels", "text"),
    [
        ("y ~ . + (1 | g)", ("x", "my var", "g"), "y ~ (x + `my var` + g) + (1 | g)"),
        ("log(y) ~ . - g + (x | g)", ("x", "my var"), "log(y) ~ (x + `my var` + g) - g + (x | g)"),
        ("y ~ (.)^2 - g - g:. + (1 | g)", ("x", "my var", "x:my var"), None),
    ],
)
def test_a_dot_is_all_columns_that_the_response_does_not_read(
    formula: str, labels: tuple[str, ...], text: str | None
) -> None:
    parsed = read_formula(formula, ["y", "x", "my var", "g"])
    assert tuple(name.replace("`", "") for name in parsed.fixed.labels()) == labels
    assert text is None or parsed.text == text


def test_the_fixed_part_is_what_the_bars_leave() -> None:
    parsed = read_formula("log(rt.ms) ~ 0 + a * b + (1 + a | p) + offset(log(n)) + (1 | i)")
    assert as_r(parsed.response) == "log(rt.ms)"
    assert parsed.fixed.labels() == ("a", "b", "a:b")
    assert not parsed.fixed.intercept
    assert [as_r(o) for o in parsed.offsets] == ["log(n)"]
    assert parsed.columns() == ("rt.ms", "a", "b", "n", "p", "i")
    assert read_formula("y ~ (1 | g)").fixed.intercept
    assert read_formula("y ~ x").random == ()


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("y + x", "'~'"),
        ("~ x + (1 | g)", "response"),
        ("y ~ x + (1 | g", "expected ')'"),
        ("y ~ x + + ", "ends"),
        ("y ~ x + 1 | g", "parentheses"),
        ("y ~ x * (1 | g)", "lme4"),
        ("y ~ x + 2 + (1 | g)", "2 is "),
        ("y ~ x + (. | g)", "'.' "),
        ("y ~ spline(x) + (1 | g)", "'spline'"),
        ("y ~ interaction(a, b) + (1 | g)", "Write 0 + a:b"),
        ("y ~ s(x) + (1 | g)", "mgcv"),
        ("y ~ ave(x, g) + (1 | g)", "group means"),
        ("y ~ x[, z] + (1 | g)", "[ , ]"),
        ("y ~ __import__('os') + (1 | g)", "'__import__'"),
        ("y ~ x + (1 | g + h)", "grouping factor"),
        ("y ~ x + (0 | g)", "columns"),
        ("y ~ x ? z + (1 | g)", "'? z"),
        ("y ~ x x + (1 | g)", "'x' "),
    ],
)
def test_what_is_no_formula_is_said_with_the_formula(formula: str, says: str) -> None:
    with pytest.raises(UserError) as error:
        read_formula(formula)
    assert says in str(error.value)
    assert formula in str(error.value)


names = st.sampled_from(["a", "b", "c.d", "e_1"])


def expressions() -> st.SearchStrategy[str]:
    pairs = st.sampled_from([" + ", ":", "*", "/"])
    return st.recursive(
        names,
        lambda inner: st.builds(lambda left, op, right: f"({left}{op}{right})", inner, pairs, inner),
        max_leaves=5,
    )


@given(expressions())
def test_printing_and_reading_again_changes_nothing(text: str) -> None:
    once = as_r(read_expression(text))
    assert as_r(read_expression(once)) == once
    assert expand_terms(read_expression(once), once) == expand_terms(read_expression(text), text)


@given(expressions(), expressions())
def test_a_star_is_both_parts_and_their_interaction(left: str, right: str) -> None:
    star = f"({left})*({right})"
    spelled = f"({left}) + ({right}) + ({left}):({right})"
    assert expand_terms(read_expression(star), star) == expand_terms(read_expression(spelled), spelled)


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(0, 3))
def test_independent_columns_span_all_columns(seed: int, free: int, tied: int) -> None:
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(30, free))
    x = np.hstack([basis, basis @ rng.normal(size=(free, tied))])[:, rng.permutation(free + tied)]
    kept = independent_columns(x)
    assert len(kept) == np.linalg.matrix_rank(x)
    assert kept == sorted(kept)


def test_a_column_whose_name_r_reserves_stands_in_backticks() -> None:
    """Unquoted, a factor named ``if`` ended the whole program of a report."""
    program = lme4_program(fit("y ~ if * z + (1 | p)", make_data(3)), "data.csv")
    assert "y ~ `if` * z + (1 | p)" in program.replace("\n", " ").replace("  ", " ")


def test_a_criterion_that_lme4_lacks_is_written_out_in_the_program() -> None:
    data = make_data(3)
    plain, slopes = (
        lme4_program(fit("correct ~ x + (x | p)", data, "binomial", nagq=nagq), "data.csv") for nagq in (1, 3)
    )
    assert "glmer(" in plain and "deviance_at" not in plain and "deviance_at" in slopes
