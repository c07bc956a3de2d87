"""What a user may ask of a fit beyond its coefficients, answered as tables to read or as JSON.

This is where the parts of the package meet: degrees of freedom, intervals, tests of terms, explained variance, means with
their comparisons, slopes and equivalence tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from stimuli.errors import UserError, unknown_name

from .bootstrap import bootstrap
from .equivalence import equivalence_tests
from .joint import anova, with_degrees
from .likelihood_ratio import LikelihoodRatio
from .margins import margins, trends
from .profile import profile_intervals
from .r_squared import r_squared
from .result import Fit, lined_up, plain

INTERVALS = ("wald", "profile", "bootstrap")


@dataclass(frozen=True)
class Questions:
    """What is asked.

    Attributes
    ----------
    df : str or None
        ``satterthwaite``, ``kenward-roger`` or ``none``; default Satterthwaite for gaussian models, none for others.
    intervals : str
        One of ``INTERVALS``.
    replicates, seed, processes : int
        Of the bootstrap.
    keep : str or None
        File that keeps the bootstrap's refits.
    anova, r_squared : bool
        Type III tests of the terms; Nakagawa's R^2 and ICC.
    means : str or None
        Factors of marginal means and pairwise comparisons, ``a,b`` or ``a | b`` (a within b).
    slopes : str or None
        Covariate whose slopes are wanted, in the cells of ``means``.
    control : str or None
        Level with which the others are compared, in place of all pairs; several factors' levels joined by commas.
    scale : str
        Of means and comparisons; see ``Margins.pairs``.
    adjust : str or None
        Correction of the comparisons; default ``dunnett`` with a control, else ``holm``.
    equivalence : float or None
        Bound of equivalence tests of the comparisons.
    """

    df: str | None = None
    intervals: str = "wald"
    replicates: int = 1000
    seed: int = 0
    processes: int = 1
    keep: str | None = None
    anova: bool = False
    r_squared: bool = False
    means: str | None = None
    slopes: str | None = None
    control: str | None = None
    scale: str = "link"
    adjust: str | None = None
    equivalence: float | None = None


@dataclass(frozen=True)
class Answer:
    """One table and what it is.

    Attributes
    ----------
    key : str
        Under which JSON has it.
    title : str
        What it is, in words.
    table : DataFrame
        The numbers.
    facts : dict
        What JSON says beside the rows, such as level and method.
    """

    key: str
    title: str
    table: pd.DataFrame
    facts: dict[str, Any]

    def text(self) -> str:
        """Write title and table to read."""
        cells = [[_cell(name, value) for name, value in row.items()] for row in _records(self.table)]
        words = {at for at, name in enumerate(self.table.columns) if not _is_number(self.table[name])}
        return "\n".join([self.title, *lined_up([list(map(str, self.table.columns)), *cells], words)])

    def to_json(self) -> dict[str, Any]:
        """Return facts and rows as plain numbers and texts."""
        rows = [{name: plain(value) for name, value in row.items()} for row in _records(self.table)]
        return {**self.facts, "rows": rows}


def answer(
    fit: Fit, questions: Questions, progress: Callable[[int, int], None] | None = None
) -> tuple[Fit, list[Answer]]:
    """Answer questions about a fit.

    Parameters
    ----------
    fit : Fit
        As ``fit()`` returned it.
    questions : Questions
        What is asked.
    progress : callable, optional
        Told how far profiles or bootstrap are: (done, in all).

    Returns
    -------
    fit : Fit
        With the degrees of freedom asked for.
    answers : list of Answer
        One table for each question beyond the coefficients.

    Raises
    ------
    UserError
        For questions that do not go together or that the model cannot answer.
    """
    if questions.intervals not in INTERVALS:
        raise unknown_name("kind of interval", questions.intervals, INTERVALS)
    if questions.intervals != "bootstrap" and (questions.processes != 1 or questions.keep is not None):
        raise UserError(
            "processes and a file of refits belong to the bootstrap", mend="Add --intervals bootstrap."
        )
    if questions.means is None and questions.slopes is None:
        for option, given in (("adjust", questions.adjust is not None), ("scale", questions.scale != "link")):
            if given:
                raise UserError(
                    f"{option} is of means and comparisons, and none are asked for",
                    mend="Ask for them with --means or --slopes, or leave it out.",
                )
    if questions.equivalence is not None and questions.means is None:
        raise UserError("equivalence is tested on comparisons of means", mend="Say which with --means.")
    if questions.control is not None and questions.means is None:
        raise UserError("a control is compared with other means", mend="Say of which factor with --means.")
    fit = with_degrees(fit, questions.df) if questions.df is not None else fit
    answers = []
    if questions.intervals != "wald":
        answers.append(_intervals(fit, questions, progress))
    if questions.anova:
        basis = f"df by {fit.degrees.name}" if fit.degrees is not None else "Wald chi-squared / df"
        table = anova(fit)
        untold = table.attrs["untold"]
        empty = f"; cells are empty, so there is no test of {', '.join(untold)}" if untold else ""
        answers.append(
            Answer("anova", f"Tests of terms (type III, {basis}{empty})", table, {"type": 3, "df": basis})
        )
    if questions.r_squared:
        answers.append(_explained(fit))
    if questions.means is not None or questions.slopes is not None:
        answers += _comparisons(fit, questions)
    return fit, answers


def comparison(test: LikelihoodRatio, formula: str) -> Answer:
    """Put a likelihood-ratio test against another formula into words and numbers."""
    numbers = {
        "chi-squared": test.statistic,
        "df": test.df,
        "p": test.p,
        "p_boundary": np.nan if test.p_boundary is None else test.p_boundary,
    }
    facts = {"formula": formula, "boundary": test.boundary, "words": test.sentence()}
    title = f"Likelihood-ratio test against {formula}\n  {test.sentence()}"
    return Answer("likelihood_ratio", title, pd.DataFrame([numbers]), facts)


def _intervals(fit: Fit, questions: Questions, progress: Callable[[int, int], None] | None) -> Answer:
    if questions.intervals == "profile":
        table = profile_intervals(fit, progress=progress)
        title = "Profile-likelihood 95 % intervals" + (
            " (by maximum likelihood)" if fit.method == "REML" else ""
        )
        return Answer("intervals", title, table, {"method": "profile", "level": 0.95})
    drawn = bootstrap(
        fit,
        questions.replicates,
        seed=questions.seed,
        processes=questions.processes,
        keep=questions.keep,
        progress=progress,
    )
    table = drawn.intervals()
    facts = {
        "method": "bootstrap, percentile",
        "level": 0.95,
        "replicates": len(drawn.replicates),
        "failed": drawn.failed,
        "unconverged": drawn.unconverged,
        "singular": drawn.singular,
        "seed": questions.seed,
    }
    return Answer("intervals", f"Bootstrap 95 % percentile intervals: {drawn.sentence()}", table, facts)


def _explained(fit: Fit) -> Answer:
    found = r_squared(fit)
    rows = [
        ("R2 marginal", found.marginal),
        ("R2 conditional", found.conditional),
        ("ICC adjusted", found.icc_adjusted),
        ("ICC unadjusted", found.icc_unadjusted),
        ("variance, fixed", found.fixed),
        ("variance, random", found.random),
        ("variance, observations", found.observation),
    ]
    title = f"Explained variance (Nakagawa; observations: {found.basis})"
    return Answer(
        "r_squared", title, pd.DataFrame(rows, columns=["quantity", "value"]), {"basis": found.basis}
    )


def _names(text: str) -> tuple[list[str], list[str]]:
    """Read ``a, b | c``: factors compared, and those within whose levels."""
    left, _, right = text.partition("|")
    compared, held = ([name.strip() for name in side.split(",") if name.strip()] for side in (left, right))
    return compared, held


def _comparisons(fit: Fit, questions: Questions) -> list[Answer]:
    compared, held = _names(questions.means or "")
    factors = [*compared, *held]
    found = trends(fit, questions.slopes, factors) if questions.slopes else margins(fit, factors)
    what = f"Slopes of {questions.slopes}" if questions.slopes else "Marginal means"
    where = " x ".join(compared) + (f" within {' x '.join(held)}" if held else "")
    table = found.table("link" if questions.scale == "ratio" else questions.scale)
    shown = "link" if questions.scale == "ratio" else questions.scale
    title = f"{what}{' of ' + where if where and not questions.slopes else ''} ({shown} scale)"
    answers = [Answer("slopes" if questions.slopes else "means", title, table, {"scale": shown})]
    cells = len(found.grid) // (len(found.grid[held].drop_duplicates()) if held else 1)
    if not compared or cells < 2:
        asked = {
            "an equivalence test": questions.equivalence is not None,
            "an adjustment": questions.adjust is not None,
            "a control": questions.control is not None,
            "the ratio scale": questions.scale == "ratio",
        }
        for name, is_given in asked.items():
            if is_given:
                raise UserError(
                    f"{name} is of comparisons, and one {'slope' if questions.slopes else 'mean'} leaves nothing to compare",
                    mend="Name a factor before the bar of --means.",
                )
        return answers
    if questions.control is None:
        pairs = found.pairs(held, scale=questions.scale, adjust=questions.adjust or "holm")
    else:
        control = tuple(level.strip() for level in questions.control.split(","))
        pairs = found.against(control, held, scale=questions.scale, adjust=questions.adjust or "dunnett")
    used = pairs.attrs["adjustment"]
    facts = {"scale": questions.scale, "adjustment": used}
    title = f"Comparisons ({questions.scale} scale; adjustment: {used}{', per family' if held else ''})"
    answers.append(Answer("contrasts", title, pairs, facts))
    if questions.equivalence is not None:
        tested = equivalence_tests(pairs, questions.equivalence)
        title = f"Equivalence within {tested['lower'].iloc[0]:g} to {tested['upper'].iloc[0]:g} (two one-sided tests, 90 % intervals)"
        facts = {"bound": questions.equivalence, "level": 0.9, "scale": questions.scale}
        answers.append(Answer("equivalence", title, tested, facts))
    return answers


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): value for name, value in zip(table.columns, row, strict=True)}
        for row in table.itertuples(index=False, name=None)
    ]


def _is_number(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    number = plain(value)
    if number is None:
        return "-"
    if name in {"p", "p_boundary"}:
        return "<.001" if number < 0.001 else f"{number:.3f}"
    return f"{number:.1f}" if name in {"df", "denominator"} else f"{number:.4g}"
