"""Reads statements about means, effects and spreads: a table of the literature (CSV), and a file by hand.

The table has a row for each value with the columns ``quantity`` (mean, effect, sd or correlation), ``of`` (a reader, or a
component of the variance), ``condition`` (empty for spreads), ``value``, ``unit`` and ``source``; every row says its source.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.power.given import QUANTITIES, Given
from stimuli.errors import UserError, missing_column, unknown_name

COLUMNS = ("quantity", "of", "condition", "value", "unit", "source")
KEYS = ("source", "means", "unit", "effects", "effect_unit", "spreads", "correlations")


def from_table(file: Path) -> list[Given]:
    """Read a table of the literature."""
    try:
        text = file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 text", mend="Save it as CSV in UTF-8.") from error
    rows = csv.DictReader(text.splitlines(), skipinitialspace=True)
    names = list(rows.fieldnames or [])
    for column in COLUMNS:
        if column not in names:
            raise missing_column(str(file), column, names)
    found = []
    for row in rows:
        where = f"{file}, line {rows.line_num}"
        cells = {name: (row.get(name) or "").strip() for name in COLUMNS}
        if not any(cells.values()):
            continue
        if not cells["source"]:
            raise UserError(f"{where}: the value has no source", mend="Say author, year, and table or page.")
        found.append(
            Given(
                cells["quantity"],
                cells["of"],
                cells["condition"],
                number(cells["value"], where),
                cells["unit"],
                cells["source"],
                where,
            )
        )
    if not found:
        raise UserError(f"{file} has no values", mend=f"Its columns are {', '.join(COLUMNS)}.")
    return found


def number(text: str, where: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{where}: {text!r} is no number", mend="Write it with a point: 92.5.") from None


def from_mapping(told: Mapping[str, Any], where: str) -> list[Given]:
    """Read what a YAML file by hand holds."""
    for key in told:
        if key not in KEYS:
            raise unknown_name(f"{where}: key", str(key), KEYS)
    source = str(told.get("source", ""))
    found = []
    for key, quantity, unit in (("means", "mean", "unit"), ("effects", "effect", "effect_unit")):
        for reader, levels in _mapping(told.get(key), f"{where}: {key}").items():
            for level, value in _mapping(levels, f"{where}: {key}.{reader}").items():
                place = f"{where}: {key}.{reader}.{level}"
                said = str(told.get(unit) or "")
                found.append(Given(quantity, reader, level, number(str(value), place), said, source, place))
    for key, quantity in (("spreads", "sd"), ("correlations", "correlation")):
        for component, value in _mapping(told.get(key), f"{where}: {key}").items():
            place = f"{where}: {key}.{component}"
            found.append(Given(quantity, component, "", number(str(value), place), "", source, place))
    if not found:
        raise UserError(f"{where} has no values", mend="Give means, by reader and condition.")
    return found


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UserError(f"{where} is {value!r}", mend="Write a mapping: {intact: 95, initial: 88}.")
    return {str(key): one for key, one in value.items()}


def from_option(quantity: str, text: str) -> Given:
    """Read an option: ``human:intact=95``, ``human:initial=-7points``, ``participant=0.7``."""
    assert quantity in QUANTITIES
    where = f"--{quantity} {text}"
    name, sign, value = text.partition("=")
    of, colon, level = name.partition(":")
    with_level = quantity in ("mean", "effect")
    if not sign or not of.strip() or bool(colon and level.strip()) != with_level:
        form = "READER:CONDITION=VALUE" if with_level else "COMPONENT=VALUE"
        example = f"--{quantity} human:intact=95" if with_level else f"--{quantity} participant=0.7"
        raise UserError(f"{where} is not of the form {form}", mend=f"For example {example}.")
    digits = value.strip().rstrip("abcdefghijklmnopqrstuvwxyz_% ")
    unit = value.strip()[len(digits) :].strip()
    unit = "percent" if unit == "%" else unit
    return Given(quantity, of.strip(), level.strip(), number(digits, where), unit, "by hand", where)
