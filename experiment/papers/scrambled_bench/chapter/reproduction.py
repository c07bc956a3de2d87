"""Tables 1 and 3 to 8 of Scrambled Bench (Cao, Kojima, Matsuo & Iwasawa, 2023) from the released outputs."""

from __future__ import annotations

import gzip
import json
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, product
from math import nan
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Template
from ruamel.yaml import YAML

from analysis import apa
from analysis.measures.recovery import edit_distance, recovery_rate
from analysis.measures.retention import BELOW, as_printed, relative_gain
from analysis.reproductions import PublishedTable, Reading, Reproduction, ScoringError
from stimuli.corpora import load_corpus
from stimuli.corpora.corpus import Record
from stimuli.errors import UserError, unknown_name

DATA: dict[str, Any] = YAML(typ="safe").load(Path(__file__).with_name("reproduction.yaml").read_text("utf-8"))
"""The paper's words and the authors' folders."""
NAMES: dict[str, str] = DATA["names"]
"""Names of output files and of the paper's rows."""
COLUMNS: dict[str, str] = DATA["columns"]
"""Conditions of the outputs and columns of the tables, in their order."""
CATEGORIES: list[str] = DATA["categories"]
TABLES = {"3": ("rec", "few-shot"), "4": ("rec", "zero-shot"), "5": ("qa", "zero-shot")}
DATA_SET = "realtimeqa"
"""Whose responses are read, as lines call it."""
_STIMULI = {"rec": "rec_realtimeqa.jsonl", "qa": "qa_realtimeqa.jsonl"}


def released_trials(folder: str | Path) -> pd.DataFrame:
    """Measure every released response as the paper does."""
    return measured(released_replies(Path(folder)))


@dataclass(frozen=True)
class ReleasedReply:
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


def released_replies(folder: Path) -> Iterator[ReleasedReply]:
    """Read every response of ``outputs/``, in the order of files and lines."""
    files = sorted((folder / "outputs").glob("*.jsonl*"))
    if not files:
        raise UserError(
            f"{folder / 'outputs'} has no outputs",
            mend="Give the folder that holds outputs/ and stimuli/; `wrods reproduce scrambled-bench` also takes the authors' "
            "own repository with its output/.",
        )

    @cache
    def stimuli(task: str) -> dict[int, dict[str, Any]]:
        return {line["i"]: line for line in released_lines(folder / "stimuli" / _STIMULI[task])}

    for file in files:
        yield from _replies(file, partial(_reply, file, stimuli))


def _replies(file: Path, read: Callable[[int, dict[str, Any]], ReleasedReply]) -> Iterator[ReleasedReply]:
    """Read the responses of a file, one from the number (from 0) and the fields of each line."""
    for number, row in enumerate(released_lines(file)):
        try:
            yield read(number, row)
        except KeyError as error:
            raise UserError(
                f"{file}, line {number + 1}: {error.args[0]!r} is missing or unknown",
                mend="Give the released files as they are.",
            ) from error


def measured(
    replies: Iterable[ReleasedReply], readings: Mapping[str, Reading] = MappingProxyType({})
) -> pd.DataFrame:
    """Measure replies as the paper does, a row each; with readings also as wrods reads them (``own``)."""
    return pd.DataFrame([_measures(reply, readings) for reply in replies])


_KEPT = ("model", "task", "data", "method", "condition", "examples", "item")


def _measures(reply: ReleasedReply, readings: Mapping[str, Reading]) -> dict[str, Any]:
    is_text = reply.task == "rec"
    measures: dict[str, Any] = {name: getattr(reply, name) for name in _KEPT} | {
        "ed_shown": edit_distance(reply.shown[0], reply.key) if is_text else nan,
        "ed_given": edit_distance(reply.read, reply.key) if is_text else nan,
        "correct": float(reply.read == reply.key) if reply.task == "qa" else nan,
        "loose": nan if reply.loose is None else float(reply.loose == reply.key),
    }
    if readings and is_text:
        measures["own"] = edit_distance(readings["text"](reply.output, reply.shown), reply.key)
    elif readings and reply.data != PROBLEMS_DATA:
        measures["own"] = float(readings["choice"](reply.output, reply.shown) == reply.key)
        measures["inside"] = inside_a_word(reply.output, list(reply.shown))
    return measures


