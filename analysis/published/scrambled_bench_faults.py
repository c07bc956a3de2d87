"""The tables of Scrambled Bench from its released outputs, and what each fault of its scoring is worth in them."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from analysis import apa
from analysis.measures.recovery import edit_distance, recovery_rate
from analysis.measures.retention import BELOW
from analysis.published.reproductions import Fault, PublishedTable, Reading, Reproduction
from analysis.published.scrambled_bench import (
    COLUMNS,
    DATA_SET,
    NAMES,
    Reply,
    compare_with_print,
    measured,
    released_replies,
    scrambled_bench_tables,
)
from analysis.published.scrambled_bench_authors import authors_files, authors_replies, check_dream
from analysis.published.scrambled_bench_more import (
    PROBLEMS_DATA,
    faults_of_more,
    halves,
    is_known,
    more_tables,
)

CITATION = (
    "Cao, Q., Kojima, T., Matsuo, Y., & Iwasawa, Y. (2023). Unnatural error correction: GPT-4 can almost perfectly handle unnatural "
    "scrambled text. In Proceedings of EMNLP 2023 (arXiv:2311.18805)."
)
CAPTIONS = {
    "3": "Few-shot recovery of 408 RealtimeQA sentences (upper: ED; lower: RR)",
    "4": "Zero-shot recovery of 408 RealtimeQA sentences (upper: ED; lower: RR)",
    "5": "Zero-shot answers to 346 RealtimeQA questions (upper: Acc; lower: RPG)",
    "1": "Word problems of AQuA-RAT behind four worked examples: columns have the problem's scramble, rows the examples' (Acc)",
    "6": "Zero-shot answers to questions about DREAM's dialogues (upper: Acc; lower: RPG)",
    "7": "Accuracy by category of question (DREAM); a question may be in several",
    "8": "Relative performance gain by category of question (DREAM)",
}
HOLDERS = {
    "1": "output/scrambled_qa/scrambled_AQuA",
    "3": "outputs/ or output/scrambled_rec/scrambled_realtimeQA/few-shot",
    "4": "outputs/ or output/scrambled_rec/scrambled_realtimeQA/zero-shot",
    "5": "outputs/ or output/scrambled_qa/scrambled_realtimeQA",
    "6": "output/scrambled_qa/scrambled_DREAM_test and scrambled_DREAM_dev",
}
"""Where the responses of each table stand in the folder that is given."""
DREAM = "dream"


def reproduce(
    folder: Path,
    readings: Mapping[str, Reading],
    told: Callable[[str], None] = lambda _: None,
    data: Mapping[str, Path] = MappingProxyType({}),
) -> Reproduction:
    """Reproduce the tables and measure what each fault changes, as :func:`reproduce_paper` asks."""
    told("responses")
    has_outputs = any((folder / "outputs").glob("*.jsonl*"))
    files = [one for one in authors_files(folder) if not (has_outputs and one.data == DATA_SET)]
    replies = [*(released_replies(folder) if has_outputs or not files else ()), *authors_replies(files)]
    places = {name: place for place, name in enumerate(NAMES)}
    replies.sort(key=lambda one: places.get(one.model, len(places)))
    trials = measured(replies)
    has_dream = (trials["data"] == DREAM).any()
    categories = check_dream(files, data[DREAM]) if has_dream and DREAM in data else None
    told("tables")
    tables = {
        **{
            number: table
            for number, table in scrambled_bench_tables(trials, printed=True).items()
            if len(table)
        },
        **more_tables(trials, categories),
    }
    tables = dict(sorted(tables.items()))
    cells = compare_with_print(tables)
    told("replies, read again")
    answers, texts = _read_again(replies, readings)
    faults = [
        *_faults_of_answers(answers[answers["data"] == DATA_SET] if len(answers) else answers),
        *_faults_of_answers(answers[answers["data"] == DREAM] if len(answers) else answers, "DREAM", "6"),
        *faults_of_more(trials),
        *_faults_of_texts(trials, texts),
    ]
    models = trials["model"].nunique()
    return Reproduction(
        "Scrambled Bench",
        CITATION,
        f"{apa.count(len(trials))} released responses of {apa.count(models)} models, with the answers that "
        "the authors' code read from "
        "them.",
        tuple(PublishedTable(number, CAPTIONS[number], table) for number, table in tables.items()),
        cells.assign(known=is_known(cells)),
        tuple(faults),
        tuple(_lacking(trials, tables, has_dream=bool(has_dream))),
    )


def _lacking(trials: pd.DataFrame, tables: Mapping[str, pd.DataFrame], *, has_dream: bool) -> Iterator[str]:
    """Say of each table that is not made which responses it needs, and of the others what is left empty."""
    for number, where in HOLDERS.items():
        if number not in tables:
            yield f"Table {number}: its responses are not in the folder; they would stand in {where}."
    if "7" not in tables:
        yield (
            "Tables 7 and 8: the categories of the questions are in DREAM's own files; give your copy of it with --dream."
            if has_dream
            else "Tables 7 and 8: made of the responses of Table 6."
        )
    if half := halves(trials):
        yield (
            f"Cells of Tables 6 to 8 for which the responses to one half of DREAM are missing (test or dev): {', '.join(half)}."
        )
    yield "Models whose responses are not in the folder."


def inside_a_word(reply: str, options: list[str]) -> bool:
    """Return whether the paper's letter of a reply is a part of a word."""
    kept = reply if any("." in option for option in options) else reply.split(".")[0]
    if any(option in kept for option in options):
        return False
    letters = string.ascii_uppercase[: len(options)]
    found = re.search(f"[{letters}]", kept)
    if found is None:
        return False
    around = kept[max(found.start() - 1, 0) : found.start()] + kept[found.end() : found.end() + 1]
    return any(sign.isalpha() for sign in around)


