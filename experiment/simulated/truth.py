"""Settings of simulated readers: the effects that an analysis should recover, stored as the study's truth.

Accuracy is a logit, a rating a normal value on a latent scale; times are logs of milliseconds with an optional exponential tail
(together similar to an ex-Gaussian: a normal part on the log scale, a tail in milliseconds). Every setting has a value without effect.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stimuli.errors import UserError, nearest, together, unknown_name

if TYPE_CHECKING:
    from experiment.study import Study

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


def read_truth(file: Path, study: Study | None = None) -> GroundTruth:
    """Return the effects of simulated readers in a JSON file; its groups are those of :data:`GROUPS`.

    Every fault is reported at once: with ``study``, also names that it lacks.
    """
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
    faults = [
        unknown_name(f"{file.name}: group", str(name), (*GROUPS, "questions", "steps"))
        for name in given
        if name not in (*GROUPS, "questions", "steps", "about")
    ]
    groups = {
        name: _group(file.name, name, given[name], kind, faults)
        for name, kind in GROUPS.items()
        if name in given
    }
    for name in ("accuracy", "time"):
        if name not in groups:
            groups[name] = TrueEffects(0.0, {}, 0.0, 0.0)
            if name == "time" or "rating" not in groups:
                problem = f"{file.name} does not say the effects of simulated readers: it lacks {name!r}"
                faults.append(UserError(problem))
    questions, further = given.get("questions", {}), given.get("steps", {})
    for name, each in (("questions", questions), ("steps", further)):
        if not isinstance(each, dict):
            mend = f"Write the {'answers to' if name == 'questions' else 'effects of'} each {name[:-1]} by its name."
            faults.append(UserError(f"{file.name}: {name} is {each!r}", mend=mend))
    answers = _answers(file.name, questions, faults) if isinstance(questions, dict) else {}
    steps = {
        name: _group(file.name, f"steps.{name}", each, TrueRating, faults)
        for name, each in (further.items() if isinstance(further, dict) else ())
    }
    truth = GroundTruth(**groups, questions=answers, steps=steps)
    faults += _out_of_range(file.name, truth)
    faults += [] if study is None else unknown_names(truth, study, file.name)
    if faults:
        raise together(faults)
    return truth


def _out_of_range(file: str, truth: GroundTruth) -> Iterator[UserError]:
    if not 0 <= truth.lapses.rate <= 1:
        yield UserError(f"{file}: lapses.rate is {truth.lapses.rate}; a share lies between 0 and 1")
    if truth.typing.key_ms < 0 or truth.typing.word_pause_ms < 0:
        yield UserError(f"{file}: typing.key_ms and typing.word_pause_ms are times, at least 0")
    for name in ("substituted", "farther"):
        if getattr(truth.words, name) < 0:
            yield UserError(
                f"{file}: words.{name} is {getattr(truth.words, name)}; costs are multiplied by at least 0"
            )
    for position in truth.words.changed:
        if position not in POSITIONS:
            yield unknown_name(f"{file}: words.changed:", str(position), POSITIONS)


_SLIP = 0.88
"""Likeness of two levels that differ by a slip: ``internal`` and ``external`` are two levels."""


def unknown_names(truth: GroundTruth, study: Study, place: str) -> Iterator[UserError]:
    """Yield each region and named step that a study lacks, and each factor and level whose name is nearly one of its."""
    for region in truth.regions.effects:
        if region not in study.regions:
            yield unknown_name(f"{place}: effects of a region:", region, study.regions)
    for step in truth.steps:
        if step not in study.named_steps:
            yield unknown_name(f"{place}: steps:", step, study.named_steps)
    groups = (truth.accuracy, truth.time, truth.rating, *truth.steps.values())
    effects = [*(group.effects for group in groups if group is not None), *truth.regions.effects.values()]
    told = set()
    for crossed, levels in (pair for given in effects for pair in given.items()):
        names = crossed.split(CROSSED)
        given_levels = [level.split(CROSSED) for level in levels]
        named = [set(level) for level in zip(*given_levels, strict=False)]
        wanted = [("factor", name, list(study.factors), 0.6) for name in names]
        wanted += [
            (f"level of {name}", level, [one for one in study.factors[name] if one not in beside], _SLIP)
            for parts in given_levels
            for name, level, beside in zip(names, parts, named, strict=False)
            if name in study.factors and level not in study.factors[name]
        ]
        for kind, name, known, cutoff in wanted:
            # several studies may share a file, each with some of its factors and levels
            if name not in known and (kind, name) not in told and nearest(name, known, cutoff):
                told.add((kind, name))
                yield unknown_name(f"{place}: effects of a {kind}:", name, known)


def _answers(file: str, given: Mapping[str, Any], faults: list[UserError]) -> dict[str, list[Any]]:
    """Return the answers to each question, from one answer or a list of them."""
    answers = {str(name): value if isinstance(value, list) else [value] for name, value in given.items()}
    for name, values in answers.items():
        if not values or not all(isinstance(value, str | int | float) for value in values):
            problem = f"{file}: questions.{name} is {given[name]!r}"
            faults.append(UserError(problem, mend="Write one answer, or a list of several."))
    return answers


def _group(file: str, name: str, given: Any, kind: Any, faults: list[UserError]) -> Any:
    """Return the valid settings of a group, without effect where they are missing; add what is wrong to ``faults``."""
    if not isinstance(given, dict):
        faults.append(UserError(f"{file}: {name} is {given!r}, not a mapping of settings"))
        return _group(file, name, {}, kind, [])
    known = {setting.name: setting for setting in fields(kind)}
    faults += [
        unknown_name(f"{file}: {name}:", str(key), known)
        for key in given
        if key not in known and key != "scale"
    ]
    settings = {}
    for key, setting in known.items():
        is_required = setting.default is MISSING and setting.default_factory is MISSING
        if key in given:
            try:
                _require_setting(f"{file}: {name}", key, given[key], name == "regions")
                settings[key] = given[key]
            except UserError as fault:
                faults.append(fault)
        elif is_required:
            mend = f"Write {'effects of each level, {} for none' if key == 'effects' else 'a number; 0 for none'}."
            faults.append(UserError(f"{file}: {name} lacks {key!r}", mend=mend))
        if is_required and key not in settings:
            settings[key] = {} if key == "effects" else 0.0
    return kind(**settings)


def _require_setting(place: str, key: str, given: Any, is_of_regions: bool) -> None:
    """Raise an error unless a setting has the form of its kind."""
    if key == "thresholds":
        _require_thresholds(f"{place}.thresholds", given)
        return
    _require_numbers(f"{place}.{key}", given, DEPTHS.get(key, 0) + is_of_regions)
    for effects in (given.values() if is_of_regions else (given,)) if key == "effects" else ():
        for factor, levels in effects.items():
            _require_combinations(f"{place}.effects", factor, levels)


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
