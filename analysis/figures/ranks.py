"""How models stand to each other: accuracy lost by size within families, and recovery beside the task."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from analysis import apa
from analysis.figures.drawing import WIDTH, Drawing, Look, as_svg, label_ends, looks, styled
from analysis.figures.fidelity_map import wrapped


def told_size(parameters: float) -> str:
    """Write a number of parameters as people say it: 350M, 1.4B."""
    for value, sign in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if parameters >= value:
            return f"{parameters / value:.3g}{sign}"
    return f"{parameters:.0f}"


def size_figure(name: str, table: pd.DataFrame, slopes: pd.DataFrame) -> Drawing:
    """Draw points of accuracy lost against the number of parameters, a line a family.

    Parameters
    ----------
    name : str
        File name without ending.
    table : pandas.DataFrame
        From :func:`analysis.rankings.robustness_table`, models with a known size alone.
    slopes : pandas.DataFrame
        From :func:`analysis.rankings.robustness_by_size`.
    """
    families = list(dict.fromkeys(slopes["family"]))
    look = looks(dict.fromkeys(families, "model"))
    with styled():
        figure = Figure(figsize=(WIDTH, 3.7))
        axes = figure.add_axes((0.1, 0.14, 0.66, 0.78))
        axes.set_xscale("log")
        sizes = table[table["family"].isin(families)]
        low, high = float(sizes["parameters"].min()), float(sizes["parameters"].max())
        axes.set_xlim(low / 1.6, high * 1.6)
        ends = []
        for turn, family in enumerate(families):
            own = sizes[sizes["family"] == family].sort_values("parameters")
            line = slopes[(slopes["family"] == family) & (slopes["measure"] == "lost")].iloc[0]
            ends.append(_family(axes, own, float(line["slope"]), look[family], turn, len(families)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: told_size(value)))
        ticks = _ticks(low, high)
        axes.set_xticks(ticks)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.axhline(0, color="#333333", lw=0.8, zorder=1)
        axes.set_xlabel("Parameters (log scale)")
        axes.set_ylabel("Percentage points of accuracy lost")
        label_ends(axes, ends, high * 1.75)
    title = "Accuracy lost where text is changed, by number of parameters"
    note = (
        "Points are models, with 95% bootstrap intervals over items; lines are least-squares lines on log parameters within a family. "
        "Families of fewer than three sizes are in the table alone. Lower is more robust."
    )
    told = "; ".join(
        f"{row['model']} ({row['family']}, {told_size(row['parameters'])}) {apa.number(row['lost'], 1)}"
        for row in sizes.to_dict("records")
    )
    alternative = f"Percentage points lost by model size. {told}."
    return Drawing(name, title, note, alternative, as_svg(figure, name, title, alternative), figure)


def _ticks(low: float, high: float) -> list[float]:
    found = [
        10.0**power * step
        for power in range(int(np.floor(np.log10(low))) - 1, int(np.ceil(np.log10(high))) + 1)
        for step in ((1, 3) if high / low < 1e3 else (1,))
    ]
    return [one for one in found if low / 1.6 <= one <= high * 1.6] or [low, high]


def _family(
    axes: Axes, own: pd.DataFrame, slope: float, it: Look, turn: int, many: int
) -> tuple[float, float, str, str]:
    x = own["parameters"].to_numpy() * 1.04 ** (turn - (many - 1) / 2)
    y = own["lost"].to_numpy()
    logs = np.log10(own["parameters"].to_numpy())
    fitted = y.mean() + slope * (logs - logs.mean())
    axes.plot(own["parameters"], fitted, color=it.colour, ls=it.line, lw=1.3, zorder=2)
    axes.vlines(x, own["lost_low"], own["lost_high"], color=it.colour, lw=1.3, zorder=3)
    axes.plot(x, y, ls="", marker=it.marker, ms=5.5, mfc="white", mec=it.colour, mew=1.3, zorder=4)
    return float(own["parameters"].iloc[-1]), float(fitted[-1]), wrapped(it.label, 22), it.colour


def recovery_figure(name: str, table: pd.DataFrame) -> Drawing:
    """Draw what models recover against what they answer right.

    Parameters
    ----------
    name : str
        File name without ending.
    table : pandas.DataFrame
        Of :class:`analysis.rankings.RecoveryOrder`.
    """
    models = [str(one) for one in table["model"]]
    look = looks(dict.fromkeys(models, "model"))
    with styled():
        figure = Figure(figsize=(WIDTH, 3.9))
        axes = figure.add_axes((0.1, 0.13, 0.56, 0.8))
        axes.grid(visible=True, axis="both")
        ends = []
        for row in table.to_dict("records"):
            it = look[str(row["model"])]
            axes.hlines(
                row["task"], row["recovery_low"], row["recovery_high"], color=it.colour, lw=1.2, zorder=2
            )
            axes.vlines(row["recovery"], row["task_low"], row["task_high"], color=it.colour, lw=1.2, zorder=2)
            axes.plot(
                [row["recovery"]],
                [row["task"]],
                marker=it.marker,
                ms=6,
                mfc="white",
                mec=it.colour,
                mew=1.3,
                ls="",
                zorder=3,
            )
            ends.append(
                (float(row["recovery"]), float(row["task"]), wrapped(str(row["model"]), 24), it.colour)
            )
        axes.set_xlabel("Mean recovery of changed text (%)")
        axes.set_ylabel("Answers right on changed text (%)")
        left, right = axes.get_xlim()
        axes.set_xlim(left, right)
        label_ends(axes, ends, right + 0.03 * (right - left))
    title = "Recovery of changed text and accuracy of the task, model by model"
    note = (
        "Points are models, bars 95% bootstrap intervals over items. Answers that are not valid count as 0%."
    )
    told = "; ".join(
        f"{row['model']}: recovery {apa.number(row['recovery'], 1)}%, task {apa.number(row['task'], 1)}%"
        for row in table.to_dict("records")
    )
    return Drawing(name, title, note, told + ".", as_svg(figure, name, title, told + "."), figure)
