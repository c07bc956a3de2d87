"""What steps of trials depend on: which trials have a step (``only``), and in which look it shows its text (``style``).

A step can be restricted to a share of the items, to those with a cell in a column, or to those with given values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.plan import OF_REGIONS, Measure
from experiment.lists import (
    ITEM_COLUMNS,
    blocks_of,
    blocks_showing,
    is_shown_at,
    items_of_list,
    list_ids,
    steps_of_blocks,
)
from experiment.study import Study
from experiment.study.study import PLANNED, planned_analyses
from experiment.trials import NAME, STYLE, TrialType, name_of
from stimuli.errors import UserError, together, unknown_name
from stimuli.item import Item
from stimuli.seeds import stable_seed

Only = str | Mapping[str, Any]
Place = tuple[str | int, ...]
OF_ITEMS = ("item", "set", "role", "answer")
"""Names that a step can be restricted by, in addition to factors and columns of the materials."""
ITEM_ROLES = {"test": "test items", "filler": "fillers", "practice": "practice items"}
"""Roles of the items that trials show, with a noun; a share is drawn from each separately."""


def restricted_steps(study: Study) -> Iterator[tuple[Place, str, Only]]:
    """Yield the place of each setting ``only`` of a step, the step's type and the setting."""
    for path, kind, settings in steps_of_blocks(study):
        if "only" in settings:
            yield (*path, "only"), kind, settings["only"]


def is_share(only: Only) -> bool:
    """Return whether a step is shown for a share of the items, such as ``33%``."""
    return isinstance(only, str) and only.endswith("%")


def names_of(only: Only) -> list[str]:
    """Return the names of columns and factors by which trials are chosen."""
    return list(only) if isinstance(only, Mapping) else [] if is_share(only) else [only]


class ShownSteps:
    """Decides for the trials of a study which of their steps are shown.

    Every list asks about the same items. A share is drawn with the study's seed, evenly over sets, answers, levels that select
    rows, and the conditions of the first list, which makes it even in the other lists as well.
    """

    def __init__(self, study: Study, items: Sequence[Item]) -> None:
        self.study = study
        self.items = items
        self._drawn: dict[str, frozenset[tuple[str, str]]] = {}

    def has(self, settings: Mapping[str, Any], item: Item, between: Mapping[str, str]) -> bool:
        """Return whether a trial has a step in a session with some levels of the factors between sessions."""
        only = settings.get("only")
        if only is None:
            return True
        if is_share(only):
            if only not in self._drawn:
                self._drawn[only] = self._draw(float(only.removesuffix("%")) / 100)
            return (item.set_name, item.item_id) in self._drawn[only]
        if not isinstance(only, Mapping):
            return bool(_value_of(item, only, between))
        return all(
            _value_of(item, name, between) in _texts(wanted if isinstance(wanted, list) else [wanted])
            for name, wanted in only.items()
        )

    def has_in_some_session(self, settings: Mapping[str, Any], item: Item) -> bool:
        """Return whether the sessions of any levels between sessions have a step in an item's trials."""
        return any(self.has(settings, item, cell["condition"]) for cell in self.study.between_cells)

    def _draw(self, share: float) -> frozenset[tuple[str, str]]:
        """Return set and id of the items in a share."""
        first = items_of_list(self.study, self.items, list_ids(self.study, self.items)[0])
        shown = {(item.set_name, item.item_id): item for item in [*self.items, *first]}
        chosen: list[tuple[str, str]] = []
        for role in ITEM_ROLES:
            of_role = [item for item in shown.values() if item.role == role]
            order = sorted(
                of_role, key=lambda item: stable_seed(self.study.seed, "share", item.set_name, item.item_id)
            )
            chosen += [(item.set_name, item.item_id) for item in evenly(order, share)]
        return frozenset(chosen)


def items_measured(
    study: Study, items: Sequence[Item], measure: Measure, trials: str | None
) -> Iterator[tuple[Item, dict[str, str]]]:
    """Yield the test items whose trials have a step that takes a measure, with all levels at which they have it."""
    shown = ShownSteps(study, items)
    blocks = [study.get("procedure", place, "block", "trial") for place in blocks_of(study)]
    taking = [list(_taking(study, steps, measure, trials)) for steps in blocks]
    for item in items:
        for number in blocks_showing(study, item.set_name) if item.role == "test" else ():
            for cell in study.between_cells:
                between = cell["condition"]
                if is_shown_at(item, between) and any(
                    shown.has(settings, item, between) for settings in taking[number]
                ):
                    yield item, {**between, **item.condition}


