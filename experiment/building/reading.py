"""Texts that are read part by part: words, chunks or sentences, the lines in which they stand, and the room that these need.

Chunks are divided by a slash between blanks in the user's table (in scripts without spaces, by any slash); a double slash is a
literal one. Marks are taken out before anything else reads a text. Chunks and sentences are those of the intact text, so that
all conditions of an item have the same; a change that crosses their borders is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import regex

from experiment.building.distractors import foils_of_words, is_made, listed_foils, remark
from experiment.lists import blocks_of, blocks_showing
from experiment.procedure.steps import (
    FOILS,
    LINE_LENGTH,
    PARTS,
    Screens,
    cells,
    part_times,
    reading_screens,
    shown_text,
    text_parts,
)
from experiment.study import Study
from experiment.study.factors import SPACE
from experiment.trials import FRAME_MS, frames_for
from stimuli.durations import milliseconds
from stimuli.errors import UserError, together
from stimuli.item import ChangeRecord, Item
from stimuli.recipes.sentences import BY_HAND
from stimuli.scramble.sentences import find_sentences
from stimuli.words import nfc, parse_stars, written_without_spaces

Row = Mapping[str, Any]
Borders = Mapping[str, Mapping[str, Sequence[int]]]
"""By item and field: the characters of the intact text before each border between chunks."""

_BORDER = "\ue001"
_SLASH = regex.compile(r"//|(?<!\S)/(?!\S)")
_ANY_SLASH = regex.compile(r"//|/")
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u3000-\u303f\uff00-\uff65]"
_TIGHT = regex.compile(rf"(?<={_UNSPACED}){_BORDER} | {_BORDER}(?={_UNSPACED})")


def reading_steps(study: Study) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """Yield number, place in the procedure and settings for each block's step that shows a text to read, at all levels."""
    for number, place in enumerate(blocks_of(study)):
        for step in study.get("procedure", place, "block", "trial"):
            if "read" in step:
                for read in study.steps_at_all_levels("read", step["read"]):
                    yield number, place, read


def maze_field(study: Study) -> str | None:
    """Return the field that mazes show; None without a maze."""
    return next((read["show"] for _, _, read in reading_steps(study) if read.get("as") == "maze"), None)


def fields_by(study: Study, unit: str) -> list[str]:
    """Return the fields that some step shows by a unit, such as ``chunk``, or that a level divides into it."""
    names: list[str] = []
    for _, _, read in reading_steps(study):
        if read.get("by") == unit:
            names += [read["show"]] if isinstance(read["show"], str) else read["show"]
    levels = (sets for factor in study.crossing.steps.values() for sets in factor.values())
    if unit == "chunk" and any(sets.get(SPACE) == "words" for sets in levels):
        names.append("sentence")
    return list(dict.fromkeys(names))


def without_marks(study: Study, rows: Sequence[Row], places: Mapping[str, str]) -> tuple[list[Row], Borders]:
    """Return rows without marks between chunks, and where the chunks end; ``places``: item → place of its row in its file.

    Only fields that a step shows by chunk have marks; in all others a slash is a slash. Texts made by hand may have the marks of
    the sentence, which then do not count.
    """
    fields = fields_by(study, "chunk")
    if not fields:
        return list(rows), {}
    by_hand = _columns_by_hand(study) if "sentence" in fields else []
    is_starred = study.get("materials", "scramble", "words") == "starred"
    made: list[Row] = []
    borders: dict[str, dict[str, list[int]]] = {}
    faults: list[UserError] = []
    for row in rows:
        item_id = str(row.get("item"))
        clean, of_row = dict(row), dict[str, list[int]]()
        for field in [*fields, *by_hand]:
            if not isinstance(row.get(field), str):
                continue
            try:
                marked = _marked(row[field])
                plain = parse_stars(marked).text if is_starred and field == "sentence" else nfc(marked)
            except UserError as fault:
                faults.append(UserError(f"{places.get(item_id, item_id)}: {fault.message}", mend=fault.mend))
                continue
            ends = [place for place, sign in enumerate(plain) if sign == _BORDER]
            of_row |= {field: [end - number for number, end in enumerate(ends)]} if field in fields else {}
            clean[field] = marked.replace(_BORDER, "")
        made.append(clean)
        borders[item_id] = of_row
    if faults:
        raise together(faults)
    return made, borders


