"""What a study says of probing (`analysis: probing:`), with every default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stimuli.errors import UserError

NONE = "none"
CONDITION = "condition"
TARGETS = {
    "answer": "the right answer",
    "response": "the model’s own answer",
    CONDITION: "the condition",
}
"""What a probe may predict, by the study's word for it."""
PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FOLDS, INNER_FOLDS, CONTROLS = 5, 3, 5


@dataclass(frozen=True)
class Settings:
    """How states are probed."""

    predict: tuple[str, ...] = ("answer",)  # of `TARGETS`
    folds: int | None = None
    test: tuple[str, ...] = ()
    keep_together: tuple[str, ...] = ()
    penalties: tuple[float, ...] = PENALTIES
    controls: int = CONTROLS  # control tasks with random labels


def settings_of(given: Mapping[str, Any] | str | None) -> Settings | None:
    """Read what a study says; None where it wants no probing."""
    if given == NONE:
        return None
    if given is None or isinstance(given, str):
        return Settings()
    if "folds" in given and "test" in given:
        raise UserError(
            "analysis.probing names both `folds:` and `test:`",
            mend="Give the number of folds, or the splits of the data set that test.",
        )
    return Settings(
        predict=_texts(given.get("predict")) or ("answer",),
        folds=given.get("folds"),
        test=_texts(given.get("test")),
        keep_together=_texts(given.get("keep_together")),
        penalties=tuple(sorted(float(one) for one in given.get("penalties") or PENALTIES)),
        controls=int(given.get("controls", CONTROLS)),
    )


def _texts(given: Any) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(str(one) for one in given)
