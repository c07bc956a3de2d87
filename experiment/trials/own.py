"""A lab's own trial types: folders under ``trial_types/`` of a study with a declaration, a plugin and, for models, prompt and parser.

Reading a declaration runs none of the lab's code. What a plugin or a parser returns is checked against the declared fields here.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Protocol

from jinja2 import Environment, TemplateSyntaxError
from jinja2.meta import find_undeclared_variables
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from analysis.plan import PLANNABLE, Measure, own_measure
from experiment.columns import trial_columns
from experiment.trials import (
    EXPOSURE,
    OWN_TYPE,
    STYLE,
    TYPES,
    PlanEntry,
    StepParameter,
    TrialType,
    validator,
)
from stimuli.errors import UserError, did_you_mean

FOLDER = "trial_types"
DECLARATION, PLUGIN, PROMPT, PARSER = "declaration.json", "plugin.js", "prompt.j2", "parser.py"
CODE = (PLUGIN, PROMPT, PARSER)
FILES = (DECLARATION, *CODE)
UNREAD = (".md", ".txt")
"""Endings of files in a type's folder that are only for its readers."""
LARGEST_FILE = 1_000_000
LARGEST_RECORD = 100_000
"""Most bytes of one step's recorded fields."""
RESERVED = frozenset({
    OWN_TYPE, EXPOSURE, "say", "only", "name", "texts", "where", "demonstrations", "exemplars", "example_labels", "items", "swap",
})  # fmt: skip
"""Names that mean something else in a study."""
COMPUTED = frozenset({
    "step", "type", "text", "lines", "answer_field", "scorer", "seconds", "for_models", "labels", "responses", "options", "keys",
    "parts", "as", "multiline", "read_as", "decimal",
})  # fmt: skip
"""Names of a planned step that wrods itself gives, or that only its own types have."""


@dataclass(frozen=True)
class RecordedField:
    """A field that an own type records: type, whether it is a list, unit, range, values, meaning."""

    type: str
    prose: str
    many: bool = False
    unit: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    values: tuple[str, ...] = ()
    nullable: bool = True

    def fits(self, value: object) -> bool:
        """Return whether a value is of the field's type; its range is another matter."""
        parts = value if self.many and isinstance(value, list) else [value]
        return all(_is_of_type(self.type, part) for part in parts) and (
            not self.many or isinstance(value, list)
        )


@dataclass(frozen=True)
class OwnType(TrialType):
    """A trial type of a study's own.

    ``recorded`` are its fields; ``answer_field`` the one that is the answer, None if the step takes none; ``files`` the text of
    each file by name; ``distributions`` how simulated readers fill fields.
    """

    recorded: Mapping[str, RecordedField] = field(default_factory=dict)
    answer_field: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    distributions: Mapping[str, Any] = field(default_factory=dict)

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each file, by its path in the study's folder."""
        return {f"{FOLDER}/{self.name}/{name}": sha256(text) for name, text in self.files.items()}

    @property
    def columns(self) -> list[str]:
        """The names of its columns in the trials table, in the order of its fields."""
        return [f"{self.name}_{field_name}" for field_name in self.recorded]

    @property
    def measures(self) -> dict[str, Measure]:
        """Its single numbers, which a plan may name as measures, by field."""
        return {
            name: own_measure(f"{self.name}_{name}", recorded.prose, recorded.unit)
            for name, recorded in self.recorded.items()
            if recorded.type in ("number", "integer") and not recorded.many
        }

    @property
    def is_for_models(self) -> bool:
        """Whether models can answer it."""
        return PROMPT in self.files and PARSER in self.files

    def in_plan(self) -> dict[str, Any]:
        """Return what a session's plan says about the type, once for all its steps."""
        return {
            "version": self.version,
            "plugin": sha256(self.files[PLUGIN]),
            "fields": {
                name: {
                    key: value
                    for key, value in asdict(recorded).items()
                    if key == "nullable"
                    or (key != "prose" and value not in (None, ()) and value is not False)
                }
                for name, recorded in self.recorded.items()
            },
            "prompt": self.files.get(PROMPT) if self.is_for_models else None,
            "parser": self.files.get(PARSER) if self.is_for_models else None,
        }


