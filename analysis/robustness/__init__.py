"""Whether a conclusion hangs on the wording of prompts, on labels, on a few items, or on the random effects of a model."""

from analysis.robustness.matrix import gee_check, leave_item_sets_out, robustness_matrix, without_item_sets
from analysis.robustness.variation import asked_otherwise, asking_variation
from analysis.whole_readers import drawn_readers

__all__ = [
    "asked_otherwise",
    "asking_variation",
    "drawn_readers",
    "gee_check",
    "leave_item_sets_out",
    "robustness_matrix",
    "without_item_sets",
]
