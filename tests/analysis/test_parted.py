"""Chapters of a report tell tasks and ways of asking apart, as its means and models do: nothing is counted over both."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from analysis import load
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Block, Material
from analysis.report.chapters import missing, rankings
from tests.analysis.conftest import Make
from tests.analysis.letter_study import LEVELS
from tests.analysis.test_described import with_two_tasks
from tests.analysis.test_within import FACTORS, MANNERS


@pytest.fixture
def material(handover: Make) -> Material:
    """Two models restore texts in two manners and answer about them in one; of what is restored behind examples some is missing."""
    rows = with_two_tasks()
    behind = (
        (rows["trial_type"] == "recover") & (rows["examples"] == "behind") & (rows["position"] == "final")
    )
    lost = rows.index[behind & (rows["reader"] == "a")][:7]
    rows["correct"] = rows["correct"].astype(object)
    rows.loc[lost, ["correct", "response_status"]] = [None, "unparsed"]
    tables = load(handover(rows, dictionary={"factors": FACTORS}))
    return Material(tables, (), kinds_of(tables.trials))


def tables_in(blocks: tuple[Block, ...]) -> dict[str, ApaTable]:
    return {one.name: one for one in blocks if isinstance(one, ApaTable)}


def texts_in(blocks: tuple[Block, ...]) -> str:
    return " ".join(str(one) for one in blocks if isinstance(one, Markup))


def test_missing_answers_are_counted_in_the_way_of_asking_in_which_they_are_missing(
    material: Material,
) -> None:
    chapter = missing.write(material)
    assert chapter is not None
    found = tables_in(chapter.blocks)
    assert [name for name in found if name.startswith("missing_")] == [
        "missing_position_recover_examples_behind"
    ]
    table = found["missing_position_recover_examples_behind"]
    heads = [place for place, row in enumerate(table.rows) if isinstance(row, Head)]
    assert len(heads) == 1, "no answer of b is missing"
    of_a = {row[0]: row[1:4] for row in table.rows[heads[0] + 1 :]}
    assert set(of_a) == set(LEVELS) and of_a["final"] == ("40", "7", "17.5")
    assert "position (recover, examples without), no answer is missing" in texts_in(chapter.blocks)


def test_what_scrambling_costs_and_common_errors_are_told_for_each_way_by_itself(material: Material) -> None:
    chapter = rankings.write(material)
    assert chapter is not None
    found = tables_in(chapter.blocks)
    ways = [*(f"recover_examples_{manner}" for manner in MANNERS), "choose"]
    for kind in ("robustness", "told_apart"):
        assert [name for name in found if name.startswith(f"{kind}_")] == [f"{kind}_{way}" for way in ways]
    rows = material.tables.trials
    own = rows[(rows["trial_type"] == "choose") & (rows["reader"] == "a") & (rows["position"] == "intact")]
    (row,) = (row for row in found["robustness_choose"].rows if row[0] == "a")
    assert float(row[3]) == pytest.approx(100 * own["correct"].astype(float).mean(), abs=0.05)
    origin = found["error_consistency_recover_examples_behind"].origin
    assert origin is not None and origin.where is not None
    assert [one.said() for one in origin.where][-2:] == ["trial_type recover", "examples behind"]
