"""Writes the rows of each estimate and model, and one R program that recomputes all of them and compares each with the report.

Differences in shares are recomputed in base R, with the adjustment of their families by simulation; models are refitted with lme4.
"""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import apa, mixed
from analysis.bayes import posterior_of
from analysis.mixed import Fit, lme4_program
from analysis.multiple_comparisons import family_of
from analysis.names import MARK, as_given
from analysis.plan import RATING
from analysis.readers import MODELS_IN_GENERAL, PARTICIPANT_KINDS
from analysis.report.fit_warnings import without_end
from analysis.report.numbering import ReportContent
from analysis.report.provenance import ModelFiles
from analysis.results import HUGE, Analysis, Contrast
from analysis.tables import item_names

PROGRAM = "models.R"
MANY_ROWS = 200_000
"""Rows of more than this are written compressed; R's read.csv opens such files as they are."""
SHARED_R = {
    "criterion.R": "criterion",
    "quadrature.R": "quadrature",
    "search.R": "narrowed",
    "degrees.R": "finer_degrees",
}
"""Parts of programs that are the same in every model, by the name of the function that replaces them."""
READ = (
    ', colClasses = "character", check.names = FALSE,\n'
    '  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")'
)
DONE_AT_HEAD = ("library(lme4)", "library(Matrix)", "library(splines)", "library(lmerTest)")
NO_MODEL_BEFORE = ("# The results are fixed, vcov", 'rm(list = intersect("m"')
"""Lines that programs need if nothing else removes the model before them."""


def write_models(content: ReportContent, folder: Path, many_rows: int = MANY_ROWS) -> dict[int, ModelFiles]:
    """Write the rows of each model into ``models/`` and ``models.R``; return where each model lies, by its number."""
    written: dict[int, ModelFiles] = {}
    fits = content.all_fits()
    lines = _head(any(fit.fit.family == "gaussian" for fit in fits))
    analyses = [section.analysis.of_model for section in content.sections]
    estimated = [
        analysis for analysis in (section.analysis for section in content.sections)
        if any(_recomputed(contrast, analysis) for contrast in analysis.contrasts)
    ]  # fmt: skip
    for number, analysis in enumerate(estimated, 1):
        path = _write_rows(_shares(analysis), folder / "models" / f"estimates_{number:02d}.csv", many_rows)
        lines += ["", *_estimate_lines(number, analysis, f"models/{path.name}")]
    for number, reported in enumerate(fits, 1):
        rows: pd.DataFrame = reported.fit.model.frame.data
        shown = partial(_in_r, [str(name) for name in rows])
        path = _write_rows(
            rows.rename(columns=shown), folder / "models" / f"model_{number:02d}.csv", many_rows
        )
        name = f"models/{path.name}"
        title = " ".join(reported.title.split())
        tested = next((analysis for analysis in analyses if analysis.fit is reported.fit), None)
        call_lines = [
            "",
            f"# Model {number}: {title}",
            *map(shown, refit_lines(number, title, reported.fit, name, tested)),
        ]
        formula, first = shown(" ".join(reported.fit.formula.split())), len(lines) + 2
        where = (name, len(rows), path.stat().st_size, first, first + len(call_lines) - 2)
        written[number] = ModelFiles(number, reported.title, formula, *where)
        lines += call_lines
    if content.has_program:
        lines += [
            "",
            *_family_lines([section.analysis for section in content.sections]),
            'say(sprintf("%d of %d comparisons agree with the report.\\n", sum(agreed), length(agreed)))',
            "quit(status = if (all(agreed)) 0 else 1)",
        ]
        (folder / PROGRAM).write_text(as_given("\n".join(lines) + "\n"), "utf-8")
    return written


def _in_r(columns: Sequence[str], text: str) -> str:
    """Return a text of a program with the names that users gave factors, longer ones where a model has such columns itself."""
    existing = {as_given(column) for column in columns if MARK in column} & set(columns)
    return text.replace(MARK, "_factor" if existing else "")


def _write_rows(rows: pd.DataFrame, path: Path, many_rows: int) -> Path:
    path.parent.mkdir(exist_ok=True)
    rows.to_csv(path, index=False)
    if len(rows) <= many_rows:
        return path
    packed = path.with_name(f"{path.name}.gz")
    with path.open("rb") as plain, packed.open("wb") as out, gzip.GzipFile("", "wb", 6, out, mtime=0) as file:
        shutil.copyfileobj(plain, file)
    path.unlink()
    return packed


