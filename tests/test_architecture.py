"""The house's rules: arrows go one way, rooms stay small, heavy imports stay behind their doors."""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stimuli.papers import papers
from tests.naming import missing_modules

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("stimuli", "experiment", "analysis")
MAY_IMPORT = {"stimuli": set(), "experiment": {"stimuli"}, "analysis": {"stimuli"}}
NEVER_IN = {
    "stimuli": {"flask", "sqlalchemy", "torch", "openai", "statsmodels"},
    "analysis": {"flask", "sqlalchemy", "torch", "openai", "transformers"},
    "experiment": {"statsmodels"},
}
KAPPA = "statsmodels.stats.inter_rater"
"""The agreement of raters, which the dashboard shows."""
MOST_LINES = 900
PLAN = "analysis.plan"
"""The grammar of plans, which experiment may import as well."""


def modules(package: str) -> Iterator[Path]:
    yield from sorted((ROOT / package).rglob("*.py"))


@functools.cache
def statements(file: Path) -> tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]:
    """Return each import of a file and whether it stands at module level; a file is read once."""
    tree = ast.parse(file.read_text("utf-8"))
    top = set(map(id, tree.body))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return tuple((node, id(node) in top) for node in nodes)


def imported(file: Path) -> Iterator[tuple[str, ast.stmt, bool]]:
    """Yield each absolute import's name, its node and whether it stands at module level."""
    for node, at_top in statements(file):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node, at_top
        elif node.module and node.level == 0:
            yield node.module, node, at_top


PAPERS = ROOT / "experiment" / "papers"


def is_chapter(file: Path) -> bool:
    """Whether a module belongs to the chapters of a paper, which analysis finds by name."""
    return file.is_relative_to(PAPERS) and file.relative_to(PAPERS).parts[1:2] in (
        ("chapter",),
        ("chapters",),
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_one_way(package: str) -> None:
    wrong = []
    for file in modules(package):
        for name, node, at_top in imported(file):
            other = name.split(".")[0]
            if other not in PACKAGES or other == package or other in MAY_IMPORT[package]:
                continue
            in_command = file.parent == ROOT / "experiment" / "cli" and other == "analysis" and not at_top
            if name != PLAN and not in_command and not is_chapter(file):
                wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_chapters_of_papers_import_nothing_of_experiment_but_each_other() -> None:
    named = {
        f"experiment.{file.relative_to(ROOT / 'experiment').with_suffix('').as_posix().replace('/', '.')}"
        for file in modules("experiment")
        if is_chapter(file)
    }
    chapters = named | {name.removesuffix(".__init__") for name in named}
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno} imports {name}"
        for file in filter(is_chapter, modules("experiment"))
        for name, node, _ in imported(file)
        if name.split(".")[0] in NEVER_IN["analysis"]
        or (name.startswith("experiment.") and name not in chapters)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_paper_names_parts_that_are_there() -> None:
    for paper in papers().values():
        places = [paper.prompt, paper.reply_form, paper.compared, paper.judged, paper.verdicts]
        places += [paper.released, paper.reproduction]
        for parts in (paper.materials, paper.practice, paper.parsers, paper.checks, paper.chapters):
            places += parts.values()
        for own in paper.own_factors.values():
            places += [own.levels, own.check, own.language]
        assert set(paper.own_factors) <= set(paper.materials), paper.name
        if paper.together:
            places.append(f"{paper.together}:together")
        assert all(callable(paper.part(place)) for place in places if place), paper.name
        assert set(paper.data("materials.json")) == set(paper.materials), paper.name


def loaded_by(code: str) -> set[str]:
    """Return the modules that a new process has imported after some code."""
    code = f"import json, sys\n{code}\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_a_list_of_papers_imports_none_of_their_parts() -> None:
    loaded = loaded_by("from stimuli.papers import papers\npapers()")
    parts = [name for name in loaded if name.startswith("experiment.papers.") and name.count(".") > 2]
    assert not parts and "numpy" not in loaded


def test_plans_are_read_with_the_standard_library_alone() -> None:
    loaded = {name for name in loaded_by("import analysis.plan") if name.startswith("analysis.")}
    assert [name for name in loaded if not name.startswith("analysis.plan")] == []
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno} imports {name}"
        for file in (ROOT / "analysis" / "plan").rglob("*.py")
        for name, node, _ in imported(file)
        if not f"{name}.".startswith(f"{PLAN}.") and name.split(".")[0] not in sys.stdlib_module_names
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_do_not_import_what_is_not_theirs(package: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno} imports {name}"
        for file in modules(package)
        for name, node, _ in imported(file)
        if name.split(".")[0] in NEVER_IN[package] and name != KAPPA
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


@pytest.mark.parametrize("package", PACKAGES)
def test_no_string_names_a_package_to_import(package: str) -> None:
    """Where wrods is installed, its packages have other names (``wrods/_parts.py``): write ``__package__``."""
    named = re.compile(r"(?:files|PackageLoader|import_module)\(f?[\"'](?:stimuli|experiment|analysis)\b")
    wrong = [
        str(file.relative_to(ROOT)) for file in modules(package) if named.search(file.read_text("utf-8"))
    ]
    assert not wrong, wrong


def test_no_file_is_longer_than_a_reader_holds_in_mind() -> None:
    files = [*(f for p in PACKAGES for f in modules(p)), *sorted((ROOT / "static" / "src").rglob("*.ts"))]
    long = {
        str(f.relative_to(ROOT)): n
        for f in files
        if (n := len(f.read_text("utf-8").splitlines())) > MOST_LINES
    }
    assert not long, long


