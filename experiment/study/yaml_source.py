"""Reads YAML with a line number for every value and without converting words; collects the errors of a study.

ruamel composes the nodes; the values are resolved here: only ``true``/``false``, ``null``/``~``, decimal integers without
leading zeros and plain decimal numbers are not text. ``yes``, ``no``, ``on``, ``007``, ``1:30`` and dates stay text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from analysis.plan import PlanFault
from stimuli.errors import UserError, error_at, together
from stimuli.papers import own_factors

INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)$")
NUMBER = re.compile(
    r"[-+]?(0|[1-9][0-9]*)?\.[0-9]+([eE][-+]?[0-9]+)?$|[-+]?(0|[1-9][0-9]*)(\.[0-9]*)?[eE][-+]?[0-9]+$"
)
CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}

KeyPath = tuple[str | int, ...]

PLACE = re.compile(r"(.+?), line ([0-9]+)")
CONSEQUENCES = (PlanFault, LookupError, TypeError, ValueError, AttributeError, AssertionError, StopIteration)
"""Errors of a check that meets a setting which another check has found wrong."""


@dataclass(frozen=True)
class YamlSource:
    """A parsed YAML file: plain data, and the line (from 1) of each value or key."""

    file: Path
    data: Any
    lines: dict[KeyPath, int]

    def line(self, path: KeyPath) -> int:
        """Return the line of a value, or of its nearest parent that has one."""
        while path not in self.lines:
            if not path:
                return 1
            path = path[:-1]
        return self.lines[path]

    def place(self, path: KeyPath) -> str:
        """Return ``study.yaml, line 31: materials.scramble.rate``."""
        dotted = ""
        for part in path:
            dotted += f"[{part + 1}]" if isinstance(part, int) else (f".{part}" if dotted else part)
        where = f"{self.file.name}, line {self.line(path)}"
        return f"{where}: {dotted}" if dotted else where


def read_yaml(
    file: Path, *, as_text: bool = False, begin: str = "Start from `wrods new DIR --from your-own`."
) -> YamlSource:
    """Return one YAML document.

    ``as_text``: whether numbers, ``true`` and ``false`` stay text, as written; ``null`` is None either way.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(
            f"{file} does not exist", mend="Name the study's folder, or make one with `wrods new`."
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"{file.name} is not UTF-8 (byte {error.start})", mend="Save it as UTF-8 in your editor."
        ) from None
    return parse_yaml(text, file, as_text=as_text, begin=begin)


def parse_yaml(
    text: str, file: Path, *, as_text: bool = False, begin: str = "Write its settings."
) -> YamlSource:
    """Return one YAML document from its text; see :func:`read_yaml`."""
    try:
        root = YAML(pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        if "\t" in text:
            hint = "Indent with spaces, not tabs."
        elif error.problem == "mapping values are not allowed here":
            hint = 'Put a text that holds a colon into quotes (title: "Reading: a study"), or check the indentation.'
        else:
            hint = "Check indentation, colons and quotes near that line."
        raise UserError(
            f"{file.name}, line {line}: not readable as YAML ({error.problem})", mend=hint
        ) from None
    except YAMLError as error:
        raise UserError(f"{file.name}: not readable as YAML ({error})") from None
    if root is None:
        raise UserError(f"{file.name} is empty", mend=begin)
    lines: dict[KeyPath, int] = {}
    data = _construct(root, (), lines, file, as_text=as_text)
    return YamlSource(file, data, lines)


def _construct(node: Node, path: KeyPath, lines: dict[KeyPath, int], file: Path, *, as_text: bool) -> Any:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                raise UserError(f"{file.name}, line {key_node.start_mark.line + 1}: a key must be a word")
            key = str(key_node.value)
            line = key_node.start_mark.line + 1
            if key in mapping:
                raise UserError(
                    f"{file.name}, line {line}: {key!r} is given twice (first on line {lines[(*path, key)]})",
                    mend="Keep one of the two.",
                )
            lines[(*path, key)] = line
            mapping[key] = _construct(value_node, (*path, key), lines, file, as_text=as_text)
        return mapping
    if isinstance(node, SequenceNode):
        return [
            _construct(child, (*path, i), lines, file, as_text=as_text) for i, child in enumerate(node.value)
        ]
    return _scalar(node, as_text=as_text)


def _scalar(node: ScalarNode, *, as_text: bool) -> Any:
    text = str(node.value)
    if node.style is not None:
        return text
    if text.lower() in CONSTANTS and text in (text.lower(), text.capitalize(), text.upper()):
        constant = CONSTANTS[text.lower()]
        return constant if constant is None or not as_text else text
    if as_text:
        return text
    if INTEGER.match(text):
        return int(text)
    if NUMBER.match(text):
        return float(text)
    return text


def factor_settings() -> tuple[KeyPath, ...]:
    """Return the settings that determine the factors and their levels."""
    return (("design", "factors"), ("design", "between"), *(("materials", name) for name in own_factors()))


@dataclass
class Faults:
    """The errors found so far.

    ``broken``: settings that violate the schema; checks that read them are skipped.
    """

    found: list[UserError] = field(default_factory=list)
    broken: list[KeyPath] = field(default_factory=list)

    def check(self, check: Callable[..., object], *given: object, reads: Iterable[KeyPath] = ()) -> bool:
        """Run a check and store the error that it raises; return whether it ran and found none."""
        if not self.is_sound(*reads):
            return False
        before = len(self.found)
        try:
            check(*given)
        except UserError as fault:
            self.found.append(fault)
        except CONSEQUENCES:
            if not self.found:
                raise
            return False
        return len(self.found) == before

    def is_sound(self, *paths: KeyPath) -> bool:
        """Return whether settings conform to the schema."""
        return not any(_overlap(broken_path, path) for broken_path in self.broken for path in paths)

    def add(self, place: Callable[..., str], path: KeyPath, plan_faults: Iterable[PlanFault]) -> None:
        """Add errors of a plan, or of exclusion rules, at a path of the study."""
        self.found.extend(error_at(place(*path, *fault.at), *fault.args) for fault in plan_faults)

    def report(self) -> None:
        """Raise one UserError that lists every error once, in the order of files and lines, if there are any."""
        faults = list({str(fault): fault for fault in sorted(self.found, key=_place)}.values())
        if faults:
            raise together(faults, most=len(faults))


def _overlap(path: KeyPath, other: KeyPath) -> bool:
    shorter = min(len(path), len(other))
    return path[:shorter] == other[:shorter]


def _place(fault: UserError) -> tuple[bool, str, int]:
    """Return the sort key of an error: study.yaml first, then other files by name."""
    match = PLACE.match(fault.message)
    if match is None:
        return True, "", 0
    return match[1] != "study.yaml", match[1], int(match[2])
