"""Takes the words of the released H-TEST items apart into the parts that their sentences were joined from.

The lists stay in memory: they belong to the released files, are read anew from the user's folder, and are never
written anywhere. Their original order and the words that stood in them twice cannot be told from the items.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from stimuli.corpora.source_text import json_lines
from stimuli.errors import UserError
from stimuli.htest.released import LABELS, ReleasedTask, load_released_task
from stimuli.lexicon.pronunciations import pronounced_words, pronunciations

_SPELLED = 2
"""Letters at the end in which the two words of a couple differ."""


def rhymes_of(word: str) -> str:
    """Return the slot of a harvest that holds the rhymes of a word."""
    return f"rhymes of {word}"


def rhymes_as_published(word: str) -> list[str]:
    """Return the rhymes of a word in alphabetical order, the word itself left out; empty for a word that is not listed."""
    ends, by_end = _listed()
    return sorted({one for end in ends.get(word, ()) for one in by_end[end]} - {word})


def spelled_otherwise(word: str) -> list[str]:
    """Return the rhymes of a word whose last two letters differ from its own, in alphabetical order."""
    return [one for one in rhymes_as_published(word) if one[-_SPELLED:] != word[-_SPELLED:]]


@functools.cache
def _listed() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the ends of every listed word, and the words of every end."""
    ends: dict[str, set[str]] = {}
    by_end: dict[str, set[str]] = defaultdict(set)
    for word in pronounced_words():
        ends[word] = {_end(sounds) for sounds in pronunciations(word)}
        for end in ends[word]:
            by_end[end].add(word)
    return ends, by_end


def _end(sounds: list[str]) -> str:
    stressed = [place for place, sound in enumerate(sounds) if sound[-1] in "12"]
    return " ".join(sounds[stressed[-1] if stressed else 0 :])


Texts = Mapping[str, Sequence[str]]
Found = dict[str, list[str]]
Parts = Mapping[str, tuple[str, ...]]


def harvest(folder: Path, name: str) -> Parts:
    """Return the parts of a released task by slot (``subject``, ``verb``, ``object``, ``adverb``)."""
    task = load_released_task(folder, name)
    texts = {label: _texts(task, folder, label) for label in LABELS}
    try:
        found = _HARVESTERS[name](texts)
    except (ValueError, IndexError, StopIteration) as error:
        raise UserError(
            f"the items of {name} in {folder} are not made as the released ones: {error}",
            mend="Give the folder with the released files.",
        ) from error
    empty = [slot for slot, words in found.items() if not words]
    if empty:
        raise UserError(f"the items of {name} in {folder} hold no {empty[0]}")
    return {slot: tuple(sorted(set(words))) for slot, words in found.items()}


def _texts(task: ReleasedTask, folder: Path, label: str) -> list[str]:
    found = [item.text for item in (*task.exemplars, *task.test) if item.label == label]
    for beside in (folder, folder.parent):
        path = beside / "train" / f"{task.name}_train.jsonl"
        if path.is_file():
            return found + [
                record["messages"][0]["content"]
                for _, record in json_lines(path)
                if record["messages"][1]["content"] == label
            ]
    return found


class _Clause(NamedTuple):
    subject: str
    verb: str
    object: str
    adverb: str


def _clauses(texts: Iterable[str]) -> list[_Clause]:
    """Take ``subject verb object adverb.`` apart at the verb: a word in -s, hyphenated or after different words."""
    sentences = [text.removesuffix(".").split() for text in texts]
    before: dict[str, set[str]] = defaultdict(set)
    for words in sentences:
        for one, word in itertools.pairwise(words):
            if word.endswith("s"):
                before[word].add(one)
    verbs = {word for word, others in before.items() if len(others) > 1 or "-" in word}
    found = []
    for words in sentences:
        place = next((place for place in range(1, len(words)) if words[place] in verbs), None)
        if place is None or len(words) < place + 3:
            raise ValueError(f"{' '.join(words)!r} has no subject, verb, object and adverb")
        found.append(
            _Clause(" ".join(words[:place]), words[place], " ".join(words[place + 1 : -1]), words[-1])
        )
    return found


def _slots(texts: Texts) -> tuple[dict[str, list[str]], list[_Clause], list[_Clause]]:
    clauses = _clauses((*texts["A"], *texts["B"]))
    found = {slot: [getattr(clause, slot) for clause in clauses] for slot in _Clause._fields}
    return found, clauses[: len(texts["A"])], clauses[len(texts["A"]) :]


def _uppercase(texts: Texts) -> Found:
    return _slots({label: [text.lower() for text in texts[label]] for label in LABELS})[0]


def _start_vowel(texts: Texts) -> Found:
    found, a, b = _slots(texts)
    return found | {"subject": [one.subject for one in a], "subject of B": [one.subject for one in b]}


def _end_ly(texts: Texts) -> Found:
    found, a, b = _slots(texts)
    return found | {"adverb": [one.adverb for one in a], "adverb of B": [one.adverb for one in b]}


def _hyphenated_word(texts: Texts) -> Found:
    found, *_ = _slots(texts)
    sorted_apart = {slot: [part for part in found[slot] if "-" not in part] for slot in found}
    return sorted_apart | {
        f"hyphenated {slot}": [part for part in found[slot] if "-" in part]
        for slot in ("subject", "verb", "object")
    }


