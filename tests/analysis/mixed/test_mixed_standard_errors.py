"""Standard errors of generalised models against second differences of the deviance itself, where lme4's are noise."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from analysis.mixed import fit, fitting
from analysis.mixed.objective import make_objective
from tests.analysis.mixed.test_mixed_r_random import Design


@pytest.mark.parametrize(
    ("formula", "seed", "sizes"),
    [
        # lme4's Hessian has a negative eigenvalue here; it falls back to other standard errors, up to 2.5 times these.
        ("correct ~ a * b + (0 + b | p)", 6489, (25, 14)),
        # Here lme4 reports convergence and standard errors near 0.04 with |z| up to 72; its differences of a noisy deviance.
        ("correct ~ a * b + (x | p) + (1 | i)", 1019, (18, 23)),
        ("correct ~ a * b + (1 | p)", 3550, (24, 16)),
        ("correct ~ x + a + (x | p) + (1 | i)", 5267, (19, 13)),
    ],
)
def test_standard_errors_under_a_guess_rate_are_those_of_the_deviances_own_curvature(
    formula: str, seed: int, sizes: tuple[int, int]
) -> None:
    data = Design(formula, "binomial", "guess(0.5)", "treatment", seed, *sizes).data()
    found = fit(formula, data, "binomial", "guess(0.5)")
    assert found.converged
    model = found.model
    deviance = make_objective(model.frame, model.matrices, model.family, model.link, model.criterion)
    at = np.concatenate([found.theta, np.linalg.solve(deviance.back, found.fixed["estimate"].to_numpy())])

    def curvature(h: float) -> np.ndarray:
        steps = h * np.eye(len(at))
        return np.array(
            [
                [
                    sum(s * t * deviance(at + s * a + t * b)[0] for s in (1, -1) for t in (1, -1))
                    for b in steps
                ]
                for a in steps
            ]
        ) / (4.0 * h**2)

    # Richardson's extrapolation from two steps; nothing but values of the deviance goes in.
    hessian = (4.0 * curvature(0.01) - curvature(0.02)) / 3.0
    k = len(found.theta)
    vcov = deviance.back @ (2.0 * np.linalg.inv(hessian))[k:, k:] @ deviance.back.T
    assert found.fixed["se"].to_numpy() == pytest.approx(np.sqrt(np.diag(vcov)), rel=1e-3)


@pytest.mark.parametrize("link", ["logit", "probit", "guess(0.5)"])
def test_many_rows_have_the_same_standard_errors_from_half_as_many_evaluations(link: str) -> None:
    data = Design("correct ~ a * b + (1 + a | p) + (1 | i)", "binomial", link, "treatment", 11, 40, 30).data()
    found = fit("correct ~ a * b + (1 + a | p) + (1 | i)", data, "binomial", link)
    with patch.object(fitting, "MANY", len(data)):
        soon = fit("correct ~ a * b + (1 + a | p) + (1 | i)", data, "binomial", link)
    parameters = len(found.fixed) + len(found.theta)
    assert found.evaluations - soon.evaluations >= parameters - 1
    assert soon.converged == found.converged
    assert soon.fixed["estimate"].to_numpy() == pytest.approx(found.fixed["estimate"].to_numpy(), rel=1e-5)
    assert soon.fixed["se"].to_numpy() == pytest.approx(found.fixed["se"].to_numpy(), rel=2e-4)
