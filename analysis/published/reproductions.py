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
    """A table laid out as in the paper.

    Attributes
    ----------
    number, caption : str
    cells : pandas.DataFrame
        Text, as printed; the index names the rows.
    """

    number: str
    caption: str
    cells: pd.DataFrame


@dataclass(frozen=True)
class Fault:
    """A fault of the published scoring and what it is worth.

    Attributes
    ----------
    name : str
        Letters, digits and underscores; the CSV's name.
    title : str
    about : str
        What the code or paper does, what is mended, and how much it changes, in sentences.
    price : pandas.DataFrame
        Numbers; the index names the rows.
    decimals : int
    """

    name: str
    title: str
    about: str
    price: pd.DataFrame
    decimals: int = 2


@dataclass(frozen=True)
class Reproduction:
    """What a page shows.

    Attributes
    ----------
    paper, citation, source : str
        ``source`` says what the outputs are and how many.
    tables : tuple of PublishedTable
    cells : pandas.DataFrame
        Every cell beside the printed one: ``table, model, measure, column, made, printed, same``, and ``known``: whether the
        released outputs are known not to give the printed cell.
    faults : tuple of Fault
    lacking : tuple of str
        What is not made again, and why.
    """

    paper: str
    citation: str
    source: str
    tables: tuple[PublishedTable, ...]
    cells: pd.DataFrame
    faults: tuple[Fault, ...]
    lacking: tuple[str, ...] = ()

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
    """Make a paper's tables again and price its faults.

    Parameters
    ----------
    paper : str
        One of :data:`PAPERS`.
    folder : pathlib.Path
        The released outputs.
    readings : mapping
        wrods' own reading of replies by kind: ``choice`` (a letter), ``text`` (a restored text). They live where sessions are run,
        so the command gives them.
    told : callable
        Called with a line before each slow step.
    data : mapping
        The user's own copies of data sets that tables need beside the outputs, by name (``dream``).

    Raises
    ------
    UserError
        For an unknown paper, or a folder that does not hold its outputs.
    """
    if paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    module: Any = import_module(PAPERS[paper], __package__)
    made: Reproduction = module.reproduce(folder, readings, told, data)
    return made
