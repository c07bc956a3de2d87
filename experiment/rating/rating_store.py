"""Stores ratings and decisions; an answer gets its score after all raters agree, or a decision is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sqlalchemy import Connection, case, func, select

from experiment.rating.answers import (
    ADJUDICATOR,
    RATER,
    FreeAnswer,
    Place,
    Rating,
    StoredRating,
    answers_of,
    rating_for,
)
from experiment.store import chain
from experiment.store.database import RefusedOperation
from experiment.store.queries import RATED
from experiment.store.records import now, store_score
from experiment.store.tables import ratings, sessions
from experiment.study import Study

VERSION = 1
DISCUSSION = "discussion"
"""Prefix of the note on a decision that raters reached together; others are a third rater's."""


class NotRated(RefusedOperation):
    """A rating or decision cannot be accepted; the message says why."""


@dataclass(frozen=True)
class Rated:
    """The score of a rated answer: its rating as a share of the scale; correct or wrong if the scale has two steps."""

    response: str
    correct: bool | None
    score: float
    response_status: str = "valid"
    scorer: str = RATED
    version: int = VERSION


@dataclass(frozen=True)
class RaterAgreement:
    """Agreement of two raters.

    ``answers, same``: answers that both rated, and number with equal ratings; ``kappa, low, high``: Cohen's kappa with its 95 %
    interval; None if it is not defined, for example if both always gave the same rating; ``weights``: ``none`` or
    ``quadratic``.
    """

    raters: tuple[str, str]
    answers: int
    same: int
    kappa: float | None
    low: float | None
    high: float | None
    weights: str


def rate(
    connection: Connection,
    study: str,
    rating: Rating,
    place: Place,
    given: StoredRating,
) -> None:
    """Store a rating of an answer; the newest counts until all raters have rated it, then no change is accepted."""
    answer = _answer(connection, study, rating, place, given.value)
    if answer.is_complete(rating):
        raise NotRated("All raters have rated this answer; a difference is decided on the page of agreement.")
    _store(connection, rating, place, RATER, given)
    _settle(connection, study, rating, place)


def decide(
    connection: Connection,
    study: str,
    rating: Rating,
    place: Place,
    decision: StoredRating,
) -> None:
    """Store the decision on an answer whose raters disagree."""
    answer = _answer(connection, study, rating, place, decision.value)
    if not answer.is_disputed(rating):
        raise NotRated("There is nothing to decide: the raters agree or have not all rated this answer.")
    _store(connection, rating, place, ADJUDICATOR, decision)
    _settle(connection, study, rating, place)


def _answer(connection: Connection, study: str, rating: Rating, place: Place, value: int) -> FreeAnswer:
    if value not in rating.levels:
        raise NotRated(f"A rating is a whole number from {rating.low} to {rating.high}.")
    answer = next((answer for answer in answers_of(connection, study, rating) if answer.place == place), None)
    if answer is None:
        raise NotRated("There is no such answer to rate.")
    return answer


def _store(connection: Connection, rating: Rating, place: Place, role: str, given: StoredRating) -> None:
    session_id, trial_index, attempt = place
    row = {
        "session_id": session_id,
        "trial_index": trial_index,
        "attempt": attempt,
        "rater": given.rater,
        "role": role,
        "rubric": rating.rubric.version,
        "value": given.value,
        "note": given.note or None,
        "created_at": now(),
    }
    number = connection.scalar(ratings.insert().values(**row).returning(ratings.c.rating_id))
    chain.link(connection, session_id, chain.RATING, str(number), row)


def _settle(connection: Connection, study: str, rating: Rating, place: Place) -> None:
    answer = next(answer for answer in answers_of(connection, study, rating) if answer.place == place)
    if answer.is_complete(rating) and answer.value is not None:
        store_score(connection, *place, score_of(rating, answer.text, answer.value))


def score_of(rating: Rating, text: str, value: int) -> Rated:
    """Return the score of a rated answer."""
    share = (value - rating.low) / (rating.high - rating.low)
    return Rated(text, value == rating.high if len(rating.levels) == 2 else None, share)


