"""Tables 1 and 3 to 8 of Scrambled Bench (Cao, Kojima, Matsuo & Iwasawa, 2023) from the released outputs.

The folder holds ``outputs/MODEL.jsonl.gz`` and ``stimuli/`` as ``wrods import --from scrambled_bench`` takes it, or the authors' own
``output/TASK/scrambled_DATA/METHOD/CONDITION/MODEL``, where the i-th line belongs to the i-th question. Tables 3 and 4 are recovery of
408 sentences, 5 answers to RealtimeQA, 1 AQuA-RAT, 6 to 8 DREAM (1,025 questions, of which the paper divides by 1,024).
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from math import nan
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from analysis import apa
from analysis.answers import failures_as_wrong
from analysis.measures.accuracy import asked
from analysis.measures.recovery import edit_distance, recovery_rate, recovery_trials
from analysis.measures.retention import BELOW, as_printed, relative_gain
from analysis.published.reproductions import Fault, PublishedTable, Reading, Reproduction
from analysis.tables import Tables
from stimuli.corpora import load_corpus
from stimuli.corpora.record import Record
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
    item: int | str  # a number within the data set and split
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
                row = json.loads(line)
            except ValueError as error:
                raise UserError(
                    f"{file}, line {number} is not JSON: {error}", mend="Give the released files as they are."
                ) from error
            if not isinstance(row, dict):
                raise UserError(
                    f"{file}, line {number} is {line.strip()[:40]!r}; a line is a response with its fields",
                    mend="Give the released files as they are.",
                )
            yield row


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


OUTPUT = "output"
_TASKS = {"scrambled_qa": "qa", "scrambled_rec": "rec"}
_DATA = {
    "scrambled_realtimeqa": ("realtimeqa", ""),
    "scrambled_dream_test": ("dream", "test"),
    "scrambled_dream_dev": ("dream", "dev"),
    "scrambled_aqua": ("aqua", ""),
}
_CONDITIONS = {
    "original": "original",
    "random_20%": "rs20",
    "random_50%": "rs50",
    "random_100%": "rs100",
    "keepfirst": "kf",
    "keepfirstlast": "kfl",
    "substituted": "sub",
}
_EXAMPLES = {
    f"demo_random_{rate}%": column
    for rate, column in (("0", "Ori"), ("20", "20%"), ("50", "50%"), ("100", "100%"))
}
_LAYOUT = (
    "Files stand as output/scrambled_qa/scrambled_DREAM_test/zero-shot/original/MODEL, those of word problems as "
    "output/scrambled_qa/scrambled_AQuA/few-shot-cot/demo_random_50%/original/MODEL."
)
SPLITS = ("test", "dev")


@dataclass(frozen=True)
class AuthorsFile:
    """One file of responses and what its path says."""

    path: Path
    task: str  # as `analysis.published.scrambled_bench.Reply`
    data: str
    split: str  # ``test`` or ``dev`` of DREAM, empty for the others
    method: str
    examples: str
    condition: str
    model: str


def authors_files(folder: Path) -> list[AuthorsFile]:
    """Return the files of ``output/``, in the order of their paths; none where there is no such folder."""
    found = []
    for name, task in _TASKS.items():
        base = folder / OUTPUT / name
        for path in sorted(base.rglob("*")):
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(base).parts):
                found.append(_placed(path, path.relative_to(base).parts, task))
    return found


def authors_replies(files: Sequence[AuthorsFile]) -> Iterator[Reply]:
    """Read every response of these files."""
    for file in files:
        for number, row in enumerate(released_lines(file.path), 1):
            try:
                yield _authors_reply(file, number, row)
            except KeyError as error:
                raise UserError(
                    f"{file.path}, line {number} has no {error.args[0]!r}",
                    mend="Give the authors' files as they are.",
                ) from error


def check_dream(files: Sequence[AuthorsFile], dream: Path) -> dict[str, tuple[str, ...]]:
    """Return the categories of every question of DREAM, by the item's name."""
    asked: dict[str, list[Record]] = {
        split: list(load_corpus("dream", dream, split=split, selection="annotated").records)
        for split in SPLITS
    }
    for file in files:
        if file.data != "dream":
            continue
        records = asked[file.split]
        number = 0
        for number, row in enumerate(released_lines(file.path), 1):
            if number <= len(records) and not _asks(str(row.get("input", "")), records[number - 1]):
                raise UserError(
                    f"{file.path}, line {number} does not ask {records[number - 1].texts['question']!r}, the question of this "
                    f"place in DREAM's {file.split}",
                    mend="Give the authors' files as they are, and DREAM with its annotator1_test.txt, annotator2_test.txt and "
                    "annotator2_dev.txt.",
                )
        if number != len(records):
            raise UserError(
                f"{file.path} has {number:,} lines; {len(records):,} questions of DREAM's {file.split} were asked",
                mend="Give the authors' files as they are.",
            )
    return {
        f"{split} {place}": tuple(str(one.extra.get("categories") or "").split(", "))
        for split, records in asked.items()
        for place, one in enumerate(records)
    }


