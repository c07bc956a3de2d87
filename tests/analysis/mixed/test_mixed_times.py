"""Shifted lognormal and ex-Gaussian times: scipy's likelihood, lme4 given the shift, integrals, recovery, refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from scipy import integrate, optimize, stats

from analysis.fitted_model import fit as fit_table
from analysis.mixed import bootstrap, fit, profile_intervals, residuals
from analysis.mixed.families import TIMES
from analysis.mixed.responses import TIME_RESPONSES
from experiment.cli import main
from stimuli.errors import UserError
from tests.analysis.r_programs import lines_of_r

Array = NDArray[np.float64]
CROSSED = "{} ~ cond + (1 | participant) + (1 | item)"


def times(participants: int, items: int, seed: int, spread: float = 1.0) -> pd.DataFrame:
    """Draw times of each family; known values are those of ``TRUTH``."""
    rng = np.random.default_rng(seed)
    who, what = np.divmod(np.arange(participants * items), items)
    cond = np.array(["intact", "scrambled"])[(who + what) % 2]
    n, slow = len(who), cond == "scrambled"
    by, of = (spread * stats.zscore(rng.normal(size=k))[at] for k, at in ((participants, who), (items, what)))
    mean = 500 + 60 * by + 40 * of + 50 * slow
    return pd.DataFrame(
        {
            "participant": who,
            "item": what,
            "cond": cond,
            "x": rng.normal(size=n),
            "shifted_lognormal": 200 + rng.lognormal(6 + 0.2 * by + 0.1 * of + 0.15 * slow, 0.4),
            "exgaussian": mean + rng.normal(0, 60, n) + rng.exponential(200, n),
        }
    )


TRUTH: dict[str, dict[str, float]] = {
    "shifted_lognormal": {
        "(Intercept)": 6, "condscrambled": 0.15, "participant": 0.2, "item": 0.1, "sigma": 0.4, "ndt": 200,
    },
    "exgaussian": {
        "(Intercept)": 700, "condscrambled": 50, "participant": 60, "item": 40, "sigma": 60, "beta": 200,
    },
}  # fmt: skip


def scipys(family: str, y: Array, eta: Array, sigma: float, second: float) -> Array:
    """Return the log-density as scipy has it."""
    if family == "shifted_lognormal":
        return np.asarray(stats.lognorm.logpdf(y, sigma, loc=second, scale=np.exp(eta)))
    return np.asarray(stats.exponnorm.logpdf(y, second / sigma, loc=eta - second, scale=sigma))


@pytest.mark.parametrize("family", TIMES)
def test_densities_are_scipys_and_simulated_times_follow_them(family: str) -> None:
    y = np.array([310.0, 420.0, 500.0, 900.0, 2600.0])
    lognormal = family == "shifted_lognormal"
    eta = np.full(5, 6.0 if lognormal else 600.0)
    for sigma, given in ((0.4, 0.3), (1.5, -2.0)) if lognormal else ((60.0, 200.0), (150.0, 20.0)):
        response = TIME_RESPONSES[family](
            y, np.ones(5), np.array([np.log(sigma), given if lognormal else np.log(given)])
        )
        second = response.natural[0][1]
        assert response.loglik(eta) == pytest.approx(scipys(family, y, eta, sigma, second), rel=1e-9)
        law = (
            stats.lognorm(sigma, second, np.exp(6.0))
            if lognormal
            else stats.exponnorm(second / sigma, 600.0 - second, sigma)
        )
        drawn = response.draw(np.random.default_rng(1), np.full(40_000, eta[0]))
        assert stats.kstest(drawn, law.cdf).pvalue > 0.001
        assert response.mean(eta)[0][0] == pytest.approx(law.mean())
        assert response.variance(eta)[0] == pytest.approx(law.var())


@pytest.mark.parametrize("k", [0.01, 0.4, 3.0, 39.0, 41.0, 500.0])
def test_the_ex_gaussian_keeps_its_digits_from_exponential_to_normal(k: float) -> None:
    """The derivatives are those of differences, and nothing overflows in the tails."""
    y = np.array([300.0, 480.0, 560.0, 1100.0, 4000.0])
    eta = np.full(5, 600.0)
    response = TIME_RESPONSES["exgaussian"](y, np.ones(5), np.log([50.0, 50.0 / k]))
    assert all(np.isfinite(part(eta)).all() for part in (response.loglik, response.score, response.observed))
    step = 1e-3
    for value, slope in (
        (response.loglik, response.score),
        (response.score, lambda at: -response.observed(at)),
        (response.observed, response.inside_slope),
    ):
        rise = (value(eta + step) - value(eta - step)) / (2 * step)
        assert slope(eta) == pytest.approx(rise, rel=2e-4, abs=2e-9)


@pytest.mark.parametrize("family", TIMES)
def test_without_random_effects_the_maximum_is_that_of_scipys_likelihood(family: str) -> None:
    rows = times(20, 20, seed=3, spread=0.0)
    y, slow = rows[family].to_numpy(), (rows["cond"] == "scrambled").to_numpy()
    lognormal = family == "shifted_lognormal"
    scale = 1.0 if lognormal else 100.0

    def badness(at: Array) -> float:
        if lognormal and not 0.0 < at[1] * 100 < y.min():
            return 1e9
        eta = scale * (at[2] + at[3] * slow + at[4] * rows["x"].to_numpy())
        return -float(scipys(family, y, eta, scale * at[0], 100 * at[1]).sum())

    start = [0.4, 1.5, 6.0, 0.1, 0.0] if lognormal else [0.6, 2.0, 7.0, 0.5, 0.0]
    settings = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-9, "fatol": 1e-11}
    best = optimize.minimize(badness, start, method="Nelder-Mead", options=settings)
    ours = fit(f"{family} ~ cond + x", rows, family)
    assert ours.converged and ours.loglik == pytest.approx(-best.fun, abs=1e-6)
    assert ours.distribution is not None and ours.n_parameters == 5
    theirs = [*(scale * best.x[2:]), scale * best.x[0], 100 * best.x[1]]
    assert [*ours.fixed["estimate"], *ours.distribution["estimate"]] == pytest.approx(theirs, rel=1e-4)


@pytest.mark.r
def test_given_the_shift_a_shifted_lognormal_is_lmer_of_the_log(tmp_path: Path) -> None:
    """lme4's profile over the shift peaks at ours; there variances, coefficients and the likelihood are the same."""
    times(15, 16, seed=5).to_csv(tmp_path / "times.csv", index=False)
    program = """
        suppressMessages(library(lme4))
        d <- read.csv("times.csv")
        d$y <- d$shifted_lognormal
        at <- function(s) suppressMessages(lmer(log(y - s) ~ cond + x + (1 + x | participant) + (1 | item), d, REML = FALSE))
        loglik <- function(s) as.numeric(logLik(at(s))) - sum(log(d$y - s))
        best <- optimize(loglik, c(0, min(d$y) - 1), maximum = TRUE, tol = 1e-4)
        m <- at(best$maximum)
        cat(sprintf("%.10g", c(best$maximum, best$objective, sigma(m), fixef(m),
          unlist(lapply(VarCorr(m), function(v) attr(v, "stddev"))))), sep = "\\n")
        """
    theirs = [float(line) for line in lines_of_r(program, tmp_path)]
    data = pd.read_csv(tmp_path / "times.csv")
    formula = "shifted_lognormal ~ cond + x + (1 + x | participant) + (1 | item)"
    ours = fit(formula, data, "shifted_lognormal")
    assert ours.distribution is not None
    sigma, ndt = ours.distribution["estimate"]
    sds = sorted(sd for c in ours.variance for sd in c.sd)
    assert ours.loglik == pytest.approx(theirs[1], abs=1e-4)
    assert [ndt, sigma, *ours.fixed["estimate"]] == pytest.approx([theirs[0], *theirs[2:6]], rel=1e-3)
    assert sds == pytest.approx(sorted(theirs[6:]), rel=5e-3)


