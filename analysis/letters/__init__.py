"""Effects of changed letters and their explanations: positions, kinds of change, distance, match scores and tokens."""

from analysis.letters.changes import letter_changes
from analysis.letters.letter_costs import letter_contrast, letter_costs
from analysis.letters.predictor_comparison import Competing, competing_predictors
