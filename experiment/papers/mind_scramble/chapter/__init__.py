"""Mind Scramble's tables and figures from a study's own run or several, and how much each error of its scorers changes the score.

``wrods reproduce mind-scramble gsm8k boolq csqa rectify`` makes a page of several, after each study has its report (or an export).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from analysis import apa, load
from analysis.answers import never_answered
from analysis.figures.drawing import WIDTH, Drawing, shown_of, styled
from analysis.figures.marks import GREY, label_ends, points
from analysis.figures.panels import Room
from analysis.measures.accuracy import GROUP
from analysis.measures.levels import levels_of
from analysis.measures.retention import cost_ratios
from analysis.measures.similarity import FILE
from analysis.names import upper_first
from analysis.readers import group_order, kinds_of, marked
from analysis.report.apa_tables import ApaTable, Origin
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.layout import ChapterLayout
from analysis.report.studies_page import Page
from analysis.tables import Tables
from experiment.papers.mind_scramble.chapter import measures as paper
from experiment.papers.mind_scramble.chapter.measures import Slope
from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.papers.inside.chapters.layers.layer_figures import Panel
    from experiment.papers.inside.chapters.layers.layer_maps import Represented

WORDS = Path(__file__).with_name("figures.yaml")


def cost_figure(name: str, ratios: pd.DataFrame, kinds: Mapping[str, str], time: str) -> Drawing:
    """Draw Mind Scramble's Figure 3: the ratio of prompt tokens against that of time (or of completion tokens), a point per reader."""
    look = shown_of(kinds, set(ratios["reader_group"]))
    with styled():
        figure = Figure(figsize=(WIDTH, 3.4))
        axes = figure.add_axes((0.1, 0.15, 0.56, 0.76))
        means = ratios.groupby("reader_group", sort=False)[["prompt_tokens", "cost"]].mean()
        ends = []
        for group, (x, y) in zip(means.index, means.to_numpy(dtype=float), strict=True):
            mark, group_ratios = look[str(group)], ratios[ratios["reader_group"] == group]
            thin = mark.marker in ("x", "+")  # nothing but lines
            small: dict[str, Any] = {"size": 3, "alpha": 0.35, "face": mark.colour, "edge": 0.6 * thin}
            points(axes, mark, group_ratios["prompt_tokens"], group_ratios["cost"], **small)
            axes.plot(
                [x], [y], mark.marker, ms=8, color=mark.colour, mec=mark.colour if thin else "white",
                mew=1.2 if thin else 0.8, zorder=6
            )  # fmt: skip
            ends.append((x, y, mark.label, mark.colour))
        axes.axhline(1, color=GREY, lw=0.8, ls=":")
        axes.axvline(1, color=GREY, lw=0.8, ls=":")
        axes.set(xlabel="Prompt tokens, changed / intact", ylabel=f"{time}, changed / intact")
        low, high = axes.get_xlim()
        label_ends(axes, ends, high + 0.03 * (high - low))
        axes.set_xlim(low, high)
    return Drawing.described(name, figure, look, WORDS / "mind_scramble_costs", means=means, time=time)


