"""The balance table: every covariate by condition, by answer class and by list, within each set of items."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import NormalDist

from stimuli.audit.findings import AuditFinding, AuditSettings, by_set, counted, line_weights, sidak
from stimuli.covariates import BIGRAMS, NEIGHBOURS, covariate_table, words_covariates
from stimuli.item import Item
from stimuli.matching import SMD_LIMIT, Balance, balance

RELATION = "relation"
"""Covariate by which lexical decisions say how a string was made from its base word."""

ABOUT = (
    *("frequency", "rarest_position", "commonest_position", "first_word_zipf", "last_word_zipf"),
    *("tokens_given", "characters_per_token", "vocabulary"),
)
"""Features of the shortcut test that tell words from nonwords by what these are: nonwords have no frequency, and
tokenizers hold words whole."""

NEARNESS = (*NEIGHBOURS, *BIGRAMS)
"""Covariates for the similarity of a string to the words of the language: words are more similar than most nonwords."""

OF_BASE = ("zipf", "syllables")
"""Covariates of the word itself or of the word that a nonword was made from: nonwords have none."""

BY_DESIGN = ("zipf",)
"""Covariates that a lexical decision varies on purpose: fillers have separate bounds of frequency."""


def decides_words(items: Sequence[Item]) -> bool:
    """Return whether items are those of a lexical decision: one string each, with its relation to a base word."""
    return bool(items) and all(RELATION in item.covariates and len(item.shown) == 1 for item in items)


def string_covariates(items: Sequence[Item], language: str) -> list[Mapping[str, object]]:
    """Describe what each line shows, word or nonword, by measures that both have."""
    shown = words_covariates([next(iter(item.shown.values())) for item in items], language)
    return [
        {
            **{name: _rounded(measured[name]) for name in ("letters", *NEARNESS)},
            **{name: item.covariates.get(name) for name in OF_BASE},
        }
        for item, measured in zip(items, shown, strict=True)
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


SECTION = "balance"
ANSWER, LIST = "answer", "list"
WORDNESS = "wordness"
_MOST_CLASSES = 6
_MOST_NAMED = 4


@dataclass(frozen=True)
class Covariate:
    """One covariate in one grouping."""

    name: str  # the covariate
    largest: float | None  # largest absolute standardised mean difference of two groups
    missing: int  # items without it
    # item: describes the item and should agree; condition: differs within an item from condition to condition, so it
    # follows from what the condition does; design: differs because the study says so; wordness: says how near a
    # string is to the words of the language, where words are told from nonwords
    role: str
    flagged: bool  # it should agree and differs by more than the limit
    # it is flagged, the groups are answer classes, and dealing the items to them at random would give as much: the
    # bound is simultaneous over the covariates
    by_chance: bool


@dataclass(frozen=True)
class CovariateGrouping:
    """The covariates of one set, compared over the groups of one grouping (a factor, ``answer`` or ``list``)."""

    set_name: str
    by: str
    groups: tuple[str, ...]
    covariates: tuple[Covariate, ...]
    balance: Balance


@dataclass(frozen=True)
class GroupBalance:
    """All groupings, and the largest acceptable difference."""

    limit: float
    groupings: tuple[CovariateGrouping, ...]

    def findings(self) -> list[AuditFinding]:
        """Return the covariates that differ and should not."""
        findings = []
        for grouping in self.groupings:
            off = _farthest_first(c for c in grouping.covariates if c.flagged)
            sure = [c for c in off if not c.by_chance]
            dealt = [c for c in off if c.by_chance]
            if grouping.by == LIST:
                findings += self._of_lists(grouping, sure or dealt, by_chance=not sure)
                continue
            apart = f"{grouping.set_name}: groups by {grouping.by} differ by more than {self.limit:.2f} SD in"
            if sure:
                on_purpose = "; what they differ in on purpose belongs into materials.audit.by_design"
                meant = "" if grouping.by == ANSWER else on_purpose
                findings.append(AuditFinding("mend", SECTION, f"{apart} {_named(sure)}{meant}"))
            if dealt:
                chance = f"no more than chance gives with {_number(grouping)} items; more items even it out"
                findings.append(AuditFinding("look", SECTION, f"{apart} {_named(dealt)}, {chance}"))
            findings += self._of_words(grouping)
        return findings

    def _of_lists(
        self, grouping: CovariateGrouping, off: Sequence[Covariate], *, by_chance: bool
    ) -> list[AuditFinding]:
        if not off:
            return []
        # Conditions rotate over these groups, so a difference between them is noise rather than a confound.
        apart = (
            f"{grouping.set_name}: every list shows every item; those that a list shows in different conditions differ by more "
            f"than {self.limit:.2f} SD of all items in {_named(off)}"
        )
        chance = f", no more than chance gives with {_number(grouping)} items" if by_chance else ""
        even = "over the lists it evens out, and materials.match evens it within each"
        return [AuditFinding("look", SECTION, f"{apart}{chance}; {even}")]

    def _of_words(self, grouping: CovariateGrouping) -> list[AuditFinding]:
        nearer = _farthest_first(
            c
            for c in grouping.covariates
            if c.role == WORDNESS and (c.largest is None or c.largest > self.limit)
        )
        if not nearer:
            return []
        text = (
            f"{grouping.set_name}: words and nonwords differ by more than {self.limit:.2f} SD in {_named(nearer)}: strings "
            "that are not words are less similar to words, which readers may use to recognise them; nonwords of one kind are "
            "best compared with those of another"
        )
        return [AuditFinding("look", SECTION, text)]


def _number(grouping: CovariateGrouping) -> int:
    return sum(max(s.n for s in grouping.balance.spreads if s.group == group) for group in grouping.groups)


def _farthest_first(covariates: Iterable[Covariate]) -> list[Covariate]:
    return sorted(covariates, key=lambda c: -inf if c.largest is None else -c.largest)


def _named(off: Sequence[Covariate]) -> str:
    names = ", ".join(
        f"{c.name} ({'no spread' if c.largest is None else f'{c.largest:.2f}'})" for c in off[:_MOST_NAMED]
    )
    more = len(off) - _MOST_NAMED
    return f"{names} and {counted(more, 'more covariate')}" if more > 0 else names


def agreement(items: Sequence[Item], fillers: Sequence[Item], settings: AuditSettings) -> GroupBalance | None:
    """Compare covariates between conditions, answer classes and lists; None where there is nothing to compare."""
    groupings = []
    for set_name, members in by_set(items).items():
        for by in dict.fromkeys(factor for item in members for factor in item.condition):
            levels = [item.condition.get(by) for item in members]
            groupings.append(_grouping(set_name, by, _Compared(members, levels), settings.by_design))
        answering = [*members, *(item for item in fillers if item.set_name == set_name)]
        if shared_answers(answering):
            groupings.append(_by_answer(set_name, answering, settings))
        if settings.lists:
            once = first_lines(members)
            levels = [settings.lists.get(item.item_id) for item in once]
            groupings.append(_grouping(set_name, LIST, _Compared(once, levels), settings.by_design))
    present = tuple(grouping for grouping in groupings if grouping is not None)
    return GroupBalance(SMD_LIMIT, present) if present else None


def _by_answer(set_name: str, items: Sequence[Item], settings: AuditSettings) -> CovariateGrouping | None:
    """Compare the answers over what sessions show; words and nonwords by the strings themselves."""
    levels = [item.answer for item in items]
    weights = list(map(float, line_weights(items, every_line=settings.every_line)))
    if not decides_words(items):
        return _grouping(set_name, ANSWER, _Compared(items, levels, weights), settings.by_design)
    measured = string_covariates(items, settings.language)
    designed = {*settings.by_design, *BY_DESIGN}
    return _grouping(set_name, ANSWER, _Compared(items, levels, weights, measured), designed)


def first_lines(items: Sequence[Item]) -> list[Item]:
    """Return the first line of each item of a set."""
    once: dict[str, Item] = {}
    for item in items:
        once.setdefault(item.item_id, item)
    return list(once.values())


def shared_answers(items: Sequence[Item]) -> tuple[str, ...]:
    """Return the answer classes of a set whose items all offer the same choices, or nothing."""
    offered = {tuple(sorted(item.choices)) for item in items if item.choices is not None}
    if len(offered) != 1 or any(item.choices is None for item in items):
        return ()
    answers = tuple(sorted({str(item.answer) for item in items if item.answer is not None}))
    return answers if 2 <= len(answers) <= _MOST_CLASSES else ()


@dataclass(frozen=True)
class _Compared:
    """Items with the level of each; covariates are the items' own, unless others were measured."""

    items: Sequence[Item]
    levels: Sequence[str | None]
    weights: Sequence[float] | None = None
    measured: Sequence[Mapping[str, object]] | None = None


