"""What reading costs: people's times on two scales and word by word, models' tokens, times and surprisal, and both together.

A cost of people and one of models have no unit in common. They are compared only as log ratios against each reader's own
intact baseline and as profiles scaled to their own mean (:mod:`analysis.costs.ratios`), or by asking how many milliseconds a
bit of surprisal takes (:mod:`analysis.costs.words`). Nothing is standardised by a spread: a deterministic model has none.
"""

from analysis.costs.ratios import cost_profiles, log_ratios, profiles, unit_costs
from analysis.costs.times import time_scales
from analysis.costs.words import linking, spill_over

__all__ = ["cost_profiles", "linking", "log_ratios", "profiles", "spill_over", "time_scales", "unit_costs"]
