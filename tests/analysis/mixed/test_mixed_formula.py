"""Formulas as R users write them, and the columns that R makes of them (R 4.2.2's ``model.matrix``)."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.mixed.formula import (
    as_r,
    expand_terms,
    read_expression,
    read_formula,
)
from analysis.mixed.matrices import independent_columns, make_design
from analysis.mixed.variables import Variables
from stimuli.errors import UserError

COLUMNS = [
    ("g*h", "(Intercept) gb gc hy gb:hy gc:hy"),
    ("g:h", "(Intercept) ga:hx gb:hx gc:hx ga:hy gb:hy gc:hy"),
    ("0+g*h", "ga gb gc hy gb:hy gc:hy"),
    ("h/x", "(Intercept) hy hx:x hy:x"),
    ("g/x-1", "ga gb gc ga:x gb:x gc:x"),
    ("x*g+h:x", "(Intercept) x gb gc x:gb x:gc x:hy"),
    ("I(x^2)+log(z.1):g", "(Intercept) I(x^2) log(z.1):ga log(z.1):gb log(z.1):gc"),
    ("(g+h+x)^2", "(Intercept) gb gc hy x gb:hy gc:hy gb:x gc:x hy:x"),
    ("(g+h+x)^2-g:x", "(Intercept) gb gc hy x gb:hy gc:hy hy:x"),
    ("g%in%h", "(Intercept) ga:hx gb:hx gc:hx ga:hy gb:hy gc:hy"),
    ("0+x+x:g", "x x:ga x:gb x:gc"),
    ("g*h-1-h", "ga gb gc ga:hy gb:hy gc:hy"),
    ("h*(x+z.1)", "(Intercept) hy x z.1 hy:x hy:z.1"),
    ("-1+x+h", "x hx hy"),
    ("1", "(Intercept)"),
    ("h:x:g+g", "(Intercept) gb gc hx:x:ga hy:x:ga hx:x:gb hy:x:gb hx:x:gc hy:x:gc"),
    ("g + g:h:x", "(Intercept) gb gc ga:hx:x gb:hx:x gc:hx:x ga:hy:x gb:hy:x gc:hy:x"),
    ("factor(s):x", "(Intercept) factor(s)1:x factor(s)2:x"),
]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    cells = list(itertools.product("abc", "xy", (1, 2), range(3)))
    data = pd.DataFrame(cells, columns=["g", "h", "s", "r"])
    return data.assign(x=rng.normal(size=len(data)), **{"z.1": rng.uniform(1, 3, len(data))})


@pytest.mark.parametrize(("formula", "names"), COLUMNS)
def test_columns_carry_rs_names_in_rs_order(formula: str, names: str, rows: pd.DataFrame) -> None:
    design = make_design(expand_terms(read_expression(formula), formula), Variables(rows, {}, {}))
    assert list(design.names) == names.split()
    assert design.matrix(rows).shape == (len(rows), len(design.names))


@pytest.mark.parametrize(
    ("contrast", "names", "values"),
    [
        ("treatment", ["gb", "gc"], [[0, 0], [1, 0], [0, 1]]),
        ("sum", ["g1", "g2"], [[1, 0], [0, 1], [-1, -1]]),
        ("helmert", ["g1", "g2"], [[-1, -1], [1, -1], [0, 2]]),
    ],
)
def test_contrasts_are_rs(
    contrast: str, names: list[str], values: list[list[float]], rows: pd.DataFrame
) -> None:
    design = make_design(expand_terms(read_expression("g"), "g"), Variables(rows, {}, {"g": contrast}))
    assert list(design.names[1:]) == names
    first = [int(np.flatnonzero(rows["g"] == level)[0]) for level in "abc"]
    assert design.matrix(rows)[first, 1:].tolist() == values


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
        ("y + x", "no '~'"),
        ("~ x + (1 | g)", "no response"),
        ("y ~ x + (1 | g", "expected ')'"),
        ("y ~ x + + ", "ends too early"),
        ("y ~ x + 1 | g", "Put it in parentheses"),
        ("y ~ x * (1 | g)", "occurs where lme4 does not allow one"),
        ("y ~ x + 2 + (1 | g)", "2 is no model term"),
        ("y ~ x + (. | g)", "'.' stands for all other columns in the fixed part only"),
        ("y ~ spline(x) + (1 | g)", "function 'spline' is not known"),
        ("y ~ interaction(a, b) + (1 | g)", "Write 0 + a:b"),
        ("y ~ s(x) + (1 | g)", "Smooth terms are mgcv's"),
        ("y ~ ave(x, g) + (1 | g)", "Make a column of the group means"),
        ("y ~ x[, z] + (1 | g)", "inside [ , ] stands the number of a column"),
        ("y ~ __import__('os') + (1 | g)", "not known"),
        ("y ~ x + (1 | g + h)", "no grouping factor"),
        ("y ~ x + (0 | g)", "no columns"),
        ("y ~ x ? z + (1 | g)", "cannot read it from"),
        ("y ~ x x + (1 | g)", "'x' occurs where"),
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
