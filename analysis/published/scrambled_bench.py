"""Tables 3, 4 and 5 of Scrambled Bench (Cao, Kojima, Matsuo & Iwasawa, 2023) from the released outputs of its models.

Table 3 is few-shot and Table 4 zero-shot recovery of 408 sentences (edit distance above, recovery rate below), Table 5 the
answers to 346 questions behind changed evidence (accuracy above, relative performance gain below). The released folder is the
one that ``wrods import --from scrambled_bench`` takes: ``outputs/MODEL.jsonl.gz`` and ``stimuli/``; the study that it makes gives
the same tables (:func:`imported_trials`). ``wrods reproduce scrambled-bench`` makes a page of them.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.answers import failures_as_wrong
from analysis.measures.accuracy import asked
from analysis.measures.recovery import edit_distance, recovery_rate, recovery_trials
from analysis.measures.retention import BELOW, as_printed, relative_gain
from analysis.tables import Tables
from stimuli.errors import UserError, unknown_name

NAMES = {
    "gpt-4-0314": "GPT-4",
    "gpt-3.5-turbo-0301": "GPT-3.5-turbo",
    "text-davinci-003": "text-davinci-003",
    "falcon-180B": "Falcon-180b",
    "falcon-180B-chat": "Falcon-180b-chat",
    "falcon-40b": "Falcon-40b",
    "falcon-40b-instruct": "Falcon-40b-instruct",
    "Llama-2-70b-hf": "Llama-2-70b",
    "Llama-2-70b-chat-hf": "Llama-2-70b-chat",
    "Llama-2-13b-hf": "Llama-2-13b",
    "Llama-2-13b-chat-hf": "Llama-2-13b-chat",
    "Llama-2-7b-hf": "Llama-2-7b",
    "Llama-2-7b-chat-hf": "Llama-2-7b-chat",
    "mpt-30b": "MPT-30b",
    "mpt-30b-instruct": "MPT-30b-instruct",
    "ul2": "UL2",
    "flan-ul2": "Flan-UL2",
    "flan-t5-xxl": "Flan-T5-xxl",
    "byt5-xxl": "ByT5-xxl",
}
"""Names of output files and of the paper's rows."""

COLUMNS = {
    "original": "Ori",
    "rs20": "20%",
    "rs50": "50%",
    "rs100": "100%",
    "kf": "KF",
    "kfl": "KFL",
    "sub": "Sub",
}
"""Conditions of the outputs and columns of the tables, in their order."""

TABLES = {"3": ("rec", "few-shot"), "4": ("rec", "zero-shot"), "5": ("qa", "zero-shot")}
DATA_SET = "realtimeqa"
"""Whose responses are read, as lines call it."""
_STIMULI = {"rec": "rec_realtimeqa.jsonl", "qa": "qa_realtimeqa.jsonl"}


def released_trials(folder: str | Path) -> pd.DataFrame:
    """Measure every released response as the paper does."""
    return measured(released_replies(Path(folder)))


@dataclass(frozen=True)
class Reply:
    """One released response."""

    model: str  # the file's name
    task: str
    data: str
    method: str  # ``condition`` is one of `COLUMNS`
    condition: str
    item: int | str  # A number within the data set and split
    output: str
    read: str
    key: str  # the right letter, or the intact text
    shown: tuple[str, ...]  # the options of a question, or the scrambled text
    loose: str | None = None
    examples: str = "Ori"  # of word problems: the column of the examples' scramble