def series_figure(name: str, slopes: Sequence[Slope], kinds: Mapping[str, str], measure: str) -> Drawing:
    """Draw Mind Scramble's Figure 4: the measure against the number of operations inside each word, a panel per kind of operation."""
    operations = list(dict.fromkeys(slope.operation for slope in slopes))
    look = shown_of(kinds, {slope.group for slope in slopes})
    values = [mean for slope in slopes for mean in slope.means]
    edge = 0.08 * max(5.0, max(values) - min(values))
    room = Room(
        2.1, left=0.08 * WIDTH, right=0.16 * WIDTH, between=0.03 * WIDTH, columns=len(operations), above=0.39, top=0, below=0.51
    )  # fmt: skip
    with styled():
        figure, panels = room.panels(len(operations))
        for axes, operation in zip(panels, operations, strict=True):
            ends: list[tuple[float, float, str, str]] = []
            for slope in slopes:
                if slope.operation == operation:
                    mark = look[slope.group]
                    points(
                        axes, mark, slope.counts, slope.means, join=1.3, size=4, edge=1.0, face=mark.colour
                    )
                    ends.append((slope.counts[-1], slope.means[-1], mark.label, mark.colour))
            axes.set(xlim=(-0.3, 4.3), ylim=(min(values) - edge, max(values) + edge), xticks=range(5))
            axes.set_title(operation, fontsize=9, loc="left")
        panels[0].set_ylabel(measure)
        panels[len(operations) // 2].set_xlabel("Operations inside each word (0: intact)")
        label_ends(panels[-1], ends, 4.6)
    return Drawing.described(name, figure, look, WORDS / "mind_scramble_series", found=slopes)


LAYOUT = ChapterLayout(Path(__file__).parent)
_MEANS = "means by item, then over items"
_ANSWERS = ("response_status", "replicate", GROUP, "item_id")
_COSINES = Origin(columns=("similarity",), rows=f"answers of used trials; {_MEANS}", file=FILE)
_ANSWERED = Origin(columns=("score", "scorer", *_ANSWERS))
ORIGINS = {
    paper.ACCURACY: Origin(
        columns=("correct", *_ANSWERS), rows=f"excluded_reason empty; failures as wrong; {_MEANS}"
    ),
    paper.IN_PLACE: replace(
        _ANSWERED, rows=f"excluded_reason empty; scorer published_typobench, valid answers; {_MEANS}"
    ),
    paper.NEARNESS: replace(
        _ANSWERED,
        rows=f"excluded_reason empty; failures as 0; where the scorer is published_typobench, corrected of {paper.PRICES}; {_MEANS}",
    ),
    paper.COSINE: _COSINES,
    paper.PROGRAM_COSINE: _COSINES,
}
ABOVE_FLOOR = "cosine with the own answer, in % of the way from the cosine of answers about different texts (0) to 1 (100)"
SHARE = "% of the way"
SPREAD = "±\N{NO-BREAK SPACE}SD"
Row = dict[str, Any]
Texts = Sequence[tuple[str, Sequence[paper.Near]]]  # data sets, each with its texts alone and whole prompts


_SHORT = {"WORD-REO-": "Word ", "SENT-REO-": "Sentence ", "REO-": "Character "}
HEADS = {
    level: re.sub("^(WORD-|SENT-)?REO-", lambda start: _SHORT[start[0]], level)
    for level in (paper.BASE, *paper.REORDERED, *paper.EMBEDDED)
}
"""Heads of levels' columns."""


def write(material: Material) -> Chapter | None:
    """Write what the paper shows of a study with its TypoFuncs; None for any other study."""
    tables = material.tables
    factor = paper.factor_of(tables)
    if factor is None:
        return None
    material.told("Mind Scramble's tables")
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    all_kinds = kinds_of(used)
    kinds = {group: all_kinds[group] for group in group_order(used)}
    study = str(tables.dictionary["study"])
    values = paper.values_of(tables, factor)
    blocks: list[Block] = []
    for index, value in enumerate(values):
        blocks += _of_values(value, kinds, study, f"_{value.measure.key}" if index else "")
    blocks += _costs(tables, factor, kinds, study)
    similarity, faults = list(_similarity(tables, study)), list(_faults(tables, kinds))
    blocks += [*similarity, *faults]
    if not kinds:
        return None
    methods = (
        LAYOUT.paragraphs(
            "methods",
            measures=[value.measure.method for value in values],
            has_faults=bool(faults),
            has_cosines=any(isinstance(block, ApaTable) for block in similarity),
        )
        if blocks
        else ()
    )
    unscored = paper.unscored(tables, factor)
    if unscored or not blocks:
        of_models = material.tables.trials["reader_kind"] == "model"
        is_silent = of_models.any() and bool(never_answered(material.tables.trials)[of_models].all())
        blocks = [*LAYOUT.blocks("unscored", unscored=unscored, is_silent=is_silent), *blocks]
    return LAYOUT.chapter("mind-scramble", blocks, kinds, kinds, methods=methods)


def answers(tables: Tables) -> list[tuple[Markup, Markup]]:
    """Return whether answers depend on the order of a text; nothing where none was compared with those about other texts."""
    factor = paper.factor_of(tables)
    if factor is None:
        return []
    study, kinds = str(tables.dictionary["study"]), kinds_of(tables.trials)
    found = [floor for values in paper.values_of(tables, factor) for floor in paper.floors(values, study)]
    found = [floor for floor in found if kinds[floor.group] != "baseline" and np.isfinite(floor.mean)]
    if not found:
        return []
    return [(LAYOUT.sentences("answer_question"), LAYOUT.sentences("answer", found=found, kinds=kinds))]


def _of_values(values: paper.Values, kinds: Mapping[str, str], study: str, suffix: str) -> Iterator[Block]:
    """Write the tables and the series of one measure, whose names end in ``behind``."""
    parts = [("", values)]
    shown_levels = set(values.levels)
    number = 2 if values.measure.is_perception else 1
    exhibits: dict[str, Any] = {}
    if shown_levels & set(paper.REORDERED):
        exhibits["reordering"] = reordering_table(f"ms_reordering{suffix}", parts, kinds, number=number)
    if shown_levels & set(paper.EDITS):
        exhibits["edits"] = edit_table(f"ms_edits{suffix}", parts, kinds)
    if slopes := paper.slopes(values, study):
        exhibits["series"] = series_figure(f"ms_series{suffix}", slopes, kinds, values.measure.axis)
        order = list(dict.fromkeys(slope.operation for slope in slopes))
        rows = [
            {**vars(slope), "by_count": dict(zip(slope.counts, slope.means, strict=True))}
            for slope in sorted(slopes, key=lambda slope: order.index(slope.operation))
        ]
        counts = range(max(max(slope.counts) for slope in slopes) + 1)
        facts: Row = {"kinds": kinds, "measure": values.measure.name, "counts_shown": counts}
        exhibits["slopes"] = LAYOUT.table(
            "slopes", rows, f"ms_slopes{suffix}", origin=ORIGINS[values.measure], **facts
        )
    yield from LAYOUT.blocks(
        "values",
        **dict.fromkeys(("reordering", "edits", "slopes", "series")) | exhibits | steepest(slopes, kinds),
        floors=floor_table(f"ms_floors{suffix}", parts, kinds, study),
        measure=values.measure,
        paper_table=number,
        kinds=kinds,
    )


def steepest(slopes: Sequence[paper.Slope], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return whether any series falls by as much as is shown, and of those whose items differ the one that falls most."""
    readers = [slope for slope in slopes if kinds[slope.group] != "baseline"] or list(slopes)
    falling = [reader for reader in readers if round(reader.slope, 2) < 0]
    sure = [slope for slope in falling if math.isfinite(slope.low)]
    return {"falling": bool(falling), "steepest": min(sure, key=lambda slope: slope.slope, default=None)}


def _costs(tables: Tables, factor: str, kinds: Mapping[str, str], study: str) -> Iterator[Block]:
    used = tables.trials
    if not (used[factor] == paper.BASE).any():
        return
    measures = ("prompt_tokens", "completion_tokens", "latency_ms")
    ratios = cost_ratios(used, factor, intact=paper.BASE, measures=measures, study=study)
    if ratios.empty:
        return
    wide = ratios.pivot_table(index=[GROUP, factor], columns="measure", values="published", sort=False)
    measure = "latency_ms" if "latency_ms" in wide else "completion_tokens"
    if "prompt_tokens" not in wide or measure not in wide:
        return
    points = wide[["prompt_tokens", measure]].dropna().reset_index()
    if len(points):
        is_timed = measure == "latency_ms"
        time = "Completion time" if is_timed else "Completion tokens"
        points = points.rename(columns={measure: "cost", factor: "level"})
        drawing = cost_figure("ms_costs", points, kinds, time)
        yield from LAYOUT.blocks("costs", drawing=drawing, is_timed=is_timed)


def _similarity(tables: Tables, study: str) -> Iterator[Block]:
    """Return the similarity of the shown texts (Table 4), or a sentence with the reason if the file cannot be read."""
    try:
        stored = paper.stored_texts(tables.folder)
    except UserError as error:
        yield LAYOUT.sentences("no_similarities", why=f"{error.message}. {error.mend or ''}".strip(" ."))
        return
    if stored is None:
        return
    use, parts = stored
    first = parts[0] if parts else None
    units = paper.unit_means(first, study) if first else []
    yield from LAYOUT.blocks(
        "similarity",
        table=similarity_table("ms_similarity", [(study, parts)], use),
        units=unit_table("ms_similarity_units", [(study, parts)], use),
        found=units,
        means=[f"{apa.number(unit.mean, 3)} ({unit.unit.lower()})" for unit in units],
        rises=all(unit.above_low > 0 for unit in units[1:]),
        of=first.of if first else "",
        floor=apa.number(first.floor, 3) if first and first.unrelated else "",
    )


def _faults(tables: Tables, kinds: Mapping[str, str]) -> Iterator[Block]:
    prices = paper.fault_prices(tables)
    if prices.empty:
        return
    corrected = prices[(prices["rule"] == paper.CORRECTED) | (prices["data_set"] == paper.PROGRAMS)]
    alike = [str(group) for group in corrected.loc[corrected["turned"] == 0, GROUP]]
    yield from LAYOUT.blocks(
        "faults",
        table=fault_table("ms_faults", prices, kinds),
        differing=corrected[~corrected[GROUP].isin(alike)].to_dict("records"),
        alike=[marked(group, kinds[group]) for group in alike],
        programs=paper.PROGRAMS,
        kinds=kinds,
    )


def _head(parts: Sequence[paper.Part], title: str, values: paper.Values) -> str:
    return f"{title}: {values.measure.name}" if len(parts) > 1 else ""


def _of_measures(parts: Sequence[paper.Part]) -> Row:
    """Return the end of a title, where there is but one measure, and which remarks measures need."""
    measures = {values.measure for _, values in parts}
    names = {measure.name for measure in measures}
    return {
        "measured": f": {names.pop()}" if len(names) == 1 else "",
        "in_place": paper.IN_PLACE in measures,
        "is_cosine": paper.COSINE in measures,
        "origin": ORIGINS[parts[0][1].measure],
    }


def reordering_table(
    name: str, parts: Sequence[paper.Part], kinds: Mapping[str, str], *, number: int
) -> ApaTable:
    """Lay out Table 1 (completion) or 2 (perception): a row per reader under each data set, a column per reordering."""
    levels = (paper.BASE, *paper.REORDERED)
    rows: list[Row] = []
    for title, values in parts:
        head = _head(parts, title, values)
        for group in values.of_items:
            mean, share = paper.kept(values, group, paper.REORDERED)
            cells = {level: values.mean(group, level) for level in levels}
            reader = marked(group, kinds[group])
            rows.append({"head": head, "reader": reader, "cells": cells, "mean": mean, "share": share})
            spread = {level: values.replicates(group, level)[1] for level in levels}
            if any(map(math.isfinite, spread.values())):
                rows.append({"head": head, "reader": SPREAD, "cells": spread, "mean": None, "share": None})
    values_of = {"levels": levels, "heads": HEADS, "paper_table": number, **_of_measures(parts)}
    return LAYOUT.table("reordering", rows, name, **values_of)


def floor_table(
    name: str, parts: Sequence[paper.Part], kinds: Mapping[str, str], study: str = ""
) -> ApaTable | None:
    """Lay out cosines above those of answers about different texts, bootstraps seeded by ``study`` or each part; None without."""
    rows = [
        {"head": title if len(parts) > 1 else "", **vars(floor)}
        for title, values in parts
        for floor in paper.floors(values, study or title)
    ]
    return LAYOUT.table("floors", rows, name, kinds=kinds, file=FILE) if rows else None


def edit_table(name: str, parts: Sequence[paper.Part], kinds: Mapping[str, str]) -> ApaTable:
    """Lay out Table 3: a row per insertion and deletion, a column per reader; the last row mean and mean / BASE."""
    groups = list(dict.fromkeys(group for _, values in parts for group in values.of_items))
    rows: list[Row] = []
    for title, values in parts:
        of_items = values.of_items
        by_row = {
            level: {group: _with_spread(values, group, level) for group in of_items}
            for level in (paper.BASE, *paper.EDITS)
        }
        retained = {group: paper.kept(values, group, paper.EDITS) for group in of_items}
        for index, row_label in enumerate(("Mean", "% of BASE")):
            by_row[row_label] = {
                group: apa.number(mean_and_share[index], 1) for group, mean_and_share in retained.items()
            }
        head = _head(parts, title, values)
        rows += [
            {"head": head, "operation": row_label, "cells": cells} for row_label, cells in by_row.items()
        ]
    shown = [row["cells"] for row in rows if row["operation"] != "% of BASE"]
    facts = _of_measures(parts) | {
        "has_gaps": any(cells.get(group, apa.MISSING) == apa.MISSING for cells in shown for group in groups),
        "has_zeros": any(
            values.mean(group, paper.BASE) == 0 for _, values in parts for group in values.of_items
        ),
    }
    return LAYOUT.table("edits", rows, name, groups=groups, kinds=kinds, **facts)


def _with_spread(values: paper.Values, group: str, level: str) -> str:
    mean, sd = values.mean(group, level), values.replicates(group, level)[1]
    if not (math.isfinite(sd) and math.isfinite(mean)):
        return apa.number(mean, 1)
    return apa.joined(apa.number(mean, 1), "±", apa.number(sd, 1))


def fault_table(name: str, prices: pd.DataFrame, kinds: Mapping[str, str]) -> ApaTable:
    """Lay out how much each error of the released scorers changes the score of the replies at hand."""
    grouped = [group_prices for _, group_prices in prices.groupby(["data_set", GROUP], sort=False)]
    return LAYOUT.table("faults", pd.concat(grouped), name, kinds=kinds, file=paper.PRICES)


def rank_table(name: str, parts: Sequence[paper.Part], kinds: Mapping[str, str]) -> ApaTable | None:
    """Lay out models' ranks in each task; None where no model is in all of them."""
    table = paper.ranks(parts, kinds)
    if table.empty:
        return None
    columns = [(title, column) for title, _ in parts for column in (title, f"rank {title}")]
    rows = [{"group": group, "cells": dict(ranks)} for group, ranks in table.iterrows()]
    return LAYOUT.table(
        "ranks",
        rows,
        name,
        origin=ORIGINS[parts[0][1].measure],
        heads={column: title if column == title else "Rank" for title, column in columns},
        columns=[column for _, column in columns],
        measures=[(title, ABOVE_FLOOR if values.floors else values.measure.name) for title, values in parts],
        not_in_all=_in_tasks(paper.not_in_all(parts, kinds), kinds),
        alike=_in_tasks(paper.alike_throughout(parts, kinds), kinds),
        is_few=len(table) < paper.FEWEST_MODELS,
        kinds=kinds,
    )


def _in_tasks(pairs: Sequence[tuple[str, str]], kinds: Mapping[str, str]) -> list[str]:
    return [f"{marked(group, kinds[group])} ({task})" for group, task in pairs]


def agreement_table(
    name: str, completed: Sequence[paper.Part], perceived: Sequence[paper.Part], kinds: Mapping[str, str]
) -> ApaTable | None:
    """Return the agreement of the models' orders in perception and completion; None for fewer than three models."""
    agreements = paper.agreements(completed, perceived, kinds)
    return LAYOUT.table("agreements", map(vars, agreements), name) if agreements else None


def similarity_table(name: str, parts: Texts, use: str) -> ApaTable:
    """Lay out Table 4: mean cosine of each text's vector by ``use`` with that of the intact text, the floor, and what lies between."""
    rows: list[Row] = []
    all_similarities = [(title, similarity) for title, similarities in parts for similarity in similarities]
    for title, similarity in all_similarities:
        label = f"{title}, {similarity.of}" if len(parts) > 1 else upper_first(similarity.of)
        means = {level: similarity.means.get(level, math.nan) for level in paper.EMBEDDED}
        rows.append({"data_set": label, "cells": means, "floor": similarity.floor, "places": 3})
        if similarity.unrelated:
            shares = {level: similarity.share(mean) for level, mean in means.items()}
            rows.append({"data_set": SHARE, "cells": shares, "floor": 0.0, "places": 0})
    with_floor = [similarity for _, similarity in all_similarities if similarity.unrelated]
    pairs = sorted(
        {similarity.pairs for similarity in with_floor}
        if all(similarity.with_all for similarity in with_floor)
        else ()
    )
    cut = [(title, similarity) for title, similarity in all_similarities if similarity.cut]
    return LAYOUT.table(
        "similarity",
        rows,
        name,
        heads=HEADS,
        levels=paper.EMBEDDED,
        use=use,
        file=paper.STORED,
        pairs=" to ".join(map(apa.count, dict.fromkeys((pairs[0], pairs[-1])))) if pairs else "",
        cuts=[
            f"{apa.count(similarity.cut or 0)} of {apa.count(similarity.texts)} ({title}, {similarity.of})"
            for title, similarity in cut
        ],
    )


def unit_table(name: str, parts: Texts, use: str) -> ApaTable | None:
    """Lay out the means of characters, words and sentences with intervals; None where single items were not kept."""
    rows: list[Row] = []
    for title, similarity in (
        (title, similarity) for title, similarities in parts for similarity in similarities
    ):
        head = {"head": f"{title}, {similarity.of}"}
        means = paper.unit_means(similarity, title)
        rows += [{**head, **vars(mean), "share": similarity.share(mean.mean)} for mean in means]
        if means and similarity.unrelated:
            low, high = similarity.floor_ends(title)
            of_floor = {"mean": similarity.floor, "low": low, "high": high, "share": 0.0}
            texts = {"unit": "Different texts", "operations": 0, "items": len(similarity.unrelated)}
            rows.append({**head, **texts, **of_floor})
    if not rows:
        return None
    with_all = any(similarity.with_all for _, similarities in parts for similarity in similarities)
    return LAYOUT.table("units", rows, name, use=use, file=paper.STORED, with_all=with_all)


ABOUT = Page(
    "Mind Scramble's tables from these studies",
    "After Yu et al. (2024), arXiv:2410.01677.",
    "Laid out as in the paper; every number is from these studies' own runs.",
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
    by_use: dict[str, list[tuple[str, tuple[paper.Near, ...]]]] = {}
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
                "about the intact text, `wrods score --execute` runs programs; `wrods report` then includes the results."
            )
        for values in measured:
            titled = (
                name if len(measured) == 1 else f"{name}, {values.measure.axis.removesuffix(' (%)').lower()}"
            )
            (perceived if values.measure.is_perception else completed).append((titled, values))
        prices.append(paper.fault_prices(tables))
        if (stored := paper.stored_texts(tables.folder)) is not None:
            by_use.setdefault(stored[0], []).append((name, stored[1]))
        maps += _maps(tables, factor, name, told)
    exhibits: list[ApaTable | Drawing | None] = []
    if completed:
        exhibits.append(reordering_table("table_1", completed, kinds, number=1))
    if perceived:
        exhibits.append(reordering_table("table_2", perceived, kinds, number=2))
        exhibits.append(floor_table("table_2_floors", [part for part in perceived if part[1].floors], kinds))
    if completed:
        exhibits.append(edit_table("table_3", completed, kinds))
    for number, (use, parts) in enumerate(by_use.items(), 1):
        name = "table_4" if number == 1 else f"table_4_{number}"
        exhibits += [similarity_table(name, parts, use), unit_table(f"{name}_units", parts, use)]
    exhibits += _alike(maps)
    if len(completed) + len(perceived) > 1:
        ranked = rank_table("ranks", [*completed, *perceived], kinds)
        exhibits += [ranked, agreement_table("ranks_alike", completed, perceived, kinds)]
        if ranked is None and "model" in kinds.values():
            told(
                "Models are not ranked: in every task it takes answers under all operations, or cosines that differ from their floor."
            )
    together = pd.concat(prices, ignore_index=True) if prices else pd.DataFrame()
    exhibits += [fault_table("faults", together, kinds)] if len(together) else []
    return [exhibit for exhibit in exhibits if exhibit is not None]


def _maps(
    tables: Tables, factor: str, study: str, progress: Callable[[str], None]
) -> Iterator[tuple[str, Represented, Panel]]:
    """Yield each model's map of hidden states in one study, where its runs kept any."""
    from experiment.papers.inside.chapters.layers.layer_figures import Panel
    from experiment.papers.inside.chapters.layers.layer_maps import accuracy_of, represented

    present = [name for name in tables.factors[factor] if (tables.trials[factor] == name).any()]
    meanings = levels_of(tables.items, factor, present, tables.dictionary.get("between"))
    for model_map in represented(tables, meanings, progress):
        pattern, accuracy = model_map.pattern, accuracy_of(tables.trials, model_map)
        study_name = f"{study}, {model_map.part}" if model_map.part else study
        answers = tuple(float(value) for value in accuracy) if np.isfinite(accuracy).any() else ()
        maps = (pattern.map(), pattern.map(centred=True), pattern.apart, pattern.apart_centred)
        panel = Panel(f"{model_map.group}: {study_name}", pattern.conditions, *maps, answers)
        yield study_name, model_map, panel


def _alike(maps: Sequence[tuple[str, Represented, Panel]]) -> Iterator[ApaTable | Drawing]:
    """Return the maps (Figure 5), and the similarity of one model's maps in several studies."""
    if not maps:
        return
    from experiment.papers.inside.chapters.layers.layer_figures import pattern_figures
    from experiment.papers.inside.chapters.layers.layer_maps import between_sets
    from experiment.papers.inside.chapters.representations import sets_table

    panels = [panel for _, _, panel in sorted(maps, key=lambda entry: entry[1].group)]
    title, note = LAYOUT.caption("maps")
    yield from pattern_figures("figure_5", title, panels, note)
    pairs = list(between_sets([(name, model_map) for name, model_map, _ in maps], "mind-scramble"))
    if pairs:
        yield sets_table("figure_5_alike", "One model's maps in several studies", pairs)
