"""Who was left out and why, and what becomes of accuracy where answers are missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.accuracy import analyse_missingness
from analysis.measures.accuracy import accuracy, asked, missingness, with_chance
from analysis.names import stem_of
from analysis.plan import MEASURES, Plan
from analysis.preparing import flow_steps, sessions_against_rules, time_bounds, time_steps
from analysis.readers import group_order, headed, kinds_of, named
from analysis.report.blocks import Block, Chapter, Material, ReportedFit, marks_of
from analysis.report.chapters.missing_tables import (
    flow_table,
    missing_table,
    rules_table,
    steps_table,
    ways_table,
)
from analysis.report.model_tables import contrast_table, model_table
from analysis.report.parted import Part, crossed_parts, of_part, parts_of
from analysis.report.prose import paragraphs, warnings_of
from analysis.results import Analysis
from analysis.robustness import drawn_readers
from analysis.slopes import TRIALS_FOR_A_SLOPE
from analysis.tables import Tables
from stimuli.errors import UserError

FEWEST = 20
"""Missing answers of the readers of a plan below which no model of them is fitted."""
MOST_ROWS = 15_000
"""Analysed trials above which the model of missing answers takes whole readers drawn by a stable hash."""


@dataclass
class _Said:
    """What the chapter has said so far."""

    blocks: list[Block] = field(default_factory=list)
    fits: list[ReportedFit] = field(default_factory=list)

    def say(self, *sentences: str) -> None:
        text = " ".join(one for one in sentences if one)
        if text:
            self.blocks.append(escape(text))


def write(material: Material) -> Chapter | None:
    """Write the flow of exclusions, accuracy with failures three ways, and the model of missing answers."""
    tables = material.tables
    trials = tables.trials
    if trials.empty:
        return None
    said = _Said()
    said.blocks.append(Markup("<h3>Who was left out</h3>"))
    _exclusions(tables, said)
    rows = asked(trials)
    rows = rows[rows["item_id"].notna()]
    if len(rows) and tables.factors:
        said.blocks.append(Markup("<h3>Missing answers</h3>"))
        _missing(material, said)
    methods = (
        escape(
            "Bounds on accuracy count all failed answers as wrong, all as right, or each at chance. Where at least "
            f"{FEWEST} answers were missing, a logistic mixed model tested whether they depended on the condition; "
            f"it has slopes where units have {TRIALS_FOR_A_SLOPE} answers of the rarer kind, missing or valid, per condition (median)."
        ),
    )
    return Chapter(
        "exclusions",
        "Exclusions and missing answers",
        tuple(said.blocks),
        marks=marks_of(tuple(material.kinds), material.kinds),
        methods=methods,
        fits=tuple(said.fits),
    )


def _exclusions(tables: Tables, said: _Said) -> None:
    trials, exclude = tables.trials, tables.dictionary["exclude"]
    steps = flow_steps(trials)
    timed: dict[str, pd.DataFrame] = {}
    for measure in MEASURES.values():
        if measure.logged:
            table = time_steps(trials, measure.name, time_bounds(exclude, measure.name))
            if len(table):
                timed[f"times that count, {measure.noun}"] = table
    said.blocks.append(
        escape(" ".join(_flow_sentences(steps))) + Markup(" [[table:exclusion_flow]] has every step.")
    )
    said.blocks.append(flow_table(steps, timed))
    flagged = (
        trials["flagged_reason"].notna() if "flagged_reason" in trials else pd.Series(False, trials.index)
    )
    many = int(trials.loc[flagged, "session_id"].nunique())
    if many:
        reasons = trials.loc[flagged].groupby("flagged_reason")["session_id"].nunique()
        listed = apa.listing([f"{why}: {apa.count(count)}" for why, count in reasons.items()])
        said.say(
            f"The study itself flagged {apa.counted(many, 'session')} ({listed}).",
            "Results with and without them stand under other ways to prepare the data.",
        )
    else:
        said.say(
            "The study itself flagged no session, so there are no results with and without flagged sessions to compare."
        )
    try:
        held = sessions_against_rules(trials, exclude)
    except UserError as error:
        said.say(f"The declared rules could not be held against the sessions: {error.message}.")
        return
    if len(held):
        said.blocks.append(rules_table(held))
    elif not exclude.get("sessions"):
        said.say("The study declares no rule for excluding sessions.")


def _flow_sentences(steps: pd.DataFrame) -> Iterator[str]:
    for group, own in steps.groupby("group", sort=False):
        recorded, left = int(own["trials"].iloc[0]), int(own["trials"].iloc[-1])
        lost = own[(own["step"] > 0) & (own["trials_lost"] > 0)]
        why = apa.listing(
            [f"{apa.count(n)} ({w})" for n, w in zip(lost["trials_lost"], lost["why"], strict=True)]
        )
        share = apa.percent(left / recorded) if recorded else apa.MISSING
        end = f"; left out were {why}." if why else "."
        yield f"{headed(str(group))}: {apa.count(left)} of {apa.counted(recorded, 'trial')} recorded are analysed ({share}){end}"


def _missing(material: Material, said: _Said) -> None:
    tables = material.tables
    trials, study = tables.trials, str(tables.dictionary["study"])
    try:
        trials = with_chance(trials, tables.items, tables.factors)
    except UserError as error:
        said.say(f"Failures could not be put at chance: {error.message}.")
    judged = asked(trials)
    judged = judged[judged["item_id"].notna()]
    # cells of two factors are told where accuracy is compared by both
    cells = [part for part in crossed_parts(judged, tables) if _plan_of(material, part) is not None]
    for part in (*parts_of(judged, tables), *cells):
        factor, stem = part.factor, stem_of(part.factor, None, ())
        rows = part.rows(judged)
        rows = rows[rows[factor].notna()]
        if rows.empty:
            continue
        material.told(f"missing answers by {factor}{part.told}")
        counts = missingness(rows, [factor])
        if not counts["missing"].sum():
            said.say(
                f"Every answer to a trial with a level of {factor}{part.told} was valid: with failures as wrong, left out or at "
                "chance accuracy is the same."
            )
            continue
        order = {level: place for place, level in enumerate(part.levels)}
        groups = group_order(rows)
        counts = _sorted(counts, factor, groups, order)
        shares = _sorted(accuracy(rows, [factor], study=study), factor, groups, order)
        kinds = kinds_of(rows)
        of_factor = _Said()
        of_factor.blocks.append(
            Markup("[[table:{0}]] counts missing answers{2}, [[table:{1}]] has accuracy three ways. ").format(
                f"missing_{stem}", f"three_ways_{stem}", part.told
            )
            + escape(" ".join(_differences(shares, factor, kinds)))
        )
        of_factor.blocks += [missing_table(counts, factor, kinds), ways_table(shares, factor, kinds)]
        plan = _plan_of(material, part)
        if plan is not None:
            _model(plan, counts, material, of_factor)
        said.blocks += of_part(of_factor.blocks, part)
        said.fits += [replace(one, title=f"{one.title}{part.told}") for one in of_factor.fits]


def _sorted(table: pd.DataFrame, factor: str, groups: list[str], order: dict[str, int]) -> pd.DataFrame:
    """Put reader groups and levels in the order of all tables."""
    keys = table.assign(_group=table["reader_group"].map(groups.index), _level=table[factor].map(order))
    return keys.sort_values(["_group", "_level"], kind="stable").drop(columns=["_group", "_level"])


def _differences(shares: pd.DataFrame, factor: str, kinds: dict[str, str]) -> Iterator[str]:
    """Say of each reader with missing answers how many, where, and how much they can matter."""
    for group, own in shares.groupby("reader_group", sort=False):
        who = named(str(group), kinds)
        if not own["missing"].sum():
            yield f"No answer of {who} is missing."
            continue
        least, most = (
            own.iloc[int(own["missing_share"].argmin())],
            own.iloc[int(own["missing_share"].argmax())],
        )
        text = f"Of {who}, {apa.counted(int(own['missing'].sum()), 'answer')} of {apa.count(own['trials'].sum())} "
        text += "is" if own["missing"].sum() == 1 else "are"
        text += " missing"
        if least[factor] != most[factor]:
            text += f", from {apa.percent(least['missing_share'])} in {least[factor]} to "
            text += f"{apa.percent(most['missing_share'])} in {most[factor]}"
        apart = (own["valid_only"] - own["wrong"]).dropna()
        if len(apart):
            at = own.loc[apart.index[int(apart.to_numpy(dtype=float).argmax())]]
            text += (
                f"; leaving failures out instead of counting them as wrong changes accuracy most in {at[factor]}, from "
                f"{apa.percent(at['wrong'])} to {apa.percent(at['valid_only'])}"
            )
        yield text + "."


def _plan_of(material: Material, part: Part) -> Plan | None:
    """Return a comparison of accuracy by a factor, freed of what was planned for accuracy alone."""
    found = [one.plan for one in material.analyses if one.plan.measure.name == "correct"]
    of_factor = [
        plan
        for plan in found
        if plan.factor == part.factor
        and plan.trials in (part.trials, None)
        and plan.within in (part.within, ())
    ]
    if not of_factor:
        return None
    plan = of_factor[0]
    groups = tuple(dict.fromkeys(group for one in of_factor for group in one.groups))
    contrasts = tuple(replace(one, direction="two-sided") for one in plan.contrasts)
    return replace(
        plan, name=f"accuracy by {part.factor}{part.told}", planned=False, groups=groups, contrasts=contrasts, key="",
        family="", equivalence=None, formula=None, fallback=None, exclude={}, remarks=(), trials=part.trials, within=part.within,
    )  # fmt: skip


def _model(plan: Plan, counts: pd.DataFrame, material: Material, said: _Said) -> None:
    own = counts[counts["reader_group"].isin(plan.groups)]
    many = int(own["missing"].sum())
    who = apa.listing([named(one, material.kinds) for one in plan.groups])
    if many < FEWEST:
        said.say(
            f"With {apa.counted(many, 'missing answer')} of {who} no model "
            f"of missing answers was fitted ({FEWEST} are needed)."
        )
        return
    lacking = own.groupby("reader_group", sort=False)["missing"].sum()
    groups = tuple(group for group in plan.groups if lacking.get(group, 0) > 0)
    material.told(f"model: missing answers by {plan.factor}")
    bounded, drawn = drawn_readers(material.tables, MOST_ROWS)
    analysis = analyse_missingness(replace(plan, groups=groups), bounded)
    never = [named(group, material.kinds) for group in plan.groups if group not in groups]
    said.say(
        drawn,
        f"No answer of {apa.listing(never)} is missing; the model holds the other readers." if never else "",
    )
    _told(analysis, f"missing_model_{stem_of(plan.factor, None, ())}", material, said)


def _told(analysis: Analysis, name: str, material: Material, said: _Said) -> None:
    model = analysis.model
    told = paragraphs(analysis, [], material.kinds, None)
    if not analysis.has_results:
        said.blocks += told
        return
    said.blocks += [Markup("<b>Warning.</b> {}").format(one) for one in warnings_of(analysis)]
    said.blocks.append(
        Markup("[[table:{0}]] has the differences in missing answers.").format(f"{name}_differences")
    )
    said.blocks += [*told, contrast_table(analysis, f"{name}_differences")]
    if model is not None:
        said.blocks.append(model_table(analysis.of_model, name))
        title = "How the random structure of the model of missing answers was reduced"
        steps = steps_table(model, f"{name}_steps", title)
        said.blocks += [steps] if steps is not None else []
    if model is not None and model.source is not None:
        said.fits.append(ReportedFit(f"missing answers by {analysis.plan.factor}", model.source))
    found = [
        one.label for one in analysis.contrasts if one.estimable and one.p_adjusted < analysis.plan.alpha
    ]
    if found:
        said.say(
            f"Answers are missing more often in some conditions than in others ({apa.listing(list(dict.fromkeys(found)))}), so that "
            "accuracy of valid answers only compares conditions on different trials."
        )
