"""DREAM: questions about dialogues, with the categories that two annotators gave to some of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from stimuli.corpora.corpus import (
    Corpus,
    CorpusSplit,
    Hub,
    Numbered,
    RawRecord,
    Record,
    RecordLocation,
    array_rows,
)
from stimuli.errors import UserError

CATEGORIES = {"m": "matching", "s": "summary", "l": "logic", "a": "arithmetic", "c": "commonsense"}
# Cao et al. (2023) asked the questions that these annotators saw, and took categories from the second throughout.
ASKED_BY = {"test": 1, "dev": 2}
CATEGORIES_BY = 2
# The one annotated question that is missing from their 1,025.
NOT_ASKED = "4-14-3"
_HEADER = ["dialogueID", "questionIndex", "type"]


@dataclass(frozen=True)
class Annotation:
    """One line of an annotator's file: the question's id and its categories."""

    record_id: str
    categories: tuple[str, ...]


def read_annotations(folder: Path, annotator: int, split: str) -> list[Annotation] | None:
    """Read what an annotator said about a split, in the order of the file; None where the file is not there."""
    file = folder / f"annotator{annotator}_{split}.txt"
    if not file.is_file():
        return None
    lines = [line.split("\t") for line in file.read_text("utf-8-sig").splitlines()]
    if not lines or lines[0] != _HEADER:
        raise UserError(f"{file}, line 1: columns are {', '.join(_HEADER)}, parted by tabs")
    annotations = []
    for number, cells in enumerate(lines[1:], 2):
        if len(cells) != 3 or not cells[1].isdigit() or not cells[2] or set(cells[2]) - CATEGORIES.keys():
            raise UserError(
                f"{file}, line {number}: {'	'.join(cells)!r} is not dialogue, question number and letters of "
                f"{''.join(CATEGORIES)}"
            )
        names = tuple(name for letter, name in CATEGORIES.items() if letter in cells[2])
        annotations.append(Annotation(f"{cells[0]}-{cells[1]}", names))
    return annotations


def rows(path: Path) -> Iterator[Numbered]:
    """Yield each question with its dialogue and, if the annotators' files are in the folder, its categories."""
    split = next((part.split for part in CORPUS.parts if part.holds(path)), None)
    given = read_annotations(path.parent, CATEGORIES_BY, split) if split in ASKED_BY else None
    categories = {question.record_id: question.categories for question in given or ()}
    for line, element in array_rows(path):
        if isinstance(element, UserError):
            yield line, element
            continue
        dialogue = element.get("")
        if not isinstance(dialogue, list) or len(dialogue) != 3 or not isinstance(dialogue[1], list):
            fault = f"{path}, line {line}: a dialogue is [turns, questions, id]"
            yield line, UserError(fault, mend="Is this a file of DREAM?")
            continue
        turns, questions, name = dialogue
        for number, question in enumerate(questions, 1):
            fields = question if isinstance(question, dict) else {}
            known = categories.get(f"{name}-{number}")
            yield line, {**fields, "turns": turns, "dialogue": name, "number": number, "categories": known}


def read(row: RawRecord, place: RecordLocation) -> Iterator[Record]:
    """Read one question with its dialogue, a turn a line."""
    choices, answer = place.texts(row, "choice"), place.text(row, "answer")
    if answer not in choices:
        raise place.fault(f"answer {answer!r} is not one of the choices {', '.join(map(repr, choices))}")
    turns = place.texts(row, "turns")
    if not any(turn.strip() for turn in turns):
        raise place.fault("the dialogue has no turns")
    known: tuple[str, ...] | None = row.get("categories")
    extra: dict[str, float | str | None] = {
        "dialogue": place.text(row, "dialogue"),
        "turns": float(len(turns)),
        "categories": None if known is None else ", ".join(known),
    }
    for name in CATEGORIES.values():
        extra[f"is_{name}"] = None if known is None else float(name in known)
    texts = {"dialogue": "\n".join(turns), "question": place.text(row, "question")}
    record_id = f"{row['dialogue']}-{row['number']}"
    yield place.record(record_id, texts, choices=choices, answer=answer, extra=extra)


def annotated(records: Sequence[Record], files: Sequence[Path]) -> list[Record]:
    """Return the questions that Cao et al. (2023) asked, in the order of annotation: 512 of test, 513 of dev."""
    asked: list[Record] = []
    by_id = {(record.split, record.record_id): record for record in records}
    for split in dict.fromkeys(record.split for record in records):
        annotator = ASKED_BY.get(split or "")
        if annotator is None or split is None:
            raise UserError(
                f"DREAM's annotators saw test and dev, not {split or 'this file'}",
                mend="Ask for split test or dev.",
            )
        folder = next(file.parent for file in files if file.name.startswith(split))
        for number in {annotator, CATEGORIES_BY}:
            if read_annotations(folder, number, split) is None:
                raise UserError(
                    f"{folder / f'annotator{number}_{split}.txt'} does not exist",
                    mend="DREAM's repository has it in the folder annotation; put it next to the corpus file.",
                )
        for annotation in read_annotations(folder, annotator, split) or ():
            if annotation.record_id == NOT_ASKED:
                continue
            if (split, annotation.record_id) not in by_id:
                raise UserError(
                    f"annotated question {annotation.record_id!r} is not among the records of {split}"
                )
            asked.append(by_id[split, annotation.record_id])
    return asked


def from_hub(given: Iterable[RawRecord]) -> Iterator[RawRecord]:
    """Give the hub's rows, one a question, the form of :func:`rows`."""
    for _, questions in groupby(given, key=lambda row: row.get("dialogue_id")):
        for number, row in enumerate(questions, 1):
            yield {**row, "turns": row.get("dialogue"), "dialogue": row.get("dialogue_id"), "number": number}


CORPUS = Corpus(
    name="dream",
    title="DREAM",
    citation="Sun et al. (2019). DREAM: A challenge data set and models for dialogue-based reading comprehension. TACL, 7, 217–231.",
    licence="non-commercial research only",
    fields=("dialogue", "question"),
    reading_field="dialogue",
    parts=(
        CorpusSplit("train", ("train*.json",)),
        CorpusSplit("dev", ("dev*.json",)),
        CorpusSplit("test", ("test*.json",)),
    ),
    read=read,
    rows=rows,
    hub=Hub("dataset-org/dream", None, {"dev": "validation"}, from_hub),
    notice="DREAM is for non-commercial research only; its texts may not be passed on with a study.",
    selections={"annotated": annotated},
    beside=("annotator[12]_*.txt",),
)
