"""Every command in README and docs is run, except blocks that say why not; help texts in docs are the real ones."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests import write_consent_table, write_drills_page
from tests.experiment.people.drills import rows
from tests.naming import missing_commands, missing_settings, missing_tests
from tests.write_command_page import PAGE

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
BLOCK = re.compile(
    r"(<!-- not run: (?P<why>[^>]+) -->\n+)?```(?P<kind>sh|console)\n(?P<body>.*?)```", re.DOTALL
)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)]*)?\)")


def commands(document: Path) -> list[str]:
    return [m["body"] for m in BLOCK.finditer(document.read_text("utf-8")) if not m["why"]]


TOGETHER = ("README.md", "study.md", "measures.md")
"""Pages that make the same study; a command that one page has run is not run again for the next."""
LONG = {"README.md", "analyse.md", "mixed-inference.md", "power.md"}
"""Pages whose commands take more than some ten seconds: whole demos, reports, simulations."""
FEWER = (
    (re.compile(r"--readers \d+"), "--readers 6"),
    (re.compile(r"--studies \d+"), "--studies 10"),
    (re.compile(r"\bpositions\b"), "my-study"),
    (re.compile(r"(?m) +# .*$"), ""),
)
"""Replacements that make commands quicker or alike without changing what they show."""


def script_of(*documents: Path) -> str:
    """Return the commands of pages, on few readers; no `wrods` command twice."""
    text = "\n".join(block for one in documents for block in commands(one))
    for pattern, fewer in FEWER:
        text = pattern.sub(fewer, text)
    lines: list[str] = []
    for line in text.splitlines():
        if line not in lines or not line.startswith("wrods "):
            lines.append(line)
    return "\n".join(("set -euo pipefail", *lines))


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param(pages, marks=[pytest.mark.full] if pages[0].name in LONG else [], id=pages[0].name)
        for pages in (
            [ROOT / "README.md", *(ROOT / "docs" / name for name in TOGETHER[1:])],
            *([one] for one in DOCUMENTS if one.name not in TOGETHER and commands(one)),
        )
    ],
)
def test_every_command_of_a_page_runs(documents: list[Path], tmp_path: Path) -> None:
    script = script_of(*documents)
    bin_folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "MPLBACKEND": "Agg"}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"


def test_links_inside_the_project_lead_somewhere() -> None:
    links = [(page, m[1]) for page in DOCUMENTS for m in LINK.finditer(CODE.sub("", page.read_text("utf-8")))]
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []


IMPORT = re.compile(
    r"(?m)^ *from (?P<module>(?:stimuli|experiment|analysis|wrods)[\w.]*) import (?P<names>[\w, ]+)$"
)


def test_what_examples_import_from_wrods_is_there() -> None:
    wanted = [
        (m["module"], name.split(" as ")[0].strip())
        for page in DOCUMENTS
        for m in IMPORT.finditer(page.read_text("utf-8"))
        for name in m["names"].split(",")
    ]
    assert [one for one in wanted if not hasattr(importlib.import_module(one[0]), one[1])] == []


def test_the_readme_leads_to_every_page() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    pages = [page.relative_to(ROOT).as_posix() for page in DOCUMENTS[1:]]
    assert [page for page in pages if f"({page})" not in readme] == []


def test_the_citation_file_gives_the_version_that_is_installed() -> None:
    cited = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = {"cff-version", "message", "title", "authors"}
    assert required <= cited.keys() and cited["cff-version"] == "1.2.0"
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])


def test_the_page_of_commands_shows_the_real_help_texts() -> None:
    # in a process of its own: click keeps the help option of a command as it was first asked for
    real = subprocess.run(
        [
            sys.executable,
            "-c",
            "from tests.write_command_page import command_page; print(command_page(), end='')",
        ],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=True,
        env=os.environ | {"PYTHONUTF8": "1"},
    ).stdout
    assert PAGE.read_text("utf-8") == real, "run: python -m tests.write_command_page"


def test_the_page_of_drills_is_made_from_the_rows_that_the_drills_are_held_against() -> None:
    made = write_drills_page.drills_page()
    assert write_drills_page.PAGE.read_text("utf-8") == made, "run: python -m tests.write_drills_page"
    assert missing_tests("\n".join(row["test"] for row in rows())) == []


def test_the_page_for_ethics_boards_names_tests_commands_and_settings_that_exist() -> None:
    page = write_consent_table.PAGE.read_text("utf-8")
    assert missing_tests(page) == missing_commands(page) == missing_settings(page) == []
    rows = [line for line in page.partition("## The consent form")[0].splitlines() if line.startswith("| ")]
    answers = [line for line in rows if not line.startswith(("| question", "| ---"))]
    assert answers and [line for line in answers if "](../tests/" not in line] == []
    assert page == write_consent_table.with_consent_table(page), "run: python -m tests.write_consent_table"


def test_what_a_page_names_and_is_not_there_is_found() -> None:
    here = "tests/test_docs.py"
    named = [f"{here}::test_what_a_page_names_and_is_not_there_is_found", f"{here}::test_nothing"]
    named += ["tests/test_nothing.py", f"{here}::test_links_inside_the_project_lead_somewhere[nowhere]"]
    assert missing_tests(" ".join(named)) == named[1:]
    assert missing_tests(f"[`test_nothing`](../{here})") == [f"{here}::test_nothing"]
    commands = ["wrods freeze S --verify", "wrods user totp NAME", "wrods frieze S", "wrods freeze S --never"]
    assert missing_commands("".join(f"`{one}`, " for one in commands)) == commands[2:]
    assert missing_settings("`participants.wanted` `participants.privacy.name`") == [
        "participants.privacy.name"
    ]
