"""What H-TEST and letter geometry add to the language of a study: tasks, families, origins of items, and what must fit together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from experiment.study import Study
from experiment.study.controls import LABELS_SHUFFLED
from experiment.study.yaml_source import Faults
from stimuli.errors import UserError
from stimuli.htest.geometry.questions import FAMILIES
from stimuli.htest.geometry.released import ReleasedFamily
from stimuli.htest.released import RELEASED_TASKS
from stimuli.htest.rules import rules

EXEMPLARS = 4
"""Solved examples of a task, unless the study sets another number."""


def tasks_of(study: Study) -> tuple[str, ...]:
    """Return the tasks or rules of H-TEST that a study uses, in order."""
    htest = study.get("materials", "htest")
    if "rules" in htest:
        given = htest["rules"]
        groups = {
            "all": list(rules()),
            "paper": [name for name in rules() if name in RELEASED_TASKS],
            "own": [name for name in rules() if name not in RELEASED_TASKS],
        }
        return tuple(groups[given] if isinstance(given, str) else given)
    tasks = htest.get("tasks", "all")
    return tuple(RELEASED_TASKS if tasks == "all" else tasks)


def families_of(study: Study) -> tuple[str, ...]:
    """Return the families of letter geometry that a study uses."""
    settings = study.get("materials", "letter_geometry")
    return tuple(settings.get("families", get_args(ReleasedFamily) if "from" in settings else FAMILIES))


def language_of_items(study: Study) -> str:
    """Return the language of the items: English for H-TEST and the released letter geometry, else the study's."""
    geometry = study.get("materials", "letter_geometry")
    is_computed = geometry is not None and "from" not in geometry
    return study.language if is_computed or study.language.startswith("en") else "en"


def origins_of(study: Study) -> tuple[str, dict[str, str]] | None:
    """Return the factor whose sessions show items of different origins, and the origin by level; None without one."""
    for factor, levels in study.between.items():
        origins = {level: str(given["items"]) for level, given in levels.items() if "items" in given}
        if origins:
            return factor, origins
    return None


def check_htest(study: Study, faults: Faults) -> None:
    """Check the settings of H-TEST's items, and of the levels between sessions that change them."""
    htest = study.get("materials", "htest")
    faults.check(_check_source, study, htest)
    faults.check(_check_origins, study, htest)
    for factor, levels in study.between.items():
        for level, given in levels.items():
            faults.check(_check_examples, study, (factor, level), given, htest.get("exemplars", EXEMPLARS))


def _check_source(study: Study, htest: Mapping[str, Any]) -> None:
    if ("from" in htest) == ("rules" in htest):
        raise UserError(
            f"{study.place('materials', 'htest')}: give either `from:` (released items) or `rules:` (our generators)"
        )
    if htest.get("fresh") and "from" not in htest:
        raise UserError(
            f"{study.place('materials', 'htest', 'fresh')}: fresh items take their words from the released files",
            mend="Name the folder of the released files with `from:`, or use `rules:` alone.",
        )


def _check_origins(study: Study, htest: Mapping[str, Any]) -> None:
    """Check the factor whose sessions show released, fresh or matched items."""
    factors = [
        name for name, levels in study.between.items() if any("items" in level for level in levels.values())
    ]
    if not factors:
        return
    place = study.place("design", "between", factors[0])
    if len(factors) > 1:
        raise UserError(
            f"{place}: {' and '.join(factors)} both say how items are made; only one factor can",
            mend="Give `items:` to the levels of one factor.",
        )
    levels = study.between[factors[0]]
    origins = [level.get("items") for level in levels.values()]
    if None in origins or len(set(origins)) < len(origins):
        raise UserError(
            f"{place}: each of its levels must name a different making of items, but they name {origins}",
            mend="Write it like {released: {items: released}, fresh: {items: fresh}, matched: {items: matched}}.",
        )
    if "from" not in htest or htest.get("fresh") or "order" in htest:
        raise UserError(
            f"{place}: levels of released, fresh and matched items need the folder of the released ones, and nothing else says "
            "how items are made",
            mend="Give `from:` under materials: htest, without rules, fresh or order.",
        )
    if study.controls is not None:
        raise UserError(
            f"{study.place('design', 'factors')}: sessions show items of different making, so that no other factor can change "
            "the items",
            mend="Remove the factor, or make it a separate study.",
        )


def _check_examples(study: Study, at: tuple[str, str], given: Mapping[str, object], most: int) -> None:
    shown = int(str(given.get("exemplars", most)))
    if shown > most or shown % 2:
        raise UserError(
            f"{study.place('design', 'between', *at, 'exemplars')} is {shown}; it is even and at most the {most} that "
            "materials.htest makes",
            mend="Raise materials: htest: exemplars to the largest level.",
        )
    if given.get("example_labels") == LABELS_SHUFFLED and (shown % 4 or not shown):
        raise UserError(
            f"{study.place('design', 'between', *at, 'example_labels')}: half of the examples of each class get the other "
            f"label, which {shown} examples do not allow",
            mend="Show a multiple of 4 exemplars at this level.",
        )
