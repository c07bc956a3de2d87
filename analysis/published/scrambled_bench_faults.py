"""Tables 3 to 5 of Scrambled Bench from its released outputs, and what each fault of its scoring is worth in them."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis import apa
from analysis.measures.recovery import edit_distance, recovery_rate
from analysis.measures.retention import BELOW
from analysis.published.reproductions import Fault, PublishedTable, Reading, Reproduction
from analysis.published.scrambled_bench import (
    COLUMNS,
    NAMES,
    compare_with_print,
    released_lines,
    released_trials,
    scrambled_bench_tables,
)

CITATION = (
    "Cao, Q., Kojima, T., Matsuo, Y., & Iwasawa, Y. (2023). Unnatural error correction: GPT-4 can almost perfectly handle unnatural "
    "scrambled text. In Proceedings of EMNLP 2023 (arXiv:2311.18805)."
)
CAPTIONS = {
    "3": "Few-shot recovery of 408 RealtimeQA sentences (upper: ED; lower: RR)",
    "4": "Zero-shot recovery of 408 RealtimeQA sentences (upper: ED; lower: RR)",
    "5": "Zero-shot answers to 346 RealtimeQA questions (upper: Acc; lower: RPG)",
}
LACKING = (
    "Tables 1 and 6 to 8 (AQuA-RAT, DREAM): their outputs are not in the folder; `wrods new --from "
    "scrambled-bench` makes the studies.",
    "Models whose outputs are not in the folder.",
)


def reproduce(
    folder: Path, readings: Mapping[str, Reading], told: Callable[[str], None] = lambda _: None
) -> Reproduction:
    """Make the tables again and price the faults; parameters as :func:`analysis.published.reproductions.reproduce_paper`."""
    told("tables")
    trials = released_trials(folder)
    tables = scrambled_bench_tables(trials, printed=True)
    tables = {number: table for number, table in tables.items() if len(table)}
    cells = compare_with_print(tables)
    told("replies, read again")
    answers, texts = _read_again(folder, readings)
    faults = [*_faults_of_answers(answers), *_faults_of_texts(trials, texts)]
    models = trials["model"].nunique()
    return Reproduction(
        "Scrambled Bench",
        CITATION,
        f"{apa.count(len(trials))} released responses of {apa.count(models)} models, with the answers that "
        "the authors' code read from "
        "them.",
        tuple(PublishedTable(number, CAPTIONS[number], table) for number, table in tables.items()),
        cells,
        tuple(faults),
        LACKING,
    )


def inside_a_word(reply: str, options: list[str]) -> bool:
    """Say whether the paper's letter of a reply is a part of a word.

    No option stands in the reply, and its first capital has letters beside it. The paper keeps what stands before the first full
    stop unless an option has one.
    """
    kept = reply if any("." in option for option in options) else reply.split(".")[0]
    if any(option in kept for option in options):
        return False
    letters = string.ascii_uppercase[: len(options)]
    found = re.search(f"[{letters}]", kept)
    if found is None:
        return False
    around = kept[max(found.start() - 1, 0) : found.start()] + kept[found.end() : found.end() + 1]
    return any(sign.isalpha() for sign in around)


def _read_again(folder: Path, readings: Mapping[str, Reading]) -> tuple[pd.DataFrame, pd.DataFrame]:
    stimuli = Path(folder) / "stimuli"
    questions = {row["i"]: row for row in released_lines(stimuli / "qa_realtimeqa.jsonl")}
    sentences = {row["i"]: row for row in released_lines(stimuli / "rec_realtimeqa.jsonl")}
    answers: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    for file in sorted((Path(folder) / "outputs").glob("*.jsonl*")):
        name = file.name.partition(".jsonl")[0]
        for row in released_lines(file):
            base = {"model": NAMES.get(name, name), "method": row["method"], "column": COLUMNS[row["cond"]]}
            if row["task"] == "qa":
                options = questions[row["i"]]["choices"]
                read = readings["choice"](row["output"], options)
                answers.append(
                    base
                    | {
                        "printed": row["pred"] == row["gold"],
                        "own": read == row["gold"],
                        "inside": inside_a_word(row["output"], options),
                        "unread": not row["pred"],
                    }
                )
            else:
                sentence = sentences[row["i"]]
                read = readings["text"](row["output"], (sentence[row["cond"]],))
                texts.append(base | {"own": edit_distance(read, sentence["original"])})
    return pd.DataFrame(answers), pd.DataFrame(texts)


def _faults_of_answers(answers: pd.DataFrame) -> list[Fault]:
    if answers.empty:
        return []
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
            "letter_inside_a_word",
            "A capital letter counts inside a word",
            "Where no option stands in a reply word for word, the code takes the first capital A to D anywhere, "
            "so that “Based on” is B "
            f"and “According” A. {apa.count(len(inside))} of {apa.count(len(answers))} answers were read so; "
            f"{apa.count(int(inside['printed'].sum()))} of these were counted as right.",
            within,
            0,
        ),
        Fault(
            "reading_of_answers",
            "Answers read by the paper's parser and by wrods'",
            "Percentage points of accuracy that wrods' reading adds to Table 5 (it takes labels that are "
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
    for (method, model, column), some in own.groupby(["method", "model", "column"], sort=False):
        before = some["ed_shown"].sum()
        changed = some[some["ed_shown"] > 0]
        per = 100.0 * (1 - changed["ed_given"] / changed["ed_shown"])
        rates.setdefault((str(method), str(model)), {})[str(column)] = {
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
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis(index=["method", "model"])[columns]

    printed = pd.DataFrame.from_dict(
        {key: {column: cell["printed"] for column, cell in cells.items()} for key, cells in rates.items()},
        orient="index",
    ).rename_axis(index=["method", "model"])[columns]
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
