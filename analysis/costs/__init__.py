"""What reading costs: people's times on two scales and word by word, models' tokens, times and surprisal, and both together.

A cost of people and one of models have no unit in common. They are compared only as log ratios against each reader's own
intact baseline and as profiles scaled to their own mean (:mod:`analysis.costs.ratios`), or by asking how many milliseconds a
bit of surprisal takes (:mod:`analysis.costs.words`). Nothing is standardised by a spread: a deterministic model has none.
"""

from analysis.costs.ratios import (
    MEASURES_OF_MODELS,
    Profile,
    cost_and_accuracy,
    cost_profiles,
    crossed_profile,
    fewer_participants,
    log_ratios,
    paired_profile,
    profiles,
    shown_profiles,
    unit_costs,
)
from analysis.costs.times import TimeScales, TimeSpread, time_scales, time_spreads
from analysis.costs.words import (
    ReadingProfile,
    SpillOver,
    WordTable,
    linking,
    reading_profile,
    spill_over,
    word_table,
)

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
