"""The chapter on H-TEST: the paper's tables and figures from the study's own run, with a test behind every "no effect"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from analysis import apa
from analysis.figures import Drawing
from analysis.figures.h_test import Line, lines_figure
from analysis.plan import ALPHA
from analysis.published import h_test as paper
from analysis.readers import PARTICIPANT_KINDS, group_order, headed, kinds_of, marked
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.chapters.h_test.pictures import (
    LAYOUT,
    Row,
    adjusted,
    bound_of,
    no_bound,
    parsers_blocks,
    pictures,
)
from analysis.report.method import agreement_said

MOST_TOLD = 8
"""More comparisons than these are counted in the text and listed in the table only."""
ORDINALS = ("2nd", "3rd", *(f"{place}th" for place in range(4, 20)))


def write(material: Material) -> Chapter | None:
    """Write the tables of H-TEST; None where a study asks none of its tasks."""
    found = paper.asked(material.tables)
    if found is None:
        return None
    material.told("H-TEST")
    kinds = kinds_of(pd.concat([found.trials, found.statements]))
    blocks: list[Block] = []
    if len(found.trials):
        readers = material.tables.dictionary["readers"]
        blocks += _classified(found, readers, kinds)
        blocks += _compared(found, readers, kinds, material)
        blocks += pictures(found.trials, readers, *bound_of(material), why=no_bound(material))
        blocks += _makings(found, kinds, material)
        blocks += _readings(found, kinds, material)
    blocks += _stated(found, kinds, material.tables.dictionary.get("rating"))
    blocks += LAYOUT.blocks("printed", table=LAYOUT.table("h_test_printed", _printed()))
    sources = ("lee2024htest", "benjamini1995", "schuirmann1987")
    return LAYOUT.chapter("h-test", blocks, kinds, kinds, sources=sources)


def _printed() -> list[Row]:
    cells = paper.printed().dropna(subset=["k"]).astype({"k": int})
    shares = {key: own.set_index("task")["printed"] for key, own in cells.groupby(["k", "model"], sort=False)}
    return [
        {"k": k, "model": str(model), "mean": own.drop("average").mean(), "average": own["average"]}
        for (k, model), own in shares.items()
    ]


def _shares(own: pd.DataFrame, index: str, columns: str) -> dict[str, dict[str, float]]:
    """Return accuracy by row and column of a table."""
    wide = own.pivot(index=index, columns=columns, values="accuracy")
    return {
        str(name): {str(column): float(value) for column, value in row.items()}
        for name, row in wide.iterrows()
    }


def _classified(found: paper.Asked, readers: Mapping[str, Any], kinds: dict[str, str]) -> Iterator[Block]:
    """Lay out accuracy by task, number of examples and reader, for each making of items, and draw it."""
    order = group_order(found.trials)
    shares = paper.accuracy(found.trials, ("k", "making"))
    if found.unanswered:
        yield LAYOUT.sentences("unanswered", unanswered=found.unanswered)
    for making in found.makings:
        own = shares[shares["making"] == making]
        most = own["k"].max()
        at_most = own if pd.isna(most) else own[own["k"] == most]
        stem = f"_{making}" if making else ""
        present = [reader for reader in order if (own["reader_group"] == reader).any()]
        means = at_most[at_most["task"] == "average"].set_index("reader_group")["accuracy"]
        told = [group for group in present if kinds[group] != "baseline" and pd.notna(means.get(group))]
        values: dict[str, Any] = {
            "of": f", {making} items" if making else "",
            "where": "" if pd.isna(most) else f" at k = {int(most)}",
            "kinds": kinds,
        }
        full, by_reader = _full_rows(own), _reader_rows(at_most, present, readers)
        yield from LAYOUT.blocks(
            "accuracy",
            full=LAYOUT.table("h_test_full", full, f"h_test_full{stem}", readers=present, **values),
            readers=LAYOUT.table(
                "h_test_readers",
                by_reader,
                f"h_test_readers{stem}",
                tasks=[task for task in (*sorted(paper.TASKS), "average") if (at_most["task"] == task).any()],
                **values,
            ),
            means=[{"group": group, "mean": means[group]} for group in told],
            **values,
        )
    if len(found.ks) > 1:
        drawing = _examples_figure(found, kinds)
        yield from LAYOUT.blocks("figure", drawing=drawing, what="the number of examples")
    figure = _family_figure(found, readers, kinds) if paper.family_pairs(readers) else None
    if figure is not None:
        yield from LAYOUT.blocks("figure", drawing=figure, what="size within families")
    pairs = [pair for pair in paper.thinking_pairs(readers) if set(pair) <= set(order)]
    if pairs:
        rows = [
            {**one, "headed": headed(reader), "how": how}
            for pair in pairs
            for reader, how in zip(pair, ("direct", "with thoughts"), strict=True)
            for one in _means(shares, [reader])
        ]
        yield from LAYOUT.blocks(
            "thoughts",
            table=LAYOUT.table("h_test_thoughts", rows),
            drawing=_thoughts_figure(found, pairs, kinds),
        )


def _means(shares: pd.DataFrame, readers: Sequence[str]) -> list[dict[Any, Any]]:
    """Return readers' means over tasks: released items first, then fresh, then matched ones, and few examples before many."""
    means = shares[shares["task"] == "average"]
    means = means.assign(_rank=means["making"].map(paper.rank)).sort_values(["_rank", "k"], kind="stable")
    return [one for name in readers for one in means[means["reader_group"] == name].to_dict("records")]


