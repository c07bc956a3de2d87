"""The steps of a trial as a plan holds them, made from a block's settings and an item (docs/trials.md says each entry)."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiment.parsing.free_answers import decimal_mark
from experiment.procedure.lines import LINE_LENGTH, break_lines
from experiment.study.durations import milliseconds
from stimuli.errors import UserError
from stimuli.item import Item

TYPED = ("recover", "answer")
"""Steps that are answered by typing."""
MASK = "#"
MASK_MS, PRIME_MS = 500, 50


@dataclass(frozen=True)
class Labels:
    """What labels are called in a session: class → label shown; empty where labels come with the items."""

    shown: Mapping[str, str]

    def class_of(self, label: str) -> str:
        """Return the class that a label stands for."""
        return next(name for name, given in self.shown.items() if given == label)


def make_step(
    kind: str,
    settings: Mapping[str, Any],
    item: Item,
    order: Sequence[int],
    labels: Labels,
    *,
    line_length: int = LINE_LENGTH,
    language: str = "en",
) -> dict[str, Any]:
    """Return a step of a trial.

    Parameters
    ----------
    kind : str
        A declared type.
    settings : mapping
        What the study sets of it.
    item : Item
    order : sequence of int
        The order of the item's choices.
    labels : Labels
    line_length : int
        Cells of a line of text.
    language : str
        Of the study: how numbers are written in it.

    Raises
    ------
    UserError
        The item has no such field, or another number of choices than there are keys.
    """
    text = shown_text(settings["show"], item) if "show" in settings else None
    options = list(item.choices or ()) if settings.get("read_as") == "option" else None
    if options is not None:
        if not options:
            raise UserError(
                f"item {item.item_id!r} has no options, which `read_as: option` answers with",
                mend="Read answers as text or number.",
            )
        options = [options[i] for i in order] if order else options
        text = with_options(text, options)
    by_word = settings.get("as") == "moving_window"
    lines = None if text is None else break_lines(text, line_length, keeps_words=by_word)
    step: dict[str, Any] = {"step": kind, "caption": settings.get("caption"), "text": text, "lines": lines}
    if kind == "read":
        return {**step, "as": settings.get("as", "whole"), "minimum_ms": _ms(settings.get("minimum")) or 0}
    if kind == "prime":
        return step | _prime(settings, str(text))
    step |= {
        "ask": settings.get("ask"),
        "minimum_ms": _ms(settings.get("minimum")) or 0,
        "time_limit_ms": _ms(settings.get("time_limit")),
    }
    if kind in TYPED:
        step["multiline"] = settings.get("multiline", False)
        if kind == "answer":
            step |= {
                "read_as": settings.get("read_as", "text"),
                "options": options,
                "decimal": decimal_mark(language),
                "hint": settings.get("hint"),
            }
        return step
    return step | _choices(settings, item, order, labels)


def with_options(text: str | None, options: Sequence[str]) -> str:
    """Return a text with lettered options below it."""
    lettered = [
        f"({letter}) {option}" for letter, option in zip(string.ascii_uppercase, options, strict=False)
    ]
    return "\n".join([*([text] if text else []), *lettered])


def _ms(duration: str | None) -> int | None:
    return milliseconds(duration) if duration else None


def _prime(settings: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Masks are as long as the prime, so that it covers and is covered in full."""
    width = max(len(text), 1)
    mask = settings.get("mask", MASK)
    backward = settings.get("backward_mask")
    return {
        "mask": mask * width if len(mask) == 1 else mask,
        "mask_ms": milliseconds(settings["mask_for"]) if "mask_for" in settings else MASK_MS,
        "frames": settings.get("frames"),
        "prime_ms": milliseconds(settings["for"]) if "for" in settings else PRIME_MS,
        "backward_mask": None if backward is None else backward * width if len(backward) == 1 else backward,
        "backward_ms": _ms(settings.get("backward_for")) or 0,
    }


def shown_text(show: str | Sequence[str], item: Item) -> str:
    """Return the text of the fields that a step shows.

    Raises
    ------
    UserError
        The item lacks one of them.
    """
    names = [show] if isinstance(show, str) else show
    missing = [name for name in names if name not in item.shown]
    if missing:
        raise UserError(
            f"item {item.item_id!r} has no field {missing[0]!r} to show (it has: {', '.join(item.shown)})",
            mend="Name one of the item's fields under `show:`.",
        )
    return "\n\n".join(item.shown[name] for name in names)


def _choices(settings: Mapping[str, Any], item: Item, order: Sequence[int], labels: Labels) -> dict[str, Any]:
    keys = settings["keys"]
    if isinstance(keys, dict):
        names = list(keys)
        return {
            "labels": names,
            "responses": [labels.class_of(name) for name in names],
            "options": None,
            "keys": [str(key) for key in keys.values()],
        }
    choices = list(item.choices or ())
    if len(choices) != len(keys):
        raise UserError(
            f"item {item.item_id!r} has {len(choices)} choices, and {len(keys)} keys are given for them",
            mend="Give as many keys under `choose:` as the items have choices.",
        )
    displayed = [choices[i] for i in order]
    by_text = settings.get("answer_by", "letter") == "text"
    return {
        "labels": displayed if by_text else list(string.ascii_uppercase[: len(displayed)]),
        "responses": displayed,
        "options": None if by_text else displayed,
        "keys": [str(key) for key in keys],
    }
