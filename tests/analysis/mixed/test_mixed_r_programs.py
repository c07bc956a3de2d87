"""The program that ``wrods fit --r-script`` writes gives our numbers in R, whatever model, options and columns are drawn."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import fit, lme4_program
from tests.analysis.mixed.drawn_programs import Drawn, drawn_models, faults, make_data, run

FEW = 40
"""Models drawn; of about two in five the data hold no such model, and ``wrods fit`` refuses them."""


@pytest.mark.r
@pytest.mark.full
def test_programs_of_models_drawn_at_random_give_our_numbers(tmp_path: Path) -> None:
    outcomes = run(list(drawn_models(FEW, 1)), tmp_path)
    assert len(outcomes) >= FEW // 2
    assert not {outcome.drawn: outcome.faults for outcome in outcomes if outcome.faults}


COLUMNS = (
    # Columns that R reads, evaluates or prints otherwise than they stand in the formula.
    "y ~ factor(cond) * z + (1 | p)|--contrasts cond=sum",
    "y ~ n + I(n^2) + (1 | p)|--levels n=3,1,2",
    "y ~ relevel(n, ref = '3') + n + (1 | factor(p))|",
    "y ~ flag + I(flag * x) + (1 | p)|--contrasts flag=helmert",
    "y ~ if * z + (1 | p)|",
    "y ~ `if` * T + (1 + `a|b` || `the person`)|",
    "y ~ poly(gappy, 2) + I(gappy.cond %in% c('high', 'low')) + (1 | gappy.p)|",
    "y ~ ifelse(flag, gappy, 0) + (1 | deci)|",
    "y ~ `late night` + côté + TF * code + (big || p)|",
    "y ~ x # a remark\n + (1 | p)|",
    "y6 ~ x + cond + (x | p)|",
    "y.big ~ big + (big | p)|",
    "y.big ~ I(big - 5e6) + (1 + I(big - 5e6) || p) + (1 | i)|",
    "rt ~ x + (1 | p)|--family inverse.gaussian",
    # A covariance that has lost a dimension, far from one in its units.
    "I(1000 * rt) ~ x + (x | p)|--family Gamma --link identity",
    "truth ~ C(n, contr.helmert) + (1 | code.p)|--family binomial",
    "TFanswer ~ big + (x | p)|--family binomial --nagq 3",
)


@pytest.mark.r
@pytest.mark.full
def test_programs_read_every_kind_of_column_as_we_do(tmp_path: Path) -> None:
    models = []
    for k, case in enumerate(COLUMNS):
        formula, _, options = case.partition("|--") if "|--" in case else (case[:-1], "", "")
        models.append(Drawn(k, ("--formula", formula, *(f"--{options}".split() if options else ()))))
    outcomes = run(models, tmp_path)
    assert len(outcomes) == len(COLUMNS)
    assert not {outcome.drawn.arguments: outcome.faults for outcome in outcomes if outcome.faults}


def test_other_numbers_are_told_from_ours() -> None:
    row = {"term": "x", "estimate": 1.0, "se": 0.1, "df": 20.0}
    ours = {"family": "gaussian", "link": "identity", "loglik": -10.0, "singular": False, "fixed": [row]}
    same = {"terms": ["x"], "estimate": [1.0], "se": [0.1], "df": [20.0], "loglik": -10.0}
    assert faults(ours, same) == []
    for other in ({"terms": ["z"]}, {"estimate": [1.01]}, {"se": [0.101]}, {"df": [21.0]}, {"loglik": -10.1}):
        assert len(faults(ours, same | other)) == 1, other
    assert faults(ours, "Downdated VtV is not positive definite")


def test_a_column_whose_name_r_reserves_stands_in_backticks() -> None:
    """Unquoted, a factor named ``if`` ended the whole program of a report."""
    program = lme4_program(fit("y ~ if * z + (1 | p)", make_data(3)), "data.csv")
    assert "y ~ `if` * z + (1 | p)" in program.replace("\n", " ").replace("  ", " ")


def test_a_program_says_what_lme4_cannot_do() -> None:
    data = make_data(3)
    said = lme4_program(fit("correct ~ x + (x | p)", data, "binomial", nagq=3), "data.csv")
    assert "# glmer has quadrature for one random effect a level only" in said
    said = lme4_program(fit("correct ~ big + (1 | p)", data, "binomial"), "data.csv")
    assert "# glmer's steps are for columns of ordinary size" in said
    said = lme4_program(fit("correct ~ x + (1 | p)", data, "binomial"), "data.csv")
    assert "glmer(" in said and "written out" not in said


@pytest.mark.r
def test_a_file_whose_header_has_a_mark_and_spaces_is_read(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    rows = make_data(5)[["y", "x", "p"]].rename(columns={"x": " x"})
    rows.to_csv(file, index=False, encoding="utf-8-sig")
    found = fit("y ~ ` x` + (1 | p)", pd.read_csv(file, encoding="utf-8-sig"))
    program = lme4_program(found, str(file)) + 'cat("B", sprintf("%.10g", fixef(m)), "\\n")\n'
    (tmp_path / "program.R").write_text(program, "utf-8")
    done = subprocess.run(
        ["Rscript", str(tmp_path / "program.R")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    said = next(line for line in done.stdout.splitlines() if line.startswith("B "))
    assert np.array(said.split()[1:], dtype=float) == pytest.approx(
        found.fixed["estimate"].to_numpy(), rel=1e-5
    )