def options_of(prompt: str) -> tuple[str, ...]:
    """Return the options of the last ``Choices:`` line of a prompt, without their letters; none where there is no such line."""
    line = prompt.rpartition("\nChoices: ")[2].partition("\nAnswer:")[0] if "\nChoices: " in prompt else ""
    found: list[str] = []
    rest = line
    for letter in "ABCDE":
        before, mark, behind = rest.partition(f"({letter})")
        if not mark:
            break
        if found:
            found[-1] = before.rstrip()
        found.append(behind)
        rest = behind
    return tuple(one.strip() for one in found)


def _placed(path: Path, parts: tuple[str, ...], task: str) -> AuthorsFile:
    middle = parts[2:-2]
    data, split = _DATA.get(parts[0].casefold(), ("", ""))
    is_problem = data == "aqua"
    if (
        not data
        or len(parts) != 4 + is_problem
        or parts[-2] not in _CONDITIONS
        or (is_problem and middle[0] not in _EXAMPLES)
        or (task == "rec" and data != "realtimeqa")
    ):
        raise UserError(f"{path} is not where the authors put their files", mend=_LAYOUT)
    examples = _EXAMPLES[middle[0]] if is_problem else "Ori"
    model = re.sub(r"\.jsonl?$", "", parts[-1])
    return AuthorsFile(path, task, data, split, parts[1], examples, _CONDITIONS[parts[-2]], model)


def _authors_reply(file: AuthorsFile, number: int, row: dict[str, Any]) -> Reply:
    item = f"{file.split} {number - 1}" if file.split else number - 1
    base = (file.model, file.task, file.data, file.method, file.condition, item)
    if file.task == "rec":
        read, intact, shown = (str(row[name]) for name in ("recovered", "original", "scrambled"))
        return Reply(*base, str(row.get("output", "")), read.strip(), intact, (shown,))
    options = options_of(str(row["input"]))
    key, output = str(row["GT"]), str(row.get("output", ""))
    if file.data == "aqua":
        loose = str(row["pred_loose"])
        return Reply(*base, output, str(row["pred_strict"]), key, options, loose, file.examples)
    return Reply(*base, output, str(row["pred"]), key, options)


def _asks(prompt: str, record: Record) -> bool:
    question = prompt.rpartition("\nQuestion: ")[2].partition("\nChoices: ")[0]
    return _plain(question) == _plain(record.texts["question"]) and [
        _plain(one) for one in options_of(prompt)
    ] == [_plain(one) for one in record.choices or ()]


def _plain(text: str) -> str:
    return " ".join(text.split())


ASKED, DIVIDED_BY = 1025, 1024
"""Questions about DREAM, and what the paper divides by."""
CATEGORIES = ("arithmetic", "commonsense", "logic", "matching", "summary")
KNOWN = {("6", "UL2", "", ""), ("1", "text-davinci-003", "Acc examples 50%", "100%")}
"""Printed cells that the released answers do not give: ten of UL2's in Table 6, and one that was rounded up (33.46)."""
PROBLEMS = ("Ori", "20%", "50%", "100%")
"""Columns and groups of rows of Table 1."""

PROBLEMS_DATA = "aqua"
Cells = dict[tuple[str, str], dict[str, float]]


def more_tables(
    trials: pd.DataFrame, categories: Mapping[str, Sequence[str]] | None = None, *, printed: bool = True
) -> dict[str, pd.DataFrame]:
    """Make Tables 1, 6, 7 and 8, as far as there are answers for them."""
    made = {"1": _problems(trials[trials["data"] == PROBLEMS_DATA])}
    dream = whole(trials)
    accuracies, gains = _by_category(dream, {"all": None})
    made["6"] = _paired(accuracies, gains)
    if categories is not None:
        chosen: dict[str, set[str] | None] = {"all": None}
        chosen |= {one: {item for item, own in categories.items() if one in own} for one in CATEGORIES}
        made["7"], made["8"] = _by_category(dream, chosen)
    found = {}
    for number, cells in made.items():
        if not cells:
            continue
        columns = [name for name in COLUMNS.values() if any(name in own for own in cells.values())]
        rows = {
            (NAMES.get(model, model), measure): {
                column: cell_text(measure, column, value) if printed else value
                for column, value in own.items()
            }
            for (model, measure), own in cells.items()
        }
        table = pd.DataFrame(list(rows.values()), columns=columns)
        table.index = pd.MultiIndex.from_tuples(list(rows), names=["model", "measure"])
        found[number] = table
    return found


