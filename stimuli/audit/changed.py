"""Effects of conditions on words: number and size of the changes, and changed forms that are real words."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from stimuli.audit.findings import AuditFinding, Level, by_set, counted, quoted
from stimuli.covariates import displacement
from stimuli.item import Item
from stimuli.lexicon import Strictness, is_real_word, tells_words, words_source, zipf
from stimuli.scramble.types import without_gaps
from stimuli.words import without_case


@dataclass(frozen=True)
class IdenticalLevels:
    """Two levels of a factor that show some items in the same way."""

    set_name: str
    factor: str
    levels: tuple[str, str]  # the two
    same: int  # items shown alike in both, all else equal
    compared: int  # items that either of the two changes (all items where neither changes any)

    def finding(self) -> AuditFinding:
        """Return a finding with the number of items that are the same at both levels, and the remedy if all are."""
        which = f"{self.set_name}: levels {' and '.join(self.levels)} of {self.factor} show"
        if self.same == self.compared:
            what = "there is nothing to compare; take one of them out, change its options, or take texts in which they differ"
            return AuditFinding("mend", SECTION, f"{which} the same in every item: {what}")
        items = counted(self.compared, "item that they change", "items that they change")
        return AuditFinding("look", SECTION, f"{which} the same in {self.same:,} of {items}")


def levels_alike(items: Sequence[Item]) -> tuple[IdenticalLevels, ...]:
    """Find levels of factors within items that show some items alike.

    Items that no level of the two changes (the intact condition crossed with options of a scramble) count only
    where the two change no item at all.
    """
    lines: dict[tuple[str, str, tuple[tuple[str, str], ...]], dict[str, Item]] = {}
    for item in items:
        for factor, level in item.condition.items():
            others = tuple((name, own) for name, own in item.condition.items() if name != factor)
            key = item.set_name, factor, (("", item.item_id), *others)
            lines.setdefault(key, {})[level] = item
    pairs: dict[tuple[str, str, str, str], list[tuple[bool, bool]]] = {}
    for (set_name, factor, _), by_level in lines.items():
        for (one, first), (other, second) in itertools.combinations(by_level.items(), 2):
            changes = _changes_anything(first) or _changes_anything(second)
            pairs.setdefault((set_name, factor, one, other), []).append((changes, _same(first, second)))
    identical = []
    for (set_name, factor, one, other), compared in pairs.items():
        changed = [same for changes, same in compared if changes] or [same for _, same in compared]
        if any(changed):
            identical.append(IdenticalLevels(set_name, factor, (one, other), sum(changed), len(changed)))
    return tuple(identical)


def _changes_anything(item: Item) -> bool:
    return bool(item.changes) or any(item.shown.get(field) != text for field, text in item.intact.items())


def _same(item: Item, other: Item) -> bool:
    return (item.shown, item.choices, item.answer) == (other.shown, other.choices, other.answer)


SECTION = "changes"
WORD_UNITS = ("letter", None)
_COPIES = ("published ", "released")


@dataclass(frozen=True)
class RealWord:
    """A changed form that is a word of the language; ``zipf`` is its frequency."""

    set_name: str
    level: str
    item_id: str
    intact: str
    shown: str
    zipf: float


@dataclass(frozen=True)
class Condition:
    """Changes that one condition makes in one set."""

    set_name: str  # the set, and its condition in words
    level: str
    items: int  # items shown in it
    unchanged: int  # items of it in which nothing is changed
    words: float  # mean number of changed words (or sentences) per item
    fewest: int  # least and greatest number of them
    most: int
    displaced: float  # mean number of pieces that left their place, per changed word
    displacement: float  # mean distance from their place of those that left it, in places; 0 where none did
    # mean pieces substituted, inserted and deleted per changed word, where there are any
    made: dict[str, float]
    real_words: int  # changed forms that are words of the language; that equal the intact word
    identical: int
    left_intact: dict[str, int]  # words that should have changed, by reason


@dataclass(frozen=True)
class Changes:
    """Every condition with its changes, the changed forms that are words, and levels that show the same."""

    word_list: str | None  # the list that says which forms are words
    is_avoiding: bool  # whether the study avoids words
    conditions: tuple[Condition, ...]
    real_words: tuple[RealWord, ...]
    identical: tuple[RealWord, ...]
    uneven: tuple[str, ...]
    copied: tuple[str, ...] = ()
    alike: tuple[IdenticalLevels, ...] = ()
    left: dict[str, int] = field(default_factory=dict)

    def findings(self) -> list[AuditFinding]:
        """Return changed forms that are words, changes without effect, and sets with unequal numbers of changes."""
        findings = [levels.finding() for levels in self.alike]
        for set_name in dict.fromkeys(condition.set_name for condition in self.conditions):
            same = [word.intact for word in self.identical if word.set_name == set_name]
            real = [f"{w.shown} (for {w.intact})" for w in self.real_words if w.set_name == set_name]
            left = self.left.get(set_name, 0)
            copy = set_name in self.copied
            texts = [
                f"changed words that equal the intact: {quoted(same)}",
                f"{counted(len(real), 'changed form')} that are words: {quoted(real)}",
            ]
            if copy:
                texts[0] += "; so the published procedure leaves them, and these items copy it"
                texts[1] += "; the published procedure does not avoid words, and these items copy it"
            problem: Level = "look" if copy else "mend"
            uneven = "conditions do not change the same number of words in each item"
            rows: tuple[tuple[object, Level, str], ...] = (
                (same, problem, texts[0]),
                (real, problem if self.is_avoiding else "look", texts[1]),
                (set_name in self.uneven, "look", uneven),
                (left, "look", f"{counted(left, 'word')} left intact that should change"),
            )
            findings += [
                AuditFinding(level, SECTION, f"{set_name}: {text}") for holds, level, text in rows if holds
            ]
        if self.word_list is None:
            text = "no word list for this language: changed forms were not looked up"
            findings.append(AuditFinding("look", SECTION, text))
        return findings


def level_of(item: Item) -> str:
    """Return an item's condition in words: ``KFL``, or ``position initial, rate 50`` for two factors."""
    if len(item.condition) == 1:
        return next(iter(item.condition.values()))
    return ", ".join(f"{factor} {level}" for factor, level in item.condition.items()) or "(no factor)"


