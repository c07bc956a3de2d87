"""The rows of the calls table: each request to a model with what came of it, failures too; prompts only where they are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, select

from experiment.columns import Column
from experiment.store.tables import TRIAL_KEY, calls

REQUEST = "request"
_OF_SESSION = ("study", "reader_kind", "reader")
_JSON = ("label_logprobs", "label_bounds", REQUEST)


def call_columns(columns: Mapping[str, Column], *, prompts: bool) -> dict[str, Column]:
    """Return the columns of the calls table; that of the request only with prompts."""
    return {name: column for name, column in columns.items() if prompts or name != REQUEST}


def call_rows(
    connection: Connection, sessions: Iterable[Mapping[str, Any]], *, prompts: bool = False
) -> Iterator[dict[str, Any]]:
    """Iterate over the calls of sessions, trial by trial, and within a trial in the order in which they ended."""
    wanted = [column for column in calls.c if prompts or column.key != REQUEST]
    query = select(*wanted).order_by(*(calls.c[name] for name in TRIAL_KEY), calls.c.call_id)
    for session in sessions:
        # a session at a time: its calls lie in their order in an index, so that nothing is sorted
        of_session = query.where(calls.c.session_id == session["session_id"])
        trial, place = None, 0
        with connection.execute(of_session.execution_options(yield_per=500)) as result:
            for call in result.mappings():
                key = (call["trial_index"], call["attempt"])
                place = place + 1 if key == trial else 0
                trial = key
                yield {
                    **call,
                    **{name: session[name] for name in _OF_SESSION},
                    **{name: _json(call[name]) for name in _JSON if name in call},
                    "call_index": place,
                }


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