def whole(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the answers about DREAM of those models and conditions whose answers to both splits are there."""
    dream = trials[trials["data"] == "dream"]
    split = dream["item"].astype(str).str.partition(" ")[0] if len(dream) else pd.Series(dtype=str)
    both = split.groupby([dream["model"], dream["condition"]]).transform("nunique") == len(SPLITS)
    return dream[both.reindex(dream.index, fill_value=False)]


def halves(trials: pd.DataFrame) -> list[str]:
    """Say which models and conditions have the answers to one of DREAM's splits only."""
    dream = trials[trials["data"] == "dream"]
    left = dream.loc[~dream.index.isin(whole(trials).index)]
    return sorted(
        {f"{model} {condition}" for model, condition in zip(left["model"], left["condition"], strict=True)}
    )


def faults_of_more(trials: pd.DataFrame) -> list[Fault]:
    """Price what the paper does otherwise than it says with DREAM and AQuA-RAT; none where their answers are not there."""
    found = []
    dream = whole(trials)
    counts = dream.groupby(["model", "condition"], sort=False)["correct"].agg(["sum", "size"])
    counts = counts[counts["size"] == ASKED]
    if len(counts):
        change = 100.0 * counts["sum"] * (1.0 / ASKED - 1.0 / DIVIDED_BY)
        table = _wide(change.rename("change").reset_index(), ["model"], in_papers_order(dream))
        found.append(
            Fault(
                "divided_by_1024",
                "1,025 questions were asked and 1,024 divided by (DREAM)",
                "Percentage points by which the accuracies of Table 6 change where they are divided by the number of questions: "
                f"{apa.number(float(change.abs().max()), 2)} at most.",
                table,
            )
        )
    problems = trials[(trials["data"] == PROBLEMS_DATA) & trials["loose"].notna()]
    if len(problems):
        change = 100.0 * (problems["loose"] - problems["correct"])
        rows = problems.assign(change=change).groupby(["model", "examples", "condition"], sort=False)[
            "change"
        ]
        table = _wide(rows.mean().reset_index(), ["model", "examples"], in_papers_order(problems))
        found.append(
            Fault(
                "only_behind_answer_is",
                "An answer counts only behind “answer is” (AQuA-RAT)",
                "Replies were cut at 256 tokens, often before the words “The answer is”; what stands there in other words is wrong "
                "too. The files hold a second, looser reading that the paper does not use. Percentage points that it adds to Table "
                f"1: up to {apa.number(float(table.to_numpy().max()), 1)}.",
                table,
            )
        )
    return found


def _wide(change: pd.DataFrame, rows: list[str], models: list[str]) -> pd.DataFrame:
    """Lay changes out with a column for each condition, the paper's names, models and examples in its order."""
    named = change.assign(
        column=change["condition"].map(COLUMNS), model=change["model"].map(lambda name: NAMES.get(name, name))
    )
    table = named.pivot_table(index=rows, columns="column", values="change", sort=False)
    order = [NAMES.get(model, model) for model in models]
    keys = sorted(table.index, key=lambda key: _place(key, order))
    return table.loc[keys, [name for name in COLUMNS.values() if name in table.columns]]


def _place(key: object, models: list[str]) -> tuple[int, int]:
    model, examples = key if isinstance(key, tuple) else (key, PROBLEMS[0])
    return models.index(str(model)), PROBLEMS.index(str(examples))


def is_known(cells: pd.DataFrame) -> list[bool]:
    """Return of each compared cell whether it is one that the released answers are known not to give."""
    return [
        (one["table"], one["model"], "", "") in KNOWN
        or (one["table"], one["model"], one["measure"], one["column"]) in KNOWN
        for one in cells.to_dict("records")
    ]


def _problems(own: pd.DataFrame) -> Cells:
    cells: Cells = {}
    for model in in_papers_order(own):
        of_model = own[own["model"] == model]
        for examples in PROBLEMS:
            means = of_model[of_model["examples"] == examples].groupby("condition")["correct"].mean()
            if len(means):
                there = {COLUMNS[str(name)]: 100.0 * float(share) for name, share in means.items()}
                cells[model, f"Acc examples {examples}"] = there
    return cells


def _by_category(dream: pd.DataFrame, chosen: Mapping[str, set[str] | None]) -> tuple[Cells, Cells]:
    accuracies: Cells = {}
    gains: Cells = {}
    for model in in_papers_order(dream):
        of_model = dream[dream["model"] == model]
        for category, items in chosen.items():
            own = of_model if items is None else of_model[of_model["item"].isin(items)]
            counts = own.groupby("condition")["correct"].agg(["sum", "size"])
            size = counts["size"].where((counts["size"] != ASKED) | (items is not None), DIVIDED_BY)
            shares = {COLUMNS[str(name)]: float(one) for name, one in (100.0 * counts["sum"] / size).items()}
            nan = float("nan")
            accuracies[model, f"Acc {category}"] = shares
            gains[model, f"RPG {category}"] = {
                column: relative_gain(share, shares.get("Ori", nan), shares.get("Sub", nan))
                for column, share in shares.items()
            }
    return accuracies, gains


def _paired(accuracies: Cells, gains: Cells) -> Cells:
    """Lay two rows of each model out below each other, as Table 6 has them."""
    found: Cells = {}
    for (model, _), own in accuracies.items():
        found[model, "Acc"] = own
        found[model, "RPG"] = gains[model, "RPG all"]
    return found


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
