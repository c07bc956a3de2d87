"""Letter position: what changed letters cost by place, kind and distance, and which letters and codes explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis import apa
from analysis.costs.ratios import ShownIntervals
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
from analysis.results import as_percent
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
)
from experiment.papers.letter_position.chapter.measures import (
    KINDS_COMPARED,
    MEASURES,
    MOST_PLACES,
    PLACES_COMPARED,
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
FEW_AT_POSITIONS = (
    "too few items at single positions to show more than initial, internal, and final letters do"
)
MORE = {None: "more errors", True: "more time", False: "more bits"}
"""What a cost is, by whose measure it is."""
PAIRED_KINDS = ("transposition", "substitution")
OF_TEXTS = {measure.name: measure for measure in MEASURES}


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
    measures, remarks = measured(tables, material.analyses)
    if not measures:
        return None
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    all_kinds = kinds_of(used)
    kinds = {group: all_kinds[group] for group in group_order(used)}
    explained = explanations(tables, measures, material.told)
    # those of which any reader met enough items with one kind of change at one place for an interval
    counts = [[n for of in measure.by["zone"] for n in of.items_of.values()] for measure in measures]
    placed = [m for m, own in zip(measures, counts, strict=True) if max(own, default=0) >= FEWEST_ITEMS]
    if not placed and not explained.blocks:
        return None
    draft = Draft()
    if placed:
        draft.blocks = _places(tables, placed, kinds)
        for measure in measures:
            if measure not in placed:
                remark = LAYOUT.sentences("few_alike", noun=measure.measure.noun, fewest=FEWEST_ITEMS)
                remarks.append(remark.unescape())
        has_words = any(measure.measure.name.endswith("_changed") for measure in placed)
        costs = pd.concat([measure.table(by) for measure in placed for by in TABLES])
        passed = {
            "derived": bool(changes["derived"].any()),
            "mixed": bool((changes["zone"] == MIXED).any()),
            "zones": {zone for zone in ZONES if (costs["place"] == zone).any()},
            "changes": set(costs["change"]),
            "has_other_factors": len(tables.factors) > 1,
            "intervals": ShownIntervals.of(
                (row["reader_kind"], row["is_tested"], row["low"])
                for row in costs.to_dict("records")
                if row["items_of_level"] >= FEWEST_ITEMS
            ),
            "is_adjusted": any(
                measure.contrasts["p"].notna().any() for measure in measures if len(measure.contrasts)
            ),
        }
        draft.methods.append(LAYOUT.sentences("methods", **passed, has_words=has_words))
    else:
        draft.blocks.append(LAYOUT.sentences("few_alike", noun="", fewest=FEWEST_ITEMS))
    draft.add(explained)
    left_out = gathered([*remarks, *explained.remarks])
    if left_out:
        draft.blocks += LAYOUT.blocks("left_out", remarks=left_out)
    part = "" if placed else "changes_"
    shown = {group.group for measure in measures for group in measure.by["zone"]}
    return LAYOUT.chapter("letter-position", draft, shown, kinds, draft.methods, part)


def _places(tables: Tables, measures: Sequence[LetterCostMeasure], kinds: dict[str, str]) -> list[Block]:
    """Write costs place by place: people and models together, curves, maps, tables, comparisons."""
    main = costs_beside(tables, measures, kinds)
    has_intact = all(measure.given.has_intact for measure in measures)
    by_position = False
    curves = []
    for number, page in enumerate(pages(panels(measures)), 1):
        segments = {len(panel.segments) for panel in page}
        by_position |= max(segments) > 1
        # the name tells which tables have the numbers
        some = "letter_zones" if max(segments) < 2 else "letter_curves_zones"
        stem = "letter_curves" if min(segments) > 1 else some
        facts = {"has_intact": measures[0].given.has_intact, **_on_curves(measures, page)}
        name, caption = stem if number == 1 else f"{stem}_{number}", LAYOUT.caption("curves", **facts)
        curves.append(letter_curves(name, page, kinds, *caption))
    several = len({place for measure in measures for place in measure.table("zone")["place"]}) > 1
    blocks = main + LAYOUT.blocks(
        "places",
        has_main=bool(main),
        has_intact=has_intact,
        why=next((measure.given.why_none for measure in measures if not measure.given.has_intact), ""),
        several=several,
        curves=curves,
    )
    blocks += list(_maps(measures, kinds))
    for by in TABLES:
        table = _places_table(by, measures)
        if table is not None:
            is_untold = table.drawn and not by_position
            blocks.append(replace(table, withheld=FEW_AT_POSITIONS) if is_untold else table)
    rows = [row for measure in measures for row in _contrasts(measure)]
    if rows:
        places = pd.concat([measure.table("zone") for measure in measures])
        table = LAYOUT.table(
            "letter_contrasts",
            rows,
            kinds=kinds,
            costs=list(dict.fromkeys(MORE[row["measure"].people] for row in rows)),
            has_places=any(row["contrast"] in PLACES_COMPARED for row in rows),
            has_kinds=any(row["contrast"] == KINDS_COMPARED for row in rows),
            has_distance=any(row["is_slope"] for row in rows),
            has_tested=any(_is_tested(row) for row in rows),
            intervals=ShownIntervals.of((row["reader_kind"], _is_tested(row), row["low"]) for row in rows),
            has_untested=any(row["p"] == row["p"] for row in rows),
            has_several_kinds=places["change"].nunique() > 1,
            **_source(measures),
        )
        blocks += contrasts_in_words(measures, kinds, table)
    return blocks


def _is_tested(row: Mapping[Any, Any]) -> bool:
    """Whether a comparison has its p from the Results."""
    return bool(row["p"] != row["p"] and row["p_adjusted"] == row["p_adjusted"])


def _on_curves(measures: Sequence[LetterCostMeasure], page: Sequence[CurvePanel]) -> dict[str, Any]:
    """Return what the note of curves needs to know of them."""
    points = [point for panel in page for _, _, points in panel.segments for point in points]
    tables = [measure.table(by) for measure in measures for by in ("place", "place_from_end")]
    return {
        "every_intact": all(measure.given.has_intact for measure in measures),
        "by_position": any(len(panel.segments) > 1 for panel in page),
        "zones": {point.place for panel in page if len(panel.segments) == 1 for point in panel.points},
        "is_cut": any((table["place"].astype(float) > MOST_PLACES).any() for table in tables if len(table)),
        "has_few": any(point.items < FEWEST_ITEMS for point in points),
        "is_simulated": any(panel.kind == "simulated" for panel in page),
        "intervals": ShownIntervals.of(
            (panel.kind, point.is_tested, point.ends[0]) for panel in page for point in panel.points
        ),
        "fewest": FEWEST_ITEMS,
    }


def _maps(measures: Sequence[LetterCostMeasure], kinds: dict[str, str]) -> Iterator[Block]:
    """Draw place by kind for the measures in which both vary."""
    for measure in measures:
        table = measure.table("zone")
        table = table[table["place"].isin(ZONES)]
        if table["place"].nunique() < 2 or table["change"].nunique() < 2:
            continue
        groups = {str(g): str(k) for g, k in zip(table["reader_group"], table["reader_kind"], strict=True)}
        drawn = [
            CurvePanel(group, kind, measure.measure.noun, measure.axis, (zone_segment(table, group),))
            for group, kind in groups.items()
        ]
        axis = measure.axis.replace("\n", " ")
        caption = LAYOUT.caption(
            "map", axis=axis, has_intact=measure.given.has_intact, is_simulated="simulated" in groups.values()
        )
        yield letter_map(f"letter_map_{measure.measure.name}", drawn, kinds, *caption)


def _source(measures: Sequence[LetterCostMeasure]) -> dict[str, Any]:
    """Return which columns and files costs of letters come from."""
    names = [measure.measure.name for measure in measures if not measure.measure.name.endswith("_changed")]
    return {"measures": [*names, "answer"], "of_words": len(names) < len(measures)}


def _places_table(by: str, measures: Sequence[LetterCostMeasure]) -> ApaTable | None:
    """Lay out costs by kind and place, one column per measure; None where there are none, or one place in a table of positions."""
    tables = {measure.measure.name: table for measure in measures if len(table := measure.table(by))}
    if not tables:
        return None
    shown = [measure for measure in measures if measure.measure.name in tables]
    all_costs = pd.concat([table.assign(measure=name) for name, table in tables.items()], ignore_index=True)
    if by != "zone" and all_costs["place"].nunique() < 2:
        return None
    order: dict[str, list[str]] = {
        "reader_group": list(dict.fromkeys(all_costs["reader_group"])),
        "change": list(KIND_LOOKS),
        "place": list(ZONES) if by == "zone" else sorted(set(all_costs["place"]), key=float),
    }
    all_costs = all_costs[all_costs["change"].isin(order["change"]) & all_costs["place"].isin(order["place"])]
    all_costs = all_costs.sort_values(
        list(order), key=lambda column: column.map(order[str(column.name)].index), kind="stable"
    )
    nouns = {name: "words" if name.endswith("_changed") else "items" for name in tables}
    rows = []
    for (group, change, place), cell_rows in all_costs.groupby(list(order), sort=False):
        by_measure = {row["measure"]: row for row in cell_rows.to_dict("records")}
        most = cell_rows.groupby(cell_rows["measure"].map(nouns))["items_of_level"].max()
        row = {"reader_group": group, "change": KIND_LOOKS[str(change)].label, "place": place}
        at_most = {f"most_{noun}": most.get(noun) for noun in ("items", "words")}
        rows.append({**row, "here": by_measure, **at_most})
    return LAYOUT.table(
        TABLES[by],
        rows,
        shown=shown,
        kinds=dict(zip(all_costs["reader_group"], all_costs["reader_kind"], strict=True)),
        has_intact=measures[0].given.has_intact,
        has_words=any(measure.measure.name.endswith("_changed") for measure in measures),
        nouns=set(nouns.values()),
        intervals=ShownIntervals.of(
            (row["reader_kind"], row["is_tested"], row["low"])
            for row in all_costs.to_dict("records")
            if row["items_of_level"] >= FEWEST_ITEMS
        ),
        cell=lambda row, decimals: _cell(
            CostInterval(row["cost"], row["low"], row["high"], row["items_of_level"]), decimals
        ),
        **_source(shown),
    )


def _contrasts(measure: LetterCostMeasure) -> list[dict[Any, Any]]:
    """Return contrasts as they are printed, and as sentences have them: the side that costs more first, where there are two."""
    contrasts: list[dict[Any, Any]] = []
    by_reader = measure.contrasts.groupby("reader_group", sort=False) if len(measure.contrasts) else ()
    for row in (row for _, reader_rows in by_reader for row in reader_rows.to_dict("records")):
        raw = [float(row[end]) for end in ("difference", "low", "high")]
        is_slope = ": " in row["contrast"]
        turned = raw[0] < 0
        sided = [-raw[0], -raw[2], -raw[1]] if turned and not is_slope else raw
        shown, larger = (
            dict(zip(("estimate", "low", "high"), map(measure.measure.shown, ends), strict=True))
            for ends in (raw, sided)
        )
        sides = {"measure": measure.measure, "larger": larger, "turned": turned, "is_slope": is_slope}
        contrasts.append({**row, **shown, **sides})
    return contrasts


def contrasts_in_words(
    measures: Sequence[LetterCostMeasure], kinds: dict[str, str], table: ApaTable | None = None
) -> list[Block]:
    """Write significant contrasts, and those without an interval, one paragraph per reader and measure, before their table."""
    paragraphs = []
    for measure in measures:
        rows = _contrasts(measure)
        for group in dict.fromkeys(row["reader_group"] for row in rows):
            group_rows = [row for row in rows if row["reader_group"] == group]
            reported = [row for row in group_rows if not float(row["p_adjusted"]) >= ALPHA]
            left = len(group_rows) - len(reported)
            paragraphs.append({"group": str(group), "one": measure, "rows": reported, "left": left})
    return LAYOUT.blocks("contrasts", paragraphs=paragraphs, table=table, kinds=kinds)


def costs_beside(tables: Tables, measures: Sequence[LetterCostMeasure], kinds: dict[str, str]) -> list[Block]:
    """Compare people's reading time with models' surprisal and accuracy, place by place; empty where either has none."""
    of_models = {BITS: _of_text(tables, measures, "surprisal")}
    times = _of_text(tables, measures, "reading_time")
    if not times or not of_models[BITS]:
        return []
    for name, of_part in surprisal_parts(tables).items():
        of_models[name] = _of_text(of_part, (), "surprisal")
    pairs = beside(times, of_models, _of_text(tables, measures, "correct"), PAIRED_KINDS, tuple(PLACE_WORDS))
    if not pairs:
        return []
    rows = [{"reader_group": pair.model, **_paired(row)} for pair in pairs for row in pair.rows]
    values: dict[str, Any] = {
        "people": pairs[0].people,
        "kinds": {**kinds, pairs[0].people: pairs[0].people_kind},
        "cell": _cell,
        "fewest": FEWEST_ITEMS,
    }

    def has_bare(rows: Sequence[Mapping[str, Any]], *names: str) -> bool:
        return any("[" not in _cell(row[name], 2) for row in rows for name in names if row[name] is not None)

    def intervals(*names: str) -> ShownIntervals:
        return ShownIntervals.of(
            (kind, cost.is_tested, cost.low)
            for pair in pairs
            for row in pair.rows
            for kind, costs in ((pair.people_kind, row.people), ("model", row.model))
            for name, cost in costs.items()
            if name in names and cost.items >= FEWEST_ITEMS
        )

    table = LAYOUT.table(
        "letter_costs_beside",
        rows,
        has_distance=any(row["distance"] for row in rows),
        has_gap=any(row["bits"] is None for row in rows),
        has_bare=has_bare(rows, "time", "lost", "bits", "model_lost"),
        intervals=intervals(TIME, RIGHT, BITS),
        **values,
    )
    parted = None
    if split := [row for row in rows if row["changed"] is not None]:
        said: dict[str, Any] = {"intervals": intervals(BITS, CHANGED, AFTER), **values}
        is_bare = has_bare(split, "bits", "changed", "after")
        parted = LAYOUT.table("letter_surprisal_split", split, has_bare=is_bare, **said)
    orders = [(kind, order) for kind in PAIRED_KINDS if (order := _orders(pairs, kind))]
    caption = LAYOUT.caption("beside", is_simulated=pairs[0].people_kind == "simulated")
    figures = letter_beside_figures(table.name, pairs, values["kinds"], *caption)
    return LAYOUT.blocks("main", figures=figures, table=table, split=parted, orders=orders, **values)


def _of_text(tables: Tables, measures: Sequence[LetterCostMeasure], name: str) -> list[GroupCosts]:
    """Return costs of whole texts by kind and place, and by distance too; none without intact ones."""
    existing = next((measure for measure in measures if measure.measure.name == name), None)
    readings = rows_of(tables, OF_TEXTS[name]) if existing is None else existing.given
    if readings is None or not readings.has_intact:
        return []
    study = str(tables.dictionary["study"])

    def by(*names: str) -> list[GroupCosts]:
        return group_costs(readings, names, name, study, resamples=RESAMPLES)

    by_zone = by("kind", "zone") if existing is None else existing.by["zone"]
    return [*by_zone, *by("kind", "zone", "distance")]


def _orders(pairs: Sequence[HumanModelPair], kind: str) -> list[tuple[str, list[str]]]:
    """Return the places of one kind of change in the order of people's and each model's costs, the most costly first."""
    people = [(row.place, row.people[TIME].value) for row in pairs[0].together if row.kind == kind]
    if len(people) < 2:
        return []
    costs_of = [(pairs[0].people, people)]
    for pair in pairs:
        rows = [row for row in pair.together if row.kind == kind and BITS in row.model]
        costs_of.append((pair.model, [(row.place, row.model[BITS].value) for row in rows]))
    ranked = [(name, sorted(costs, key=lambda cost: -cost[1])) for name, costs in costs_of if len(costs) > 1]
    return [(name, [PLACE_WORDS[at].removesuffix(" letters") for at, _ in costs]) for name, costs in ranked]


def _paired(row: HumanModelCost) -> dict[str, Any]:
    """Return the costs of one kind of change at one place: percent of people's time, points of accuracy, bits."""

    def scaled(cost: CostInterval | None, scale: Any) -> CostInterval | None:
        if cost is None:
            return None
        return replace(cost, value=scale(cost.value), low=scale(cost.low), high=scale(cost.high))

    points = AXES[RIGHT][1]
    return {
        "change": KIND_LOOKS[row.kind].label,
        "place": PLACE_WORDS[row.place].removesuffix(" letters"),
        "distance": row.distance,
        "time": scaled(row.people[TIME], as_percent),
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
    tables: Tables, measures: Sequence[LetterCostMeasure], progress: Callable[[str], None]
) -> Explanations:
    """Let predictors compete for each reader on accuracy, on people's times and on models' surprisal."""
    explained = Explanations()
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    all_kinds = kinds_of(used)
    kinds = {group: all_kinds[group] for group in group_order(used)}
    for measure, noun, people in _measures(used, measures):
        progress(f"letter position: competing predictors of {noun}")
        groups = [
            group
            for group in kinds
            if kinds[group] in READERS and (people is None or (kinds[group] in PARTICIPANT_KINDS) == people)
        ]
        if not groups:
            continue
        try:
            done = competing_predictors(tables, measure, folds=FOLDS, most_rows=MOST_ROWS, groups=groups)
        except (UserError, KeyError):
            continue
        explained.remarks += [f"{noun}, {remark}" for remark in done.remarks]
        if not done.table.empty and done.table["name"].nunique() > 1:
            fits = _fits(done, measure, noun)
            explained.blocks += _of_measure(done, measure, noun, fits, kinds)
            explained.fits += fits
    if explained.blocks:
        explained.blocks[:0] = LAYOUT.blocks("predictors_heading")
        explained.methods.append(LAYOUT.sentences("methods_of_predictors"))
    return explained


