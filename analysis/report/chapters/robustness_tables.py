"""Tables of the chapter on robustness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis import apa
from analysis.mixed import Fit
from analysis.readers import headed, marked, spoken
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.filters import JUDGED, MACHINES, filled
from analysis.results import Analysis
from analysis.robustness.leave_out import NOTHING

NAMED = 3
"""Random effects named at either end."""
SCALE = {"points": "log odds", "ratio": "log units"}


def readers_in_words(groups: str) -> str:
    """Name the reader, or the two readers, of a row whose groups are joined by a minus."""
    parts = [spoken(one) for one in groups.split(" − ")]
    return " vs. ".join([headed(groups.split(" − ", maxsplit=1)[0]), *parts[1:]])


def left_out_summary(table: pd.DataFrame) -> pd.DataFrame:
    """Sum up how far each difference moves when a set of items is left out.

    Parameters
    ----------
    table : pandas.DataFrame
        From :func:`analysis.robustness.leave_item_sets_out`.

    Returns
    -------
    pandas.DataFrame
        A row per contrast and reader (or pair): ``contrast, groups, estimate, low, high`` (all items), ``lowest, highest``
        (estimates without a set), ``shift`` (the largest, signed, in standard errors), ``without`` (which set), ``sets`` (with an
        estimate), ``reversed, changed`` (how many).
    """
    rows = []
    for (contrast, groups), own in table.groupby(["contrast", "groups"], sort=False):
        with_all = own[own["left_out"] == NOTHING]
        if with_all.empty:  # it cannot be estimated with all items, so nothing can be held against it
            continue
        whole = with_all.iloc[0]
        rest = own[(own["left_out"] != NOTHING) & own["estimate"].notna()]
        nan = float("nan")
        at = (
            rest.iloc[int(np.nanargmax(rest["shift"].abs().to_numpy(dtype=float)))]
            if rest["shift"].notna().any()
            else None
        )
        rows.append(
            {
                "contrast": contrast,
                "groups": groups,
                "estimate": whole["estimate"],
                "low": whole["low"],
                "high": whole["high"],
                "lowest": rest["estimate"].min() if len(rest) else nan,
                "highest": rest["estimate"].max() if len(rest) else nan,
                "shift": nan if at is None else at["shift"],
                "without": "" if at is None else at["left_out"],
                "sets": len(rest),
                "reversed": int(rest["reversed"].sum()) if len(rest) else 0,
                "changed": int(rest["conclusion_changed"].sum()) if len(rest) else 0,
            }
        )
    return pd.DataFrame(rows)


def left_out_table(
    summary: pd.DataFrame, sets: Mapping[str, int], analysis: Analysis, name: str, fits: Sequence[Fit]
) -> ApaTable:
    """Lay out each difference with all items and without each set of them."""
    rows = []
    for one in summary.to_dict("records"):
        rows.append(
            (
                f"{one['contrast']}, {readers_in_words(one['groups'])}",
                apa.joined(apa.number(one["estimate"]), apa.interval(one["low"], one["high"])),
                apa.number(one["lowest"]),
                apa.number(one["highest"]),
                apa.number(one["shift"]),
                str(one["without"]) or apa.MISSING,
                apa.count(one["reversed"]),
                apa.count(one["changed"]),
            )
        )
    sizes = apa.listing([f"{name}: {apa.count(many)}" for name, many in sets.items()])
    scale = SCALE.get(analysis.plan.measure.scale, analysis.plan.measure.unit)
    note = (
        f"In {scale}. The reported model was fitted again without each set of items ({sizes}). Shift: the largest change of the "
        "estimate, "
        "in its standard errors with all items. Reversed: sets without which the sign is another one. Changed: sets without "
        "which the "
        "95% interval leaves 0 out where it held it, or the other way round."
    )
    columns = (
        "Difference", "All items [95% CI]", "Lowest", "Highest", "Shift", "Without", "Reversed", "Changed",
    )  # fmt: skip
    title = f"Differences in {analysis.plan.measure.noun} without each set of items ({analysis.plan.name})"
    return ApaTable(name, title, columns, tuple(rows), note, Origin(tuple(fits), computed=OF_SETS))


OF_SETS = "the reported model fitted anew without each set of items; lowest and highest of their differences"


def gee_table(checked: pd.DataFrame, analysis: Analysis, name: str) -> ApaTable:
    """Lay out the contrasts by generalised estimating equations beside those of the mixed model.

    Parameters
    ----------
    checked : pandas.DataFrame
        From :func:`analysis.robustness.gee_check` with ``p_adjusted``.
    """
    logistic = analysis.plan.measure.family == "binomial"
    places = 1 if logistic else 3
    rows: list[tuple[str, ...]] = []
    for (clusters, number), own in checked.groupby(["clusters", "number"], sort=False):
        rows.append(Head([f"Clusters: {clusters} ({apa.count(float(str(number)))})"]))
        for one in own.to_dict("records"):
            value, low, high = (
                one[key]
                for key in (
                    ("points", "points_low", "points_high") if logistic else ("estimate", "low", "high")
                )
            )
            same = {True: "yes", False: "no"}.get(one["same_side"], apa.MISSING)
            rows.append(
                (
                    f"{one['contrast']}, {readers_in_words(one['groups'])}",
                    apa.joined(apa.number(value, places), apa.interval(low, high, places)),
                    apa.p_value(one["p_adjusted"]),
                    apa.joined(
                        apa.number(one["mixed"], places),
                        apa.interval(one["mixed_low"], one["mixed_high"], places),
                    )
                    if np.isfinite(one["mixed"])
                    else apa.MISSING,
                    same,
                )
            )
    unit = "Percentage points" if logistic else "Log units"
    note = (
        f"{unit}. Exchangeable working correlation; robust standard errors, bias-reduced below 50 clusters. Each set of clusters "
        "ignores "
        "the other dependence; of a model every item is a cluster of its own. p adjusted by Benjamini–Hochberg over all rows. "
        "Same: both "
        "95% intervals leave 0 out on the same side, or both hold it."
    )
    columns = ("Difference", "Without random effects [95% CI]", "p adjusted", "Mixed model [95% CI]", "Same")
    source = () if analysis.model is None or analysis.model.source is None else (analysis.model.source,)
    origin = Origin(
        source,
        computed="generalised estimating equations on the same rows, with robust standard errors, clustered by participants and by "
        "items; by wrods alone (lme4 fits none)",
    )
    title = f"{analysis.plan.measure.title} without random effects ({analysis.plan.name})"
    return ApaTable(name, title, columns, tuple(rows), note, origin)


def asking_table(
    asked: pd.DataFrame, factor: str, kinds: dict[str, str], name: str, fits: Sequence[Fit]
) -> ApaTable:
    """Lay out how a model's answers vary with wording, labels, order, session and item."""
    rows: list[tuple[str, ...]] = []
    for group, own in asked.groupby("reader_group", sort=False):
        rows.append(Head([marked(str(group), kinds.get(str(group), "model"))]))
        for one in own.to_dict("records"):
            rows.append(
                (
                    str(one["source"]),
                    apa.count(one["levels"]),
                    apa.number(one["sd"]),
                    apa.number(100 * one["share"], 1),
                    apa.span(100 * one["lowest"], 100 * one["highest"], 1),
                    apa.number(one["range_points"], 1),
                    apa.number(one["range_by_chance"], 1),
                    apa.p_value(one["p_adjusted"]),
                )
            )
    note = (
        "SD in log odds, share in percent of the latent variance (π²/3 for the answer itself): from five levels up, none where "
        "the fit did "
        "not converge or ran away. Range: percentage points between the extreme levels' means, conditions weighted alike; by "
        "chance: the "
        "mean range when answers are dealt anew within item and condition (500 times); p of the range is adjusted by "
        "Benjamini–Hochberg "
        "over the table. Sources that name the same groups (one session a wording) share one SD. En dashes: not to be had."
    )
    columns = ("Source", "Levels", "SD", "Share", "Lowest to highest", "Range", "By chance", "p adjusted")
    origin = Origin(
        tuple(fits),
        (
            "correct",
            "response_status",
            factor,
            "prompt_variant",
            "label_map",
            "choice_order",
            "session_id",
            "item_id",
        ),
        where=(*JUDGED, MACHINES, *filled(factor, "item_id")),
        computed="SDs: random effects of the models; ranges: means by level, against answers dealt anew within item and condition "
        "500 times",
        seed=("asked otherwise", "reader", "source"),
    )
    title = f"Variation of models' right answers by how they were asked ({factor} held fixed)"
    return ApaTable(name, title, columns, tuple(rows), note, origin)


