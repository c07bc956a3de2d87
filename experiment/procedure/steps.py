"""The steps of a trial in a plan, made from a block's settings and an item (docs/trials.md), and the feedback after it.

Letters are counted as cells of the bundled monospaced font: wide letters of East Asian scripts take two, combining marks none.

The words are in the session's plan, so that the page and a conversation with a model use the same ones. The server determines
correctness after the answer is stored: the browser never has the key of a test item.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, pairwise
from random import Random
from typing import Any, Literal

from experiment.media import KEY, choice_field, shown_files
from experiment.parsing.free_answers import decimal_mark
from experiment.study import Study
from experiment.trials import (
    CHOSEN,
    OWN_TYPE,
    RATED,
    TrialType,
    answering_step,
    labels_of,
    scale_of,
    trial_type,
)
from experiment.trials.own import OwnType
from stimuli.durations import milliseconds
from stimuli.errors import UserError
from stimuli.item import Item
from stimuli.words import clusters_of

Feedback = dict[str, Any]
Verdict = Literal["correct", "incorrect", "late"]

LINE_LENGTH = 64
"""Default cells of a line."""
NOT_FIRST = frozenset(
    "、。，．・：；？！…‥ー）〕］｝〉》」』】〙〗〟’”々ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ,.:;?!)]}%"
)
NOT_LAST = frozenset("（〔［｛〈《「『【〘〖〝‘“([{")
"""Signs of East Asian scripts that may not begin or end a line."""


def feedback_words(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the feedback texts of a pack."""
    return {
        "correct": {"title": texts["feedback_correct"], "text": None},
        "incorrect": {"title": texts["feedback_incorrect"], "text": None},
        "late": {"title": texts["feedback_late"], "text": texts["feedback_late_text"]},
        "answer": texts["feedback_answer"],
    }


def block_feedback(settings: Mapping[str, Any], study: Study) -> Feedback | None:
    """Return a block's feedback for the plan; None without feedback.

    ``settings``: the block's: ``feedback`` (none, late, accuracy, accuracy_and_late) and ``feedback_for``.
    """
    given = settings.get("feedback", "none")
    if given == "none":
        return None
    shown_for = settings.get("feedback_for")
    return {
        "accuracy": given != "late",
        "late": given != "accuracy",
        "for_ms": None if shown_for is None else milliseconds(shown_for),
        "words": feedback_words(study.pack.texts),
    }


def practice_feedback(settings: Mapping[str, Any], study: Study, block: Mapping[str, Any]) -> Feedback | None:
    """Return the feedback of practice for a block, which is shown until the reader continues; None without feedback.

    No rating is right or wrong: there, only time can run out.
    """
    if not settings.get("feedback", True):
        return None
    ((kind, step),) = answering_step(block["trial"]).items()
    is_rated = kind in RATED
    if is_rated and "time_limit" not in step:
        return None
    return {"accuracy": not is_rated, "late": True, "for_ms": None, "words": feedback_words(study.pack.texts)}


def verdict_of(
    feedback: Mapping[str, Any] | None, trial: Mapping[str, Any], *, correct: bool | None, timed_out: bool
) -> Verdict | None:
    """Return the feedback on a trial.

    ``correct``: whether the score is correct; an unreadable answer (None) is not correct.
    """
    if feedback is None or trial["is_attention_check"]:
        return None
    if timed_out and feedback["late"]:
        return "late"
    if not feedback["accuracy"] or not trial["accepted"]:
        return None
    return "correct" if correct else "incorrect"


def feedback_text(feedback: Mapping[str, Any], verdict: Verdict, answer: str | None = None) -> str:
    """Return the feedback as one line of text, with the correct answer if it may be shown (practice)."""
    words = feedback["words"]
    parts = [words[verdict]["title"], words[verdict]["text"]]
    if answer is not None and verdict != "correct":
        parts = [parts[0], words["answer"].format(answer=answer)]
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)


def cells(text: str) -> int:
    """Return the cells of a monospaced font that a text fills."""
    return sum(_width(letter) for letter in text)


