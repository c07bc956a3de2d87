"""Tests that documentation names: whether they exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMED = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+)(?:\[([^\]]*)\])?)?")


@cache
def tests_of(file: Path) -> dict[str, str]:
    """Return the tests of a file by name, each with its source and that of its decorators."""
    text = file.read_text("utf-8")
    return {
        one.name: "\n".join(
            filter(None, (ast.get_source_segment(text, part) for part in (*one.decorator_list, one)))
        )
        for one in ast.parse(text).body
        if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")
    }


def missing_tests(text: str) -> list[str]:
    """Return the tests and test files that a text names and that are not there."""
    found = []
    for match in NAMED.finditer(text):
        file, name, case = match.groups()
        is_there = (ROOT / file).is_file() and (name is None or name in tests_of(ROOT / file))
        if is_there and case is not None:
            is_there = all(part in tests_of(ROOT / file)[name] for part in case.split("-"))
        if not is_there:
            found.append(match[0])
    return found
