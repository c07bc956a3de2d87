"""Mind Scramble's tables over several studies, a data set or task each, and perception against completion.

``wrods reproduce mind-scramble gsm8k boolq csqa rectify`` makes a page of them, after each study has its report (or an export).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import load
from analysis.figures.drawing import Drawing
from analysis.figures.inside import Panel, pattern_figures
from analysis.inside.pattern_similarity import accuracy_of, between_sets
from analysis.inside.representations import Represented, represented
from analysis.measures.levels import levels_of
from analysis.published import mind_scramble as paper
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable
from analysis.report.chapters.mind_scramble import tables as laid
from analysis.report.chapters.representations import sets_table
from analysis.report.studies_page import Page
from analysis.tables import Tables
from stimuli.errors import UserError

ABOUT = Page(
    "Mind Scramble’s tables from these studies",
    "After Mind Scramble (2024), arXiv:2410.01677.",
    "Laid out as in the paper; every number is from these studies’ own runs.",
)


def together(
    folders: Sequence[Path], told: Callable[[str], None] = lambda _: None
) -> list[ApaTable | Drawing]:
    """Lay out Tables 1 to 4, Figure 5, ranks and faults over studies (or their exports); ``told`` hears remarks on them."""
    completed: list[tuple[str, paper.Values]] = []
    perceived: list[tuple[str, paper.Values]] = []
    names: set[str] = set()
    kinds: dict[str, str] = {}
    prices: list[pd.DataFrame] = []
    near: dict[str, list[tuple[str, tuple[paper.Near, ...]]]] = {}
    maps: list[tuple[str, Represented, Panel]] = []
    for folder in folders:
        tables = load(folder)
        for remark in tables.remarks:
            told(remark)
        factor = paper.factor_of(tables)
        if factor is None:
            raise UserError(
                f"{folder} has none of Mind Scramble's operations",
                mend="Give studies made from the template mind-scramble, whose levels keep their names.",
            )
        name = str(tables.dictionary["study"])
        if name in names:
            raise UserError(f"two studies are called {name}", mend="Name each once.")
        names.add(name)
        kinds |= kinds_of(tables.trials)
        measured = paper.values_of(tables, factor)
        if not measured:
            told(
                f"{name} has no part here: none of its answers is judged. `wrods score --similarity` compares answers with those "
                "about the intact text, `wrods score --execute` runs programs; `wrods report` then keeps what came of it."
            )
        for values in measured:
            titled = (
                name if len(measured) == 1 else f"{name}, {values.measure.axis.removesuffix(' (%)').lower()}"
            )
            (perceived if values.measure.is_perception else completed).append((titled, values))
        prices.append(paper.fault_prices(tables))
        if (stored := paper.stored_texts(tables.folder)) is not None:
            near.setdefault(stored[0], []).append((name, stored[1]))
        maps += _maps(tables, factor, name, told)
    found: list[ApaTable | Drawing | None] = []
    if completed:
        found.append(laid.reordering_table("table_1", completed, kinds, number=1))
    if perceived:
        found.append(laid.reordering_table("table_2", perceived, kinds, number=2))
        found.append(laid.floor_table("table_2_floors", [one for one in perceived if one[1].floors], kinds))
    if completed:
        found.append(laid.edit_table("table_3", completed, kinds))
    for number, (use, parts) in enumerate(near.items(), 1):
        name = "table_4" if number == 1 else f"table_4_{number}"
        found += [laid.similarity_table(name, parts, use), laid.unit_table(f"{name}_units", parts, use)]
    found += _alike(maps)
    if len(completed) + len(perceived) > 1:
        ranked = laid.rank_table("ranks", [*completed, *perceived], kinds)
        found += [ranked, laid.agreement_table("ranks_alike", completed, perceived, kinds)]
        if ranked is None and "model" in kinds.values():
            told(
                "Models are not ranked: in every task it takes answers under all operations, or cosines that differ from their floor."
            )
    together = pd.concat(prices, ignore_index=True) if prices else pd.DataFrame()
    found += [laid.fault_table("faults", together, kinds)] if len(together) else []
    return [one for one in found if one is not None]


def _maps(
    tables: Tables, factor: str, study: str, told: Callable[[str], None]
) -> Iterator[tuple[str, Represented, Panel]]:
    """Yield each model's map of hidden states in one study, where its runs kept any."""
    present = [name for name in tables.factors[factor] if (tables.trials[factor] == name).any()]
    does = levels_of(tables.items, factor, present, tables.dictionary.get("between"))
    for one in represented(tables, does, told):
        pattern, accuracy = one.pattern, accuracy_of(tables.trials, one)
        named = f"{study}, {one.part}" if one.part else study
        answers = tuple(float(value) for value in accuracy) if np.isfinite(accuracy).any() else ()
        maps = (pattern.map(), pattern.map(centred=True), pattern.apart, pattern.apart_centred)
        yield named, one, Panel(f"{one.group}: {named}", pattern.conditions, *maps, answers)


def _alike(maps: Sequence[tuple[str, Represented, Panel]]) -> Iterator[ApaTable | Drawing]:
    """Draw the maps (Figure 5), and say how alike one model's are in several studies."""
    if not maps:
        return
    panels = [panel for _, _, panel in sorted(maps, key=lambda one: one[1].group)]
    title, note = laid.LAYOUT.caption("maps")
    yield from pattern_figures("figure_5", title, panels, note)
    pairs = list(between_sets([(name, one) for name, one, _ in maps], "mind-scramble"))
    if pairs:
        yield sets_table("figure_5_alike", "One model’s maps in several studies", pairs)
