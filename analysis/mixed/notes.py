"""Notes of a fit: a code with its values, and the sentence made from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SENTENCES = {
    "rows_dropped": "{dropped} of {rows} rows dropped for missing values: {columns}",
    "levels_absent": "levels of {factor} that do not occur in the data are left out: {levels}",
    "columns_dropped": "fixed-effect model matrix is rank deficient so dropping {counted}: {columns}",
    "few_levels": "{group} has {count} levels; a variance estimated from {counted} levels is very imprecise, and so are tests that "
    "depend on it; make {group} a fixed effect",
    "seen_once": "{group}: {once} of {of} {levels} seen once ({names}); such levels say next to nothing of a variance and nothing of "
    "slopes",
    "columns_repeated": "({term}): {columns} can be written by the other columns of this term, so its variances and correlations "
    "cannot be told apart; leave it out",
    "term_within": "({term}) is over-parameterised: ({other}) already allows all of its variation, so their variances cannot be told "
    "apart; || does not separate the levels of a factor. Write ({other}) alone, or separate the levels by dummy() columns",
    "term_twice": "({other}) and ({term}) are one random effect written twice; only the sum of their variances can be estimated",
    "singular_variance": "boundary (singular) fit: the variance of {columns} by {group} is near zero; the model without this term "
    "fits as well",
    "singular_covariance": "boundary (singular) fit: the covariance of {columns} by {group} has lost a dimension ({lost}); consider "
    "the term without correlations (||) or with fewer slopes",
    "not_converged": "failed to converge: {why}",
    "penalised": "penalised fit: {penalty}; the log-likelihood is that of the data alone, and likelihood-ratio tests and information "
    "criteria do not hold for it",
    "glmer_dispersion": "dispersion as in lme4's glmer, whose criterion is not a likelihood: it leaves phi out of the penalty on the "
    "random effects, so that variances and standard errors depend on the unit of the response; prefer dispersion = 'ml'",
    "phi": "phi is estimated by maximum likelihood, as in glmmTMB; {elsewhere}",
    "simpler_counts": "{parameter} is {value:.2g}: the counts vary no more than {family} counts; the {lower} family fits as well",
    "below_guessing": "the mean response {mean:.3g} does not exceed the guess rate {guess:g}; the link can hardly place it, and its "
    "coefficients say little",
    "shift_at_end": "the shift ndt, {shift:.4g}, is at the end of its range, {end}; it has no standard error",
    "simpler_times": "sigma is {sigma:.4g} and beta {beta:.4g}: the times are as good as {which}",
    "uniform_cell": "possible separation: every response with {cell} is {value} (n = {n:g})",
    "variance_runs_away": "possible separation: the standard deviation of {sds} by {group} grows without limit",
    "large_se": "possible separation: the standard error of {terms} is so large that the estimate is uninformative",
    "approximate": "standard errors are approximate: the Hessian is not positive definite",
    "sketch": "a sketch: standard errors are of the average information; completed() makes those of second derivatives",
    "odds_ratios_without_meaning": "a random effect has a standard deviation of {sd:.0f} log odds: answers at most levels are all "
    "correct or all incorrect, so the odds ratios of this model are not interpretable; see the means instead",
    "odds_ratios_conditional": "a random effect has a standard deviation above {sd:g} log odds: odds ratios describe an average item "
    "and reader, and can differ from the differences in percentage points, even in sign; see the percentage points instead",
}
"""The words of each code, with its values by name."""


class Note(str):
    """A note in words; ``code`` and ``values`` are what they are made from."""

    code: str
    values: Mapping[str, Any]

    def __new__(cls, code: str, **values: Any) -> Note:
        """Word the note."""
        note = super().__new__(cls, SENTENCES[code].format_map({k: _joined(v) for k, v in values.items()}))
        note.code, note.values = code, values
        return note

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.code,), dict(self.values)


def _joined(value: Any) -> Any:
    """Return a listing of several names, with a number each in brackets where there is one."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} ({number:.3g})" for name, number in value.items())
    return ", ".join(value) if isinstance(value, tuple) else value


APPROXIMATE = Note("approximate")
"""What a fit notes where its Hessian gives no covariance of the fixed effects."""
