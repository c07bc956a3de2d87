"""People's times in the chapter on cost: their distributions, and conditions compared on two scales; shared parts of the chapter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from analysis import apa
from analysis.costs.ratios import TITLES
from analysis.costs.times import PERCENTILES, TimeScales, time_scales, time_spreads
from analysis.figures.cost import time_distribution_figure
from analysis.names import plain
from analysis.plan import MEASURES, Plan, against_reference
from analysis.preparing.exclusions import TIMED
from analysis.readers import PARTICIPANT_KINDS, group_order, spoken
from analysis.report.apa_tables import ApaTable, decimals
from analysis.report.blocks import Block, Material, ReportedFit
from analysis.report.layout import Layout
from analysis.report.many_levels import MOST_NAMED, MOST_TOLD, by_level
from analysis.report.results import statistics
from analysis.results import Analysis, Contrast
from analysis.tables import Tables
from stimuli.errors import UserError, reason_of

LAYOUT = Layout(Path(__file__).parent, titles=TITLES, percents=PERCENTILES, timed=TIMED)
FAILURES = (UserError, np.linalg.LinAlgError, FloatingPointError)
"""What a fit may end with; the chapter reports it and continues."""
TIMES = ("reading_time", "rt")


@dataclass
class Part:
    """A part of the chapter while it is written."""

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

    def write(self, passage: str, **values: Any) -> None:
        """Add a passage of the chapter's text."""
        self.blocks += LAYOUT.blocks(passage, **values)


def distributions(tables: Tables, factor: str) -> Part:
    """Draw and describe how people's times are distributed in each condition."""
    spreads = [one for name in TIMES for one in time_spreads(tables, factor, name)]
    if not spreads:
        return Part()
    name = plain("time_distributions", factor)
    groups = [
        [one for one in spreads if (one.group, one.measure) == key]
        for key in dict.fromkeys((one.group, one.measure) for one in spreads)
    ]
    medians = [[one.percentiles[PERCENTILES.index(50)] for one in own] for own in groups]
    table = LAYOUT.table(
        "percentiles",
        [{"spread": one} for own in groups for one in own],
        name,
        factor=factor,
        kinds={one.group: one.kind for one in spreads},
        measures=list(dict.fromkeys(one.measure for one in spreads)),
    )
    part = Part(groups=list(dict.fromkeys(one.group for one in spreads)))
    part.write(
        "distributions",
        factor=factor,
        table=table,
        figure=time_distribution_figure(name, spreads, factor, tables.levels_of(factor)),
        medians=[
            (own[0], by_level([one.level for one in own], [apa.milliseconds(one) for one in middle], middle))
            for own, middle in zip(groups, medians, strict=True)
        ],
    )
    return part


def on_two_scales(material: Material, tables: Tables, factor: str, thinned: tuple[str, ...]) -> Part:
    """Compare conditions on the log scale and in milliseconds, for every analysis of times by this factor."""
    part = Part()
    plans: list[tuple[Plan, Analysis | None]] = [(one.plan, one) for one in timed_by(material, factor)]
    plans = plans or [(one, None) for one in _exploratory_plans(tables, factor)]
    for plan, done in plans:
        material.told(f"cost: {plan.name} on two scales")
        own_model = plan.formula is not None
        if own_model:
            plan = replace(plan, formula=None, fallback=None)
        kept = None if thinned or own_model else done
        try:
            found = time_scales(plan, tables, on_log=kept)
        except FAILURES as error:
            part.write("no_scales", plan=plan, why=reason_of(error))
            continue
        part.add(_scales(found, plan, reported=kept is not None, thinned=thinned, own_model=own_model))
    part.blocks[:0] = LAYOUT.blocks("scales_heading", factor=factor) if part.blocks else []
    return part


def timed_by(material: Material, factor: str) -> list[Analysis]:
    """Return the analyses of log times that compare conditions of a factor, or cells of two (a logarithm can unmake interactions)."""
    return [
        one
        for one in material.analyses
        if one.plan.factor == factor and one.plan.measure.name in TIMES and one.plan.measure.logged
    ]


