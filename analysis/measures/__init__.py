"""What can be measured, and how: the declared measures here, a module beside for each kind of measure."""

from analysis.measures.declared import (
    DESCRIBED,
    MEASURES,
    MISSING,
    RECOVERED,
    Measure,
    measure_named,
)

__all__ = ["DESCRIBED", "MEASURES", "MISSING", "RECOVERED", "Measure", "measure_named"]
