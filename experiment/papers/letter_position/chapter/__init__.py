"""Letter position: what changed letters cost by place, kind and distance, and which letters and codes explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis import apa
from analysis.figures import Drawing
from analysis.letters import letter_changes
from analysis.letters.changes import INTACT, MIXED
from analysis.letters.letter_costs import (
    AFTER,
    BITS,
    CHANGED,
    RIGHT,
    TIME,
    CostInterval,
    GroupCosts,
    HumanModelCost,
    HumanModelPair,
    beside,
    group_costs,
    surprisal_parts,
)
from analysis.letters.predictor_comparison import NOTHING, Competing, competing_predictors
from analysis.names import upper_first
from analysis.plan import ALPHA
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter, Draft, Material, ReportedFit
from analysis.report.layout import ChapterLayout
from analysis.tables import Tables
from experiment.papers.letter_position.chapter.figures import (
    AXES,
    FEWEST_ITEMS,
    KIND_LOOKS,
    MOST_READERS,
    PLACE_WORDS,
    CurvePanel,
    Explained,
    letter_beside_figures,
    letter_curves,
    letter_map,
    letter_weights,
    pages,
    percent_added,
)
from experiment.papers.letter_position.chapter.measures import (
    MEASURES,
    READERS,
    RESAMPLES,
    ZONES,
    LetterCostMeasure,
    measured,
    panels,
    rows_of,
    zone_segment,
)
from stimuli.errors import UserError

FOLDS = 4
MOST_ROWS = 4_000
"""Trials of a reader that models are fitted to: some eighty fits a reader and measure have to be done in half a minute."""
CLEAR = 2.0  # difference of AIC below which models are not distinguished
LAYOUT = ChapterLayout(Path(__file__).parent, folds=FOLDS, most_rows=MOST_ROWS, clear=CLEAR, NOTHING=NOTHING)
PREDICTORS = LAYOUT.names  # names of predictors in words, in the order in which figures show them
TABLES = {
    "zone": "letter_zones",
    "place": "letter_places_start",
    "place_from_end": "letter_places_end",
    "distance": "letter_distances",
}
PAIRED_KINDS = ("transposition", "substitution")
OF_TEXTS = {one.name: one for one in MEASURES}


@dataclass
class Explanations(Draft):
    """Text on competing predictors, with notes on those that cannot be compared."""

    remarks: list[str] = field(default_factory=list)


def write(material: Material) -> Chapter | None:
    """Write what letters cost; None where no item says which of its letters were changed, or no one read such an item."""
    tables = material.tables
    if not tables.factors or tables.items.empty or "item_id" not in tables.items:
        return None
    try:
        changes = letter_changes(tables.items, list(tables.factors))
    except UserError:
        return None
    if not (changes["zone"] != INTACT).any():
        return None
    material.told("letter position")
    found, remarks = measured(tables, material.analyses)
    if not found:
        return None
    kinds = {one.group: one.kind for m in found for one in m.by["zone"]}
    explained = explanations(tables, found, material.told)
    placed = [one for one in found if _has_a_place(one)]
    if not placed and not explained.blocks:
        return None
    whole = Draft()
    if placed:
        whole.blocks = _places(tables, placed, kinds)
        for one in found:
            if one not in placed:
                few = LAYOUT.sentences("few_alike", noun=one.measure.noun, fewest=FEWEST_ITEMS)
                remarks.append(few.unescape())
        has_words = any(one.measure.name.endswith("_changed") for one in placed)
        passed = {"derived": bool(changes["derived"].any()), "mixed": bool((changes["zone"] == MIXED).any())}
        whole.methods.append(LAYOUT.sentences("methods", **passed, has_words=has_words))
        whole.sources += ["owen2007", "benjamini1995"]
    else:
        whole.blocks.append(LAYOUT.sentences("few_alike", noun="", fewest=FEWEST_ITEMS))
    whole.add(explained)
    left_out = gathered([*remarks, *explained.remarks])
    if left_out:
        whole.blocks += LAYOUT.blocks("left_out", remarks=left_out)
    return LAYOUT.chapter("letter-position", whole, kinds, kinds, whole.methods)


def _has_a_place(measure: LetterCostMeasure) -> bool:
    """Whether any reader met enough items with one kind of change at one place for an interval."""
    return any(many >= FEWEST_ITEMS for group in measure.by["zone"] for many in group.items_of.values())


def _places(tables: Tables, found: Sequence[LetterCostMeasure], kinds: dict[str, str]) -> list[Block]:
    """Write costs place by place: people and models together, curves, maps, tables, comparisons."""
    main = costs_beside(tables, found, kinds)
    has_intact = all(measure.given.has_intact for measure in found)
    curves = [
        letter_curves(
            "letter_curves" if number == 1 else f"letter_curves_{number}",
            own,
            *LAYOUT.caption("curves", has_intact=found[0].given.has_intact, **_on_curves(found, own)),
        )
        for number, own in enumerate(pages(panels(found)), 1)
    ]
    several = len({place for measure in found for place in measure.table("zone")["place"]}) > 1
    blocks = main + LAYOUT.blocks(
        "places",
        has_main=bool(main),
        has_intact=has_intact,
        why=next((measure.given.why_none for measure in found if not measure.given.has_intact), ""),
        several=several,
        curves=curves,
    )
    blocks += list(_maps(found))
    for by in TABLES:
        laid = _places_table(by, found)
        if laid is not None:
            blocks.append(laid)
    rows = [row for measure in found for row in _contrasts(measure)]
    if rows:
        laid = LAYOUT.table("letter_contrasts", rows, kinds=kinds, **_source(found))
        blocks += contrasts_in_words(found, kinds, laid)
    return blocks


def _on_curves(found: Sequence[LetterCostMeasure], own: Sequence[CurvePanel]) -> dict[str, Any]:
    """Return what the note of curves needs to know of them."""
    points = [point for panel in own for _, _, points in panel.segments for point in points]
    most = max((len(places) for panel in own for _, places, _ in panel.segments), default=0)
    return {
        "every_intact": all(measure.given.has_intact for measure in found),
        "by_position": any(len(panel.segments) > 1 for panel in own),
        "is_cut": most >= 10,
        "has_few": any(point.items < FEWEST_ITEMS for point in points),
        "is_simulated": any(panel.kind == "simulated" for panel in own),
        "fewest": FEWEST_ITEMS,
    }


def _zones(measure: LetterCostMeasure) -> pd.DataFrame:
    """Return costs at initial, internal, final and both outer letters, by kind of change."""
    table = measure.table("zone")
    return table[table["place"].isin(ZONES)]


def _maps(found: Sequence[LetterCostMeasure]) -> Iterator[Block]:
    """Draw place by kind for the measures in which both vary."""
    for measure in found:
        table = _zones(measure)
        if table["place"].nunique() < 2 or table["change"].nunique() < 2:
            continue
        groups = {str(g): str(k) for g, k in zip(table["reader_group"], table["reader_kind"], strict=True)}
        drawn = [
            CurvePanel(group, kind, measure.measure.noun, measure.axis, (zone_segment(table, group),))
            for group, kind in groups.items()
        ]
        axis = measure.axis.replace("\n", " ")
        caption = LAYOUT.caption("map", axis=axis, is_simulated="simulated" in groups.values())
        yield letter_map(f"letter_map_{measure.measure.name}", drawn, *caption)


def _source(found: Sequence[LetterCostMeasure]) -> dict[str, Any]:
    """Return which columns and files costs of letters come from."""
    names = [measure.measure.name for measure in found if not measure.measure.name.endswith("_changed")]
    return {"measures": [*names, "answer"], "of_words": len(names) < len(found)}


def _places_table(by: str, found: Sequence[LetterCostMeasure]) -> ApaTable | None:
    """Lay out costs by kind and place, a column a measure; None where there are none, or one place in a table of positions."""
    told = {measure.measure.name: table for measure in found if len(table := measure.table(by))}
    if not told:
        return None
    shown = [measure for measure in found if measure.measure.name in told]
    every = pd.concat([table.assign(measure=name) for name, table in told.items()], ignore_index=True)
    if by != "zone" and every["place"].nunique() < 2:
        return None
    order: dict[str, list[str]] = {
        "reader_group": list(dict.fromkeys(every["reader_group"])),
        "change": list(KIND_LOOKS),
        "place": list(ZONES) if by == "zone" else sorted(set(every["place"]), key=float),
    }
    every = every[every["change"].isin(order["change"]) & every["place"].isin(order["place"])]
    every = every.sort_values(list(order), key=lambda own: own.map(order[str(own.name)].index), kind="stable")
    nouns = {name: "words" if name.endswith("_changed") else "items" for name in told}
    rows = []
    for (group, change, place), own in every.groupby(list(order), sort=False):
        here = {row["measure"]: row for row in own.to_dict("records")}
        most = own.groupby(own["measure"].map(nouns))["items_of_level"].max()
        row = {"reader_group": group, "change": KIND_LOOKS[str(change)].label, "place": place, "here": here}
        rows.append(row | {f"most_{noun}": most.get(noun) for noun in ("items", "words")})
    return LAYOUT.table(
        TABLES[by],
        rows,
        shown=shown,
        kinds=dict(zip(every["reader_group"], every["reader_kind"], strict=True)),
        has_intact=found[0].given.has_intact,
        has_words=any(measure.measure.name.endswith("_changed") for measure in found),
        nouns=set(nouns.values()),
        cell=lambda row, decimals: _cell(
            CostInterval(row["cost"], row["low"], row["high"], row["items_of_level"]), decimals
        ),
        **_source(shown),
    )


def _contrasts(measure: LetterCostMeasure) -> list[dict[Any, Any]]:
    """Return contrasts as they are printed, and as sentences have them: the side that costs more first, where there are two."""
    found: list[dict[Any, Any]] = []
    by_reader = measure.contrasts.groupby("reader_group", sort=False) if len(measure.contrasts) else ()
    for row in (row for _, own in by_reader for row in own.to_dict("records")):
        raw = [float(row[end]) for end in ("difference", "low", "high")]
        is_slope = ": " in row["contrast"]
        turned = raw[0] < 0
        sided = [-raw[0], -raw[2], -raw[1]] if turned and not is_slope else raw
        shown, larger = (
            {
                name: measure.measure.shown(value)
                for name, value in zip(("estimate", "low", "high"), ends, strict=True)
            }
            for ends in (raw, sided)
        )
        sides = {"measure": measure.measure, "larger": larger, "turned": turned, "is_slope": is_slope}
        found.append({**row, **shown, **sides})
    return found


def contrasts_in_words(
    found: Sequence[LetterCostMeasure], kinds: dict[str, str], table: ApaTable | None = None
) -> list[Block]:
    """Write significant contrasts, and those without an interval, a paragraph a reader and measure, before their table."""
    paragraphs = []
    for measure in found:
        rows = _contrasts(measure)
        for group in dict.fromkeys(row["reader_group"] for row in rows):
            own = [row for row in rows if row["reader_group"] == group]
            told = [row for row in own if not float(row["p_adjusted"]) >= ALPHA]
            paragraphs.append(
                {"group": str(group), "one": measure, "rows": told, "left": len(own) - len(told)}
            )
    open_ = any(paragraph["left"] for paragraph in paragraphs)
    return LAYOUT.blocks("contrasts", paragraphs=paragraphs, is_open=open_, table=table, kinds=kinds)


def costs_beside(tables: Tables, found: Sequence[LetterCostMeasure], kinds: dict[str, str]) -> list[Block]:
    """Compare people's reading time with models' surprisal and accuracy, place by place; empty where either has none."""
    of_models = {BITS: _of_text(tables, found, "surprisal")}
    times = _of_text(tables, found, "reading_time")
    if not times or not of_models[BITS]:
        return []
    for name, of_part in surprisal_parts(tables).items():
        of_models[name] = _of_text(of_part, (), "surprisal")
    pairs = beside(times, of_models, _of_text(tables, found, "correct"), PAIRED_KINDS, tuple(PLACE_WORDS))
    if not pairs:
        return []
    rows = [{"reader_group": pair.model, **_paired(row)} for pair in pairs for row in pair.rows]
    values: dict[str, Any] = {
        "people": pairs[0].people,
        "kinds": {**kinds, pairs[0].people: pairs[0].people_kind},
        "cell": _cell,
    }
    table = LAYOUT.table(
        "letter_costs_beside",
        rows,
        has_distance=any(row["distance"] for row in rows),
        has_gap=any(row["bits"] is None for row in rows),
        **values,
    )
    split = [row for row in rows if row["changed"] is not None]
    orders = [(kind, order) for kind in PAIRED_KINDS if (order := _orders(pairs, kind))]
    return LAYOUT.blocks(
        "main",
        figures=letter_beside_figures(table.name, pairs, table.title, table.note),
        table=table,
        split=LAYOUT.table("letter_surprisal_split", split, **values) if split else None,
        orders=orders,
        **values,
    )


def _of_text(tables: Tables, found: Sequence[LetterCostMeasure], name: str) -> list[GroupCosts]:
    """Return costs of whole texts by kind and place, and by distance too; none without intact ones."""
    known = next((measure for measure in found if measure.measure.name == name), None)
    given = rows_of(tables, OF_TEXTS[name]) if known is None else known.given
    if given is None or not given.has_intact:
        return []
    study = str(tables.dictionary["study"])

    def by(*names: str) -> list[GroupCosts]:
        return group_costs(given, names, name, study, resamples=RESAMPLES)

    return [*(by("kind", "zone") if known is None else known.by["zone"]), *by("kind", "zone", "distance")]


def _orders(pairs: Sequence[HumanModelPair], kind: str) -> list[tuple[str, list[str]]]:
    """Return the places of one kind of change in the order of people's and each model's costs, the most costly first."""

    def ordered(costs: list[tuple[str, float]]) -> list[str]:
        return [
            PLACE_WORDS[place].removesuffix(" letters")
            for place, _ in sorted(costs, key=lambda cost: -cost[1])
        ]

    people = [(row.place, row.people[TIME].value) for row in pairs[0].together if row.kind == kind]
    if len(people) < 2:
        return []
    found = [(pairs[0].people, ordered(people))]
    for pair in pairs:
        own = [
            (row.place, row.model[BITS].value)
            for row in pair.together
            if row.kind == kind and BITS in row.model
        ]
        if len(own) > 1:
            found.append((pair.model, ordered(own)))
    return found


def _paired(row: HumanModelCost) -> dict[str, Any]:
    """Return the costs of one kind of change at one place: percent of people's time, points of accuracy, bits."""

    def scaled(cost: CostInterval | None, scale: Any) -> CostInterval | None:
        return (
            None
            if cost is None
            else CostInterval(scale(cost.value), scale(cost.low), scale(cost.high), cost.items)
        )

    points = AXES[RIGHT][1]
    return {
        "change": KIND_LOOKS[row.kind].label,
        "place": PLACE_WORDS[row.place].removesuffix(" letters"),
        "distance": row.distance,
        "time": scaled(row.people[TIME], percent_added),
        "lost": scaled(row.people.get(RIGHT), points),
        "bits": row.model.get(BITS),
        "model_lost": scaled(row.model.get(RIGHT), points),
        "changed": row.model.get(CHANGED),
        "after": row.model.get(AFTER),
    }


