"""A fitted mixed model: numbers under lme4's names, as a table to read and as JSON."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from analysis.arrays import Array, Index
from analysis.mixed.degrees_of_freedom import DegreesOfFreedom
from analysis.mixed.families import LINKS, Family, Link
from analysis.mixed.formula import Formula, FunctionCall, Node, Note, read_expression
from analysis.mixed.matrices import Frame, Matrices
from analysis.mixed.objective import Criterion
from analysis.mixed.responses import ResponseModel, Shape, Thresholds


@dataclass(frozen=True, eq=False)
class Model:
    """The model that was fitted: formula, rows, matrices, family; margins and the R program are made from it."""

    formula: Formula
    frame: Frame
    matrices: Matrices
    family: Family
    link: Link
    reml: bool
    weights: str | None  # weights, offset: the columns or expressions given
    offset: str | None
    numbers_given: tuple[str, ...] = ()  # names of those of the two that came as numbers instead
    criterion: Criterion = field(default_factory=Criterion)

    @property
    def offset_nodes(self) -> list[Node]:
        """The expressions whose sum is the offset, those of the formula and the one given separately."""
        return [*self.formula.offsets, *([read_expression(self.offset)] if self.offset else [])]

    @property
    def back(self) -> Link:
        """The link that leads back to the response as measured: that of a response log(y) is the log."""
        match self.formula.response, self.link.name:
            case FunctionCall("log", (_,), ()), "identity":
                return LINKS["log"]
        return self.link

    @property
    def maximises_likelihood(self) -> bool:
        """Whether the fit maximises a likelihood: no penalty, and not lme4's criterion for families with phi."""
        return self.criterion.penalty is None and self.criterion.dispersion == "ml"


