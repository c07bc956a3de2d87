"""How a study has free answers rated: the rubric, the scale, how many raters."""

from __future__ import annotations

from dataclasses import dataclass

from experiment.study import Study
from experiment.study.texts import StudyText, read_text


@dataclass(frozen=True)
class Rating:
    """What raters are given.

    ``rubric``: what earns which rating; its version stands in every rating; ``low, high``: the scale, whole numbers; ``raters``:
    how many people rate each answer; ``sets``: the item sets whose answers are rated; None for all.
    """

    rubric: StudyText
    low: int
    high: int
    raters: int
    sets: frozenset[str] | None

    @property
    def levels(self) -> list[int]:
        """Return the ratings that can be given, lowest first."""
        return list(range(self.low, self.high + 1))


def rating_for(study: Study) -> Rating | None:
    """Return how a study's answers are rated, None where it says nothing of it."""
    if study.get("rating") is None:
        return None
    name = study.get("rating", "rubric")
    low, high = study.get("rating", "scale", default=(0, 2))
    sets = study.get("rating", "sets")
    return Rating(
        rubric=read_text(study.folder, name, study.place("rating", "rubric")),
        low=int(low),
        high=int(high),
        raters=int(study.get("rating", "raters", default=2)),
        sets=None if sets is None else frozenset(str(name) for name in sets),
    )
