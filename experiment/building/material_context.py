"""Common requirements of all materials in a study: factor, answering step, fields shown, paths."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from experiment.building.versions import combinations
from experiment.lists import KEY_OF_NAMED, ORDER_NAMES, blocks_of, blocks_showing, steps_of_blocks
from experiment.media import description_of
from experiment.parsing.free_answers import decimal_mark, number_of
from experiment.procedure import accepted
from experiment.shown_steps import OF_ITEMS, is_look, is_share, names_of, restricted_steps, styles
from experiment.study import Study
from experiment.study.factors import levels_of
from experiment.trials import NAME, answering_step
from stimuli.corpora.tables import misspelt
from stimuli.errors import UserError
from stimuli.item import Item
from stimuli.recipes.conditions import ItemDesign
from stimuli.scramble.conditions import ScrambleSettings

OWN_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "sentences": ("item", "sentence", "answer", "choices", "role"),
    "words": ("item", "word", "foil"),
    "lexical_decision": ("word", "role"),
}
"""Columns of the user's own table that a kind of materials uses."""


@dataclass(frozen=True)
class Made:
    """Items of one kind of material, with messages about their provenance."""

    items: list[Item]  # in the order of the items file
    sources: list[Path] = field(default_factory=list)  # files and folders that were read
    # what was read and how, licences, results of matching
    remarks: list[str] = field(default_factory=list)
    # skipped records, each with its place and reason
    skipped: list[str] = field(default_factory=list)
    language: str | None = None  # language of the items if it differs from the study's


