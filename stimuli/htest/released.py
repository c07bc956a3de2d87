"""The released H-TEST tasks, their known errors, and further items made as the paper's code made them.

Per task ``<task>_dev.jsonl`` holds 50 exemplars and ``<task>_test.jsonl`` 200 test items, both alternating A, B.

Word lists are extracted from the released items in the user's folder at run time and are never written to a file. Their
original order and duplicates cannot be recovered, so items follow the published process, but no seed reproduces the released
files. With few words, many generated texts are also released ones (a palindrome is one of 212 words): these come last, so
that a small number of items is entirely new.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from stimuli.corpora.corpus import json_lines
from stimuli.errors import UserError, unknown_name
from stimuli.htest.rules import Label, rule
from stimuli.lexicon import pronounced_words, pronunciations

# fmt: off
SPLIT_ORDER = (
    "end_punctuation", "hyphenated_word", "spelled_math", "palindrome", "end_ly",
    "repeated_word", "rhyme", "spelled_number", "start_vowel", "uppercase",
)
# fmt: on
"""The order in which one generator draws the test items of all tasks."""
RELEASED_TASKS = tuple(sorted(SPLIT_ORDER))
LABELS = ("A", "B")


@dataclass(frozen=True)
class ReleasedItem:
    """One released text with its label and its line in the file, from 1."""

    text: str
    label: str
    line: int


@dataclass(frozen=True)
class ReleasedTask:
    """One released task: all exemplars and all test items, in the order of the files."""

    name: str
    exemplars: tuple[ReleasedItem, ...]
    test: tuple[ReleasedItem, ...]

    def first_exemplars(self, k: int) -> tuple[ReleasedItem, ...]:
        """Return the first ``k`` exemplars, half of each label; a smaller set is the beginning of a larger one."""
        return self.exemplars[: checked_exemplars(k, most=len(self.exemplars))]


def checked_exemplars(k: int, *, most: int | None = None) -> int:
    """Return a number of exemplars that gives both labels the same share."""
    if k % 2:
        raise UserError(
            f"exemplars is {k}; both labels get the same number, so it is an even whole number",
            mend=f"Use {k + 1}.",
        )
    if most is not None and k > most:
        raise UserError(f"exemplars is {k}; there are {most}")
    return k


def task_folder(folder: Path) -> Path:
    """Return the folder with the task files: the one given, or ``abtasks`` in it."""
    for candidate in (folder, folder / "abtasks"):
        if any(candidate.glob("*_test.jsonl")):
            return candidate
    raise UserError(
        f"no H-TEST files in {folder}",
        mend="Give the folder with files such as uppercase_dev.jsonl and uppercase_test.jsonl.",
    )


def load_released_task(folder: Path, name: str) -> ReleasedTask:
    """Load one released task."""
    if name not in RELEASED_TASKS:
        raise unknown_name("H-TEST task", name, RELEASED_TASKS)
    where = task_folder(folder)
    return ReleasedTask(name, _load(where / f"{name}_dev.jsonl"), _load(where / f"{name}_test.jsonl"))


def load_released(folder: Path, names: Iterable[str] = RELEASED_TASKS) -> dict[str, ReleasedTask]:
    """Return released tasks by name; all ten by default."""
    return {name: load_released_task(folder, name) for name in names}


def _load(path: Path) -> tuple[ReleasedItem, ...]:
    return tuple(_item(record, f"{path}, line {number}", number) for number, record in json_lines(path))


def _item(record: Mapping[str, Any], where: str, number: int) -> ReleasedItem:
    # The exemplars of start_vowel were released under another key.
    text = record.get("centerpiece", record.get("question"))
    options: Sequence[Any] = record.get("options", ())
    right = record.get("correct_options")
    if not isinstance(text, str) or not text:
        raise UserError(f"{where}: 'centerpiece' is missing or no text")
    if list(options) != list(LABELS):
        raise UserError(f"{where}: options are {options!r}; an A/B task has ['A', 'B']")
    if not isinstance(right, list) or right not in ([0], [1]):
        raise UserError(f"{where}: correct_options is {right!r}; it is [0] or [1]")
    return ReleasedItem(text, LABELS[right[0]], number)


FaultKind = Literal["label", "duplicate", "leak"]


@dataclass(frozen=True)
class ReleasedItemFault:
    """A released text that should be excluded or corrected."""

    task: str
    split: str  # the file: dev (exemplars) or test
    line: int  # its line in the file, from 1
    text: str
    label: str
    kind: FaultKind  # the rule gives the other label; the text came before; a test text is an exemplar too
    reason: str  # the same in words


def label_noise(name: str, released: Iterable[ReleasedItem]) -> list[ReleasedItem]:
    """Return the released items whose label the rule, taken at its word, disagrees with."""
    predicate = rule(name).predicate
    return [item for item in released if predicate(item.text) != item.label]


def released_faults(folder: Path, tasks: Iterable[str] = RELEASED_TASKS) -> list[ReleasedItemFault]:
    """Return known errors in the released items, task by task, exemplars before test items."""
    faults: list[ReleasedItemFault] = []
    for name, task in load_released(folder, tasks).items():
        exemplars = {item.text: item for item in reversed(task.exemplars)}
        for split, items in (("dev", task.exemplars), ("test", task.test)):
            noisy = {item.line for item in label_noise(name, items)}
            first: dict[str, ReleasedItem] = {}
            for item in items:
                before = first.setdefault(item.text, item)
                reasons: dict[FaultKind, str] = {}
                if item.line in noisy:
                    other = "B" if item.label == "A" else "A"
                    reasons["label"] = f"labelled {item.label}, {other} by the rule: {rule(name).statement}"
                if before is not item:
                    reasons["duplicate"] = f"the text of line {before.line} again"
                if split == "test" and item.text in exemplars:
                    line = exemplars[item.text].line
                    reasons["leak"] = f"the exemplar on line {line} of {name}_dev.jsonl"
                faults += [
                    ReleasedItemFault(name, split, item.line, item.text, item.label, kind, reason)
                    for kind, reason in reasons.items()
                ]
    return faults


_SPELLED = 2
"""Letters at the end in which the two words of a couple differ."""


def rhymes_of(word: str) -> str:
    """Return the slot of a harvest that holds the rhymes of a word."""
    return f"rhymes of {word}"


def rhymes_as_published(word: str) -> list[str]:
    """Return the rhymes of a word in alphabetical order, the word itself left out; empty for a word that is not listed."""
    ends, by_end = _listed()
    return sorted({rhyme for end in ends.get(word, ()) for rhyme in by_end[end]} - {word})


def spelled_otherwise(word: str) -> list[str]:
    """Return the rhymes of a word whose last two letters differ from its own, in alphabetical order."""
    return [rhyme for rhyme in rhymes_as_published(word) if rhyme[-_SPELLED:] != word[-_SPELLED:]]


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
        parts = _HARVESTERS[name](texts)
    except (ValueError, IndexError, StopIteration) as error:
        raise UserError(
            f"the items of {name} in {folder} are not made as the released ones: {error}",
            mend="Give the folder with the released files.",
        ) from error
    empty = [slot for slot, words in parts.items() if not words]
    if empty:
        raise UserError(f"the items of {name} in {folder} hold no {empty[0]}")
    return {slot: tuple(sorted(set(words))) for slot, words in parts.items()}


def _texts(task: ReleasedTask, folder: Path, label: str) -> list[str]:
    texts = [item.text for item in (*task.exemplars, *task.test) if item.label == label]
    for beside in (folder, folder.parent):
        path = beside / "train" / f"{task.name}_train.jsonl"
        if path.is_file():
            return texts + [
                record["messages"][0]["content"]
                for _, record in json_lines(path)
                if record["messages"][1]["content"] == label
            ]
    return texts


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
        for previous, word in itertools.pairwise(words):
            if word.endswith("s"):
                before[word].add(previous)
    verbs = {word for word, others in before.items() if len(others) > 1 or "-" in word}
    clauses = []
    for words in sentences:
        place = next((place for place in range(1, len(words)) if words[place] in verbs), None)
        if place is None or len(words) < place + 3:
            raise ValueError(f"{' '.join(words)!r} has no subject, verb, object and adverb")
        clauses.append(
            _Clause(" ".join(words[:place]), words[place], " ".join(words[place + 1 : -1]), words[-1])
        )
    return clauses


def _slots(texts: Texts) -> tuple[dict[str, list[str]], list[_Clause], list[_Clause]]:
    clauses = _clauses((*texts["A"], *texts["B"]))
    parts = {slot: [getattr(clause, slot) for clause in clauses] for slot in _Clause._fields}
    return parts, clauses[: len(texts["A"])], clauses[len(texts["A"]) :]


def _harvest_by_class(texts: Texts, slot: str) -> Found:
    """Return the parts of sentences, with separate parts for each class in one slot."""
    parts, a, b = _slots(texts)
    return parts | {
        name: [getattr(c, slot) for c in of_class] for name, of_class in ((slot, a), (f"{slot} of B", b))
    }


def _harvest_hyphenated_word(texts: Texts) -> Found:
    parts, *_ = _slots(texts)
    sorted_apart = {slot: [part for part in parts[slot] if "-" not in part] for slot in parts}
    return sorted_apart | {
        f"hyphenated {slot}": [part for part in parts[slot] if "-" in part]
        for slot in ("subject", "verb", "object")
    }


def _harvest_spelled_number(texts: Texts) -> Found:
    """Return the parts of spelled_number; number and noun take the position of the object in other tasks."""
    parts, a, b = _slots(texts)
    numbers = [clause.object.split() for clause in (*a, *b)]
    if any(len(words) != 2 for words in numbers):
        raise ValueError("a number is not followed by one noun")
    parts["noun"] = [noun for _, noun in numbers]
    parts["number"] = [number for number, _ in numbers[: len(a)]]
    parts["number of B"] = [number for number, _ in numbers[len(a) :]]
    del parts["object"]
    return parts


def _harvest_end_punctuation(texts: Texts) -> Found:
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


def _harvest_spelled_math(texts: Texts) -> Found:
    b = [text.removesuffix(".").rsplit(" ", 2) for text in texts["B"]]
    subjects = {subject for subject, _, _ in b}
    a = [_subject_and_rest(text.removesuffix("."), subjects) for text in texts["A"]]
    operations = [remainder.rsplit(" ", 1) for _, remainder in a]
    return {
        "subject": sorted(subjects),
        "operation": [operation for operation, _ in operations],
        "operation of B": [sign for _, sign, _ in b],
        "number": [number for _, number in operations] + [number for _, _, number in b],
    }


def _subject_and_rest(text: str, subjects: set[str]) -> tuple[str, str]:
    subject = max((subject for subject in subjects if text.startswith(f"{subject} ")), key=len)
    return subject, text.removeprefix(subject).strip()


def _harvest_repeated_word(texts: Texts) -> Found:
    """Return the parts of shuffled sentences in four slots; the parts of one sentence are in different slots."""
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
            meetings = Counter[str](dict.fromkeys(_REPEATED_SLOTS, 0))
            for other, times in meets[part].items():
                meetings[slot_of[other]] += times
            moved[part] = min(_REPEATED_SLOTS, key=lambda slot: (meetings[slot], slot != slot_of[part]))
        if moved == slot_of:
            break
        slot_of = moved
    for sentence in sentences:
        if sorted(slot_of[part] for part in sentence) != sorted(_REPEATED_SLOTS):
            raise ValueError(f"{' '.join(sentence)!r} has not one part of each kind")
    return {slot: [part for part in parts if slot_of[part] == slot] for slot in _REPEATED_SLOTS}


def _harvest_rhyme(texts: Texts) -> Found:
    """Return the first words of couples, and their rhymes that the released couples do not use."""
    couples = [text.split() for text in (*texts["A"], *texts["B"])]
    if any(len(words) != 2 for words in couples):
        raise ValueError("a text is not two words")
    words = {first for first, _ in couples} | {second for _, second in couples[len(texts["A"]) :]}
    known = {*texts["A"], *texts["B"]}
    left = {
        word: [rhyme for rhyme in spelled_otherwise(word) if f"{word} {rhyme}" not in known] for word in words
    }
    return {"word": sorted(words)} | {rhymes_of(word): rhymes for word, rhymes in left.items() if rhymes}


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
    "end_ly": lambda texts: _harvest_by_class(texts, "adverb"),
    "end_punctuation": _harvest_end_punctuation,
    "hyphenated_word": _harvest_hyphenated_word,
    "palindrome": lambda texts: {"word": list(texts["A"]), "word of B": list(texts["B"])},
    "repeated_word": _harvest_repeated_word,
    "rhyme": _harvest_rhyme,
    "spelled_math": _harvest_spelled_math,
    "spelled_number": _harvest_spelled_number,
    "start_vowel": lambda texts: _harvest_by_class(texts, "subject"),
    "uppercase": lambda texts: _slots({label: [*map(str.lower, texts[label])] for label in LABELS})[0],
}


MADE = 150
"""Items made per class; of these 100 are drawn as test items and the others are exemplars."""

TESTED = 100
_PATIENCE = 20_000


def generate_published(
    name: str, folder: Path, *, exemplars: int, items: int, seed: int
) -> tuple[list[tuple[str, Label]], list[tuple[str, Label]]]:
    """Return exemplars and test items of a released task, made with a new seed.

    As published, 150 texts of each class are generated, A before B (repeated_word: B first), without duplicates in
    a class (except in spelled_math). 100 of each class are drawn as test items, in the order of the draw; the first
    of the remaining texts are exemplars. A and B alternate. Texts that are also released come last. In ``rhyme``, an
    A couple is a word and its first unused rhyme in alphabetical order; rhymes in released couples count as used,
    since otherwise each word's first rhymes would be repeated.
    """
    if name not in RELEASED_TASKS:
        raise unknown_name("H-TEST task", name, RELEASED_TASKS)
    parts = harvest(folder, name)
    task = load_released_task(folder, name)
    known = {item.text for item in (*task.exemplars, *task.test)}
    for what, number, most in (("exemplars", exemplars, 2 * (MADE - TESTED)), ("items", items, 2 * TESTED)):
        if number > most:
            raise UserError(f"{what} is {number}; the published making gives {most} of a task")
    # The published code draws from one Mersenne Twister per task: a copy of a protocol, not a draw of our own.
    draw = random.Random(seed)
    order: tuple[Label, Label] = ("B", "A") if name == "repeated_word" else ("A", "B")
    made: dict[str, list[str]] = {label: _class(name, label, parts, draw) for label in order}
    tested = _tested(name, seed)
    shown: list[list[str]] = []
    test: list[list[str]] = []
    for label in LABELS:
        chosen = set(tested[label])
        remaining = [text for place, text in enumerate(made[label]) if place not in chosen]
        drawn = [made[label][place] for place in tested[label]]
        shown.append(sorted(remaining, key=known.__contains__)[: exemplars // 2])
        test.append(sorted(drawn, key=known.__contains__)[: items // 2])
    return _alternating(shown), _alternating(test)


def _alternating(classes: list[list[str]]) -> list[tuple[str, Label]]:
    return [labelled for a, b in zip(*classes, strict=True) for labelled in ((a, "A"), (b, "B"))]


def _tested(name: str, seed: int) -> dict[str, list[int]]:
    draw = random.Random(seed)
    drawn = {task: {label: draw.sample(range(MADE), TESTED) for label in LABELS} for task in SPLIT_ORDER}
    return drawn[name]


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
        mend="Put the released fine-tuning files next to the others (folder train): they contain more words.",
    )


def _pick(parts: Parts, draw: random.Random, *slots: str) -> list[str]:
    return [draw.choice(parts[slot]) for slot in slots]


def _make_uppercase(label: Label, parts: Parts, draw: random.Random) -> str:
    """Capitalise one character of A, but not the last; if it is a space, the text has no capital."""
    text = (" ".join(_pick(parts, draw, "subject", "verb", "object", "adverb")) + ".").lower()
    if label == "B":
        return text
    place = draw.randint(0, len(text) - 2)
    return text[:place] + text[place].upper() + text[place + 1 :]


def _make_sentence(*slots: str) -> Callable[[Label, Parts, random.Random], str]:
    """Return what makes a sentence of one part of each slot; ``*`` marks the slot whose parts differ between the classes."""

    def make(label: Label, parts: Parts, draw: random.Random) -> str:
        of_label = "" if label == "A" else " of B"
        return " ".join(_pick(parts, draw, *(slot.replace("*", of_label) for slot in slots))) + "."

    return make


def _make_end_punctuation(label: Label, parts: Parts, draw: random.Random) -> str:
    words = _pick(parts, draw, "subject", "object", "subject")
    (mark,) = _pick(parts, draw, "mark")
    if label == "A":
        return " ".join(words) + mark
    words.insert(draw.randint(1, 2), mark)
    return " ".join(words)


def _make_repeated_word(label: Label, parts: Parts, draw: random.Random) -> str:
    words = _pick(parts, draw, "subject", "verb", "object", "adverb")
    draw.shuffle(words)
    tokens = (" ".join(words) + ".").split()
    if label == "B":
        return " ".join(tokens)
    place = draw.randrange(len(tokens))
    return " ".join((*tokens[: place + 1], *tokens[place:]))


def _make_hyphenated_word(label: Label, parts: Parts, draw: random.Random) -> str:
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
    couples = (f"{first} {rhyme}" for rhyme in parts.get(rhymes_of(first), ()))
    return next((couple for couple in couples if couple not in made), "")


_MAKERS: Mapping[str, Callable[[Label, Parts, random.Random], str]] = {
    "end_ly": _make_sentence("subject", "verb", "object", "adverb*"),
    "end_punctuation": _make_end_punctuation,
    "hyphenated_word": _make_hyphenated_word,
    "palindrome": lambda label, parts, draw: draw.choice(parts["word" if label == "A" else "word of B"]),
    "repeated_word": _make_repeated_word,
    "spelled_math": _make_sentence("subject", "operation*", "number"),
    "spelled_number": _make_sentence("subject", "verb", "number*", "noun", "adverb"),
    "start_vowel": _make_sentence("subject*", "verb", "object", "adverb"),
    "uppercase": _make_uppercase,
}
