"""Checks ``study.yaml`` against its schema and reports each error with file, line, value, rule, nearest name and remedy; its keys.

A key is named by what a browser reports for one stroke without Ctrl or Alt, in lower case, as jsPsych compares it: the letter,
digit or sign that it writes, or the key's name. Digits of all scripts are equivalent, and so are the two letters i of Turkish.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib import resources
from itertools import chain
from types import MappingProxyType
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from analysis.plan import PLANNABLE
from experiment.study.yaml_source import Faults, KeyPath, YamlSource
from experiment.trials import TrialType, step_schema, step_settings_schema
from experiment.trials.own import own_measures, unplanned
from stimuli.errors import UserError, nearest
from stimuli.papers import papers

FUNCTION_KEY = re.compile(r"f([1-9]|1[0-9]|2[0-4])")
COMBINATION = re.compile(
    r"(ctrl|control|strg|alt|altgr|option|shift|cmd|command|meta|win)\s*[-+ ]\s*\S+", re.IGNORECASE
)
NUMBER_PAD = re.compile(r"(?:numpad|num|kp|keypad)([0-9])|(?:digit|key)([0-9a-z])")
BY_INPUT_METHOD = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "YI SYLLABLE")
"""Unicode names of letters that an input method composes from several strokes."""

LATEST = 1
SYNONYMS = {"accuracy": "correct", "response_time": "rt", "reaction_time": "rt"}
"""Common synonyms of names in the format."""


@cache
def _list() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("keys.json").read_text("utf-8")
    return dict(json.loads(text))


def key_name(key: object) -> str:
    """Return the canonical name of a key: ``J`` and ``j``, ``left`` and ``ArrowLeft``, ``1`` and ``١`` are equal."""
    narrow = "".join(chr(ord(sign) - 0xFEE0) if "！" <= sign <= "～" else sign for sign in str(key))
    lower = unicodedata.normalize("NFC", narrow.lower().replace("i\u0307", "i")).replace("ı", "i")
    for zero in _list()["zeros"] if len(lower) == 1 else "":
        if 0 <= ord(lower) - ord(zero) < 10:
            return str(ord(lower) - ord(zero))
    return str(_list()["aliases"].get(lower, lower))


def stroke_name(key: object) -> str | None:
    """Return a browser's name of a named key (``ArrowLeft``); None for keys that are named by what they write."""
    name = key_name(key)
    return next((sent for sent in _list()["named"] if sent.lower() == name), None)


def key_fault(key: object) -> str | None:
    """Return why a study cannot use a key, with the nearest valid one; None if it can."""
    name, key_lists = key_name(key), _list()
    if stroke_name(key) is not None:
        return None
    if name in key_lists["taken"]:
        return f"this key {key_lists['taken'][name]}; choose a letter or a digit"
    if FUNCTION_KEY.fullmatch(name):
        return "function keys belong to the browser and to the computer (F5 reloads the page); choose a letter or a digit"
    if COMBINATION.fullmatch(name):
        return "an answer is one key, pressed alone; choose a letter or a digit"
    if len(name) == 1:
        return _fault_of_sign(name)
    simple = re.sub(r"[\s_.-]", "", name)
    pad = NUMBER_PAD.fullmatch(simple)
    close = (
        (pad[1] or pad[2])
        if pad
        else key_lists["mistaken"].get(simple) or nearest(simple, key_lists["named"])
    )
    hint = f" (did you mean {close!r}?)" if close else ""
    named = ", ".join(key_lists["named"])
    return f"no keyboard has this key{hint}; a key is one letter, digit or sign, or one of: {named}"


def _fault_of_sign(sign: str) -> str | None:
    key_lists = _list()
    if sign in key_lists["mistaken"]:
        return f"no key writes this sign; did you mean {key_lists['mistaken'][sign]!r}?"
    if unicodedata.name(sign, "").startswith(BY_INPUT_METHOD):
        return "an input method makes this letter out of several strokes; choose a Latin letter or a digit"
    is_letter = unicodedata.category(sign) in ("Ll", "Lo", "Lm") and (
        sign in key_lists["composed"] or unicodedata.normalize("NFD", sign) == sign
    )
    if is_letter or sign.isdecimal() or (sign.isascii() and sign.isprintable()) or sign in key_lists["dead"]:
        return None
    return "no key writes this sign by itself; choose a letter or a digit"


def key_remark(key: object) -> str | None:
    """Return how a valid key differs between keyboards; None if it does not."""
    name = key_name(key)
    if len(name) != 1 or unicodedata.category(name)[0] in "LN":
        return None
    if name in _list()["dead"]:
        return "on many keyboards it writes nothing until the next key"
    return "on keyboards of other countries it needs Shift or is in another place"