def describe_types(types: Mapping[str, OwnType]) -> str:
    """Describe a study's own trial types in sentences; empty if it has none."""
    return " ".join(
        f"Trial type {name} of this study (version {declared.version}, for "
        f"{'people and models' if declared.is_for_models else 'people only'}): {declared.about.rstrip('.')}. It records "
        f"{', '.join(declared.recorded)}."
        for name, declared in types.items()
    )


def own_measures(types: Mapping[str, TrialType]) -> dict[str, Measure]:
    """Return the numbers that a study's own types record, by column and, if no other field or measure has the name, by field."""
    fields = [pair for kind in types.values() if isinstance(kind, OwnType) for pair in kind.measures.items()]
    names = Counter(name for name, _ in fields)
    short = {name: measure for name, measure in fields if names[name] == 1 and name not in PLANNABLE}
    return {measure.name: measure for _, measure in fields} | short


def unplanned(types: Mapping[str, TrialType]) -> dict[str, str]:
    """Return what fields that no plan can measure hold, by column and by field."""
    held = {"string": "text", "boolean": "true or false"}
    fields = [
        (names, "a list" if recorded.many else held[recorded.type])
        for kind in types.values()
        if isinstance(kind, OwnType)
        for field_name, recorded in kind.recorded.items()
        if field_name not in kind.measures
        for names in (field_name, f"{kind.name}_{field_name}")
    ]
    return {name: f"which holds {what}" for name, what in fields if name not in own_measures(types)}


def measures_in_dictionary(types: Mapping[str, TrialType]) -> dict[str, dict[str, str]]:
    """Return these measures as analysis reads them from a study's dictionary."""
    return {
        name: {"column": measure.name, "prose": measure.noun, "unit": measure.unit}
        for name, measure in own_measures(types).items()
    }


class HasOwnTypes(Protocol):
    """A study with trial types of its own."""

    @property
    def own_types(self) -> Mapping[str, OwnType]:
        """Its own trial types by name."""


def plugins_of(study: HasOwnTypes) -> dict[str, str]:
    """Return the plugin of each of a study's own trial types by its SHA-256."""
    plugins = (declared.files[PLUGIN] for declared in study.own_types.values())
    return {sha256(text): text for text in plugins}


def sha256(text: str) -> str:
    """Return the SHA-256 of a file's text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@cache
def _own_validator() -> Draft202012Validator:
    schema: Any = validator().schema
    return Draft202012Validator({"$defs": schema["$defs"], "$ref": "#/$defs/own_type"})


@dataclass
class FoundTypes:
    """The own types in a study's folder, every error in them, and the names of types with errors."""

    types: dict[str, OwnType] = field(default_factory=dict)
    faults: list[UserError] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


SchemaFaults = Callable[[str, Path, Any, Draft202012Validator], Iterator[str]]
"""Says what in a file (its text, path and data) violates a schema."""


def read_own_types(folder: Path, schema_faults: SchemaFaults) -> FoundTypes:
    """Return the own types in a study's folder."""
    of_types, result = folder / FOLDER, FoundTypes()
    if not of_types.is_dir():
        return result
    for place in sorted(path for path in of_types.iterdir() if path.is_dir() and path.name[0] not in "._"):
        found, faults = _read(place, schema_faults)
        result.faults += faults
        if found is not None and not faults:
            result.types[found.name] = found
        elif place.name not in TYPES:
            result.unreadable.append(place.name)
    return result


