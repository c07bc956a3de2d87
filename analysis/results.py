"""What an analysis found, as frozen records that the report, its tables and its sentences read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.estimate.crossed import Estimate
from analysis.mixed import APPROXIMATE, Fit
from analysis.plan import Direction, Plan, label_of
from analysis.random_structure import Step

SIDES: Mapping[Direction, Literal[-1, 0, 1]] = {"two-sided": 0, "greater": 1, "less": -1}
"""On which side of 0 a test of each direction looks."""

LARGEST_SE = 10.0
"""A standard error of log odds above this says that the data do not determine the effect."""

LARGEST_EXPONENT = 700.0
"""The exponential of more than this is beyond what a number can hold."""


def can_be_estimated(
    estimate: float, se: float, ends: tuple[float, float], *, logistic: bool, plain: bool = False
) -> bool:
    """Whether an effect, its standard error and the ends of its interval are numbers that say anything.

    ``plain`` says that they are in the measure's own unit (milliseconds) and no exponents.
    """
    values = np.array([estimate, se, *ends])
    if not np.isfinite(values).all() or se <= 0 or (not plain and np.abs(values).max() > LARGEST_EXPONENT):
        return False
    return not (logistic and se > LARGEST_SE)


@dataclass(frozen=True)
class Coefficient:
    """One fixed effect on the modelled scale; ``df`` is None where the statistic is z.

    Where ``estimable`` is False its numbers say nothing and are not shown.
    """

    term: str
    estimate: float
    se: float
    statistic: float
    df: float | None
    p: float
    low: float
    high: float
    estimable: bool = True


@dataclass(frozen=True)
class VarianceTerm:
    """The covariance matrix of one random term, shape (len(terms), len(terms))."""

    group: str
    terms: tuple[str, ...]
    cov: NDArray[np.float64]

    @property
    def sd(self) -> NDArray[np.float64]:
        """Standard deviations, shape (len(terms),)."""
        return np.sqrt(np.clip(np.diag(self.cov), 0.0, None))


@dataclass(frozen=True)
class FittedModel:
    """One fitted model and how it was arrived at.

    Attributes
    ----------
    formula, family, link, method : str
    rows : int
    units : dict
        Levels of each grouping factor.
    coefficients : tuple of Coefficient
    vcov : ndarray, shape (p, p)
    variance : tuple of VarianceTerm
    sigma : float or None
        Residual standard deviation; None for a binomial model.
    loglik, aic, bic : float
    singular, converged : bool
    warnings : tuple of str
    steps : tuple of Step
        Every fit on the way, the reported one last.
    settings : dict
        Settings with which ``analysis.mixed.fit`` was called, for the R script.
    source : analysis.mixed.Fit
        The engine's own result.
    """

    formula: str
    family: str
    link: str
    method: str
    rows: int
    units: Mapping[str, int]
    coefficients: tuple[Coefficient, ...]
    vcov: NDArray[np.float64]
    variance: tuple[VarianceTerm, ...]
    sigma: float | None
    loglik: float
    aic: float
    bic: float
    singular: bool
    converged: bool
    warnings: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    source: Fit | None = None

    @property
    def beta(self) -> NDArray[np.float64]:
        """Fixed effects, shape (p,)."""
        return np.array([one.estimate for one in self.coefficients])

    @property
    def plain(self) -> bool:
        """Whether its effects are in the measure's own unit: an identity link of times that are not logarithms."""
        return self.family not in ("binomial", "gaussian") and self.link == "identity"

    @property
    def determined(self) -> bool:
        """Whether the Hessian and the covariance of the fixed effects are finite and positive definite."""
        return is_determined(self.vcov, self.warnings)


