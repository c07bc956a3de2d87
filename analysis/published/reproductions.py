"""Papers whose tables can be made again from what they released, and what a page about one holds.

A further paper is a module with a function ``reproduce(folder, readings, told, data) -> Reproduction`` and a line in :data:`PAPERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from stimuli.errors import unknown_name

PAPERS = {"scrambled-bench": ".scrambled_bench_faults"}
"""Module of this package by the name that a user gives."""

Reading = Callable[[str, Sequence[str]], str]
"""From a raw reply and the options (none where a text is asked for) to what is read from it; empty where nothing is."""


@dataclass(frozen=True)
class PublishedTable:
    """A table laid out as in the paper."""

    number: str
    caption: str
    cells: pd.DataFrame  # text, as printed; the index names the rows


@dataclass(frozen=True)
class Fault:
    """A fault of the published scoring and what it is worth."""

    name: str  # letters, digits and underscores; the CSV's name
    title: str
    about: str  # what the code or paper does, what is mended, and how much it changes, in sentences
    price: pd.DataFrame  # numbers; the index names the rows
    decimals: int = 2


@dataclass(frozen=True)
class Reproduction:
    """What a page shows."""

    paper: str  # ``source`` says what the outputs are and how many
    citation: str
    source: str
    tables: tuple[PublishedTable, ...]
    cells: pd.DataFrame
    faults: tuple[Fault, ...]
    lacking: tuple[str, ...] = ()  # what is not made again, and why

    @property
    def unexplained(self) -> int:
        """How many cells differ from print that are not known to."""
        return int((~self.cells["same"] & ~self.cells["known"]).sum())


def reproduce_paper(
    paper: str,
    folder: Path,
    readings: Mapping[str, Reading],
    told: Callable[[str], None] = lambda _: None,
    data: Mapping[str, Path] = MappingProxyType({}),
) -> Reproduction:
    """Make a paper's tables again and price its faults."""
    if paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    module: Any = import_module(PAPERS[paper], __package__)
    made: Reproduction = module.reproduce(folder, readings, told, data)
    return made
