"""Figures are laid out once for all of their files."""

import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from analysis.figures.drawing import Drawing, as_svg, looks, styled


def _drawing(name: str, **layout: Any) -> Drawing:
    with styled():
        figure = Figure(figsize=(4.0, 2.0), **layout)
        axes = figure.add_subplot()
        axes.plot([0, 1, 2], [3, 1, 2], label="one")
        axes.set_ylabel("A label that stands far outside of the axes", labelpad=40)
        axes.legend(loc="center left", bbox_to_anchor=(1.05, 0.5))
    return Drawing(name, "Title", "Note.", "A line.", as_svg(figure, name, "Title", "A line."), figure)


def test_a_figure_is_laid_out_once_and_drawn_once_for_each_file(tmp_path: Path) -> None:
    drawn = []
    draw = Figure.draw

    def counted(self: Figure, renderer: Any) -> Any:
        drawn.append(self)
        return draw(self, renderer)

    with patch.object(Figure, "draw", counted):
        _drawing("counted").save(tmp_path)
    assert len(drawn) == 3  # layout, SVG, PNG


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


def test_no_two_models_share_their_mark() -> None:
    found = looks({"human": "human", **{f"model {n}": "model" for n in range(19)}})
    models = [look for group, look in found.items() if group != "human"]
    assert len({look.marker for look in models[:11]}) == 11
    assert len({(look.colour, look.marker) for look in models}) == 19
    assert len({(look.colour, str(look.line)) for look in models}) == 19
    assert found["human"].marker not in {look.marker for look in models}
