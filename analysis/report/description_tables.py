"""Tables that describe: who and what is analysed, means by condition, failed answers, effects put in and recovered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from analysis import apa
from analysis.descriptives import Cell, participants_intervals
from analysis.intervals import OF_SHARES
from analysis.mixed import Fit
from analysis.plan import MEASURES, RATING, RECOVERED, Measure
from analysis.readers import PARTICIPANT_KINDS, marked
from analysis.recovery_check import Recovered
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.filters import JUDGED, NOT_UNJUDGED, PEOPLE, USED, filled, timed_well


def flow_table(flow: pd.DataFrame, kinds: dict[str, str]) -> ApaTable:
    """Lay out who and what is analysed and why the rest is not."""
    columns = ("", *(marked(group, kinds.get(group, "model")) for group in flow.columns))
    rows = tuple(
        (str(stage), *(apa.count(value) for value in values)) for stage, *values in flow.itertuples()
    )
    note = (
        "Exclusions were blind to condition and answer; excluded trials stay in the data file with their reason. "
        "Exclusions of a single analysis stand under its model."
    )
    origin = Origin(
        columns=("reader_kind", "reader", "session_id", "excluded_reason", "response_status"),
        where=(),
        computed="counts by reason and reader; sessions without a trial are those of readers in numbers.json (dictionary)",
    )
    return ApaTable("flow", "Sessions and trials, recorded and analysed", columns, rows, note, origin)


def descriptive_table(cells: Sequence[Cell], measure: Measure, factor: str) -> ApaTable:
    """Lay out means, spreads and intervals of every reader group in every condition."""
    rows: list[tuple[str, ...]] = []
    for group in dict.fromkeys(cell.group for cell in cells):
        own = [cell for cell in cells if cell.group == group]
        rows.append(Head([marked(group, own[0].kind)]))
        for cell in own:
            factor_of, decimals = (1, 0) if measure.logged else (1, 2) if measure is RATING else (100, 1)
            values = (
                *(apa.number(factor_of * value, decimals) for value in (cell.mean, cell.sd)),
                apa.interval(factor_of * cell.low, factor_of * cell.high, decimals),
            )
            rows.append((cell.level, apa.count(cell.trials), apa.count(cell.units), *values))
    unit = "ms" if measure.logged else measure.unit if measure is RATING else "% correct"
    note = "n = participants, or items for a model or baseline. SD is between participants. "
    over_items = "Student's over items" if measure is RATING else OF_SHARES
    note += (
        f"{_intervals(cells)}; means are geometric."
        if measure.logged
        else f"{_intervals(cells, over_items)}."
    )
    name = f"descriptives_{measure.name}_{factor}"
    columns = (factor, "Trials", "n", "M", "SD", "95% CI")
    title = f"{measure.title} ({unit}) by {factor} and reader"
    return ApaTable(name, title, columns, tuple(rows), note, described_from(measure, factor))


def _intervals(cells: Sequence[Cell], over_items: str = "") -> str:
    """Say what the intervals are, of participants and of models and baselines, as far as the table has them."""
    told = []
    if any(cell.kind in PARTICIPANT_KINDS for cell in cells):
        of_people = participants_intervals(cells)
        told.append(
            f"Intervals are {of_people.replace(' intervals', ' ones', 1)}"
            if of_people
            else "Participants' means have no interval: fewer than two were in all conditions"
        )
    if over_items and any(cell.kind not in PARTICIPANT_KINDS for cell in cells):
        told.append(f"for a model or baseline, {over_items}" if told else f"Intervals are {over_items}")
    return "; ".join(told)


def described_from(measure: Measure, factor: str) -> Origin:
    """Say which columns and rows means by condition come from."""
    columns = (measure.name, factor, "reader_group", "reader", "item_id", "response_status")
    placed = filled("item_id", factor)
    if measure.logged:
        computed = (
            "means of logarithms by reader and level, and of these by level, with Cousineau-Morey intervals (Student's of a factor "
            "between participants)"
        )
        readers = () if measure.of == "models" else (PEOPLE,)
        return Origin(
            columns=columns, where=(*timed_well(measure.name), *readers, *placed), computed=computed
        )
    if measure is RATING:
        computed = (
            "means by reader and level, and of these by level, with Cousineau-Morey intervals (Student's of a factor between "
            "participants); for a model means by item, with Student's intervals"
        )
        return Origin(columns=columns, where=(USED, *filled(measure.name), *placed), computed=computed)
    computed = (
        "means by reader and level with answers that are not valid as 0, and of these by level, with Cousineau-Morey intervals "
        "(Student's of a factor between participants); for a model means by item, with Wilson's intervals of the effective "
        "number of answers"
    )
    return Origin(columns=columns, where=(*JUDGED, *placed), computed=computed)


def accuracy_and_recovery_table(
    exact: Sequence[Cell], near: Sequence[Cell], factor: str, prose: str
) -> ApaTable:
    """Lay out exact accuracy and mean recovery of typed answers side by side.

    Parameters
    ----------
    exact, near : sequence of Cell
        Accuracy and mean recovery of the same groups and levels; a cell without typed answers has no recovery.
    factor : str
    prose : str
        What the study's dictionary says of the recovery score.
    """
    recovery = {(cell.group, cell.level): cell for cell in near}
    rows: list[tuple[str, ...]] = []
    for group in dict.fromkeys(cell.group for cell in exact):
        own = [cell for cell in exact if cell.group == group]
        rows.append(Head([marked(group, own[0].kind)]))
        for cell in own:
            both = [_shares(cell), _shares(recovery.get((group, cell.level)))]
            rows.append((cell.level, apa.count(cell.trials), apa.count(cell.units), *both[0], *both[1]))
    note = "n = participants, or items for a model or baseline. SD is between participants. Failures count as wrong "
    note += f"and as a recovery of 0. {f'Score: {prose}. ' if prose else ''}"
    of_model = f"of accuracy {OF_SHARES}, of recovery Student's over items"
    note += f"{_intervals(exact, of_model)}."
    columns = (factor, "Trials", "n", "M exact", "SD", "95% CI", "M recovery", "SD", "95% CI")
    title = f"Exact accuracy and mean recovery (%) by {factor} and reader"
    origin = described_from(MEASURES["correct"], factor)
    origin = replace(origin, columns=(*origin.columns, RECOVERED.name, "trial_type"))
    return ApaTable(f"descriptives_correct_{factor}", title, columns, tuple(rows), note, origin)


def _shares(cell: Cell | None) -> tuple[str, str, str]:
    if cell is None:
        return (apa.MISSING, apa.MISSING, apa.MISSING)
    ends = apa.interval(100 * cell.low, 100 * cell.high, 1)
    return (apa.number(100 * cell.mean, 1), apa.number(100 * cell.sd, 1), ends)


def valid_only_table(shares: pd.DataFrame, factor: str) -> ApaTable:
    """Lay out accuracy with failures as wrong beside accuracy of valid answers only."""
    rows: list[tuple[str, ...]] = []
    for group, own in shares.groupby("group", sort=False):
        rows.append(Head([marked(str(group), str(own["kind"].iloc[0]))]))
        for one in own.to_dict("records"):
            trials, failures = int(one["trials"]), int(one["trials"]) - int(one["valid"])
            both = (apa.number(100 * one["all_trials"], 1), apa.number(100 * one["valid_trials"], 1))
            rows.append((str(one["level"]), apa.count(trials), apa.count(failures), *both))
    note = (
        "The first share is the primary one: an answer that cannot be read, a refusal and a timeout count as wrong. The "
        "second leaves them out, which conditions on an outcome; it is a bound, not a correction."
    )
    columns = (factor, "Trials", "Failures", "% correct, failures wrong", "% correct, valid only")
    origin = Origin(
        columns=("correct", "response_status", factor, "reader_group"),
        where=(USED, NOT_UNJUDGED, *filled(factor)),
        computed="shares of right answers by reader and level, failures as 0 and left out",
    )
    title = "Accuracy with and without failed answers"
    return ApaTable(f"valid_only_{factor}", title, columns, tuple(rows), note, origin)


def recovery_table(recovered: Sequence[Recovered], fits: tuple[Fit, ...] = ()) -> ApaTable:
    """Lay out effects put in beside effects recovered by the models of simulated readers."""
    rows: list[tuple[str, ...]] = []
    for title in dict.fromkeys(one.title for one in recovered):
        own = [one for one in recovered if one.title == title]
        scale = {"logit": "log odds", "log_ms": "log ms", "share": "share of trials"}[own[0].scale]
        rows.append(Head([f"{title} ({scale})"]))
        for one in own:
            inside = {True: "yes", False: "no", None: apa.MISSING}[one.covered]
            ends = apa.MISSING if one.low is None else apa.interval(one.low, one.high)
            stated = one.truth if one.put_in is None else one.put_in
            numbers = (apa.number(stated), apa.number(one.truth), apa.number(one.estimate))
            rows.append((one.label, *numbers, ends, inside))
    note = (
        "Simulated readers and baselines only; not data. Put in: as the study states it, an intercept at the reference of all "
        "factors. To be expected: what that leads to in a model of this factor alone, averaged over the others, with lapses, "
        "learning, and tails of times. Of 100 such intervals about 95 hold it, so that one outside is no fault by itself. Standard "
        "deviations have no interval. Timeouts count as wrong, which pulls accuracy effects towards those of time, and have no time, "
        "which makes effects on times smaller."
    )
    of_words = ""
    if any(one.measure == "time_changed" for one in recovered):
        of_words = ", times on single words in regions.csv.gz"
        note += (
            " Time on changed words: means over readers of their log times on these words less those on the same words intact, "
            "with Student's intervals; read word by word, a text's reading time is the sum of its words' times and follows them."
        )
    columns = ("Effect", "Put in", "To be expected", "Recovered", "95% CI", "Expected lies inside")
    title = "Effects put into simulated readers and effects recovered"
    origin = Origin(
        fits,
        computed="effects put in: truth in numbers.json (dictionary); to be expected: their means over the rows of the models; "
        "effects recovered: fixed effects of these models, standard "
        "deviations of their random effects, shares of failed answers in trials.csv" + of_words,
    )
    return ApaTable("recovery", title, columns, tuple(rows), note, origin)
