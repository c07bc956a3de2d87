"""Settings of simulated readers: the effects that an analysis should recover, stored as the study's truth.

Accuracy is a logit, a rating a normal value on a latent scale; times are logs of milliseconds with an optional exponential tail
(together similar to an ex-Gaussian: a normal part on the log scale, a tail in milliseconds). Every setting has a value without effect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

from stimuli.errors import UserError, unknown_name

POSITIONS = ("initial", "internal", "final", "external")


@dataclass(frozen=True)
class TrueEffects:
    """Fixed effects on one scale (logit, or log of milliseconds) and the variation of participants and items.

    ``effects``: factor → level → difference from the reference level; ``a x b`` → ``level x level`` is what the combination
    adds to the effects of its levels.
    """

    intercept: float  # at the reference level
    effects: Mapping[str, Mapping[str, float]]
    participant_sd: float  # of intercepts
    item_sd: float
    slope_sd: float = 0.0  # of participants' effects
    residual_sd: float = 0.0  # of single times; unused for accuracy
    tail_ms: float = 0.0  # mean of an exponential tail added to each time; unused for accuracy
    learning: float = 0.0  # added per natural logarithm of completed trials


@dataclass(frozen=True)
class TrueRating(TrueEffects):
    """A rating: a normal value with ``residual_sd`` around a reader's mean, cut at thresholds or clipped to the scale."""

    residual_sd: float = 1.0
    thresholds: Sequence[float] = ()
    """Values between neighbouring buttons; without them, and for sliders, the value is in points, the nearest of which is chosen."""


@dataclass(frozen=True)
class Lapses:
    """Trials with a lapse of attention: answers by chance, times from another distribution."""

    rate: float = 0.0  # proportion of trials
    slower: float = 2.0  # factor for the time of such a trial


@dataclass(frozen=True)
class Words:
    """Word-by-word reading: the cost of a word, and of a word whose letters changed, by the position of the change.

    ``changed``: initial, internal, final, external → added to the log time of a word changed there; without external, a change
    of both ends costs as much as an initial one.
    """

    word_ms: float = 180.0  # median time per word
    letter_ms: float = 18.0  # and per letter
    changed: Mapping[str, float] = field(default_factory=dict)
    substituted: float = 1.0  # factor for that cost if letters were replaced by others
    farther: float = 1.0  # factor per letter between the outermost changed letters, except with both ends
    spill_over: float = 0.3  # share of that cost that the next word has as well
    residual_sd: float = 0.3  # of the log of a word's time
    participant_sd: float = 0.15


@dataclass(frozen=True)
class Regions:
    """What conditions add to the log times of words: region → factor → level → addition to each of its words."""

    effects: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Typing:
    """Typing of an answer, after the time to think of it."""

    key_ms: float = 0.0  # median time between two keys; with 0, answers have no keys
    participant_sd: float = 0.3  # of the log of that time
    residual_sd: float = 0.4  # of single keys
    word_pause_ms: float = 150.0  # mean of an exponential pause before a word


@dataclass(frozen=True)
class GroundTruth:
    """All settings of simulated readers."""

    accuracy: TrueEffects
    time: TrueEffects
    lapses: Lapses = Lapses()
    words: Words = Words()
    typing: Typing = Typing()
    questions: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Answers to questions from which each reader gives one at random, by the name of a question or of a matrix' row."""
    rating: TrueRating | None = None
    regions: Regions = Regions()
    steps: Mapping[str, TrueRating] = field(default_factory=dict)
    """Further answers by the name of their step: the logit of a right one, or the latent value of a rating."""

    def to_json(self) -> dict[str, Any]:
        """Return the settings for the analysis export's dictionary."""
        return {
            "accuracy": {"scale": "logit", **asdict(self.accuracy)},
            "time": {"scale": "log_ms", **asdict(self.time)},
            "lapses": asdict(self.lapses),
            "words": asdict(self.words),
            "typing": asdict(self.typing),
            **({"questions": dict(self.questions)} if self.questions else {}),
            **({} if self.rating is None else {"rating": {"scale": "latent", **asdict(self.rating)}}),
            **({"regions": {"scale": "log_ms", **asdict(self.regions)}} if self.regions.effects else {}),
            **({"steps": {name: asdict(given) for name, given in self.steps.items()}} if self.steps else {}),
        }


GROUPS: Mapping[str, type[TrueEffects] | type[Lapses] | type[Words] | type[Typing] | type[Regions]] = {
    "accuracy": TrueEffects,
    "time": TrueEffects,
    "lapses": Lapses,
    "words": Words,
    "typing": Typing,
    "rating": TrueRating,
    "regions": Regions,
}


CROSSED = " x "
"""Between the names of two factors, and between their levels, in the effect of a combination."""


def level_of(condition: Mapping[str, str], factor: str) -> str:
    """Return the level of a factor, or of several crossed ones, in a trial; empty if the trial has none."""
    names = factor.split(CROSSED)
    return CROSSED.join(condition[name] for name in names) if set(names) <= set(condition) else ""


DEPTHS = {"effects": 2, "changed": 1}
"""Settings that are mappings to numbers, or to such mappings; all others are numbers, thresholds a list of them."""


