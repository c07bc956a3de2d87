"""Whether robustness follows the number of parameters within a family of models.

Robustness is how little accuracy a model loses where text is scrambled: points lost against intact text, and retention, what is
left of the intact accuracy. Both are means over the changed levels, each level with the same weight. Within a family (models
trained alike in several sizes) they are regressed on the decadic logarithm of the number of parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.fidelity.items import item_values
from analysis.measures.levels import scrambled_levels
from analysis.measures.resampling import RESAMPLES, interval, resampled_means
from analysis.rankings.ranks import rank_correlation
from analysis.readers import group_order
from analysis.tables import Tables
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

Array = NDArray[np.float64]

LEAST_MEMBERS = 3
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMBT])")
_TIMES = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
MEASURES = ("lost", "retention")


@dataclass(frozen=True)
class Size:
    """What is known of a model's size."""

    family: str | None
    parameters: float  # nan where nobody said or counted it
    counted: bool  # whether the run counted them; else the study says so


def read_parameters(given: object) -> float:
    """Read ``1.4B``, ``350M`` or a whole number."""
    if isinstance(given, int | float) and not isinstance(given, bool) and given > 0:
        return float(given)
    found = _SIZE.fullmatch(str(given).strip())
    if found is None:
        raise UserError(
            f"{given!r} is no number of parameters", mend="Write it like: 350M, 1.4B, or 124439808."
        )
    return float(found[1]) * _TIMES[found[2]]


def sizes(readers: Mapping[str, Mapping[str, Any]]) -> dict[str, Size]:
    """Return family and size of every model among a dictionary's readers."""
    found = {}
    for name, spec in readers.items():
        if spec.get("kind") != "model":
            continue
        settings = spec.get("settings") or {}
        said, counted = settings.get("parameters"), spec.get("parameters")
        many = read_parameters(said if said is not None else counted) if said or counted else float("nan")
        family = settings.get("family")
        found[str(name)] = Size(None if family is None else str(family), many, said is None and bool(counted))
    return found


@dataclass(frozen=True, eq=False)
class Robustness:
    """What scrambling leaves of each model's accuracy, under the same resamples of items for all of them."""

    models: tuple[str, ...]
    intact: Array
    lost: Array  # shape (1 + resamples, models)
    retention: Array  # shape (1 + resamples, models)
    items: int


def robustness(tables: Tables, factor: str, *, resamples: int = RESAMPLES) -> Robustness:
    """Measure what scrambling costs each model, failures counted as wrong."""
    levels = [tables.levels_of(factor)[0], *scrambled_levels(tables, factor)]
    rows = item_values(tables.trials, factor, "correct")
    rows = rows[(rows["reader_kind"] == "model") & rows[factor].isin(levels)]
    typed = tables.trials.loc[rows.index, "trial_type"] == "recover"
    rows = rows if typed.all() else rows[~typed]
    means = rows.groupby(["item", "reader_group", factor], observed=True)["value"].mean().unstack([1, 2])
    changed = levels[1:]
    models = [
        group
        for group in group_order(rows)
        if (group, levels[0]) in means and any((group, level) in means for level in changed)
    ]
    if not models:
        raise UserError(
            f"no model has answers in {levels[0]!r} and another level of {factor}",
            mend="Run models on the intact level too.",
        )
    columns = pd.MultiIndex.from_product([models, levels])
    values = means.reindex(columns=columns).to_numpy(dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = np.nansum(values, axis=0) / np.isfinite(values).sum(axis=0)
    seed = stable_seed(str(tables.dictionary["study"]), "robustness", factor)
    draws = resampled_means(values, seed, resamples)
    cells = 100 * np.vstack([whole, draws]).reshape(1 + resamples, len(models), len(levels))
    intact, rest = cells[:, :, 0], cells[:, :, 1:]
    known = np.isfinite(rest)
    with np.errstate(invalid="ignore", divide="ignore"):
        left = np.where(known, rest, 0.0).sum(axis=2) / known.sum(axis=2)
        kept = np.where(intact > 0, 100 * left / intact, np.nan)
    return Robustness(tuple(models), intact, intact - left, kept, len(values))


def robustness_table(found: Robustness, known: Mapping[str, Size]) -> pd.DataFrame:
    """Lay out each model's robustness beside its family and size."""
    rows = []
    for place, model in enumerate(found.models):
        size = known.get(model, Size(None, float("nan"), False))
        row: dict[str, Any] = {
            "model": model,
            "family": size.family,
            "parameters": size.parameters,
            "counted": size.counted,
            "items": found.items,
        }
        for name in ("intact", *MEASURES):
            draws = getattr(found, name)[:, place]
            ends = interval(draws[1:])
            row |= {name: float(draws[0]), f"{name}_low": ends.low, f"{name}_high": ends.high}
        rows.append(row)
    return pd.DataFrame(rows)


def robustness_by_size(found: Robustness, known: Mapping[str, Size], study: str = "") -> pd.DataFrame:
    """Regress robustness on the size of models within each family of three or more sizes."""
    rows = []
    families = dict.fromkeys(size.family for size in known.values() if size.family is not None)
    for family in families:
        places = [
            place
            for place, model in enumerate(found.models)
            if model in known and known[model].family == family and np.isfinite(known[model].parameters)
        ]
        x = np.log10([known[found.models[place]].parameters for place in places])
        if len(places) < LEAST_MEMBERS or len(np.unique(x)) < LEAST_MEMBERS:
            continue
        for name in MEASURES:
            y = getattr(found, name)[:, places]
            slopes = _slopes(x, y)
            ends, spread = interval(slopes[1:]), _student(x, y[0], slopes[0])
            order = rank_correlation(x, y[0], stable_seed(study, "size", str(family), name))
            rows.append(
                {
                    "family": family,
                    "measure": name,
                    "models": len(places),
                    "slope": float(slopes[0]),
                    "items_low": ends.low,
                    "items_high": ends.high,
                    "low": slopes[0] - spread,
                    "high": slopes[0] + spread,
                    "tau": order.tau,
                    "rho": order.rho,
                    "p": order.p,
                    "smallest_p": order.smallest_p,
                    "exact": order.exact,
                }
            )
    return pd.DataFrame(rows)


def _slopes(x: Array, y: Array) -> Array:
    centred = x - x.mean()
    return np.asarray((y - y.mean(axis=1, keepdims=True)) @ centred / (centred @ centred))


def _student(x: Array, y: Array, slope: float) -> float:
    """Return half the width of the slope's interval over models."""
    df = len(x) - 2
    centred = x - x.mean()
    residual = y - y.mean() - slope * centred
    se = float(np.sqrt((residual @ residual) / df / (centred @ centred)))
    return float(stats.t(df).ppf(0.975)) * se