def is_determined(cov: NDArray[np.float64], notes: tuple[str, ...]) -> bool:
    """Whether the data determine the fixed effects: their covariance and the fit's notes say so."""
    if APPROXIMATE in notes:
        return False
    size = np.diag(cov)
    if not np.isfinite(cov).all() or (size <= 0).any():
        return False
    scaled = cov / np.sqrt(np.outer(size, size))
    return bool(np.linalg.eigvalsh((scaled + scaled.T) / 2)[0] > 0)


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests of a difference between readers against the plan's bound (Schuirmann, 1987).

    Attributes
    ----------
    estimate, se : float
        The difference in percentage points, as a natural logarithm of a ratio, or in the measure's unit.
    half_width : float
        The bound on that scale: differences from -half_width to half_width count as none.
    statistic, p : float
        Of the less favourable of the two tests.
    df : float or None
        None where the statistic is z.
    p_adjusted : float
        After the family's correction.
    family : int
        How many tests the family holds.
    low, high : float
        Ends of the interval with coverage 1 - 2 alpha; it lies inside the bound where the unadjusted p is below alpha.
    level : float
        That coverage.
    equivalent : bool
        Whether the adjusted p is below alpha.
    """

    estimate: float
    se: float
    half_width: float
    statistic: float
    df: float | None
    p: float
    p_adjusted: float
    family: int
    low: float
    high: float
    level: float
    equivalent: bool


@dataclass(frozen=True)
class Contrast:
    """One tested difference.

    Attributes
    ----------
    first, second : str
        The levels: ``first`` minus ``second``.
    at : tuple of str
        Levels of another factor at which the difference is taken, or between which it is compared (:class:`Difference`).
    simple : tuple of float
        Of an interaction of two factors in a reader, the difference at each of the two levels, on the scale of the estimate.
    groups : tuple of str
        The reader group, or the two whose differences are compared.
    estimate, se, statistic, df, p, low, high
        In percentage points of shares (``crossed``); otherwise on the modelled scale (log of a time or count, bits, nats, log odds).
        The interval belongs to ``p_adjusted``: it excludes 0 where that is below alpha, and of a test with a direction it has one end.
    p_adjusted : float
        After the family's correction.
    family : int
        How many tests the family holds.
    estimable : bool
        False where the data do not determine the difference; its numbers then say nothing and are not shown.
    direction : {'two-sided', 'greater', 'less'}
        Of the test and its interval.
    equivalence : Equivalence or None
        Only between readers, where the plan has a bound.
    weights : tuple of float
        Of the fixed effects, in the model's order: the estimate is their weighted sum.
    left_out : str
        Why it was not estimated though it was planned; empty where it was. It is not estimable, and counts in its families.
    reach : float
        How many standard errors the interval reaches, and from 0 to where an estimate becomes significant.
    furthest : float
        The largest value that the difference can have.
    vcov : ndarray or None
        Covariance of the fixed effects that ``weights`` weigh.
    log_odds : float
        Of shares, the same contrast of the log odds of condition means: which way it points on the other scale.
    crossed : Estimate or None
        What it is in percentage points, with all that it was computed from (:mod:`analysis.estimate.crossed`).
    """

    first: str
    second: str
    groups: tuple[str, ...]
    estimate: float
    se: float
    statistic: float
    df: float | None
    p: float
    low: float
    high: float
    p_adjusted: float
    family: int
    estimable: bool = True
    direction: Direction = "two-sided"
    equivalence: Equivalence | None = None
    weights: tuple[float, ...] = ()
    left_out: str = ""
    at: tuple[str, ...] = ()
    simple: tuple[float, ...] = ()
    reach: float = float("nan")
    furthest: float = float("inf")
    log_odds: float = float("nan")
    vcov: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    crossed: Estimate | None = field(default=None, compare=False, repr=False)

    @property
    def side(self) -> int:
        """On which side of 0 its test looks: 1 above, -1 below, 0 on both."""
        return SIDES[self.direction]

    @property
    def detectable(self) -> float:
        """The smallest difference that 80% of studies with this standard error would find, on the scale of the estimate."""
        spread = stats.norm if self.df is None else stats.t(self.df)
        return (self.reach + float(spread.ppf(0.8))) * self.se

    @property
    def excludes_zero(self) -> bool:
        """Whether its interval does."""
        return bool(self.low > 0 or self.high < 0)

    @property
    def between(self) -> bool:
        """Whether the difference is compared between two reader groups."""
        return len(self.groups) == 2

    @property
    def label(self) -> str:
        """The difference, in words."""
        return label_of(self.first, self.second, self.at)

    @property
    def interaction(self) -> bool:
        """Whether the difference is compared between two levels of another factor."""
        return len(self.at) == 2

    @property
    def orders(self) -> int:
        """How many differences are taken: 1, 2 of an interaction of two (or between two readers), 3 of both."""
        return 1 + self.interaction + self.between


def tested_of(analyses: Iterable[Analysis], measure: str, group: str) -> dict[tuple[str, str], Contrast]:
    """Return the differences of one reader in all trials that analyses test, by their two levels; planned ones come first."""
    found: dict[tuple[str, str], Contrast] = {}
    for analysis in analyses:
        if analysis.plan.measure.name == measure and not analysis.plan.subset:
            for one in analysis.contrasts:
                if one.estimable and one.groups == (group,) and not one.at:
                    found.setdefault((one.first, one.second), one)
    return found


@dataclass(frozen=True)
class Analysis:
    """One plan carried out: its model, contrasts and all that must be said about them.

    Attributes
    ----------
    plan : Plan
    model : FittedModel or None
        None where nothing could be fitted; ``remarks`` then say why.
    groups, levels : tuple of str
        What is analysed: of shares every reader that has answers, otherwise what is in the model.
    contrasts : tuple of Contrast
    correction : str
        What adjusts p values and intervals, in words.
    remarks : tuple of str
        What was left out, reduced or could not be done, in sentences.
    rows : pandas.DataFrame
        The rows that were analysed; empty where there are none.
    companion : Analysis or None
        Of shares, the logistic mixed model of people alone, which ``model`` is: a check on log odds. What ``groups``, ``levels`` and
        ``rows`` of it say is of that model.
    """

    plan: Plan
    model: FittedModel | None
    groups: tuple[str, ...]
    levels: tuple[str, ...]
    contrasts: tuple[Contrast, ...]
    correction: str
    remarks: tuple[str, ...]
    rows: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False, repr=False)
    companion: Analysis | None = field(default=None, compare=False, repr=False)

    @property
    def of_model(self) -> Analysis:
        """The analysis whose readers, levels and rows are those of the fitted model."""
        return self if self.companion is None else self.companion

    @property
    def has_results(self) -> bool:
        """Whether a model was fitted or a contrast estimated."""
        return self.model is not None or any(one.estimable for one in self.contrasts)
