"""Answers the question of a study of summaries or translations, whether they depend on the order of a text."""

from __future__ import annotations

from markupsafe import Markup

from analysis.measures.similarity import FILE
from analysis.tables import Tables


def answers(tables: Tables) -> list[tuple[Markup, Markup]]:
    """Return the question with its answer; nothing where no answers were compared."""
    if not (tables.folder / FILE).is_file():
        return []
    # its figures need a library that no other study waits for
    from experiment.papers.mind_scramble.chapter import answers as answered

    return answered(tables)
