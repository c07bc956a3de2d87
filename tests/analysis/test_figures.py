"""Figures are laid out once for all of their files, in conditions and names that can be read, and draw what the tables hold."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.markers import CARETDOWN
from matplotlib.text import Annotation, Text
from PIL import Image

from analysis.costs.ratios import LevelCost, ShownIntervals, TimeSpread
from analysis.descriptives import describe_rows, scored
from analysis.figures.conditions import (
    MOST_BELOW,
    ConditionMeans,
    condition_figure,
    model_checks_figure,
    position_figure,
)
from analysis.figures.cost import MOST_TOGETHER, _shares, time_distribution_figure
from analysis.figures.drawing import (
    CONTRASTS,
    OPEN_END,
    TALLEST,
    WIDTH,
    Drawing,
    Effect,
    as_svg,
    looks,
    shown_of,
    style,
    styled,
)
from analysis.figures.fidelity import MapScale, fidelity_map
from analysis.figures.labels import SLANT, fit_labels, laid_out, places_of
from analysis.figures.marks import IntervalMarks, points
from analysis.figures.panels import condition_looks, readers_by_place
from analysis.figures.simulation import recovery_figure
from analysis.parameter_recovery import Recovered
from analysis.plan import MEASURES, RATING, Measure
from analysis.report.content import _as_tested, gather
from analysis.report.described import described, figures_of
from analysis.report.document import _recovered
from analysis.report.effect_sizes import felt
from analysis.report.planned_effects import first_asked, planned_effects
from analysis.robustness import Matrix
from analysis.tables import load
from stimuli.fonts import font_families
from tests.analysis.conftest import planned_analyses
from tests.analysis.crossed_study import PLAN as CROSSED
from tests.analysis.crossed_study import crossed_rows, crossed_study
from tests.analysis.letter_study import PLANNED, study_rows, write_handover


def _drawing(name: str, **layout: Any) -> Drawing:
    with styled():
        figure = Figure(figsize=(4.0, 2.0), **layout)
        axes = figure.add_subplot()
        axes.plot([0, 1, 2], [3, 1, 2], label="one")
        axes.set_ylabel("A label that stands far outside of the axes", labelpad=40)
        axes.legend(loc="center left", bbox_to_anchor=(1.05, 0.5))
    return Drawing(name, "Title", "Note.", "A line.", as_svg(figure, name, "Title", "A line."), figure)


@pytest.mark.parametrize("layout", [{}, {"layout": "constrained"}])
def test_svg_and_png_of_a_figure_show_the_same_part_of_it(tmp_path: Path, layout: dict[str, Any]) -> None:
    drawing = _drawing("extent", **layout)
    svg, png = drawing.save(tmp_path)
    found = re.search(r'<svg[^>]* width="([\d.]+)pt" height="([\d.]+)pt"', svg.read_text("utf-8"))
    assert found is not None
    with Image.open(png) as picture:
        for points, pixels in zip(found.groups(), picture.size, strict=True):
            assert float(points) / 72 * 300 == pytest.approx(pixels, abs=1.5)
        # what stands outside of the axes is inside of the picture: its margin is white all around
        grey = picture.convert("L")
        wide, high = grey.size
        top, left = (0, 0, wide, 12), (0, 0, 12, high)
        for box in (top, left, (0, high - 12, wide, high), (wide - 12, 0, wide, high)):
            assert grey.crop(box).getextrema() == (255, 255)
        dark = np.flatnonzero(np.asarray(grey).min(axis=0) < 200)
        assert dark[0] < 60 and dark[-1] > wide - 60


NAMES = {
    "short": ["intact", "initial", "internal", "final"],
    "two words": ["unverändert", "Anfang vertauscht", "Inneres vertauscht", "Schluss vertauscht"],
    "long": [
        *("unveraendert", "vertauschte_Anfangsbuchstaben_des_Wort"),
        *("Buchstabendreher_im_Inneren_der_Woerter", "vertauschte_Schlussbuchstaben_des_Worts"),
    ],
    "many": [
        "intact",
        *(f"{kind}{n}-{zone}" for kind in "TS" for n in range(4) for zone in ("initial", "final")),
    ],
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("across", [0.4, 0.9])
def test_labels_of_an_axis_never_run_into_each_other_and_lose_no_letter(name: str, across: float) -> None:
    levels = NAMES[name]
    with styled():
        figure = Figure(figsize=(WIDTH, 3.0))
        axes = figure.add_axes((0.09, 0.3, across, 0.6))
        axes.set_xlim(-0.45, len(levels) - 0.55)
        axes.set_xticks(range(len(levels)), levels)
        laid = fit_labels(axes)
        figure.draw_without_rendering()
        labels = axes.get_xticklabels()
        boxes = [one.get_window_extent() for one in labels]
    assert laid == laid_out(levels, places_of(len(levels), 0.09 * WIDTH, across * WIDTH))
    turned = {one.get_rotation() for one in labels}
    if turned == {0.0}:
        assert not any(one.overlaps(other) for one, other in itertools.pairwise(boxes))
    else:
        assert turned == {float(SLANT)}
        lines = max(one.get_text().count("\n") + 1 for one in labels)
        step = across * WIDTH / (len(levels) - 0.1) * np.sin(np.radians(SLANT))
        assert lines == 1 or lines * 9 / 72 < step
    for box in boxes:
        assert (boxes[0].y1 - box.y0) / figure.dpi < laid.depth + 0.15
    if name != "long":
        said = ["".join(one.get_text().split()) for one in labels]
        assert said == ["".join(one.split()) for one in levels]


def test_a_reader_looks_alike_in_figures_that_leave_others_out() -> None:
    kinds = {"people": "human", "a": "model", "b": "model", "random": "baseline"}
    look, shown = shown_of(kinds, {"b", "random"}), ("b", "random")
    assert look == {group: looks(kinds)[group] for group in shown}
    assert look["b"] != looks({"b": "model"})["b"], "by itself it would take the look of the first model"


@pytest.mark.parametrize("many", [2, 8, 9, 15, 30])
def test_many_conditions_share_out_among_panels_that_all_have_the_first(many: int) -> None:
    levels = [f"level {n}" for n in range(many)]
    shares = _shares(levels)
    assert all(share[0] == levels[0] and len(share) <= MOST_TOGETHER for share in shares)
    assert [one for share in shares for one in share[1:]] == levels[1:]
    assert (len(shares) > 1) is (many > MOST_TOGETHER)


def test_no_two_conditions_look_alike() -> None:
    found = condition_looks([f"level {n}" for n in range(60)])
    assert len({it.marker for it in list(found.values())[:17]}) == 17
    assert len({(it.colour, it.marker) for it in found.values()}) == 60


CORRECT, TIME = MEASURES["correct"], MEASURES["rt"]
POSITIONS = ("intact", "initial", "internal", "final")


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
    levels: tuple[str, ...] = POSITIONS,
    effects: tuple[Effect, ...] = (),
) -> ConditionMeans:
    cells = describe_rows(scored(rows, measure), measure, "position", levels)
    return ConditionMeans(
        measure, "position", levels, cells, rows, rows.iloc[:0], 0.5, effects, "percentage points"
    )


def titles(drawing: Drawing) -> list[str]:
    return [axes.texts[-2].get_text() for axes in drawing.figure.axes if axes.get_label() != CONTRASTS]


def test_of_many_conditions_the_figure_of_the_contrasts_has_those_that_they_compare() -> None:
    compared = Effect("l7 − l3", "People", "human", 5.0, 1.0, 9.0, "Clear", levels=("l7", "l3"))
    for many, shown in ((12, 12), (20, 3)):
        levels = tuple(f"l{n}" for n in range(many))
        drawn = conditions(trials(levels, 4, 1, 0), levels=levels, effects=(compared,)).of_contrasts()
        assert len(drawn.levels) == shown and drawn.is_part == (shown < many)
        assert {cell.level for cell in drawn.cells} == set(drawn.levels) >= {"l0", "l3", "l7"}
    whole = replace(drawn, is_part=False)
    assert condition_figure("many", [drawn]).note != condition_figure("many", [whole]).note


def test_a_figure_counts_those_of_a_condition_where_none_has_all() -> None:
    rows = trials(("few", "many"), 10, 1, 0)
    is_few = rows["reader"].isin([f"p{n}" for n in range(5)])
    is_few |= (rows["reader_kind"] == "model") & (rows["item_id"] == rows["item_id"].iloc[0])
    each_in_one = rows[is_few == (rows["position"] == "few")]
    for given, told in ((rows, ("n = 10", "6 items")), (each_in_one, ("n = 5 per", "1–5 items per"))):
        drawn = condition_figure("one", [conditions(given, levels=("few", "many"))]).figure.axes
        below = [axes.texts[-1].get_text() for axes in drawn[:2]]
        assert all(text.startswith(one) for text, one in zip(below, told, strict=True)), below


def test_the_label_of_a_mean_rounds_the_number_in_its_table() -> None:
    row = conditions(trials(POSITIONS, 12, 1, 0))
    for mean, label in ((0.575 - 1e-12, "58"), (0.975, "98"), (0.57449, "57")):
        cells = [replace(cell, mean=mean, low=mean - 0.1, high=mean + 0.02) for cell in row.cells]
        figure = condition_figure("one", [replace(row, cells=cells)]).figure
        texts = {text.get_text() for axes in figure.axes for text in axes.texts}
        assert label in texts, (mean, texts)


def test_labels_of_low_rows_stay_inside_their_panel() -> None:
    levels = tuple(f"condition {n}" for n in range(24))
    row = conditions(trials(levels, 6, 1, 0), levels=levels)
    for low, high in ((0.0, 1.0), (0.02, 0.3)):
        cells = [replace(cell, mean=(low + high) / 2, low=low, high=high) for cell in row.cells]
        figure = condition_figure("many", [replace(row, cells=cells)]).figure
        figure.draw_without_rendering()
        texts = ((text, axes) for axes in figure.axes for text in axes.texts)
        labels = [one for one in texts if one[0].get_text() == f"{50 * (low + high):.0f}"]
        assert len(labels) == len(cells), "also of an interval that fills the panel"
        assert all(text.get_window_extent().x0 >= axes.get_window_extent().x0 for text, axes in labels)


STUDIES = {
    "people only": conditions(trials(POSITIONS, 12, 0, 0)),
    "a model only": conditions(trials(POSITIONS, 0, 1, 0)),
    "ceiling": conditions(trials(POSITIONS, 6, 1, 2, right=1.0)),
    "ratings": conditions(trials(POSITIONS, 6, 1, 0), RATING),
    "two factors": conditions(trials(("a/x", "a/y", "b/x", "b/y"), 6, 1, 0), levels=("a/x", "a/y", "b/x", "b/y")),
    "long names": conditions(trials(("a/x", "non-island/embedded"), 6, 0, 0), levels=("a/x", "non-island/embedded")),
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
    assert not drawing.effects and row.levels[-1] in drawing.alternative


def test_twelve_models_in_six_conditions_are_small_multiples_with_the_main_contrasts_below() -> None:
    levels = (*POSITIONS, "two in a row", "all letters swapped")
    models = [f"model-{one}" for one in range(12)]
    readers = [("human", "People"), *zip(models, models, strict=True), ("", "vs. model-3")]
    effects = tuple(
        Effect(label, name, group, -5.0, -9.0, -1.0, "Fragile", uncertain=True)
        for label in ("initial − intact", "final − intact")
        for group, name in readers
    )  # fmt: skip
    drawing = condition_figure("many", [conditions(trials(levels, 6, 12, 2), levels=levels, effects=effects)])
    assert drawing.figure.get_figheight() <= TALLEST and len(titles(drawing)) == 14
    texts = [one.get_text() for one in forest_of(drawing).texts]
    assert texts.count("People") == texts.count("vs. model-3") == 2 and texts.count("Fragile") == MOST_BELOW
    assert f"{len(effects) - MOST_BELOW} further" in drawing.note
    letters = [one.get_fontsize() for axes in drawing.figure.axes for one in axes.texts]
    assert min(letters) * 6.5 / drawing.figure.get_figwidth() > 7.5, "letters in print"
    assert re.search(r"<text[^>]*>vs. model-3</text>", drawing.svg), "text stays text"


def forest_of(drawing: Drawing) -> Axes:
    (forest,) = [axes for axes in drawing.figure.axes if axes.get_label() == CONTRASTS]
    return forest


def arrows_in(axes: Axes) -> list[tuple[float, float]]:
    """Return where the lines of the arrows of open intervals end, shortly before their tips, as shares of the panel."""
    axes.figure.draw_without_rendering()
    tips = []
    for text in axes.texts:
        if text.get_label() == OPEN_END:
            vertices = text.arrow_patch.get_path().vertices  # type: ignore[attr-defined]
            ends = axes.transAxes.inverted().transform(vertices[[0, -1]])
            tips.append(tuple(max(ends.tolist(), key=lambda end: max(abs(part - 0.5) for part in end))))
    return tips


@pytest.mark.parametrize("upright", [False, True])
def test_an_open_interval_ends_in_an_arrow_at_the_edge_of_its_panel(upright: bool) -> None:
    places, ends = [0.0, 1.0, 2.0], IntervalMarks([1, 2, 3], [-np.inf, 1.5, np.nan], [2, np.inf, np.nan])
    with styled():
        figure = Figure(figsize=(4.0, 2.0))
        axes = figure.add_subplot()
        x, y = (places, ends) if upright else (ends, places)
        points(axes, looks({"human": "human"})["human"], x, y)
        axes.set(xlim=(-5, 9), ylim=(-5, 9))  # after the points are drawn
    along = [tip[upright] for tip in arrows_in(axes)]
    assert along == pytest.approx([0.0, 1.0], abs=0.05)
    drawn = [tuple(bar[:, int(upright)]) for bars in axes.collections for bar in bars.get_segments()]
    assert drawn == [(1, 2), (1.5, 2)], "and the closed sides are drawn as before"


def test_a_note_says_what_an_arrow_is_where_there_is_one() -> None:
    rows, notes = trials(POSITIONS, 6, 1, 0), []
    for low, axis in ((-9.0, "percentage points"), (-np.inf, "percentage points"), (0.0, "odds ratio")):
        one = Effect("initial − intact", "People", "human", 0.5, low, 1.0, "Open")
        drawing = condition_figure("one", [replace(conditions(rows, effects=(one,)), axis=axis)])
        (tip,) = arrows_in(forest_of(drawing)) or [(1.0, 1.0)]
        assert (tip[0] < 0.1) == (low != -9.0)
        notes.append(drawing.note)
    assert notes[1] == notes[2] and notes[1].startswith(notes[0]) and len(notes[1]) > len(notes[0])


def test_the_mark_of_what_was_built_in_is_no_readers() -> None:
    one = Effect("initial − intact", "People", "human", 5.0, 1.0, 9.0, "Clear", built_in=4.0)
    drawn = forest_of(condition_figure("one", [conditions(trials(POSITIONS, 6, 1, 0), effects=(one,))]))
    kinds = {"human": "human", "simulated": "simulated"}
    kinds |= {f"{kind}{n}": kind for kind in ("model", "baseline") for n in range(40)}
    (built_in,) = [line.get_marker() for line in drawn.lines if list(line.get_xdata()) == [4.0]]
    assert built_in == CARETDOWN, "an asterisk would be read as significance"
    assert built_in not in {mark.marker for mark in looks(kinds).values()} | {"D", style()["pilot"]["marker"]}


def test_a_note_explains_the_reference_line_and_triangles_only_where_they_are_drawn() -> None:
    rows = trials(POSITIONS, 6, 1, 0)
    row = conditions(rows)
    others = replace(row, cells=[cell for cell in row.cells if cell.level != POSITIONS[0]])
    line = f"own mean in the {POSITIONS[0]} condition"
    assert line in condition_figure("one", [row]).note and line not in condition_figure("one", [others]).note
    one = Effect("initial − intact", "People", "human", 5.0, 1.0, 9.0, "Clear", built_in=4.0)
    lapsing = conditions(rows, effects=(replace(one, built_in=np.nan),))
    note = condition_figure("both", [lapsing, replace(conditions(rows, effects=(one,)), measure=RATING)]).note
    assert "triangles" in note and f"on {CORRECT.noun} " in note
    assert "triangles" not in condition_figure("one", [lapsing]).note


def test_percentages_far_below_zero_are_numbered_triangles_that_no_line_joins() -> None:
    values = [-400.0, -200.0, -50.0, 100.0]
    cells = pd.DataFrame({"reader_group": "m", "place": list("abcd"), "value": values})
    with styled():
        axes = Figure().add_subplot()
        readers_by_place(axes, cells.assign(low=np.nan, high=np.nan), "abcd", looks({"m": "model"}), join=1.0)
    assert [text.get_text() for text in axes.texts] == ["−400%", "−200%"]
    assert [line.get_marker() for line in axes.lines].count("v") == 2
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]
    (joined,) = [line for line in drawn if len(line) == len(values)]
    assert np.isnan(joined[:2]).all() and list(joined[2:]) == values[2:]
    assert 100 < axes.get_ylim()[1] < 110


def test_counts_of_units_have_whole_ticks() -> None:
    changes = {"participant": pd.DataFrame({"b": np.linspace(0.0, 0.4, 9)})}
    (axes,) = model_checks_figure("checks", "Checks", None, changes, "").figure.axes
    assert all(float(tick).is_integer() for tick in axes.get_xticks())


def test_contrasts_with_one_effect_of_people_are_named_at_the_models_points() -> None:
    effects = pd.DataFrame(
        [
            {"contrast": name, "model": "m", "people": "human", "bound": np.nan, "human": human,
             "human_low": human - 5, "human_high": human + 5, "machine": machine,
             "machine_low": machine - 5, "machine_high": machine + 5}
            for name, human, machine in (("a − c", 10.0, 5.0), ("b − c", 10.0, -5.0), ("d − c", -20.0, 0.0))
        ]
    )  # fmt: skip
    kinds = {"human": "human", "m": "model"}
    (axes,) = fidelity_map("map", effects, kinds, MapScale("accuracy", "points")).figure.axes
    at_points = {
        text.get_text(): text.xy
        for text in axes.texts
        if isinstance(text, Annotation) and text.get_position() == (5, 3)
    }
    assert at_points == {"a − c": (10.0, 5.0), "b − c": (10.0, -5.0)}


@pytest.mark.parametrize("tested", [(), ("human",), ("model-0",), ("human", "model-0")])
def test_the_note_on_costs_names_the_intervals_that_are_drawn(tested: tuple[str, ...]) -> None:
    kinds = {"human": "human", "model-0": "model", "rule": "baseline"}
    costs = [
        LevelCost(group, kind, level, 5.0, 1.0, 9.0, group in tested)
        for group, kind in kinds.items()
        for level in POSITIONS[1:]
    ]
    note = position_figure("cost", [(CORRECT, costs, [])], "position", POSITIONS).note
    shown = ShownIntervals.of((cost.kind, cost.is_tested, cost.low) for cost in costs if cost.group != "rule")
    assert (shown.over_people, shown.over_items) == ("human" not in tested, "model-0" not in tested)
    assert (
        shown.from_analyses == bool(tested) and str(shown) in note and "reference minus the condition" in note
    )
    assert ("bootstrap" in note) == (len(tested) < 2) and ("participants" in str(shown)) == shown.over_people


@pytest.mark.usefixtures("without_chapters", "without_companions")
def test_the_answers_figure_draws_the_intervals_of_the_table_and_its_grades(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    rows = study_rows(human=8, models=("restorer",), items=12).assign(rt=None, reading_time=None)
    planned = {"comprehension": PLANNED["comprehension"]}
    planned |= {"gaps": {**planned["comprehension"], "measure": "missing", "contrasts": ["initial - intact"]}}
    rows.loc[::9, "response_status"] = "invalid"
    content = gather(load(write_handover(tmp_path_factory.mktemp("drawn"), rows, planned=planned)))
    drawing = content.figures[0].drawing
    assert drawing.effects and "gaps" in drawing.note, "contrasts of missing answers are in the table alone"
    forest = forest_of(drawing)
    drawn = [tuple(bar[:, 0]) for bars in forest.collections for bar in bars.get_segments()]
    section = content.planned[0]
    for one in section.analysis.contrasts:
        assert felt([one], section.analysis.plan.measure).ends in drawn
    grades = {text.get_text() for text in forest.texts}
    assert content.answer_table is not None
    assert {str(row[-1]) for row in content.answer_table.table.rows if len(row) > 1} <= grades


@pytest.mark.usefixtures("without_chapters", "without_companions")
def test_the_first_figure_is_of_the_first_question_and_refers_to_contrasts_in_the_next(
    tmp_path: Path,
) -> None:
    pairs = {"font": "cursive - plain", "item_type": "transposed - word"}
    planned = {f"by {name}": CROSSED | {"compare": name, "contrasts": [pair]} for name, pair in pairs.items()}
    content = gather(load(crossed_study(tmp_path, crossed_rows(people=8, items=8).assign(rt=None), planned)))
    first, second = content.figures[:2]
    assert {effect.label for effect in first.drawing.effects} == {"cursive − plain"}
    assert second.drawing.effects
    (answered,) = {content.answer_table and content.answer_table.number}
    assert f"Figure {second.number}" in first.drawing.note and f"Table {answered}" not in first.drawing.note


CONDITIONS = tuple(f"condition_{number}" for number in range(27))
SMALLEST = 6
"""Points of letters that can still be read in print."""


def spread(level: str, measure: str) -> TimeSpread:
    times = np.geomspace(300, 1800, 20)
    return TimeSpread(
        "simulated", "simulated", measure, level, times[:7], times[8:12], times, np.ones(20), trials=40
    )


def names_beside(figure: Figure, panel: int) -> list[str]:
    labels = figure.axes[panel].get_yticklabels()
    assert all(one.get_fontsize() >= SMALLEST for one in labels)
    return [one.get_text() for one in labels]


def test_times_in_many_conditions_stand_in_low_rows() -> None:
    many = [spread(level, measure) for measure in ("reading_time", "rt") for level in CONDITIONS]
    figure = time_distribution_figure("times", many, "scramble", CONDITIONS).figure
    assert figure.get_figheight() <= TALLEST
    assert names_beside(figure, 0) == names_beside(figure, 1) == list(CONDITIONS)
    few = time_distribution_figure("times", [spread("intact", "rt")], "scramble", ["intact"])
    assert few.figure.get_figheight() < 2


def effect(measure: str, label: str) -> Recovered:
    return Recovered(measure, measure, "log_ms", label, 0.1, 0.2, 0.0, 0.4)


def test_effects_of_measures_that_lack_one_stand_once_beside_all_panels() -> None:
    labels = [f"{name} − intact" for name in CONDITIONS]
    some = [effect("correct", label) for label in labels[:3] + labels[4:]]
    figure = recovery_figure("recovery", [*some, *(effect("rt", label) for label in labels)]).figure
    assert figure.get_figheight() <= TALLEST
    assert names_beside(figure, 0) == list(labels)
    assert names_beside(figure, 1) == []
    (places,) = [line.get_ydata() for line in figure.axes[0].lines if line.get_marker() == "D"]
    assert list(places) == [*range(3), *range(4, 27)], "the effect that is missing leaves its row empty"


def overlapping(figure: Figure, texts: list[list[Text]]) -> list[str]:
    figure.draw_without_rendering()
    return [
        f"{one.get_text()} | {other.get_text()}"
        for row in texts
        for one, other in itertools.pairwise(row)
        if one.get_window_extent().overlaps(other.get_window_extent())
    ]


def test_titles_and_axes_of_panels_side_by_side_do_not_run_into_each_other() -> None:
    measures = ("Response time", "Reading time of the relative region", "Reading time of the main region")
    effects = [
        replace(effect(title, "object − subject"), title=title, reference="subject") for title in measures
    ]
    figure = recovery_figure("recovery", effects).figure
    with styled():
        assert not overlapping(
            figure,
            [
                [axes._left_title for axes in figure.axes],  # type: ignore[attr-defined]
                [axes.xaxis.label for axes in figure.axes],
                *([*axes.get_xticklabels()] for axes in figure.axes),
            ],
        )
    edge = figure.bbox.x1
    assert max(axes._left_title.get_window_extent().x1 for axes in figure.axes) <= edge  # type: ignore[attr-defined]


def test_effects_of_fits_that_did_not_converge_are_not_checked() -> None:
    good, poor = effect("rt", "a − b"), replace(effect("rt", "c − b"), converged=False)
    lost = replace(effect("rt", "d − b"), low=float("nan"), high=float("nan"))
    assert [one.covered for one in (good, poor, lost)] == [True, None, None]
    said = str(_recovered(SimpleNamespace(recovery=[good, poor, lost], recovery_sections=[])))
    assert "interval estimated" in said and "all" not in said
    assert "One value was not checked" in said and "One effect has no interval" in said


def test_an_effect_that_is_tested_without_its_model_has_the_interval_of_the_test() -> None:
    test = SimpleNamespace(label="a − b", groups=("simulated",), estimate=-1.81, low=-2.207, high=-1.404)
    tested = _as_tested(effect("rating", "a − b"), SimpleNamespace(estimable=[test]))  # type: ignore[arg-type]
    assert (tested.estimate, tested.low, tested.high) == (-1.81, -2.207, -1.404)


def test_lapses_of_a_baseline_are_no_simulated_readers() -> None:
    lapses = Recovered("lapses", "Lapses", "share", "lapses of oracle", 0.1, 0.06, 0.03, 0.1)
    for effects, told in (
        ([lapses], "Baselines: not data"),
        ([effect("correct", "a − b"), lapses], "Simulated readers: not data"),
    ):
        assert told in {text.get_text() for text in recovery_figure("recovery", effects).figure.texts}


def test_letters_that_the_main_font_lacks_are_drawn_in_a_font_of_this_computer(monkeypatch) -> None:
    monkeypatch.setattr(
        "matplotlib.font_manager.get_font_names", lambda: ["SimHei", "Yu Gothic", "MS Gothic"]
    )
    font_families.cache_clear()
    with styled():
        assert rcParams["font.family"] == ["sans-serif", "Yu Gothic", "SimHei"]
    font_families.cache_clear()


def test_two_measures_share_a_figure_only_if_it_leaves_room_on_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = load(write_handover(tmp_path, study_rows(human=6, items=8).assign(rt=None), planned=PLANNED))
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    analyses = planned_analyses(tables, companion=False)
    asked = planned_effects(analyses, Matrix(), [], {})
    (description,) = described(used, tables)
    names = {}
    for most in (20.0, 1.0):
        monkeypatch.setattr("analysis.figures.conditions.MOST_TOGETHER", most)
        drawn = list(figures_of(description, used, tables, asked, analyses))
        names[most] = [drawing.name for _, drawing, _ in drawn if drawing.name.startswith("condition_")]
        first = {
            drawing.name: (
                first_asked(analyses, asked, drawing.effects), first_asked(analyses[::-1], asked, drawing.effects)
            )
            for _, drawing, _ in drawn
        }  # fmt: skip
    assert first["condition_correct_position"] == (0, 1) and first["condition_reading_time_position"] == (
        1,
        0,
    )
    assert first["cost_position"] == (np.inf, np.inf), (
        "the Answer's figure shows what the first question asks"
    )
    assert names[20.0] == ["condition_correct_and_reading_time_position"]
    assert names[1.0] == ["condition_correct_position", "condition_reading_time_position"]
