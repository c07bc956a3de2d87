"""Figures are laid out once for all of their files."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from analysis.figures.cost import MOST_TOGETHER, _shares
from analysis.figures.drawing import WIDTH, Drawing, as_svg, looks, shown_of, styled
from analysis.figures.labels import SLANT, fit_labels, laid_out, places_of
from analysis.figures.panels import condition_looks


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
        for box in (
            (0, 0, wide, 12),
            (0, high - 12, wide, high),
            (0, 0, 12, high),
            (wide - 12, 0, wide, high),
        ):
            assert grey.crop(box).getextrema() == (255, 255)
        dark = np.flatnonzero(np.asarray(grey).min(axis=0) < 200)
        assert dark[0] < 60 and dark[-1] > wide - 60


LEVELS = {
    "short": ["intact", "initial", "internal", "final"],
    "two words": ["unverändert", "Anfang vertauscht", "Inneres vertauscht", "Schluss vertauscht"],
    "long": [
        "unveraendert",
        "vertauschte_Anfangsbuchstaben_des_Wort",
        "Buchstabendreher_im_Inneren_der_Woerter",
        "vertauschte_Schlussbuchstaben_des_Worts",
    ],
    "many": [
        "intact",
        *(f"{kind}{n}-{zone}" for kind in "TS" for n in range(4) for zone in ("initial", "final")),
    ],
}


@pytest.mark.parametrize("name", LEVELS)
@pytest.mark.parametrize("across", [0.4, 0.64, 0.9])
def test_labels_of_an_axis_never_run_into_each_other_and_lose_no_letter(name: str, across: float) -> None:
    levels = LEVELS[name]
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
