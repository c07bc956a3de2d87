"""Figures of a report: colour-blind safe, legible in grey, labelled in words, marked where readers are not data."""

from analysis.figures.conditions import condition_figure, position_figure
from analysis.figures.drawing import Drawing
from analysis.figures.simulation import recovery_figure

__all__ = ["Drawing", "condition_figure", "position_figure", "recovery_figure"]
