"""Tables of how H-TEST's answers were read, labelled and explained: what the paper's parser, labels and rule check leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from analysis import apa
from analysis.published.h_test_readings import BothParsers
from analysis.readers import marked
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.chapters.h_test_laid_out import (
    NAMES,
    ORIGIN,
    compared_interval,
    examples,
    in_order_of_makings,
)

LABEL_NOTE = (
    "The published parser takes any reply with an “a” and no “b” for A, such as “I cannot tell”. All numbers of examples and makings "
    "are together; thoughts are left out, which a second model read."
)


def parsers_table(
    name: str,
    read: Sequence[BothParsers],
    kinds: Mapping[str, str],
    names: Mapping[str, str] = NAMES,
    how: str = LABEL_NOTE,
) -> ApaTable:
    """Set the published parser beside a correct one, task by task and model by model; ``how`` says what it takes for an answer."""
    rows: list[tuple[str, ...]] = []
    for group in dict.fromkeys(one.reader_group for one in read):
        of_group = [one for one in read if one.reader_group == group]
        replies = sum(one.replies for one in of_group if one.task != "average")
        rows.append(Head([f"{marked(group, kinds[group])}, {apa.counted(replies, 'reply', 'replies')}"]))
        for one in of_group:
            told = one.compared
            rows.append(
                (
                    names.get(one.task, NAMES["average"]),
                    apa.number(100 * one.published, 1),
                    apa.number(100 * one.corrected, 1),
                    apa.number(100 * (one.corrected - one.published), 1),
                    apa.MISSING if told is None else compared_interval(told),
                    apa.MISSING if told is None else apa.p_value(told.p),
                    apa.count(one.turned),
                    apa.number(100 * one.unread_published, 1),
                    apa.number(100 * one.unread_corrected, 1),
                )
            )
    columns = (
        *(
            "Task" if names is NAMES else "Questions",
            "% right, published",
            "% right, correct",
            "Difference",
            "95% CI",
            "p",
        ),
        *("Turned", "% unread, published", "% unread, correct"),
    )
    note = (
        f"Difference: correct minus published parser, in points, paired by item (fewer than ten items: no test). {how} Turned: "
        "replies that the two judge differently, as right, wrong or unread. Unread: no answer was found, which counts as wrong."
    )
    origin = Origin(
        columns=("published", "corrected"),
        rows="merged with trials.csv by session_id, trial_index and attempt; empty counts as 0",
        file="published_parsing.parquet",
    )
    return ApaTable(name, "The published parser beside a correct one", columns, tuple(rows), note, origin)


def labels_table(name: str, maps: pd.DataFrame, kinds: Mapping[str, str]) -> ApaTable:
    """Set labels as published beside labels swapped, and both together."""
    rows = [
        (
            marked(str(one["reader_group"]), kinds[str(one["reader_group"])]),
            *(apa.number(100 * one[column], 1) for column in ("published", "swapped", "counterbalanced")),
            *(apa.number(100 * one[column], 1) for column in ("says_a_published", "says_a_swapped")),
        )
        for one in maps.to_dict("records")
    ]
    columns = (
        *("Reader", "% right, as published", "% right, swapped", "% right, counterbalanced"),
        *("% A, as published", "% A, swapped"),
    )
    note = (
        "As published: A is the class with the mark; swapped: A is the other. Counterbalanced: mean of both, free of a leaning to one "
        "letter. % A: answers that name the letter A, of those read; 50 is no leaning."
    )
    return ApaTable(
        name,
        "Labels as published and counterbalanced",
        columns,
        tuple(rows),
        note,
        Origin(columns=("label_map", "response", "correct", "reader_group"), rows="excluded_reason empty"),
    )


def read_table(name: str, shares: pd.DataFrame, readers: Sequence[str], kinds: Mapping[str, str]) -> ApaTable:
    """Tell accuracy, adjusted accuracy and the share out of context by reader, making and number of examples."""
    means = in_order_of_makings(shares[shares["task"] == "average"])
    rows = [
        (
            marked(reader, kinds[reader]),
            str(one["making"]) or apa.MISSING,
            *examples(one["k"]),
            apa.count(one["trials"]),
            apa.number(100 * one["accuracy"], 1),
            apa.number(100 * one["adjusted"], 1),
            apa.number(100 * one["out_of_context"], 1),
        )
        for reader in readers
        for one in means[means["reader_group"] == reader].to_dict("records")
    ]
    columns = ("Reader", "Items", "k", "n", "% right", "% right, adjusted", "% out of context")
    note = (
        "Means of the tasks; where one was not answered there is none. Out of context: answers of which no label could be read. "
        "Adjusted: right among those read, which leaves out the items that a reader fails to answer and flatters it."
    )
    return ApaTable(
        name, "Accuracy, adjusted accuracy and answers out of context", columns, tuple(rows), note, ORIGIN
    )


def rules_by_task_table(name: str, told: pd.DataFrame, kinds: Mapping[str, str]) -> ApaTable:
    """Set the items that readers sorted right beside the rules that the same readers stated."""
    rows: list[tuple[str, ...]] = []
    for group, own in told.groupby("reader_group", sort=False):
        rows.append(Head([marked(str(group), kinds[str(group)])]))
        for one in own.to_dict("records"):
            rows.append(
                (
                    NAMES[str(one["task"])],
                    apa.number(100 * one["sorted"], 1),
                    apa.count(one["stated"]),
                    apa.count(one["rated"]),
                    f"{apa.count(one['right'])}/{apa.count(one['rated'])}" if one["rated"] else apa.MISSING,
                    apa.number(100 * one["sorted_knowing"], 1),
                    apa.number(100 * one["sorted_otherwise"], 1),
                )
            )
    columns = (
        *("Task", "% sorted right", "Rules stated", "Rated", "Right of rated"),
        *("% sorted, rule right", "% sorted, rule not right"),
    )
    note = (
        "The same readers sorted the items and then stated the rule; the paper's four people stated rules and sorted nothing. Right: "
        "the highest rating. The last columns have the items of sessions whose statement was rated right, and of the others rated."
    )
    origin = Origin(
        columns=("item_id", "score", "scorer", "correct"),
        rows="by session and task; statements end in ' rule'",
    )
    return ApaTable(
        name, "Items sorted and rules stated by the same readers", columns, tuple(rows), note, origin
    )
