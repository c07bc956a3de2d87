"""The ratios of the three papers: relative performance gain, retention, cost ratios, cosine similarity, answers against chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.answers import judged
from analysis.measures.accuracy import GROUP
from analysis.measures.cost import cost_ratios
from analysis.measures.levels import Levels, levels_of
from analysis.measures.retention import relative_gains, retentions
from analysis.names import plain
from analysis.readers import group_order, kinds_of, named
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.chapters.ratios_chance import chance_blocks
from analysis.report.chapters.ratios_similarity import similarity_blocks
from analysis.report.chapters.ratios_tables import cost_table, gain_table, retention_table
from analysis.report.parted import of_part, parts_of
from analysis.tables import Tables

METHOD = Markup(
    "Relative performance gain is (scrambled − substituted)/(intact − substituted) in percent (Cao et al., 2023, eq. 2). Retention is "
    "the mean accuracy over scrambled conditions, absolute and in percent of the intact accuracy (Mind Scramble, 2024). Cost ratios "
    "hold a scrambled item against the same item intact. Which condition is intact or substituted was read from what was done to "
    "each item. Intervals are 95% percentile bootstraps over items (2,000 resamples). Adjusted accuracy is the share correct of "
    "answered trials, the out-of-context ratio the share unanswered; accuracy was held against chance by exact binomial tests."
)


def write(material: Material) -> Chapter | None:
    """Write every ratio for which a study has the levels and the columns, and say which it cannot have and why."""
    tables = material.tables
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna()]
    if used.empty or not tables.factors:
        return None
    study = str(tables.dictionary["study"])
    blocks: list[Block] = []
    lacking: list[str] = []
    unrecorded: list[str] = []
    for part in parts_of(used, tables):
        factor, there = part.factor, part.of(tables)
        present = [name for name in part.levels if (part.rows(used)[factor] == name).any()]
        if len(present) < 2:
            continue
        does = levels_of(there.items, factor, present, tables.dictionary.get("between"))
        material.told(f"ratios: {factor}{part.told}")
        own = [*_gains(there, does, study), *_retentions(there, does, study), *_costs(there, does, study)]
        own += similarity_blocks(there, does, study)
        if own:
            head = Markup("<h3>{}</h3>").format(f"Ratios by {factor}")
            blocks += of_part([head, escape(_said(does)), *own], part)
        elif does.unknown:
            unrecorded.append(factor)
        else:
            lacking.append(_why_not(does, part.told))
    if unrecorded:
        lacking.append(
            f"The items do not record what the levels of {apa.listing(list(dict.fromkeys(unrecorded)))} do to the text, so no "
            "relative gain, retention or cost ratio by it can be given."
        )
    blocks += chance_blocks(tables, study)
    if not blocks:
        return None
    if lacking:
        blocks.append(escape(" ".join(lacking)))
    kinds = kinds_of(used)
    return Chapter(
        "ratios",
        "Ratios of the field, and answers against chance",
        tuple(blocks),
        marks_of(tuple(kinds), kinds),
        methods=(METHOD,),
        sources=("cao2023",),
    )


def _said(does: Levels) -> str:
    """Say what the items record of each level."""
    told = [f"shown as it is in {does.intact}"] if does.intact else []
    for levels, what in (
        (does.substituted, "shown with other letters throughout in"),
        (does.withheld, "not shown in"),
        (does.changed, "changed in"),
    ):
        told += [f"{what} {apa.listing(list(levels))}"] if levels else []
    unknown = f" Of {apa.listing(list(does.unknown))} they do not say it." if does.unknown else ""
    return f"As the items record it, the text is {apa.listing(told)}.{unknown}"


def _why_not(does: Levels, told: str) -> str:
    if does.intact is None:
        return f"No level of {does.factor}{told} shows every text as it is, so there is no intact baseline for ratios by it."
    return f"No ratio by {does.factor}{told} can be given: no level beside {does.intact} was answered or cost anything."


def _accuracy_rows(tables: Tables, does: Levels) -> pd.DataFrame:
    """Return the trials that can be right or wrong, where the intact level and another one have some; else none."""
    trials = tables.trials
    rows = trials[judged(trials) & trials[does.factor].notna()]
    own = rows[rows["excluded_reason"].isna()]
    enough = (
        does.intact is not None and (own[does.factor] == does.intact).any() and own[does.factor].nunique() > 1
    )
    return rows if enough else rows.iloc[:0]


def _gains(tables: Tables, does: Levels, study: str) -> Iterator[Block]:
    rows = _accuracy_rows(tables, does)
    if does.intact is None or rows.empty:
        return
    floor = next((one for one in does.substituted if (rows[does.factor] == one).any()), None)
    if floor is None or not does.changed:
        missing = "level with all letters substituted" if floor is None else "scrambled level beside these"
        yield escape(f"Without a {missing} there is no relative performance gain.")
        return
    kinds = kinds_of(rows)
    complete = _with_levels(rows, does.factor, (does.intact, floor))
    gains = relative_gains(complete, does.factor, intact=does.intact, substituted=floor, study=study)
    gains = _in_order(gains[gains[does.factor].isin(does.changed)], rows, does.factor, does.changed)
    name = f"relative_gain_{plain(does.factor)}"
    told = [
        f"{_head(str(group), kinds)}: "
        + "; ".join(
            f"RPG = {apa.number(one['rpg'], 1)}%, 95% CI {apa.interval(one['rpg_low'], one['rpg_high'], 1)}, in {one[does.factor]}"
            for one in own.to_dict("records")
        )
        + "."
        for group, own in gains[~gains["flagged"]].groupby(GROUP, sort=False)
        if kinds[str(group)] != "baseline"
    ]
    flagged = [named(str(group), kinds) for group in gains.loc[gains["flagged"], GROUP].unique()]
    if flagged:
        told.append(
            f"Of {apa.listing(flagged)} the difference between {does.intact} and {floor} may be 0 (its interval includes 0 or is "
            "missing): the ratio says nothing there and is flagged."
        )
    yield Markup("[[table:{}]] has the relative performance gain. ").format(name) + escape(" ".join(told))
    yield gain_table(name, gains, does.factor, does.intact, floor, kinds)


def _retentions(tables: Tables, does: Levels, study: str) -> Iterator[Block]:
    rows = _accuracy_rows(tables, does)
    transforms = [level for level in does.changed if (rows[does.factor] == level).any()]
    if does.intact is None or rows.empty or not transforms:
        return
    kinds = kinds_of(rows)
    complete = _with_levels(rows, does.factor, (does.intact, *transforms))
    if complete.empty:
        yield escape(f"No reader has answered in every scrambled level of {does.factor}: no retention.")
        return
    groups = {"all": transforms, **({one: [one] for one in transforms} if len(transforms) > 1 else {})}
    kept = retentions(complete, does.factor, intact=does.intact, groups_of_levels=groups, study=study)
    kept = _in_order(kept, rows, "levels", list(groups))
    name = f"retention_{plain(does.factor)}"
    told = [
        f"{_head(str(one[GROUP]), kinds)} kept {apa.number(one['absolute'], 1)}% accuracy, 95% CI "
        f"{apa.interval(one['absolute_low'], one['absolute_high'], 1)}, over the scrambled levels"
        + (
            "; the accuracy with intact text may be 0, so that no share of it is given."
            if one["flagged"]
            else f": {apa.number(one['relative'], 1)}% of the accuracy with intact text, 95% CI "
            f"{apa.interval(one['relative_low'], one['relative_high'], 1)}."
        )
        for one in kept[kept["levels"] == "all"].to_dict("records")
        if kinds[str(one[GROUP])] != "baseline"
    ]
    yield Markup("[[table:{}]] has the retention. ").format(name) + escape(" ".join(told))
    yield retention_table(name, kept, does.factor, does.intact, kinds)


def _costs(tables: Tables, does: Levels, study: str) -> Iterator[Block]:
    if does.intact is None:
        return
    ratios = cost_ratios(tables.trials, does.factor, intact=does.intact, study=study)
    ratios = ratios[ratios["items"] > 0] if len(ratios) else ratios
    if ratios.empty:
        return
    levels = tables.factors[does.factor]
    ratios = pd.concat(
        [
            _in_order(own, tables.trials, does.factor, levels)
            for _, own in ratios.groupby("measure", sort=False)
        ]
    )
    kinds = kinds_of(tables.trials)
    name = f"cost_ratio_{plain(does.factor)}"
    lacking = (
        ""
        if (ratios["measure"] == "latency_ms").any()
        else (
            " No time ratio: no trial was timed alone (wrods run --timing), and other latencies measure the batch."
        )
    )
    yield Markup(
        "[[table:{}]] has what a scrambled item costs a model against the same item intact: as the paper takes it (mean of "
        "ratios, which "
        "items of small intact value pull up), geometric, and of the sums, by which a bill changes.{}"
    ).format(name, lacking)
    yield cost_table(name, ratios, does.factor, kinds)


def _with_levels(rows: pd.DataFrame, factor: str, levels: tuple[str, ...]) -> pd.DataFrame:
    """Keep the reader groups that answered in each of these levels."""
    used = rows[rows["excluded_reason"].isna()]
    seen = used[used[factor].isin(levels)].groupby(GROUP)[factor].nunique()
    return rows[rows[GROUP].isin(seen[seen == len(set(levels))].index)]


def _in_order(table: pd.DataFrame, trials: pd.DataFrame, column: str, levels: Sequence[str]) -> pd.DataFrame:
    """Sort rows by reader group (people, models, baselines) and level."""
    groups, places = group_order(trials), list(levels)
    keys = table.assign(
        _g=[groups.index(str(one)) for one in table[GROUP]],
        _l=[places.index(str(one)) for one in table[column]],
    )
    return keys.sort_values(["_g", "_l"]).drop(columns=["_g", "_l"])


def _head(group: str, kinds: dict[str, str]) -> str:
    who = named(group, kinds)
    return f"{who[0].upper()}{who[1:]}"