def test_the_laplace_deviance_of_crossed_ex_gaussians_is_that_of_scipys_density() -> None:
    rows = times(7, 6, seed=2)
    ours = fit(CROSSED.format("exgaussian"), rows, "exgaussian")
    assert ours.distribution is not None
    (sigma, beta), sds = ours.distribution["estimate"], {c.group: float(c.sd[0]) for c in ours.variance}
    fixed = ours.model.matrices.x @ ours.fixed["estimate"].to_numpy()
    levels = np.concatenate([np.full(7, sds["participant"]), np.full(6, sds["item"])])
    z = np.hstack([np.eye(7)[rows["participant"]], np.eye(6)[rows["item"]]]) * levels
    y = rows["exgaussian"].to_numpy()

    def joint(u: Array) -> float:
        return float(u @ u / 2 - scipys("exgaussian", y, fixed + z @ u, sigma, beta).sum())

    mode = optimize.minimize(joint, np.zeros(13), method="BFGS", options={"gtol": 1e-6}).x
    step, unit, signs = 1e-3, np.eye(13), [(s, t) for s in (-1, 1) for t in (-1, 1)]
    second = [
        [sum(s * t * joint(mode + step * (s * a + t * b)) for s, t in signs) / (4 * step**2) for a in unit]
        for b in unit
    ]
    laplace = -joint(mode) - np.linalg.slogdet(np.array(second))[1] / 2
    assert ours.loglik == pytest.approx(laplace, abs=1e-4)


