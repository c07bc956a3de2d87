"""The free answers of a study that people rate: drawn from its store, mixed over readers, with what a rater may see.

A rater sees the question, the intact text and the answer; neither who answered (person or model), nor the condition, nor
the scrambled form that would give it away.
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
from stimuli.seeds import stable_seed


@dataclass(frozen=True)
class Rating:
    """What raters are given.

    ``rubric``: what earns which rating; its version stands in every rating; ``low, high``: the scale, whole numbers; ``raters``:
    how many people rate each answer; ``sets``: the item sets whose answers are rated; None for all.
    """

    rubric: StudyText
    low: int
    high: int
    raters: int
    sets: frozenset[str] | None

    @property
    def levels(self) -> list[int]:
        """Return the ratings that can be given, lowest first."""
        return list(range(self.low, self.high + 1))


def rating_for(study: Study) -> Rating | None:
    """Return how a study's answers are rated, None where it says nothing of it."""
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
"""Readers whose answers are rated while nobody else has answered, to rehearse the rating."""
RATER, ADJUDICATOR = "rater", "adjudicator"
Place = tuple[str, int, int]
"""Session, trial index, attempt."""


@dataclass(frozen=True)
class StoredRating:
    """One rating as it stands: by whom, what, and a note."""

    rater: str
    value: int
    note: str | None


@dataclass(frozen=True)
class FreeAnswer:
    """One free answer to rate.

    ``place``: session, trial index, attempt; ``text``: the answer as it was read; ``ratings``: each rater's newest rating;
    ``decided``: what was decided where raters disagreed; ``is_rehearsed``: whether a simulated reader gave it.
    """

    place: Place
    item_set: str
    item_id: str
    text: str
    ratings: tuple[StoredRating, ...] = ()
    decided: StoredRating | None = None
    is_rehearsed: bool = False

    def by(self, rater: str) -> StoredRating | None:
        """Return somebody's rating of this answer, or None."""
        return next((rating for rating in self.ratings if rating.rater == rater), None)

    def is_complete(self, rating: Rating) -> bool:
        """Return whether as many people as the study wants have rated it."""
        return len(self.ratings) >= rating.raters

    def is_disputed(self, rating: Rating) -> bool:
        """Return whether its raters disagree and nothing is decided yet."""
        return (
            self.is_complete(rating)
            and self.decided is None
            and len({rating.value for rating in self.ratings}) > 1
        )

    @property
    def value(self) -> int | None:
        """Return what was decided, or what all raters say, else None."""
        if self.decided is not None:
            return self.decided.value
        said = {rating.value for rating in self.ratings}
        return said.pop() if len(said) == 1 else None


@dataclass(frozen=True)
class Card:
    """What a rater sees of an item.

    ``about``: the set, where there is no text; ``texts``: the intact texts by field; ``labels``: by class, as the rubric calls it,
    the label under which this answer's reader met it: where labels are counterbalanced, a statement on “A” means the class that
    another reader knew as “B”. Which label stood for what is drawn apart from the conditions, so it tells nothing of them.
    """

    about: str | None
    ask: str | None
    texts: Mapping[str, str] = field(default_factory=dict)
    exemplars: Sequence[Mapping[str, Any]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


def answers_of(connection: Connection, study: str, rating: Rating) -> list[FreeAnswer]:
    """Return a study's answers that are to be rated, with their ratings, in the order of the store.

    These are valid free answers of people and models, read as text, to items without accepted answers; practice, pilots and
    excluded sessions are left out. While there are none, they are those of simulated readers.
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
            trials.c.trial_type == "answer",
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
    found = []
    for row in rows:
        if row.reader_kind == REHEARSING and not is_rehearsal:
            continue
        place = (row.session_id, row.trial_index, row.attempt)
        said = tuple(given.get(place, {}).values())
        found.append(
            FreeAnswer(place, row.item_set, row.item_id, row.response, said, decided.get(place), is_rehearsal)
        )
    return _read_as_text(connection, found)


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
        one = StoredRating(row.rater, row.value, row.note)
        if row.role == ADJUDICATOR:
            decided[place] = one
        else:
            given.setdefault(place, {})[row.rater] = one
    return given, decided


def _read_as_text(connection: Connection, found: Sequence[FreeAnswer]) -> list[FreeAnswer]:
    """Leave out numbers and code; how an answer is read stands in the plan, the same for every item of a set."""
    readings: dict[str, str] = {}
    kept = []
    for answer in found:
        if answer.item_set not in readings:
            planned = planned_trial(connection, answer.place) or {"steps": [{}]}
            readings[answer.item_set] = planned["steps"][-1].get("read_as") or "text"
        if readings[answer.item_set] == "text":
            kept.append(answer)
    return kept


def planned_trial(connection: Connection, place: Place) -> Mapping[str, Any] | None:
    """Return a trial as it was planned, or None."""
    return _trial_of(_plan(connection, place), place)


def _plan(connection: Connection, place: Place) -> Mapping[str, Any]:
    return connection.scalar(select(sessions.c.plan).where(sessions.c.session_id == place[0])) or {}


def _trial_of(plan: Mapping[str, Any], place: Place) -> Mapping[str, Any] | None:
    for screen in plan.get("screens", ()):
        for trial in screen.get("trials", ()):
            if trial["trial_index"] == place[1]:
                found: Mapping[str, Any] = trial
                return found
    return None


def card_of(connection: Connection, answer: FreeAnswer) -> Card:
    """Return what a rater sees of an answer's item, in its intact form."""
    plan = _plan(connection, answer.place)
    planned = _trial_of(plan, answer.place) or {}
    steps = planned.get("steps") or [{}]
    intact = {name: str(text) for name, text in (planned.get("intact") or {}).items() if text}
    shown = {name: str(text) for name, text in (planned.get("shown") or {}).items() if text}
    # a field without an intact form is not changed by any condition
    texts = {name: intact.get(name, text) for name, text in (shown | intact).items()}
    # no examples: how many a session showed may be what the study varies between persons
    labels = {str(name): str(label) for name, label in (plan.get("label_map") or {}).items()}
    return Card(None if texts else answer.item_set, steps[-1].get("ask"), texts, labels=labels)


def in_order_for(answers: Sequence[FreeAnswer], rater: str, seed: int) -> list[FreeAnswer]:
    """Return answers in a rater's own random order, which stays the same when further answers come in."""
    return sorted(
        answers, key=lambda answer: stable_seed(seed, "rating order", rater, *map(str, answer.place))
    )


def offered_to(answers: Sequence[FreeAnswer], rater: str, rating: Rating) -> list[FreeAnswer]:
    """Return the answers that somebody has rated, or that still want a rater."""
    return [answer for answer in answers if answer.by(rater) is not None or not answer.is_complete(rating)]


def token_of(answer: FreeAnswer, rater: str, secret: bytes) -> str:
    """Return the name of an answer on a rater's page, which tells nothing of its session."""
    text = "\0".join(("rating", rater, *map(str, answer.place)))
    return hmac.digest(secret, text.encode(), "sha256").hex()[:20]
