"""Stored cosines of free answers from ``wrods score --similarity``, for analysis: the cosine, the reference text, the model.

They are stored next to the scores and in no column of the trials table, because they do not measure correctness.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, select

from experiment.columns import Column
from experiment.scoring.rescoring import responses
from experiment.store.records import BESIDE, all_scores
from experiment.store.tables import scores, sessions
from experiment.study import Study

SIMILARITY = "similarity"
STORED_AS = f"{BESIDE}{SIMILARITY}:"
"""Prefix of the scorer's name, before the embedding model and the rule's version."""
FLOOR_AS = f"{BESIDE}similarity of different answers:"
"""The same for the cosine of an answer about an intact text with the reader's answers about other texts."""
OWN_ANSWER, RIGHT_ANSWER, REFERENCE = "own answer about the intact text", "right answer", "reference program"
SIMILARITY_COLUMNS = {
    name: Column(name, kind, None, prose)
    for name, kind, prose in (
        ("session_id", "string", "the session"),
        ("trial_index", "integer", "the trial"),
        ("attempt", "integer", "its attempt"),
        ("use", "string", "the model that turned texts into vectors"),
        ("compared_with", "string", f"{OWN_ANSWER}, {RIGHT_ANSWER}, or {REFERENCE} of the data set"),
        ("similarity", "number", "cosine of both texts' vectors"),
        (
            "unrelated",
            "number",
            "of an answer about an intact text: mean cosine with the same reader's answers about the other intact texts, which an "
            "answer about that text exceeds",
        ),
    )
}

Place = tuple[str, int, int]


def compared_with(trial: Mapping[str, Any]) -> str:
    """Return the reference text for an answer to a planned trial: the first correct one, a reference program, or the reader's own."""
    if (trial.get("accepted") or [None])[0]:
        return RIGHT_ANSWER
    is_program = trial["steps"][-1].get("read_as") == "code"
    return REFERENCE if is_program and trial.get("answer") else OWN_ANSWER


def stored_cosines(connection: Connection, study: str) -> dict[Place, tuple[str, float]]:
    """Return the embedding model and the newest cosine of each compared answer."""
    return _newest(connection, study, STORED_AS)


def _newest(connection: Connection, study: str, stored_as: str) -> dict[Place, tuple[str, float]]:
    cosines: dict[Place, tuple[str, float]] = {}
    for row in all_scores(connection, study):
        scorer = str(row["scorer"])
        if scorer.startswith(stored_as) and row["score"] is not None:
            place = (str(row["session_id"]), int(row["trial_index"]), int(row["attempt"]))
            cosines[place] = (scorer.removeprefix(stored_as).rpartition("-")[0], float(row["score"]))
    return cosines


def has_similarities(connection: Connection, study: str) -> bool:
    """Return whether any answer of a study was compared."""
    query = select(scores.c.score_id).join(sessions, sessions.c.session_id == scores.c.session_id)
    query = query.where(sessions.c.study == study, scores.c.scorer.startswith(STORED_AS, autoescape=True))
    return connection.scalar(query.limit(1)) is not None


def similarity_rows(study: Study, connection: Connection) -> Iterator[dict[str, Any]]:
    """Yield the compared answers."""
    cosines = stored_cosines(connection, study.id)
    if not cosines:
        return
    floors = _newest(connection, study.id, FLOOR_AS)
    for response in responses(study, connection):
        place = (response.session_id, int(response.trial["trial_index"]), int(response.attempt))
        if place in cosines:
            use, cosine = cosines[place]
            by, floor = floors.get(place, (use, None))
            yield {
                "session_id": place[0],
                "trial_index": place[1],
                "attempt": place[2],
                "use": use,
                "compared_with": compared_with(response.trial),
                "similarity": cosine,
                "unrelated": floor if by == use else None,
            }
