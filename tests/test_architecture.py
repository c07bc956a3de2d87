"""The house's rules: arrows go one way, rooms stay small, heavy imports stay behind their doors."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("stimuli", "experiment", "analysis")
MAY_IMPORT = {"stimuli": set(), "experiment": {"stimuli"}, "analysis": {"stimuli"}}
NEVER_IN = {
    "stimuli": {"flask", "sqlalchemy", "torch", "openai", "statsmodels"},
    "analysis": {"flask", "sqlalchemy", "torch", "openai", "transformers"},
    "experiment": {"statsmodels"},
}
MOST_LINES = 500


def modules(package: str) -> Iterator[Path]:
    yield from sorted((ROOT / package).rglob("*.py"))


def imported(file: Path) -> Iterator[tuple[str, ast.stmt, bool]]:
    """Yield each absolute import's name, its node and whether it stands at module level."""
    tree = ast.parse(file.read_text("utf-8"))
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node, id(node) in top
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module, node, id(node) in top


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_one_way(package: str) -> None:
    wrong = []
    for file in modules(package):
        for name, node, at_top in imported(file):
            other = name.split(".")[0]
            if other not in PACKAGES or other == package or other in MAY_IMPORT[package]:
                continue
            in_command = file.parent == ROOT / "experiment" / "cli" and other == "analysis" and not at_top
            if not in_command:
                wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} imports {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_do_not_import_what_is_not_theirs(package: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno} imports {name}"
        for file in modules(package)
        for name, node, _ in imported(file)
        if name.split(".")[0] in NEVER_IN[package]
    ]
    assert not wrong, "\n".join(wrong)


def test_torch_is_imported_only_where_it_is_used() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for package in PACKAGES
        for file in modules(package)
        for name, node, at_top in imported(file)
        if name.split(".")[0] in ("torch", "transformers") and at_top
    ]
    assert not wrong, "import torch inside the function that needs it:\n" + "\n".join(wrong)


def test_no_file_is_longer_than_a_reader_holds_in_mind() -> None:
    files = [*(f for p in PACKAGES for f in modules(p)), *sorted((ROOT / "static" / "src").rglob("*.ts"))]
    long = {
        str(f.relative_to(ROOT)): n
        for f in files
        if (n := len(f.read_text("utf-8").splitlines())) > MOST_LINES
    }
    assert not long, long


def test_the_command_line_starts_without_heavy_imports() -> None:
    code = (
        "import sys, experiment.cli\n"
        "heavy = {'torch', 'transformers', 'pandas', 'scipy', 'flask', 'matplotlib', 'sqlalchemy'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_name_explains_nothing() -> None:
    empty = {"utils", "util", "helpers", "helper", "misc", "common", "manager", "stuff"}
    named = [str(f.relative_to(ROOT)) for p in PACKAGES for f in modules(p) if f.stem in empty]
    assert not named, named


ROOMS_OF = ("experiment.models", "experiment.cli")
"""Parts whose own rooms are parts: arrows between them go one way too."""


def part_of(module: str) -> str:
    """Return the part to which a module belongs: ``experiment.study``, ``experiment.models.planning``."""
    names = module.split(".")
    return ".".join(names[: 3 if ".".join(names[:2]) in ROOMS_OF else 2])


def arrows(package: str) -> dict[str, dict[str, str]]:
    """Return which part imports which, at module level or inside functions, with one place for each."""
    files = {}
    for file in modules(package):
        names = file.relative_to(ROOT).with_suffix("").parts
        files[".".join(names[:-1] if names[-1] == "__init__" else names)] = file
    found: dict[str, dict[str, str]] = {}
    for module, file in files.items():
        tree = ast.parse(file.read_text("utf-8"))
        typing_only = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Import | ast.ImportFrom) or id(node) in typing_only:
                continue
            base = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                full = f"{base}.{alias.name}" if base else alias.name
                other = part_of(full if full in files else base or full)
                if other.split(".")[0] == package and other != part_of(module):
                    found.setdefault(part_of(module), {})[other] = f"{file.relative_to(ROOT)}:{node.lineno}"
    return found


def circle_in(graph: dict[str, dict[str, str]]) -> list[str]:
    """Return the parts of one circle of imports, in order; empty where arrows go one way."""
    done: set[str] = set()

    def walk(part: str, path: list[str]) -> list[str]:
        if part in path:
            return path[path.index(part) :]
        if part in done:
            return []
        for other in graph.get(part, {}):
            if circle := walk(other, [*path, part]):
                return circle
        done.add(part)
        return []

    return next((circle for part in graph if (circle := walk(part, []))), [])


@pytest.mark.parametrize("package", ["experiment", "analysis"])
def test_no_parts_import_each_other_in_a_circle(package: str) -> None:
    """Also not inside functions, which only hides a circle from Python."""
    graph = arrows(package)
    circle = circle_in(graph)
    told = [
        f"{one} → {other}: {graph[one][other]}"
        for one, other in zip(circle, [*circle[1:], *circle[:1]], strict=True)
    ]
    assert not circle, "\n".join(told)


def test_a_circle_of_imports_is_found() -> None:
    assert circle_in({"a": {"b": ""}, "b": {"c": "", "d": ""}, "d": {"b": ""}}) == ["b", "d"]
    assert circle_in({"a": {"b": "", "c": ""}, "b": {"c": ""}}) == []
    assert "experiment.study" in arrows("experiment")["experiment.checking"]