def _full_rows(shares: pd.DataFrame) -> Iterator[Row]:
    """Yield accuracy as in Table 6: a part for each number of examples, a row a task, a column a reader."""
    for k, own in shares.groupby("k", dropna=False, sort=True):
        by_task = _shares(own, "task", "reader_group")
        for task in (*paper.TASKS, "average"):
            if task in by_task:
                yield {"k": k, "task": task, "shares": by_task[task]}


def _reader_rows(shares: pd.DataFrame, readers: list[str], described: Mapping[str, Any]) -> Iterator[Row]:
    """Yield accuracy as in Table 5: a row a reader, a column a task, families from small to large under heads; at one k."""
    settings = {
        name: one.get("settings") or {} for name, one in described.items() if isinstance(one, Mapping)
    }
    families = {reader: str(settings.get(reader, {}).get("family") or "") for reader in readers}
    sizes = paper.sizes_of(described)
    by_reader = _shares(shares, "reader_group", "task")
    for family in sorted(dict.fromkeys(families.values()), key=bool):
        for reader in sorted(readers, key=lambda one: sizes.get(one, 0.0)) if family else readers:
            if families[reader] == family and reader in by_reader:
                yield {"reader": reader, "family": family, "shares": by_reader[reader]}


def _line(label: str, group: str, steps: Mapping[int, pd.DataFrame], *, is_open: bool = False) -> list[Line]:
    """Return the line through the means of those steps that have rows, or none."""
    points = [(place, *paper.mean_with_ends(rows)) for place, rows in steps.items() if len(rows)]
    if not points:
        return []
    places, values, low, high = zip(*points, strict=True)
    return [Line(label, group, places, values, low, high, is_open)]


def _drawn(
    name: str,
    panels: Sequence[tuple[str, Sequence[Line]]],
    steps: Sequence[str],
    axis: str,
    kinds: dict[str, str],
    key: str = "",
    **values: Any,
) -> Drawing:
    return lines_figure(name, LAYOUT.caption(key or name, **values), panels, steps, axis, kinds)


def _examples_figure(found: paper.Asked, kinds: dict[str, str]) -> Drawing:
    panels = []
    partial: dict[str, None] = {}
    for making in found.makings:
        own = found.trials[found.trials["making"] == making]
        lines = []
        for group in group_order(own):
            steps = {}
            for place, k in enumerate(found.ks):
                every = own[own["k"] == k]
                rows = every[every["reader_group"] == group]
                if paper.covers(rows, every):
                    steps[place] = rows
                elif len(rows):
                    partial[headed(group)] = None
            lines += _line(group, group, steps)
        panels.append((f"{making} items".capitalize() if making else "", lines))
    present = {group: kinds[group] for group in group_order(found.trials)}
    steps_named = [str(k) for k in found.ks]
    axis = "Solved examples (k)"
    return _drawn("h_test_examples", panels, steps_named, axis, present, partial=list(partial))


def _family_figure(found: paper.Asked, readers: Mapping[str, Any], kinds: dict[str, str]) -> Drawing | None:
    rows_of = {str(group): own for group, own in found.trials.groupby("reader_group")}
    families: dict[str, list[str]] = {}
    partial: dict[str, None] = {}
    for family, small, large in paper.family_pairs(readers):
        for name in (small, large):
            if name in rows_of and not paper.covers(rows_of[name], found.trials):
                partial[headed(name)] = None
            elif name in rows_of and name not in families.setdefault(family, []):
                families[family].append(name)
    lines = [
        line
        for family, names in families.items()
        if len(names) > 1
        for line in _line(family, names[0], {place: rows_of[name] for place, name in enumerate(names)})
    ]
    if not lines:
        return None
    steps = (
        next(iter(families.values())) if len(lines) == 1 else _steps(max(len(one.places) for one in lines))
    )
    told = "; ".join(f"{family}: {', '.join(names)}" for family, names in families.items())
    present = {line.group: kinds[line.group] for line in lines}
    values: dict[str, Any] = {"families": told, "partial": list(partial)}
    return _drawn("h_test_families", [("", lines)], steps, "Size within the family", present, **values)


