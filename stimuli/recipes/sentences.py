"""Sentences and single words from the user's table: each row in every condition, with its choices and answer.

Words to change are starred in the text, named in a column or chosen by a rule. The texts of a level can also be written by
hand, in a column.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self, cast

from rapidfuzz.distance import OSA

from stimuli.corpora.corpus import Record
from stimuli.errors import UserError, missing_column, together, unknown_name
from stimuli.item import ANSWERS_BETWEEN, Item
from stimuli.lexicon import has_lexicon, zipf
from stimuli.recipes.conditions import (
    DisplayedField,
    FactorLevels,
    ItemDesign,
    Skipped,
    TaskItems,
    describe,
    require_change,
    show_in_conditions,
    withheld_shown,
)
from stimuli.recipes.task_items import TaskRecord, item_of
from stimuli.scramble.alignment import changes_between
from stimuli.scramble.conditions import LeftIntact, Scrambled
from stimuli.scramble.text import SharedWords, scramble_conditions
from stimuli.scramble.types import Operation, parse_operation
from stimuli.seeds import stable_seed
from stimuli.words import Word, base_language, find_words, nfc, parse_stars

BY_HAND = "hand-made"
LEFT_BY_HAND = "left by hand"


def by_hand(
    factor: str | None, levels: Mapping[str, Any], columns: Collection[str]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the columns of the levels made by hand, and the operations of the others."""
    hand_made: dict[str, str] = {}
    operations: dict[str, Any] = {}
    for level, operation in levels.items():
        level_column = f"{factor}:{level}"
        if operation == BY_HAND:
            hand_made[level] = level_column
        elif isinstance(operation, Mapping) and set(operation) == {"column"}:
            hand_made[level] = str(operation["column"])
        elif level_column in columns:
            raise UserError(
                f"the table has a column {level_column!r} made by hand, but level {level!r} is to be made by {operation!r}",
                mend=f"Write {level}: {BY_HAND}, or take the column out.",
            )
        else:
            operations[level] = operation
    return hand_made, operations


def describe_by_hand(intact: str, shown: str, targets: Collection[int] | None, *, column: str) -> Scrambled:
    """Describe a text made by hand as a scramble of ours is described."""
    before, after = nfc(intact), nfc(shown)
    words, shown_words = find_words(before), find_words(after)
    if len(words) != len(shown_words):
        raise UserError(
            f"column {column!r}: {shown!r} has {len(shown_words)} words, the intact text {len(words)}",
            mend="Change letters within words; spaces, hyphens and marks stay as they are.",
        )
    marks = zip(_between(before, words), _between(after, shown_words), strict=True)
    place = next((place for place, (one, other) in enumerate(marks) if one != other), None)
    if place is not None:
        raise UserError(
            f"column {column!r}: {shown!r} has other spaces or marks than the intact text "
            + (f"before {words[place].text!r}" if place < len(words) else "at its end"),
            mend="Change letters within words; spaces, hyphens and marks stay as they are.",
        )
    for word, made in zip(words, shown_words, strict=True):
        if word.text != made.text and targets is not None and word.index not in targets:
            raise UserError(
                f"column {column!r}: {shown!r} changes word {word.index + 1}, {word.text!r} to {made.text!r}, "
                "which is not a word to change",
                mend="Mark that word as well, or leave it as it is.",
            )
    changes = changes_between(before, after, "any")
    if not changes:
        raise UserError(
            f"column {column!r}: {shown!r} is the intact text", mend="Change a word, or leave the row out."
        )
    left = sorted(set(targets or ()) - {change.word for change in changes})
    unchanged = tuple(LeftIntact(place, words[place].text, LEFT_BY_HAND) for place in left)
    return Scrambled(after, changes, unchanged)