def test_the_command_line_and_its_help_need_no_heavy_imports() -> None:
    loaded = loaded_by(
        "import click\nfrom experiment.cli import main\ncontext = click.Context(main)\n"
        "for name in main.list_commands(context):\n"
        "    command = main.get_command(context, name)\n"
        "    command.get_help(click.Context(command))"
    )
    assert not loaded & {"torch", "transformers", "pandas", "scipy", "flask", "matplotlib", "sqlalchemy"}


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


def modules_by_name(package: str) -> dict[str, Path]:
    """Return every module of a package under its full name."""
    found = {}
    for file in modules(package):
        names = file.relative_to(ROOT).with_suffix("").parts
        found[".".join(names[:-1] if names[-1] == "__init__" else names)] = file
    return found


def module_arrows(package: str) -> dict[str, dict[str, str]]:
    """Return which module imports which: at module level, inside functions, or for types; with one place for each."""
    files = modules_by_name(package)
    found: dict[str, dict[str, str]] = {module: {} for module in files}
    for module, file in files.items():
        home = module if file.name == "__init__.py" else module.rpartition(".")[0]
        for node, _ in statements(file):
            if isinstance(node, ast.ImportFrom):
                above = home.split(".")[: len(home.split(".")) - node.level + 1] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                named = [f"{base}.{alias.name}" for alias in node.names]
                others = [name if name in files else base for name in named]
            else:
                others = [alias.name for alias in node.names]
            for other in others:
                if other in files and other != module:
                    found[module][other] = f"{file.relative_to(ROOT)}:{node.lineno}"
    return found


def arrows(package: str, home: Callable[[str], str]) -> dict[str, dict[str, str]]:
    """Return which home of modules imports which, with one place for each."""
    found: dict[str, dict[str, str]] = {}
    for module, others in module_arrows(package).items():
        for other, place in others.items():
            if home(other) != home(module):
                found.setdefault(home(module), {})[home(other)] = place
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


def told(graph: dict[str, dict[str, str]], circle: list[str]) -> str:
    """Say of a circle where each of its arrows stands."""
    return "\n".join(
        f"{one} → {other}: {graph[one][other]}"
        for one, other in zip(circle, [*circle[1:], *circle[:1]], strict=True)
    )


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_the_pages_for_newcomers_name_modules_that_exist(page: str) -> None:
    assert missing_modules((ROOT / page).read_text("utf-8")) == []


def test_a_module_that_a_page_names_and_is_not_there_is_found() -> None:
    there = "`analysis/tables.py:load` `experiment/store` `static/src/procedure/payload.ts:trialPayload`"
    gone = ["analysis/tables.py:unload", "experiment/shop.py", "stimuli/recipes/none.py"]
    assert missing_modules(there + "".join(f"`{name}`" for name in gone)) == gone
    picture = """subgraph E["experiment/: data"]
    one["store/, lists.py<br>text"] --> two[("shop/")]
  end"""
    assert missing_modules(f"  {picture}\n") == ["experiment/shop/"]


AS_ONE = ("experiment.people", "analysis.report")
"""Rooms whose folders import each other still: each counts as one."""


def folder_of(module: str, files: dict[str, Path]) -> str:
    """Return the folder in which a module lies; a module right under a package stands for itself."""
    if one := next((room for room in AS_ONE if f"{module}.".startswith(f"{room}.")), None):
        return one
    above = module.rpartition(".")[0]
    return module if files[module].name == "__init__.py" or above in PACKAGES else above


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("of", ["modules", "folders", "parts"])
def test_nothing_imports_each_other_in_a_circle(package: str, of: str) -> None:
    """Also not inside functions or for types, which only hides a circle from Python."""
    files = modules_by_name(package)
    home = {"modules": str, "folders": lambda module: folder_of(module, files), "parts": part_of}[of]
    graph = arrows(package, home)
    circle = circle_in(graph)
    assert not circle, told(graph, circle)


STAGES = {
    "formula": "formula variables",
    "matrices": "families responses blocks elimination matrices",
    "deviance": "deviance objective",
    "optimiser": "optimise",
}
"""The stages of ``analysis.mixed`` in their order; every module that is named under none draws conclusions."""


def stage_of(module: str) -> int:
    """Return the place of a module of ``analysis.mixed`` among the stages."""
    name = module.rpartition(".")[2]
    return next((i for i, names in enumerate(STAGES.values()) if name in names.split()), len(STAGES))


def test_the_mixed_model_package_goes_from_formula_to_inference() -> None:
    """formula → matrices → deviance → optimiser → inference: no stage knows of a later one."""
    graph = module_arrows("analysis")
    names = {name for stage in STAGES.values() for name in stage.split()}
    assert {f"analysis.mixed.{name}" for name in names} <= set(graph), "a stage names a module that is gone"
    wrong = [
        f"{module} imports {other}: {place}"
        for module, others in graph.items()
        for other, place in others.items()
        if module.startswith("analysis.mixed.") and other.startswith("analysis.mixed.")
        if stage_of(module) < stage_of(other)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_circle_of_imports_is_found() -> None:
    assert circle_in({"a": {"b": ""}, "b": {"c": "", "d": ""}, "d": {"b": ""}}) == ["b", "d"]
    assert circle_in({"a": {"b": "", "c": ""}, "b": {"c": ""}}) == []
    assert "experiment.study" in arrows("experiment", part_of)["experiment.checking"]
    assert "analysis.mixed.formula" in module_arrows("analysis")["analysis.mixed.matrices"]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_queue_is_waited_for_that_may_never_answer(package: str) -> None:
    """``SimpleQueue.get(timeout=…)`` may wait for ever on a loaded machine (Python 3.11): ``Queue`` does not."""
    users = [
        file.relative_to(ROOT) for file in modules(package) if "queue.SimpleQueue" in file.read_text("utf-8")
    ]
    assert not users
