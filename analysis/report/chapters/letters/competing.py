"""Letter places, match scores and tokens as competing predictors: the part of the chapter on letter position."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis import apa
from analysis.figures import Drawing
from analysis.figures.letters import MOST_READERS, Explained, letter_weights
from analysis.letters.competing import NOTHING, Competing, competing_predictors
from analysis.names import upper_first
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of
from analysis.report.blocks import Block, ReportedFit
from analysis.report.chapters.letters.measures import READERS, Measured
from analysis.report.layout import Layout
from analysis.tables import Tables
from stimuli.errors import UserError

FOLDS = 4
MOST_ROWS = 4_000
"""Trials of a reader that models are fitted to: some eighty fits a reader and measure have to be done in half a minute."""
CLEAR = 2.0
"""Difference of AIC below which models are not distinguished."""
LAYOUT = Layout(Path(__file__).parent, folds=FOLDS, most_rows=MOST_ROWS, clear=CLEAR, NOTHING=NOTHING)
PREDICTORS = LAYOUT.names
"""Names of predictors in words, in the order in which figures show them."""
"""Names of predictors in words, in the order in which figures show them."""


@dataclass(frozen=True)
class Explanations:
    """Blocks of the chapter on competing predictors, with the models that they name."""

    blocks: tuple[Block, ...] = ()
    fits: tuple[ReportedFit, ...] = ()
    remarks: tuple[str, ...] = ()


def explanations(tables: Tables, found: Sequence[Measured], told: Callable[[str], None]) -> Explanations:
    """Let predictors compete for each reader on accuracy, on people's times and on models' surprisal."""
    blocks: list[Block] = []
    fits: list[ReportedFit] = []
    remarks: list[str] = []
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
        remarks += [f"{noun}, {one}" for one in done.remarks]
        if done.table.empty or done.table["name"].nunique() < 2:
            continue
        own = _fits(done, measure, noun)
        blocks += _of_measure(done, measure, noun, own)
        fits += own
    if blocks:
        blocks[:0] = LAYOUT.blocks("predictors_heading")
    return Explanations(tuple(blocks), tuple(fits), tuple(remarks))


def _measures(used: pd.DataFrame, found: Sequence[Measured]) -> list[tuple[str, str, bool | None]]:
    """Return what predictors compete for, with its noun and whether people or models alone have it."""
    is_person = used["reader_kind"].isin(PARTICIPANT_KINDS)
    asked: list[tuple[str, str, bool | None]] = []
    if any(one.measure.name == "correct" for one in found):
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
        [one.fit for one in fits],
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
    shown = sorted(
        there, key=lambda one: list(PREDICTORS).index(one) if one in PREDICTORS else len(PREDICTORS)
    )
    words = [PREDICTORS.get(one, one) for one in shown]
    groups = list(kinds)
    size = -(-len(groups) // -(-len(groups) // MOST_READERS))
    for number, start in enumerate(range(0, len(groups), size), 1):
        those = groups[start : start + size]
        explained = [
            Explained(
                str(row["reader_group"]),
                str(row["reader_kind"]),
                PREDICTORS.get(str(row["name"]), str(row["name"])),
                float(row["weight"]),
                *(1000 * float(row[end]) for end in ("gain", "gain_low", "gain_high")),
            )
            for row in done.table[done.table["reader_group"].isin(those)].to_dict("records")
        ]
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
    for one in remarks:
        head, _, rest = one.partition(": ")
        heads.setdefault(rest, []).append(head)
    unable: dict[tuple[str, ...], list[str]] = {}
    told = []
    for rest, own in heads.items():
        if rest.endswith(UNABLE):
            unable.setdefault(tuple(own), []).append(_label(rest.removesuffix(UNABLE)))
            continue
        first, is_twin, others = rest.partition(TWIN)
        if is_twin:
            second, on, tail = others.partition(" on these items")
            rest = f"{_label(first)}{TWIN}{_label(second)}{on}{tail}"
        told.append(_of_readers(own, rest))
    for readers, names in unable.items():
        why = f"{apa.listing(names)} cannot compete (unknown or constant for these items)."
        told.append(_of_readers(readers, why))
    return told


UNABLE = " cannot compete, because it is unknown for these items or does not vary."
TWIN = " is the same as "


def _of_readers(heads: Sequence[str], rest: str) -> str:
    names = {", human": ", people", ", simulated": ", simulated readers"}
    told = [
        next((head.removesuffix(old) + new for old, new in names.items() if head.endswith(old)), head)
        for head in heads
    ]
    return upper_first(f"{'; '.join(told)}: {rest}")
