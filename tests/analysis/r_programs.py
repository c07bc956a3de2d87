"""Runs R programs, for tests that hold our numbers against R's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any


def lines_of_r(program: str, folder: Path) -> list[str]:
    """Run a program in a folder and return what it prints."""
    (folder / "program.R").write_text(program, "utf-8")
    done = subprocess.run(
        ["Rscript", "program.R"], cwd=folder, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def told_by_r(program: str, folder: Path) -> list[Any]:
    """Run a program and return the values that it prints as JSON, each on a line that begins so."""
    return [json.loads(line[5:]) for line in lines_of_r(program, folder) if line.startswith("JSON ")]


def run_models(report: Path, *asked: object) -> tuple[int, list[str]]:
    """Run a report's program as it lies in its folder; return its status and what it prints."""
    done = subprocess.run(
        ["Rscript", "models.R", *map(str, asked)],
        cwd=report, capture_output=True, text=True, timeout=550, check=False,
    )  # fmt: skip
    assert "Execution halted" not in done.stderr, done.stderr[-3000:]
    return done.returncode, done.stdout.splitlines()
