"""BoolQ: yes-no questions about a passage."""

from __future__ import annotations

from collections.abc import Iterator

from stimuli.corpora.corpus import Corpus, CorpusSplit, Hub, RawRecord, Record, RecordLocation


def read(row: RawRecord, place: RecordLocation) -> Iterator[Record]:
    """Read a question; the unlabelled test split has no answers."""
    passage, question = place.text(row, "passage"), place.text(row, "question")
    unlabelled = place.split == "test" and "answer" not in row
    right = None if unlabelled else place.value(row, "answer", bool)
    yield place.record(
        f"{place.part_id}-{place.line}",
        {"passage": passage, "question": question},
        choices=("yes", "no"),
        answer=None if right is None else "yes" if right else "no",
        extra={"title": str(row["title"])} if row.get("title") else {},
    )


CORPUS = Corpus(
    name="boolq",
    title="BoolQ",
    citation="Clark et al. (2019). BoolQ: Exploring the surprising difficulty of natural yes/no questions. NAACL, 2924–2936.",
    licence="CC BY-SA 3.0",
    fields=("passage", "question"),
    reading_field="passage",
    parts=(
        CorpusSplit("train", ("train*.jsonl",)),
        CorpusSplit("dev", ("dev*.jsonl",)),
        CorpusSplit("test", ("test*.jsonl",)),
        CorpusSplit(None, ("boolq*.jsonl",)),
    ),
    read=read,
    hub=Hub("google/boolq", None, {"dev": "validation"}),
)
