"""Describes every reader in every condition: by tasks and ways of asking apart, since their means are of different things."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from analysis.descriptives import Cell, describe, valid_only
from analysis.figures import Drawing, condition_figure, position_figure
from analysis.measures import DESCRIBED, RECOVERED, Measure
from analysis.names import stem_of
from analysis.plan import Plan
from analysis.planned import kinds_of_trials
from analysis.position import Cost, costs
from analysis.preparing import time_bounds
from analysis.report import description_tables
from analysis.report.apa_tables import ApaTable
from analysis.report.filters import where
from analysis.tables import Tables
from analysis.within import Within, parted_by_sessions, said, shown

Pair = tuple[str, str]
"""Names of a measure and of a factor."""


@dataclass(frozen=True)
class Part:
    """Trials whose means stand in one table: by one factor, of one way of answering, within levels by which sessions differ.

    Attributes
    ----------
    factor : str
    levels : tuple of str
        That these trials show, in the design's order.
    trials : str or None
        The step that they end with, where the study has several whose answers are right or wrong.
    within : tuple of (str, str)
        Levels of other factors.
    """

    factor: str
    levels: tuple[str, ...]
    trials: str | None = None
    within: Within = ()

    @property
    def stem(self) -> str:
        """End of the names of its tables and figures."""
        return stem_of(self.factor, self.trials, self.within)

    @property
    def told(self) -> str:
        """Say of which trials it is, for a title; empty for all."""
        told = ", ".join(one for one in (self.trials, said(self.within)) if one)
        return f" ({told})" if told else ""

    def rows(self, trials: pd.DataFrame) -> pd.DataFrame:
        """Return the trials that are in it."""
        kept = shown(trials, self.within)
        return trials[kept if self.trials is None else kept & (trials["trial_type"] == self.trials)]


@dataclass(frozen=True)
class Description:
    """A part with the means of each measure."""

    part: Part
    cells: dict[Measure, list[Cell]]


def parts_of(used: pd.DataFrame, tables: Tables) -> Iterator[Part]:
    """Yield what is described apart.

    Parameters
    ----------
    used : pandas.DataFrame
        The analysed trials.
    tables : Tables

    Notes
    -----
    Of two factors that both part sessions the first is described, within levels of the second: the other way round the same
    means would stand there again.
    """
    kinds = kinds_of_trials(used, tuple(used["reader_group"].unique()))
    # trials that ask for nothing that is right or wrong have times
    kinds = kinds if kinds == (None,) else tuple(dict.fromkeys([*kinds, *used["trial_type"].dropna()]))
    for kind in kinds:
        of_kind = used if kind is None else used[used["trial_type"] == kind]
        told: set[str] = set()
        for factor, levels in tables.factors.items():
            for within in parted_by_sessions(of_kind, factor, tables.factors):
                rows = of_kind[shown(of_kind, within)]
                there = tuple(one for one in levels if (rows[factor] == one).any())
                if there and not {name for name, _ in within} & told:
                    yield Part(factor, there if kind or within else tuple(levels), kind, within)
            told.add(factor)


def described(used: pd.DataFrame, tables: Tables) -> list[Description]:
    """Return the means of all measures in all parts."""
    return [
        Description(
            part,
            {
                measure: describe(
                    within_bounds(part.rows(used), measure, tables), measure, part.factor, part.levels
                )
                for measure in DESCRIBED
            },
        )
        for part in parts_of(used, tables)
    ]


def means_of(plan: Plan, used: pd.DataFrame, tables: Tables) -> list[Cell] | None:
    """Return the means of the trials of a plan; None for a measure that is not described for all studies."""
    if plan.measure not in DESCRIBED:
        return None
    levels = plan.levels if plan.subset else tuple(tables.factors[plan.factor])
    rows = used[plan.holds(used)] if plan.subset else used
    return describe(within_bounds(rows, plan.measure, tables), plan.measure, plan.factor, levels)


def tables_of(one: Description, prose: str) -> Iterator[tuple[Pair, ApaTable]]:
    """Lay out the means of every measure.

    Parameters
    ----------
    one : Description
    prose : str
        What the dictionary says of the recovery measure.
    """
    part = one.part
    for measure, own in one.cells.items():
        if not own or measure is RECOVERED:
            continue
        near = one.cells[RECOVERED]
        if measure.name == "correct" and near:
            laid = description_tables.accuracy_and_recovery_table(own, near, part.factor, prose)
        else:
            laid = description_tables.descriptive_table(own, measure, part.factor)
        yield (measure.name, part.factor), of_part(laid, part, f"descriptives_{measure.name}")


def of_part(table: ApaTable, part: Part, name: str) -> ApaTable:
    """Return a table of a part under its name, with its trials in the title and in what is told of its rows."""
    only = [where("trial_type", part.trials)] if part.trials else []
    only += [where(factor, level) for factor, level in part.within]
    origin = table.origin
    if only and origin is not None and origin.where is not None:
        columns = dict.fromkeys((*origin.columns, *(one.column for one in only)))
        origin = replace(origin, columns=tuple(columns), where=(*origin.where, *only))
    return replace(table, name=f"{name}_{part.stem}", title=f"{table.title}{part.told}", origin=origin)


def valid_only_tables(used: pd.DataFrame, tables: Tables) -> Iterator[ApaTable]:
    """Lay out accuracy without failed answers where there are any."""
    for part in parts_of(used, tables):
        rows = part.rows(used)
        shares = valid_only(rows[rows[part.factor].notna()], part.factor, part.levels)
        if len(shares) and (shares["valid"] < shares["trials"]).any():
            yield of_part(description_tables.valid_only_table(shares, part.factor), part, "valid_only")


def figures_of(one: Description, used: pd.DataFrame, tables: Tables) -> Iterator[tuple[Pair, Drawing]]:
    """Draw the means of every measure, and what each condition costs against the first."""
    part, factor, levels = one.part, one.part.factor, one.part.levels
    rows, pilot = part.rows(used), part.rows(_pilot(tables))
    panels: list[tuple[Measure, Sequence[Cost], Sequence[Cost]]] = []
    for measure, own in one.cells.items():
        if not own:
            continue
        trials = within_bounds(rows, measure, tables)
        chance = _chance(tables, rows) if measure.name == "correct" else None
        name = f"condition_{measure.name}_{part.stem}"
        drawing = condition_figure(name, own, trials, pilot, measure, factor, levels, chance, part.told)
        yield ("correct" if measure is RECOVERED else measure.name, factor), drawing
        if measure is RECOVERED:
            continue
        study = str(tables.dictionary["study"])
        lost = costs(trials, measure, factor, levels, study)
        if lost and (measure.name == "correct" or not any(one.logged for one, _, _ in panels)):
            panels.append((measure, lost, costs(pilot, measure, factor, levels, study)))
    if panels:
        drawing = position_figure(f"cost_{part.stem}", panels, factor, levels, part.told)
        yield (panels[0][0].name, factor), drawing


def within_bounds(trials: pd.DataFrame, measure: Measure, tables: Tables) -> pd.DataFrame:
    """Return the trials whose time is within the study's bounds for a measure of time."""
    bounds = time_bounds(tables.dictionary["exclude"], measure.name) if measure.logged else None
    return trials if bounds is None else trials[bounds.holds(trials[measure.name])]


def _pilot(tables: Tables) -> pd.DataFrame:
    trials = tables.trials
    extra = trials["is_practice"] | trials["is_filler"] | trials["is_attention_check"]
    return trials[trials["is_pilot"] & ~extra]


def _chance(tables: Tables, rows: pd.DataFrame) -> float | None:
    """Return the share that guessing gets right, where all items of these trials offer the same number of choices."""
    if "choices" not in tables.items.columns:
        return None
    items = tables.items[tables.items["item_id"].isin(rows["item_id"])]
    if "role" in items.columns:
        items = items[items["role"] == "test"]
    offered = {
        len(json.loads(text)) if isinstance(text, str) and text != "null" else 0 for text in items["choices"]
    }
    return 1 / offered.pop() if len(offered) == 1 and min(offered) > 1 else None
