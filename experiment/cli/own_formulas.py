"""Holds the models that a plan writes out itself against what analysis can fit, before there are data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.study import Study


def check_own_formulas(study: Study) -> None:
    """Check each formula and fallback of the planned analyses."""
    from experiment.study.plans import PLANNED, planned_analyses

    given = [
        (one, key, text)
        for one in planned_analyses(study)
        for key, text in (("formula", one.formula), ("fallback", one.fallback))
        if text is not None
    ]
    for one, key, text in given:
        from analysis.frames import check_own_formula

        measure, several = next(iter(one.by_measure)), len(one.readers) > 1
        try:
            check_own_formula(text, measure, one.factors, list(study.factors), several_readers=several)
        except UserError as fault:
            place = study.place(*PLANNED, one.name, key)
            raise UserError(f"{place}: {fault.message}", mend=fault.mend) from None
