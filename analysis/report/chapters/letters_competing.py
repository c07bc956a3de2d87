"""Letter places, match scores and tokens as competing predictors: the part of the chapter on letter position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.figures.letters import MOST_READERS, Explained, letter_weights
from analysis.letters.competing import NOTHING, Competing, competing_predictors
from analysis.readers import PARTICIPANT_KINDS, group_order, named
from analysis.report.blocks import Block, ReportedFit
from analysis.report.chapters.letters_measured import READERS, Measured
from analysis.report.chapters.letters_tables import PREDICTORS, competing_table
from analysis.tables import Tables
from stimuli.errors import UserError

FOLDS = 4
MOST_ROWS = 4_000
"""Trials of a reader that models are fitted to: some eighty fits a reader and measure have to be done in half a minute."""
CLEAR = 2.0
"""Below this difference of AIC, models are told as not to be told apart."""


@dataclass(frozen=True)
class Explanations:
    """What stands in the chapter about competing predictors."""

    blocks: tuple[Block, ...] = ()
    methods: tuple[Markup, ...] = ()
    fits: tuple[ReportedFit, ...] = ()
    remarks: tuple[str, ...] = ()


def explanations(tables: Tables, found: Sequence[Measured], told: Callable[[str], None]) -> Explanations:
    """Let predictors compete for each reader on accuracy, on people's times and on models' surprisal.

    Parameters
    ----------
    tables : Tables
    found : sequence of Measured
        Which measures the study has.
    told : callable
        Called with a line before each slow step.
    """
    blocks: list[Block] = []
    fits: list[ReportedFit] = []
    remarks: list[str] = []
    for measure, noun, people in _measures(tables, found):
        told(f"letter position: competing predictors of {noun}")
        groups = [
            group
            for group, kind in _groups(tables).items()
            if kind in READERS and (people is None or (kind in PARTICIPANT_KINDS) == people)
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
    if not blocks:
        return Explanations(remarks=tuple(remarks))
    head = Markup("<h3>Competing predictors</h3>")
    return Explanations((head, *blocks), (METHOD,), tuple(fits), tuple(remarks))


METHOD = Markup(
    "For each reader, one model per predictor was fitted by maximum likelihood to trials with changed letters, all with word length, "
    "word frequency, and the same random intercepts. Predictors were letter place, kind of change, distance, orthographic match "
    "scores (spatial coding: Davis, 2010; overlap model: Gomez et al., 2008; and others), and changes in tokens. Models were compared "
    "by AIC, Akaike weights, and the gain in log-likelihood over length and frequency in held-out items "
    f"({FOLDS} folds; 95% bootstrap over items); each holds {apa.count(MOST_ROWS)} trials of a reader at most."
)


def _measures(tables: Tables, found: Sequence[Measured]) -> list[tuple[str, str, bool | None]]:
    names = {one.measure.name for one in found}
    asked: list[tuple[str, str, bool | None]] = [("correct", "accuracy", None)] if "correct" in names else []
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    for name, noun in (("reading_time", "reading time"), ("rt", "response time")):
        own = used["reader_kind"].isin(PARTICIPANT_KINDS)
        if name in used and used.loc[own, name].notna().any():
            asked.append((name, noun, True))
            break
    if "surprisal" in used and used.loc[used["reader_kind"] == "model", "surprisal"].notna().any():
        asked.append(("surprisal", "surprisal", False))
    return asked


def _groups(tables: Tables) -> dict[str, str]:
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    kinds = dict(zip(used["reader_group"].astype(str), used["reader_kind"].astype(str), strict=True))
    return {group: kinds[group] for group in group_order(used)} if len(used) else {}


def _of_measure(done: Competing, measure: str, noun: str, fits: Sequence[ReportedFit]) -> list[Block]:
    kinds = dict(zip(done.table["reader_group"], done.table["reader_kind"], strict=True))
    name = f"letter_predictors_{measure}"
    texts = [
        _in_words(str(group), own, noun, kinds)
        for group, own in done.table.groupby("reader_group", sort=False)
    ]
    first = Markup("[[table:{0}]] and [[figure:{0}]] hold predictors of {1}. ").format(name, noun)
    note = (
        "k = parameters; ΔAIC from the reader's best model; weights are Akaike's, of the models in the "
        "table. Held-out gain in nats per "
        "1,000 trials over length and frequency."
    )
    if not done.table["sound"].all():
        note += " * = a fit to all or a part of the trials did not converge."
    return [
        first + Markup(" ").join(texts),
        competing_table(name, noun, done, note, [one.fit for one in fits]),
        *_figures(done, name, noun, kinds),
    ]


def _figures(done: Competing, name: str, noun: str, kinds: dict[str, str]) -> list[Block]:
    shown = [one for one in PREDICTORS if (done.table["name"] == one).any()]
    shown += [one for one in dict.fromkeys(done.table["name"]) if one not in shown]
    words = [PREDICTORS.get(one, one) for one in shown]
    groups = list(kinds)
    made: list[Block] = []
    pieces = -(-len(groups) // MOST_READERS)
    size = -(-len(groups) // pieces)
    for number, start in enumerate(range(0, len(groups), size), 1):
        own = done.table[done.table["reader_group"].isin(groups[start : start + size])]
        explained = [
            Explained(
                str(row["reader_group"]),
                str(row["reader_kind"]),
                PREDICTORS.get(str(row["name"]), str(row["name"])),
                float(row["weight"]),
                *(1000 * float(row[end]) for end in ("gain", "gain_low", "gain_high")),
            )
            for row in own.to_dict("records")
        ]
        note = (
            "A: Akaike weights sum to 1 over the models of a reader. B: gain over length and frequency in items "
            "that the model was not "
            "fitted to, per 1,000 trials, with 95% bootstrap intervals over items; filled where the interval lies above 0."
        )
        if "simulated" in {kinds[group] for group in groups[start : start + size]}:
            note += " Simulated readers are not data."
        title = f"Competing predictors of {noun} where letters are changed"
        made.append(
            letter_weights(name if number == 1 else f"{name}_{number}", explained, words, title, note)
        )
    return made


def _in_words(group: str, own: pd.DataFrame, noun: str, kinds: dict[str, str]) -> Markup:
    who = named(group, kinds)
    known = own[np.isfinite(own["aic"])]
    if known.empty:
        return escape(f"No model of {noun} of {who} could be fitted.")
    best = known.iloc[0]
    label = _label(best["name"])
    near = [_label(one) for one in known.loc[known["delta_aic"].between(0, CLEAR), "name"][1:]]
    head = f"{noun[0].upper()}{noun[1:]} of {who} "
    if best["name"] == NOTHING:
        return escape(
            f"{head}was not explained better by any predictor than by length and frequency alone (by AIC)."
        )
    weight = apa.number(best["weight"], 2, leading_zero=False)
    base = known.loc[known["name"] == NOTHING, "delta_aic"]
    text = f"{head}was explained best by {label} (Akaike weight {weight}"
    text += (
        f"; ΔAIC of length and frequency alone {apa.number(float(base.iloc[0]), 1)})" if len(base) else ")"
    )
    if near:
        text += f", from which {apa.listing(near)} cannot be told apart (ΔAIC below {CLEAR:g})"
    low, high = 1000 * best["gain_low"], 1000 * best["gain_high"]
    gain = f"{apa.number(1000 * best['gain'], 1)} nats per 1,000 trials, 95% CI {apa.interval(low, high, 1)}"
    if not np.isfinite(low):
        return escape(f"{text}; what it gains in unseen items is not known.")
    verdict = (
        f"; it foretold unseen items better than length and frequency alone ({gain})."
        if low > 0
        else f"; in unseen items its gain over length and frequency is not sure ({gain})."
        if high > 0
        else f"; it foretold unseen items worse than length and frequency alone ({gain})."
    )
    return escape(text + verdict)


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
    """Say once what is said of several readers or predictors."""
    heads: dict[str, list[str]] = {}
    for one in remarks:
        head, _, rest = one.partition(": ")
        heads.setdefault(rest, []).append(head)
    unable: dict[tuple[str, ...], list[str]] = {}
    told = []
    for rest, own in heads.items():
        if rest.endswith(UNABLE):
            unable.setdefault(tuple(own), []).append(_label(rest.removesuffix(UNABLE)))
        else:
            told.append(_of_readers(own, _twins(rest)))
    for readers, names in unable.items():
        told.append(
            _of_readers(
                readers, f"{apa.listing(names)} cannot compete: not known of these items, or not varying."
            )
        )
    return told


UNABLE = " cannot compete: it is not known of these items or does not vary."
TWIN = " is the same as "


def _twins(rest: str) -> str:
    if TWIN not in rest:
        return rest
    first, _, others = rest.partition(TWIN)
    second, on, tail = others.partition(" on these items")
    return f"{_label(first)}{TWIN}{_label(second)}{on}{tail}"


def _of_readers(heads: Sequence[str], rest: str) -> str:
    names = {", human": ", people", ", simulated": ", simulated readers"}
    told = []
    for head in heads:
        own = next((head.removesuffix(old) + new for old, new in names.items() if head.endswith(old)), head)
        told.append(own)
    text = f"{'; '.join(told)}: {rest}"
    return text[0].upper() + text[1:]
