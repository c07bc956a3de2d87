"""Sets of items that agree on covariates: matched conditions, balanced lists, and the report of how well they agree."""

from stimuli.matching.candidates import (
    SMD_LIMIT,
    Balance,
    Candidate,
    Contrast,
    Spread,
    Tolerance,
    balance,
    standardised_difference,
)
from stimuli.matching.lists import match_lists
from stimuli.matching.sets import Matched, Unmet, match_sets

__all__ = [
    "SMD_LIMIT",
    "Balance",
    "Candidate",
    "Contrast",
    "Matched",
    "Spread",
    "Tolerance",
    "Unmet",
    "balance",
    "match_lists",
    "match_sets",
    "standardised_difference",
]