def _spelled_number(texts: Texts) -> Found:
    """Take number and noun from where the object stands in other tasks."""
    found, a, b = _slots(texts)
    numbers = [clause.object.split() for clause in (*a, *b)]
    if any(len(words) != 2 for words in numbers):
        raise ValueError("a number is not followed by one noun")
    found["noun"] = [noun for _, noun in numbers]
    found["number"] = [number for number, _ in numbers[: len(a)]]
    found["number of B"] = [number for number, _ in numbers[len(a) :]]
    del found["object"]
    return found


def _end_punctuation(texts: Texts) -> Found:
    """In B a mark stands alone behind the first or the second part, which gives both subjects whole."""
    first, last, marks, middles = [], [], [], []
    for text in texts["B"]:
        words = text.split()
        place = next(place for place, word in enumerate(words) if not any(map(str.isalpha, word)))
        marks.append(words[place])
        before, after = words[:place], words[place + 1 :]
        if any(map(str.islower, (word[0] for word in after[:1]))):
            first.append(" ".join(before))
            middles.append(after)
        else:
            last.append(" ".join(after))
            middles.append(before)
    subjects = {*first, *last}
    objects = [_without_subject(words, subjects) for words in middles]
    return {"subject": sorted(subjects), "object": objects, "mark": marks}


def _without_subject(words: list[str], subjects: set[str]) -> str:
    """Take the subject off an object before or behind it: only subjects have a capital."""
    place = next(place for place, word in enumerate(words) if word[0].isupper())
    if place:
        return " ".join(words[:place])
    length = 2 if " ".join(words[:2]) in subjects else 1
    return " ".join(words[length:])


def _spelled_math(texts: Texts) -> Found:
    b = [text.removesuffix(".").rsplit(" ", 2) for text in texts["B"]]
    subjects = {subject for subject, _, _ in b}
    a = [_subject_and_rest(text.removesuffix("."), subjects) for text in texts["A"]]
    operations = [rest.rsplit(" ", 1) for _, rest in a]
    return {
        "subject": sorted(subjects),
        "operation": [operation for operation, _ in operations],
        "operation of B": [sign for _, sign, _ in b],
        "number": [number for _, number in operations] + [number for _, _, number in b],
    }


def _subject_and_rest(text: str, subjects: set[str]) -> tuple[str, str]:
    subject = max((one for one in subjects if text.startswith(f"{one} ")), key=len)
    return subject, text.removeprefix(subject).strip()


def _palindrome(texts: Texts) -> Found:
    return {"word": list(texts["A"]), "word of B": list(texts["B"])}


def _repeated_word(texts: Texts) -> Found:
    """Sort the parts of shuffled sentences into four slots: two parts of one sentence are of different slots."""
    sentences = [_joined_article(text.removesuffix(".").split()) for text in texts["B"]]
    parts = sorted({part for sentence in sentences for part in sentence})
    slot_of = {part: _slot_by_form(part) for part in parts}
    meets = {part: Counter[str]() for part in parts}
    for sentence in sentences:
        for one, other in itertools.permutations(sentence, 2):
            meets[one][other] += 1
    for _ in range(len(parts)):
        moved = dict(slot_of)
        for part in parts:
            met = Counter[str](dict.fromkeys(_REPEATED_SLOTS, 0))
            for other, times in meets[part].items():
                met[slot_of[other]] += times
            moved[part] = min(_REPEATED_SLOTS, key=lambda slot: (met[slot], slot != slot_of[part]))
        if moved == slot_of:
            break
        slot_of = moved
    for sentence in sentences:
        if sorted(slot_of[part] for part in sentence) != sorted(_REPEATED_SLOTS):
            raise ValueError(f"{' '.join(sentence)!r} has not one part of each kind")
    return {slot: [part for part in parts if slot_of[part] == slot] for slot in _REPEATED_SLOTS}


def _rhyme(texts: Texts) -> Found:
    """Tell the words that couples begin with, and which of their rhymes the released couples left over."""
    couples = [text.split() for text in (*texts["A"], *texts["B"])]
    if any(len(words) != 2 for words in couples):
        raise ValueError("a text is not two words")
    words = {first for first, _ in couples} | {second for _, second in couples[len(texts["A"]) :]}
    known = {text for label in LABELS for text in texts[label]}
    left = {word: [one for one in spelled_otherwise(word) if f"{word} {one}" not in known] for word in words}
    return {"word": sorted(words)} | {rhymes_of(word): own for word, own in left.items() if own}


_REPEATED_SLOTS = ("subject", "verb", "object", "adverb")


def _slot_by_form(part: str) -> str:
    if part[0].isupper():
        return "subject"
    return "verb" if part.endswith("s") else "adverb" if part.endswith("ly") else "object"


def _joined_article(words: list[str]) -> list[str]:
    """Make one part of ``The`` and the noun behind it."""
    if "The" not in words[:-1]:
        return words
    place = words.index("The")
    return [*words[:place], f"The {words[place + 1]}", *words[place + 2 :]]


_HARVESTERS: Mapping[str, Callable[[Texts], Found]] = {
    "end_ly": _end_ly,
    "end_punctuation": _end_punctuation,
    "hyphenated_word": _hyphenated_word,
    "palindrome": _palindrome,
    "repeated_word": _repeated_word,
    "rhyme": _rhyme,
    "spelled_math": _spelled_math,
    "spelled_number": _spelled_number,
    "start_vowel": _start_vowel,
    "uppercase": _uppercase,
}
