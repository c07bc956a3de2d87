"""The steps of a trial in a plan, made from a block's settings and an item (each entry is described in docs/trials.md)."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiment.parsing.free_answers import decimal_mark
from experiment.procedure.lines import LINE_LENGTH, break_lines
from experiment.study.durations import milliseconds
from experiment.trials import CHOSEN, trial_type
from stimuli.errors import UserError
from stimuli.item import Item


@dataclass(frozen=True)
class SessionLabels:
    """The labels of a session: class → label shown; empty if labels come with the items."""

    shown: Mapping[str, str]

    def class_of(self, label: str) -> str:
        """Return the class of a label."""
        return next(name for name, given in self.shown.items() if given == label)


def make_step(
    kind: str,
    settings: Mapping[str, Any],
    item: Item,
    order: Sequence[int],
    labels: SessionLabels,
    *,
    line_length: int = LINE_LENGTH,
    language: str = "en",
) -> dict[str, Any]:
    """Return a step of a trial: the entries that its declaration takes from settings, then those computed here."""
    text = shown_text(settings["show"], item) if "show" in settings else None
    made: dict[str, Any] = {}
    if kind in CHOSEN:
        made = _choices(settings, item, order, labels)
    elif kind == "answer":
        options = _lettered(item, order) if settings.get("read_as") == "option" else None
        text = text if options is None else with_options(text, options)
        made = {"options": options, "decimal": decimal_mark(language)}
    elif kind == "recover" and not isinstance(settings["show"], str) and len(settings["show"]) > 1:
        made = {"multiline": True}  # a reader restores each text on lines of its own
    elif kind == "prime":
        made = {name: _mask(_setting(kind, name, settings), str(text)) for name in ("mask", "backward_mask")}
    by_word = settings.get("as") == "moving_window"
    lines = None if text is None else break_lines(text, line_length, keeps_words=by_word)
    step: dict[str, Any] = {"step": kind, "caption": None, "text": text, "lines": lines}
    for name, entry in trial_type(kind).plan.items():
        if entry.setting is not None:
            given = _setting(kind, entry.setting, settings)
            step[name] = (None if entry.nullable else 0) if given is None else given
    return step | made


def _setting(kind: str, name: str, settings: Mapping[str, Any]) -> Any:
    """Return a study's setting of a step, or the declared default; durations in ms."""
    declared = trial_type(kind).parameters[name]
    given = settings.get(name, declared.default)
    return milliseconds(str(given)) if declared.type == "duration" and given else given


def _lettered(item: Item, order: Sequence[int]) -> list[str]:
    options = list(item.choices or ())
    if not options:
        raise UserError(
            f"item {item.item_id!r} has no options, which `read_as: option` answers with",
            mend="Read answers as text or number.",
        )
    return [options[i] for i in order] if order else options


def _mask(mask: str | None, text: str) -> str | None:
    """Return a mask as long as the prime, so that each covers the other completely."""
    return mask * max(len(text), 1) if mask is not None and len(mask) == 1 else mask


def with_options(text: str | None, options: Sequence[str]) -> str:
    """Return a text with lettered options below it."""
    lettered = [
        f"({letter}) {option}" for letter, option in zip(string.ascii_uppercase, options, strict=False)
    ]
    return "\n".join([*([text] if text else []), *lettered])


def shown_text(show: str | Sequence[str], item: Item) -> str:
    """Return the text of the fields that a step shows."""
    names = [show] if isinstance(show, str) else show
    missing = [name for name in names if name not in item.shown]
    if missing:
        raise UserError(
            f"item {item.item_id!r} has no field {missing[0]!r} to show (it has: {', '.join(item.shown)})",
            mend="Name one of the item's fields under `show:`.",
        )
    return "\n\n".join(item.shown[name] for name in names)


def intact_text(trial: Mapping[str, Any], text: str) -> str:
    """Return a step's text in its intact form."""
    for name, intact in trial["intact"].items():
        shown = trial["shown"].get(name)
        text = text.replace(shown, intact) if shown else text
    return text


def _choices(
    settings: Mapping[str, Any], item: Item, order: Sequence[int], labels: SessionLabels
) -> dict[str, Any]:
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
