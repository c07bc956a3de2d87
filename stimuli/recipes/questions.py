"""Questions about a scrambled text: evidence, dialogue, passage or context changes, question and options stay.

Cao et al. (2023) call it ScrQA (RealtimeQA, DREAM); Mind Scramble does the same with BoolQ, SQuAD and CSQA.
"""

from __future__ import annotations

from typing import Any

from stimuli.corpora.record import Record
from stimuli.recipes.asking import Asked, Unsuitable, has_text, labelled, where_is
from stimuli.scramble.words import nfc

QUESTION = "question"
YES_NO = ("yes", "no")


def ask_question(record: Record, field: str) -> Asked:
    """Ask a record's question about its text; a question without a text beside it is itself what changes."""
    has_text(record, field)
    answer = labelled(record)
    if QUESTION not in record.texts:
        raise Unsuitable(
            f"{where_is(record)} has no question to ask about its {field}",
            mend="The task complete gives a record's own task, such as a program to write.",
        )
    beside = () if field == QUESTION else (has_text(record, QUESTION),)
    choices = YES_NO if record.choices is None and answer in YES_NO else record.choices
    return Asked(record, field, beside, choices, answer, other_answers(record, answer))


def other_answers(record: Record, answer: str) -> dict[str, Any]:
    """Return the answers that also count as right, each once and without the first, as an item's key holds them."""
    others = [nfc(other) for other in dict.fromkeys(record.answers) if nfc(other) != nfc(answer)]
    return {"answers": list(dict.fromkeys(others))} if others else {}
