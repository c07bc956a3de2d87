"""Exclusions and their reasons, and accuracy under different treatments of missing answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from analysis import apa
from analysis.answers import judged, never_answered
from analysis.cluster_sampling import drawn_readers
from analysis.exclusions import NO_RESPONSE, flow_steps, sessions_against_rules, time_bounds, time_steps
from analysis.factorial import TRIALS_FOR_A_SLOPE
from analysis.frames import OF_RECORDING
from analysis.measures.accuracy import accuracy, asked, missingness, with_chance
from analysis.names import stem_of
from analysis.plan import MEASURES, LevelDifference, Plan
from analysis.plan_runner import analyse_missingness
from analysis.readers import PARTICIPANT_KINDS, group_order, in_order, marked, named
from analysis.report.apa_tables import Origin
from analysis.report.blocks import Block, Chapter, Draft, Material, ReportedFit
from analysis.report.condense_levels import is_tied, lowest_and_highest, where_told
from analysis.report.fit_warnings import warnings_of
from analysis.report.layout import ChapterLayout
from analysis.report.results import paragraphs
from analysis.report.results.tables import contrast_table, model_table
from analysis.report.results.together import Together
from analysis.report.subgroups import TrialPart, crossed_parts, draft_of_part, parts_of
from analysis.results import Analysis
from analysis.tables import Tables
from stimuli.errors import UserError

FEWEST = 20  # missing answers of the readers of a plan below which no model of them is fitted
MOST_ROWS = 15_000
"""Analysed trials above which the model of missing answers takes whole readers drawn by a stable hash."""


LAYOUT = ChapterLayout(Path(__file__).parent, fewest=FEWEST, slopes=TRIALS_FOR_A_SLOPE)
OF_STEPS = "formulas and log-likelihoods of the models fitted before the reported one, to the same rows"


def write(material: Material) -> Chapter | None:
    """Write the flow of exclusions, accuracy with failures three ways, and the model of missing answers."""
    tables = material.tables
    trials = tables.trials
    if trials.empty:
        return None
    draft = Draft(_exclusions(tables))
    is_any_missing = False
    if tables.factors and asked(trials)["item_id"].notna().any():
        draft.blocks.append(Markup("<h3>Missing answers</h3>"))
        missing = _missing(material)
        is_any_missing = not all(isinstance(block, Markup) for block in missing.blocks)
        draft.add(missing)
    methods = (LAYOUT.sentences("methods", has_models=bool(draft.fits)),) if is_any_missing else ()
    return LAYOUT.chapter("exclusions", draft, material.kinds, material.kinds, methods)


def _exclusions(tables: Tables) -> list[Block]:
    trials, exclude = tables.trials, tables.dictionary["exclude"]
    timed = {"": flow_steps(trials)}
    for measure in MEASURES.values():
        if measure.logged:
            table = time_steps(trials, measure.name, time_bounds(exclude, measure.name))
            if len(table):
                timed[f"{measure.noun}s"] = table
    flagged = trials[trials["flagged_reason"].notna()] if "flagged_reason" in trials else trials[:0]
    reasons = (
        flagged.groupby("flagged_reason")["session_id"].nunique() if len(flagged) else pd.Series(dtype=int)
    )
    why_no_rules, sessions = "", pd.DataFrame()
    try:
        sessions = sessions_against_rules(trials, exclude)
    except UserError as error:
        why_no_rules = error.message
    return LAYOUT.blocks(
        "exclusions",
        flow=LAYOUT.table("exclusion_flow", rows) if (rows := list(_flow_rows(timed))) else None,
        flagged=int(flagged["session_id"].nunique()),
        reasons=[f"{why}: {apa.count(count)}" for why, count in reasons.items()],
        rules=LAYOUT.table("exclusion_rules", list(_rule_rows(sessions))) if len(sessions) else None,
        why_no_rules=why_no_rules,
        has_no_rules=not exclude.get("sessions"),
    )


def _flow_rows(timed: dict[str, pd.DataFrame]) -> Iterator[dict[Any, Any]]:
    """Yield what is left after each step, all trials first, then those with each time, unless it only repeats the flow of trials."""
    for noun, table in timed.items():
        if not table[["trials_lost" if noun else "readers_lost", "sessions_lost"]].to_numpy().any():
            continue
        for group, group_steps in table.groupby("group", sort=False):
            name = marked(str(group), str(group_steps["kind"].iloc[0]))
            for step in group_steps.to_dict("records"):
                is_first = step["step"] == 0
                if is_first or step["trials_lost"] or step["sessions_lost"]:
                    yield {**step, "head": f"{name}: {noun}" if noun else name, "is_first": is_first}


def _rule_rows(sessions: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield how many sessions meet each declared rule, and how many were excluded."""
    for (sign, rule), rule_sessions in sessions.groupby(["sign", "rule"], sort=False):
        is_known = rule_sessions["meets"].notna()
        meets = rule_sessions["meets"].fillna(False).astype(bool)
        excluded = rule_sessions["excluded"].astype(bool)
        counts = [is_known.sum(), meets.sum(), (meets & excluded).sum(), (~meets & excluded).sum()]
        texts = [apa.count(int(count)) for count in counts] if is_known.any() else [apa.MISSING] * 4
        yield {"rule": f"{str(sign).replace('_', ' ')}: {rule}", "counts": texts}


