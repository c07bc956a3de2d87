"""Picks or orders items so that conditions agree on covariates, as ``materials: {match: …}`` asks.

Where levels pick rows (high- against low-frequency words), the rows are candidates and matched sets of them stay. Where
each item comes in every level, the items that lists show together in one condition are balanced instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

from experiment.study import Study
from stimuli.covariates import unavailable
from stimuli.errors import UserError, unknown_name
from stimuli.item import Item
from stimuli.matching import Candidate, Matched, Tolerance, match_lists, match_sets
from stimuli.matching.candidates import Missing


def matched_items(
    study: Study, items: Sequence[Item], cells: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Item], list[str]]:
    """Keep or order test items so that they agree on the covariates that the study names."""
    asked = study.get("materials", "match")
    if asked is None:
        return list(items), []
    crossing = study.crossing
    if not crossing.factors:
        raise UserError(
            f"{study.place('materials', 'match')}: there is no factor whose levels could be matched",
            mend="Give the design a factor, or take `match` out.",
        )
    on = {name: _tolerance(given) for name, given in asked["on"].items()}
    first = {item.item_id: item for item in reversed(items)}
    candidates = [
        Candidate(item_id, _picked(study, item), _covariates(study, on, item, cells.get(item_id, {})))
        for item_id, item in reversed(first.items())
    ]
    missing = asked.get("missing", "error")
    try:
        return _matched(study, items, candidates, on, asked.get("each"), missing)
    except UserError as error:
        place = study.place("materials", "match")
        raise UserError(f"{place}: {error.message.removeprefix('match: ')}", mend=error.mend) from None


def _matched(
    study: Study,
    items: Sequence[Item],
    candidates: Sequence[Candidate],
    on: Mapping[str, Tolerance],
    each: int | None,
    missing: Missing,
) -> tuple[list[Item], list[str]]:
    if study.crossing.rows:
        found = match_sets(candidates, on, each, seed=study.seed, missing=missing).require()
        kept = set(chain.from_iterable(found.sets.values()))
        return [item for item in items if item.item_id in kept], _told(found, "sets", on)
    together = [Candidate(one.id, "all", one.covariates) for one in candidates]
    versions = len(items) // len(candidates)
    divided = match_lists(together, versions, on, seed=study.seed, missing=missing).require()
    by_id: dict[str, list[Item]] = {}
    for item in items:
        by_id.setdefault(item.item_id, []).append(item)
    # List l shows item i in condition i + l, so every L-th item of the file meets the same condition.
    order = [one for row in zip_longest(*divided.sets.values()) for one in row if one is not None]
    return [item for item_id in order for item in by_id[item_id]], _told(divided, "lists", on)


def _picked(study: Study, item: Item) -> str:
    """Return the levels that picked an item's row, as one name; the same for all where none does."""
    factors = study.crossing.rows[0][0] if study.crossing.rows else ()
    return " × ".join(item.condition[factor] for factor in factors) or "all"


def _tolerance(given: float | Mapping[str, float]) -> Tolerance:
    return Tolerance(**given) if isinstance(given, Mapping) else Tolerance(within=given)


def _covariates(
    study: Study, on: Mapping[str, Tolerance], item: Item, cells: Mapping[str, Any]
) -> dict[str, float | str | None]:
    values: dict[str, float | str | None] = {}
    for name in on:
        reason = unavailable(study.language).get(name)
        if name in item.covariates and reason is None:
            values[name] = item.covariates[name]
        elif name in item.covariates and name not in cells:
            raise UserError(
                f"{study.place('materials', 'match', 'on', name)}: {name} is not available: {reason}",
                mend="Match on another covariate, or bring it as a column of your own.",
            )
        elif name in cells:
            values[name] = _number_or_text(cells[name])
        else:
            place = study.place("materials", "match", "on", name)
            raise unknown_name(f"{place}: covariate", name, [*item.covariates, *cells])
    return values


def _number_or_text(cell: Any) -> float | str | None:
    text = str(cell).strip()
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _told(found: Matched, what: str, on: Mapping[str, Tolerance]) -> list[str]:
    sizes = ", ".join(f"{name}: {len(ids)}" for name, ids in found.sets.items())
    told = [f"matched {what} ({sizes}) on {', '.join(on)}"]
    for covariate in found.balance.covariates():
        worst = found.balance.largest(covariate)
        if worst is not None and worst.smd is not None:
            told.append(f"  {covariate}: largest standardised mean difference {abs(worst.smd):.3f}")
    if found.excluded:
        named = ", ".join(f"{one} ({covariate})" for one, covariate in found.excluded[:5])
        more = f" and {len(found.excluded) - 5} more" if len(found.excluded) > 5 else ""
        told.append(f"  left out for a missing covariate: {named}{more}")
    return told
