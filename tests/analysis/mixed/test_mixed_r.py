"""The R program that we print gives the numbers that we print: models that the reference fits do not cover."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import Fit, fit, lme4_program
from tests.analysis.mixed.conftest import Simulate

pytestmark = pytest.mark.r

REPORT = r"""
table <- coef(summary(m))
cat("JSON", sprintf(
  '{"terms": [%s], "estimate": [%s], "se": [%s], "df": [%s], "loglik": %.12g, "groups": [%s], "levels": [%s], "sd": [%s]}',
  paste(sprintf('"%s"', gsub('"', "'", rownames(table))), collapse = ","),
  paste(sprintf("%.12g", table[, "Estimate"]), collapse = ","),
  paste(sprintf("%.12g", table[, "Std. Error"]), collapse = ","),
  if ("df" %in% colnames(table)) paste(sprintf("%.10g", table[, "df"]), collapse = ",") else "",
  as.numeric(logLik(m)),
  paste(sprintf('"%s"', names(ngrps(m))), collapse = ","),
  paste(ngrps(m), collapse = ","),
  paste(sprintf("%.12g", unlist(lapply(VarCorr(m), attr, "stddev"))), collapse = ",")
), "\n")
"""

LINEAR = {
    "a slope that is no fixed effect": ("rt ~ cond + (1 + log.freq | participant)", {}),
    "two slopes without correlations": (
        "rt ~ cond * agent + (1 + cond + log.freq || participant) + (1 | item)",
        {},
    ),
    "an independent slope without intercept": (
        "rt ~ log.freq + (0 + log.freq | participant) + (1 | item)",
        {},
    ),
    "a factor without intercept": ("rt ~ 0 + cond + (0 + agent | item)", {}),
    "nested groups": ("rt ~ cond + (1 | agent/participant)", {}),
    "an interaction of groups": ("rt ~ cond + (1 | agent:item) + (1 | participant)", {}),
    "arithmetic": ("rt ~ I((log.freq - 3)^2) + log(log.freq + 10) + (1 | participant)", {}),
    "transforms that learn": ("rt ~ scale(trials) + poly(log.freq, 2) * agent + (1 | participant)", {}),
    "a comparison": ("rt ~ I(log.freq > 3) * agent + (1 | participant) + (1 | item)", {}),
    "a transformed response": ("exp(rt) ~ agent/cond + (cond | item)", {}),
    "columns that repeat": ("rt ~ agent:cond + cond + (1 | participant)", {}),
    "sum contrasts": ("rt ~ agent * cond + (1 | item)", {"contrasts": {"cond": "sum", "agent": "sum"}}),
    "helmert contrasts": ("rt ~ cond + (1 + cond | participant)", {"contrasts": {"cond": "helmert"}}),
    "another reference": ("rt ~ cond + (1 | item)", {"levels": {"cond": ["internal", "intact", "initial"]}}),
    "a numeric factor": ("rt ~ trials + (1 | item)", {"levels": {"trials": ["5", "3", "4", "6", "7", "8"]}}),
    "weights and offset": (
        "rt ~ cond + (1 | item)",
        {"weights": "trials", "offset": "log.freq", "reml": False},
    ),
    "an offset in the formula": ("rt ~ cond + offset(log(trials)) + (1 | item)", {}),
    "missing cells": ("`gappy rt` ~ scale(gappy) + cond + (1 | gappy.item)", {}),
    "names with spaces": ("rt ~ `the condition` * agent + (1 | item)", {}),
    "names of other alphabets": ("rt ~ größe + (größe || participant)", {}),
    "natural spline": ("rt ~ ns(log.freq, 3) * agent + (1 | participant)", {}),
    "spline slopes": ("rt ~ bs(log.freq, df = 4) + (1 + log.freq | participant)", {}),
    "centred in the formula": ("rt ~ I(log.freq - mean(log.freq)) * agent + (1 | item)", {}),
    "levels by other names": ('rt ~ factor(cond, labels = c("A", "B", "C")) + (1 | participant)', {}),
    "intervals": ("rt ~ cut(log.freq, 3) + (1 | participant)", {}),
    "ordered categories": ("rt ~ degree * agent + (1 | participant) + (1 + degree | item)", {}),
    "a factor of ordered categories": ("rt ~ factor(degree) + (1 | item)", {"reml": False}),
    "conditions": ('rt ~ I(cond == "initial" & log.freq > 3) + (1 | participant)', {}),
    "slopes of one level": (
        'rt ~ cond + (1 + dummy(cond, "initial") || participant) + (0 + dummy(cond, "intact") | item)',
        {},
    ),
}

GENERALISED = {
    "logit, slopes": ("correct ~ cond * log.freq + (1 + agent || item) + (1 | participant)", "binomial", {}),
    "probit": ("correct ~ cond + (1 | participant) + (1 | item)", "binomial", {"link": "probit"}),
    "probit, counts": (
        "cbind(hits, trials - hits) ~ cond + (1 + cond | participant)",
        "binomial",
        {"link": "probit"},
    ),
    "counts": ("cbind(hits, trials - hits) ~ agent + (1 | participant) + (1 | item)", "binomial", {}),
    "proportions": ("hits/trials ~ agent + (1 | participant)", "binomial", {"weights": "trials"}),
    "text response": ("answer ~ cond + (1 | participant)", "binomial", {}),
    "rates": ("errors ~ cond + (1 | participant) + (1 | item)", "poisson", {"offset": "log(trials)"}),
    "counts of errors": ("errors ~ agent * cond + (1 + log.freq | participant)", "poisson", {}),
    "weighted counts": ("errors ~ agent + (1 | item)", "poisson", {"weights": "trials"}),
}
CASES = {f"linear, {name}": (formula, "gaussian", options) for name, (formula, options) in LINEAR.items()}
CASES |= {f"generalised, {name}": case for name, case in GENERALISED.items()}


@dataclass(frozen=True)
class Refit:
    """Our fit and what R said when it ran our program."""

    ours: Fit
    theirs: dict[str, Any]


@pytest.fixture(scope="module")
def refits(crossed: Simulate, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Refit]:
    """Run all programs in one R session, which spares the time of loading lme4 for each."""
    folder = tmp_path_factory.mktemp("r")
    data = crossed(seed=4, participants=20, items=15)
    data["answer"] = np.where(data["correct"] == 1, "yes", "no")
    data["the condition"] = data["cond"]
    data["degree"] = pd.Categorical(data["cond"], ["intact", "internal", "initial"], ordered=True)
    data["größe"] = data["log.freq"] ** 2
    data["gappy rt"] = data["rt"].mask(data.index.isin([3, 50]))
    data["gappy"] = data["log.freq"].mask(data.index.isin([7, 8, 50]))
    data["gappy.item"] = data["item"].mask(data.index == 9)
    file = folder / "data.csv"
    data.to_csv(file, index=False)
    fits, programs = {}, []
    for name, (formula, family, options) in CASES.items():
        fits[name] = fit(formula, data, family, **options)
        programs.append(f"tryCatch({{\n{lme4_program(fits[name], str(file))}\n{REPORT}")
        programs.append(
            '}, error = function(e) cat("JSON", encodeString(conditionMessage(e), quote = "\\""), "\\n"))\n'
        )
    script = folder / "programs.R"
    script.write_text("\n".join(programs), "utf-8")
    done = subprocess.run(["Rscript", str(script)], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("JSON ")]
    return {name: Refit(fits[name], answer) for name, answer in zip(CASES, answers, strict=True)}


@pytest.mark.parametrize("case", list(CASES))
def test_the_printed_r_program_gives_the_printed_numbers(case: str, refits: dict[str, Refit]) -> None:
    ours, theirs = refits[case].ours, refits[case].theirs
    assert isinstance(theirs, dict), f"R refused: {theirs}"
    linear = ours.family == "gaussian"
    assert [t.replace('"', "'") for t in ours.fixed["term"]] == theirs["terms"]
    assert dict(zip(theirs["groups"], theirs["levels"], strict=True)) == dict(ours.groups)
    se = np.array(theirs["se"])
    assert np.abs((ours.fixed["estimate"] - theirs["estimate"]) / se).max() < (1e-5 if linear else 1e-3)
    assert ours.fixed["se"].to_numpy() == pytest.approx(se, rel=1e-4 if linear else 3e-3)
    assert ours.loglik == pytest.approx(theirs["loglik"], abs=1e-5 if linear else 1e-3)
    assert ours.loglik > theirs["loglik"] - 1e-5
    if not ours.singular:
        if linear:
            assert ours.fixed["df"].to_numpy() == pytest.approx(theirs["df"], rel=1e-3)
        sd = np.concatenate([c.sd for c in ours.variance])
        assert sd == pytest.approx(theirs["sd"], rel=2e-3, abs=1e-4)
