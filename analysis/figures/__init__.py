"""Figures of a report: colour-blind safe, legible in grey, labelled in words, marked where readers are not data."""

from analysis.figures.drawing import Drawing
