"""Which items and participants deviate most: the conditional modes of a model's random effects with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from scipy import stats

from analysis.mixed import Fit, random_modes

MOST_EFFECTS = 4000
"""Random effects of a model above which their conditional covariances take longer than a look at them is worth."""


def deviations(
    fit: Fit, groups: Sequence[str] = ("participant", "item"), *, most: int = MOST_EFFECTS
) -> pd.DataFrame:
    """List the conditional modes of a model's random effects, each term from lowest to highest.

    Parameters
    ----------
    fit : Fit
    groups : sequence of str
        Grouping factors to list, as far as the model has them.
    most : int
        A model with more random effects than this gives no row.

    Returns
    -------
    pandas.DataFrame
        A row per random effect: ``group, term, level`` (item or participant), ``mode, sd`` (conditional standard deviation,
        given the estimated variances), ``low, high`` (mode ± 1.96 sd), ``spread`` (the term's estimated standard deviation),
        ``place`` (0 for the lowest of its term). Units of the linear predictor. A term whose variance is 0 has no row,
        nor has a level of which no answer tells anything (a model, where participants alone have the term).
        Modes are drawn towards 0, the more so the fewer answers stand behind them (Bates, Mächler, Bolker & Walker, 2015,
        Journal of Statistical Software 67(1), section 5).
    """
    columns = ["group", "term", "level", "mode", "sd", "low", "high", "spread", "place"]
    many = sum(len(table) * table.shape[1] for table in fit.modes.values())
    if many > most or not set(groups) & set(fit.modes):
        return pd.DataFrame(columns=columns)
    found = random_modes(fit)
    spreads = {
        (one.group.split(".")[0], name): float(sd)
        for one in fit.variance
        for name, sd in zip(one.terms, one.sd, strict=True)
    }
    half = float(stats.norm.ppf(0.975))
    tables = []
    for (group, term), own in found[found["group"].isin(groups)].groupby(["group", "term"], sort=False):
        spread = spreads.get((str(group), str(term)), 0.0)
        if not spread > 1e-6:
            continue
        own = own[~((own["mode"].abs() < 1e-9 * spread) & (own["sd"] > (1 - 1e-6) * spread))]
        own = own.sort_values(["mode", "level"], kind="stable").reset_index(drop=True)
        tables.append(
            own.assign(
                low=own["mode"] - half * own["sd"],
                high=own["mode"] + half * own["sd"],
                spread=spread,
                place=range(len(own)),
            )
        )
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)
