"""The measures of a trial, the scale on which each is modelled, and the words in which plans and reports describe it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import Literal

Scale = Literal["points", "ratio", "raw"]


@dataclass(frozen=True)
class Measure:
    """One dependent variable."""

    name: str  # the column of the trials table
    title: str  # what a heading calls it
    noun: str  # what a sentence calls it
    family: str  # ``binomial`` (logit link) or ``gaussian``
    logged: bool  # whether the natural logarithm is modelled
    unit: str  # unit of the raw value; empty for proportions
    response: str  # what the formula names on its left side
    link: str | None = None  # link of its model where it is not the family's usual one
    of: Literal["all", "people", "models"] = "all"  # which readers can have it
    said: str = ""  # what it is, for the description of a plan
    model: str = ""  # what its model is called

    @property
    def scale(self) -> Scale:
        """Scale on which a difference is reported and bounded: percentage points, a ratio, or the measure's own unit."""
        return "points" if self.family == "binomial" else "ratio" if self.logged else "raw"

    @property
    def value(self) -> str:
        """Column of an analysis' rows with what its estimates average: the share of words of an answer, or the measure's own."""
        return "share" if self.response.startswith("cbind") else self.name

    @property
    def subject(self) -> str:
        """The noun for a difference between readers: ``accuracy``, ``the mean rating``, ``the share of recovered words``."""
        if self.family == "binomial" and self.name != "correct":
            return f"the share of {self.noun}"
        if self.name == "rating":
            return "the mean rating"
        is_countable = self.noun.partition(" ")[0] in ("margin", "latency", "number")
        return f"the {self.noun}" if is_countable else self.noun

    @property
    def unit_of_difference(self) -> str:
        """Unit of a difference of means on that scale: percentage points, or the measure's own."""
        return "percentage points" if self.scale == "points" else self.unit


def _declared() -> dict[str, Measure]:
    text = resources.files(__package__).joinpath("measures.json").read_text("utf-8")
    return {name: Measure(name, **given) for name, given in json.loads(text)["measures"].items()}


PLANNABLE = _declared()
"""The measures that a plan may name."""

MEASURES = {name: PLANNABLE[name] for name in ("correct", "reading_time", "rt")}
"""The measures that are compared as exploratory if nothing is planned."""

MISSING = PLANNABLE["missing"]
"""Whether a trial brought no valid answer (timeouts, refusals, unreadable replies): missingness by condition is a result."""

WORDS = PLANNABLE["recovered"]
"""Words of a typed answer that are as they were, of the words that were changed."""

WORDS_WITH_ONE_TYPO = PLANNABLE["recovered_with_one_typo"]
"""The same, where a word may have one typo."""

OF_MODELS = {name: measure for name, measure in PLANNABLE.items() if measure.of == "models"}
"""What only models have. A margin is a difference of logarithms as it stands."""

RECOVERED = Measure("score", "Mean recovery", "recovery", "gaussian", False, "", "score")
"""How close a typed answer comes to the intact text: described for trials of type ``recover``, in no model."""

RATING = Measure("rating", "Rating", "rating", "gaussian", False, "scale points", "rating")
"""A number on a scale, in tables that ``wrods analyse`` takes; it is compared as exploratory where the trials have it."""

DESCRIBED = (*MEASURES.values(), RATING, RECOVERED)
"""The measures that tables and figures describe in every study."""
