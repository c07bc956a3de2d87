"""The papers' prompts: which of them a trial has, and the trial in it, as the released code sent it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from stimuli.papers import papers

_FIELD = re.compile(r"\{(text|question|passage|context|evidence|dialogue|choices|choice_list|letters|lines|label|"
                    r"label_lines|label_list|reply)\}")  # fmt: skip
_OPTION = re.compile(r"\((?P<letter>[A-Z])\) (?P<text>.*)", re.DOTALL)


@dataclass(frozen=True)
class PromptedTask:
    """What a trial asks, by which a paper tells whether it asked so.

    ``task``: the set of the item, such as a task on a corpus; before there are items, the keyword of the material; ``fields``: what
    the item shows, the text that changes first; ``is_choice``: answered by a label that stands for an option.
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
    """Return what an answering screen lets choose from."""
    return list(step.get("options") or step.get("responses") or ())


def asked_of(trial: Mapping[str, Any]) -> PromptedTask:
    """Return what a planned trial asks, as papers tell their prompts by it."""
    step = trial["steps"][-1]
    return PromptedTask(
        trial["set"],
        tuple(trial["shown"]),
        has_options=bool(options_of(step)),
        is_choice=step["step"] == "choose",
        has_exemplars=bool(trial["exemplars"]),
    )


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
    """Return every prompt of the papers by its name, from the ``prompts.json`` of each.

    ``source``, ``item`` and, where there are examples, ``exemplar``. In these, ``{name}`` stands for a field of the item: ``{text}``
    is its text that changes, ``{choices}`` its options as (A)one (B)two, ``{choice_list}`` as a Python list, ``{lines}`` one a
    line, ``{letters}`` A through D, ``{label}`` its answer, ``{label_lines}`` and ``{label_list}`` the labels one a line. Other
    braces are part of the prompt. ``stop``: where the paper's local models stopped; ``template``: ``plain`` where open chat
    models were given the text without a chat template; ``scored``: labels are compared by their probability.
    """
    return {
        name: entry
        for paper in papers().values()
        for name, entry in paper.data("prompts.json").items()
        if isinstance(entry, dict)
    }


def name_of(asked: PromptedTask) -> str | None:
    """Return the name of the prompt that a paper used for what is asked; papers that packages add are asked before ours."""
    for paper in reversed(list(papers().values())):
        name: str | None = paper.part(paper.prompt)(asked) if paper.prompt else None
        if name is not None:
            return name
    return None


def paper_prompt(trial: Mapping[str, Any], *, thinks: bool = False, is_local: bool = True) -> PaperPrompt:
    """Return a trial as the paper's code sent it."""
    step = trial["steps"][-1]
    shown = trial["shown"]
    options = step.get("options") or (step.get("labels") if step["step"] == "choose" else None)
    name = name_of(replace(asked_of(trial), thinks=thinks, is_local=is_local))
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


def judge_prompt(name: str, reply: str, labels: Sequence[str]) -> PaperPrompt:
    """Return the prompt of this name, by which a model reads another's thought."""
    prompt = paper_prompts()[name]
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
