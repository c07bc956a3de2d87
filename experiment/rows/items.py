"""The rows of the items table: what was shown and the intact form, the answer key, covariates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiment.columns import Column
from stimuli.item import Item

_BEFORE_FACTORS = ("item_id", "set", "role")
_AS_JSON = ("shown", "intact", "choices", "key", "changes", "provenance")


def item_columns(
    items: Sequence[Item], factors: Sequence[str], prose: Mapping[str, Column]
) -> dict[str, Column]:
    """Return the columns of a study's items: those of every study, its factors, ``cov_`` and each covariate."""
    found = {name: prose[name] for name in _BEFORE_FACTORS}
    found |= {name: Column(name, "string", None, "level of the study's factor") for name in factors}
    found |= {name: column for name, column in prose.items() if name not in found}
    values: dict[str, list[Any]] = {}
    for item in items:
        for name, value in item.covariates.items():
            values.setdefault(f"cov_{name}", []).append(value)
    for name, given in values.items():
        kind = "string" if any(isinstance(value, str) for value in given) else "number"
        found[name] = Column(name, kind, None, f"covariate {name.removeprefix('cov_')} of the item")
    return found


def item_rows(items: Sequence[Item]) -> Iterator[dict[str, Any]]:
    """Iterate over items as flat rows; what has parts is JSON."""
    for item in items:
        given = item.to_json()
        row = {**given, **given["condition"]}
        row |= {name: json.dumps(given[name], ensure_ascii=False) for name in _AS_JSON}
        yield row | {f"cov_{name}": value for name, value in given["covariates"].items()}
