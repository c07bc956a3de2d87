"""The rules by which a study excludes sessions, as the dashboard applies them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from analysis.plan import KEYLESS, read_sign_rule

if TYPE_CHECKING:
    from experiment.study.study import Study


def session_rules(study: Study) -> dict[str, float]:
    """Return the declared rules by which sessions may be excluded: sign → the value above which it counts.

    The share of right answers, of which little is bad, is kept as the share of wrong ones.
    """
    given = study.get("analysis", "exclude", "sessions", default={})
    rules = {sign: read_sign_rule(sign, text).above for sign, text in given.items()}
    return {**rules, KEYLESS: math.inf} if allows_assistive_input(study) else rules


def allows_assistive_input(study: Study) -> bool:
    """Return whether text without key strokes is no sign of carelessness in a study."""
    return bool(study.get("participants", "assistive_input"))
