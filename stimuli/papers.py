"""Papers: each is a folder with what belongs to it alone, from recipe to chapter; five are ours, packages add others.

A package names its papers under the entry point ``wrods.papers``. A paper says where its parts are, and each part is imported
when it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from stimuli.entry_points import added
from stimuli.errors import UserError

OURS = ("h_test", "mind_scramble", "scrambled_bench", "letter_position", "inside")
HOME = f"{__name__.removesuffix('stimuli.papers')}experiment.papers"
"""Where our own papers are: found by name as those of other packages are, so that making items imports no experiment."""


@dataclass(frozen=True)
class Paper:
    """A paper's folder, and where in it its functions are: ``module:name``, below the paper's package.

    Parameters
    ----------
    name : str
        As commands take it, such as ``h-test``.
    package : str
        ``__name__`` of the package. In its folder, ``templates`` holds a template of ``wrods new`` in each folder, ``prompts.json``
        the prompts by name, ``materials.json`` the JSON Schema of what ``study.yaml`` says under each keyword of ``materials``.
    materials : mapping
        Functions that make the items, by keyword: of a study, :class:`experiment.building.material_context.Made`.
    practice : str
        Function that makes practice items of a rule: of a study, the settings of the screen, and the name of the item set.
    prompt : str
        Function that names the prompt of a task (:class:`experiment.models.prompts.published.PromptedTask`); None if it has none.
    parsers : mapping
        The paper's parsers and scorers, by the name that ``wrods score --parser`` takes, which begins the names of its prompts: of a
        planned trial and a raw reply, :class:`experiment.scoring.scores.Score`.
    reply_form : str
        Function that writes a right answer as the paper's parser reads one: of a planned trial and the answer.
    compared : str
        Function that takes out of an answer the text that is compared by its vector: of a planned trial and the answer.
    judged : str
        Function that reads the label from the reply of a judge, whose prompt has a name in ``_judge``.
    verdicts : str
        Function that gives tables of an export beside trials: of a study and a connection.
    released : str
        Function that reads the paper's released outputs for ``wrods import --from``; ``released.yaml`` is the study of them.
    chapters : mapping
        Functions that write chapters of a report, by name: of :class:`analysis.report.blocks.Material`,
        :class:`analysis.report.blocks.Chapter` or None where the chapter does not apply.
    figure_tables : mapping
        Patterns of the names of tables that hold a figure's numbers, by a pattern of the figure's name; elsewhere the names are equal.
    reproduction : str
        Function that makes the paper's tables again from its released outputs, for ``wrods reproduce``.
    together : str
        Module whose ``together`` lays out tables of several studies, for ``wrods reproduce``; its ``ABOUT`` is the head of the page.
    """

    name: str
    package: str
    materials: Mapping[str, str] = field(default_factory=dict)
    practice: str = ""
    prompt: str = ""
    parsers: Mapping[str, str] = field(default_factory=dict)
    reply_form: str = ""
    compared: str = ""
    judged: str = ""
    verdicts: str = ""
    released: str = ""
    chapters: Mapping[str, str] = field(default_factory=dict)
    figure_tables: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reproduction: str = ""
    together: str = ""

    @property
    def folder(self) -> Path:
        """The folder of the paper."""
        return Path(str(import_module(self.package).__file__)).parent

    def data(self, file: str) -> Mapping[str, Any]:
        """Return what a JSON file of the folder holds; nothing where it is not there."""
        path = self.folder / file
        return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}

    def part(self, place: str) -> Any:
        """Import what ``module:name`` names in the paper's package."""
        module, _, name = place.partition(":")
        wanted = f"{self.package}.{module}"
        try:
            return getattr(import_module(wanted), name)
        except ModuleNotFoundError as error:
            if error.name != wanted:
                raise
            told = f"there is no module {wanted}"
        except AttributeError as error:
            if getattr(error, "name", None) != name:
                raise
            told = f"module {wanted} has no function {name!r}"
        raise UserError(
            f"paper {self.name!r} names {place!r}, but {told}",
            mend=f"Correct the place in the Paper of {self.package}: module:function, with the name of the module below the package.",
        )


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


def material_keywords() -> Mapping[str, Paper]:
    """Return the keywords under ``materials`` that papers add, each with its paper."""
    return {keyword: paper for paper in papers().values() for keyword in paper.materials}