def _read(place: Path, schema_faults: SchemaFaults) -> tuple[OwnType | None, list[UserError]]:
    name = f"{FOLDER}/{place.name}"
    faults = []
    if place.name in TYPES or place.name in RESERVED:
        known = "a trial type of wrods" if place.name in TYPES else "reserved"
        faults.append(UserError(f"{name}: the name {place.name!r} is {known}", mend="Rename the folder."))
    files: dict[str, str] = {}
    for file in sorted(path for path in place.rglob("*") if path.is_file()):
        inner = file.relative_to(place).as_posix()
        if inner.startswith((".", "__pycache__/")) or file.suffix in UNREAD:
            continue
        if inner not in FILES:
            mend = f"{did_you_mean(inner, FILES)}A type's files are {', '.join(FILES)}; notes end in .md or .txt."
            faults.append(UserError(f"{name}/{inner} is no file of a trial type", mend=mend))
        elif file.stat().st_size > LARGEST_FILE:
            faults.append(
                UserError(
                    f"{name}/{inner} is larger than a megabyte", mend="Leave out what it does not need."
                )
            )
        else:
            try:
                files[inner] = file.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                faults.append(UserError(f"{name}/{inner} is not UTF-8 text", mend="Save it as UTF-8."))
    faults += [
        UserError(f"{name} has no {wanted}", mend="See docs/own-trials.md.")
        for wanted in (DECLARATION, PLUGIN)
        if wanted not in files and not (place / wanted).is_file()
    ]
    if (PROMPT in files) != (PARSER in files):
        there, lacks = (PROMPT, PARSER) if PROMPT in files else (PARSER, PROMPT)
        mend = f"Add {lacks}, so that models can answer, or remove {there}."
        faults.append(UserError(f"{name} has {there} and no {lacks}", mend=mend))
    if DECLARATION not in files:
        return None, faults
    try:
        given = json.loads(files[DECLARATION])
    except ValueError as error:
        return None, [
            *faults,
            UserError(f"{name}/{DECLARATION} is not JSON: {error}", mend="Correct it at this place."),
        ]
    faults += [
        fault for file in CODE if file in files for fault in _syntax_faults(f"{name}/{file}", files[file])
    ]
    rules = [
        UserError(f"{name}/{fault}", mend="docs/own-trials.md shows every setting.")
        for fault in schema_faults(files[DECLARATION], place / DECLARATION, given, _own_validator())
    ] or _declaration_faults(place.name, f"{name}/{DECLARATION}", given)
    return (None if rules else _made(given, files)), faults + rules


def _syntax_faults(where: str, text: str) -> list[UserError]:
    """Return what can be said of a file of code without running it."""
    if where.endswith(PARSER):
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError) as error:
            return [UserError(f"{where} is no Python: {error}", mend="Correct it at this place.")]
        functions = {
            node.name: len(node.args.args) for node in tree.body if isinstance(node, ast.FunctionDef)
        }
        if functions.get("parse") != 2:
            mend = "It returns the declared fields as a dictionary, or None for a reply that it cannot read."
            return [UserError(f"{where} defines no function parse(reply, plan)", mend=mend)]
    if where.endswith(PROMPT):
        try:
            unknown = find_undeclared_variables(Environment(autoescape=False).parse(text)) - {"plan", "item"}
        except TemplateSyntaxError as error:
            return [
                UserError(f"{where}, line {error.lineno}: {error.message}", mend="Correct it at this place.")
            ]
        if unknown:
            mend = "A prompt has `plan` (the step) and `item` (the item's fields)."
            return [UserError(f"{where} uses {', '.join(sorted(unknown))}, which it is not given", mend=mend)]
    if where.endswith(PLUGIN) and "export default" not in text:
        mend = "Write `export default class … { static info = {…}; trial(display, trial) {…} }`."
        return [UserError(f"{where} exports no plugin", mend=mend)]
    return []