def with_missing_as_empty(measured: pd.DataFrame) -> pd.DataFrame:
    """Measure missing texts of recovery trials as empty texts, as the paper does."""
    is_given = measured["response_status"] == "valid"
    return measured.assign(ed_given=measured["ed_given"].where(is_given, measured["characters"]))


def method_of(trials: pd.DataFrame) -> pd.Series:
    """Return ``zero-shot`` or ``few-shot`` of each imported trial; nan where unknown."""
    if "examples" in trials.columns:
        return trials["examples"]
    return trials["prompt_variant"].map({1.0: "zero-shot", 2.0: "few-shot"})


def released_tables(source: str | Path | pd.DataFrame, *, printed: bool = False) -> dict[str, pd.DataFrame]:
    """Make Tables 3, 4 and 5 from the released outputs."""
    trials = source if isinstance(source, pd.DataFrame) else released_trials(source)
    tables = {}
    for table, (task, method) in TABLES.items():
        table_trials = trials[(trials["task"] == task) & (trials["method"] == method)]
        if "data" in table_trials:
            table_trials = table_trials[table_trials["data"] == DATA_SET]
        measure = _recovered if task == "rec" else _accuracies
        cells = measure(table_trials) if len(table_trials) else table_trials
        tables[table] = _laid_out(cells, printed=printed)
    return tables


def _laid_out(cells: pd.DataFrame, *, printed: bool) -> pd.DataFrame:
    """Lay out ``value`` by model, measure and column, models and columns in the paper's order, as numbers or as text."""
    if cells.empty:
        return pd.DataFrame()
    if printed:
        cell_keys = cells[["measure", "column", "value"]].itertuples(index=False, name=None)
        cells = cells.assign(value=[cell_text(*key) for key in cell_keys])
    keys = ["model", "measure"]
    table = cells.pivot(index=keys, columns="column", values="value").rename_axis(columns=None)
    order = product(in_papers_order(cells["model"].unique()), cells["measure"].unique())
    rows = pd.MultiIndex.from_tuples([key for key in order if key in table.index], names=keys)
    table = table.loc[rows][[column for column in COLUMNS.values() if column in table]]
    return table.rename(index=NAMES, level="model")


def in_papers_order(models: Iterable[str]) -> list[str]:
    """Return models, the paper's first and in its order."""
    order = {name: index for index, name in enumerate(NAMES)}
    return sorted(models, key=lambda name: (order.get(name, len(order)), name))


def printed_cells() -> pd.DataFrame:
    """Return the printed cells of Tables 3, 4 and 5: ``table, model, measure, column, printed``."""
    return _cells_in("printed.csv")


def all_printed_cells() -> pd.DataFrame:
    """Return the printed cells of Tables 1 and 3 to 8: ``table, model, measure, column, printed``."""
    return pd.concat([printed_cells(), _cells_in("printed_more.csv")], ignore_index=True)


def _cells_in(file: str) -> pd.DataFrame:
    return pd.read_csv(Path(__file__).with_name(file), comment="#", dtype=str, keep_default_na=False)