def _measures(
    used: pd.DataFrame, measures: Sequence[LetterCostMeasure]
) -> list[tuple[str, str, bool | None]]:
    """Return what predictors compete for, with its noun and whether people or models alone have it."""
    is_person = used["reader_kind"].isin(PARTICIPANT_KINDS)
    outcomes: list[tuple[str, str, bool | None]] = []
    if any(measure.measure.name == "correct" for measure in measures):
        outcomes.append(("correct", "accuracy", None))
    times = {"reading_time": "reading time", "rt": "response time"}
    times_present = [name for name in times if name in used and used.loc[is_person, name].notna().any()]
    outcomes += [(name, times[name], True) for name in times_present[:1]]
    if "surprisal" in used and used.loc[used["reader_kind"] == "model", "surprisal"].notna().any():
        outcomes.append(("surprisal", "surprisal", False))
    return outcomes


def _of_measure(
    done: Competing, measure: str, noun: str, fits: Sequence[ReportedFit], kinds: dict[str, str]
) -> list[Block]:
    table = done.table.rename(columns={"rows": "trials"})
    values: dict[str, Any] = {"noun": noun, "kinds": kinds, "label": _label}
    name = f"letter_predictors_{measure}"
    predictors_table = LAYOUT.table(
        "letter_predictors",
        table.assign(text=[PREDICTORS.get(str(predictor), str(predictor)) for predictor in table["name"]]),
        name,
        [fit.fit for fit in fits],
        measure=measure,
        is_sound=bool(table["sound"].all()),
        **values,
    )
    readers = []
    for group, group_rows in table.groupby("reader_group", sort=False):
        estimable = group_rows[np.isfinite(group_rows["aic"])].to_dict("records")
        best = estimable[0] if estimable else None
        base = [row["delta_aic"] for row in estimable if row["name"] == NOTHING]
        close = [
            _label(row["name"]) for row in [row for row in estimable if 0 <= row["delta_aic"] <= CLEAR][1:]
        ]
        readers.append({"group": str(group), "best": best, "base": base, "near": close})
    figures = list(_figures(done, name, noun, kinds))
    return LAYOUT.blocks("predictors", table=predictors_table, figures=figures, readers=readers, **values)


