"""Restored texts: the proportion of changed words recovered, with a mixed model, edit distance and recovery rate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import apa
from analysis.descriptives import ConditionMean, describe_rows, described_rows
from analysis.figures.measures import recovered_figure
from analysis.measures.recovery import recovery, recovery_trials
from analysis.multiple_comparisons import across_analyses
from analysis.names import plain
from analysis.plan import WORDS, WORDS_WITH_ONE_TYPO, Measure, Plan, against_reference
from analysis.plan_runner import carry_out
from analysis.planned import parted_by_sessions, shown
from analysis.readers import DATA_KINDS, PARTICIPANT_KINDS, group_order, in_order, kinds_of
from analysis.report.blocks import Block, Chapter, Draft, Material, ReportedFit
from analysis.report.condense_levels import lowest_and_highest
from analysis.report.described.layouts import intervals_told, students_told
from analysis.report.filters import where
from analysis.report.fit_warnings import warnings_of
from analysis.report.layout import ChapterLayout
from analysis.report.results import paragraphs
from analysis.report.results.tables import contrast_table, model_table
from analysis.report.subgroups import TrialPart
from analysis.results import Analysis
from stimuli.errors import UserError

GROUP = "reader_group"
MOST_TRIALS = 20_000  # trials in one model of recovered words; beyond, the planned analyses alone are fitted
MOST_OF_MODELS = 60_000
"""The same without participants, where all that varies lies within items and a model takes seconds."""

LAYOUT = ChapterLayout(Path(__file__).parent)


def write(material: Material) -> Chapter | None:
    """Write how much of the changed text answers restore; None where no text was to be restored."""
    tables = material.tables
    trials = tables.trials
    is_recovery = (
        trials["excluded_reason"].isna() & (trials["trial_type"] == "recover") & trials["answer"].notna()
    )
    if not is_recovery.any():
        return None
    material.told("recovered words")
    recover_trials = trials[is_recovery]
    kinds = kinds_of(recover_trials)
    try:
        measured = recovery_trials(trials, tables.items, list(tables.factors))
    except UserError as error:
        blocks = LAYOUT.blocks("failed", texts=int(is_recovery.sum()), why=error.message)
        return LAYOUT.chapter("recovered-text", blocks, kinds, kinds, methods=())
    draft = Draft()
    study = str(tables.dictionary["study"])
    for part, is_described in _parts(recover_trials, tables.factors):
        rows = measured[shown(measured, part.within)]
        sums, intervals = _sums(rows, part, group_order(recover_trials), study)
        if is_described:
            draft.blocks += _described(
                sums, intervals, part, {group: kinds[group] for group in group_order(recover_trials)}
            )
        name = part.factor or "all"
        changing = [level for level in part.levels if (sums.loc[sums[name] == level, "changed"] > 0).any()]
        if len(changing) > 1:
            any_typo = bool((sums["with_one_typo"] > sums["recovered"]).any())
            draft.add(_modelled(material, part, changing, any_typo=any_typo))
    return LAYOUT.chapter("recovered-text", draft, kinds, kinds)


def _parts(trials: pd.DataFrame, factors: dict[str, list[str]]) -> Iterator[tuple[TrialPart, bool]]:
    """Yield what is set side by side, and whether it is described, not only modelled.

    Of two factors that part sessions the first is described, within levels of the second; a part without factor is all texts.
    """
    described: set[str] = set()
    for factor, levels in factors.items():
        if trials[factor].isna().all():
            continue
        for within in parted_by_sessions(trials, factor, factors):
            rows = trials[shown(trials, within)]
            present = tuple(level for level in levels if (rows[factor] == level).any())
            yield TrialPart(factor, present, within=within), not {name for name, _ in within} & described
        described.add(factor)
    if not described:
        yield TrialPart("", ("all",)), True


def _stem(part: TrialPart) -> str:
    """Name its tables and figures."""
    return plain("recovered_text", part.stem) if part.factor else "recovered_text"


def _by(part: TrialPart) -> str:
    """Return what is compared, and within what; empty for all texts."""
    return f" by {part.factor}{part.told}" if part.factor else ""


SHARES = {
    "words": ("recovered", "changed"),
    "words_with_one_typo": ("with_one_typo", "changed"),
    "kept": ("kept", "unchanged"),
}
"""Shares of the words of an answer: which words, of which."""


def _sums(measured: pd.DataFrame, part: TrialPart, groups: list[str], study: str) -> tuple[pd.DataFrame, str]:
    """Return recovery rates and mean shares of words, as the Results have them, by reader and level, and what the intervals are."""
    name = part.factor or "all"
    rows = measured if part.factor else measured.assign(all="all")
    sums = recovery(rows, [name], study=study)
    all_cells: list[ConditionMean] = []
    for share, (above, below) in SHARES.items():
        counted = rows[rows[below] > 0]
        counted = counted.assign(value=counted[above] / counted[below])
        cells = describe_rows(counted, WORDS, name, part.levels)
        all_cells += cells
        cell_values = [(cell.group, cell.level, cell.mean, cell.low, cell.high) for cell in cells]
        columns = [GROUP, name, share, f"{share}_low", f"{share}_high"]
        sums = sums.merge(pd.DataFrame(cell_values, columns=columns), how="left", on=columns[:2])
    ordered = in_order(sums, groups, name, part.levels).reset_index(drop=True)
    return ordered, intervals_told(all_cells, students_told(all_cells))


def _described(sums: pd.DataFrame, intervals: str, part: TrialPart, kinds: dict[str, str]) -> list[Block]:
    factor, stem, levels = part.factor, _stem(part), list(part.levels)
    name = factor or "all"
    changed = set(sums.loc[sums["changed"] > 0, name])
    facts: dict[str, Any] = {"factor": factor, "column": name, "kinds": kinds}
    by = f"by {factor} and reader{part.told}" if factor else "by reader"
    fixed_levels = tuple(where(held_factor, level) for held_factor, level in part.within)
    readers = [group for group in dict.fromkeys(sums[GROUP]) if kinds[str(group)] != "baseline"]
    return LAYOUT.blocks(
        "described",
        words=LAYOUT.table("words", sums, stem, by=by, held=fixed_levels, intervals=intervals, **facts),
        rates=LAYOUT.table("rates", sums, f"{stem}_rates", by=by, held=fixed_levels, **facts),
        drawing=recovered_figure(stem, sums, name, levels, kinds),
        by=_by(part),
        readers=[
            {"group": str(group), **_of_reader(sums[sums[GROUP] == group], factor)} for group in readers
        ],
        nothing=[level for level in levels if level not in changed] if factor else [],
        **facts,
    )


def _of_reader(rows: pd.DataFrame, factor: str | None) -> dict[str, Any]:
    """Return of how many words least and most was recovered, in which conditions, and what was copied."""
    changed = [row for row in rows.to_dict("records") if row["changed"]]
    values = [apa.percent(row["words"]) for row in changed]
    ends = tuple(values)
    if factor and changed:
        sizes = [float(row["words"]) for row in changed]
        ends = lowest_and_highest([str(row[factor]) for row in changed], values, sizes)
    return {"ends": ends, "kept": rows["kept"].min()}


def _modelled(material: Material, part: TrialPart, changing: list[str], *, any_typo: bool) -> Draft:
    """Fit what the plan did not: strict words and words with one typo, by each factor."""
    factor, draft = part.factor, Draft()
    trials = material.tables.trials
    rows = trials[trials["excluded_reason"].isna() & (trials["trial_type"] == "recover")]
    rows = rows[shown(rows, part.within)]
    kinds = kinds_of(rows)
    groups = [group for group in group_order(rows) if kinds[group] in DATA_KINDS]
    if "human" not in groups and "simulated" in kinds:
        groups.insert(0, "simulated")
    done = {
        (analysis.plan.measure.name, analysis.plan.factor, analysis.plan.within)
        for analysis in material.analyses
        if analysis.has_results
    }
    analyses: list[Analysis] = []
    for measure in (WORDS, WORDS_WITH_ONE_TYPO):
        if measure is WORDS_WITH_ONE_TYPO and not any_typo:
            is_planned = {(WORDS.name, factor, part.within), (WORDS.name, factor, ())} & done
            if is_planned or any(analysis.has_results for analysis in analyses):
                draft.blocks.append(LAYOUT.sentences("same", by=_by(part)))
        elif {(measure.name, factor, part.within), (measure.name, factor, ())} & done:
            draft.blocks.append(LAYOUT.sentences("planned", title=measure.title, by=_by(part)))
        elif len(rows) > (MOST_TRIALS if set(groups) & set(PARTICIPANT_KINDS) else MOST_OF_MODELS):
            draft.blocks.append(
                LAYOUT.sentences("too_many", title=measure.title, by=_by(part), answers=len(rows))
            )
        elif groups:
            material.told(f"model: {measure.noun}{_by(part)}")
            analyses.append(carry_out(_plan(measure, part, changing, groups, material), material.tables))
    for analysis in across_analyses(analyses):
        draft.add(_told(analysis, f"{_stem(part)}_{analysis.plan.measure.name}", kinds))
    return draft


def _plan(
    measure: Measure, part: TrialPart, levels: list[str], groups: list[str], material: Material
) -> Plan:
    return Plan(
        f"{measure.noun}{_by(part)}",
        False,
        measure,
        part.factor,
        tuple(levels),
        tuple(groups),
        tuple(against_reference(levels)),
        trials="recover",
        within=part.within,
        factors={name: tuple(factor_levels) for name, factor_levels in material.tables.factors.items()},
    )


def _told(analysis: Analysis, stem: str, kinds: dict[str, str]) -> Draft:
    plan = analysis.plan
    draft = Draft(LAYOUT.blocks("heading", name=plan.heading, doubts=warnings_of(analysis)))
    cells = []
    if analysis.has_results:
        rows = described_rows(analysis.rows, plan.measure)
        cells = describe_rows(rows, plan.measure, plan.factor, analysis.levels)
    draft.blocks += paragraphs(analysis, cells, kinds) or LAYOUT.blocks(
        "not_fitted", title=plan.measure.title
    )
    if analysis.has_results:
        shown = [contrast_table(analysis, f"{stem}_differences")] if analysis.contrasts else []
        shown += [model_table(analysis, f"{stem}_model")] if analysis.model is not None else []
        draft.blocks += LAYOUT.blocks("numbers", shown=shown)
        draft.fits += [ReportedFit(plan.name, analysis.fit)] if analysis.fit is not None else []
    return draft
