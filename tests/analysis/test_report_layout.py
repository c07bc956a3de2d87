"""Tables and texts of chapters as data: what is laid out, and that nothing of a user's is rewritten."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from analysis import apa
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.layout import ChapterLayout

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
