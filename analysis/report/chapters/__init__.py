"""Chapters of a report's supplement, a module each: functions that write a :class:`analysis.report.blocks.Chapter` or nothing.

A chapter is absent where nothing of it applies to a study (no surprisal, no times). Optional ones are written only when asked for
by name: ``wrods report --with cost``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from analysis.report.blocks import Chapter, Material
from analysis.report.chapters import (
    asking,
    companions,
    condition_profiles,
    cost,
    fidelity,
    h_test,
    letters,
    mind_scramble,
    missing,
    model_checks,
    probing,
    rankings,
    ratios,
    recovered_text,
    representations,
    robustness,
    scrambled_bench,
    sensitivity,
    trained,
)
from analysis.report.chapters.h_test import geometry
from stimuli.errors import UserError

Writer = Callable[[Material], Chapter | None]


@dataclass(frozen=True)
class Declared:
    """A chapter that a report may have.

    Attributes
    ----------
    name : str
        As ``wrods report --with`` takes it.
    question : str
        What it answers.
    write : callable
    is_optional : bool
        Whether it is written only when asked for.
    """

    name: str
    question: str
    write: Writer
    is_optional: bool = False


DECLARED: tuple[Declared, ...] = (
    Declared(
        "robustness", "Do the planned results hold under other analyses of the same data?", robustness.write
    ),
    Declared(
        "model-checks", "Do the planned models fit, and does a result depend on one unit?", model_checks.write
    ),
    Declared(
        "missing", "Who and what was excluded, and does accuracy depend on missing answers?", missing.write
    ),
    Declared("sensitivity", "Do conditions differ in sensitivity or in response bias?", sensitivity.write),
    Declared("recovered-text", "How much of the changed text do readers restore?", recovered_text.write),
    Declared("h-test", "Can a model that reads only text sort strings by how they look?", h_test.write),
    Declared("letter-geometry", "Do answers about the shapes of letters exceed chance?", geometry.write),
    Declared("mind-scramble", "How much do reordered texts cost, by operation?", mind_scramble.write),
    Declared(
        "scrambled-bench",
        "Do models recover scrambled sentences as well as the paper reports?",
        scrambled_bench.write,
    ),
    Declared("trained", "What did training change, item by item?", trained.write),
    Declared("letters", "Which letters, and which changes of them, cost readers most?", letters.write),
    Declared(
        "representations", "How similar are hidden states to those of the intact text?", representations.write
    ),
    Declared("probing", "From which layer on can the answer be decoded?", probing.write),
    Declared("asking", "Do a model's answers depend on how it was asked?", asking.write, is_optional=True),
    Declared("companions", "Do other models of accuracy agree?", companions.write, is_optional=True),
    Declared(
        "ratios", "What are the papers' ratios, and do answers exceed chance?", ratios.write, is_optional=True
    ),
    Declared("cost", "What does each condition cost in time, tokens and bits?", cost.write, is_optional=True),
    Declared(
        "fidelity",
        "Do models find the same items and conditions difficult as people?",
        fidelity.write,
        is_optional=True,
    ),
    Declared(
        "profiles", "Are profiles over conditions a person's own?", condition_profiles.write, is_optional=True
    ),
    Declared("rankings", "Does robustness follow the size of a model?", rankings.write, is_optional=True),
)
"""In the order in which they are read."""


def optional_names() -> list[str]:
    """Return the names that ``wrods report --with`` takes."""
    return [one.name for one in DECLARED if one.is_optional]


def checked_names(wanted: Collection[str]) -> Collection[str]:
    """Return the names of optional chapters as given.

    Raises
    ------
    UserError
        If one is not that of an optional chapter.
    """
    unknown = [name for name in wanted if name not in optional_names()]
    if unknown:
        known = ", ".join(optional_names())
        raise UserError(
            f"--with {unknown[0]}: no optional chapter has this name", mend=f"Choose from {known}."
        )
    return wanted


def write_chapters(material: Material, wanted: Collection[str] = ()) -> list[Chapter]:
    """Write every chapter that applies; optional ones only if they are wanted.

    Raises
    ------
    UserError
        As :func:`checked_names`.
    """
    checked_names(wanted)
    found = []
    for one in DECLARED:
        chapter = one.write(material) if not one.is_optional or one.name in wanted else None
        if chapter is not None:
            found.append(replace(chapter, question=one.question))
    return found
