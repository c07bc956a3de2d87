"""The papers' prompts: which of them a trial has, and the trial in it, as the released code sent it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

_FIELD = re.compile(r"\{(text|question|passage|context|evidence|dialogue|choices|choice_list|letters|lines|label|"
                    r"label_lines|label_list|reply)\}")  # fmt: skip
_OPTION = re.compile(r"\((?P<letter>[A-Z])\) (?P<text>.*)", re.DOTALL)
BY_READING_FIELD = {
    "question": {
        "evidence": "scrambled_bench_realtimeqa",
        "dialogue": "scrambled_bench_dream",
        "passage": "typobench_boolq",
        "context": "typobench_squad",
        "question": "typobench_csqa",
    },
    "problem": {"question": "scrambled_bench_aqua"},
    "complete": {"passage": "typobench_boolq", "context": "typobench_squad", "text": "typobench_mbpp"},
    "rectify": {"passage": "typobench_rectify"},
    "summarise": {"passage": "typobench_summarise"},
    "translate": {"passage": "typobench_translate"},
}
"""Prompt by task and by the field whose text changes; the options determine the rest (:func:`prompt_name`)."""


@dataclass(frozen=True)
class PaperPrompt:
    """A trial in a paper's prompt."""

    text: str  # the one user message
    is_scored: bool  # labels are scored where a model tells their probability; the other prompts ask for text
    max_tokens: int
    stop: tuple[str, ...]  # where the paper's local models stopped
    temperature: float  # the paper's


@cache
def paper_prompts() -> Mapping[str, Mapping[str, Any]]:
    """Return every prompt by its name: ``source``, ``item`` and, where there are examples, ``exemplar``."""
    text = resources.files(__package__).joinpath("published.json").read_text("utf-8")
    return {name: entry for name, entry in json.loads(text).items() if isinstance(entry, dict)}


def prompt_name(
    task: str,
    fields: Sequence[str],
    *,
    has_options: bool,
    has_exemplars: bool,
    thinks: bool = False,
    is_local: bool = True,
) -> str | None:
    """Return the name of the prompt that a paper used for such a trial; None where there is none.

    ``task``: the set of the item: a task on a corpus, ``letter_geometry``, or a rule of H-TEST.
    ``fields``: what the item shows, the text that changes first.
    ``has_options, has_exemplars, thinks, is_local``: whether there are options to choose from, solved examples
    before, a thought is asked for, the model is local.
    """
    if task in ("recover", "recovery"):
        return "scrambled_bench_recovery_few_shot" if has_exemplars else "scrambled_bench_recovery"
    if task == "letter_geometry":
        return "letter_geometry"
    reading = fields[0] if fields else ""
    if task == "complete" and reading == "question":
        return "typobench_csqa" if has_options else "typobench_gsm8k"
    if task == "problem" and not has_options:
        return "typobench_gsm8k"
    if task in BY_READING_FIELD:
        name = BY_READING_FIELD[task].get(reading)
        return "typobench_squad_local" if name == "typobench_squad" and is_local else name
    if has_options:
        return "htest_chain_of_thought" if thinks else "htest"
    return None


def paper_prompt(trial: Mapping[str, Any], *, thinks: bool = False, is_local: bool = True) -> PaperPrompt:
    """Return a trial as the paper's code sent it."""
    step = trial["steps"][-1]
    shown = trial["shown"]
    options = step.get("options") or (step.get("labels") if step["step"] == "choose" else None)
    name = prompt_name(
        trial["set"],
        list(shown) or [""],
        has_options=bool(options),
        has_exemplars=bool(trial["exemplars"]),
        thinks=thinks,
        is_local=is_local,
    )
    if name is None:
        raise ValueError(f"no paper's prompt asks what item {trial['item_id']!r} asks")
    prompt = paper_prompts()[name]
    lines = (
        [_filled(prompt["exemplar"], _of_exemplar(one)) for one in trial["exemplars"]]
        if "exemplar" in prompt
        else []
    )
    fields = {**shown, "text": next(iter(shown.values()), step["text"] or "")} | _of_options(options or ())
    if step["step"] == "choose":
        fields |= {"label_lines": " \n".join(step["labels"]), "label_list": "\n".join(step["labels"])}
    text = "\n".join([*lines, _filled(prompt["item"], fields)])
    return PaperPrompt(
        text,
        bool(prompt.get("scored")) and step["step"] == "choose",
        int(prompt["max_tokens"]),
        tuple(prompt.get("stop", ())),
        float(prompt["temperature"]),
    )


def judge_prompt(reply: str, labels: Sequence[str]) -> PaperPrompt:
    """Return H-TEST's prompt by which a model reads a thought."""
    prompt = paper_prompts()["htest_judge"]
    text = _filled(prompt["item"], {"reply": reply, "label_list": "\n".join(labels)})
    return PaperPrompt(text, False, int(prompt["max_tokens"]), (), float(prompt["temperature"]))


def text_and_options(text: str) -> tuple[str, list[str]]:
    """Part a solved example's text from the lines of lettered options below it, from that of A on."""
    lines = text.split("\n")
    found = [_OPTION.fullmatch(line) for line in lines]
    first = next((place for place, match in enumerate(found) if match and match["letter"] == "A"), len(lines))
    return "\n".join(lines[:first]), lines[first:]


def _filled(template: str, fields: Mapping[str, str]) -> str:
    """Fill in what is known; other braces are the prompt's own."""
    return _FIELD.sub(lambda match: fields.get(match[1], match[0]), template)


def _of_options(options: Sequence[str]) -> dict[str, str]:
    letters = [chr(ord("A") + place) for place in range(len(options))]
    if not options:
        return {}
    return {
        "choices": " ".join(f"({letter}){option}" for letter, option in zip(letters, options, strict=True)),
        "choice_list": repr(list(options)),
        "letters": f"{letters[0]} through {letters[-1]}",
        "lines": "\n".join(options),
    }


def _of_exemplar(exemplar: Mapping[str, Any]) -> dict[str, str]:
    """Return a solved example's parts: plans hold its text with lettered options below it."""
    text, lines = text_and_options(str(exemplar["text"]))
    options = [match["text"] for line in lines if (match := _OPTION.fullmatch(line))]
    return {"text": text, "question": text, "label": str(exemplar["label"])} | _of_options(options)
