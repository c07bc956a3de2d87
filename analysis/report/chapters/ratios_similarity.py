"""Cosine similarity, where a study has stored what it is taken of."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from markupsafe import Markup

from analysis import apa
from analysis.inside.kept import LAST, MEAN, REGIONS
from analysis.inside.stored_similarity import MOST_PAIRS, state_similarities
from analysis.measures.accuracy import GROUP
from analysis.measures.levels import Levels
from analysis.measures.resampling import bootstrap
from analysis.measures.stored_similarity import scored_similarities
from analysis.names import plain
from analysis.readers import kinds_of, marked
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.blocks import Block
from analysis.report.filters import USED, filled, where
from analysis.tables import Tables
from stimuli.seeds import stable_seed

_TAKEN = {
    MEAN: "States are means over all tokens of a prompt.",
    REGIONS: "Where no such mean was kept, states are means over the words read.",
    LAST: "Where a run kept states of the last token alone, they are those.",
}


def similarity_blocks(tables: Tables, does: Levels, study: str) -> Iterator[Block]:
    """Write the cosines of hidden states and of answers by one factor; nothing where none are stored."""
    kinds = kinds_of(tables.trials)
    stem = plain(does.factor)
    states = state_similarities(tables, does, study)
    if len(states):
        name = f"state_similarity_{stem}"
        yield Markup(
            "[[table:{}]] has the cosine of hidden states of the same item at {} and at the other levels. States of one model "
            "lie close "
            "together whatever the text is: the centred cosine and that of pairs drawn at random say what the cosine is worth.{}"
        ).format(
            name,
            does.intact,
            f" {MOST_PAIRS:,} items were drawn by a stable hash."
            if (states["pairs"] < states["of"]).any()
            else "",
        )
        yield _state_table(name, states, does, kinds)
    answers = scored_similarities(tables.trials, does.factor)
    if len(answers):
        name = f"answer_similarity_{stem}"
        yield Markup("[[table:{}]] has the cosine of answers by {}, as they were scored.").format(
            name, does.factor
        )
        yield _answer_table(name, answers, does.factor, study, kinds)


def _state_table(name: str, states: pd.DataFrame, does: Levels, kinds: dict[str, str]) -> ApaTable:
    rows: list[tuple[str, ...]] = []
    for group, own in states.groupby(GROUP, sort=False):
        rows.append(Head([marked(str(group), kinds[str(group)])]))
        for one in own.to_dict("records"):
            rows.append(
                (
                    str(one[does.factor]),
                    apa.count(one["pairs"]),
                    str(one["layer"]),
                    apa.number(one["cosine"], 3),
                    apa.interval(one["low"], one["high"], 3),
                    apa.number(one["centred"], 3),
                    apa.number(one["unpaired"], 3),
                    apa.p_value(one["p"]),
                )
            )
    columns = (does.factor, "Items", "Layer", "Cosine", "95% CI", "Centred", "Unpaired", "p")
    note = (
        f"Against the same item at {does.intact}. Centred: the mean vector of both sides taken away first. Unpaired: mean "
        f"cosine of items "
        "paired at random; p = share of 1,000 such pairings with at least that mean, the observed one counted. Intervals: "
        "bootstraps over "
        "items. " + " ".join(_TAKEN[place] for place in _TAKEN if place in set(states["taken"]))
    )
    origin = Origin(
        columns=("work_key",),
        rows="rows of states/<run>/layer_NN.npy named by work_key",
        file="states/<run>/index.parquet",
    )
    return ApaTable(
        name, f"Cosine of hidden states by {does.factor} and model", columns, tuple(rows), note, origin
    )


def _answer_table(
    name: str, answers: pd.DataFrame, factor: str, study: str, kinds: dict[str, str]
) -> ApaTable:
    rows: list[tuple[str, ...]] = []
    for group, by_group in answers.groupby(GROUP, sort=False):
        rows.append(Head([marked(str(group), kinds[str(group)])]))
        for level, own in by_group.groupby(factor, sort=False):
            means = own.groupby(["set", "item_id"], dropna=False)["score"].mean().to_numpy(dtype=float)
            seed = stable_seed(study, "answer similarity", str(group), str(level))
            ends = bootstrap(means[:, None], lambda drawn: drawn[:, 0], seed)
            rows.append(
                (
                    str(level),
                    apa.count(len(means)),
                    apa.number(means.mean(), 3),
                    apa.interval(ends.low, ends.high, 3),
                )
            )
    note = "Cosine of text vectors of an answer and the one that it is compared with. Intervals: bootstraps over items."
    origin = Origin(
        columns=("score", "scorer", factor, "reader_group", "item_id"),
        where=(USED, where("scorer", "similarity"), *filled("score", factor)),
        computed="means by item; 2,000 resamples of items",
        seed=("answer similarity", "reader", "level"),
    )
    return ApaTable(
        name,
        f"Cosine of answers by {factor} and reader",
        (factor, "Items", "Cosine", "95% CI"),
        tuple(rows),
        note,
        origin,
    )
