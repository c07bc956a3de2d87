"""Quality flags with their evidence, from a session's stored rows: values for review, which never exclude a session automatically.

Nothing here uses a condition, and correctness is used only for attention checks, whose answer is announced to every
participant.
"""

from __future__ import annotations

import json
import math
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import groupby, pairwise
from typing import Any

from sqlalchemy import Connection, select

from analysis.plan import RIGHT_SHARE
from experiment.procedure.plan_builder import STEP_NAME
from experiment.procedure.questions import Question, failed_checks
from experiment.store import records
from experiment.store.tables import scores, sessions, trials

Row = Mapping[str, Any]
MAD_TO_SD = 1.4826
"""Factor that makes the median absolute deviation of a normal distribution its standard deviation."""
SEALED = frozenset({RIGHT_SHARE})
"""Signs of correctness: until the study is closed, the dashboard shows only whether they meet their rule, without values."""


UNREADABLE = "could not be summarized"
"""Replaces a session's measures if they cannot be computed from its rows (of an earlier version, for example)."""


@dataclass(frozen=True)
class QualitySign:
    """One sign of careless or automatic answering."""

    kind: str
    value: float
    bound: float
    evidence: str

    @property
    def label(self) -> str:
        """The sign's name on pages."""
        return UNREADABLE if self.kind == UNREADABLE else str(signs()[self.kind]["label"])

    @property
    def is_sealed(self) -> bool:
        """Whether its values are hidden while the study is open."""
        return self.kind in SEALED

    @property
    def is_flagged(self) -> bool:
        """Whether the value is above its bound."""
        return self.value > self.bound


@cache
def signs() -> Mapping[str, Mapping[str, Any]]:
    """Return the definitions of signs: kind → bound, unit, label, description, and constants."""
    text = resources.files(__package__).joinpath("quality.json").read_text("utf-8")
    definitions: Mapping[str, Mapping[str, Any]] = json.loads(text)["bounds"]
    return definitions


def said(kind: str, value: float) -> str:
    """Return a value or bound of a flag as text: proportions in per cent, times in seconds, probabilities as *p*."""
    if kind == UNREADABLE:
        return "–"
    if value == math.inf:
        return "any number"
    unit = str(signs()[kind]["unit"])
    if unit == "probability":  # stored as 1 - p, so that larger values are more suspicious for every flag
        return _probability(1 - value)
    if unit.startswith("share of"):
        return f"{100 * value:.3g}%"
    return f"{value / 1000:.3g} s" if unit == "ms" else f"{value:.4g}"


def measures(
    trials: Iterable[Row],
    planned: Mapping[int, Row],
    bounds: Mapping[str, float] | None = None,
    checks: tuple[int, int] = (0, 0),
) -> list[QualitySign]:
    """Return the signs of a session's trials without further answers; those that cannot be measured are left out.

    ``checks``: how many attention checks among its questions were missed, and how many were asked.
    """
    rows = [row for row in trials if not row["is_practice"] and row.get(STEP_NAME) is None]
    attention = [row for row in rows if row["is_attention_check"]]
    measured = {
        "too_fast": _too_fast(rows),
        "same_key": _same_key(rows, planned),
        "hidden": _hidden(rows),
        "dropped_frames": _dropped_frames(rows),
        "pastes": _total(rows, "paste_count", "pastes or drops tried"),
        "keyless": _total(rows, "keyless_chars", "characters without a key stroke"),
        "regular_typing": _regular_typing(rows),
        "fast_typing": _fast_typing(rows),
        "attention_checks_failed": _missed(sum(not row["correct"] for row in attention), len(attention)),
        "question_checks_failed": _missed(*checks),
        RIGHT_SHARE: _wrong(rows) if RIGHT_SHARE in (bounds or {}) else None,
    }
    chosen = {kind: float(sign["bound"]) for kind, sign in signs().items()} | dict(bounds or {})
    return [
        QualitySign(kind, sign[0], chosen[kind], sign[1])
        for kind, sign in measured.items()
        if sign is not None
    ]


def flagged(found: Sequence[QualitySign]) -> list[QualitySign]:
    """Return the measures above their bounds."""
    return [sign for sign in found if sign.is_flagged]


Found = tuple[float, str] | None


def _values(rows: Sequence[Row], column: str) -> list[Any]:
    return [row[column] for row in rows if row[column] is not None]


def _too_fast(rows: Sequence[Row]) -> Found:
    times = _values(rows, "rt")
    if not times:
        return None
    fastest = signs()["too_fast"]["fastest_ms"]
    fast = sum(time < fastest for time in times)
    evidence = f"{fast} of {len(times)} answers under {fastest} ms; median {statistics.median(times):.0f} ms"
    return fast / len(times), evidence


