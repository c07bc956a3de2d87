"""AQuA-RAT: algebra problems with five options and a worked solution."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stimuli.corpora.corpus import Corpus, CorpusSplit, Hub, RawRecord, Record, RecordLocation

_LETTERS = "ABCDE"
_OPTION = re.compile(r"\s*\(?(?P<letter>[A-E])\)\s*(?P<text>.*?)\s*", re.DOTALL)


def read(row: RawRecord, place: RecordLocation) -> Iterator[Record]:
    """Yield a problem; options lose their letters, and the letter of the correct one is in ``extra``."""
    matches = [_OPTION.fullmatch(option) for option in place.texts(row, "options")]
    options = {match["letter"]: match["text"] for match in matches if match}
    if not matches or list(options) != list(_LETTERS[: len(matches)]):
        raise place.fault(f"options begin with A), B), …, not {row['options']!r}")
    correct = place.text(row, "correct")
    if correct not in options:
        raise place.fault(f"correct is {correct!r}, not one of {', '.join(options)}")
    yield place.record(
        f"{place.part_id}-{place.line}",
        {"question": place.text(row, "question")},
        choices=tuple(options.values()),
        answer=options[correct],
        rationale=place.value(row, "rationale", str) or None,
        extra={"letter": correct},
    )


CORPUS = Corpus(
    name="aqua",
    title="AQuA-RAT",
    citation="Ling, Yogatama, Dyer & Blunsom (2017). Program induction by rationale generation. ACL, 158–167.",
    licence="Apache-2.0",
    fields=("question",),
    reading_field="question",
    parts=(
        CorpusSplit("train", ("train*.json",)),
        CorpusSplit("dev", ("dev*.json",)),
        CorpusSplit("test", ("test*.json",)),
    ),
    read=read,
    hub=Hub("deepmind/aqua_rat", "raw", {"dev": "validation"}),
)
