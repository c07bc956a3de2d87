"""What a change of letters costs by where it is, by its kind and by its distance, for people and each model.

A cost is the difference from the intact form on the scale of :func:`analysis.fidelity.items.item_values`: shares of right
answers lost, log ratios of times and tokens, bits of surprisal. Costs are never divided by a spread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.costs.crossed import Profile, crossed_profile, paired_profile
from analysis.fidelity.items import item_values
from analysis.letters.changes import INTACT, letter_changes
from analysis.measures.resampling import RESAMPLES, interval
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.tables import Tables, item_names
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

BY = ("zone", "kind", "place", "place_from_end", "distance")
LOWER_IS_WORSE = ("correct", "margin")


def changed_trials(tables: Tables, measure: str) -> pd.DataFrame:
    """Return the values of a measure, one row a trial, with what was done to the letters of its item.

    Raises
    ------
    UserError
        As :func:`~analysis.letters.changes.letter_changes`; for a study without factors or an unknown measure.
    """
    factors = list(tables.factors)
    if not factors:
        raise UserError("the study has no factor", mend="Compare conditions that change letters differently.")
    changes = letter_changes(tables.items, factors)
    values = item_values(tables.trials, factors[0], measure)
    told = tables.trials.loc[values.index, ["set", "item_id", *factors, "reader", "session_id"]]
    rows = values.drop(columns=factors[0]).join(told)
    known = [n for n in ("set", "item_id", *factors) if n in changes and changes[n].notna().any()]
    changes = changes.drop_duplicates(known)[
        [*known, *(n for n in changes if n not in (*factors, "set", "item_id"))]
    ]
    rows = rows.merge(changes, on=known, how="inner")
    rows["item"] = item_names(rows)
    rows["reader"] = rows["reader"].where(rows["reader_kind"].isin(PARTICIPANT_KINDS), rows["reader_group"])
    return rows


def letter_costs(
    tables: Tables, by: str | Sequence[str], measure: str = "correct", *, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Return costs by what was done to the letters.

    Parameters
    ----------
    tables : Tables
    by : str or sequence of str
        One or several of :data:`BY`: ``zone`` (initial, internal, final, outer), ``place`` (position by position), ``kind``, …; of
        several each combination is a level.
    measure : str
        As :func:`analysis.fidelity.items.item_values`.
    resamples : int

    Returns
    -------
    pandas.DataFrame
        A row per reader group and level: ``reader_group, reader_kind, level, cost, low, high`` (95% bootstrap over participants and
        items, or items), ``participants, items, resampled``; ``items`` counts those of the group.

    Raises
    ------
    UserError
        As :func:`changed_trials`; for another ``by``; where no reader has both an intact and a changed item.
    """
    found = []
    for group, kind, profile in _profiles(tables, by, measure, resamples):
        for place, level in enumerate(profile.levels):
            ends = profile.interval(place)
            found.append(
                {
                    "reader_group": group,
                    "reader_kind": kind,
                    "level": level,
                    "cost": float(profile.estimate[place]),
                    "low": ends.low,
                    "high": ends.high,
                    "participants": profile.participants,
                    "items": profile.items,
                    "resampled": profile.resampled,
                }
            )
    return pd.DataFrame(found)


def letter_contrast(
    tables: Tables,
    first: str,
    second: str,
    by: str | Sequence[str] = "kind",
    measure: str = "correct",
    *,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Return how much more one kind of change costs than another, such as transposition minus substitution.

    Parameters
    ----------
    tables, by, measure, resamples
        As :func:`letter_costs`.
    first, second : str
        Levels, as there.

    Returns
    -------
    pandas.DataFrame
        A row per reader group that has both: ``reader_group, reader_kind, contrast, difference, low, high`` (paired within
        resamples), ``p`` (twice the share of resamples on the other side of 0).

    Raises
    ------
    UserError
        As :func:`letter_costs`, and where no group has both levels.
    """
    found, seen = [], set()
    for group, kind, profile in _profiles(tables, by, measure, resamples):
        seen |= set(profile.levels)
        if not {first, second} <= set(profile.levels):
            continue
        at = [profile.levels.index(level) for level in (first, second)]
        draws = profile.draws[:, at[0]] - profile.draws[:, at[1]]
        ends, defined = interval(draws), draws[np.isfinite(draws)]
        p = float("nan")
        if len(defined):
            p = min(1.0, 2 * max(min((defined >= 0).mean(), (defined <= 0).mean()), 1 / len(defined)))
        found.append(
            {
                "reader_group": group,
                "reader_kind": kind,
                "contrast": f"{first} − {second}",
                "difference": float(profile.estimate[at[0]] - profile.estimate[at[1]]),
                "low": ends.low,
                "high": ends.high,
                "p": p,
            }
        )
    if not found:
        wrong = first if first not in seen else second
        raise unknown_name("level of changed letters:", wrong, seen)
    return pd.DataFrame(found)


def _profiles(
    tables: Tables, by: str | Sequence[str], measure: str, resamples: int
) -> list[tuple[str, str, Profile]]:
    names = [by] if isinstance(by, str) else list(by)
    for name in names:
        if name not in BY:
            raise unknown_name("letters by:", name, BY)
    rows = changed_trials(tables, measure)
    if measure in LOWER_IS_WORSE:
        rows["value"] = -rows["value"]
    intact = rows["zone"] == INTACT
    told = [rows[name].map(lambda v: v if isinstance(v, str) else f"{v:g}") for name in names]
    rows["level"] = told[0]
    for other in told[1:]:
        rows["level"] = rows["level"] + " / " + other
    rows.loc[intact, "level"] = INTACT
    study, found = str(tables.dictionary["study"]), []
    for group in group_order(rows):
        own = rows[rows["reader_group"] == group]
        levels = sorted(set(own["level"]) - {INTACT}, key=_natural)
        if not levels or INTACT not in set(own["level"]):
            continue
        kind = str(own["reader_kind"].iloc[0])
        make = crossed_profile if kind in PARTICIPANT_KINDS else paired_profile
        seed = stable_seed(study, "letters", measure, *names, group)
        try:
            found.append((group, kind, make(own, "level", (INTACT, *levels), seed, resamples)))
        except UserError:  # an item of a model has no intact form beside it
            continue
    if not found:
        raise UserError(
            "no reader met both intact and changed items",
            mend="Give the design a level `none` to compare with.",
        )
    return found


def _natural(level: str) -> tuple[int, float, str]:
    try:
        return (0, float(level), "")
    except ValueError:
        return (1, 0.0, level)
