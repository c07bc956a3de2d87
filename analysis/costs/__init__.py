"""Reading costs: people's times on two scales and word by word, models' tokens, times and surprisal, and both compared."""

from analysis.costs.ratios import cost_profiles, log_ratios, profiles, time_scales, unit_costs
from analysis.costs.words import linking, spill_over
