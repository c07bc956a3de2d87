"""The effect of each error in Mind Scramble's scorers: stored replies scored as released, without one error, and corrected.

The released rule is that of :mod:`experiment.papers.mind_scramble.protocol`; a rule without an error differs from it in that
alone, so that the difference of the means is what the error changes. The corrected rule is wrods' own parser and scorer. All are
computed from the raw replies of models, whatever the study counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from experiment.columns import Column
from experiment.exporting.tables import ExportTable
from experiment.models.prompts.prompter import asked_of
from experiment.papers.mind_scramble.protocol import (
    contains_either_way,
    named_fields,
    prompt_name,
    same_digits,
    words_in_place,
)
from experiment.parsing.free_answers import number_of
from experiment.scoring.published import paper_of
from experiment.scoring.rescoring import EXECUTED, MODEL_KINDS, StoredResponse, responses
from experiment.scoring.similarities import stored_cosines
from experiment.study import Study
from stimuli.recipes.tasks import TYPOBENCH

RELEASED, CORRECTED = "released", "corrected"
PROGRAMS, NEVER_RUN = "mbpp", "programs are never run: their text vectors are compared"
_PUNCTUATION = "'\"`*.,;:!?() \t\r\n"


@dataclass(frozen=True)
class ReplyParts:
    """A reply as the rules read it."""

    field: str | None  # what the released parser found under the field's name; None where it found nothing
    gold: str  # the first answer that counts
    accepted: tuple[str, ...]  # all of them


Rule = Callable[[ReplyParts], float | None]


def _same_number(reply: ReplyParts) -> float:
    value = number_of(reply.field or "")
    return float(value is not None and value == number_of(reply.gold))


def _plain(text: str) -> str:
    return text.strip(_PUNCTUATION).casefold()


def _within(
    reply: ReplyParts,
    *,
    empty: bool = True,
    longer: bool = True,
    shorter: bool = True,
    all_golds: bool = False,
) -> float:
    """Apply the two-way rule, each way of being right switched on or off."""
    if reply.field is None:
        return 0.0
    field = reply.field.lower()
    for gold in (answer.lower() for answer in (reply.accepted if all_golds else (reply.gold,))):
        if field == gold:
            return 1.0
        if not field:
            if empty:
                return 1.0
        elif (longer and gold in field) or (shorter and field in gold):
            return 1.0
    return 0.0


def _of_all_words(field: str, gold: str) -> float:
    """Return the share of the right text's words in place, where the released rule counts the shorter text's words."""
    given, wanted = len(field.split()), len(gold.split())
    return words_in_place(field, gold) * min(given, wanted) / wanted if wanted else 0.0


def _compared(compare: Callable[[str, str], float], missing: float | None = 0.0) -> Rule:
    """Return the rule that compares the field with the first right answer; a reply without the field is worth ``missing``."""
    return lambda reply: missing if reply.field is None else float(compare(reply.field, reply.gold))


@dataclass(frozen=True)
class ReleasedScorer:
    """The released rule of a data set, and the same rule without each of its errors."""

    fields: tuple[str, ...]  # names that the released parser marks, the one that is scored first
    released: Rule
    without: Mapping[str, Rule]  # each error in words, and the rule without it


_EITHER_WAY: dict[str, Rule] = {
    "an empty answer is right": lambda reply: _within(reply, empty=False),
    "an answer that holds the right one is right": lambda reply: _within(reply, longer=False),
    "a part of the right answer is right": lambda reply: _within(reply, shorter=False),
}
SCORERS: dict[str, ReleasedScorer] = {
    "gsm8k": ReleasedScorer(
        ("answer_number", "process"),
        _compared(same_digits),
        {"digits are run together: 3.5 is 35, −5 is 5, 5 of 6 is 56": _same_number},
    ),
    "boolq": ReleasedScorer(
        ("answer", "reason"),
        _compared(lambda field, gold: field.replace("'", "") == gold),
        {"Yes, yes. and **yes** are wrong": _compared(lambda field, gold: _plain(field) == _plain(gold))},
    ),
    "squad": ReleasedScorer(
        ("answer", "reason"),
        _compared(contains_either_way),
        {
            **_EITHER_WAY,
            "only the first of several correct answers counts": lambda reply: _within(reply, all_golds=True),
        },
    ),
    "csqa": ReleasedScorer(("answer", "reason"), _compared(contains_either_way), _EITHER_WAY),
    "rectify": ReleasedScorer(
        ("fixed",),
        _compared(words_in_place, None),
        {
            "words are counted against the shorter text": _compared(_of_all_words, None),
            "replies without the field are left out": _compared(words_in_place),
        },
    ),
}
"""By data set, or by the perception task; summaries and translations were compared by text vectors, which are no rule."""


def data_set_of(trial: Mapping[str, Any]) -> str | None:
    """Return which scorer a planned trial had in the paper; None where it had none by rule."""
    if paper_of(trial) != "typobench":
        return None
    kind = str(prompt_name(asked_of(trial))).removeprefix("typobench_").removesuffix("_local")
    return kind if kind in SCORERS else None


def values_of(
    kind: str, reply: str, gold: str, accepted: Sequence[str], corrected: float | None
) -> Iterator[tuple[str, float | None]]:
    """Iterate over the scores of a reply: released, without each error, corrected."""
    scorer = SCORERS[kind]
    field = named_fields(reply, scorer.fields).get(scorer.fields[0])
    parts = ReplyParts(field, gold, tuple(accepted) or (gold,))
    yield RELEASED, scorer.released(parts)
    for fault, rule in scorer.without.items():
        yield fault, rule(parts)
    yield CORRECTED, corrected


FAULT_COLUMNS = {
    "session_id": Column("session_id", "string", None, "the session"),
    "trial_index": Column("trial_index", "integer", None, "the trial"),
    "attempt": Column("attempt", "integer", None, "its attempt"),
    "data_set": Column("data_set", "string", None, "data set or perception task of Mind Scramble"),
    "rule": Column(
        "rule", "string", None, "released, corrected, or the error that is taken out of the released rule"
    ),
    "value": Column("value", "number", None, "score of the reply; null if the rule leaves it out"),
}


def tables(study: Study, connection: Connection) -> list[ExportTable]:
    """Return the table of a study whose replies the paper's code reads."""
    if str(study.get("materials", "corpus", "name", default="")) not in TYPOBENCH:
        return []
    about = "one row per model reply and rule: its score as released, without one of the released code's errors, and corrected"
    key = ("session_id", "trial_index", "attempt", "rule")
    return [
        ExportTable("published_scoring", about, FAULT_COLUMNS, key, lambda: fault_rows(study, connection))
    ]


