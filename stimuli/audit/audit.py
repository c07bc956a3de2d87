"""The audit of a study's items: every check that applies, and what it found, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from stimuli.audit.balance import ABOUT as WORDNESS_ABOUT
from stimuli.audit.balance import GroupBalance, agreement, decides_words, first_lines, shared_answers
from stimuli.audit.changed import Changes, changes
from stimuli.audit.findings import (
    LEVELS,
    AuditFinding,
    AuditSettings,
    Level,
    answers_vary,
    by_set,
    counted,
    exact_interval,
    quoted,
)
from stimuli.audit.shortcut import (
    CARRIER,
    SIMILAR,
    Choices,
    ShortcutTest,
    choices,
    folded,
    shortcut_test,
    shown_text,
)
from stimuli.features import bag
from stimuli.item import Item

if TYPE_CHECKING:
    from stimuli.htest.rules import Rule

DUPLICATES, LEAKS = "duplicates", "leaks"
REPEATS = "repeats"
"""Named like a covariate that varies by design: texts that are repeated by design."""
_SHOWN_BEFORE = ("exemplar", "practice")
_FEWEST_WORDS = 3


WITHHELD = "withheld"


@dataclass(frozen=True)
class DuplicateText:
    """A text that several items of one set show."""

    set_name: str
    kind: str
    text: str
    items: tuple[str, ...]
    answers: tuple[str | None, ...]

    @property
    def contradicts(self) -> bool:
        """Return whether one text is to be answered in two ways."""
        return self.kind == "same" and len(self.answers) > 1


@dataclass(frozen=True)
class Duplicates:
    """Texts that several test items show; ``by_design``: the study repeats them on purpose."""

    doubles: tuple[DuplicateText, ...]
    by_design: bool = False

    def findings(self) -> list[AuditFinding]:
        """Return contradictions first, then duplicate texts, then texts that differ only in case."""
        findings = []
        for set_name, doubles in by_set(self.doubles).items():
            clash = [double.text for double in doubles if double.contradicts]
            same = [double.text for double in doubles if double.kind == "same" and not double.contradicts]
            before = [double.text for double in doubles if double.kind == "intact"]
            near = [double.text for double in doubles if double.kind == "folded" and len(double.answers) < 2]
            usual: Level = "look" if self.by_design else "mend"
            rows: tuple[tuple[Level, str, list[str]], ...] = (
                ("grave", "one text under two answers", clash),
                (usual, f"{counted(len(same), 'text')} shown by several test items", same),
                (usual, "the same intact text in several items", before),
                ("look", f"{counted(len(near), 'text')} the same but for case or spaces", near),
            )
            findings += [
                AuditFinding(level, DUPLICATES, f"{set_name}: {what}: {quoted(texts)}")
                for level, what, texts in rows
                if texts
            ]
        return findings


@dataclass(frozen=True)
class Leak:
    """Something that an item shown before the test gives away."""

    set_name: str
    kind: str
    before: str | None
    test: str
    text: str
    overlap: float | None = None


_LEAKS: Mapping[str, tuple[Level, str]] = {
    "same text": ("grave", "also among the exemplars or practice items"),
    "same but for case": ("mend", "among the exemplars or practice items but for case or spaces"),
    "same carrier": ("mend", "made from the carrier of an exemplar or practice item"),
    "answer in the text": ("mend", "with the right answer, and no other choice, in the text shown with it"),
    "shared words": ("look", "with {threshold:.0%} or more of the words of an exemplar or practice item"),
}
"""Level of each kind of leak, and its description."""


@dataclass(frozen=True)
class Leaks:
    """Leaks into the test items, and the share of words from which two texts count as near."""

    threshold: float
    compared: int
    leaks: tuple[Leak, ...]

    def findings(self) -> list[AuditFinding]:
        """Return test texts among the exemplars as grave, and similar texts and carriers as problems to correct."""
        findings = []
        for set_name, leaks in by_set(self.leaks).items():
            for kind, (level, what) in _LEAKS.items():
                texts = list(dict.fromkeys(leak.text for leak in leaks if leak.kind == kind))
                if texts:
                    summary = f"{counted(len(texts), 'test text')} {what.format(threshold=self.threshold)}"
                    findings.append(AuditFinding(level, LEAKS, f"{set_name}: {summary}: {quoted(texts)}"))
        return findings


def duplicates(items: Sequence[Item], *, by_design: bool = False) -> Duplicates:
    """Return texts that several test items of one set show; each item counts once per condition."""
    doubles: list[DuplicateText] = []
    shown = (item for item in items if item.provenance["operation"] != WITHHELD)
    for set_name, members in by_set(shown).items():
        same = _doubles(set_name, "same", members, [shown_text(item) for item in members])
        known = {double.items for double in same}
        near = _doubles(set_name, "folded", members, [folded(shown_text(item)) for item in members])
        changed = [item for item in members if item.intact]
        intact = ["\n".join({**item.shown, **item.intact}[name] for name in item.shown) for item in changed]
        before = _doubles(set_name, "intact", changed, intact)
        doubles += same + [double for double in (*near, *before) if double.items not in known]
    return Duplicates(tuple(doubles), by_design)


def _doubles(set_name: str, kind: str, items: Sequence[Item], texts: Sequence[str]) -> list[DuplicateText]:
    by_text: dict[str, list[Item]] = {}
    for item, text in zip(items, texts, strict=True):
        by_text.setdefault(text, []).append(item)
    doubles = []
    for text, same_text in by_text.items():
        ids = tuple(dict.fromkeys(item.item_id for item in same_text))
        if len(ids) > 1:
            answers = tuple(dict.fromkeys(item.answer for item in same_text))
            doubles.append(DuplicateText(set_name, kind, text, ids, answers))
    return doubles


def leaks(items: Sequence[Item], near: float = SIMILAR) -> Leaks | None:
    """Return what exemplars, practice items and questions give away; None if nothing could leak."""
    test = [item for item in items if item.role == "test"]
    before = [item for item in items if item.role in _SHOWN_BEFORE]
    leaked = _answers_in_text(test)
    for set_name, members in by_set(test).items():
        earlier = [item for item in before if item.set_name == set_name]
        others = [item for item in before if item.set_name != set_name]
        leaked += _from_earlier(set_name, members, earlier, others, near)
    could = bool(before) or any(_beside(item) for item in test)
    return Leaks(near, len(before), tuple(leaked)) if could else None


def _from_earlier(
    set_name: str, test: Sequence[Item], earlier: Sequence[Item], others: Sequence[Item], near: float
) -> list[Leak]:
    exact = {shown_text(item): item for item in (*reversed(others), *reversed(earlier))}
    case = {folded(shown_text(item)): item for item in reversed(earlier)}
    carriers = {
        item.covariates[CARRIER]: item
        for item in reversed(earlier)
        if item.covariates.get(CARRIER) is not None
    }
    bags = [(bag(shown_text(item)), item) for item in earlier]
    leaked = []
    seen: set[tuple[str, str]] = set()
    for item in test:
        text = shown_text(item)
        if (item.item_id, text) in seen:
            continue
        seen.add((item.item_id, text))
        carrier = carriers.get(item.covariates.get(CARRIER))
        if text in exact:
            leaked.append(Leak(set_name, "same text", exact[text].item_id, item.item_id, text))
        elif folded(text) in case:
            leaked.append(Leak(set_name, "same but for case", case[folded(text)].item_id, item.item_id, text))
        elif carrier is not None:
            leaked.append(Leak(set_name, "same carrier", carrier.item_id, item.item_id, text))
        else:
            share, nearest = _nearest(bag(text), bags)
            if nearest is not None and share >= near:
                leaked.append(
                    Leak(set_name, "shared words", nearest.item_id, item.item_id, text, round(share, 3))
                )
    return leaked


def _nearest(words: frozenset[str], bags: Sequence[tuple[frozenset[str], Item]]) -> tuple[float, Item | None]:
    best, nearest = 0.0, None
    if len(words) >= _FEWEST_WORDS:
        for other, item in bags:
            shared = len(words & other)
            if shared and shared / (len(words) + len(other) - shared) > best:
                best, nearest = shared / (len(words) + len(other) - shared), item
    return best, nearest


def _beside(item: Item) -> list[str]:
    """Return the texts of an item, such as questions, that conditions do not change, if another text can change."""
    if item.answer is None or len(item.shown) < 2:
        return []
    return [text for name, text in item.shown.items() if name not in item.intact]


def _answers_in_text(items: Sequence[Item]) -> list[Leak]:
    leaked = []
    seen: set[tuple[str, str]] = set()
    for item in items:
        answer = folded(item.answer or "")
        others = [folded(choice) for choice in item.choices or () if choice != item.answer]
        if len(answer) < 3 or (item.set_name, item.item_id) in seen:
            continue
        for text in _beside(item):
            words = f" {' '.join(_words(folded(text)))} "
            if _holds(words, answer) and not any(_holds(words, other) for other in others):
                seen.add((item.set_name, item.item_id))
                leaked.append(Leak(item.set_name, "answer in the text", None, item.item_id, text))
                break
    return leaked


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c in "'-" else " " for c in text).split()


def _holds(words: str, phrase: str) -> bool:
    wanted = " ".join(_words(phrase))
    return bool(wanted) and f" {wanted} " in words


SECTION = "labels"
DISPUTED = "disputed"
"""Covariate by which the maker of an item says that its answer is in doubt: a text with the reason, or 1."""

_RULE = "rule:"
CHANCE = 0.5
"""Share of texts of two classes to which a rule gives the right answer by chance."""


@dataclass(frozen=True)
class AnswerKeyIssue:
    """One item whose answer is in doubt, with the reason."""

    set_name: str
    item: str
    role: str
    text: str
    answer: str
    reason: str


@dataclass(frozen=True)
class RuleSurvival:
    """Number of changed texts of a set that still follow its rule, at one level of a factor."""

    set_name: str
    level: str
    items: int  # items whose text the level changes
    kept: int  # those to whose changed text the rule still gives the right answer
    low: float  # lower bound of their share (exact, 95%, simultaneous over all sets and levels)


@dataclass(frozen=True)
class AnswerKeyReport:
    """Items looked at, those whose answers are in doubt, and what is left of rules in changed texts."""

    checked: int
    doubts: tuple[AnswerKeyIssue, ...]
    kept: tuple[RuleSurvival, ...] = ()

    def findings(self) -> list[AuditFinding]:
        """Return the doubtful answers of each set."""
        findings = []
        for set_name, doubts in by_set(self.doubts).items():
            summary = f"{counted(len(doubts), 'answer')} in doubt: {quoted([doubt.text for doubt in doubts])}"
            findings.append(AuditFinding("mend", SECTION, f"{set_name}: {summary}"))
        return [*findings, *self._of_kept()]

    def _of_kept(self) -> list[AuditFinding]:
        """Return the sets in which a level that should remove evidence leaves it."""
        findings = []
        for level in dict.fromkeys(survival.level for survival in self.kept):
            left = [survival for survival in self.kept if survival.level == level and survival.low > CHANCE]
            if left:
                named = ", ".join(
                    f"{survival.set_name} ({survival.kept} of {survival.items})" for survival in left
                )
                summary = (
                    f"level {level}: changed texts still follow their rule in {named}: these rules are about more than "
                    "letters, and the level takes no evidence away there"
                )
                findings.append(AuditFinding("look", SECTION, summary))
        return findings


def labels(items: Sequence[Item]) -> AnswerKeyReport | None:
    """Check answers against the rule of their set and the maker's doubts; None if there is neither."""
    checked = 0
    doubts = []
    for set_name, answered in by_set(item for item in items if item.answer is not None).items():
        members = first_lines(answered)
        predicate = _predicate(members)
        for item in members:
            if predicate is None and DISPUTED not in item.covariates:
                continue
            checked += 1
            if reason := _reason(item, predicate):
                asked = (set_name, item.item_id, item.role, shown_text(item), str(item.answer))
                doubts.append(AnswerKeyIssue(*asked, reason))
    return AnswerKeyReport(checked, tuple(doubts), _kept(items)) if checked else None


