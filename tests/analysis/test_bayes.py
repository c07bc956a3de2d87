"""Bayes factors of planned contrasts: closed forms, R's BayesFactor and integrate, declared priors, the report and its program."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from analysis import load
from analysis.bayes import Posterior, posterior_of
from analysis.multiple_comparisons import two_one_sided
from analysis.plan import PLANNABLE, PlanContext, PlanFault, Prior, faults_of, read_plan, read_prior
from analysis.plan.plans import StudyPlan
from analysis.plan.wording import plan_in_brief, plans_in_words
from analysis.report.content import gather
from analysis.report.results.tables import bayes_table
from analysis.report.write import write_files
from analysis.results import Contrast
from tests.analysis.letter_study import study_rows, write_handover
from tests.analysis.r_programs import lines_of_r, run_models

LEVELS = {"position": ["intact", "initial", "internal", "final"]}
CAUCHY = {"prior": "cauchy", "scale": 10}
PLANNED = {
    "comprehension": {
        "measure": "correct",
        "compare": "position",
        "between": ["human", "restorer"],
        "contrasts": ["initial - internal", "final - internal"],
        "direction": {"initial - internal": "less"},
        "equivalence": "10 points",
        "bayes": CAUCHY,
    },
    "reading": {
        "measure": "reading_time",
        "compare": "position",
        "between": ["human"],
        "contrasts": ["initial - internal"],
        "bayes": {"prior": "t", "scale": 0.2, "df": 3},
    },
}


def found(
    b: float,
    se: float,
    df: float | None,
    prior: Prior,
    *,
    direction: Any = "two-sided",
    bound: float | None = None,
) -> Posterior:
    """Return the posterior of one contrast."""
    equivalence = None if bound is None else two_one_sided(b, se, df, bound, 0.05)
    one = Contrast("a", "b", ("human",), b, se, b / se, df, 0.5, 0.0, 0.0, 0.5, 1)
    return posterior_of(replace(one, direction=direction, equivalence=equivalence), prior)


def prior(kind: str, scale: float, df: float = np.inf) -> Prior:
    return Prior(kind, scale, df, "percentage points")


def in_r(program: str, folder: Path) -> list[float]:
    return [float(word) for line in lines_of_r(program, folder) for word in line.split()]


@pytest.mark.parametrize(
    ("b", "se", "scale"), [(4.2, 2.1, 10.0), (0.0, 3.0, 5.0), (-30.0, 2.0, 0.5), (0.1, 0.001, 10.0)]
)
def test_normal_priors_have_the_closed_form(b: float, se: float, scale: float) -> None:
    """BF10 = N(b; 0, se^2 + scale^2) / N(b; 0, se^2), and the posterior is normal."""
    got = found(b, se, None, prior("normal", scale))
    log_factor = stats.norm.logpdf(b, 0, np.hypot(se, scale)) - stats.norm.logpdf(b, 0, se)
    with np.errstate(over="ignore"):
        assert got.factor == pytest.approx(np.exp(log_factor), rel=1e-8)
    variance = 1 / (1 / se**2 + 1 / scale**2)
    ends = stats.norm(variance * b / se**2, np.sqrt(variance)).ppf([0.025, 0.5, 0.975])
    assert [got.low, got.median, got.high] == pytest.approx(list(ends), rel=1e-6, abs=1e-7)


@pytest.mark.r
@pytest.mark.parametrize(
    ("b", "se", "df", "scale", "prior_df"),
    [(4.2, 2.1, 12.3, 10.0, 1.0), (-1.0, 2.0, 3.0, 4.0, 3.0), (25.0, 4.0, 40.0, 2.0, 1.0)],
)
def test_t_likelihoods_agree_with_r_integrate(
    tmp_path: Path, b: float, se: float, df: float, scale: float, prior_df: float
) -> None:
    theirs = in_r(
        f"f <- function(x) dt((x - {b}) / {se}, {df}) * dt(x / {scale}, {prior_df}) / {scale}; "
        f"i <- function(a, b) integrate(f, a, b, rel.tol = 1e-11, subdivisions = 1000)$value; "
        f"m <- c(i(-Inf, 0), i(0, {abs(b)}), i({abs(b)}, Inf)); "
        f"cat(sprintf('%.12g', c(sum(m), 2 * sum(m[-1])) / dt({b} / {se}, {df})))",
        tmp_path,
    )
    kind = "cauchy" if prior_df == 1 else "t"
    ours = [
        found(b, se, df, prior(kind, scale, prior_df), direction=way).factor
        for way in ("two-sided", "greater")
    ]
    assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.full
@pytest.mark.r
def test_cauchy_priors_agree_with_the_bayes_factor_package(tmp_path: Path) -> None:
    """BayesFactor's t likelihood is of a standardised difference; with many degrees of freedom the two are the same."""
    if in_r("cat(1 * requireNamespace('BayesFactor', quietly = TRUE))", tmp_path) == [0.0]:
        pytest.skip("R's BayesFactor is not installed")
    n, r = 4000, 0.05
    for t in (0.4, 2.3, -3.1):
        theirs = in_r(
            "suppressMessages(library(BayesFactor)); one <- function(...) "
            f"exp(extractBF(meta.ttestBF({t}, {n}, rscale = {r}, ...), logbf = TRUE)$bf); "
            f"bound <- one(nullInterval = c(-0.03, 0.03)); half <- one(nullInterval = c(0, Inf)); "
            "cat(sprintf('%.10g', c(one(), half[1], bound[1] / bound[2])))",
            tmp_path,
        )
        # In units of the standard deviation: SE = 1 / sqrt(n).
        unit = 1 / np.sqrt(n)
        ours = found(t * unit, unit, n - 1.0, prior("cauchy", r, 1.0), bound=0.03)
        half = found(t * unit, unit, n - 1.0, prior("cauchy", r, 1.0), direction="greater")
        assert [ours.factor, half.factor, ours.within] == pytest.approx(theirs, rel=5e-3)


