"""A trial whose texts are pictures: marks stand where the texts stood, so that every wording takes them as it takes texts.

What the procedure shows of an item (``show:``) becomes a picture, in the lines in which people see it; questions, options,
labels and instructions stay text. The prompt is then the same but for the pictures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from experiment.models.pictures import MARK, Picture
from experiment.models.prompts.published import text_and_options

Presentation = Literal["text", "image"]
PRESENTATIONS: tuple[Presentation, ...] = ("text", "image")

_NUMBERED = re.compile(f"{MARK}([0-9]+){MARK}")


def pictured(trial: Mapping[str, Any], *, of_examples: bool) -> tuple[dict[str, Any], list[Picture]]:
    """Return a trial with numbered marks in place of its texts, and the pictures that they number.

    ``of_examples``: texts of solved examples become pictures, too; otherwise they stay text.
    """
    pictures: list[Picture] = []

    def marked(text: str, lines: Sequence[str] = ()) -> str:
        pictures.append(Picture.of(text, lines))
        return f"{MARK}{len(pictures) - 1}{MARK}"

    steps, shown = [], dict(trial["shown"])
    for step in trial["steps"]:
        text = step["text"]
        if not text:
            steps.append(step)
            continue
        of_step = marked(text, step.get("lines") or ())
        steps.append({**step, "text": of_step})
        fields = [name for name, given in trial["shown"].items() if given and given in text]
        for name in fields:  # papers' prompts take fields, each in a place of its own
            shown[name] = of_step if trial["shown"][name] == text else marked(trial["shown"][name])
    exemplars = trial["exemplars"]
    if of_examples and exemplars:
        exemplars = []
        for one in trial["exemplars"]:
            text, options = text_and_options(str(one["text"]))
            exemplars.append({**one, "text": "\n".join([marked(text), *options])})
    return {**trial, "steps": steps, "shown": shown, "exemplars": exemplars}, pictures


def in_order(content: str, pictures: Sequence[Picture]) -> tuple[str, tuple[Picture, ...]]:
    """Return a worded text with one mark for each picture, and the pictures in the order of their marks."""
    places = [int(number) for number in _NUMBERED.findall(content)]
    return _NUMBERED.sub(MARK, content), tuple(pictures[place] for place in places)
