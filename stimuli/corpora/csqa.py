"""CommonsenseQA: questions with five options, in the original layout and in the hub's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stimuli.corpora.corpus import Corpus, CorpusSplit, Hub, RawRecord, Record, RecordLocation


def read(row: RawRecord, place: RecordLocation) -> Iterator[Record]:
    """Read a question of either layout; the test split is not labelled and gives the answer None."""
    options, stem, concept = (
        _original(row, place) if isinstance(row.get("question"), dict) else _flat(row, place)
    )
    key = row.get("answerKey") or None
    if key is None and place.split not in (None, "test"):
        raise place.fault("'answerKey' is missing, but only the test split is unlabelled")
    if key is not None and key not in options:
        raise place.fault(f"answerKey is {key!r}, not one of {', '.join(options)}")
    answer, choices = None if key is None else options[key], tuple(options.values())
    told: dict[str, Any] = {"choices": choices, "answer": answer, "extra": {"concept": concept}}
    yield place.record(place.text(row, "id"), {"question": stem}, **told)


def _original(row: RawRecord, place: RecordLocation) -> tuple[dict[str, str], str, str]:
    question = row["question"]
    choices = place.value(question, "choices", list)
    options = {place.text(choice, "label"): place.text(choice, "text") for choice in choices}
    return options, place.text(question, "stem"), place.text(question, "question_concept")


def _flat(row: RawRecord, place: RecordLocation) -> tuple[dict[str, str], str, str]:
    stem = place.text(row, "question")
    choices = place.value(row, "choices", dict)
    labels, texts = place.texts(choices, "label"), place.texts(choices, "text")
    if len(labels) != len(texts):
        raise place.fault(f"{len(labels)} labels but {len(texts)} choices")
    return dict(zip(labels, texts, strict=True)), stem, place.text(row, "question_concept")


CORPUS = Corpus(
    name="csqa",
    title="CommonsenseQA",
    citation="Talmor, Herzig, Lourie & Berant (2019). CommonsenseQA. NAACL, 4149–4158.",
    licence="MIT",
    fields=("question",),
    reading_field="question",
    parts=(
        CorpusSplit("train", ("train*.jsonl",)),
        CorpusSplit("dev", ("dev*.jsonl",)),
        CorpusSplit("test", ("test*.jsonl",)),
    ),
    read=read,
    hub=Hub("tau/commonsense_qa", None, {"dev": "validation"}),
)
