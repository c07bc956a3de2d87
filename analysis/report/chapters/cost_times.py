"""People's times in the chapter on cost: how they are distributed, and conditions compared on two scales."""

from __future__ import annotations

from dataclasses import replace

from markupsafe import Markup, escape

from analysis import apa
from analysis.costs import TimeScales, TimeSpread, time_scales, time_spreads
from analysis.costs.ratios import TITLES
from analysis.costs.times import PERCENTILES
from analysis.figures.cost import time_distribution_figure
from analysis.names import plain
from analysis.plan import MEASURES, Plan, against_reference
from analysis.readers import PARTICIPANT_KINDS, group_order, marked, spoken
from analysis.report.apa_tables import ApaTable, Head, Origin, decimals
from analysis.report.blocks import Material, ReportedFit
from analysis.report.chapters.cost_parts import (
    FAILURES,
    OWN_SCALE,
    Part,
    as_percent,
    sentence,
)
from analysis.report.differences import statistics
from analysis.report.filters import PEOPLE, filled, timed_well
from analysis.report.many_levels import MOST_NAMED, by_level, which_of
from analysis.results import Analysis, Contrast
from analysis.tables import Tables
from stimuli.errors import reason_of

MOST_TOLD = 8
"""Differences up to which the text tells each; of more it tells the significant ones."""
TIMES = ("reading_time", "rt")
AGREE = {
    "same": "same",
    "one scale only": "one scale only",
    "opposite": "opposite",
    "not estimable": apa.MISSING,
}


def distributions(tables: Tables, factor: str) -> Part:
    """Draw and describe how people's times are distributed in each condition."""
    part = Part()
    levels = tables.levels_of(factor)
    spreads = [one for name in TIMES for one in time_spreads(tables, factor, name)]
    if not spreads:
        return part
    name = plain("time_distributions", factor)
    table = percentile_table(name, spreads, factor)
    part.groups = list(dict.fromkeys(one.group for one in spreads))
    part.head(f"Distributions of times: {factor}")
    text = "[[figure:{0}]] and [[table:{0}]] show how times are distributed in each condition. Medians: {1}."
    part.say(Markup(text).format(name, "; ".join(_medians(spreads))))
    part.blocks += [time_distribution_figure(name, spreads, factor, levels), table]
    return part


def _medians(spreads: list[TimeSpread]) -> list[str]:
    told = []
    for group, measure in dict.fromkeys((one.group, one.measure) for one in spreads):
        own = [one for one in spreads if (one.group, one.measure) == (group, measure)]
        medians = [one.percentiles[PERCENTILES.index(50)] for one in own]
        values = by_level([one.level for one in own], [apa.milliseconds(one) for one in medians], medians)
        told.append(f"{TITLES[measure].lower()} of {spoken(group)}, {values} condition")
    return told


def percentile_table(name: str, spreads: list[TimeSpread], factor: str) -> ApaTable:
    """Lay out the percentiles of times in each condition."""
    rows: list[tuple[str, ...]] = []
    for group, measure in dict.fromkeys((one.group, one.measure) for one in spreads):
        own = [one for one in spreads if (one.group, one.measure) == (group, measure)]
        rows.append(Head([f"{marked(group, own[0].kind)}: {TITLES[measure].lower()}"]))
        for one in own:
            counts = (apa.count(one.trials), apa.count(len(one.medians)))
            rows.append((one.level, *counts, *(apa.number(value, 0) for value in one.percentiles)))
    columns = (factor, "Trials", "n", *(f"{place}%" for place in PERCENTILES))
    note = (
        "n = participants. Percentiles (ms) are of all times of a condition together, valid answers within the study's time "
        "bounds; 50% is the median."
    )
    measures = tuple(dict.fromkeys(one.measure for one in spreads))
    origin = Origin(
        columns=(*measures, factor, "reader_group", "response_status"),
        where=(*timed_well(*measures), PEOPLE, *filled("item_id", factor)),
        rows=""
        if len(measures) == 1
        else "of each time the trials within its bounds (rt_excluded, reading_time_excluded empty)",
        computed="percentiles of all times of a level together",
    )
    return ApaTable(name, f"Percentiles of times by {factor}", columns, tuple(rows), note, origin, drawn=True)