def _same_key(rows: Sequence[Row], planned: Mapping[int, Row]) -> Found:
    keys, most = [], 0
    for row in rows:
        step = (planned.get(row["trial_index"]) or {"steps": [{}]})["steps"][-1]
        labels, offered = step.get("labels") or [], step.get("keys") or []
        if row["response_raw"] in labels and len(offered) == len(labels):
            keys.append(offered[labels.index(row["response_raw"])])
            most = max(most, len(offered))
    if len(keys) < 2 or most < 2:
        return None
    longest = longest_run(keys)
    chance = chance_of_run(longest, len(keys), most)
    pressed = max(set(keys), key=keys.count)
    evidence = (
        f"longest run {longest} of {len(keys)} answers (by chance {_probability(chance)}); "
        f"{keys.count(pressed)} of them with “{pressed}”"
    )
    return 1 - chance, evidence


def longest_run(values: Sequence[object]) -> int:
    """Return the length of the longest run of equal values."""
    return max((len(list(run)) for _, run in groupby(values)), default=0)


def chance_of_run(longest: int, answers: int, keys: int) -> float:
    """Return the probability that ``answers`` random presses of ``keys`` keys contain a run of at least ``longest``.

    Computed as a Markov chain over the length of the current run, absorbed at ``longest``.
    """
    if longest <= 1:
        return 1.0
    again = 1 / keys
    state = [0.0] * (longest + 1)
    state[1] = 1.0
    for _ in range(answers - 1):
        after = [0.0] * (longest + 1)
        after[longest] = state[longest]
        for run in range(1, longest):
            after[run + 1] += state[run] * again
            after[1] += state[run] * (1 - again)
        state = after
    return state[longest]


def _probability(value: float) -> str:
    return "p < .001" if value < 0.001 else "p = " + f"{value:.3f}".removeprefix("0")


def _hidden(rows: Sequence[Row]) -> Found:
    times = _values(rows, "hidden_ms")
    away = sum(time > 0 for time in times)
    evidence = f"{sum(times) / 1000:.1f} s hidden, in {away} of {len(times)} trials"
    return (sum(times), evidence) if times else None


def _dropped_frames(rows: Sequence[Row]) -> Found:
    counts = _values(rows, "dropped_frames")
    hit = sum(count > 0 for count in counts)
    evidence = f"{hit} of {len(counts)} trials, {sum(counts)} frames in all"
    return (hit / len(counts), evidence) if counts else None


def _total(rows: Sequence[Row], column: str, what: str) -> Found:
    counts = _values(rows, column)
    hit = sum(count > 0 for count in counts)
    evidence = f"{sum(counts)} {what}, in {hit} of {len(counts)} trials"
    return (float(sum(counts)), evidence) if counts else None


def _between_keys(rows: Sequence[Row]) -> list[float]:
    """Return the times between key strokes in ms; empty if there are too few."""
    sign = signs()["regular_typing"]
    between = [
        max(0.0, later[0] - earlier[0])
        for row in rows
        for earlier, later in pairwise(row["key_log"] or [])
        # a key held down, or pressed twice, keeps its own time
        if later[0] - earlier[0] <= sign["longest_ms"] and later[1] != earlier[1]
    ]
    return between if len(between) >= sign["fewest_intervals"] else []


def _regular_typing(rows: Sequence[Row]) -> Found:
    """Return the regularity of key intervals, by the median absolute deviation, which single pauses do not affect."""
    between = _between_keys(rows)
    if not between:
        return None
    median = statistics.median(between)
    apart = MAD_TO_SD * statistics.median(abs(time - median) for time in between)
    variation = apart / median if median else 0.0
    evidence = f"variation {variation:.2f} over {len(between)} times between keys, median {median:.0f} ms"
    return 1 - variation, evidence


def _fast_typing(rows: Sequence[Row]) -> Found:
    between = _between_keys(rows)
    if not between:
        return None
    median = max(statistics.median(between), 0.1)
    evidence = (
        f"median {median:.0f} ms between keys, over {len(between)}: {12_000 / median:.0f} words a minute"
    )
    return 1000 / median, evidence


def _wrong(rows: Sequence[Row]) -> Found:
    """Return the proportion of wrong answers over all conditions, without unjudged ones."""
    tested = [row for row in rows if not row["is_attention_check"] and not row.get("is_filler")]
    judged = [row for row in tested if row["correct"] is not None or row.get("timed_out")]
    if not judged:
        return None
    right = sum(bool(row["correct"]) for row in judged)
    return 1 - right / len(judged), f"{right} of {len(judged)} answers right"


def _missed(missed: int, checks: int) -> Found:
    return (float(missed), f"{missed} of {checks} checks missed") if checks else None


AGAIN_AFTER_S = 30.0
MEASURED_KINDS = ("human", "simulated")
_READ = ("trial_index", "attempt", STEP_NAME, "is_practice", "is_filler", "is_attention_check", "timed_out", "response_raw", "rt",
         "hidden_ms", "dropped_frames", "paste_count", "keyless_chars", "key_log")  # fmt: skip
