"""Further items made as the paper's code made the released ones, fault for fault, with a new seed.

Words come from the released files at run time (:mod:`stimuli.htest.harvest`), so their order and weights are not the
original ones: the items follow the same process, and no seed gives the released files back. Few words make many doubles of
released texts (a palindrome is one of 212 words): those stand behind the others, so that few items are all new.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from stimuli.errors import UserError, unknown_name
from stimuli.htest.harvest import Parts, harvest, rhymes_as_published, rhymes_of
from stimuli.htest.released import RELEASED_TASKS, load_released_task
from stimuli.htest.rule import Label

MADE = 150
"""Items made per class; of these 100 are drawn as test items and the others are exemplars."""

TESTED = 100
SPLIT_ORDER = (
    "end_punctuation",
    "hyphenated_word",
    "spelled_math",
    "palindrome",
    "end_ly",
    "repeated_word",
    "rhyme",
    "spelled_number",
    "start_vowel",
    "uppercase",
)
"""The order in which one generator draws the test items of all tasks."""

_PATIENCE = 20_000


def generate_published(
    name: str, folder: Path, *, exemplars: int, items: int, seed: int
) -> tuple[list[tuple[str, Label]], list[tuple[str, Label]]]:
    """Make exemplars and test items of a released task with a seed of one's own.

    As published, 150 texts of each class are made, A before B (repeated_word: B first), rejecting what came
    before in its class (but for spelled_math, which repeats); 100 of each class are drawn as test items and stay
    in the order of the draw, the first of the others in the order of their making are exemplars. A and B
    alternate. Texts that were released, too, stand behind those that were not. The A couples of ``rhyme`` are a
    word and its first rhyme in alphabetical order that is not taken; rhymes in released couples are taken, for
    the first few of every word would come again.
    """
    if name not in RELEASED_TASKS:
        raise unknown_name("H-TEST task", name, RELEASED_TASKS)
    parts = harvest(folder, name)
    task = load_released_task(folder, name)
    known = {one.text for one in (*task.exemplars, *task.test)}
    for what, number, most in (("exemplars", exemplars, 2 * (MADE - TESTED)), ("items", items, 2 * TESTED)):
        if number > most:
            raise UserError(f"{what} is {number}; the published making gives {most} of a task")
    # The published code draws from one Mersenne Twister per task: a copy of a protocol, not a draw of our own.
    draw = random.Random(seed)
    order: tuple[Label, Label] = ("B", "A") if name == "repeated_word" else ("A", "B")
    made: dict[Label, list[str]] = {label: _class(name, label, parts, draw) for label in order}
    tested = _tested(name, seed)
    shown: list[list[str]] = []
    test: list[list[str]] = []
    for label in ("A", "B"):
        chosen = set(tested[label])
        rest = [text for place, text in enumerate(made[label]) if place not in chosen]
        drawn = [made[label][place] for place in tested[label]]
        shown.append(sorted(rest, key=known.__contains__)[: exemplars // 2])
        test.append(sorted(drawn, key=known.__contains__)[: items // 2])
    return _alternating(shown), _alternating(test)


def _alternating(classes: list[list[str]]) -> list[tuple[str, Label]]:
    return [one for a, b in zip(*classes, strict=True) for one in ((a, "A"), (b, "B"))]


def _tested(name: str, seed: int) -> dict[Label, list[int]]:
    draw = random.Random(seed)
    for task in SPLIT_ORDER:
        drawn: dict[Label, list[int]] = {
            "A": draw.sample(range(MADE), TESTED),
            "B": draw.sample(range(MADE), TESTED),
        }
        if task == name:
            return drawn
    raise unknown_name("H-TEST task", name, SPLIT_ORDER)


def _class(name: str, label: Label, parts: Parts, draw: random.Random) -> list[str]:
    made: list[str] = []
    for _ in range(_PATIENCE):
        text = (
            _couple(label, parts, draw, set(made)) if name == "rhyme" else _MAKERS[name](label, parts, draw)
        )
        if text and (name == "spelled_math" or text not in made):
            made.append(text)
        if len(made) == MADE:
            return made
    raise UserError(
        f"the words of {name} give {len(made)} different {label} items; {MADE} are needed",
        mend="Put the released fine-tuning files beside the others (folder train): they hold further words.",
    )


def _pick(parts: Parts, draw: random.Random, *slots: str) -> list[str]:
    return [draw.choice(parts[slot]) for slot in slots]


def _of(slot: str, label: Label) -> str:
    return slot if label == "A" else f"{slot} of B"


def _uppercase(label: Label, parts: Parts, draw: random.Random) -> str:
    """Raise one character of A anywhere but the last: where it is a space, no capital comes of it."""
    text = (" ".join(_pick(parts, draw, "subject", "verb", "object", "adverb")) + ".").lower()
    if label == "B":
        return text
    place = draw.randint(0, len(text) - 2)
    return text[:place] + text[place].upper() + text[place + 1 :]


def _start_vowel(label: Label, parts: Parts, draw: random.Random) -> str:
    return " ".join(_pick(parts, draw, _of("subject", label), "verb", "object", "adverb")) + "."


def _end_ly(label: Label, parts: Parts, draw: random.Random) -> str:
    return " ".join(_pick(parts, draw, "subject", "verb", "object", _of("adverb", label))) + "."


def _end_punctuation(label: Label, parts: Parts, draw: random.Random) -> str:
    words = _pick(parts, draw, "subject", "object", "subject")
    (mark,) = _pick(parts, draw, "mark")
    if label == "A":
        return " ".join(words) + mark
    words.insert(draw.randint(1, 2), mark)
    return " ".join(words)


def _palindrome(label: Label, parts: Parts, draw: random.Random) -> str:
    return draw.choice(parts[_of("word", label)])


def _spelled_math(label: Label, parts: Parts, draw: random.Random) -> str:
    return " ".join(_pick(parts, draw, "subject", _of("operation", label), "number")) + "."


def _spelled_number(label: Label, parts: Parts, draw: random.Random) -> str:
    return " ".join(_pick(parts, draw, "subject", "verb", _of("number", label), "noun", "adverb")) + "."


def _repeated_word(label: Label, parts: Parts, draw: random.Random) -> str:
    words = _pick(parts, draw, "subject", "verb", "object", "adverb")
    draw.shuffle(words)
    tokens = (" ".join(words) + ".").split()
    if label == "B":
        return " ".join(tokens)
    place = draw.randrange(len(tokens))
    return " ".join((*tokens[: place + 1], *tokens[place:]))


def _hyphenated_word(label: Label, parts: Parts, draw: random.Random) -> str:
    slots = ["subject", "verb", "object"]
    if label == "A":
        place = draw.randrange(len(slots))
        slots[place] = f"hyphenated {slots[place]}"
    return " ".join(_pick(parts, draw, *slots, "adverb")) + "."


def _couple(label: Label, parts: Parts, draw: random.Random, made: Collection[str]) -> str:
    """Two words, or nothing: of A the second is the first rhyme of the first that is not taken, of B another listed word."""
    if label == "B":
        first, second = _pick(parts, draw, "word", "word")
        return "" if first == second or second in rhymes_as_published(first) else f"{first} {second}"
    (first,) = _pick(parts, draw, "word")
    couples = (f"{first} {one}" for one in parts.get(rhymes_of(first), ()))
    return next((one for one in couples if one not in made), "")


_MAKERS: Mapping[str, Callable[[Label, Parts, random.Random], str]] = {
    "end_ly": _end_ly,
    "end_punctuation": _end_punctuation,
    "hyphenated_word": _hyphenated_word,
    "palindrome": _palindrome,
    "repeated_word": _repeated_word,
    "spelled_math": _spelled_math,
    "spelled_number": _spelled_number,
    "start_vowel": _start_vowel,
    "uppercase": _uppercase,
}