def _kept(items: Sequence[Item]) -> tuple[RuleSurvival, ...]:
    """Count the changed texts to which the rule of their set still gives the right answer."""
    counts: dict[tuple[str, str], list[bool]] = {}
    for set_name, members in by_set(item for item in items if item.answer is not None).items():
        predicate = _predicate(members)
        if predicate is None:
            continue
        for item in members:
            text = shown_text(item)
            if item.role == "test" and text and item.intact and text != next(iter(item.intact.values())):
                level = [*item.condition.values(), ""][: len(item.condition) or 1][-1]
                counts.setdefault((set_name, level), []).append(predicate(text) == item.answer)
    numbers = {key: (len(follows), sum(follows)) for key, follows in counts.items()}
    return tuple(
        RuleSurvival(*key, items, kept, exact_interval(kept, items, len(counts)).low)
        for key, (items, kept) in numbers.items()
    )


def rules_of(items: Sequence[Item]) -> Mapping[str, Rule]:
    """Return the rules that items were made by, or, for released H-TEST items, that of their task."""
    from stimuli.htest.rules import rules

    operations = {item.provenance["operation"] for item in items}
    names = {operation.removeprefix(_RULE) for operation in operations if operation.startswith(_RULE)}
    if not names and items and all("H-TEST" in item.provenance["source"] for item in items):
        names = {item.condition.get("task", item.set_name) for item in items}
    return {name: rules()[name] for name in sorted(names) if name in rules()}


