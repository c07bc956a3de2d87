"""Restored texts: words recovered of words changed, with a mixed model, beside edit distance and recovery rate."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.carrying_out import carry_out
from analysis.descriptives import describe_rows, described_rows
from analysis.families import across_analyses
from analysis.figures.measures import recovered_figure
from analysis.measures.recovery import recovery, recovery_trials
from analysis.names import plain
from analysis.plan import WORDS, WORDS_WITH_ONE_TYPO, Measure, Plan, against_reference
from analysis.readers import DATA_KINDS, PARTICIPANT_KINDS, group_order, kinds_of, marked, named
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.blocks import Block, Chapter, Material, ReportedFit, marks_of
from analysis.report.filters import USED, filled, where
from analysis.report.many_levels import MOST_TOLD
from analysis.report.model_tables import contrast_table, model_table
from analysis.report.parted import Part
from analysis.report.prose import paragraphs, warnings_of
from analysis.results import Analysis
from analysis.within import parted_by_sessions, shown
from stimuli.errors import UserError

GROUP = "reader_group"
MOST_TRIALS = 20_000
"""Trials in one model of recovered words; beyond, the planned analyses alone are fitted."""
MOST_OF_MODELS = 60_000
"""The same without participants, where all that varies lies within items and a model takes seconds."""

METHOD = Markup(
    "Words of the answer were matched in order to the words of the intact text, without regard to case and punctuation. A changed "
    "word counted as recovered where the answer had it as it was, and with one typo where it was one letter or one exchange of "
    "neighbours off and nearer to the intact word than to the form shown. Recovered of changed words were analysed as binomial "
    "counts in a logistic mixed model with a variance between answers. Edit distance is Levenshtein's in characters; the recovery "
    "rate is (Σ shown − Σ answered)/Σ shown, with the sign of the tables of Cao et al. (2023), not of their equation 1. Missing "
    "answers recover nothing. Intervals are 95% percentile bootstraps (2,000 resamples) over participants or over a model's items."
)


def write(material: Material) -> Chapter | None:
    """Write how much of the changed text answers restore; None where no text was to be restored."""
    tables = material.tables
    trials = tables.trials
    asked = trials["excluded_reason"].isna() & (trials["trial_type"] == "recover") & trials["answer"].notna()
    if not asked.any():
        return None
    material.told("recovered words")
    own = trials[asked]
    kinds = kinds_of(own)
    try:
        measured = recovery_trials(trials, tables.items, list(tables.factors))
    except UserError as error:
        said = escape(
            f"{apa.count(int(asked.sum()))} texts were to be restored, and cannot be measured: {error.message}."
        )
        return Chapter("recovered-text", "Restored texts", (said,), marks_of(tuple(kinds), kinds))
    blocks: list[Block] = []
    fits: list[ReportedFit] = []
    study = str(tables.dictionary["study"])
    for part, is_described in _parts(own, tables.factors):
        rows = measured[shown(measured, part.within)]
        sums = _sums(rows, part.factor, list(part.levels), group_order(own), study)
        if is_described:
            blocks += _described(sums, part, {one: kinds[one] for one in group_order(own)})
        name = part.factor or "all"
        changing = [level for level in part.levels if (sums.loc[sums[name] == level, "changed"] > 0).any()]
        if len(changing) > 1:
            any_typo = bool((sums["with_one_typo"] > sums["recovered"]).any())
            some, models = _modelled(material, part, changing, any_typo=any_typo)
            blocks += some
            fits += models
    return Chapter(
        "recovered-text",
        "Restored texts: recovered words, edit distance and recovery rate",
        tuple(blocks),
        marks_of(tuple(kinds), kinds),
        methods=(METHOD,),
        fits=tuple(fits),
        sources=("cao2023",),
    )


def _parts(own: pd.DataFrame, factors: dict[str, list[str]]) -> Iterator[tuple[Part, bool]]:
    """Yield what is set side by side, and whether it is described, not only modelled.

    Of two factors that part sessions the first is described, within levels of the second; a part without factor is all texts.
    """
    told: set[str] = set()
    for factor, levels in factors.items():
        if own[factor].isna().all():
            continue
        for within in parted_by_sessions(own, factor, factors):
            rows = own[shown(own, within)]
            there = tuple(level for level in levels if (rows[factor] == level).any())
            yield Part(factor, there, within=within), not {name for name, _ in within} & told
        told.add(factor)
    if not told:
        yield Part("", ("all",)), True


def _stem(part: Part) -> str:
    """Name its tables and figures."""
    return plain("recovered_text", part.stem) if part.factor else "recovered_text"


def _by(part: Part) -> str:
    """Say what is set side by side, and within what; empty for all texts."""
    return f" by {part.factor}{part.told}" if part.factor else ""


def _sums(
    measured: pd.DataFrame, factor: str, levels: list[str], groups: list[str], study: str
) -> pd.DataFrame:
    name = factor or "all"
    rows = measured if factor else measured.assign(all="all")
    sums = recovery(rows, [name], study=study)
    place = {level: number for number, level in enumerate(levels)}
    order = {group: number for number, group in enumerate(groups)}
    keys = sums.assign(_g=sums[GROUP].map(order), _l=sums[name].map(place)).sort_values(["_g", "_l"])
    return keys.drop(columns=["_g", "_l"]).reset_index(drop=True)


def _described(sums: pd.DataFrame, part: Part, kinds: dict[str, str]) -> list[Block]:
    factor, stem, levels = part.factor, _stem(part), list(part.levels)
    name = factor or "all"
    told = [
        Markup("[[table:{0}]], [[table:{0}_rates]] and [[figure:{0}]] have what was restored{1}.").format(
            stem, _by(part)
        )
    ]
    for group, own in sums.groupby(GROUP, sort=False):
        if kinds[str(group)] == "baseline":
            continue
        changed = [one for one in own.to_dict("records") if one["changed"]]
        parts = [
            f"{apa.percent(one['words'])} of {apa.count(one['changed'])} changed words, 95% CI "
            f"{apa.interval(100 * one['words_low'], 100 * one['words_high'], 1)}, with one typo "
            f"{apa.percent(one['words_with_one_typo'])}, RR = {apa.number(one['rr'], 1)}%"
            + (f" in {one[name]}" if factor else "")
            for one in _ends(changed)
        ]
        joined = "; ".join(parts) if len(changed) <= MOST_TOLD else " up to ".join(parts)
        kept = own["kept"].mul(own["unchanged"]).sum(), own["unchanged"].sum()
        copied = f"; {apa.percent(kept[0] / kept[1])} of unchanged words copied right" if kept[1] else ""
        who = named(str(group), kinds)
        head = f"{who[0].upper()}{who[1:]}"
        told.append(escape(f"{head} recovered {joined or 'nothing, since nothing was changed'}{copied}."))
    nothing = [level for level in levels if not (sums.loc[sums[name] == level, "changed"] > 0).any()]
    if nothing and factor:
        told.append(
            escape(
                f"In {apa.listing(nothing)} no word was changed: there is nothing to recover, and what was kept is the baseline "
                "of copying."
            )
        )
    figure = recovered_figure(stem, sums, name, levels, kinds)
    laid = (_words_table(sums, part, kinds), _rates_table(sums, part, kinds))
    return [Markup(" ").join(told), *laid, figure]


def _ends(changed: list[dict[Hashable, Any]]) -> list[dict[Hashable, Any]]:
    """Return the conditions that a sentence tells: all, or of many those of which least and most was recovered."""
    if len(changed) <= MOST_TOLD:
        return changed
    ordered = sorted(changed, key=lambda one: float(one["words"]))
    return [ordered[0], ordered[-1]]


def _words_table(sums: pd.DataFrame, part: Part, kinds: dict[str, str]) -> ApaTable:
    factor = part.factor or "all"
    rows: list[tuple[str, ...]] = []
    for group, own in sums.groupby(GROUP, sort=False):
        rows.append(Head([marked(str(group), kinds[str(group)])]))
        for one in own.to_dict("records"):
            rows.append(
                (
                    str(one[factor]),
                    apa.count(one["trials"]),
                    apa.count(one["changed"]),
                    *_percent(one, "words"),
                    *_percent(one, "words_with_one_typo"),
                    *_percent(one, "kept"),
                )
            )
    columns = (
        *(_first(factor), "Trials", "Words changed", "% recovered", "95% CI"),
        *("% with one typo", "95% CI", "% kept of unchanged", "95% CI"),
    )
    note = (
        "Recovered: words that the answer has as they were, of words that were changed; kept: unchanged words that the answer "
        "still has, the "
        "reader's own typing. En dashes: nothing was changed (or, under kept, everything was). Intervals are bootstraps over "
        "participants, or over items for a model."
    )
    return ApaTable(
        _stem(part), f"Words recovered {_by_reader(part)}", columns, tuple(rows), note, _origin(part)
    )


def _rates_table(sums: pd.DataFrame, part: Part, kinds: dict[str, str]) -> ApaTable:
    factor = part.factor or "all"
    rows: list[tuple[str, ...]] = []
    for group, own in sums.groupby(GROUP, sort=False):
        rows.append(Head([marked(str(group), kinds[str(group)])]))
        for one in own.to_dict("records"):
            rows.append(
                (
                    str(one[factor]),
                    *(apa.number(one[name], 1) for name in ("ed_shown", "ed", "rr")),
                    apa.interval(one["rr_low"], one["rr_high"], 1),
                    apa.number(-one["rr"], 1),
                    "flagged" if one["rr_flagged"] and one["changed"] else "",
                )
            )
    columns = (_first(factor), "ED shown", "ED answered", "RR", "95% CI of RR", "RR as printed", "Flag")
    note = (
        "ED = mean character edit distance from the intact text; RR = recovery rate in %, mended: positive where answers came "
        "nearer. RR as "
        "printed has the sign of the paper's equation 1. Flagged: no interval, since units are too few or nothing was changed in "
        "most resamples. Intervals are bootstraps over participants, or over items for a model."
    )
    title = f"Edit distance and recovery rate {_by_reader(part)}"
    return ApaTable(f"{_stem(part)}_rates", title, columns, tuple(rows), note, _origin(part))


def _percent(one: dict[Hashable, Any], name: str) -> tuple[str, str]:
    ends = 100 * one[f"{name}_low"], 100 * one[f"{name}_high"]
    return apa.number(100 * one[name], 1), apa.interval(*ends, 1)


def _first(factor: str) -> str:
    return factor if factor != "all" else ""


def _by_reader(part: Part) -> str:
    return f"by {part.factor} and reader{part.told}" if part.factor else "by reader"


def _origin(part: Part) -> Origin:
    columns = ("answer", "response", "response_status", "trial_type", "item_id", "reader_group")
    named = [part.factor] if part.factor else []
    return Origin(
        columns=(*columns, *named, *(name for name, _ in part.within)),
        where=(
            USED,
            where("trial_type", "recover"),
            *(where(name, level) for name, level in part.within),
            *filled("response_status", "answer", *named),
        ),
        computed="words of the answer aligned with the intact text (answer) and the one shown (items.csv); 2,000 resamples of "
        "participants, or of items for a model",
        seed=("recovery", "reader", "level"),
        beside=("items.csv",),
    )


def _modelled(
    material: Material, part: Part, changing: list[str], *, any_typo: bool
) -> tuple[list[Block], list[ReportedFit]]:
    """Fit what the plan did not: strict words and words with one typo, by each factor."""
    factor = part.factor
    blocks: list[Block] = []
    fits: list[ReportedFit] = []
    trials = material.tables.trials
    rows = trials[trials["excluded_reason"].isna() & (trials["trial_type"] == "recover")]
    rows = rows[shown(rows, part.within)]
    kinds = kinds_of(rows)
    groups = [group for group in group_order(rows) if kinds[group] in DATA_KINDS]
    if "human" not in groups and "simulated" in kinds:
        groups.insert(0, "simulated")
    done = {
        (one.plan.measure.name, one.plan.factor, one.plan.within)
        for one in material.analyses
        if one.has_results
    }
    analyses = []
    for measure in (WORDS, WORDS_WITH_ONE_TYPO):
        if measure is WORDS_WITH_ONE_TYPO and not any_typo:
            blocks.append(
                escape(
                    f"No answer came within one typo of a word: the model{_by(part)} with one typo is the same."
                )
            )
        elif {(measure.name, factor, part.within), (measure.name, factor, ())} & done:
            blocks.append(
                escape(f"{measure.title}{_by(part)}: the planned model stands among the planned analyses.")
            )
        elif len(rows) > (MOST_TRIALS if set(groups) & set(PARTICIPANT_KINDS) else MOST_OF_MODELS):
            blocks.append(
                escape(
                    f"{measure.title}{_by(part)}: no exploratory model of {apa.count(len(rows))} answers; state a plan for one."
                )
            )
        elif groups:
            material.told(f"model: {measure.noun}{_by(part)}")
            analyses.append(carry_out(_plan(measure, part, changing, groups, material), material.tables))
    for analysis in across_analyses(analyses):
        some, model = _told(analysis, f"{_stem(part)}_{analysis.plan.measure.name}", kinds)
        blocks += some
        fits += model
    return blocks, fits


def _plan(measure: Measure, part: Part, levels: list[str], groups: list[str], material: Material) -> Plan:
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
        factors={name: tuple(own) for name, own in material.tables.factors.items()},
    )


def _told(analysis: Analysis, stem: str, kinds: dict[str, str]) -> tuple[list[Block], list[ReportedFit]]:
    model, plan = analysis.model, analysis.plan
    cells = []
    if analysis.has_results:
        cells = describe_rows(
            described_rows(analysis.rows, plan.measure), plan.measure, plan.factor, analysis.levels
        )
    told = paragraphs(analysis, cells, kinds, None)
    if not told:
        told = [escape(f"{plan.measure.title}: no model could be fitted.")]
    doubts = warnings_of(analysis)
    blocks: list[Block] = [Markup("<h3>{}</h3>").format(f"{plan.name[0].upper()}{plan.name[1:]}")]
    blocks += [escape(" ".join(doubts))] if doubts else []
    if not analysis.has_results:
        return [*blocks, *told], []
    shown: list[ApaTable] = [contrast_table(analysis, f"{stem}_differences")] if analysis.contrasts else []
    shown += [model_table(analysis.of_model, f"{stem}_model")] if model is not None else []
    names = apa.listing([f"[[table:{one.name}]]" for one in shown])
    fits = [ReportedFit(plan.name, model.source)] if model is not None and model.source is not None else []
    return [
        *blocks,
        *told,
        Markup("{} {} the numbers.").format(Markup(names), "has" if len(shown) == 1 else "have"),
        *shown,
    ], fits
