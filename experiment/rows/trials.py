"""Rows of the trials table, flat: a stored trial with what its session and flags say of it, and trials of models that failed.

The store keeps a trial once something was answered; if all its calls failed, it has the calls alone. Tables show such a trial as
a row with ``response_status`` ``error`` or ``timeout``, so that no planned trial that was asked is missing. Once a later
run has its answer, that is its row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, and_, select

from experiment.models.engine import UNFINISHED
from experiment.procedure import trials_of
from experiment.store import queries, records
from experiment.store.exclusions import Marked, exclusions
from experiment.store.tables import TRIAL_KEY, calls, sessions, trials

OF_SESSION = (
    *("study", "version", "design_hash", "reader_kind", "reader", "participant_id", "run_id", "list_id"),
    *("replicate", "context", "yoked_to", "prompt_variant", "is_pilot"),
)


def trial_rows(connection: Connection, study: str) -> Iterator[dict[str, Any]]:
    """Iterate over a study's trials, session by session, with the columns of the trials table and of the factors.

    Trials of models that ended in an error are among them (:func:`failed_trials`).
    Rows stream from the store; only sessions and exclusions are held. Rows hold more than the columns: pick by name.
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


_OF_LAST_CALL = (
    *("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "latency_ms", "ttft_ms"),
    *("temperature", "seed", "dtype", "path", "created_at"),
)
_SCORE = ("response", "response_status", "correct", "score", "scorer", "scorer_version")
Row = dict[str, Any]


def failed_trials(connection: Connection, study: str) -> Iterator[Row]:
    """Iterate over the trials whose last call failed and that have no answer, in the order of sessions and trials."""
    same_trial = and_(*(trials.c[name] == calls.c[name] for name in TRIAL_KEY))
    query = (
        select(
            *(calls.c[name] for name in TRIAL_KEY),
            *(calls.c[name] for name in (*_OF_LAST_CALL, "status", "work_key", "cost_usd")),
        )
        .join(sessions, sessions.c.session_id == calls.c.session_id)
        .join(trials, same_trial, isouter=True)
        # a finished session has all its trials, so the calls of most studies are not even looked at
        .where(
            sessions.c.study == study,
            sessions.c.state != "finished",
            trials.c.session_id.is_(None),
            calls.c.trial_index.is_not(None),
        )
        .order_by(sessions.c.created_at, *(calls.c[name] for name in TRIAL_KEY), calls.c.call_id)
    )
    with connection.execute(query.execution_options(yield_per=500)) as result:
        for session_id, of_session in groupby(result.mappings(), key=lambda call: str(call["session_id"])):
            planned: dict[int, Mapping[str, Any]] | None = None
            for _, of_trial in groupby(of_session, key=lambda call: (call["trial_index"], call["attempt"])):
                asked = [dict(call) for call in of_trial]
                if asked[-1]["status"] not in UNFINISHED:
                    continue  # a step before the answer, after which the run ended
                if planned is None:
                    plan = connection.scalar(
                        select(sessions.c.plan).where(sessions.c.session_id == session_id)
                    )
                    planned = {trial["trial_index"]: trial for trial in trials_of(plan or {"screens": []})}
                yield _row(asked, planned[asked[-1]["trial_index"]])


def _row(asked: Sequence[Mapping[str, Any]], planned: Mapping[str, Any]) -> Row:
    last = asked[-1]
    costs = [call["cost_usd"] for call in asked if call["cost_usd"] is not None]
    return {
        **dict.fromkeys((*(column.key for column in trials.c), *_SCORE)),
        **records.planned_columns(planned),
        **{name: last[name] for name in (*TRIAL_KEY, *_OF_LAST_CALL)},
        "work_key": None if last["work_key"] is None else str(last["work_key"]).partition(":")[0],
        "cost_usd": sum(costs) if costs else None,
        "response_status": last["status"],
        "timed_out": False,
        "received_at": last["created_at"],
    }
