"""R holds every model of the chapter on cost, on both scales and of three studies: its own program, and glmmTMB beside it.

glmer is no judge of the models of milliseconds: its criterion is no likelihood. The chapter says so, and a test shows that
the criterion is all the difference.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import Markup

from analysis import load
from analysis.mixed import Fit, fit, lme4_program
from analysis.readers import kinds_of
from analysis.report.blocks import Chapter, Material
from analysis.report.chapters.cost import write
from tests.analysis import cost_study, decision_study, word_study

pytestmark = [pytest.mark.r, pytest.mark.full]

LEVELS = ("as written", "mild", "strong")
FORMS, WORDS, DECISIONS = "forms", "words", "decisions"

HEAD = r"""
shown <- function(v) paste(sprintf("%.12g", v), collapse = ",")
say <- function(b, se, loglik) cat("JSON", sprintf('{"estimate": [%s], "se": [%s], "loglik": %.12g, "rows": %d}',
  shown(b), shown(se), loglik, nrow(d)), "\n")
"""
OF_THE_PROGRAM = r"""
if (exists("m")) say(fixef(m), coef(summary(m))[, "Std. Error"], as.numeric(logLik(m))) else
  say(fixed$Estimate, fixed[["Std. Error"]], log_likelihood)
"""
IN_SECONDS = r"""
# In seconds, from starting values that know nothing of our estimates.
d$.seconds <- d$RESPONSE / 1000
asked <- FORMULA
parts <- glFormula(asked, d, family = Gamma(link = "identity"))
begin <- list(
  beta = c(mean(d$.seconds), rep(0, ncol(parts$X) - 1)),
  theta = unlist(lapply(parts$reTrms$cnms, function(k) rep(c(-2, 0), c(length(k), choose(length(k), 2)))))
)
"""
GLMM_TMB = r"""
other <- suppressWarnings(glmmTMB::glmmTMB(asked, d, family = Gamma(link = "identity"), start = begin))
say(1000 * glmmTMB::fixef(other)$cond, 1000 * sqrt(diag(vcov(other)$cond)), as.numeric(logLik(other)) - nrow(d) * log(1000))
"""
GLMER = r"""
other <- glmer(asked, d, family = Gamma(link = "identity"),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(maxfun = 1e6, rhoend = 1e-9), tolPwrss = 1e-12))
say(1000 * fixef(other), 1000 * sqrt(diag(as.matrix(vcov(other)))), as.numeric(logLik(other)) - nrow(d) * log(1000))
"""


@dataclass(frozen=True)
class Refitted:
    """A model of the chapter, and what R says of it: the report's program, and another judge of times in ms."""

    ours: Fit
    program: dict[str, Any]
    other: dict[str, Any] | None


def chapter_of(name: str, folder: Path, request: pytest.FixtureRequest) -> Chapter:
    if name == FORMS:
        handover = cost_study.study(folder, LEVELS, people=18, models=("small", "large"), items=18)
    elif name == WORDS:
        handover = word_study.study(folder, people=10, items=12)
    else:
        handover = decision_study.study(folder, request.getfixturevalue("shared"))
    tables = load(handover)
    found = write(Material(tables, (), kinds_of(tables.trials)))
    assert found is not None
    return found


def beside(ours: Fit, judge: str) -> str:
    response, _, rest = ours.formula.partition("~")
    named = IN_SECONDS.replace("RESPONSE", response.strip()).replace("FORMULA", f".seconds ~ {rest}")
    return named + judge


def refitted(chapter: Chapter, folder: Path, judge: str) -> list[Refitted]:
    """Run the programs of all models one after another, as models.R does."""
    fits = [one.fit for one in chapter.fits]
    lines = [HEAD]
    for number, own in enumerate(fits):
        own.model.frame.data.to_csv(folder / f"m{number}.csv", index=False)
        lines += [lme4_program(own, f"m{number}.csv"), OF_THE_PROGRAM]
        lines += [beside(own, judge)] if own.family == "Gamma" else []
    (folder / "said.R").write_text("\n".join(lines), "utf-8")
    done = subprocess.run(
        ["Rscript", "said.R"], cwd=folder, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = iter([json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("JSON ")])
    found = [Refitted(own, next(said), next(said) if own.family == "Gamma" else None) for own in fits]
    assert next(said, None) is None
    return found


def apart(ours: Fit, theirs: dict[str, Any]) -> float:
    """The largest distance of two estimates in our standard errors."""
    gaps = np.abs(ours.fixed["estimate"].to_numpy(dtype=float) - theirs["estimate"])
    return float((gaps / ours.fixed["se"].to_numpy(dtype=float)).max())


@pytest.mark.shared
@pytest.mark.parametrize("name", [FORMS, WORDS, DECISIONS])
def test_r_gives_the_numbers_of_every_model_of_the_chapter(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    chapter = chapter_of(name, tmp_path, request)
    found = refitted(chapter, tmp_path, GLMM_TMB)
    own_scale = [one for one in found if one.ours.family == "Gamma"]
    assert len(own_scale) == len(found) / 2 == {FORMS: 1, WORDS: 4, DECISIONS: 1}[name]
    assert any("glmer of lme4 has another" in Markup(one).striptags() for one in chapter.methods)
    for one in found:
        linear = one.ours.family == "gaussian"
        assert one.ours.converged and one.ours.nobs == one.program["rows"]
        assert apart(one.ours, one.program) < 1e-3, one.ours.formula
        assert one.ours.fixed["se"].tolist() == pytest.approx(one.program["se"], rel=3e-4 if linear else 3e-3)
        assert one.ours.loglik == pytest.approx(one.program["loglik"], abs=1e-4)
    for one in own_scale:
        assert one.other is not None
        assert apart(one.ours, one.other) < 2e-3, one.ours.formula
        assert one.ours.fixed["se"].tolist() == pytest.approx(one.other["se"], rel=3e-3)
        assert one.ours.loglik == pytest.approx(one.other["loglik"], abs=1e-3)
        assert any("glmer gives other numbers" in told for told in one.ours.warnings)


def test_the_criterion_is_all_that_sets_glmer_apart(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = refitted(chapter_of(FORMS, tmp_path, request), tmp_path, GLMER)
    one = next(one for one in found if one.other is not None)
    assert one.other is not None
    assert apart(one.ours, one.other) > 1.0
    assert one.other["se"][0] > 1.4 * one.ours.fixed["se"].iloc[0]
    frame = one.ours.model.frame.data
    like = fit(
        one.ours.formula, frame, "Gamma", "identity", levels={"form": list(LEVELS)}, dispersion="glmer"
    )
    assert apart(like, one.other) < 5e-3
    assert like.loglik == pytest.approx(one.other["loglik"], abs=2e-3)
    # glmer's standard errors are finite differences of a deviance that is found to a tolerance.
    assert like.fixed["se"].tolist() == pytest.approx(one.other["se"], rel=3e-2)