def read_truth(file: Path) -> GroundTruth:
    """Return the effects of simulated readers in a JSON file; its groups are those of :data:`GROUPS`."""
    try:
        given = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"{file} does not exist",
            mend="It says which effects simulated readers have: docs/simulated.md shows one, every template brings one.",
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file.name} does not say the effects of simulated readers ({error})") from None
    if not isinstance(given, dict):
        raise UserError(f"{file.name} does not say the effects of simulated readers: it is no mapping")
    for name in given:
        if name not in (*GROUPS, "questions", "steps", "about"):
            raise unknown_name(f"{file.name}: group", str(name), (*GROUPS, "questions", "steps"))
    groups = {name: _group(file.name, name, given[name]) for name in GROUPS if name in given}
    for name in ("accuracy", "time"):
        if name == "accuracy" and "rating" in groups:
            groups.setdefault(name, TrueEffects(0.0, {}, 0.0, 0.0))
        if name not in groups:
            raise UserError(f"{file.name} does not say the effects of simulated readers: it lacks {name!r}")
    questions, further = _answers(file.name, given.get("questions", {})), given.get("steps", {})
    if not isinstance(further, dict):
        raise UserError(
            f"{file.name}: steps is {further!r}", mend="Write the effects of each step by its name."
        )
    steps = {name: _group(file.name, f"steps.{name}", each, TrueRating) for name, each in further.items()}
    truth = GroundTruth(**groups, questions=questions, steps=steps)
    if not 0 <= truth.lapses.rate <= 1:
        raise UserError(f"{file.name}: lapses.rate is {truth.lapses.rate}; a share lies between 0 and 1")
    if truth.typing.key_ms < 0 or truth.typing.word_pause_ms < 0:
        raise UserError(f"{file.name}: typing.key_ms and typing.word_pause_ms are times, at least 0")
    for name in ("substituted", "farther"):
        if getattr(truth.words, name) < 0:
            raise UserError(
                f"{file.name}: words.{name} is {getattr(truth.words, name)}; costs are multiplied by at least 0"
            )
    for position in truth.words.changed:
        if position not in POSITIONS:
            raise unknown_name(f"{file.name}: words.changed:", str(position), POSITIONS)
    return truth


def _answers(file: str, given: Any) -> dict[str, list[Any]]:
    """Return the answers to each question, from one answer or a list of them."""
    if not isinstance(given, dict):
        raise UserError(
            f"{file}: questions is {given!r}", mend="Write the answers to each question by its name."
        )
    answers = {str(name): value if isinstance(value, list) else [value] for name, value in given.items()}
    for name, values in answers.items():
        if not values or not all(isinstance(value, str | int | float) for value in values):
            raise UserError(
                f"{file}: questions.{name} is {given[name]!r}", mend="Write one answer, or a list of several."
            )
    return answers


def _group(file: str, name: str, given: Any, kind: Any = None) -> Any:
    kind = kind or GROUPS[name]
    if not isinstance(given, dict):
        raise UserError(f"{file}: {name} is {given!r}, not a mapping of settings")
    setting_names = {setting.name for setting in fields(kind)}
    settings = {key: value for key, value in given.items() if key != "scale"}
    for key in settings:
        if key not in setting_names:
            raise unknown_name(f"{file}: {name}:", str(key), setting_names)
    for setting in fields(kind):
        if setting.name not in settings:
            if setting.default is MISSING and setting.default_factory is MISSING:
                raise UserError(
                    f"{file}: {name} lacks {setting.name!r}",
                    mend=f"Write {'effects of each level, {} for none' if setting.name == 'effects' else 'a number; 0 for none'}.",
                )
        elif setting.name == "thresholds":
            _require_thresholds(f"{file}: {name}.thresholds", settings["thresholds"])
        else:
            _require_numbers(
                f"{file}: {name}.{setting.name}",
                settings[setting.name],
                DEPTHS.get(setting.name, 0) + (name == "regions"),
            )
    given_effects = settings.get("effects", {})
    for effects in given_effects.values() if name == "regions" else (given_effects,):
        for factor, levels in effects.items():
            _require_combinations(f"{file}: {name}.effects", factor, levels)
    return kind(**settings)


def _require_combinations(place: str, factor: str, levels: Mapping[str, float]) -> None:
    """Raise an error unless an effect of crossed factors has a level of each in every combination."""
    number = len(factor.split(CROSSED))
    for level in levels:
        if number > 1 and len(level.split(CROSSED)) != number:
            raise UserError(
                f"{place}.{factor}.{level}: a combination names one level of each of its {number} factors",
                mend="Write such as {structure x gap: {island x embedded: -20}}.",
            )


def _require_thresholds(place: str, given: Any) -> None:
    """Raise an error unless a value is a list of numbers that rise."""
    if not isinstance(given, list):
        raise UserError(f"{place} is {given!r}; it is to be a list of numbers")
    for number in given:
        _require_numbers(place, number, 0)
    if any(later <= earlier for earlier, later in pairwise(given)):
        raise UserError(f"{place} is {given!r}; each threshold is above the one before")


def _require_numbers(place: str, given: Any, depth: int) -> None:
    """Raise an error unless a value is a mapping of names to numbers, or to such mappings."""
    if depth == 0:
        if not isinstance(given, int | float) or isinstance(given, bool) or not isfinite(given):
            raise UserError(f"{place} is {given!r}; it is to be a number")
    elif isinstance(given, dict):
        for key, value in given.items():
            _require_numbers(f"{place}.{key}", value, depth - 1)
    else:
        raise UserError(f"{place} is {given!r}; it is to be a mapping")