def _columns_by_hand(study: Study) -> list[str]:
    """Return the columns that hold the sentences of levels made by hand."""
    factor, levels = study.crossing.factor, study.crossing.levels
    return [f"{factor}:{level}" for level, operation in levels.items() if operation == BY_HAND] + [
        str(operation["column"])
        for operation in levels.values()
        if isinstance(operation, Mapping) and set(operation) == {"column"}
    ]


def _marked(text: str) -> str:
    """Return a text with a border sign after each chunk but the last."""
    slash = _ANY_SLASH if written_without_spaces(text) else _SLASH
    chunks = slash.sub(lambda match: "/" if match.group() == "//" else _BORDER, text).split(_BORDER)
    if len(chunks) > 1 and not all(map(str.strip, chunks)):
        raise UserError(
            f"{text!r} has an empty chunk", mend="Write words before and after each ` / `, or // for a slash."
        )
    return str(_TIGHT.sub(_BORDER, f"{_BORDER} ".join(map(str.strip, chunks))))


def chunk_spans(text: str) -> list[tuple[int, int]]:
    """Return where the chunks of a text with marks begin and end."""
    slash = _ANY_SLASH if written_without_spaces(text) else _SLASH
    borders = [match.span() for match in slash.finditer(text) if match.group() != "//"]
    starts, ends = [0, *(end for _, end in borders)], [*(begin for begin, _ in borders), len(text)]
    return list(zip(starts, ends, strict=True))


def with_chunks(items: Sequence[Item], borders: Borders) -> list[Item]:
    """Return items with the chunks of their shown texts."""
    return _with_parts("chunk", [(item, borders.get(item.item_id, {})) for item in items])


def with_sentences(study: Study, items: Sequence[Item], language: str) -> list[Item]:
    """Return items with the sentences of their shown texts, in the fields that a step shows by sentence."""
    fields = fields_by(study, "sentence")
    borders: list[tuple[Item, Mapping[str, Sequence[int]]]] = []
    for item in items:
        texts = {name: item.intact.get(name, item.shown[name]) for name in fields if name in item.shown}
        ends = {
            name: [sentence.end for sentence in find_sentences(text, language)[:-1]]
            for name, text in texts.items()
        }
        borders.append((item, ends))
    return _with_parts("sentence", borders)


def with_foils(
    study: Study, items: Sequence[Item], rows: Sequence[Row], places: Mapping[str, str]
) -> list[Item]:
    """Return items with the foils of their words in a maze, from the column that the study names or the list that a model made."""
    column, field = study.get("materials", "distractors"), maze_field(study)
    if column is None or field is None:
        return list(items)
    listed = listed_foils(study) if is_made(study) else {}
    cells_of_items = {} if is_made(study) else {str(row.get("item")): row.get(column) for row in rows}
    made, faults = [], dict[str, UserError]()
    for item in items:
        words = item.intact.get(field, item.shown.get(field, "")).split()
        try:
            foils = (
                foils_of_words(item.item_id, words, listed)
                if is_made(study)
                else _foils(str(cells_of_items.get(item.item_id) or ""), words, column)
            )
        except UserError as fault:
            where = places.get(item.item_id, item.item_id)
            faults.setdefault(item.item_id, UserError(f"{where}: {fault.message}", mend=fault.mend))
            continue
        made.append(replace(item, key={**item.key, FOILS: foils}))
    if faults:
        raise together(list(faults.values()))
    return made


def _foils(cell: str, words: Sequence[str], column: str) -> list[str]:
    """Return the foils of the words after the first, empty where there is none."""
    foils = nfc(cell).split()
    if len(foils) != len(words) - 1:
        raise UserError(
            f"{column} holds {len(foils)} foils, and the sentence has {len(words) - 1} words after the first",
            mend="Write one foil for each of them, between blanks; - where a word has none.",
        )
    same = [word for word, foil in zip(words[1:], foils, strict=True) if word == foil and foil != "-"]
    if same:
        raise UserError(f"{column} holds {same[0]!r}, the word itself", mend="Write another word, or -.")
    return ["" if foil == "-" else foil for foil in foils]