def _cell(cost: CostInterval | None, decimals: int) -> str:
    """Write a cost with its interval; alone if too few items support one."""
    if cost is None:
        return apa.MISSING
    value = apa.number(cost.value, decimals)
    ends = apa.interval(cost.low, cost.high, decimals)
    return value if ends == apa.MISSING or cost.items < FEWEST_ITEMS else apa.joined(value, ends)


def explanations(
    tables: Tables, found: Sequence[LetterCostMeasure], told: Callable[[str], None]
) -> Explanations:
    """Let predictors compete for each reader on accuracy, on people's times and on models' surprisal."""
    whole = Explanations()
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    kinds = kinds_of(used)
    for measure, noun, people in _measures(used, found):
        told(f"letter position: competing predictors of {noun}")
        groups = [
            group
            for group in group_order(used)
            if kinds[group] in READERS and (people is None or (kinds[group] in PARTICIPANT_KINDS) == people)
        ]
        if not groups:
            continue
        try:
            done = competing_predictors(tables, measure, folds=FOLDS, most_rows=MOST_ROWS, groups=groups)
        except (UserError, KeyError):
            continue
        whole.remarks += [f"{noun}, {remark}" for remark in done.remarks]
        if not done.table.empty and done.table["name"].nunique() > 1:
            fits = _fits(done, measure, noun)
            whole.blocks += _of_measure(done, measure, noun, fits)
            whole.fits += fits
    if whole.blocks:
        whole.blocks[:0] = LAYOUT.blocks("predictors_heading")
        whole.methods.append(LAYOUT.sentences("methods_of_predictors"))
        whole.sources += ["davis2010", "gomez2008"]
    return whole