def _missing(material: Material) -> Draft:
    draft, tables = Draft(), material.tables
    trials, study = tables.trials, str(tables.dictionary["study"])
    try:
        trials = with_chance(trials, tables.items, tables.factors)
    except UserError as error:
        draft.blocks.append(LAYOUT.sentences("no_chance", why=error.message))
    is_asked = judged(trials) | never_answered(trials)
    is_used = trials["excluded_reason"].isna() & is_asked & trials["item_id"].notna()
    is_data = is_used & (trials["reader_kind"] != "baseline")
    is_used = is_data if is_data.any() else is_used
    answered = trials.loc[is_used, [name for name in trials if name not in OF_RECORDING]]
    # cells of two factors are told where accuracy is compared by both
    cells = [part for part in crossed_parts(answered, tables) if _plan_of(material, part) is not None]
    by_factor: dict[str, list[_Part]] = {}
    valid: list[str] = []
    for part in (*parts_of(answered, tables), *cells):
        factor = part.factor
        rows = part.rows(answered)
        if rows[factor].isna().any():
            rows = rows[rows[factor].notna()]
        if rows.empty:
            continue
        material.told(f"missing answers by {factor}{part.told}")
        counts = missingness(rows, [factor])
        if not counts["missing"].sum():
            valid.append(f"{factor}{part.told}")
            continue
        groups = group_order(rows)
        counts = in_order(counts, groups, factor, part.levels)
        shares = in_order(accuracy(rows, [factor], study=study), groups, factor, part.levels)
        by_factor.setdefault(factor, []).append(_Part(part, counts, shares, _plan_of(material, part)))
    already: list[Any] = []
    for factor_parts in by_factor.values():
        draft.add(_of_factor(factor_parts, material, already))
    if valid:
        without = int((trials["excluded_reason"] == NO_RESPONSE).sum())
        groups = group_order(answered)
        facts = {"parts": valid, "is_all": not by_factor, "without": without, "groups": groups}
        draft.blocks.append(LAYOUT.sentences("all_valid", kinds=material.kinds, **facts))
    return draft


@dataclass(frozen=True)
class _Part:
    """Missing answers of one part of a study."""

    part: TrialPart
    counts: pd.DataFrame
    shares: pd.DataFrame
    plan: Plan | None

    def named(self, table: pd.DataFrame, *, is_alone: bool) -> pd.DataFrame:
        """Return a table with its part, and the name of each cell, among other parts."""
        label = "" if is_alone else self.part.told
        levels = table[self.part.factor].astype(str)
        return table.assign(said_part=label.strip(" ()"), said_cell=levels + label)


