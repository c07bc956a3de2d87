"""Parametric bootstrap: fit the model again to responses drawn from it, and see how its estimates scatter.

New random effects are drawn with every data set (lme4's ``bootMer`` with ``use.u = FALSE``). Refits that fail are
counted and reported, never replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from stimuli.errors import UserError, unknown_name

from .inference import check_level
from .parameters import parameters_of
from .refits import Estimates, Plan, Statistic, refits
from .result import Fit

Array = NDArray[np.float64]

KINDS = ("percentile", "basic", "normal")
FEWEST = 20
"""Refits without which no interval is given."""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Estimates from data sets drawn from a fitted model.

    Attributes
    ----------
    names : tuple of str, length q
        What was estimated.
    estimate : ndarray, shape (q,)
        From the data.
    replicates : ndarray, shape (r, q)
        From the data sets drawn, failed refits left out.
    failed, unconverged, singular : int
        Refits that could not be done; refits kept although they did not converge, or were singular.
    seed : int or str
        The draws'.
    """

    names: tuple[str, ...]
    estimate: Array
    replicates: Array
    failed: int
    unconverged: int
    singular: int
    seed: int | str

    @property
    def se(self) -> Array:
        """Standard deviation over the replicates, shape (q,)."""
        return np.asarray(np.nanstd(self.replicates, axis=0, ddof=1))

    @property
    def bias(self) -> Array:
        """Mean of the replicates less the estimate, shape (q,)."""
        return np.asarray(np.nanmean(self.replicates, axis=0) - self.estimate)

    def intervals(self, level: float = 0.95, kind: str = "percentile") -> pd.DataFrame:
        """Compute bootstrap intervals.

        Parameters
        ----------
        level : float
            Coverage.
        kind : {'percentile', 'basic', 'normal'}
            Quantiles of the replicates; those mirrored at the estimate; or estimate less bias plus or minus z standard
            errors (Davison and Hinkley 1997, chapter 5).

        Returns
        -------
        DataFrame, shape (q, 6)
            parameter, estimate, se, bias, ci_low, ci_high.

        Raises
        ------
        UserError
            For another kind, or too few refits.
        """
        check_level(level)
        if kind not in KINDS:
            raise unknown_name("kind of bootstrap interval", kind, KINDS)
        if len(self.replicates) < FEWEST:
            raise UserError(
                f"{len(self.replicates)} refits are too few for intervals; {FEWEST} is the least, 1000 is usual"
            )
        tail = (1.0 - level) / 2.0
        low, high = np.nanquantile(self.replicates, [tail, 1.0 - tail], axis=0)
        if kind == "basic":
            low, high = 2.0 * self.estimate - high, 2.0 * self.estimate - low
        elif kind == "normal":
            middle, half = self.estimate - self.bias, stats.norm.isf(tail) * self.se
            low, high = middle - half, middle + half
        table = pd.DataFrame(
            {
                "parameter": list(self.names),
                "estimate": self.estimate,
                "se": self.se,
                "bias": self.bias,
                "ci_low": low,
                "ci_high": high,
            }
        )
        table.attrs = {"method": f"bootstrap, {kind}", "level": level, "replicates": len(self.replicates)}
        return table

    def sentence(self) -> str:
        """Say how many refits there were and what became of them."""
        said = f"{len(self.replicates)} refits to responses drawn from the model (seed {self.seed})"
        parts = [
            f"{count} {what}"
            for count, what in (
                (self.failed, "failed and are left out"),
                (self.unconverged, "did not converge"),
                (self.singular, "were singular"),
            )
            if count
        ]
        return "; ".join([said, *parts])


def bootstrap(
    fit: Fit,
    replicates: int = 1000,
    *,
    seed: int | str = 0,
    statistic: Statistic | None = None,
    names: Sequence[str] | None = None,
    processes: int = 1,
    keep: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Bootstrap:
    """Bootstrap a fitted model parametrically.

    Parameters
    ----------
    fit : Fit
        The model.
    replicates : int
        Data sets to draw.
    seed : int or str
        Another one gives other draws. Replicate k is the same however many there are, in however many processes.
    statistic : callable, optional
        Fit -> numbers; default all parameters as ``profile_intervals`` names them.
    names : sequence of str, optional
        Names of the statistic's numbers.
    processes : int
        Refits at work at once, each in an interpreter of its own with one thread. A script that asks for several has its
        work under ``if __name__ == "__main__":``.
    keep : str or Path, optional
        A file that keeps refits as they are made: after an interruption the same call goes on, and a call for more
        replicates adds to them.
    progress : callable, optional
        Told (refits done, refits in all).

    Returns
    -------
    Bootstrap

    Raises
    ------
    UserError
        If no data set can be drawn, every refit fails, a statistic cannot be sent to other processes, or ``keep`` holds
        something else.
    """
    if replicates < 1:
        raise UserError(
            f"replicates is {replicates}; at least one data set must be drawn", mend="1000 are usual."
        )
    if processes < 1:
        raise UserError(f"processes is {processes}; at least one must work", mend="Give 1 or more.")
    if statistic is None:
        parameters = tuple(parameters_of(fit))
        names, statistic = [p.name for p in parameters], Estimates(parameters)
    estimate = np.array(statistic(fit), dtype=float)
    if names is not None and len(names) != len(estimate):
        raise UserError(
            f"{len(names)} names are given; the statistic has {len(estimate)} numbers", mend="Name each once."
        )
    plan = Plan(fit, statistic, seed)
    made = refits(
        plan,
        replicates,
        processes=processes,
        keep=None if keep is None else Path(keep),
        progress=progress,
    )
    fitted = [r for r in made if r.values is not None]
    if not fitted:
        raise UserError(
            f"none of {replicates} refits could be done",
            mend="Look at the warnings of the fit; a simpler model may have an answer.",
            exit_code=1,
        )
    labels = tuple(names) if names is not None else tuple(f"t{i + 1}" for i in range(len(estimate)))
    return Bootstrap(
        labels,
        estimate,
        np.array([r.values for r in fitted]),
        len(made) - len(fitted),
        sum(not r.converged for r in fitted),
        sum(r.singular for r in fitted),
        seed,
    )
