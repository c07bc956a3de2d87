"""Times on their own scale, on three data sets: by default glmmTMB's numbers, on request glmer's; why the default is not glmer's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import fit
from tests.analysis.mixed.conftest import Simulate
from tests.analysis.r_programs import lines_of_r, told_by_r

SCRIPT = r"""
suppressMessages({library(lme4); library(glmmTMB)})
tight <- glmerControl(optimizer = "bobyqa", optCtrl = list(maxfun = 1e6, rhoend = 1e-9), tolPwrss = 1e-12)
row <- function(x) paste(sprintf("%.10g", x), collapse = ",")
say <- function(loglik, b, se, sd) cat("JSON", sprintf(
  '{"loglik": %.10g, "estimate": [%s], "se": [%s], "sd": [%s]}', loglik, row(b), row(se), row(sd)), "\n")
both <- function(f, d, family) {
  m <- suppressMessages(suppressWarnings(glmer(f, d, family = family, control = tight)))
  say(logLik(m), fixef(m), sqrt(diag(as.matrix(vcov(m)))), unlist(lapply(VarCorr(m), attr, "stddev")))
  begin <- list(beta = fixef(m))
  if (family$link == "identity") begin$theta <- rep(-3, length(getME(m, "theta")))
  m <- suppressWarnings(glmmTMB(f, d, family = family, start = begin))
  say(logLik(m), fixef(m)$cond, sqrt(diag(vcov(m)$cond)), unlist(lapply(VarCorr(m)$cond, attr, "stddev")))
}
"""
SLEEP, TIMES, CROSSED = "sleep", "times", "crossed"
CASES = [
    (SLEEP, "Reaction ~ Days + (1 | Subject)", "Gamma", "log"),
    (SLEEP, "Reaction ~ Days + (Days | Subject)", "Gamma", "log"),
    (SLEEP, "Reaction ~ Days + (1 | Subject)", "gaussian", "log"),
    (SLEEP, "seconds ~ Days + (1 | Subject)", "gaussian", "log"),
    (TIMES, "rt ~ x + cond + (1 | participant) + (1 | item)", "Gamma", "log"),
    (TIMES, "seconds ~ x + cond + (1 | participant) + (1 | item)", "Gamma", "identity"),
    (CROSSED, "seconds ~ cond + (1 | participant) + (1 | item)", "Gamma", "identity"),
    (CROSSED, "ms ~ cond * log.freq + (1 | participant)", "Gamma", "log"),
    (CROSSED, "ms ~ cond + (1 | participant) + (1 | item)", "gaussian", "log"),
]


def told(case: tuple[str, str, str, str]) -> str:
    return f"{case[0]}: {case[1].split(' ~')[0]} {case[2]} {case[3]} {case[1].count('Days')}"


@pytest.fixture(scope="module")
def tables(crossed: Simulate, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("sleep")
    lines_of_r('write.csv(lme4::sleepstudy, "sleep.csv", row.names = FALSE)', folder)
    sleep = pd.read_csv(folder / "sleep.csv")
    times = pd.read_csv(Path(__file__).parent / "data" / "families.csv")
    ours = crossed(seed=11, participants=24, items=16, spread=0.5)
    return {
        SLEEP: sleep.assign(seconds=sleep["Reaction"] / 1000),
        TIMES: times.assign(seconds=times["rt"] / 1000),
        CROSSED: ours.assign(ms=ours["rt"].map(np.exp), seconds=ours["rt"].map(np.exp) / 1000),
    }


@pytest.fixture(scope="module")
def theirs(
    tables: dict[str, pd.DataFrame], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str, str, str], tuple[Any, Any]]:
    folder = tmp_path_factory.mktemp("dispersion")
    lines = [SCRIPT]
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
        lines.append(f'{name} <- read.csv("{name}.csv", stringsAsFactors = TRUE)')
    lines += [f'both({f}, {name}, {family}(link = "{link}"))' for name, f, family, link in CASES]
    answers = told_by_r("\n".join(lines), folder)
    return dict(zip(CASES, zip(answers[::2], answers[1::2], strict=True), strict=True))


@pytest.mark.r
@pytest.mark.parametrize("case", CASES, ids=told)
@pytest.mark.parametrize("judge", ["glmer", "glmmTMB"])
def test_times_have_the_numbers_of_the_judge_asked_for(
    case: tuple[str, str, str, str],
    judge: str,
    tables: dict[str, pd.DataFrame],
    theirs: dict[tuple[str, str, str, str], tuple[Any, Any]],
) -> None:
    name, formula, family, link = case
    if judge == "glmer" and family == "gaussian":
        pytest.skip("refused: glmer's criterion for gaussian responses has several minima")
    expected = theirs[case][int(judge == "glmmTMB")]
    ours = fit(formula, tables[name], family, link, dispersion="glmer" if judge == "glmer" else "ml")
    se = np.array(expected["se"])
    sd = np.concatenate([c.sd for c in ours.variance])
    assert ours.converged
    assert ours.loglik == pytest.approx(expected["loglik"], abs=2e-3)
    assert np.abs((ours.fixed["estimate"] - expected["estimate"]) / se).max() < 5e-3
    assert sd == pytest.approx(expected["sd"], rel=5e-3, abs=1e-4 * max(expected["sd"]) + 1e-6)
    # glmer's standard errors are finite differences of a deviance that is found to a tolerance.
    assert ours.fixed["se"].to_numpy() == pytest.approx(se, rel=3e-2 if judge == "glmer" else 2e-3)


@pytest.mark.r
def test_glmers_criterion_tells_seconds_from_milliseconds_and_ours_does_not(
    theirs: dict[tuple[str, str, str, str], tuple[Any, Any]], tables: dict[str, pd.DataFrame]
) -> None:
    ms, s = (theirs[case][0] for case in CASES if case[0] == SLEEP and case[2] == "gaussian")
    assert ms["sd"][0] < 1e-3 < 0.07 < s["sd"][0]
    ours = [
        fit(f"{y} ~ Days + (1 | Subject)", tables[SLEEP], "gaussian", "log") for y in ("Reaction", "seconds")
    ]
    assert ours[0].variance[0].sd[0] == pytest.approx(ours[1].variance[0].sd[0], rel=1e-4)
    assert ours[0].fixed["se"].to_numpy() == pytest.approx(ours[1].fixed["se"].to_numpy(), rel=1e-4)


@pytest.mark.full
@pytest.mark.parametrize("link", ["identity", "log"])
def test_standard_errors_between_participants_are_right_by_default_and_too_large_by_glmers_criterion(
    link: str,
) -> None:
    rng = np.random.default_rng(3)
    who, what = np.divmod(np.arange(24 * 20), 20)
    data = pd.DataFrame({"p": who, "i": what})
    estimates: list[float] = []
    errors: dict[str, list[float]] = {"ml": [], "glmer": []}
    for _ in range(120):
        by_p, by_i = rng.normal(0, 0.1, 24)[who], rng.normal(0, 0.05, 20)[what]
        mean = 600 * (np.exp(by_p + by_i) if link == "log" else 1 + by_p + by_i)
        data["rt"] = rng.gamma(10, mean / 10)
        for how, found in errors.items():
            row = fit("rt ~ 1 + (1 | p) + (1 | i)", data, "Gamma", link, dispersion=how).fixed.iloc[0]
            found.append(float(row["se"]))
            if how == "ml":
                estimates.append(float(row["estimate"]))
    spread = float(np.std(estimates, ddof=1))
    # The spread of 120 estimates is known to within 6.5 per cent; with 24 participants ours are a little low.
    assert 0.8 < np.mean(errors["ml"]) / spread < 1.15
    assert np.mean(errors["glmer"]) / spread > 1.25