@dataclass(frozen=True, eq=False)
class VarianceComponent:
    """The random effects of one term."""

    group: str  # grouping factor; ``g.1`` for the second term on g, as lme4 prints it
    terms: tuple[str, ...]  # column names
    cov: Array  # (k, k): covariance, in the units of the linear predictor

    @property
    def sd(self) -> Array:
        """Standard deviations, shape (k,)."""
        return np.sqrt(np.clip(np.diag(self.cov), 0.0, None))

    @property
    def corr(self) -> Array:
        """Correlations, shape (k, k); nan where a standard deviation is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.cov / np.outer(self.sd, self.sd))


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A fitted mixed model."""

    formula: str  # formula, family, link: as fitted
    family: str
    link: str
    method: str  # ``REML``, ``ML`` or ``ML, Laplace (nAGQ=1)``; without random effects ``least squares`` or ``ML``
    nobs: int  # rows used
    groups: Mapping[str, int]  # levels by grouping factor
    loglik: float  # deviance is -2 loglik (the REML criterion under REML)
    aic: float
    bic: float
    deviance: float
    converged: bool  # converged, singular: ``warnings`` names the term
    singular: bool
    warnings: tuple[Note, ...]  # rows and columns dropped, singular terms, no convergence, separation
    wald: Callable[[], pd.DataFrame]  # makes ``fixed``
    vcov: pd.DataFrame  # (p, p): covariance of the fixed effects
    variance: tuple[VarianceComponent, ...]  # in lme4's order
    sigma: float  # residual standard deviation; root of phi; sigma of times; 1 where the family has none
    n_parameters: int  # fixed effects, variance parameters, and sigma where estimated
    ranef: Callable[[], Mapping[str, pd.DataFrame]]  # makes ``modes``
    rows: Index  # (nobs,): positions of the rows used
    degrees: DegreesOfFreedom | None  # gives contrasts their degrees of freedom; None for z tests
    evaluations: int  # how often the deviance was computed
    theta: Array  # (k,): relative covariance parameters, for the orthonormalised columns of each term
    eta: Array  # (nobs,): linear predictor with random effects and offset, in the order of the rows used
    model: Model  # what was fitted
    end: Array  # (d,): where the search ended: theta, then for generalised models log dispersion and whitened coefficients
    is_sketch: bool = False  # whether standard errors are of the average information; see ``sketch``
    dispersion: float | None = None  # phi, theta of negative.binomial, precision of betabinomial
    cuts: Thresholds | None = None  # of an ordinal model; the intercept of ``fixed`` is minus their mean
    shape: Shape | None = None  # of response times: the fitted shifted lognormal or ex-Gaussian distribution
    response: ResponseModel | None = (
        None  # the observations at the estimated dispersion; None for linear models
    )

    @property
    def thresholds(self) -> pd.DataFrame | None:
        """Thresholds of an ordinal model, see ``Thresholds.table``; else None."""
        return None if self.cuts is None else self.cuts.table

    @property
    def distribution(self) -> pd.DataFrame | None:
        """Sigma and ndt or beta of response times, see ``Shape.table``; else None."""
        return None if self.shape is None else self.shape.table

    @property
    def told(self) -> pd.DataFrame:
        """Fixed effects as they are reported: those of an ordinal model without the mean, which the thresholds tell."""
        return self.fixed if self.cuts is None else self.fixed.iloc[1:]

    @cached_property
    def fixed(self) -> pd.DataFrame:
        """Table of the fixed effects, shape (p, 8)."""
        return self.wald()

    @cached_property
    def fitted(self) -> Array:
        """Fitted means with the random effects, in the order of the rows used; shape (nobs,)."""
        if self.cuts is not None:
            return np.asarray(self.cuts.probabilities(self.eta)[0] @ self.cuts.scores)
        return self.shape.response.mean(self.eta)[0] if self.shape else self.model.link.inverse(self.eta)

    @cached_property
    def modes(self) -> Mapping[str, pd.DataFrame]:
        """Conditional modes of the random effects, by grouping factor."""
        return self.ranef()

    def __repr__(self) -> str:
        return f"<Fit of {self.formula!r}, {self.family}, {self.link} link, log-likelihood {self.loglik:.4f}>"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """Show the summary in a notebook."""
        return f"<pre>{html.escape(self.summary())}</pre>"

    def to_json(self) -> dict[str, Any]:
        """Return what ``wrods fit --json`` prints: plain numbers, texts and lists, None for what is not defined."""
        terms = self.told["term"].to_list()
        tables = {"thresholds": self.thresholds, "distribution": self.distribution}
        numbers = {name: plain(getattr(self, name)) for name in ("loglik", "aic", "bic", "deviance")}
        return {
            "formula": self.formula,
            "family": self.family,
            "link": self.link,
            "method": self.method,
            "nobs": self.nobs,
            "groups": dict(self.groups),
            **numbers,
            "converged": self.converged,
            "singular": self.singular,
            "warnings": list(self.warnings),
            "fixed": plain(self.told),
            **{name: plain(table) for name, table in tables.items() if table is not None},
            "vcov": plain(self.vcov.loc[terms, terms].to_numpy()),
            "variance": [
                {"group": c.group, "terms": list(c.terms), "cov": plain(c.cov)} for c in self.variance
            ],
            "sigma": plain(self.sigma),
            **({} if self.dispersion is None else {"dispersion": plain(self.dispersion)}),
        }

    def summary(self) -> str:
        """Write the fit as a paper's table: counts, random effects, fixed effects, fit, warnings."""
        linear = self.model.family.has_scale
        kind = "Linear" if linear else "Generalised linear" if self.cuts is None else "Cumulative (ordinal)"
        distribution = "" if linear else f"{self.family}, {self.link} link; "
        lines = [
            f"{kind}{' mixed' if self.variance else ''} model ({distribution}{self.method})",
            f"Formula: {self.formula}",
        ]
        counts = [f"{name}: {n} levels" for name, n in self.groups.items()]
        lines += ["; ".join([f"{self.nobs} observations", *counts])]
        if self.cuts is not None:
            lines += [f"Categories: {' < '.join(self.cuts.categories)}; positive effects lead to higher ones"]
        if self.model.frame.success is not None:
            lines += [f"Modelled: the probability that the response is {self.model.frame.success!r}"]
        random = self._random_rows()
        if len(random) > 1:
            lines += ["", "Random effects" if self.variance else "Residuals", *lined_up(random)]
        lines += ["", *self._fixed_lines()]
        deviance = "REML criterion" if self.method == "REML" else "-2 log-likelihood"
        fit = f"{deviance} {self.deviance:.3f}; AIC {self.aic:.2f}; BIC {self.bic:.2f}"
        lines += ["", f"Log-likelihood {self.loglik:.3f}; {fit}"]
        if self.warnings:
            lines += ["", "Warnings", *(f"  {w}" for w in self.warnings)]
        return "\n".join(lines)

    def _random_rows(self) -> list[list[str]]:
        rows = [["group", "term", "variance", "SD", "correlations"]]
        for component in self.variance:
            for i, term in enumerate(component.terms):
                variance, sd = f"{component.cov[i, i]:.4g}", f"{component.sd[i]:.4g}"
                correlations = " ".join(f"{component.corr[i, j]:.2f}" for j in range(i))
                rows.append(["" if i else component.group, term, variance, sd, correlations])
        if self.family == "gaussian":
            rows.append(["residual", "", f"{self.sigma**2:.4g}", f"{self.sigma:.4g}", ""])
        elif self.dispersion is not None:
            rows.append([self.model.family.dispersion or "", "", f"{self.dispersion:.4g}", "", ""])
        return rows

    def _fixed_lines(self) -> list[str]:
        linear = self.degrees is not None
        ratio = self.model.link.ratio
        head = ["term", "b", "SE", *(["df", "t"] if linear else ["z"]), "p", "95 % CI"]
        rows = [head + ([ratio] if ratio else [])]
        table: Iterable[Any] = self.told.itertuples()
        for row in table:
            cells = [row.term, f"{row.estimate:.4g}", f"{row.se:.4g}", *([f"{row.df:.1f}"] if linear else [])]
            cells += [f"{row.statistic:.2f}", format_p(row.p), f"[{row.ci_low:.4g}, {row.ci_high:.4g}]"]
            rows.append(cells + ([f"{math.exp(min(row.estimate, 700.0)):.4g}"] if ratio else []))
        basis = f"df by {self.degrees.name}, " if self.degrees is not None else ""
        title = f"Fixed effects ({basis}{'t' if linear else 'Wald'} intervals)"
        lines = [title, *lined_up(rows)] if rows[1:] else []
        for title, heading, cut in (
            ("Thresholds between categories", "threshold", self.thresholds),
            ("Distribution of times", "estimate", self.distribution),
        ):
            if cut is None:
                continue
            cuts = [["term", heading, "SE", "95 % CI"]]
            for name, estimate, se, low, high in cut.itertuples(index=False):
                cuts.append([name, f"{estimate:.4g}", f"{se:.4g}", f"[{low:.4g}, {high:.4g}]"])
            lines += [*([""] if lines else []), title, *lined_up(cuts)]
        return lines


