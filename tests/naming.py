"""What documentation names: tests, commands and settings, and whether they exist."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import click

from experiment.cli import main

ROOT = Path(__file__).resolve().parent.parent
NAMED = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+)(?:\[([^\]]*)\])?)?")
LINKED = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")
CODE = re.compile(r"`([^`\n]+)`")
MODULE = re.compile(r"((?:analysis|experiment|static|stimuli|tests|wrods)/[\w./-]*)(?::(\w+))?")
PICTURED = re.compile(r"""subgraph .*?\["([\w/]+/): .*?$(.*?)^  end$""", re.MULTILINE | re.DOTALL)


@cache
def tests_of(file: Path) -> dict[str, str]:
    """Return the tests of a file by name, each with its source and that of its decorators."""
    text = file.read_text("utf-8")
    found = {}
    for one in ast.parse(text).body:
        if isinstance(one, ast.FunctionDef) and one.name.startswith("test_"):
            parts = (ast.get_source_segment(text, part) or "" for part in (*one.decorator_list, one))
            found[one.name] = "\n".join(parts)
    return found


def missing_tests(text: str) -> list[str]:
    """Return the tests and test files that a text names or links to and that are not there."""
    found = []
    for match in NAMED.finditer(LINKED.sub(r"\2::\1", text)):
        file, name, case = match.groups()
        is_there = (ROOT / file).is_file() and (name is None or name in tests_of(ROOT / file))
        if is_there and case is not None:
            is_there = all(part in tests_of(ROOT / file)[name] for part in case.split("-"))
        if not is_there:
            found.append(match[0])
    return found


def missing_modules(text: str) -> list[str]:
    """Return the files, folders and functions (``folder/file.py:name``) in a text or its Mermaid pictures that are not there."""
    named = [code for code in CODE.findall(text) if MODULE.fullmatch(code)]
    for folder, nodes in PICTURED.findall(text):
        labels = " ".join(re.findall(r"""["'](.*?)["']""", nodes))
        named += [folder + name for name in re.findall(r"\w[\w/]*(?:/(?!\w)|\.py\b)", labels)]
    return [name for name in named if not _is_module(name)]


def _is_module(name: str) -> bool:
    path, _, function = name.partition(":")
    if not function:
        return (ROOT / path).exists()
    file = ROOT / path
    defined = rf"^\s*(?:export )?(?:async )?(?:def|class|function) {function}\b"
    return file.is_file() and re.search(defined, file.read_text("utf-8"), re.MULTILINE) is not None


def missing_commands(text: str) -> list[str]:
    """Return the `wrods …` commands in a text that name a command or an option that is not there."""
    return [code for code in CODE.findall(text) if code.startswith("wrods ") and not _is_command(code)]


def _is_command(code: str) -> bool:
    command: click.Command = main
    known: set[str] = set()
    for word in code.split()[1:]:
        if word.startswith("-"):
            if word not in known:
                return False
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return False
            command, known = found, {name for one in found.params for name in one.opts}
    return command is not main


def missing_settings(text: str) -> list[str]:
    """Return the settings of participants in a text, such as ``participants.wanted``, that study.yaml does not have."""
    schema = json.loads((ROOT / "experiment/study/study.schema.json").read_text("utf-8"))
    found = []
    for code in CODE.findall(text):
        if re.fullmatch(r"participants(\.\w+)+", code):
            place: dict[str, Any] = schema
            for name in code.split("."):
                place = place.get("properties", {}).get(name, {})
            if not place:
                found.append(code)
    return found