def _predicate(items: Sequence[Item]) -> Callable[[str], str] | None:
    rules = list(rules_of(items).values())
    return rules[0].predicate if len(rules) == 1 and all(len(item.shown) == 1 for item in items) else None


def _reason(item: Item, predicate: Callable[[str], str] | None) -> str | None:
    disputed = item.covariates.get(DISPUTED)
    if disputed:
        return disputed if isinstance(disputed, str) else "its maker disputes it"
    given = None if predicate is None else predicate(shown_text(item))
    return None if given in (None, item.answer) else f"the rule gives {given}"


FORMAT = 1
CHECKS: Mapping[str, str] = {
    "balance": "Groups of items agree on their covariates",
    "duplicates": "No text occurs twice",
    "labels": "Answers agree with their rule",
    "leaks": "Nothing shown before the test gives answers away",
    "changes": "Changed words are not real words, and conditions change equally many, each in its own way",
    "choices": "The choices alone do not reveal the answer",
    "shortcut": "Nothing but the rule sorts the items",
}
"""What each section of an audit checks, as a claim that holds if nothing was found."""


@dataclass(frozen=True)
class Audit:
    """Results of the checks of a study's items; a section is None if it does not apply."""

    language: str
    lines: int  # items in the file, one line each per condition
    roles: dict[str, dict[str, int]]  # number of items (not lines) by set and role
    balance: GroupBalance | None  # the sections
    duplicates: Duplicates | None
    labels: AnswerKeyReport | None
    leaks: Leaks | None
    changes: Changes | None
    choices: Choices | None
    shortcut: ShortcutTest | None
    left_out: dict[str, str]  # why a section is missing

    def findings(self) -> tuple[AuditFinding, ...]:
        """Return everything found, the grave first."""
        parts = [part for name in CHECKS if (part := getattr(self, name)) is not None]
        findings = [finding for part in parts for finding in part.findings()]
        return tuple(sorted(findings, key=lambda finding: LEVELS.index(finding.level)))

    def problems(self) -> list[str]:
        """Return a line for each problem to correct, grave ones first and marked ``grave:``."""
        return [finding.line() for finding in self.findings() if finding.level != "look"]

    def remarks(self) -> list[str]:
        """Return a line for each thing that a person should look at and that may be right as it is."""
        return [finding.line() for finding in self.findings() if finding.level == "look"]

    @property
    def grave(self) -> bool:
        """Return whether something was found that makes results worthless."""
        return any(finding.level == "grave" for finding in self.findings())

    def status(self, section: str) -> str:
        """Return the worst level found in a section, ``clear`` if nothing was found, or ``left out``."""
        if getattr(self, section) is None:
            return "left out"
        return next((finding.level for finding in self.findings() if finding.section == section), "clear")

    def to_json(self) -> dict[str, Any]:
        """Return the audit as the mapping of ``audit.json``."""
        return {
            "format": FORMAT,
            "language": self.language,
            "lines": self.lines,
            "items": self.roles,
            "checks": {name: self.status(name) for name in CHECKS},
            "findings": [asdict(finding) for finding in self.findings()],
            **{name: None if (part := getattr(self, name)) is None else asdict(part) for name in CHECKS},
            "left_out": self.left_out,
        }