def in_design(study: Study, items: Iterable[Item], picked: Mapping[str, str] | None = None) -> list[Item]:
    """Return items with their condition by the design's factors, if recipes used only the cell.

    Each test item is repeated at all levels that set steps of trials; fillers take these levels in turn.
    """
    presentations = study.crossing.presentations
    n_versions = math.prod(map(len, study.crossing.versions.values()))  # which fillers take in turn as well
    n_fillers = 0
    placed = []
    for item in items:
        shown = presentations if item.role == "test" else [{}]
        if item.role == "filler":
            shown = [presentations[n_fillers // n_versions % len(presentations)]]
            n_fillers += 1
        for levels in shown:
            condition = study.crossing.condition(item.condition, {**(picked or {}), **levels})
            placed.append(replace(item, condition=condition))
    return placed


EARLIER_DOSES = {"common": "equal", "own": "as_published"}


def item_design(study: Study) -> ItemDesign:
    """Return the study's settings for making items, except which words a rule or a column chooses."""
    materials = study.get("materials")
    scramble = dict(materials.get("scramble", {}))
    if isinstance(scramble.get("words"), Mapping):
        del scramble["words"]
    if "eligibility" in scramble:  # the name in earlier versions
        if "dose" in scramble:
            raise UserError(
                f"{study.place('materials', 'scramble', 'eligibility')}: eligibility is the earlier name of dose, which is given too",
                mend="Take eligibility out.",
            )
        scramble["dose"] = EARLIER_DOSES[scramble.pop("eligibility")]
    return ItemDesign(
        seed=study.seed,
        factor=study.crossing.factor,
        levels=study.crossing.levels,
        settings=ScrambleSettings(language=study.language, **scramble),
        published="items" in study.published,
        number=materials.get("items"),
        on_bad=materials.get("on_bad", "stop"),
    )


def targets_of(study: Study) -> Mapping[str, Any] | None:
    """Return the column or rule that chooses the words to change, if the study sets one."""
    words = study.get("materials", "scramble", "words")
    return words if isinstance(words, Mapping) else None


def answering_steps(study: Study, set_name: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Return kind and settings of the step that ends a trial, of every block or of those that show a set."""
    blocks = [study.get("procedure", place, "block") for place in blocks_of(study)]
    chosen = blocks if set_name is None else [blocks[number] for number in blocks_showing(study, set_name)]
    return [next(iter(answering_step(block["trial"]).items())) for block in chosen]


def step_of_type(study: Study, types: Collection[str]) -> dict[str, Any] | None:
    """Return the settings of the first block's answering step of one of some types; None without one."""
    return next((settings for kind, settings in answering_steps(study) if kind in types), None)


def shown_fields(study: Study, set_name: str | None = None) -> list[str]:
    """Return the fields that trials show, in order, of every block or of those that show a set."""
    names: list[str] = []
    places = blocks_of(study)
    for place in places if set_name is None else [places[n] for n in blocks_showing(study, set_name)]:
        for step in study.get("procedure", place, "block", "trial"):
            ((kind, settings),) = step.items()
            names += _fields_of(study, kind, settings)
    return list(dict.fromkeys(names))


def _fields_of(study: Study, kind: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the fields that a step shows, at all levels that set it."""
    names: list[str] = []
    for at_level in study.steps_at_all_levels(kind, settings):
        for name, parameter in study.trial_type(kind).parameters.items():
            shown = at_level.get(name, []) if parameter.type == "fields" else []
            names += [shown] if isinstance(shown, str) else shown
    return names


def known_columns(study: Study, set_name: str | None = None) -> list[str]:
    """Return the columns used in the table of the materials, or in that of a practice set."""
    materials = study.get("materials")
    kind = next((name for name in OWN_COLUMNS if name in materials), None)
    columns = [*OWN_COLUMNS.get(str(kind), ("item", "answer", "choices")), *shown_fields(study, set_name)]
    columns += materials.get("columns", {})
    columns += [description_of(field) for field in study.media]
    words = materials.get("scramble", {}).get("words")
    columns += [str(words["column"])] if isinstance(words, Mapping) and "column" in words else []
    columns += [materials["distractors"]] if isinstance(materials.get("distractors"), str) else []
    versions = study.crossing.versions
    columns += versions
    columns += [
        ":".join([column, *levels.values()])
        for number in range(1, len(versions) + 1)
        for factors in itertools.combinations(versions, number)
        for levels in combinations({factor: versions[factor] for factor in factors})
        for column in columns[:]
    ]
    designed = {**study.get("design", "factors", default={}), **study.between}
    for factor, given in designed.items():
        columns += [factor] if set_name is not None else []
        for level, does in levels_of(given).items():
            columns.append(f"{factor}:{level}")
            if isinstance(does, Mapping):
                columns += does.get("where", ())
                columns += [str(does["column"])] if "column" in does else []
    columns += materials.get("match", {}).get("on", ())
    columns += [*compared_columns(study), *keys_of_named(study)]
    return list(dict.fromkeys(columns))


def check_shown_columns(study: Study, file: str, columns: Collection[str]) -> None:
    """Raise an error for a field that a step shows, if a table has columns that nothing reads under a similar name."""
    known = known_columns(study)
    unread = {column.partition(":")[0] for column in columns if column not in known}
    for path, kind, settings in steps_of_blocks(study):
        for name in _fields_of(study, kind, settings):
            is_there = any(name == column.partition(":")[0] for column in columns)
            meant = (
                None if is_there or name in itertools.chain(*OWN_COLUMNS.values()) else misspelt(name, unread)
            )
            if meant is not None:
                raise UserError(
                    f"{study.place(*path)} shows {name!r}, and {file} has no such column; did you mean {meant!r}?",
                    mend=f"Write {meant!r} here, or {name!r} at the head of the column.",
                )


def compared_columns(study: Study) -> dict[str, str]:
    """Return the columns by which a block is ordered or its steps are restricted, each with its place in the study."""
    factors = {*study.factors, *ORDER_NAMES, *OF_ITEMS}
    columns: dict[str, str] = {}
    for place in blocks_of(study):
        order = study.get("procedure", place, "block", "order", default="mixed")
        for rule in ("at_most_in_a_row", "at_least_apart") if isinstance(order, Mapping) else ():
            for name in order.get(rule, {}):
                if name not in factors:
                    columns.setdefault(name, study.place("procedure", place, "block", "order", rule, name))
    for path, _, only in restricted_steps(study):
        for name in names_of(only):
            if name not in factors:
                columns.setdefault(name, study.place(*path))
    for path, style in styles(study):
        for setting, value in style.items():
            if not is_look(setting, value):
                columns.setdefault(value, study.place(*path, setting))
    return columns


def keys_of_named(study: Study) -> list[str]:
    """Return the columns with the correct answers to steps with a name, which a table may lack: nothing is right then."""
    steps = (settings for _, _, settings in steps_of_blocks(study))
    return list(dict.fromkeys(f"{settings[NAME]}{KEY_OF_NAMED}" for settings in steps if NAME in settings))


def cells_left_empty(study: Study) -> list[str]:
    """Return the columns of a table whose cells may be empty, because only steps that some trials lack use them."""
    always: set[str] = set()
    at_times: set[str] = set()
    for _, kind, settings in steps_of_blocks(study):
        is_answer = study.trial_type(kind).response is not None and NAME not in settings
        used = {"answer", "choices"} if is_answer else set()
        used |= set(_fields_of(study, kind, settings))
        is_restricted = "only" in settings and not is_share(settings["only"])
        (at_times if is_restricted else always).update(used)
    return sorted(at_times - always)


def require_readable(study: Study, items: Iterable[Item]) -> None:
    """Raise an error if answers that are parsed as numbers are not numbers."""
    mark = decimal_mark(study.language)
    for item in items:
        as_numbers = any(
            kind == "answer" and settings.get("read_as") == "number"
            for kind, settings in answering_steps(study, item.set_name)
        )
        for answer in accepted(item) if as_numbers else ():
            if number_of(answer, mark) is None:
                raise UserError(
                    f"item {item.item_id!r}: the answer {answer!r} is no number, and answers are read as numbers",
                    mend="Correct it, or set read_as: text.",
                )


def path_of(study: Study, *setting: str) -> Path:
    """Return the file or folder that a setting of the materials names."""
    given = study.get("materials", *setting)
    path = (study.folder / Path(given).expanduser()).resolve()
    if not path.exists():
        raise UserError(
            f"{study.place('materials', *setting)} is {given!r}, which does not exist",
            mend=f"Paths start from the study's folder: put it at {path}.",
        )
    return path
