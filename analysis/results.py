"""The results of an analysis, as frozen records from which the report takes its tables and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.answers import is_valid
from analysis.apa import without_width
from analysis.crossed_variance import CrossedEstimate
from analysis.mixed import APPROXIMATE, Fit, Note, VarianceComponent, completed, linear_contrasts
from analysis.plan import Direction, LevelDifference, Plan, label_of
from analysis.random_structure import Step

SIDES: Mapping[Direction, Literal[-1, 0, 1]] = {"two-sided": 0, "greater": 1, "less": -1}
"""On which side of 0 a test of each direction looks."""

LARGEST_SE = 10.0
"""A standard error of log odds above this says that the data do not determine the effect."""

FEWEST_DF = 2.0
"""With fewer degrees of freedom, what a study could have detected is not told."""

LARGEST_EXPONENT = 700.0
"""The exponential of more than this is beyond what a number can hold."""


@dataclass(frozen=True)
class Coefficient:
    """One fixed effect on the modelled scale; ``df`` is None where the statistic is z; not ``estimable``: its numbers say nothing.

    ``df``, ``p`` and the interval are nan where the degrees of freedom are too few for an interval.
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

    @property
    def has_interval(self) -> bool:
        """Whether its numbers say something, and its interval too."""
        return self.estimable and not np.isnan(self.low)


BEYOND = 10.0
"""A standard deviation of log odds above this leaves no level anywhere but at 0 or 100%."""


HUGE = 4.0
"""A standard deviation of log odds above this spans from 2% to 98% within one of it on either side."""


@dataclass(frozen=True)
class FittedModelResult:
    """One fitted model and how it was arrived at."""

    source: Fit  # the engine's own result
    settings: Mapping[str, Any]  # of ``analysis.mixed.fit``, for the R script
    units: Mapping[
        str, int
    ]  # levels of each grouping factor; of a term that is confined to people or models, theirs alone
    steps: tuple[Step, ...] = ()  # every fit on the way, the reported one last

    @property
    def formula(self) -> str:
        """The formula as given."""
        return self.source.formula

    @property
    def family(self) -> str:
        """The distribution of the response."""
        return self.source.family

    @property
    def link(self) -> str:
        """The link function."""
        return self.source.link

    @property
    def rows(self) -> int:
        """Number of rows used."""
        return self.source.nobs

    @cached_property
    def vcov(self) -> NDArray[np.float64]:
        """Covariance of the fixed effects, shape (p, p); contrasts that hold this very array are of one fit."""
        return self.source.vcov.to_numpy()

    @property
    def sigma(self) -> float | None:
        """Residual standard deviation of a linear model."""
        return self.source.sigma if self.family == "gaussian" else None

    @property
    def loglik(self) -> float:
        """Log-likelihood; of a linear model the REML criterion over -2."""
        return self.source.loglik

    @property
    def singular(self) -> bool:
        """Whether a variance is at zero or a covariance has lost a dimension."""
        return self.source.singular

    @property
    def converged(self) -> bool:
        """Whether the search for the estimates ended well."""
        return self.source.converged

    @property
    def warnings(self) -> tuple[Note, ...]:
        """Notes of the fit, and one on random effects so large that odds ratios describe only an average item and reader."""
        if self.family != "binomial" or self.largest_sd <= HUGE:
            return self.source.warnings
        return (
            *self.source.warnings,
            Note("odds_ratios_without_meaning", sd=self.largest_sd)
            if self.runs_away
            else Note("odds_ratios_conditional", sd=HUGE),
        )

    @cached_property
    def variance(self) -> tuple[VarianceComponent, ...]:
        """Covariances of the random terms, by grouping factor without lme4's numbering (``participant.1``)."""
        stems = ((component, re.sub(r"\.\d+$", "", component.group)) for component in self.source.variance)
        return tuple(
            replace(component, group=stem) if stem in self.source.groups else component
            for component, stem in stems
        )

    @cached_property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """The fixed effects, with intervals from t where there are degrees of freedom."""
        terms = list(self.source.fixed["term"])
        table = linear_contrasts(self.source, np.eye(len(terms)), terms)
        names = ["estimate", "se", "statistic", "df", "p", "ci_low", "ci_high"]
        coefficients = []
        for term, values in zip(terms, table[names].to_numpy(dtype=float).tolist(), strict=True):
            estimate, se, statistic, df, p, low, high = values
            degrees: float | None = None if np.isnan(df) else df
            is_estimable = self.determined and not self.runs_away and self.can_estimate(estimate, se)
            if is_estimable and not self.can_estimate(estimate, se, (low, high)):
                degrees = p = low = high = float("nan")  # too few for an interval
            coefficients.append(
                Coefficient(str(term), estimate, se, statistic, degrees, p, low, high, is_estimable)
            )
        return tuple(coefficients)

    @property
    def beta(self) -> NDArray[np.float64]:
        """Fixed effects, shape (p,)."""
        return np.array([coefficient.estimate for coefficient in self.coefficients])

    @property
    def plain(self) -> bool:
        """Whether its effects are in the measure's own unit: an identity link of times that are not logarithms."""
        return self.family not in ("binomial", "gaussian") and self.link == "identity"

    @property
    def largest_sd(self) -> float:
        """The largest standard deviation of a random effect."""
        return max((float(term.sd.max()) for term in self.variance), default=0.0)

    @property
    def runs_away(self) -> bool:
        """Whether a variance of log odds is beyond measure, so that effects hold for no reader and no item."""
        return self.family == "binomial" and self.largest_sd > BEYOND

    @cached_property
    def determined(self) -> bool:
        """Whether the Hessian and the covariance of the fixed effects are finite and positive definite."""
        size = np.diag(self.vcov)
        if APPROXIMATE in self.source.warnings or not np.isfinite(self.vcov).all() or (size <= 0).any():
            return False
        scaled = self.vcov / np.sqrt(np.outer(size, size))
        return bool(np.linalg.eigvalsh((scaled + scaled.T) / 2)[0] > 0)

    def completed(self) -> FittedModelResult:
        """Make of a model that was sketched, to be simplified, one to report."""
        return replace(self, source=completed(self.source)) if self.source.is_sketch else self

    def can_estimate(self, estimate: float, se: float, ends: tuple[float, ...] = ()) -> bool:
        """Whether an effect, its standard error and the ends of its interval, if given, are numbers that say anything."""
        values = np.array([estimate, se, *ends])
        largest = np.inf if self.plain else LARGEST_EXPONENT
        if not np.isfinite(values).all() or se <= 0 or np.abs(values).max() > largest:
            return False
        return self.family != "binomial" or se <= LARGEST_SE


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests of a difference between readers against the plan's bound (Schuirmann, 1987)."""

    estimate: float
    se: float
    half_width: float  # the bound on that scale: differences from -half_width to half_width count as none
    statistic: float  # of the less favourable of the two tests
    df: float | None  # None where the statistic is z
    p: float
    p_adjusted: float  # after the family's correction
    family: int  # how many tests the family holds
    low: float
    high: float
    level: float  # that coverage
    equivalent: bool  # whether the adjusted p is below alpha


