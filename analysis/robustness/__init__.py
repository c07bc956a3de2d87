"""Whether a conclusion hangs on the wording of prompts, on labels, on a few items, or on the random effects of a model."""

from analysis.robustness.bounding import drawn_readers
from analysis.robustness.leave_out import leave_item_sets_out, without_item_sets
from analysis.robustness.marginal import gee_check
from analysis.robustness.matrix import robustness_matrix
from analysis.robustness.variation import asked_otherwise, asking_variation

__all__ = [
    "asked_otherwise",
    "asking_variation",
    "drawn_readers",
    "gee_check",
    "leave_item_sets_out",
    "robustness_matrix",
    "without_item_sets",
]