def agreements(answers: Sequence[FreeAnswer], rating: Rating) -> list[RaterAgreement]:
    """Return the agreement of each two raters with common answers, by their own ratings before any decision."""
    raters = sorted({rating.rater for answer in answers for rating in answer.ratings})
    agreements_found = [agreement_of(answers, pair, rating) for pair in combinations(raters, 2)]
    return [agreement for agreement in agreements_found if agreement.answers]


def agreement_of(answers: Sequence[FreeAnswer], raters: tuple[str, str], rating: Rating) -> RaterAgreement:
    """Return Cohen's kappa of two raters, with quadratic weights if the scale has more than two steps.

    The interval is kappa ± 1.96 standard errors (Fleiss, Cohen and Everitt, 1969).
    """
    pairs = [
        (first.value, second.value)
        for answer in answers
        if (first := answer.by(raters[0])) is not None and (second := answer.by(raters[1])) is not None
    ]
    same = sum(rating_given == other for rating_given, other in pairs)
    weights = "quadratic" if len(rating.levels) > 2 else "none"
    if not pairs:
        return RaterAgreement(raters, 0, same, None, None, None, weights)
    from statsmodels.stats.inter_rater import cohens_kappa

    counted = np.array([[pairs.count((a, b)) for b in rating.levels] for a in rating.levels])
    with np.errstate(all="ignore"):
        result = cohens_kappa(counted, wt=weights if weights != "none" else None)
    values = (float(result.kappa), float(result.kappa_low), float(result.kappa_upp))
    kappa, low, high = values if math.isfinite(result.kappa) else (None, None, None)
    return RaterAgreement(raters, len(pairs), same, kappa, low, high, weights)


def rater_numbers(connection: Connection, study: str) -> dict[str, int]:
    """Return the number by which each rater of a study is known outside the dashboard; who only decided comes last."""
    query = select(ratings.c.rater, func.min(case((ratings.c.role == ADJUDICATOR, 1), else_=0))).group_by(
        ratings.c.rater
    )
    query = query.join(sessions, sessions.c.session_id == ratings.c.session_id).where(
        sessions.c.study == study
    )
    in_order = sorted(connection.execute(query).all(), key=lambda row: (row[1], row[0]))
    return {str(rater): number for number, (rater, _) in enumerate(in_order, 1)}


def told_of_rating(study: Study, connection: Connection) -> dict[str, Any] | None:
    """Return a summary of the ratings of a study's free answers; None without ratings.

    ``rubric`` (its file), ``scale`` (lowest and highest rating), ``raters`` (number required per answer), ``people`` (number of
    raters), ``answers`` (to be rated), ``complete`` (rated by all), ``differing`` (complete ones with different ratings),
    ``decided`` (those among the differing), ``by_discussion`` (those among the decided), and ``agreements``: for each two
    raters, by number, ``answers``, ``same``, ``kappa``, ``low``, ``high`` and ``weights`` of
    :class:`experiment.rating.rating_store.RaterAgreement`.
    """
    rating = rating_for(study)
    if rating is None:
        return None
    answers = answers_of(connection, study.id, rating)
    complete = [answer for answer in answers if answer.is_complete(rating)]
    numbers = rater_numbers(connection, study.id)
    return {
        "rubric": study.get("rating", "rubric"),
        "scale": [rating.low, rating.high],
        "raters": rating.raters,
        "people": len({given.rater for answer in answers for given in answer.ratings}),
        "answers": len(answers),
        "complete": len(complete),
        "differing": sum(len({given.value for given in answer.ratings}) > 1 for answer in complete),
        "decided": sum(answer.decided is not None for answer in complete),
        "by_discussion": sum(
            answer.decided is not None and str(answer.decided.note).startswith(DISCUSSION)
            for answer in complete
        ),
        "agreements": [
            asdict(agreement) | {"raters": [numbers[name] for name in agreement.raters]}
            for agreement in agreements(answers, rating)
        ],
    }