def _of_factor(parts: Sequence[_Part], material: Material, already: list[Any]) -> Draft:
    """Write what is missing by one factor; its parts share their tables. What ``already`` has of a reader is not repeated."""
    part, is_alone = parts[0].part, len(parts) == 1
    counts, shares = (
        pd.concat([part.named(table, is_alone=is_alone) for part, table in zip(parts, tables, strict=True)])
        for tables in ([part.counts for part in parts], [part.shares for part in parts])
    )
    # a reader without one valid answer has counts, but no accuracy
    counted = ["trials", "missing", "missing_share"]
    cell = ["reader_group", part.factor, "said_part", "said_cell"]
    shares = counts[[*cell, *counted]].merge(shares.drop(columns=counted), how="left", on=cell)
    fixed = (
        "reader_group",
        part.factor,
        "trials",
        "missing",
        "missing_share",
        "valid",
        "said_part",
        "said_cell",
    )
    statuses = [str(name) for name in counts.columns if name not in fixed]
    counts = counts.fillna(dict.fromkeys(statuses, 0)).reset_index(drop=True)
    lacking = [str(name) for name in counts.loc[counts["missing"] > 0, "reader_group"].unique()]
    values: dict[str, Any] = {"factor": part.factor, "kinds": material.kinds, "statuses": statuses}
    has_chance = bool((shares["chance"] - shares["wrong"]).abs().gt(0).any())
    values |= {"lacking": lacking, "is_alone": is_alone, "has_chance": has_chance}
    shown_shares = shares[shares["reader_group"].isin(lacking)]
    flat = shown_shares["valid_only_low"].isna() | np.isclose(
        shown_shares["valid_only_low"], shown_shares["valid_only_high"]
    )
    of_people = {material.kinds[group] in PARTICIPANT_KINDS for group in lacking}
    values["units"] = " or ".join(
        ["participants"] * (True in of_people) + ["items (models and baselines)"] * (False in of_people)
    )
    values["has_whole"] = bool((shown_shares["missing"] == 0).any())
    values["has_flat"] = bool((flat & (shown_shares["missing"] > 0)).any())
    laid_tables = [
        LAYOUT.table(
            key,
            shown[shown["reader_group"].isin(lacking)],
            f"{key}_{stem_of(part.factor, None, ())}",
            **values,
        )
        for key, shown in (("missing", counts), ("three_ways", shares.reset_index(drop=True)))
    ]
    by_reader = {str(group): of for group, of in shares.groupby("reader_group", sort=False)}
    readers = [_of_reader(group, by_reader[group].reset_index(drop=True)) for group in lacking]
    whole = [named(group, material.kinds) for group in by_reader if group not in lacking]
    draft = Draft(
        LAYOUT.blocks(
            "missing",
            counts=laid_tables[0],
            ways=laid_tables[1],
            of=part.told if is_alone else f" in {apa.worded(len(parts), 'part')} of the trials",
            readers=[reader for reader in readers if reader not in already],
            whole=[] if whole in already else whole,
            **values,
        )
    )
    already += [*readers, whole]
    planned = [
        (part.part, plan, part.counts)
        for part in parts
        if (plan := _untested(part.plan, material.analyses, is_alone=is_alone)) is not None
    ]
    draft.add(_models(planned, material))
    return draft_of_part(draft, part) if is_alone else draft


def _of_reader(group: str, cells: pd.DataFrame) -> dict[str, Any]:
    """Return how many of a reader's answers are missing, where, and where they matter most."""
    levels, shares = [str(cell) for cell in cells["said_cell"]], cells["missing_share"].tolist()
    gains = (cells["valid_only"] - cells["wrong"]).tolist()
    changes = [
        f"from {apa.percent(wrong)} to {apa.percent(valid)}"
        for wrong, valid in zip(cells["wrong"], cells["valid_only"], strict=True)
    ]
    most = max((gain for gain in gains if np.isfinite(gain)), default=np.nan)
    changed = [
        (level, change)
        for level, change, gain in zip(levels, changes, gains, strict=True)
        if is_tied(gain, most)
    ]
    return {
        "group": group,
        "missing": int(cells["missing"].sum()),
        "of": cells["trials"].sum(),
        "ends": lowest_and_highest(levels, [apa.percent(share) for share in shares], shares),
        "changed": where_told(changed, "{where}, {value}"),
    }


def _plan_of(material: Material, part: TrialPart) -> Plan | None:
    """Return a comparison of accuracy by a factor, freed of what was planned for accuracy alone."""
    plans = [analysis.plan for analysis in material.analyses if analysis.plan.measure.name == "correct"]
    of_factor = [
        plan
        for plan in plans
        if plan.factor == part.factor
        and plan.trials in (part.trials, None)
        and plan.within in (part.within, ())
    ]
    if not of_factor:
        return None
    plan = of_factor[0]
    groups = tuple(dict.fromkeys(group for plan in of_factor for group in plan.groups))
    contrasts = tuple(replace(contrast, direction="two-sided") for contrast in plan.contrasts)
    return replace(
        plan, name=f"accuracy by {part.factor}{part.told}", planned=False, groups=groups, contrasts=contrasts, key="",
        family="", equivalence=None, formula=None, fallback=None, exclude={}, remarks=(), trials=part.trials, within=part.within,
    )  # fmt: skip


