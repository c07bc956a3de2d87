"""Mixed-effects models: R's formulas, lme4's numbers, numpy and scipy inside.

A fit reads from formula to inference through one module each: ``formula`` and ``variables`` read the model, ``design``,
``frame`` and ``matrices`` make X and Z, ``blocks`` solves penalised least squares, ``linear`` and ``laplace`` are the
deviances with their gradients, ``optimise`` finds the minimum, ``inference``,
``margins`` and their neighbours draw the conclusions.
Symbols are those of Bates et al. (2015).
"""

from .bootstrap import Bootstrap, bootstrap
from .degrees import FTest
from .diagnosis import APPROXIMATE
from .equivalence import equivalence_tests
from .fitting import fit
from .inference import linear_contrasts
from .joint import anova, joint_test, with_degrees
from .kenward_roger import KenwardRoger, kenward_roger
from .likelihood_ratio import LikelihoodRatio, likelihood_ratio_test
from .margins import Margins, margins, trends
from .prediction import predict, random_modes
from .profile import profile_intervals
from .program import lme4_program
from .questions import Answer, Questions, answer, comparison
from .r_squared import RSquared, r_squared
from .residuals import residuals
from .result import Fit, VarianceComponent
from .simulation import simulate

__all__ = [
    "APPROXIMATE",
    "Answer",
    "Bootstrap",
    "FTest",
    "Fit",
    "KenwardRoger",
    "LikelihoodRatio",
    "Margins",
    "Questions",
    "RSquared",
    "VarianceComponent",
    "anova",
    "answer",
    "bootstrap",
    "comparison",
    "equivalence_tests",
    "fit",
    "joint_test",
    "kenward_roger",
    "likelihood_ratio_test",
    "linear_contrasts",
    "lme4_program",
    "margins",
    "predict",
    "profile_intervals",
    "r_squared",
    "random_modes",
    "residuals",
    "simulate",
    "trends",
    "with_degrees",
]
