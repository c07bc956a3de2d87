"""People's condition profiles in the plane in which they differ most, and where models lie in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from analysis import apa
from analysis.figures.drawing import WIDTH, Drawing, as_svg, looks, mark_not_data, shortened, styled
from analysis.readers import headed

Array = NDArray[np.float64]

LONGEST = 26


def profile_plane(
    name: str,
    title: str,
    people: tuple[str, Array],
    models: tuple[Sequence[str], Array],
    shares: tuple[float, float],
    kinds: dict[str, str],
    note: str,
) -> Drawing:
    """Draw a point for each person and a marker for each model.

    Parameters
    ----------
    people : (str, ndarray of shape (people, 2))
        Reader group, and where each lies.
    models : (sequence of str, ndarray of shape (models, 2))
    shares : tuple of float
        Of the variance between people, on each axis.
    kinds : dict
        Reader kind of each group.
    """
    group, points = people
    names, places = models
    present = {group: kinds[group], **{one: kinds.get(one, "model") for one in names}}
    style = looks(present)
    with styled():
        figure = Figure(figsize=(WIDTH, 3.6))
        axes = figure.add_axes((0.1, 0.14, 0.56, 0.8))
        axes.axhline(0, color="#999999", lw=0.7, zorder=0)
        axes.axvline(0, color="#999999", lw=0.7, zorder=0)
        handles = [
            axes.scatter(
                points[:, 0],
                points[:, 1],
                s=16,
                color=style[group].colour,
                alpha=0.55,
                lw=0,
                marker=style[group].marker,
                label=f"{style[group].label}, a point each",
            )
        ]
        for one, (x, y) in zip(names, places, strict=True):
            look = style[one]
            handles.append(
                axes.scatter(
                    [x],
                    [y],
                    s=52,
                    facecolor="white",
                    edgecolor=look.colour,
                    lw=1.6,
                    marker=look.marker,
                    label=shortened(look.label, LONGEST),
                    zorder=3,
                )
            )
        for axis, share, said in zip((axes.xaxis, axes.yaxis), shares, ("First", "Second"), strict=True):
            axis.set_label_text(f"{said} component ({apa.percent(share, 0)})")
            axis.set_major_locator(MaxNLocator(nbins=6))
        figure.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(0.68, 0.95), frameon=False, fontsize=8.5
        )
        mark_not_data(figure, present)
    told = "; ".join(
        f"{one} at {apa.number(float(x), 2)} and {apa.number(float(y), 2)}"
        for one, (x, y) in zip(names, places, strict=True)
    )
    spread = points.std(axis=0)
    alternative = (
        f"{title}. {headed(group)}, {len(points)}, spread about the middle with standard deviations "
        f"{apa.number(float(spread[0]), 2)} and "
        f"{apa.number(float(spread[1]), 2)}" + (f"; {told}." if told else ".")
    )
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)