def on_two_scales(material: Material, tables: Tables, factor: str, thinned: tuple[str, ...]) -> Part:
    """Compare conditions on the log scale and in milliseconds, for every analysis of times by this factor."""
    part = Part()
    given = _timed_by(material, factor)
    plans: list[tuple[Plan, Analysis | None]] = [(one.plan, one) for one in given]
    plans = plans or [(one, None) for one in exploratory_plans(tables, factor)]
    if not plans:
        return part
    part.head(f"Times on two scales: {factor}")
    for plan, done in plans:
        material.told(f"cost: {plan.name} on two scales")
        own_model = plan.formula is not None
        if own_model:
            plan = replace(plan, formula=None, fallback=None)
        kept = None if thinned or own_model else done
        try:
            found = time_scales(plan, tables, on_log=kept)
        except FAILURES as error:
            part.say(
                f"{sentence(plan.name)} The times could not be compared on two scales: {reason_of(error)}."
            )
            continue
        part.add(_scales(found, plan, reported=kept is not None, thinned=thinned, own_model=own_model))
    return part if len(part.blocks) > 1 else Part()


def _timed_by(material: Material, factor: str) -> list[Analysis]:
    """Return the analyses of log times that compare conditions of a factor, or cells of two."""
    return [
        one
        for one in material.analyses
        if one.plan.factor == factor and one.plan.measure.name in TIMES and one.plan.measure.logged
    ]


def are_timed_by(material: Material, cells: str) -> bool:
    """Whether an analysis of log times compares the cells of two factors: a logarithm can make or unmake their interaction."""
    return bool(_timed_by(material, cells))


def exploratory_plans(tables: Tables, factor: str) -> list[Plan]:
    """Return the comparison of times that stands in where no analysis has one: of the first time that people have."""
    trials = tables.trials
    analysed = trials["excluded_reason"].isna() & trials[factor].notna()
    used = trials.loc[analysed, ["reader_group", "reader_kind", *TIMES]]
    people = [one for one in group_order(used) if one in ("human", "simulated")][:1]
    rows = used[used["reader_group"].isin(people)]
    levels = tables.levels_of(factor)
    for name in TIMES:
        if len(levels) > 1 and (rows[name] > 0).any():
            title = f"{MEASURES[name].noun} by {factor}"
            contrasts = against_reference(levels)
            return [Plan(title, False, MEASURES[name], factor, tuple(levels), tuple(people), contrasts)]
    return []


