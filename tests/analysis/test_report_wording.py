"""A report says each thing once, in words, and prints no table that a journal would not."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from markupsafe import Markup

from analysis import apa
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.document import Document
from analysis.report.many_levels import MOST_NAMED, which_of
from analysis.report.nodes import Facts, Filed, Paragraph
from analysis.report.numbered import Numbered
from analysis.report.warned import in_words as warned_in_words
from analysis.report.wording import (
    LONGEST,
    WITHOUT_WIDTH,
    in_plain_words,
    with_long_tables_filed,
    with_missing_intervals_told,
    without_repeated_notes,
    without_repeated_remarks,
)
from analysis.report.write import render_document

NO_FITS: Any = SimpleNamespace(has_program=False)
"""All that the page asks of a report's content beside its document."""


def table(number: int, note: str = "", rows: int = 2, *, drawn: bool = False) -> Numbered:
    body = tuple((f"level_{place}", apa.number(place + 0.123)) for place in range(rows))
    heads = (Head(["item_type"]), *body)
    return Numbered(
        number,
        ApaTable(f"table_{number:02d}_own", "By item_type", ("item_type", "M"), heads, note, drawn=drawn),
    )


def test_names_with_underscores_are_words_but_in_formulas_and_file_names() -> None:
    text = Markup("In <i>item_type</i>, see <code>correct ~ item_type</code> and tables/item_type.")
    said, laid = in_plain_words([Paragraph(text), table(1, "By item_type.")], ["item_type", "font"])
    assert isinstance(said, Paragraph) and isinstance(laid, Numbered)
    assert said.text == "In <i>item type</i>, see <code>correct ~ item_type</code> and tables/item_type."
    assert laid.table.title == "By item type" and laid.table.columns == ("item type", "M")
    assert laid.table.rows[0] == ("item type",) and isinstance(laid.table.rows[0], Head)
    assert laid.table.note == "By item type." and laid.table.name == "table_01_own"
    assert laid.table.unrounded()[2][1] == "0.123"


def test_formulas_in_the_wording_of_a_plan_keep_the_names_of_columns() -> None:
    plan = Facts(
        (
            (
                "item_type",
                "accuracy by item_type; model correct ~ item_type + (1 | item); stops at 4 of item_type.",
            ),
        )
    )
    (said,) = in_plain_words([plan], ["item_type"])
    assert isinstance(said, Facts)
    words = "accuracy by item type; model correct ~ item_type + (1 | item); stops at 4 of item type."
    assert said.pairs == (("item type", words),)


def test_a_table_says_why_an_interval_is_missing_where_nothing_varies() -> None:
    def one(number: int, ends: tuple[float, float]) -> Numbered:
        cells = (("intact", apa.joined(apa.number(0.0), apa.interval(*ends))),)
        return Numbered(
            number, ApaTable(f"table_{number}", "Costs", ("level", "Ratio [95% CI]"), cells, "Own note.")
        )

    missing = float("nan")
    alike, varied, unknown = with_missing_intervals_told(
        [one(1, (0, 0)), one(2, (0, 1)), one(3, (missing, missing))]
    )
    assert isinstance(alike, Numbered) and isinstance(varied, Numbered) and isinstance(unknown, Numbered)
    assert alike.table.note == f"Own note. {WITHOUT_WIDTH}" and alike.table.rows == (("intact", "0.00 –"),)
    assert varied.table.note == unknown.table.note == "Own note."


def test_running_text_does_not_mention_an_interval_that_is_not_there() -> None:
    text = "m kept 75.0%, 95% CI –, over all levels (100.0%, 95%\u00a0CI\u00a0–); n kept 50.0%, 95% CI [40.0, 60.0]."
    (said,) = with_missing_intervals_told([Paragraph(Markup(text))])
    assert isinstance(said, Paragraph)
    assert said.text == "m kept 75.0%, over all levels (100.0%); n kept 50.0%, 95% CI [40.0, 60.0]."


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (
            "item_condition: 290 of 719 levels are seen once (s01:TL-external, …); such levels say next to nothing of a variance and "
            "nothing of slopes",
            "Of the 719 items in conditions, 290 have one trial only, and say next to nothing of how far items in conditions vary",
        ),
        (
            "item: 1 of 1081 level is seen once (item 81); such levels say next to nothing of a variance and nothing of slopes",
            "Of the 1,081 items, 1 (item 81) has one trial only, and says next to nothing of how far items vary",
        ),
        (
            "possible separation: the standard deviation of (Intercept) (78.8) by item runs away",
            "Possible separation: how far items vary runs away (SD of the intercept (78.8))",
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


def test_names_at_the_head_of_a_column_and_over_a_table_in_its_file_are_words_too() -> None:
    filed = next(iter(with_long_tables_filed([table(1, drawn=True)])))
    headed, laid = in_plain_words([Paragraph(Markup("Item_type | <i>r</i>")), filed], ["item_type"])
    assert isinstance(headed, Paragraph) and headed.text == "Item type | <i>r</i>"
    assert isinstance(laid, Filed) and laid.shown.table.title == "By item type"
    assert laid.said == "2 rows, in tables/table_01_own.csv."


def test_a_note_that_was_given_before_is_named_by_its_table() -> None:
    first, second, third = without_repeated_notes(
        [
            table(1, "Bars are intervals. Zero is intact."),
            table(2, "Zero is intact. Dots are people."),
            table(3, "Zero is intact."),
        ]
    )
    notes = [one.table.note for one in (first, second, third) if isinstance(one, Numbered)]
    assert notes == [
        "Bars are intervals. Zero is intact.",
        "Dots are people. See also the note of Table 1.",
        "See the note of Table 1.",
    ]


def test_general_remarks_are_made_once_and_findings_as_often_as_they_hold() -> None:
    general, finding = "Nothing was registered.", "People did not differ in print."
    warned = Paragraph(Markup(general), "warning")
    told = [
        Paragraph(Markup(f"{finding} {general} It was 3 ms.")),
        Paragraph(Markup(f"{finding} {general} It was 3 ms.")),
        Paragraph(Markup(general)),
        warned,
    ]
    kept = list(without_repeated_remarks(told, ["print"]))
    assert [one.text for one in kept if isinstance(one, Paragraph)] == [
        f"{finding} {general} It was 3 ms.",
        f"{finding} It was 3 ms.",
        general,
    ]
    assert kept[-1] is warned


def test_what_is_said_of_one_reader_by_a_pronoun_is_said_of_the_next_too() -> None:
    told = [
        Paragraph(Markup(f"The model {name} was asked. Its settings were context independent."))
        for name in "ab"
    ]
    assert list(without_repeated_remarks(told, ["a", "b"])) == told


def test_long_tables_and_those_that_a_figure_shows_lie_in_their_files() -> None:
    given = [table(1, rows=LONGEST), table(2, rows=LONGEST + 1), table(3, drawn=True)]
    printed, long, drawn = with_long_tables_filed(given)
    papers = replace(given[1], table=replace(given[1].table, of_paper=True))
    assert list(with_long_tables_filed([papers])) == [papers]
    assert printed is given[0] and isinstance(long, Filed) and isinstance(drawn, Filed)
    assert long.said == f"{LONGEST + 1} rows, in tables/table_02_own.csv." and drawn.number == 3


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
    nodes = tuple(Numbered(number, one) for number, one in enumerate(usual, 1))
    document = Document("Widths", Markup(""), (), (), nodes, ())
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
