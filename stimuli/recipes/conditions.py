"""One text in every condition, what conditions did to their items, and draws of some of the materials."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal, TypeVar, cast

from rapidfuzz.distance import Levenshtein

from stimuli.covariates import Covariates, displacement, text_covariates
from stimuli.errors import UserError
from stimuli.item import ChangeRecord, Item, LeftIntactRecord, Role
from stimuli.scramble.alignment import count_asked, words_by_count
from stimuli.scramble.changes import Change
from stimuli.scramble.conditions import DEFAULT, Scrambled, ScrambleSettings
from stimuli.scramble.letter_forms import ONLY_REAL_WORDS
from stimuli.scramble.published import PUBLISHED_SEED, published_operation
from stimuli.scramble.text import common_words, scramble_conditions
from stimuli.scramble.types import Operation, OperationSpec, Unit, parse_operation
from stimuli.seeds import stable_seed
from stimuli.words import WITHOUT_SPACES, find_words, nfc, word_starts

Thing = TypeVar("Thing")


def draw_some(
    things: Sequence[Thing],
    number: int | None,
    *,
    seed: int,
    key: Callable[[Thing], str],
    what: str = "items",
) -> list[Thing]:
    """Draw a number of things and keep them in the order given."""
    if number is None:
        return list(things)
    if not 0 <= number <= len(things):
        raise UserError(f"{number} {what} were requested, but there are {len(things)}")
    lucky = sorted(range(len(things)), key=lambda place: stable_seed(seed, "draw", what, key(things[place])))
    return [things[place] for place in sorted(lucky[:number])]


WITHHOLD = "withhold"
WITHHELD = "withheld"


OnBad = Literal["stop", "skip"]


@dataclass(frozen=True)
class Skipped:
    """A record that made no item, and why."""

    record_id: str
    corpus: str
    reason: str


@dataclass(frozen=True)
class TaskItems:
    """Items, examples first, and the records that made none."""

    items: tuple[Item, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True)
class FactorLevels:
    """The levels of a factor: what is done to the text, and at which of them it is withheld instead."""

    factor: str | None  # name of the factor; None for texts as they are, at one level without a name
    given: Mapping[str, OperationSpec]  # operation by level as written, none where the text is withheld
    withheld: frozenset[str] = frozenset()  # levels that show no text

    @classmethod
    def parse(cls, factor: str | None, levels: Mapping[str, OperationSpec]) -> FactorLevels:
        """Return levels with operations; ``withhold`` shows no text at all."""
        if factor is None:
            return cls(None, {"": "none"})
        withheld = {level for level, given in levels.items() if given == WITHHOLD}
        as_written = {level: "none" if level in withheld else given for level, given in levels.items()}
        return cls(factor, as_written, frozenset(withheld))

    def operations(self, settings: ScrambleSettings) -> dict[str, Operation]:
        """Return the operations of the corrected mode by level."""
        return {
            level: parse_operation(given, default_rate=settings.rate) for level, given in self.given.items()
        }

    @functools.cached_property
    def published_seeds(self) -> dict[str, int]:
        """The seed of every level's published pass; an intact level takes that of the others."""
        seeds = {level: published_operation(given).seed for level, given in self.given.items()}
        default = next((seed for seed in seeds.values() if seed is not None), PUBLISHED_SEED)
        return {level: default if seed is None else seed for level, seed in seeds.items()}

    def condition(self, level: str) -> dict[str, str]:
        """Return a level as an item's condition; empty without a factor."""
        return {} if self.factor is None else {self.factor: level}


