"""Cuts the texts of records into sentences, each a record of its own, so that any corpus gives sentences to recover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stimuli.corpora.record import Record
from stimuli.errors import UserError
from stimuli.recipes.asking import speaker_labels
from stimuli.recipes.outcome import Skipped
from stimuli.scramble.sentences import find_sentences
from stimuli.scramble.words import find_words, nfc

SENTENCE = "sentence"
WORDS = (5, 40)


def sentence_records(
    records: Sequence[Record], fields: Sequence[str], *, language: str, words: tuple[int, int] = WORDS
) -> tuple[list[Record], list[Skipped]]:
    """Make a record of every sentence of a length."""
    low, high = words
    if not 0 < low <= high:
        raise UserError(f"words is {list(words)}; give a lower and an upper bound, such as {list(WORDS)}")
    made: list[Record] = []
    skipped: list[Skipped] = []
    for record, field in zip(records, fields, strict=True):
        found = [
            replace(
                record,
                record_id=f"{record.record_id}-s{place}",
                texts={SENTENCE: sentence},
                choices=None,
                answer=None,
                answers=(),
                rationale=None,
                tests=(),
                setup=None,
            )
            for place, sentence in enumerate(_sentences(record, field, language), 1)
            if low <= len(find_words(sentence)) <= high
        ]
        made += found
        if not found:
            reason = f"no sentence of its {field} has {low} to {high} words"
            skipped.append(Skipped(record.record_id, record.corpus, reason))
    return made, skipped


def _sentences(record: Record, field: str, language: str) -> list[str]:
    text = nfc(record.texts.get(field, ""))
    labels = dict(speaker_labels(field, text))
    cut = [
        text[labels.get(span.begin, span.begin) : span.end].strip() for span in find_sentences(text, language)
    ]
    return [sentence for sentence in cut if sentence]