class EstimateWithTest(NamedTuple):
    """An estimate with its test and its interval."""

    estimate: float
    se: float
    statistic: float
    df: float | None
    p: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Contrast:
    """One tested difference."""

    first: str  # the levels: ``first`` minus ``second``
    second: str
    groups: tuple[str, ...]  # the reader group, or the two whose differences are compared
    estimate: float  # percentage points of shares; otherwise on the modelled scale (logs, bits, nats)
    se: float
    statistic: float
    df: float | None
    p: float
    low: float  # the interval belongs to ``p_adjusted``: it excludes 0 where that is below alpha
    high: float
    p_adjusted: float  # after the family's correction
    family: int  # over how many tests that corrects
    correction: str = ""  # what adjusts p and interval, in words
    estimable: bool = True  # False: its numbers say nothing and are not shown
    direction: Direction = "two-sided"  # of the test and its interval
    equivalence: Equivalence | None = None  # only between readers, where the plan has a bound
    weights: tuple[float, ...] = ()  # of the fixed effects: the estimate is their weighted sum
    left_out: str = ""  # why a planned contrast was not estimated; it still counts in its families
    at: tuple[str, ...] = ()  # levels of another factor at which, or between which, it is taken
    simple: tuple[float, ...] = ()  # of an interaction within a reader: the difference at each level
    reach: float = float("nan")  # half width of the interval in standard errors
    elsewhere: str = ""  # the other family that tests it too, where p and interval are of that one
    furthest: float = float("inf")  # the largest value that the difference can have
    log_odds: float = float("nan")  # of shares, the same contrast of log odds of condition means
    vcov: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    crossed: CrossedEstimate | None = field(
        default=None, compare=False, repr=False
    )  # of shares, its estimate

    @classmethod
    def of(
        cls,
        difference: LevelDifference,
        groups: tuple[str, ...],
        tested: EstimateWithTest,
        **fields: Any,
    ) -> Contrast:
        """Return a tested difference of one reader group or two, not yet adjusted."""
        return cls(
            difference.first, difference.second, groups, *tested[:5], *tested.interval,
            p_adjusted=tested.p, family=1, direction=difference.direction_in(groups), at=difference.at, **fields,
        )  # fmt: skip

    @property
    def side(self) -> int:
        """On which side of 0 its test looks: 1 above, -1 below, 0 on both."""
        return SIDES[self.direction]

    def ends_around(self, estimate: float, se: float, df: float | None) -> tuple[float, float]:
        """Return the possible part of the interval of another estimate, on the sides and with the tail probability of this one's.

        That of a directional test has one end; the other is infinite, since nothing was tested there.
        """
        own_df, other_df = (np.inf if value is None else value for value in (self.df, df))
        half = (
            self.reach if own_df == other_df else float(stats.t.isf(stats.t.sf(self.reach, own_df), other_df))
        ) * se
        low = -np.inf if self.side < 0 else max(estimate - half, -self.furthest)
        high = np.inf if self.side > 0 else min(estimate + half, self.furthest)
        return low, high

    @property
    def detectable(self) -> float:
        """The smallest difference that 80% of studies with this standard error would find.

        NaN where nothing varies or degrees of freedom are too few to tell, infinite where no possible difference is large enough.
        """
        if self.is_constant or self.has_few_df:
            return float("nan")
        spread = stats.norm if self.df is None else stats.t(self.df)
        smallest = (self.reach + float(spread.ppf(0.8))) * self.se
        return smallest if smallest <= self.furthest else float("inf")

    def smallest_bound(self, alpha: float, tests: int) -> float:
        """Return the smallest bound within which two one-sided tests, corrected for so many differences, show equivalence.

        NaN if nothing varies; infinite if the bound would include every possible difference.
        """
        if self.is_constant:
            return float("nan")
        if self.equivalence is not None:
            smallest = max(-self.equivalence.low, self.equivalence.high)
        else:
            spread = stats.norm if self.df is None else stats.t(self.df)
            smallest = abs(self.estimate) + float(spread.isf(alpha / tests)) * self.se
        return smallest if smallest < self.furthest else float("inf")

    @property
    def is_cut(self) -> bool:
        """Whether its two-sided interval ends at the largest possible difference."""
        return self.estimable and not self.side and max(-self.low, self.high) >= self.furthest

    @property
    def is_constant(self) -> bool:
        """Whether the difference is the same for every reader and item, so that it has no interval."""
        return self.estimable and without_width(self.low, self.high)

    @property
    def has_few_df(self) -> bool:
        """Whether its degrees of freedom are so few that the size of its standard error is hardly known."""
        return self.df is not None and self.df < FEWEST_DF

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
    def reverses(self) -> bool:
        """Whether it is an interaction that is certain in percentage points and points the other way in log odds."""
        return bool(self.orders > 1 and self.excludes_zero and self.log_odds * self.estimate < 0)

    @property
    def orders(self) -> int:
        """Number of nested differences: 1; 2 for a two-way interaction (or between two readers); 3 for both."""
        return 1 + self.interaction + self.between


