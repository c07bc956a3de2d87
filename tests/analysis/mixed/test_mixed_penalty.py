"""The weak penalty: finite answers where data separate, hardly a trace where they do not."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import fit, likelihood_ratio_test, lme4_program
from analysis.mixed.families import choose_family
from analysis.mixed.formula import read_formula
from analysis.mixed.matrices import make_frame, make_matrices
from analysis.mixed.objective import Penalty
from stimuli.errors import UserError
from tests.analysis.mixed.conftest import Simulate

MODEL = "correct ~ agent * cond + (1 | participant) + (1 | item)"


@pytest.fixture
def separated(crossed: Simulate) -> pd.DataFrame:
    """Return data in which one cell holds successes only."""
    data = crossed(seed=14)
    data.loc[(data["agent"] == "model") & (data["cond"] == "intact"), "correct"] = 1
    return data


def test_a_separated_cell_gets_a_finite_estimate_of_the_right_sign(separated: pd.DataFrame) -> None:
    plain = fit(MODEL, separated, "binomial")
    found = fit(MODEL, separated, "binomial", penalty="normal")
    assert plain.fixed["se"].max() > 100 or not plain.converged
    assert found.converged
    assert found.fixed["se"].max() < 3
    intact = float(found.fixed.set_index("term")["estimate"]["agentmodel:condintact"])
    assert 1 < intact < 6
    cells = [w.values["cell"] for w in found.warnings if w.code == "uniform_cell"]
    assert cells == ["agent = model, cond = intact"]


def test_participants_without_an_error_do_not_make_a_variance_run_away() -> None:
    data = pd.DataFrame({"p": np.repeat(np.arange(20), 10), "x": np.tile(np.arange(10.0), 20)})
    data["correct"] = (data["p"] % 2).astype(int)
    runaway = fit("correct ~ x + (1 | p)", data, "binomial")
    found = fit("correct ~ x + (1 | p)", data, "binomial", penalty="normal")
    assert runaway.variance[0].sd[0] > 10 or not runaway.converged
    assert found.converged
    assert 2 < found.variance[0].sd[0] < 10


def test_the_penalty_hardly_moves_what_the_data_determine(crossed: Simulate) -> None:
    data = crossed(seed=21, participants=40, items=40)
    plain = fit("correct ~ agent + cond + (1 | participant) + (1 | item)", data, "binomial")
    found = fit("correct ~ agent + cond + (1 | participant) + (1 | item)", data, "binomial", penalty="normal")
    assert np.abs((plain.fixed["estimate"] - found.fixed["estimate"]) / plain.fixed["se"]).max() < 0.1
    assert found.fixed["se"].to_numpy() == pytest.approx(plain.fixed["se"].to_numpy(), rel=0.02)
    assert 0 < plain.loglik - found.loglik < 0.05


def test_scales_follow_gelman_and_do_not_depend_on_units_or_coding(crossed: Simulate) -> None:
    data = crossed(seed=9)
    moved = data.assign(**{"log.freq": 50.0 + 1000.0 * data["log.freq"]})
    formula = "correct ~ log.freq + agent + (1 + log.freq | participant)"
    one = fit(formula, data, "binomial", penalty="normal")
    other = fit(formula, moved, "binomial", penalty="normal")
    assert other.loglik == pytest.approx(one.loglik, abs=1e-6)
    assert other.fixed["statistic"].to_numpy()[1:] == pytest.approx(
        one.fixed["statistic"].to_numpy()[1:], abs=1e-4
    )
    family, _ = choose_family("binomial")
    parsed = read_formula(formula)
    matrices = make_matrices(parsed, make_frame(parsed, data, family), family)
    matrix = Penalty(intercept=1e9).on_coefficients(matrices)
    assert np.sqrt(np.diag(matrix)) * 2.5 == pytest.approx(
        [0.0, 2 * data["log.freq"].std(ddof=0), 1.0], abs=1e-6
    )


def test_a_penalised_fit_says_so_in_table_json_and_program(separated: pd.DataFrame) -> None:
    found = fit(MODEL, separated, "binomial", penalty="normal")
    assert found.method == "penalised ML (normal), Laplace (nAGQ=1)"
    assert found.method in found.summary()
    assert any(w.code == "penalised" and "normal(2.5)" in w for w in found.warnings)
    assert json.loads(json.dumps(found.to_json()))["method"] == found.method
    program = lme4_program(found, "trials.csv")
    assert "# penalty: normal(2.5) on coefficients" in program
    assert "deviance_at(par_at(z)) + penalty(par_at(z))" in program


def test_penalised_fits_are_not_compared_by_likelihood_ratios(separated: pd.DataFrame) -> None:
    pair = [
        fit(f"correct ~ {x} + (1 | item)", separated, "binomial", penalty="normal") for x in ("1", "agent")
    ]
    with pytest.raises(UserError, match=re.escape("penalised ML (normal)")):
        likelihood_ratio_test(*pair)