def _with_parts(unit: str, borders: Sequence[tuple[Item, Mapping[str, Sequence[int]]]]) -> list[Item]:
    """Return items with the parts of their shown texts; each change that crosses a border is refused."""
    made, faults = [], []
    for item, of_item in borders:
        try:
            parts = {
                name: _shown_parts(item, name, ends, unit)
                for name, ends in of_item.items()
                if name in item.shown
            }
        except UserError as fault:
            faults.append(fault)
            continue
        key = {**item.key, PARTS: {**item.key.get(PARTS, {}), unit: parts}} if parts else item.key
        made.append(replace(item, key=key))
    if faults:
        raise together(faults)
    return made


def _shown_parts(item: Item, name: str, borders: Sequence[int], unit: str) -> list[str]:
    """Cut a shown text where the intact one has borders."""
    shown = item.shown[name]
    if not shown:
        return []
    changes = [change for change in item.changes if change["field"] == name]
    cuts = [_shown_place(item, border, changes, unit) for border in borders]
    return [shown[begin:end].strip() for begin, end in pairwise([0, *cuts, len(shown)])]


def _shown_place(item: Item, border: int, changes: Sequence[ChangeRecord], unit: str) -> int:
    """Return the place in the shown text of a border in the intact one; no change may cross it."""
    longer = 0
    for change in changes:
        begin = change["start"] - longer
        if border <= begin:
            break
        if border < begin + len(change["intact"]):
            condition = " × ".join(item.condition.values())
            raise UserError(
                f"item {item.item_id!r}: condition {condition!r} changes {change['intact']!r} to {change['shown']!r} across the "
                f"border of a {unit}",
                mend=f"Change letters within words, or put what changes together into one {unit}.",
            )
        longer += len(change["shown"]) - len(change["intact"])
    return border + longer


CELL_PX = 17.28
"""Width of a character of the stimuli in CSS pixels, unless a study sets it by ``screen_size`` (1.6 rem of 18 px, 0.6 em)."""
MARGIN_PX = 54
"""Left and right margins of the lines together."""
LINE_PX = 46.08
"""Height of a line of the stimuli (1.6 times their size)."""
AROUND_PX = 244
"""Height of all that is above and below the lines of a text."""
LONGEST = 120
"""The longest line that ``line_length`` allows, in characters."""


def reading_remarks(study: Study, items: Sequence[Item]) -> list[str]:
    """Return, for each step that is read part by part, what readers see: texts of one chunk, and lines that break.

    Raises
    ------
    UserError
        A step is read by chunk, and no text has chunks; or a line does not fit the smallest window.
    """
    remarks: list[str] = []
    for number, place, read in reading_steps(study):
        length = int(study.get("procedure", place, "block", "line_length", default=LINE_LENGTH))
        shown = dict(_texts(study, items, number, read))
        where = study.place("procedure", place, "block")
        if read.get("by") == "chunk":
            remarks += _whole_chunks(where, read, shown)
        screens = {name: reading_screens(read, item, length) for name, item in shown.items()}
        remarks += _require_room(study, where, read, screens)
        if read.get("as", "whole") != "whole":
            remarks += _breaks(where, read, screens, length)
        if "for" in read:
            remarks.append(_frames(where, read, screens))
    field = maze_field(study)
    if field is not None and is_made(study):
        remarks.append(remark(study, items, field))
    return remarks


def _texts(
    study: Study, items: Sequence[Item], number: int, read: Mapping[str, Any]
) -> Iterator[tuple[str, Item]]:
    """Yield the items of which a block's step shows a text, by their name and condition."""
    for item in items:
        is_shown = number in blocks_showing(study, item.set_name) and item.role != "exemplar"
        if is_shown and shown_text(read["show"], item):
            yield " ".join([item.item_id, *item.condition.values()]), item


def _whole_chunks(where: str, read: Mapping[str, Any], shown: Mapping[str, Item]) -> Iterator[str]:
    """Report texts that are one chunk; raise an error if all are."""
    whole = [name for name, item in shown.items() if len(text_parts(read, item) or ()) < 2]
    if whole and len(whole) == len(shown):
        raise UserError(
            f"{where} shows texts by chunk, and none has a border between chunks",
            mend="Divide the sentences of your table: `The old man / the boats.`",
        )
    if whole:
        yield f"note: {where}: {len(whole)} of {len(shown)} texts are one chunk (first: {whole[0]}); chunks end at ` / `"