def _taking(
    study: Study, steps: Sequence[Mapping[str, Any]], measure: Measure, trials: str | None
) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of the steps of a trial that take a measure."""
    for step in steps:
        ((kind, settings),) = step.items()
        if trials in study.named_steps:
            is_taking = name_of(step) == trials
        elif measure.is_own:
            is_taking = kind in study.own_types and measure.name in study.own_types[kind].columns
        elif measure.name == "reading_time" or measure.kind in OF_REGIONS:
            is_taking = kind == "read"
        else:
            # a type of the study's own has times also where it takes no answer
            answers = study.trial_type(kind).response is not None or kind in study.own_types
            is_taking = name_of(step) is None and (kind == trials if trials else answers)
        if is_taking or measure.of == "models":
            yield settings


def check_planned_levels(study: Study, items: Sequence[Item]) -> None:
    """Raise an error for each planned analysis with a level at which no trial has the step that takes its measure."""
    faults = []
    for analysis in planned_analyses(study):
        for measure in dict.fromkeys(analysis.measures.values()):
            having = [levels for _, levels in items_measured(study, items, measure, analysis.trials)]
            having = [levels for levels in having if analysis.within.items() <= levels.items()]
            for factor, levels in analysis.levels_of.items():
                made = {item.condition.get(factor) for item in items if item.role == "test"} | {
                    *study.between.get(factor, ())
                }
                lacking = [
                    level
                    for level in levels
                    if level in made and level not in {at.get(factor) for at in having}
                ]
                if lacking:
                    named = ", ".join(lacking)
                    faults.append(
                        UserError(
                            f"{study.place(*PLANNED, analysis.name)}: {measure.name} is compared between levels of {factor}, and "
                            f"no test item at {named} has a step that takes it",
                            mend=f"Measure something else, let trials at {named} have such a step (its `only` may leave them out), or "
                            f"leave {named} out of the analysis (levels).",
                        )
                    )
    if faults:
        raise together(faults)


def evenly(items: Sequence[Item], share: float) -> list[Item]:
    """Return a share of items, as evenly as possible over sets, conditions, their levels, and answers with labels.

    Item by item, the one is taken whose set, condition, levels and answer lack most of their share; of equals the first.
    """
    kinds = {id(item): _kinds(item) for item in items}
    lacking = Counter(kind for item in items for kind in kinds[id(item)])
    wanted = {kind: share * number for kind, number in lacking.items()}
    strata: dict[tuple[tuple[str, str], ...], list[Item]] = {}
    for item in items:
        strata.setdefault(kinds[id(item)], []).append(item)
    chosen = []
    for _ in range(round(share * len(items))):
        stratum = max(
            (kind for kind, left in strata.items() if left),
            key=lambda kind: sum(wanted[part] for part in kind),
        )
        chosen.append(strata[stratum].pop(0))
        for part in stratum:
            wanted[part] -= 1
    return chosen


def _kinds(item: Item) -> tuple[tuple[str, str], ...]:
    """Return the kinds of items over which a share is even."""
    parts = [("set", item.set_name), ("condition", " × ".join(item.condition.values()))]
    parts += item.condition.items()
    parts += [("answer", item.answer)] if item.choices is not None and item.answer is not None else []
    return tuple(dict.fromkeys(parts))


def _value_of(item: Item, name: str, between: Mapping[str, str]) -> str | None:
    """Return an item's value of a name; None if it has none or its cell is empty."""
    known = {"item": item.item_id, "set": item.set_name, "role": item.role, "answer": item.answer}
    values = {**item.shown, **item.key.get(ITEM_COLUMNS, {}), **between, **item.condition, **known}
    value = values.get(name)
    return None if value is None else str(value).strip() or None


def _texts(values: Sequence[object]) -> list[str]:
    return [str(value).lower() if isinstance(value, bool) else str(value) for value in values]


