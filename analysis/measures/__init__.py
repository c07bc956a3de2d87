"""What can be measured, and how: the declared measures here, a module beside for each kind of measure."""

from analysis.measures.declared import (
    DESCRIBED,
    MEASURES,
    MISSING,
    OF_MODELS,
    PLANNABLE,
    RECOVERED,
    WORDS,
    WORDS_WITH_ONE_TYPO,
    Measure,
    measure_named,
)

__all__ = [
    "DESCRIBED",
    "MEASURES",
    "MISSING",
    "OF_MODELS",
    "PLANNABLE",
    "RECOVERED",
    "WORDS",
    "WORDS_WITH_ONE_TYPO",
    "Measure",
    "measure_named",
]
