"""People's times in the chapter on cost: their distributions, and conditions compared on two scales; shared parts of the chapter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from analysis import apa
from analysis.costs.ratios import TITLES
from analysis.costs.times import PERCENTILES, TimeScales, TimeSpread, time_scales, time_spreads
from analysis.figures.cost import time_distribution_figure
from analysis.names import plain
from analysis.plan import MEASURES, Plan, against_reference
from analysis.readers import PARTICIPANT_KINDS, group_order, spoken
from analysis.report.apa_tables import ApaTable, as_percent, decimals
from analysis.report.blocks import Block, Material, ReportedFit
from analysis.report.layout import Layout
from analysis.report.many_levels import MOST_NAMED, by_level, which_of
from analysis.report.results import statistics
from analysis.results import Analysis, Contrast
from analysis.tables import Tables
from stimuli.errors import UserError, reason_of

LAYOUT = Layout(Path(__file__).parent)
FAILURES = (UserError, np.linalg.LinAlgError, FloatingPointError)
"""What a fit may end with; the chapter reports it and continues."""


@dataclass
class Part:
    """A part of the chapter while it is written.

    Attributes
    ----------
    blocks : list of Markup, ApaTable or Drawing
    methods : list of Markup
    fits : list of ReportedFit
    groups : list of str
        Reader groups that are in it.
    sources : list of str
    """

    blocks: list[Block] = field(default_factory=list)
    methods: list[Markup] = field(default_factory=list)
    fits: list[ReportedFit] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)

    def add(self, other: Part) -> None:
        """Put another part behind this one; methods and sources are not repeated."""
        self.blocks += other.blocks
        self.fits += other.fits
        for name in ("methods", "groups", "sources"):
            own = getattr(self, name)
            own += [one for one in getattr(other, name) if one not in own]

    def head(self, text: str) -> None:
        """Begin under a heading."""
        self.blocks.append(Markup("<h3>{}</h3>").format(text))

    def say(self, *sentences: str) -> None:
        """Add a paragraph of sentences; plain text is escaped, Markup stays; nothing where there are none."""
        told = [escape(one) for one in sentences if one]
        if told:
            self.blocks.append(Markup(" ").join(told))


def sentence(text: str) -> str:
    """Begin with a capital and end with a stop."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def with_ends(value: float, low: float, high: float, decimals: int = 2, unit: str = "") -> str:
    """Write an estimate with its 95% interval, as ``12.3% [4.5, 20.1]``; alone where there is no interval, or none of any width."""
    told = apa.number(value, decimals) + (unit if np.isfinite(value) else "")
    is_known = np.isfinite(low) and np.isfinite(high) and not apa.without_width(low, high)
    return f"{told} {apa.interval(low, high, decimals)}" if is_known else told


def chosen_words(names: Iterable[str]) -> str:
    """List names in a sentence."""
    return apa.listing(list(dict.fromkeys(names)))


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
    table = _percentile_table(name, spreads, factor)
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


def _percentile_table(name: str, spreads: list[TimeSpread], factor: str) -> ApaTable:
    rows = [
        {"spread": one}
        for key in dict.fromkeys((one.group, one.measure) for one in spreads)
        for one in spreads
        if (one.group, one.measure) == key
    ]
    return LAYOUT.table(
        "percentiles",
        rows,
        name,
        factor=factor,
        kinds={one.group: one.kind for one in spreads},
        titles=TITLES,
        percents=PERCENTILES,
        range=range,
        measures=list(dict.fromkeys(one.measure for one in spreads)),
    )


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
    part.blocks.append(_scales_table(name, found, thinned))
    if not reported and log.model.source is not None:
        part.fits.append(ReportedFit(f"{plan.name}, log scale", log.model.source))
    if own.model.source is not None:
        part.fits.append(ReportedFit(f"{plan.name}, milliseconds (Gamma, identity link)", own.model.source))
    part.sources = ["loftus1978", "lo2015"]
    part.methods = [
        LAYOUT.sentences("methods_of_scales"),
        LAYOUT.sentences("methods_of_milliseconds"),
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
            f"Of {which['one scale only']} one scale's interval excludes 0 and the other's does not: whether there is a "
            "difference depends on the scale."
        )
    if "opposite" in names:
        told.append(f"The scales point in opposite directions for {which['opposite']}.")
    if "not estimable" in names:
        told.append(f"Not estimable on both scales: {which['not estimable']}.")
    counted = any(MOST_NAMED < len(own) < len(table) for own in names.values())
    return [*told, "The last column of the table lists them."] if counted else told


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


def _scales_table(name: str, found: TimeScales, thinned: tuple[str, ...]) -> ApaTable:
    """Lay out each difference on both scales, one row a scale."""
    verdicts = {(row["contrast"], row["groups"]): row["agree"] for row in found.table.to_dict("records")}
    others = {(one.label, one.groups): one for one in found.own.contrasts}
    rows: list[dict[str, Any]] = []
    for groups in dict.fromkeys(one.groups for one in found.log.contrasts):
        readers = " vs. ".join(spoken(group) for group in groups)
        who = f"Difference of differences: {readers}" if len(groups) > 1 else sentence(readers).rstrip(".")
        for one in (each for each in found.log.contrasts if each.groups == groups):
            agree = AGREE[verdicts[one.label, " − ".join(groups)]]
            for contrast, analysis, scale in (
                (one, found.log, "log"),
                (others.get((one.label, groups)), found.own, "ms"),
            ):
                known = contrast if contrast is not None and contrast.estimable else None
                logged = analysis.plan.measure.logged
                cells = {
                    "contrast": known,
                    "logged": logged,
                    "places": decimals(known.se, 2) if known and logged else 1,
                }
                first = scale == "log"
                rows.append(
                    {
                        "who": who,
                        "scale": scale,
                        "label": one.label if first else "",
                        "agree": agree if first else "",
                        **cells,
                    }
                )
    models = [one.model for one in (found.log, found.own) if one.model is not None]
    return LAYOUT.table(
        "scales",
        rows,
        name,
        [one.source for one in models if one.source is not None],
        title=TITLES[found.log.plan.measure.name],
        factor=found.log.plan.factor,
        trials=(models[0].rows, models[-1].rows),
        correction=found.log.correction,
        plan=found.log.plan,
        thinned=[sentence(one) for one in thinned],
    )


def has_times(tables: Tables) -> bool:
    """Whether any participant has a time that is analysed."""
    trials = tables.trials
    used = trials["excluded_reason"].isna() & trials["reader_kind"].isin(PARTICIPANT_KINDS)
    return bool((trials.loc[used, list(TIMES)] > 0).to_numpy().any())