def _between(text: str, words: Sequence[Word]) -> list[str]:
    ends = [0, *(word.end for word in words)]
    starts = [*(word.start for word in words), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


STARRED = "starred"
SEPARATOR = "|"


@dataclass(frozen=True)
class TargetRule:
    """Chooses words of a sentence by what they are and where they stand; every part given must hold."""

    min_letters: int | None = None  # bounds of the number of letters
    max_letters: int | None = None
    min_zipf: float | None = None  # bounds of the Zipf frequency (log10 per billion words)
    max_zipf: float | None = None
    skip_frequent: int | None = None  # none of the so many most frequent words, mainly function words
    place: Literal["first", "last"] | None = None  # only this word of the sentence, if the rest holds for it
    every: int | None = None  # every second, third … of the words for which the rest holds: 2nd, 4th … for 2
    number: int | None = None  # so many of these a sentence, drawn with the study's seed

    def __post_init__(self) -> None:
        for name in ("min_letters", "max_letters", "skip_frequent", "every", "number"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise UserError(f"words: {name} is {value!r}; it is a whole number, 1 or more")
        for name in ("min_zipf", "max_zipf"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | float) or not 0 <= value <= 9):
                raise UserError(f"words: {name} is {value!r}; Zipf frequencies lie between 0 and 9")
        for what in ("letters", "zipf"):
            low, high = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            if low is not None and high is not None and low > high:
                raise UserError(
                    f"words: min_{what} {low:g} is above max_{what} {high:g}; no word can be both",
                    mend="Exchange the two.",
                )
        if self.place not in (None, "first", "last"):
            raise unknown_name("words: place", str(self.place), ("first", "last"))
        if all(getattr(self, field.name) is None for field in fields(self)):
            raise UserError(
                "words: the rule says nothing",
                mend="Give at least one of: " + ", ".join(field.name for field in fields(self)) + ".",
            )

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Self:
        """Read a rule as a study writes it: ``{min_letters: 5, skip_frequent: 100}``."""
        known = [field.name for field in fields(cls)]
        for key in given:
            if key not in known:
                raise unknown_name("words: rule", str(key), known)
        return cls(**given)

    def require_language(self, language: str) -> None:
        """Refuse a language without the frequencies that the rule needs."""
        for name in ("min_zipf", "max_zipf", "skip_frequent"):
            if getattr(self, name) is not None and not has_lexicon(language):
                raise UserError(
                    f"words: {name} needs word frequencies, and there are none for language {language!r}",
                    mend="Choose words by letters or place, or star them in the text.",
                )

    def choose(
        self, text: str, *, language: str, seed: int, item_id: str, among: Mapping[int, int] | None = None
    ) -> tuple[int, ...]:
        """Return the places of the words that the rule chooses, of some or of all, in reading order."""
        words = find_words(text)
        places = {None: slice(None), "first": slice(1), "last": slice(-1, None)}
        fitting = [
            word
            for word in words[places[self.place]]
            if self._fits(word, language) and (among is None or word.index in among)
        ]
        if self.every is not None:
            fitting = fitting[self.every - 1 :: self.every]
        wanted = self.number or 1
        if len(fitting) < wanted:
            raise UserError(
                f"the rule for words ({self}) fits {len(fitting) or 'no'} word{'s' * (len(fitting) > 1)} of {text!r}"
                + (f"; {self.number} are asked for" if self.number else ""),
                mend="Ease the rule, or star the words in the text.",
            )
        chosen = [word.index for word in fitting]
        if self.number is not None:
            chosen.sort(
                key=lambda word: stable_seed(seed, "targets", item_id, among[word] if among else word)
            )
        return tuple(sorted(chosen[: self.number]))

    def __str__(self) -> str:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return ", ".join(f"{name}: {value}" for name, value in given.items() if value is not None)

    def _fits(self, word: Word, language: str) -> bool:
        if not word.movable:
            return False
        if not (self.min_letters or 0) <= word.letter_count <= (self.max_letters or word.letter_count):
            return False
        if self.min_zipf is not None or self.max_zipf is not None:
            frequency = zipf(word.text, language) or 0.0
            if frequency < (self.min_zipf or 0) or (self.max_zipf is not None and frequency > self.max_zipf):
                return False
        return self.skip_frequent is None or word.text.lower().replace("’", "'") not in _most_frequent(
            language, self.skip_frequent
        )


@dataclass(frozen=True)
class TargetColumn:
    """Words named in a column: as words or as word numbers from 1, several parted by ``|`` or spaces."""

    column: str = "targets"


Targets = Literal["all", "starred"] | TargetColumn | TargetRule


def parse_targets(given: str | Mapping[str, Any]) -> Targets:
    """Return the words to change as ``words`` of a study's scramble settings names them."""
    if isinstance(given, str):
        return cast(Targets, given)
    if "column" in given:
        if set(given) != {"column"} or not isinstance(given["column"], str):
            raise UserError(
                f"words is {dict(given)!r}; a column of targets stands alone",
                mend="Write words: {column: targets}.",
            )
        return TargetColumn(given["column"])
    return TargetRule.from_mapping(given)


def read_targets(
    text: str,
    targets: Targets,
    row: Mapping[str, Any],
    *,
    language: str,
    seed: int,
    item_id: str,
    among: Mapping[int, int] | None = None,
) -> tuple[str, tuple[int, ...] | None]:
    """Return a row's text as it is read, in NFC, and the places of the words that may change (None for all).

    ``among``: the only words that a rule, or all words, can mean, with the place of each in the row of draws.
    """
    if targets == STARRED:
        starred = parse_stars(text)
        if not starred.words:
            raise UserError(f"no word is starred in {text!r}", mend="Mark words to change, like *this*.")
        return starred.text, starred.words
    plain = nfc(text)
    if isinstance(targets, TargetColumn):
        return plain, _named(row.get(targets.column), plain, targets.column)
    if isinstance(targets, TargetRule):
        return plain, targets.choose(plain, language=language, seed=seed, item_id=item_id, among=among)
    return plain, None if among is None else tuple(sorted(among))


def _named(cell: object, text: str, column: str) -> tuple[int, ...]:
    entries = _entries(cell, column)
    words = find_words(text)
    places: set[int] = set()
    for entry in entries:
        if isinstance(entry, int):
            if not 1 <= entry <= len(words):
                raise UserError(
                    f"{column!r} names word {entry}; the text has words 1 to {len(words)}",
                    mend="Words are counted from 1; a hyphen parts two words, numbers are none.",
                )
            places.add(entry - 1)
        else:
            places |= {_place_of(word.text, words, column) for word in _words_of(entry, column)}
    return tuple(sorted(places))


def _entries(cell: object, column: str) -> list[int | str]:
    given = cell if isinstance(cell, list) else [cell]
    entries: list[int | str] = []
    for entry in given:
        if isinstance(entry, int) and not isinstance(entry, bool):
            entries.append(entry)
        elif isinstance(entry, str):
            parts = entry.replace(SEPARATOR, " ").split()
            entries += [int(part) if part.isdecimal() else part for part in parts]
        elif entry is not None:
            raise UserError(f"{column!r} holds {entry!r}; targets are words or word numbers")
    if not entries:
        raise UserError(
            f"{column!r} names no word", mend="Write words or word numbers, parted by | or spaces."
        )
    return entries


def _words_of(entry: str, column: str) -> Sequence[Word]:
    words = find_words(nfc(entry))
    if not words:
        raise UserError(f"{column!r} names {entry!r}, which is not a word")
    return words


def _place_of(name: str, words: Sequence[Word], column: str) -> int:
    same = [word.index for word in words if word.text == name]
    same = same or [word.index for word in words if word.text.casefold() == name.casefold()]
    if not same:
        close = unknown_name("word", name, [word.text for word in words])
        raise UserError(f"{column!r} names {name!r}, which is not in the text", mend=close.mend)
    if len(same) > 1:
        numbers = " and ".join(str(place + 1) for place in same)
        raise UserError(
            f"{column!r} names {name!r}, which is in the text {len(same)} times",
            mend=f"Name the word by its number ({numbers}).",
        )
    return same[0]


@functools.lru_cache(maxsize=16)
def _most_frequent(language: str, number: int) -> frozenset[str]:
    import wordfreq

    return frozenset(wordfreq.top_n_list(base_language(language), number))


CHOICE_SEPARATOR = "|"
ID, SENTENCE = "item", "sentence"


class ItemlessRow(UserError):
    """A row that gives no items; the others still can."""


@dataclass(frozen=True)
class SentenceColumns:
    """Columns of a table of sentences in addition to ``item`` and ``sentence``."""

    also_show: tuple[str, ...] = ()  # fields that are shown as they are
    answer: str | None = "answer"  # the right answer; None where nothing is asked
    choices: str | tuple[str, ...] | None = None  # the choices of a row, or those of every row
    several: bool = False  # whether any number of the choices is right
    level: str | None = None  # the only level at which a row is shown
    only_level: str | None = None  # the only level at which rows are shown that name none
    targets: Mapping[str, Any] | None = None  # column or rule for words to change; None: all or starred ones
    optional: tuple[str, ...] = ()  # columns that may be empty: the item lacks the field, choices or answer
    # by item: the words that its versions share, if the items are one version of several
    shared: Mapping[str, SharedWords] = field(default_factory=dict)


def sentence_items(
    rows: Sequence[Mapping[str, Any]],
    design: ItemDesign,
    columns: SentenceColumns = SentenceColumns(),
    *,
    lines: Mapping[str, int] | None = None,
) -> TaskItems:
    """Return items of sentences: row by row, each in every condition; ``lines`` gives each item's line in its file."""
    present = set().union(*rows) if rows else set()
    recipe = _Recipe.of(replace(design, set_name=design.set_name or "sentences"), columns, present)
    needed = [ID, SENTENCE, *columns.also_show, *recipe.hand_made.values()]
    needed += [name for name in (columns.answer, columns.choices, columns.level) if isinstance(name, str)]
    needed += [recipe.targets.column] if isinstance(recipe.targets, TargetColumn) else []
    for name in needed:
        if rows and name not in present:
            raise missing_column(design.source, name, sorted(present))
    items: list[Item] = []
    skipped: list[Skipped] = []
    faults: list[UserError] = []
    for number, row in enumerate(rows, 1):
        item_id = str(row.get(ID) or "")
        line = (lines or {}).get(item_id)
        try:
            items += recipe.items(row, number, line)
        except ItemlessRow as error:
            faults.append(error)
            reason = f"{error.message}. {error.mend}" if error.mend else error.message
            skipped.append(Skipped(item_id or f"row {number}", design.source, reason))
    if faults and design.on_bad == "stop":
        raise together(faults)
    return TaskItems(tuple(items), tuple(skipped))


@dataclass(frozen=True)
class _Recipe:
    """Settings for all rows of a table."""

    design: ItemDesign
    columns: SentenceColumns
    levels: FactorLevels
    operations: Mapping[str, Operation]
    hand_made: Mapping[str, str]
    order: tuple[str, ...]
    targets: Targets

    @classmethod
    def of(cls, design: ItemDesign, columns: SentenceColumns, present: Collection[str]) -> Self:
        """Read the levels and the words to change; ``present`` are the columns that the table has."""
        factor, settings = design.factor, design.settings
        hand_made, operations = by_hand(factor, design.levels, present)
        levels = FactorLevels.parse(factor, operations)
        targets = parse_targets(settings.words if columns.targets is None else columns.targets)
        if isinstance(targets, TargetRule):
            targets.require_language(settings.language)
        order = tuple(design.levels) if factor is not None else ("",)
        return cls(design, columns, levels, levels.operations(settings), hand_made, order, targets)

    def items(self, row: Mapping[str, Any], number: int, line: int | None) -> list[Item]:
        """Return a row's items, one in each condition in which it is shown."""
        columns, source = self.columns, self.design.source
        row_name = f"row {number} of {source}" if line is None else f"{source}, line {line}"
        item_id = _cell(row, ID, row_name)
        item = f"item {item_id!r}"
        where = f"row {number}, {item} of {source}" if line is None else f"{row_name}, {item}"
        empty = {name for name in columns.optional if not str(row.get(name) or "").strip()}
        also = {name: nfc(_cell(row, name, where)) for name in columns.also_show if name not in empty}
        left_out = isinstance(columns.choices, str) and columns.choices in empty
        options = None if left_out else _choices(row, columns.choices, where)
        key = None if columns.answer in empty else columns.answer
        answer = key and _answer(_cell(row, key, where), options, where, columns.several)
        only = _only_level(row, columns.level, self.order, where) or columns.only_level
        record = Record(item_id, source, None, None, {SENTENCE: row[SENTENCE], **also}, None, None)
        asked = TaskRecord(record, SENTENCE, tuple(also), options, answer)
        return [
            item_of(asked, {SENTENCE: field}, self.levels.condition(field.level), self.design)
            for field in self.shown(row, item_id, where, only)
        ]

    def shown(
        self, row: Mapping[str, Any], item_id: str, where: str, only: str | None
    ) -> list[DisplayedField]:
        """Return a row's text in every condition, or in the only one in which it is shown."""
        text_cell = _cell(row, SENTENCE, where)
        wanted = self.order if only is None else (only,)
        columns = {level: _cell(row, column, where) for level, column in self.hand_made.items()}
        try:
            if self.targets == STARRED and not parse_stars(text_cell).words:
                self._require_unchanged(text_cell, wanted)
                return self._as_it_is(text_cell, wanted)
            language, among = self.design.settings.language, self._shared_words(item_id)
            draw: dict[str, Any] = {"seed": self.design.seed, "item_id": item_id, "among": among}
            text, words = read_targets(text_cell, self.targets, row, language=language, **draw)
            shown = self._described(text, self._results(text, words, columns, item_id))
            require_change(
                [field for field in shown if field.level in self.operations], dict(self.operations), item_id
            )
        except UserError as error:
            message = error.message.removeprefix(f"item {item_id!r}: ")
            raise ItemlessRow(f"{where}: {message}", mend=error.mend) from None
        return [self._told(field) for field in shown if field.level in wanted]

    def _told(self, field: DisplayedField) -> DisplayedField:
        if field.level in self.hand_made:
            return replace(field, operation=BY_HAND)
        return withheld_shown(field, self.levels)

    def _shared_words(self, item_id: str) -> dict[int, int] | None:
        """Return the words that can change because all versions of an item have them; None if every word can."""
        shared = self.columns.shared.get(item_id)
        if shared is None or self.design.settings.dose != "equal":
            return None
        return {word: shared.places[word] for word in sorted(shared.words)}

    def _described(self, text: str, results: Mapping[str, Scrambled]) -> list[DisplayedField]:
        operations = {level: self.operations.get(level, parse_operation("none")) for level in results}
        return describe(text, results, operations, field=SENTENCE, language=self.design.settings.language)

    def _require_unchanged(self, given: str, wanted: Sequence[str]) -> None:
        """Refuse a text without stars at a level that changes starred words."""
        changing = [level for level in wanted if not self._keeps(level)]
        if not changing:
            return
        mend = "Mark words to change, like *this*"
        unchanged = [level for level in self.order if self._keeps(level)]
        if len(wanted) == 1 and unchanged:
            mend += f", or show the text as it is, at level {unchanged[0]!r}"
        at = f" and level {changing[0]!r} changes starred words" if changing[0] else ""
        raise UserError(f"no word is starred in {given!r}{at}", mend=f"{mend}.")

    def _keeps(self, level: str) -> bool:
        return level in self.operations and self.operations[level].changes_nothing

    def _as_it_is(self, given: str, wanted: Sequence[str]) -> list[DisplayedField]:
        operations = {level: self.operations[level] for level in wanted}
        text = nfc(given)
        results = scramble_conditions(
            text, operations, seed=self.design.seed, item_id="", words=(), settings=self.design.settings
        )
        return [withheld_shown(field, self.levels) for field in self._described(text, results)]

    def _results(
        self, text: str, words: Sequence[int] | None, columns: Mapping[str, str], item_id: str
    ) -> dict[str, Scrambled]:
        design = self.design
        by_hand = {
            level: describe_by_hand(text, shown, words, column=self.hand_made[level])
            for level, shown in columns.items()
        }
        common = design.settings.dose == "equal"
        if by_hand and common:
            words = self._same_words(text, by_hand)
        shared = self.columns.shared.get(item_id)
        own: dict[str, Any] = {"item_id": item_id, "words": words, "settings": design.settings}
        places = None if shared is None else shared.places
        results = scramble_conditions(text, self.operations, seed=design.seed, places=places, **own)
        if by_hand and common:
            self._require_all(text, words or (), results)
        return {level: by_hand[level] if level in by_hand else results[level] for level in self.order}

    def _same_words(self, text: str, by_hand: Mapping[str, Scrambled]) -> tuple[int, ...]:
        changed = {
            level: tuple(dict.fromkeys(change.word for change in scrambled.changes))
            for level, scrambled in by_hand.items()
        }
        (first, words), *others = changed.items()
        for level, words_there in others:
            if words_there != words:
                raise UserError(
                    f"column {self.hand_made[level]!r} changes {_listed(text, words_there)}, column "
                    f"{self.hand_made[first]!r} {_listed(text, words)}; with dose: equal every condition "
                    "changes the same words",
                    mend="Change the same words in each column, or set dose: as_published.",
                )
        return words

    def _require_all(self, text: str, words: Sequence[int], results: Mapping[str, Scrambled]) -> None:
        for level, result in results.items():
            operation = self.operations[level]
            if operation.changes_nothing or operation.rate < 1 or operation.type.unit != "letter":
                continue
            missing = [word for word in words if word not in {change.word for change in result.changes}]
            if missing:
                raise UserError(
                    f"level {level!r} ({operation.label}) cannot change {_listed(text, missing)}, which the columns "
                    "made by hand change; with dose: equal every condition changes the same words",
                    mend="Leave that word as it is in the columns, or set dose: as_published.",
                )


def _listed(text: str, words: Sequence[int]) -> str:
    all_words = find_words(text)
    return ", ".join(repr(all_words[word].text) for word in words)


def _cell(row: Mapping[str, Any], column: str, where: str) -> str:
    if column not in row:
        error = missing_column(where, column, row)
        raise ItemlessRow(error.message, mend=error.mend)
    value = row[column]
    if value is None or not str(value).strip():
        raise ItemlessRow(f"{where}: {column!r} is empty")
    return str(value)


def _choices(
    row: Mapping[str, Any], choices: Sequence[str] | str | None, where: str
) -> tuple[str, ...] | None:
    if choices is None:
        return None
    if isinstance(choices, str):
        cell = row.get(choices)
        given = cell if isinstance(cell, list) else _cell(row, choices, where).split(CHOICE_SEPARATOR)
    else:
        given = list(choices)
    options = tuple(nfc(str(option).strip()) for option in given)
    if len(options) < 2 or len(set(options)) < len(options) or not all(options):
        raise ItemlessRow(f"{where}: choices are {list(options)!r}; give two or more different ones")
    return options


def _answer(given: str, options: Sequence[str] | None, where: str, several: bool) -> str:
    answer = nfc(given)
    if several and options is not None:
        parts = [part.strip() for part in answer.split(CHOICE_SEPARATOR)]
        for part in parts:
            _answer(part, options, where, several=False)
        return ANSWERS_BETWEEN.join(option for option in options if option in parts)
    if options is not None and answer not in options:
        known = unknown_name("answer", answer, options)
        raise ItemlessRow(f"{where}: answer {answer!r} is none of the choices", mend=known.mend)
    return answer


def _only_level(row: Mapping[str, Any], column: str | None, levels: Sequence[str], where: str) -> str | None:
    if column is None:
        return None
    level = _cell(row, column, where)
    if level not in levels:
        known = unknown_name("level", level, levels)
        raise ItemlessRow(f"{where}: {column} is {level!r}, which is no level of the design", mend=known.mend)
    return level


def word_items(
    words: Sequence[str], design: ItemDesign, *, foils: Sequence[str] | Mapping[str, str]
) -> TaskItems:
    """Make items from words: word by word, each in every condition, with the word and its foil as choices."""
    design = replace(design, set_name=design.set_name or "words")
    plain = [nfc(word.strip()) for word in words]
    twice = [word for word, number in Counter(plain).items() if number > 1]
    if twice:
        raise UserError(f"{design.source}: the word {twice[0]!r} occurs {Counter(plain)[twice[0]]} times")
    chosen = (
        _given_foils(plain, foils, design.source)
        if isinstance(foils, Mapping)
        else choose_foils(plain, foils)
    )
    items: list[Item] = []
    skipped: list[Skipped] = []
    faults: list[UserError] = []
    for word in plain:
        foil = chosen[word]
        distance = {"foil_distance": OSA.distance(word, foil)}
        record = Record(word, design.source, None, None, {"word": word}, None, None, extra=distance)
        asked = TaskRecord(record, "word", choices=tuple(sorted((word, foil))), answer=word)
        try:
            fields = _in_conditions(word, foil, design)
        except UserError as error:
            faults.append(error)
            skipped.append(Skipped(word, design.source, error.message))
            continue
        levels = design.factor_levels
        items += [
            item_of(asked, {"word": withheld_shown(field, levels)}, levels.condition(field.level), design)
            for field in fields
        ]
    if faults and design.on_bad == "stop":
        raise together(faults)
    return TaskItems(tuple(items), tuple(skipped))


def _in_conditions(word: str, foil: str, design: ItemDesign) -> list[DisplayedField]:
    shown = show_in_conditions(word, design.operations, design, field="word", item_id=word)
    require_change(shown, design.operations, word)
    for shown_field in shown:
        if shown_field.text == foil:
            raise UserError(
                f"item {word!r}: condition {shown_field.level!r} ({shown_field.operation}) shows its foil {shown_field.text!r}",
                mend="Give the word another foil, or set avoid_real_words: words.",
            )
    return shown


def _given_foils(words: Sequence[str], foils: Mapping[str, str], source: str) -> dict[str, str]:
    given = {nfc(word.strip()): nfc(foil.strip()) for word, foil in foils.items()}
    wrong = [word for word in words if not given.get(word) or given[word] == word]
    if wrong:
        raise UserError(f"{source}: the word {wrong[0]!r} has no foil, or is its own")
    return {word: given[word] for word in words}


def choose_foils(words: Sequence[str], candidates: Sequence[str]) -> dict[str, str]:
    """Choose for each word the closest other word of its length.

    Close means the fewest edits with transpositions (optimal string alignment), then the most letters in common,
    then the alphabet. Anagrams of the word are no foils, since a scrambled word would fit both; neither is a word
    of the list itself. A foil is used once as long as there are others; the closest pairs choose first.
    """
    taken = {word.casefold() for word in words}
    pool = sorted({nfc(c.strip()) for c in candidates if nfc(c.strip()).casefold() not in taken})
    by_length: dict[int, list[str]] = {}
    for candidate in pool:
        by_length.setdefault(len(candidate), []).append(candidate)
    ranked = {word: _ranked(word, by_length.get(len(word), [])) for word in words}
    for word, options in ranked.items():
        if not options:
            raise UserError(
                f"no foil for {word!r}: no candidate has {len(word)} letters and is no anagram of it",
                mend="Give more candidates for foils.",
            )
    foils: dict[str, str] = {}
    used: set[str] = set()
    for word in sorted(words, key=lambda word: (ranked[word][0][0], word)):
        free = next((foil for _, foil in ranked[word] if foil not in used), ranked[word][0][1])
        foils[word] = free
        used.add(free)
    return foils


def _ranked(word: str, candidates: Sequence[str]) -> list[tuple[tuple[int, int], str]]:
    """Return (edits, letters not shared) and candidate, closest first."""
    letters = Counter(word.casefold())
    ranked = []
    for candidate in candidates:
        missing = (letters - Counter(candidate.casefold())).total()
        if missing:
            ranked.append(((OSA.distance(word.casefold(), candidate.casefold()), missing), candidate))
    return sorted(ranked)
