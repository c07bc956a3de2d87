"""Single words for lexical decision: words, and nonwords made from them, each base word in one form a list.

Nonwords come in matched pairs: two letters of the base word exchanged, or the same two replaced. The forms of a base
word are one item in several conditions, so a Latin square never shows two of them in one list. Word fillers make up for
the difference between words and nonwords, so that yes and no are equally often right.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from stimuli.corpora.corpus import Record
from stimuli.errors import UserError
from stimuli.item import Item, Role
from stimuli.lexicon import require_lexicon, zipf
from stimuli.lexicon.base_words import (
    WordBounds,
    can_draw,
    draw_bases,
    drawable_words,
    match_fillers,
    relation,
)
from stimuli.lexicon.neighbourhoods import bigram_frequency
from stimuli.recipes.conditions import DisplayedField, ItemDesign, Skipped, TaskItems, describe, draw_some
from stimuli.recipes.task_items import TaskRecord, Unsuitable, has_text, item_of, where_is
from stimuli.scramble.conditions import Scrambled
from stimuli.scramble.text import scramble_conditions
from stimuli.scramble.types import Operation, parse_operation
from stimuli.words import nfc, without_case

FIELD = "word"
WORD, NONWORD = ANSWERS = ("word", "nonword")
FILLER = "filler"
LEXICAL_DECISION = "lexical_decision"
DEFAULT_NUMBER = 80
_ATTEMPTS = 24
_LIST, _LIST_LICENCE = "wordfreq", "CC BY-SA 4.0"


@dataclass(frozen=True)
class WordOptions:
    """Settings for drawing words."""

    letters: tuple[int, int] = (6, 9)  # fewest and most letters of base words
    zipf: tuple[float, float] = (3.0, 5.0)  # lowest and highest Zipf frequency of base words
    filler_zipf: tuple[float, float] = (4.0, 7.0)  # of word fillers
    fillers: int | None = None  # None for as many as make yes and no equally frequent in every list


def lexical_decision_items(
    records: Sequence[Record], design: ItemDesign, options: Mapping[str, Any] | None = None
) -> TaskItems:
    """Make items for a lexical decision: base words in every form, then word fillers."""
    require_lexicon(design.settings.language)
    _require_once(records)
    given: dict[str, Any] = {
        name: value if name == "fillers" else tuple(value) for name, value in (options or {}).items()
    }
    wanted = WordOptions(**given)
    strictness = design.settings.strictness
    settings = replace(
        design.settings, avoid_real_words="words" if strictness == "off" else strictness, words="all"
    )
    forms = _Forms(replace(design, settings=settings, set_name=design.set_name or LEXICAL_DECISION))
    bases = [record for record in records if record.extra.get("role") != FILLER]
    named_fillers = [record for record in records if record.extra.get("role") == FILLER]
    skipped: list[Skipped] = []
    if bases:
        usable = list(_usable(bases, forms, skipped))
        chosen = draw_some(usable, design.number, seed=design.seed, key=_word, what="base words")
    else:
        chosen = draw_bases(
            forms.of_drawn,
            DEFAULT_NUMBER if design.number is None else design.number,
            bounds=WordBounds(wanted.letters, wanted.zipf),
            language=settings.language,
            seed=design.seed,
        )
    needed = forms.fillers_to_balance(len(chosen)) if wanted.fillers is None else wanted.fillers
    fillers = _fillers([_word(base) for base in chosen], named_fillers, needed, wanted.filler_zipf, forms)
    items = [item for formed in chosen for item in forms.items(formed)]
    items += [forms.filler(record) for record in fillers]
    _require_distinct(items)
    return TaskItems(tuple(items), tuple(skipped))


@dataclass(frozen=True)
class _Formed:
    record: Record
    shown: Sequence[DisplayedField]


def _word(formed: _Formed) -> str:
    return formed.record.texts[FIELD]


@dataclass(frozen=True)
class _Forms:
    """The forms that base words come in."""

    design: ItemDesign

    def __post_init__(self) -> None:
        if self.design.factor_levels.withheld:
            raise UserError("task lexical_decision: a word cannot be withheld")
        if not self.nonwords:
            raise UserError(
                "task lexical_decision: no level makes a nonword",
                mend="Give for example {TL: transpose:internal, SL: substitute:internal}.",
            )

    @property
    def language(self) -> str:
        """Language of the words."""
        return self.design.settings.language

    @functools.cached_property
    def nonwords(self) -> list[str]:
        """Levels that make a nonword."""
        return [level for level, done in self.design.operations.items() if not done.changes_nothing]

    def fillers_to_balance(self, bases: int) -> int:
        """Return how many word fillers make words as frequent as nonwords in every list."""
        forms, nonwords = len(self.design.operations), len(self.nonwords)
        if 2 * nonwords < forms:
            raise UserError(
                f"{forms - nonwords} of {forms} levels show words, so that words outnumber nonwords",
                mend="Give at least as many levels that make nonwords.",
            )
        if nonwords < forms and bases % forms:
            raise UserError(
                f"{bases} base words in {forms} forms do not give every list as many words as nonwords",
                mend=f"Take a multiple of {forms} base words, or set fillers.",
            )
        return bases * (2 * nonwords - forms) // forms

    def of(self, record: Record) -> _Formed:
        """Return a word's form at every level, none of the changed ones a listed string, of several draws the most regular."""
        word = record.texts[has_text(record, FIELD)]
        drawn: list[Mapping[str, Scrambled]] = []
        for occurrence in range(_ATTEMPTS):
            drawn_by: dict[str, Any] = {"seed": self.design.seed, "item_id": word, "occurrence": occurrence}
            results = scramble_conditions(
                word, self.design.operations, settings=self.design.settings, **drawn_by
            )
            changed = [results[level] for level in self.nonwords]
            if not all(len(result.changes) == 1 for result in changed):
                why = [left.reason for result in changed for left in result.left_intact]
                raise Unsuitable(
                    f"{where_is(record)}: {word!r} cannot be made a nonword in every condition"
                    + (f" ({why[0]})" if why else ""),
                    mend="Use on_bad: skip to leave such words out.",
                )
            if not any(zipf(result.text, self.language) for result in changed):
                drawn.append(results)
        if drawn:
            best = min(drawn, key=self._irregularity)
            return _Formed(record, self._described(word, best, self.design.operations))
        raise Unsuitable(
            f"{where_is(record)}: forms of {word!r} are listed words or frequent misspellings",
            mend="Use on_bad: skip to leave such words out.",
        )

    def of_drawn(self, word: str) -> _Formed | None:
        """Return the forms of a drawn word, None where some cannot be made of bigrams that words have."""
        try:
            formed = self.of(_drawn(word))
        except Unsuitable:
            return None
        legal = all(text.covariates["shown_bigram_min"] != 0 for text in formed.shown)
        return formed if legal else None

    def _irregularity(self, results: Mapping[str, Scrambled]) -> tuple[int, int, float]:
        """Count forms with a bigram of no word, and of no word at its place; measure how far rarest bigrams are apart."""
        pairs = [bigram_frequency(results[level].text, self.language) for level in self.nonwords]
        known = [pair for pair in pairs if pair is not None]
        rarest = [pair.bigram_min for pair in known] or [0.0]
        return (
            sum(pair.bigram_type_min == 0 for pair in known),
            sum(pair.bigram_position_type_min == 0 for pair in known),
            max(rarest) - min(rarest),
        )

    def items(self, formed: _Formed) -> Iterator[Item]:
        """Yield a base word's items, level by level."""
        for text in formed.shown:
            yield self._item(formed.record, text, self.design.factor_levels.condition(text.level), "test")

    def filler(self, record: Record) -> Item:
        """Return the item of a word filler; it has no level, for every list shows it."""
        word = record.texts[has_text(record, FIELD)]
        (shown,) = self._described(word, {"": Scrambled(nfc(word))}, {"": parse_operation("none")})
        return self._item(record, shown, {}, "filler")

    def _described(
        self, word: str, results: Mapping[str, Scrambled], operations: Mapping[str, Operation]
    ) -> list[DisplayedField]:
        return describe(word, results, operations, field=FIELD, language=self.language)

    def _item(self, record: Record, shown: DisplayedField, condition: Mapping[str, str], role: Role) -> Item:
        difference = relation(shown.intact, shown.text)
        known = {
            "relation": difference.kind,
            "site": difference.places[0] + 1 if difference.places else None,
            "distance": difference.distance,
        }
        extra = {name: value for name, value in record.extra.items() if name != "role"}
        answer = WORD if difference.kind == "same" else NONWORD
        asked = TaskRecord(replace(record, extra={**known, **extra}), FIELD, choices=ANSWERS, answer=answer)
        return item_of(asked, {FIELD: shown}, condition, replace(self.design, role=role))


