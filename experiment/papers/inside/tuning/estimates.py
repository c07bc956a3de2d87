"""Estimates before a training run: data, settings, tokens, steps, memory, disk space, and approximate hours or dollars.

Tokens are counted if the run has begun, otherwise estimated at four characters per token. Hours are based on a run of the same
model on this device in the study if there is one, otherwise they are very approximate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from experiment.models.costs import format_usd
from experiment.models.local.checkpoints import find_source
from experiment.models.planning.prompt_preview import CHARACTERS_PER_TOKEN
from experiment.papers.inside.tuning.networks import Base, hours_of, look_at, size_of
from experiment.papers.inside.tuning.records import (
    FINISHED,
    as_asked,
    built_again,
    has_replies,
    kept_records,
    messages_of,
    read_curve,
)
from experiment.papers.inside.tuning.settings import RELEASED, Training, trainings
from experiment.papers.inside.tuning.training_sets import NUMBER, TextFiles
from experiment.study import Study
from experiment.study.study import CURVE, read_record
from stimuli.durations import rough_duration_in_words
from stimuli.errors import UserError, reason_of
from stimuli.files import gigabytes

FEWEST_SECONDS = 1.0
"""Spent in steps, before a training's speed says something."""
LINE_CHARACTERS = 60
"""About how long a line of H-TEST is."""
SOME = 8
"""Number of test items from which the length of a prompt is estimated."""
RULES_IN_WORDS = {
    "FT-RS": "all letters shuffled in 30% of the words of more than two letters, in 60% of the texts (FT-RS)",
    "FT-KF&Adj": "two neighbouring letters behind the first exchanged in 30% of the words of more than two letters, in 60% of the "
    "texts (FT-KF&Adj)",
    "FT-Ori": "nothing changed, the control (FT-Ori)",
}


@dataclass(frozen=True)
class ToldTraining:
    """A training in words and in numbers."""

    sentence: str  # all of it
    shared: tuple[str, str]  # what trainings may have in common: of which model on what, and how
    own: str  # the rest: what changes in the texts or which task, tokens, time, how far it is
    numbers: dict[str, Any]


def tell_trainings(study: Study, trainings: Iterable[Training]) -> dict[str, ToldTraining]:
    """Describe training runs; nothing is created, downloaded or sent."""
    return {training.name: _tell(study, training) for training in trainings}


def told_together(descriptions: Mapping[str, ToldTraining]) -> list[str]:
    """Return paragraphs: a training by itself as a sentence, several of one kind as what they have in common and a line each."""
    groups: dict[tuple[str, str], dict[str, ToldTraining]] = {}
    for name, description in descriptions.items():
        groups.setdefault(description.shared, {})[name] = description
    paragraphs = []
    for (model, manner), group in groups.items():
        if len(group) == 1:
            paragraphs += [description.sentence for description in group.values()]
            continue
        needs = _all_of_them([description.numbers for description in group.values()])
        opening = f"{len(group)} training runs of {model}; each {manner}{needs}:"
        paragraphs.append(
            "\n".join((opening, *(f"{name}: {description.own}" for name, description in group.items())))
        )
    return paragraphs


def _all_of_them(numbers: Sequence[Mapping[str, Any]]) -> str:
    """Describe the total requirements of several training runs; empty if those of one are unknown."""
    hours = [float(number["hours"]) for number in numbers if number.get("hours") is not None]
    dollars = [float(number["usd"]) for number in numbers if number.get("usd") is not None]
    if len(hours) == len(numbers):
        rough = "" if all(number["measured_by"] for number in numbers) else "very roughly "
        return (
            f"; all of them, one after the other, {rough}{rough_duration_in_words(3600 * math.fsum(hours))}"
        )
    return f"; all of them roughly {format_usd(math.fsum(dollars))}" if len(dollars) == len(numbers) else ""


def _tell(study: Study, training: Training) -> ToldTraining:
    tokens, replies = _tokens(study, training)
    epochs = training.epochs_of(replies=replies)
    numbers: dict[str, Any] = {
        "model": training.base, "use": training.model.use, "on": training.on, "rule": training.rule, "task": training.task,
        "epochs": epochs, "tokens_an_epoch": tokens, "state": read_record(training.folder).get("state", "not begun"),
    }  # fmt: skip
    roughly = "an unknown number of" if tokens is None else f"roughly {tokens:,}"
    epochs_of = f"{epochs} {'epoch' if epochs == 1 else 'epochs'} of"
    if training.is_api:
        (manner, duration), more = _at_provider(training, tokens, epochs)
    else:
        (manner, duration), more = _here(study, training, tokens, epochs)
    is_done = numbers["state"] == FINISHED
    ending = f" It is trained: use: tuned:{training.name} lets it read the study." if is_done else ""
    if (stale := built_again(study, training)) is not None:
        ending += f" But {stale}."
    base = f"{training.base} ({training.model.use})"
    on, rest = _on(training)
    texts = (
        f"lines of {training.task} {on}"
        if training.is_htest
        else f"{on}{' ' if training.rule is None else ', '}{rest}"
    )
    return ToldTraining(
        f"Training {training.name}: {base} on {texts}; {epochs_of} {roughly} tokens{manner}{duration}.{ending}",
        (
            f"{base} on {'lines of a task ' if training.is_htest else ''}{on}",
            f"{epochs_of} the tokens below{manner}",
        ),
        f"{rest}; {roughly} tokens{duration}.{ending}",
        numbers | more,
    )


