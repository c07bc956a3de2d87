"""Models of fixed effects alone against R's lm and glm, or glmmTMB where a dispersion is estimated, and by our own R programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import (
    Fit,
    anova,
    bootstrap,
    fit,
    likelihood_ratio_test,
    lme4_program,
    margins,
    predict,
    profile_intervals,
    random_modes,
    with_degrees,
)
from stimuli.errors import UserError
from tests.analysis.mixed.conftest import Simulate
from tests.analysis.r_programs import told_by_r

TMB = "glmmTMB(FORMULA, data = d, family = FAMILY)"
SHARES = "cbind(wins, trials - wins) ~ cond"
BETA = TMB.replace("FAMILY", "betabinomial()")
CASES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "least squares": ("rt ~ cond * log.freq", "gaussian", {}, "lm(FORMULA, d)"),
    "weights and an offset": (
        "rt ~ cond + offset(log.freq)", "gaussian", {"weights": "trials"}, "lm(FORMULA, d, weights = trials)"),
    "answers": ("correct ~ cond * agent", "binomial", {}, "glm(FORMULA, binomial, d)"),
    "probit": ("correct ~ cond", "binomial", {"link": "probit"}, 'glm(FORMULA, binomial("probit"), d)'),
    "successes": ("cbind(hits, trials - hits) ~ log.freq", "binomial", {}, "glm(FORMULA, binomial, d)"),
    "counts": (
        "errors ~ cond", "poisson", {"offset": "log(trials)"}, "glm(FORMULA, poisson, d, offset = log(trials))"),
    "spread counts": ("slips ~ cond", "negative.binomial", {}, TMB.replace("FAMILY", "nbinom2")),
    "overdispersed successes": (SHARES, "betabinomial", {}, BETA),
    "overdispersed successes by participant": (f"{SHARES} + (1 | participant)", "betabinomial", {}, BETA),
    "overdispersed proportions": (
        "wins / trials ~ cond + (1 | item)", "betabinomial", {"weights": "trials", "link": "probit"},
        'glmmTMB(FORMULA, data = d, family = betabinomial("probit"), weights = trials)'),
    "times": ("seconds ~ cond", "Gamma", {"link": "log"}, TMB.replace("FAMILY", 'Gamma("log")')),
    "curved": ("seconds ~ cond", "gaussian", {"link": "log"}, TMB.replace("FAMILY", 'gaussian("log")')),
    "penalised": ("correct ~ cond", "binomial", {"penalty": "normal"}, ""),
}  # fmt: skip
FIRST = """suppressMessages(library(glmmTMB))
d <- read.csv("data.csv", stringsAsFactors = TRUE)
tell <- function(b, v, l, more = NA) cat("JSON", sprintf('{"b": [%s], "se": [%s], "loglik": %.12g, "more": "%s"}',
  paste(sprintf("%.12g", b), collapse = ","), paste(sprintf("%.12g", sqrt(diag(v))), collapse = ","), l, more), "\\n")