def _head(is_any_linear: bool) -> list[str]:
    """Return the head of the program: what holds R against the report, and the parts that programs share, as functions."""
    head = resources.files(__package__).joinpath("refitting.R").read_text("utf-8").splitlines()
    libraries = ["library(lmerTest)  # Satterthwaite degrees of freedom"] if is_any_linear else []
    shared = [
        line
        for file, name in SHARED_R.items()
        for line in ("", f"{name} <- function() eval.parent(quote({{", *_shared(file).splitlines(), "}))")
    ]
    shares = resources.files(__package__).joinpath("estimating.R").read_text("utf-8").splitlines()
    return [*head, *libraries, *shares, *shared, "", "kept <- ls(globalenv())"]


def _recomputed(contrast: Contrast, analysis: Analysis) -> bool:
    """Whether R recomputes a contrast of shares: not between two groups of people, and with fixed items of people alone."""
    if contrast.crossed is None or not contrast.estimable:
        return False
    kinds = analysis.rows.drop_duplicates("reader_group").set_index("reader_group")["reader_kind"]
    people = [kinds.get(group) in PARTICIPANT_KINDS for group in contrast.groups]
    fixed = analysis.plan.items == "fixed"
    return (
        people != [True, True]
        and (not fixed or people == [True])
        and MODELS_IN_GENERAL not in contrast.groups
    )


def _shares(analysis: Analysis) -> pd.DataFrame:
    """Return the rows of an estimate as R reads them."""
    rows = analysis.rows
    return pd.DataFrame(
        {
            "group": rows["reader_group"],
            "person": rows["reader_kind"].isin(PARTICIPANT_KINDS).map({True: "TRUE", False: "FALSE"}),
            "participant": rows["reader"],
            "item": item_names(rows),
            "condition": rows[analysis.plan.factor],
            "variant": rows["prompt_variant"].map(lambda variant: "-" if pd.isna(variant) else str(variant)),
            "value": rows[analysis.plan.measure.value].astype(float),
        }
    )


def _estimate_lines(number: int, analysis: Analysis, file: str) -> Iterator[str]:
    """Write one call of ``estimate_shares``: the rows, and what the report holds of each difference."""
    plan = analysis.plan
    title = " ".join(plan.name.split())
    yield f"# Estimates {number}: {title}"
    yield f"estimate_shares({number}, {_quoted(title)}, {_quoted(file)}, {_quoted(_family(analysis))}, list(tests = list("
    tests = [contrast for contrast in analysis.contrasts if _recomputed(contrast, analysis)]
    for index, test in enumerate(tests):
        assert test.crossed is not None
        weights = ", ".join(f"{_quoted(str(name))} = {w:.12g}" for name, w in test.crossed.weights.items())
        groups = ", ".join(_quoted(group) for group in test.groups)
        text = f"label = {_quoted(test.label)}, groups = c({groups}), weights = c({weights}), {_held(test, analysis)}"
        yield f"  list({text}){',' if index < len(tests) - 1 else ''}"
    rated = tests[0].crossed if plan.measure == RATING else None
    span = "" if rated is None else f", span = {_vector(rated.sums.layout.span)}"
    yield f")), {_truth(plan.items == 'fixed')}{span})"


def _held(contrast: Contrast, analysis: Analysis) -> str:
    """Write the numbers that a report holds of a contrast."""
    values = {
        "estimate": contrast.estimate, "se": contrast.se, "df": np.inf if contrast.df is None else contrast.df,
        "p": contrast.p, "p_adjusted": contrast.p_adjusted,
        "low": contrast.low, "high": contrast.high, "furthest": contrast.furthest, "side": contrast.side, "alpha": analysis.plan.alpha,
    }  # fmt: skip
    values |= {"elsewhere": 1} if contrast.elsewhere else {}
    prior = analysis.plan.bayes
    if prior is not None:
        bayes = posterior_of(contrast, prior)
        bound = np.nan if contrast.equivalence is None else contrast.equivalence.half_width
        values |= {
            "prior_scale": prior.scale, "prior_df": prior.df, "bound": bound,
            "factor": bayes.factor, "median": bayes.median,
            "posterior_low": bayes.low, "posterior_high": bayes.high,
            "within": np.nan if bayes.within is None else bayes.within,
        }  # fmt: skip
    return ", ".join(f"{name} = {_number(float(value))}" for name, value in values.items())


def _family(analysis: Analysis) -> str:
    """Name the family whose adjustment R recomputes; empty of an exploratory analysis."""
    return ": ".join(map(str, family_of(analysis.plan))) if analysis.plan.planned else ""


def _family_lines(analyses: Sequence[Analysis]) -> Iterator[str]:
    """Write one call of ``adjust_family`` for each family, with the sides of the tests that R does not recompute."""
    done, sides = Counter[str](), dict[str, list[str]]()
    for analysis in analyses:
        untested = sides.setdefault(_family(analysis), [])
        for contrast in analysis.contrasts:
            if contrast.estimable and (contrast.weights or _recomputed(contrast, analysis)):
                done[_family(analysis)] += 1
            else:
                untested.append(str(contrast.side))
    for name, untested in sides.items():
        if name and done[name]:
            yield f"adjust_family({_quoted(name)}, {done[name]}, c({', '.join(untested)}))"


