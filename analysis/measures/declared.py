"""What can be measured in a trial, on which scale it is modelled, and in which words a report speaks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stimuli.errors import unknown_name

Scale = Literal["points", "ratio", "raw"]


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
        What the formula names on its left side.
    link : str or None
        Link of its model where it is not the family's usual one.
    of : {'all', 'people', 'models'}
        Which readers can have it.
    """

    name: str
    title: str
    noun: str
    family: str
    logged: bool
    unit: str
    response: str
    link: str | None = None
    of: Literal["all", "people", "models"] = "all"

    @property
    def scale(self) -> Scale:
        """On which scale a difference is told and bounded: percentage points, a ratio, or the measure's own unit."""
        return "points" if self.family == "binomial" else "ratio" if self.logged else "raw"


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("correct", "Accuracy", "accuracy", "binomial", False, "", "correct"),
        Measure(
            "reading_time",
            "Reading time",
            "reading time",
            "gaussian",
            True,
            "ms",
            "log_reading_time",
            of="people",
        ),
        Measure("rt", "Response time", "response time", "gaussian", True, "ms", "log_rt", of="people"),
    )
}
"""The measures that are compared as exploratory where nothing is planned."""

RECOVERED = Measure("score", "Mean recovery", "recovery", "gaussian", False, "", "score")
"""How near a typed answer comes to the intact text: described for trials of type ``recover``, in no model."""

MISSING = Measure("missing", "Missing answers", "missing answers", "binomial", False, "", "missing")
"""Whether a trial brought no valid answer (timeouts, refusals, unreadable replies): missingness by condition is a result."""

WORDS = Measure(
    "recovered",
    "Recovered words",
    "recovered words",
    "binomial",
    False,
    "",
    "cbind(recovered, not_recovered)",
)
"""Words of a typed answer that are as they were, of the words that were changed."""

WORDS_WITH_ONE_TYPO = Measure(
    "recovered_with_one_typo",
    "Recovered words, one typo allowed",
    "words recovered with at most one typo",
    "binomial",
    False,
    "",
    "cbind(recovered_with_one_typo, beyond_one_typo)",
)
"""The same, where a word may have one typo."""

OF_MODELS = {
    measure.name: measure
    for measure in (
        Measure("surprisal", "Surprisal", "surprisal", "gaussian", False, "bits", "surprisal", of="models"),
        Measure("margin", "Margin of choices", "margin", "gaussian", False, "nats", "margin", of="models"),
        Measure("latency_ms", "Latency", "latency", "gaussian", True, "ms", "log_latency_ms", of="models"),
        *(
            Measure(
                f"{kind}_tokens",
                f"{kind.capitalize()} tokens",
                f"number of {kind} tokens",
                "gaussian",
                True,
                "tokens",
                f"log_{kind}_tokens",
                of="models",
            )
            for kind in ("prompt", "completion", "reasoning")
        ),
    )
}
"""What only models have. A margin is a difference of logarithms as it stands."""

PLANNABLE = {
    **MEASURES,
    **{measure.name: measure for measure in (MISSING, WORDS, WORDS_WITH_ONE_TYPO)},
    **OF_MODELS,
}
"""The measures that a plan may name."""

DESCRIBED = (*MEASURES.values(), RECOVERED)
"""The measures that tables and figures describe in every study."""


def measure_named(name: str) -> Measure:
    """Return a measure by its name in a plan; a UserError names the nearest one otherwise."""
    if name not in PLANNABLE:
        raise unknown_name("analysis.planned: measure", name, PLANNABLE)
    return PLANNABLE[name]
