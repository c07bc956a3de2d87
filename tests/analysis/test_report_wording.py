"""How a report words warnings and sets its tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from markupsafe import Markup

from analysis.report.apa_tables import ApaTable
from analysis.report.document import Document
from analysis.report.many_levels import MOST_NAMED, which_of
from analysis.report.numbered import Numbered
from analysis.report.warned import in_words as warned_in_words
from analysis.report.write import render_document

NO_FITS: Any = SimpleNamespace(has_program=False)
"""All that the page asks of a report's content beside its document."""


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (
            "item_condition: 290 of 719 levels are seen once (s01:TL-external, …); such levels say next to nothing of a variance and "
            "nothing of slopes",
            "Of the 719 items in conditions, 290 have only one trial, which says little about the variance of items in conditions",
        ),
        (
            "item: 1 of 1081 level is seen once (item 81); such levels say next to nothing of a variance and nothing of slopes",
            "Of the 1,081 items, 1 (item 81) has only one trial, which says little about the variance of items",
        ),
        (
            "possible separation: the standard deviation of (Intercept) (78.8) by item runs away",
            "Possible separation: the variance of items could not be estimated (SD of the intercept: 78.8)",
        ),
        (
            "machine has 2 levels; a variance estimated from two levels is very imprecise, and so are tests that depend on it; make "
            "machine a fixed effect",
            "With only two models, the variation among models is estimated very imprecisely",
        ),
        ("a variance ran away", "A variance ran away"),
    ],
)
def test_warnings_of_a_fit_name_units_as_a_reader_knows_them(note: str, said: str) -> None:
    assert warned_in_words(note, NO_FITS) == said


def test_a_few_differences_are_named_and_many_counted() -> None:
    names = [f"level {place} − intact" for place in range(23)]
    assert which_of(names[:2], 23) == "level 0 − intact and level 1 − intact"
    assert which_of(names[: MOST_NAMED + 1], 23) == f"{MOST_NAMED + 1} of 23 differences"
    assert which_of(names, 23) == "all 23 differences"


@pytest.mark.browser
def test_a_table_in_usual_type_is_no_wider_than_the_page(chromium: Any) -> None:
    """Of tables of growing width those that are still set in usual type are wholly seen."""
    laid = [
        ApaTable(
            "own",
            "Own",
            ("Difference", *("b",) * cells),
            (
                (
                    "(transposed internally − intact word) × (cursive − plain)",
                    *("−17.6 [−25.0, −10.1, 8]"[:letters],) * cells,
                ),
            ),
        )
        for cells in range(2, 9)
        for letters in range(5, 24)
    ]
    usual = [one for one in laid if not one.is_wide]
    assert 0 < len(usual) < len(laid)
    nodes = tuple(Numbered(str(number), one) for number, one in enumerate(usual, 1))
    document = Document("Widths", Markup(""), (), (), nodes, (), ())
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.set_content(render_document(document, NO_FITS, {}))
    cut = page.evaluate(
        "[...document.querySelectorAll('.table')].filter(one => one.scrollWidth > one.clientWidth).map(one => one.id)"
    )
    page.close()
    assert cut == []


def test_a_table_is_set_in_small_type_by_its_columns_and_by_what_cells_take() -> None:
    def laid(*cells: str) -> ApaTable:
        return ApaTable("own", "Own", ("Difference", *("M [95% CI]",) * (len(cells) - 1)), (cells,))

    interval = "−17.6 [−25.0, −10.1]"
    assert not laid("initial − internal", interval, interval, interval).is_wide
    assert laid("initial − internal", interval, interval, interval, "in log odds only", "restorer").is_wide
    assert laid("a", *("1.0",) * 9).is_wide and not laid("a", *("1.0",) * 8).is_wide
    assert not laid("a", "a sentence that wraps " * 20, interval).is_wide