def _width(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def break_lines(text: str, length: int = LINE_LENGTH, *, keeps_words: bool = True) -> list[str]:
    """Return a text broken at its spaces into lines of at most ``length`` cells.

    Existing line breaks stay. A word longer than a line gets a separate line; only the single spaces at line breaks are
    removed.
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line, width = "", 0
        for number, word in enumerate(paragraph.split(" ")):
            for place, piece in enumerate([word] if keeps_words else _pieces(word, length)):
                gap, wide = " " if number and not place else "", cells(piece)
                if width + len(gap) + wide <= length or not line.strip():
                    line, width = line + gap + piece, width + len(gap) + wide
                else:
                    lines.append(line)
                    line, width = piece, wide
        lines.append(line)
    return lines


def _pieces(word: str, length: int) -> list[str]:
    """Return the parts of a word between which a line may break: one, unless it is too long and has wide signs."""
    if cells(word) <= length:
        return [word]
    pieces = [word[:1]]
    for before, sign in pairwise(word):
        is_break = (
            2 in (_width(before), _width(sign))
            and _width(sign) > 0
            and sign not in NOT_FIRST
            and before not in NOT_LAST
        )
        if is_break:
            pieces.append(sign)
        else:
            pieces[-1] += sign
    return pieces


@dataclass(frozen=True)
class SessionLabels:
    """The labels of a session: class → label shown; empty if labels come with the items."""

    shown: Mapping[str, str]

    def class_of(self, label: str) -> str:
        """Return the class of a label."""
        return next(name for name, given in self.shown.items() if given == label)


@dataclass(frozen=True)
class SharedBySteps:
    """What the steps of a block share: the labels of the session, the length of a line, and the language."""

    labels: SessionLabels
    line_length: int = LINE_LENGTH
    language: str = "en"
    sides: Random | None = None  # draws the sides of the words in a maze


PARTS = "parts"
"""Entry of an item's key: by unit (chunk, sentence) and field, the parts of its shown text."""
ALONE = frozenset({"centred", "rsvp", "maze"})
"""Ways to read in which each part is alone on the screen."""
FOILS = "foils"
"""Entry of an item's key: what stands beside each word of a maze but the first, empty where nothing does."""
NO_FOIL = "x-x-x"
"""What stands beside a word that has no foil (Forster et al., 2009)."""
SIDES = ("left", "right")
BESIDE = " " * 6
"""What parts the two sides of a maze, in the lines of a plan."""
Screens = list[tuple[str, list[str]]]
"""The texts that stand on the screen together, each with its lines."""


def text_parts(settings: Mapping[str, Any], item: Item) -> list[str] | None:
    """Return the words, chunks or sentences that a step shows one after another; None if it shows a whole text."""
    if settings.get("as", "whole") == "whole":
        return None
    names = [settings["show"]] if isinstance(settings["show"], str) else settings["show"]
    unit = settings.get("by", "word")
    if unit == "word":
        return [word for name in names for word in item.shown[name].split()]
    known = item.key.get(PARTS, {}).get(unit, {})
    return [part for name in names for part in known.get(name, [item.shown[name]])]


def reading_screens(settings: Mapping[str, Any], item: Item, length: int) -> Screens:
    """Return the texts that a step shows together, with their lines: the whole text, or each part that is alone."""
    text, parts = shown_text(settings["show"], item), text_parts(settings, item)
    if parts is not None and settings["as"] == "maze":
        pairs = [
            f"{part}{BESIDE}{foil}" for part, foil in zip(parts, foils_of(item, len(parts)), strict=True)
        ]
        return [(pair, [pair]) for pair in pairs]
    keeps_words = parts is not None and settings.get("by") != "sentence"
    if parts is None or settings["as"] not in ALONE:
        if parts is not None and settings.get("by") == "chunk":
            return [(text, _lines_of_chunks(text, parts, length))]
        return [(text, break_lines(text, length, keeps_words=keeps_words))]
    return [(part, break_lines(part, length, keeps_words=keeps_words)) for part in parts]


def foils_of(item: Item, words: int) -> list[str]:
    """Return what stands beside each word of an item in a maze."""
    return [NO_FOIL, *(foil or NO_FOIL for foil in item.key.get(FOILS, [""] * (words - 1)))][:words]


def _maze(settings: Mapping[str, Any], item: Item, words: int, draw: Random) -> dict[str, Any]:
    """Return the entries of a maze: each side has half of the words, in an order of the session's own."""
    sides = [*SIDES * (words // 2), *draw.sample(SIDES, words % 2)]
    draw.shuffle(sides)
    return {"foils": foils_of(item, words), "sides": sides, "keys": [str(key) for key in settings["keys"]]}


def part_times(settings: Mapping[str, Any], parts: Sequence[str]) -> list[float] | None:
    """Return how long each part is shown, in ms; None if the reader ends it."""
    if "for" not in settings:
        return None
    least, per_letter = milliseconds(settings["for"]), milliseconds(settings.get("per_letter", "0 ms"))
    return [least + per_letter * sum(sign.isalnum() for sign in clusters_of(part)) for part in parts]


def _lines_of_chunks(text: str, chunks: Sequence[str], length: int) -> list[str]:
    """Return the lines of a text that may break at its blanks and, in a script without any, between chunks."""
    lines, width, end = [""], 0, 0
    for word in (word for chunk in chunks for word in chunk.split()):
        begin = text.index(word, end)
        gap, end, wide = text[end:begin], begin + len(word), cells(word)
        *paragraphs, gap = gap.split("\n")
        if paragraphs:
            lines += [*paragraphs[1:], gap + word]
            width = cells(lines[-1])
        elif width + cells(gap) + wide <= length or not lines[-1].strip():
            lines[-1] += gap + word
            width += cells(gap) + wide
        else:
            lines.append(word)
            width = wide
    return lines


def make_step(
    kind: str,
    settings: Mapping[str, Any],
    item: Item,
    order: Sequence[int],
    shared: SharedBySteps,
    declared: TrialType | None = None,
) -> dict[str, Any]:
    """Return a step of a trial: the entries that its declaration takes from settings, then those computed here.

    ``declared``: the type's declaration, if it is not one of wrods' own.
    """
    text = shown_text(settings["show"], item) if "show" in settings else None
    if declared is None:
        declared = trial_type(kind)
    made: dict[str, Any] = {}
    if isinstance(declared, OwnType):
        made = {
            "step": OWN_TYPE,
            "type": kind,
            "ask": None,
            "answer_field": declared.answer_field,
            "scorer": declared.scorer,
            "seconds": declared.seconds["answer"],
            "for_models": declared.is_for_models,
        }
    elif kind in CHOSEN:
        made = _choices(settings, item, order, shared.labels)
        made |= {"several": True} if settings.get("several") else {}
    elif kind in RATED:
        made = {**scale_of(settings), "decimal": decimal_mark(shared.language)}
    elif kind == "answer":
        options = _lettered(item, order) if settings.get("read_as") == "option" else None
        text = text if options is None else with_options(text, options)
        made = {"options": options, "decimal": decimal_mark(shared.language)}
    elif kind == "recover" and not isinstance(settings["show"], str) and len(settings["show"]) > 1:
        made = {"multiline": True}  # a reader restores each text on lines of its own
    elif kind == "prime":
        made = {
            name: _mask(_setting(declared, name, settings), str(text)) for name in ("mask", "backward_mask")
        }
    lines = None if text is None else break_lines(text, shared.line_length, keeps_words=False)
    if kind == "read":
        parts = text_parts(settings, item)
        made = {"parts": parts, "part_ms": part_times(settings, [str(text)] if parts is None else parts)}
        made |= {"foils": None, "sides": None, "keys": None}
        if settings.get("as") == "maze":
            made |= _maze(settings, item, len(parts or ()), shared.sides or Random(0))
        lines = [line for _, own in reading_screens(settings, item, shared.line_length) for line in own]
    step: dict[str, Any] = {"step": kind, "caption": None, "text": text, "lines": lines}
    for name, entry in declared.plan.items():
        if entry.setting is not None:
            given = _setting(declared, entry.setting, settings)
            if given is not None and declared.parameters[entry.setting].type == "fields":
                given = shown_text(given, item)
            step[name] = (None if entry.nullable else 0) if given is None else given
    show = settings.get("show", ())
    if files := shown_files(item, [show] if isinstance(show, str) else show):
        made["media"] = files
        if not text and kind != "read":
            made |= {"text": None, "lines": None}
    return made | step | {"step": OWN_TYPE} if isinstance(declared, OwnType) else step | made


def _setting(declared: TrialType, name: str, settings: Mapping[str, Any]) -> Any:
    """Return a study's setting of a step, or the declared default; durations in ms."""
    parameter = declared.parameters[name]
    given = settings.get(name, parameter.default)
    return milliseconds(str(given)) if parameter.type == "duration" and given else given


def _lettered(item: Item, order: Sequence[int]) -> list[str]:
    options = list(item.choices or ())
    if not options:
        raise UserError(
            f"item {item.item_id!r} has no options, which `read_as: option` answers with",
            mend="Read answers as text or number.",
        )
    return [options[i] for i in order] if order else options


def _mask(mask: str | None, text: str) -> str | None:
    """Return a mask as long as the prime, so that each covers the other completely."""
    return mask * max(len(text), 1) if mask is not None and len(mask) == 1 else mask


def with_options(text: str | None, options: Sequence[str]) -> str:
    """Return a text with lettered options below it."""
    lettered = [
        f"({letter}) {option}" for letter, option in zip(string.ascii_uppercase, options, strict=False)
    ]
    return "\n".join([*([text] if text else []), *lettered])


def shown_text(show: str | Sequence[str], item: Item) -> str:
    """Return the text of the fields that a step shows, without those that name files."""
    names = [show] if isinstance(show, str) else show
    missing = [name for name in names if name not in item.shown]
    if missing:
        raise UserError(
            f"item {item.item_id!r} has no field {missing[0]!r} to show (it has: {', '.join(item.shown)})",
            mend="Name one of the item's fields under `show:`.",
        )
    return "\n\n".join(item.shown[name] for name in names if name not in item.key.get(KEY, {}))


def regions_read(read: Mapping[str, Any], step: Mapping[str, Any], item: Item) -> dict[str, list[int]]:
    """Return the named regions of a step that is read, by name: its first part (see :func:`parts_of`), and the one after the last.

    ``read``: the step's settings; ``step``: as planned.
    """
    ends = list(accumulate((_letters(part) for part in parts_of(step)), initial=0))
    regions: dict[str, list[int]] = {}
    before = 0
    for field in [read["show"]] if isinstance(read["show"], str) else read["show"]:
        text = item.shown[field]
        units = item.key.get(PARTS, {}).get("chunk", {}).get(field) or text.split()
        starts = list(accumulate((_letters(unit) for unit in units), initial=before))
        for name, (first, end) in item.key.get("regions", {}).get(field, {}).items() if text else ():
            inside = [
                part
                for part, (begin, stop) in enumerate(pairwise(ends))
                if begin < starts[end] and stop > starts[first]
            ]
            regions[name] = [inside[0], inside[-1] + 1]
        before = starts[-1]
    return regions


def _letters(text: str) -> int:
    """Count the characters of a text that are no blanks."""
    return len("".join(text.split()))


def region_names(trial: Mapping[str, Any], part: int) -> str | None:
    """Return the names of the regions that a part of a planned trial's text is in, separated by commas; None for none."""
    named = [name for name, (first, end) in trial.get("regions", {}).items() if first <= part < end]
    return ",".join(named) or None


def intact_text(trial: Mapping[str, Any], text: str) -> str:
    """Return a step's text in its intact form."""
    for name, intact in trial["intact"].items():
        shown = trial["shown"].get(name)
        text = text.replace(shown, intact) if shown else text
    return text


def parts_of(step: Mapping[str, Any]) -> list[str]:
    """Return the regions of a planned step: the parts by which its text is read, else the words between blanks."""
    return list(step.get("parts") or (step["text"] or "").split())


def intact_parts(trial: Mapping[str, Any], step: Mapping[str, Any]) -> list[str | None]:
    """Return the intact form of each region of a planned step; None for all if the intact text cannot be cut alike."""
    shown, text = parts_of(step), intact_text(trial, step["text"] or "")
    words, sizes = text.split(), [len(part.split()) for part in shown]
    if len(words) == sum(sizes) == len((step["text"] or "").split()):
        ends = list(accumulate(sizes, initial=0))
        return [" ".join(words[begin:end]) for begin, end in pairwise(ends)]
    if "".join(shown) == "".join((step["text"] or "").split()) and len(text) == len(step["text"]):
        # parts of a text without blanks between them
        letters = "".join(words)
        ends = list(accumulate(map(len, shown), initial=0))
        return [letters[begin:end] for begin, end in pairwise(ends)]
    return [None] * len(shown)


def foils_shown(step: Mapping[str, Any]) -> list[str | None]:
    """Return the foil beside each region of a planned step; None where there is none."""
    foils = step.get("foils") or [NO_FOIL] * len(parts_of(step))
    return [None if foil == NO_FOIL else foil for foil in foils]


def region_lines(step: Mapping[str, Any]) -> list[int | None]:
    """Return the line, from 0, in which each region of a planned step begins; None where a region is alone on the screen."""
    regions = parts_of(step)
    letters = [line for line, text in enumerate(step["lines"] or ()) for _ in "".join(text.split())]
    sizes = [len("".join(region.split())) for region in regions]
    if step.get("as") in ALONE or sum(sizes) != len(letters):
        return [None] * len(regions)
    return [letters[begin] for begin in accumulate(sizes[:-1], initial=0)]


def scale_ends(step: Mapping[str, Any]) -> dict[str, str]:
    """Return the ends of a planned step's scale with what they mean: ``{"low": "1 (impossible)", …}``."""
    points = labels_of(step) or (str(step["from"]), str(step["to"]))
    named = zip(("low", "high"), (points[0], points[-1]), strict=True)
    return {end: f"{point} ({step[end]})" if step[end] else point for end, point in named}


def points_of_slider(step: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the numbers to which a planned slider can be set; none of another step."""
    if step["step"] not in RATED or step["labels"] is not None:
        return ()
    low, digits = Decimal(str(step["from"])), step["decimals"]
    count = int((Decimal(str(step["to"])) - low) * 10**digits)
    return tuple(f"{low + Decimal(place).scaleb(-digits):.{digits}f}" for place in range(count + 1))


def _choices(
    settings: Mapping[str, Any], item: Item, order: Sequence[int], labels: SessionLabels
) -> dict[str, Any]:
    keys = settings["keys"]
    if isinstance(keys, dict):
        names = list(keys)
        return {
            "labels": names,
            "responses": [labels.class_of(name) for name in names],
            "options": None,
            "keys": [str(key) for key in keys.values()],
        }
    choices = list(item.choices or ())
    if len(choices) != len(keys):
        raise UserError(
            f"item {item.item_id!r} has {len(choices)} choices, and {len(keys)} keys are given for them",
            mend="Give as many keys under `choose:` as the items have choices.",
        )
    displayed = [choices[i] for i in order]
    by_text = settings.get("answer_by", "letter") == "text"
    if pictures := shown_files(item, [choice_field(choice) for choice in displayed]):
        return {
            "labels": list(string.ascii_uppercase[: len(displayed)]),
            "responses": displayed,
            "options": [file["text"] or "" for file in pictures],
            "keys": [str(key) for key in keys],
            "pictures": pictures,
        }
    return {
        "labels": displayed if by_text else list(string.ascii_uppercase[: len(displayed)]),
        "responses": displayed,
        "options": None if by_text else displayed,
        "keys": [str(key) for key in keys],
    }
