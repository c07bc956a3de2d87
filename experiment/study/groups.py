"""Groups that people belong to: levels between sessions whose ``eligible`` says by which answers.

The answers to the questions of eligibility decide on the group, and only then a session gets a list, one of its group.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiment.study.factors import GROUP
from experiment.study.yaml_source import Faults
from stimuli.errors import UserError, unknown_name

if TYPE_CHECKING:
    from experiment.study.study import Study

_RANGE = re.compile(r"(-?[0-9.]+) to (-?[0-9.]+)")
BUILT_IN = ("first_language", "age")
"""Questions of eligibility with a fixed text."""
DECIDING = ("choice", "yes_no", "number", "scale", "slider")
"""Types of questions whose answers can decide on a group."""


def range_in(value: Any) -> tuple[float, float] | None:
    """Return the ends of a range of accepted numbers, such as ``18 to 65``; None of anything else."""
    match = _RANGE.fullmatch(value) if isinstance(value, str) else None
    return None if match is None else (float(match[1]), float(match[2]))


def accepted_in(level: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the answers, by question, of the people of a level; an age as a range."""
    given: Mapping[str, Any] = level.get(GROUP, {})
    return {
        name: ["{} to {}".format(*value)] if name == "age" else _listed(value)
        for name, value in given.items()
    }


def groups_of(study: Study) -> list[dict[str, Any]]:
    """Return each combination of groups: its ``condition``, and the answers accepted by question; none without groups."""
    factors = {
        name: levels
        for name, levels in study.between.items()
        if any(GROUP in level for level in levels.values())
    }
    groups = []
    for chosen in itertools.product(*factors.values()) if factors else ():
        condition = dict(zip(factors, chosen, strict=True))
        accept: dict[str, list[Any]] = {}
        for factor, level in condition.items():
            accept |= accepted_in(factors[factor][level])
        groups.append({"condition": condition, "accept": accept})
    return groups


def asked_for_groups(study: Study) -> list[str]:
    """Return the questions whose answers decide on groups."""
    return list(dict.fromkeys(name for group in groups_of(study) for name in group["accept"]))


def check_groups(study: Study, faults: Faults) -> None:
    """Check the groups of people of a study: questions, answers, places, and texts shown before a group is known."""
    asked: dict[str, str] = {}
    for factor, levels in study.between.items():
        if not any(GROUP in level for level in levels.values()):
            continue
        place = study.place("design", "between", factor)
        without = [level for level, given in levels.items() if GROUP not in given]
        if without:
            faults.found.append(
                UserError(
                    f"{place}: {without[0]!r} does not say who belongs to it, and other levels do",
                    mend=f"Give {without[0]} its own `eligible`, or make two factors of it.",
                )
            )
            continue
        for level, given in levels.items():
            for name in given[GROUP]:
                faults.check(_check_question, study, factor, level, name)
            faults.check(_check_texts, study, factor, level)
        for name in {name for given in levels.values() for name in given[GROUP]}:
            if asked.setdefault(name, factor) != factor:
                faults.found.append(
                    UserError(
                        f"{place}: {name} already decides on {asked[name]}",
                        mend=f"Make one factor of {asked[name]} and {factor}, or ask another question.",
                    )
                )
        faults.check(_check_apart, place, levels)
    faults.check(_check_places, study)


def _check_question(study: Study, factor: str, level: str, name: str) -> None:
    """Raise an error if people are not asked, or if their answers admit nobody to the group."""
    place = study.place("design", "between", factor, level, GROUP, name)
    own = study.get("participants", "eligible", "questions", default={})
    if name not in BUILT_IN and name not in own:
        fault = unknown_name("question of eligibility", name, [*BUILT_IN, *own])
        raise UserError(
            f"{place}: {fault.message}", mend=f"{fault.mend} Own questions are under participants: eligible."
        )
    if name in own and own[name]["type"] not in DECIDING:
        raise UserError(
            f"{place}: {name} is of type {own[name]['type']}; only {', '.join(DECIDING)} decide on a group",
            mend="Ask a question with one answer.",
        )
    admitted = own[name].get("accept") if name in own else study.get("participants", "eligible", name)
    if admitted is None:
        return
    if name == "age":
        admitted = f"{admitted[0]} to {admitted[1]}"
    accepted = accepted_in(study.between[factor][level])[name]
    outside = [value for value in accepted if not any(_within(value, other) for other in _listed(admitted))]
    if outside:
        raise UserError(
            f"{place} is {outside[0]!r}, and participants.eligible admits {' or '.join(map(str, _listed(admitted)))} alone",
            mend=f"Add {outside[0]} to participants: eligible, or take it out of the group.",
        )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _ends(value: Any) -> tuple[float, float] | None:
    """Return the ends of a range of numbers; None of another answer."""
    try:
        return range_in(value) or (float(value), float(value))
    except (TypeError, ValueError):
        return None


def _within(value: Any, other: Any) -> bool:
    inner, outer = _ends(value), _ends(other)
    if inner is None or outer is None:
        return str(value).strip().casefold() == str(other).strip().casefold()
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _overlap(one: Any, other: Any) -> bool:
    first, second = _ends(one), _ends(other)
    if first is None or second is None:
        return str(one).strip().casefold() == str(other).strip().casefold()
    return first[0] <= second[1] and second[0] <= first[1]


def _check_apart(place: str, levels: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise an error if somebody could belong to two groups."""
    for (one, first), (other, second) in itertools.combinations(levels.items(), 2):
        here, there = accepted_in(first), accepted_in(second)
        if all(any(_overlap(a, b) for a in here[name] for b in there[name]) for name in here.keys() & there):
            raise UserError(
                f"{place}: somebody could belong to both {one} and {other}",
                mend="Let both accept different answers to one question.",
            )


def _check_texts(study: Study, factor: str, level: str) -> None:
    """Raise an error for a text of a group that people see before their group is known."""
    screens: Sequence[Mapping[str, Any]] = study.get("procedure")
    consent = next((i for i, screen in enumerate(screens) if "consent" in screen), 0)
    early = {name for name, path in study.text_files() if path[0] == "procedure" and int(path[1]) < consent}
    replaced: Iterable[str] = study.between[factor][level].get("texts", {})
    for name in replaced:
        if name in early:
            raise UserError(
                f"{study.place('design', 'between', factor, level, 'texts', name)}: {name} is shown before people have said "
                "to which group they belong",
                mend="Move the screen below the consent form, or show everyone the same text.",
            )


def _check_places(study: Study) -> None:
    wanted, number = study.get("participants", "wanted"), len(groups_of(study))
    if wanted is not None and number and wanted % number:
        raise UserError(
            f"{study.place('participants', 'wanted')} is {wanted}, which {number} groups cannot share equally",
            mend=f"Write {wanted // number * number or number} or {(wanted // number + 1) * number}.",
        )
