"""Writes the front end's types and the page of trial types from the declarations: ``python -m experiment.trials.generate``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from experiment.trials import (
    TYPES,
    Field,
    PlanEntry,
    StepParameter,
    TrialType,
    exposure_fields,
    recorded_fields,
    trial_type,
)

ROOT = Path(__file__).resolve().parents[2]
TYPESCRIPT = Path("static/src/generated/trials.ts")
PAGE = Path("docs/trials.md")

# type of a declaration -> type of TypeScript, type of a jsPsych parameter
IN_TYPESCRIPT = {
    "string": ("string", "STRING"),
    "key": ("string", "KEY"),
    "number": ("number", "FLOAT"),
    "integer": ("number", "INT"),
    "boolean": ("boolean", "BOOL"),
    "key_strokes": ("[ms: number, key: string][]", "COMPLEX"),
}
IN_WORDS = {
    "text": "text",
    "fields": "a field, or a list of fields",
    "duration": "a time such as `500 ms` or `10 s`",
    "count": "a whole number",
    "number": "a number",
    "names": "`[name, …]`",
    "flag": "`true` or `false`",
    "keys": "`{Label: key, …}` or `[key, …]`",
}


def typescript() -> str:
    """Return the TypeScript types of plan steps, plugin parameters and recorded data."""
    declared = [trial_type(name) for name in TYPES]
    blocks = [
        "/** Trial types. Made by `python -m experiment.trials.generate` from experiment/trials/; not edited by hand. */",
        'import { ParameterType } from "jspsych";',
        *(_step(kind) for kind in declared),
        f"export type Step = {' | '.join(_name(kind, 'Step') for kind in declared)};",
        _record("ExposureRecord", "What every step records while its stimulus is up.", exposure_fields()),
        *(
            _record(
                _name(kind, "Record"), f"What a step of {kind.name} records.", kind.fields, "ExposureRecord"
            )
            for kind in declared
        ),
        f"export type StepRecord = {' | '.join(_name(kind, 'Record') for kind in declared)};",
        _trial_record(),
        _constant("exposureFields", "What every plugin records.", _data(exposure_fields())),
        *(block for kind in declared for block in _info(kind)),
    ]
    return "\n\n".join(blocks) + "\n"


def page() -> str:
    """Return the Markdown page of all trial types."""
    parts = [
        "# Trial types",
        "Generated from `experiment/trials/` by `python -m experiment.trials.generate`; do not edit by hand.\n\n"
        "A trial has one or more steps under `block: trial:` of the study file; the last one asks. Any step can be "
        "restricted to some trials with `only` ([study.md](study.md#steps-in-some-trials-only)). Times are milliseconds of the page's "
        "clock.",
    ]
    for name in TYPES:
        parts += _section(trial_type(name))
    parts += [
        "## Recorded by every step",
        "Frames and times without attention are summed over a trial's steps; the other fields are those of the last step.",
        _fields_table(exposure_fields()),
    ]
    return "\n\n".join(parts) + "\n"


def write(root: Path = ROOT) -> list[Path]:
    """Write both files under the root of a checkout; return their paths."""
    written = []
    for place, text in ((TYPESCRIPT, typescript()), (PAGE, page())):
        file = root / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8"))
        written.append(file)
    return written


def _name(declared: TrialType, kind: str) -> str:
    return f"{declared.name.capitalize()}{kind}"


def _comment(prose: str, indent: str = "  ") -> str:
    return f"{indent}/** {_sentence(prose)} */"


def _sentence(prose: str) -> str:
    begins_with_a_name = "_" in prose.split()[0]
    text = prose if begins_with_a_name else prose[0].upper() + prose[1:]
    return text if text.endswith((".", "…")) else f"{text}."


def _prose(field: Field) -> str:
    return field.prose if field.unit is None else f"{field.prose}, {field.unit}"


def _value(kind: str, *, many: bool = False, nullable: bool) -> str:
    name = IN_TYPESCRIPT[kind][0] + ("[]" if many else "")
    return f"{name} | null" if nullable else name


def _alias(name: str, about: str, lines: Iterator[str], base: str | None = None) -> str:
    opening = f"export type {name} = {f'{base} & ' if base else ''}{{"
    return "\n".join([_comment(about, ""), opening, *lines, "};"])


def _step(declared: TrialType) -> str:
    def lines() -> Iterator[str]:
        yield f'  step: "{declared.name}";'
        for name, entry in declared.plan.items():
            yield _comment(entry.prose)
            yield f"  {name}: {_value(entry.type, many=entry.many, nullable=entry.nullable)};"

    return _alias(_name(declared, "Step"), declared.about, lines())


def _record(name: str, about: str, fields: Mapping[str, Field], base: str | None = None) -> str:
    def lines() -> Iterator[str]:
        for key, field in fields.items():
            yield _comment(_prose(field))
            yield f"  {key}: {_value(field.type, nullable=field.nullable)};"

    return _alias(name, about, lines(), base)


def _trial_record() -> str:
    def lines() -> Iterator[str]:
        for key, field in recorded_fields().items():
            if key not in exposure_fields():
                yield f"  {key}: {_value(field.type, nullable=True)};"

    about = "The recorded fields of a trial's row; null where its steps record no such thing."
    return _alias("TrialRecord", about, lines(), "ExposureRecord")


def _info(declared: TrialType) -> Iterator[str]:
    parameters: list[str] = []
    for name, entry in declared.plan.items():
        if entry.on_screen:
            parameters += [_comment(entry.prose), f"  {name}: {_parameter(entry)},"]
    yield _constant(f"{declared.name}Parameters", f"What wrods-{declared.name} is given.", parameters)
    data = ["  ...exposureFields,", *_data(declared.fields)]
    yield _constant(f"{declared.name}Fields", f"What wrods-{declared.name} records.", data)


def _data(fields: Mapping[str, Field]) -> list[str]:
    lines = []
    for name, field in fields.items():
        kind = IN_TYPESCRIPT[field.type][1]
        many = ", array: true" if field.type == "key_strokes" else ""
        lines += [_comment(_prose(field)), f"  {name}: {{ type: ParameterType.{kind}{many} }},"]
    return lines


def _constant(name: str, about: str, lines: list[str]) -> str:
    return "\n".join([_comment(about, ""), f"export const {name} = <const>{{", *lines, "};"])


def _parameter(entry: PlanEntry) -> str:
    if entry.default is not None:
        default = json.dumps(entry.default)
    elif entry.nullable:
        default = "[]" if entry.many else "null"
    else:
        default = "undefined"
    many = "array: true, " if entry.many else ""
    return f"{{ type: ParameterType.{IN_TYPESCRIPT[entry.type][1]}, {many}default: {default} }}"


def _section(declared: TrialType) -> Iterator[str]:
    yield f"## {declared.name}"
    yield declared.about
    yield _table(
        ("parameter", "values", "default", "meaning"),
        [
            (f"`{name}`", _takes(parameter), _default(parameter), parameter.prose)
            for name, parameter in declared.parameters.items()
        ],
    )
    yield "In the session plan:"
    yield _table(
        ("entry", "type", "meaning"),
        [
            (f"`{name}`", _value(entry.type, many=entry.many, nullable=entry.nullable), entry.prose)
            for name, entry in declared.plan.items()
        ],
    )
    if declared.fields:
        yield "Recorded, in addition to what every step records:"
        yield _fields_table(declared.fields)
    properties = {
        "Chance": declared.chance,
        "Parser": declared.parser and f"`{declared.parser}`",
        "Scorer": declared.scorer and f"`{declared.scorer}`",
        "Simulated readers": declared.simulated,
    }
    yield "\n".join(f"- {name}: {value}" for name, value in properties.items() if value)


def _fields_table(fields: Mapping[str, Field]) -> str:
    return _table(
        ("field", "type", "unit", "meaning"),
        [
            (
                f"`{name}`",
                field.type.replace("_", " "),
                field.unit or "",
                field.prose if field.in_table else f"{field.prose} (in the store, not in the trials table)",
            )
            for name, field in fields.items()
        ],
    )


def _takes(parameter: StepParameter) -> str:
    return ", ".join(f"`{value}`" for value in parameter.values) or IN_WORDS[parameter.type]


def _default(parameter: StepParameter) -> str:
    if parameter.required:
        return "required"
    if parameter.default is None:
        return "none"
    return f"`{json.dumps(parameter.default) if isinstance(parameter.default, bool) else parameter.default}`"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    if not (ROOT / "static" / "src").is_dir():
        sys.exit("This writes into a checkout of the project, and here is none.")
    for made in write():
        print(made.relative_to(ROOT))
