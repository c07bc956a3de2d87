"""Model matrices, their names and their values, beside R's ``model.matrix``; contrasts of one's own and their checks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.mixed.formula import expand_terms, read_expression
from analysis.mixed.matrices import make_design
from analysis.mixed.variables import Variables, alphabetical, read_coding
from stimuli.errors import UserError
from tests.analysis.r_programs import lines_of_r

FORMULAS = (
    # terms
    "0 + a",
    "-1 + a:b",
    "b + a %in% b",
    "a/b",
    "a*b - 1 - b",
    "b:x:a + a",
    "(a + b + x)^2 - a:x",
    "a*b*x - a:b:x",
    "x:a + x",
    "a + I(z * x):a",
    "a * poly(x, 2) - a",
    # arithmetic
    "I(x^2) + I(x/z) + I(x/100000) + I(x * 0.50) + I(z * 1e-4) + I(z * 123456)",
    "log(z, 2) + log1p(z) + log10(z):b + sqrt(z) + exp(x) + abs(x) + cos(x) + tanh(x)",
    "round(x) + floor(z) + ceiling(z) + pmax(x, 3) + pmin(z, 2) + ifelse(x > 3, 1, 0)",
    "n %% 2 + I(n %/% 2) + sign(x - 3) + as.logical(n - 1) + as.integer(z)",
    "TRUE + x  # the rest of a line is a remark",
    # truth
    'I(x > 3) + I(x * (a == "lo")) + I(a == "lo" & x > 3) * b',
    'I(!(a == "lo")) + I(a %in% c("lo", "mid"))',
    '(x > 3) * (b == "p")',
    # what learns from the rows
    "poly(x, 3) * a",
    "poly(x, 2, raw = TRUE)",
    "scale(x) + scale(z, scale = FALSE) + scale(log(z))",
    "scale(x)[, 1] + c(scale(z)) + as.vector(x)",
    "scale(x, scale = F) + scale(z, T, T)",
    "I(x - mean(x)) + I((z - min(z))/(max(z) - min(z))) + I(x > median(x)) + I(z/sd(z))",
    "ns(x, df = 3):a",
    "ns(x, knots = c(2.5, 3, 4))",
    "ns(z, 4, intercept = TRUE)",
    "ns(x, df = 2, Boundary.knots = c(2, 4))",
    "splines::ns(x, 2) * b",
    "bs(x, df = 5) * b",
    "bs(x, degree = 2, knots = 3)",
    "bs(x, knots = c(2.5, 3.5), Boundary.knots = c(-1, 8)) + bs(z, 4, degree = 1)",
    "cut(x, c(-5, 2, 3, 10), right = FALSE) * b",
    'cut(z, breaks = c(0, 2.123456, 3, 5), labels = c("l", "m", "h"))',
    "0 + cut(n, c(1, 2, 4), include.lowest = TRUE):x",
    # factors
    "factor(n)*b",
    "as.factor(n) + n",
    "0 + factor(n):x",
    "factor(n, levels = c(4, 3, 2, 1)) + as.numeric(n)",
    'relevel(factor(a), ref = "mid") * b',
    "C(factor(a), contr.sum) + C(factor(n), contr.helmert)",
    "ordered(n) * x",
    'factor(n, labels = c("w", "x", "y", "z")) * x',
    'relevel(factor(n, levels = 1:4, labels = c("w", "x", "y", "z")), "y")',
    'factor(n, ordered = TRUE) + ordered(a, levels = c("lo", "mid", "hi"))',
    "as.character(a) + droplevels(b)",
    "C(a, treatment, base = 2) + C(b, contr.sum(2))",
    "C(a, contr.treatment(3, base = 3))",
)
WORDS = ("x y", "äußerlich", "_c", "10", "B", "a", "A", "b", "é", "e", "-x", "2", "Öl", "(z)", "ñ", "n")


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    at = np.arange(60)
    data = pd.DataFrame({"x": np.round(rng.normal(3, 1, 60), 4), "z": np.round(rng.uniform(1, 5, 60), 4)})
    data["a"], data["b"] = np.array(["lo", "mid", "hi"])[at % 3], np.array(["p", "q"])[at // 3 % 2]
    return data.assign(n=at % 4 + 1)


@pytest.fixture(scope="module")
def matrices(
    rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[list[str], Any]]:
    """Have R make all matrices in one session."""
    folder = tmp_path_factory.mktemp("matrices")
    rows.to_csv(folder / "data.csv", index=False)
    asked = ", ".join(json.dumps(f"~ {text}") for text in FORMULAS)
    program = f"""library(splines)
