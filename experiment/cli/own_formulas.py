"""Holds the models that a plan writes out itself against what analysis can fit, before there are data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.study import Study


def check_own_formulas(study: Study) -> None:
    """Check each formula and fallback of the planned analyses.

    Raises
    ------
    UserError
        Says line, formula, rule and mend.
    """
    from experiment.study.plans import own_formulas

    for place, text, planned in own_formulas(study):
        from analysis.own_model import check_own_formula

        measure = next(iter(planned.measures.values()))
        several = len(planned.readers) > 1
        try:
            check_own_formula(text, measure, planned.factors, list(study.factors), several_readers=several)
        except UserError as fault:
            raise UserError(f"{place}: {fault.message}", mend=fault.mend) from None
