"""The rows of the participants table: one a session of a person, with answers by question and no id of a platform."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from experiment.columns import Column
from experiment.languages import pack_for
from experiment.procedure.questions import vocabulary
from experiment.store import queries
from experiment.store.tables import events, sessions
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.lexical.vocabulary_test import score

KINDS = ("human", "simulated")
_CLIENT = ("browser", "system", "device", "width", "height", "pixel_ratio", "refresh_hz",
           "prefers_dark", "forced_colors", "inverted_colors")  # fmt: skip
_SAME = ("study", "version", "design_hash", "session_id", "reader_kind", "reader", "participant_id", "list_id", "is_pilot",
         "state", "ended_reason", "last_seen_at", "finished_at", "station")  # fmt: skip
_TYPES = {"number": "number", "scale": "number"}


@dataclass
class Answers:
    """What participants answered about themselves: columns by question, and values by session."""

    columns: dict[str, Column] = field(default_factory=dict)
    by_session: dict[str, dict[str, Any]] = field(default_factory=dict)
    passed: dict[str, bool] = field(default_factory=dict)


def read_answers(study: Study, connection: Connection) -> Answers:
    """Return the answers of a study's participants; of a question answered twice the last counts."""
    found = Answers()
    tests = _vocabulary_tests(study)
    for asked in questions_of(study):
        _add_columns(found, asked["name"], asked)
    mine = select(sessions.c.session_id).where(sessions.c.study == study.id)
    query = select(events.c.session_id, events.c.kind, events.c.detail).where(
        events.c.kind.in_(("answers", "device")), events.c.session_id.in_(mine)
    )
    for session_id, kind, detail in connection.execute(query.order_by(events.c.event_id)):
        if kind == "device":
            found.passed[session_id] = bool(detail.get("passed")) and found.passed.get(session_id, True)
            continue
        row = found.by_session.setdefault(session_id, {})
        if detail.get("screen") == "eligibility":
            found.passed.setdefault(session_id, True)
        for name, value in (detail.get("answers") or {}).items():
            _add_columns(found, name, {"name": name, "ask": name, "type": "text"})
            is_number = found.columns[f"answer_{name}"].type == "number"
            row[f"answer_{name}"] = _number(value) if is_number else _text(value)
            if name in tests and isinstance(value, list):
                row[f"vocabulary_{name}"] = score(value, tests[name]["words"], tests[name]["nonwords"])
    return found


def participant_rows(connection: Connection, study: str, answers: Answers) -> Iterator[dict[str, Any]]:
    """Iterate over the sessions of people and simulated readers, in the order in which they began."""
    excluded = {
        flag["session_id"]: flag["reason"]
        for flag in queries.all_flags(connection, study)
        if flag["kind"] == "excluded" and flag["trial_index"] is None
    }
    clients = {
        row.session_id: row.client
        for row in connection.execute(
            select(sessions.c.session_id, sessions.c.client).where(
                sessions.c.study == study, sessions.c.reader_kind.in_(KINDS)
            )
        )
    }
    for row in reversed(queries.sessions_overview(connection, study)):
        if row["reader_kind"] not in KINDS:
            continue
        key = row["session_id"]
        client: Mapping[str, Any] = clients.get(key) or {}
        yield {
            **{name: row[name] for name in _SAME},
            **{name: client.get(name) for name in _CLIENT},
            **answers.by_session.get(key, {}),
            "eligible": _eligible(row, answers.passed.get(key)),
            "excluded_reason": excluded.get(key),
            "began_at": row["created_at"],
            "minutes": _minutes(row["created_at"], row["finished_at"]),
            "trials_planned": row["planned_trials"],
            "trials_stored": row["n_trials"],
        }


def questions_of(study: Study) -> Iterator[Mapping[str, Any]]:
    """Iterate over what a study asks people about themselves: name, wording (``ask``), type."""
    from experiment.procedure.questions import eligibility_questions

    try:
        pack = study.pack
    except UserError:
        pack = pack_for("en")  # what an earlier version showed where it had no texts in the study's language
    yield from eligibility_questions(study, pack)
    for screen in study.get("procedure"):
        for name, given in screen.get("questions", {}).items():
            yield {"name": name, **given}


def _vocabulary_tests(study: Study) -> dict[str, dict[str, list[str]]]:
    found = {}
    for asked in questions_of(study):
        if asked["type"] == "vocabulary":
            try:
                found[asked["name"]] = vocabulary(study, asked["name"], asked)
            except UserError:
                continue  # the word list of another version: the answers stay, unscored
    return found


def _add_columns(found: Answers, name: str, asked: Mapping[str, Any]) -> None:
    column = f"answer_{name}"
    if column in found.columns:
        return
    kind = _TYPES.get(asked["type"], "string")
    many = "; JSON: the list of what was chosen" if asked["type"] in ("several", "vocabulary") else ""
    found.columns[column] = Column(column, kind, None, f"answer to: {asked['ask']}{many}")
    if asked["type"] == "vocabulary":
        prose = "score of the vocabulary test, 0 to 1: mean of the shares of words accepted and of nonwords rejected"
        found.columns[f"vocabulary_{name}"] = Column(f"vocabulary_{name}", "number", None, prose)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _number(value: Any) -> float | None:
    try:
        found = None if value in (None, "") else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found is not None and math.isfinite(found) else None


def _eligible(row: Mapping[str, Any], passed: bool | None) -> bool | None:
    if row["state"] == "screened_out":
        return False
    return passed


def _minutes(began: str, finished: str | None) -> float | None:
    if finished is None:
        return None
    return round((datetime.fromisoformat(finished) - datetime.fromisoformat(began)).total_seconds() / 60, 3)
