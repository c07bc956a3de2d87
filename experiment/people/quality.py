"""Flags with their evidence, from a session's stored rows: numbers to look at, which exclude nobody by themselves.

Nothing here reads a condition, and correctness counts only for attention checks, whose answer everybody is told.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any

from analysis.plan import RIGHT_SHARE

Row = Mapping[str, Any]
MAD_TO_SD = 1.4826
"""What makes the median absolute deviation of a normal distribution its standard deviation."""
SEALED = frozenset({RIGHT_SHARE})
"""Signs of correctness: until the study is closed the dashboard says whether they meet their rule, and no number."""


UNREADABLE = "could not be summarized"
"""What stands in place of a session's measures where its rows, of an earlier version say, cannot be measured."""


@dataclass(frozen=True)
class Measure:
    """One sign of careless or automatic answering."""

    kind: str
    value: float
    bound: float
    evidence: str

    @property
    def label(self) -> str:
        """Return its name on pages."""
        return UNREADABLE if self.kind == UNREADABLE else str(signs()[self.kind]["label"])

    @property
    def is_sealed(self) -> bool:
        """Say whether its numbers are kept back while the study is open."""
        return self.kind in SEALED

    @property
    def is_flagged(self) -> bool:
        """Say whether the value is above its bound."""
        return self.value > self.bound


@cache
def signs() -> Mapping[str, Mapping[str, Any]]:
    """Return what is measured: kind → bound, unit, label, measure in words, and further constants."""
    text = resources.files(__package__).joinpath("quality.json").read_text("utf-8")
    found: Mapping[str, Mapping[str, Any]] = json.loads(text)["bounds"]
    return found


def said(kind: str, value: float) -> str:
    """Return a value or bound of a flag as pages show it: shares in per cent, times in seconds, probabilities as *p*."""
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
    trials: Iterable[Row], planned: Mapping[int, Row], bounds: Mapping[str, float] | None = None
) -> list[Measure]:
    """Measure a session's trials; signs for which there is nothing to measure are left out."""
    rows = [row for row in trials if not row["is_practice"]]
    found = {
        "too_fast": _too_fast(rows),
        "same_key": _same_key(rows, planned),
        "hidden": _hidden(rows),
        "dropped_frames": _dropped_frames(rows),
        "pastes": _total(rows, "paste_count", "pastes or drops tried"),
        "keyless": _total(rows, "keyless_chars", "characters without a key stroke"),
        "regular_typing": _regular_typing(rows),
        "fast_typing": _fast_typing(rows),
        "attention_checks_failed": _missed_checks(rows),
        RIGHT_SHARE: _wrong(rows) if RIGHT_SHARE in (bounds or {}) else None,
    }
    chosen = {kind: float(sign["bound"]) for kind, sign in signs().items()} | dict(bounds or {})
    return [Measure(kind, one[0], chosen[kind], one[1]) for kind, one in found.items() if one is not None]


def flagged(found: Sequence[Measure]) -> list[Measure]:
    """Return the measures above their bounds."""
    return [one for one in found if one.is_flagged]


Found = tuple[float, str] | None


def _too_fast(rows: Sequence[Row]) -> Found:
    times = [row["rt"] for row in rows if row["rt"] is not None]
    if not times:
        return None
    fastest = signs()["too_fast"]["fastest_ms"]
    fast = sum(time < fastest for time in times)
    told = f"{fast} of {len(times)} answers under {fastest} ms; median {statistics.median(times):.0f} ms"
    return fast / len(times), told


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
    told = (
        f"longest run {longest} of {len(keys)} answers (by chance {_probability(chance)}); "
        f"{keys.count(pressed)} of them with “{pressed}”"
    )
    return 1 - chance, told


def longest_run(values: Sequence[object]) -> int:
    """Return the length of the longest run of equal values."""
    longest = run = 0
    before: object = None
    for place, value in enumerate(values):
        run = run + 1 if place and value == before else 1
        longest, before = max(longest, run), value
    return longest


def chance_of_run(longest: int, answers: int, keys: int) -> float:
    """Return the probability that ``answers`` random presses of ``keys`` keys hold a run of at least ``longest``.

    A chain over the length of the present run, absorbed where it reaches ``longest``.
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
    times = [row["hidden_ms"] for row in rows if row["hidden_ms"] is not None]
    if not times:
        return None
    away = sum(time > 0 for time in times)
    return sum(times), f"{sum(times) / 1000:.1f} s hidden, in {away} of {len(times)} trials"


def _dropped_frames(rows: Sequence[Row]) -> Found:
    counts = [row["dropped_frames"] for row in rows if row["dropped_frames"] is not None]
    if not counts:
        return None
    hit = sum(count > 0 for count in counts)
    return hit / len(counts), f"{hit} of {len(counts)} trials, {sum(counts)} frames in all"


def _total(rows: Sequence[Row], column: str, what: str) -> Found:
    counts = [row[column] for row in rows if row[column] is not None]
    if not counts:
        return None
    hit = sum(count > 0 for count in counts)
    return float(sum(counts)), f"{sum(counts)} {what}, in {hit} of {len(counts)} trials"


def _between_keys(rows: Sequence[Row]) -> list[float]:
    """Return the times between key strokes in ms, none where they are too few to say anything."""
    sign = signs()["regular_typing"]
    between = [
        max(0.0, later[0] - earlier[0])
        for row in rows
        for earlier, later in pairwise(row["key_log"] or [])
        # a key held down, or struck twice, keeps its own time
        if later[0] - earlier[0] <= sign["longest_ms"] and later[1] != earlier[1]
    ]
    return between if len(between) >= sign["fewest_intervals"] else []


def _regular_typing(rows: Sequence[Row]) -> Found:
    """Say how alike the times are. The median's own deviation is not hidden by a pause here and there, as a mean's is."""
    between = _between_keys(rows)
    if not between:
        return None
    median = statistics.median(between)
    apart = MAD_TO_SD * statistics.median(abs(time - median) for time in between)
    variation = apart / median if median else 0.0
    told = f"variation {variation:.2f} over {len(between)} times between keys, median {median:.0f} ms"
    return 1 - variation, told


def _fast_typing(rows: Sequence[Row]) -> Found:
    between = _between_keys(rows)
    if not between:
        return None
    median = max(statistics.median(between), 0.1)
    told = f"median {median:.0f} ms between keys, over {len(between)}: {12_000 / median:.0f} words a minute"
    return 1000 / median, told


def _wrong(rows: Sequence[Row]) -> Found:
    """Return the share of wrong answers over all conditions; what nobody judged does not count."""
    tested = [row for row in rows if not row["is_attention_check"] and not row.get("is_filler")]
    judged = [row for row in tested if row["correct"] is not None or row.get("timed_out")]
    if not judged:
        return None
    right = sum(bool(row["correct"]) for row in judged)
    return 1 - right / len(judged), f"{right} of {len(judged)} answers right"


def _missed_checks(rows: Sequence[Row]) -> Found:
    checks = [row for row in rows if row["is_attention_check"]]
    if not checks:
        return None
    missed = sum(not row["correct"] for row in checks)
    return float(missed), f"{missed} of {len(checks)} checks missed"
