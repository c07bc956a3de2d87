"""Chapters of a report's supplement, a module each: functions that write a :class:`analysis.report.blocks.Chapter` or nothing.

A chapter that does not apply to a study is left out (no surprisal, no times). Optional ones are written only when asked for
by name: ``wrods report --with cost``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from analysis.report.blocks import Chapter, Material
from analysis.report.chapters import (
    asking,
    companions,
    completions,
    cost,
    fidelity,
    missing,
    model_checks,
    rankings,
    ratios,
    recovered_text,
    regions,
    robustness,
    sensitivity,
)
from stimuli.errors import UserError
from stimuli.papers import papers

Writer = Callable[[Material], Chapter | None]


@dataclass(frozen=True)
class Declared:
    """A chapter that a report may have, by its name as ``wrods report --with`` takes it."""

    name: str
    write: Writer
    is_optional: bool = False  # written only when asked for


def _profiles(material: Material) -> Chapter | None:
    from analysis.report.chapters.condition_profiles import write

    return write(material)


BEFORE_PAPERS = (
    Declared("robustness", robustness.write),
    Declared("model-checks", model_checks.write),
    Declared("regions", regions.write),
    Declared("missing", missing.write),
    Declared("sensitivity", sensitivity.write),
    Declared("recovered-text", recovered_text.write),
    Declared("completions", completions.write),
)
AFTER_PAPERS = (
    Declared("asking", asking.write, is_optional=True),
    Declared("companions", companions.write, is_optional=True),
    Declared("ratios", ratios.write, is_optional=True),
    Declared("cost", cost.write, is_optional=True),
    Declared("fidelity", fidelity.write, is_optional=True),
    Declared("profiles", _profiles, is_optional=True),
    Declared("rankings", rankings.write, is_optional=True),
)


def declared() -> list[Declared]:
    """Return all chapters, those of papers among them, in the order in which they are read."""
    of_papers = [
        Declared(name, paper.part(path))
        for paper in papers().values()
        for name, path in paper.chapters.items()
    ]
    return [*BEFORE_PAPERS, *of_papers, *AFTER_PAPERS]


def optional_names() -> list[str]:
    """Return the names that ``wrods report --with`` takes."""
    return [chapter.name for chapter in declared() if chapter.is_optional]


def checked_names(wanted: Collection[str]) -> Collection[str]:
    """Return the names of optional chapters as given; :class:`UserError` if one is not that of an optional chapter."""
    unknown = [name for name in wanted if name not in optional_names()]
    if unknown:
        choices = ", ".join(optional_names())
        raise UserError(
            f"--with {unknown[0]}: no optional chapter has this name", mend=f"Choose from {choices}."
        )
    return wanted


def write_chapters(material: Material, wanted: Collection[str] = ()) -> list[Chapter]:
    """Write every chapter that applies; optional ones only if they are wanted (:func:`checked_names`)."""
    checked_names(wanted)
    written = (
        chapter.write(material) for chapter in declared() if not chapter.is_optional or chapter.name in wanted
    )
    return [chapter for chapter in written if chapter is not None]