def _figures(done: Competing, name: str, noun: str, kinds: dict[str, str]) -> Iterator[Drawing]:
    names = dict.fromkeys(done.table["name"])
    ranks = {predictor: rank for rank, predictor in enumerate(PREDICTORS)}
    words = [
        PREDICTORS.get(predictor, predictor)
        for predictor in sorted(names, key=lambda predictor: ranks.get(predictor, len(ranks)))
    ]
    groups = list(dict.fromkeys(map(str, done.table["reader_group"])))
    size = -(-len(groups) // -(-len(groups) // MOST_READERS))
    for number, start in enumerate(range(0, len(groups), size), 1):
        page_groups = groups[start : start + size]
        page_rows = done.table[done.table["reader_group"].isin(page_groups)]
        ends = 1000 * page_rows[["gain", "gain_low", "gain_high"]].astype(float)
        columns = (
            page_rows["reader_group"],
            page_rows["name"].map(lambda predictor: PREDICTORS.get(predictor, predictor)),
        )
        explained = [
            Explained(*row) for row in zip(*columns, page_rows["weight"], *ends.to_numpy().T, strict=True)
        ]
        is_simulated = "simulated" in {kinds[group] for group in page_groups}
        caption = LAYOUT.caption("weights", noun=noun, is_simulated=is_simulated)
        yield letter_weights(name if number == 1 else f"{name}_{number}", explained, words, kinds, *caption)


def _label(name: str) -> str:
    words = PREDICTORS.get(str(name), str(name))
    return words if words[:2].isupper() else words[0].lower() + words[1:]


def _fits(done: Competing, measure: str, noun: str) -> list[ReportedFit]:
    fits = []
    for group, group_rows in done.table.groupby("reader_group", sort=False):
        best = str(group_rows["name"].iloc[0])
        for name in dict.fromkeys((best, NOTHING)):
            fit = done.fitted(str(group), name, measure)
            if fit is not None:
                fits.append(ReportedFit(f"{noun} where letters are changed, {group}: {_label(name)}", fit))
    return fits


def gathered(remarks: Sequence[str]) -> list[str]:
    """Report once what several readers or predictors have in common."""
    heads: dict[str, list[str]] = {}
    for remark in remarks:
        head, _, message = remark.partition(": ")
        heads.setdefault(message, []).append(head)
    shared: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    texts = []
    for message, remark_heads in heads.items():
        first, is_twin, others = message.partition(TWIN)
        if message.endswith(UNABLE):
            shared.setdefault(("", tuple(remark_heads)), []).append(_label(message.removesuffix(UNABLE)))
        elif is_twin:
            shared.setdefault(
                (_label(others.partition(" on these items")[0]), tuple(remark_heads)), []
            ).append(_label(first))
        else:
            texts.append(_of_readers(remark_heads, message))
    for (twin, readers), names in shared.items():
        be = "is" if len(names) == 1 else "are"
        why = f"{be} the same as {twin} on these items and {be} represented by it." if twin else COMPETES
        texts.append(_of_readers(readers, f"{apa.listing(names)} {why}"))
    return texts


UNABLE = " cannot compete, because it is unknown for these items or does not vary."
COMPETES = "cannot compete (unknown or constant for these items)."
TWIN = " is the same as "


def _of_readers(heads: Sequence[str], message: str) -> str:
    names = {", human": ", people", ", simulated": ", simulated readers"}
    readers = [
        next((head.removesuffix(old) + new for old, new in names.items() if head.endswith(old)), head)
        for head in heads
    ]
    return upper_first(f"{'; '.join(readers)}: {message}")
