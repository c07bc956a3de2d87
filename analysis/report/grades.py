"""The certainty of the answer to a planned question: its worst check decides."""

from __future__ import annotations

from dataclasses import dataclass

from analysis import apa
from analysis.apa import MOST_TESTS_NAMED
from analysis.results import Analysis, Contrast
from analysis.robustness import APPEARS, DECISIVE, NOT_SIGNIFICANT, REVERSED, SAME, CheckedContrast, Matrix


@dataclass(frozen=True)
class Grade:
    """A degree of certainty, and the words that open its sentence."""

    word: str
    opening: str


CLEAR = Grade("Clear", "Yes:")
SUPPORTED = Grade("Supported", "Probably:")
FRAGILE = Grade("Fragile", "Perhaps:")
CONTRADICTED = Grade("Contradicted", "The analyses disagree:")
EQUIVALENT = Grade("Equivalent", "No difference that matters:")
OPEN = Grade("Open", "")
NOT_ESTIMABLE = Grade("Not estimable", "")


def is_open(contrast: Contrast, analysis: Analysis) -> bool:
    """Whether neither a difference nor equivalence is shown."""
    is_equivalent = contrast.equivalence is not None and contrast.equivalence.equivalent
    return not is_equivalent and contrast.p_adjusted >= analysis.plan.alpha


def grade_of(contrast: Contrast, analysis: Analysis, matrix: Matrix) -> Grade:
    """Grade a contrast by its planned test and its checks.

    A significant contrast is clear where all checks agree, supported where it is not significant only under other preparations of
    the data or no check applies, fragile where another scale, another treatment of participants and items, or items left out do, and
    contradicted where a check excludes zero on the other side.
    """
    if not contrast.estimable:
        return NOT_ESTIMABLE
    if contrast.equivalence is not None and contrast.equivalence.equivalent:
        return EQUIVALENT
    if is_open(contrast, analysis):
        return OPEN
    checked = matrix.checked(analysis, contrast)
    cells = {} if checked is None else checked.cells
    failing = {name: cell for name, cell in cells.items() if cell.outcome != SAME}
    if any(cell.outcome == REVERSED and cell.excludes_zero for cell in failing.values()):
        return CONTRADICTED
    if any(name in DECISIVE for name in failing):
        return FRAGILE
    return CLEAR if cells and not failing else SUPPORTED


def support_of(checked: CheckedContrast | None) -> str:
    """Report how many checks agree with a contrast, and what the others find: ``2 of 3 checks agree; the difference is …``.

    More than three that find the same are not named; the matrix in the supplement has them.
    """
    if checked is None:
        return "not checked"
    if not checked.cells:
        return "no check applies"
    n_checks = len(checked.cells)
    is_one = checked.agreeing == 1
    agree = "agrees" if is_one else "agree"
    if is_open(checked.contrast, checked.analysis):
        agree = "is open too" if is_one else "are open too"
    elif checked.contrast.p_adjusted >= checked.analysis.plan.alpha:  # equivalent, which no check tests
        agree = "shows no difference" if is_one else "show no difference"
    if checked.agreeing == n_checks:
        return f"{_of_checks(n_checks, n_checks)} {agree}"
    told = [f"{checked.agreeing} of {n_checks} checks {agree}"] if checked.agreeing else []
    for outcome, found in FOUND.items():
        cells = {
            f"{name[0].lower()}{name[1:]}": cell
            for name, cell in checked.cells.items()
            if cell.outcome == outcome
        }
        whole = [name for name, cell in cells.items() if cell.forms == cell.of]
        where = []
        if whole:
            names = f" ({', '.join(whole)})" if len(whole) <= MOST_TESTS_NAMED else ""
            of_checks = _of_checks(len(whole), n_checks)
            is_first = not told and len(whole) < n_checks
            where.append(f"in {of_checks}{' checks' if is_first else ''}{names}")
        for name, cell in cells.items():
            if cell.forms < cell.of:
                another = "another check" if where else "one check"
                where.append(f"in {cell.forms} of {cell.of} forms of {another} ({name})")
        if where:
            told.append(f"{found} {apa.listing(where)}")
    return "; ".join(told)


FOUND = {
    NOT_SIGNIFICANT: "the difference is not significant",
    REVERSED: "the estimate has the opposite sign",
    APPEARS: "a difference appears",
}


def _of_checks(count: int, total: int) -> str:
    """Count some of the checks: ``all 3 checks``, ``1 of 3``, ``both checks``, ``the one check``."""
    if count < total:
        return f"{count} of {total}"
    return {1: "the one check", 2: "both checks"}.get(total, f"all {total} checks")
