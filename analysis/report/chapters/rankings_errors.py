"""Part of the chapter on rankings: whether error patterns tell readers apart, and whether readers err alike."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.mixed.adjustments import corrected
from analysis.rankings import ErrorVectors, Matching, error_consistency, error_vectors, matchings
from analysis.rankings.matching import CELLS
from analysis.readers import PARTICIPANT_KINDS, named, spoken
from analysis.report.apa_tables import ApaTable, Origin
from analysis.report.blocks import Block, Material
from analysis.report.chapters.fidelity_effects import in_italics
from analysis.report.filters import JUDGED, filled
from stimuli.errors import UserError

TOLD_IN_FULL = 8
METHODS = Markup(
    "Error patterns were compared between participants or sessions of a model as vectors of errors over items in conditions, centred "
    "on the mean of each item in each condition. Sessions (or items, of a reader with one session) were split into halves, each half "
    "was matched to the nearest half of the other kind, and the share that found its own reader was held against halves relabelled "
    "within lists. Error consistency is Cohen's kappa of right and wrong answers to the same items (Geirhos et al., 2020), with "
    "agreement taken within conditions and a delete-a-group jackknife interval over items."
)


OF_HALVES = (
    "errors by reader, item and level, less their means; random halves matched, and relabelled within lists"
)
OF_CONSISTENCY = "Cohen's kappa of errors by item and level; delete-a-group jackknife over items"


def origin_of(factor: str, computed: str, *seed: str) -> Origin:
    """Say which answers errors and ranks are made of."""
    return Origin(
        columns=("correct", "response_status", factor, "item_id", "reader_group", "reader", "session_id"),
        where=(*JUDGED, *filled("item_id", factor)),
        computed=computed,
        seed=seed,
    )


def errors_part(material: Material, factor: str, missing: list[str]) -> list[Block]:
    """Write both; what cannot be said is added to ``missing``."""
    material.told(f"error patterns by {factor}")
    try:
        vectors = error_vectors(material.tables, factor)
    except UserError as error:
        missing.append(f"Error patterns: {error.message}.")
        return []
    blocks = _told_apart(material, vectors, factor, missing)
    blocks += _consistency(material, vectors, factor, missing)
    drawn = [
        f"{apa.count(many)} {'sessions' if vectors.kinds[group] == 'model' else ''} of {spoken(group)}".replace(
            "  ", " "
        )
        for group, many in vectors.left_out.items()
    ]
    if drawn and blocks:
        blocks.append(
            Markup(
                escape(
                    f"Error patterns are compared pair by pair; left out, by a stable hash: {apa.listing(drawn)}."
                )
            )
        )
    return blocks


def _sides(vectors: ErrorVectors) -> list[tuple[str, list[str]]]:
    people = [(spoken(group), [group]) for group, kind in vectors.kinds.items() if kind in PARTICIPANT_KINDS]
    models = [group for group, kind in vectors.kinds.items() if kind == "model"]
    return people + ([("models", models)] if models else [])


def _told_apart(material: Material, vectors: ErrorVectors, factor: str, missing: list[str]) -> list[Block]:
    study = str(material.tables.dictionary["study"])
    found_all: list[tuple[str, Matching]] = []
    for who, groups in _sides(vectors):
        if who == "models" and len(groups) < 2:
            missing.append("Whether models can be told apart: there is one.")
            continue
        try:
            found = matchings(vectors, groups, study)
        except UserError as error:
            missing.append(f"Error patterns: {error.message}.")
            continue
        found_all += [(who, one) for one in found]
    if not found_all:
        return []
    adjusted = corrected(np.array([one.p for _, one in found_all]), "BH")
    rows = [_matching_row(who, one, float(p)) for (who, one), p in zip(found_all, adjusted, strict=True)]
    told = [_matching_told(who, one, float(p)) for (who, one), p in zip(found_all, adjusted, strict=True)]
    note = (
        "Halves of sessions answer the same items; halves of items are compared by their means in each condition. Pattern alone: "
        "the reader's own mean is taken away first, so that being better or worse alone identifies nobody. Chance is the mean over "
        "relabelled halves; p adjusted: Benjamini–Hochberg over the rows; smallest p is what so many readers allow."
    )
    columns = ("Readers", "n", "Halves of", "Pattern", "Found", "Chance", "p", "p adjusted", "Smallest p")
    laid = ApaTable(
        "told_apart",
        "Halves of readers that find their own reader by error pattern",
        columns,
        tuple(rows),
        note,
        origin_of(factor, OF_HALVES, "halves of readers", "readers"),
    )
    text = f"Whether error patterns tell readers apart ([[table:told_apart]]). {' '.join(told)}"
    heading = Markup("<h3>Do error patterns tell readers apart?</h3>")
    return [heading, in_italics(text), laid]


def _matching_row(who: str, one: Matching, adjusted: float) -> tuple[str, ...]:
    return (
        who.capitalize() if who[0].islower() else who,
        apa.count(one.readers),
        "sessions" if one.features == CELLS else "items",
        one.of,
        apa.percent(one.accuracy),
        apa.percent(one.chance),
        apa.p_value(one.p),
        apa.p_value(adjusted),
        apa.p_value(one.smallest_p),
    )


def _matching_told(who: str, one: Matching, adjusted: float) -> str:
    verdict = "are told apart" if adjusted < 0.05 else "are not told apart beyond chance"
    limit = "" if one.smallest_p < 0.05 else ", and so few could not reach .05"
    shares = f"{apa.percent(one.accuracy)} of halves found their own, {apa.percent(one.chance)} by chance"
    tested = f"{apa.p_phrase(adjusted)} adjusted{limit}"
    return f"{who.capitalize()} ({apa.count(one.readers)}) {verdict} by {one.of}: {shares}, {tested}."


def _consistency(material: Material, vectors: ErrorVectors, factor: str, missing: list[str]) -> list[Block]:
    found = error_consistency(vectors)
    if found.empty:
        missing.append("Error consistency: no two readers answered ten items in the same conditions.")
        return []
    rows = tuple(_consistency_row(row) for row in found.to_dict("records"))
    note = (
        "κ = agreement in being right or wrong beyond what accuracies in each condition make, mean over pairs (participants; sessions "
        "of models); 0 for readers who err independently. Highest κ: what the accuracies of a pair allow. Ceiling: people's κ with "
        "each other for people and a model; the root of the product of both models' κ with themselves for two models that answered "
        "more than once. A row of one model is how far it repeats its own errors. Intervals say what other items would give."
    )
    columns = (
        "Readers",
        "and",
        "Pairs",
        "Items",
        "Observed",
        "Expected",
        "κ",
        "95% CI",
        "Highest κ",
        "Ceiling",
    )
    title = "Error consistency of readers within conditions"
    laid = ApaTable("error_consistency", title, columns, rows, note, origin_of(factor, OF_CONSISTENCY))
    text = "Whether readers err on the same items beyond their accuracies ([[table:error_consistency]]): "
    text += _consistency_told(found, material.kinds)
    heading = Markup("<h3>Do readers err alike?</h3>")
    return [heading, in_italics(text), laid]


def _consistency_row(row: Mapping[Hashable, object]) -> tuple[str, ...]:
    values = pd.Series(row)
    return (
        spoken(str(row["one"])),
        spoken(str(row["other"])),
        apa.count(values["pairs"]),
        apa.count(values["cells"]),
        apa.percent(values["observed"]),
        apa.percent(values["expected"]),
        apa.correlation(values["kappa"]),
        apa.correlations(values["low"], values["high"]),
        apa.correlation(values["highest"]),
        apa.correlation(values["ceiling"]),
    )


def _consistency_told(found: pd.DataFrame, kinds: dict[str, str]) -> str:
    people = found["one"].map(lambda group: kinds[group] in PARTICIPANT_KINDS)
    shown = found[people] if people.any() else found
    told = []
    for row in shown.head(TOLD_IN_FULL).to_dict("records"):
        one, other = (named(str(row[side]), kinds) for side in ("one", "other"))
        who = f"{one} with each other" if row["one"] == row["other"] else f"{one} and {other}"
        top = f", ceiling {apa.correlation(row['ceiling'])}" if np.isfinite(row["ceiling"]) else ""
        told.append(
            f"{who}: κ = {apa.correlation(row['kappa'])}, 95% CI {apa.correlations(row['low'], row['high'])}{top}"
        )
    left = len(shown) - len(told)
    more = f"; {apa.counted(left, 'further pair')} in the table" if left > 0 else ""
    return "; ".join(told) + f"{more}."
