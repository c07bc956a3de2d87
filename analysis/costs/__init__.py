"""What reading costs: people's times on two scales and word by word, models' tokens, times and surprisal, and both together.

A cost of people and one of models have no unit in common. They are compared only as log ratios against each reader's own
intact baseline and as profiles scaled to their own mean (:mod:`analysis.costs.ratios`), or by asking how many milliseconds a
bit of surprisal takes (:mod:`analysis.costs.linking`). Nothing is standardised by a spread: a deterministic model has none.
"""

from analysis.costs.around import ReadingProfile, reading_profile
from analysis.costs.crossed import Profile, crossed_profile, paired_profile
from analysis.costs.linking import linking
from analysis.costs.ratios import cost_profiles, log_ratios, profiles
from analysis.costs.sampling import fewer_participants
from analysis.costs.scales import TimeScales, time_scales
from analysis.costs.spill_over import SpillOver, spill_over
from analysis.costs.spread import TimeSpread, time_spreads
from analysis.costs.tradeoff import cost_and_accuracy, shown_profiles
from analysis.costs.units import MEASURES_OF_MODELS, unit_costs
from analysis.costs.words import WordTable, word_table

__all__ = [
    "MEASURES_OF_MODELS",
    "Profile",
    "ReadingProfile",
    "SpillOver",
    "TimeScales",
    "TimeSpread",
    "WordTable",
    "cost_and_accuracy",
    "cost_profiles",
    "crossed_profile",
    "fewer_participants",
    "linking",
    "log_ratios",
    "paired_profile",
    "profiles",
    "reading_profile",
    "shown_profiles",
    "spill_over",
    "time_scales",
    "time_spreads",
    "unit_costs",
    "word_table",
]
