"""Says what a reader meets: materials, design, screens, trials, how long they take people, what blocks tell of answers.

A study in words (:mod:`experiment.describing.plain_english`) and the Method section of a report are both made from this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from experiment.describing.as_published import papers_wording
from experiment.session_minutes import length_in_words, minutes_in_words
from experiment.study import Study
from experiment.study.factors import operation_families
from stimuli.errors import UserError
from stimuli.item import Item
from stimuli.scramble import parse_operation
from stimuli.scramble.published import published_operation


@dataclass(frozen=True)
class SessionInWords:
    """What a session of a study is, in whole sentences where nothing else is said.

    Attributes
    ----------
    materials : str
        How many items of which kind, and words left intact.
    factors : str
        Factors with their levels, without a full stop; ``no factor`` where there is none.
    lists : str
        How many lists, and how often a session shows a condition.
    screens : tuple of str
        Kinds of screens in their order.
    trials : str
        How many trials a session has, without a full stop.
    length : str
        Roughly how long it takes people, without a full stop; models have no minutes.
    limits : str
        What the time limits of free answers allow beyond; empty for nothing.
    told : str
        What is asked about instructions, how practice is passed, and what blocks tell of answers; empty for nothing.
    wording : str
        The paper whose prompt language models read in place of the instructions; empty where they read these.
    """

    materials: str
    factors: str
    lists: str
    screens: tuple[str, ...]
    trials: str
    length: str
    limits: str
    told: str
    wording: str = ""


PRESENT = {
    "has": "has", "shows": "shows", "are": "are", "have": "have", "allow": "allow", "ends": "ends", "goes": "goes", "gives": "gives",
    "tells": "tells",
}  # fmt: skip
PAST = {
    "has": "had", "shows": "showed", "are": "were", "have": "had", "allow": "allowed", "ends": "ended", "goes": "went",
    "gives": "gave", "tells": "told",
}  # fmt: skip
"""Verbs of a description before a study, and of the Method section after it."""


def session_told(
    study: Study,
    items: Sequence[Item],
    plan: Mapping[str, Any],
    numbers: Mapping[str, Any],
    verbs: Mapping[str, str] = PRESENT,
) -> SessionInWords:
    """Say what a session of a study is.

    Parameters
    ----------
    study : Study
    items : sequence of Item
    plan : mapping
        A planned session (:func:`experiment.procedure.plan_session`).
    numbers : mapping
        Of the study's description: ``lists``, ``trials_per_session``, ``practice_trials``, ``trials_per_cell``,
        ``minutes_by_levels``, ``minutes_that_limits_allow``.
    verbs : mapping
        :data:`PRESENT` or :data:`PAST`.
    """
    practice = f" after {numbers['practice_trials']} of practice" if numbers["practice_trials"] else ""
    allowed = numbers["minutes_that_limits_allow"]
    return SessionInWords(
        _materials(items),
        "; ".join(_factor(*factor) for factor in _levels_told(study).items()) or "no factor",
        _lists(numbers, bool(study.factors), verbs),
        _screens(study),
        f"A session {verbs['has']} {numbers['trials_per_session']:,} trials{practice}",
        f"roughly {length_in_words(numbers['minutes_by_levels'])}",
        f"Free answers {verbs['are']} counted with up to a minute each; their time limits {verbs['allow']} "
        f"{minutes_in_words(allowed)} more."
        if allowed
        else "",
        _told_to_readers(plan, verbs),
        papers_wording(study),
    )


BESIDE_ITEMS = {"exemplar": "exemplar", "practice": "practice item", "filler": "filler"}
"""What items beside those of the test are called, by their role."""

MOST_WORDS = 4
"""Words that could not change beyond which they are counted and not named with their reasons."""


def _materials(items: Sequence[Item]) -> str:
    sets = list(dict.fromkeys(item.set_name for item in items if item.role == "test"))
    named = f" in {len(sets)} sets ({', '.join(sets)})" if len(sets) > 1 else ""
    roles: Counter[str] = Counter(
        role for role, _, _ in {(item.role, item.set_name, item.item_id) for item in items}
    )
    beside = [_counted(roles[role], noun) for role, noun in BESIDE_ITEMS.items() if roles[role]]
    *first, last = [f"{_counted(roles['test'], 'item')}{named}", *beside]
    told = f"{', '.join(first)} and {last}" if first else last
    lost = {(item.item_id, word["intact"]): word["reason"] for item in items for word in item.left_intact}
    words = "; ".join(f"{word!r} in {item_id} ({reason})" for (item_id, word), reason in lost.items())
    left = f" Left intact in every condition, though meant to change: {words}." if lost else ""
    if len(lost) > MOST_WORDS:
        words = ", ".join(list(dict.fromkeys(f"{word!r}" for _, word in lost))[:MOST_WORDS])
        left = f" {len(lost):,} words that were meant to change stayed intact in every condition, such as {words}."
    return f"{told}.{left}"


def _lists(numbers: Mapping[str, Any], has_factors: bool, verbs: Mapping[str, str]) -> str:
    lists = _counted(numbers["lists"], "list")
    if not has_factors:
        return f"{lists}."
    cells = numbers["trials_per_cell"].values()
    least, most = min(cells), max(cells)
    at_most = {1: "once", 2: "twice"}.get(most, f"{most} times")
    between = "once or twice" if most == 2 else f"{least} to {most} times"
    often = at_most if least == most else between if least else f"{at_most} at most"
    return f"{lists}; a session {verbs['shows']} each condition {often}."


ARMS_IN_WORDS = {
    "htest": {"none": "as it is", "Sub": "other letters in place of those of the text"},
    "letter_geometry": {
        "none": "as it is",
        "Sub": "other symbols in the question, of which no option is the result",
        "withhold": "the question left out",
    },
}


ITEMS_IN_WORDS = {
    "released": "the released items",
    "fresh": "further items by the making of the released ones, with the study's seed",
    "matched": "matched pairs by wrods' own rules",
}


def _levels_told(study: Study) -> dict[str, dict[str, Any]]:
    """Return the factors of a study; what is done to items with a factor of their own, and published scrambles, in words."""
    if study.arms is None:
        if "items" not in study.published:
            return study.factors
        return {
            factor: {level: _as_published(given) for level, given in levels.items()}
            for factor, levels in study.factors.items()
        }
    factor, levels = study.arms
    words = ARMS_IN_WORDS["htest" if study.get("materials", "htest") is not None else "letter_geometry"]
    return {**study.factors, factor: {level: InWords(words[does]) for level, does in levels.items()}}


class InWords(str):
    """What a level does, said already."""


def _as_published(given: Any) -> Any:
    """Say a scramble as the paper's code does it, from which corrected ones of the same name differ; all else as it is given."""
    examples = isinstance(given, Mapping) and "demonstrations" in given
    operation = given["demonstrations"] if examples else given
    if not isinstance(operation, str):
        return given
    try:
        published = published_operation(operation)
    except UserError:
        return given
    if published.protocol is None:
        return given
    return InWords(f"{'examples: ' if examples else ''}{published.label}")


