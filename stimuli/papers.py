"""Papers: each is a folder with all that belongs to it alone, from recipe to chapter; five are ours, and packages add others.

A package names its papers under the entry point ``wrods.papers``. A paper names its parts, and each part is imported when it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from stimuli.entry_points import registry
from stimuli.errors import UserError

OURS = ("h_test", "mind_scramble", "scrambled_bench", "letter_position", "inside")
HOME = f"{__name__.removesuffix('stimuli.papers')}experiment.papers"
"""The package of wrods' papers, found by name as those of other packages are: ``stimuli`` imports no ``experiment``."""


@dataclass(frozen=True)
class OwnFactor:
    """A factor that a material's items have by themselves, as those of H-TEST have their task; the design cannot scramble them."""

    name: str
    about: str  # what messages call the items, such as ``H-TEST``
    levels: str  # from a study to a tuple of names, the reference first
    # what the levels of one more factor may do to an item, each with its description; the first leaves the item as it is
    controls: Mapping[str, str] = field(default_factory=dict)
    advice: str = ""  # what to do in place of an operation that is none of these
    check: str = ""  # from a study and :class:`experiment.study.yaml_source.Faults`, which collects the errors, to nothing
    session_settings: Sequence[str] = ()  # that levels between sessions may have in addition to ``texts``
    language: str = ""  # from a study to the language of the items; without one it is the study's
    by_answer: bool = False  # lists also balance conditions within the items of each correct answer
    differs: bool = (
        False  # the levels differ in covariates by definition, so that the audit does not compare these
    )


@dataclass(frozen=True)
class Paper:
    """A paper's folder and the functions in it, each as ``module:name`` below the paper's package.

    In the folder, each folder in ``templates`` is a template of ``wrods new``; ``prompts.json`` has the prompts by name, which begin
    with that of their parser; ``materials.json`` has the JSON Schema of each keyword of ``materials``.
    """

    name: str  # in commands, such as ``h-test``
    package: str  # its ``__name__``
    # by keyword under ``materials`` in ``study.yaml``: from a study to :class:`experiment.building.material_context.Made`
    materials: Mapping[str, str] = field(default_factory=dict)
    own_factors: Mapping[str, OwnFactor] = field(default_factory=dict)  # by keyword of ``materials``
    # of a rule, by keyword of ``materials``: from a study, the settings of the screen and the name of the set to a list of items
    practice: Mapping[str, str] = field(default_factory=dict)
    prompt: str = (
        ""  # from :class:`experiment.models.prompts.prompter.PromptedTask` to the name of its prompt, or None
    )
    # by the name that ``wrods score --parser`` takes: from a trial and a raw reply to :class:`experiment.scoring.published.Score`
    parsers: Mapping[str, str] = field(default_factory=dict)
    reply_form: str = ""  # from a planned trial and the correct answer to the text that the parser reads
    compared: str = ""  # from a planned trial and the answer to the part of it to embed
    judged: str = (
        ""  # from a judge's reply to the label, or None; the name of the judge's prompt ends in ``_judge``
    )
    # further tables of an export: from a study and a connection to a list of :class:`experiment.exporting.tables.ExportTable`
    verdicts: str = ""
    # outputs for ``wrods import --from``: from a study, its store (or None) and a folder to
    # :class:`experiment.models.imports.writing.Import`; ``released.yaml`` is the study that is made for them
    released: str = ""
    checks: Mapping[str, str] = field(
        default_factory=dict
    )  # by key of ``study.yaml``: raise UserError for a wrong study
    # by name: from :class:`analysis.report.blocks.Material` to :class:`analysis.report.blocks.Chapter`, or None if it does not apply
    chapters: Mapping[str, str] = field(default_factory=dict)
    # of a study without planned analyses: from :class:`analysis.tables.Tables` to questions, each with its answer, as markup
    answers: str = ""
    # patterns of the names of tables that have a figure's numbers, by a pattern of its name; without one, the names are the same
    figure_tables: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # of the paper's tables from its released outputs, for ``wrods reproduce``: from the arguments of
    # :func:`analysis.reproductions.reproduce_paper` without the paper to :class:`analysis.reproductions.Reproduction`
    reproduction: str = ""
    # a module with ``together``, which returns exhibits of several studies for ``wrods reproduce``, and their page's ``ABOUT``
    together: str = ""

    @property
    def folder(self) -> Path:
        """The folder of the paper."""
        return Path(str(import_module(self.package).__file__)).parent

    def data(self, file: str) -> Mapping[str, Any]:
        """Return the contents of a JSON file of the folder; nothing if there is no such file."""
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
            problem = f"there is no module {wanted}"
        except AttributeError as error:
            if getattr(error, "name", None) != name:
                raise
            problem = f"module {wanted} has no function {name!r}"
        raise UserError(
            f"paper {self.name!r} names {place!r}, but {problem}",
            mend=f"Correct the place in the Paper of {self.package}: module:function, with the name of the module below the package.",
        )


@cache
def papers() -> Mapping[str, Paper]:
    """Return all papers by name: ours, then those that installed packages add."""
    ours: list[Paper] = [import_module(f"{HOME}.{name}").PAPER for name in OURS]
    return registry(ours, "wrods.papers", Paper)


def material_keywords() -> Mapping[str, Paper]:
    """Return the keywords under ``materials`` that papers add, each with its paper."""
    return {keyword: paper for paper in papers().values() for keyword in paper.materials}


def own_factors() -> Mapping[str, tuple[Paper, OwnFactor]]:
    """Return the factors that items of materials have by themselves, by keyword under ``materials``, each with its paper."""
    return {name: (paper, own) for paper in papers().values() for name, own in paper.own_factors.items()}
