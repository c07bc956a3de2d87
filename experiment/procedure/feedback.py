"""Feedback after a trial: on which trials, in which words, for how long; the same for participants and models.

The words are in the session's plan, so that the page and a conversation with a model use the same ones. The server determines
correctness after the answer is stored: the browser never has the key of a test item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from experiment.study import Study
from experiment.study.durations import milliseconds

Feedback = dict[str, Any]
Verdict = Literal["correct", "incorrect", "late"]


def feedback_words(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the feedback texts of a pack."""
    return {
        "correct": {"title": texts["feedback_correct"], "text": None},
        "incorrect": {"title": texts["feedback_incorrect"], "text": None},
        "late": {"title": texts["feedback_late"], "text": texts["feedback_late_text"]},
        "answer": texts["feedback_answer"],
    }


def block_feedback(settings: Mapping[str, Any], study: Study) -> Feedback | None:
    """Return a block's feedback for the plan; None without feedback.

    ``settings``: the block's: ``feedback`` (none, late, accuracy, accuracy_and_late) and ``feedback_for``.
    """
    given = settings.get("feedback", "none")
    if given == "none":
        return None
    shown_for = settings.get("feedback_for")
    return {
        "accuracy": given != "late",
        "late": given != "accuracy",
        "for_ms": None if shown_for is None else milliseconds(shown_for),
        "words": feedback_words(study.pack.texts),
    }


def practice_feedback(settings: Mapping[str, Any], study: Study) -> Feedback | None:
    """Return the feedback of a practice screen, which is shown until the reader continues; None without feedback."""
    if not settings.get("feedback", True):
        return None
    return {"accuracy": True, "late": True, "for_ms": None, "words": feedback_words(study.pack.texts)}


def verdict_of(
    feedback: Mapping[str, Any] | None, trial: Mapping[str, Any], *, correct: bool | None, timed_out: bool
) -> Verdict | None:
    """Return the feedback on a trial.

    ``correct``: whether the score is correct; an unreadable answer (None) is not correct.
    """
    if feedback is None or trial["is_attention_check"]:
        return None
    if timed_out and feedback["late"]:
        return "late"
    if not feedback["accuracy"] or not trial["accepted"]:
        return None
    return "correct" if correct else "incorrect"


def feedback_text(feedback: Mapping[str, Any], verdict: Verdict, answer: str | None = None) -> str:
    """Return the feedback as one line of text, with the correct answer if it may be shown (practice)."""
    words = feedback["words"]
    parts = [words[verdict]["title"], words[verdict]["text"]]
    if answer is not None and verdict != "correct":
        parts = [parts[0], words["answer"].format(answer=answer)]
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)
