"""Fits of simulated studies in a file that only grows: a JSON line each, behind a first line that says to what they belong.

The file is named by the hash of its question, so a changed effect or plan begins another one, while more fits, other sizes,
another level or another bound go on with the same. A line that an interruption cut short is passed over and its fit made again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from analysis.mixed.refits import read_kept
from analysis.power.layouts import Sizes
from analysis.power.simulation import Found, Outcome, Question
from stimuli.errors import UserError

_FOUND = [field.name for field in fields(Found)]


class Kept:
    """The fits of one question.

    Parameters
    ----------
    file : Path
        Made with its folder where there is none.
    question : Question

    Attributes
    ----------
    outcomes : dict of (Sizes, int) to Outcome
        By size and number; the first of equal ones stands.

    Raises
    ------
    UserError
        If the file belongs to another question.
    """

    def __init__(self, file: Path, question: Question) -> None:
        self.file = file
        self.outcomes: dict[tuple[Sizes, int], Outcome] = {}
        first = {"fits of": question.mark(), "question": question.to_json()}
        text = file.read_text("utf-8", errors="replace") if file.exists() else ""
        lines = text.splitlines()
        told = [line for line in map(read_kept, lines) if line is not None]
        if told and told[0].get("fits of") != first["fits of"]:
            raise UserError(
                f"{file} holds fits of another question",
                mend="Name another folder with --out, or delete the file.",
            )
        file.parent.mkdir(parents=True, exist_ok=True)
        if not told:
            self._write(first, new_line=bool(text) and not text.endswith("\n"))
        elif not text.endswith("\n"):
            with file.open("a", encoding="utf-8") as opened:
                opened.write("\n")
        for line in told[1:]:
            self._take(_outcome(line))

    def add(self, outcome: Outcome) -> None:
        """Keep one more."""
        self._write(_line(outcome))
        self._take(outcome)

    def of(self, sizes: Sizes, count: int) -> list[Outcome]:
        """Return the fits 0 to ``count`` - 1 of a size, by number, as far as they are there."""
        found = (self.outcomes.get((sizes, number)) for number in range(count))
        return [one for one in found if one is not None]

    def missing(self, grid: Iterable[Sizes], count: int) -> list[tuple[Sizes, int]]:
        """Return which fits of the sizes are not there yet, in order."""
        return [(sizes, n) for sizes in grid for n in range(count) if (sizes, n) not in self.outcomes]

    def _take(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            self.outcomes.setdefault((outcome.sizes, outcome.number), outcome)

    def _write(self, line: dict[str, Any], *, new_line: bool = False) -> None:
        with self.file.open("a", encoding="utf-8") as opened:
            opened.write(("\n" if new_line else "") + json.dumps(line, ensure_ascii=False) + "\n")


def _line(outcome: Outcome) -> dict[str, Any]:
    line = asdict(outcome)
    line["sizes"] = list(line["sizes"].values())
    line["found"] = [list(asdict(one).values()) for one in outcome.found]
    return line


def _outcome(line: dict[str, Any]) -> Outcome | None:
    """Read a line; None where something else or only a part of a fit stands there."""
    try:
        found = tuple(
            Found(**{**dict(zip(_FOUND, one, strict=True)), "groups": tuple(one[2]), "at": tuple(one[-1])})
            for one in line["found"]
        )
        rest = {name: line[name] for name in ("number", "fitted", "converged", "singular", "steps")}
        return Outcome(sizes=Sizes(*line["sizes"]), found=found, **rest)
    except (KeyError, TypeError, ValueError):
        return None
