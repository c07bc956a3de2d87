"""One validated declaration per trial type: study settings, plan entries, recorded fields.

The study format, types for the front end and a page of documentation are generated from the declarations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from experiment.columns import trial_columns

EXPOSURE = "exposure"
OWN_TYPE = "own"
"""The type, in a session's plan, of steps of a lab's own types (:mod:`experiment.trials.own`); their entry ``type`` names it."""
FRAME_MS = 1000 / 60
"""Frame duration of most readers' screens."""


@dataclass(frozen=True)
class StepParameter:
    """A step's setting in a study: type, description, choices, default, and further rules.

    ``people_only``: it changes nothing that a model reads, such as a time.
    """

    type: str
    prose: str
    required: bool = False
    people_only: bool = False
    values: tuple[str, ...] = ()
    default: str | float | bool | None = None
    rule: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PlanEntry:
    """An entry of a step in a session plan; every entry is always present.

    ``default`` is the default of the page's plugin; ``setting`` is the parameter that sets the entry, and ``frames`` the entry
    that may set its number of frames.
    """

    type: str
    prose: str
    many: bool = False
    nullable: bool = False
    default: str | float | bool | None = None
    on_screen: bool = True
    setting: str | None = None
    frames: str | None = None


@dataclass(frozen=True)
class Field:
    """A value that the page records for a step; without ``in_table`` it is only in the store."""

    type: str
    unit: str | None
    prose: str
    nullable: bool = True
    in_table: bool = True


@dataclass(frozen=True)
class TrialType:
    """A declared trial type.

    ``response`` is how a step is answered (choice, rating, typed), None if it takes no answer; ``lasts`` are the entries whose sum is
    the duration of a step that ends by itself; ``seconds`` is the typical time of a participant's answer. ``parser`` and
    ``scorer`` are names in `experiment.parsing.replies.PARSERS` and `experiment.scoring.trial.SCORERS`. ``fields`` are in
    addition to `exposure_fields`.
    """

    name: str
    about: str
    version: int
    parameters: dict[str, StepParameter]
    plan: dict[str, PlanEntry]
    fields: dict[str, Field]
    response: str | None
    lasts: tuple[str, ...]
    seconds: Mapping[str, float]
    chance: str | None
    parser: str | None
    scorer: str | None
    simulated: str