def _drawn(word: str) -> Record:
    return Record(word, _LIST, None, _LIST_LICENCE, {FIELD: word}, None, None)


def _usable(bases: Sequence[Record], forms: _Forms, skipped: list[Skipped]) -> Iterator[_Formed]:
    for record in bases:
        try:
            yield forms.of(record)
        except Unsuitable as error:
            if forms.design.on_bad == "stop":
                raise
            skipped.append(Skipped(record.record_id, record.corpus, error.message))


def _fillers(
    bases: Sequence[str], named: Sequence[Record], needed: int, bounds: tuple[float, float], forms: _Forms
) -> list[Record]:
    """Return the fillers named where there are enough of them, else drawn ones."""
    if not needed:
        return []
    if named:
        if len(named) < needed:
            none = "none at all to have them drawn, " if can_draw(forms.language) else ""
            raise UserError(
                f"{needed} word fillers are needed; {len(named)} are given",
                mend=f"Give more fillers, {none}or say how many under fillers: (0 for none).",
            )
        return draw_some(named, needed, seed=forms.design.seed, key=attrgetter("record_id"), what="fillers")
    language = forms.language
    if not can_draw(language):
        raise UserError(
            f"{needed} word fillers are needed to make yes and no equally often right, and words of language {language!r} "
            "cannot be drawn",
            mend="Give fillers among the words (rows with role: filler in a table), or set fillers: 0 to do without.",
        )
    lengths = [len(word) for word in bases]
    pool = drawable_words(language, WordBounds((min(lengths), max(lengths)), bounds))
    words = match_fillers(
        bases,
        needed,
        pool=pool,
        seed=forms.design.seed,
        where=f"the list between Zipf {bounds[0]:g} and {bounds[1]:g}",
        mend="Widen filler_zipf, or give your own fillers.",
    )
    return [_drawn(word) for word in words]


def _require_once(records: Sequence[Record]) -> None:
    """Raise an error if base words and fillers include a word twice."""
    seen: set[str] = set()
    for record in records:
        word = without_case(record.texts[has_text(record, FIELD)])
        if word in seen:
            raise UserError(
                f"word {word!r} occurs twice among words and fillers", mend="List each word once."
            )
        seen.add(word)


def _require_distinct(items: Sequence[Item]) -> None:
    """Refuse a string that two items show."""
    first: dict[str, str] = {}
    for item in items:
        string = without_case(item.shown[FIELD])
        if first.setdefault(string, item.item_id) != item.item_id:
            raise UserError(
                f"items {first[string]!r} and {item.item_id!r} both show {string!r}",
                mend="Leave one of the two words out.",
            )