def plain(value: Any) -> Any:
    """Make a value fit for JSON: tables as lists of rows, None for what is not finite."""
    if isinstance(value, pd.DataFrame):
        return [{str(k): plain(v) for k, v in row.items()} for row in value.to_dict(orient="records")]
    if isinstance(value, np.ndarray | list):
        return [plain(v) for v in value]
    if isinstance(value, str | bool | np.bool_) or value is None:
        return value.item() if isinstance(value, np.bool_) else value
    number = float(value)
    return number if math.isfinite(number) else None


def format_p(p: float) -> str:
    """Write p for a table on a terminal: ``.032``, ``<.001``, ``>.999``; ``-`` if there is none."""
    if math.isnan(p):
        return "-"
    return "<.001" if p < 0.001 else ">.999" if p >= 0.9995 else f"{p:.3f}"[1:]


def lined_up(rows: list[list[str]], words: set[int] | None = None) -> list[str]:
    """Line up cells, words to the left, numbers to the right."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    text = {j for j in range(len(widths)) if rows[0][j] in {"group", "term"}} if words is None else words
    lines = []
    for row in rows:
        cells = zip(range(len(row)), row, widths, strict=True)
        lines.append("  ".join(c.ljust(w) if j in text else c.rjust(w) for j, c, w in cells))
    return [f"  {line}".rstrip() for line in lines]
