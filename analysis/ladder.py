"""Fits one fixed part with random parts from rich to poor, and stops at the first that the data can carry.

The ladder is stated before the fit: a model that is singular, does not converge or cannot be fitted gives way to the next
one, the last is taken as it is, and every step is kept (Meteyard & Davies, 2020, Journal of Memory and Language 112).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analysis.mixed import Fit, fit
from stimuli.errors import UserError


@dataclass(frozen=True)
class Climb:
    """Where a ladder of models ended."""

    fit: Fit | None  # None where not even the last model could be fitted
    formula: str  # of the fit; of the last attempt where there is none
    steps: tuple[str, ...]  # each formula and what became of it
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stands(self) -> bool:
        """Whether there is a fit that converged."""
        return self.fit is not None and self.fit.converged


def climb(fixed: str, random: Sequence[str], data: pd.DataFrame, **settings: Any) -> Climb:
    """Fit a model with the first of several random parts that is neither singular nor without convergence."""
    if not random:
        raise UserError("a ladder without random parts", mend="Give at least one, such as (1 | item).")
    steps: list[str] = []
    found: Fit | None = None
    formula = ""
    for place, part in enumerate(random):
        asked = f"{fixed} + {part}"
        try:
            now = fit(asked, data, **settings)
        except UserError as error:
            steps.append(f"{asked}: not fitted ({error.message})")
            formula = formula or asked
            continue
        except (np.linalg.LinAlgError, FloatingPointError) as error:
            steps.append(f"{asked}: not fitted ({error})")
            formula = formula or asked
            continue
        last = place == len(random) - 1
        state = "did not converge" if not now.converged else "singular" if now.singular else "converged"
        if found is None or now.converged or not found.converged:
            found, formula = now, asked
        if state == "converged" or last:
            steps.append(f"{asked}: {state}; {'reported' if found is now else 'an earlier one is reported'}")
            break
        steps.append(f"{asked}: {state}; the next one was tried")
    return Climb(found, formula, tuple(steps), settings)


def slopes(columns: Sequence[str], group: str, *, extra: str = "") -> list[str]:
    """Return the usual ladder of one grouping factor: correlated slopes, uncorrelated ones, intercepts alone."""
    tail = f" + {extra}" if extra else ""
    rungs = []
    if columns:
        many = " + ".join(columns)
        rungs = [f"(1 + {many} | {group}){tail}", f"(1 + {many} || {group}){tail}"]
    return [*rungs, f"(1 | {group}){tail}"]
