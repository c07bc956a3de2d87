"""Power by simulation: draw planned studies of many sizes, analyse each as it would be analysed, count what is found.

``assumptions`` holds what is taken to be true, from values by hand or a table of the literature; ``pilots`` derives it from a pilot or
a fit. ``simulation`` lays studies out, draws and analyses them, ``curves`` counts and reports what was found, and ``expected`` works
precision out without drawing.
"""

from analysis.power.assumptions import assumed, from_table
from analysis.power.curves import needed, power_table, tell
from analysis.power.expected import expected_precision
from analysis.power.simulation import Question, grid, planned_of, simulate

__all__ = [
    "Question",
    "assumed",
    "expected_precision",
    "from_table",
    "grid",
    "needed",
    "planned_of",
    "power_table",
    "simulate",
    "tell",
]
