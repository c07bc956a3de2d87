"""Lines of texts that are read word by word: where they break is the same for everyone, and said before anyone reads them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from experiment.lists import blocks_of, blocks_showing
from experiment.procedure.lines import LINE_LENGTH, break_lines, cells
from experiment.procedure.steps import shown_text
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.item import Item

CELL_PX = 17.28
"""Width of a character of the stimuli, CSS pixels, where a study does not set it by ``screen_size`` (1.6 rem of 18 px, 0.6 em)."""
MARGIN_PX = 54
"""What the page leaves free beside its lines, both sides together."""
LONGEST = 120
"""The longest line that ``line_length`` allows, characters."""


def line_remarks(study: Study, items: Sequence[Item]) -> list[str]:
    """Return, for each block with a moving window, how many texts take more than one line and where the first breaks."""
    found = []
    for number, place in enumerate(blocks_of(study)):
        length = int(study.get("procedure", place, "block", "line_length", default=LINE_LENGTH))
        texts = dict(_texts(study, items, number, place))
        broken = dict(_broken(texts, length))
        where = study.place("procedure", place, "block")
        _require_room(study, where, {item_id: break_lines(text, length) for item_id, text in texts.items()})
        if not broken:
            continue
        first, lines = next(iter(broken.items()))
        longest = max(cells(line) for text in texts.values() for line in text.split("\n"))
        mend = (
            f"line_length: {longest} keeps each on one line"
            if longest <= LONGEST
            else f"shorten those of more than {LONGEST} characters to keep each on one line"
        )
        most = max(map(len, broken.values()))
        found.append(
            f"note: {where}: {len(broken)} of {len(texts)} texts take up to {most} lines in the moving window, broken after "
            f"the same words for everyone (lines have {length} characters at most; first: {first}, after "
            f"{lines[0].split()[-1]!r}); {mend}"
        )
    return found


def _texts(study: Study, items: Sequence[Item], number: int, place: int) -> Iterator[tuple[str, str]]:
    """Yield the texts that a block shows word by word: item and condition, and the text."""
    for step in study.get("procedure", place, "block", "trial"):
        read = step.get("read", {})
        for item in items if read.get("as") == "moving_window" else ():
            if number in blocks_showing(study, item.set_name) and item.role != "exemplar":
                name = " ".join([item.item_id, *item.condition.values()])
                yield name, shown_text(read["show"], item)


def _broken(texts: dict[str, str], length: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the texts that take more lines than they were written in."""
    for name, text in texts.items():
        lines = break_lines(text, length)
        if len(lines) > len(text.split("\n")):
            yield name, lines


def _require_room(study: Study, where: str, lines: dict[str, list[str]]) -> None:
    """Refuse a line that is wider than the smallest window that may take part."""
    smallest = study.get("participants", "eligible", "screen")
    if smallest is None or any("screen_size" in screen for screen in study.get("procedure")):
        return  # without a rule each page asks for the window that it needs; a measured size differs from screen to screen
    width = int(smallest.split("x")[0])
    room = int((width - MARGIN_PX) / CELL_PX)
    for name, own in lines.items():
        longest = max(map(cells, own))
        if longest > room:
            needed = math.ceil(longest * CELL_PX) + MARGIN_PX
            raise UserError(
                f"{where}: a line of {name} has {longest} characters and needs a window of {needed} pixels; "
                f"participants.eligible.screen allows {smallest}, which holds {room} characters",
                mend=f"Set `line_length: {room}`, so that everyone reads the same shorter lines, or allow windows of {needed} "
                "pixels and more.",
            )
