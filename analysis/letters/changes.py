"""The changes to the letters of each word, read from the items: positions, kind of change and distance."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.measures.levels import WITHHELD
from stimuli.errors import UserError
from stimuli.scramble.alignment import changes_between
from stimuli.scramble.changes import described
from stimuli.words import clusters_of, find_words, nfc

IMPORTED = "imported"
"""The operation that provenance names where an item came with its answers from elsewhere."""


def changes_of_forms(intact: Mapping[str, str], shown: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """Derive the changed words of an item from its forms; None where words differ in number or order, or a text is withheld."""
    found: list[dict[str, Any]] = []
    for field in [field for field in intact if intact[field] and field in shown]:
        if not shown[field]:
            return None
        whole, changed = (nfc(text[field]).lower() for text in (intact, shown))
        words, forms = ([word.text for word in find_words(text)] for text in (whole, changed))
        if len(words) != len(forms) or (words != forms and Counter(words) == Counter(forms)):
            return None
        for change in changes_between(whole, changed, "any"):
            found.append(_told(field, change.word, change.intact, change.shown, change.permutation))
    return found


def _told(field: str, word: int, intact: str, shown: str, aligned: Sequence[int | None]) -> dict[str, Any]:
    before, after = clusters_of(intact), clusters_of(shown)
    permutation = _in_place(before, after) if len(before) == len(after) else None
    form = described(intact, shown, permutation or aligned, pieces=len(before))
    return {"field": field, "word": word, **form._asdict(), "permutation": list(form.permutation)}


def _in_place(before: Sequence[str], after: Sequence[str]) -> list[int | None] | None:
    """Keep letters in place where possible; None if letters both moved and are new, which an alignment resolves better."""
    stays = [one == other for one, other in zip(before, after, strict=True)]
    free: dict[str, list[int]] = {}
    for place, letter in enumerate(before):
        if not stays[place]:
            free.setdefault(letter, []).append(place)
    found: list[int | None] = list(range(len(after)))
    for place, letter in enumerate(after):
        if not stays[place]:
            left = free.get(letter)
            found[place] = left.pop(0) if left else None
    moved = sum(source is not None and source != place for place, source in enumerate(found))
    return None if moved and None in found else found


INTACT, MIXED = "intact", "mixed"
ZONES = ("initial", "internal", "final", "outer")
AGREED = ("place", "place_from_end", "distance")
NUMBERS = (*AGREED, "letters")
KINDS = ("transposition", "substitution", "shuffle", "other")


def letter_changes(items: pd.DataFrame, factors: Sequence[str]) -> pd.DataFrame:
    """Describe the changed letters of every item and condition."""
    if "changes" not in items and not {"shown", "intact"} <= set(items):
        raise UserError(
            "items.parquet: column 'changes' is missing, so nothing is known of letters",
            mend="Build the items with `wrods build`, or import them with their changes.",
        )
    rows: list[dict[str, Any]] = []
    names = [name for name in ("set", "item_id", *factors) if name in items]
    sources = [name for name in ("changes", "shown", "intact", "provenance") if name in items]
    for given in items[[*names, *sources]].to_dict("records"):
        said = {name: given.pop(name, None) for name in ("changes", "shown", "intact", "provenance")}
        changes, derived = _changes_of(said, str(given["item_id"]))
        if changes is None or any(change["unit"] != "letter" for change in changes):
            continue
        changed = [(change, told) for change in changes if (told := _of_word(change)) is not None]
        found = [told for _, told in changed]
        told = {name: _common([one[name] for one in found]) for name in ("zone", "kind")}
        many = {"changed_words": len(found)}
        means = {n: sum(one[n] for one in found) / len(found) if found else float("nan") for n in NUMBERS}
        agree = {f"same_{n}": len({one[n] for one in found}) < 2 for n in AGREED}
        key = {str(name): value for name, value in given.items()}
        forms = tuple((str(one.get("intact", "")), str(one.get("shown", ""))) for one, _ in changed)
        rows.append({**key, **many, **told, **means, **agree, "derived": derived, "forms": forms})
    same = [f"same_{name}" for name in AGREED]
    columns = [*names, "changed_words", "zone", "kind", *NUMBERS, *same, "derived", "forms"]
    return pd.DataFrame(rows, columns=columns)


def _changes_of(said: Mapping[str, Any], item: str) -> tuple[Sequence[Mapping[str, Any]] | None, bool]:
    """Return an item's changes, None where they cannot be known, and whether they were derived from its forms."""
    recorded = _read(said["changes"], item, "changes") or []
    provenance = _read(said["provenance"], item, "provenance") or {}
    if provenance.get("operation") == WITHHELD:
        return None, False
    if recorded or (said["changes"] is not None and provenance.get("operation") != IMPORTED):
        return list(recorded), False
    forms = [_read(said[side], item, side) for side in ("intact", "shown")]
    if not all(isinstance(form, Mapping) for form in forms):
        return ([], False) if said["changes"] is not None else (None, True)
    return changes_of_forms(*forms), True


def _read(text: Any, item: str, column: str) -> Any:
    if text is None or (isinstance(text, float) and pd.isna(text)):
        return None
    try:
        return json.loads(text)
    except (TypeError, json.JSONDecodeError) as error:
        raise UserError(
            f"items.parquet: column {column!r} of item {item!r} is not JSON", mend="Export them again."
        ) from error


def of_forms(intact: str, shown: str) -> dict[str, Any] | None:
    """Describe a word by its two forms, as :func:`letter_changes` does; None where no letter changed."""
    changes = changes_of_forms({"word": intact}, {"word": shown})
    return _of_word(changes[0]) if changes and len(changes) == 1 else None


def _of_word(change: Mapping[str, Any]) -> dict[str, Any] | None:
    """Describe one changed word; None where its letters are as they were (case aside)."""
    permutation = change["permutation"]
    if permutation is None:
        return None
    changed, letters = _places(change)
    if not changed:
        return None
    last = letters - 1
    first_in, last_in = changed[0] == 0, changed[-1] == last
    zone = "outer" if first_in and last_in else "initial" if first_in else "final" if last_in else "internal"
    edited = change["inserted"] or change["deleted"]
    moved, new = change["displaced"], change["substituted"]
    kind = "other"
    if not edited and bool(new) != bool(moved) and moved != 1:
        kind = "substitution" if new else "transposition" if moved == 2 else "shuffle"
    return {
        "zone": zone,
        "kind": kind,
        "place": changed[0] + 1,
        "place_from_end": last - changed[-1] + 1,
        "distance": changed[-1] - changed[0],
        "letters": letters,
    }


def _places(change: Mapping[str, Any]) -> tuple[list[int], int]:
    """Return the places of the letters that took part in a change, and the number of letters."""
    permutation, inserted, deleted = change["permutation"], change["inserted"], change["deleted"]
    stayed = [origin for origin in permutation if origin is not None]
    only_edited = not change["substituted"] and stayed == sorted(stayed)
    if deleted and not inserted and only_edited:
        letters = len(permutation) + deleted
        return sorted(set(range(letters)) - set(stayed)), letters
    if inserted and not deleted and only_edited:
        return [place for place, origin in enumerate(permutation) if origin is None], len(permutation)
    return [place for place, origin in enumerate(permutation) if origin != place], len(permutation)


def _common(values: Sequence[str]) -> str:
    if not values:
        return INTACT
    return values[0] if len(set(values)) == 1 else MIXED
