"""Mixed-effects models: R's formulas, lme4's numbers, numpy and scipy inside.

A fit reads from formula to inference through one module each: ``formula`` and ``variables`` read the model, ``design``,
``frame`` and ``matrices`` make X and Z, ``blocks`` solves penalised least squares, ``linear`` and ``laplace`` are the
deviances with their gradients, ``optimise`` finds the minimum, ``inference`` and ``margins`` draw the conclusions.
Symbols are those of Bates et al. (2015).
"""

from .diagnosis import APPROXIMATE
from .equivalence import equivalence_tests
from .fitting import fit
from .inference import linear_contrasts
from .likelihood_ratio import LikelihoodRatio, likelihood_ratio_test
from .margins import Margins, margins, trends
from .program import lme4_program
from .result import Fit, VarianceComponent

__all__ = [
    "APPROXIMATE",
    "Fit",
    "LikelihoodRatio",
    "Margins",
    "VarianceComponent",
    "equivalence_tests",
    "fit",
    "likelihood_ratio_test",
    "linear_contrasts",
    "lme4_program",
    "margins",
    "trends",
]