def compare_with_print(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Compare every cell with the printed one."""
    printed = all_printed_cells()
    columns = ["table", "model", "measure", "column", "made", "printed", "same"]
    parts = []
    for table, computed in tables.items():
        if table not in set(printed["table"]):
            raise unknown_name("table:", table, sorted(set(printed["table"])))
        cells = computed.reset_index().melt(
            id_vars=["model", "measure"], var_name="column", value_name="made"
        )
        parts.append(cells[cells["made"].notna()].assign(table=table))
    if not parts:
        return pd.DataFrame(columns=columns)
    merged: pd.DataFrame = pd.concat(parts).merge(
        printed, on=["table", "model", "measure", "column"], how="inner"
    )
    merged["same"] = merged["made"] == merged["printed"]
    return merged.reindex(columns=columns)


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


def _reply(
    file: Path, stimuli: Callable[[str], dict[int, dict[str, Any]]], number: int, row: dict[str, Any]
) -> ReleasedReply:
    if row.get("ds", DATA_SET) != DATA_SET:
        raise UserError(
            f"{file}, line {number + 1}: ds is {row['ds']!r}; Tables 3 to 5 are made from responses to {DATA_SET}",
            mend="Leave these lines out.",
        )
    model, task, condition = file.name.partition(".jsonl")[0], row["task"], row["cond"]
    stimulus = stimuli(task)[row["i"]]
    if condition not in COLUMNS:
        raise KeyError(condition)
    if task == "rec":
        read, key, shown = row["recovered"], stimulus["original"], (stimulus[condition],)
    else:
        read, key, shown = row["pred"], row["gold"], tuple(stimulus["choices"])
    return ReleasedReply(
        model, task, DATA_SET, row["method"], condition, row["i"], row.get("output", ""), read, key, shown
    )


def _recovered(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the distance that is left and the recovery rate, one row per model, column and measure."""
    cells = trials.assign(column=trials["condition"].map(COLUMNS)).groupby(["model", "column"], sort=False)
    sums = cells[["ed_shown", "ed_given"]].sum()
    rates = [recovery_rate(*distances) for distances in sums.itertuples(index=False, name=None)]
    return _long(sums.assign(ED=cells["ed_given"].mean(), RR=rates)[["ED", "RR"]])


def _accuracies(trials: pd.DataFrame) -> pd.DataFrame:
    """Return percent right, of all questions about DREAM as the paper divides, and its gain, as :func:`_recovered`."""
    cells = trials.assign(column=trials["condition"].map(COLUMNS)).groupby(["model", "column"], sort=False)
    counts = cells["correct"].agg(["sum", "size"])
    shares = 100.0 * counts["sum"] / counts["size"].replace(ASKED, DIVIDED_BY)
    ends = shares.unstack().reindex(columns=["Ori", "Sub"]).loc[shares.index.get_level_values("model")]
    gains = [relative_gain(*share_and_ends) for share_and_ends in np.column_stack([shares, ends]).tolist()]
    return _long(counts.assign(Acc=shares, RPG=gains)[["Acc", "RPG"]])


def _long(cells: pd.DataFrame) -> pd.DataFrame:
    return cells.reset_index().melt(["model", "column"], var_name="measure")


def cell_text(measure: str, column: str, value: float) -> str:
    """Format a cell as the paper does; an RPG of 100 or 0 by definition has no trailing zeros."""
    kind = measure.partition(" ")[0]
    if value != value:
        return ""
    if kind == "RR" or (kind == "RPG" and column in ("Ori", "Sub")):
        return BELOW if value < 0 else str(round(value, 2))
    return as_printed(value) if kind == "RPG" else f"{value:.2f}"


AUTHORS: dict[str, Any] = DATA["authors"]
SPLITS = ("test", "dev")


@dataclass(frozen=True)
class AuthorsFile:
    """One file of responses and what its path says."""

    path: Path
    split: str  # ``test`` or ``dev`` of DREAM, empty for the others
    data: str
    told: Mapping[str, Any]  # model, task, method, condition and examples of its replies


def authors_files(folder: Path) -> list[AuthorsFile]:
    """Return the files of ``output/``, in the order of their paths; none where there is no such folder."""
    files = []
    for name, task in AUTHORS["tasks"].items():
        base = folder / "output" / name
        for path in sorted(base.rglob("*")):
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(base).parts):
                files.append(_placed(path, path.relative_to(base).parts, task))
    return files


def check_dream(files: Sequence[AuthorsFile], dream: Path) -> dict[str, tuple[str, ...]]:
    """Return the categories of every question of DREAM, by the item's name."""
    questions: dict[str, list[Record]] = {
        split: list(load_corpus("dream", dream, split=split, selection="annotated").records)
        for split in SPLITS
    }
    for file in files:
        if file.data != "dream":
            continue
        records = questions[file.split]
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
        f"{split} {index}": tuple(str(record.extra.get("categories") or "").split(", "))
        for split, records in questions.items()
        for index, record in enumerate(records)
    }


def options_of(prompt: str) -> tuple[str, ...]:
    """Return the options of the last ``Choices:`` line of a prompt, without their letters; none where there is no such line."""
    line = prompt.rpartition("\nChoices: ")[2].partition("\nAnswer:")[0] if "\nChoices: " in prompt else ""
    options: list[str] = []
    remaining = line
    for letter in "ABCDE":
        before, mark, text_after = remaining.partition(f"({letter})")
        if not mark:
            break
        if options:
            options[-1] = before.rstrip()
        options.append(text_after)
        remaining = text_after
    return tuple(option.strip() for option in options)