def released_replies(folder: Path) -> Iterator[Reply]:
    """Read every response of ``outputs/``, in the order of files and lines."""
    files = sorted((folder / "outputs").glob("*.jsonl*"))
    if not files:
        raise UserError(
            f"{folder / 'outputs'} has no outputs",
            mend="Give the folder that holds outputs/ and stimuli/; `wrods reproduce scrambled-bench` also takes the authors' "
            "own repository with its output/.",
        )
    stimuli: dict[str, dict[int, dict[str, Any]]] = {}
    for file in files:
        model = file.name.partition(".jsonl")[0]
        for number, row in enumerate(released_lines(file), 1):
            if row.get("ds", DATA_SET) != DATA_SET:
                raise UserError(
                    f"{file}, line {number}: ds is {row['ds']!r}; Tables 3 to 5 are made from responses to {DATA_SET}",
                    mend="Leave these lines out.",
                )
            try:
                task = row["task"]
                if task not in stimuli:
                    there = released_lines(folder / "stimuli" / _STIMULI[task])
                    stimuli[task] = {one["i"]: one for one in there}
                yield _reply(model, row, stimuli[task])
            except KeyError as error:
                raise UserError(
                    f"{file}, line {number}: {error.args[0]!r} is missing or unknown",
                    mend="Give the released files as they are.",
                ) from error


def measured(replies: Iterable[Reply]) -> pd.DataFrame:
    """Measure replies as the paper does, a row each."""
    return pd.DataFrame(
        [
            {
                "model": one.model,
                "task": one.task,
                "data": one.data,
                "method": one.method,
                "condition": one.condition,
                "examples": one.examples,
                "item": one.item,
                "ed_shown": edit_distance(one.shown[0], one.key) if one.task == "rec" else nan,
                "ed_given": edit_distance(one.read, one.key) if one.task == "rec" else nan,
                "correct": float(one.read == one.key) if one.task == "qa" else nan,
                "loose": nan if one.loose is None else float(one.loose == one.key),
            }
            for one in replies
        ]
    )


def imported_trials(tables: Tables) -> pd.DataFrame:
    """Score an imported study's responses by wrods' own measures."""
    if "text" not in tables.factors:
        raise unknown_name("factor:", "text", tables.factors)
    measured = recovery_trials(tables.trials, tables.items, list(tables.factors))
    chosen = asked(tables.trials)
    chosen = chosen[chosen["trial_type"] == "choose"]
    right = failures_as_wrong(chosen)
    parts = [measured.assign(task="rec"), chosen.assign(task="qa", correct=right)]
    found = pd.concat(
        [part.rename(columns={"text": "condition", "item_id": "item", "reader": "model"}) for part in parts]
    )
    found["method"] = method_of(found)
    return found.reindex(
        columns=["model", "task", "method", "condition", "item", "ed_shown", "ed_given", "correct"]
    )


def method_of(trials: pd.DataFrame) -> pd.Series:
    """Return ``zero-shot`` or ``few-shot`` of each imported trial; nan where unknown."""
    told: pd.Series = (
        trials["examples"]
        if "examples" in trials.columns
        else trials["prompt_variant"].map({1.0: "zero-shot", 2.0: "few-shot"})
    )
    return told


def scrambled_bench_tables(
    source: str | Path | pd.DataFrame, *, printed: bool = False
) -> dict[str, pd.DataFrame]:
    """Make Tables 3, 4 and 5 from the released outputs."""
    trials = source if isinstance(source, pd.DataFrame) else released_trials(source)
    made = {}
    for table, (task, method) in TABLES.items():
        own = trials[(trials["task"] == task) & (trials["method"] == method)]
        own = own[own["data"] == DATA_SET] if "data" in own else own
        rows = {}
        for model in in_papers_order(own):
            of_model = own[own["model"] == model].groupby("condition", sort=False)
            cells = _recovery_cells(of_model) if task == "rec" else _question_cells(of_model)
            for measure, values in cells.items():
                named = {COLUMNS[condition]: value for condition, value in values.items()}
                rows[NAMES.get(model, model), measure] = (
                    {column: cell_text(measure, column, value) for column, value in named.items()}
                    if printed
                    else named
                )
        found = pd.DataFrame.from_dict(rows, orient="index")
        columns = [column for column in COLUMNS.values() if column in found.columns]
        made[table] = found[columns].rename_axis(index=["model", "measure"]) if rows else found
    return made