def test_a_prior_is_read_and_described_with_the_plan() -> None:
    spec = PLANNED["comprehension"]
    plan = read_plan("comprehension", spec, LEVELS)
    assert plan.bayes == Prior("cauchy", 10.0, 1.0, "percentage points")
    assert read_plan("comprehension", plan.to_json(), LEVELS).bayes == plan.bayes
    whole = StudyPlan((plan,), LEVELS)
    for told in (" ".join(plans_in_words(whole)[0]), plan_in_brief(plan, whole)):
        assert re.search("Bayes factors .*Cauchy .*10 percentage points", told)
    said = read_prior({"prior": "t", "scale": 0.2, "df": 3}, [PLANNABLE["rt"]]).said
    assert re.match(r"t \(df = 3\) .* 0\.2 natural-log units", said)


@pytest.mark.parametrize(
    ("given", "said"),
    [({"scale": 0}, "is 0;"), ({"scale": "10 points"}, "'10 points'"), ({"prior": "uniform", "scale": 5}, "'uniform'"),
     ({"prior": "t", "scale": 5}, "is None;"), ({"prior": "cauchy", "scale": 5, "df": 3}, "cauchy")],
)  # fmt: skip
def test_a_prior_that_is_none_is_refused(given: dict[str, Any], said: str) -> None:
    (fault,) = faults_of({**PLANNED["comprehension"], "bayes": given}, PlanContext(LEVELS))
    assert said in fault.problem and fault.at[0] == "bayes" and fault.remedy


def test_measures_without_a_common_scale_share_no_prior() -> None:
    with pytest.raises(PlanFault, match=r"reading_time.*surprisal"):
        read_prior(CAUCHY, [PLANNABLE["reading_time"], PLANNABLE["surprisal"]])


@pytest.mark.r
@pytest.mark.usefixtures("without_chapters", "without_figures")
def test_a_report_has_the_bayes_factors_of_its_plan_and_r_recomputes_them(tmp_path: Path) -> None:
    rows = study_rows(human=6, models=("restorer",), items=8, seed=5)
    frozen = {"hash": "f", "frozen_at": "2026-11-01T10:00:00Z"}
    content = gather(load(write_handover(tmp_path / "handover", rows, planned=PLANNED, frozen=frozen)))
    sections = {one.analysis.plan.measure.name: one.analysis for one in content.planned}
    table = bayes_table(sections["correct"], "bayes")
    assert table is not None and table.columns[-1] == "BF within"
    for one in sections["correct"].contrasts:
        got = posterior_of(one, Prior("cauchy", 10.0, 1.0, ""))
        assert got.low < got.median < got.high and (got.within is not None) == one.between
    report = write_files(content, tmp_path, datetime(2026, 11, 21, tzinfo=UTC)).parent
    assert sorted((report / "tables").glob("table_s*_bayes_*")), "they are in the supplement"
    assert "_bayes_comprehension" in (report / "report.html").read_text("utf-8")
    assert "posterior_low" in (report / "models.R").read_text("utf-8")
    _, lines = run_models(report)
    said = [line for line in lines if line.startswith("Bayes factors")]
    assert len(said) == 2 and all(": agrees" in line for line in said), lines
    analysis = sections["correct"]
    assert bayes_table(replace(analysis, plan=replace(analysis.plan, bayes=None)), "bayes") is None
