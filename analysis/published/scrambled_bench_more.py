"""Tables 1, 6, 7 and 8 of Scrambled Bench (Cao et al., 2023) from released responses to AQuA-RAT and DREAM.

Table 1 has word problems behind worked examples, each scrambled by itself; Table 6 the questions about dialogues, Tables 7 and 8
their accuracies and relative gains by category. The paper asked 1,025 questions about DREAM and divides what was right by 1,024 in
Table 6 and in the rows ``all`` of Tables 7 and 8, and by the true number in a category.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from analysis import apa
from analysis.measures.retention import relative_gain
from analysis.published.reproductions import Fault
from analysis.published.scrambled_bench import COLUMNS, NAMES, cell_text, in_papers_order
from analysis.published.scrambled_bench_authors import SPLITS

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
    """Say of each compared cell whether it is one that the released answers are known not to give."""
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
