"""Cosine similarity of answers, where a study has scored them so."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from markupsafe import Markup

from analysis import apa
from analysis.measures.accuracy import GROUP
from analysis.measures.levels import Levels
from analysis.measures.resampling import bootstrap
from analysis.measures.stored_similarity import FILE, scored_similarities
from analysis.names import plain
from analysis.readers import kinds_of, marked
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.blocks import Block
from analysis.tables import Tables
from stimuli.seeds import stable_seed


def similarity_blocks(tables: Tables, does: Levels, study: str) -> Iterator[Block]:
    """Write the cosines of answers by one factor; nothing where none are stored."""
    kinds = kinds_of(tables.trials)
    stem = plain(does.factor)
    answers = scored_similarities(tables, does.factor)
    if len(answers):
        name = f"answer_similarity_{stem}"
        yield Markup(
            "[[table:{}]] has the cosine of answers by {}, as wrods score --similarity took it."
        ).format(name, does.factor)
        yield _answer_table(name, answers, does.factor, study, kinds)


def _answer_table(
    name: str, answers: pd.DataFrame, factor: str, study: str, kinds: dict[str, str]
) -> ApaTable:
    rows: list[tuple[str, ...]] = []
    for group, by_group in answers.groupby(GROUP, sort=False):
        rows.append(Head([marked(str(group), kinds[str(group)])]))
        for level, own in by_group.groupby(factor, sort=False):
            means = own.groupby(["set", "item_id"], dropna=False)["similarity"].mean().to_numpy(dtype=float)
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
    note = (
        f"Cosine of the text vectors (by {apa.listing(sorted(set(answers['use'])))}) of an answer and of what it is compared with: "
        f"{apa.listing(sorted(set(answers['compared_with'])))}. Intervals: bootstraps over items."
    )
    origin = Origin(
        columns=("similarity",),
        rows="answers of used trials, by reader and level",
        file=FILE,
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
