"""Loads RealtimeQA: the weekly question files of Kasai et al. (2023), and the evidence sentences in them.

``recovery_sentences`` gives what Cao et al. (2023) scrambled: every distinct piece of evidence, without its mark-up,
in the order of their published stimuli.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from stimuli.corpora.corpus import Corpus, Part, Place, Record
from stimuli.corpora.rows import RawRecord, SourceText, json_lines
from stimuli.errors import UserError
from stimuli.files import data_file

SOURCE = "RealtimeQA"
_TAG = re.compile(r"<[^>]+>")
_SPACES = re.compile(r" +")


@dataclass(frozen=True)
class Question:
    """One record of a weekly file."""

    question_id: str  # week and number, such as 20230317_0
    question: str  # the question, without mark-up
    choices: tuple[str, ...]  # the options, without mark-up
    answer: str  # the right option
    evidence: str | None  # the sentences that hold the answer, without mark-up
    file: str  # where the record stands
    line: int

    @property
    def record_id(self) -> str:
        """Week and place in the file, like ``question_id``, of which one stands in two files."""
        return f"{Path(self.file).stem.removesuffix('_qa')}_{self.line - 1}"


def weekly_files(where: Path | Iterable[Path]) -> list[Path]:
    """Return the weekly files of a folder by date, or the files given."""
    given = [where] if isinstance(where, Path) else list(where)
    files: list[Path] = []
    for path in given:
        files += sorted(path.glob("*_qa.jsonl")) if path.is_dir() else [path]
    if not files:
        raise UserError(
            f"no RealtimeQA files in {', '.join(str(path) for path in given) or 'an empty list'}",
            mend="Give the folder with the weekly files, named like 20230317_qa.jsonl.",
        )
    return files


def load_questions(where: Path | Iterable[Path]) -> list[Question]:
    """Load weekly files."""
    return [
        read_question(record, path, number)
        for path in weekly_files(where)
        for number, record in json_lines(path)
    ]


def read_question(record: Mapping[str, Any], path: Path, number: int) -> Question:
    """Read one record of a weekly file."""
    where = f"{path}, line {number}"
    for key in ("question_id", "question_sentence", "choices", "answer", "evidence"):
        if key not in record:
            raise UserError(f"{where}: {key!r} is missing", mend="Is this a RealtimeQA file?")
    choices = record["choices"]
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        raise UserError(f"{where}: choices is a list of texts, not {choices!r}")
    try:
        (place,) = record["answer"]
        answer = choices[int(place)]
    except (TypeError, ValueError, IndexError):
        raise UserError(
            f"{where}: answer {record['answer']!r} does not name one of {len(choices)} choices"
        ) from None
    return Question(
        question_id=str(record["question_id"]),
        question=plain_text(str(record["question_sentence"])),
        choices=tuple(plain_text(choice) for choice in choices),
        answer=plain_text(answer),
        evidence=plain_text(str(record["evidence"])) if record["evidence"] else None,
        file=path.name,
        line=number,
    )


def plain_text(marked_up: str) -> str:
    """Take HTML tags and entities out of a text; runs of spaces become one space."""
    text = html.unescape(_TAG.sub("", marked_up)).replace("\xa0", " ")
    return _SPACES.sub(" ", text).strip()


def _published() -> Mapping[str, Any]:
    return cast(Mapping[str, Any], data_file("corpora/realtimeqa_published.json"))


def recovery_sentences(questions: Sequence[Question]) -> list[SourceText]:
    """Return the distinct pieces of evidence as Cao et al. (2023) prepared them, in their order.

    A full stop is added where one is missing, the records that they mended by hand are mended, exact duplicates
    go, and texts are sorted. From the 21 weekly files 2023-03-17 to 2023-08-04 come the 408 published sentences.
    """
    return [SourceText(question.record_id, text, SOURCE) for text, question in _evidence(questions)]


def answerable_questions(questions: Sequence[Question]) -> list[tuple[Question, str]]:
    """Return the questions that Cao et al. (2023) asked about the evidence, with the evidence as they prepared it."""
    left_out = frozenset(_published()["not_asked"])
    return [(question, text) for text, question in _evidence(questions) if question.record_id not in left_out]


def _evidence(questions: Sequence[Question]) -> list[tuple[str, Question]]:
    wrong = _published()["wrong_duplicate"]
    first_use: dict[str, Question] = {}
    for question in questions:
        if question.evidence is not None and question.record_id != wrong:
            first_use.setdefault(_as_published(question.evidence), question)
    return sorted(first_use.items(), key=lambda use: use[0])


def _as_published(evidence: str) -> str:
    for mend in _published()["mended"]:
        if evidence.startswith(mend["starts"]):
            evidence = evidence.replace(mend["find"], mend["replace"], 1)
    return evidence if evidence.endswith(".") else f"{evidence}."


def read(row: RawRecord, place: Place) -> Iterator[Record]:
    """Read a question without mark-up; one without evidence has no text of that field."""
    question = read_question(row, place.file, place.line)
    texts = {"question": question.question}
    if question.evidence is not None:
        texts = {"evidence": question.evidence, **texts}
    yield place.record(
        question.record_id,
        texts,
        choices=question.choices,
        answer=question.answer,
        extra={
            "question_id": question.question_id,
            "date": row.get("question_date"),
            "outlet": row.get("question_source"),
        },
    )


def recovery(records: Sequence[Record], files: Sequence[Path] = ()) -> list[Record]:
    """Return one record for each of the published sentences, in their order, with the evidence as published."""
    by_id = {record.record_id: record for record in records}
    return [
        _with_evidence(by_id[sentence.source_id], sentence.text)
        for sentence in recovery_sentences([_question(record) for record in records])
    ]


def answerable(records: Sequence[Record], files: Sequence[Path] = ()) -> list[Record]:
    """Return the published questions about their evidence, in their order, with the evidence as published."""
    by_id = {record.record_id: record for record in records}
    asked = answerable_questions([_question(record) for record in records])
    return [_with_evidence(by_id[question.record_id], evidence) for question, evidence in asked]


def _with_evidence(record: Record, evidence: str) -> Record:
    return replace(record, texts={**record.texts, "evidence": evidence})


def _question(record: Record) -> Question:
    return Question(
        question_id=str(record.extra["question_id"]),
        question=record.texts["question"],
        choices=record.choices or (),
        answer=record.answer or "",
        evidence=record.texts.get("evidence"),
        file=record.file,
        line=record.line,
    )


CORPUS = Corpus(
    name="realtimeqa",
    title="RealtimeQA",
    citation="Kasai et al. (2023). RealTime QA: What's the answer right now? NeurIPS Datasets and Benchmarks.",
    licence=None,
    fields=("evidence", "question"),
    reading_field="evidence",
    parts=(Part(None, ("*_qa.jsonl",), many=True),),
    read=read,
    notice="RealtimeQA states no licence and its texts are from news sites; keep them out of what you pass on.",
    selections={"recovery": recovery, "answerable": answerable},
)
