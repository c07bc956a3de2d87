"""Tables and texts of chapters as data: what is laid out, and that nothing of a user's is rewritten."""

from __future__ import annotations

from pathlib import Path

import jinja2
import pandas as pd
import pytest

from analysis import apa
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.filters import filled
from analysis.report.layout import Layout

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
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "tables.yaml").write_text(TABLES)
    (tmp_path / "text.md.j2").write_text(TEXT)
    return Layout(tmp_path)


def test_a_table_has_a_head_for_each_group_and_keeps_unrounded_numbers(layout: Layout) -> None:
    table = layout.table("shares", pd.DataFrame(ROWS), **VALUES, has_more=False)
    assert table.columns == ("two *words*", "%", "95% CI")
    assert table.rows[0] == Head(["People"]) and table.rows[2] == Head(["gpt"])
    assert table.rows[1] == ("a  *b* <c>", "12.3", "[0.10, 0.20]")
    number = table.rows[1][1]
    assert isinstance(number, apa.Written) and number.values == (12.345,)
    assert table.rows[3][2] == apa.MISSING


def test_a_factor_may_have_the_name_of_a_function(layout: Layout) -> None:
    rows = [{**one, "number": one["two *words*"]} for one in ROWS]
    table = layout.table("shares", rows, factor="number", kinds=VALUES["kinds"], has_more=False)
    assert table.columns[0] == "number" and table.rows[1][:2] == ("a  *b* <c>", "12.3")


def test_columns_and_notes_may_depend_on_a_condition(layout: Layout) -> None:
    few, more = (layout.table("shares", ROWS, **VALUES, has_more=one) for one in (False, True))
    assert few.note == "Always there." and more.note == "Always there. Only sometimes."
    assert len(few.columns) == 3 and len(more.columns) == 4


def test_a_column_may_stand_for_each_of_several_values(tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text(
        "wide: {title: T, group: part, heading: '{{ part }}', columns: [{Task: task}, [{'k = {{ each }}': 'at[each]', each: ks}]]}"
    )
    rows = [
        {"task": "a", "part": "", "at": {1: "x", 2: "y"}},
        {"task": "b", "part": "p", "at": {1: "u", 2: "v"}},
    ]
    table = Layout(tmp_path).table("wide", rows, ks=[1, 2])
    assert table.columns == ("Task", "k = 1", "k = 2")
    assert table.rows == (("a", "x", "y"), Head(["p"]), ("b", "u", "v"))


def test_the_source_names_columns_and_conditions(layout: Layout) -> None:
    origin = layout.table("shares", ROWS, **VALUES, has_more=False).origin
    assert origin is not None
    assert origin.columns == ("correct", "two *words*") and origin.where == filled("two *words*")


def test_a_text_places_tables_and_never_rewrites_a_level(layout: Layout) -> None:
    table = ApaTable("shares_x", "Shares", ("a",), (("1",),))
    values = {**VALUES, "group": "gpt", "level": "a  *b* <c>", "table": table}
    heading, paragraph, placed = layout.blocks("results", **values)
    assert heading == "<h3>Shares of model gpt</h3>"
    assert paragraph == "<i>M</i> = 2.50 in a  *b* &lt;c&gt;, see [[table:shares_x]]."
    assert placed is table


def test_a_missing_value_with_the_name_of_a_function_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.md.j2").write_text("{% block one %}Of {{ count }} trials.{% endblock %}")
    with pytest.raises(jinja2.UndefinedError, match="is missing"):
        Layout(tmp_path).blocks("one")


def test_a_value_that_a_text_lacks_is_an_error(layout: Layout) -> None:
    with pytest.raises(jinja2.UndefinedError):
        layout.blocks("results", **VALUES)


def test_a_paragraph_goes_on_where_a_value_is_empty(tmp_path: Path) -> None:
    (tmp_path / "text.md.j2").write_text(
        "{% block one %}\nFirst.\n{{ nothing }}\nSecond.\n\nThird.\n{% endblock %}"
    )
    assert Layout(tmp_path).blocks("one", nothing="") == ["First. Second.", "Third."]
