"""The rows of the trials table, flat: a stored trial beside what its session and flags say of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from heapq import merge
from typing import Any

from sqlalchemy import Connection

from experiment.rows.failed import failed_trials
from experiment.store import queries
from experiment.store.exclusions import Marked, exclusions

OF_SESSION = (
    *("study", "version", "design_hash", "reader_kind", "reader", "participant_id", "run_id", "list_id"),
    *("replicate", "context", "yoked_to", "prompt_variant", "is_pilot"),
)


def trial_rows(connection: Connection, study: str) -> Iterator[dict[str, Any]]:
    """Iterate over a study's trials, session by session, with the columns of the trials table and of the factors.

    Trials of models that ended in an error are among them (:func:`experiment.rows.failed.failed_trials`).
    Rows stream from the store; only sessions and exclusions are held. Rows hold more than the columns: pick by name.

    Parameters
    ----------
    connection : Connection
        A reading connection.
    study : str
        The study's id.
    """
    sessions = {row["session_id"]: row for row in queries.sessions_overview(connection, study)}
    excluded = exclusions(connection, study)
    for session_id, is_timed, presentation in queries.model_sessions(connection, study):
        sessions[session_id] |= {"timed": is_timed, "presentation": presentation}

    def place(trial: Mapping[str, Any]) -> tuple[str, str, int, int]:
        key = trial["session_id"]
        return str(sessions[key]["created_at"]), key, trial["trial_index"], trial["attempt"]

    stored, failed = queries.trials_with_scores(connection, study), failed_trials(connection, study)
    for trial in merge(stored, failed, key=place):
        yield _flat(trial, sessions[trial["session_id"]], excluded)


def _flat(
    trial: Mapping[str, Any], session: Mapping[str, Any], excluded: Mapping[Marked, str]
) -> dict[str, Any]:
    key, index = trial["session_id"], trial["trial_index"]
    marks: tuple[Marked, ...] = ((key, None, None), (key, index, None), (key, index, trial["attempt"]))
    label_map = session["label_map"] or {}
    labels = trial["label_logprobs"]
    # a text that is only read, and a person's answer whose likelihood was asked, are no answers, right or wrong
    is_answer = trial["trial_type"] != "read" and session["context"] != "teacher_forced"
    return {
        **trial,
        "response_status": trial["response_status"] if is_answer else None,
        **{name: session[name] for name in OF_SESSION},
        **(trial["condition"] or {}),
        "timed": session.get("timed"),
        "presentation": session.get("presentation"),
        "set": trial["item_set"],
        "label_map": ",".join(f"{name}={label}" for name, label in label_map.items()) or None,
        "choice_order": ",".join(str(i) for i in trial["choice_order"] or []) or None,
        "label_logprobs": json.dumps(labels, ensure_ascii=False) if labels else None,
        "excluded_reason": next((excluded[mark] for mark in marks if mark in excluded), None),
    }