def _factor(name: str, levels: Mapping[str, Any]) -> str:
    papers = [level for level, operation in levels.items() if operation == f"published {level}"]
    said = [
        level if level in papers else f"{level} ({_operation(operation)})"
        for level, operation in levels.items()
        if operation is not None
    ]
    made = ", those without brackets as the paper's code makes them" if papers else ""
    return f"{name} has the levels {', '.join(said) if said else ', '.join(levels)}{made}; {next(iter(levels))} is the reference"


def _between(given: Mapping[str, Any]) -> str:
    """Say what a level between sessions sets."""
    said = [ITEMS_IN_WORDS[given["items"]]] if "items" in given else []
    if "exemplars" in given:
        said.append(_counted(given["exemplars"], "example") if given["exemplars"] else "no examples")
    if given.get("example_labels") == "shuffled":
        said.append("labels of examples shuffled, so that they tell nothing")
    said += [f"{new} in place of {old}" for old, new in given.get("texts", {}).items()]
    return ", ".join(said) or "as it is"


def _operation(operation: Any) -> str:
    if operation is None:
        return "as it is"
    if isinstance(operation, InWords):
        return operation
    if isinstance(operation, Mapping) and {"exemplars", "example_labels", "texts", "items"} & set(operation):
        return _between(operation)
    if isinstance(operation, Mapping) and "where" in operation:
        return "rows in which " + " and ".join(f"{c} is {v}" for c, v in operation["where"].items())
    if isinstance(operation, Mapping) and "demonstrations" in operation:
        return f"examples: {parse_operation(operation['demonstrations']).label}"
    if isinstance(operation, Mapping) and not operation_families() & set(operation):
        return ", ".join(f"{name} {value}" for name, value in operation.items())
    if operation == "withhold":
        return "the text withheld"
    if operation == "hand-made" or (isinstance(operation, Mapping) and set(operation) == {"column"}):
        return "made by hand"
    return parse_operation(operation).label