def _measures(used: pd.DataFrame, found: Sequence[LetterCostMeasure]) -> list[tuple[str, str, bool | None]]:
    """Return what predictors compete for, with its noun and whether people or models alone have it."""
    is_person = used["reader_kind"].isin(PARTICIPANT_KINDS)
    asked: list[tuple[str, str, bool | None]] = []
    if any(measure.measure.name == "correct" for measure in found):
        asked.append(("correct", "accuracy", None))
    times = {"reading_time": "reading time", "rt": "response time"}
    there = [name for name in times if name in used and used.loc[is_person, name].notna().any()]
    asked += [(name, times[name], True) for name in there[:1]]
    if "surprisal" in used and used.loc[used["reader_kind"] == "model", "surprisal"].notna().any():
        asked.append(("surprisal", "surprisal", False))
    return asked


def _of_measure(done: Competing, measure: str, noun: str, fits: Sequence[ReportedFit]) -> list[Block]:
    table = done.table.rename(columns={"rows": "trials"})
    values: dict[str, Any] = {
        "noun": noun,
        "kinds": dict(zip(table["reader_group"], table["reader_kind"], strict=True)),
        "label": _label,
    }
    name = f"letter_predictors_{measure}"
    laid = LAYOUT.table(
        "letter_predictors",
        table.assign(text=[PREDICTORS.get(str(one), str(one)) for one in table["name"]]),
        name,
        [fit.fit for fit in fits],
        measure=measure,
        is_sound=bool(table["sound"].all()),
        **values,
    )
    readers = []
    for group, own in table.groupby("reader_group", sort=False):
        known = own[np.isfinite(own["aic"])].to_dict("records")
        best = known[0] if known else None
        base = [row["delta_aic"] for row in known if row["name"] == NOTHING]
        near = [_label(row["name"]) for row in [row for row in known if 0 <= row["delta_aic"] <= CLEAR][1:]]
        readers.append({"group": str(group), "best": best, "base": base, "near": near})
    figures = list(_figures(done, name, noun, values["kinds"]))
    return LAYOUT.blocks("predictors", table=laid, figures=figures, readers=readers, **values)


