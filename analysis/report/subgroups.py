"""Parts of a study by task and prompt method, reported separately because means over several describe none of them.

What is written of one part's trials (:meth:`TrialPart.of`) is the same as of all trials; :func:`of_part` then gives its tables and
figures separate names and says in titles and sources of which trials they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pandas as pd
from markupsafe import Markup, escape

from analysis.figures import Drawing
from analysis.names import plain, stem_of
from analysis.plan import CrossedFactors, Within, compared_together
from analysis.planned import kinds_of_trials, of_trials, parted_by_sessions, shown
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import REFERENCE, Block, Draft
from analysis.report.filters import where
from analysis.tables import Tables


@dataclass(frozen=True)
class TrialPart:
    """Trials that are told together: by one factor, of one way of answering, within levels by which sessions differ."""

    factor: str
    levels: tuple[str, ...]  # that these trials show, in the design's order
    trials: str | None = None  # the step that they end with, of several whose answers are right or wrong
    within: Within = ()  # levels of other factors

    @property
    def stem(self) -> str:
        """End of the names of its tables and figures."""
        return stem_of(self.factor, self.trials, self.within)

    @property
    def told(self) -> str:
        """State of which trials it is, for a title; empty for all."""
        return of_trials(self.trials, self.within)

    @property
    def whole(self) -> bool:
        """Whether it is all trials."""
        return self.trials is None and not self.within

    def rows(self, trials: pd.DataFrame) -> pd.DataFrame:
        """Return the trials that are in it."""
        mask = shown(trials, self.within)
        if self.trials is not None:
            mask &= trials["trial_type"] == self.trials
        return trials if mask.all() else trials[mask]

    def of(self, tables: Tables) -> Tables:
        """Return the tables with these trials and the items that they show."""
        if self.whole:
            return tables
        trials, items = self.rows(tables.trials), tables.items
        keys = [name for name in ("set", "item_id") if name in items]
        if keys:
            trial_keys = pd.MultiIndex.from_frame(trials[keys].astype(object))
            items = items[pd.MultiIndex.from_frame(items[keys].astype(object)).isin(trial_keys)]
        return replace(tables, trials=trials, items=items)


def parts_of(used: pd.DataFrame, tables: Tables) -> Iterator[TrialPart]:
    """Yield the parts that are reported separately; of two factors that both part sessions the first, within levels of the second."""
    kinds = kinds_of_trials(used, tuple(used["reader_group"].unique()))
    # trials that ask for nothing that is right or wrong have times
    kinds = kinds if kinds == (None,) else tuple(dict.fromkeys([*kinds, *used["trial_type"].dropna()]))
    for kind in kinds:
        of_kind = used if kind is None else used[used["trial_type"] == kind]
        described: set[str] = set()
        for factor, levels in tables.factors.items():
            for within in parted_by_sessions(of_kind, factor, tables.factors):
                rows = of_kind[shown(of_kind, within)]
                present = tuple(level for level in levels if (rows[factor] == level).any())
                if present and not {name for name, _ in within} & described:
                    yield TrialPart(factor, present if kind or within else tuple(levels), kind, within)
            described.add(factor)


def crossed_parts(used: pd.DataFrame, tables: Tables) -> Iterator[TrialPart]:
    """Yield the parts by cells of two factors that are compared together, where every reader's cells are told side by side."""
    kinds = kinds_of_trials(used, tuple(used["reader_group"].unique()))
    pairs = compared_together(tables.dictionary["planned"], tables.factors)
    for kind in kinds:
        of_kind = used if kind is None else used[used["trial_type"] == kind]
        for first, second in pairs:
            crossing = CrossedFactors(
                (first, second), (tuple(tables.factors[first]), tuple(tables.factors[second]))
            )
            others = {name: levels for name, levels in tables.factors.items() if name not in crossing.factors}
            for within in parted_by_sessions(of_kind, crossing.name, others):
                rows = of_kind[shown(of_kind, within)]
                present = tuple(cell for cell in crossing.cells if (rows[crossing.name] == cell).any())
                if len(present) > 1:
                    yield TrialPart(crossing.name, present, kind, within)


def parts_by(factor: str, used: pd.DataFrame, tables: Tables) -> list[TrialPart]:
    """Return the parts by one factor; all trials as one part where there is none."""
    parts = [part for part in parts_of(used, tables) if part.factor == factor]
    return parts or [TrialPart(factor, tuple(tables.factors[factor]))]


def of_part(blocks: Iterable[Block], part: TrialPart) -> list[Block]:
    """Give the text about a part's trials its own table and figure names, and name the part in titles, headings and sources."""
    if part.whole:
        return list(blocks)
    ending = plain(part.stem.removeprefix(stem_of(part.factor, None, ())))
    label = escape(part.told)
    renamed: list[Block] = []
    for block in blocks:
        if isinstance(block, ApaTable):
            renamed.append(table_of_part(block, part, f"{block.name}{ending}"))
        elif isinstance(block, Drawing):
            renamed.append(block.renamed(f"{block.name}{ending}", _titled(block.title, part)))
        else:
            text = REFERENCE.sub(rf"[[\1:\2{ending}]]", str(block))
            renamed.append(Markup(text.replace("</h3>", f"{label}</h3>")))
    return renamed


def draft_of_part(draft: Draft, part: TrialPart) -> Draft:
    """Name what was written of a part's trials by it, titles of models too."""
    fits = [replace(fit, title=f"{fit.title}{part.told}") for fit in draft.fits]
    return replace(draft, blocks=of_part(draft.blocks, part), fits=fits)


def table_of_part(table: ApaTable, part: TrialPart, name: str) -> ApaTable:
    """Return a table of a part under a name, with its trials in the title and in the description of its rows."""
    only = [where("trial_type", part.trials)] if part.trials else []
    only += [where(factor, level) for factor, level in part.within]
    origin = table.origin
    if only and origin is not None and origin.where is not None:
        more = [condition for condition in only if condition not in origin.where]
        columns = dict.fromkeys((*origin.columns, *(condition.column for condition in more)))
        origin = replace(origin, columns=tuple(columns), where=(*origin.where, *more))
    return replace(table, name=name, title=_titled(table.title, part), origin=origin)


def _titled(title: str, part: TrialPart) -> str:
    """Add which trials they are to a title, within its brackets where it ends with some."""
    if title.endswith(")") and not part.whole:
        return f"{title[:-1]}; {part.told.strip(' ()')})"
    return f"{title}{part.told}"