def _grouping(
    set_name: str, by: str, compared: _Compared, by_design: Collection[str]
) -> CovariateGrouping | None:
    items, weights, measured = compared.items, compared.weights, compared.measured
    described = [item.covariates for item in items] if measured is None else measured
    groups = tuple(dict.fromkeys(level for level in compared.levels if level is not None))
    every = (pair for covariates in described for pair in covariates.items())
    names = tuple(
        dict.fromkeys(name for name, v in every if isinstance(v, int | float) and not isinstance(v, bool))
    )
    if len(groups) < 2 or not names:
        return None
    parts = [1.0] * len(items) if weights is None else weights
    known: dict[str, dict[str, list[tuple[float, float]]]] = {
        name: {
            group: [
                (float(value), part)
                for covariates, level, part in zip(described, compared.levels, parts, strict=True)
                if level == group and isinstance(value := covariates.get(name), int | float)
            ]
            for group in groups
        }
        for name in names
    }
    values, of_values = (
        {
            name: {group: [cell[at] for cell in cells] for group, cells in of.items()}
            for name, of in known.items()
        }
        for at in (0, 1)
    )
    table = balance(values, weights=None if weights is None else of_values, overall=by == LIST)
    covariates = []
    for name in names:
        role = "design" if name in by_design else "item"
        if measured is not None and name in NEARNESS and role == "item":
            role = WORDNESS
        follows = name in _of_changes() if by in (ANSWER, LIST) else _varies_within(name, items)
        if role == "item" and follows:
            role = "condition"
        missing = sum(not isinstance(covariates.get(name), int | float) for covariates in described)
        covariates.append(_covariate(name, table, by, role, missing, len(names)))
    return CovariateGrouping(set_name, by, groups, tuple(covariates), table)


