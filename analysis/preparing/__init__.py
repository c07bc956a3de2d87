"""From handed-over rows to those that an analysis uses: reasons, bounds, declared signs, and the tables that count them."""

from analysis.preparing.alternatives import Alternative, alternatives, of_flagged_sessions
from analysis.preparing.bounds import Bounds, EveryTime, Spread, TimeRule, time_bounds, time_reasons
from analysis.preparing.copies import (
    COUNTED_ONCE,
    copies,
    each_answer_once,
    not_told_apart,
    same_prompts,
    unseen,
)
from analysis.preparing.exclusions import IDENTICAL, TIMED, flag_trials, newest_design
from analysis.preparing.flow import flow, flow_steps, time_steps
from analysis.preparing.of_plan import (
    keeps_right_answers_alone,
    left_out_by_plan,
    own_bounds,
    without_choices,
)
from analysis.preparing.signs import declared_rules, session_signs, sessions_against_rules

__all__ = [
    "COUNTED_ONCE",
    "IDENTICAL",
    "TIMED",
    "Alternative",
    "Bounds",
    "EveryTime",
    "Spread",
    "TimeRule",
    "alternatives",
    "copies",
    "declared_rules",
    "each_answer_once",
    "flag_trials",
    "flow",
    "flow_steps",
    "keeps_right_answers_alone",
    "left_out_by_plan",
    "newest_design",
    "not_told_apart",
    "of_flagged_sessions",
    "own_bounds",
    "same_prompts",
    "session_signs",
    "sessions_against_rules",
    "time_bounds",
    "time_reasons",
    "time_steps",
    "unseen",
    "without_choices",
]