def _steps(most: int) -> list[str]:
    """Return names of the sizes of families that have at most this many models."""
    if most == 2:
        return ["smaller", "larger"]
    return ["smallest", *(f"{ordinal} smallest" for ordinal in ORDINALS[: most - 1])]


def _thoughts_figure(found: paper.Asked, pairs: list[tuple[str, str]], kinds: dict[str, str]) -> Drawing:
    rows_of = {str(group): own for group, own in found.trials.groupby("reader_group")}
    lines = []
    for direct, thinks in pairs:
        first, second = paper.in_common(rows_of[direct], rows_of[thinks])
        read = [rows[rows["answered"] == 1] for rows in (first, second)]
        lines += _line(direct, direct, {0: first, 1: second})
        lines += _line(f"{direct}, adjusted", direct, dict(enumerate(read)), is_open=True)
    present = {direct: kinds[direct] for direct, _ in pairs}
    pooled = [f"all numbers of examples ({apa.listing([str(k) for k in found.ks])})"] if found.ks else []
    pooled += [f"{apa.listing(found.makings)} items"] if len(found.makings) > 1 else []
    steps, axis = ["direct", "with thoughts"], "How models were asked"
    key, apart = "h_test_thoughts_figure", [replace(line, is_joined=False) for line in lines]
    return _drawn("h_test_thoughts", [("", apart)], steps, axis, present, key, pooled=pooled)


Compared = tuple[str, str, str, pd.DataFrame, pd.DataFrame]
"""A reader, what is compared, the making of items, and the trials of both conditions."""


def _pairs(found: paper.Asked, readers: Mapping[str, Any], kinds: dict[str, str]) -> Iterator[Compared]:
    """Go through the comparisons that the paper makes."""

    def by_making(
        group: str, what: str, first: pd.DataFrame, second: pd.DataFrame, varied: str | None = None
    ) -> Iterator[Compared]:
        for making in found.makings:
            both = [rows[rows["making"] == making] for rows in (first, second)]
            yield group, what, making, *paper.in_common(both[0], both[1], varied=varied)

    rows_of = {str(group): own for group, own in found.trials.groupby("reader_group")}
    models = {group: rows for group, rows in rows_of.items() if kinds[group] not in PARTICIPANT_KINDS}
    steps = list(pairwise(found.ks)) + ([(found.ks[0], found.ks[-1])] if len(found.ks) > 2 else [])
    for group, rows in models.items():
        for few, many in steps:
            what = f"k = {few}, k = {many}"
            yield from by_making(group, what, rows[rows["k"] == few], rows[rows["k"] == many], "k")
        if "label_map" in rows:
            published = rows["label_map"].astype(str).map(paper.is_as_published)
            if published.any() and not published.all():
                both = paper.in_common(rows[published], rows[~published], varied="label_map")
                yield group, "labels as published, swapped", "", *both
    for direct, thinks in paper.thinking_pairs(readers):
        if direct in models and thinks in models:
            what = f"direct, with thoughts ({thinks})"
            for _, _, making, first, second in by_making(direct, what, models[direct], models[thinks]):
                yield direct, what, making, first, second
                read = paper.in_common(first[first["answered"] == 1], second[second["answered"] == 1])
                if 0 < len(read[1]) < len(second):
                    yield direct, f"{what}, both read", making, *read
    for family, small, large in paper.family_pairs(readers):
        if small in models and large in models:
            yield from by_making(small, f"{small}, {large} ({family})", models[small], models[large])


def _data_first(tested: list[Row], kinds: Mapping[str, str]) -> list[Row]:
    """Leave baselines out, which are not data, unless nothing else is there, and adjust p over the rest."""
    return adjusted([one for one in tested if kinds[one["reader"]] != "baseline"] or tested)


def _compared(
    found: paper.Asked, readers: Mapping[str, Any], kinds: dict[str, str], material: Material
) -> Iterator[Block]:
    """Test every claim that a condition has no effect, over the items that both conditions asked."""
    half, bound = bound_of(material)
    order = group_order(found.trials)
    tested: list[Row] = [
        {"reader": reader, "what": what, "making": making, **vars(one)}
        for reader, what, making, first, second in _pairs(found, readers, kinds)
        if (one := paper.paired(first, second, half)) is not None
    ]
    if not tested:
        yield LAYOUT.sentences("not_paired")
        return
    rows = _data_first(tested, kinds)
    for row in rows:
        row["head"] = f"{marked(row['reader'], kinds[row['reader']])}, {row['making'] or 'all'} items"
    data = [row for row in rows if kinds[row["reader"]] != "baseline"]
    yield from LAYOUT.blocks(
        "paired",
        table=LAYOUT.table(
            "h_test_paired",
            sorted(rows, key=lambda row: (order.index(row["reader"]), paper.rank(row["making"]))),
            bound=bound,
            fewest=paper.FEWEST_ITEMS,
            first_head="% first",
            second_head="% second",
        ),
        number_of=len(data),
        differ=[row for row in data if row["adjusted"] < ALPHA],
        alike=sum(row["p_equal"] < ALPHA for row in data),
        **{"bound": bound, "why": no_bound(material), "most": MOST_TOLD},
    )


