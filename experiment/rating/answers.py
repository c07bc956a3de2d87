"""Free answers to rate: drawn from the store, mixed over readers, with only what a rater may see.

A rater sees the question, the intact text and the answer, but not who answered (participant or model), the condition, or the
scrambled form that would reveal it.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, and_, func, select

from experiment.store.queries import BESIDE, excluded_sessions
from experiment.store.tables import ratings, scores, sessions, trials
from experiment.study import Study
from experiment.study.texts import StudyText, read_text
from experiment.trials import TYPED
from stimuli.seeds import stable_seed


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

    ``place``: session, trial index, attempt; ``text``: the parsed answer; ``ratings``: each rater's newest rating; ``decided``:
    the decision if raters disagreed; ``is_rehearsed``: whether a simulated reader gave it.
    """

    place: Place
    item_set: str
    item_id: str
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
        .group_by(scores.c.session_id, scores.c.trial_index, scores.c.attempt)
    )
    same = and_(*(scores.c[name] == trials.c[name] for name in ("session_id", "trial_index", "attempt")))
    query = (
        select(
            trials.c.session_id,
            trials.c.trial_index,
            trials.c.attempt,
            trials.c.item_set,
            trials.c.item_id,
            trials.c.accepted,
            scores.c.response,
            sessions.c.reader_kind,
        )
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
        .order_by(trials.c.session_id, trials.c.trial_index, trials.c.attempt)
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
        ratings = tuple(given.get(place, {}).values())
        answers.append(
            FreeAnswer(
                place, row.item_set, row.item_id, row.response, ratings, decided.get(place), is_rehearsal
            )
        )
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
    """Return answers without numbers and code; the plan specifies how an answer is parsed, the same for every item of a set."""
    readings: dict[str, str] = {}
    text_answers = []
    for answer in answers:
        if answer.item_set not in readings:
            planned = planned_trial(connection, answer.place) or {"steps": [{}]}
            readings[answer.item_set] = planned["steps"][-1].get("read_as") or "text"
        if readings[answer.item_set] == "text":
            text_answers.append(answer)
    return text_answers


def planned_trial(connection: Connection, place: Place) -> Mapping[str, Any] | None:
    """Return a trial as planned, or None."""
    return _trial_of(_plan(connection, place), place)


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
