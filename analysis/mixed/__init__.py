"""Mixed-effects models: R's formulas, lme4's numbers, numpy and scipy inside.

A fit goes one way, stage by stage; no module knows of a later stage (a test holds the list below against the imports).

formula
    ``expression`` reads R, ``deparse`` writes it; ``formula`` takes a model apart into terms; ``numeric`` and ``factors``
    turn columns into numbers and levels by ``transforms``, ``splines`` and ``coding``; ``variables`` makes each once.
matrices
    ``frame`` keeps rows, y, w and the offset o; ``families`` and ``links`` say how y arises, ``responses`` ties them to y, and
    ``ordered`` does so for ordered categories, ``times`` for shifted lognormal and ex-Gaussian times;
    ``design`` makes X (n, p); ``covariance`` holds Lambda(theta), ``matrices`` Z (n, q) beside X; ``blocks``, ``cells`` and
    ``elimination`` factor H = Lambda' Z'WZ Lambda + I.
deviance
    ``linear`` profiles beta and sigma out; ``modes`` finds u, ``laplace`` and ``quadrature`` integrate over it;
    ``independence`` gives a start, ``penalty`` a prior, ``criterion`` chooses among them. All have exact gradients.
optimiser
    ``descent`` comes near the minimum, ``optimise`` finishes with Newton steps and judges what was found.
inference
    ``fitting`` is the front door and ``result`` what it returns; all other modules draw conclusions from that.

Symbols are those of Bates et al. (2015): y = X beta + Z b + o, b = Lambda u, u spherical, theta the entries of Lambda.
"""

from .bootstrap import Bootstrap, bootstrap
from .degrees import FTest
from .diagnosis import APPROXIMATE
from .equivalence import equivalence_tests
from .fitting import completed, fit, sketch
from .inference import linear_contrasts
from .joint import anova, joint_test, with_degrees
from .kenward_roger import KenwardRoger, kenward_roger
from .likelihood_ratio import LikelihoodRatio, likelihood_ratio_test
from .margins import CategoryMargins, Margins, category_margins, margins, trends
from .model_checks import SimulatedResiduals, influence, simulated_residuals
from .prediction import predict, random_modes
from .profile import profile_intervals
from .program import lme4_program
from .r_squared import RSquared, r_squared
from .residuals import residuals
from .result import Fit, VarianceComponent
from .simulation import simulate

__all__ = [
    "APPROXIMATE",
    "Bootstrap",
    "CategoryMargins",
    "FTest",
    "Fit",
    "KenwardRoger",
    "LikelihoodRatio",
    "Margins",
    "RSquared",
    "SimulatedResiduals",
    "VarianceComponent",
    "anova",
    "bootstrap",
    "category_margins",
    "completed",
    "equivalence_tests",
    "fit",
    "influence",
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
    "simulated_residuals",
    "sketch",
    "trends",
    "with_degrees",
]
