"""Families, links, quadrature and dispersion against lme4, glmmTMB, brute force and known truths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, special, stats

from analysis.mixed import Fit, fit
from analysis.mixed.deviance import in_units_of_residuals
from analysis.mixed.families import FAMILIES, TIMES, choose_family
from analysis.mixed.formula import read_formula
from analysis.mixed.matrices import make_frame, make_matrices
from analysis.mixed.objective import choose_criterion, make_objective
from analysis.mixed.optimise import differences
from stimuli.errors import UserError
from tests.analysis.mixed.conftest import Oracle, Simulate
from tests.analysis.mixed.drawn_programs import make_data

DATA = Path(__file__).parent / "data"
REFERENCES: list[dict[str, Any]] = json.loads((DATA / "families.json").read_text("utf-8"))["fits"]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return pd.read_csv(DATA / "families.csv")


@pytest.fixture(scope="module")
def positive() -> pd.DataFrame:
    """Two factors, a covariate, and one response for each family."""
    rng = np.random.default_rng(5)
    n = 240
    data = pd.DataFrame({"g": np.arange(n) % 12, "h": np.arange(n) // 24, "x": rng.normal(size=n)})
    eta = 0.3 * data["x"] + rng.normal(0, 0.5, 12)[data["g"]] + rng.normal(0, 0.3, 10)[data["h"]]
    data["w"] = rng.integers(1, 4, n)
    data["count"] = rng.negative_binomial(2, 2 / (2 + np.exp(1 + eta)))
    data["time"] = rng.gamma(5, np.exp(1 + 0.3 * eta) / 5)
    data["correct"] = (rng.random(n) < 0.5 + 0.5 / (1 + np.exp(-eta - 1))).astype(int)
    return data


def told(reference: dict[str, Any]) -> str:
    options = "".join(f", {k}={v}" for k, v in reference["options"].items())
    return f"{reference['judge']}: {reference['formula'].split(' ~')[0]} {reference['family']} {reference['link']}{options}"


@pytest.mark.parametrize("reference", REFERENCES, ids=told)
def test_every_family_and_link_gives_the_reference_fit(reference: dict[str, Any], rows: pd.DataFrame) -> None:
    ours = fit(reference["formula"], rows, reference["family"], reference["link"], **reference["options"])
    se = np.array(reference["se"])
    assert np.abs((ours.fixed["estimate"] - reference["estimate"]) / se).max() < 1e-3
    assert ours.fixed["se"].to_numpy() == pytest.approx(se, rel=1e-3)
    assert ours.loglik == pytest.approx(reference["loglik"], abs=1e-3)
    assert ours.loglik > reference["loglik"] - 1e-5
    variance = np.array(reference["variance"]).ravel()
    assert np.abs([c.cov[0, 0] for c in ours.variance] - variance).max() < 2e-3 * variance.max()
    assert ours.converged
    if "dispersion" in reference:
        assert ours.dispersion == pytest.approx(reference["dispersion"], rel=1e-3)
    if "sigma" in reference:
        assert ours.sigma == pytest.approx(reference["sigma"], rel=1e-3)


RESPONSES = (
    ("binomial", ("probit", "cloglog", "guess(0.5)", "guess(1/4, probit)"), "correct"),
    ("poisson", ("log",), "count"),
    ("negative.binomial", ("log",), "count"),
    ("Gamma", ("identity", "log", "inverse"), "time"),
    ("inverse.gaussian", ("identity", "log", "1/mu^2"), "time"),
    ("gaussian", ("log", "inverse"), "time"),
    ("ordinal", ("logit", "cloglog"), "pmin(count, 4)"),
)
GRADIENTS = [
    (family, link, response, criterion)
    for family, links, response in RESPONSES
    for link in links
    for criterion in ("expected", "observed", "quadrature", "glmer")
    if not (criterion == "glmer" and family not in ("Gamma", "inverse.gaussian"))
    and not (criterion == "expected" and family == "ordinal")
    # one link is enough where every one takes the same way
    and not (criterion == "quadrature" and link != links[0])
]
CRITERIA: dict[str, tuple[int, str | None, str]] = {
    "expected": (1, "expected", "ml"),
    "observed": (1, "observed", "ml"),
    "quadrature": (5, None, "ml"),
    "glmer": (1, None, "glmer"),
}


@pytest.mark.parametrize(("family", "link", "response", "criterion"), GRADIENTS)
def test_gradients_are_exact_for_every_criterion(
    family: str, link: str, response: str, criterion: str, positive: pd.DataFrame
) -> None:
    nagq, information, dispersion = CRITERIA[criterion]
    random = "(1 + x | g)" if nagq > 1 else "(1 + x | g) + (1 | h)"
    chosen, chosen_link = choose_family(family, link)
    parsed = read_formula(f"{response} ~ x + {random}")
    frame = make_frame(parsed, positive, chosen, weights=None if family == "binomial" else "w")
    matrices = in_units_of_residuals(make_matrices(parsed, frame, chosen), frame, chosen, chosen_link)
    how = choose_criterion(chosen, nagq, information, dispersion)
    objective = make_objective(frame, matrices, chosen, chosen_link, how)
    rng = np.random.default_rng(7)
    for size in (0.0, 0.3):
        x = objective.starts[0] + size * rng.normal(size=len(objective.starts[0]))
        numeric = differences(lambda at: np.array([objective(at)[0]]), x, np.full(len(x), 1e-4))[:, 0]
        assert np.abs(objective(x)[1] - numeric).max() < 1e-5 * max(1.0, np.abs(numeric).max())


def density(family: str, y: np.ndarray, mu: float, d: float) -> np.ndarray:
    if family == "Gamma":
        return np.asarray(stats.gamma.logpdf(y, 1 / d, scale=mu * d))
    if family == "inverse.gaussian":
        return np.asarray(stats.invgauss.logpdf(y, mu * d, scale=1 / d))
    if family == "negative.binomial":
        return np.asarray(stats.nbinom.logpmf(y, d, d / (d + mu)))
    if family == "poisson":
        return np.asarray(stats.poisson.logpmf(y, mu))
    if family == "betabinomial":
        return np.asarray(stats.betabinom.logpmf(np.round(10 * y), 10, mu * d, (1 - mu) * d))
    if family == "gaussian":
        return np.asarray(stats.norm.logpdf(y, mu, np.sqrt(d)))
    return np.asarray(stats.binom.logpmf(10 * y, 10, mu))


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in {"ordinal", *TIMES}])
def test_densities_are_scipys_with_all_constants(family: str) -> None:
    counted = FAMILIES[family].takes_trials
    y = np.array([0.2, 0.5, 0.9]) if counted else np.array([1.0, 2.0, 7.0])
    mu, d = (0.4, 1.0) if counted else (2.5, 0.7)
    w = np.full(3, 10.0 if counted else 1.0)
    ours = FAMILIES[family].loglik(y, np.full(3, mu), w, d)
    assert ours == pytest.approx(density(family, y, mu, d), rel=1e-9)


def test_quadrature_is_the_integral(positive: pd.DataFrame) -> None:
    data = positive[positive["g"] < 3]
    found = fit("correct ~ x + (1 + x | g)", data, "binomial", nagq=25)
    b = found.fixed["estimate"].to_numpy()
    lower = np.linalg.cholesky(found.variance[0].cov + 1e-12 * np.eye(2))
    total = 0.0
    for _, level in data.groupby("g"):
        x, y = level["x"].to_numpy(), level["correct"].to_numpy()

        def integrand(u: float, v: float, x: np.ndarray = x, y: np.ndarray = y) -> float:
            effect = lower @ np.array([u, v])
            eta = b[0] + effect[0] + (b[1] + effect[1]) * x
            loglik = float(np.sum(y * eta - np.logaddexp(0.0, eta)))
            return float(np.exp(loglik - (u * u + v * v) / 2.0) / (2.0 * np.pi))

        total += np.log(integrate.dblquad(integrand, -6, 6, -6, 6, epsabs=0.0, epsrel=1e-6)[0])
    assert found.loglik == pytest.approx(total, abs=1e-5)


@pytest.mark.shared
def test_quadrature_of_counts_is_lme4s_but_for_the_constants_it_drops(oracle: Oracle) -> None:
    reference = next(f for f in oracle.description("cbpp")["fits"] if f["id"] == "period_laplace")
    nine = reference["agq9"]
    data = oracle.data("cbpp")
    found = fit(reference["formula"], data, "binomial", nagq=9, levels=reference["factor_levels"])
    terms = found.fixed.set_index("term")
    for term, se in nine["se"].items():
        assert abs(terms.loc[term, "estimate"] - nine["fixef"][term]) < 1e-3 * se
        assert terms.loc[term, "se"] == pytest.approx(se, rel=1e-3)
    assert found.variance[0].sd[0] == pytest.approx(nine["theta"], rel=1e-4)
    size, hits = data["size"].to_numpy(), data["incidence"].to_numpy()
    share = hits / size
    saturated = special.xlogy(hits, share) + special.xlogy(size - hits, 1 - share)
    saturated += special.gammaln(size + 1) - special.gammaln(hits + 1) - special.gammaln(size - hits + 1)
    assert found.loglik == pytest.approx(nine["logLik"] + saturated.sum(), abs=1e-4)
    assert found.method == "ML, adaptive Gauss-Hermite (nAGQ=9)"


@pytest.mark.parametrize("family", ["Gamma", "inverse.gaussian"])
@pytest.mark.parametrize("link", ["identity", "log"])
def test_the_unit_of_a_time_changes_nothing_but_its_unit(family: str, link: str, rows: pd.DataFrame) -> None:
    in_ms = fit("rt ~ x + cond + (1 | participant) + (1 | item)", rows, family, link)
    in_s = fit("I(rt/1000) ~ x + cond + (1 | participant) + (1 | item)", rows, family, link)
    assert in_ms.converged and in_s.converged
    assert in_ms.fixed["statistic"].to_numpy()[1:] == pytest.approx(
        in_s.fixed["statistic"].to_numpy()[1:], rel=1e-4
    )
    assert in_s.loglik - in_ms.loglik == pytest.approx(len(rows) * np.log(1000.0), abs=1e-5)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("family", ["Gamma", "inverse.gaussian"])
def test_a_mean_that_a_search_tries_at_the_end_of_the_range_is_unlikely_and_never_no_number(
    family: str,
) -> None:
    y, weights = np.array([0.4, 700.0, 3e4]), np.ones(3)
    for mean in (1e-310, 1e-200, 1e-160, 1e160, 1e200):
        found = FAMILIES[family].loglik(y, np.full(3, mean), weights, 0.3)
        assert (found < -100.0).all(), (mean, found)


def simulated(rng: np.random.Generator, participants: int, items: int) -> pd.DataFrame:
    who, what = np.divmod(np.arange(participants * items), items)
    x = rng.choice([-0.5, 0.5], len(who))
    return pd.DataFrame({"p": who, "i": what, "x": x, "z": rng.normal(size=len(who))})


def within(found: Fit, term: str, truth: float) -> bool:
    row = found.fixed.set_index("term").loc[term]
    return bool(abs(row["estimate"] - truth) < 3.5 * row["se"])


def test_known_parameters_are_recovered() -> None:
    rng = np.random.default_rng(2)
    data = simulated(rng, 60, 30)
    p, i, x = data["p"].to_numpy(), data["i"].to_numpy(), data["x"].to_numpy()
    eta = 0.8 + 0.5 * x + rng.normal(0, 0.6, 60)[p] + rng.normal(0, 0.4, 30)[i]
    data["count"] = rng.negative_binomial(3, 3 / (3 + np.exp(eta)))
    data["forced"] = (rng.random(len(p)) < 0.25 + 0.75 * special.expit(eta)).astype(int)
    mean = 700 + 60 * x + rng.normal(0, 70, 60)[p] + rng.normal(0, 30, 30)[i]
    data["rt"] = rng.gamma(9, mean / 9)
    data["wald"] = rng.wald(mean, 9000)
    random = "x + (1 | p) + (1 | i)"
    counts = fit(f"count ~ {random}", data, "negative.binomial")
    assert counts.dispersion == pytest.approx(3, rel=0.15)
    forced = fit(f"forced ~ {random}", data, "binomial", "guess(1/4)")
    for found in (counts, forced):
        assert within(found, "(Intercept)", 0.8) and within(found, "x", 0.5)
        assert found.variance[0].sd[0] == pytest.approx(0.6, rel=0.3)
    times = fit(f"rt ~ {random}", data, "Gamma", "identity")
    walds = fit(f"wald ~ {random}", data, "inverse.gaussian", "identity")
    for found, phi in ((times, 1 / 9), (walds, 1 / 9000)):
        assert within(found, "(Intercept)", 700) and within(found, "x", 60)
        assert found.dispersion == pytest.approx(phi, rel=0.1)
        assert found.sigma == pytest.approx(np.sqrt(phi), rel=0.05)
        assert found.variance[0].sd[0] == pytest.approx(70, rel=0.3)


WRONG = [
    ("zero ~ x + (1 | p)", {"family": "Gamma"}, "'zero' holds 0", "1 of 400 rows"),
    ("below ~ x + (1 | p)", {"family": "inverse.gaussian"}, "holds -1 ", "above zero"),
    ("t ~ x + (1 | p)", {"family": "negative.binomial"}, "0, 1, 2", "offset(log(exposure))"),
    ("t ~ x + (1 | p)", {"family": "Gamma", "link": "sqrt"}, "Gamma family 'sqrt'", "identity"),
    ("yes ~ x + (1 | p)", {"family": "binomial", "link": "guess(1.5)"}, "guess rate is 1.5", "1 / m"),
    ("yes ~ x + (1 | p)", {"family": "binomial", "link": "guess"}, "guess(rate)", "guess(1/3)"),
    ("yes ~ x + (1 | p)", {"family": "binomial", "link": "guess(.5, log)"}, "guess rate", "probit"),
    ("t ~ x + (1 | p)", {"family": "Gamma", "link": "guess(0.5)"}, "Gamma family", "identity"),
    ("yes ~ x + (1 | p)", {"family": "binomial", "nagq": 0}, "nAGQ = 0", "Laplace"),
    ("yes ~ x + (1 | p)", {"family": "binomial", "nagq": 101}, "from 1 to 100", "quadrature"),
    ("yes ~ x + (1 | p) + (1 | i)", {"family": "binomial", "nagq": 5}, "one grouping factor", "(p, i)"),
    ("t ~ x + (1 | p)", {"nagq": 5}, "nagq", "family"),
    ("t ~ x + (1 | p)", {"penalty": "normal"}, "penalty", "generalised"),
    ("yes ~ x + (1 | p)", {"family": "binomial", "penalty": "ridge"}, "penalty 'ridge'", "normal"),
    ("t ~ x + (1 | p)", {"family": "Gamma", "penalty": "normal"}, "penalty 'normal'", "times"),
    ("yes ~ x + (1 | p)", {"family": "binomial", "dispersion": "glmer"}, "dispersion phi", "Leave"),
    ("t ~ x + (1 | p)", {"family": "Gamma", "dispersion": "lme4"}, "dispersion 'lme4'", "glmer"),
    ("t ~ x + (1 | p)", {"link": "log", "dispersion": "glmer"}, "dispersion", "units"),
    ("t ~ x + (1 | p)", {"link": "sqrt"}, "gaussian family 'sqrt'", "identity, inverse, log"),
    ("t ~ x + (1 | p)", {"family": "Gamma", "information": "fisher"}, "information 'fisher'", "observed"),
    ("same ~ x + (1 | p)", {"family": "Gamma"}, "is 5 in every row", "same"),
]


@pytest.mark.parametrize(("formula", "options", "says", "mend"), WRONG, ids=[w[2] for w in WRONG])
def test_what_a_family_cannot_fit_is_refused(
    formula: str, options: dict[str, Any], says: str, mend: str
) -> None:
    data = simulated(np.random.default_rng(1), 20, 20)
    data["t"] = np.linspace(0.5, 3.0, len(data))
    data["yes"], data["same"] = data.index % 2, 5.0
    data["zero"], data["below"] = data["t"].mask(data.index == 3, 0.0), data["t"].mask(data.index == 3, -1.0)
    with pytest.raises(UserError) as error:
        fit(formula, data, **options)
    assert says in str(error.value)
    assert mend in str(error.value)


@pytest.mark.parametrize(
    ("family", "link"), [("gaussian", "log"), ("Gamma", "identity"), ("inverse.gaussian", "log")]
)
def test_random_effects_carry_the_mean_where_no_fixed_effect_does(family: str, link: str) -> None:
    data = make_data(3)
    found = fit("rt ~ 0 + x + (1 | p)", data, family, link=link)
    assert found.converged
    typical = data["rt"].mean() if link == "identity" else np.log(data["rt"].mean())
    assert found.variance[0].sd[0] == pytest.approx(typical, rel=0.1)


def test_a_mean_that_the_fixed_effects_nearly_carry_is_found() -> None:
    rng = np.random.default_rng(1)
    p, x = np.repeat(np.arange(12), 15), rng.uniform(1, 3, 180)
    mean = (900 - 150 * x) * np.exp(rng.normal(0, 0.1, 12))[p]
    data = pd.DataFrame({"p": p, "x": x, "rt": mean * rng.gamma(20, 1 / 20, 180)})
    found = fit("rt ~ 0 + x + (0 + x | p)", data, "Gamma", link="log")
    # a search that begins with a constant, which nothing in this model can express, ends at -1614.92
    assert found.converged and found.loglik == pytest.approx(-1579.25, abs=0.01)


@pytest.mark.parametrize("random", ["", " + (1 | item)"])
def test_counts_without_overdispersion_converge_to_poisson(random: str, crossed: Simulate) -> None:
    data = crossed(seed=5)
    found = fit(f"errors ~ cond{random}", data, "negative.binomial")
    plain = fit(f"errors ~ cond{random}", data, "poisson")
    assert found.converged and any(
        one.code == "simpler_counts" and one.values["lower"] == "poisson" for one in found.warnings
    )
    assert found.loglik == pytest.approx(plain.loglik, abs=1e-6)
    assert found.evaluations < 500
