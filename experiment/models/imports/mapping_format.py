"""Checks a mapping of columns against its schema and says each fault with file, line, value, rule and nearest name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from experiment.study.yaml_source import YamlSource
from stimuli.errors import UserError, nearest

SHOWN_FAULTS = 8


@cache
def _validator() -> Draft202012Validator:
    text = resources.files(__package__).joinpath("mapping.schema.json").read_text("utf-8")
    return Draft202012Validator(json.loads(text))


def check_mapping(source: YamlSource) -> None:
    """Raise one UserError that lists the faults of a mapping in the order of its lines."""
    if not isinstance(source.data, dict):
        raise UserError(
            f"{source.file.name} holds no mapping of columns",
            mend="Write a part of a mapping on each line: `reader: participant`, `item: base`, `response: key`.",
        )
    found = [fault for error in _validator().iter_errors(source.data) for fault in _deepest(error)]
    told = sorted({(source.line(_path(fault)), _say(source, fault)) for fault in found})
    if told:
        raise UserError("\n".join(text for _, text in told[:SHOWN_FAULTS]))


def _deepest(error: ValidationError) -> list[ValidationError]:
    """Follow a choice of forms into the one whose names a group of settings has; several forms at once are a fault of their own."""
    if error.validator != "anyOf" or not isinstance(error.instance, dict):
        return [error]
    names = set(error.instance)
    for form, faults in _forms(error):
        if names <= set(form.get("properties", ())) and set(form.get("required", ())) <= names:
            return [deeper for fault in faults for deeper in _deepest(fault)]
    return [error]


def _forms(error: ValidationError) -> list[tuple[Mapping[str, Any], list[ValidationError]]]:
    """Return the groups of settings that a choice of forms allows, those inside other choices too, each with what is wrong."""
    found: dict[tuple[Any, ...], tuple[Mapping[str, Any], list[ValidationError]]] = {}

    def add(choice: ValidationError, before: tuple[Any, ...]) -> None:
        for fault in choice.context or ():
            place = (*before, fault.schema_path[0])
            if fault.validator == "anyOf" and list(fault.path) == []:
                add(fault, place)
                continue
            schema: Any = choice.validator_value
            form = schema[fault.schema_path[0]]
            if form.get("type") == "object":
                found.setdefault(place, (form, []))[1].append(fault)

    add(error, ())
    return list(found.values())


def _path(error: ValidationError) -> tuple[str | int, ...]:
    path = tuple(error.absolute_path)
    return (*path, _unknown(error)[0]) if error.validator == "additionalProperties" else path


def _unknown(error: ValidationError) -> list[str]:
    known = _known(error)
    instance: Any = error.instance
    return [name for name in instance if name not in known]


def _known(error: ValidationError) -> list[str]:
    schema: Any = error.schema
    return list(schema.get("properties", {}))


def _say(source: YamlSource, error: ValidationError) -> str:
    path, schema = _path(error), error.schema
    instance: Any = error.instance
    place = source.place(path)
    about = schema.get("description", "") if isinstance(schema, dict) else ""
    given = json.dumps(instance, ensure_ascii=False)
    rule: Any = error.validator_value
    if error.validator == "additionalProperties":
        known = _known(error)
        close = nearest(str(path[-1]), known)
        hint = f"did you mean {close!r}? " if close else ""
        return f"{place} is no part of a mapping; {hint}known here: {', '.join(known)}"
    if error.validator == "required":
        missing = [name for name in rule if name not in dict(instance)]
        return f"{place}: {', '.join(missing)} is missing; it must be given"
    if error.validator == "enum":
        close = nearest(str(instance), rule)
        return f"{place} is {given}; allowed: {', '.join(rule)}" + (
            f". Did you mean {close!r}?" if close else ""
        )
    if path == ("rt",) and isinstance(instance, str):
        return f"{place} is {given}; it names a column and its unit: write `rt: {{column: {instance}, unit: ms}}`, or `unit: s`"
    if instance in (None, "", [], {}):
        return f"{place} is empty; it should be {_form(about, path)}, or be taken out"
    return f"{place} is {given}; it should be {_form(about, path)}"


def _form(about: str, path: tuple[str | int, ...]) -> str:
    """Return how a part is written."""
    if path[:1] == ("response",) and len(path) == 1:
        return (
            "a column with the answer (`key`, or `{column: key, map: {j: word, f: nonword}}`), or else `{correct: right}`, "
            "a 1/0 column"
        )
    if path[:1] in (("show",), ("intact",), ("condition",)) and len(path) == 1:
        return "a name and its column, as `{string: string}`"
    if path[-1:] == ("map",):
        return "values of the table and what they mean, as `{j: word, f: nonword}`"
    if path[:1] == ("choices",):
        return "a list of two or more options"
    if path[-1:] in (("value",), ("column",), ("source",), ("licence",)) or "map" in path:
        return "text"
    if path == ("rt",):
        return "a column and its unit, as `{column: rt, unit: ms}`"
    named = f" ({about})" if about else ""
    return f"a column, `{{column: NAME, map: {{VALUE: MEANING}}}}`, or `{{value: TEXT}}` for the same in all rows{named}"
