"""Means of models with offsets and of models of log(y), beside emmeans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import Margins, fit, margins, trends
from stimuli.errors import UserError
from tests.analysis.mixed.conftest import Simulate
from tests.analysis.r_programs import told_by_r

COUNTS = "errors ~ cond + log.freq + offset(log(trials)) + (1 | participant)"
TIMES = "log(ms) ~ cond * log.freq + (1 | participant) + (1 | item)"
SHIFTED = "rt ~ cond + offset(log.freq * 0.2) + (1 | participant)"
SCRIPT = r"""
suppressMessages({library(lme4); library(emmeans)})
d <- read.csv("d.csv", stringsAsFactors = TRUE)
emm_options(lmer.df = "asymptotic")
tight <- list(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-9, maxfun = 1e6))
say <- function(e) {
  s <- as.data.frame(summary(e, infer = c(TRUE, TRUE), adjust = "none"))
  value <- intersect(c("emmean", "rate", "response", "estimate", "ratio", "log.freq.trend"), names(s))[1]
  row <- function(x) paste(sprintf("%.10g", x), collapse = ",")
  cat("JSON", sprintf('{"estimate": [%s], "se": [%s]}', row(s[[value]]), row(s[["SE"]])), "\n")
}
counts <- glmer(COUNTS, d, family = poisson, control = do.call(glmerControl, c(tight, tolPwrss = 1e-12)))
times <- lmer(TIMES, d, control = do.call(lmerControl, tight))
shifted <- lmer(SHIFTED, d, control = do.call(lmerControl, tight))
say(emmeans(counts, ~ cond))
say(emmeans(counts, ~ cond, type = "response"))
say(emmeans(counts, ~ cond, offset = log(2), type = "response"))
say(pairs(regrid(emmeans(counts, ~ cond))))
say(emmeans(shifted, ~ cond))
say(emmeans(times, ~ cond))
say(emmeans(times, ~ cond, type = "response"))
say(pairs(emmeans(times, ~ cond), type = "response"))
say(pairs(regrid(emmeans(times, ~ cond))))
"""


@pytest.fixture(scope="module")
def data(crossed: Simulate) -> pd.DataFrame:
    made = crossed(seed=31, participants=24, items=16)
    made["ms"] = np.round(np.exp(made["rt"]), 3)
    return made


@pytest.mark.r
def test_means_hold_offsets_and_lead_back_from_logs_as_emmeans_does(
    data: pd.DataFrame, tmp_path: Path
) -> None:
    data.to_csv(tmp_path / "d.csv", index=False)
    text = SCRIPT.replace("COUNTS", COUNTS).replace("TIMES", TIMES).replace("SHIFTED", SHIFTED)
    theirs = told_by_r(text, tmp_path)
    counts = fit(COUNTS, data, "poisson")
    times, shifted = fit(TIMES, data), fit(SHIFTED, data)
    of: Margins = margins(counts, "cond")
    ours = [
        of.table(),
        of.table("response"),
        margins(counts, "cond", at={"trials": 2}).table("response"),
        of.pairs(scale="response", adjust="none"),
        margins(shifted, "cond").table(),
        margins(times, "cond").table(),
        margins(times, "cond").table("response"),
        margins(times, "cond").pairs(scale="ratio", adjust="none"),
        margins(times, "cond").pairs(scale="response", adjust="none"),
    ]
    for at, (table, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert table["estimate"].to_numpy() == pytest.approx(expected["estimate"], rel=2e-4), at
        assert table["se"].to_numpy() == pytest.approx(expected["se"], rel=2e-3), at


def test_slopes_of_counts_count_the_offset(data: pd.DataFrame) -> None:
    counts = fit(COUNTS, data, "poisson")
    slope, mean = (
        found.table("response")["estimate"].iloc[0]
        for found in (trends(counts, "log.freq", "cond"), margins(counts, "cond"))
    )
    b = counts.fixed.set_index("term").loc["log.freq", "estimate"]
    assert slope == pytest.approx(b * mean, rel=1e-6)


def test_an_offset_given_as_numbers_counts_by_its_mean(data: pd.DataFrame) -> None:
    named = fit("rt ~ cond + (1 | participant)", data, offset="log.freq")
    given = fit("rt ~ cond + (1 | participant)", data, offset=data["log.freq"])
    one, other = (margins(found, "cond").table()["estimate"].to_numpy() for found in (named, given))
    assert one == pytest.approx(other, abs=1e-9)


@pytest.mark.parametrize(
    ("factors", "at", "says"),
    [
        (["cond", "cond"], {}, "'cond' is named twice"),
        ("cond", {"log.freq": "two"}, "log.freq is a covariate"),
        ("cond", {"cond": "finale"}, "level of cond 'finale'"),
    ],
)
def test_grids_that_cannot_be_laid_out_are_refused(
    factors: Any, at: dict[str, Any], says: str, data: pd.DataFrame
) -> None:
    found = fit("rt ~ cond + log.freq + (1 | participant)", data)
    with pytest.raises(UserError) as error:
        margins(found, factors, at)
    assert says in str(error.value)
