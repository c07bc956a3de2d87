"""Mind Scramble (TypoBench) as its released code asked and read it, errors included."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

from experiment.models.prompts.prompter import PromptedTask, asked_of
from experiment.scoring.published import VERSION, Score

_MARKER = re.compile(r">([a-z_]+):")
_DIGITS = re.compile(r"\d")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_COMPARED = {
    "typobench_mbpp": "code",
    "typobench_summarise": "summarized",
    "typobench_translate": "translated",
}
_BY_READING_FIELD = {
    "question": {"passage": "typobench_boolq", "context": "typobench_squad", "question": "typobench_csqa"},
    "complete": {"passage": "typobench_boolq", "context": "typobench_squad", "text": "typobench_mbpp"},
    "rectify": {"passage": "typobench_rectify"},
    "summarise": {"passage": "typobench_summarise"},
    "translate": {"passage": "typobench_translate"},
}
"""Prompt by task and by the field whose text changes."""


def prompt_name(asked: PromptedTask) -> str | None:
    """Name the prompt of a task on one of the paper's corpora."""
    if asked.task == "complete" and asked.reading == "question":
        return "typobench_csqa" if asked.has_options else "typobench_gsm8k"
    if asked.task == "problem" and not asked.has_options:
        return "typobench_gsm8k"
    name = _BY_READING_FIELD.get(asked.task, {}).get(asked.reading)
    return "typobench_squad_local" if name == "typobench_squad" and asked.is_local else name


def named_fields(reply: str, names: Sequence[str]) -> dict[str, str]:
    """Read Mind Scramble's fields (``>answer: …``): a bare name anywhere is treated as a mark, and later fields overwrite."""
    for name in names:
        if f">{name}" not in reply:
            reply = reply.replace(name, f">{name}", 1)
    parts = _MARKER.split(reply)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def same_digits(given: str, gold: str) -> bool:
    """Return whether Mind Scramble takes two numbers for the same: all digits in a row, so that 3.5 is 35 and -5 is 5."""
    one, other = ("".join(_DIGITS.findall(text)) for text in (given, gold))
    return (float(one) if one else None) == (float(other) if other else None)


def contains_either_way(given: str, gold: str) -> bool:
    """Return whether Mind Scramble takes texts for the same: one in the other, so that an empty answer is right."""
    one, other = given.lower(), gold.lower()
    return one in other or other in one


def words_in_place(given: str, intact: str) -> float:
    """Return Mind Scramble's share of words in place, of the shorter text: a reply cut short can be perfect."""
    one, other = (text.translate(_PUNCTUATION).lower().split() for text in (given, intact))
    shorter = min(len(one), len(other))
    return sum(a == b for a, b in zip(one, other, strict=False)) / shorter if shorter else 0.0


def score_typobench(trial: Mapping[str, Any], reply: str) -> Score:
    """Score the field that the prompt asks for; texts that were compared by their vectors stay unjudged."""
    step = trial["steps"][-1]
    name = f"published_typobench-{VERSION}"
    gold = str(trial["answer"] or "")
    field = _field(trial)
    if _compared_field(trial) is not None:
        # an empty field was replaced like one that is missing
        text = named_fields(reply, (field,)).get(field) or None
        return Score(text, "unparsed" if text is None else "valid", None, None, name)
    if step["step"] == "recover":
        fixed = named_fields(reply, (field,)).get(field)
        if fixed is None:
            return Score(None, "unparsed", None, None, name)
        return Score(fixed, "valid", None, words_in_place(fixed, gold), name)
    names = ("answer_number", "process") if field == "answer_number" else ("answer", "reason")
    given = named_fields(reply, names).get(field)
    if given is None:
        return Score(None, "unparsed", None, None, name)
    if field == "answer_number":
        correct = same_digits(given, gold)
    elif "passage" in trial["shown"]:
        correct = given.replace("'", "") == gold
    else:
        correct = contains_either_way(given, gold)
    return Score(given, "valid", correct, float(correct), name)


def _compared_field(trial: Mapping[str, Any]) -> str | None:
    """Name the field whose text Mind Scramble compared by its vector (a program, a summary, a translation); None elsewhere."""
    return _COMPARED.get(str(prompt_name(asked_of(trial))))


def _field(trial: Mapping[str, Any]) -> str:
    """Name the field in which Mind Scramble's prompt asks for the answer."""
    if (compared := _compared_field(trial)) is not None:
        return compared
    step = trial["steps"][-1]
    if step["step"] == "recover":
        return "fixed"
    return "answer_number" if step.get("read_as") == "number" else "answer"


def compared_text(trial: Mapping[str, Any], said: str) -> str:
    """Take the mark off the field that is compared by its vector, where the mark is there."""
    field = _compared_field(trial)
    return said if field is None or f">{field}:" not in said else named_fields(said, (field,)).get(field, "")


def in_its_field(trial: Mapping[str, Any], answer: str) -> str:
    """Write a right answer into the field that the parser looks for."""
    return f">{_field(trial)}: {trial['answer']}" if answer else answer
