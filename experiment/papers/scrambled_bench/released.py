"""The released outputs of Scrambled Bench (Cao et al., 2023) as sessions of their models.

Seven models answered 408 scrambled sentences to recover and 346 questions in up to seven conditions; each model, task, method
and condition is a session. The paper's parser reads each output again, and the result is compared with the stored prediction.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiment.models.imports.responses import ResponseFile, TableRow
from experiment.models.imports.writing import GivenSession, GivenSource, Import, ImportedResponse, items_for
from experiment.store import Store
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.item import Item, Provenance

CONDITIONS = {
    "original": "none", "rs20": "published RS@0.2", "rs50": "published RS@0.5", "rs100": "published RS", "kf": "published KF",
    "kfl": "published KFL", "sub": "published SUB",
}  # fmt: skip
"""The released conditions, and what items that are built of the same data say was done to them."""
RECOVERY, QUESTIONS = "recovery", "questions"
PARSER = "scrambled_bench"
METHODS = {RECOVERY: ("zero-shot", "few-shot"), QUESTIONS: ("zero-shot",)}
"""How each set was asked, without and with solved examples: levels of the factor ``examples``."""
DATA_SET = "realtimeqa"
_TASKS = {"rec": RECOVERY, "qa": QUESTIONS}
_Known = dict[tuple[str, str, str, str], Item]
_FIELDS = ("task", "method", "cond", "i", "output")


def read_scrambled_bench(study: Study, store: Store | None, folder: Path) -> Import:
    """Read all files of released outputs; items come from the released stimuli. Nothing is written yet."""
    stimuli = [folder / "stimuli" / name for name in ("rec_realtimeqa.jsonl", "qa_realtimeqa.jsonl")]
    items = items_for(study, store, stimuli, lambda: _items_of(stimuli))
    known: _Known = {
        (item.set_name, item.item_id, item.condition["text"], item.condition.get("examples", "")): item
        for item in items.study.items
    }
    files = sorted((folder / "outputs").glob("*.jsonl*"))
    if not files:
        raise UserError(
            f"{folder / 'outputs'} has no outputs", mend="Give the folder that holds outputs/ and stimuli/."
        )
    given = []
    for file in files:
        source = ResponseFile(file)
        about = {"imported": {"source": file.name, "sha256": source.sha256, "paper": "Cao et al. (2023)"}}
        reader = file.name.partition(".jsonl")[0]
        given.append(GivenSource(file.name, source.sha256, list(_sessions(source, reader, known)), about))
    return Import(items, given, "model", PARSER)


def _items_of(files: list[Path]) -> list[Item]:
    for file in files:
        if not file.is_file():
            raise UserError(f"there is no {file}", mend="Give the folder that holds outputs/ and stimuli/.")
    items: list[Item] = []
    for file, make in ((files[0], _sentence), (files[1], _question)):
        for row in ResponseFile(file).rows():
            try:
                items += make(row)
            except KeyError as error:
                raise UserError(
                    f"{row.where} has no {error.args[0]}", mend="Give the released files as they are."
                ) from error
    return items


def _sentence(row: TableRow) -> list[Item]:
    intact = str(row.values["original"])
    levels = [level for level in CONDITIONS if level in row.values]
    return [
        item
        for level in levels
        for item in _items(RECOVERY, row, level, {"sentence": str(row.values[level])}, intact)
    ]


def _question(row: TableRow) -> list[Item]:
    options = tuple(str(one) for one in row.values["choices"])
    answer = options[string.ascii_uppercase.index(str(row.values["answer"]))]
    question, evidence = str(row.values["question"]), row.values["evidence"]
    return [
        item
        for level in CONDITIONS
        for item in _items(
            QUESTIONS, row, level, {"evidence": str(evidence[level]), "question": question}, answer, options
        )
    ]


def _items(
    name: str,
    row: TableRow,
    level: str,
    shown: dict[str, str],
    answer: str,
    choices: tuple[str, ...] | None = None,
) -> list[Item]:
    provenance: Provenance = {
        "source": "Scrambled Bench (Cao et al., 2023), released stimuli", "source_id": str(row.values["i"]), "split": None,
        "licence": None, "operation": CONDITIONS[level], "seed": 10,
    }  # fmt: skip
    intact = row.values["original"] if choices is None else row.values["evidence"]["original"]
    return [
        Item(
            item_id=f"{name}-{row.values['i']}",
            set_name=name,
            role="test",
            condition={"text": level, "examples": method},
            shown=shown,
            intact={next(iter(shown)): str(intact)},
            choices=choices,
            answer=answer,
            provenance=provenance,
        )
        for method in METHODS[name]
    ]


def _sessions(source: ResponseFile, reader: str, items: _Known) -> Iterator[GivenSession]:
    groups: dict[tuple[str, str, str], list[ImportedResponse]] = {}
    for row in source.rows():
        values: Any = row.values
        missing = [name for name in _FIELDS if name not in values]
        if missing:
            raise UserError(f"{row.where} has no {missing[0]}", mend="Give the released files as they are.")
        if values.get("ds", DATA_SET) != DATA_SET:
            raise UserError(
                f"{row.where}: ds is {values['ds']!r}; the stimuli are those of {DATA_SET}, and answers to other texts would "
                "be scored against them",
                mend="Leave these lines out; `wrods reproduce scrambled-bench` makes tables of DREAM and AQuA-RAT from the "
                "authors' own files.",
            )
        name = _TASKS.get(values["task"], "")
        item = items.get((name, f"{name}-{values['i']}", values["cond"], values["method"]))
        if item is None:
            raise UserError(
                f"{row.where}: there is no stimulus {values['i']} of {values['task']} in {values['cond']}, {values['method']}",
                mend="Give outputs and stimuli of the same release, and a new study folder where an earlier version made this one.",
            )
        told = values.get("recovered") if name == RECOVERY else values.get("pred")
        output = str(values["output"])
        key = (values["task"], values["method"], values["cond"])
        groups.setdefault(key, []).append(
            ImportedResponse(row.where, item, output, prediction=None if told is None else str(told))
        )
    for number, ((task, method, cond), responses) in enumerate(groups.items(), 1):
        yield GivenSession(reader, json.dumps([task, method, cond]), number, responses)
