"""Keeps of a report what may be kept where a data set states no licence: figures and numbers, no string and no single trial."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import pandas as pd

TEXT_FILES = (".html", ".csv", ".svg", ".json", ".R", ".tex", ".bib")
KEPT = ("report.html", "numbers.json", "models.R", "references.bib", "tables")
"""Of a report's folder; the page holds the figures. Rows of models, trials, the study's tables and other formats are left out."""
PROSE = frozenset({"beside", "editor", "logical", "marginal", "memory", "parent", "refusal", "relative"})
"""Words that people judged and that reports, references and R programs use in small letters; the data have them in capitals."""


def number_items(folder: Path) -> dict[str, str]:
    """Give items numbers in place of names, in all tables of a handover.

    Parameters
    ----------
    folder : Path
        With ``trials.parquet`` and ``items.parquet``; both are written anew.

    Returns
    -------
    dict
        Name to number (``item 01``), in the alphabetical order of names.
    """
    items = pd.read_parquet(folder / "items.parquet")
    names = sorted(set(items["item_id"]))
    numbers = {name: f"item {place:02}" for place, name in enumerate(names, 1)}
    for table in ("items", "trials"):
        file = folder / f"{table}.parquet"
        rows = pd.read_parquet(file)
        rows["item_id"] = rows["item_id"].map(numbers)
        rows.to_parquet(file)
    return numbers


def keep(report: Path, folder: Path) -> None:
    """Copy what is kept of a report's folder to another, which is emptied first."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for name in KEPT:
        if (report / name).is_dir():
            shutil.copytree(report / name, folder / name)
        else:
            shutil.copy(report / name, folder / name)


def strings_in(folder: Path, strings: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Yield each file with each of the strings that stands in it as a word, capitals aside but for words of prose."""
    wanted = {one.lower() for one in strings}
    for path in sorted(folder.rglob("*")):
        if path.suffix in TEXT_FILES:
            there = set(re.findall(r"[A-Za-z]+", path.read_text("utf-8")))
            for word in sorted(there):
                if word.lower() in wanted and not (word.lower() in PROSE and not word.isupper()):
                    yield path, word
