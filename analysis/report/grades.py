"""The certainty of the answer to a planned question: its worst check decides."""

from __future__ import annotations

from dataclasses import dataclass

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
    if checked.agreeing == n_checks:
        return f"{_of_checks(n_checks, n_checks)} {'agree' if n_checks > 1 else 'agrees'}"
    by_outcome: dict[str, list[str]] = {}
    for name, cell in checked.cells.items():
        if cell.outcome != SAME:
            by_outcome.setdefault(cell.outcome, []).append(f"{name[0].lower()}{name[1:]}")
    findings = [
        f"{FOUND[outcome]} in {_of_checks(len(names), n_checks)}"
        + (f" ({', '.join(names)})" if len(names) <= MOST_TESTS_NAMED else "")
        for outcome, names in by_outcome.items()
    ]
    agrees = "agrees" if checked.agreeing == 1 else "agree"
    agreeing = [f"{checked.agreeing} of {n_checks} checks {agrees}"] if checked.agreeing else []
    return "; ".join([*agreeing, *findings])


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