def in_papers_order(trials: pd.DataFrame) -> list[str]:
    """Return the models of these trials, the paper's first and in its order."""
    order = {name: place for place, name in enumerate(NAMES)}
    return sorted(map(str, trials["model"].unique()), key=lambda name: (order.get(name, len(order)), name))


def printed_cells() -> pd.DataFrame:
    """Return the cells of Tables 3, 4 and 5 as they stand in print: ``table, model, measure, column, printed``."""
    return _cells_in("scrambled_bench.csv")


def all_printed_cells() -> pd.DataFrame:
    """Return the printed cells of Tables 1 and 3 to 8: ``table, model, measure, column, printed``."""
    return pd.concat([printed_cells(), _cells_in("scrambled_bench_more.csv")], ignore_index=True)


def _cells_in(file: str) -> pd.DataFrame:
    text = resources.files(__package__).joinpath(file).read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return pd.DataFrame(list(csv.DictReader(lines)))


def compare_with_print(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Put every cell beside the printed one."""
    printed = all_printed_cells()
    columns = ["table", "model", "measure", "column", "made", "printed", "same"]
    parts = []
    for table, made in tables.items():
        if table not in set(printed["table"]):
            raise unknown_name("table:", table, sorted(set(printed["table"])))
        cells = made.reset_index().melt(id_vars=["model", "measure"], var_name="column", value_name="made")
        parts.append(cells[cells["made"].notna()].assign(table=table))
    if not parts:
        return pd.DataFrame(columns=columns)
    both: pd.DataFrame = pd.concat(parts).merge(
        printed, on=["table", "model", "measure", "column"], how="inner"
    )
    both["same"] = both["made"] == both["printed"]
    return both.reindex(columns=columns)


def released_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Read a released file of JSON lines, packed or not."""
    if not file.is_file():
        raise UserError(f"there is no {file}", mend="Give the folder that holds outputs/ and stimuli/.")
    opening = gzip.open if file.suffix == ".gz" else open
    with opening(file, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise UserError(
                    f"{file}, line {number} is not JSON: {error}", mend="Give the released files as they are."
                ) from error


def _reply(model: str, row: dict[str, Any], stimuli: dict[int, dict[str, Any]]) -> Reply:
    task, condition = row["task"], row["cond"]
    if condition not in COLUMNS:
        raise KeyError(condition)
    stimulus = stimuli[row["i"]]
    if task == "rec":
        read, key, shown = row["recovered"], stimulus["original"], (stimulus[condition],)
    else:
        read, key, shown = row["pred"], row["gold"], tuple(stimulus["choices"])
    return Reply(
        model, task, DATA_SET, row["method"], condition, row["i"], row.get("output", ""), read, key, shown
    )


def _recovery_cells(conditions: Any) -> dict[str, dict[str, float]]:
    sums = conditions[["ed_shown", "ed_given"]].sum()
    rates = {str(name): recovery_rate(one["ed_shown"], one["ed_given"]) for name, one in sums.iterrows()}
    return {"ED": {str(k): float(v) for k, v in conditions["ed_given"].mean().items()}, "RR": rates}


def _question_cells(conditions: Any) -> dict[str, dict[str, float]]:
    shares = {str(name): 100.0 * float(value) for name, value in conditions["correct"].mean().items()}
    nan = float("nan")
    gains = {
        name: relative_gain(share, shares.get("original", nan), shares.get("sub", nan))
        for name, share in shares.items()
    }
    return {"Acc": shares, "RPG": gains}


def cell_text(measure: str, column: str, value: float) -> str:
    """Format a cell as the paper does; an RPG of 100 or 0 by definition has no trailing zeros."""
    kind = measure.partition(" ")[0]
    if value != value:
        return ""
    if kind == "RR" or (kind == "RPG" and column in ("Ori", "Sub")):
        return BELOW if value < 0 else str(round(value, 2))
    return as_printed(value) if kind == "RPG" else f"{value:.2f}"