def _covariate(name: str, table: Balance, by: str, role: str, missing: int, together: int) -> Covariate:
    worst = table.largest(name)
    largest = None if worst is None or worst.smd is None else abs(worst.smd)
    flagged = role == "item" and worst is not None and worst.exceeds()
    dealt = by in (ANSWER, LIST) and largest is not None and largest <= _by_chance(name, table, together)
    return Covariate(name, largest, missing, role, flagged, flagged and dealt)


def _by_chance(name: str, table: Balance, together: int) -> float:
    """Return the standardised difference that 95 of 100 random deals keep in every covariate and pair of groups."""
    sizes = sorted(spread.n for spread in table.spreads if spread.covariate == name)
    pairs = len(sizes) * (len(sizes) - 1) // 2
    if not pairs:
        return 0.0
    error = sidak(together * pairs)
    return NormalDist().inv_cdf(1 - error / 2) * sqrt(1 / sizes[0] + 1 / sizes[1])


@functools.cache
def _of_changes() -> frozenset[str]:
    """Return the covariates for the distance of a form from its word, which unchanged words do not have."""
    of_words = {"words", "shown_bigram_mean", "shown_bigram_min"}
    return frozenset(one.name for one in covariate_table() if one.group in ("change", "form")) - of_words


def _varies_within(name: str, items: Sequence[Item]) -> bool:
    first: dict[str, object] = {}
    return any(
        first.setdefault(item.item_id, item.covariates.get(name)) != item.covariates.get(name)
        for item in items
    )
