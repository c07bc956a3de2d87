"""A study to run with models, a server to ask, and what the store holds afterwards: what the tests of runs share."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiment.building import build_study
from experiment.checking import load_study
from experiment.cli.new import copy_template
from experiment.models.journal import Spending, spending
from experiment.store import open_store, records
from tests.experiment.commands import wrods as invoke
from tests.scripted_openai import ScriptedOpenAI

ROOT = Path(__file__).resolve().parents[3]
TRIALS = 96
"""24 sentences on 4 lists, one prompt variant."""
HELD_S = 60.0
"""A server's delay that holds a run up for as long as a test looks at it."""

BLOCK = """  - block:
      trial:                      # one trial, two screens, one row
        - read: {show: sentence, as: whole}
        - choose: {show: question, keys: {"Yes": j, "No": f}, time_limit: 10 s}
      break_every: 12
"""
PRICE = "price: {input: 10, output: 10}"


@pytest.fixture
def study(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The letter-position study with one prompt variant, built; in as many blocks as the test's module says in ``BLOCKS``."""
    return study_in(tmp_path / "positions", getattr(request.module, "BLOCKS", 1))


@pytest.fixture
def named(study: Path, server: ScriptedOpenAI) -> Path:
    """The study with a model ``m`` of the scripted server, at temperature 0."""
    with_models(study, remote("m", server, "temperature: 0, price: free"))
    return study


@pytest.fixture
def server() -> Iterator[ScriptedOpenAI]:
    """A server that answers A to what says that it is odd, B to what is even, and Yes to all else."""

    def said(body: dict[str, Any]) -> str:
        trial = re.search(r"trial \d+ is (odd|even)", json.dumps(body))
        return "Yes" if trial is None else {"odd": "A", "even": "B"}[trial[1]]

    with ScriptedOpenAI(answer=said) as running:
        yield running


def study_in(folder: Path, blocks: int = 1) -> Path:
    """Write the letter-position study with one prompt variant and without a plan into a folder, and build it.

    A study with a plan is asked where it is registered (``test_registering``). It is built once in a process, and copied.
    """
    shutil.copytree(Path(_built(folder.name, blocks).name) / folder.name, folder)
    return folder


@functools.cache
def _built(name: str, blocks: int) -> tempfile.TemporaryDirectory[str]:
    """Return a folder that lives as long as the process and holds the built study under its name."""
    place = tempfile.TemporaryDirectory(prefix="wrods-built-")
    folder = Path(place.name) / name
    copy_template("letter-position", folder)
    text = (folder / "study.yaml").read_text("utf-8")
    edit(folder, text[text.index("  planned:") :], "")
    edit(folder, "prompt_variants: 5", "prompt_variants: 1")
    if blocks > 1:
        edit(folder, BLOCK, BLOCK.replace("      break_every: 12\n", "") * blocks)
    build_study(load_study(folder))
    return place


def edit(folder: Path, before: str, after: str) -> None:
    """Change the study's text."""
    file = folder / "study.yaml"
    text = file.read_text("utf-8")
    assert before in text
    file.write_text(text.replace(before, after), "utf-8")


def with_models(folder: Path, *models: str, budget: str | None = None, more: str = "") -> None:
    """Name the study's models, its budget and other lines about them."""
    edit(folder, '    guesser: {use: "baseline:random"}', "\n".join(f"    {one}" for one in models))
    lines = [*([] if budget is None else [f"budget: {budget}"]), *more.splitlines()]
    if lines:
        said = "".join(f"  {line}\n" for line in lines)
        edit(folder, "  prompt_variants: 1\n", f"  prompt_variants: 1\n{said}")


def remote(name: str, server: ScriptedOpenAI, more: str = PRICE) -> str:
    """Return a line that names a model of the scripted server, without cache and probe."""
    return f'{name}: {{use: "openai:{name}", base_url: "{server.url}", concurrency: 4, cache: false, probe: false, {more}}}'


def command(*arguments: str | Path) -> list[str]:
    """Return ``wrods`` and its arguments as a process of its own takes them."""
    return [sys.executable, "-m", "experiment.cli", *map(str, arguments)]


def begin(*arguments: str | Path) -> subprocess.Popen[str]:
    """Begin ``wrods`` in a process of its own."""
    return subprocess.Popen(
        command(*arguments), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def stored(target: Path | str) -> list[dict[str, Any]]:
    """Return the trials of a store with their scores."""
    return of_store(target, records.trials_with_scores)


def of_store(target: Path | str, read: Any, *arguments: Any) -> list[Any]:
    """Return what a query, or a function of a connection, gives."""
    with open_store(target) as store, store.read() as connection:
        if callable(read):
            return list(read(connection, *arguments))
        return list(connection.execute(read).mappings())


def status_of(folder: Path) -> dict[str, Any]:
    """Return what ``wrods status`` tells."""
    return dict(json.loads(invoke("status", folder, "--json").stdout))


def money(folder: Path) -> Spending:
    """Return what a study has spent."""
    with open_store(folder) as store, store.read() as connection:
        return spending(connection, load_study(folder))


def done(target: Path | str) -> dict[str, Counter[tuple[int, str]]]:
    """Return, by model, how many trials of each list and block are stored."""
    with open_store(target) as store, store.read() as connection:
        sessions = {row["session_id"]: row for row in records.sessions_overview(connection)}
        found: dict[str, Counter[tuple[int, str]]] = {}
        for trial in records.trials_with_scores(connection):
            session = sessions[trial["session_id"]]
            found.setdefault(session["reader"], Counter())[session["list_id"], trial["block"]] += 1
    return found


def spread(target: Path | str, models: int, lists: int = 4) -> int:
    """Return by how many trials the models and lists that are furthest apart differ."""
    found = done(target)
    counts = [0] * lists * (models - len(found))  # a model that did not come to its first trial
    for by_block in found.values():
        counts += [
            sum(n for (number, _), n in by_block.items() if number == one) for one in range(1, lists + 1)
        ]
    return max(counts) - min(counts)