def _declaration_faults(name: str, where: str, given: Any) -> list[UserError]:
    faults = []

    def wrong(at: str, problem: str, mend: str) -> None:
        faults.append(UserError(f"{where}: {at}: {problem}", mend=mend))

    parameters, fields = given["parameters"], given["fields"]
    if given["type"] != name:
        wrong("type", f"{given['type']!r} is in the folder {name!r}", "Give both the same name.")
    for key, parameter in parameters.items():
        if key in ("only", "name", STYLE):
            wrong(f"parameters.{key}", "this setting of steps has another meaning", "Choose another name.")
        if key == "show" and parameter["type"] != "fields":
            wrong(
                "parameters.show", f"its type is {parameter['type']!r}", "`show` names fields: type fields."
            )
        try:
            Draft202012Validator.check_schema(parameter.get("rule", {}))
        except SchemaError as error:
            wrong(f"parameters.{key}.rule", error.message, "Write keywords of JSON Schema, such as minimum.")
        if "default" in parameter and not _is_default(parameter):
            wrong(
                f"parameters.{key}.default",
                f"{parameter['default']!r} is no {parameter['type']}",
                "Give a value that study.yaml could have.",
            )
    for key, entry in given["plan"].items():
        if key in COMPUTED:
            wrong(f"plan.{key}", "wrods uses this name itself", "Choose another name.")
        if entry["from"] not in parameters:
            wrong(
                f"plan.{key}.from",
                f"{entry['from']!r} is no parameter",
                f"{did_you_mean(entry['from'], parameters)}Parameters: {', '.join(parameters) or 'none'}.",
            )
    response = given["response"]
    if response is not None and (response not in fields or fields[response].get("many")):
        wrong(
            "response",
            f"{response!r} is no field with a single value",
            f"{did_you_mean(response, fields)}Name one of: {', '.join(fields)}; or null for a step without an answer.",
        )
    if response is None and given.get("scorer") is not None:
        wrong("scorer", "the step takes no answer that could be scored", "Name the field under `response`.")
    for key in fields:
        if f"{name}_{key}" in trial_columns():
            wrong(f"fields.{key}", f"the column {name}_{key} has another meaning", "Choose another name.")
    numbers = [key for key, entry in given["plan"].items() if entry["type"] in ("number", "integer")]
    for key, distribution in given.get("simulated", {}).items():
        if key not in fields:
            wrong(
                f"simulated.{key}",
                "no such field",
                f"{did_you_mean(key, fields)}Fields: {', '.join(fields)}.",
            )
            continue
        if ("times" in distribution) != bool(fields[key].get("many")):
            wrong(
                f"simulated.{key}",
                "`times` and `many` go together",
                "Give `times` for a list of values, and only for a list.",
            )
        if "answer_or" in distribution and key != response:
            wrong(
                f"simulated.{key}.answer_or", "it is not the answer", "Use one_of, or make it the response."
            )
        drawn = distribution.get("one_of", distribution.get("answer_or"))
        kind = fields[key]["type"]
        if drawn is None and kind not in ("number", "integer"):
            wrong(f"simulated.{key}", f"a {kind} is no number", "Use one_of or, for the answer, answer_or.")
        for value in drawn or ():
            if not _is_of_type(kind, value):
                wrong(f"simulated.{key}", f"{json.dumps(value)} is no {kind}", f"List values of type {kind}.")
        wanted = [distribution["times"]] if "times" in distribution else []
        wanted += [] if drawn is not None else next(v for k, v in distribution.items() if k != "times")
        for value in wanted:
            if isinstance(value, str) and value not in numbers:
                wrong(
                    f"simulated.{key}",
                    f"{value!r} is no number of the plan",
                    f"{did_you_mean(value, numbers)}Numbers of the plan: {', '.join(numbers) or 'none'}.",
                )
    return faults


def _is_default(parameter: Mapping[str, Any]) -> bool:
    given, kind = parameter["default"], parameter["type"]
    if kind == "choice":
        return given in parameter["values"]
    if kind == "flag":
        return isinstance(given, bool)
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if kind in ("count", "number"):
        return is_number and (kind == "number" or given == int(given))
    return isinstance(given, str)


def _made(given: Mapping[str, Any], files: Mapping[str, str]) -> OwnType:
    return OwnType(
        name=given["type"],
        about=given["about"],
        version=given["version"],
        parameters={
            key: StepParameter(**{**value, "values": tuple(value.get("values", ()))})
            for key, value in given["parameters"].items()
        },
        plan={
            key: PlanEntry(**{"setting" if word == "from" else word: part for word, part in entry.items()})
            for key, entry in given["plan"].items()
        },
        fields={},
        response=None if given["response"] is None else OWN_TYPE,
        lasts=(),
        seconds=given["seconds"],
        chance=given.get("chance"),
        parser=None,
        scorer=given.get("scorer"),
        simulated="",
        recorded={
            key: RecordedField(**{**value, "values": tuple(value.get("values", ()))})
            for key, value in given["fields"].items()
        },
        answer_field=given["response"],
        files=dict(files),
        distributions=given.get("simulated", {}),
    )


NOT_GIVEN = frozenset({"step", "answer_field", "scorer", "seconds", "for_models"})
"""Entries of a planned step that are wrods' own."""