def _shared(file: str) -> str:
    return resources.files(mixed).joinpath(file).read_text("utf-8").rstrip("\n")


def refit_lines(number: int, title: str, fit: Fit, name: str, tested: Analysis | None) -> Iterator[str]:
    """Write one call of ``refit``: the model's own program, what the report holds of it, and why R needs more than lme4."""
    program = lme4_program(fit, name).rstrip("\n")
    for file, function in SHARED_R.items():
        program = program.replace(_shared(file), f"{function}()")
    program = program.replace(f'read.csv("{name}"{READ}', f'rows_of("{name}")')
    lines = [
        line for line in program.splitlines() if line and not line.startswith((*DONE_AT_HEAD, *NO_MODEL_BEFORE))
    ]  # fmt: skip
    yield f"refit({number}, {_quoted(title)}, {{"
    yield from lines
    yield from _report(fit, tested)
    noted = [line.removeprefix("# ").rstrip(".") for line in lines if line.startswith(REASONS)]
    noted = [note.removeprefix("Also: ") for note in noted]
    noted += (
        [f"the guess rate's link {fit.link} is R code in addition to lme4"] if fit.model.link.guess else []
    )
    endless = without_end(fit)
    arguments = {
        "note": "; ".join(noted),
        "no_maximum": f"{apa.listing(endless)} grow{'s' if len(endless) == 1 else ''} without end"
        if endless
        else "",
    }
    yield "}" + "".join(f", {name} = {_quoted(text)}" for name, text in arguments.items() if text) + ")"


REASONS = ("# glmer", "# Also: ", "# penalty: ")
"""How the comments begin by which a program says what lme4 does not compute."""


def _report(fit: Fit, tested: Analysis | None) -> Iterator[str]:
    """Write what the report holds of a model, as an R list."""
    fixed, linear = fit.fixed, fit.family == "gaussian" and fit.link == "identity"
    variances = [component.cov[np.triu_indices(len(component.terms))] for component in fit.variance]
    if linear:
        variances.append(np.array([fit.sigma**2]))
    yield "report <- list("
    # where answers at most levels are alike, the deviance is flat, and differences of it say less of its curvature
    is_flat = fit.family == "binomial" and any(component.sd.max() > HUGE for component in fit.variance)
    kind = f"linear = {_truth(linear)}, singular = {_truth(fit.singular)}, flat = {_truth(is_flat)}"
    yield f"  {kind}, rows = {fit.nobs}, loglik = {fit.loglik:.12g},"
    yield f"  terms = c({', '.join(_quoted(term) for term in fixed['term'])}),"
    yield f"  estimate = {_vector(fixed['estimate'])},"
    yield f"  se = {_vector(fixed['se'])},"
    yield f"  variance = {_vector(np.concatenate([*variances, np.empty(0)]))}"
    if fit.dispersion is not None:
        yield f"  , dispersion = {fit.dispersion:.12g}"
    yield from _differences(tested)
    yield ")"


def _differences(analysis: Analysis | None) -> Iterator[str]:
    """Write the tested differences as weights of the fixed effects, with the report's wording of each."""
    tested = [contrast for contrast in analysis.estimable if contrast.weights] if analysis else []
    if not tested:
        return
    yield "  # The differences that the report tests: weights of the fixed effects, in their order above."
    yield "  , weights = rbind("
    for index, contrast in enumerate(tested):
        name = _quoted(
            f"{contrast.label} ({' vs. '.join(contrast.groups)})".replace("−", "-").replace("×", "x")
        )
        yield f"    {name} = {_vector(contrast.weights)}{',' if index < len(tested) - 1 else ''}"
    yield "  ),"
    yield f"  b = {_vector([contrast.estimate for contrast in tested])},"
    yield f"  b_se = {_vector([contrast.se for contrast in tested])},"
    yield f"  df = {_vector([np.nan if contrast.df is None else contrast.df for contrast in tested])},"
    measure = None if analysis is None else analysis.plan.measure
    is_companion = measure is not None and measure.of_means
    family = "" if analysis is None or is_companion else _family(analysis)
    yield f"  family = {_quoted(family)}, tests = list("
    for index, contrast in enumerate(tested):
        assert analysis is not None
        yield f"    list({_held(contrast, analysis)}){',' if index < len(tested) - 1 else ''}"
    yield "  )"


def _truth(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def _number(value: float) -> str:
    """Write a number as R does."""
    return {"nan": "NA", "inf": "Inf", "-inf": "-Inf"}.get(text := f"{value:.12g}", text)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _vector(values: object) -> str:
    return f"c({', '.join(map(_number, np.asarray(values, dtype=float).ravel()))})"