@cache
def validator() -> Draft202012Validator:
    """Return the validator of study.yaml, built once, with measures, steps of trial types and papers' materials."""
    return validator_with({})


def validator_with(own: Mapping[str, TrialType], unreadable: Collection[str] = ()) -> Draft202012Validator:
    """Return the validator of a study with its own trial types."""
    schema = json.loads(resources.files(__package__).joinpath("study.schema.json").read_text("utf-8"))
    of_levels = step_settings_schema(own)
    schema["$defs"] |= {
        # what a type with errors records is not known, so a plan may measure it
        "measure": {}
        if unreadable
        else {"enum": [*PLANNABLE, *own_measures(own)], "unplanned": unplanned(own)},
        "step": step_schema(own),
        "step_settings": of_levels,
    }
    for given in (schema["$defs"]["step"], of_levels):
        given["properties"] |= dict.fromkeys(unreadable, True)
    between = schema["properties"]["design"]["properties"]["between"]["additionalProperties"]
    between["additionalProperties"]["properties"] |= of_levels["properties"]
    for paper in papers().values():
        schema["properties"]["materials"]["properties"] |= paper.data("materials.json")
    Draft202012Validator.check_schema(schema)
    formats = FormatChecker(formats=())
    formats.checks("key")(lambda key: key_fault(key) is None)
    return Draft202012Validator(schema, format_checker=formats)


def check_format(
    source: YamlSource,
    faults: Faults,
    own: Mapping[str, TrialType] = MappingProxyType({}),
    unreadable: Collection[str] = (),
) -> None:
    """Check a study file against its schema; every error is stored, with the setting that it affects.

    ``own``: the study's own trial types; ``unreadable``: names of those with errors, of which no setting is known.
    """
    data = source.data
    if not isinstance(data, dict):
        raise UserError(f"{source.file.name} holds no settings", mend="It opens with `wrods: 1`.")
    version = data.get("wrods")
    if isinstance(version, int) and version > LATEST:
        raise UserError(
            f"{source.place(('wrods',))} is {version}; this wrods reads study format {LATEST}",
            mend="Install a newer wrods to use this study.",
        )
    for error, path, message in schema_faults(
        source, validator_with(own, unreadable) if own or unreadable else validator()
    ):
        faults.found.append(UserError(message))
        faults.broken += _broken(error, path)
    if unreadable:
        planned = (
            data.get("analysis", {}).get("planned", {}) if isinstance(data.get("analysis"), dict) else {}
        )
        of_plans = planned if isinstance(planned, dict) else {}
        faults.broken += [("procedure",), ("design",)]
        faults.broken += [("analysis", "planned", name, "measure") for name in of_plans]


def schema_faults(
    source: YamlSource, schema: Draft202012Validator
) -> Iterator[tuple[ValidationError, KeyPath, str]]:
    """Yield the schema errors of a file with path and message; ``form`` in the schema describes a part's notation."""
    errors = chain.from_iterable(map(_deepest, schema.iter_errors(source.data)))
    # jsonschema gives errors of several settings in an order that changes between processes
    for error in sorted(errors, key=lambda error: [str(part) for part in error.absolute_path]):
        for path in _paths(error):
            yield error, path, _say(source, error, path, schema.schema)


def _broken(error: ValidationError, path: KeyPath) -> list[KeyPath]:
    """Return the settings that an error leaves undefined: for a misspelt name, the intended one."""
    schema: Any = error.schema
    if error.validator == "additionalProperties":
        close = nearest(str(path[-1]), schema.get("properties", {}))
        return [path, *([(*path[:-1], close)] if close else [])]
    if error.validator == "required":
        instance: Any = error.instance
        return [(*path, name) for name in schema["required"] if name not in instance]
    return [path]


def _deepest(error: ValidationError) -> Iterator[ValidationError]:
    """Yield the errors in the anyOf branch that matched furthest, so that the messages are about the intended form."""
    kind = [e for e in error.context or () if e.validator != "type" or len(e.path) > len(error.path)]
    if not kind:
        yield error
        return
    deepest = max(_of_groups(error) or kind, key=lambda e: (len(e.absolute_path), *_names_one(e)))
    is_told = (
        isinstance(error.schema, dict)
        and ("description" in error.schema or "form" in error.schema)
        and not isinstance(error.instance, dict)
    )
    if is_told and len(deepest.absolute_path) == len(error.absolute_path):
        yield error
        return
    for nested in error.context or ():
        if nested.schema_path[0] == deepest.schema_path[0]:
            yield from _deepest(nested)


def _names_one(error: ValidationError) -> tuple[bool, bool]:
    """Return whether an error is an unknown setting, and whether it resembles a known one."""
    if error.validator != "additionalProperties":
        return False, False
    settings = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
    return True, any(nearest(name, settings) for name in _unknown_keys(error))