@pytest.mark.parametrize("family", TIMES)
def test_quadrature_is_the_integral_and_laplace_is_near(family: str) -> None:
    rows = times(9, 12, seed=8)
    formula = f"{family} ~ cond + (1 | participant)"
    ours, rough = (fit(formula, rows, family, nagq=nagq) for nagq in (15, 1))
    assert ours.distribution is not None
    sigma, second = ours.distribution["estimate"]
    fixed, sd = ours.model.matrices.x @ ours.fixed["estimate"].to_numpy(), float(ours.variance[0].sd[0])
    total = 0.0
    for person in range(9):
        own = (rows["participant"] == person).to_numpy()
        y, eta, grid = rows[family].to_numpy()[own], fixed[own], np.linspace(-8, 8, 801)
        joint = [scipys(family, y, eta + sd * u, sigma, second).sum() + stats.norm.logpdf(u) for u in grid]
        total += max(joint) + np.log(integrate.simpson(np.exp(np.array(joint) - max(joint)), x=grid))
    assert ours.loglik == pytest.approx(total, abs=1e-6)
    # Given sigma and the shift the lognormal is normal, and Laplace exact.
    assert rough.loglik == pytest.approx(ours.loglik, abs=1e-6 if family == "shifted_lognormal" else 0.2)


@pytest.mark.parametrize("family", TIMES)
def test_known_values_are_recovered_over_participants_and_items(family: str) -> None:
    truth, found, covered = TRUTH[family], [], 0
    for seed in range(6):
        ours = fit(CROSSED.format(family), times(30, 20, seed), family)
        assert ours.converged and ours.distribution is not None
        tables = [t.set_index("term") for t in (ours.fixed, ours.distribution)]
        both = pd.concat([t[["estimate", "ci_low", "ci_high"]] for t in tables])
        known = np.array([truth[str(term)] for term in both.index])
        covered += int(((both["ci_low"] < known) & (known < both["ci_high"])).sum())
        found.append(both["estimate"].to_dict() | {c.group: float(c.sd[0]) for c in ours.variance})
    drawn = pd.DataFrame(found)
    gap = (drawn.mean() - pd.Series(truth)) / (drawn.std() / np.sqrt(6))
    assert gap.abs().max() < 4 and covered / 24 > 0.8


