"""Scoring of a stored response: response, status, correct and score, by the scorer of the trial type.

``correct`` is None unless the status is valid, and if there is no correct answer (a summary, a program that only its tests can
judge, a rating). ``score`` is 1 or 0 for choices, and for sets of labels the share that is rightly ticked or not; of a rating it
is the point of the scale, or the mean of the points by the probabilities that a model reports; for recovery it is
1 − (edit distance to the intact text) / (length of the intact text), at least 0; for free answers the F1 of their words, for
numbers 1 or 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from experiment.parsing.free_answers import is_accepted, overlap
from experiment.parsing.label_sets import BETWEEN, answers_in
from experiment.parsing.labels import ends_open, is_whole
from experiment.parsing.replies import PARSERS
from experiment.parsing.text import Parsed, final_answer, without_thought
from experiment.scoring.published import SCORER_VERSION as VERSION
from experiment.scoring.published import Score, published_score, recovery, same_words
from experiment.trials import OWN_TYPE, RATED, labels_of, trial_type
from experiment.trials.own import answer_of
from stimuli.item import ANSWERS_BETWEEN

__all__ = ["VERSION", "Score", "recovery", "same_words"]

FORCED = "forced"
"""Status of a reply whose reasoning was truncated and closed, so that the model did not reach its label by itself."""
LOG_LIKELIHOOD = "log_likelihood"
"""Scorer of teacher-forced sessions."""


def score_trial(
    trial: Mapping[str, Any],
    response_raw: str | None,
    *,
    timed_out: bool = False,
    reply_status: str | None = None,
    thinks: bool = False,
    parser: str | None = None,
    label_logprobs: Mapping[str, float] | None = None,
) -> Score:
    """Parse and score one response to a planned trial: the chosen label, the typed text, or a model's reply.

    ``reply_status``: the engine's status of a model's reply (:func:`status_for_scoring`): a refusal is final, a truncated reply
    counts if a label was found; ``thinks``: whether the reply reasons aloud before its answer; ``parser``: a paper's
    (:func:`experiment.scoring.published.parsers`), bug for bug, but for further answers, which no paper asked; None is wrods' own.
    """
    answering = trial["steps"][-1]
    if answering["step"] == OWN_TYPE:
        return own_score(trial, response_raw, timed_out=timed_out)
    declared = trial_type(answering["step"])
    name = f"{declared.scorer or 'none'}-{VERSION}"
    if declared.scorer is None or declared.parser is None:
        return Score(None, "valid" if not timed_out else "timeout", None, None, name)
    if timed_out and not (response_raw or "").strip():
        return Score(None, "timeout", None, None, name)
    if reply_status == FORCED:
        return Score(None, "truncated", None, None, name)
    if reply_status in ("error", "timeout", "empty", "refused") and not (response_raw or "").strip():
        return Score(None, reply_status, None, None, name)  # type: ignore[arg-type]
    if parser is not None and "step_name" not in trial:
        return published_score(parser, trial, response_raw or "")
    if reply_status == "refused":
        # a filter may pass half an answer
        return Score(None, "refused", None, None, name)
    scorer = SCORERS[declared.scorer]
    reply = response_raw if reply_status is None else without_thought(response_raw or "")
    if thinks and reply and answering.get("read_as", "text") in ("text", "completion"):
        reply, is_announced = final_answer(reply)
        if reply_status == "truncated" and not is_announced:
            return Score(None, "truncated", None, None, name)
    if not (reply or "").strip() and (response_raw or "").strip():
        return Score(None, "truncated" if reply_status == "truncated" else "empty", None, None, name)
    parsed = PARSERS[declared.parser](reply, answering)
    is_set = bool(answering.get("several"))
    cut = reply_status == "truncated" and (
        scorer.needs_all or is_set or _is_cut(declared.parser, parsed, reply or "")
    )
    if parsed.status != "valid" or parsed.value is None or cut:
        is_truncated = reply_status == "truncated" and parsed.status in ("unparsed", "valid")
        value = parsed.value if cut and scorer.needs_all else None
        return Score(value, "truncated" if is_truncated else parsed.status, None, None, name)
    judged = scorer.judge(parsed.value, trial)
    mean = mean_rating(answering, label_logprobs or {}) if answering["step"] in RATED else None
    score = judged.score if mean is None else mean
    return Score(judged.response, "valid", judged.correct, score, name)


def mean_rating(step: Mapping[str, Any], logprobs: Mapping[str, float]) -> float | None:
    """Return the mean of a scale's points by their probabilities, of which the sum need not be 1; None if none is known.

    A server that reports the most probable tokens leaves points out that are less probable than all these: they count as 0.
    """
    points = zip(labels_of(step), step["responses"] or (), strict=True)
    known = [(float(point), logprobs[label]) for label, point in points if label in logprobs]
    if not known:
        return None
    highest = max(logprob for _, logprob in known)
    weights = [math.exp(logprob - highest) for _, logprob in known]
    return math.fsum(weight * point for weight, (point, _) in zip(weights, known, strict=True)) / math.fsum(
        weights
    )


def own_score(trial: Mapping[str, Any], answer: str | None, *, timed_out: bool = False) -> Score:
    """Return the score of an answer to a lab's own trial type, whose field holds it as it is."""
    step = trial["steps"][-1]
    name = f"{step['scorer'] or 'none'}-{VERSION}"
    if step["answer_field"] is None:
        return Score(None, "timeout" if timed_out else "valid", None, None, name)
    if answer is None or not answer.strip():
        return Score(None, "timeout" if timed_out else "empty", None, None, name)
    answers = trial.get("accepted") or []
    if step["scorer"] is None or not answers:
        return Score(answer, "valid", None, None, name)
    if step["scorer"] == "exact":
        correct = answer in answers
    else:
        numbers = {value for right in answers if (value := _plain_number(right)) is not None}
        correct = _plain_number(answer) in numbers or is_accepted(answer, answers, "text")
    return Score(answer, "valid", correct, float(correct), name)


