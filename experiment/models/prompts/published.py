"""The papers' prompts: the prompt that a paper used for a trial, filled in as the released code did."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from experiment.trials import CHOSEN
from stimuli.papers import papers

_FIELD = re.compile(r"\{(text|question|passage|context|evidence|dialogue|choices|choice_list|letters|lines|label|"
                    r"label_lines|label_list|reply)\}")  # fmt: skip
_OPTION = re.compile(r"\((?P<letter>[A-Z])\) (?P<text>.*)", re.DOTALL)


@dataclass(frozen=True)
class PromptedTask:
    """The properties of a trial by which a paper selects its prompt.

    ``task``: the item's set, such as a task on a corpus, or, before there are items, the material's keyword; ``fields``: the
    item's fields, the text that changes first; ``is_choice``: whether a label that stands for an option is the answer.
    """

    task: str
    fields: tuple[str, ...]
    has_options: bool
    has_exemplars: bool
    is_choice: bool = False
    thinks: bool = False
    is_local: bool = True

    @property
    def reading(self) -> str:
        """The field whose text changes."""
        return self.fields[0] if self.fields else ""


def options_of(step: Mapping[str, Any]) -> list[str]:
    """Return the options of an answering screen."""
    return list(step.get("options") or step.get("responses") or ())


def asked_of(trial: Mapping[str, Any]) -> PromptedTask:
    """Return the properties of a planned trial by which papers select their prompts."""
    step = trial["steps"][-1]
    return PromptedTask(
        trial["set"],
        tuple(trial["shown"]),
        has_options=bool(options_of(step)),
        is_choice=step["step"] in CHOSEN,
        has_exemplars=bool(trial["exemplars"]),
    )


@dataclass(frozen=True)
class PaperPrompt:
    """A trial in a paper's prompt."""

    text: str  # the one user message
    is_scored: (
        bool  # whether labels are scored if a model reports their probability; the other prompts request text
    )
    max_tokens: int
    stop: tuple[str, ...]  # stop texts of the paper's local models
    temperature: float  # of the paper


@cache
def paper_prompts() -> Mapping[str, Mapping[str, Any]]:
    """Return every prompt of the papers by its name, from the ``prompts.json`` of each.

    A prompt has ``source``, ``item`` and, if there are examples, ``exemplar``. In these, ``{name}`` is a field of the item:
    ``{text}`` is its text that changes, ``{choices}`` its options as (A)one (B)two, ``{choice_list}`` as a Python list,
    ``{lines}`` one per line, ``{letters}`` A through D, ``{label}`` its answer, ``{label_lines}`` and ``{label_list}`` the
    labels one per line. Other braces are part of the prompt. ``stop``: stop texts of the paper's local models; ``template``:
    ``plain`` if open chat models received the text without a chat template; ``scored``: whether labels are compared by
    probability.
    """
    return {
        name: entry
        for paper in papers().values()
        for name, entry in paper.data("prompts.json").items()
        if isinstance(entry, dict)
    }


def name_of(asked: PromptedTask) -> str | None:
    """Return the name of the paper's prompt for a task; papers from other packages take precedence over built-in ones."""
    for paper in reversed(list(papers().values())):
        name: str | None = paper.part(paper.prompt)(asked) if paper.prompt else None
        if name is not None:
            return name
    return None


def paper_prompt(trial: Mapping[str, Any], *, thinks: bool = False, is_local: bool = True) -> PaperPrompt:
    """Return a trial as the paper's code sent it."""
    step = trial["steps"][-1]
    shown = trial["shown"]
    options = step.get("options") or (step.get("labels") if step["step"] in CHOSEN else None)
    name = name_of(replace(asked_of(trial), thinks=thinks, is_local=is_local))
    if name is None:
        raise ValueError(f"no paper's prompt asks what item {trial['item_id']!r} asks")
    prompt = paper_prompts()[name]
    lines = (
        [_filled(prompt["exemplar"], _of_exemplar(exemplar)) for exemplar in trial["exemplars"]]
        if "exemplar" in prompt
        else []
    )
    fields = {**shown, "text": next(iter(shown.values()), step["text"] or "")} | _of_options(options or ())
    if step["step"] in CHOSEN:
        fields |= {"label_lines": " \n".join(step["labels"]), "label_list": "\n".join(step["labels"])}
    text = "\n".join([*lines, _filled(prompt["item"], fields)])
    return PaperPrompt(
        text,
        bool(prompt.get("scored")) and step["step"] in CHOSEN,
        int(prompt["max_tokens"]),
        tuple(prompt.get("stop", ())),
        float(prompt["temperature"]),
    )


def judge_prompt(name: str, reply: str, labels: Sequence[str]) -> PaperPrompt:
    """Return a judge's prompt by its name, filled in with the reply to read."""
    prompt = paper_prompts()[name]
    text = _filled(prompt["item"], {"reply": reply, "label_list": "\n".join(labels)})
    return PaperPrompt(text, False, int(prompt["max_tokens"]), (), float(prompt["temperature"]))


def text_and_options(text: str) -> tuple[str, list[str]]:
    """Return a solved example's text and the lettered options below it, from A on."""
    lines = text.split("\n")
    matches = [_OPTION.fullmatch(line) for line in lines]
    first = next(
        (place for place, match in enumerate(matches) if match and match["letter"] == "A"), len(lines)
    )
    return "\n".join(lines[:first]), lines[first:]


def _filled(template: str, fields: Mapping[str, str]) -> str:
    """Return a template with its known fields filled in; other braces are part of the prompt."""
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
    """Return a solved example's parts: plans store its text with lettered options below it."""
    text, lines = text_and_options(str(exemplar["text"]))
    options = [match["text"] for line in lines if (match := _OPTION.fullmatch(line))]
    return {"text": text, "question": text, "label": str(exemplar["label"])} | _of_options(options)
