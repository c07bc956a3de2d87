"""Checks in microseconds whether a value fits one of our JSON Schemas; ``jsonschema`` explains why one does not.

An items file has hundreds of thousands of change records, and nearly all of them fit. A schema is compiled into nested
closures; unknown keywords are refused at compilation, so none is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sized
from datetime import UTC, datetime
from operator import ge, le
from typing import Any, cast

Accepts = Callable[[Any], bool]

_ANNOTATIONS = frozenset({"$schema", "$id", "$defs", "title", "description"})


def acceptor(schema: Mapping[str, Any]) -> Accepts:
    """Return a function that returns whether a value fits a schema."""
    return _compiled(schema, schema)


def _compiled(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Accepts:
    keywords = [keyword for keyword in schema if keyword not in _ANNOTATIONS]
    if unknown := [keyword for keyword in keywords if keyword not in KEYWORDS]:
        raise ValueError(f"keyword {unknown[0]!r} is not compiled; known are {', '.join(sorted(KEYWORDS))}")
    checks = [KEYWORDS[keyword](schema, root) for keyword in keywords]
    if len(checks) == 1:
        return checks[0]

    def accepts(value: Any) -> bool:
        for check in checks:  # noqa: SIM110  a loop costs half of all(), and this runs a million times a build
            if not check(value):
                return False
        return True

    return accepts


def _is_integer(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


_TYPES: Mapping[str, Accepts] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "null": lambda value: value is None,
    "boolean": lambda value: value is True or value is False,
    "integer": _is_integer,
    "number": lambda value: type(value) is int or type(value) is float,
}


def _type(schema: Mapping[str, Any], _: Mapping[str, Any]) -> Accepts:
    names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if unknown := set(names) - set(_TYPES):
        raise ValueError(f"type {min(unknown)!r} is not compiled")
    tests = [_TYPES[name] for name in names]
    return tests[0] if len(tests) == 1 else lambda value: any(test(value) for test in tests)


def _properties(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Accepts:
    parts = {name: _compiled(part, root) for name, part in schema["properties"].items()}
    texts = {name for name, part in schema["properties"].items() if _asks_for_any_text(part)}

    def accepts(value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        for name, each in value.items():
            if type(each) is str and name in texts:
                continue
            part = parts.get(name)
            if part is not None and not part(each):
                return False
        return True

    return accepts


def _asks_for_any_text(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "string" and schema.keys() <= _ANNOTATIONS | {"type"}


def _additional(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Accepts:
    named, given = frozenset(schema.get("properties", ())), schema["additionalProperties"]
    if given is False:
        return lambda value: not isinstance(value, dict) or value.keys() <= named
    part = _compiled(given, root)
    return lambda value: (
        not isinstance(value, dict) or all(part(each) for name, each in value.items() if name not in named)
    )


def _items(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Accepts:
    part = _compiled(schema["items"], root)
    least = _least_of_whole_numbers(schema["items"])

    def accepts(value: Any) -> bool:
        if not isinstance(value, list):
            return True
        if least is not None and set(map(type, value)) == {int} and min(value) >= least:
            return True
        return all(map(part, value))

    return accepts


def _prefix_items(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Accepts:
    if "items" in schema:
        raise ValueError("items after prefixItems are not compiled")
    parts = [_compiled(part, root) for part in schema["prefixItems"]]
    # a shorter list is checked as far as it goes
    return lambda value: (
        not isinstance(value, list) or all(part(each) for part, each in zip(parts, value, strict=False))
    )


def _least_of_whole_numbers(schema: Mapping[str, Any]) -> float | None:
    """Return the minimum of a schema that accepts all integers from there on, perhaps among other values."""
    for option in schema.get("anyOf", [schema]):
        if option.get("type") == "integer" and option.keys() - _ANNOTATIONS == {"type", "minimum"}:
            return float(option["minimum"])
    return None


def _property_names(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Accepts:
    fits = _compiled(schema["propertyNames"], root)
    return lambda value: not isinstance(value, dict) or all(map(fits, value))


def _any_of(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Accepts:
    parts = [_compiled(part, root) for part in schema["anyOf"]]
    return lambda value: any(part(value) for part in parts)


def _reference(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Accepts:
    where, _, name = schema["$ref"].rpartition("/")
    if where != "#/$defs" or name not in root.get("$defs", {}):
        raise ValueError(f"reference {schema['$ref']!r} is not compiled; give one of the schema's own $defs")
    return _compiled(root["$defs"][name], root)


def _required(schema: Mapping[str, Any], _: Mapping[str, Any]) -> Accepts:
    names = frozenset(schema["required"])
    return lambda value: not isinstance(value, dict) or value.keys() >= names


def _enum(schema: Mapping[str, Any], _: Mapping[str, Any]) -> Accepts:
    if not all(isinstance(value, str) for value in schema["enum"]):
        raise ValueError("an enum of anything but texts is not compiled")
    allowed = frozenset(schema["enum"])
    return lambda value: isinstance(value, str) and value in allowed


def _pattern(schema: Mapping[str, Any], _: Mapping[str, Any]) -> Accepts:
    search = re.compile(schema["pattern"]).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def is_moment(value: object) -> bool:
    """Return whether a value is a moment that exists, in ISO 8601 with seconds and an offset; a value that is not text passes."""
    if not isinstance(value, str):
        return True
    if _MOMENT.fullmatch(value) is None:
        return False
    try:
        datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        return False
    return True


_MOMENT = re.compile(r"[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})")


def _format(schema: Mapping[str, Any], _: Mapping[str, Any]) -> Accepts:
    if schema["format"] != "date-time":
        raise ValueError(f"format {schema['format']!r} is not compiled")
    return is_moment


def _bound(
    keyword: str, kinds: tuple[type, ...], fits: Callable[[Any, Any], bool]
) -> Callable[[Mapping[str, Any], Mapping[str, Any]], Accepts]:
    """Return the compiler of a keyword that bounds a value: a number itself, or how long it is."""

    def compile_bound(schema: Mapping[str, Any], _: Mapping[str, Any]) -> Accepts:
        bound = schema[keyword]
        if kinds == _NUMBERS:
            return lambda value: type(value) not in kinds or fits(value, bound)
        return lambda value: not isinstance(value, kinds) or fits(len(cast(Sized, value)), bound)

    return compile_bound


_NUMBERS = (int, float)
KEYWORDS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Accepts]] = {
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "prefixItems": _prefix_items,
    "propertyNames": _property_names,
    "anyOf": _any_of,
    "$ref": _reference,
    "required": _required,
    "enum": _enum,
    "pattern": _pattern,
    "format": _format,
    "minimum": _bound("minimum", _NUMBERS, ge),
    "maximum": _bound("maximum", _NUMBERS, le),
    "minLength": _bound("minLength", (str,), ge),
    "maxLength": _bound("maxLength", (str,), le),
    "minItems": _bound("minItems", (list,), ge),
    "maxItems": _bound("maxItems", (list,), le),
    "minProperties": _bound("minProperties", (dict,), ge),
    "maxProperties": _bound("maxProperties", (dict,), le),
}
"""The keywords that are compiled, each with what makes a check of it."""
