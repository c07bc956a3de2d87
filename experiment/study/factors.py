"""The factors of a design and what their levels do: scramble, set an option, show a version, select rows, change examples or steps.

Several factors are crossed. At most one of them scrambles; others may set its options (``rate: 0.5``), name versions of the
materials (a list of levels), select rows of the user's table (``where``), scramble the solved examples (``demonstrations``), or
set how trials show their items (``prime: {for: 50 ms}``).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from stimuli.errors import UserError, nearest

Kind = Literal["scramble", "setting", "versions", "rows", "examples", "steps"]
ABOUT: Mapping[Kind, str] = {
    "scramble": "scramble",
    "setting": "set options of the scramble",
    "versions": "show versions of the materials",
    "rows": "pick rows (`where`)",
    "examples": "change the examples (`demonstrations`)",
    "steps": "set how trials show their texts",
}
VERSION = "a version in the materials"
"""What a level does that a factor only names."""
StepSettings = Mapping[str, Any]
"""What a level sets in the trials of its items: settings by type of step, the look of all steps, the form of the text."""
CASE, SPACE = "case", "space"
"""Settings of levels that give the text a form, which models read as well."""
GROUP = "eligible"
"""The setting of a level between sessions that makes it a group of people (`groups`)."""
CELL = "condition"
"""The recipes' name for the factor if several are crossed."""


