"""Named regions of the texts that are read: marked as ``[critical: spat up]``, or so many words after or before a marked one.

Marks are taken out of each row before anything else reads its text, after the versions of an item are chosen. Words are counted
between blanks, and chunks in texts that are read by chunk, so that a region has the same ones in every form of a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiment.building.reading import chunk_spans, fields_by, reading_steps
from experiment.building.versions import FILLER, ITEM, ROLE, Row
from experiment.procedure.steps import PARTS
from experiment.study import Study
from experiment.study.study import CountedRegion
from stimuli.audit.findings import counted
from stimuli.errors import UserError, together, unknown_name
from stimuli.item import Item

REGIONS = "regions"
"""The regions of an item in its key: by field and name the first word (or chunk) and the one after the last, from 0."""
OF_ROW = "[regions]"
"""The regions of a row, which no column of a table can be named."""
NAMED = 5
"""Items that a message names."""
_MARK = re.compile(r"\[\[|\]\]|\[([A-Za-z]\w*):\s?|\]")
_WORD = re.compile(r"\S+")
Spans = dict[str, tuple[int, int]]
Places = Mapping[str, CountedRegion | None]


def without_region_marks(
    study: Study,
    rows: Sequence[Mapping[str, Any]],
    lines: Sequence[int],
    file: str,
    *,
    is_practice: bool = False,
) -> list[Row]:
    """Return rows without marks, each with its regions under :data:`OF_ROW`; unchanged without ``materials.regions``.

    The texts of test items need every marked region.
    """
    places = study.regions
    if not places:
        return [dict(row) for row in rows]
    shown = [read["show"] for _, _, read in reading_steps(study)]
    fields = list(
        dict.fromkeys(name for names in shown for name in ([names] if isinstance(names, str) else names))
    )
    in_chunks = fields_by(study, "chunk")
    faults: dict[tuple[int, str], UserError] = {}
    bare = []
    for row, line in zip(rows, lines, strict=True):
        needs_all = not is_practice and str(row.get(ROLE) or "").strip().lower() != FILLER
        try:
            bare.append(_without_marks(row, places, fields, in_chunks, needs_all=needs_all))
        except UserError as fault:
            # versions of a row often share what is wrong with it
            kind = line, fault.message.partition(" in '")[0]
            faults.setdefault(kind, UserError(f"{file}, line {line}: {fault.message}", mend=fault.mend))
    if faults:
        raise together(list(faults.values()))
    return bare


def _without_marks(
    row: Mapping[str, Any],
    places: Places,
    fields: Sequence[str],
    in_chunks: Sequence[str],
    *,
    needs_all: bool,
) -> Row:
    bare = dict(row)
    by_field: dict[str, Spans] = {}
    for column, cell in row.items():
        if not isinstance(cell, str) or column == ITEM:
            continue
        bare[column], marked = _read_marks(cell, places)
        if column in fields and marked:
            units = chunk_spans(bare[column]) if column in in_chunks else _word_spans(bare[column])
            spans = {name: _units_of(span, units) for name, span in marked.items()}
            _place_others(spans, places, len(units))
            by_field[column] = spans
    found = [name for spans in by_field.values() for name in spans]
    for name, place in places.items():
        if place is None and found.count(name) > 1:
            raise UserError(f"{name} is marked in several texts", mend="Mark it in one of them.")
        if place is None and needs_all and name not in found:
            raise UserError(
                f"{name} is not marked in {str(row.get(fields[0]) or '')!r}; every version of every item needs it",
                mend=f"Mark its words, as in [{name}: these words].",
            )
    return {**bare, OF_ROW: by_field}


def _word_spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _WORD.finditer(text)]


def _units_of(span: tuple[int, int], units: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the first word or chunk in a span of characters, and the one after the last."""
    inside = [number for number, (start, end) in enumerate(units) if start < span[1] and end > span[0]]
    return inside[0], inside[-1] + 1


