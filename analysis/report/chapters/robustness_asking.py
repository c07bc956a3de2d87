"""How much models' answers hang on how they were asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.families import with_adjusted
from analysis.measures.accuracy import asked
from analysis.readers import named
from analysis.report.blocks import Block, Material, ReportedFit
from analysis.report.chapters.robustness_tables import asking_table
from analysis.report.parted import of_part, parts_by
from analysis.robustness import asked_otherwise
from stimuli.errors import UserError

ASKING = (
    "Variation of models' right answers was split by prompt wording, label map, order of choices, session, and item: by a logistic "
    "mixed model for sources with five levels or more, and by the range of means against 500 permutations within item and condition."
)


def asked_in_ways(material: Material, reported: list[ReportedFit]) -> Iterator[Block]:
    """Tell each model's variation by wording, labels, order, session and item; its models go into ``reported``."""
    kinds = material.kinds
    models = [group for group, kind in kinds.items() if kind == "model"]
    if not models:
        return
    tables = material.tables
    for factor in list(tables.factors)[:1]:
        for part in parts_by(factor, asked(tables.trials), tables):
            own: list[ReportedFit] = []
            there = replace(material, tables=part.of(tables))
            yield from of_part(_of_factor(there, factor, models, own), part)
            reported += [replace(one, title=f"{one.title}{part.told}") for one in own]


def _of_factor(
    material: Material, factor: str, models: list[str], reported: list[ReportedFit]
) -> Iterator[Block]:
    kinds = material.kinds
    material.told("ways of asking")
    try:
        found = asked_otherwise(material.tables, factor)
    except UserError as error:
        yield escape(f"Ways of asking were not compared: {error.message}.")
        return
    table = found.table[found.table["reader_group"].isin(models)].reset_index(drop=True)
    varied = table[table["source"] != "item"]
    if varied.empty:
        yield escape(
            "Each model was asked in one wording, with one label map, in one order of choices and in one session: what of its "
            "answers hangs on these cannot be told."
        )
    if table.empty:
        return
    table = with_adjusted(table)
    fits = {
        group: climbed.fit
        for group, climbed in found.models.items()
        if group in models and climbed.fit is not None
    }
    reported += [ReportedFit(f"right answers of {group} by source", fit) for group, fit in fits.items()]
    name = f"asked_{factor}"
    yield Markup("[[table:{}]] splits the variation of right answers. ").format(name) + escape(
        " ".join([*_asking_sentences(table, kinds), *found.remarks])
    )
    yield asking_table(table, factor, kinds, name, tuple(fits.values()))
    steps = [
        f"{group}: {'; '.join(climbed.steps)}" for group, climbed in found.models.items() if group in fits
    ]
    if steps:
        yield escape(f"Models behind the standard deviations: {'. '.join(steps)}.")


def _asking_sentences(table: pd.DataFrame, kinds: dict[str, str]) -> Iterator[str]:
    for group, own in table.groupby("reader_group", sort=False):
        tested = own[own["p_adjusted"].notna()]
        found = tested[tested["p_adjusted"] < 0.05]
        who = named(str(group), kinds)
        for one in found.to_dict("records"):
            yield (
                f"Right answers of {who} differ by {one['source']} ({apa.number(one['range_points'], 1)} points between the "
                "extremes, "
                f"{apa.number(one['range_by_chance'], 1)} expected by chance, adjusted {apa.p_phrase(one['p_adjusted'])})."
            )
        rest = [str(one) for one in tested.loc[tested["p_adjusted"] >= 0.05, "source"]]
        if rest:
            yield (
                f"For {who} no range by {apa.listing(rest)} is significantly wider than by chance, which is no evidence that none "
                "matters."
            )