def _on(training: Training) -> tuple[str, str]:
    """Describe what a model is trained on: the texts, or where H-TEST's lines are from; and what changes in them, or their task."""
    if training.is_htest:
        source = "released for training" if training.on == RELEASED else "made by its rule"
        form = "as the study asks them" if training.asked == "study" else "bare, as in the paper"
        return f"{source}, {form}, none of them a test item", str(training.task)
    return training.on, "as it is" if training.rule is None else RULES_IN_WORDS[training.rule]


def _tokens(study: Study, training: Training) -> tuple[int | None, bool]:
    """Return the approximate number of tokens in an epoch, None without data, and whether records have replies."""
    records = kept_records(training.folder)
    counted = (read_record(training.folder).get("records") or {}).get("tokens_an_epoch")
    if records is not None and counted is not None:
        return int(counted), records.replies
    if records is not None:
        return int(records.file.stat().st_size // CHARACTERS_PER_TOKEN), records.replies
    if training.is_htest:
        characters = LINE_CHARACTERS if training.asked == "bare" else _characters_asked(study, training)
        return (None if characters is None else NUMBER * characters // CHARACTERS_PER_TOKEN), True
    path = study.folder / Path(training.on).expanduser()
    try:
        size = sum(file.stat().st_size for file, _ in TextFiles((path,)).files())
    except UserError:
        return None, False
    return size // CHARACTERS_PER_TOKEN, training.rule is None and has_replies(path)


def _characters_asked(study: Study, training: Training) -> int | None:
    """Return how long a line is with all that the study says around it, by some test items; None before these are built."""
    try:
        lines = [
            {"provenance": {"text": next(iter(item.shown.values())), "label": str(item.answer)}}
            for item in study.items
            if item.role == "test" and item.condition.get("task") == training.task
        ]
        lengths = [
            sum(len(message.content) for message in messages_of(record)) + len(record["reply"])
            for record in as_asked(study, training, lines[:SOME])
        ]
    except UserError:
        return None
    return sum(lengths) // len(lengths) if lengths else None


def _here(
    study: Study, training: Training, tokens: int | None, epochs: int
) -> tuple[tuple[str, str], dict[str, Any]]:
    """Describe how a model is trained on this machine, and how long that takes."""
    numbers: dict[str, Any] = {"method": training.method, "learning_rate": training.learning_rate}
    weights_trained = (
        "every weight"
        if training.lora is None
        else f"matrices of rank {training.lora.rank} alongside the weights (lora)"
    )
    manner = f", {weights_trained}, learning rate {training.learning_rate:g}"
    try:
        base = _looked_at(training)
    except UserError as fault:
        return (f"{manner}. Not yet: {reason_of(fault)}", ""), {**numbers, "remark": str(fault)}
    if base is None:
        return (f"{manner}. How large the model is, its files tell once they are downloaded", ""), numbers
    size = size_of(base, training)
    numbers |= asdict(size)
    manner += (
        f"; {size.trained:,} of {size.parameters:,} parameters are trained, in roughly {gigabytes(size.memory)} of memory "
        f"({base.device}) and up to {gigabytes(size.disk)} of disk"
    )
    duration = ""
    if tokens is not None:
        measured = _speed(study, training, base.device)
        hours = (
            hours_of(size, training, tokens * epochs, base.device)
            if measured is None
            else tokens * epochs / measured[0] / 3600
        )
        numbers |= {"hours": round(hours, 4), "measured_by": None if measured is None else measured[1]}
        duration = f", {'very roughly ' if measured is None else ''}{rough_duration_in_words(3600 * hours)}"
        duration += "" if measured is None else f" at the speed of training {measured[1]}"
    return (manner, duration), numbers


def _speed(study: Study, training: Training, device: str) -> tuple[float, str] | None:
    """Return how many tokens a second a training of the same kind read on this device, and its name; None before there is one."""
    kind = attrgetter("model.use", "lora", "gradient_checkpointing", "sequence_length", "asked")
    same_kind = [other for other in trainings(study).values() if kind(other) == kind(training)]
    for other in sorted(same_kind, key=lambda other: other.name != training.name):
        points = read_curve(other.folder / CURVE) if read_record(other.folder).get("device") == device else []
        if points and points[-1].seconds >= FEWEST_SECONDS:
            return points[-1].tokens / points[-1].seconds, other.name
    return None


def _looked_at(training: Training) -> Base | None:
    """Look at a model that is on this machine; None where it would have to be downloaded."""
    source = find_source(training.model)
    if not source.is_folder:
        from huggingface_hub import try_to_load_from_cache

        if not isinstance(try_to_load_from_cache(source.place, "config.json", revision=source.revision), str):
            return None
    return look_at(training)


def _at_provider(
    training: Training, tokens: int | None, epochs: int
) -> tuple[tuple[str, str], dict[str, Any]]:
    """Describe training by a provider, and its price."""
    numbers: dict[str, Any] = {"method": "provider"}
    manner = ", trained by its provider"
    if training.price is None:
        return (f"{manner}; give `price:` for what a million tokens cost", ""), numbers
    if tokens is None:
        return (f"{manner} at {format_usd(training.price)} for a million tokens", ""), numbers
    cost = tokens * epochs * training.price / 1e6
    return (manner, f" for roughly {format_usd(cost)}"), numbers | {"usd": round(cost, 4)}