def _untested(plan: Plan | None, analyses: Sequence[Analysis], *, is_alone: bool) -> Plan | None:
    """Return what of a comparison no analysis of missing answers has tested; None if nothing is left.

    An analysis of all trials is one of the same trials if a study has no other parts.
    """
    if plan is None:
        return None
    same = {(plan.trials, plan.within), *([(None, ())] if is_alone else [])}
    tested = {
        (group, contrast.first, contrast.second, contrast.at)
        for other in (analysis.plan for analysis in analyses)
        if other.measure.name == "missing"
        and other.factor == plan.factor
        and (other.trials, other.within) in same
        for group in other.groups
        for contrast in other.contrasts
    }

    def of(group: str) -> list[LevelDifference]:
        return [
            contrast
            for contrast in plan.contrasts
            if (group, contrast.first, contrast.second, contrast.at) not in tested
        ]

    groups = tuple(group for group in plan.groups if of(group))
    contrasts = tuple(
        contrast for contrast in plan.contrasts if all(contrast in of(group) for group in groups)
    )
    return replace(plan, groups=groups, contrasts=contrasts) if groups and contrasts else None


def _models(planned: Sequence[tuple[TrialPart, Plan, pd.DataFrame]], material: Material) -> Draft:
    """Write whether missing answers depend on a factor, in each part of a study that has enough of them."""
    draft, analyses = Draft(), list[tuple[TrialPart, Analysis]]()
    too_few, drawn = list[int](), ""
    for part, plan, counts in planned:
        lacking = counts.groupby("reader_group", sort=False)["missing"].sum()
        groups = tuple(group for group in plan.groups if lacking.get(group, 0) > 0)
        n_missing = int(lacking.reindex(plan.groups, fill_value=0).sum())
        if n_missing < FEWEST:
            too_few.append(n_missing)
            continue
        material.told(f"model: missing answers by {plan.factor}{part.told}")
        bounded, drawn = drawn_readers(material.tables, MOST_ROWS)
        analyses.append((part, analyse_missingness(replace(plan, groups=groups), bounded)))
    if any(too_few):
        readers = [named(group, material.kinds) for group in planned[0][1].groups]
        draft.blocks.append(
            LAYOUT.sentences(
                "too_few", many=max(too_few), parts=len(too_few), all=len(planned), readers=readers
            )
        )
    if analyses:
        draft.blocks += LAYOUT.blocks("model", drawn=drawn)
        model_draft = _told(analyses, material)
        is_one_of_several = len(analyses) == 1 < len(planned)
        draft.add(draft_of_part(model_draft, analyses[0][0]) if is_one_of_several else model_draft)
    return draft


def _told(done: Sequence[tuple[TrialPart, Analysis]], material: Material) -> Draft:
    """Write the models of missing answers by one factor: one alone, those of several parts together."""
    part, first = done[0]
    name, is_alone = f"missing_model_{stem_of(first.plan.factor, None, ())}", len(done) == 1
    results = [analysis for _, analysis in done if analysis.has_results]
    draft = Draft()
    if is_alone or len(results) < 2:
        for _, analysis in done:
            draft.blocks += paragraphs(analysis, [], material.kinds)
    else:
        together = Together(tuple(results), material.kinds)
        draft.blocks += together.paragraphs([], None, None)
    if not results:
        return draft
    table = contrast_table(results[0], f"{name}_differences", results[1:])
    warnings = [text for result in results for text in warnings_of(result)]
    draft.blocks = [*LAYOUT.blocks("differences", warnings=warnings, table=table), *draft.blocks, table]
    for part, analysis in done:
        draft.add(_fitted(analysis, name) if is_alone else draft_of_part(_fitted(analysis, name), part))
    significant = [
        contrast
        for result in results
        for contrast in result.estimable
        if contrast.p_adjusted < result.plan.alpha
    ]
    if significant:
        labels = list(dict.fromkeys(contrast.label for contrast in significant))
        draft.blocks.append(LAYOUT.sentences("found", found=labels))
    return draft


def _fitted(analysis: Analysis, name: str) -> Draft:
    """Return the table of a model of missing answers and of the steps to it."""
    draft = Draft()
    if analysis.model is not None:
        draft.blocks.append(model_table(analysis, name))
        if len(analysis.model.steps) > 1:
            rows = [{"place": number, **vars(step)} for number, step in enumerate(analysis.model.steps, 1)]
            origin = None if analysis.fit is None else Origin((analysis.fit,), computed=OF_STEPS)
            draft.blocks.append(LAYOUT.table("steps", rows, f"{name}_steps", origin=origin))
    if analysis.fit is not None:
        draft.fits.append(ReportedFit(f"missing answers by {analysis.plan.factor}", analysis.fit))
    return draft
