"""The R script beside a report, run as it lies there, gives the numbers of every model and difference that the report holds."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import Markup

from analysis import load
from analysis.mixed import Fit, fit
from analysis.report import chapters
from analysis.report.blocks import Chapter, Material, ReportedFit
from analysis.report.content import gather
from analysis.report.numbered import Content
from analysis.report.write import write_files
from tests.analysis.letter_study import PLANNED, study_rows, write_handover

pytestmark = pytest.mark.r

SAY = r"""
shown <- function(v) paste(ifelse(is.finite(v), sprintf("%.12g", v), "null"), collapse = ",")
if (!exists("differences")) differences <- data.frame(b = numeric(0), se = numeric(0), b_report = numeric(0), se_report = numeric(0))
if (exists("m")) {
  v <- as.data.frame(VarCorr(m), order = "lower.tri")
  v <- v[v$grp != "Residual", "vcov"]
  fixed <- as.data.frame(coef(summary(m)))
  log_likelihood <- as.numeric(logLik(m))
} else {
  v <- unlist(lapply(seq_along(basis), function(t) {
    covariance <- tcrossprod(basis[[t]] %*% template(par, t))
    covariance[lower.tri(covariance, diag = TRUE)]
  }))
}
cat("JSON", sprintf(paste0('{"terms": [%s], "estimate": [%s], "se": [%s], "loglik": %.12g, "rows": %d, "vcov": [%s], ',
  '"b": [%s], "b_se": [%s], "b_report": [%s], "b_se_report": [%s]}'),
  paste(sprintf('"%s"', rownames(fixed)), collapse = ","), shown(fixed[, "Estimate"]), shown(fixed[, "Std. Error"]),
  log_likelihood, nrow(d), shown(v),
  shown(differences$b), shown(differences$se), shown(differences$b_report), shown(differences$se_report)), "\n")
rm(list = intersect(c("m", "differences", "fixed", "log_likelihood"), ls()))
"""


def further_models(material: Material) -> Chapter:
    """A chapter whose models are of other families: times on their own scale, logs with another structure, counts."""
    trials = material.tables.trials
    used = trials[trials["excluded_reason"].isna() & (trials["reader_kind"] == "human")]
    rows = used[used["reading_time"] > 0][["reading_time", "position", "participant_id", "item_id"]].copy()
    rows["seconds"] = rows["reading_time"] / 1000
    levels = {"position": ["intact", "initial", "internal", "final"]}
    counts = used.groupby(["participant_id", "position"], as_index=False).agg(
        right=("correct", "sum"), all=("correct", "size")
    )
    counts["wrong"] = counts["all"] - counts["right"].astype(int)
    counts["right"] = counts["right"].astype(int)
    fits = (
        ReportedFit(
            "times on their own scale",
            fit("seconds ~ position + (1 | participant_id)", rows, "Gamma", link="identity", levels=levels),
        ),
        ReportedFit("ML", fit("log(seconds) ~ position + (1 | participant_id) + (1 | item_id)", rows, reml=False, levels=levels)),
        ReportedFit("counts", fit("cbind(right, wrong) ~ position + (1 | participant_id)", counts, "binomial", levels=levels)),
        ReportedFit("a Poisson model", fit("wrong ~ position + (1 | participant_id)", counts, "poisson", levels=levels)),
    )  # fmt: skip
    return Chapter("further", "Further models", (Markup("Models of other families."),), fits=fits)


def run_in_r(report: Path, script: Path) -> list[dict[str, Any]]:
    """Run a report's program in its folder and return what each model says of itself."""
    parts = (report / "models.R").read_text("utf-8").split("# Model ")
    script.write_text("\n".join([parts[0], *(f"# {part}\n{SAY}" for part in parts[2:])]), "utf-8")
    done = subprocess.run(
        ["Rscript", str(script)], cwd=report, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("JSON ")]


Refitted = list[tuple[Fit, dict[str, Any]]]


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Content, Path]]:
    folder = tmp_path_factory.mktemp("report")
    rows = study_rows(human=12, models=("restorer",), items=12, seed=5)
    tables = load(write_handover(folder / "handover", rows, planned=PLANNED))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chapters, "WRITERS", (further_models,))
        gathered = gather(tables)
    yield gathered, write_files(gathered, folder, datetime(2026, 11, 21, tzinfo=UTC)).parent


@pytest.fixture(scope="module")
def both(content: tuple[Content, Path]) -> Refitted:
    """Each model of a small study's report, and what R said when it ran the report's own script in its folder."""
    gathered, report = content
    said = run_in_r(report, report.parent / "said.R")
    return list(zip([one.fit for one in gathered.all_fits()], said, strict=True))


def compare(ours: Fit, theirs: dict[str, Any]) -> None:
    linear = ours.family == "gaussian"
    assert list(ours.fixed["term"]) == theirs["terms"]
    assert ours.nobs == theirs["rows"]
    estimate = ours.fixed["estimate"].to_numpy(dtype=float)
    se = np.array(theirs["se"])
    assert np.abs((estimate - theirs["estimate"]) / se).max() < (1e-5 if linear else 1e-3)
    assert ours.fixed["se"].tolist() == pytest.approx(se, rel=1e-4 if linear else 3e-3)
    assert ours.loglik == pytest.approx(theirs["loglik"], abs=1e-5 if linear else 1e-3)
    own = np.concatenate([one.cov[np.tril_indices(len(one.terms))] for one in ours.variance])
    # a variance of zero is zero to the square of the optimiser's step
    assert np.sort(own) == pytest.approx(np.sort(theirs["vcov"]), rel=2e-3, abs=1e-5)


def test_the_reports_script_refits_each_of_its_models(both: Refitted) -> None:
    families = [(ours.family, ours.link) for ours, _ in both]
    assert {
        ("binomial", "logit"),
        ("gaussian", "identity"),
        ("Gamma", "identity"),
        ("poisson", "log"),
    } <= set(families)
    assert len(both) >= 6
    for ours, theirs in both:
        compare(ours, theirs)


def test_the_differences_that_the_report_tests_are_repeated_in_r(
    content: tuple[Content, Path], both: Refitted
) -> None:
    tested = [one for one in content[0].sections if one.analysis.contrasts]
    repeated = [theirs for _, theirs in both if theirs.get("b")]
    assert len(repeated) == len(tested) >= 2
    for theirs in repeated:
        assert theirs["b"] == pytest.approx(theirs["b_report"], rel=1e-3, abs=1e-3 * min(theirs["b_se"]))
        assert theirs["b_se"] == pytest.approx(theirs["b_se_report"], rel=3e-3)


@pytest.mark.full
def test_every_model_of_every_chapter_is_refitted(tmp_path: Path) -> None:
    rows = study_rows(human=16, models=("restorer",), items=16, seed=5)
    gathered = gather(load(write_handover(tmp_path / "handover", rows, planned=PLANNED)))
    report = write_files(gathered, tmp_path, datetime(2026, 11, 21, tzinfo=UTC)).parent
    fits = [one.fit for one in gathered.all_fits()]
    said = run_in_r(report, tmp_path / "said.R")
    assert len(fits) == len(said) > 4
    for ours, theirs in zip(fits, said, strict=True):
        compare(ours, theirs)
