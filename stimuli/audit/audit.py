"""The audit of a study's items: every check that applies, and what it found, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stimuli.audit.agreement import Agreement, agreement, first_lines, shared_answers
from stimuli.audit.changed import Changes, changes
from stimuli.audit.choices import Choices, choices
from stimuli.audit.doubles import Duplicates, Leaks, duplicates, leaks
from stimuli.audit.findings import Finding, counted, worst_first
from stimuli.audit.labels import Labels, labels, rules_of
from stimuli.audit.lines import answers_vary
from stimuli.audit.shortcut import ENOUGH_ITEMS, MARGIN, ShortcutTest, shortcut_test
from stimuli.audit.wordness import ABOUT as WORDNESS_ABOUT
from stimuli.audit.wordness import decides_words
from stimuli.features import Tokenizer
from stimuli.item import Item

FORMAT = 1
SHORTCUT = "shortcut"
CHECKS: Mapping[str, str] = {
    "balance": "Groups of items agree on their covariates",
    "duplicates": "No text stands twice",
    "labels": "Answers agree with their rule",
    "leaks": "Nothing shown before the test gives answers away",
    "changes": "Changed words are no words, and conditions change as many, each in its own way",
    "choices": "The choices alone do not tell the answer",
    "shortcut": "Nothing beside the rule sorts the items",
}
"""What each section of an audit checks, as a claim that holds where nothing was found."""


@dataclass(frozen=True)
class Audit:
    """What was found in a study's items. A section is None where it does not apply.

    Attributes
    ----------
    language : str
    lines : int
        Items in the file, one line each per condition.
    roles : dict
        Number of items (not lines) by set and role.
    balance, duplicates, labels, leaks, changes, choices, shortcut
        The sections.
    left_out : dict of str to str
        Why a section is missing.
    """

    language: str
    lines: int
    roles: dict[str, dict[str, int]]
    balance: Agreement | None
    duplicates: Duplicates | None
    labels: Labels | None
    leaks: Leaks | None
    changes: Changes | None
    choices: Choices | None
    shortcut: ShortcutTest | None
    left_out: dict[str, str]

    def findings(self) -> tuple[Finding, ...]:
        """Return everything found, the grave first."""
        found: list[Finding] = []
        for part in (self.balance, self.duplicates, self.labels, self.leaks, self.changes, self.choices):
            if part is not None:
                found += part.findings()
        if self.shortcut is not None:
            found += shortcut_findings(self.shortcut)
        return worst_first(found)

    def problems(self) -> list[str]:
        """Return a line for each thing to mend, grave ones first and marked ``grave:``."""
        return [one.line() for one in self.findings() if one.level != "look"]

    def remarks(self) -> list[str]:
        """Return a line for each thing that a person should look at and that may be right as it is."""
        return [one.line() for one in self.findings() if one.level == "look"]

    @property
    def grave(self) -> bool:
        """Tell whether something was found that makes results worthless."""
        return any(one.level == "grave" for one in self.findings())

    def status(self, section: str) -> str:
        """Return the worst level found in a section, ``clear`` where nothing was, or ``left out``."""
        if getattr(self, section) is None:
            return "left out"
        return next((one.level for one in self.findings() if one.section == section), "clear")

    def to_json(self) -> dict[str, Any]:
        """Return the audit as the mapping of ``audit.json``."""
        return {
            "format": FORMAT,
            "language": self.language,
            "lines": self.lines,
            "items": self.roles,
            "checks": {name: self.status(name) for name in CHECKS},
            "findings": [asdict(one) for one in self.findings()],
            **{name: None if (part := getattr(self, name)) is None else asdict(part) for name in CHECKS},
            "left_out": self.left_out,
        }


def audit_items(
    items: Sequence[Item],
    *,
    language: str,
    tokenizer: Tokenizer | Any | None = None,
    shortcut: bool = True,
    seed: int = 0,
    lists: Mapping[str, str] | None = None,
    by_design: Collection[str] = (),
    about: Mapping[str, Collection[str]] | None = None,
    every_line: bool = False,
) -> Audit:
    """Audit the items of a study.

    Parameters
    ----------
    items : sequence of Item
        All items, of every role and condition.
    language : str
        Language tag, for the word list.
    tokenizer : callable or object with ``tokenize``, optional
        Text → tokens, for two further features of the shortcut test.
    shortcut : bool
        Run the shortcut test on sets whose items all offer the same choices.
    seed : int
        Deals groups of items to folds.
    lists : mapping of str to str, optional
        For each item id, a name of the items that lists show in one condition together, to compare their covariates.
    by_design : collection of str
        Covariates that the study varies on purpose; shown in the balance table, not flagged.
    about : mapping of str to names, optional
        Features that each set is about; for items of a rule what the rule declares (``Rule.about``), unless given.
    every_line : bool
        Sessions show all lines (``lists: one``), not each item in one condition.

    Returns
    -------
    Audit

    Raises
    ------
    UserError
        When ``about`` names an unknown feature.
    """
    test = [item for item in items if item.role == "test"]
    left_out: dict[str, str] = {}
    tasks = _tasks([*test, *_of_role(items, "filler")])
    tested = None
    if not shortcut:
        left_out[SHORTCUT] = "not asked for"
    elif not tasks:
        left_out[SHORTCUT] = "no set whose items all offer the same choices"
    else:
        declared = {name: (about or {}).get(name, _declared(own)) for name, own in tasks.items()}
        tested = shortcut_test(
            tasks,
            language=language,
            seed=seed,
            tokenizer=_as_callable(tokenizer),
            about=declared,
            every_line=every_line,
        )
    sections: dict[str, tuple[Any, str]] = {
        "balance": (
            agreement(
                test,
                language=language,
                lists=lists,
                by_design=by_design,
                fillers=_of_role(items, "filler"),
                every_line=every_line,
            ),
            "no covariate, or no two groups to compare",
        ),
        "duplicates": (duplicates(test) if test else None, "no test items"),
        "labels": (labels(items), "no rule to hold answers against"),
        "leaks": (leaks(items), "no exemplars, practice items or questions"),
        "changes": (
            changes(test, language, aside=_factors_of(_of_role(items, "exemplar"))),
            "no condition changes words",
        ),
        "choices": (
            choices([*test, *_of_role(items, "filler")], every_line=every_line),
            "no item has choices",
        ),
    }
    left_out = {name: why for name, (part, why) in sections.items() if part is None} | left_out
    found = {name: part for name, (part, _) in sections.items()}
    return Audit(language, len(items), _roles(items), **found, shortcut=tested, left_out=left_out)


def shortcut_findings(test: ShortcutTest) -> list[Finding]:
    """Name the tasks that nuisance features sort, and those with too few items to tell."""
    told = []
    for one in test.tasks:
        if one.verdict == "leaks" and one.best is not None:
            clue = "; ".join(f"{each.feature} alone {each.alone:.0%}" for each in one.telling[:2])
            told.append(
                Finding(
                    "mend",
                    SHORTCUT,
                    f"{one.task}: a classifier that does not know the rule sorts {one.best:.0%} of the items "
                    f"(at least {one.lower:.0%}, chance {one.chance:.0%}){': ' + clue if clue else ''}",
                )
            )
    few = [one for one in test.tasks if one.verdict == "too few to tell"]
    if few:
        named = ", ".join(f"{one.task} ({one.items})" for one in few)
        told.append(
            Finding(
                "look",
                SHORTCUT,
                f"too few items to rule a shortcut out ({ENOUGH_ITEMS:,} are needed): {named}",
            )
        )
    open_ = [one.task for one in test.tasks if one.verdict == "not settled"]
    if open_:
        told.append(
            Finding(
                "look",
                SHORTCUT,
                f"{counted(len(open_), 'task')} with an upper bound above chance + {MARGIN:.2f}: {', '.join(open_)}",
            )
        )
    return told


def _tasks(asked: Sequence[Item]) -> dict[str, list[Item]]:
    tasks = {}
    for name in dict.fromkeys(item.set_name for item in asked if item.role == "test"):
        own = [item for item in asked if item.set_name == name and item.answer is not None]
        if not (decides_words(own) or answers_vary(own)):
            own = first_lines([item for item in own if item.role == "test"])
        if own and shared_answers(own):
            tasks[name] = own
    return tasks


def _of_role(items: Sequence[Item], role: str) -> list[Item]:
    return [item for item in items if item.role == role]


def _factors_of(items: Sequence[Item]) -> frozenset[str]:
    return frozenset(factor for item in items for factor in item.condition)


def _declared(items: Sequence[Item]) -> Collection[str]:
    if decides_words(items):
        return WORDNESS_ABOUT
    return frozenset().union(*(one.about for one in rules_of(items).values()))


def _as_callable(tokenizer: Any) -> Tokenizer | None:
    found: Tokenizer | None = getattr(tokenizer, "tokenize", tokenizer)
    return found


def _roles(items: Sequence[Item]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for set_name, role, _ in dict.fromkeys((item.set_name, item.role, item.item_id) for item in items):
        found.setdefault(set_name, Counter())[role] += 1
    return {name: dict(sorted(roles.items())) for name, roles in found.items()}