def as_percent(log_ratio: float) -> float:
    """Turn a difference of logs into percent; the open end of a directional test's interval stays open."""
    return log_ratio if np.isinf(log_ratio) else 100.0 * (float(np.exp(log_ratio)) - 1.0)


def estimated_of(
    analyses: Iterable[Analysis], measure: str, group: str
) -> dict[tuple[str, str], Contrast | Coefficient]:
    """Return the differences of one reader in all trials, by their two levels and turned round: tests, then log times of models."""
    matching = [
        analysis
        for analysis in analyses
        if analysis.plan.measure.name == measure and not analysis.plan.subset
    ]
    tested = (
        contrast
        for analysis in matching
        for contrast in analysis.contrasts
        if contrast.groups == (group,) and not contrast.at
    )
    estimates: dict[tuple[str, str], Contrast | Coefficient] = {}
    for contrast in tested:
        if contrast.estimable:
            estimates.setdefault((contrast.first, contrast.second), contrast)
    for analysis in matching:
        plan = analysis.plan
        is_treatment = plan.formula is None and set(plan.codings.values()) == {"treatment"}
        if plan.measure.logged and is_treatment and analysis.groups[:1] == (group,):
            for effect in analysis.effects:
                level = effect.term.removeprefix(plan.factor)
                if (
                    effect.has_interval
                    and f"{plan.factor}{level}" == effect.term
                    and level in analysis.levels
                ):
                    estimates.setdefault((level, analysis.levels[0]), effect)
    turned = {
        (second, first): replace(
            estimate, estimate=-estimate.estimate, low=-estimate.high, high=-estimate.low
        )
        for (first, second), estimate in estimates.items()
    }
    return turned | estimates


