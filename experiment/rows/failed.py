"""The trials of models that ended in an error: asked, and without an answer for good or until the next run.

The store keeps a trial once something was answered; of one whose calls all failed it has the calls alone. Tables show such a
trial as a row all the same, with ``response_status`` ``error`` or ``timeout``, so that no planned trial that was asked is lost
from sight. Once a later run has its answer, that is its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, and_, select

from experiment.models.engine import UNFINISHED
from experiment.procedure import trials_of
from experiment.store import records
from experiment.store.tables import TRIAL_KEY, calls, sessions, trials

_OF_LAST_CALL = (
    *("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "latency_ms", "ttft_ms"),
    *("temperature", "seed", "dtype", "path", "created_at"),
)
_SCORE = ("response", "response_status", "correct", "score", "scorer", "scorer_version")
Row = dict[str, Any]


def failed_trials(connection: Connection, study: str) -> Iterator[Row]:
    """Iterate over the trials whose last call failed and that have no answer, in the order of sessions and trials.

    Parameters
    ----------
    connection : Connection
        A reading connection.
    study : str
        The study's id.

    Yields
    ------
    dict
        The columns of a stored trial with its score. Tokens are those of the last call, ``cost_usd`` is what all calls cost.
    """
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