def _scales(
    found: TimeScales, plan: Plan, *, reported: bool, thinned: tuple[str, ...], own_model: bool
) -> Part:
    part = Part(groups=list(plan.groups))
    log, own = found.log, found.own
    title = TITLES[plan.measure.name]
    if log.model is None or own.model is None or not log.contrasts:
        remarks = log.remarks if log.model is None or own.model is not None else own.remarks
        part.say(f"{title} by {plan.factor} is not compared on both scales.", *map(sentence, remarks))
        return part
    name = plain("time_scales", plan.name)
    formulas = Markup("<code>{}</code> and <code>{}</code>").format(log.model.formula, own.model.formula)
    reduced = Markup("; ").join(
        Markup("<code>{}</code>: {}").format(one.formula, one.verdict) for one in own.model.steps
    )
    part.say(
        Markup(
            "{} was compared on the log scale and in milliseconds ([[table:{}]]); the models were {}."
        ).format(title, name, formulas),
        *(sentence(one) for one in thinned),
        "Both scales have the usual model here, not the plan's own formula." if own_model else "",
    )
    others = {(one.label, one.groups): one for one in own.contrasts}
    told = [one for one in log.contrasts if _is_told(one, others.get((one.label, one.groups)), found)]
    part.say(*(_both(one, others.get((one.label, one.groups)), found) for one in told))
    if len(told) < len(log.contrasts):
        few = "These are" if told else "None is"
        part.say(
            f"{few} significant on either scale, of {len(log.contrasts)} differences, all of which are in the table."
        )
    part.say(*_verdicts(found), *_doubts(found))
    part.blocks.append(scales_table(name, found, thinned))
    if not reported and log.model.source is not None:
        part.fits.append(ReportedFit(f"{plan.name}, log scale", log.model.source))
    if own.model.source is not None:
        part.fits.append(ReportedFit(f"{plan.name}, milliseconds (Gamma, identity link)", own.model.source))
    part.sources = ["loftus1978", "lo2015"]
    part.methods = [
        Markup(
            "Because a log transform can remove or reverse an interaction (Loftus, 1978; Lo &amp; Andrews, 2015), times were "
            "analysed both as logarithms (normal, REML) and in milliseconds (Gamma, identity link, Laplace approximation); "
            "<i>p</i> values were adjusted within each scale."
        ),
        OWN_SCALE,
        *(
            [Markup("Steps of the model of {} in milliseconds: {}.").format(plan.measure.noun, reduced)]
            if len(own.model.steps) > 1
            else []
        ),
    ]
    return part


def _is_told(one: Contrast, other: Contrast | None, found: TimeScales) -> bool:
    """Whether the text tells a difference: all where they are few, else those that are significant on a scale."""
    alpha = found.log.plan.alpha
    return len(found.log.contrasts) <= MOST_TOLD or any(
        each is not None and each.estimable and each.p_adjusted < alpha for each in (one, other)
    )


def _who(one: Contrast) -> str:
    if len(one.groups) == 1:
        return f"{sentence(spoken(one.groups[0]))[:-1]}, {one.label}"
    return f"Difference between {' and '.join(map(spoken, one.groups))} in {one.label}"


def _both(one: Contrast, other: Contrast | None, found: TimeScales) -> Markup:
    told = escape(f"{_who(one)}: ")
    if one.estimable:
        ends = apa.interval(as_percent(one.low), as_percent(one.high), 1)
        told += Markup("{}%\u00a0{} on the log scale, ").format(apa.number(as_percent(one.estimate), 1), ends)
        told += statistics(one, found.log)
    else:
        told += escape("not estimable on the log scale")
    if other is not None and other.estimable:
        told += Markup("; in milliseconds, ") + statistics(other, found.own)
    else:
        told += escape("; not estimable in milliseconds")
    return told + Markup(".")


def _verdicts(found: TimeScales) -> list[str]:
    """Say where both scales agree, in which sense, and where they do not."""
    table = found.table
    names = {
        key: [f"{row['contrast']} ({row['groups']})" for row in own.to_dict("records")]
        for key, own in table.assign(
            groups=[" − ".join(map(spoken, str(one).split(" − "))) for one in table["groups"]]
        ).groupby("agree", sort=False)
    }
    which = {key: which_of(own, len(table)) for key, own in names.items()}
    told = []
    if "same" in names:
        told.append(
            f"Both scales say the same of {which['same']}: both intervals lie on one side of 0 or both include it."
        )
    if "one scale only" in names:
        told.append(
            f"Of {which['one scale only']} one scale's interval leaves 0 out and the other's does not: whether there is a "
            "difference depends on the scale."
        )
    if "opposite" in names:
        told.append(f"The scales point in opposite directions for {which['opposite']}.")
    if "not estimable" in names:
        told.append(f"Not estimable on both scales: {which['not estimable']}.")
    counted = any(MOST_NAMED < len(own) < len(table) for own in names.values())
    return [*told, "Which of them is said in the last column of the table."] if counted else told


