"""Chapters of a report, a module each: functions that write a :class:`analysis.report.blocks.Chapter` or nothing.

A chapter says all that can be said of the data at hand and names the rest; where nothing of it applies to a study (no
surprisal, no times) it is not there at all.
"""

from __future__ import annotations

from collections.abc import Callable

from analysis.report.blocks import Chapter, Material
from analysis.report.chapters import (
    asking,
    companions,
    condition_profiles,
    cost,
    fidelity,
    h_test,
    h_test_geometry,
    letters,
    mind_scramble,
    missing,
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

Writer = Callable[[Material], Chapter | None]

WRITERS: tuple[Writer, ...] = (
    missing.write,
    companions.write,
    sensitivity.write,
    recovered_text.write,
    ratios.write,
    h_test.write,
    h_test_geometry.write,
    mind_scramble.write,
    scrambled_bench.write,
    trained.write,
    cost.write,
    letters.write,
    representations.write,
    probing.write,
    fidelity.write,
    condition_profiles.write,
    rankings.write,
    asking.write,
    robustness.write,
)
"""In the order in which they are read."""


def write_chapters(material: Material) -> list[Chapter]:
    """Write every chapter that has something to say."""
    return [chapter for writer in WRITERS if (chapter := writer(material)) is not None]