@cache
def validator() -> Draft202012Validator:
    """Return the validator of declarations, built once."""
    schema = json.loads(_text("declaration.schema.json"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@cache
def trial_type(name: str) -> TrialType:
    """Return the declaration of one trial type.

    Raises
    ------
    ValueError
        The declaration breaks its schema, or names a field that is not a column of the trials table.
    """
    given = _declaration(name)
    return TrialType(
        name=given["type"],
        parameters={
            key: StepParameter(**{**value, "values": tuple(value.get("values", ()))})
            for key, value in given["parameters"].items()
        },
        plan={
            key: PlanEntry(**{"setting" if word == "from" else word: value for word, value in value.items()})
            for key, value in given["plan"].items()
        },
        fields=_fields(name, given),
        lasts=tuple(given.get("lasts", ())),
        seconds=given.get("seconds", {}),
        **{
            key: given[key]
            for key in ("about", "version", "response", "chance", "parser", "scorer", "simulated")
        },
    )


@cache
def exposure_fields() -> dict[str, Field]:
    """Return the fields that every step records while its stimulus is shown."""
    return _fields(EXPOSURE, _declaration(EXPOSURE))


@cache
def recorded_fields() -> dict[str, Field]:
    """Return every field that a trial's payload may have, in order; null if its steps do not record it."""
    every = dict(exposure_fields())
    for name in TYPES:
        for key, recorded in trial_type(name).fields.items():
            every.setdefault(key, recorded)
    return every


def declared_of(step: Mapping[str, Any]) -> TrialType:
    """Return the declaration of a planned step; of an own type, what its step in the plan has of it."""
    if step["step"] != OWN_TYPE:
        return trial_type(step["step"])
    return TrialType(
        name=step["type"],
        about="",
        version=0,
        parameters={},
        plan={},
        fields={},
        response=None if step["answer_field"] is None else OWN_TYPE,
        lasts=(),
        seconds={"answer": step["seconds"]},
        chance=None,
        parser=None,
        scorer=step["scorer"],
        simulated="",
    )


def step_schema(own: Mapping[str, TrialType] = MappingProxyType({})) -> dict[str, Any]:
    """Return the JSON Schema of a step in ``study.yaml``: one type by name, with its parameters; ``own``: the study's own types."""
    return {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": {name: _settings_schema(declared) for name, declared in _all_types(own).items()},
    }


def _all_types(own: Mapping[str, TrialType]) -> dict[str, TrialType]:
    return {name: trial_type(name) for name in TYPES} | dict(own)


def step_settings_schema(own: Mapping[str, TrialType] = MappingProxyType({})) -> dict[str, Any]:
    """Return the JSON Schema of what a level of a factor sets: some settings of steps, by their type."""
    of_types = {}
    for name, declared in _all_types(own).items():
        schema = _settings_schema(declared)
        properties = {key: value for key, value in schema["properties"].items() if key not in NOT_OF_LEVELS}
        of_types[name] = {**schema, "required": [], "minProperties": 1, "properties": properties}
    forms = {name: {"$ref": f"#/$defs/{name}"} for name in ("case", "space", STYLE)}
    properties = {**of_types, **forms}
    return {"type": "object", "minProperties": 1, "additionalProperties": False, "properties": properties}


STYLE = "style"
"""A setting of all steps that show something: the look of the text, which models see only in pictures."""
NAME = "name"
"""The setting of a further answering step, whose answer has a separate row."""
NOT_OF_LEVELS = ("only", "keys", "labels", NAME)
"""Settings of steps that levels of factors cannot set: the labels of a session, names, and which trials have a step."""


def _settings_schema(declared: TrialType) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {
        "text": {"type": "string"},
        "flag": {"type": "boolean"},
        "count": {"type": "integer"},
        "number": {"type": "number"},
        "names": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "minItems": 2,
            "uniqueItems": True,
        },
        **{kind: {"$ref": f"#/$defs/{kind}"} for kind in ("fields", "duration", "keys")},
    }
    given = declared.parameters
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [name for name, parameter in given.items() if parameter.required],
        "properties": {
            **{
                name: {"enum": list(parameter.values)}
                if parameter.values
                else {**kinds[parameter.type], **parameter.rule}
                for name, parameter in given.items()
            },
            "only": {"$ref": "#/$defs/only"},
            **({STYLE: {"$ref": "#/$defs/style"}} if declared.name in TYPES else {}),
        },
    }


def presented_ms(step: Mapping[str, Any], frame_ms: float = FRAME_MS) -> float:
    """Return how long a planned step shows what ends by itself, ms; 0 if the reader ends it."""
    declared = declared_of(step)
    total = 0.0
    for name in declared.lasts:
        frames = declared.plan[name].frames
        total += step[name] if frames is None else frame_ms * frames_of(step, name, frame_ms)
    times = step.get("part_ms") or []
    blank = frames_for(step["blank_ms"], frame_ms) if times and step.get("blank_ms") else 0
    return total + frame_ms * (sum(frames_for(ms, frame_ms) for ms in times) + blank * max(len(times) - 1, 0))


def frames_of(step: Mapping[str, Any], name: str, frame_ms: float = FRAME_MS) -> int:
    """Return the number of frames for which a planned step shows something: as set, or nearest to its time."""
    given = step[str(trial_type(step["step"]).plan[name].frames)]
    return int(given or frames_for(step[name], frame_ms))


def frames_for(ms: float, frame_ms: float = FRAME_MS) -> int:
    """Return the number of frames that come nearest to a time, at least one."""
    return max(1, round(ms / frame_ms))


def check_declaration(name: str, given: object) -> None:
    """Raise ValueError if a declaration breaks its schema, with the place and the rule."""
    error = best_match(validator().iter_errors(given))
    if error is not None:
        place = ".".join(str(part) for part in error.absolute_path) or "the declaration"
        raise ValueError(f"{name}.json: {place}: {error.message}")


