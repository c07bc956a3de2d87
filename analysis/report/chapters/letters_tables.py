"""Tables of the chapter on letter position: costs by place and kind, contrasts, competing explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis import apa
from analysis.figures.letters import FEWEST_ITEMS, KIND_LOOKS, KIND_WORDS
from analysis.letters.competing import Competing
from analysis.mixed import Fit
from analysis.readers import marked
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.chapters.letters_measured import ZONES, Measured
from analysis.report.filters import USED, filled

PREDICTORS = {
    "length and frequency": "Length and frequency alone",
    "letter place": "Letter place",
    "kind of change": "Kind of change",
    "distance": "Distance of the letters",
    "match_slot": "Slots",
    "match_open_bigram": "Open bigrams",
    "match_open_bigram_overlap": "Overlap open bigrams",
    "match_seriol": "SERIOL",
    "match_overlap_model": "Overlap model",
    "match_spatial": "Spatial coding",
    "match_spatial_length": "Spatial coding by length",
    "match_levenshtein": "Edit similarity",
    "levenshtein": "Edit distance",
    "osa": "Edit distance with transpositions",
    "shown_bigram_mean": "Bigram frequency",
    "token ratio": "Ratio of tokens",
    "token edit distance": "Token edit distance",
}
"""Names of explanations in words, in the order in which figures show them."""


def places_table(name: str, title: str, by: str, found: Sequence[Measured], note: str) -> ApaTable | None:
    """Lay out costs by kind and place, a column a measure; None where there are none."""
    told = {one.measure.name: one.table(by) for one in found}
    told = {name: table for name, table in told.items() if len(table)}
    if not told:
        return None
    shown = [one for one in found if one.measure.name in told]
    every = pd.concat(told.values(), ignore_index=True)
    counted = _counted(shown)
    columns = ["", *counted]
    columns += [f"{one.axis.replace(chr(10), ' ')} [95% CI]" for one in shown]
    rows: list[tuple[str, ...]] = []
    groups = every.drop_duplicates("reader_group")[["reader_group", "reader_kind"]]
    for group, kind in groups.itertuples(index=False):
        rows.append(Head([marked(str(group), str(kind))]))
        own = every[every["reader_group"] == group]
        for change in KIND_LOOKS:
            for place in _ordered(own.loc[own["change"] == change, "place"], by):
                cells = [f"{_headed(KIND_WORDS[change])}, {_place(place, by)}"]
                here = [
                    t[(t["reader_group"] == group) & (t["change"] == change) & (t["place"] == place)]
                    for t in told.values()
                ]
                for names in counted.values():
                    many = [
                        int(t["items_of_level"].iloc[0])
                        for t, m in zip(here, shown, strict=True)
                        if len(t) and m in names
                    ]
                    cells.append(apa.count(max(many)) if many else apa.MISSING)
                cells += [_cell(one, m.measure.decimals) for one, m in zip(here, shown, strict=True)]
                rows.append(tuple(cells))
    return ApaTable(name, title, tuple(columns), tuple(rows), note, _origin(shown), drawn=by != "zone")


def _counted(shown: Sequence[Measured]) -> dict[str, list[Measured]]:
    """Return what stands behind a cost, items or the single words in them, with the measures that count it."""
    found: dict[str, list[Measured]] = {}
    for noun, of_words in (("Items", False), ("Words", True)):
        own = [one for one in shown if one.measure.name.endswith("_changed") == of_words]
        found |= {noun: own} if own else {}
    return found


def _origin(shown: Sequence[Measured]) -> Origin:
    """Say which rows costs of letters are of."""
    of_words = [one for one in shown if one.measure.name.endswith("_changed")]
    names = [one.measure.name for one in shown if one not in of_words]
    rows = "of these the trials of items whose changed letters items.csv tells, and the same items intact"
    if of_words:
        rows += "; changed words and the same words intact are rows of regions.csv.gz"
    return Origin(
        columns=(*names, "answer", "reader_group", "reader", "item_id"),
        where=(USED, *filled("item_id")),
        rows=rows,
        computed="means by level of what was done to the letters, less those intact; 2,000 resamples of participants and items",
        seed=("letters", "measure", "what tells the levels apart", "reader"),
        beside=("items.csv", *(["regions.csv.gz"] if of_words else [])),
    )


def _cell(own: pd.DataFrame, decimals: int) -> str:
    if own.empty:
        return apa.MISSING
    row = own.iloc[0]
    value = apa.number(row["cost"], decimals)
    if row["items_of_level"] < FEWEST_ITEMS:
        return value
    ends = apa.interval(row["low"], row["high"], decimals)
    return value if ends == apa.MISSING else f"{value} {ends}"


def _headed(text: str) -> str:
    return text[0].upper() + text[1:]


def _ordered(places: pd.Series[str], by: str) -> list[str]:
    present = set(places)
    if by == "zone":
        return [zone for zone in ZONES if zone in present]
    return sorted(present, key=float)


def _place(place: str, by: str) -> str:
    if by == "zone":
        return {"outer": "first and last letter"}.get(place, place)
    if by == "distance":
        many = int(float(place))
        return "one letter" if many == 0 else f"{apa.counted(many, 'letter')} apart"
    return f"letter {place}" + (" from the end" if by == "place_from_end" else "")


def contrasts_table(name: str, found: Sequence[Measured]) -> ApaTable | None:
    """Lay out the contrasts of places, kinds and distance; None where there are none."""
    rows: list[tuple[str, ...]] = []
    for one in found:
        for group, own in one.contrasts.groupby("reader_group", sort=False):
            kind = str(own["reader_kind"].iloc[0])
            rows.append(Head([f"{marked(str(group), kind)}: {one.measure.noun} ({difference_unit(one)})"]))
            row: Any
            for row in own.itertuples():
                values = [one.measure.shown(v) for v in (row.difference, row.low, row.high)]
                rows.append(
                    (
                        _headed(str(row.contrast)),
                        apa.number(values[0], one.measure.decimals),
                        apa.interval(values[1], values[2], one.measure.decimals),
                        apa.p_value(row.p_adjusted),
                    )
                )
    if not rows:
        return None
    note = (
        "A difference above 0: the first costs more (more errors, more time, more bits). Places are compared "
        "within kinds of change and kinds within places, averaged over "
        "those that have both. p is that of the bootstrap (two-sided), adjusted by Benjamini–Hochberg over all rows of this table; "
        "the intervals agree with it (Benjamini & Yekutieli, 2005)."
    )
    columns = ("Difference", "Estimate", "95% CI", "p adjusted")
    title = "Letter places, kinds and distances of change compared"
    return ApaTable(name, title, columns, tuple(rows), note, _origin(found))


def weight_in_words(weight: float) -> str:
    """Write an Akaike weight: two decimals, without a zero in front."""
    return "< .01" if weight < 0.005 else apa.number(weight, 2, leading_zero=False)


def difference_unit(one: Measured) -> str:
    """Name the unit in which differences of a measure are told."""
    if one.measure.name == "correct":
        return "percentage points"
    return "percent" if one.measure.people else "bits"


def competing_table(name: str, noun: str, found: Competing, note: str, fits: Sequence[Fit]) -> ApaTable:
    """Lay out competing explanations, best first for each reader."""
    rows: list[tuple[str, ...]] = []
    for group, own in found.table.groupby("reader_group", sort=False):
        first = own.iloc[0]
        size = f"{apa.count(first['rows'])} trials, {apa.count(first['items'])} items"
        head = f"{marked(str(group), str(first['reader_kind']))} ({size})"
        rows.append(Head([head]))
        row: Any
        for row in own.itertuples():
            gain = [1000 * value for value in (row.gain, row.gain_low, row.gain_high)]
            told = f"{apa.number(gain[0], 1)} {apa.interval(gain[1], gain[2], 1)}"
            if row.name == "length and frequency":
                told = apa.MISSING
            label = PREDICTORS.get(str(row.name), str(row.name)) + ("" if row.sound else "*")
            rows.append(
                (
                    label,
                    apa.count(row.parameters),
                    apa.number(row.aic, 1),
                    apa.number(row.delta_aic, 1),
                    weight_in_words(row.weight),
                    told,
                )
            )
    columns = ("Predictor", "k", "AIC", "ΔAIC", "Weight", "Held-out gain [95% CI]")
    return ApaTable(
        name,
        f"Competing predictors of {noun} where letters are changed",
        columns,
        tuple(rows),
        note,
        _competing_from(name.removeprefix("letter_predictors_"), fits),
        drawn=True,
    )


def _competing_from(measure: str, fits: Sequence[Fit]) -> Origin:
    """Say which trials explanations compete on, and which models of them are kept."""
    return Origin(
        fits=tuple(fits),
        columns=(measure, "response_status", "answer", "reader_group", "reader", "item_id"),
        where=(USED, *filled("item_id")),
        rows="of these the trials of items whose changed letters items.csv tells",
        computed="models with each predictor (match scores and tokens of items.csv); models.R has the best; gain over items left out "
        "in turn, 2,000 resamples of items",
        seed=("competing", "measure", "reader"),
        beside=("items.csv",),
    )
