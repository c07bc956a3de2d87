"""The form in which levels show the text of an item: capitals, and blanks between words. Models read this form too.

A form is given to the text as a level of another factor has changed it, so that forms can be crossed with scrambles and versions.
Only the text itself has a form, not its question, its prime or its options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from experiment.procedure.steps import FOILS, PARTS
from experiment.study import Study
from experiment.study.factors import CASE, SPACE
from stimuli.errors import UserError
from stimuli.item import Item
from stimuli.words import written_without_spaces

TEXTS = ("sentence", "word")
"""Fields that hold the text of an item; so does each field that is scrambled."""


def in_form(study: Study, items: Sequence[Item]) -> list[Item]:
    """Return items in the form of their conditions."""
    forms = {
        factor: {
            level: {name: str(sets[name]) for name in (CASE, SPACE) if name in sets}
            for level, sets in levels.items()
        }
        for factor, levels in study.crossing.steps.items()
    }
    made = []
    for item in items:
        form: dict[str, str] = {}
        for factor, levels in forms.items():
            form |= levels.get(item.condition.get(factor, ""), {})
        if SPACE in form:
            item = _spaced(item, form[SPACE])
        made.append(_cased(item, form[CASE]) if CASE in form else item)
    return made


def _fields(item: Item) -> list[str]:
    return [name for name in item.shown if name in TEXTS or name in item.intact]


def _cased(item: Item, case: str) -> Item:
    change = CASES[case]
    shown, intact = dict(item.shown), dict(item.intact)
    changes = list(item.changes)
    parts = {unit: dict(of_field) for unit, of_field in item.key.get(PARTS, {}).items()}
    for name in _fields(item):
        shown[name] = change(item.shown[name])
        if name in intact:
            intact[name] = change(item.intact[name])
        longer = 0
        for place, record in enumerate(changes):
            if record["field"] == name:
                start = record["start"]
                changes[place] = {
                    **record,
                    "shown": shown[name][start : start + len(record["shown"])],
                    "intact": intact[name][start - longer : start - longer + len(record["intact"])],
                }
                longer += len(record["shown"]) - len(record["intact"])
        for of_field in parts.values():
            if name in of_field:
                of_field[name] = _cut(shown[name], of_field[name])
    key = {**item.key, **({PARTS: parts} if parts else {})}
    if FOILS in key:
        key[FOILS] = [change(foil) for foil in key[FOILS]]
    return replace(item, shown=shown, intact=intact, changes=tuple(changes), key=key)


def _cut(text: str, parts: Sequence[str]) -> list[str]:
    """Cut a text into parts as long as those given; blanks between them are left out."""
    made, begin = [], 0
    for part in parts:
        begin += len(text[begin:]) - len(text[begin:].lstrip())
        made.append(text[begin : begin + len(part)])
        begin += len(part)
    return made


def _spaced(item: Item, space: str) -> Item:
    shown, intact, changes = dict(item.shown), dict(item.intact), list(item.changes)
    parts = {unit: dict(of_field) for unit, of_field in item.key.get(PARTS, {}).items()}
    for name in _fields(item):
        of_text = parts.get("chunk", {}).get(name, [])
        put = _blanks(item, of_text, name) if space == "words" else None  # None takes all blanks out
        if put is None:
            for of_field in parts.values():
                if name in of_field:
                    of_field[name] = ["".join(part.split()) for part in of_field[name]]
        for texts, field in ((shown, "shown"), (intact, "intact")):
            if name not in texts:
                continue
            old = texts[name]
            if put is None:
                places = [0, *accumulate(int(not sign.isspace()) for sign in old)]
                texts[name] = "".join(old.split())
            else:
                places = [place + sum(border <= place for border in put) for place in range(len(old) + 1)]
                texts[name] = "".join(f" {sign}" if place in put else sign for place, sign in enumerate(old))
            if field == "shown":
                changes = [
                    {**record, "start": places[record["start"]]} if record["field"] == name else record
                    for record in changes
                ]
    key = {**item.key, **({PARTS: parts} if parts else {})}
    return replace(item, shown=shown, intact=intact, changes=tuple(changes), key=key)


def _blanks(item: Item, parts: Sequence[str], name: str) -> list[int]:
    """Return the places of a text before which a blank is put: where its chunks begin, but the first, if there is none."""
    text = item.shown[name]
    if not written_without_spaces(text):
        return []
    if len(parts) < 2:
        raise UserError(
            f"item {item.item_id!r}: no ` / ` says where the words of {text!r} end",
            mend="Divide its words in your table: `我 / 读书`.",
        )
    places, begin = [], 0
    for part in parts:
        begin = text.index(part, begin)
        places.append(begin)
        begin += len(part)
    return [place for place in places[1:] if not text[place - 1].isspace()]


def _alternating(text: str) -> str:
    """Return a text in which capitals follow small letters, beginning with a small one in each word."""
    made, number = [], 0
    for sign in text:
        number = 0 if sign.isspace() else number
        made.append((_upper if number % 2 else _lower)(sign))
        number += sign.isalpha()
    return "".join(made)


def _title(text: str) -> str:
    """Return a text with a capital at the beginning of each word."""
    return "".join(
        _upper(sign) if place == 0 or text[place - 1].isspace() else sign for place, sign in enumerate(text)
    )


def _upper(sign: str) -> str:
    """Return the capital of a letter, if it is one letter (ẞ for ß)."""
    return "ẞ" if sign == "ß" else sign.upper() if len(sign.upper()) == 1 else sign


def _lower(sign: str) -> str:
    return sign.lower() if len(sign.lower()) == 1 else sign


CASES: Mapping[str, Callable[[str], str]] = {
    "upper": lambda text: "".join(map(_upper, text)),
    "lower": lambda text: "".join(map(_lower, text)),
    "alternating": _alternating,
    "title": _title,
}
"""Each keeps the number of signs."""
