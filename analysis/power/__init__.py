"""Power by simulation: draw planned studies of many sizes, analyse each as it would be analysed, count what is found."""

from analysis.power.assumptions import assumed, from_table
from analysis.power.curves import needed, power_table, tell
from analysis.power.expected import expected_precision
from analysis.power.simulation import SimulationQuestion, grid, planned_of, simulate
