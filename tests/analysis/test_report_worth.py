"""A report prints a table or figure only if there is something in it, it varies, and it is new."""

from __future__ import annotations

import pytest

from analysis import apa
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.numbering import MANUSCRIPT, MOST_TABLES, ExhibitNumbers, in_order
from analysis.report.worth import LONGEST, refusal


def table(
    *rows: tuple[str, ...], title: str = "Means", of_paper: bool = False, drawn: bool = False
) -> ApaTable:
    return ApaTable("own", title, ("Level", "M", "SD"), rows, drawn=drawn, of_paper=of_paper)


MEANS = (("intact", "93.4", "6.9"), ("initial", "71.9", "19.8"), ("internal", "89.4", "14.9"))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (MEANS, ""),
        (MEANS[:1], "one row"),
        ((Head(["People"]),), "no rows"),
        (
            tuple((name, apa.MISSING, "" if n else "1.2") for n, (name, *_) in enumerate(MEANS)),
            "most cells are empty",
        ),
        (tuple((name, "30.56", "0.00") for name, *_ in MEANS), "nothing varies"),
        (tuple((f"c{n}", f"{n}.1", f"{n}.2") for n in range(LONGEST + 1)), f"{LONGEST + 1} rows"),
    ],
)
def test_an_empty_constant_or_long_table_is_not_printed(rows: tuple[tuple[str, ...], ...], why: str) -> None:
    assert refusal(table(*rows), ()) == why
    assert refusal(table(*rows, of_paper=True), ()) == ""


def test_numbers_that_another_table_holds_are_not_printed_twice() -> None:
    first = table(*MEANS)
    assert refusal(table(*MEANS[:3], title="Again"), [first]) == "its numbers are in the table “Means”"
    fresh = tuple((name, f"{n}.55", f"{n}.65") for n, (name, *_) in enumerate(MEANS))
    assert refusal(table(*fresh), [first]) == ""
    assert refusal(table(*MEANS, drawn=True), ()) == "a figure shows these numbers"


def test_the_manuscript_has_a_budget_and_what_is_refused_keeps_a_number_and_a_file() -> None:
    numbers = ExhibitNumbers()
    shown = [
        numbers.table(
            table(*((name, f"{n}{k}.1", f"{n}{k}.2") for k, (name, *_) in enumerate(MEANS))), MANUSCRIPT
        )
        for n in range(MOST_TABLES + 2)
    ]
    refused = numbers.table(table(MEANS[0]), MANUSCRIPT)
    assert [one.number for one in shown] == ["1", "2", "3", "4", "5", "S1", "S2"]
    assert (refused.number, refused.refused, refused.table.name) == ("F1", "one row", "table_f01_own")
    assert shown[-1].table.name == "table_s02_own"
    assert sorted(["S10", "F1", "S2", "3"], key=in_order) == ["3", "S2", "S10", "F1"]