def fault_rows(study: Study, connection: Connection) -> Iterator[dict[str, Any]]:
    """Iterate over every model's reply to a task that Mind Scramble scored, under each rule.

    Replies to prompts that are not the paper's are left out: they were not asked for the field that the released rules read. A
    program's score is its cosine with the reference program as released, and without that error whether it passes its tests; it has
    rows if ``wrods score`` has computed both (``--similarity``, ``--execute``).
    """
    cosines: dict[tuple[str, int, int], tuple[str, float]] | None = None
    for response in responses(study, connection):
        if response.reader_kind in MODEL_KINDS and response.trial["steps"][-1].get("read_as") == "code":
            cosines = stored_cosines(connection, study.id) if cosines is None else cosines
            yield from _program_rows(response, cosines)
            continue
        kind = data_set_of(response.trial) if response.reader_kind in MODEL_KINDS else None
        if kind is None or response.raw is None or "prompts" not in response.plan.get("published", ()):
            continue
        trial = response.trial
        accepted = [str(answer) for answer in trial.get("accepted") or ()]
        place = (response.session_id, trial["trial_index"], response.attempt)
        values = values_of(
            kind, response.raw, str(trial["answer"] or ""), accepted, _corrected(response, kind)
        )
        for rule, value in values:
            yield dict(zip(FAULT_COLUMNS, (*place, kind, rule, value), strict=True))


def _program_rows(
    response: StoredResponse, cosines: Mapping[tuple[str, int, int], tuple[str, float]]
) -> Iterator[dict[str, Any]]:
    place = (response.session_id, int(response.trial["trial_index"]), int(response.attempt))
    counts = response.counts
    if place not in cosines or counts is None or not str(counts["scorer"]).startswith(EXECUTED):
        return
    for rule, value in ((RELEASED, cosines[place][1]), (NEVER_RUN, float(bool(counts["correct"])))):
        yield dict(zip(FAULT_COLUMNS, (*place, PROGRAMS, rule, value), strict=True))


def _corrected(response: StoredResponse, kind: str) -> float | None:
    """Return wrods' own verdict: right or wrong, and of restored texts their nearness; a failed answer is worth 0."""
    score = response.scored()
    if score.response_status != "valid":
        return 0.0
    return score.score if kind == "rectify" else float(bool(score.correct))
