"""Which letters of a word matter, and what explains it: places, kinds of change, distance, match scores and tokens.

:mod:`~analysis.letters.changes` reads from the items what was done to which letters,
:mod:`~analysis.letters.letter_costs` says what that cost each reader, and :mod:`~analysis.letters.competing` lets letter places,
orthographic match scores and tokenisation compete.
"""

from analysis.letters.changes import letter_changes
from analysis.letters.competing import Competing, competing_predictors
from analysis.letters.letter_costs import letter_contrast, letter_costs

__all__ = ["Competing", "competing_predictors", "letter_changes", "letter_contrast", "letter_costs"]