def _placed(path: Path, parts: tuple[str, ...], task: str) -> AuthorsFile:
    middle = parts[2:-2]
    data, split = AUTHORS["data"].get(parts[0].casefold(), ("", ""))
    is_problem = data == "aqua"
    if (
        not data
        or len(parts) != 4 + is_problem
        or parts[-2] not in AUTHORS["conditions"]
        or (is_problem and middle[0] not in AUTHORS["examples"])
        or (task == "rec" and data != "realtimeqa")
    ):
        raise UserError(f"{path} is not where the authors put their files", mend=AUTHORS["layout"])
    examples = AUTHORS["examples"][middle[0]] if is_problem else "Ori"
    model = re.sub(r"\.jsonl?$", "", parts[-1])
    condition = AUTHORS["conditions"][parts[-2]]
    facts = {"model": model, "task": task, "method": parts[1], "condition": condition, "examples": examples}
    return AuthorsFile(path, split, data, facts)


def _authors_replies(file: AuthorsFile) -> Iterator[ReleasedReply]:
    def read(number: int, row: dict[str, Any]) -> ReleasedReply:
        item = f"{file.split} {number}" if file.split else number
        make_reply = partial(
            ReleasedReply, data=file.data, item=item, output=str(row.get("output", "")), **file.told
        )
        if file.told["task"] == "rec":
            text, intact, shown = (str(row[name]) for name in ("recovered", "original", "scrambled"))
            return make_reply(read=text.strip(), key=intact, shown=(shown,))
        make_reply = partial(make_reply, shown=options_of(str(row["input"])), key=str(row["GT"]))
        if file.data == PROBLEMS_DATA:
            return make_reply(read=str(row["pred_strict"]), loose=str(row["pred_loose"]))
        return make_reply(read=str(row["pred"]))

    return _replies(file.path, read)


def _asks(prompt: str, record: Record) -> bool:
    question = prompt.rpartition("\nQuestion: ")[2].partition("\nChoices: ")[0]
    return _plain(question) == _plain(record.texts["question"]) and [
        _plain(option) for option in options_of(prompt)
    ] == [_plain(option) for option in record.choices or ()]


def _plain(text: str) -> str:
    return " ".join(text.split())


ASKED, DIVIDED_BY = 1025, 1024
"""Questions about DREAM, and what the paper divides by."""
PROBLEMS = ("Ori", "20%", "50%", "100%")
"""Columns and groups of rows of Table 1."""

PROBLEMS_DATA = "aqua"


def more_tables(
    trials: pd.DataFrame, categories: Mapping[str, Sequence[str]] | None = None
) -> dict[str, pd.DataFrame]:
    """Make Tables 1, 6, 7 and 8, as far as there are answers for them."""
    by_cell = _problems(trials).groupby(["model", "examples", "column"], sort=False)["correct"]
    cells = by_cell.mean().reset_index(name="value")
    tables = {"1": cells.assign(measure="Acc examples " + cells["examples"], value=100.0 * cells["value"])}
    dream = whole(trials)
    if len(dream):
        tables["6"] = _accuracies(dream)
    if len(dream) and categories is not None:
        item_categories = dream["item"].map(categories)
        chosen = {"all": dream} | {
            category: dream[[category in names for names in item_categories]] for category in CATEGORIES
        }
        by_category = pd.concat(
            [_accuracies(rows).assign(category=category) for category, rows in chosen.items() if len(rows)]
        )
        for number, measure in (("7", "Acc"), ("8", "RPG")):
            cells = by_category[by_category["measure"] == measure]
            tables[number] = cells.assign(measure=f"{measure} " + cells["category"])
    return {number: _laid_out(cells, printed=True) for number, cells in tables.items() if len(cells)}