@dataclass(frozen=True, kw_only=True)
class ItemDesign:
    """Settings by which any recipe makes items: the study's factor, levels, scramble settings and seed."""

    seed: int  # the study's
    factor: str | None = None  # name of the factor; None for texts as they are
    levels: Mapping[str, Any] = field(default_factory=dict)  # what is done to a text, by level
    settings: ScrambleSettings = DEFAULT
    published: bool = False  # copied from a paper, faults included
    number: int | None = None  # records drawn from a corpus, or words of a language; None for all
    on_bad: OnBad = "stop"  # whether a record that makes no item stops the build or is listed
    set_name: str | None = None  # name of the set; None for that of the recipe
    role: Role = "test"
    source: str = "table"  # where rows of a table come from, in provenance and messages

    @functools.cached_property
    def factor_levels(self) -> FactorLevels:
        """The levels as recipes of whole texts read them."""
        return FactorLevels.parse(self.factor, self.levels)

    @functools.cached_property
    def operations(self) -> dict[str, Operation]:
        """The operations of the corrected mode by level."""
        return self.factor_levels.operations(self.settings)


@dataclass(frozen=True)
class DisplayedField:
    """A field's text as one condition shows it, with what an item says about that."""

    field: str
    level: str
    text: str
    intact: str
    operation: str
    changes: tuple[ChangeRecord, ...]
    left_intact: tuple[LeftIntactRecord, ...]
    covariates: Covariates


def withheld_shown(shown: DisplayedField, levels: FactorLevels) -> DisplayedField:
    """Leave the text out where its level withholds it."""
    if shown.level not in levels.withheld:
        return shown
    return replace(shown, text="", operation=WITHHELD, left_intact=())


def show_in_conditions(
    text: str,
    operations: Mapping[str, Operation],
    design: ItemDesign,
    *,
    field: str,
    item_id: str,
    words: Collection[int] | None = None,
) -> list[DisplayedField]:
    """Scramble a text once per level and describe each result as an item does."""
    results = scramble_conditions(
        text, operations, seed=design.seed, item_id=item_id, words=words, settings=design.settings
    )
    return describe(text, results, operations, field=field, language=design.settings.language)


def describe(
    text: str,
    results: Mapping[str, Scrambled],
    operations: Mapping[str, Operation],
    *,
    field: str,
    language: str,
) -> list[DisplayedField]:
    """Describe scrambled texts of one intact text as an item does."""
    intact = nfc(text)
    targets = {
        change.word for result in results.values() for change in result.changes if change.unit == "letter"
    }
    # With equal doses all conditions leave the same words, and share their records.
    left_of = {
        left: tuple(
            [LeftIntactRecord(field=field, word=at, intact=word, reason=why) for at, word, why in left]
        )
        for left in {result.left_intact for result in results.values()}
    }
    return [
        DisplayedField(
            field=field,
            level=level,
            text=result.text,
            intact=intact,
            operation=operations[level].label,
            changes=tuple(change_record(change, field) for change in result.changes),
            left_intact=left_of[result.left_intact],
            covariates=text_covariates(text, language=language, targets=targets, changes=result.changes),
        )
        for level, result in results.items()
    ]


def change_record(change: Change, field: str) -> ChangeRecord:
    """Return a change as an item says it."""
    return ChangeRecord(
        field=field, unit=cast(Unit, change.unit), word=change.word, start=change.start, intact=change.intact, shown=change.shown,
        permutation=list(change.permutation), displaced=change.displaced, mean_displacement=change.mean_displacement,
        substituted=change.substituted, inserted=change.inserted, deleted=change.deleted,
    )  # fmt: skip


def option_to_change(text: DisplayedField) -> str:
    """Return the option by which a condition that changed no word would change one."""
    is_unspaced = any(WITHOUT_SPACES in left["reason"] for left in text.left_intact)
    return "set unspaced: change" if is_unspaced else "lower min_letters"