def given_of(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a planned step that the lab's code gets."""
    return {name: value for name, value in step.items() if name not in NOT_GIVEN}


def record_faults(fields: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> dict[str, str]:
    """Return what is wrong with recorded fields, by name: unknown ones, missing ones, and values against their declaration.

    ``fields``: as a plan has them (:meth:`OwnType.in_plan`).
    """
    faults = {
        name: f"{name} is not declared; {did_you_mean(name, fields)}declared: {', '.join(fields)}"
        for name in given
        if name not in fields
    }
    for name, rule in fields.items():
        value = given.get(name)
        problem = None
        if value is None:
            problem = None if rule["nullable"] else "is missing"
        elif rule.get("many"):
            parts = value if isinstance(value, list) else None
            wrong = "is no list" if parts is None else None
            problem = wrong or next(filter(None, (_value_fault(rule, part) for part in parts or ())), None)
        else:
            problem = _value_fault(rule, value)
        if problem is not None:
            faults[name] = f"{name} {problem}"
    return faults


def _is_of_type(kind: str, value: object) -> bool:
    if kind in ("string", "boolean"):
        return isinstance(value, str if kind == "string" else bool)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and (kind == "number" or value == int(value))  # type: ignore[call-overload]


def _value_fault(rule: Mapping[str, Any], value: object) -> str | None:
    kind = rule["type"]
    shown = json.dumps(value, ensure_ascii=False)[:60]
    if not _is_of_type(kind, value):
        return f"is {shown}, not {'an' if kind == 'integer' else 'a'} {kind}"
    if rule.get("values") and value not in rule["values"]:
        return f"is {shown}, none of {', '.join(rule['values'])}"
    low, high = rule.get("minimum"), rule.get("maximum")
    if low is not None and value < low:
        return f"is {shown}, below {low:g}"
    if high is not None and value > high:
        return f"is {shown}, above {high:g}"
    return None


def answer_of(step: Mapping[str, Any], recorded: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the answer in what a planned step recorded, as text; None if it takes none."""
    name = step["answer_field"]
    return None if name is None else answer_text(recorded.get(step["type"], {}).get(name))


def answer_text(value: object) -> str | None:
    """Return a field's value as the text of an answer; None if there is none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def simulate_record(
    declared: OwnType, step: Mapping[str, Any], answer: str | None, right: bool, draw: Random
) -> dict[str, Any]:
    """Return the fields that a simulated reader records for a step; null where the declaration says nothing.

    ``right``: whether this reader knows the item's answer.
    """
    made: dict[str, Any] = dict.fromkeys(declared.recorded)
    for name, distribution in declared.distributions.items():
        number = max(0, round(_number(distribution.get("times", 1), step)))
        rule = declared.recorded[name]
        values = [_drawn(distribution, rule, step, answer, right, draw) for _ in range(number)]
        made[name] = values if rule.many else values[0]
    return made


def _number(given: float | str, step: Mapping[str, Any]) -> float:
    return float(step[given] or 0) if isinstance(given, str) else float(given)


def _drawn(
    distribution: Mapping[str, Any],
    rule: RecordedField,
    step: Mapping[str, Any],
    answer: str | None,
    right: bool,
    draw: Random,
) -> Any:
    if "one_of" in distribution:
        return draw.choice(distribution["one_of"])
    if "answer_or" in distribution:
        others = [value for value in distribution["answer_or"] if answer_text(value) != answer]
        if (right or not others) and answer is not None:
            return _as_type(answer, rule.type)
        return draw.choice(others or distribution["answer_or"])
    kind = next(kind for kind in ("normal", "lognormal", "uniform") if kind in distribution)
    first, second = (_number(given, step) for given in distribution[kind])
    if kind == "uniform":
        value = draw.uniform(first, second)
    else:
        value = draw.gauss(first, second) if kind == "normal" else first * math.exp(draw.gauss(0, second))
    value = max(value, -math.inf if rule.minimum is None else rule.minimum)
    value = min(value, math.inf if rule.maximum is None else rule.maximum)
    return round(value) if rule.type == "integer" else value


def _as_type(answer: str, kind: str) -> Any:
    try:
        return answer if kind == "string" else json.loads(answer)
    except ValueError:
        return answer
