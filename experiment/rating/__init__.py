"""Ratings of free answers: the rubric, the answers to rate, ratings and decisions, and agreement.

A rater sees the question, the intact text and the answer, but not who answered (participant or model), the condition, or the
scrambled form that would reveal it.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, case, func, select

from experiment.procedure.plan_builder import RULE
from experiment.store import chain
from experiment.store.database import RefusedOperation
from experiment.store.records import BESIDE, RATED, excluded_sessions, now, store_score
from experiment.store.tables import TRIAL_KEY, ratings, scores, sessions, trials
from experiment.study import Study
from experiment.study.texts import StudyText, read_text
from experiment.trials import TYPED
from stimuli.seeds import stable_seed

VERSION = 1
DISCUSSION = "discussion"
"""Prefix of the note on a decision that raters reached together; others are a third rater's."""


@dataclass(frozen=True)
class Rating:
    """Rating settings of a study.

    ``rubric``: the criteria for each rating; its version is part of every rating; ``low, high``: the scale, whole numbers;
    ``raters``: number of raters per answer; ``sets``: the item sets whose answers are rated; None for all.
    """

    rubric: StudyText
    low: int
    high: int
    raters: int
    sets: frozenset[str] | None

    @property
    def levels(self) -> list[int]:
        """The possible ratings, lowest first."""
        return list(range(self.low, self.high + 1))


def rating_for(study: Study) -> Rating | None:
    """Return a study's rating settings, None without them."""
    if study.get("rating") is None:
        return None
    name = study.get("rating", "rubric")
    low, high = study.get("rating", "scale", default=(0, 2))
    sets = study.get("rating", "sets")
    return Rating(
        rubric=read_text(study.folder, name, study.place("rating", "rubric")),
        low=int(low),
        high=int(high),
        raters=int(study.get("rating", "raters", default=2)),
        sets=None if sets is None else frozenset(str(name) for name in sets),
    )


READERS = frozenset({"human", "model"})
REHEARSING = "simulated"
"""Readers whose answers are rated as a rehearsal while there are no others."""
RATER, ADJUDICATOR = "rater", "adjudicator"
Place = tuple[str, int, int]
"""Session, trial index, attempt."""


@dataclass(frozen=True)
class StoredRating:
    """One rating: rater, value, note."""

    rater: str
    value: int
    note: str | None


@dataclass(frozen=True)
class FreeAnswer:
    """One free answer to rate.

    ``place``: session, trial index, attempt; ``step_name``: of a further answer; ``text``: the parsed answer; ``ratings``: each
    rater's newest rating; ``decided``: the decision if raters disagreed; ``is_rehearsed``: whether a simulated reader gave it.
    """

    place: Place
    item_set: str
    item_id: str
    step_name: str | None
    text: str
    ratings: tuple[StoredRating, ...] = ()
    decided: StoredRating | None = None
    is_rehearsed: bool = False

    def by(self, rater: str) -> StoredRating | None:
        """Return a rater's rating of this answer, or None."""
        return next((rating for rating in self.ratings if rating.rater == rater), None)

    def is_complete(self, rating: Rating) -> bool:
        """Return whether the study's number of raters have rated it."""
        return len(self.ratings) >= rating.raters

    def is_disputed(self, rating: Rating) -> bool:
        """Return whether its raters disagree and no decision is made yet."""
        return (
            self.is_complete(rating)
            and self.decided is None
            and len({rating.value for rating in self.ratings}) > 1
        )

    @property
    def value(self) -> int | None:
        """The decision, or the rating of all raters if equal, else None."""
        if self.decided is not None:
            return self.decided.value
        values = {rating.value for rating in self.ratings}
        return values.pop() if len(values) == 1 else None