def _makings(found: paper.Asked, kinds: dict[str, str], material: Material) -> Iterator[Block]:
    """Contrast released with fresh, and fresh with matched items."""
    if len(found.makings) < 2:
        return
    half, bound = bound_of(material)
    contrasted: list[Row] = []
    for group in group_order(found.trials):
        own = found.trials[found.trials["reader_group"] == group]
        for first, second in pairwise(found.makings):
            one = paper.between_makings(own[own["making"] == first], own[own["making"] == second], half)
            if one is not None:
                contrasted.append({"reader": group, "what": f"{second} − {first}", **vars(one)})
    if not contrasted:
        yield LAYOUT.sentences("no_makings")
        return
    rows = _data_first(contrasted, kinds)
    data = [one for one in rows if kinds[one["reader"]] != "baseline"]
    differ = [one for one in data if one["adjusted"] < ALPHA]
    yield from LAYOUT.blocks(
        "makings",
        table=LAYOUT.table("h_test_makings", rows, kinds=kinds, bound=bound),
        shown=data if len(data) <= MOST_TOLD else differ[:MOST_TOLD],
        **{"number_of": len(data), "differ": len(differ), "most": MOST_TOLD, "kinds": kinds},
    )


def _by_reader(rows: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    return rows.sort_values("reader_group", key=lambda names: names.map(order.index), kind="stable")


def _readings(found: paper.Asked, kinds: dict[str, str], material: Material) -> Iterator[Block]:
    """Compare parsers and labels, and count answers that could not be read."""
    order = group_order(found.trials)
    if read := paper.both_parsers(found.trials, material.tables.folder):
        yield from parsers_blocks("h_test_parsers", read, kinds)
    maps = paper.label_maps(found.trials)
    if len(maps):
        rows = _by_reader(maps, order).to_dict("records")
        says_a = [
            f"{one['reader_group']} {apa.percent(one['says_a_published'])}"
            for one in rows
            if kinds[one["reader_group"]] == "model" and pd.notna(one["says_a_published"])
        ]
        table = LAYOUT.table("h_test_labels", rows, kinds=kinds)
        yield from LAYOUT.blocks("labels", table=table, says_a=says_a)
    readers = [group for group in order if kinds[group] != "baseline"]
    if (found.trials["answered"] != 0).all():
        yield LAYOUT.sentences("all_read")
    elif readers:
        means = _means(paper.accuracy(found.trials, ("making", "k")), readers)
        yield from LAYOUT.blocks("read", table=LAYOUT.table("h_test_read", means, kinds=kinds))


def _stated(found: paper.Asked, kinds: dict[str, str], rating: Mapping[str, Any] | None) -> Iterator[Block]:
    """Lay out how many rules were stated right, as Table 7, and beside the items that the same readers sorted."""
    statements = found.statements[found.statements["reader_kind"] != "baseline"]
    if statements.empty:
        return
    order = group_order(statements)
    stated = _by_reader(paper.rules_stated(statements), order)
    yield from LAYOUT.blocks(
        "rules",
        table=_rules_table(stated, kinds),
        rated=int(stated["rated"].sum()),
        rating=rating,
        agreement=agreement_said(rating) if rating and rating["agreements"] else "",
    )
    told = paper.rules_by_task(found.trials[found.trials["reader_group"].isin(order)], statements)
    if len(told):
        rows = _by_reader(told, order)
        table = LAYOUT.table("h_test_rules_tasks", rows, kinds=kinds)
        yield from LAYOUT.blocks("rules_tasks", table=table)


def _rules_table(stated: pd.DataFrame, kinds: Mapping[str, str]) -> ApaTable:
    """Count the rules that were stated right, in a column for each number of examples."""
    rows: list[Row] = []
    heads = {
        "All" if pd.isna(k) else f"k = {int(k)}": k for k in sorted(stated["k"].dropna().unique()) or [np.nan]
    }
    for group, own in stated.groupby("reader_group", sort=False):
        at = {head: own[own["k"].isna() if pd.isna(k) else own["k"] == k] for head, k in heads.items()}
        totals = {head: one[["readers", "stated", "rated", "right"]].sum() for head, one in at.items()}
        for what in ("right", "stated", "readers"):
            rows.append({"reader_group": group, "what": what, "totals": totals})
    return LAYOUT.table("h_test_rules", rows, kinds=kinds, examples=list(heads))
