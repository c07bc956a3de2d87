"""The parts of the chapter on H-TEST that say how answers were read, which letters stood for what, and which rules were said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.published.h_test_readings import BothParsers, both_parsers, label_maps, rules_by_task
from analysis.published.h_test_tables import Asked, accuracy
from analysis.readers import PARTICIPANT_KINDS, group_order, headed
from analysis.report.blocks import Block, Material
from analysis.report.chapters.h_test_laid_out import compared_points
from analysis.report.chapters.h_test_readings_tables import (
    labels_table,
    parsers_table,
    read_table,
    rules_by_task_table,
)
from analysis.report.method_rating import agreement_said


def readings(found: Asked, kinds: dict[str, str], material: Material) -> Iterator[Block]:
    """Set parsers, labels and answers that could not be read side by side."""
    yield from _parsers(found, kinds, material)
    yield from _labels(found, kinds)
    shares = accuracy(found.trials, ("making", "k"))
    readers = [group for group in group_order(found.trials) if kinds[group] != "baseline"]
    unread = found.trials[found.trials["answered"] == 0]
    if unread.empty:
        yield escape("Every answer could be read: adjusted accuracy is accuracy, and none is out of context.")
    elif readers:
        yield Markup("[[table:h_test_read]] has adjusted accuracy and the share of answers out of context.")
        yield read_table("h_test_read", shares, readers, kinds)


def _parsers(found: Asked, kinds: dict[str, str], material: Material) -> Iterator[Block]:
    read = both_parsers(found.trials, material.tables.folder)
    if not read:
        return
    yield Markup("[[table:h_test_parsers]] reads every reply of a model by both parsers. ") + escape(
        parsers_said(read, kinds)
    )
    yield parsers_table("h_test_parsers", read, kinds)


def parsers_said(read: Sequence[BothParsers], kinds: Mapping[str, str]) -> str:
    """Say what each reader's accuracy over all that it was asked is by either parser."""
    told = []
    alike = []
    for one in read:
        if one.task == "average" and kinds[one.reader_group] != "baseline" and one.compared is not None:
            if one.published == one.corrected:
                alike.append(headed(one.reader_group))
                continue
            told.append(
                f"{headed(one.reader_group)}: {apa.percent(one.published)} by the published parser, "
                f"{apa.percent(one.corrected)} by a correct one (difference {compared_points(one.compared)}, "
                f"{apa.p_phrase(one.compared.p)})."
            )
    if alike:
        told.append(f"Both parsers give the same accuracy for {apa.listing(alike)}.")
    return " ".join(told)


def _labels(found: Asked, kinds: dict[str, str]) -> Iterator[Block]:
    maps = label_maps(found.trials)
    if maps.empty:
        return
    order = group_order(found.trials)
    maps = maps.sort_values("reader_group", key=lambda names: names.map(order.index)).reset_index(drop=True)
    models = [group for group in maps["reader_group"] if kinds[group] not in (*PARTICIPANT_KINDS, "baseline")]
    of_models = maps[maps["reader_group"].isin(models)]
    says_a = [
        f"{one['reader_group']} {apa.percent(one['says_a_published'])}"
        for one in of_models.to_dict("records")
        if pd.notna(one["says_a_published"])
    ]
    leaning = f"Answers that say A, to labels as published: {'; '.join(says_a)}." if says_a else ""
    yield Markup("[[table:h_test_labels]] has both ways of labelling and their mean. ") + escape(leaning)
    yield labels_table("h_test_labels", maps, kinds)


def raters_said(rating: Mapping[str, Any] | None) -> str:
    """Say how many people rated how much, and how far they agree; nothing where nobody has rated."""
    if not rating or not rating["agreements"]:
        return ""
    raters = apa.worded(rating["raters"], "person", "people").capitalize()
    return (
        f"{raters} rated each answer, seeing neither who gave it nor the condition; {agreement_said(rating)}"
    )


def sorted_and_stated(found: Asked, kinds: dict[str, str]) -> Iterator[Block]:
    """Set the items that readers sorted beside the rules that they stated."""
    groups = [
        group
        for group in kinds
        if kinds[group] != "baseline" and (found.statements["reader_group"] == group).any()
    ]
    told = rules_by_task(
        found.trials[found.trials["reader_group"].isin(groups)],
        found.statements[found.statements["reader_group"].isin(groups)],
    )
    if told.empty:
        return
    order = group_order(found.statements)
    told = told.sort_values("reader_group", key=lambda names: names.map(order.index), kind="stable")
    yield Markup(
        "[[table:h_test_rules_tasks]] has, for each task, the items that the same readers sorted and the rules that they stated."
    )
    yield rules_by_task_table("h_test_rules_tasks", told, kinds)
