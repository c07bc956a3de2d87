"""Scores of a study's replies by H-TEST's published parser and by wrods': both for every reply of a model.

Chain-of-thought replies are left out: in the paper, a second model read them (``wrods score --judge``), not the parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection

from experiment.columns import Column
from experiment.exporting.tables import ExportTable
from experiment.scoring.published import paper_of
from experiment.scoring.rescoring import MODEL_KINDS, responses
from experiment.scoring.trial import Score
from experiment.study import Study
from experiment.study.semantic_checks import kind_of_material

MATERIALS = ("htest", "letter_geometry")
PARSED_COLUMNS = {
    "session_id": Column("session_id", "string", None, "the session"),
    "trial_index": Column("trial_index", "integer", None, "the trial"),
    "attempt": Column("attempt", "integer", None, "its attempt"),
    "published": Column(
        "published", "number", None, "1 right, 0 wrong by the published parser; null where it reads no answer"
    ),
    "corrected": Column(
        "corrected", "number", None, "1 right, 0 wrong by wrods' parser; null where it reads no answer"
    ),
}


def tables(study: Study, connection: Connection) -> list[ExportTable]:
    """Return the table of a study whose replies the paper's code reads."""
    if kind_of_material(study) not in MATERIALS:
        return []
    about = "one row a reply of a model, read by H-TEST's published parser and by a correct one"
    key = ("session_id", "trial_index", "attempt")
    return [
        ExportTable("published_parsing", about, PARSED_COLUMNS, key, lambda: parsed_rows(study, connection))
    ]


def parsed_rows(study: Study, connection: Connection) -> Iterator[dict[str, Any]]:
    """Iterate over every model's reply to an item, read by both parsers."""
    for response in responses(study, connection):
        if response.reader_kind not in MODEL_KINDS or response.raw is None or response.thinks:
            continue
        paper = paper_of(response.trial)
        if paper not in MATERIALS:
            continue
        place = (response.session_id, response.trial["trial_index"], response.attempt)
        verdicts = (_value(response.scored(paper)), _value(response.scored()))
        yield dict(zip(PARSED_COLUMNS, (*place, *verdicts), strict=True))


def _value(score: Score) -> float | None:
    return None if score.response_status != "valid" or score.correct is None else float(score.correct)