def _problems(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the answers to word problems with their ``column``, in the order of the examples' scrambles."""
    problems = trials[trials["data"] == PROBLEMS_DATA]
    problems = problems.assign(column=problems["condition"].map(COLUMNS))
    return problems.sort_values("examples", key=lambda column: column.map(PROBLEMS.index), kind="stable")


def whole(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the answers about DREAM of those models and conditions whose answers to both splits are there."""
    dream = trials[trials["data"] == "dream"]
    split = dream["item"].astype(str).str.partition(" ")[0] if len(dream) else pd.Series(dtype=str)
    has_both = split.groupby([dream["model"], dream["condition"]]).transform("nunique") == len(SPLITS)
    return dream[has_both.reindex(dream.index, fill_value=False)]


def faults_of_more(trials: pd.DataFrame) -> list[ScoringError]:
    """Price what the paper does otherwise than it says with DREAM and AQuA-RAT; none where their answers are not there."""
    faults = []
    dream = _named(whole(trials))
    counts = dream.groupby(["model", "column"], sort=False)["correct"].agg(["sum", "size"]).reset_index()
    counts = counts[counts["size"] == ASKED]
    if len(counts):
        change = 100.0 * counts["sum"] * (1.0 / ASKED - 1.0 / DIVIDED_BY)
        table = _laid_out(counts.assign(measure="", value=change), printed=False).droplevel("measure")
        faults.append(_fault("divided_by_1024", table, largest=float(change.abs().max())))
    problems = _problems(trials)
    problems = problems[problems["loose"].notna()]
    if len(problems):
        rows = problems.assign(
            value=100.0 * (problems["loose"] - problems["correct"]), measure=problems["examples"]
        )
        means = rows.groupby(["model", "measure", "column"], sort=False)["value"].mean().reset_index()
        table = _laid_out(means, printed=False).rename_axis(["model", "examples"])
        faults.append(_fault("only_behind_answer_is", table, largest=float(table.to_numpy().max())))
    return faults


def _fault(
    name: str, price: pd.DataFrame, data: str = "", decimals: int = 2, **values: object
) -> ScoringError:
    """Return an error with its title and description; ``data`` is a data set that the title names."""
    texts = DATA["faults"][name]
    ending, title_suffix = (f"_{data.casefold()}", f" ({data})") if data else ("", "")
    about = Template(texts["about"]).render(apa=apa, **values)
    return ScoringError(f"{name}{ending}", f"{texts['title']}{title_suffix}", about, price, decimals)


def is_known(cells: pd.DataFrame) -> list[bool]:
    """Return of each compared cell whether it is one that the released answers are known not to give."""
    known_cells = set(map(tuple, DATA["known"]))
    names = cells[["table", "model", "measure", "column"]].itertuples(index=False, name=None)
    return [bool({name, (*name[:2], "", "")} & known_cells) for name in names]


DREAM = "dream"


def reproduce(
    folder: Path,
    readings: Mapping[str, Reading],
    told: Callable[[str], None] = lambda _: None,
    data: Mapping[str, Path] = MappingProxyType({}),
) -> Reproduction:
    """Reproduce the tables and measure the effect of each error, as :func:`reproduce_paper` requires."""
    told("responses")
    has_outputs = any((folder / "outputs").glob("*.jsonl*"))
    files = [file for file in authors_files(folder) if not (has_outputs and file.data == DATA_SET)]
    replies = [
        *(released_replies(folder) if has_outputs or not files else ()),
        *chain(*map(_authors_replies, files)),
    ]
    places = {name: index for index, name in enumerate(NAMES)}
    replies.sort(key=lambda reply: places.get(reply.model, len(places)))
    told("replies, read again")
    trials = measured(replies, readings)
    has_dream = (trials["data"] == DREAM).any()
    categories = check_dream(files, data[DREAM]) if has_dream and DREAM in data else None
    told("tables")
    tables = {
        **{number: table for number, table in released_tables(trials, printed=True).items() if len(table)},
        **more_tables(trials, categories),
    }
    tables = dict(sorted(tables.items()))
    cells = compare_with_print(tables)
    answers = trials[(trials["task"] == "qa") & (trials["data"] != PROBLEMS_DATA)]
    faults = [
        *_faults_of_answers(answers[answers["data"] == DATA_SET]),
        *_faults_of_answers(answers[answers["data"] == DREAM], "DREAM", "6"),
        *faults_of_more(trials),
        *_faults_of_texts(trials[trials["task"] == "rec"]),
    ]
    models = trials["model"].nunique()
    return Reproduction(
        "Scrambled Bench",
        DATA["citation"],
        f"{apa.count(len(trials))} released responses of {apa.count(models)} models, with the answers that the authors' code read "
        "from them.",
        tuple(PublishedTable(number, DATA["captions"][number], table) for number, table in tables.items()),
        cells.assign(known=is_known(cells)),
        tuple(faults),
        tuple(_lacking(trials, tables, has_dream=bool(has_dream))),
    )


def _lacking(trials: pd.DataFrame, tables: Mapping[str, pd.DataFrame], *, has_dream: bool) -> Iterator[str]:
    """State of each table that is not made which responses it needs, and of the others what is left empty."""
    for number, where in DATA["holders"].items():
        if number not in tables:
            yield f"Table {number}: its responses are not in the folder; they would be in {where}."
    if "7" not in tables:
        yield (
            "Tables 7 and 8: the categories of the questions are in DREAM's own files; give your copy of it with --dream."
            if has_dream
            else "Tables 7 and 8: made of the responses of Table 6."
        )
    dream = trials[trials["data"] == DREAM]
    left = dream.drop(whole(trials).index)
    if half := sorted(set(left["model"] + " " + left["condition"])):
        yield (
            f"Cells of Tables 6 to 8 for which the responses to one half of DREAM are missing (test or dev): {', '.join(half)}."
        )
    yield "Models whose responses are not in the folder."


def inside_a_word(reply: str, options: list[str]) -> bool:
    """Return whether the paper's letter of a reply is a part of a word."""
    searched = reply if any("." in option for option in options) else reply.split(".")[0]
    if any(option in searched for option in options):
        return False
    letters = string.ascii_uppercase[: len(options)]
    match = re.search(f"[{letters}]", searched)
    if match is None:
        return False
    neighbours = searched[max(match.start() - 1, 0) : match.start()] + searched[match.end() : match.end() + 1]
    return any(sign.isalpha() for sign in neighbours)


def _named(trials: pd.DataFrame) -> pd.DataFrame:
    """Call models and conditions as the paper does."""
    return trials.assign(model=trials["model"].replace(NAMES), column=trials["condition"].map(COLUMNS))


def _faults_of_answers(answers: pd.DataFrame, data: str = "", table: str = "5") -> list[ScoringError]:
    if answers.empty:
        return []
    inside, change = answers["inside"].astype(int), 100.0 * (answers["own"] - answers["correct"])
    both = inside * answers["correct"].astype(int)
    answers = _named(answers).assign(inside=inside, both=both, change=change)
    counted = {"n": ("inside", "size"), "inside": ("inside", "sum"), "both": ("both", "sum")}
    within = answers.groupby("model", sort=False).agg(**counted)
    within = within.set_axis(["replies", "letter inside a word", "of them scored right"], axis=1)
    gained = answers.pivot_table(index="model", columns="column", values="change", sort=False)
    gained = gained[[column for column in COLUMNS.values() if column in gained]]
    counts = {"inside": inside.sum(), "answers": len(answers), "right": answers["both"].sum()}
    return [
        _fault("letter_inside_a_word", within, data, 0, **counts),
        _fault("reading_of_answers", gained, data, table=table, largest=gained.abs().max().max()),
    ]


def _faults_of_texts(texts: pd.DataFrame) -> list[ScoringError]:
    if texts.empty:
        return []
    labelled = _named(texts)
    share = (1 - labelled["ed_given"] / labelled["ed_shown"]).where(labelled["ed_shown"] > 0)
    cells = labelled.assign(share=100.0 * share).groupby(["model", "method", "column"], sort=False)
    sums = cells[["ed_shown", "ed_given", "own"]].sum()
    removed = sums[["ed_given", "own"]].rsub(sums["ed_shown"], axis=0)
    rates = 100.0 * removed.div(sums["ed_shown"].where(sums["ed_shown"] > 0), axis=0)
    rates["mean"] = cells["share"].mean()
    columns = [column for column in COLUMNS.values() if column in set(labelled["column"])]
    rows = pd.MultiIndex.from_frame(labelled[["model", "method"]].drop_duplicates())
    printed, own_reading, per_sentence = (
        pd.DataFrame(rates[name].unstack("column"), rows, columns) for name in ("ed_given", "own", "mean")
    )
    values = rates["ed_given"].dropna()
    n_values = len(values)
    lowest = float(values.min())
    sentences, readings = per_sentence - printed, own_reading - printed
    return [
        _fault("sign_of_equation_1", -printed, many=n_values),
        _fault("values_below_zero", printed, many=n_values, negative=int((values < 0).sum()), lowest=lowest),
        _fault("sums_or_sentences", sentences, largest=float(sentences.abs().max().max())),
        _fault("reading_of_texts", readings, largest=float(readings.abs().max().max())),
    ]
