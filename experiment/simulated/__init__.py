"""Simulated readers: people-like answers and times with known effects, through the real interface or the real page.

What was put in is kept as the *truth*, so that the report can show it beside what the models recover. Simulated readers are
never data.
"""

from experiment.simulated.reader import SimulatedReader, begin_at, fill, take_part
from experiment.simulated.truth import GroundTruth, Lapses, TrueEffects, Words, read_truth

__all__ = [
    "GroundTruth",
    "Lapses",
    "SimulatedReader",
    "TrueEffects",
    "Words",
    "begin_at",
    "fill",
    "read_truth",
    "take_part",
]
