"""The image arm of the chapter on H-TEST: the same model shown text and shown pictures of the same items, task by task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.departures import why_no_bound
from analysis.mixed.adjustments import corrected
from analysis.plan import ALPHA
from analysis.published.h_test_pairs import ALL, Part, picture_pairs, pictures_by_part, shows_examples_as_text
from analysis.published.h_test_tables import TASKS
from analysis.readers import group_order
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Block, Material
from analysis.report.chapters.h_test_laid_out import (
    NAMES,
    ONE_TEST,
    ORIGIN,
    compared_cells,
    compared_columns,
    compared_points,
)

Tested = tuple[Part, float]
"""A part with its adjusted p."""


def bound_of(material: Material) -> tuple[float | None, str | None]:
    """Return the plan's bound for equivalence of accuracy, as half a width in shares and in words; None without one."""
    bounds = [
        plan.equivalence
        for one in material.analyses
        if (plan := one.plan).equivalence is not None
        and plan.equivalence.unit == "points"
        and plan.measure.name == "correct"
    ]
    if not bounds:
        return None, None
    return bounds[0].half_width / 100, bounds[0].said or f"{bounds[0].value:g} points"


def no_bound(material: Material) -> str:
    """Say why there is no bound for equivalence of accuracy, where :func:`bound_of` finds none."""
    return why_no_bound(one.plan for one in material.analyses if one.plan.measure.name == "correct")


@dataclass(frozen=True)
class Wording:
    """What is compared, and what it is called.

    Attributes
    ----------
    table : str
        Name of the table.
    tasks : sequence of str
        In the order in which they are told.
    names : mapping of str to str
        Their names, and that of all of them (:data:`ALL`).
    noun : str
        What one of them is.
    verb, of : str
        What a model does right, and the whole of it, such as ``sorts`` and ``lines``.
    text, picture : str
        What is text in both, and what is a picture in one of them.
    alike : str
        What counts as asked of both.
    """

    table: str
    tasks: Sequence[str]
    names: Mapping[str, str]
    noun: str
    verb: str
    of: str
    text: str
    picture: str
    alike: str


LINES = Wording(
    "h_test_pictures",
    TASKS,
    {**NAMES, ALL: "All tasks"},
    "task",
    "sorts",
    "of the lines",
    "Labels and instructions",
    "the line, with the examples unless they are said to be text,",
    "the same items behind as many examples, with the same labels",
)


def pictures(
    trials: pd.DataFrame,
    readers: Mapping[str, Any],
    half: float | None,
    bound: str | None,
    words: Wording = LINES,
    *,
    why: str = "",
) -> Iterator[Block]:
    """Compare models that were shown pictures with the same models shown text; nothing where a study has no such pair.

    Parameters
    ----------
    trials : pandas.DataFrame
        Analysed trials of all readers.
    readers : mapping
        As the data dictionary tells them.
    half, bound : float, str or None
        The plan's bound for equivalence, as a share and in words.
    words : Wording
    why : str
        Why there is no bound, where there is none.
    """
    rows_of = {str(group): own for group, own in trials.groupby("reader_group")}
    order = group_order(trials)
    pairs = [pair for pair in picture_pairs(readers) if set(pair) <= set(rows_of)]
    pairs.sort(key=lambda pair: (order.index(pair[0]), order.index(pair[1])))
    if not pairs:
        return
    parts = {
        (text, looks): list(pictures_by_part(rows_of[text], rows_of[looks], half, words.tasks))
        for text, looks in pairs
    }
    every = [one for own in parts.values() for one in own]
    if not every:
        yield escape("Text and pictures have fewer than ten items in common: they are not compared.")
        return
    adjusted = iter(corrected(np.array([one.compared.p for one in every]), "BH"))
    tested = {pair: [(one, float(next(adjusted))) for one in own] for pair, own in parts.items() if own}
    said = " ".join(_told(*pair, own, bound, words, why) for pair, own in tested.items())
    yield Markup(
        "[[table:{}]] sets the same model, shown text and shown pictures of the same items, side by side. "
    ).format(words.table) + escape(said)
    yield pictures_table(words, tested, readers, bound)


def _told(
    text: str, looks: str, tested: Sequence[Tested], bound: str | None, words: Wording, why: str
) -> str:
    """Say by how much pictures change what one model gets right, and in which tasks."""
    told = []
    for part, p in tested:
        one = part.compared
        if part.task == ALL and not part.making and part.k is None:
            told.append(
                f"{text} {words.verb} {apa.percent(one.first)} {words.of} right as text, and as pictures ({looks}) "
                f"{apa.percent(one.second)}: "
                f"a difference of {compared_points(one)}, adjusted {apa.p_phrase(p)}"
                + (" (within the bound)." if bound and one.p_equal < ALPHA else ".")
            )
    tasks = [(part.task, part.compared, p) for part, p in tested if part.task != ALL]
    better = [task for task, one, p in tasks if p < ALPHA and one.difference > 0]
    worse = [task for task, one, p in tasks if p < ALPHA and one.difference < 0]
    alike = [task for task, one, p in tasks if p >= ALPHA and one.p_equal < ALPHA]
    rest = [task for task, *_ in tasks if task not in (*better, *worse, *alike)]

    def listed(found: Sequence[str]) -> str:
        named = [words.names[task].lower() for task in found]
        return apa.listing(named) if named else f"no {words.noun}"

    told.append(f"More right as pictures: {listed(better)}; fewer: {listed(worse)}.")
    if bound is not None:
        told.append(f"Within {bound} of each other: {listed(alike)}.")
    if rest:
        told.append(f"Open: {listed(rest)}.")
    if bound is None:
        told.append(f"No {words.noun} is said to be alike in both, since {why}.")
    return " ".join(told)


def pictures_table(
    words: Wording,
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
            (_named(part, words.names), *compared_cells(part.compared, p, has_bound=bound is not None))
            for part, p in own
        ]
    note = (
        f"{words.text} are the same text in both; {words.picture} is a picture in the participants' font. "
        "Paired by item (n: items; changed: those with another share right); pictures minus text, in points. "
        f"Only what both were asked counts: {words.alike}. "
        f"{ONE_TEST} Adjusted "
        "after Benjamini and Hochberg over the table. Parts with fewer than ten items are left out."
    )
    if any(part.making or part.k is not None for own in tested.values() for part, _ in own):
        note += f" Rows of a making or of a number of examples (k) have all {words.noun}s in them."
    if bound:
        note += f" p equal: two one-sided tests against {bound}, the bound of the plan; small values say that both are alike."
    columns = compared_columns("Items", "% text", "% pictures", has_bound=bound is not None)
    title = f"The same items as text and as pictures, by {words.noun}"
    return ApaTable(words.table, title, columns, tuple(rows), note, ORIGIN)


def _named(part: Part, names: Mapping[str, str]) -> str:
    if part.making:
        return f"{part.making.capitalize()} items"
    return names[part.task] if part.k is None else f"k\u00a0=\u00a0{part.k}"