def _figures(done: Competing, name: str, noun: str, kinds: dict[str, str]) -> Iterator[Drawing]:
    there = dict.fromkeys(done.table["name"])
    ranks = {one: place for place, one in enumerate(PREDICTORS)}
    words = [PREDICTORS.get(one, one) for one in sorted(there, key=lambda one: ranks.get(one, len(ranks)))]
    groups = list(kinds)
    size = -(-len(groups) // -(-len(groups) // MOST_READERS))
    for number, start in enumerate(range(0, len(groups), size), 1):
        those = groups[start : start + size]
        own = done.table[done.table["reader_group"].isin(those)]
        ends = 1000 * own[["gain", "gain_low", "gain_high"]].astype(float)
        columns = (
            own["reader_group"],
            own["reader_kind"],
            own["name"].map(lambda one: PREDICTORS.get(one, one)),
        )
        explained = [Explained(*row) for row in zip(*columns, own["weight"], *ends.to_numpy().T, strict=True)]
        is_simulated = "simulated" in {kinds[group] for group in those}
        caption = LAYOUT.caption("weights", noun=noun, is_simulated=is_simulated)
        yield letter_weights(name if number == 1 else f"{name}_{number}", explained, words, *caption)


def _label(name: str) -> str:
    words = PREDICTORS.get(str(name), str(name))
    return words if words[:2].isupper() else words[0].lower() + words[1:]


def _fits(done: Competing, measure: str, noun: str) -> list[ReportedFit]:
    found = []
    for group, own in done.table.groupby("reader_group", sort=False):
        best = str(own["name"].iloc[0])
        for name in dict.fromkeys((best, NOTHING)):
            fit = done.fitted(str(group), name, measure)
            if fit is not None:
                found.append(ReportedFit(f"{noun} where letters are changed, {group}: {_label(name)}", fit))
    return found


def gathered(remarks: Sequence[str]) -> list[str]:
    """Report once what several readers or predictors have in common."""
    heads: dict[str, list[str]] = {}
    for remark in remarks:
        head, _, rest = remark.partition(": ")
        heads.setdefault(rest, []).append(head)
    shared: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    told = []
    for rest, own in heads.items():
        first, is_twin, others = rest.partition(TWIN)
        if rest.endswith(UNABLE):
            shared.setdefault(("", tuple(own)), []).append(_label(rest.removesuffix(UNABLE)))
        elif is_twin:
            shared.setdefault((_label(others.partition(" on these items")[0]), tuple(own)), []).append(
                _label(first)
            )
        else:
            told.append(_of_readers(own, rest))
    for (twin, readers), names in shared.items():
        be = "is" if len(names) == 1 else "are"
        why = f"{be} the same as {twin} on these items and {be} represented by it." if twin else COMPETES
        told.append(_of_readers(readers, f"{apa.listing(names)} {why}"))
    return told


UNABLE = " cannot compete, because it is unknown for these items or does not vary."
COMPETES = "cannot compete (unknown or constant for these items)."
TWIN = " is the same as "


def _of_readers(heads: Sequence[str], rest: str) -> str:
    names = {", human": ", people", ", simulated": ", simulated readers"}
    told = [
        next((head.removesuffix(old) + new for old, new in names.items() if head.endswith(old)), head)
        for head in heads
    ]
    return upper_first(f"{'; '.join(told)}: {rest}")