def test_means_of_a_shifted_lognormal_have_the_errors_of_all_parameters() -> None:
    """A mean's standard error is close to sd / sqrt(n), though ndt and the intercept are very uncertain."""
    rows = times(20, 20, seed=6, spread=0.0)
    model = fit_table(rows, "shifted_lognormal ~ cond", "shifted_lognormal")
    means, y = model.means("cond", scale="response"), rows.groupby("cond")["shifted_lognormal"]
    assert means["estimate"].to_numpy() == pytest.approx(y.mean().to_numpy(), rel=0.03)
    assert means["se"].to_numpy() == pytest.approx((y.std() / np.sqrt(y.size())).to_numpy(), rel=0.25)
    gap = model.contrasts("cond", scale="response").iloc[0]
    assert gap["estimate"] == pytest.approx(means["estimate"].iloc[0] - means["estimate"].iloc[1])
    assert sorted(set(model.predict()["estimate"].round(6))) == pytest.approx(
        sorted(means["estimate"]), abs=1e-5
    )
    with pytest.raises(UserError, match="scale='link'"):
        model.predict(se=True)
    with pytest.raises(UserError, match="shifted lognormal"):
        fit_table(rows, "shifted_lognormal ~ x", "shifted_lognormal").means("", slopes="x", scale="response")


@pytest.mark.parametrize("family", TIMES)
def test_models_of_times_answer_the_questions_of_others(family: str) -> None:
    rows = times(12, 12, seed=4)
    model = fit_table(rows, CROSSED.format(family), family)
    assert "sigma" in model.summary()
    assert "sigma" in json.dumps(model.to_json()["distribution"])
    found = fit(CROSSED.format(family), rows, family)
    assert np.std(residuals(found, "pearson")) == pytest.approx(1.0, abs=0.15)
    drawn = model.simulate(2, seed=1)
    assert drawn.iloc[:, 0].mean() == pytest.approx(rows[family].mean(), rel=0.15)
    assert not any("sigma" in str(name) for name in profile_intervals(found).iloc[:, 0])
    names = set(bootstrap(found, 2).names)
    assert {"sigma", "ndt" if family == "shifted_lognormal" else "beta"} < names
    assert 0 < model.r_squared().set_index("quantity").loc["R2 conditional", "value"] < 1
    for refused, why in (
        (lambda: model.r_script("times.csv"), f"R .*{family}"),
        (lambda: residuals(found, "deviance"), "deviance residuals"),
        (lambda: fit(CROSSED.format(family), rows, family, penalty="normal"), "penalty 'normal'"),
        (lambda: fit(CROSSED.format(family), rows, family, information="expected"), "observed information"),
        (lambda: fit(CROSSED.format(family), rows, family, link="log"), "link"),
    ):
        with pytest.raises(UserError, match=why):
            refused()


@pytest.mark.parametrize("family", TIMES)
def test_times_that_are_none_are_refused_with_a_remedy(family: str, tmp_path: Path) -> None:
    rows = times(4, 4, seed=1)
    rows.loc[3, family] = -20.0
    rows.to_csv(tmp_path / "t.csv", index=False)
    asked = ["fit", str(tmp_path / "t.csv"), "--family", family, "--formula", f"{family} ~ cond"]
    said = CliRunner().invoke(main, asked)
    assert said.exit_code != 0
    assert family in said.output and re.search(r"-20 .*\b1 of 16\b", said.output)


def test_data_that_do_not_have_the_shape_say_so() -> None:
    even = (np.arange(300) + 0.5) / 300
    normal = pd.DataFrame({"rt": stats.norm(600, 50).ppf(even)})
    assert "simpler_times" in {note.code for note in fit("rt ~ 1", normal, "exgaussian").warnings}
    left = pd.DataFrame({"rt": 900 - 100 * stats.expon.ppf(even)})
    assert "shift_at_end" in {note.code for note in fit("rt ~ 1", left, "shifted_lognormal").warnings}