@dataclass(frozen=True)
class Card:
    """A rater's view of an item.

    ``about``: the set, if there is no text; ``texts``: the intact texts by field; ``labels``: by class, as named in the rubric,
    the label for this answer's reader: if labels are counterbalanced, a statement on “A” means the class that another reader
    knew as “B”. The assignment of labels is drawn independently of the conditions, so it reveals nothing about them.
    """

    about: str | None
    ask: str | None
    texts: Mapping[str, str] = field(default_factory=dict)
    exemplars: Sequence[Mapping[str, Any]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


def answers_of(connection: Connection, study: str, rating: Rating) -> list[FreeAnswer]:
    """Return a study's answers to rate, with their ratings, in the order of the store.

    These are valid free answers of participants and models, parsed as text, to items without accepted answers; practice, pilots
    and excluded sessions are left out. If there are none, those of simulated readers are returned.
    """
    newest = (
        select(func.max(scores.c.score_id))
        .where(
            scores.c.response_status == "valid",
            scores.c.response.is_not(None),
            ~scores.c.scorer.startswith(BESIDE, autoescape=True),
        )
        .group_by(*(scores.c[name] for name in TRIAL_KEY))
    )
    same = and_(*(scores.c[name] == trials.c[name] for name in TRIAL_KEY))
    shown = (trials.c[name] for name in (*TRIAL_KEY, "item_set", "item_id", "step_name", "accepted"))
    query = (
        select(*shown, scores.c.response, sessions.c.reader_kind)
        .join(scores, same)
        .join(sessions, sessions.c.session_id == trials.c.session_id)
        .where(
            sessions.c.study == study,
            sessions.c.reader_kind.in_((*READERS, REHEARSING)),
            sessions.c.is_pilot.is_(False),
            sessions.c.session_id.not_in(excluded_sessions()),
            trials.c.trial_type.in_(TYPED),
            trials.c.is_practice.is_(False),
            trials.c.is_attention_check.is_(False),
            scores.c.score_id.in_(newest),
        )
        .order_by(*(trials.c[name] for name in TRIAL_KEY))
    )
    given, decided = _given(connection, study)
    rows = [
        row
        for row in connection.execute(query)
        if not row.accepted and (rating.sets is None or row.item_set in rating.sets)
    ]
    is_rehearsal = all(row.reader_kind == REHEARSING for row in rows)
    answers = []
    for row in rows:
        if row.reader_kind == REHEARSING and not is_rehearsal:
            continue
        place = (row.session_id, row.trial_index, row.attempt)
        of_raters = tuple(given.get(place, {}).values())
        asked = (row.item_set, row.item_id, row.step_name)
        answers.append(FreeAnswer(place, *asked, row.response, of_raters, decided.get(place), is_rehearsal))
    return _read_as_text(connection, answers)


def _given(
    connection: Connection, study: str
) -> tuple[dict[Place, dict[str, StoredRating]], dict[Place, StoredRating]]:
    query = (
        select(ratings)
        .join(sessions, sessions.c.session_id == ratings.c.session_id)
        .where(sessions.c.study == study)
        .order_by(ratings.c.rating_id)
    )
    given: dict[Place, dict[str, StoredRating]] = {}
    decided: dict[Place, StoredRating] = {}
    for row in connection.execute(query):
        place = (row.session_id, row.trial_index, row.attempt)
        stored = StoredRating(row.rater, row.value, row.note)
        if row.role == ADJUDICATOR:
            decided[place] = stored
        else:
            given.setdefault(place, {})[row.rater] = stored
    return given, decided


def _read_as_text(connection: Connection, answers: Sequence[FreeAnswer]) -> list[FreeAnswer]:
    """Return answers without numbers and code; the plan specifies how an answer is parsed, alike for a step at all items of a set."""
    readings: dict[tuple[str, bool, str | None], str] = {}
    text_answers = []
    for answer in answers:
        asked = (answer.item_set, answer.item_id == f"{answer.item_set} {RULE}", answer.step_name)
        if asked not in readings:
            planned = _trial_of(_plan(connection, answer.place), answer.place) or {"steps": [{}]}
            readings[asked] = planned["steps"][-1].get("read_as") or "text"
        if readings[asked] == "text":
            text_answers.append(answer)
    return text_answers


def _plan(connection: Connection, place: Place) -> Mapping[str, Any]:
    return connection.scalar(select(sessions.c.plan).where(sessions.c.session_id == place[0])) or {}


def _trial_of(plan: Mapping[str, Any], place: Place) -> Mapping[str, Any] | None:
    for screen in plan.get("screens", ()):
        for trial in screen.get("trials", ()):
            if trial["trial_index"] == place[1]:
                planned: Mapping[str, Any] = trial
                return planned
    return None


def card_of(connection: Connection, answer: FreeAnswer) -> Card:
    """Return a rater's view of an answer's item, in its intact form."""
    plan = _plan(connection, answer.place)
    planned = _trial_of(plan, answer.place) or {}
    steps = planned.get("steps") or [{}]
    intact = {name: str(text) for name, text in (planned.get("intact") or {}).items() if text}
    shown = {name: str(text) for name, text in (planned.get("shown") or {}).items() if text}
    # a field without an intact form is not changed by any condition
    texts = {name: intact.get(name, text) for name, text in (shown | intact).items()}
    # no examples: their number in a session may be what the study varies between participants
    labels = {str(name): str(label) for name, label in (plan.get("label_map") or {}).items()}
    return Card(None if texts else answer.item_set, steps[-1].get("ask"), texts, labels=labels)


def in_order_for(answers: Sequence[FreeAnswer], rater: str, seed: int) -> list[FreeAnswer]:
    """Return answers in a rater's own random order, which stays the same when further answers are added."""
    return sorted(
        answers, key=lambda answer: stable_seed(seed, "rating order", rater, *map(str, answer.place))
    )


def offered_to(answers: Sequence[FreeAnswer], rater: str, rating: Rating) -> list[FreeAnswer]:
    """Return the answers that a rater has rated, or that still need a rater."""
    return [answer for answer in answers if answer.by(rater) is not None or not answer.is_complete(rating)]


def token_of(answer: FreeAnswer, rater: str, secret: bytes) -> str:
    """Return the name of an answer on a rater's page, which reveals nothing about its session."""
    text = "\0".join(("rating", rater, *map(str, answer.place)))
    return hmac.digest(secret, text.encode(), "sha256").hex()[:20]


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


def rate(connection: Connection, study: str, rating: Rating, place: Place, given: StoredRating) -> None:
    """Store a rating of an answer; the newest counts until all raters have rated it, then no change is accepted."""
    answer = _answer(connection, study, rating, place, given.value)
    if answer.is_complete(rating):
        raise NotRated("All raters have rated this answer; a difference is decided on the page of agreement.")
    _store(connection, rating, place, RATER, given)
    _settle(connection, study, rating, place)


def decide(connection: Connection, study: str, rating: Rating, place: Place, decision: StoredRating) -> None:
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
    row = {
        **dict(zip(TRIAL_KEY, place, strict=True)),
        "rater": given.rater,
        "role": role,
        "rubric": rating.rubric.version,
        "value": given.value,
        "note": given.note or None,
        "created_at": now(),
    }
    number = connection.scalar(ratings.insert().values(**row).returning(ratings.c.rating_id))
    chain.link(connection, place[0], chain.RATING, str(number), row)


def _settle(connection: Connection, study: str, rating: Rating, place: Place) -> None:
    answer = next(answer for answer in answers_of(connection, study, rating) if answer.place == place)
    if answer.is_complete(rating) and answer.value is not None:
        share = (answer.value - rating.low) / (rating.high - rating.low)
        is_right = answer.value == rating.high if len(rating.levels) == 2 else None
        store_score(connection, *place, Rated(answer.text, is_right, share))


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
    :class:`RaterAgreement`.
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