def _of_groups(error: ValidationError) -> list[ValidationError]:
    """Return the errors of a group of settings compared with alternative forms of which some are groups."""
    if not isinstance(error.instance, dict):
        return []
    forms: Any = error.validator_value
    groups = {place for place, form in enumerate(forms) if form.get("type") == "object"}
    errors = [nested for nested in error.context or () if nested.schema_path[0] in groups]
    return [nested for nested in errors if nested.validator != "type" or nested.path] or errors


def _paths(error: ValidationError) -> list[KeyPath]:
    """Return the paths of an error: one for each unknown setting."""
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        return [(*path, extra) for extra in _unknown_keys(error)] or [path]
    return [path]


def _unknown_keys(error: ValidationError) -> list[str]:
    settings = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
    instance: Any = error.instance
    return [key for key in instance if key not in settings]


def _say(source: YamlSource, error: ValidationError, path: KeyPath, root: Any) -> str:
    place = source.place(path)
    schema: dict[str, Any] = error.schema if isinstance(error.schema, dict) else {}
    rule: Any = error.validator_value
    instance: Any = error.instance
    value = (
        json.dumps(instance, ensure_ascii=False) if not isinstance(instance, dict) else "a group of settings"
    )
    if path[-1:] == ("compare",) and isinstance(instance, list) and len(instance) > 2:
        return (
            f"{place} has {len(instance)} factors; two can be compared. Write an analysis for each level of the third "
            "(within: {factor: level}), or test all three in a formula of your own (formula: log_rt ~ a * b * c + …)"
        )
    if error.validator == "additionalProperties":
        return _say_unknown(place, str(path[-1]), schema.get("properties", {}), root)
    if error.validator == "required":
        missing = [name for name in rule if name not in instance]
        return f"{place}: {', '.join(missing)} is missing; it must be given"
    if error.validator == "enum" or error.validator == "const":
        if instance in ("boundary", "preview") and path[-1] == "as":
            return f"{place} is {value}, which {_GAZE}"
        if str(instance) in schema.get("unplanned", {}):
            own = ", ".join(str(name) for name in rule if name not in PLANNABLE) or "its type records none"
            return (
                f"{place} is {value}, {schema['unplanned'][instance]}; a plan measures single numbers ({own})"
            )
        allowed = [str(option) for option in (rule if error.validator == "enum" else [rule])]
        close = SYNONYMS.get(str(instance).lower()) or nearest(str(instance), allowed)
        hint = f" Did you mean {close!r}?" if close in allowed else ""
        return f"{place} is {value}; allowed: {', '.join(allowed)}.{hint}"
    if "form" in schema:
        return f"{place} is {value if instance else 'empty'}; it should be {schema['form']}"
    if error.validator in ("minimum", "maximum", "exclusiveMinimum"):
        low, above, high = (schema.get(name) for name in ("minimum", "exclusiveMinimum", "maximum"))
        if None not in (low, high):
            return f"{place} is {value}; it must be between {low} and {high}"
        bounds = (("at least", low), ("above", above), ("at most", high))
        bounds_text = " and ".join(f"{what} {bound}" for what, bound in bounds if bound is not None)
        return f"{place} is {value}; it must be {bounds_text}"
    if error.validator == "multipleOf":
        return f"{place} is {value}; it must be a multiple of {rule}"
    if error.validator == "pattern":
        about = schema.get("description") or _pattern_in_words(rule)
        composed = unicodedata.normalize("NFC", str(instance))
        hint = ""
        if composed != instance and re.search(rule, composed):
            hint = ". Letters in it stand as two signs each, the letter and its mark; type the name again (Unicode NFC)"
        return f"{place} is {value}; it should be {about}{hint}"
    if error.validator == "format" and rule == "key":
        return f"{place} is {value}; {key_fault(instance)}"
    if error.validator == "type" and path[:2] == ("design", "factors") and len(path) == 3:
        return f"{place} is {value}; it should have a line for each level, or be a list of versions: [one, other]"
    if error.validator == "type" and instance is None:
        return f"{place} is empty; it should be {_type_in_words(rule)}, or be taken out"
    if error.validator == "type" and rule == "string" and "or more" in str(schema.get("pattern")):
        return f"{place} is {value}; it should be a bound: {schema['description']}"
    if error.validator == "type" and rule == "string" and "USD" in str(schema.get("pattern")):
        return f"{place} is {value}; it should be an amount with its currency: `{value} USD`"
    if error.validator == "type" and rule == "string" and "ms|s|min" in str(schema.get("pattern")):
        return f"{place} is {value}; it should be a duration with its unit: `{value} s` or `{value} ms`"
    if error.validator == "type":
        return f"{place} is {value}; it should be {_type_in_words(rule)}"
    if error.validator in ("anyOf", "oneOf") and "description" in schema:
        return f"{place} is {value}; it should be {schema['description']}"
    if error.validator == "anyOf" and all("type" in form for form in rule):
        kinds = [kind for form in rule for kind in _kinds(form["type"])]
        return f"{place} is {value}; it should be {_type_in_words(kinds)}"
    if error.validator == "maxProperties" and path[:2] == ("design", "factors"):
        return f"{place} has {len(instance)} factors; {rule} can be crossed"
    if (
        error.validator in ("minProperties", "minItems")
        and path[:2] == ("design", "factors")
        and len(path) == 3
    ):
        return f"{place} has one level; a factor compares two or more"
    if error.validator == "uniqueItems" and path[:2] == ("design", "factors"):
        twice = next(level for level in instance if instance.count(level) > 1)
        return f"{place} names the level {twice!r} twice"
    if error.validator == "maxProperties":
        return f"{place} has {len(instance)} entries; one per step of the list (put a `-` before each)"
    if error.schema is False:
        return f"{place} is {value}, and it has no such setting here; take it out"
    if error.validator in ("minItems", "minProperties", "minLength"):
        needed = "text" if error.validator == "minLength" and rule == 1 else f"at least {rule}"
        return f"{place} is {value if instance else 'empty'}; it needs {needed}"
    if error.validator in ("maxItems", "maxLength"):
        return f"{place} has {len(instance)}; it can have at most {rule}"
    if error.validator == "uniqueItems":
        twice = next(one for one in instance if instance.count(one) > 1)
        return f"{place} names {json.dumps(twice, ensure_ascii=False)} twice"
    return f"{place}: {error.message}"


