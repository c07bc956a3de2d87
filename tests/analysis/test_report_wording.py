"""How a report words warnings and sets its tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from markupsafe import Markup

from analysis.report.apa_tables import ApaTable
from analysis.report.document import Document
from analysis.report.numbering import Numbered
from analysis.report.terms import term_in_words
from analysis.report.write import render_document

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


ANALYSIS = SimpleNamespace(
    plan=SimpleNamespace(factor="position", formula=None, crossing=None),
    levels=("intact", "initial", "pair: first"),
    groups=("human", "hf:models/tiny", "hf:models/tiny:v2"),
    model=None,
    rows=pd.DataFrame(),
)


@pytest.mark.parametrize(
    ("term", "words"),
    [
        ("reader_grouphf:models/tiny", "hf:models/tiny vs. people"),
        ("reader_grouphf:models/tiny:v2", "hf:models/tiny:v2 vs. people"),
        ("reader_grouphf:models/tiny:positioninitial", "initial × hf:models/tiny"),
        ("reader_grouphf:models/tiny:v2:positionpair: first", "pair: first × hf:models/tiny:v2"),
        ("positionpair: first", "pair: first vs. intact"),
    ],
)
def test_colons_in_names_of_readers_and_levels_make_no_interaction(term: str, words: str) -> None:
    assert term_in_words(term, ANALYSIS) == words  # type: ignore[arg-type]
