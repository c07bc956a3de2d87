"""The image arm of the chapter on H-TEST: the same model shown text and shown pictures of the same items, task by task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from analysis import apa
from analysis.mixed.adjustments import corrected
from analysis.plan import ALPHA
from analysis.published.h_test_pairs import ALL, Part, picture_pairs, pictures_by_part, shows_examples_as_text
from analysis.published.h_test_tables import Asked
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Block
from analysis.report.chapters.h_test_laid_out import NAMES, ORIGIN, compared_cells, compared_columns

Tested = tuple[Part, float]
"""A part with its adjusted p."""


def pictures(
    found: Asked, readers: Mapping[str, Any], half: float | None, bound: str | None, seed: int
) -> Iterator[Block]:
    """Compare models that were shown pictures with the same models shown text; nothing where a study has no such pair.

    Parameters
    ----------
    readers : mapping
        As the data dictionary tells them.
    half, bound : float, str or None
        The plan's bound for equivalence, as a share and in words.
    """
    rows_of = {str(group): own for group, own in found.trials.groupby("reader_group")}
    pairs = [pair for pair in picture_pairs(readers) if set(pair) <= set(rows_of)]
    if not pairs:
        return
    parts = {
        (text, looks): list(pictures_by_part(rows_of[text], rows_of[looks], half, seed))
        for text, looks in pairs
    }
    every = [one for own in parts.values() for one in own]
    if not every:
        yield escape("Text and pictures have fewer than ten items in common: they are not compared.")
        return
    adjusted = iter(corrected(np.array([one.compared.p for one in every]), "BH"))
    tested = {pair: [(one, float(next(adjusted))) for one in own] for pair, own in parts.items() if own}
    said = " ".join(_told(*pair, own, bound) for pair, own in tested.items())
    yield Markup(
        "[[table:h_test_pictures]] sets the same model, shown text and shown pictures of the same items, side by side. "
    ) + escape(said)
    yield pictures_table("h_test_pictures", tested, readers, bound)


def _told(text: str, looks: str, tested: Sequence[Tested], bound: str | None) -> str:
    """Say by how much pictures change what one model sorts right, and in which tasks."""
    told = []
    for part, p in tested:
        one = part.compared
        if part.task == ALL and not part.making and part.k is None:
            told.append(
                f"{text} sorts {apa.percent(one.first)} right as text, and as pictures ({looks}) {apa.percent(one.second)}: "
                f"a difference of {apa.number(100 * one.difference, 1)} points, 95% CI "
                f"{apa.interval(100 * one.low, 100 * one.high, 1)}, adjusted {apa.p_phrase(p)}"
                + (" (within the bound)." if bound and one.p_equal < ALPHA else ".")
            )
    tasks = [(part.task, part.compared, p) for part, p in tested if part.task != ALL]
    better = [task for task, one, p in tasks if p < ALPHA and one.difference > 0]
    worse = [task for task, one, p in tasks if p < ALPHA and one.difference < 0]
    alike = [task for task, one, p in tasks if p >= ALPHA and one.p_equal < ALPHA]
    rest = len(tasks) - len(better) - len(worse) - len(alike)
    told.append(f"More right as pictures: {_listed(better)}; fewer: {_listed(worse)}.")
    if bound is None:
        told.append("The plan states no bound, so that no task is said to be alike in both.")
    else:
        told.append(f"Within {bound} of each other: {_listed(alike)}.")
    if rest:
        told.append(
            f"{apa.count(rest)} of {apa.counted(len(tasks), 'task')} {'is' if rest == 1 else 'are'} open."
        )
    return " ".join(told)


def _listed(tasks: Sequence[str]) -> str:
    return ", ".join(NAMES[task].lower() for task in tasks) if tasks else "no task"


def pictures_table(
    name: str,
    tested: Mapping[tuple[str, str], Sequence[Tested]],
    readers: Mapping[str, Any],
    bound: str | None,
) -> ApaTable:
    """Lay out, for each model, every task, all of them, and all of them by making and number of examples."""
    rows: list[tuple[str, ...]] = []
    for (text, looks), own in tested.items():
        how = ", examples as text" if shows_examples_as_text(readers[looks]) else ""
        rows.append(Head([f"{text} (text), {looks} (pictures{how})"]))
        rows += [
            (_named(part), *compared_cells(part.compared, p, has_bound=bound is not None)) for part, p in own
        ]
    note = (
        "Questions, labels and instructions are the same text in both; of an item with pictures its line is a picture in the "
        "participants' font. Paired by item (n: items; changed: those with another share right); pictures minus text, in points. "
        "Only what both were asked counts: the same items behind as many examples, with the same labels. "
        "p: McNemar's exact test, or 9,999 random sign flips of items' differences where an item was asked several times. Adjusted "
        "after Benjamini and Hochberg over the table. Parts with fewer than ten items are left out."
    )
    if bound:
        note += f" p equal: two one-sided tests against {bound}, the bound of the plan; small values say that both are alike."
    columns = compared_columns("Items", "% text", "% pictures", has_bound=bound is not None)
    return ApaTable(
        name, "The same items as text and as pictures, by task", columns, tuple(rows), note, ORIGIN
    )


def _named(part: Part) -> str:
    if part.making:
        return f"{ALL.capitalize()}, {part.making} items"
    if part.k is not None:
        return f"{ALL.capitalize()}, k = {part.k}"
    return ALL.capitalize() if part.task == ALL else NAMES[part.task]
