"""Writes sessions as jsPsych would have: a JSON array of trials per session, and its interactions beside it.

Each entry has jsPsych's own fields (``trial_type``, ``trial_index``, ``plugin_version``, ``time_elapsed``, ``rt`` in whole
milliseconds, ``response``, ``stimulus``), and the other columns of the trials table as data properties. Where a column has
jsPsych's name with another meaning it is renamed (:data:`RENAMED`). Screens that are no trials (consent, instructions,
questions, device) stand among the trials in the order in which they were stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from experiment.columns import trial_columns
from experiment.exporting.calls import call_columns, call_rows
from experiment.exporting.tables import own_columns
from experiment.rows.trials import trial_rows
from experiment.store import queries
from experiment.study import Study

RENAMED = {
    "trial_type": "task",
    "trial_index": "session_trial_index",
    "response": "response_canonical",
    "rt": "rt_exact",
}
INTERACTIONS = ("blur", "focus", "fullscreenenter", "fullscreenexit")
SCREENS = ("consent", "instructions", "answers", "device", "practice", "break", "debrief")
Row = Mapping[str, Any]


def write_jspsych(
    study: Study, connection: Connection, folder: Path, chosen: set[str], *, prompts: bool = False
) -> int:
    """Write two files a session into a folder, and a third for one that has calls; return the number of sessions."""
    every = {row["session_id"]: row for row in queries.sessions_overview(connection, study.id)}
    columns = call_columns(own_columns("calls"), prompts=prompts)
    factors = tuple(study.factors)
    number = 0
    for session_id, group in groupby(trial_rows(connection, study.id), key=lambda row: row["session_id"]):
        if session_id not in chosen:
            continue
        trials = list(group)
        events = list(queries.all_events(connection, session_id=session_id))
        clock = Clock(every[session_id]["created_at"], trials, events)
        rows, interactions = _timeline(trials, events, clock, factors)
        name = re.sub(r"[^A-Za-z0-9]+", "-", str(trials[0]["reader"])).strip("-") + f"_{session_id[:12]}"
        write_rows(folder / f"{name}.json", rows)
        write_rows(folder / f"{name}_interactions.json", interactions)
        calls = [
            {column: call.get(column) for column in columns}
            for call in call_rows(connection, [every[session_id]], prompts=prompts)
        ]
        if calls:
            write_rows(folder / f"{name}_calls.json", calls)
        number += 1
    return number


class Clock:
    """Milliseconds since a session began, from stamps of the reader's own clock.

    The two clocks are set against each other by the row that reached the server soonest, so that rows which were sent late
    keep their time.
    """

    def __init__(self, began: str, trials: Iterable[Row], events: Iterable[Row]) -> None:
        self._began = _moment(began)
        pairs = [(row["created_at"], row["received_at"]) for row in trials]
        pairs += [(row["at"], row["received_at"]) for row in events if row["at"]]
        late = [(_moment(received) - _stamped(sent, received)).total_seconds() for sent, received in pairs]
        self._ahead = min(late, default=0.0)

    def elapsed(self, stamp: str | None, received: str) -> int:
        """Return whole milliseconds from the beginning of the session to a stamp of the reader's clock, or else the server's."""
        seconds = (_stamped(stamp, received) - self._began).total_seconds() + self._ahead
        return max(0, round(seconds * 1000))


def _timeline(
    trials: list[dict[str, Any]], events: list[dict[str, Any]], clock: Clock, factors: tuple[str, ...]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    found = [
        (clock.elapsed(row["created_at"], row["received_at"]), 0, row["trial_index"], _trial(row, factors))
        for row in trials
    ]
    found += [
        (clock.elapsed(row["at"], row["received_at"]), 1, place, _screen(row))
        for place, row in enumerate(events)
        if row["kind"] in SCREENS
    ]
    found.sort(key=lambda one: one[:3])
    rows = [
        {**row, "trial_index": place, "time_elapsed": time} for place, (time, _, _, row) in enumerate(found)
    ]
    interactions = []
    for row in events:
        if row["kind"] in INTERACTIONS:
            time = clock.elapsed(row["at"], row["received_at"])
            during = sum(1 for one in found if one[0] <= time)
            interactions.append({"event": row["kind"], "trial": during, "time": time})
    return rows, interactions


def _trial(row: Row, factors: tuple[str, ...]) -> dict[str, Any]:
    plugin, _, version = str(row["plugin_version"] or "").partition(" ")
    shown: Mapping[str, Any] = row["shown"] or {}
    others = {RENAMED.get(name, name): row.get(name) for name in (*trial_columns(), *factors)}
    return {
        **others,
        "trial_type": plugin or f"wrods-{row['trial_type']}",
        "plugin_version": version or None,
        "rt": None if row["rt"] is None else round(row["rt"]),
        "response": row["response_raw"],
        "stimulus": "\n\n".join(str(text) for text in shown.values()),
    }


def _screen(row: Row) -> dict[str, Any]:
    detail: Mapping[str, Any] = row["detail"] or {}
    same = {
        "trial_type": f"wrods-{row['kind']}",
        "plugin_version": None,
        "rt": None,
        "session_id": row["session_id"],
    }
    if row["kind"] == "answers":
        given: Mapping[str, Any] = detail.get("answers") or {}
        return {
            **same,
            "screen": detail.get("screen"),
            "response": dict(given),
            "question_order": list(given),
        }
    return {**same, **{name: value for name, value in detail.items() if name not in same}}


def _stamped(stamp: str | None, received: str) -> datetime:
    """Return when a row was made; where its stamp is no moment, as earlier versions stored some, when it was received."""
    try:
        return _moment(stamp or received)
    except ValueError:
        return _moment(received)


def _moment(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


def write_rows(file: Path, rows: Iterable[Row]) -> int:
    """Write rows as a JSON array, one a line, and return how many."""
    number = 0
    with file.open("w", encoding="utf-8") as opened:
        for row in rows:
            opened.write(("[\n" if number == 0 else ",\n") + json.dumps(row, ensure_ascii=False))
            number += 1
        opened.write("\n]\n" if number else "[]\n")
    return number
