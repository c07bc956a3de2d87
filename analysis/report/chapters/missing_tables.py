"""Tables of the chapter on exclusions and missing answers."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis import apa
from analysis.names import stem_of
from analysis.readers import marked
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.filters import JUDGED, PEOPLE, USED, filled, where
from analysis.results import FittedModel


def flow_table(steps: pd.DataFrame, timed: dict[str, pd.DataFrame]) -> ApaTable:
    """Lay out who and what is left after each step, and lost by it.

    Parameters
    ----------
    steps : pandas.DataFrame
        From :func:`analysis.preparing.flow_steps`.
    timed : dict
        From :func:`analysis.preparing.time_steps`, by the name of the time in words.
    """
    rows: list[tuple[str, ...]] = []
    for part, table in (("", steps), *timed.items()):
        for group, own in table.groupby("group", sort=False):
            name = marked(str(group), str(own["kind"].iloc[0]))
            rows.append(Head([f"{name}: {part}" if part else name]))
            rows.extend(_flow_rows(own))
    note = (
        "Readers are participants; a model is one reader. Lost is what a step took from what the step before it had left. A time "
        "that does not count leaves its answer in the models of accuracy. Steps that concern nobody of a reader are not shown."
    )
    columns = ("Step", "Readers", "lost", "Sessions", "lost", "Trials", "lost")
    origin = Origin(
        columns=(
            "excluded_reason",
            "reader_group",
            "reader",
            "session_id",
            "rt_excluded",
            "reading_time_excluded",
        ),
        where=(),
        computed="counts of readers, sessions and trials by reason, step by step",
    )
    return ApaTable(
        "exclusion_flow",
        "Readers, sessions and trials left after each step",
        columns,
        tuple(rows),
        note,
        origin,
    )


def _flow_rows(own: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    for one in own.to_dict("records"):
        first = one["step"] == 0
        if not first and not (one["trials_lost"] or one["sessions_lost"]):
            continue
        said = str(one["why"])
        cells = [said[0].upper() + said[1:] if first else f"left out: {said}"]
        for unit in ("readers", "sessions", "trials"):
            cells += [apa.count(one[unit]), "" if first else apa.count(one[f"{unit}_lost"])]
        yield tuple(cells)


def rules_table(held: pd.DataFrame) -> ApaTable:
    """Lay out how many sessions meet each declared rule, and what became of them.

    Parameters
    ----------
    held : pandas.DataFrame
        From :func:`analysis.preparing.sessions_against_rules`.
    """
    rows: list[tuple[str, ...]] = []
    for (sign, rule), own in held.groupby(["sign", "rule"], sort=False):
        known = own["meets"].notna()
        meets = own["meets"].fillna(False).astype(bool)
        excluded = own["excluded"].astype(bool)
        counts = [known.sum(), meets.sum(), (meets & excluded).sum(), (~meets & excluded).sum()]
        told = [apa.count(int(one)) for one in counts] if known.any() else [apa.MISSING] * 4
        rows.append((f"{str(sign).replace('_', ' ')}: {rule}", *told))
    note = (
        "The owner of a study decides; a rule only says which sessions to look at. En dashes: a sign made of key strokes, which "
        "the dashboard alone measures."
    )
    columns = ("Rule", "Sessions measured", "Meet it", "of these excluded", "Excluded without meeting it")
    origin = Origin(
        columns=("session_id", "excluded_reason", "is_practice", "is_attention_check", "correct", "rt"),
        where=(PEOPLE, where("is_practice", "FALSE")),
        computed="each declared rule (numbers.json, dictionary: exclude) applied to each session",
    )
    title = "Sessions held against the declared rules"
    return ApaTable("exclusion_rules", title, columns, tuple(rows), note, origin)


def ways_table(shares: pd.DataFrame, factor: str, kinds: dict[str, str]) -> ApaTable:
    """Lay out accuracy with failures as wrong, left out and at chance, reader by reader and condition by condition.

    Parameters
    ----------
    shares : pandas.DataFrame
        From :func:`analysis.measures.accuracy.accuracy` by the factor.
    """
    rows: list[tuple[str, ...]] = []
    for group, own in shares.groupby("reader_group", sort=False):
        rows.append(Head([marked(str(group), kinds.get(str(group), "model"))]))
        for one in own.to_dict("records"):
            cells = [str(one[factor]), apa.count(one["trials"]), apa.number(100 * one["missing_share"], 1)]
            for way in ("wrong", "valid_only", "chance"):
                cells.append(apa.number(100 * one[way], 1))
                cells.append(apa.interval(100 * one[f"{way}_low"], 100 * one[f"{way}_high"], 1))
            rows.append((*cells, apa.span(100 * one["lowest"], 100 * one["highest"], 1)))
    note = (
        "All in percent. The first way is the primary one, for people's timeouts and models' unreadable replies alike. Valid only "
        "conditions on an outcome. At chance: a failure counts as 1 / choices of its item, as 0 for typed answers. Bounds: every "
        "failure wrong, every failure right. Intervals are 95% percentile bootstraps (2,000 resamples) over participants, or "
        "over items for a "
        "model or baseline."
    )
    columns = (
        factor, "Trials", "Missing", "Failures wrong", "95% CI", "Valid only", "95% CI", "At chance", "95% CI", "Bounds",
    )  # fmt: skip
    origin = Origin(
        columns=("correct", "response_status", factor, "reader_group", "reader"),
        where=(*JUDGED, *filled(factor)),
        computed="shares of right answers with failures as 0, left out, and at 1 / choices of the item; 2,000 resamples of "
        "participants, or of items for a model",
        seed=("accuracy", "reader", "level"),
        beside=("items.csv",),
    )
    title = f"Accuracy by {factor} with failures as wrong, left out, and at chance"
    return ApaTable(f"three_ways_{stem_of(factor, None, ())}", title, columns, tuple(rows), note, origin)


def missing_table(counts: pd.DataFrame, factor: str, kinds: dict[str, str]) -> ApaTable:
    """Lay out how many answers are missing, and of which kind.

    Parameters
    ----------
    counts : pandas.DataFrame
        From :func:`analysis.measures.accuracy.missingness` by the factor.
    """
    fixed = ("reader_group", factor, "trials", "missing", "missing_share", "valid")
    statuses = [str(name) for name in counts.columns if name not in fixed]
    rows: list[tuple[str, ...]] = []
    for group, own in counts.groupby("reader_group", sort=False):
        rows.append(Head([marked(str(group), kinds.get(str(group), "model"))]))
        for one in own.to_dict("records"):
            cells = [str(one[factor]), apa.count(one["trials"]), apa.count(one["missing"])]
            cells += [apa.number(100 * one["missing_share"], 1), *(apa.count(one[name]) for name in statuses)]
            rows.append(tuple(cells))
    columns = (factor, "Trials", "Missing", "%", *statuses)
    origin = Origin(
        columns=("response_status", factor, "reader_group"),
        where=(USED, *filled("response_status", factor)),
        computed="counts by status, reader and level",
    )
    note = "Trials that asked for an answer. Missing is every answer that is not valid."
    return ApaTable(
        f"missing_{stem_of(factor, None, ())}",
        f"Missing answers by {factor} and reader",
        columns,
        tuple(rows),
        note,
        origin,
    )


def steps_table(model: FittedModel, name: str, title: str) -> ApaTable | None:
    """Lay out how a model's random structure was reduced; None where the first fit was reported."""
    if len(model.steps) < 2:
        return None
    rows = tuple(
        (apa.count(number), step.formula, step.verdict, apa.number(step.loglik))
        for number, step in enumerate(model.steps, 1)
    )
    columns = ("Step", "Formula", "Found and done", "Log-likelihood")
    origin = (
        None
        if model.source is None
        else Origin(
            (model.source,),
            computed="formulas and log-likelihoods of the models fitted before the reported one, to the same rows",
        )
    )
    return ApaTable(name, title, columns, rows, "The last one is reported.", origin)