def _declaration(name: str) -> dict[str, Any]:
    given: dict[str, Any] = json.loads(_text(f"{name}.json"))
    check_declaration(name, given)
    return given


def _text(file: str) -> str:
    return resources.files(__package__).joinpath(file).read_text("utf-8")


def _fields(name: str, given: dict[str, Any]) -> dict[str, Field]:
    columns = trial_columns()
    fields = {}
    for key, value in given["fields"].items():
        if "in_table" in value:
            fields[key] = Field(unit=None, **value)
        elif key in columns:
            column = columns[key]
            fields[key] = Field(**{"type": column.type, "unit": column.unit, "prose": column.prose, **value})
        else:
            raise ValueError(f"{name}.json: fields.{key}: no column of the trials table has this name")
    return fields


def _declared_names() -> tuple[str, ...]:
    files = (file.name for file in resources.files(__package__).iterdir() if file.name.endswith(".json"))
    return tuple(sorted({name.removesuffix(".json") for name in files} - {EXPOSURE, "declaration.schema"}))


TYPES = _declared_names()
ANSWERED = tuple(name for name in TYPES if trial_type(name).response is not None)
"""Types of steps that take an answer."""
TYPED = tuple(name for name in TYPES if trial_type(name).response == "typed")
CHOSEN = tuple(name for name in TYPES if trial_type(name).response == "choice")
"""Types of steps that are answered with one of their labels."""
RATED = tuple(name for name in TYPES if trial_type(name).response == "rating")
"""Types of steps that are answered with a point of a scale, which is neither right nor wrong."""
LASTING = tuple(name for name in TYPES if trial_type(name).lasts)
"""Types of steps that end after a set time; another step follows."""
UNANSWERED = tuple(name for name in TYPES if name not in (*ANSWERED, *LASTING))
"""Types of steps that show a text until the reader goes on."""

PARTWISE = tuple(mode for mode in trial_type("read").parameters["as"].values if mode != "whole")
"""Ways to read a text part by part."""


def labels_of(step: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the labels or points that a planned step offers; empty if it is answered in another way."""
    return tuple(step.get("labels") or ())


NO_KEY = "none"
"""The key of a label that is given by waiting until time runs out (go/no-go)."""


def name_of(step: Mapping[str, Any]) -> str | None:
    """Return the name of a study's step that takes a further answer; None for any other step."""
    settings = next(iter(step.values()), None)
    return settings.get(NAME) if isinstance(settings, Mapping) else None


def main_steps(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the steps of a study's trial without those that take further answers."""
    return [step for step in steps if name_of(step) is None]


def answering_step(steps: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the step of a study's trial that takes the trial's own answer, or the text that it ends with."""
    return (main_steps(steps) or steps)[-1]


def choice_settings(step: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a study's step that is answered with a label; empty for any other step."""
    ((kind, settings),) = step.items()
    return settings if kind in CHOSEN else {}


MOST_DIGIT_KEYS = 9
FINEST_DECIMALS, SLIDER_POSITIONS = 2, 50
"""A slider has at least so many positions, unless that takes more decimals."""


def scale_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scale of a step that is rated: its ends and either buttons with their numbers and keys, or a slider's decimals."""
    names = settings.get("points")
    low, high = (1, len(names)) if names else (settings["from"], settings["to"])
    if settings.get("as") == "slider":
        enough = (n for n in range(FINEST_DECIMALS) if (high - low) * 10**n >= SLIDER_POSITIONS)
        buttons: dict[str, Any] = {"labels": None, "responses": None, "keys": []}
        return {"from": low, "to": high, **buttons, "decimals": next(enough, FINEST_DECIMALS)}
    numbers = [str(point) for point in range(int(low), int(high) + 1)]
    keys = (
        numbers if all(len(number) == 1 for number in numbers) else list(map(str, range(1, len(numbers) + 1)))
    )
    return {
        "from": low,
        "to": high,
        "labels": list(names or numbers),
        "responses": numbers,
        "keys": keys if len(numbers) <= MOST_DIGIT_KEYS else [],
        "decimals": 0,
    }
