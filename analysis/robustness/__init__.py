"""Whether a conclusion depends on the wording of prompts, on labels, on a few items, or on the random effects of a model."""

from analysis.robustness.matrix import gee_check, robustness_matrix, without_item_sets
from analysis.robustness.variation import asked_otherwise
from analysis.whole_readers import drawn_readers

__all__ = [
    "asked_otherwise",
    "drawn_readers",
    "gee_check",
    "robustness_matrix",
    "without_item_sets",
]
