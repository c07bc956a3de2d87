"""What was done to the letters of an item: where, how, and how far apart, read from its recorded changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from stimuli.errors import UserError

INTACT, MIXED = "intact", "mixed"
ZONES = ("initial", "internal", "final", "outer")
KINDS = ("transposition", "substitution", "shuffle", "other")


def letter_changes(items: pd.DataFrame, factors: Sequence[str]) -> pd.DataFrame:
    """Describe the changed letters of every item and condition.

    Parameters
    ----------
    items : pandas.DataFrame
        The items table, with ``changes`` as JSON.
    factors : sequence of str

    Returns
    -------
    pandas.DataFrame
        A row per item and condition whose letters changed or that is intact (words and sentences that moved whole are in
        none): ``set, item_id``, the factors; ``changed_words``; ``zone`` (``initial``: the first letter took part; ``final``:
        the last; ``outer``: both; ``internal``: neither; ``intact``; ``mixed`` where words of the item differ); ``kind``
        (``transposition``: two letters changed places; ``substitution``: letters replaced, none moved; ``shuffle``: more than
        two moved; ``other``; ``intact``; ``mixed``); and as means over the changed words, nan where there are none:
        ``place`` and ``place_from_end`` (of the first and of the last changed letter, from 1), ``distance`` (places between
        the first and the last changed letter), ``letters``.

    Raises
    ------
    UserError
        Where items hold no changes, or something that is none.
    """
    if "changes" not in items:
        raise UserError(
            "items.parquet: column 'changes' is missing, so nothing is known of letters",
            mend="Build the items with `wrods build`, or import them with their changes.",
        )
    rows: list[dict[str, Any]] = []
    names = [name for name in ("set", "item_id", *factors) if name in items]
    for given in items[[*names, "changes"]].to_dict("records"):
        changes = _read(given.pop("changes"), str(given["item_id"]))
        if any(change["unit"] != "letter" for change in changes):
            continue
        found = [one for one in map(_of_word, changes) if one is not None]
        told = {name: _common([one[name] for one in found]) for name in ("zone", "kind")}
        numbers = {
            name: sum(one[name] for one in found) / len(found) if found else float("nan")
            for name in ("place", "place_from_end", "distance", "letters")
        }
        key = {str(name): value for name, value in given.items()}
        rows.append({**key, "changed_words": len(found), **told, **numbers})
    columns = [*names, "changed_words", "zone", "kind", "place", "place_from_end", "distance", "letters"]
    return pd.DataFrame(rows, columns=columns)


def _read(text: Any, item: str) -> list[Mapping[str, Any]]:
    if text is None or (isinstance(text, float) and pd.isna(text)):
        return []
    try:
        found = json.loads(text)
    except (TypeError, json.JSONDecodeError) as error:
        raise UserError(
            f"items.parquet: the changes of item {item!r} are not JSON", mend="Export them again."
        ) from error
    return list(found or [])


def _of_word(change: Mapping[str, Any]) -> dict[str, Any] | None:
    """Describe one changed word; None where its letters are as they were (case aside)."""
    permutation = change["permutation"]
    if permutation is None:
        return None
    changed = [place for place, origin in enumerate(permutation) if origin != place]
    if not changed:
        return None
    last = len(permutation) - 1
    first_in, last_in = changed[0] == 0, changed[-1] == last
    zone = "outer" if first_in and last_in else "initial" if first_in else "final" if last_in else "internal"
    edited = change["inserted"] or change["deleted"]
    moved, new = change["displaced"], change["substituted"]
    kind = "other"
    if not edited and not new and moved == 2:
        kind = "transposition"
    elif not edited and new and not moved:
        kind = "substitution"
    elif not edited and not new and moved > 2:
        kind = "shuffle"
    return {
        "zone": zone,
        "kind": kind,
        "place": changed[0] + 1,
        "place_from_end": last - changed[-1] + 1,
        "distance": changed[-1] - changed[0],
        "letters": len(permutation),
    }


def _common(values: Sequence[str]) -> str:
    if not values:
        return INTACT
    return values[0] if len(set(values)) == 1 else MIXED
