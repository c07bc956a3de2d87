"""The sessions of one model: lists × prompt variants × replicates, or participants × variants × replicates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType

from sqlalchemy import Connection, and_, func, select

from experiment.lists import list_ids
from experiment.models.engine import UNFINISHED, ModelSettings
from experiment.models.planning.prompting_settings import SessionTemplate, is_remote, read_prompting_settings
from experiment.models.planning.session import (
    UNSCRAMBLE,
    Completions,
    ModelSession,
    Person,
    SessionTaker,
    TrialFeedback,
    given_back,
)
from experiment.procedure import Plan, plan_session
from experiment.scoring.published import parser_of
from experiment.store import Store
from experiment.store.tables import calls, scores, sessions, trials
from experiment.study import Study
from stimuli.errors import UserError


def told_of(connection: Connection, session_id: str) -> dict[int, TrialFeedback]:
    """Return a session's last answers by trial index, with the first score, on which feedback was based."""
    first = (
        select(
            scores.c.session_id,
            scores.c.trial_index,
            scores.c.attempt,
            func.min(scores.c.score_id).label("score_id"),
        )
        .where(scores.c.session_id == session_id)
        .group_by(scores.c.session_id, scores.c.trial_index, scores.c.attempt)
        .subquery()
    )
    is_same_trial = and_(first.c.trial_index == trials.c.trial_index, first.c.attempt == trials.c.attempt)
    query = (
        select(trials.c.trial_index, trials.c.response_raw, trials.c.timed_out, scores.c.correct)
        .join(first, is_same_trial, isouter=True)
        .join(scores, scores.c.score_id == first.c.score_id, isouter=True)
        .where(trials.c.session_id == session_id)
        .order_by(trials.c.trial_index, trials.c.attempt)
    )
    return {
        int(row.trial_index): TrialFeedback(row.response_raw, row.correct, bool(row.timed_out))
        for row in connection.execute(query)
    }


def calls_before(connection: Connection, session_id: str) -> dict[str, str]:
    """Return the texts of a session's calls before answers, by work key (``key:unscramble``); empty if truncated or refused."""
    query = select(calls.c.work_key, calls.c.purpose, calls.c.text, calls.c.status).where(
        calls.c.session_id == session_id,
        calls.c.purpose.in_((UNSCRAMBLE, "reason")),
        calls.c.status.not_in(UNFINISHED),
    )
    rows = connection.execute(query.order_by(calls.c.call_id))
    return {f"{row.work_key}:{row.purpose}": given_back(row.text, row.status) for row in rows}


class People:
    """Participants' finished sessions, read one at a time, without pilots and sessions of other versions."""

    def __init__(self, store: Store, study: str, version: int) -> None:
        self.store = store
        self.study = study
        self.version = version

    def ids(self) -> list[str]:
        """Return the sessions' ids in the order of their start."""
        query = (
            select(sessions.c.session_id)
            .where(
                sessions.c.study == self.study,
                sessions.c.version == self.version,
                sessions.c.reader_kind == "human",
                sessions.c.state == "finished",
                sessions.c.is_pilot.is_(False),
            )
            .order_by(sessions.c.created_at, sessions.c.session_id)
        )
        with self.store.read() as connection:
            return list(connection.scalars(query))

    def __iter__(self) -> Iterator[Person]:
        """Yield one session after another."""
        for session_id in self.ids():
            with self.store.read() as connection:
                plan = connection.scalar(select(sessions.c.plan).where(sessions.c.session_id == session_id))
                if plan is not None:
                    yield Person(session_id, plan, told_of(connection, session_id))


@cache
def _words() -> dict[str, list[str]]:
    text = resources.files(__package__).joinpath("consent.json").read_text("utf-8")
    return dict(json.loads(text))


def require_permission(study: Study, settings: ModelSettings) -> None:
    """Raise an error unless the study allows participants' answers to be sent to a model on another machine."""
    if study.get("participants", "privacy", "send_answers_to_apis", default=False) is not True:
        raise UserError(
            f"{study.place('participants', 'privacy', 'send_answers_to_apis')}: {_sends(settings)}; this study does not allow that",
            mend="Use a model on this machine (hf:…, or a server at 127.0.0.1). Allow it only if the consent text states it.",
        )


def _sends(settings: ModelSettings) -> str:
    return f"{settings.use} is on another machine, and a teacher-forced session sends it what people answered"


