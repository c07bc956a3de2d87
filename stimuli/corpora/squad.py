"""SQuAD 1.1 and 2.0: questions whose answers are spans of a paragraph, in the nested original and flat layouts."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    line_rows,
)
from stimuli.errors import UserError

_ARTICLES = re.compile(r'"data"\s*:\s*(?=\[)')


def rows(path: Path) -> Iterator[Numbered]:
    """Yield every question with its context, from a nested file or a flat one."""
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            nested = _ARTICLES.search(stream.read(4096))
    except OSError:
        nested = None
    if not nested:
        yield from line_rows(path)
        return
    for line, article in array_rows(path, after=_ARTICLES):
        if isinstance(article, UserError):
            yield line, article
            continue
        try:
            yield from ((line, question) for question in _questions(article))
        except (KeyError, TypeError):
            yield line, UserError(f"{path}, line {line}: an article without paragraphs[].qas[].answers[]")


def _questions(article: RawRecord) -> Iterator[RawRecord]:
    for paragraph in article["paragraphs"]:
        for question in paragraph["qas"]:
            yield {
                "is_impossible": False,
                **question,
                "title": article.get("title"),
                "context": paragraph["context"],
                "answers": {"text": [answer["text"] for answer in question["answers"]]},
            }


def read(row: RawRecord, place: RecordLocation) -> Iterator[Record]:
    """Read a question; one without an answer in its text has the answer None and ``answerable`` 0."""
    record_id, context = place.text(row, "id"), place.text(row, "context")
    impossible = row.get("is_impossible")
    answers = () if impossible else place.texts(place.value(row, "answers", dict), "text")
    if not answers and impossible is False:
        raise place.fault(f"question {record_id!r} has no answer and is not marked impossible")
    wrong = next((answer for answer in answers if not answer or answer not in context), None)
    if wrong is not None:
        raise place.fault(f"answer {wrong!r} of question {record_id!r} does not occur in the context")
    distinct = tuple(dict.fromkeys(answers))
    yield place.record(
        record_id,
        {"context": context, "question": place.text(row, "question")},
        answer=distinct[0] if distinct else None,
        answers=distinct[1:],
        extra={"title": row.get("title") or None, "answerable": 1.0 if distinct else 0.0},
    )


CORPUS = Corpus(
    name="squad",
    title="SQuAD",
    citation="Rajpurkar, Zhang, Lopyrev & Liang (2016). SQuAD: 100,000+ questions. EMNLP, 2383–2392.",
    licence="CC BY-SA 4.0",
    fields=("context", "question"),
    reading_field="context",
    parts=(
        CorpusSplit("train", ("*train*.json", "*train*.jsonl")),
        CorpusSplit("dev", ("*dev*.json", "*dev*.jsonl")),
    ),
    read=read,
    rows=rows,
    hub=Hub("rajpurkar/squad", None, {"dev": "validation"}),
)
