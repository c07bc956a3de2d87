"""How faithful a model is to people: in effects, in single items, and in the order of conditions; all of it model by model.

A model may be as accurate as people for other reasons. :mod:`~analysis.fidelity.effects` holds every planned effect of people
against the model's and against the bound frozen beforehand, :mod:`~analysis.fidelity.items` asks whether the items that are hard for
people are hard for the model, as far as either side is reliable at all, and :mod:`~analysis.fidelity.order` whether conditions come in
the same order.
"""

from analysis.fidelity.effects import cost_effects, effects
from analysis.fidelity.items import item_agreement, item_cells, item_means_by_level
from analysis.fidelity.order import accuracy_profiles, rank_agreement, trial_profiles
from analysis.fidelity.reliability import Halves, halves, reliability, spearman_brown

__all__ = [
    "Halves",
    "accuracy_profiles",
    "cost_effects",
    "effects",
    "halves",
    "item_agreement",
    "item_cells",
    "item_means_by_level",
    "rank_agreement",
    "reliability",
    "spearman_brown",
    "trial_profiles",
]