def _doubts(found: TimeScales) -> list[str]:
    told = []
    for which, analysis in (("on the log scale", found.log), ("in milliseconds", found.own)):
        model = analysis.model
        if model is not None and not model.converged:
            told.append(f"The model {which} did not converge; its numbers are not to be trusted.")
        if model is not None and model.singular:
            told.append(f"The model {which} is singular: a variance is estimated as zero.")
    remarks = dict.fromkeys((*found.log.remarks, *found.own.remarks))
    left = [one for one in remarks if one.startswith(("Left out", "Participants' slopes were begun"))]
    return told + [sentence(one) for one in left]


def scales_table(name: str, found: TimeScales, thinned: tuple[str, ...]) -> ApaTable:
    """Lay out each difference on both scales, one row a scale."""
    rows: list[tuple[str, ...]] = []
    verdicts = {(row["contrast"], row["groups"]): row["agree"] for row in found.table.to_dict("records")}
    others = {(one.label, one.groups): one for one in found.own.contrasts}
    for groups in dict.fromkeys(one.groups for one in found.log.contrasts):
        who = " vs. ".join(spoken(group) for group in groups)
        rows.append(
            Head([f"Difference of differences: {who}" if len(groups) > 1 else sentence(who).rstrip(".")])
        )
        for one in found.log.contrasts:
            if one.groups != groups:
                continue
            agree = AGREE[verdicts[one.label, " − ".join(groups)]]
            rows.append((one.label, "log", *_cells(one, found.log), agree))
            rows.append(("", "ms", *_cells(others.get((one.label, groups)), found.own), ""))
    models = [one.model for one in (found.log, found.own) if one.model is not None]
    counts = f"N = {apa.count(models[0].rows)} trials"
    if models[0].rows != models[-1].rows:
        counts += f" (log), {apa.count(models[-1].rows)} (ms)"
    method, plan = found.log.correction, found.log.plan
    over = "the reader groups of one difference" if plan.planned else "all differences of a scale"
    over = f"all tests of the family {plan.family} on its scale" if plan.family else over
    note = (
        f"{counts}. b on the log scale is a difference of natural logarithms, percent is 100 (exp b − 1); in ms it is "
        f"a difference in milliseconds (Gamma, identity link). p adjusted by {method}'s method over {over}. Scales: "
        f"same where both 95% intervals lie on one side of 0 or both include it."
    )
    note = " ".join([note, *(sentence(one) for one in thinned)])
    columns = (
        "Difference",
        "Scale",
        "b",
        "SE",
        "t or z",
        "df",
        "p adjusted",
        "95% CI",
        "Percent",
        "95% CI",
        "Scales",
    )
    fits = tuple(one.source for one in models if one.source is not None)
    title = f"{TITLES[found.log.plan.measure.name]} on two scales by {found.log.plan.factor}"
    return ApaTable(name, title, columns, tuple(rows), note, Origin(fits, computed=OF_SCALES))


OF_SCALES = "weights of the fixed effects of each model; percent in ms are ratios of two estimates"


def _cells(one: Contrast | None, analysis: Analysis) -> tuple[str, ...]:
    if one is None or not one.estimable:
        return (apa.MISSING,) * 8
    logged = analysis.plan.measure.logged
    places = decimals(one.se, 2) if logged else 1
    ends = (as_percent(one.low), as_percent(one.high)) if logged else (float("nan"),) * 2
    return (
        apa.number(one.estimate, places),
        apa.number(one.se, places),
        apa.number(one.statistic),
        apa.degrees_of_freedom(one.df),
        apa.p_value(one.p_adjusted),
        apa.interval(one.low, one.high, places),
        apa.number(as_percent(one.estimate), 1) if logged else apa.MISSING,
        apa.interval(*ends, 1),
    )


def has_times(tables: Tables) -> bool:
    """Whether any participant has a time that is analysed."""
    trials = tables.trials
    used = trials["excluded_reason"].isna() & trials["reader_kind"].isin(PARTICIPANT_KINDS)
    return bool((trials.loc[used, list(TIMES)] > 0).to_numpy().any())
