"""Estimates the duration of a session for a participant: reading, answering, writing and waiting.

Reading takes one minute per 240 words (Brysbaert, 2019), in a maze per 70 (Forster et al., 2009), typing a restored text 1.5 s
per word; solved examples that stay on the screen count once per set. Free writing cannot be predicted: it counts as a minute if
several lines can be written, never more than the time limit; what the limits allow beyond that is reported separately.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiment.lists import session_levels
from experiment.procedure import plan_session
from experiment.study import Study
from experiment.trials import FRAME_MS, declared_of, presented_ms
from stimuli.item import Item

WORDS_PER_MINUTE = 240
MAZE_WORDS_PER_MINUTE = 70
SECONDS_OF_QUESTION = {"text": 15.0, "several": 10.0}
SECONDS_PER_QUESTION = 6.0
SECONDS_PER_TICK = 1.5
SECONDS_TO_READ_FEEDBACK = 1.5
FASTEST_ANSWER_S = 0.2
"""Least time of an answer to a stimulus."""


@dataclass(frozen=True)
class Duration:
    """A session's length in minutes, and how much more time limits of free answers allow."""

    minutes: float
    limits_allow: float


def session_duration(plan: Mapping[str, Any]) -> Duration:
    """Return the estimated duration of a planned session for a participant."""
    seconds = spare = 0.0
    for screen in plan["screens"]:
        pages = screen.get("pages") or ([screen] if "text" in screen else [])
        seconds += sum(max(_reading(page["text"]), page.get("minimum_ms", 0) / 1000) for page in pages)
        seconds += sum(_question(question) for question in screen.get("questions", []))
        trials = screen.get("trials", [])
        seconds += _examples(trials) + _breaks(screen, trials)
        for trial in trials:
            took, left = _trial(trial)
            seconds += took + _feedback(screen.get("feedback"))
            spare += left
    return Duration(seconds / 60, spare / 60)


def shortest_seconds(plan: Mapping[str, Any], answered: Collection[int]) -> float:
    """Return the seconds below which nobody can complete a planned session, of whose trials some were answered (``trial_index``).

    The sum of what no page lets a participant skip: minimum times of screens; for each answered trial fixation, interval,
    primes and the minimum times of its steps; and 200 ms for each answer.
    """
    shortest = 0.0
    for screen in plan["screens"]:
        pages = screen.get("pages") or [screen]
        shortest += sum(page.get("minimum_ms") or 0 for page in pages) / 1000
        for trial in screen.get("trials", []):
            if trial["trial_index"] in answered:
                shortest += ((trial["fixation_ms"] or 0) + (trial["interval_ms"] or 0)) / 1000
                shortest += sum(map(_shortest_step, trial["steps"]))
    return shortest


def _shortest_step(step: Mapping[str, Any]) -> float:
    declared = declared_of(step)
    entries = [name for name in declared.lasts if not step.get(declared.plan[name].frames or "")]
    times = step.get("part_ms") or []
    presented = sum(times) + max(len(times) - 1, 0) * (step.get("blank_ms") or 0) - len(times) * FRAME_MS
    minimum: float = (
        sum(step[name] for name in entries) + (step.get("minimum_ms") or 0) + max(presented, 0)
    ) / 1000
    return max(minimum, FASTEST_ANSWER_S) if declared.response is not None else minimum


def _reading(text: str | None) -> float:
    return len((text or "").split()) * 60 / WORDS_PER_MINUTE


def _question(question: Mapping[str, Any]) -> float:
    if question.get("only"):
        return 0.0  # most readers are not asked it
    if "rows" in question:
        texts = [question["ask"], *(row["text"] for row in question["rows"])]
        return sum(map(_reading, texts)) + SECONDS_PER_TICK * len(question["rows"])
    if question["type"] == "vocabulary":
        return _reading(question["ask"]) + SECONDS_PER_TICK * len(question["options"])
    return _reading(question["ask"]) + SECONDS_OF_QUESTION.get(question["type"], SECONDS_PER_QUESTION)


def _examples(trials: Sequence[Mapping[str, Any]]) -> float:
    shown = {trial["set"]: trial["exemplars"] for trial in trials if trial["exemplars"]}
    return sum(_reading(example.get("text")) for examples in shown.values() for example in examples)


def _breaks(block: Mapping[str, Any], trials: Sequence[Mapping[str, Any]]) -> float:
    every = block.get("break_every")
    return (len(trials) - 1) // every * block["break_minimum_ms"] / 1000 if every and trials else 0.0


def _feedback(feedback: Mapping[str, Any] | None) -> float:
    if not feedback or not feedback["accuracy"]:
        return 0.0
    shown_for = feedback["for_ms"]
    return SECONDS_TO_READ_FEEDBACK if shown_for is None else shown_for / 1000


def _trial(trial: Mapping[str, Any]) -> tuple[float, float]:
    """Return the seconds of a trial, and the additional seconds that its free answers may take."""
    seconds = (trial["fixation_ms"] + trial["interval_ms"]) / 1000
    spare = 0.0
    for step in trial["steps"]:
        words = len((step["text"] or "").split())
        least = ((step.get("minimum_ms") or 0) + presented_ms(step)) / 1000
        per_minute = MAZE_WORDS_PER_MINUTE if step.get("foils") else WORDS_PER_MINUTE
        seconds += least if step.get("part_ms") else max(words * 60 / per_minute, least)
        takes = declared_of(step).seconds
        answering = takes.get("answer", 0.0) + words * takes.get("word", 0.0)
        if "lines" in takes:
            answering = takes["lines"] if step.get("multiline") else answering
            limit = (step.get("time_limit_ms") or 0) / 1000
            if limit:
                answering = min(answering, limit)
                spare += limit - answering
        seconds += answering
    return seconds, spare


MOST_LENGTHS = 4
"""Most kinds of session whose durations are listed individually; of more, the shortest and the longest."""


def length_in_words(by_levels: Mapping[str, float]) -> str:
    """Describe the duration of sessions in minutes, by their levels between sessions if they differ."""
    texts = {levels: minutes_in_words(minutes) for levels, minutes in by_levels.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    if len(texts) > MOST_LENGTHS:
        few, many = min(by_levels, key=by_levels.__getitem__), max(by_levels, key=by_levels.__getitem__)
        return f"{texts[few]} ({few}) to {texts[many]} ({many})"
    return ", ".join(f"{minutes} ({levels})" for levels, minutes in texts.items())


def minutes_in_words(minutes: float) -> str:
    """Return a number of minutes as text, at least one."""
    return "1 minute" if round(minutes) <= 1 else f"{minutes:,.0f} minutes"


def session_durations(
    study: Study, items: Sequence[Item], lists: Sequence[int], plan: Mapping[str, Any]
) -> dict[str, Duration]:
    """Return the duration of a session, by its levels between sessions."""
    durations: dict[str, Duration] = {}
    for list_id in lists:
        levels = ", ".join(map(str, session_levels(study, items, list_id)["condition"].values()))
        if levels not in durations:
            shown = plan if not durations else plan_session(study, items, list_id=list_id)
            durations[levels] = session_duration(shown)
    return durations
