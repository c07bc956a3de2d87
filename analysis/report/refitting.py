"""Writes the rows of each model and one R program that refits all of them with lme4 and repeats the tested differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from analysis.mixed import Fit, lme4_program
from analysis.report.numbered import Content
from analysis.report.tracing import ModelFiles
from analysis.results import Analysis

PROGRAM = "models.R"
HEAD = """\
# Refits every model of the report with lme4, each on its own rows in models/. Run it in the report's folder: Rscript models.R
# Where glmer maximises something else (times in milliseconds, among others) the criterion is written out over lme4's matrices.
# Model numbers are those of numbers.json, which names the tables and paragraphs that show each.
"""


def write_models(content: Content, folder: Path) -> dict[int, ModelFiles]:
    """Write ``models/model_NN.csv`` and ``models.R``; return where each model lies, by its number."""
    found: dict[int, ModelFiles] = {}
    lines = HEAD.splitlines()
    analyses = [one.analysis for one in content.sections]
    for number, reported in enumerate(content.all_fits(), 1):
        name = f"models/model_{number:02d}.csv"
        (folder / "models").mkdir(exist_ok=True)
        rows: pd.DataFrame = reported.fit.model.frame.data
        rows.to_csv(folder / name, index=False)
        program = lme4_program(reported.fit, name).splitlines()
        by_lme4 = any(line.startswith("m <- ") for line in program)
        own = ["", f"# Model {number}: {' '.join(reported.title.split())}", *program]
        for analysis in analyses:
            own += difference_lines(analysis, by_lme4=by_lme4) if _is_of(analysis, reported.fit) else []
        found[number] = ModelFiles(
            number,
            reported.title,
            " ".join(reported.fit.formula.split()),
            name,
            len(rows),
            len(lines) + 2,
            len(lines) + len(own),
        )
        lines += own
    if found:
        (folder / PROGRAM).write_text("\n".join(lines) + "\n", "utf-8")
    return found


def _is_of(analysis: Analysis, fit: Fit) -> bool:
    return analysis.model is not None and analysis.model.source is fit


def difference_lines(analysis: Analysis, *, by_lme4: bool = True) -> list[str]:
    """Write R that repeats the tested differences of an analysis and prints them beside ours.

    Base R alone: weights times fixed effects, their covariance, and for linear models lmerTest's degrees of freedom.

    Parameters
    ----------
    analysis : Analysis
    by_lme4 : bool
        Whether the program before it made lme4's model ``m``, and not the data frame ``fixed`` with the matrix ``vcov``.
    """
    tested = [one for one in analysis.contrasts if one.estimable and one.weights]
    if not tested or analysis.model is None:
        return []
    names = [f"{one.label} ({' vs. '.join(one.groups)})" for one in tested]
    linear = analysis.model.family == "gaussian"
    rows = [f"  {_quoted(name)} = {_vector(one.weights)}" for name, one in zip(names, tested, strict=True)]
    lines = ["# The differences that the report tests: weights of the fixed effects, in their order above."]
    lines += ["weights <- rbind(", *(f"{row}," for row in rows[:-1]), rows[-1], ")"]
    lines += [
        "differences <- data.frame(",
        f"  b = as.vector(weights %*% {'fixef(m)' if by_lme4 else 'fixed$Estimate'}),",
        f"  se = sqrt(diag(weights %*% {'as.matrix(vcov(m))' if by_lme4 else 'vcov'} %*% t(weights))),",
        f"  b_report = {_vector([one.estimate for one in tested])},",
        f"  se_report = {_vector([one.se for one in tested])},",
        "  row.names = rownames(weights)",
        ")",
    ]
    if linear:
        lines.append("differences$df <- lmerTest::contest(m, weights, joint = FALSE)$df")
        lines.append(
            f"differences$df_report <- {_vector([np.nan if one.df is None else one.df for one in tested])}"
        )
    return [*lines, "print(differences, digits = 6)"]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("−", "-") + '"'


def _vector(values: object) -> str:
    numbers = np.asarray(values, dtype=float).ravel()
    return "c(" + ", ".join("NA" if np.isnan(v) else f"{v:.12g}" for v in numbers) + ")"
