"""Tables of the chapter on other ways to prepare the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis import apa
from analysis.readers import marked
from analysis.report.apa_tables import ApaTable, Head, Origin

PER_TABLE = 3
"""Contrasts side by side in a table of universes."""
SCALES = {"log": "percent (log times)", "ms": "milliseconds", "points": "percentage points"}
PLACES = {"log": 1, "ms": 0, "points": 1}


def excludes_zero(rows: pd.DataFrame) -> pd.Series[bool]:
    """Mark the universes whose interval leaves 0 out; one without an interval does not."""
    return (rows["low"] > 0) | (rows["high"] < 0)


def same_conclusion(own: pd.DataFrame) -> pd.Series[bool]:
    """Mark the universes that conclude as the primary one does: the interval leaves 0 out on the same side, or holds it.

    Parameters
    ----------
    own : pandas.DataFrame
        Universes of one reader group and contrast. The primary one may be on another scale than the others.
    """
    side = excludes_zero(own) * ((own["estimate"] > 0).astype(int) - (own["estimate"] < 0).astype(int))
    primary = side[own["is_primary"]]
    return side == (primary.iloc[0] if len(primary) else 0)


def summary_table(found: pd.DataFrame, name: str, what: str, kinds: dict[str, str]) -> ApaTable:
    """Lay out how far each difference moves over the universes.

    Parameters
    ----------
    found : pandas.DataFrame
        From :func:`analysis.multiverse.time_multiverse` or :func:`analysis.multiverse.accuracy_multiverse`.
    name : str
        File name without ending.
    what : str
        The measure, in words.
    kinds : dict
        Reader kind of each group.
    """
    rows: list[tuple[str, ...]] = []
    for group, part in found.groupby("group", sort=False):
        rows.append(Head([marked(str(group), kinds.get(str(group), "model"))]))
        for contrast, both in part.groupby("contrast", sort=False):
            alike = same_conclusion(both)
            for scale, own in both.groupby("scale", sort=False):
                places = PLACES[str(scale)]
                primary = own[own["is_primary"]]
                value = joined(primary.iloc[0].to_dict(), places) if len(primary) else apa.MISSING
                rows.append(
                    (
                        f"{contrast}, {SCALES[str(scale)]}",
                        apa.count(len(own)),
                        value,
                        apa.number(own["estimate"].min(), places),
                        apa.number(own["estimate"].max(), places),
                        apa.count(int(excludes_zero(own).sum())),
                        apa.count(int(alike[own.index].sum())),
                    )
                )
    note = (
        "A universe is one set of choices. Differences of means over participants (items, for a model) with Student's 95% "
        "intervals. "
        "Alike: the interval leaves 0 out on the same side as that of the study's own choice, or holds it as that does. Universes "
        "are no tests of their own, and no p is given."
    )
    columns = (
        "Difference", "Universes", "The study's own [95% CI]", "Lowest", "Highest", "Without 0", "Alike",
    )  # fmt: skip
    title = f"Differences in {what} over all usual choices"
    return ApaTable(name, title, columns, tuple(rows), note, _origin(what))


def universes_tables(found: pd.DataFrame, name: str, what: str, kinds: dict[str, str]) -> list[ApaTable]:
    """Lay out every universe, three contrasts a table."""
    contrasts = list(dict.fromkeys(found["contrast"]))
    parts = [contrasts[at : at + PER_TABLE] for at in range(0, len(contrasts), PER_TABLE)]
    return [
        _universes(found, f"{name}_{place}" if len(parts) > 1 else name, what, part, kinds)
        for place, part in enumerate(parts, 1)
    ]


def _universes(
    found: pd.DataFrame, name: str, what: str, contrasts: Sequence[str], kinds: dict[str, str]
) -> ApaTable:
    rows: list[tuple[str, ...]] = []
    several = {column: found[column].nunique() > 1 for column in ("sessions", "answers", "scale")}
    for (group, scale, answers, sessions), own in found.groupby(
        ["group", "scale", "answers", "sessions"], sort=False
    ):
        said = [marked(str(group), kinds.get(str(group), "model"))]
        said += [SCALES[str(scale)]] if several["scale"] else []
        said += [str(answers)] if several["answers"] else []
        said += [str(sessions)] if several["sessions"] else []
        rows.append(Head(["; ".join(said)]))
        for rule, universe in own.groupby("rule", sort=False):
            by = {str(one["contrast"]): one for one in universe.to_dict("records")}
            first = universe.iloc[0]
            star = " (the study's own)" if first["is_primary"] else ""
            cells = [f"{rule}{star}", apa.number(100 * first["removed"], 1)]
            for contrast in contrasts:
                one = by.get(contrast)
                cells.append(apa.MISSING if one is None else joined(one, PLACES[str(scale)]))
            rows.append(tuple(cells))
    gone = "missing answers" if "points" in set(found["scale"]) else "times that the rule took"
    note = f"Removed: {gone}, in percent. Cells are differences with Student's 95% intervals."
    columns = ("Rule", "Removed", *contrasts)
    title = f"Every universe of differences in {what}"
    return ApaTable(name, title, columns, tuple(rows), note, _origin(what))


def joined(one: Mapping[Any, Any], places: int) -> str:
    """Write an estimate with its interval."""
    return apa.joined(
        apa.number(float(one["estimate"]), places),
        apa.interval(float(one["low"]), float(one["high"]), places),
    )


def _origin(what: str) -> Origin:
    times = () if what == "accuracy" else ("rt", "reading_time")
    asked = ("correct", "response_status", "excluded_reason", "flagged_reason")
    excluded = ("rt_excluded", "reading_time_excluded") if times else ()
    return Origin(
        columns=(*times, *excluded, *asked, "reader_group", "reader", "item_id"),
        where=(),
        rows="of these each universe chooses anew, as its choices in the table of universes say",
        computed="the planned model, or its means, of each universe's rows; by wrods alone",
    )
