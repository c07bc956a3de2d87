"""Conditions are rows that only numbers join, each reader has a panel, and contrasts have grades and table intervals."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from analysis.descriptives import describe_rows, scored
from analysis.figures.conditions import MOST_BELOW, ConditionMeans, condition_figure
from analysis.figures.drawing import CONTRASTS, TALLEST, Drawing, Effect
from analysis.plan import MEASURES, RATING, Measure
from analysis.report.content import gather
from analysis.report.effect_sizes import felt
from analysis.tables import load
from tests.analysis.letter_study import PLANNED, study_rows, write_handover

CORRECT, TIME = MEASURES["correct"], MEASURES["rt"]
LEVELS = ("intact", "initial", "internal", "final")


def trials(levels: tuple[str, ...], people: int, models: int, rules: int, right: float = 0.8) -> pd.DataFrame:
    random = np.random.default_rng(3)
    readers = [("human", "human", f"p{one}") for one in range(people)]
    readers += [(f"model-{one}", "model", "") for one in range(models)]
    readers += [(f"rule-{one}", "baseline", "") for one in range(rules)]
    rows = [
        {
            "reader_group": group, "reader_kind": kind, "reader": name or group, "item_id": f"i{item}", "position": level,
            "trial_type": "choose", "response_status": "valid", "correct": float(random.random() < right),
            "rating": float(random.integers(1, 8)), "rt": 1_000.0 + 500 * random.random(),
        }
        for group, kind, name in readers for item in range(6) for level in levels
    ]  # fmt: skip
    return pd.DataFrame(rows)


def conditions(
    rows: pd.DataFrame,
    measure: Measure = CORRECT,
    levels: tuple[str, ...] = LEVELS,
    effects: tuple[Effect, ...] = (),
) -> ConditionMeans:
    cells = describe_rows(scored(rows, measure), measure, "position", levels)
    return ConditionMeans(
        measure, "position", levels, cells, rows, rows.iloc[:0], 0.5, effects, "percentage points"
    )


def titles(drawing: Drawing) -> list[str]:
    return [axes.texts[-2].get_text() for axes in drawing.figure.axes if axes.get_label() != CONTRASTS]


STUDIES = {
    "people only": conditions(trials(LEVELS, 12, 0, 0)),
    "a model only": conditions(trials(LEVELS, 0, 1, 0)),
    "ceiling": conditions(trials(LEVELS, 6, 1, 2, right=1.0)),
    "ratings": conditions(trials(LEVELS, 6, 1, 0), RATING),
    "two factors": conditions(trials(("a/x", "a/y", "b/x", "b/y"), 6, 1, 0), levels=("a/x", "a/y", "b/x", "b/y")),
}  # fmt: skip


@pytest.mark.parametrize("row", STUDIES.values(), ids=STUDIES)
def test_conditions_are_rows_in_design_order_and_no_line_joins_them(row: ConditionMeans) -> None:
    drawing = condition_figure("one", [row])
    first = drawing.figure.axes[0]
    assert [one.get_text() for one in first.get_yticklabels()] == list(row.levels)
    assert first.get_ylim()[0] > first.get_ylim()[1] and len(titles(drawing)) == len(row.panels)
    for axes in drawing.figure.axes:
        lines = [line.get_ydata() for line in axes.lines if line.get_linestyle() != "None"]
        joining = [y for y in lines if len(set(y)) > 1 and y[0] != 0]
        assert not joining
    assert not drawing.has_contrasts and row.levels[-1] in drawing.alternative


def test_twelve_models_in_six_conditions_are_small_multiples_with_the_main_contrasts_below() -> None:
    levels = (*LEVELS, "two in a row", "all letters swapped")
    readers = [
        ("human", "People"),
        *((f"model-{one}", f"model-{one}") for one in range(12)),
        ("", "vs. model-3"),
    ]
    effects = tuple(
        Effect(label, name, group, -5.0, -9.0, -1.0, "Fragile", uncertain=True)
        for label in ("initial − intact", "final − intact")
        for group, name in readers
    )  # fmt: skip
    drawing = condition_figure("many", [conditions(trials(levels, 6, 12, 2), levels=levels, effects=effects)])
    assert drawing.figure.get_figheight() <= TALLEST and len(titles(drawing)) == 14
    (forest,) = [axes for axes in drawing.figure.axes if axes.get_label() == CONTRASTS]
    texts = [one.get_text() for one in forest.texts]
    assert texts.count("People") == texts.count("vs. model-3") == 2 and texts.count("Fragile") == MOST_BELOW
    assert f"{len(effects) - MOST_BELOW} further contrasts are in the table" in drawing.note
    letters = [one.get_fontsize() for axes in drawing.figure.axes for one in axes.texts]
    assert min(letters) * 6.5 / drawing.figure.get_figwidth() > 7.5, "letters in print"
    assert re.search(r"<text[^>]*>vs. model-3</text>", drawing.svg), "text stays text"


@pytest.mark.usefixtures("without_chapters")
def test_the_answers_figure_draws_the_intervals_of_the_table_and_its_grades(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    rows = study_rows(human=16, models=("restorer",), items=16)
    planned = {"comprehension": PLANNED["comprehension"]}
    content = gather(load(write_handover(tmp_path_factory.mktemp("drawn"), rows, planned=planned)))
    drawing = content.figures[0].drawing
    assert drawing.has_contrasts
    (forest,) = [axes for axes in drawing.figure.axes if axes.get_label() == CONTRASTS]
    drawn = [tuple(bar[:, 0]) for bars in forest.collections for bar in bars.get_segments()]
    (section,) = content.planned
    for one in section.analysis.contrasts:
        assert felt([one], section.analysis.plan.measure).ends in drawn
    grades = {text.get_text() for text in forest.texts}
    assert content.answer_table is not None
    assert {str(row[-1]) for row in content.answer_table.table.rows if len(row) > 1} <= grades