def _exploratory_plans(tables: Tables, factor: str) -> list[Plan]:
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
    if log.model is None or own.model is None or not log.contrasts:
        remarks = log.remarks if log.model is None or own.model is not None else own.remarks
        part.write("not_scaled", plan=plan, remarks=remarks)
        return part
    others = {(one.label, one.groups): one for one in own.contrasts}
    both = [(one, others.get((one.label, one.groups))) for one in log.contrasts]
    agreeing: dict[str, list[str]] = {}
    for row in found.table.to_dict("records"):
        readers = " − ".join(map(spoken, str(row["groups"]).split(" − ")))
        agreeing.setdefault(row["agree"], []).append(f"{row['contrast']} ({readers})")
    doubts = [one for one in dict.fromkeys((*log.remarks, *own.remarks)) if one.startswith(_DOUBTFUL)]
    part.write(
        "scales",
        plan=plan,
        scales=[("on the log scale", log), ("in milliseconds", own)],
        table=_scales_table(plain("time_scales", plan.name), found, both, thinned),
        told=[pair for pair in both if len(both) <= MOST_TOLD or _is_significant(pair, log.plan.alpha)],
        total=len(both),
        agreeing={name: agreeing.get(name, []) for name in _VERDICTS},
        is_counted=any(MOST_NAMED < len(names) < len(found.table) for names in agreeing.values()),
        doubts=doubts,
        statistics=statistics,
        **{"thinned": thinned, "own_model": own_model},
    )
    if not reported and log.model.source is not None:
        part.fits.append(ReportedFit(f"{plan.name}, log scale", log.model.source))
    if own.model.source is not None:
        part.fits.append(ReportedFit(f"{plan.name}, milliseconds (Gamma, identity link)", own.model.source))
    part.sources = ["loftus1978", "lo2015"]
    part.methods = [LAYOUT.sentences(f"methods_of_{name}") for name in ("scales", "milliseconds")]
    if len(own.model.steps) > 1:
        part.methods.append(LAYOUT.sentences("methods_of_steps", plan=plan, steps=own.model.steps))
    return part


_VERDICTS = ("same", "one scale only", "opposite", "not estimable")
_DOUBTFUL = ("Left out", "Participants' slopes were begun")
Both = tuple[Contrast, Contrast | None]
"""A contrast on the log scale and in milliseconds."""


def _is_significant(pair: Both, alpha: float) -> bool:
    return any(one is not None and one.estimable and one.p_adjusted < alpha for one in pair)


def _scales_table(name: str, found: TimeScales, both: Sequence[Both], thinned: tuple[str, ...]) -> ApaTable:
    """Lay out each difference on both scales, one row a scale."""
    verdicts = {(row["contrast"], row["groups"]): row["agree"] for row in found.table.to_dict("records")}
    rows: list[dict[str, Any]] = []
    order = list(dict.fromkeys(one.groups for one, _ in both))
    for pair in sorted(both, key=lambda pair: order.index(pair[0].groups)):
        one = pair[0]
        for contrast, is_log in zip(pair, (True, False), strict=True):
            known = contrast if contrast is not None and contrast.estimable else None
            places = decimals(known.se, 2) if known is not None and is_log else 1
            told = {"groups": one.groups, "readers": " vs. ".join(map(spoken, one.groups))}
            told |= {"label": one.label, "agree": verdicts[one.label, " − ".join(one.groups)]}
            rows.append({**told, "contrast": known, "is_log": is_log, "places": places})
    models = [one.model for one in (found.log, found.own) if one.model is not None]
    return LAYOUT.table(
        "scales",
        rows,
        name,
        [one.source for one in models if one.source is not None],
        trials=(models[0].rows, models[-1].rows),
        correction=found.log.correction,
        plan=found.log.plan,
        thinned=thinned,
    )


def has_times(tables: Tables) -> bool:
    """Whether any participant has a time that is analysed."""
    trials = tables.trials
    used = trials["excluded_reason"].isna() & trials["reader_kind"].isin(PARTICIPANT_KINDS)
    return bool((trials.loc[used, list(TIMES)] > 0).to_numpy().any())