told <- function(m) {
  tmb <- inherits(m, "glmmTMB")
  b <- if (tmb) fixef(m)$cond else coef(m)
  v <- if (tmb) vcov(m)$cond else vcov(m)
  tell(b, v, as.numeric(logLik(m)), if (tmb) sigma(m) else if (!inherits(m, "glm")) df.residual(m) else NA)
}
"""


@pytest.fixture(scope="module")
def data(crossed: Simulate) -> pd.DataFrame:
    made = crossed(seed=5)
    made["seconds"] = np.round(np.exp(made["rt"] - 6.0), 6)
    rng = np.random.default_rng(3)
    spread = {
        name: rng.normal(0, 0.9) for column in ("participant", "item") for name in made[column].unique()
    }
    mean = 1 / (1 + np.exp(-made["participant"].map(spread) - made["item"].map(spread)))
    made["wins"] = rng.binomial(made["trials"], rng.beta(4 * mean, 4 * (1 - mean)))
    made["slips"] = np.random.default_rng(2).negative_binomial(1.5, 0.4, len(made))
    return made


@pytest.fixture(scope="module")
def fits(data: pd.DataFrame) -> dict[str, Fit]:
    return {name: fit(formula, data, family, **more) for name, (formula, family, more, _) in CASES.items()}


@pytest.mark.r
def test_models_of_fixed_effects_alone_are_rs(
    data: pd.DataFrame, fits: dict[str, Fit], tmp_path: Path
) -> None:
    """Case by case R's own function (but where it has none), and our program."""
    data.to_csv(tmp_path / "data.csv", index=False)
    lines = [FIRST]
    for name, (formula, _, _, call) in CASES.items():
        if call:
            lines.append(f"m <- {call.replace('FORMULA', formula)}")
            lines.append("told(m)")
        lines.append(f"local({{\n{lme4_program(fits[name], 'data.csv')}")
        lines.append("if (exists('m', inherits = FALSE)) told(m) else")
        lines.append("tell(fixed$Estimate, vcov, log_likelihood) })")
    told = told_by_r("\n".join(lines), tmp_path)
    judged = [fits[name] for name, case in CASES.items() for _ in range(1 + bool(case[3]))]
    assert len(judged) == len(told)
    for ours, theirs in zip(judged, told, strict=True):
        se = np.array(theirs["se"])
        assert np.abs(ours.fixed["estimate"] - theirs["b"]).max() < 2e-4 * se.max(), ours
        assert ours.fixed["se"].to_numpy() == pytest.approx(se, rel=2e-3), ours
        assert ours.loglik == pytest.approx(theirs["loglik"], abs=1e-5), ours
        if theirs["more"] != "NA" and ours.link == "identity":
            assert ours.fixed["df"].to_numpy() == pytest.approx(float(theirs["more"]))
        elif theirs["more"] != "NA" and ours.model.family.dispersion != "phi":
            assert ours.dispersion == pytest.approx(float(theirs["more"]), rel=2e-3)
        assert ours.converged and not ours.singular and bool(ours.groups) == ("|" in ours.formula)


def test_least_squares_serves_means_tests_profiles_and_refits(
    data: pd.DataFrame, fits: dict[str, Fit]
) -> None:
    one = fit("rt ~ cond", data)
    assert one.method == "least squares" and not one.groups and f"({one.method})" in one.summary()
    pairs = margins(one, ["cond"]).pairs()
    assert pairs["df"].to_numpy() == pytest.approx(one.nobs - 3)
    whole = anova(one)
    rise = likelihood_ratio_test(fit("rt ~ 1", data), one)
    # F and the likelihood ratio are functions of one another.
    f = float(whole["statistic"].iloc[0])
    assert rise.statistic == pytest.approx(one.nobs * np.log1p(2 * f / (one.nobs - 3)))
    profile = profile_intervals(one).set_index("parameter")
    assert profile.loc["sigma", "ci_low"] < one.sigma < profile.loc["sigma", "ci_high"]
    assert predict(one, data.head(3))["estimate"].to_numpy() == pytest.approx(one.fitted[:3])
    assert bootstrap(one, 5, seed=1).failed == 0
    assert set(fits["spread counts"].to_json()["groups"]) == set()


def test_a_random_effect_is_tested_against_none(data: pd.DataFrame) -> None:
    less, more = fit("rt ~ cond", data, reml=False), fit("rt ~ cond + (1 | item)", data, reml=False)
    test = likelihood_ratio_test(less, more)
    assert test.mixture == (0, 1) and test.statistic > 0
    with pytest.raises(UserError, match=r"least squares.*REML"):
        likelihood_ratio_test(fit("rt ~ cond", data), fit("rt ~ cond + (1 | item)", data))


@pytest.mark.parametrize(
    ("more", "said"),
    [({"nagq": 5}, "nagq"), ({"information": "observed"}, "information")],
)
def test_what_belongs_to_random_effects_is_refused_without_them(
    data: pd.DataFrame, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        fit("correct ~ cond", data, "binomial", **more)
    with pytest.raises(UserError, match=r"\(1 \| participant\)"):
        random_modes(fit("correct ~ cond", data, "binomial"))
    with pytest.raises(UserError, match="Kenward-Roger"):
        with_degrees(fit("rt ~ cond", data), "kenward-roger")
