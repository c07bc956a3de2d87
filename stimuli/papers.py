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
    """A factor that a material's items have by themselves, as those of H-TEST have their task; the design cannot scramble them.

    Parameters
    ----------
    name : str
        Name of the factor.
    about : str
        What messages call the items, such as ``H-TEST``.
    levels : str
        Function that returns the levels, the reference first: from a study to a tuple of names.
    controls : mapping
        What the levels of one more factor may do to an item, each with its description; the first leaves the item as it is.
    advice : str
        What to do in place of an operation that is none of these.
    check : str
        Function that checks a study with the material: from a study and :class:`experiment.study.yaml_source.Faults`, which collects
        the errors, to nothing.
    session_settings : sequence of str
        Settings that levels between sessions may have in addition to ``texts``.
    language : str
        Function that returns the language of the items, from a study; without one it is the study's.
    by_answer : bool
        Whether lists also balance conditions within the items of each correct answer.
    differs : bool
        Whether the levels differ in covariates by definition, so that the audit does not compare these.
    """

    name: str
    about: str
    levels: str
    controls: Mapping[str, str] = field(default_factory=dict)
    advice: str = ""
    check: str = ""
    session_settings: Sequence[str] = ()
    language: str = ""
    by_answer: bool = False
    differs: bool = False


@dataclass(frozen=True)
class Paper:
    """A paper's folder and the functions in it, each as ``module:name`` below the paper's package.

    Parameters
    ----------
    name : str
        Name in commands, such as ``h-test``.
    package : str
        ``__name__`` of the package. In its folder, each folder in ``templates`` is a template of ``wrods new``; ``prompts.json`` has
        the prompts by name; ``materials.json`` has the JSON Schema of each keyword of ``materials``.
    materials : mapping
        Functions that make a study's items, by keyword under ``materials`` in ``study.yaml``: from a study to
        :class:`experiment.building.material_context.Made`.
    own_factors : mapping
        Factors that the items of materials have by themselves (:class:`OwnFactor`), by keyword of ``materials``.
    practice : mapping
        Functions that make practice items of a rule, by keyword of ``materials``: from a study, the settings of the screen, and the
        name of the item set to a list of items.
    prompt : str
        Function that names the prompt of a task (:class:`experiment.models.prompts.prompter.PromptedTask`); None if there is none.
    parsers : mapping
        Functions that score a reply, by the name that ``wrods score --parser`` takes: from a planned trial and a raw reply to
        :class:`experiment.scoring.published.Score`. The names of the prompts begin with that of their parser.
    reply_form : str
        Function that writes a correct answer in the form that the parser reads: from a planned trial and the answer to a text.
    compared : str
        Function that returns the part of an answer to embed: from a planned trial and the answer to a text.
    judged : str
        Function that reads the label from a judge's reply; None if there is none. The name of the judge's prompt ends in ``_judge``.
    verdicts : str
        Function that returns further tables of an export: from a study and a connection to a list of
        :class:`experiment.exporting.tables.ExportTable`.
    released : str
        Function that reads the paper's released outputs for ``wrods import --from``: from a study, its store (or None), and a folder
        to :class:`experiment.models.imports.writing.Import`. ``released.yaml`` is the study that is made for them.
    checks : mapping
        Functions that check a study which has a key, by this key of ``study.yaml``: from a study to nothing. They raise
        :class:`stimuli.errors.UserError`.
    chapters : mapping
        Functions that write chapters of a report, by name: from :class:`analysis.report.blocks.Material` to
        :class:`analysis.report.blocks.Chapter`, or None if the chapter does not apply.
    answers : str
        Function that answers the paper's questions of a study that planned no analysis: from :class:`analysis.tables.Tables` to
        questions, each with its answer, as markup; none if they do not apply.
    figure_tables : mapping
        Patterns of the names of tables that have a figure's numbers, by a pattern of the figure's name; without one, the names are
        the same.
    reproduction : str
        Function that recomputes the paper's tables from its released outputs, for ``wrods reproduce``: from the arguments of
        :func:`analysis.reproductions.reproduce_paper` without the paper to
        :class:`analysis.reproductions.Reproduction`.
    together : str
        Module with a function ``together``, which returns tables and figures of several studies for ``wrods reproduce``, and the
        head of their page, ``ABOUT``.
    """

    name: str
    package: str
    materials: Mapping[str, str] = field(default_factory=dict)
    own_factors: Mapping[str, OwnFactor] = field(default_factory=dict)
    practice: Mapping[str, str] = field(default_factory=dict)
    prompt: str = ""
    parsers: Mapping[str, str] = field(default_factory=dict)
    reply_form: str = ""
    compared: str = ""
    judged: str = ""
    verdicts: str = ""
    released: str = ""
    checks: Mapping[str, str] = field(default_factory=dict)
    chapters: Mapping[str, str] = field(default_factory=dict)
    answers: str = ""
    figure_tables: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reproduction: str = ""
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