def require_change(shown: list[DisplayedField], operations: Mapping[str, Operation], item_id: str) -> None:
    """Refuse an item in which a condition changes no letter, unless its rate is too low for a text so short.

    A text of one sentence or one word cannot be reordered; that is recorded in ``left_intact`` and is not an error.
    """
    for displayed in shown:
        operation = operations[displayed.level]
        may_stay = operation.texts < 1 or operation.type.unit != "letter"
        if operation.changes_nothing or may_stay or displayed.changes:
            continue
        if operation.rate < 1 and common_words(displayed.intact, [operation]):
            continue
        reasons = [f"{left['intact']!r} ({left['reason']})" for left in displayed.left_intact]
        raise UserError(
            f"item {item_id!r}: condition {displayed.level!r} ({operation.label}) can change no word"
            + (f": {', '.join(reasons)}" if reasons else ""),
            mend=f"Mark another word, {option_to_change(displayed)}, or take the item out.",
        )


@dataclass(frozen=True)
class ConditionSummary:
    """One condition of one set of materials."""

    set_name: str  # the materials
    condition: Mapping[str, str]  # level by factor
    items: int  # number of items
    # mean number of words an item whose letters changed or that left their place (numbers and signs are no words, here and below)
    changed_words: float
    share_changed: float  # share of all words that changed, 0 to 1
    moved_sentences: float  # mean number of sentences an item that left their place
    # mean number of letters that left their place in a changed word, of words in a sentence, of sentences in a text: after unit
    displaced: float
    displacement: float  # mean distance from their place of those that left it, in places; 0 where none did
    mean_displacement: float  # over all letters of the changed words, those that stayed included
    substituted: int  # letters replaced, added and taken out, over all items
    inserted: int
    deleted: int
    edits: float  # edit distance of a text from the intact one, mean per item
    left_intact: Mapping[str, int]  # number of words that were meant to change and stay, by reason
    only_words: Mapping[int, float]  # share of words of a length that stay because every other form is a word
    operations: tuple[str, ...]  # operations that made the items, as in their provenance
    asked: int | None = None  # how many exchanges, insertions or deletions a word the operation asks for
    words_by_count: Mapping[int, int] = field(default_factory=dict)  # changed words by how many they took
    unit: str = "letter"  # what left its place: letter, word or sentence; several joined by ,

    @property
    def fewer(self) -> Mapping[int, int]:
        """Number of changed words by how many they took, without those that took the whole count."""
        return {made: words for made, words in self.words_by_count.items() if made != self.asked}


def describe_conditions(items: Sequence[Item]) -> list[ConditionSummary]:
    """Return what each condition did to its test items."""
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[Item]] = {}
    for item in items:
        if item.role == "test":
            groups.setdefault((item.set_name, tuple(item.condition.items())), []).append(item)
    return [_summary(name, dict(condition), group) for (name, condition), group in groups.items()]


def _summary(set_name: str, condition: Mapping[str, str], items: Sequence[Item]) -> ConditionSummary:
    changes = [change for item in items for change in item.changes]
    numbers = [_changed_words(item) for item in items]
    words = sum(len(word_starts(nfc(text))) for item in items for text in item.intact.values())
    operations = tuple(dict.fromkeys(item.provenance["operation"] for item in items))
    asked = count_asked(operations[0]) if len(operations) == 1 else None
    of_letters = [change for change in changes if change.get("unit", "letter") == "letter"]
    moved = [sum(one["displaced"] for one in item.changes if one.get("unit") == "sentence") for item in items]
    return ConditionSummary(
        set_name=set_name,
        condition=condition,
        items=len(items),
        changed_words=fmean(numbers),
        share_changed=sum(numbers) / words if words else 0.0,
        moved_sentences=fmean(moved),
        displaced=_mean([change["displaced"] for change in changes]),
        displacement=displacement(changes),
        mean_displacement=_mean([change["mean_displacement"] for change in changes]),
        substituted=sum(_count(change, "substituted") for change in changes),
        inserted=sum(_count(change, "inserted") for change in changes),
        deleted=sum(_count(change, "deleted") for change in changes),
        edits=fmean(sum(map(_edits, item.changes)) for item in items),
        left_intact=_reasons(items),
        only_words=_only_words(items),
        operations=operations,
        asked=asked,
        words_by_count={} if asked is None else words_by_count(of_letters),
        unit=", ".join(dict.fromkeys(str(change.get("unit", "letter")) for change in changes)) or "letter",
    )


