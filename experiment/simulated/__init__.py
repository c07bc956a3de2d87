"""Simulated readers: human-like answers and times with known effects, through the real API.

The simulated effects are stored as the *truth*, so that the report can compare them with the recovered ones. Simulated readers
never count as data.
"""

from experiment.simulated.reader import SimulatedReader, StudyEntrance, begin_at, fill, take_part
from experiment.simulated.truth import GroundTruth, Lapses, TrueEffects, Words, read_truth

__all__ = [
    "GroundTruth",
    "Lapses",
    "SimulatedReader",
    "StudyEntrance",
    "TrueEffects",
    "Words",
    "begin_at",
    "fill",
    "read_truth",
    "take_part",
]
