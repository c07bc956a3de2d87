"""Ratios of three papers: relative performance gain, retention, cost ratios, cosine similarity, and answers against chance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from analysis.answers import judged
from analysis.intervals import OF_SHARES
from analysis.measures.accuracy import GROUP, against_chance, with_chance
from analysis.measures.levels import LevelMeanings, levels_of
from analysis.measures.resampling import bootstrap
from analysis.measures.retention import cost_ratios, relative_gains, retentions
from analysis.measures.similarity import scored_similarities
from analysis.names import plain
from analysis.preprocessing.exclusions import TIMED
from analysis.readers import group_order, in_order, kinds_of
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.described import with_copies_told
from analysis.report.layout import ChapterLayout
from analysis.report.subgroups import of_part, parts_of
from analysis.tables import Tables
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

LAYOUT = ChapterLayout(Path(__file__).parent)


def write(material: Material) -> Chapter | None:
    """Write every ratio for which a study has the levels and the columns, and name those that are not available."""
    tables = material.tables
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    if used.empty or not tables.factors:
        return None
    study = str(tables.dictionary["study"])
    blocks: list[Block] = []
    lacking: list[Markup] = []
    unrecorded: list[str] = []
    for part in parts_of(used, tables):
        factor, part_tables = part.factor, part.of(tables)
        present = [name for name in part.levels if (part.rows(used)[factor] == name).any()]
        if len(present) < 2:
            continue
        does = levels_of(part_tables.items, factor, present, tables.dictionary.get("between"))
        material.told(f"ratios: {factor}{part.told}")
        ratio_blocks = [
            *_gains(part_tables, does, study),
            *_retentions(part_tables, does, study),
            *_costs(part_tables, does, study),
            *_similarities(part_tables, does, study),
        ]
        if ratio_blocks:
            blocks += of_part([*LAYOUT.blocks("levels", does=does), *ratio_blocks], part)
        elif does.unknown:
            unrecorded.append(factor)
        else:
            lacking.append(LAYOUT.sentences("no_ratio", does=does, part=part.told))
    blocks += _chances(tables, study)
    if not blocks:
        return None
    if unrecorded:
        lacking.append(LAYOUT.sentences("unrecorded", factors=list(dict.fromkeys(unrecorded))))
    if lacking:
        blocks.append(Markup(" ").join(lacking))
    kinds = kinds_of(used)
    return LAYOUT.chapter("ratios", blocks, kinds, kinds, sources=("cao2023",))


def _accuracy_rows(tables: Tables, does: LevelMeanings) -> pd.DataFrame:
    """Return the trials that can be right or wrong, where the intact level and another one have some; else none."""
    trials = tables.trials
    rows = trials[judged(trials) & trials[does.factor].notna()]
    used = rows[rows["excluded_reason"].isna()]
    has_both = (
        does.intact is not None
        and (used[does.factor] == does.intact).any()
        and used[does.factor].nunique() > 1
    )
    return rows if has_both else rows.iloc[:0]


def _readers(table: pd.DataFrame, kinds: dict[str, str]) -> list[tuple[str, list[dict[Any, Any]]]]:
    """Return the rows of each reader group that the text reports: of all but baselines."""
    groups = table.groupby(GROUP, sort=False)
    return [
        (str(group), rows.to_dict("records")) for group, rows in groups if kinds[str(group)] != "baseline"
    ]


def _gains(tables: Tables, does: LevelMeanings, study: str) -> Iterator[Block]:
    rows = _accuracy_rows(tables, does)
    if does.intact is None or rows.empty:
        return
    floor = next((level for level in does.substituted if (rows[does.factor] == level).any()), None)
    if floor is None or not does.changed:
        yield LAYOUT.sentences("no_gain", floor=floor)
        return
    values: dict[str, Any] = {
        "factor": does.factor,
        "intact": does.intact,
        "floor": floor,
        "kinds": kinds_of(rows),
    }
    complete = _with_levels(rows, does.factor, (does.intact, floor))
    gains = relative_gains(complete, does.factor, intact=does.intact, substituted=floor, study=study)
    gains = in_order(
        gains[gains[does.factor].isin(does.changed)], group_order(rows), does.factor, does.changed
    )
    yield from LAYOUT.blocks(
        "gains",
        table=LAYOUT.table("gains", gains, f"relative_gain_{plain(does.factor)}", **values),
        readers=_readers(gains[~gains["flagged"]], values["kinds"]),
        flagged=[str(group) for group in gains.loc[gains["flagged"], GROUP].unique()],
        **values,
    )


def _retentions(tables: Tables, does: LevelMeanings, study: str) -> Iterator[Block]:
    rows = _accuracy_rows(tables, does)
    transforms = [level for level in does.changed if (rows[does.factor] == level).any()]
    if does.intact is None or rows.empty or not transforms:
        return
    kinds = kinds_of(rows)
    complete = _with_levels(rows, does.factor, (does.intact, *transforms))
    if complete.empty:
        yield LAYOUT.sentences("no_retention", factor=does.factor)
        return
    groups = {
        "all": transforms,
        **({transform: [transform] for transform in transforms} if len(transforms) > 1 else {}),
    }
    retained = retentions(complete, does.factor, intact=does.intact, groups_of_levels=groups, study=study)
    retained = in_order(retained, group_order(rows), "levels", groups)
    values: dict[str, Any] = {"factor": does.factor, "intact": does.intact, "kinds": kinds}
    table = LAYOUT.table("retention", retained, f"retention_{plain(does.factor)}", **values)
    readers = _readers(retained[retained["levels"] == "all"], kinds)
    yield from LAYOUT.blocks("retentions", table=table, readers=readers, kinds=kinds)


def _costs(tables: Tables, does: LevelMeanings, study: str) -> Iterator[Block]:
    if does.intact is None:
        return
    ratios = cost_ratios(tables.trials, does.factor, intact=does.intact, study=study)
    ratios = ratios[ratios["items"] > 0] if len(ratios) else ratios
    if ratios.empty:
        return
    levels = tables.factors[does.factor]
    by_measure = [measure_rows for _, measure_rows in ratios.groupby("measure", sort=False)]
    order = group_order(tables.trials)
    rows = pd.concat([in_order(measure_rows, order, does.factor, levels) for measure_rows in by_measure])
    table = LAYOUT.table(
        "costs",
        rows,
        f"cost_ratio_{plain(does.factor)}",
        factor=does.factor,
        kinds=kinds_of(tables.trials),
        timed=TIMED,
    )
    yield from LAYOUT.blocks("costs", table=table, is_timed=(ratios["measure"] == "latency_ms").any())


def _similarities(tables: Tables, does: LevelMeanings, study: str) -> Iterator[Block]:
    """Write the cosines of answers by one factor; nothing where none are stored."""
    answers = scored_similarities(tables, does.factor)
    rows = []
    for (group, level), cell in answers.groupby([GROUP, does.factor], sort=False) if len(answers) else ():
        means = cell.groupby(["set", "item_id"], dropna=False)["similarity"].mean().to_numpy(dtype=float)
        seed = stable_seed(study, "answer similarity", str(group), str(level))
        ends = bootstrap(means[:, None], lambda drawn: drawn[:, 0], seed)
        rows.append(
            {GROUP: str(group), "level": str(level), "means": means, "low": ends.low, "high": ends.high}
        )
    if rows:
        table = LAYOUT.table(
            "similarities",
            rows,
            f"answer_similarity_{plain(does.factor)}",
            factor=does.factor,
            kinds=kinds_of(tables.trials),
            vectors=sorted(set(answers["use"])),
            compared=sorted(set(answers["compared_with"])),
        )
        yield from LAYOUT.blocks("similarities", table=table, factor=does.factor)


def _with_levels(rows: pd.DataFrame, factor: str, levels: tuple[str, ...]) -> pd.DataFrame:
    """Keep the reader groups that answered in each of these levels."""
    used = rows[rows["excluded_reason"].isna()]
    seen = used[used[factor].isin(levels)].groupby(GROUP)[factor].nunique()
    return rows[rows[GROUP].isin(seen[seen == len(set(levels))].index)]


def _chances(tables: Tables, study: str) -> Iterator[Block]:
    """Write accuracy against chance by each factor; nothing if no trial offered choices."""
    trials = tables.trials
    if not (trials["excluded_reason"].isna() & (trials["trial_type"] == "choose")).any():
        return
    try:
        rows = with_chance(trials, tables.items, tables.factors)
    except UserError as error:
        yield LAYOUT.sentences("no_chance", why=error.message)
        return
    kinds = kinds_of(trials)
    is_first = True
    for part in parts_of(rows[rows["excluded_reason"].isna() & (rows["trial_type"] == "choose")], tables):
        factor = part.factor
        chances = against_chance(part.rows(rows), [factor], study=study)
        if chances.empty:
            continue
        chances = in_order(chances, group_order(trials), factor, part.levels)
        present = [name for name in part.levels if (chances[factor] == name).any()]
        does = levels_of(part.of(tables).items, factor, present, tables.dictionary.get("between"))
        readers = chances[chances["kind"] != "baseline"]
        blind = [level for level in does.without_evidence if (readers[factor] == level).any()]
        silent = readers[readers["out_of_context_ratio"] > 0].sort_values(
            "out_of_context_ratio", kind="stable"
        )
        values: dict[str, Any] = {"factor": factor, "does": does, "kinds": kinds}
        laid = LAYOUT.table("chance", chances, plain("chance", factor), shares=OF_SHARES, **values)
        laid = with_copies_told(laid, part.rows(rows), factor)
        blocks = LAYOUT.blocks(
            "chance",
            table=laid,
            part=part.told,
            below=readers[readers["verdict"] == "below"].to_dict("records"),
            blind=blind,
            above=readers[readers[factor].isin(blind) & (readers["verdict"] == "above")].to_dict("records"),
            silent=silent.to_dict("records")[-1:],
            **values,
        )
        if is_first:
            yield from LAYOUT.blocks("chance_heading")
            is_first = False
        yield from of_part(blocks, part)
