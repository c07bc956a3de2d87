"""What can be measured in a trial, on which scale it is modelled, and in which words a report speaks of it."""

from __future__ import annotations

from dataclasses import dataclass

from stimuli.errors import unknown_name


@dataclass(frozen=True)
class Measure:
    """One dependent variable.

    Attributes
    ----------
    name : str
        The column of the trials table.
    title : str
        What a heading calls it.
    noun : str
        What a sentence calls it.
    family : str
        ``binomial`` (logit link) or ``gaussian``.
    logged : bool
        Whether the natural logarithm is modelled.
    unit : str
        Unit of the raw value; empty for proportions.
    response : str
        The column that the formula names.
    """

    name: str
    title: str
    noun: str
    family: str
    logged: bool
    unit: str
    response: str


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("correct", "Accuracy", "accuracy", "binomial", False, "", "correct"),
        Measure("reading_time", "Reading time", "reading time", "gaussian", True, "ms", "log_reading_time"),
        Measure("rt", "Response time", "response time", "gaussian", True, "ms", "log_rt"),
    )
}

RECOVERED = Measure("score", "Mean recovery", "recovery", "gaussian", False, "", "score")
"""How near a typed answer comes to the intact text: described for trials of type ``recover``, in no model."""

MISSING = Measure("missing", "Missing answers", "missing answers", "binomial", False, "", "missing")
"""Whether a trial brought no valid answer (timeouts, refusals, unreadable replies): missingness by condition is a result."""

DESCRIBED = (*MEASURES.values(), RECOVERED)
"""The measures that tables and figures describe."""


def measure_named(name: str) -> Measure:
    """Return a measure by its column name; a UserError names the nearest one otherwise."""
    named = {**MEASURES, MISSING.name: MISSING}
    if name not in named:
        raise unknown_name("analysis.planned: measure", name, named)
    return named[name]
