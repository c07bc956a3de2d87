"""The tasks of the three papers by name: what each asks of a record, and which corpora suit it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stimuli.corpora.record import Record
from stimuli.errors import UserError, unknown_name
from stimuli.recipes.asking import Asked, Unsuitable, has_text, labelled, where_is
from stimuli.scramble.words import nfc

QUESTION = "question"
YES_NO = ("yes", "no")


def ask_question(record: Record, field: str) -> Asked:
    """Ask a record's question about its text; a question without a text beside it is itself what changes."""
    has_text(record, field)
    answer = labelled(record)
    if QUESTION not in record.texts:
        raise Unsuitable(
            f"{where_is(record)} has no question to ask about its {field}",
            mend="The task complete gives a record's own task, such as a program to write.",
        )
    beside = () if field == QUESTION else (has_text(record, QUESTION),)
    choices = YES_NO if record.choices is None and answer in YES_NO else record.choices
    return Asked(record, field, beside, choices, answer, other_answers(record, answer))


def other_answers(record: Record, answer: str) -> dict[str, Any]:
    """Return the answers that also count as right, each once and without the first, as an item's key holds them."""
    others = [nfc(other) for other in dict.fromkeys(record.answers) if nfc(other) != nfc(answer)]
    return {"answers": list(dict.fromkeys(others))} if others else {}


def ask_intact(record: Record, field: str) -> Asked:
    """Ask for the intact text, which is the answer."""
    return Asked(record, has_text(record, field), answer=nfc(record.texts[field]))


def ask_summary(record: Record, field: str, reference: str | None = None) -> Asked:
    """Ask for a summary; the answer is the record's text named ``reference``, None without one."""
    return Asked(record, has_text(record, field), answer=_reference(record, reference))


def ask_translation(record: Record, field: str, target_language: str, reference: str | None = None) -> Asked:
    """Ask for a translation into a language; the answer is the record's text named ``reference``, None without one."""
    key = {"target_language": target_language}
    return Asked(record, has_text(record, field), answer=_reference(record, reference), key=key)


def _reference(record: Record, reference: str | None) -> str | None:
    return None if reference is None else nfc(record.texts[has_text(record, reference)])


_CALCULATOR = re.compile(r"<<[^<>]*>>")
_LETTER = r"\(?[A-E]\)?"
_LETTER_LAST = re.compile(
    rf"(?:\n[^\S\n]*{_LETTER}|(?:\A|(?<=[.,;:>()\s]))(?:(?:(?:hence|so|thus|therefore|the|correct|right|will|would|be|is|it)\W+)*"
    rf"(?:answer|ans|option|choice)\b\W*(?:(?:will|would|be|is|option|choice|answer)\b\W*)*{_LETTER}"
    rf"|(?:(?:hence|so|thus|therefore)\W+)*(?:option\W+)?{_LETTER}\W+is\W+(?:the\W+)?(?:correct|right|answer|choice|\W)+))"
    r"[\s.!)]*\Z",
    re.IGNORECASE,
)


def ask_problem(record: Record, field: str) -> Asked:
    """Ask a problem; its worked solution goes along in the key, for examples to show."""
    has_text(record, field)
    answer = labelled(record)
    return Asked(
        record, field, (), record.choices, answer, {**other_answers(record, answer), **worked(record)}
    )


def ask_completion(record: Record, field: str) -> Asked:
    """Ask what the record's corpus asks: a question about a text, a problem to solve, a program that passes its tests."""
    has_text(record, field)
    if QUESTION in record.texts and field != QUESTION:
        return ask_question(record, field)
    if not record.tests:
        return ask_problem(record, field) if record.rationale else ask_question(record, field)
    key: dict[str, Any] = {"tests": list(record.tests)} | ({"setup": record.setup} if record.setup else {})
    return Asked(record, field, (), None, record.answer, key)


def worked(record: Record) -> dict[str, Any]:
    """Return a record's worked solution as an item's key holds it.

    What is no part of the prose goes: GSM8K's calculator marks, and an ending that only names the letter of an
    option, which would be wrong where options are dealt anew.
    """
    prose = _CALCULATOR.sub("", record.rationale or "").strip()
    if record.choices is not None and (found := _LETTER_LAST.search(prose)):
        prose = prose[: found.start()].rstrip(" \t\n,;:>(")
    return {"rationale": nfc(prose)} if prose else {}


