"""One declaration per trial type, checked when it is read: what a study may set, what a plan holds, what a page records.

Types for the browser side and a page of documentation are made from the declarations by ``experiment.trials.generate``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from experiment.columns import trial_columns

TYPES = ("read", "prime", "choose", "recover", "answer")


@dataclass(frozen=True)
class Parameter:
    """What a study may set of a step.

    Attributes
    ----------
    type : {"text", "fields", "duration", "flag", "choice", "keys"}
    prose : str
    required : bool
    values : tuple of str
        What a choice is made from.
    default : str or bool or None
        What holds where nothing is set; None where the parameter then has no effect.
    """

    type: str
    prose: str
    required: bool = False
    values: tuple[str, ...] = ()
    default: str | bool | None = None


@dataclass(frozen=True)
class PlanEntry:
    """An entry of the step in a session plan; every entry is always there.

    Attributes
    ----------
    type : {"string", "number", "integer", "boolean", "key"}
        Of the value.
    prose : str
    many : bool
        A list of such values.
    nullable : bool
    default : str or float or bool or None
        What the page's plugin takes where it is given none.
    on_screen : bool
        The page's plugin is given it.
    """

    type: str
    prose: str
    many: bool = False
    nullable: bool = False
    default: str | float | bool | None = None
    on_screen: bool = True


@dataclass(frozen=True)
class Field:
    """Something that the page records of a step.

    Attributes
    ----------
    type : {"string", "integer", "number", "boolean", "key_strokes"}
    unit : str or None
    prose : str
    nullable : bool
    in_table : bool
        A column of the trials table; else it is kept in the store alone.
    """

    type: str
    unit: str | None
    prose: str
    nullable: bool = True
    in_table: bool = True


@dataclass(frozen=True)
class TrialType:
    """A declared trial type.

    Attributes
    ----------
    name, about : str
    version : int
    parameters : dict of str to Parameter
    plan : dict of str to PlanEntry
    fields : dict of str to Field
        Without those that every type records (`exposure_fields`).
    chance : str or None
        How often a guess is right, in words.
    parser, scorer : str or None
        Names in `experiment.parsing.replies.PARSERS` and `experiment.scoring.trial.SCORERS`.
    simulated : str
        How a simulated reader answers.
    """

    name: str
    about: str
    version: int
    parameters: dict[str, Parameter]
    plan: dict[str, PlanEntry]
    fields: dict[str, Field]
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
        The declaration breaks its schema, or names a field that is no column of the trials table.
    """
    given = _declaration(name)
    return TrialType(
        name=given["type"],
        about=given["about"],
        version=given["version"],
        parameters={
            key: Parameter(**{**value, "values": tuple(value.get("values", ()))})
            for key, value in given["parameters"].items()
        },
        plan={key: PlanEntry(**value) for key, value in given["plan"].items()},
        fields=_fields(name, given),
        chance=given["chance"],
        parser=given["parser"],
        scorer=given["scorer"],
        simulated=given["simulated"],
    )


@cache
def exposure_fields() -> dict[str, Field]:
    """Return the fields that every step records while its stimulus is up."""
    return _fields("exposure", _declaration("exposure"))


@cache
def recorded_fields() -> dict[str, Field]:
    """Return every field that a trial's payload may hold, in order; null where its steps record no such thing."""
    every = dict(exposure_fields())
    for name in TYPES:
        for key, field in trial_type(name).fields.items():
            every.setdefault(key, field)
    return every


def check_declaration(name: str, given: object) -> None:
    """Raise ValueError where a declaration breaks its schema, naming the place and the rule."""
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
