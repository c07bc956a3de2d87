"""Loads RealtimeQA: the weekly question files of Kasai et al. (2023), and the evidence sentences in them.

``recovery_sentences`` gives what Cao et al. (2023) scrambled: every distinct piece of evidence, without its mark-up,
in the order of their published stimuli.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from stimuli.corpora.corpus import Corpus, CorpusSplit, RawRecord, Record, RecordLocation, SourceText
from stimuli.files import data_file

SOURCE = "RealtimeQA"
_TAG = re.compile(r"<[^>]+>")
_SPACES = re.compile(r" +")


def plain_text(marked_up: str) -> str:
    """Take HTML tags and entities out of a text; runs of spaces become one space."""
    text = html.unescape(_TAG.sub("", marked_up)).replace("\xa0", " ")
    return _SPACES.sub(" ", text).strip()


def read(row: RawRecord, place: RecordLocation) -> Iterator[Record]:
    """Read a question without mark-up; one without evidence has no text of that field."""
    question, evidence = place.value(row, "question_sentence", object), place.value(row, "evidence", object)
    choices = place.texts(row, "choices")
    try:
        (number,) = place.value(row, "answer", object)
        answer = choices[int(number)]
    except (TypeError, ValueError, IndexError):
        raise place.fault(f"answer {row['answer']!r} does not name one of {len(choices)} choices") from None
    texts = {"evidence": plain_text(str(evidence))} if evidence else {}
    yield place.record(
        # Week and place in the file, like question_id, of which one stands in two files.
        f"{place.file.stem.removesuffix('_qa')}_{place.line - 1}",
        {**texts, "question": plain_text(str(question))},
        choices=tuple(map(plain_text, choices)),
        answer=plain_text(answer),
        extra={
            "question_id": str(place.value(row, "question_id", object)),
            "date": row.get("question_date"),
            "outlet": row.get("question_source"),
        },
    )


def _published() -> Mapping[str, Any]:
    return cast(Mapping[str, Any], data_file("corpora/realtimeqa_published.json"))


def _as_published(evidence: str) -> str:
    for mend in _published()["mended"]:
        if evidence.startswith(mend["starts"]):
            evidence = evidence.replace(mend["find"], mend["replace"], 1)
    return evidence if evidence.endswith(".") else f"{evidence}."


def recovery(records: Sequence[Record], files: Sequence[Path] = ()) -> list[Record]:
    """Return a record for each distinct piece of evidence as Cao et al. (2023) prepared them, in their order.

    Missing full stops are added, the authors' manual corrections are applied, exact duplicates are removed, and
    texts are sorted. The 21 weekly files from 2023-03-17 to 2023-08-04 give the 408 published sentences.
    """
    wrong = _published()["wrong_duplicate"]
    first_use: dict[str, Record] = {}
    for record in records:
        if "evidence" in record.texts and record.record_id != wrong:
            first_use.setdefault(_as_published(record.texts["evidence"]), record)
    return [
        replace(record, texts={**record.texts, "evidence": text})
        for text, record in sorted(first_use.items(), key=lambda use: use[0])
    ]


def answerable(records: Sequence[Record], files: Sequence[Path] = ()) -> list[Record]:
    """Return the published sentences whose evidence answers the question, 346 of the 408, in their order."""
    left_out = frozenset(_published()["not_asked"])
    return [record for record in recovery(records) if record.record_id not in left_out]


def recovery_sentences(records: Sequence[Record]) -> list[SourceText]:
    """Return the texts of :func:`recovery`."""
    return [SourceText(record.record_id, record.texts["evidence"], SOURCE) for record in recovery(records)]


CORPUS = Corpus(
    name="realtimeqa",
    title="RealtimeQA",
    citation="Kasai et al. (2023). RealTime QA: What's the answer right now? NeurIPS Datasets and Benchmarks.",
    licence=None,
    fields=("evidence", "question"),
    reading_field="evidence",
    parts=(CorpusSplit(None, ("*_qa.jsonl",), many=True),),
    read=read,
    notice="RealtimeQA states no licence and its texts are from news sites; keep them out of what you pass on.",
    selections={"recovery": recovery, "answerable": answerable},
)
