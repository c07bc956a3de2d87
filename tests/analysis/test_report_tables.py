"""Tables and texts of chapters as data: what is laid out, printed and worded, and that nothing of a user's is rewritten."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup

from analysis import apa, load
from analysis.figures.measures import sensitivity_figure
from analysis.measures.signal_detection import COUNTED
from analysis.mixed import Note
from analysis.plan_runner import carry_out
from analysis.planned import plans
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.condense_levels import MOST_DIFFERENCES_NAMED, MOST_TOLD, by_level, lowest_and_highest
from analysis.report.document import Document
from analysis.report.fit_warnings import in_words
from analysis.report.layout import ChapterLayout
from analysis.report.numbering import (
    LONGEST,
    MANUSCRIPT,
    MOST_TABLES,
    ExhibitNumbers,
    Numbered,
    in_order,
    refusal,
)
from analysis.report.results.tables import contrast_table
from analysis.report.terms import term_in_words
from analysis.report.write import render_document
from tests.analysis.conftest import Make
from tests.analysis.letter_study import comparison, study_rows

TABLES = """
shares:
  title: Shares by {{ factor }}
  group: reader_group
  columns:
    - "{{ factor }}": row[factor]
    - "%": number(100 * share, 1)
    - 95% CI: interval(low, high)
    - 95% CI: interval(low, high)
      if: has_more
  note:
    - Always there.
    - {text: Only sometimes., if: has_more}
  source:
    columns: [correct, "{{ factor }}"]
    where: filled(factor)
"""
TEXT = """
{% block results %}
### Shares of {{ named(group) }}

*M* = {{ number(2.5) }} in {{ level }},
see {{ ref(table) }}.

{{ table }}

