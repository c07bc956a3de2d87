"""How much models' answers depend on how they were asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.families import with_adjusted
from analysis.measures.accuracy import asked
from analysis.mixed import Fit
from analysis.readers import marked, named
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.blocks import Block, Chapter, Material, ReportedFit, marks_of
from analysis.report.filters import JUDGED, MACHINES, filled
from analysis.report.parted import of_part, parts_by
from analysis.robustness import asked_otherwise
from stimuli.errors import UserError

ASKING = (
    "Variation of models' right answers was split by prompt wording, label map, order of choices, session, and item: by a logistic "
    "mixed model for sources with five levels or more, and by the range of means against 500 permutations within item and condition."
)


def write(material: Material) -> Chapter | None:
    """Write each model's variation by prompt variant, labels, order, session and item; None without a model."""
    reported: list[ReportedFit] = []
    blocks = tuple(_blocks(material, reported))
    if not blocks:
        return None
    marks = marks_of(tuple(material.kinds), material.kinds)
    return Chapter(
        "asking",
        "How models were asked",
        blocks,
        marks,
        methods=(escape(ASKING),),
        fits=tuple(reported),
    )


def _blocks(material: Material, reported: list[ReportedFit]) -> Iterator[Block]:
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


def asking_table(
    asked: pd.DataFrame, factor: str, kinds: dict[str, str], name: str, fits: Sequence[Fit]
) -> ApaTable:
    """Lay out how a model's answers vary with wording, labels, order, session and item."""
    rows: list[tuple[str, ...]] = []
    for group, own in asked.groupby("reader_group", sort=False):
        rows.append(Head([marked(str(group), kinds.get(str(group), "model"))]))
        for one in own.to_dict("records"):
            rows.append(
                (
                    str(one["source"]),
                    apa.count(one["levels"]),
                    apa.number(one["sd"]),
                    apa.number(100 * one["share"], 1),
                    apa.span(100 * one["lowest"], 100 * one["highest"], 1),
                    apa.number(one["range_points"], 1),
                    apa.number(one["range_by_chance"], 1),
                    apa.p_value(one["p_adjusted"]),
                )
            )
    note = (
        "SD in log odds, share in percent of the latent variance (π²/3 for the answer itself): from five levels up, none where "
        "the fit did "
        "not converge or ran away. Range: percentage points between the extreme levels' means, conditions weighted alike; by "
        "chance: the "
        "mean range when answers are dealt anew within item and condition (500 times); p of the range is adjusted by "
        "Benjamini–Hochberg "
        "over the table. Sources that name the same groups (one session a wording) share one SD. En dashes: not to be had."
    )
    columns = ("Source", "Levels", "SD", "Share", "Lowest to highest", "Range", "By chance", "p adjusted")
    origin = Origin(
        tuple(fits),
        (
            "correct",
            "response_status",
            factor,
            "prompt_variant",
            "label_map",
            "choice_order",
            "session_id",
            "item_id",
        ),
        where=(*JUDGED, MACHINES, *filled(factor, "item_id")),
        computed="SDs: random effects of the models; ranges: means by level, against answers dealt anew within item and condition "
        "500 times",
        seed=("asked otherwise", "reader", "source"),
    )
    title = f"Variation of models' right answers by how they were asked ({factor} held fixed)"
    return ApaTable(name, title, columns, tuple(rows), note, origin)
