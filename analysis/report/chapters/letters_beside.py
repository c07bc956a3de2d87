"""The main figure of a letter-position study with its table: people's cost of reading beside each model's costs, place by place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from analysis import apa
from analysis.figures.letters import (
    AXES,
    FEWEST_ITEMS,
    KIND_WORDS,
    PLACE_WORDS,
    letter_beside_figures,
    percent_added,
)
from analysis.letters.letter_costs import (
    AFTER,
    BITS,
    CHANGED,
    RIGHT,
    TIME,
    Beside,
    Cost,
    GroupCosts,
    Pair,
    beside,
    group_costs,
    surprisal_parts,
)
from analysis.readers import marked, named
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.blocks import Block
from analysis.report.chapters.letters_measured import MEASURES, RESAMPLES, Measured, rows_of
from analysis.report.filters import USED, filled
from analysis.tables import Tables

NAME = "letter_costs_beside"
TITLE = "What changed letters cost people and models"
WERE = {"transposition": "two letters were transposed", "substitution": "letters were substituted"}
SPLIT = "letter_surprisal_split"
SPLIT_TITLE = "Where changed letters raise models' surprisal"
OF_TEXTS = {one.name: one for one in MEASURES}


def costs_beside(tables: Tables, found: Sequence[Measured], kinds: dict[str, str]) -> list[Block]:
    """Return the figure, its words and its table; empty where people have no reading times or no model tells surprisal.

    Parameters
    ----------
    tables : Tables
    found : sequence of Measured
        What the chapter has measured already.
    kinds : dict of str to str
        Reader kind of each group.
    """
    of_models = {BITS: _of_text(tables, found, "surprisal")}
    times = _of_text(tables, found, "reading_time")
    if not times or not of_models[BITS]:
        return []
    for name, of_part in surprisal_parts(tables).items():
        of_models[name] = _of_text(of_part, (), "surprisal")
    pairs = beside(times, of_models, _of_text(tables, found, "correct"), tuple(WERE), tuple(PLACE_WORDS))
    if not pairs:
        return []
    note = _note(pairs)
    drawings = letter_beside_figures(NAME, pairs, TITLE, note)
    split = _split(pairs)
    return [
        Markup("<h3>People beside models</h3>"),
        _opening(pairs, kinds),
        *drawings,
        _table(pairs, note),
        *([] if split is None else [split]),
    ]


def _of_text(tables: Tables, found: Sequence[Measured], name: str) -> list[GroupCosts]:
    """Return the costs of whole texts by kind and place, and by distance too, also where the chapter took single words.

    None without intact ones.
    """
    known = next((one for one in found if one.measure.name == name), None)
    given = rows_of(tables, OF_TEXTS[name]) if known is None else known.given
    if given is None or not given.has_intact:
        return []
    study = str(tables.dictionary["study"])

    def by(*names: str) -> list[GroupCosts]:
        return group_costs(given, names, name, study, resamples=RESAMPLES)

    return [*(by("kind", "zone") if known is None else known.by["zone"]), *by("kind", "zone", "distance")]


def _opening(pairs: Sequence[Pair], kinds: dict[str, str]) -> Markup:
    """Say in which order places cost people and each model, dearest first."""
    told = [
        Markup(
            "What a change costs people in reading time stands beside what it costs models in surprisal and in right answers "
            f"([[figure:{NAME}]], [[table:{NAME}]])."
        )
    ]
    for kind in WERE:
        people = [(row.place, row.people[TIME].value) for row in pairs[0].together if row.kind == kind]
        if len(people) < 2:
            continue
        who = named(pairs[0].people, kinds)
        parts = [f"reading time of {who}: {_ordered(people)}"]
        for pair in pairs:
            own = [
                (row.place, row.model[BITS].value)
                for row in pair.together
                if row.kind == kind and BITS in row.model
            ]
            if len(own) > 1:
                parts.append(f"surprisal of {named(pair.model, kinds)}: {_ordered(own)}")
        done = WERE[kind]
        told.append(
            escape(f"Where {done}, places in the order of the estimates, dearest first: {'; '.join(parts)}.")
        )
    return Markup(" ").join(told)


def _ordered(costs: Sequence[tuple[str, float]]) -> str:
    return " > ".join(
        PLACE_WORDS[place].removesuffix(" letters") for place, _ in sorted(costs, key=lambda one: -one[1])
    )


def _table(pairs: Sequence[Pair], note: str) -> ApaTable:
    rows: list[tuple[str, ...]] = []
    who = marked(pairs[0].people, pairs[0].people_kind)
    for pair in pairs:
        rows.append(Head([marked(pair.model, "model")]))
        rows += [_row(row) for row in pair.rows]
    columns = (
        "",
        "Items",
        f"{who}: reading time added (%) [95% CI]",
        f"{who}: accuracy lost (points) [95% CI]",
        f"Model: {AXES[BITS][0][0].lower()}{AXES[BITS][0][1:]} [95% CI]",
        f"Model: {AXES[RIGHT][0][0].lower()}{AXES[RIGHT][0][1:]} [95% CI]",
    )
    measures = ("reading_time", "surprisal", "correct", "answer")
    return ApaTable(NAME, TITLE, columns, tuple(rows), note, _origin(measures))


def _split(pairs: Sequence[Pair]) -> ApaTable | None:
    """Lay out in which words surprisal rises; None where that of single words is not known."""
    rows: list[tuple[str, ...]] = []
    for pair in pairs:
        told = [row for row in pair.rows if CHANGED in row.model]
        if told:
            rows.append(Head([marked(pair.model, "model")]))
        for row in told:
            cells = (_cell(row.model.get(name), 2) for name in (BITS, CHANGED, AFTER))
            rows.append((_named(row), apa.count(row.model[CHANGED].items), *cells))
    if not rows:
        return None
    columns = (
        "",
        "Items",
        *(f"{name} [95% CI]" for name in ("Whole text", "Changed words", "Words after them")),
    )
    note = (
        "Surprisal added, in bits a text, against the same texts intact. Words after them are the intact ones behind the first "
        "changed word; those before it have the same surprisal in both. Intervals are 95% bootstraps over a model's items."
    )
    return ApaTable(SPLIT, SPLIT_TITLE, columns, tuple(rows), note, _origin(("surprisal",), of_words=True))


def _origin(measures: Sequence[str], *, of_words: bool = False) -> Origin:
    return Origin(
        columns=(*measures, "reader_group", "reader", "item_id"),
        where=(USED, *filled("item_id")),
        rows="of these the trials of items whose changed letters items.csv tells, and the same items intact"
        + ("; surprisal of words is summed over rows of regions.csv.gz" if of_words else ""),
        computed="means by level of what was done to the letters, less those intact; 2,000 resamples of participants and items",
        seed=("letters", "measure", "what tells the levels apart", "reader"),
        beside=("items.csv", *(["regions.csv.gz"] if of_words else [])),
    )


def _named(row: Beside) -> str:
    name = f"{KIND_WORDS[row.kind]}, {PLACE_WORDS[row.place].removesuffix(' letters')}"
    name += f", distance {row.distance}" if row.distance else ""
    return name[0].upper() + name[1:]


def _row(row: Beside) -> tuple[str, ...]:
    return (
        _named(row),
        apa.count(row.people[TIME].items),
        _cell(_scaled(row.people[TIME], percent_added), 1),
        _cell(_scaled(row.people.get(RIGHT), AXES[RIGHT][1]), 1),
        _cell(row.model.get(BITS), 2),
        _cell(_scaled(row.model.get(RIGHT), AXES[RIGHT][1]), 1),
    )


def _scaled(cost: Cost | None, scaled: Callable[[float], float]) -> Cost | None:
    if cost is None:
        return None
    return Cost(scaled(cost.value), scaled(cost.low), scaled(cost.high), cost.items)


def _cell(cost: Cost | None, decimals: int) -> str:
    if cost is None:
        return apa.MISSING
    value = apa.number(cost.value, decimals)
    ends = apa.interval(cost.low, cost.high, decimals)
    return value if ends == apa.MISSING or cost.items < FEWEST_ITEMS else apa.joined(value, ends)


def _note(pairs: Sequence[Pair]) -> str:
    note = (
        "Differences from the same texts intact. Surprisal is that of the whole text: of the changed words and of the intact words "
        "after them. Intervals are 95% bootstraps over participants and items, or over a model's items; failures count as wrong. "
    )
    if any(row.distance for pair in pairs for row in pair.rows):
        note += "Distance is the number of places between the two letters, 1 for neighbours."
    else:
        note += "Changes at all distances are taken together."
    if any(BITS not in row.model for pair in pairs for row in pair.rows):
        note += " Some models tell no surprisal."
    return note