def _read_again(
    replies: Sequence[Reply], readings: Mapping[str, Reading]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    answers: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    for one in replies:
        base = {
            "model": NAMES.get(one.model, one.model),
            "data": one.data,
            "method": one.method,
            "column": COLUMNS[one.condition],
        }
        if one.task == "rec":
            read = readings["text"](one.output, one.shown)
            texts.append(base | {"own": edit_distance(read, one.key)})
        elif one.data != PROBLEMS_DATA:
            read = readings["choice"](one.output, one.shown)
            answers.append(
                base
                | {
                    "printed": one.read == one.key,
                    "own": read == one.key,
                    "inside": inside_a_word(one.output, list(one.shown)),
                }
            )
    return pd.DataFrame(answers), pd.DataFrame(texts)


def _faults_of_answers(answers: pd.DataFrame, data: str = "", table: str = "5") -> list[Fault]:
    if answers.empty:
        return []
    ending, behind = (f"_{data.casefold()}", f" ({data})") if data else ("", "")
    inside = answers[answers["inside"]]
    by_model = answers.groupby("model", sort=False)
    within = pd.DataFrame(
        {
            "replies": by_model.size(),
            "letter inside a word": by_model["inside"].sum(),
            "of them scored right": inside.groupby("model", sort=False)["printed"]
            .sum()
            .reindex(by_model.size().index)
            .fillna(0)
            .astype(int),
        }
    )
    change = 100.0 * (
        answers.assign(change=answers["own"].astype(float) - answers["printed"].astype(float))
        .pivot_table(index="model", columns="column", values="change", aggfunc="mean", sort=False)
        .reindex(columns=[one for one in COLUMNS.values() if one in set(answers["column"])])
    )
    largest = change.abs().max().max()
    return [
        Fault(
            f"letter_inside_a_word{ending}",
            f"A capital letter counts inside a word{behind}",
            "Where no option stands in a reply word for word, the code takes the first capital letter of an option anywhere, "
            "so that “Based on” is B "
            f"and “According” A. {apa.count(len(inside))} of {apa.count(len(answers))} answers were read so; "
            f"{apa.count(int(inside['printed'].sum()))} of these were counted as right.",
            within,
            0,
        ),
        Fault(
            f"reading_of_answers{ending}",
            f"Answers read by the paper's parser and by wrods'{behind}",
            f"Percentage points of accuracy that wrods' reading adds to Table {table} (it takes labels that are "
            "announced or stand alone, options "
            f"in any case, and nothing from inside a word). The largest change is {apa.number(largest, 2)} points.",
            change,
        ),
    ]


def _faults_of_texts(trials: pd.DataFrame, texts: pd.DataFrame) -> list[Fault]:
    own = trials[trials["task"] == "rec"].reset_index(drop=True)
    if own.empty:
        return []
    own = own.assign(
        model=own["model"].map(lambda name: NAMES.get(name, name)), column=own["condition"].map(COLUMNS)
    )
    own["ed_own"] = texts["own"].to_numpy()
    rates: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for (model, method, column), some in own.groupby(["model", "method", "column"], sort=False):
        before = some["ed_shown"].sum()
        changed = some[some["ed_shown"] > 0]
        per = 100.0 * (1 - changed["ed_given"] / changed["ed_shown"])
        rates.setdefault((str(model), str(method)), {})[str(column)] = {
            "printed": recovery_rate(before, some["ed_given"].sum()),
            "own": recovery_rate(before, some["ed_own"].sum()),
            "mean": float(per.mean()),
        }
    columns = [one for one in COLUMNS.values() if one in set(own["column"])]

    def changes(to: str) -> pd.DataFrame:
        rows = {
            key: {
                column: cells[column][to] - cells[column]["printed"] for column in columns if column in cells
            }
            for key, cells in rates.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis(index=["model", "method"])[columns]

    printed = pd.DataFrame.from_dict(
        {key: {column: cell["printed"] for column, cell in cells.items()} for key, cells in rates.items()},
        orient="index",
    ).rename_axis(index=["model", "method"])[columns]
    values = printed.to_numpy(dtype=float)
    values = values[~np.isnan(values)]
    negative = int((values < 0).sum())
    per_sentence, own_reading = changes("mean"), changes("own")
    return [
        Fault(
            "sign_of_equation_1",
            "Equation 1 is printed with the sign reversed",
            f"As printed, RR would be the negative of every one of the {apa.count(len(values))} rates below. The "
            "tables hold the mended "
            "sign; a reader who follows the equation gets these.",
            -printed,
        ),
        Fault(
            "values_below_zero",
            f"Values below 0 are printed as “{BELOW}”",
            f"{apa.count(negative)} of {apa.count(len(values))} recovery rates lie below 0: the answers are "
            "further from the intact text than "
            f"what was shown. The lowest is {apa.number(float(values.min()), 1)}%; bars and points of such values are left out of the "
            "figures. These are the rates in full.",
            printed,
        ),
        Fault(
            "sums_or_sentences",
            "A ratio of sums, not a mean over sentences",
            "RR weighs a sentence by how much of it was scrambled. Percentage points by which the mean of the "
            "sentences' own rates differs "
            f"from it (sentences that no scramble changed left out): up to {apa.number(float(per_sentence.abs().max().max()), 1)}.",
            per_sentence,
        ),
        Fault(
            "reading_of_texts",
            "Recovered texts read by the paper's code and by wrods'",
            "The code cuts a reply at “Scrambled sentence:” with a small s only, though its own examples write a "
            "capital, and keeps greetings "
            "and quotes. Percentage points of RR that wrods' reading adds to Tables 3 and 4: at most "
            f"{apa.number(float(own_reading.abs().max().max()), 2)}.",
            own_reading,
        ),
    ]