def require_consent(study: Study, settings: ModelSettings, person: Person) -> None:
    """Raise an error unless a participant's consent allows answers to be sent to a model on another machine."""
    require_permission(study, settings)
    place, sends = study.place("participants", "privacy", "send_answers_to_apis"), _sends(settings)
    agreed = [screen for screen in person.plan["screens"] if screen["kind"] == "consent"]
    now = {study.text(screen["consent"]).version for screen in study.get("procedure") if "consent" in screen}
    if not agreed or {screen["version"] for screen in agreed} != now:
        which = f"version {agreed[-1]['version']} of the consent text" if agreed else "no consent text"
        raise UserError(
            f"{place}: {sends}; session {person.session_id} agreed to {which}, not to the one that the study has now",
            mend="Use a model on this machine for these people's answers.",
        )
    stems = _words().get(study.language.split("-")[0])
    text = "\n".join(screen["text"] for screen in agreed)
    # in capitals, as an abbreviation
    names = [(stem, 0 if stem.isupper() else re.IGNORECASE) for stem in stems or ()]
    if stems and not any(re.search(rf"(?<!\w){re.escape(stem)}", text, case) for stem, case in names):
        raise UserError(
            f"{place}: {sends}; the consent text (version {agreed[-1]['version']}) does not mention this",
            mend="State in the consent text that answers are given to language models of other companies, before people take "
            "part. Answers of people who agreed to another text stay here.",
        )


def plan_sessions(
    study: Study,
    reader: str,
    settings: ModelSettings,
    identity: Mapping[str, object],
    *,
    version: int = 1,
    people: Iterable[Person] | None = None,
    completions: Completions = MappingProxyType({}),
) -> Iterator[ModelSession]:
    """Yield the sessions of one model; those of a larger design include those of a smaller one.

    They depend only on study and model, so the same command plans the same work on every machine. ``identity`` is the engine's
    description of everything that can change answers; only yoked and teacher-forced sessions need ``people``.
    ``completions``: those that people gave, whose probability a local model reports.
    """
    manner = read_prompting_settings(study, settings)
    identity = dict(identity)
    scorer = parser_of(study)
    follows_people = needs_people(study)
    lists = list_ids(
        study, study.items, label_maps=study.get("models", "label_maps", default="balanced"), of_models=True
    )
    plans: dict[int, Plan] = {}
    scripts: dict[tuple[int, int], SessionTemplate] = {}

    def of_list(list_id: int, variant: int) -> SessionTemplate:
        if (list_id, variant) not in scripts:
            if list_id not in plans:
                plans[list_id] = plan_session(
                    study, study.items, list_id=list_id, version=version, is_of_model=True
                )
            scripts[list_id, variant] = SessionTemplate({**plans[list_id], "prompt_variant": variant}, manner)
        return scripts[list_id, variant]

    def session(script: SessionTemplate, replicate: int, person: Person | None) -> ModelSession:
        plan = script.plan
        place = [
            plan["list_id"],
            plan["prompt_variant"],
            replicate,
            None if person is None else person.session_id,
        ]
        name = [study.id, version, study.design_hash, reader, identity, place, manner.to_json()]
        return ModelSession(
            script, name, SessionTaker(reader, study.seed, replicate, scorer), person, completions
        )

    for replicate in range(1, int(study.get("models", "replicates", default=1)) + 1):
        for variant in range(1, int(study.get("models", "prompt_variants", default=1)) + 1):
            if not follows_people:
                for list_id in lists:
                    yield session(of_list(list_id, variant), replicate, None)
                continue
            count = 0
            for person in people or ():
                count += 1
                if manner.context == "teacher_forced" and is_remote(settings):
                    require_consent(study, settings, person)
                plan = {**person.plan, "prompt_variant": variant, "context": manner.context}
                yield session(SessionTemplate(plan, manner), replicate, person)
            if not count:
                raise UserError(
                    f"{study.place('models', 'yoke' if study.get('models', 'yoke') else 'context')}: models take the "
                    "sessions of people here, and no person has finished one yet",
                    mend="Collect sessions first (wrods serve), or give models separate lists.",
                    exit_code=1,
                )


def needs_people(study: Study) -> bool:
    """Return whether a study's models use participants' sessions: their lists and orders, or their answers too."""
    yoke = study.get("models", "yoke", default="lists")
    return bool(study.get("models", "context") == "teacher_forced" or yoke == "human")