def audit_items(
    items: Sequence[Item], *, shortcut: bool = True, offered: Sequence[Item] | None = None, **settings: Any
) -> Audit:
    """Audit the items of a study; ``settings`` are those of :class:`AuditSettings`, such as ``language``.

    ``offered``: the items in the sets within which their choices are compared, unless these are the same.
    """
    study = AuditSettings(**settings)
    test, fillers, exemplars = (
        [item for item in items if item.role == role] for role in ("test", "filler", "exemplar")
    )
    tasks = _tasks([*test, *fillers])
    tested = None
    if shortcut and tasks:
        tested = shortcut_test(
            tasks, about={name: _declared(asked_items) for name, asked_items in tasks.items()}, **settings
        )
    balance = agreement(test, fillers, study)
    aside = {factor for item in exemplars for factor in item.condition}
    changed = changes(test, study.language, aside=aside, strictness=study.strictness)
    sections: dict[str, tuple[Any, str]] = {
        "balance": (balance, "no covariate, or no two groups to compare"),
        "duplicates": (
            duplicates(test, by_design=REPEATS in study.by_design) if test else None,
            "no test items",
        ),
        "labels": (labels(items), "no rule to hold answers against"),
        "leaks": (leaks(items), "no exemplars, practice items or questions"),
        "changes": (changed, "no condition changes words"),
        "choices": (
            choices(
                [item for item in offered or items if item.role in ("test", "filler")],
                every_line=study.every_line,
            ),
            "no item has choices",
        ),
        "shortcut": (
            tested,
            "no set whose items all offer the same choices" if shortcut else "not asked for",
        ),
    }
    left_out = {name: why for name, (part, why) in sections.items() if part is None}
    parts = {name: part for name, (part, _) in sections.items()}
    return Audit(study.language, len(items), _roles(items), **parts, left_out=left_out)


def _tasks(asked: Sequence[Item]) -> dict[str, list[Item]]:
    tasks = {}
    for name in dict.fromkeys(item.set_name for item in asked if item.role == "test"):
        items = [item for item in asked if item.set_name == name and item.answer is not None]
        if not (decides_words(items) or answers_vary(items)):
            items = first_lines([item for item in items if item.role == "test"])
        if items and shared_answers(items):
            tasks[name] = items
    return tasks


def _declared(items: Sequence[Item]) -> Collection[str]:
    if decides_words(items):
        return WORDNESS_ABOUT
    return frozenset().union(*(rule.about for rule in rules_of(items).values()))


def _roles(items: Sequence[Item]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for set_name, role, _ in dict.fromkeys((item.set_name, item.role, item.item_id) for item in items):
        counts.setdefault(set_name, Counter())[role] += 1
    return {name: dict(sorted(roles.items())) for name, roles in counts.items()}