@dataclass(frozen=True)
class Analysis:
    """A plan that was carried out: its model, contrasts, and every note on them."""

    plan: Plan
    model: FittedModelResult | None  # None where nothing could be fitted; ``remarks`` then say why
    groups: tuple[str, ...]  # of shares every reader that has answers, otherwise what is in the model
    levels: tuple[str, ...]
    contrasts: tuple[Contrast, ...]
    remarks: tuple[str, ...]  # what was left out, reduced or could not be done, in sentences
    rows: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False, repr=False)
    companion: Analysis | None = field(default=None, compare=False, repr=False)  # people's logistic model

    @property
    def of_model(self) -> Analysis:
        """The analysis whose readers, levels and rows are those of the fitted model."""
        return self if self.companion is None else self.companion

    @property
    def identity(self) -> tuple[object, ...] | None:
        """What the mixed model of this analysis shares with those of others that are the same; None without one."""
        if self.model is None:
            return None
        return self.of_model.groups, self.model.formula, self.model.rows, self.model.loglik

    @property
    def effects(self) -> list[Coefficient]:
        """Fixed effects of its model; what is tested as a contrast, either way round, has the adjusted p and interval."""
        effects = [] if self.model is None else list(self.model.coefficients)
        for contrast in self.contrasts:
            weights = [(index, sign) for index, sign in enumerate(contrast.weights) if sign]
            if contrast.estimable and len(weights) == 1 and abs(weights[0][1]) == 1.0:
                ((index, sign),) = weights
                low, high = sorted((sign * contrast.low, sign * contrast.high))
                effects[index] = replace(effects[index], p=contrast.p_adjusted, low=low, high=high)
        return effects

    @property
    def only_value(self) -> float | None:
        """The value of all its answers; None if they differ, none is valid, nothing is estimated, or equivalence is shown."""
        if self.plan.measure.value not in self.rows or not is_valid(self.rows).any() or not self.estimable:
            return None
        values = self.rows[self.plan.measure.value].astype(float).unique()
        tests = [contrast.equivalence for contrast in self.contrasts]
        has_shown = any(test is not None and test.equivalent for test in tests)
        return None if has_shown or len(values) > 1 else float(values[0])

    def test_of(self, contrast: Contrast) -> tuple[object, ...]:
        """Identity of a test (contrast, readers, trials) with its result: two planned analyses may share a test."""
        plan = self.plan
        # sums over readers in another order differ in their last digits
        result = (
            contrast.label,
            contrast.groups,
            *(round(value, 9) for value in (contrast.estimate, contrast.low, contrast.high)),
        )
        return (plan.measure.name, plan.factor, plan.trials, plan.within, *result)

    def in_order(self, readers: Sequence[str]) -> Analysis:
        """Put the contrasts of each difference in this order of readers."""
        labels = list(dict.fromkeys(contrast.label for contrast in self.contrasts))
        rank = {name: index for index, name in enumerate(readers)}

        def place_of(contrast: Contrast) -> tuple[int, bool, list[int]]:
            return (
                labels.index(contrast.label),
                contrast.between,
                [rank.get(name, len(rank)) for name in contrast.groups],
            )

        return replace(self, contrasts=tuple(sorted(self.contrasts, key=place_of)))

    @property
    def estimable(self) -> list[Contrast]:
        """The differences whose numbers say something."""
        return [contrast for contrast in self.contrasts if contrast.estimable]

    @property
    def fit(self) -> Fit | None:
        """The fit behind its model, if there is one."""
        return None if self.model is None else self.model.source

    @property
    def has_results(self) -> bool:
        """Whether a model was fitted or a contrast estimated."""
        return self.model is not None or any(contrast.estimable for contrast in self.contrasts)


def each_test(analyses: Iterable[Analysis]) -> list[tuple[Analysis, list[Contrast]]]:
    """Return the differences that could be estimated, by analysis; one that several share once, if anywhere where it has a bound."""
    shared: dict[tuple[object, ...], list[Contrast]] = {}
    tested = [(analysis, analysis.estimable) for analysis in analyses]
    for analysis, contrasts in tested:
        for contrast in contrasts:
            shared.setdefault(analysis.test_of(contrast), []).append(contrast)
    kept_ids = {
        id(max(copies, key=lambda contrast: contrast.equivalence is not None)) for copies in shared.values()
    }
    selected = [
        (analysis, [contrast for contrast in contrasts if id(contrast) in kept_ids])
        for analysis, contrasts in tested
    ]
    return [(analysis, contrasts) for analysis, contrasts in selected if contrasts]