d <- read.csv("data.csv", stringsAsFactors = TRUE)
for (text in c({asked})) {{
  m <- model.matrix(as.formula(text), d)
  cat("NAMES", paste(colnames(m), collapse = "\\t"), "\\n", sep = "\\t")
  cat("VALUES", paste(sprintf("%.14g", m), collapse = "\\t"), "\\n", sep = "\\t")
}}
cat("SORTED", paste(sort(c({json.dumps(WORDS, ensure_ascii=False)[1:-1]})), collapse = "\\t"), "\\n", sep = "\\t")
"""
    *lines, words = [line.split("\t")[1:-1] for line in lines_of_r(program, folder)]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return {
        text: (names, np.array(values, dtype=float).reshape(len(names), -1).T)
        for text, (names, values) in zip(FORMULAS, pairs, strict=True)
    } | {"words": (words, None)}


@pytest.mark.r
@pytest.mark.parametrize("formula", FORMULAS)
def test_a_model_matrix_is_rs_in_names_and_values(
    formula: str, rows: pd.DataFrame, matrices: dict[str, tuple[list[str], Any]]
) -> None:
    design = make_design(expand_terms(read_expression(formula), formula), Variables(rows, {}, {}))
    names, values = matrices[formula]
    assert list(design.names) == names
    assert design.matrix(rows) == pytest.approx(values, abs=1e-9)


@pytest.mark.r
def test_levels_are_in_rs_alphabetical_order(matrices: dict[str, tuple[list[str], Any]]) -> None:
    assert list(alphabetical(WORDS)) == matrices["words"][0]


@pytest.mark.parametrize(
    "formula",
    ["ns(x, 3)", "bs(x, 4)", "I(x - mean(x))", "I(z/sd(z))", "scale(x)[, 1]", "cut(x, 3)", "poly(x, 2)"],
)
def test_new_rows_are_transformed_by_what_the_fitted_rows_taught(formula: str, rows: pd.DataFrame) -> None:
    design = make_design(expand_terms(read_expression(formula), formula), Variables(rows, {}, {}))
    some = rows.iloc[[5, 17, 40]].reset_index(drop=True)
    assert design.matrix(some) == pytest.approx(design.matrix(rows)[[5, 17, 40]], abs=1e-12)


def test_contrasts_of_ones_own_are_columns_under_their_names(rows: pd.DataFrame) -> None:
    given = {".scr": [-1.0, 0.5, 0.5], ".where": [0.0, -0.5, 0.5]}
    variables = Variables(rows, {"a": ["hi", "mid", "lo"]}, {"a": given})
    design = make_design(expand_terms(read_expression("a"), "a"), variables)
    assert design.names == ("(Intercept)", "a.scr", "a.where")
    first = [int(np.flatnonzero(rows["a"] == level)[0]) for level in ("hi", "mid", "lo")]
    assert design.matrix(rows)[first, 1:].T.tolist() == list(given.values())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([[1.0, -1.0, 0.0]], "1 contrasts; "),
        ([[1.0, -1.0], [0.0, 1.0]], "3 levels (hi, lo, mid)"),
        ([[1.0, -1.0, 0.0], [2.0, -2.0, 0.0]], "apart"),
        ([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]], "apart"),
        ("deviation", "'deviation'"),
    ],
)
def test_contrasts_that_cannot_be_used_are_refused(given: Any, says: str) -> None:
    with pytest.raises(UserError) as error:
        read_coding("a", given, ("hi", "lo", "mid"))
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ('relevel(factor(a), ref = "middle")', "level of a 'middle'"),
        ("C(factor(a), contr.dummy)", "contrast of a 'dummy'"),
        ('factor(a, levels = c("lo", "mid"))', "also holds hi"),
        ("factor(x + z)", "'x + z'"),
        ("I(a * 2)", "holds text"),
        ('factor(a, labels = c("one", "two"))', "hi, lo, mid"),
        ("cut(x, c(2, 3))", "interval"),
        ("cut(x, 1)", "intervals"),
        ("cut(a, 3)", "column of numbers"),
        ("cut(x, 3, dig.lab = 2)", "argument of cut 'dig.lab'"),
        ("C(a, contr.treatment(3, base = 7))", "base = 7 of a"),
        ("x + mean(x)", "'mean(x)' is one number"),
        ("poly(x, z, degree = 2)", "polynomials of several variables"),
        ("dummy(a)", "dummy()"),
        ("ns(x, 3, knots = c(1, 9), Boundary.knots = c(2, 4))", "knot 1 "),
        ("bs(x, df = 1)", "bs(df = 1)"),
        ("scale(x)[, 2]", "[, 2]: "),
        ('ifelse(a == "lo", "u", "v")', "numbers"),
        ("ns(x, degree = 2)", "Write bs(x, degree = 2)"),
        ("bs(x, df = 2.5)", "df is 2.5;"),
        ("log(x, bas = 10)", "'base'?"),
        ("exp(x, 2)", "exp()"),
        ("round(x, 1, 2)", "round()"),
        ("ifelse(x > 2, 1)", "condition"),
        ('scale(x, scale = "a")', "TRUE, FALSE"),
        ("log(factor(x))", "'factor(x)'"),
        ('factor(a, levels = relevel("lo", "hi"))', """'relevel("lo", "hi")'"""),
    ],
)
def test_calls_that_cannot_be_read_say_why(formula: str, says: str, rows: pd.DataFrame) -> None:
    with pytest.raises(UserError) as error:
        make_design(expand_terms(read_expression(formula), formula), Variables(rows, {}, {}))
    assert says in str(error.value)
