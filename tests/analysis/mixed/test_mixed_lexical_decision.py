"""Real lexical decisions on which R's engines fail: the best likelihood, what is wrong with the fit, and honest errors."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import Fit, fit, simulate

PARTS = "t * f + (1 + t * f | participant) + (1 + f | string)"
REFITS = 20
"""Of each some seconds; the page reports more (``tests/benchmarks/bench_mixed_bootstrap.py``)."""


@pytest.fixture(scope="module")
def decisions(shared: Path) -> pd.DataFrame:
    data = pd.read_csv(shared / "data" / "tl_lexical_decision" / "trials.csv")
    data = data[data["item_type"] != "word"].reset_index(drop=True)
    data["t"] = np.where(data["item_type"] == "transposed", 0.5, -0.5)
    data["f"] = np.where(data["font"] == "cursive", 0.5, -0.5)
    return data


@pytest.fixture(scope="module")
def found(decisions: pd.DataFrame) -> Fit:
    return fit(f"correct ~ {PARTS}", decisions, "binomial")


def test_the_likelihood_is_at_least_the_best_that_lme4_reached(found: Fit) -> None:
    assert found.nobs == 9920
    assert found.loglik >= -2457.172
    assert found.converged


def test_the_fit_says_which_term_lost_a_dimension(found: Fit) -> None:
    assert found.singular
    told = [w for w in found.warnings if "singular" in w]
    assert len(told) == 1
    assert re.search(r"participant .*\(t:f .*\(Intercept\), t, f\)", told[0])


@pytest.mark.full
def test_a_parametric_bootstrap_confirms_the_standard_errors(found: Fit, decisions: pd.DataFrame) -> None:
    estimates, errors = [], []
    for drawn in simulate(found, REFITS, seed=1).T:
        again = fit(f"sim ~ {PARTS}", decisions.assign(sim=drawn), "binomial")
        assert again.converged
        estimates.append(again.fixed["estimate"].to_numpy())
        errors.append(again.fixed["se"].to_numpy())
    variance = np.var(estimates, axis=0, ddof=1)
    # Over 4 coefficients; the page says that standard errors are 5 to 15 per cent below the spread.
    near = 3 * np.sqrt(2 / (4 * (REFITS - 1))) + 0.15
    for se in (found.fixed["se"].to_numpy(), np.mean(errors, axis=0)):
        assert np.mean(variance / se**2) == pytest.approx(1.0, abs=near)
    covered = np.abs(np.array(estimates) - found.fixed["estimate"].to_numpy()) < 1.96 * np.array(errors)
    assert covered.mean() > 0.95 - 3 * np.sqrt(0.95 * 0.05 / REFITS)


def test_items_differ_more_in_one_condition_than_in_another_as_the_page_says(shared: Path) -> None:
    """``docs/measures.md``: SDs of items as words, with letters replaced and transposed, and what one variance for all costs."""
    rows = pd.read_csv(shared / "data" / "tl_lexical_decision" / "trials.csv").astype({"correct": float})
    kinds = ["word", "replaced", "transposed"]
    for kind in kinds:
        rows[kind] = (rows["item_type"] == kind).astype(float)
    rows["item_condition"] = rows["base"] + ":" + rows["item_type"]
    start = "correct ~ item_type + (1 + item_type | participant) + (1 | base) + "
    alike, apart = (
        fit(start + term, rows, family="binomial", levels={"item_type": kinds})
        for term in ("(1 | item_condition)", f"(0 + {' + '.join(kinds)} || item_condition)")
    )
    assert apart.loglik - alike.loglik == pytest.approx(13.2, abs=0.05)
    sds = {term.terms[0]: float(np.sqrt(term.cov[0, 0])) for term in apart.variance if len(term.terms) == 1}
    assert [sds[kind] for kind in kinds] == pytest.approx([1.44, 0.63, 0.90], abs=0.005)
