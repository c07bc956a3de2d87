"""Tables of hidden states by condition, of one model's patterns in several data sets, and of several models' patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from analysis import apa
from analysis.figures.inside import DIFFERENT
from analysis.inside.pattern_similarity import Cells, Halves, SeveralModels, TwoSets
from analysis.inside.representations import Represented
from analysis.mixed.inference import corrected
from analysis.report.apa_tables import ApaTable, Head, Origin

Array = NDArray[np.float64]

FILE = "states/<run>/index.parquet"
ROWS = "rows of states/<run>/layer_NN.npy named by work_key, of used trials of models"
PLACES = {
    "mean": "Means over all tokens of the prompt.",
    "regions": "Means over the words read, of which alone states were kept.",
    "last": "Of the prompt’s last token, of which alone states were kept; the paper takes means over tokens.",
}
BOTH_CENTRINGS = "Layers: each layer’s mean over conditions taken away; both: each condition’s mean over layers taken away too."


@dataclass(frozen=True, eq=False)
class Told:
    """What is told of one map.

    Attributes
    ----------
    title : str
    found : Represented
    raw, centred : Cells
    accuracy : ndarray, shape (conditions,)
    by_accuracy : tuple of (float, float, int)
        Spearman's correlation with accuracy over conditions, p, and the number of conditions.
    halves : tuple of Halves
        By both centrings.
    """

    title: str
    found: Represented
    raw: Cells
    centred: Cells
    accuracy: Array
    by_accuracy: tuple[float, float, int]
    halves: tuple[Halves, Halves]


def _origin(computed: str, *seed: str) -> Origin:
    return Origin(columns=("work_key",), rows=ROWS, file=FILE, computed=computed, seed=seed)


def condition_table(name: str, title: str, told: Sequence[Told]) -> ApaTable:
    """Lay out each model's cosines by condition, averaged over layers, with what different items have."""
    first = told[0].found
    has_answers = any(np.isfinite(one.accuracy).any() for one in told)
    rows: list[tuple[str, ...]] = []
    for one in told:
        rows.append(Head([one.title]))
        for place, condition in enumerate(one.found.pattern.conditions):
            cells = [condition, apa.count(int(one.raw.items[place]))]
            for part in (one.raw, one.centred):
                cells += [
                    apa.number(part.value[place, -1], 3),
                    apa.interval(part.low[place, -1], part.high[place, -1], 3),
                ]
            rows.append((*cells, *([apa.number(one.accuracy[place], 1)] if has_answers else [])))
        pattern = one.found.pattern
        apart = (float(pattern.apart.mean()), float(pattern.apart_centred.mean()))
        cells = [DIFFERENT, apa.count(len(pattern.items))]
        for value in apart:
            cells += [apa.number(value, 3), apa.MISSING]
        rows.append((*cells, *([apa.MISSING] if has_answers else [])))
    places = " ".join(dict.fromkeys(PLACES.get(one.found.position, "") for one in told))
    wording = sum(one.found.other_wording for one in told)
    note = (
        f"Cosine of the states of each item in a condition and at {first.intact}, means over items and layers. {places} Centred: "
        f"the mean state of all these trials is taken away first, layer by layer. "
        f"{DIFFERENT[0].upper()}{DIFFERENT[1:]}: all pairs of "
        f"different items at {first.intact}, the floor of both. Intervals: percentile bootstraps over items (2,000 resamples)."
        + (" % right: failures as wrong." if has_answers else "")
        + (
            f" {apa.count(wording)} of {apa.count(sum(one.found.pairs for one in told))} pairs were asked in different wordings."
            if wording
            else ""
        )
    )
    columns = (
        first.factor,
        "Items",
        "Cosine",
        "95% CI",
        "Centred",
        "95% CI",
        *(["% right"] if has_answers else []),
    )
    computed = "cosines with the same item intact, layer by layer; means over items; bootstraps over items"
    return ApaTable(
        name, title, columns, tuple(rows), note, _origin(computed, "representations", "reader", "set")
    )


def cell_table(name: str, title: str, told: Sequence[Told]) -> ApaTable:
    """Lay out every cell of the maps."""
    rows: list[tuple[str, ...]] = []
    for one in told:
        rows.append(Head([one.title]))
        for place, condition in enumerate(one.found.pattern.conditions):
            for layer in range(one.found.pattern.layers):
                cells = [condition, str(layer)]
                for part in (one.raw, one.centred):
                    at = (place, layer)
                    cells += [
                        apa.number(part.value[at], 3),
                        apa.interval(part.low[at], part.high[at], 3),
                    ]
                rows.append(tuple(cells))
        for layer, (raw, centred) in enumerate(
            zip(one.found.pattern.apart, one.found.pattern.apart_centred, strict=True)
        ):
            rows.append(
                (DIFFERENT, str(layer), apa.number(raw, 3), apa.MISSING, apa.number(centred, 3), apa.MISSING)
            )
    return ApaTable(
        name,
        title,
        (told[0].found.factor, "Layer", "Cosine", "95% CI", "Centred", "95% CI"),
        tuple(rows),
        "Layer 0 is what the embedding gives, the last one the last block before the final norm.",
        _origin("cosines of each layer, means and bootstraps over items", "representations", "reader", "set"),
        drawn=True,
    )


