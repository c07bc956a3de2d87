"""The tasks of the three papers by name: what each asks of a record, and which corpora suit it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stimuli.corpora.record import Record
from stimuli.errors import UserError, unknown_name
from stimuli.recipes.asking import Asked
from stimuli.recipes.passages import ask_intact, ask_summary, ask_translation
from stimuli.recipes.problems import ask_completion, ask_problem, require_worked
from stimuli.recipes.questions import ask_question

LEXICAL_DECISION = "lexical_decision"


@dataclass(frozen=True)
class Task:
    """What a task asks of a record.

    Parameters
    ----------
    name : str
        As a study names it.
    about : str
        What the reader does.
    needs : str
        What a record must have.
    corpora : tuple of str
        Corpora of the registry that suit it; records of others do where they have what it needs.
    source : str
        Where the task was described.
    ask : callable
        (record, field, options of the task) → Asked; raises Unsuitable.
    options : tuple of str
        Names of the options that it takes beside those of every task.
    one_per_text : bool
        Whether records with the same text make one item: the task does not look at the question.
    examples_need : callable, optional
        Refuses a record that cannot be an example.
    """

    name: str
    about: str
    needs: str
    corpora: tuple[str, ...]
    source: str
    ask: Callable[[Record, str, Mapping[str, Any]], Asked]
    options: tuple[str, ...] = ()
    one_per_text: bool = False
    examples_need: Callable[[Record], None] | None = None


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