@dataclass(frozen=True)
class DesignCells:
    """The cells of a design, in the parts that make items.

    ``factors``: all factors, in the order of the design; ``factor``: the factor for recipes: the one that scrambles, or
    ``condition`` if options are crossed with it; ``levels``: the operation on a text, by level of that factor; ``conditions``:
    level of every scrambling factor, by level of that factor; ``rows``: levels of the factors that select rows, and the column
    and value of the selected rows; empty without any; ``examples``: the factor that changes examples, and operation by level;
    ``versions``: the factors whose levels are versions in the materials, with their levels; ``steps``: the factors whose levels
    set steps of trials, with the levels and what each sets, by type of step.
    """

    factors: tuple[str, ...]
    factor: str | None
    levels: Mapping[str, Any]
    conditions: Mapping[str, Mapping[str, str]]
    rows: tuple[tuple[Mapping[str, str], Mapping[str, str]], ...] = ()
    examples: tuple[str, Mapping[str, Any]] | None = None
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    steps: Mapping[str, Mapping[str, StepSettings]] = field(default_factory=dict)

    @property
    def presentations(self) -> list[dict[str, str]]:
        """Return every combination of levels that set steps: one without levels if no factor does."""
        chosen = itertools.product(*self.steps.values())
        return [dict(zip(self.steps, levels, strict=True)) for levels in chosen]

    def condition(
        self, recipe_levels: Mapping[str, str], picked: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Return an item's condition in the order of the design's factors, from the recipes' levels."""
        levels = {**recipe_levels, **(picked or {})}
        if self.factor is not None and self.factor in recipe_levels:
            del levels[self.factor]
            levels |= self.conditions[recipe_levels[self.factor]]
        return {name: levels[name] for name in self.factors if name in levels}


def kind_of(levels: Mapping[str, Any], families: frozenset[str]) -> Kind | None:
    """Return the kind of operation of a factor's levels; None if they differ."""
    kinds = {_kind(given, families) for given in levels.values()}
    if "steps" in kinds and all(given == "none" or _sets_steps(given) for given in levels.values()):
        return "steps"
    return kinds.pop() if len(kinds) == 1 else None


def levels_of(given: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Return what each level of a factor does; a list only names versions."""
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(map(str, given), VERSION)


def _sets_steps(given: Any) -> bool:
    """Return whether a level sets steps of trials, their look or the form of the text, and no rows or examples."""
    return (
        isinstance(given, Mapping)
        and not {"where", "demonstrations"} & set(given)
        and all(name in (CASE, SPACE) or isinstance(settings, Mapping) for name, settings in given.items())
    )


def _kind(given: Any, families: frozenset[str]) -> Kind:
    if given == VERSION:
        return "versions"
    if not isinstance(given, Mapping):
        return "scramble"
    if "where" in given:
        return "rows"
    if "demonstrations" in given:
        return "examples"
    if _sets_steps(given):
        return "steps"
    keys = set(map(str, given))
    if families & keys:
        return "scramble"
    options = scramble_options()
    misspelt = any(key not in options and nearest(key, families) is not None for key in keys)
    return "scramble" if misspelt else "setting"


@functools.cache
def scramble_options() -> frozenset[str]:
    """Return the names of scramble options, including rate and share of texts."""
    from stimuli.scramble.types import scramble_types

    kinds = scramble_types().values()
    return frozenset({"rate", "texts", *(option.name for kind in kinds for option in kind.options)})


def operation_families() -> frozenset[str]:
    """Return the keys by which a mapping names an operation on a text."""
    from stimuli.scramble.types import scramble_types

    return frozenset({"type", "column", *(kind.family for kind in scramble_types().values())})


def cross(factors: Mapping[str, Mapping[str, Any]]) -> DesignCells:
    """Cross the factors of a design."""
    families = operation_families()
    by_kind: dict[Kind, list[str]] = {kind: [] for kind in ABOUT}
    for name, levels in factors.items():
        kind = kind_of(levels, families)
        if kind is None:
            done = sorted({ABOUT[_kind(given, families)] for given in levels.values()})
            raise UserError(
                f"factor {name!r}: some levels {' and some '.join(done)}; a factor does one thing",
                mend="Give each of them a separate factor; factors are crossed.",
            )
        by_kind[kind].append(name)
    alone: tuple[Kind, ...] = ("scramble", "examples")
    for only in alone:
        if len(by_kind[only]) > 1:
            raise UserError(
                f"factors {' and '.join(by_kind[only])} both {ABOUT[only]}; only one can",
                mend="Make one factor of them with a level for each combination"
                + (", or let the other set options (rate: 0.5)." if only == "scramble" else "."),
            )
    if by_kind["setting"] and not by_kind["scramble"]:
        raise UserError(
            f"factor {by_kind['setting'][0]!r} sets options, and no factor scrambles",
            mend="Say the whole operation in each level, such as {shuffle: all, rate: 0.5}.",
        )
    factor, levels, conditions = _scrambling([*by_kind["scramble"], *by_kind["setting"]], factors)
    examples = None
    if by_kind["examples"]:
        (name,) = by_kind["examples"]
        examples = name, {level: given["demonstrations"] for level, given in factors[name].items()}
    versions = {name: tuple(factors[name]) for name in by_kind["versions"]}
    steps = {
        name: {level: {} if given == "none" else given for level, given in factors[name].items()}
        for name in by_kind["steps"]
    }
    rows = _rows(by_kind["rows"], factors)
    return DesignCells(tuple(factors), factor, levels, conditions, rows, examples, versions, steps)


def _scrambling(
    names: list[str], factors: Mapping[str, Mapping[str, Any]]
) -> tuple[str | None, dict[str, Any], dict[str, dict[str, str]]]:
    """Return name, operation by level, and factors' levels by level of the scrambling factors combined into one."""
    if not names:
        return None, {"intact": "none"}, {"intact": {}}
    if len(names) == 1:
        (name,) = names
        return name, dict(factors[name]), {level: {name: level} for level in factors[name]}
    in_order = [name for name in factors if name in names]
    levels: dict[str, Any] = {}
    conditions: dict[str, dict[str, str]] = {}
    for chosen in itertools.product(*(factors[name] for name in in_order)):
        at = dict(zip(in_order, chosen, strict=True))
        cell = " × ".join(chosen)
        levels[cell] = _merged(
            factors[names[0]][at[names[0]]], [factors[name][at[name]] for name in names[1:]], cell
        )
        conditions[cell] = at
    return CELL, levels, conditions


def _merged(operation: Any, settings: list[Mapping[str, Any]], cell: str) -> Any:
    """Return an operation with further options; no operation stays none."""
    if operation in ("none", "withhold"):
        return operation
    if operation == "hand-made" or (isinstance(operation, Mapping) and "column" in operation):
        raise UserError(
            f"condition {cell!r} is made by hand, and has no options to set",
            mend="Give one factor a level, and a column, for each combination.",
        )
    merged: dict[str, Any] = dict(operation) if isinstance(operation, Mapping) else {"type": operation}
    options_set = {"rate"} if isinstance(operation, str) and _says_rate(operation) else set()
    for given in settings:
        twice = sorted((set(merged) | options_set) & set(given))
        if twice:
            raise UserError(
                f"condition {cell!r} is given {twice[0]} twice", mend="Say each option in one factor."
            )
        merged |= given
    return merged


def _says_rate(operation: str) -> bool:
    """Return whether an operation's name includes a rate (RS-50)."""
    from stimuli.scramble.types import parse_operation

    try:
        rates = [parse_operation(operation, default_rate=rate).rate for rate in (1.0, 0.5)]
    except UserError:
        return False
    return rates[0] == rates[1]


def _rows(
    names: list[str], factors: Mapping[str, Mapping[str, Any]]
) -> tuple[tuple[dict[str, str], dict[str, str]], ...]:
    """Return levels, with the column and value of the rows that they select, for every combination."""
    picked: list[tuple[dict[str, str], dict[str, str]]] = []
    for chosen in itertools.product(*(factors[name] for name in names)) if names else ():
        at = dict(zip(names, chosen, strict=True))
        wanted: dict[str, str] = {}
        for name, level in at.items():
            for column, value in factors[name][level]["where"].items():
                if wanted.setdefault(str(column), str(value)) != str(value):
                    raise UserError(
                        f"factors {' and '.join(names)} both pick rows by the column {column!r}",
                        mend="Let each factor pick by a different column.",
                    )
        twin = next((levels for levels, rows in picked if rows == wanted), None)
        if twin is not None:
            raise UserError(
                f"levels {' × '.join(twin.values())} and {' × '.join(at.values())} pick the same rows",
                mend="Let each level pick different rows.",
            )
        picked.append((at, wanted))
    return tuple(picked)
