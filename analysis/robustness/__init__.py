"""Whether a conclusion hangs on the wording of prompts, on labels, on a few items, or on the random effects of a model."""

from analysis.robustness.leave_out import leave_item_sets_out
from analysis.robustness.marginal import gee_check
from analysis.robustness.variation import asking_variation

__all__ = ["asking_variation", "gee_check", "leave_item_sets_out"]
