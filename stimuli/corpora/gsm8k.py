"""GSM8K: grade-school problems whose solution ends in a number after ``####``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stimuli.corpora.corpus import Corpus, CorpusSplit, Hub, RawRecord, Record, RecordLocation

_NUMBER = re.compile(
    r"(?P<sign>[-+\u2212]?)\s*\$?\s*(?P<whole>\d{1,3}(?:,\d{3})+|\d+)?(?P<part>\.\d+)?\s*%?\s*\.?"
)
_SOCRATIC = "the socratic version has the same questions with other solutions; ask for split {split!r}"


def read(row: RawRecord, place: RecordLocation) -> Iterator[Record]:
    """Read a problem; the solution without its last line is the rationale."""
    rationale, mark, last = place.text(row, "answer").rpartition("####")
    if not mark:
        raise place.fault("answer has no '####' before the number", mend="Is this a file of GSM8K?")
    number = canonical_number(last)
    if number is None:
        raise place.fault(f"{last.strip()!r} after #### is no number")
    rationale = rationale.strip()
    yield place.record(
        f"{place.part_id}-{place.line}",
        {"question": place.text(row, "question")},
        answer=number,
        rationale=rationale or None,
        extra={"steps": float(len(rationale.splitlines()))},
    )


def canonical_number(given: str) -> str | None:
    """Write a number with its sign and decimals and without thousands commas; None for what is no number."""
    match = _NUMBER.fullmatch(given.strip())
    if not match or not (match["whole"] or match["part"]):
        return None
    sign = "-" if match["sign"] in ("-", "\u2212") else ""
    return f"{sign}{(match['whole'] or '0').replace(',', '')}{match['part'] or ''}"


CORPUS = Corpus(
    name="gsm8k",
    title="GSM8K",
    citation="Cobbe et al. (2021). Training verifiers to solve math word problems. arXiv:2110.14168.",
    licence="MIT",
    fields=("question",),
    reading_field="question",
    parts=tuple(
        part
        for split in ("train", "test")
        for name in (f"{split}_socratic",)
        for part in (
            CorpusSplit(name, (f"{name}*.jsonl",), left_out=_SOCRATIC.format(split=name)),
            CorpusSplit(split, (f"{split}*.jsonl",)),
        )
    ),
    read=read,
    hub=Hub("openai/gsm8k", "main"),
)