def deviations_table(parts: Mapping[str, pd.DataFrame], analysis: Analysis, name: str) -> ApaTable:
    """Lay out the spread of each random effect and the levels that deviate most.

    Parameters
    ----------
    parts : mapping of str to pandas.DataFrame
        Rows of :func:`analysis.robustness.deviations` of one term, by what it is in words.
    """
    rows = []
    for words, own in parts.items():
        sure = int(((own["low"] > 0) | (own["high"] < 0)).sum())
        many = min(NAMED, len(own) // 2)
        ends = [own.head(many), own.tail(many).iloc[::-1]]
        named = [
            ", ".join(f"{one['level']} ({apa.number(one['mode'])})" for one in part.to_dict("records"))
            or apa.MISSING
            for part in ends
        ]
        rows.append(
            (words, apa.count(len(own)), apa.number(own["spread"].iloc[0], 3), apa.count(sure), *named)
        )
    source = () if analysis.model is None or analysis.model.source is None else (analysis.model.source,)
    scale = SCALE.get(analysis.plan.measure.scale, analysis.plan.measure.unit)
    note = f"Conditional modes in {scale}, lowest and highest first; without 0: 95% intervals that leave it out, not corrected."
    columns = ("Random effect", "n", "SD", "Without 0", "Lowest", "Highest")
    title = f"Random effects of the model of {analysis.plan.measure.noun} ({analysis.plan.name})"
    return ApaTable(
        name,
        title,
        columns,
        tuple(rows),
        note,
        Origin(source, computed="conditional modes of the random effects: ranef(m) in R"),
    )


def classes_table(blocks: Sequence[tuple[str, pd.DataFrame]], factor: str, name: str, what: str) -> ApaTable:
    """Lay out the numbers of a heat map of accuracy by class of items."""
    rows: list[tuple[str, ...]] = []
    for head, table in blocks:
        rows.append(Head([head]))
        for label, line in table.iterrows():
            rows.append((str(label), *(apa.number(float(value), 1) for value in line)))
    columns = ("", *map(str, blocks[0][1].columns))
    origin = Origin(
        columns=("correct", "response_status", factor, "set", "reader_group"),
        where=(*JUDGED, *filled(factor)),
        computed="shares of right answers with failures as 0",
    )
    note = "Percent correct over all trials of a cell; failures count as wrong."
    return ApaTable(name, f"Accuracy by {what}, {factor} and reader", columns, tuple(rows), note, origin)