def _screens(study: Study) -> tuple[str, ...]:
    kinds = [next(iter(screen)) for screen in study.get("procedure")]
    runs = [(kind, sum(1 for _ in run)) for kind, run in groupby(kinds)]
    return tuple(kind if many == 1 else _counted(many, kind) for kind, many in runs)


def _told_to_readers(plan: Mapping[str, Any], verbs: Mapping[str, str]) -> str:
    """Say what is asked about the instructions, how practice is passed, and what blocks tell of answers."""
    said = []
    is_one = sum(screen["kind"] == "block" for screen in plan["screens"]) == 1
    for screen in plan["screens"]:
        asked = screen.get("comprehension")
        if asked:
            number, needed = len(screen["questions"]), asked["needed"]
            of_them = "all" if needed == number else f"{needed} of them"
            ends = f"{verbs['ends']}" if asked["if_failed"] == "end" else f"{verbs['goes']} on, flagged"
            said.append(
                f"The instructions {verbs['are']} followed by {_counted(number, 'question')}, {of_them} to be answered correctly "
                f"within {_counted(asked['rounds'], 'round')}; otherwise, the session {ends}."
            )
        elif screen["kind"] == "practice":
            passing = screen.get("pass")
            needed = (
                ""
                if passing is None
                else f"; {passing:.0%} {verbs['have']} to be correct within {_counted(screen['attempts'], 'attempt')}"
            )
            said.append(
                f"Practice ({_counted(len(screen['trials']), 'trial')}) {_feedback(screen['feedback'], verbs)}{needed}."
            )
        elif screen["kind"] == "block":
            every = screen["break_every"]
            checked = sum(trial["is_attention_check"] for trial in screen["trials"])
            parts = [
                f"{_counted(len(screen['trials']), 'trial')}",
                *([_counted(checked, "attention check") + " among them"] if checked else []),
                *([f"a break after every {every}"] if every else []),
            ]
            named = "The block" if is_one else f"Block {screen['name'] or screen['block']}"
            said.append(f"{named} ({', '.join(parts)}) {_feedback(screen['feedback'], verbs)}.")
    return " ".join(said)


def _feedback(given: Mapping[str, Any] | None, verbs: Mapping[str, str]) -> str:
    if given is None:
        return f"{verbs['gives']} no feedback"
    about = [
        *(["accuracy"] if given["accuracy"] else []),
        *(["timeouts"] if given["late"] else []),
    ]
    shown = "until dismissed" if given["for_ms"] is None else f"for {given['for_ms']} ms"
    return f"{verbs['gives']} feedback on {' and '.join(about)}, shown {shown}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
