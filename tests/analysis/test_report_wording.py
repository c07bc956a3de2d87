"""How a report words warnings and sets its tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from markupsafe import Markup

from analysis.plan import Measure
from analysis.report.apa_tables import ApaTable
from analysis.report.document import Document
from analysis.report.effect_sizes import felt
from analysis.report.numbering import Numbered
from analysis.report.results import mean_in_words
from analysis.report.write import render_document

NO_UNIT = Measure("score", "Score", "score", "gaussian", False, "", "score")


def test_a_measure_without_a_unit_leaves_no_gap_for_it() -> None:
    found: Any = [SimpleNamespace(estimate=-0.5, low=-0.7, high=-0.3, se=0.1, crossed=None)]
    assert mean_in_words(0.5, NO_UNIT) == "0.50"
    assert felt(found, NO_UNIT).size == "−0.50"


NO_FITS: Any = SimpleNamespace(has_program=False, all_fits=list)
"""All that the page asks of a report's content beside its document."""


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
