"""Items of a lexical decision: words, nonwords made of them, and word fillers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from experiment.building.matched import matched_items
from experiment.building.reading import Made, in_design, path_of, scramble_settings, step_of_kind
from experiment.building.tables import word_rows
from experiment.study import Study
from stimuli.corpora import Record
from stimuli.errors import UserError
from stimuli.item import Item
from stimuli.recipes.lexical_decision import FIELD, lexical_decision_items

OWN_SETTINGS = ("words", "labels")
ANSWERS = ("word", "nonword")


def items_from_lexical_decision(study: Study) -> Made:
    """Make items of a lexical decision, ``materials: {lexical_decision: …}``.

    The levels of the study's factor are the forms of a base word; its words come from a file, or are drawn by the
    bounds that the study gives.
    """
    materials = study.get("materials")
    asked: dict[str, Any] = materials["lexical_decision"] or {}
    records: list[Record] = []
    sources = []
    remarks: list[str] = []
    rows: dict[str, Any] = {}
    skipped: list[str] = []
    if "words" in asked:
        file = path_of(study, "lexical_decision", "words")
        table = word_rows(study, file, remarks, skipped)
        rows = {str(row["word"]): row for row in table}
        records = [
            Record(
                str(row["word"]),
                file.name,
                None,
                None,
                {FIELD: str(row["word"])},
                None,
                None,
                extra={"role": row.get("role")},
                file=file.name,
                line=line,
            )
            for row, line in zip(table.rows, table.numbers, strict=True)
        ]
        sources.append(file)
    options = {name: value for name, value in asked.items() if name not in OWN_SETTINGS}
    named = sum(record.extra.get("role") == "filler" for record in records)
    if named and "fillers" not in options:
        options["fillers"] = named
    made = lexical_decision_items(
        records,
        factor=study.crossing.factor,
        levels=study.crossing.levels,
        seed=study.seed,
        settings=scramble_settings(study),
        number=materials.get("items"),
        options=options,
        on_bad=materials.get("on_bad", "stop"),
    )
    skipped += [
        one.reason if one.reason.startswith("record ") else f"{one.record_id}: {one.reason}"
        for one in made.skipped
    ]
    items = [_labelled(study, item) for item in in_design(study, made.items)]
    tested = [item for item in items if item.role == "test"]
    fillers = [item for item in items if item.role != "test"]
    kept, told = matched_items(study, tested, rows)
    return Made([*kept, *fillers], sources, [*remarks, *told], skipped)


def _labelled(study: Study, item: Item) -> Item:
    """Call the two answers as the study's labels do."""
    keys = (step_of_kind(study, "choose") or {}).get("keys")
    if not isinstance(keys, dict):
        return item
    names: dict[str, str] = study.get("materials", "lexical_decision", "labels", default={})
    called = {answer: str(names.get(answer, answer)) for answer in ANSWERS}
    if set(called.values()) != set(keys):
        raise UserError(
            f"{study.place('materials', 'lexical_decision')}: answers are {' and '.join(called.values())}, and the keys "
            f"are for {' and '.join(map(str, keys))}",
            mend="Say which is which: lexical_decision: {labels: {word: YOUR LABEL, nonword: YOUR OTHER LABEL}}.",
        )
    answer = None if item.answer is None else called[item.answer]
    choices = None if item.choices is None else tuple(called.get(one, one) for one in item.choices)
    return replace(item, answer=answer, choices=choices)