def _breaks(
    where: str, read: Mapping[str, Any], screens: Mapping[str, Screens], length: int
) -> Iterator[str]:
    """Report texts of which a screen has more lines than written."""
    broken = {
        name: [lines for text, lines in of_text if len(lines) > len(text.split("\n"))]
        for name, of_text in screens.items()
    }
    broken = {name: screens_of_text for name, screens_of_text in broken.items() if screens_of_text}
    if not broken:
        return
    first, (lines, *_) = next(iter(broken.items()))
    longest = max(
        cells(line) for of_text in screens.values() for text, _ in of_text for line in text.split("\n")
    )
    mend = (
        f"line_length: {longest} keeps each on one line"
        if longest <= LONGEST
        else f"shorten those of more than {LONGEST} characters to keep each on one line"
    )
    most = max(len(lines) for of_text in broken.values() for lines in of_text)
    yield (
        f"note: {where}: {len(broken)} of {len(screens)} texts take up to {most} lines ({str(read['as']).replace('_', ' ')}), "
        f"broken after the same words for everyone (lines have {length} characters at most; first: {first}, after "
        f"{lines[0].split()[-1]!r}); {mend}"
    )


def _frames(where: str, read: Mapping[str, Any], screens: Mapping[str, Screens]) -> str:
    """Report the frames of a 60 Hz screen for which texts or their parts are shown."""
    times = [
        ms for of_text in screens.values() for ms in part_times(read, [text for text, _ in of_text]) or ()
    ]
    frames = sorted({frames_for(ms) for ms in times})
    number = f"{frames[0]}" if len(frames) == 1 else f"{frames[0]} to {frames[-1]}"
    times_shown = " to ".join(f"{frame * FRAME_MS:.0f}" for frame in dict.fromkeys([frames[0], frames[-1]]))
    blank = f", {frames_for(milliseconds(read['blank']))} between two" if "blank" in read else ""
    what = "text" if read.get("as", "whole") == "whole" else str(read.get("by", "word"))
    return f"note: {where}: a {what} stands for {number} frames of a 60 Hz screen ({times_shown} ms){blank}"


def _require_room(
    study: Study, where: str, read: Mapping[str, Any], screens: Mapping[str, Screens]
) -> Iterator[str]:
    """Raise an error for a text that overflows the smallest admitted window; report texts that readers may scroll."""
    smallest = study.get("participants", "eligible", "screen")
    if smallest is None or any("screen_size" in screen for screen in study.get("procedure")):
        return  # without a rule each page requests the window that it needs; a measured size differs between screens
    width, height = map(int, smallest.split("x"))
    room, room_below = int((width - MARGIN_PX) / CELL_PX), int((height - AROUND_PX) / LINE_PX)
    too_high = []
    for name, of_text in screens.items():
        longest = max(cells(line) for _, lines in of_text for line in lines)
        if longest > room:
            needed = math.ceil(longest * CELL_PX) + MARGIN_PX
            raise UserError(
                f"{where}: a line of {name} has {longest} characters and needs a window of {needed} pixels; "
                f"participants.eligible.screen allows {smallest}, which holds {room} characters",
                mend=f"Set `line_length: {room}`, so that everyone reads the same shorter lines, or allow windows of {needed} "
                "pixels and more.",
            )
        if max(len(lines) for _, lines in of_text) > room_below:
            too_high.append(name)
    if not too_high:
        return
    most = max(len(lines) for _, lines in screens[too_high[0]])
    needed = math.ceil(most * LINE_PX) + AROUND_PX
    told = (
        f"{where}: {too_high[0]} has {most} lines and needs a window {needed} pixels high; participants.eligible.screen "
        f"allows {smallest}, which holds {room_below} lines"
    )
    if read.get("as", "whole") != "whole" or "for" in read:
        raise UserError(told, mend=f"Shorten it, or allow windows of {width}x{needed} pixels and more.")
    yield f"note: {told}; in smaller windows readers scroll ({len(too_high)} of {len(screens)} texts)"
