"""Items of H-TEST: A/B tasks, released or made, and letter geometry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiment.building.material_context import Made, path_of
from experiment.papers.h_test.grammar import EXEMPLARS, origins_of, tasks_of
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.htest.released import load_released, released_faults
from stimuli.item import Item
from stimuli.recipes.conditions import draw_some
from stimuli.recipes.htest import (
    FIELD,
    QUESTION_FIELD,
    SUBSTITUTED,
    ABTaskDesign,
    geometry_items,
    geometry_released_items,
    htest_published_items,
    htest_released_items,
    htest_rule_items,
    other_questions,
    question_in_arms,
    text_in_arms,
)
from stimuli.words import base_language

PRACTICE_ITEMS = 6
DEFAULT_ITEMS = 20
RELEASED, FRESH = "released", "fresh"
DEFAULT_GEOMETRY = 40


def items_from_htest(study: Study) -> Made:
    """Make items of A/B tasks, ``materials: {htest: …}``: released, or from rules; English in a study of any language."""
    return _in_english(study, _in_arms(study, _items(study)))


def _in_english(study: Study, made: Made) -> Made:
    """State where items are English in a study of another language."""
    if base_language(study.language) == base_language(study.items_language):
        return made
    note = (
        f"note: items of H-TEST are English, and the study's language is {study.language!r}: readers see English texts, "
        "and covariates and audit are those of English"
    )
    return replace(made, remarks=[note, *made.remarks], language=study.items_language)


def _in_arms(study: Study, made: Made) -> Made:
    """Show the items at the levels of the factor that the study adds, where it adds one."""
    if study.controls is None:
        return made
    factor, levels = study.controls
    told: dict[str, Any] = {"field": FIELD, "seed": study.seed, "language": study.items_language}
    return replace(made, items=text_in_arms(made.items, factor, levels, **told))


def _items(study: Study) -> Made:
    origins = origins_of(study)
    if origins is None:
        return _of_one_making(study)
    factor, makings = origins
    parts = {level: _of_making(study, making) for level, making in makings.items()}
    items = [
        replace(item, item_id=f"{level}-{item.item_id}", condition={**item.condition, factor: level})
        for level, part in parts.items()
        for item in part.items
    ]
    sources = list(dict.fromkeys(source for part in parts.values() for source in part.sources))
    return Made(items, sources, [remark for part in parts.values() for remark in part.remarks])


def _of_making(study: Study, making: str, **order: Any) -> Made:
    """Make the items of one arm: released ones, further ones of the same making, or matched pairs."""
    htest = study.get("materials", "htest")
    tasks = tasks_of(study)
    design = ABTaskDesign(
        exemplars=htest.get("exemplars", EXEMPLARS),
        seed=study.seed,
        items=htest.get("items", None if making == RELEASED else DEFAULT_ITEMS),
        **order,
    )
    if making not in (RELEASED, FRESH):
        return Made(htest_rule_items(tasks, design))
    folder = path_of(study, "htest", "from")
    if making == FRESH:
        fresh = htest_published_items(folder, design, tasks)
        return Made(fresh, [folder], _known(folder, tasks, fresh))
    return Made(htest_released_items(folder, design, tasks), [folder], _faults(folder, tasks))


def _of_one_making(study: Study) -> Made:
    htest = study.get("materials", "htest")
    making = "rules" if "from" not in htest else FRESH if htest.get("fresh") else RELEASED
    if making == RELEASED and "order" in htest:
        raise UserError(
            f"{study.place('materials', 'htest', 'order')}: released exemplars keep their released order",
            mend="Take order out, or make items with rules: or fresh: true.",
        )
    return _of_making(study, making, **{name: htest[name] for name in ("order",) if name in htest})


def _known(folder: Path, tasks: Sequence[str], fresh: Sequence[Item]) -> list[str]:
    """Count the fresh test items whose texts were released, too."""
    released = {
        name: {one.text for one in (*task.exemplars, *task.test)}
        for name, task in load_released(folder, tasks).items()
    }
    counted = Counter(
        item.set_name
        for item in fresh
        if item.role == "test" and item.shown[FIELD] in released[item.set_name]
    )
    return [
        f"fresh {task}: {number} items are also released ones: the making has few words; ask fewer items to leave them out"
        for task, number in counted.items()
    ]


def _faults(folder: Path, tasks: Sequence[str]) -> list[str]:
    """Count the known errors in the released items of the tasks that a study uses."""
    counted = Counter(fault.task for fault in released_faults(folder, tasks))
    return [
        f"released {task}: {number} items with a known fault (labels, duplicates, texts of exemplars)"
        for task, number in counted.items()
    ]


def practice_of_rule(study: Study, settings: Mapping[str, Any], set_name: str) -> list[Item]:
    """Make practice items of a rule, with as many exemplars as those that are tested."""
    htest = study.get("materials", "htest")
    design = ABTaskDesign(
        exemplars=htest.get("exemplars", EXEMPLARS),
        seed=study.seed,
        items=settings.get("number", PRACTICE_ITEMS),
        order=htest.get("order", "alternating"),
    )
    made = htest_rule_items([settings["rule"]], design)
    return [
        replace(
            item, role="exemplar" if item.role == "exemplar" else "practice", set_name=set_name, condition={}
        )
        for item in made
    ]


def items_from_letter_geometry(study: Study) -> Made:
    """Make letter-geometry items, ``materials: {letter_geometry: …}``: the released 90, or computed ones."""
    made = _in_english(study, _geometry(study))
    if study.controls is None:
        return made
    factor, levels = study.controls
    others = (
        other_questions(made.items, study.seed, base_language(study.language))
        if SUBSTITUTED in levels.values()
        else {}
    )
    return replace(
        made, items=question_in_arms(made.items, factor, levels, field=QUESTION_FIELD, others=others)
    )


def _geometry(study: Study) -> Made:
    asked = study.get("materials", "letter_geometry")
    number = study.get("materials", "items")
    if "from" in asked:
        folder = path_of(study, "letter_geometry", "from")
        released = geometry_released_items(folder)
        drawn = draw_some(
            released, number, seed=study.seed, key=lambda item: item.item_id, what="letter-geometry items"
        )
        return Made(drawn, [folder])
    n, families = DEFAULT_GEOMETRY if number is None else number, tuple(study.factors["family"])
    each, language = asked.get("asked_of_each", 4), base_language(study.language)
    return Made(geometry_items(n, study.seed, families, asked_of_each=each, language=language))