def halves_table(name: str, title: str, told: Sequence[Told]) -> ApaTable:
    """Lay out how reliable each map is, and whether it goes with accuracy."""
    rows = []
    for one in told:
        layers, both = one.halves
        rho, p, _ = one.by_accuracy
        rows.append(
            (
                one.title,
                apa.count(layers.items),
                apa.number(layers.cosine, 4),
                apa.correlation(layers.half),
                apa.correlation(layers.whole),
                apa.correlation(both.half),
                apa.correlation(both.whole),
                apa.correlation(rho),
                apa.p_value(p),
            )
        )
    least = min((one.by_accuracy[2] for one in told), default=0)
    return ApaTable(
        name,
        title,
        (
            "Model",
            "Items",
            "Cosine of halves",
            "Layers: halves",
            "Layers: whole",
            "Both: halves",
            "Both: whole",
            "With % right",
            "p",
        ),
        tuple(rows),
        "Maps of random halves of the items (200 splits): their cosine as vectors, as in the paper, and their correlation. "
        f"{BOTH_CENTRINGS} Whole: by Spearman and Brown’s formula. With % right: Spearman’s correlation of mean centred "
        f"cosine and accuracy "
        f"over conditions, one-sided p by permuting conditions ({least} conditions at least).",
        _origin("correlations of maps of halves of items", "halves of items", "reader", "set"),
    )


def sets_table(name: str, title: str, found: Sequence[TwoSets]) -> ApaTable:
    """Lay out how alike one model's maps in two data sets are: the paper's cosine beside centred correlations."""
    rows: list[tuple[str, ...]] = []
    for model in dict.fromkeys(one.model for one in found):
        rows.append(Head([model]))
        for one in (own for own in found if own.model == model):
            rows.append(
                (
                    f"{one.one}, {one.other}",
                    apa.count(one.found.conditions),
                    apa.count(one.found.layers),
                    apa.number(one.found.cosine, 4),
                    apa.correlation(one.found.r),
                    apa.p_value(one.found.p),
                    apa.correlation(one.found.r_both),
                    apa.p_value(one.found.p_both),
                )
            )
    least = max(one.found.least_p for one in found)
    orders = "all orders of the conditions" if all(one.found.exact for one in found) else "9,999 orders drawn"
    return ApaTable(
        name,
        title,
        ("Data sets", "Conditions", "Layers", "Cosine", "r, layers", "p", "r, both", "p"),
        tuple(rows),
        "Cosine: of the maps as vectors, as Mind Scramble (2024) gives it (.9994 of SQuAD and BoolQ); near 1 for any "
        "two maps, whose "
        f"cells are all of one sign and nearly the same size. r: correlation of centred maps. {BOTH_CENTRINGS} p: "
        f"one-sided, by permuting the "
        f"conditions of one map ({orders}); the smallest that there can be is 1/{apa.count(round(1 / least))}.",
        _origin("cosines and correlations of maps of means over items", "data sets", "reader", "both names"),
    )


def models_table(name: str, title: str, found: SeveralModels) -> ApaTable:
    """Lay out how alike the maps of every two models are, against how alike those of halves of one model's items are."""
    pairs = list(combinations(range(len(found.models)), 2))
    adjusted = corrected(np.array([found.layers.p[pair] for pair in pairs]), "holm")
    rows: list[tuple[str, ...]] = []
    for (one, other), p in zip(pairs, adjusted, strict=True):
        rows.append(
            (
                f"{found.models[one]}, {found.models[other]}",
                apa.number(found.cosine[one, other], 4),
                apa.correlation(found.r[one, other]),
                apa.correlation(found.r_both[one, other]),
                apa.correlation(found.layers.r[one, other]),
                apa.correlation(found.layers.r[one, one]),
                apa.correlation(found.layers.r[other, other]),
                apa.number(found.layers.corrected[one, other], 2),
                apa.number(found.both.corrected[one, other], 2),
                apa.p_value(found.layers.p[one, other]),
                apa.p_value(float(p)),
            )
        )
    depth = (
        f" Models of unlike depth are compared at {found.depths} relative depths, linear between layers."
        if found.interpolated
        else ""
    )
    return ApaTable(
        name,
        title,
        (
            "Models",
            "Cosine",
            "r, layers",
            "r, both",
            "Halves between",
            "Within first",
            "Within second",
            "Corrected",
            "Corrected, both",
            "p",
            "p adjusted",
        ),
        tuple(rows),
        f"Of {apa.count(found.items)} items that all models read in all {apa.count(found.conditions)} "
        f"conditions.{depth} Cosine: of whole maps as vectors, as Mind Scramble (2024) compares maps; r: correlation of the same "
        f"maps centred. {BOTH_CENTRINGS} Halves: mean correlation (layers) of the map of one half of the items with that of the "
        "other half, between two models and within one (200 splits). Corrected: between divided by the geometric mean of both "
        "within; 1 where two models differ by the noise of items alone. p: of as large a difference when items are exchanged "
        f"between the two models at random (999 times; not below {apa.p_value(found.layers.least_p)}); adjusted after Holm over "
        "the pairs.",
        _origin(
            "correlations of maps of halves of items; exchanges of items between models",
            "models",
            "factor",
            "set",
        ),
    )
