"""Practice items: rows of the files that the procedure's practice screens name, made like the study's own materials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiment.building.material_context import (
    Made,
    answering_steps,
    in_design,
    item_design,
    known_columns,
    shown_fields,
)
from experiment.building.tables import lines_of, sentences, table_beside
from experiment.study import Study
from experiment.study.faults import Faults
from experiment.study.semantic_checks import kind_of_material
from stimuli.corpora.tables import CorpusTable, unread_columns
from stimuli.errors import UserError, together, unknown_name
from stimuli.item import Item
from stimuli.papers import material_keywords
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.sentences import CHOICE_SEPARATOR, word_items
from stimuli.words import nfc


def practice_items(study: Study) -> Made:
    """Return the practice items of every practice screen, in the order of the procedure."""
    made = Made([])
    faults = Faults()
    for set_name, i, settings in practice_screens(study):
        if "rule" in settings:
            place = study.place("procedure", i, "practice", "rule")
            faults.check(lambda *given: made.items.extend(_of_rule(study, *given)), settings, set_name, place)
        else:
            faults.check(_add_screen, study, made, set_name, i)
    faults.report()
    return made


def practice_screens(study: Study) -> list[tuple[str, int, Mapping[str, Any]]]:
    """Return set name, index in the procedure and settings of every practice screen."""
    screens = [
        (i, screen["practice"]) for i, screen in enumerate(study.get("procedure")) if "practice" in screen
    ]
    return [(f"practice-{number}", i, settings) for number, (i, settings) in enumerate(screens, 1)]


def _add_screen(study: Study, made: Made, set_name: str, i: int) -> None:
    table = practice_rows(study, set_name, i, made.remarks)
    name, place = str(study.get("procedure", i, "practice", "items")), ("procedure", i, "practice", "items")
    made.items.extend(_of_screen(study, table, set_name, name, study.place(*place)))
    made.sources.append(study.folder / name)


def practice_rows(study: Study, set_name: str, i: int, remarks: list[str]) -> CorpusTable:
    """Return the table of a practice screen, the ``i``-th of the procedure."""
    name = str(study.get("procedure", i, "practice", "items"))
    table = table_beside(study, study.folder / name)
    columns = table.description.columns
    remarks += [
        f"{name}: {remark}" for remark in unread_columns(name, columns, known_columns(study, set_name))
    ]
    factors = [*dict.fromkeys(factor for at in study.crossing.conditions.values() for factor in at)]
    named = [factor for factor in factors if factor in columns]
    if named and len(named) < len(factors):
        missing = next(factor for factor in factors if factor not in columns)
        raise UserError(
            f"{name} has the column {named[0]!r} and no column {missing!r}",
            mend=f"Name a level of {' and of '.join(factors)} in each row, or of none.",
        )
    faults = [
        UserError(f"{name}, line {number}: {fault.message}", mend=fault.mend)
        for row, number in zip(table.rows, table.numbers, strict=True)
        for factor in [*named, *(study.crossing.rows[0][0] if study.crossing.rows else ())]
        if (fault := _fault_of_level(study, factor, row.get(factor), is_optional=factor not in named))
    ]
    if faults:
        raise together(faults)
    return table


def _fault_of_level(study: Study, factor: str, level: Any, *, is_optional: bool) -> UserError | None:
    if str(level) in study.factors[factor] or (is_optional and not level):
        return None
    return unknown_name(f"level of {factor}", str(level), study.factors[factor])


def _of_rule(study: Study, settings: Mapping[str, Any], set_name: str, place: str) -> list[Item]:
    """Return practice items of a rule that the study does not test, made like those of the material's paper."""
    kind = kind_of_material(study)
    paper = material_keywords()[kind]
    try:
        made: list[Item] = paper.part(paper.practice[kind])(study, settings, set_name)
    except UserError as error:
        raise UserError(f"{place}: {error.message}", mend=error.mend) from None
    return made


