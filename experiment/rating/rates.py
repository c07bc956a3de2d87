"""Stores ratings and decisions; once all raters of an answer agree, or a decision is made, the answer gets its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from sqlalchemy import Connection

from experiment.rating.answers import ADJUDICATOR, RATER, Answer, Place, answers_of
from experiment.rating.kappa import cohens_kappa
from experiment.rating.rubric import Rating
from experiment.store import chain
from experiment.store.database import Refused
from experiment.store.queries import RATED
from experiment.store.records import now, store_score
from experiment.store.tables import ratings

VERSION = 1


class NotRated(Refused):
    """A rating or decision came that cannot be taken; says why."""


@dataclass(frozen=True)
class Rated:
    """The score of a rated answer: its rating as a share of the scale; right or wrong where the scale has two steps."""

    response: str
    correct: bool | None
    score: float
    response_status: str = "valid"
    scorer: str = RATED
    version: int = VERSION


@dataclass(frozen=True)
class Agreement:
    """How far two raters agree.

    ``answers, same``: answers that both rated, and to how many they gave the same rating; ``kappa, low, high``: Cohen's kappa with
    its 95 % interval; None where it is not defined, as where both always gave one rating; ``weights``: ``none`` or ``quadratic``.
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
    rater: str,
    value: int,
    note: str | None = None,
) -> None:
    """Store somebody's rating of an answer; the newest counts until all raters have rated it, then none is taken."""
    answer = _answer(connection, study, rating, place, value)
    if answer.is_complete(rating):
        raise NotRated("All raters have rated this answer; a difference is decided on the page of agreement.")
    _store(connection, place, rater, RATER, rating, value, note)
    _settle(connection, study, rating, place)


def decide(
    connection: Connection,
    study: str,
    rating: Rating,
    place: Place,
    actor: str,
    value: int,
    note: str,
) -> None:
    """Store what was decided on an answer whose raters disagree."""
    answer = _answer(connection, study, rating, place, value)
    if not answer.is_disputed(rating):
        raise NotRated("There is nothing to decide: the raters agree or have not all rated this answer.")
    _store(connection, place, actor, ADJUDICATOR, rating, value, note)
    _settle(connection, study, rating, place)


def _answer(connection: Connection, study: str, rating: Rating, place: Place, value: int) -> Answer:
    if value not in rating.levels:
        raise NotRated(f"A rating is a whole number from {rating.low} to {rating.high}.")
    found = next((one for one in answers_of(connection, study, rating) if one.place == place), None)
    if found is None:
        raise NotRated("There is no such answer to rate.")
    return found


def _store(
    connection: Connection,
    place: Place,
    rater: str,
    role: str,
    rating: Rating,
    value: int,
    note: str | None,
) -> None:
    session_id, trial_index, attempt = place
    row = {
        "session_id": session_id,
        "trial_index": trial_index,
        "attempt": attempt,
        "rater": rater,
        "role": role,
        "rubric": rating.rubric.version,
        "value": value,
        "note": note or None,
        "created_at": now(),
    }
    number = connection.scalar(ratings.insert().values(**row).returning(ratings.c.rating_id))
    chain.link(connection, session_id, chain.RATING, str(number), row)


def _settle(connection: Connection, study: str, rating: Rating, place: Place) -> None:
    answer = next(one for one in answers_of(connection, study, rating) if one.place == place)
    if answer.is_complete(rating) and answer.value is not None:
        store_score(connection, *place, score_of(rating, answer.text, answer.value))


def score_of(rating: Rating, text: str, value: int) -> Rated:
    """Return the score of an answer that was rated."""
    share = (value - rating.low) / (rating.high - rating.low)
    return Rated(text, value == rating.high if len(rating.levels) == 2 else None, share)


def agreements(answers: Sequence[Answer], rating: Rating) -> list[Agreement]:
    """Return how far each two raters agree who rated answers in common, by their own ratings before any decision."""
    raters = sorted({one.rater for answer in answers for one in answer.ratings})
    found = [agreement_of(answers, pair, rating) for pair in combinations(raters, 2)]
    return [one for one in found if one.answers]


def agreement_of(answers: Sequence[Answer], raters: tuple[str, str], rating: Rating) -> Agreement:
    """Return Cohen's kappa of two raters, with quadratic weights where the scale has more than two steps.

    The interval is kappa ± 1.96 standard errors (Fleiss, Cohen and Everitt, 1969).
    """
    pairs = [
        (first.value, second.value)
        for answer in answers
        if (first := answer.by(raters[0])) is not None and (second := answer.by(raters[1])) is not None
    ]
    same = sum(one == other for one, other in pairs)
    weights = "quadratic" if len(rating.levels) > 2 else "none"
    counted = [[pairs.count((a, b)) for b in rating.levels] for a in rating.levels]
    found = cohens_kappa(counted, quadratic=weights == "quadratic") if pairs else None
    if found is None:
        return Agreement(raters, len(pairs), same, None, None, None, weights)
    low, high = found.interval
    return Agreement(raters, len(pairs), same, found.value, low, high, weights)
