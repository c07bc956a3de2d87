"""How a report words warnings and sets its tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from markupsafe import Markup

from analysis.mixed import Note
from analysis.report.apa_tables import ApaTable
from analysis.report.document import Document
from analysis.report.many_levels import MOST_DIFFERENCES_NAMED, which_of
from analysis.report.numbered import Numbered
from analysis.report.warned import in_words as warned_in_words
from analysis.report.write import render_document

NO_FITS: Any = SimpleNamespace(has_program=False, all_fits=list)
"""All that the page asks of a report's content beside its document."""


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (
            Note(
                "seen_once",
                group="item_condition",
                once=290,
                of=719,
                levels="levels are",
                names="s01:TL-external, …",
            ),
            "Of the 719 items in conditions, 290 have only one trial, which says little about the variance of items in conditions",
        ),
        (
            Note("seen_once", group="item", once=1, of=1081, levels="level is", names="item 81"),
            "Of the 1,081 items, 1 (item 81) has only one trial, which says little about the variance of items",
        ),
        (
            Note("variance_runs_away", sds={"(Intercept)": 78.84}, group="item"),
            "Possible separation: the variance of items could not be estimated (SD of the intercept: 78.8)",
        ),
        (
            Note("few_levels", group="machine", count=2, counted="two"),
            "With only two models, the variation among models is estimated very imprecisely",
        ),
        (Note("approximate"), "Standard errors are approximate: the Hessian is not positive definite"),
    ],
)
def test_warnings_of_a_fit_name_units_as_a_reader_knows_them(note: Note, said: str) -> None:
    assert warned_in_words(note, NO_FITS) == said


def test_a_few_differences_are_named_and_many_counted() -> None:
    names = [f"level {place} − intact" for place in range(23)]
    assert which_of(names[:2], 23) == "level 0 − intact and level 1 − intact"
    assert (
        which_of(names[: MOST_DIFFERENCES_NAMED + 1], 23) == f"{MOST_DIFFERENCES_NAMED + 1} of 23 differences"
    )
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
