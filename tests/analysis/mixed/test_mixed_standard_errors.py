"""Standard errors of generalised models against second differences of the deviance itself, where lme4's are noise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import fit
from analysis.mixed.objective import make_objective


def answers(seed: int, participants: int, items: int) -> pd.DataFrame:
    """Draw answers of participants to items, half of them right by guessing, in a 3 × 2 design with a covariate."""
    rng = np.random.default_rng(seed)
    p, i = np.divmod(np.arange(participants * items), items)
    rows = pd.DataFrame({"p": p, "i": i, "x": np.round(rng.normal(size=len(p)), 3)})
    rows["a"] = np.array(["one", "two", "three"])[(p + i) % 3]
    rows["b"] = np.where((p // 2 + i) % 2 == 0, "no", "yes")
    eta = rng.normal(0, 0.9, participants)[p] + rng.normal(0, 0.7, items)[i] + 0.4 * rows["x"]
    eta += rng.normal(0, 0.5, participants)[p] * rows["x"]
    eta += rng.normal(0, 0.5, (items, 2))[i, (p // 2 + i) % 2]
    rng.normal(0, 0.8, len(p))
    return rows.assign(correct=(rng.random(len(p)) < 0.5 + 0.5 / (1 + np.exp(-eta))).astype(int))


@pytest.mark.parametrize(
    ("formula", "seed", "sizes"),
    [
        # lme4's Hessian has a negative eigenvalue here; it falls back to other standard errors, up to 2.5 times these.
        ("correct ~ a * b + (0 + b | p)", 6489, (25, 14)),
        # Here lme4 reports convergence and standard errors near 0.04 with |z| up to 72; its differences of a noisy deviance.
        ("correct ~ a * b + (x | p) + (1 | i)", 1019, (18, 23)),
    ],
)
def test_standard_errors_under_a_guess_rate_are_those_of_the_deviances_own_curvature(
    formula: str, seed: int, sizes: tuple[int, int]
) -> None:
    data = answers(seed, *sizes)
    found = fit(formula, data, "binomial", "guess(0.5)")
    assert found.converged
    model = found.model
    deviance = make_objective(model.frame, model.matrices, model.family, model.link, model.criterion)
    at = np.concatenate([found.theta, np.linalg.solve(deviance.back, found.fixed["estimate"].to_numpy())])

    def curvature(h: float) -> np.ndarray:
        steps, signs = h * np.eye(len(at)), [(s, t) for s in (1, -1) for t in (1, -1)]
        found = np.zeros((len(at), len(at)))
        for i, j in zip(*np.tril_indices(len(at)), strict=True):
            found[i, j] = sum(s * t * deviance(at + s * steps[i] + t * steps[j])[0] for s, t in signs)
        return (found + np.tril(found, -1).T) / (4.0 * h**2)

    # Richardson's extrapolation from two steps; nothing but values of the deviance goes in.
    hessian = (4.0 * curvature(0.01) - curvature(0.02)) / 3.0
    k = len(found.theta)
    vcov = deviance.back @ (2.0 * np.linalg.inv(hessian))[k:, k:] @ deviance.back.T
    assert found.fixed["se"].to_numpy() == pytest.approx(np.sqrt(np.diag(vcov)), rel=1e-3)
