"""Ratios of three papers: relative performance gain, retention, cost ratios, cosine similarity, and answers against chance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from analysis import apa
from analysis.answers import choice_types, is_choice, judged
from analysis.exclusions import TIMED
from analysis.intervals import OF_SHARES
from analysis.measures.accuracy import GROUP, LEAST_PARTICIPANTS, against_chance, at_chance, with_chance
from analysis.measures.levels import LevelMeanings, levels_of
from analysis.measures.resampling import bootstrap
from analysis.measures.retention import cost_ratios, relative_gains, retentions
from analysis.measures.similarity import scored_similarities
from analysis.names import plain
from analysis.readers import group_order, in_order, kinds_of
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.condense_levels import MOST_DIFFERENCES_NAMED
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
        meanings = levels_of(part_tables.items, factor, present, tables.dictionary.get("between"))
        material.told(f"ratios: {factor}{part.told}")
        ratio_blocks = [
            *_gains(part_tables, meanings, study),
            *_retentions(part_tables, meanings, study),
            *_costs(part_tables, meanings, study),
            *_similarities(part_tables, meanings, study),
        ]
        if ratio_blocks:
            blocks += of_part([*LAYOUT.blocks("levels", does=meanings), *ratio_blocks], part)
        elif meanings.unknown:
            unrecorded.append(factor)
        else:
            lacking.append(LAYOUT.sentences("no_ratio", does=meanings, part=part.told))
    blocks += _chances(tables, study)
    if not blocks:
        return None
    if unrecorded:
        lacking.append(LAYOUT.sentences("unrecorded", factors=list(dict.fromkeys(unrecorded))))
    if lacking:
        blocks.append(Markup(" ").join(lacking))
    kinds = kinds_of(used)
    return LAYOUT.chapter("ratios", blocks, kinds, kinds)


def _accuracy_rows(tables: Tables, meanings: LevelMeanings) -> pd.DataFrame:
    """Return the trials that can be right or wrong, where the intact level and another one have some; else none."""
    trials = tables.trials
    rows = trials[judged(trials) & trials[meanings.factor].notna()]
    used = rows[rows["excluded_reason"].isna()]
    has_both = (
        meanings.intact is not None
        and (used[meanings.factor] == meanings.intact).any()
        and used[meanings.factor].nunique() > 1
    )
    return rows if has_both else rows.iloc[:0]


def _readers(table: pd.DataFrame, kinds: dict[str, str]) -> list[tuple[str, list[dict[Any, Any]]]]:
    """Return the rows of each reader group that the text reports: of all but baselines."""
    groups = table.groupby(GROUP, sort=False)
    return [
        (str(group), rows.to_dict("records")) for group, rows in groups if kinds[str(group)] != "baseline"
    ]


def _gains(tables: Tables, meanings: LevelMeanings, study: str) -> Iterator[Block]:
    rows = _accuracy_rows(tables, meanings)
    if meanings.intact is None or rows.empty:
        return
    floor = next((level for level in meanings.substituted if (rows[meanings.factor] == level).any()), None)
    if floor is None or not meanings.changed:
        yield LAYOUT.sentences("no_gain", floor=floor)
        return
    values: dict[str, Any] = {
        "factor": meanings.factor,
        "intact": meanings.intact,
        "floor": floor,
        "kinds": kinds_of(rows),
    }
    complete = _with_levels(rows, meanings.factor, (meanings.intact, floor))
    gains = relative_gains(complete, meanings.factor, intact=meanings.intact, substituted=floor, study=study)
    gains = in_order(
        gains[gains[meanings.factor].isin(meanings.changed)],
        group_order(rows),
        meanings.factor,
        meanings.changed,
    )
    yield from LAYOUT.blocks(
        "gains",
        table=LAYOUT.table("gains", gains, f"relative_gain_{plain(meanings.factor)}", **values),
        readers=_readers(gains[~gains["flagged"]], values["kinds"]),
        flagged=[str(group) for group in gains.loc[gains["flagged"], GROUP].unique()],
        **values,
    )


def _retentions(tables: Tables, meanings: LevelMeanings, study: str) -> Iterator[Block]:
    rows = _accuracy_rows(tables, meanings)
    transforms = [level for level in meanings.changed if (rows[meanings.factor] == level).any()]
    if meanings.intact is None or rows.empty or not transforms:
        return
    kinds = kinds_of(rows)
    complete = _with_levels(rows, meanings.factor, (meanings.intact, *transforms))
    if complete.empty:
        yield LAYOUT.sentences("no_retention", factor=meanings.factor)
        return
    groups = {
        "all": transforms,
        **({transform: [transform] for transform in transforms} if len(transforms) > 1 else {}),
    }
    retained = retentions(
        complete, meanings.factor, intact=meanings.intact, groups_of_levels=groups, study=study
    )
    retained = in_order(retained, group_order(rows), "levels", groups)
    chance = tables.trials, tables.items, tables.factors, meanings.factor, meanings.intact, study
    retained["at_chance"] = retained[GROUP].isin(at_chance(*chance))
    retained["flagged"] |= retained["at_chance"]
    values: dict[str, Any] = {"factor": meanings.factor, "intact": meanings.intact, "kinds": kinds}
    table = LAYOUT.table("retention", retained, f"retention_{plain(meanings.factor)}", **values)
    readers = _readers(retained[retained["levels"] == "all"], kinds)
    yield from LAYOUT.blocks("retentions", table=table, readers=readers, kinds=kinds)


def _costs(tables: Tables, meanings: LevelMeanings, study: str) -> Iterator[Block]:
    if meanings.intact is None:
        return
    ratios = cost_ratios(tables.trials, meanings.factor, intact=meanings.intact, study=study)
    ratios = ratios[ratios["items"] > 0] if len(ratios) else ratios
    if ratios.empty:
        return
    levels = tables.factors[meanings.factor]
    by_measure = [measure_rows for _, measure_rows in ratios.groupby("measure", sort=False)]
    order = group_order(tables.trials)
    rows = pd.concat([in_order(measure_rows, order, meanings.factor, levels) for measure_rows in by_measure])
    table = LAYOUT.table(
        "costs",
        rows,
        f"cost_ratio_{plain(meanings.factor)}",
        factor=meanings.factor,
        kinds=kinds_of(tables.trials),
        timed=TIMED,
    )
    yield from LAYOUT.blocks("costs", table=table, is_timed=(ratios["measure"] == "latency_ms").any())


def _similarities(tables: Tables, meanings: LevelMeanings, study: str) -> Iterator[Block]:
    """Write the cosines of answers by one factor; nothing where none are stored."""
    answers = scored_similarities(tables, meanings.factor)
    rows = []
    for (group, level), cell in answers.groupby([GROUP, meanings.factor], sort=False) if len(answers) else ():
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
            f"answer_similarity_{plain(meanings.factor)}",
            factor=meanings.factor,
            kinds=kinds_of(tables.trials),
            vectors=sorted(set(answers["use"])),
            compared=sorted(set(answers["compared_with"])),
        )
        yield from LAYOUT.blocks("similarities", table=table, factor=meanings.factor)


def _with_levels(rows: pd.DataFrame, factor: str, levels: tuple[str, ...]) -> pd.DataFrame:
    """Keep the reader groups that answered in each of these levels."""
    used = rows[rows["excluded_reason"].isna()]
    n_levels = used[used[factor].isin(levels)].groupby(GROUP)[factor].nunique()
    return rows[rows[GROUP].isin(n_levels[n_levels == len(set(levels))].index)]


def _chances(tables: Tables, study: str) -> Iterator[Block]:
    """Write accuracy against chance by each factor; nothing if no trial offered choices."""
    trials = tables.trials
    if not (trials["excluded_reason"].isna() & is_choice(trials)).any():
        return
    try:
        rows = with_chance(trials, tables.items, tables.factors)
    except UserError as error:
        yield LAYOUT.sentences("no_chance", why=error.message)
        return
    kinds = kinds_of(trials)
    is_first = True
    for part in parts_of(rows[rows["excluded_reason"].isna() & is_choice(rows)], tables):
        factor = part.factor
        chances = against_chance(part.rows(rows), [factor], study=study)
        if chances.empty:
            continue
        chances = in_order(chances, group_order(trials), factor, part.levels)
        present = [name for name in part.levels if (chances[factor] == name).any()]
        meanings = levels_of(part.of(tables).items, factor, present, tables.dictionary.get("between"))
        readers = chances[chances["kind"] != "baseline"]
        blind = [level for level in meanings.without_evidence if (readers[factor] == level).any()]
        silent = readers[readers["out_of_context_ratio"] > 0]
        silent = silent[silent["out_of_context_ratio"] >= silent["out_of_context_ratio"].max() - 1e-9]
        values: dict[str, Any] = {"factor": factor, "does": meanings, "kinds": kinds}
        table = LAYOUT.table(
            "chance",
            chances,
            plain("chance", factor),
            shares=OF_SHARES,
            fewest=apa.NUMBERS[LEAST_PARTICIPANTS],
            types=choice_types(trials),
            **values,
        )
        table = with_copies_told(table, part.rows(rows), factor)
        blocks = LAYOUT.blocks(
            "chance",
            table=table,
            part=part.told,
            below=readers[readers["verdict"] == "below"].to_dict("records"),
            blind=blind,
            above=readers[readers[factor].isin(blind) & (readers["verdict"] == "above")].to_dict("records"),
            silent=silent.to_dict("records"),
            most_named=MOST_DIFFERENCES_NAMED,
            **values,
        )
        if is_first:
            yield from LAYOUT.blocks("chance_heading")
            is_first = False
        yield from of_part(blocks, part)