def _of_screen(study: Study, rows: CorpusTable, set_name: str, file: str, place: str) -> list[Item]:
    materials = study.get("materials")
    design = replace(item_design(study), set_name=set_name, role="practice", source=file, on_bad="stop")
    if "sentences" in materials:
        if "item" not in rows[0]:  # practice needs no names of its own
            named = [{"item": f"{set_name}-{number}", **row} for number, row in enumerate(rows, 1)]
            rows = replace(rows, rows=tuple(named))
        conditioned_rows, column = _conditions_told(study, rows)
        made = sentences(
            study, conditioned_rows, design, level_column=column, lines=lines_of(rows, "item")
        ).items
        return _placed(study, made, rows, key="item")
    if "words" in materials:
        words = [item for row in rows for item in _word(study, row, design)]
        return _placed(study, words, rows, key="word")
    ((_, settings),) = answering_steps(study, set_name)
    keys = settings.get("keys")
    fields = shown_fields(study, set_name)
    with_choices = keys is not None and not isinstance(keys, dict)
    missing = [
        name for name in (*fields, "answer", *(["choices"] if with_choices else [])) if name not in rows[0]
    ]
    if missing:
        raise UserError(f"{place}: {file} has no column {missing[0]!r} (it has {', '.join(rows[0])})")
    return [
        Item(
            item_id=str(row.get("item") or f"{set_name}-{i}"),
            set_name=set_name,
            role="practice",
            condition={},
            shown={field: row[field] for field in fields},
            intact={},
            choices=_choices_of(row) if with_choices else tuple(keys) if isinstance(keys, dict) else None,
            answer=row["answer"],
            provenance={
                "source": file,
                "source_id": str(row.get("item") or i),
                "split": None,
                "licence": None,
                "operation": "none",
                "seed": study.seed,
            },
        )
        for i, row in enumerate(rows, 1)
    ]


def _choices_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(part.strip() for part in str(row["choices"]).split(CHOICE_SEPARATOR))


def _conditions_told(
    study: Study, rows: Sequence[Mapping[str, Any]]
) -> tuple[Sequence[Mapping[str, Any]], str | None]:
    """Return rows with the condition in their columns, and the name of the column; None if there is none."""
    crossing = study.crossing
    factors = list(next(iter(crossing.conditions.values())))
    if crossing.factor is None or not all(factor in rows[0] for factor in factors):
        return rows, None
    cells = {tuple(at.values()): cell for cell, at in crossing.conditions.items()}
    conditioned_rows = []
    for row in rows:
        at = tuple(str(row[factor]) for factor in factors)
        conditioned_rows.append({**row, crossing.factor: cells[at]})
    return conditioned_rows, crossing.factor


def _placed(
    study: Study, items: Sequence[Item], rows: Sequence[Mapping[str, Any]], *, key: str
) -> list[Item]:
    """Return practice items with their condition by the design's factors; those that select rows by their columns."""
    if not study.crossing.rows:
        return in_design(study, items)
    first, _ = study.crossing.rows[0]
    cells = {nfc(str(row.get(key))).strip(): row for row in rows}
    return [
        placed
        for item in items
        for placed in in_design(
            study,
            [item],
            {
                factor: str(cells.get(item.item_id, {}).get(factor) or level)
                for factor, level in first.items()
            },
        )
    ]


def _word(study: Study, row: Mapping[str, Any], design: ItemDesign) -> list[Item]:
    (conditioned,), column = _conditions_told(study, [row])
    missing = [name for name in ("word", "foil") if not row.get(name)]
    if missing:
        raise UserError(
            f"{design.source} has a row without {missing[0]!r}",
            mend="Practice words need the columns word and foil.",
        )
    made = word_items([row["word"]], design, foils={row["word"]: row["foil"]}).items
    if column is None:
        return list(made[:1])
    return [item for item in made if item.condition[column] == conditioned[column]]