def own_reply_score(
    trial: Mapping[str, Any], recorded: Mapping[str, Any] | None, reply: str | None, reply_status: str | None
) -> Score:
    """Return the score of a model's reply to a lab's own trial type, in which its parser read ``recorded``; None if nothing."""
    step = trial["steps"][-1]
    name = f"{step['scorer'] or 'none'}-{VERSION}"
    if reply_status in ("error", "timeout", "empty", "refused", "truncated"):
        return Score(None, reply_status, None, None, name)  # type: ignore[arg-type]
    if recorded is None:
        return Score(None, "unparsed" if (reply or "").strip() else "empty", None, None, name)
    return own_score(trial, answer_of(step, recorded))


def _plain_number(text: str) -> float | None:
    """Return the value of a text that is only a number with a decimal point, as fields and item tables have it."""
    try:
        return float(text)
    except ValueError:
        return None


def status_for_scoring(
    status: str, text: str | None, label_logprobs: Mapping[str, float] | None, reasoning: str | None
) -> str:
    """Return the engine's status of a reply for :func:`score_trial`.

    Reasoning that was truncated and closed, so that labels could be scored after it, is ``forced``: the model never gave its
    label.
    """
    is_forced = status == "truncated" and reasoning is not None and text in (label_logprobs or {})
    return FORCED if is_forced else status


def log_likelihood(trial: Mapping[str, Any], answer: str, logprobs: Mapping[str, float] | None) -> Score:
    """Return a model's log-probability of a participant's answer, in nats.

    The answer is not the model's, so it is never correct or wrong. ``logprobs``: log-probability of the scored labels; if the
    answer's label is not among them, the status is ``unparsed``.
    """
    step = trial["steps"][-1]
    labels = labels_of(step)
    response = step["responses"][labels.index(answer)] if labels else answer
    logprob = (logprobs or {}).get(answer)
    return Score(
        response, "unparsed" if logprob is None else "valid", None, logprob, f"{LOG_LIKELIHOOD}-{VERSION}"
    )


def _is_cut(parser: str, parsed: Parsed, reply: str) -> bool:
    """Return whether a label ends a truncated sentence, so that its continuation is unknown: "The answer is A"."""
    if parser not in ("label", "rating") or parsed.value is None:
        return False
    return ends_open(parsed.value, reply) and not is_whole(parsed.value, reply)


@dataclass(frozen=True)
class Judgement:
    """The canonical response, whether it is correct, and its score."""

    response: str
    correct: bool | None
    score: float | None


@dataclass(frozen=True)
class Scorer:
    """Scores what a parser read; ``needs_all`` is whether a truncated reply is not an answer."""

    judge: Callable[[str, Mapping[str, Any]], Judgement]
    needs_all: bool


def _exact(label: str, trial: Mapping[str, Any]) -> Judgement:
    step = trial["steps"][-1]
    if step.get("several"):
        return _same_set(label, trial)
    response = step["responses"][step["labels"].index(label)]
    if "step_name" in trial and trial["answer"] is None:
        return Judgement(response, None, None)
    correct = response == trial["answer"]
    return Judgement(response, correct, float(correct))


def _same_set(text: str, trial: Mapping[str, Any]) -> Judgement:
    """Compare a set of labels with the right ones; the score is the share of labels that are rightly ticked or not."""
    step, order = trial["steps"][-1], trial.get("choice_order")
    ticked = [step["labels"].index(label) for label in text.split(BETWEEN)]
    in_order = sorted(ticked, key=lambda place: order[place] if order else place)
    response = ANSWERS_BETWEEN.join(step["responses"][place] for place in in_order)
    if trial["answer"] is None:
        return Judgement(response, None, None)
    right = answers_in(trial["answer"])
    agreeing = [(place in ticked) == (answer in right) for place, answer in enumerate(step["responses"])]
    return Judgement(response, all(agreeing), sum(agreeing) / len(agreeing))


def _rating(point: str, trial: Mapping[str, Any]) -> Judgement:
    step, asked = trial["steps"][-1], trial["answer"]
    labels = labels_of(step)
    response = step["responses"][labels.index(point)] if labels else point
    # only a check asks for a certain point
    same = None if asked is None else point == asked or (not labels and float(point) == float(asked))
    return Judgement(response, same, float(response))


def _recovery(text: str, trial: Mapping[str, Any]) -> Judgement:
    intact = str(trial["answer"])
    return Judgement(text, same_words(text, intact), recovery(text, intact))


def _accepted(given: str, trial: Mapping[str, Any]) -> Judgement:
    read_as = trial["steps"][-1]["read_as"]
    answers = trial.get("accepted") or []
    if not answers:
        return Judgement(given, None, None)
    correct = is_accepted(given, answers, read_as, decimal=trial["steps"][-1].get("decimal", "."))
    return Judgement(given, correct, overlap(given, answers) if read_as == "text" else float(correct))


# the names that declarations of trial types use
SCORERS: dict[str, Scorer] = {
    "exact": Scorer(_exact, needs_all=False),
    "rating": Scorer(_rating, needs_all=False),
    "recovery": Scorer(_recovery, needs_all=True),
    "accepted": Scorer(_accepted, needs_all=True),
}
