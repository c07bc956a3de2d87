"""Simulated residuals are uniform under the model and not elsewhere; influence is what a fit without the unit finds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis import mixed
from analysis.fitted_model import fit
from stimuli.errors import UserError

FORMULA = "y ~ cond + (1 + cond | participant) + (1 | item)"


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    data = pd.DataFrame(
        [(p, i, c) for p in range(16) for i in range(18) for c in (0.0, 1.0)],
        columns=["participant", "item", "cond"],
    )
    of_people, slopes, of_items = rng.normal(0, 0.4, 16), rng.normal(0, 0.2, 16), rng.normal(0, 0.3, 18)
    eta = of_people[data["participant"]] + (0.3 + slopes[data["participant"]]) * data["cond"]
    eta += of_items[data["item"]]
    right = rng.random(len(data)) < 1 / (1 + np.exp(-eta))
    return data.assign(
        y=eta + rng.normal(0, 0.5, len(data)),
        right=right.astype(float),
        count=rng.poisson(np.exp(eta + rng.normal(0, 1.0, len(data)))).astype(float),
    )


def test_a_residual_is_the_place_among_simulated_data(rows: pd.DataFrame) -> None:
    model = mixed.fit(FORMULA, rows)
    found = mixed.simulated_residuals(model, 100, seed=3)
    drawn = mixed.simulate(model, 100, seed=3)
    below = (drawn < rows["y"].to_numpy()[:, None]).sum(axis=1)
    assert (np.abs(found.residuals - (below + 0.5) / 101) <= 0.5 / 101 + 1e-12).all()
    assert found.distance == pytest.approx(stats.kstest(found.residuals, "uniform").statistic)
    ratio = ((rows["y"] - drawn.mean(axis=1)) ** 2).sum() / ((drawn - drawn.mean(axis=1)[:, None]) ** 2).sum(
        0
    ).mean()
    assert found.dispersion == pytest.approx(ratio)
    assert found.outliers == ((below == 0) | (below == 100)).sum()
    assert min(found.p_uniform, found.p_dispersion, found.p_outliers) > 0.05


def test_tests_of_residuals_hold_their_level_although_participants_differ(rows: pd.DataFrame) -> None:
    rng = np.random.default_rng(5)
    low = []
    for _ in range(20):
        own = rng.normal(0, 1.0, 16)[rows["participant"]] + rng.normal(0, 0.5, len(rows))
        model = mixed.fit("y ~ cond + (1 | participant)", rows.assign(y=own))
        low.append(mixed.simulated_residuals(model, 99).p_uniform < 0.05)
    assert np.mean(low) <= 0.1


@pytest.mark.parametrize("grouping", ["participant", "item"])
def test_influence_is_that_of_a_fit_without_the_unit(rows: pd.DataFrame, grouping: str) -> None:
    for response, family, exact in (("y", "gaussian", 0.98), ("right", "binomial", 0.95)):
        formula = f"{response} ~ cond + (1 | participant) + (1 | item)"
        whole = mixed.fit(formula, rows, family)
        found = mixed.influence(whole, grouping)
        without = np.array(
            [
                mixed.fit(formula, rows[rows[grouping].astype(str) != unit], family).fixed["estimate"]
                - whole.fixed["estimate"]
                for unit in found.index
            ]
        )
        for place in range(2):
            assert np.corrcoef(found.iloc[:, place], without[:, place])[0, 1] > exact


def test_a_fitted_model_tells_its_checks(rows: pd.DataFrame) -> None:
    odd = rows.assign(y=rows["y"] + 4 * ((rows["participant"] == 3) & (rows["cond"] == 1)))
    found = fit(odd, "y ~ cond + (1 + cond | participant)").diagnostics().set_index("check")
    assert list(found.index) == ["uniformity", "dispersion", "outliers", "influence of participant"]
    assert found.loc["influence of participant", "unit"] == "3"
    with pytest.raises(UserError, match="'item'"):
        mixed.influence(mixed.fit("y ~ cond + (1 | participant)", odd), "item")


@pytest.mark.parametrize("family", ["shifted_lognormal", "exgaussian"])
def test_diagnostics_of_response_times_are_those_of_the_simulations(rows: pd.DataFrame, family: str) -> None:
    found = fit(rows.assign(rt=400 + 100 * np.exp(rows["y"])), "rt ~ cond + (1 | participant)", family)
    assert found.diagnostics()["check"].tolist() == ["uniformity", "dispersion", "outliers"]
