"""What reading costs: people's times on two scales and word by word, models' tokens, times and surprisal, and both together.

A cost of people and one of models have no unit in common. They are compared only as log ratios against each reader's own
intact baseline and as profiles scaled to their own mean (:mod:`analysis.costs.ratios`), or by asking how many milliseconds a
bit of surprisal takes (:mod:`analysis.costs.surprisal`). Nothing is standardised by a spread: a deterministic model has none.
"""

from analysis.costs.crossed import Profile, crossed_profile, paired_profile
from analysis.costs.linking import linking
from analysis.costs.ratios import cost_profiles, log_ratios, profiles
from analysis.costs.scales import TimeScales, time_scales
from analysis.costs.spill_over import SpillOver, spill_over
from analysis.costs.units import MEASURES_OF_MODELS, unit_costs
from analysis.costs.words import WordTable, word_table

__all__ = [
    "MEASURES_OF_MODELS",
    "Profile",
    "SpillOver",
    "TimeScales",
    "WordTable",
    "cost_profiles",
    "crossed_profile",
    "linking",
    "log_ratios",
    "paired_profile",
    "profiles",
    "spill_over",
    "time_scales",
    "unit_costs",
    "word_table",
]
