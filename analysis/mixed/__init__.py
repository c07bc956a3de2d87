"""Mixed-effects models: R's formulas, lme4's numbers, numpy and scipy inside.

A fit goes one way, stage by stage; no module imports from a later stage (a test checks the imports).

formula
    ``formula`` reads and writes R and takes a model apart into terms; ``variables`` turns columns into numbers and factors;
    ``notes`` words what any stage notes of a fit.
matrices
    ``families`` has densities and links, ``responses`` ties them to y; ``matrices`` keeps rows, y, w and the offset o, and makes
    X (n, p), Z (n, q) and Lambda(theta); ``blocks`` and ``elimination`` factor H = Lambda' Z'WZ Lambda + I.
deviance
    ``linear`` profiles beta and sigma out; ``laplace`` finds u and integrates over it; ``criterion`` adds quadrature and a
    prior and chooses among them. All have exact gradients.
optimiser
    ``optimise`` comes near the minimum, finishes with Newton steps and judges the result.
inference
    ``fitting`` fits and ``result`` is what it returns; all other modules draw conclusions from that.

Symbols are those of Bates et al. (2015): y = X beta + Z b + o, b = Lambda u, u spherical, theta the entries of Lambda.
"""

from analysis.mixed.fitting import completed, fit, sketch
from analysis.mixed.formula import APPROXIMATE, Note
from analysis.mixed.hypotheses import (
    LikelihoodRatio,
    anova,
    joint_test,
    kenward_roger,
    likelihood_ratio_test,
    with_degrees,
)
from analysis.mixed.inference import equivalence_tests, linear_contrasts
from analysis.mixed.intervals import Bootstrap, bootstrap, profile_intervals
from analysis.mixed.marginal_means import CategoryMargins, Margins, category_margins, margins, trends
from analysis.mixed.prediction import (
    RSquared,
    influence,
    predict,
    r_squared,
    random_modes,
    residuals,
    simulate,
    simulated_residuals,
)
from analysis.mixed.r_script import lme4_program
from analysis.mixed.result import Fit, VarianceComponent