def doses_that_do_not_rise(conditions: Sequence[ConditionSummary], factor: str | None) -> list[str]:
    """Name the series of one operation, by rate or count, whose texts do not get further from the intact one.

    ``factor`` scrambles; conditions are compared at the same levels of the others.
    """
    series: dict[tuple[object, ...], list[tuple[tuple[float, int], ConditionSummary]]] = {}
    for condition in conditions:
        try:
            (operation,) = map(parse_operation, condition.operations)
        except (UserError, ValueError):  # several operations, or one made by hand or by a paper's code
            continue
        options = dict(operation.options)
        default = next((option.default for option in operation.type.options if option.name == "count"), 1)
        count = int(options.pop("count", default))
        others = tuple(level for name, level in condition.condition.items() if name != factor)
        key = condition.set_name, others, operation.type.name, operation.texts, tuple(sorted(options.items()))
        series.setdefault(key, []).append(((operation.rate, count), condition))
    notes = []
    for members in series.values():
        ordered = sorted(members, key=lambda member: member[0])
        for (less, low), (more, high) in itertools.pairwise(ordered):
            if less != more and high.edits <= low.edits:
                names = [", ".join(one.condition.values()) for one in (low, high)]
                notes.append(
                    f"{names[1]} should change more than {names[0]}, but its texts are no further from the intact ones "
                    f"({high.edits:.1f} and {low.edits:.1f} edits an item): it changes {high.changed_words:.1f} words an item, "
                    f"{names[0]} {low.changed_words:.1f}."
                )
    return notes


def _edits(change: ChangeRecord) -> int:
    return Levenshtein.distance(change["intact"], change["shown"])


@functools.lru_cache(maxsize=4096)
def _word_lengths(text: str) -> Counter[int]:
    return Counter(len(word.text) for word in find_words(text))


def _only_words(items: Sequence[Item]) -> dict[int, float]:
    # with equal doses a word also stays where another condition lacks a form
    left = Counter(
        len(word["intact"])
        for item in items
        for word in item.left_intact
        if f"{re.split('[@;]', item.provenance['operation'])[0]}: {ONLY_REAL_WORDS}"
        in word["reason"].split("; ")
    )
    if not left:
        return {}
    words: Counter[int] = Counter()
    for item in items:
        for text in item.intact.values():
            words.update(_word_lengths(text))
    return {letters: left[letters] / words[letters] for letters in sorted(left) if words[letters]}


def _changed_words(item: Item) -> int:
    letters = sum(change.get("unit", "letter") == "letter" for change in item.changes)
    return letters + sum(_displaced_words(change) for change in item.changes if change.get("unit") == "word")


def _displaced_words(change: ChangeRecord) -> int:
    """Count the words among what left its place in a clause: papers moved numbers and signs between two spaces with them."""
    pieces = change["intact"].split(" ")
    if len(pieces) != len(change["permutation"]):
        return change["displaced"]
    return sum(
        source is not None and source != place and bool(word_starts(nfc(pieces[source])))
        for place, source in enumerate(change["permutation"])
    )


def _count(change: Mapping[str, object], name: str) -> int:
    value = change.get(name, 0)
    return value if isinstance(value, int) else 0


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def _reasons(items: Sequence[Item]) -> dict[str, int]:
    words_by_reason = Counter(left["reason"] for item in items for left in item.left_intact)
    counted: Counter[str] = Counter()
    for reasons, words in words_by_reason.items():
        # A reason names every operation that it holds for: "transpose:initial: too short; …".
        counted.update(dict.fromkeys([part.rpartition(": ")[2] for part in reasons.split("; ")], words))
    return dict(sorted(counted.items()))