def _read_marks(text: str, places: Places) -> tuple[str, Spans]:
    """Return a text without marks, and where each marked region begins and ends, without blanks around it."""
    plain, position = "", 0
    opened: tuple[str, int] | None = None
    spans: dict[str, tuple[int, int]] = {}
    for match in _MARK.finditer(text):
        plain += text[position : match.start()]
        position = match.end()
        sign = match.group(0)
        if sign in ("[[", "]]"):
            plain += sign[0]
        elif match.group(1) is not None:
            if opened is not None:
                raise UserError(
                    f"{text!r} marks {match.group(1)} inside {opened[0]}", mend="Close one mark first."
                )
            opened = _markable(match.group(1), places), len(plain)
        elif opened is None:
            plain += sign
        else:
            name, start = opened
            if name in spans:
                raise UserError(f"{text!r} marks {name} twice", mend="Mark the words of a region together.")
            words = plain[start:]
            if not words.strip():
                raise UserError(f"{name} marks no word in {text!r}", mend="Put its words into the mark.")
            first = start + len(words) - len(words.lstrip())
            spans[name], opened = (first, first + len(words.strip())), None
    plain += text[position:]
    if opened is not None:
        raise UserError(f"the mark of {opened[0]} is not closed in {text!r}", mend="Add the closing ].")
    return plain, spans


def _markable(name: str, places: Places) -> str:
    if name not in places:
        fault = unknown_name("region marked in the text:", name, places)
        raise UserError(fault.message, mend=f"{fault.mend or ''} Write [[ for a bracket of the text.".strip())
    if places[name] is not None:
        raise UserError(
            f"{name} is marked in the text, and materials.regions counts it from another region",
            mend="Take the mark out, or write marked in materials.regions.",
        )
    return name


def _place_others(spans: Spans, places: Places, n_units: int) -> None:
    """Add the regions that are counted from others, where the text has all of their words or chunks."""
    for name, place in places.items():  # a region comes after the one that it is counted from
        if place is None or place.other not in spans:
            continue
        first, end = spans[place.other]
        span = (end, end + place.words) if place.side == "after" else (first - place.words, first)
        if span[0] >= 0 and span[1] <= n_units:
            spans[name] = span


def with_regions(items: Sequence[Item], rows: Sequence[Mapping[str, Any]]) -> tuple[Item, ...]:
    """Return items with the regions of their rows in their keys."""
    of_item = {str(row.get(ITEM)): row[OF_ROW] for row in rows if OF_ROW in row}
    return tuple(_with_regions(item, of_item.get(item.item_id)) for item in items)


def _with_regions(item: Item, by_field: Mapping[str, Spans] | None) -> Item:
    if not by_field:
        return item
    for field in () if PARTS in item.key else by_field:
        intact, shown = item.intact.get(field, ""), item.shown.get(field, "")
        if intact and shown and len(intact.split()) != len(shown.split()):
            raise UserError(
                f"item {item.item_id!r} has {len(intact.split())} words between blanks and {len(shown.split())} once scrambled, "
                "so that its regions have no place",
                mend="Use a scramble that leaves the blanks, or take regions out of the materials.",
            )
    regions = {field: {name: list(span) for name, span in spans.items()} for field, spans in by_field.items()}
    return replace(item, key={**item.key, REGIONS: regions})


def regions_in_words(study: Study, items: Sequence[Item]) -> list[str]:
    """Describe in how many items each region is, and with how many words."""
    by_item: dict[str, list[Spans]] = {}
    for item in items:
        if item.role == "test":
            spans = {
                name: span for fields in item.key.get(REGIONS, {}).values() for name, span in fields.items()
            }
            by_item.setdefault(item.item_id, []).append(spans)
    parts, notes = [], []
    for name in study.regions:
        complete = [
            item_id for item_id, versions in by_item.items() if all(name in spans for spans in versions)
        ]
        sizes = {
            spans[name][1] - spans[name][0]
            for versions in by_item.values()
            for spans in versions
            if name in spans
        }
        words = " to ".join(map(str, sorted({min(sizes), max(sizes)}))) if sizes else ""
        words = f", {words} word{'s' * (max(sizes) > 1)}" if sizes else ""
        parts.append(f"{name} {len(complete)} of {len(by_item)} items{words}")
        missing = [item_id for item_id in by_item if item_id not in complete]
        if missing:
            named = ", ".join(missing[:NAMED]) + (
                f" and {len(missing) - NAMED} more" if missing[NAMED:] else ""
            )
            notes.append(f"  note: {name} is beyond the text in {counted(len(missing), 'item')}: {named}")
    return [f"  regions: {'; '.join(parts)}", *notes] if parts else []
