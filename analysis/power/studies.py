"""Which planned analyses of a study power can be simulated for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.plan import MEASURES, OF_MODELS, Fault, Plan, read_bound
from analysis.planned import plans
from analysis.reading import Source
from analysis.tables import Tables
from stimuli.errors import UserError, error_at, unknown_name

_COLUMNS = ("excluded_reason", "reader_group", "reader_kind", "response_status")


def planned_of(
    planned: Mapping[str, Any],
    factors: Mapping[str, Collection[str]],
    *,
    only: Collection[str] = (),
    alpha: float | None = None,
    equivalence: str | None = None,
) -> tuple[list[Plan], list[str]]:
    """Read the planned analyses of a study before it has data."""
    if not planned:
        raise UserError(
            "the study plans no analysis, so there is nothing to find",
            mend="Write `analysis: planned:` into study.yaml: measure, compare, between, contrasts.",
        )
    keys = {name: name if name in planned else name.partition(" (")[0] for name in only}
    for name, key in keys.items():
        if key not in planned:
            raise unknown_name("planned analysis", name, planned)
    dictionary = {
        "planned": {name: spec for name, spec in planned.items() if not only or name in keys.values()},
        "factors": {
            name: {"levels": list(levels), "reference": next(iter(levels))}
            for name, levels in factors.items()
        },
    }
    nowhere = Path()
    empty = pd.DataFrame(columns=[*_COLUMNS, *factors], dtype=object)
    tables = Tables(empty, pd.DataFrame(), dictionary, Source(nowhere, nowhere, None, None, dictionary, {}))
    found, remarks = [], []
    read = plans(tables)
    for name, key in keys.items():
        if name != key and name not in {plan.name for plan in read}:
            raise unknown_name("planned analysis", name, [plan.name for plan in read])
    for plan in read:
        if only and plan.name not in only and plan.key not in only:
            continue
        if plan.measure.name not in MEASURES | OF_MODELS:
            remarks.append(
                f"{plan.name} is left out: {plan.measure.noun} cannot be simulated; accuracy, log times and what models have can."
            )
            continue
        if plan.formula is not None:
            if plan.measure.family != "binomial":
                remarks.append(
                    f"{plan.name} has its own formula; power is that of the model that wrods builds for the design."
                )
            plan = replace(plan, formula=None, fallback=None)
        family = [one.name for one in read if plan.name != one.name and is_joined(plan, one)]
        if family:
            remarks.append(
                f"{plan.name} is adjusted together with {', '.join(family)} in a report; here its tests are adjusted by themselves, "
                "so that the power is a little too high."
            )
        if alpha is not None:
            plan = replace(plan, alpha=_level(alpha))
        if equivalence is not None:
            try:
                plan = replace(plan, equivalence=read_bound(equivalence, [plan.measure]))
            except Fault as fault:
                raise error_at("--equivalence", *fault.args) from None
        found.append(plan)
    if not found:
        raise UserError("no planned analysis can be simulated", mend=" ".join(remarks))
    return found, remarks


def is_joined(plan: Plan, other: Plan) -> bool:
    """Whether two planned analyses are adjusted as one family: by name, or as those of one measure."""
    if plan.family or other.family:
        return plan.family == other.family
    return plan.measure.name == other.measure.name


def _level(alpha: float) -> float:
    if not 0.0 < alpha < 0.5:
        raise UserError(f"--alpha is {alpha:g}; it lies between 0 and 0.5", mend="For example 0.05.")
    return alpha
