"""Quality of the data so far, pooled over all conditions; means by condition only for a study that is closed.

Counted are test trials (no practice, fillers or attention checks) of sessions that are neither pilots nor excluded. What
cannot be read, timed out or was refused counts as wrong; trials of which nothing says what is right count for times only.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from experiment.rows.trials import trial_rows


@dataclass(frozen=True)
class Pooled:
    """A reader group (people, or one model) over some trials.

    Attributes
    ----------
    name : str
        ``human``, ``simulated``, or the model's or baseline's name.
    condition : tuple of str
        Levels in the order of the factors; empty where pooled over all conditions.
    sessions, trials : int
        How many.
    accuracy : float or None
        Share correct, of the trials that can be.
    median_rt, lower_rt, upper_rt : float or None
        Quartiles of the response time, ms.
    unreadable : float
        Share of trials without a valid response.
    """

    name: str
    condition: tuple[str, ...]
    sessions: int
    trials: int
    accuracy: float | None
    median_rt: float | None
    lower_rt: float | None
    upper_rt: float | None
    unreadable: float


def pooled(connection: Connection, study: str) -> list[Pooled]:
    """Return each reader group's quality over all conditions together, people first."""
    return _summaries(_counted(connection, study), ())


def condition_means(connection: Connection, study: str, factors: Sequence[str]) -> list[Pooled]:
    """Return each reader group's quality by condition: only for a study that is closed."""
    return _summaries(_counted(connection, study), factors)


def _counted(connection: Connection, study: str) -> Iterator[dict[str, Any]]:
    for row in trial_rows(connection, study):
        is_test = not (row["is_practice"] or row["is_filler"] or row["is_attention_check"])
        if is_test and not row["is_pilot"] and row["excluded_reason"] is None:
            yield row


def _summaries(rows: Iterable[Mapping[str, Any]], factors: Sequence[str]) -> list[Pooled]:
    groups: dict[tuple[bool, str, tuple[str, ...]], list[Mapping[str, Any]]] = {}
    for row in rows:
        kind = row["reader_kind"]
        name = kind if kind in ("human", "simulated") else row["reader"]
        condition = tuple(str((row["condition"] or {}).get(factor, "")) for factor in factors)
        kept = {column: row[column] for column in ("session_id", "response_status", "correct", "rt")}
        groups.setdefault((kind != "human", str(name), condition), []).append(kept)
    return [_summary(name, condition, kept) for (_, name, condition), kept in sorted(groups.items())]


def _summary(name: str, condition: tuple[str, ...], rows: Sequence[Mapping[str, Any]]) -> Pooled:
    valid = [row["response_status"] == "valid" for row in rows]
    judged = [
        bool(row["correct"])
        for row, is_valid in zip(rows, valid, strict=True)
        if row["correct"] is not None or not is_valid
    ]
    # where nothing says what is right, unreadable answers alone would be all that is judged
    has_key = any(row["correct"] is not None for row in rows)
    times = [float(row["rt"]) for row in rows if row["rt"] is not None]
    quartiles = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else None
    return Pooled(
        name=name,
        condition=condition,
        sessions=len({row["session_id"] for row in rows}),
        trials=len(rows),
        accuracy=statistics.fmean(judged) if has_key else None,
        median_rt=statistics.median(times) if times else None,
        lower_rt=quartiles[0] if quartiles else None,
        upper_rt=quartiles[2] if quartiles else None,
        unreadable=1 - sum(valid) / len(rows),
    )