{% if False %}
Never.
{% endif %}
{% endblock %}
"""
ROWS = [
    {"reader_group": "human", "two *words*": "a  *b* <c>", "share": 0.12345, "low": 0.1, "high": 0.2},
    {"reader_group": "gpt", "two *words*": "d", "share": 0.5, "low": None, "high": None},
]
VALUES = {"factor": "two *words*", "kinds": {"human": "human", "gpt": "model"}}


@pytest.fixture
def layout(tmp_path: Path) -> ChapterLayout:
    (tmp_path / "tables.yaml").write_text(TABLES)
    (tmp_path / "text.md.j2").write_text(TEXT)
    return ChapterLayout(tmp_path)


def test_a_table_has_a_head_for_each_group_and_keeps_unrounded_numbers(layout: ChapterLayout) -> None:
    table = layout.table("shares", pd.DataFrame(ROWS), **VALUES, has_more=False)
    assert table.columns == ("two *words*", "%", "95% CI")
    assert table.rows[0] == Head(["People"]) and table.rows[2] == Head(["gpt"])
    assert table.rows[1] == ("a  *b* <c>", "12.3", "[0.10, 0.20]")
    number = table.rows[1][1]
    assert isinstance(number, apa.Written) and number.values == (12.345,)
    assert table.rows[3][2] == apa.MISSING


def test_a_column_may_stand_for_each_of_several_values(tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text(
        "wide: {title: T, group: part, heading: '{{ part }}', columns: [{Task: task}, [{'k = {{ each }}': 'at[each]', each: ks}]]}"
    )
    rows = [
        {"task": "a", "part": "", "at": {1: "x", 2: "y"}},
        {"task": "b", "part": "p", "at": {1: "u", 2: "v"}},
    ]
    table = ChapterLayout(tmp_path).table("wide", rows, ks=[1, 2])
    assert table.columns == ("Task", "k = 1", "k = 2")
    assert table.rows == (("a", "x", "y"), Head(["p"]), ("b", "u", "v"))


def test_a_column_without_any_content_is_left_out_and_the_note_knows(tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text(
        "t: {title: T, columns: [{Task: task}, {Flag: flag}, {n: n}], note: [{text: Flagged., if: '\"Flag\" in heads'}]}"
    )
    rows = [{"task": "a", "flag": "", "n": "1"}, {"task": "b", "flag": "", "n": "2"}]
    layout = ChapterLayout(tmp_path)
    bare, flagged = layout.table("t", rows), layout.table("t", [{**rows[0], "flag": "flagged"}, rows[1]])
    assert (bare.columns, bare.rows, bare.note) == (("Task", "n"), (("a", "1"), ("b", "2")), "")
    assert (flagged.columns, flagged.rows[1], flagged.note) == (
        ("Task", "Flag", "n"),
        ("b", "", "2"),
        "Flagged.",
    )


def test_a_text_places_tables_and_never_rewrites_a_level(layout: ChapterLayout) -> None:
    table = ApaTable("shares_x", "Shares", ("a",), (("1",),))
    values = {**VALUES, "group": "gpt", "level": "a  *b* <c>", "table": table}
    heading, paragraph, placed = layout.blocks("results", **values)
    assert heading == "<h3>Shares of model gpt</h3>"
    assert paragraph == "<i>M</i> = 2.50 in a  *b* &lt;c&gt;, see [[table:shares_x]]."
    assert placed is table


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
        (tuple((name, apa.MISSING, "" if n else "1.2") for n, (name, *_) in enumerate(MEANS)), "empty"),
        (tuple((name, "30.56", "0.00") for name, *_ in MEANS), "varies"),
        (tuple((f"c{n}", f"{n}.1", f"{n}.2") for n in range(LONGEST + 1)), f"{LONGEST + 1} rows"),
    ],
)
def test_an_empty_constant_or_long_table_is_not_printed(rows: tuple[tuple[str, ...], ...], why: str) -> None:
    said = refusal(table(*rows), ())
    assert bool(said) == bool(why) and why in said
    assert refusal(table(*rows, of_paper=True), ()) == ""


def test_numbers_that_another_table_holds_are_not_printed_twice() -> None:
    def written(shift: float = 0.0) -> list[tuple[str, ...]]:
        return [(name, *(apa.number(float(text) + shift, 1) for text in texts)) for name, *texts in MEANS]

    first = table(*written())
    assert "“Means”" in refusal(table(*written()[:3], title="Again"), [first])
    assert table(*written(0.003)).rows == first.rows, "what looks alike is not the same"
    assert refusal(table(*written(0.003)), [first]) == ""
    assert "figure" in refusal(table(*MEANS, drawn=True), ())


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


@pytest.mark.browser
def test_a_printed_table_is_whole_across_and_breaks_between_its_groups(chromium: Any) -> None:
    heads = [
        f"{unit} {kind}"
        for unit in ("Character", "Word", "Sentence")
        for kind in ("ALL", "INT", "BEG", "REV")
    ]
    names = ("Simulated readers (not data)", "oracle (baseline)")
    broad = ApaTable(
        "own", "Own", ("Reader", *heads, "Mean"), tuple((name, *("96.4",) * 13) for name in names)
    )
    groups = [row for name in names for row in (Head([name]), *((f"RS-{n}", "80.0") for n in range(9)))]
    grouped = ApaTable("own", "Own", ("scramble", "M"), tuple(groups))
    nodes = (Numbered("1", broad), Numbered("2", grouped))
    document = Document("Print", Markup(""), (), (), nodes, (), ())
    page = chromium.new_page(viewport={"width": 657, "height": 900})  # what the margins leave of A4
    page.emulate_media(media="print")
    page.set_content(render_document(document, NO_FITS, {}))
    wide, room = page.evaluate(
        "[document.querySelector('#table-1 table').scrollWidth, document.querySelector('#table-1').clientWidth]"
    )
    before = page.evaluate(
        "[...document.querySelectorAll('#table-2 tbody tr')].map(row => getComputedStyle(row).breakBefore)"
    )
    page.close()
    assert broad.is_wide and wide <= room
    assert [value == "avoid" for value in before] == [not isinstance(row, Head) for row in groups]


LEFT = """[...document.querySelectorAll('tbody tr > th:first-child')].map(cell => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  return text.getBoundingClientRect().left;
})"""


@pytest.mark.browser
@pytest.mark.parametrize("media", ["screen", "print"])
@pytest.mark.parametrize("columns", [3, 14])
def test_rows_are_set_in_below_the_head_of_their_group(chromium: Any, media: str, columns: int) -> None:
    rows = (Head(["Simulated readers"]), ("intact", *("1.0",) * columns))
    nodes = (Numbered("1", ApaTable("own", "Own", ("Level", *("b",) * columns), rows)),)
    page = chromium.new_page(viewport={"width": 657, "height": 900})
    page.emulate_media(media=media)
    page.set_content(render_document(Document("Heads", Markup(""), (), (), nodes, (), ()), NO_FITS, {}))
    head, row = page.evaluate(LEFT)
    page.close()
    assert row > head + 4


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


@pytest.mark.parametrize("is_check", [False, True])
def test_warnings_of_separation_name_effects_as_tables_do(is_check: bool) -> None:
    analysis = SimpleNamespace(**vars(ANALYSIS), of_model=ANALYSIS, companion=ANALYSIS if is_check else None)
    said = in_words(Note("large_se", terms=("(Intercept)", "positioninitial")), analysis)  # type: ignore[arg-type]
    assert "Intercept (people, intact) and initial vs. intact" in said
    assert ("check" in said) is is_check and "(Intercept)" not in said


def test_a_note_tells_where_differences_of_readers_are_not_those_of_the_rows_above(handover: Make) -> None:
    rows = study_rows(human=6, models=("restorer",), items=12, timeouts=0.0)
    unasked = (rows["reader"] == "restorer") & (rows["item_id"] == "s01") & (rows["position"] == "final")
    planned = comparison("final - intact", between=["human", "restorer"])
    notes = []
    for part in (rows, rows[~unasked]):
        tables = load(handover(part, planned=planned))
        notes.append(contrast_table(carry_out(plans(tables)[0], tables), "t").note)
    assert len(notes[1]) > len(notes[0])


def sized(sizes: list[float]) -> tuple[list[str], list[str], list[float]]:
    return [f"level{n}x" for n in range(len(sizes))], [f"{size:.1f}%" for size in sizes], sizes


def test_conditions_that_share_an_extreme_are_named_together() -> None:
    lowest, highest = lowest_and_highest(*sized([0.0, 50.0, 0.0, 97.0, 97.0 + 1e-12]))
    assert [f"level{n}x" in lowest for n in range(5)] == [True, False, True, False, False]
    assert [f"level{n}x" in highest for n in range(5)] == [False, False, False, True, True]
    assert lowest.count("0.0%") == 1


def test_too_many_to_name_are_counted_and_equal_values_are_one_phrase() -> None:
    many = MOST_DIFFERENCES_NAMED + 1
    lowest, _ = lowest_and_highest(*sized([0.0] * many + [3.0] * MOST_TOLD))
    assert "level" not in lowest and "five" in lowest
    (equal,) = lowest_and_highest(*sized([4.0] * many))
    assert "level" not in equal and "five" in equal


def test_conditions_with_one_value_are_named_since_they_need_not_be_all_of_a_study() -> None:
    equal = by_level(*sized([4.0] * 3))
    assert equal.count("4.0%") == 1 and all(f"level{n}x" in equal for n in range(3))


@pytest.mark.parametrize("size", [1.25, 0.1 + 0.2])
def test_values_that_only_print_alike_are_not_both_extremes(size: float) -> None:
    lowest, _ = lowest_and_highest(*sized([size, size + 0.004, 3.0]))
    assert "level0x" in lowest and "level1x" not in lowest


@pytest.mark.parametrize("pooled", [False, True])
def test_a_note_has_dots_only_where_they_are_drawn(pooled: bool) -> None:
    cell = {"reader_group": "human", "kind": "human", "level": "", "d_prime": 0.5, "criterion": 0.4}
    cell |= {
        f"{name}_{end}": value
        for name in ("d_prime", "criterion")
        for end, value in (("low", 0.1), ("high", 0.9))
    }
    counts = dict.fromkeys(COUNTED, 4)
    readers = pd.DataFrame(
        [{"reader_group": "human", **counts, "d_prime": n / 4, "criterion": n / 8} for n in range(4)]
    )
    cells = pd.DataFrame([cell | {"pooled": pooled}])
    drawing = sensitivity_figure("one", cells, readers, None, [], "yes", "no")
    dots = [len(drawn.get_offsets()) for axes in drawing.figure.axes for drawn in axes.collections]
    assert (len(readers) in dots) is not pooled
    assert ("no dots" in drawing.note) is pooled
    assert np.isfinite(drawing.figure.get_size_inches()).all()