_GAZE = (
    "needs to know where the eyes are, and a browser has no eye position, so nothing can change while they move. Take masked "
    "priming (prime) as a stand-in, or import eye movements from a tracker (wrods import)"
)
CANNOT = {
    "say": (
        {"choose", "read"},
        "needs the onset of speech; a microphone's delay is unknown in browsers, and models of text do not speak. Take lexical "
        "decision (choose) or typing (recover)",
    ),
    "staircase": (
        {"trial"},
        "needs trials that depend on earlier answers, and the trials of a session are planned before it begins. Let levels of a "
        "factor set the durations, such as {short: {prime: {for: 33 ms}}, long: {prime: {for: 50 ms}}}",
    ),
    "sessions": (
        {"wanted"},
        "needs people who return on another day, and a study is one session. Make a study for each day with the same numbers of "
        "participants (recruit: lab), and join the tables by participant",
    ),
    **dict.fromkeys(("boundary", "preview"), ({"show"}, _GAZE)),
}
"""Settings that wrods knows and refuses: the settings that they would join, the reason, and what to take instead."""


def _say_unknown(place: str, key: str, settings: dict[str, Any], root: Any) -> str:
    if key in CANNOT and settings.keys() >= CANNOT[key][0]:
        return f"{place}: {key} {CANNOT[key][1]}"
    setting_names = sorted(settings)
    deeper = [name for name in setting_names if key in _settings_of(settings[name], root)]
    close = nearest(key, setting_names)
    hint = f"did you mean {close!r}? " if close else ""
    if deeper:
        hint = f"write it under `{'` or `'.join(deeper)}`; "
    return f"{place} is not a setting; {hint}known here: {', '.join(setting_names)}"


def _settings_of(schema: Any, root: Any) -> dict[str, Any]:
    """Return the settings that a part of the schema defines by name; empty if it is not a group of settings."""
    while isinstance(schema, dict) and "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    return properties if isinstance(properties, dict) else {}


def _pattern_in_words(pattern: str) -> str:
    descriptions = {
        "ms|s|min": "a duration such as `500 ms`, `10 s` or `2 min`",
        "%": "a percentage such as `80%`",
        "outside": "bounds such as `outside 50 ms to 10 s`",
        "https?": "a web address such as `http://127.0.0.1:8000/v1`",
        "A-Za-z": "a name of letters, digits, _, . or -, starting with a letter",
    }
    return next((words for sign, words in descriptions.items() if sign in pattern), f"text like {pattern}")


def _type_in_words(kind: Any) -> str:
    words = {"object": "a group of settings", "array": "a list", "string": "text", "integer": "a whole number",
             "number": "a number", "boolean": "true or false"}  # fmt: skip
    return " or ".join(words.get(k, str(k)) for k in _kinds(kind))


def _kinds(kind: Any) -> list[str]:
    return kind if isinstance(kind, list) else [kind]
