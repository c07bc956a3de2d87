"""What models are trained on: scrambled texts for language modelling, and labelled texts of H-TEST tasks.

``ScrambledTexts(TextFiles((path,)), "FT-RS", seed=1)`` yields :class:`Passage`; ``htest_training_set("uppercase", …)`` holds
:class:`Exchange`. Both have ``to_json()``.
"""

from stimuli.training.held_out import HeldOut
from stimuli.training.htest_sets import HtestSet, ReleasedTraining, htest_training_set, released_training_set
from stimuli.training.records import Exchange, Passage
from stimuli.training.scrambled import PUBLISHED_RULES, SAMPLES, WORDS, Counts, ScrambledTexts
from stimuli.training.sources import TextFiles

__all__ = [
    "PUBLISHED_RULES",
    "SAMPLES",
    "WORDS",
    "Counts",
    "Exchange",
    "HeldOut",
    "HtestSet",
    "Passage",
    "ReleasedTraining",
    "ScrambledTexts",
    "TextFiles",
    "htest_training_set",
    "released_training_set",
]
