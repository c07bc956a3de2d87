"""The grammar of planned analyses, their contrasts, measures and bounds, and their wording."""

from analysis.plan.bounds import (
    KEYLESS,
    RIGHT_SHARE,
    Bound,
    Prior,
    SignRule,
    read_bound,
    read_prior,
    read_sign_rule,
    read_times,
)
from analysis.plan.checks import Design, faults_of, faults_of_exclusions, faults_of_families
from analysis.plan.contrasts import (
    IN,
    TIMES,
    Crossing,
    Difference,
    Direction,
    Fault,
    against_reference,
    cell_name,
    compared_together,
    crossed_name,
    label_of,
    read_contrast,
    usual_contrasts,
)
from analysis.plan.measures import (
    DESCRIBED,
    MEASURES,
    MISSING,
    OF_MODELS,
    PLANNABLE,
    RATING,
    RECOVERED,
    WORDS,
    WORDS_WITH_ONE_TYPO,
    Measure,
)
from analysis.plan.plans import ALPHA, Plan, PlannedAnalysis, Rules, StudyPlan, Within, read_plan
from analysis.plan.wording import (
    hypotheses,
    plan_in_brief,
    plans_in_words,
    readers_in_words,
    rules_in_words,
    summary_of,
)

__all__ = [
    "ALPHA", "DESCRIBED", "IN", "KEYLESS", "MEASURES", "MISSING", "OF_MODELS", "PLANNABLE",
    "RATING", "RECOVERED", "RIGHT_SHARE", "TIMES", "WORDS", "WORDS_WITH_ONE_TYPO", "Bound", "Crossing",
    "Design", "Difference", "Direction", "Fault", "Measure", "Plan", "PlannedAnalysis", "Prior", "Rules", "SignRule",
    "StudyPlan", "Within", "against_reference", "cell_name", "compared_together", "crossed_name",
    "faults_of", "faults_of_exclusions", "faults_of_families", "hypotheses", "label_of",
    "plan_in_brief", "plans_in_words", "read_bound", "read_contrast", "read_plan", "read_prior", "read_sign_rule",
    "read_times", "readers_in_words", "rules_in_words", "summary_of", "usual_contrasts",
]  # fmt: skip