def require_worked(record: Record) -> None:
    """Refuse an example without a worked solution."""
    if not worked(record):
        raise Unsuitable(
            f"{where_is(record)} has no worked solution, which an example of a problem shows",
            mend="Take examples from a corpus with solutions, such as aqua or gsm8k.",
        )


LEXICAL_DECISION = "lexical_decision"


@dataclass(frozen=True)
class Task:
    """What a task asks of a record."""

    name: str  # as a study names it
    about: str  # what the reader does
    needs: str  # what a record must have
    # corpora of the registry that suit it; records of others do where they have what it needs
    corpora: tuple[str, ...]
    source: str  # where the task was described
    ask: Callable[[Record, str, Mapping[str, Any]], Asked]  # (record, field, options of the task) → Asked
    options: tuple[str, ...] = ()  # names of the options that it takes beside those of every task
    # whether records with the same text make one item: the task does not look at the question
    one_per_text: bool = False
    examples_need: Callable[[Record], None] | None = None  # refuses a record that cannot be an example


_CAO = "Cao et al. (2023), Unnatural error correction"
_MIND = "Mind Scramble (TypoBench, 2024)"
_PASSAGES = ("boolq", "squad", "dream", "realtimeqa")
EVERY_TASK = ("field", "also_scramble", "demonstrations", "demonstration_factor")


def _translation(record: Record, field: str, options: Mapping[str, Any]) -> Asked:
    language = options.get("target_language")
    if not isinstance(language, str) or not language.strip():
        raise UserError("task translate needs target_language", mend="Give a language tag, such as zh.")
    return ask_translation(record, field, language, options.get("reference"))


@functools.cache
def tasks() -> Mapping[str, Task]:
    """Return every task that is made of records, by its name."""
    built_in = (
        Task(
            "recover",
            "give back the intact sentence or text",
            "a text",
            ("realtimeqa", *_PASSAGES[:-1], "aqua", "gsm8k", "mbpp", "csqa"),
            f"{_CAO}: scrambled sentence recovery",
            lambda record, field, _: ask_intact(record, field),
            options=("unit", "words"),
            one_per_text=True,
        ),
        Task(
            "question",
            "answer a question about the text",
            "a question and its answer; options, where they are to choose from",
            (*_PASSAGES, "csqa"),
            f"{_CAO}: scrambled question answering",
            lambda record, field, _: ask_question(record, field),
        ),
        Task(
            "problem",
            "solve a problem, behind solved examples",
            "a problem with an answer; a worked solution where it is an example",
            ("aqua", "gsm8k"),
            f"{_CAO}: AQuA-RAT with chain-of-thought examples",
            lambda record, field, _: ask_problem(record, field),
            examples_need=require_worked,
        ),
        Task(
            "complete",
            "do what the corpus asks: answer, solve, write a program",
            "an answer, or tests that a program must pass",
            ("gsm8k", "mbpp", "boolq", "squad", "csqa"),
            f"{_MIND}: task completion",
            lambda record, field, _: ask_completion(record, field),
        ),
        Task(
            "rectify",
            "give back the intact passage",
            "a text",
            _PASSAGES,
            f"{_MIND}: perception",
            lambda record, field, _: ask_intact(record, field),
            one_per_text=True,
        ),
        Task(
            "summarise",
            "sum the passage up",
            "a text",
            _PASSAGES,
            f"{_MIND}: perception",
            lambda record, field, options: ask_summary(record, field, options.get("reference")),
            options=("reference",),
            one_per_text=True,
        ),
        Task(
            "translate",
            "translate the passage",
            "a text",
            _PASSAGES,
            f"{_MIND}: perception",
            _translation,
            options=("target_language", "reference"),
            one_per_text=True,
        ),
    )
    return {task.name: task for task in built_in}


def task_named(name: str) -> Task:
    """Return a task by its name."""
    if name not in tasks():
        raise unknown_name("task", name, (*tasks(), LEXICAL_DECISION))
    return tasks()[name]