MEASURED = tuple(trials.c[name] for name in _READ)
Keys = Mapping[int, Mapping[str, Any]]
Checks = Sequence[Question]
"""Matrices of questions with attention checks among their rows."""


@dataclass(frozen=True)
class _Kept:
    trials: int
    state: str
    at: float
    found: list[QualitySign]


class SessionMetrics:
    """Metrics by session, for all studies of a server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}
        self._keys: dict[str, tuple[Keys, Checks]] = {}

    def of(
        self,
        connection: Connection,
        rows: Iterable[Mapping[str, Any]],
        bounds: Mapping[str, float],
        *,
        within_s: float | None = None,
    ) -> dict[str, list[QualitySign]]:
        """Return the signs of participants' (and simulated readers') sessions."""
        signs_by_session = {}
        until = None if within_s is None else self._clock() + within_s
        has_measured = False
        for row in rows:
            if row["reader_kind"] not in MEASURED_KINDS or not row["n_trials"]:
                continue
            cached, is_current = self._known(row)
            # at least one each time, so that all are eventually measured however little time there is
            if is_current or (has_measured and until is not None and self._clock() > until):
                signs_by_session[row["session_id"]] = [] if cached is None else cached.found
            else:
                signs_by_session[row["session_id"]] = self._measure(connection, row, bounds)
                has_measured = True
        return signs_by_session

    def forget(self, session_id: str) -> None:
        """Remove a session that is gone."""
        with self._lock:
            self._kept.pop(session_id, None)
            self._keys.pop(session_id, None)

    def _known(self, row: Mapping[str, Any]) -> tuple[_Kept | None, bool]:
        """Return a session's cached metrics, and whether they are current."""
        with self._lock:
            cached = self._kept.get(row["session_id"])
        if cached is None:
            return None, False
        is_running = row["state"] == "started"
        holds = is_running and self._clock() - cached.at < AGAIN_AFTER_S
        return cached, (cached.trials, cached.state) == (row["n_trials"], row["state"]) or holds

    def _measure(
        self, connection: Connection, row: Mapping[str, Any], bounds: Mapping[str, float]
    ) -> list[QualitySign]:
        session_id = row["session_id"]
        with self._lock:
            of_plan = self._keys.get(session_id)
        if of_plan is None:
            query = select(sessions.c.plan).where(sessions.c.session_id == session_id)
            plan: Mapping[str, Any] = connection.scalar(query) or {}
            of_plan = keys_of_plan(plan), checks_of_plan(plan)
        keys, checks = of_plan
        rows = trials_to_measure(connection, session_id, answers=RIGHT_SHARE in bounds)
        try:
            answers = records.given_answers(connection, session_id) if checks else {}
            signs_found = measures(rows, keys, bounds, failed_checks(checks, answers))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # one session's rows must not hide the others
            why = f"its rows cannot be measured ({type(error).__name__})"
            signs_found = [QualitySign(UNREADABLE, 1.0, 0.0, why)]
        with self._lock:
            self._kept[session_id] = _Kept(row["n_trials"], str(row["state"]), self._clock(), signs_found)
            self._keys[session_id] = of_plan
        return signs_found


def trials_to_measure(
    connection: Connection, session_id: str, *, answers: bool = False
) -> list[dict[str, Any]]:
    """Return the columns of a session's trials for :func:`experiment.people.quality.measures`, without condition and item.

    ``correct`` is set for attention checks, and for other answers only if a declared rule needs their proportion.
    """
    query = select(*MEASURED).where(trials.c.session_id == session_id)
    stored = connection.execute(query.order_by(trials.c.trial_index, trials.c.attempt)).mappings()
    rows = [dict(row) | {"correct": None} for row in stored]
    if answers or any(row["is_attention_check"] for row in rows):
        judged = select(scores.c.trial_index, scores.c.attempt, scores.c.correct)
        judged = judged.where(scores.c.session_id == session_id).order_by(scores.c.score_id)
        newest = {(row.trial_index, row.attempt): row.correct for row in connection.execute(judged)}
        for row in rows:
            if answers or row["is_attention_check"]:
                row["correct"] = newest.get((row["trial_index"], row["attempt"]))
    return rows


def checks_of_plan(plan: Mapping[str, Any]) -> Checks:
    """Return a plan's matrices of questions with attention checks among their rows."""
    questions = [question for screen in plan.get("screens", ()) for question in screen.get("questions", ())]
    return [question for question in questions if any(row["accept"] for row in question.get("rows", ()))]


def keys_of_plan(plan: Mapping[str, Any]) -> Keys:
    """Return labels and keys of a session's planned trials by ``trial_index``, without further answers, on other scales."""
    return {
        trial["trial_index"]: {"steps": [{name: trial["steps"][-1].get(name) for name in ("labels", "keys")}]}
        for screen in plan.get("screens", ())
        for trial in screen.get("trials", ())
        if STEP_NAME not in trial
    }
