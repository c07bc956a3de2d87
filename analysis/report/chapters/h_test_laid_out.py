"""Tables of the chapter on H-TEST, laid out as the paper's Tables 2, 5, 6 and 7, with what it tested nowhere beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis import apa
from analysis.published.h_test_tables import FEWEST_ITEMS, TASKS, Contrast, Paired, printed, rank
from analysis.readers import headed, marked
from analysis.report.apa_tables import ApaTable, Head, Origin

ORIGIN = Origin(
    columns=("task", "item_id", "correct", "response_status", "reader_group"),
    rows="excluded_reason empty, is_filler false, response_status not error; makings and numbers of examples are factors "
    "between sessions; correct empty counts as 0",
)
NAMES = {
    **{task: task.replace("_", " ").capitalize() for task in (*TASKS, "letter_geometry")},
    "average": "Average",
}


def full_table(
    name: str, shares: pd.DataFrame, readers: Sequence[str], kinds: Mapping[str, str], of: str
) -> ApaTable:
    """Lay accuracy out as Table 6: a part for each number of examples, a row a task, a column a reader."""
    rows: list[tuple[str, ...]] = []
    for k, own in shares.groupby("k", dropna=False, sort=True):
        if not pd.isna(k):
            rows.append(Head([f"k = {int(float(str(k)))}"]))
        wide = own.pivot(index="task", columns="reader_group", values="accuracy")
        for task in (*TASKS, "average"):
            if task in wide.index:
                rows.append((NAMES[task], *(_percent(wide, task, reader) for reader in readers)))
    columns = ("Task", *(marked(reader, kinds[reader]) for reader in readers))
    note = (
        "Percentage right; answers that name no label are wrong. Average: mean of all tasks. Chance is 50. "
        "En dash: not answered; there is no average where a task is missing."
    )
    title = f"Accuracy on H-TEST by task, number of examples (k) and reader{of}, laid out as Tables 2 and 6 of Lee and Lim (2024)"
    return ApaTable(name, title, columns, tuple(rows), note, ORIGIN, of_paper=True)


def reader_table(
    name: str,
    shares: pd.DataFrame,
    readers: Sequence[str],
    kinds: Mapping[str, str],
    families: Mapping[str, str],
    sizes: Mapping[str, float],
    of: str,
) -> ApaTable:
    """Lay accuracy out as Table 5: a row a reader, a column a task, families from small to large under heads; at one k."""
    wide = shares.pivot(index="task", columns="reader_group", values="accuracy")
    tasks = [task for task in (*sorted(TASKS), "average") if task in wide.index]
    rows: list[tuple[str, ...]] = []
    named = list(dict.fromkeys(families.get(reader, "") for reader in readers))
    for family in sorted(named, key=bool):
        if family:
            rows.append(Head([family]))
        for reader in sorted(readers, key=lambda one: sizes.get(one, 0.0)) if family else readers:
            if families.get(reader, "") == family and reader in wide:
                rows.append(
                    (marked(reader, kinds[reader]), *(_percent(wide, task, reader) for task in tasks))
                )
    columns = ("Reader", *(NAMES[task] for task in tasks))
    note = "Percentage right, every column under its own task (the columns of the printed table are partly under another's)."
    return ApaTable(
        name,
        f"Accuracy by reader and task{of}, laid out as Table 5",
        columns,
        tuple(rows),
        note,
        ORIGIN,
        of_paper=True,
    )


def thoughts_table(name: str, shares: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> ApaTable:
    """Tell accuracy, adjusted accuracy and the share out of context with and without thoughts (Figure 4)."""
    rows: list[tuple[str, ...]] = []
    means = in_order_of_makings(shares[shares["task"] == "average"])
    for direct, thinks in pairs:
        for reader, how in ((direct, "direct"), (thinks, "with thoughts")):
            for one in means[means["reader_group"] == reader].to_dict("records"):
                rows.append(
                    (
                        headed(reader),
                        how,
                        *examples(one["k"]),
                        str(one["making"]) or apa.MISSING,
                        apa.number(100 * one["accuracy"], 1),
                        apa.number(100 * one["adjusted"], 1),
                        apa.number(100 * one["out_of_context"], 1),
                    )
                )
    columns = ("Model", "Asked", "k", "Items", "% right", "% right, adjusted", "% out of context")
    note = (
        "Out of context: answers of which no label could be read. Adjusted: right among those read, which leaves out the items "
        "that a "
        "model fails to answer and flatters it. Means of the tasks; where one was not answered there is none."
    )
    return ApaTable(name, "Answers with and without a chain of thought", columns, tuple(rows), note, ORIGIN)


ONE_TEST = "p and interval are of one paired t test over items; if fewer than five items changed, its variance is that of one more."


def compared_columns(what: str, first: str, second: str, *, has_bound: bool) -> tuple[str, ...]:
    """Return the heads of a table of comparisons by item."""
    heads = (what, "n", "Changed", first, second, "Difference", "95% CI", "p", "p adjusted")
    return (*heads, "p equal") if has_bound else heads


def compared_points(one: Paired) -> str:
    """Write a difference in points with its interval, which there is none of where no item differs."""
    how = f"95% CI {compared_interval(one)}" if one.changed else "each item alike"
    return f"{apa.number(100 * one.difference, 1)} points, {how}"


def compared_interval(one: Paired) -> str:
    """Write the interval of a difference; a dash where no item differs, which leaves nothing to reckon it from."""
    return apa.interval(100 * one.low, 100 * one.high, 1) if one.changed else apa.MISSING


def compared_cells(one: Paired, adjusted: float, *, has_bound: bool) -> tuple[str, ...]:
    """Return the cells of a comparison by item, behind what is compared."""
    return (
        apa.count(one.items),
        apa.count(one.changed),
        apa.number(100 * one.first, 1),
        apa.number(100 * one.second, 1),
        apa.number(100 * one.difference, 1),
        compared_interval(one),
        apa.p_value(one.p),
        apa.p_value(adjusted),
        *((apa.p_value(one.p_equal),) if has_bound else ()),
    )


def paired_table(
    name: str,
    compared: Sequence[tuple[str, str, str, Paired, float]],
    order: Sequence[str],
    kinds: Mapping[str, str],
    bound: str | None,
) -> ApaTable:
    """Tell every comparison of two conditions over the same items, readers in the order of the chapter."""
    rows: list[tuple[str, ...]] = []
    before = ""
    for reader, what, making, one, adjusted in sorted(
        compared, key=lambda each: (order.index(each[0]), rank(each[2]))
    ):
        head = f"{marked(reader, kinds[reader])}, {making or 'all'} items"
        if head != before:
            rows.append(Head([head]))
            before = head
        rows.append((what, *compared_cells(one, adjusted, has_bound=bound is not None)))
    note = (
        "Paired by item (n: items; changed: those with another share right); second minus first, in points. "
        f"{ONE_TEST} Adjusted after Benjamini and Hochberg over the table. "
        f"Conditions with fewer than {FEWEST_ITEMS} items in common are not compared."
    )
    if bound:
        note += f" p equal: two one-sided tests against {bound}, the bound of the plan; small values say that conditions are alike."
    columns = compared_columns("Comparison", "% first", "% second", has_bound=bound is not None)
    title = "Conditions compared over the same items"
    # printed however long: it has the tests that the paper's claims of no effect go without
    return ApaTable(name, title, columns, tuple(rows), note, ORIGIN, of_paper=True)


def makings_table(
    name: str,
    compared: Sequence[tuple[str, str, Contrast, float]],
    kinds: Mapping[str, str],
    bound: str | None,
) -> ApaTable:
    """Tell what released items owe to being known, and to their making."""
    rows = [
        (
            marked(reader, kinds[reader]),
            what,
            apa.count(one.tasks),
            apa.count(one.items),
            apa.number(100 * one.difference, 1),
            apa.interval(100 * one.low, 100 * one.high, 1),
            apa.p_value(one.p),
            apa.p_value(adjusted),
            *((apa.p_value(one.p_equal),) if bound else ()),
        )
        for reader, what, one, adjusted in compared
    ]
    note = (
        "Points; mean over the tasks that both makings have. Fresh minus released: contamination and memorising. Matched minus fresh: "
        "shortcuts in the released making, and the repair of its faults. No item of one making has a counterpart in another, so that "
        "items are not paired: they are the units, with Welch's approximation within tasks. Adjusted after Benjamini and Hochberg "
        "over the table."
    )
    columns: tuple[str, ...] = (
        *("Reader", "Contrast", "Tasks", "n", "Difference", "95% CI", "p", "p adjusted"),
    )
    if bound:
        columns = (*columns, "p equal")
        note += f" p equal: two one-sided tests against {bound}; small values say that makings are alike."
    return ApaTable(name, "Released, fresh and matched items", columns, tuple(rows), note, ORIGIN)


def rules_table(name: str, stated: pd.DataFrame, kinds: Mapping[str, str]) -> ApaTable:
    """Lay out how many rules were stated right as Table 7, a column for each number of examples, with how many were rated."""
    ks = sorted(stated["k"].dropna().unique()) or [float("nan")]
    rows: list[tuple[str, ...]] = []
    for group, own in stated.groupby("reader_group", sort=False):
        at = {k: own[own["k"].isna() if pd.isna(k) else own["k"] == k] for k in ks}
        totals = [one[["readers", "stated", "rated", "right"]].sum() for one in at.values()]
        rows.append(Head([marked(str(group), kinds[str(group)])]))
        rows.append(("Rules stated right, of those rated", *(_right_of(one) for one in totals)))
        for what, column in (("Rules stated", "stated"), ("Readers", "readers")):
            rows.append((what, *(apa.count(one[column]) for one in totals)))
    note = (
        "k: solved examples. A person states each rule once, a model once in each list that it reads. Right: the highest rating of "
        "the rubric; en dash: none rated. The paper had one person for each k and no ratings: 10 of 10 rules in each."
    )
    columns = ("", *("All" if pd.isna(k) else f"k = {int(k)}" for k in ks))
    origin = Origin(columns=("item_id", "score", "scorer", "reader_group"), rows="item_id ends in ' rule'")
    title = "Rules stated, laid out as Table 7"
    return ApaTable(name, title, columns, tuple(rows), note, origin, of_paper=True)


def _right_of(one: pd.Series[Any]) -> str:
    return f"{apa.count(one['right'])}/{apa.count(one['rated'])}" if one["rated"] else apa.MISSING


def printed_table(name: str) -> ApaTable:
    """Set the printed averages beside the means of the printed cells."""
    cells = printed()
    cells = cells[cells["k"].notna()]
    rows: list[tuple[str, ...]] = []
    for (k, model), own in cells.astype({"k": int}).groupby(["k", "model"], sort=False):
        by_task = own.set_index("task")["printed"]
        rows.append(
            (
                str(model),
                str(k),
                apa.number(100 * float(by_task.drop("average").mean()), 1),
                apa.number(100 * float(by_task["average"]), 1),
            )
        )
    note = "Table 6 as printed in Lee and Lim (2024); its cells are no data of this study."
    columns = ("Model", "k", "Mean of printed cells", "Printed average")
    return ApaTable(
        name,
        "Averages as printed in the paper",
        columns,
        tuple(rows),
        note,
        Origin(rows="quoted from the paper", file="h_test.csv"),
    )


def in_order_of_makings(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with released items first, then fresh, then matched ones, and few examples before many."""
    return rows.assign(_rank=rows["making"].map(rank)).sort_values(["_rank", "k"], kind="stable")


def _percent(wide: pd.DataFrame, task: str, reader: str) -> str:
    return apa.number(100 * float(wide[reader][task]), 1) if reader in wide else apa.MISSING


def examples(value: Any) -> tuple[str]:
    """Write a number of examples as a cell; a dash where a study does not vary it."""
    return (apa.MISSING if pd.isna(value) else apa.count(value),)
