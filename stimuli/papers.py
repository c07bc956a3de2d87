"""Papers: each is a folder with what belongs to it alone, from recipe to chapter; four are ours, packages add others.

A package names its papers under the entry point ``wrods.papers``. A paper says where its parts are, and each part is imported
when it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from stimuli.entry_points import added
from stimuli.errors import UserError

OURS = ("h_test", "mind_scramble", "scrambled_bench", "letter_position")
HOME = f"{__name__.removesuffix('stimuli.papers')}experiment.papers"
"""Where our own papers are: found by name as those of other packages are, so that making items imports no experiment."""


@dataclass(frozen=True)
class Paper:
    """A paper's folder and where its parts are in it.

    Parameters
    ----------
    name : str
        As commands take it, such as ``h-test``.
    package : str
        ``__name__`` of the package that is the folder. Each folder in its ``templates`` is a template of ``wrods new``.
    """

    name: str
    package: str

    @property
    def folder(self) -> Path:
        """The folder of the paper."""
        return Path(str(import_module(self.package).__file__)).parent

    def part(self, place: str) -> Any:
        """Import what ``module:name`` names in the paper's package."""
        module, _, name = place.partition(":")
        return getattr(import_module(f".{module}", self.package), name)


@cache
def papers() -> Mapping[str, Paper]:
    """Return all papers by name: ours, then those that installed packages add."""
    found: dict[str, Paper] = {}
    ours = (("wrods", import_module(f"{HOME}.{name}").PAPER) for name in OURS)
    for where, paper in (*ours, *added("wrods.papers", Paper)):
        if paper.name in found:
            raise UserError(f"{where} adds a paper {paper.name!r}, and there is one of this name")
        found[paper.name] = paper
    return found