def check_shown_steps(study: Study, items: Sequence[Item]) -> list[str]:
    """Return a message for each restricted step that says how many items have it.

    Errors are names that no item has, steps that no trial has, and items whose step lacks what it shows, or an answer that
    others have.
    """
    faults: list[UserError] = []
    remarks = []
    shown = ShownSteps(study, items)
    columns = {name for item in items for name in (*item.shown, *item.key.get(ITEM_COLUMNS, {}))}
    known = [*dict.fromkeys([*OF_ITEMS, *study.factors, *sorted(columns)])]
    for path, kind, only in restricted_steps(study):
        place = study.place(*path)
        unknown = [name for name in names_of(only) if name not in known]
        faults += [unknown_name(f"{place}: name", name, known) for name in unknown]
        if unknown:
            continue
        having = [
            item
            for item in items
            if item.role in ITEM_ROLES and shown.has_in_some_session({"only": only}, item)
        ]
        faults += _lacking(study.get(*path[:-1]), study.trial_type(kind), having)
        if not having:
            mend = "Name values that items have, or take the step out."
            faults.append(UserError(f"{place}: no trial has this {kind} step", mend=mend))
        counts = []
        for role, noun in ITEM_ROLES.items():
            n_items = len({item.item_id for item in items if item.role == role})
            n_having = len({item.item_id for item in having if item.role == role})
            counts += [f"{n_having} of {n_items} {noun}"] if n_items else []
        ending = "" if isinstance(only, Mapping) else ", the same ones in all lists"
        remarks.append(f"note: {place}: {', '.join(counts)} have this {kind} step{ending}")
    if faults:
        raise together(faults)
    return remarks


def _lacking(settings: Mapping[str, Any], declared: TrialType, items: Sequence[Item]) -> Iterator[UserError]:
    """Yield an error for each item that lacks what its step shows, or the answer that others have."""
    show = settings.get("show", [])
    fields = [show] if isinstance(show, str) else show
    are_judged = (
        declared.response is not None
        and NAME not in settings
        and any(item.answer is not None for item in items)
    )
    told = set()
    for item in items:
        lacks = [name for name in fields if name not in item.shown]
        lacks += ["answer"] if are_judged and item.answer is None else []
        if lacks and item.item_id not in told:
            told.add(item.item_id)
            yield UserError(
                f"item {item.item_id!r} has the step {declared.name} and no {lacks[0]!r}",
                mend="Fill the cell, or restrict the step with `only` to items that have it.",
            )


SIZE = re.compile(r"\d+(\.\d+)?%")
COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
COLOURS = frozenset({
    "black", "silver", "gray", "white", "maroon", "red", "purple", "fuchsia", "green", "lime", "olive", "yellow", "navy", "blue",
    "teal", "aqua", "orange", "brown", "pink",
})  # fmt: skip
"""Names of colours that all browsers draw alike."""


def is_look(setting: str, value: str) -> bool:
    """Return whether a value of a style is a font, colour or size, and not a column."""
    if setting == "font":
        return True
    if setting == "size":
        return SIZE.fullmatch(value) is not None
    return value in COLOURS or COLOUR.fullmatch(value) is not None


def styles(study: Study) -> Iterator[tuple[Place, Mapping[str, str]]]:
    """Yield the place and value of each style that a step has, in a block or at a level of a factor."""
    for path, _, settings in steps_of_blocks(study):
        if STYLE in settings:
            yield (*path, STYLE), settings[STYLE]
    for factor, levels in study.step_levels.items():
        of = "between" if factor in study.between else "factors"
        for level, sets in levels.items():
            if STYLE in sets:
                yield ("design", of, factor, level, STYLE), sets[STYLE]
            for kind, settings in sets.items():
                if isinstance(settings, Mapping) and kind != STYLE and STYLE in settings:
                    yield ("design", of, factor, level, kind, STYLE), settings[STYLE]


def style_of(settings: Mapping[str, Any], item: Item) -> dict[str, str]:
    """Return the look of a step's text for an item; empty without a style or where the cells are empty."""
    look: dict[str, str] = {}
    for setting, value in settings.get(STYLE, {}).items():
        cell = (
            value
            if is_look(setting, value)
            else item.key.get(ITEM_COLUMNS, {}).get(value) or item.shown.get(value)
        )
        if cell:
            look[setting] = str(cell)
    return look


def check_styles(study: Study, items: Sequence[Item]) -> None:
    """Raise an error for each cell of a style's column that is no colour or size."""
    rules = {
        "size": ("a share of the usual size such as 150%", "Write a number and %."),
        "colour": ("a colour such as #c00000 or red", f"Colours with names: {', '.join(sorted(COLOURS))}."),
    }
    faults: dict[tuple[str, str], UserError] = {}
    for path, style in styles(study):
        for item in items:
            for setting, value in style_of({STYLE: style}, item).items():
                if is_look(setting, value):
                    continue
                rule, mend = rules["size" if setting == "size" else "colour"]
                told = f"item {item.item_id!r} has {value!r} in {style[setting]!r}, which is not {rule}"
                faults.setdefault(
                    (style[setting], value), UserError(f"{study.place(*path, setting)}: {told}", mend=mend)
                )
    if faults:
        raise together(list(faults.values()))