def changes(
    items: Sequence[Item], language: str, *, aside: Collection[str] = (), strictness: Strictness = "words"
) -> Changes | None:
    """Describe the changes of every condition; None where no item has any, and no two levels show the same."""
    judged_by: Strictness = "words" if strictness == "off" else strictness
    alike = tuple(levels for levels in levels_alike(items) if levels.factor not in aside)
    sets = {item.set_name for item in items if item.changes or item.left_intact}
    sets |= {levels.set_name for levels in alike}
    if not sets:
        return None
    conditions, real, identical = [], [], []
    uneven = []
    for set_name, of_set in by_set(item for item in items if item.set_name in sets).items():
        levels = list(dict.fromkeys(map(level_of, of_set)))
        for level in levels:
            members = [item for item in of_set if level_of(item) == level]
            words, same = _words(members, set_name, level, language, judged_by)
            real += words
            identical += same
            conditions.append(_condition(set_name, level, members, len(words), len(same)))
        if _uneven(of_set):
            uneven.append(set_name)
    copied = {item.set_name for item in items if item.provenance["operation"].startswith(_COPIES)}
    rows = (tuple(conditions), tuple(real), tuple(identical), tuple(uneven), tuple(sorted(sets & copied)))
    return Changes(words_source(language, judged_by), strictness != "off", *rows, alike, _left(items))


def _words(
    items: Sequence[Item], set_name: str, level: str, language: str, strictness: Strictness
) -> tuple[list[RealWord], list[RealWord]]:
    """Return the changed forms that are words of the language, and those that equal the intact word."""
    words, same = [], []
    for item in items:
        for change in item.changes:
            # Words and sentences that moved are words by right.
            if change.get("unit") not in WORD_UNITS:
                continue
            intact, shown = change["intact"], change["shown"]
            # A word with gaps between its letters is still itself.
            bare = without_gaps(shown)
            record = RealWord(set_name, level, item.item_id, intact, shown, zipf(bare, language) or 0.0)
            if shown == intact:
                same.append(record)
            elif (
                tells_words(language)
                and is_real_word(bare, language, strictness)
                and without_case(bare, language) != without_case(intact, language)
            ):
                words.append(record)
    return words, same


def _condition(
    set_name: str, level: str, items: Sequence[Item], real_words: int, identical: int
) -> Condition:
    numbers = [len(item.changes) for item in items]
    records = [change for item in items for change in item.changes]
    made = {
        kind: round(fmean(float(str(record.get(kind, 0))) for record in records), 3)
        for kind in ("substituted", "inserted", "deleted")
        if any(record.get(kind) for record in records)
    }
    return Condition(
        set_name,
        level,
        len(items),
        sum(number == 0 for number in numbers),
        round(fmean(numbers), 3),
        min(numbers),
        max(numbers),
        round(fmean(record["displaced"] for record in records), 3) if records else 0.0,
        round(displacement(records), 3),
        made,
        real_words,
        identical,
        dict(sorted(Counter(word["reason"] for item in items for word in item.left_intact).items())),
    )


def _left(items: Sequence[Item]) -> dict[str, int]:
    words = {
        (item.set_name, item.item_id, word.get("field"), word["word"], word["intact"])
        for item in items
        for word in item.left_intact
    }
    return dict(sorted(Counter(set_name for set_name, *_ in words).items()))


def _uneven(items: Sequence[Item]) -> bool:
    """Return whether an item is changed in different numbers of words in the conditions that change it at all."""
    numbers: dict[str, set[int]] = {}
    for item in items:
        if item.changes:
            numbers.setdefault(item.item_id, set()).add(len(item.changes))
    return any(len(counts) > 1 for counts in numbers.values())
