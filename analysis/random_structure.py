"""The random-effects structure of a model: where it starts, and the stated rule by which it is reduced.

It starts with what the design justifies (Barr et al., 2013); an item's slopes in two kinds of reader are begun with as one matrix
where it has at most four columns and ten items for each. A fit that is singular or does not converge is reduced in steps (after
Bates et al., 2015, *Parsimonious mixed models*): correlations, components estimated as zero, and all slopes if it still does not
converge. Slopes without correlations are deviations in each condition: a model of differences from the reference would change with
what is taken for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from analysis import apa
from analysis.factorial import (
    is_enough,
    said_few,
    slopes_of,
    too_few_for_a_slope,
    trials_that_tell,
    varies_within,
)
from analysis.frames import ModelData, indicator
from analysis.plan import Remark
from analysis.readers import spoken

State = Literal["correlated", "uncorrelated", "intercept"]
VARIANTS_FOR_A_VARIANCE = 5
ITEMS_FOR_A_COLUMN = 10
"""Items that each column of a covariance matrix of item slopes needs, for the matrix to be begun with."""
MOST_COLUMNS = 4
"""Columns of the largest covariance matrix of item slopes: ten variances and correlations."""
CONDITIONS_APART = range(3, 7)
"""So many conditions have an item variance each; with two, one more would be as many as the whole matrix has."""
MOST_COLUMNS_BESIDE = 6
"""Columns of the largest covariance matrix of participants' slopes in a model that nobody planned."""
MODELS_FOR_A_CLAIM = 8
"""Smallest number of models for claims about models in general."""


@dataclass(frozen=True)
class RandomTerm:
    """One grouping factor with its intercept and slopes."""

    group: str  # the grouping column
    intercept: str  # ``1``, or the indicator column that confines the term to people or models
    slopes: str
    columns: tuple[str, ...]  # of the slopes without correlations; of participants one for each condition
    state: State  # ``correlated``, ``uncorrelated`` or ``intercept``
    why: str  # what the term is for, in words
    may_go: bool = False  # whether the whole term is dropped when its variance is estimated as zero
    instead: tuple[RandomTerm, ...] = ()  # what takes its place when correlations go; empty: its columns
    beside: bool = False  # whether columns are slopes beside the intercept, not one for each condition

    def text(self) -> str:
        """Write the term as lme4 reads it."""
        first = "1" if self.intercept == "1" else f"0 + {self.intercept}"
        if self.state == "correlated":
            return f"({first} + {self.slopes} | {self.group})"
        if self.state == "uncorrelated" and self.columns:
            return f"({first} + {' + '.join(self.columns)} || {self.group})"
        return f"({first} | {self.group})"


@dataclass(frozen=True)
class Step:
    """One fit on the way to the reported one."""

    formula: str
    singular: bool
    converged: bool
    loglik: float
    verdict: str  # what was found and what was done next, in words


def justified(data: ModelData, factor: str) -> tuple[list[RandomTerm], list[Remark]]:
    """Return the random terms that the design justifies and remarks on those that the data cannot carry."""
    rows = data.rows
    remarks: list[str] = []
    terms: list[RandomTerm] = []
    people = rows[rows["people"] == 1]
    mixed = bool(data.participant_groups and data.machine_groups)
    if people["participant"].nunique() > 1:
        terms.append(_participants(people, data, factor, mixed, remarks))
    elif len(people):
        remarks.append(
            "There is one participant: the model has no variance between participants, and no claim can be made "
            "about people in general."
        )
    items = rows["item"].nunique()
    if 1 < items < len(rows):
        terms.extend(_items(rows, data, factor, mixed, remarks))
    elif items == 1:
        remarks.append("There is one item: the result cannot be generalized to others.")
    terms.extend(_models(rows[rows["model"] == 1], data, factor, remarks))
    if "answer_given" in rows and terms:
        reason = "words of one answer are recovered or lost together"
        terms.append(RandomTerm("answer_given", "1", "", (), "intercept", reason, may_go=True))
    return terms, [Remark(remark, "model") for remark in remarks]


def _participants(
    people: pd.DataFrame, data: ModelData, factor: str, mixed: bool, remarks: list[str]
) -> RandomTerm:
    intercept = "people" if mixed else "1"
    if data.crossing is not None:
        crossed = slopes_of(people, data.crossing, "people" if mixed else "")
        remarks += crossed.remarks
        first_state: State = "correlated" if crossed.columns else "intercept"
        reason = "participants differ"
        return RandomTerm(
            "participant", intercept, crossed.text, crossed.columns, first_state, reason, beside=True
        )
    columns = _conditions("people" if mixed else factor, data)
    # With `0 +` R codes a factor by all its levels, one too many; numeric columns say what is meant.
    slopes = " + ".join(columns[1:]) if mixed else factor
    # of a factor between participants, the design tells that there is none
    is_within = varies_within(people, factor)
    reason = too_few_for_a_slope(people, factor) if is_within else ""
    remarks += [reason] if reason else []
    state: State = "correlated" if is_within and not reason else "intercept"
    return RandomTerm(
        "participant",
        intercept,
        slopes,
        columns if state == "correlated" else (),
        state,
        "participants differ",
    )


def _conditions(prefix: str, data: ModelData) -> tuple[str, ...]:
    """Name the numeric columns that are 1 in a condition, the reference first: of the factor, or of it in people or models."""
    return tuple(indicator(prefix, level) for level in data.levels)


def _items(
    rows: pd.DataFrame, data: ModelData, factor: str, mixed: bool, remarks: list[str]
) -> list[RandomTerm]:
    """Return intercepts of items and, where the design has them, slopes; for people and models apart where there are both."""
    by_kind = ("model",) if mixed else ()
    state: State = "correlated" if mixed else "intercept"
    plain = RandomTerm("item", "1", " + ".join(by_kind), by_kind, state, "items differ")
    kinds = {"people": rows[rows["people"] == 1], "model": rows[rows["model"] == 1]}
    present = [kind for kind, part in kinds.items() if len(part)]
    sloping = [kind for kind in present if _has_slopes(kinds[kind], factor, kind, remarks)]
    if not sloping:
        return [plain]
    reason = "items differ in what a condition does to them"
    if mixed and len(sloping) == 2:
        condition_term = RandomTerm(
            "item_condition", "1", "model", ("model",), "correlated", reason, may_go=True
        )
    else:
        first = sloping[0] if mixed else "1"
        condition_term = RandomTerm("item_condition", first, "", (), "intercept", reason, may_go=True)
        if len(data.levels) in CONDITIONS_APART and rows["item"].nunique() >= ITEMS_FOR_A_COLUMN:
            reference, *others = _conditions(sloping[0] if mixed else factor, data)
            condition_term = replace(
                condition_term,
                intercept=reference,
                columns=tuple(others),
                state="uncorrelated",
                instead=(condition_term,),
            )
    columns = len(present) * len(data.levels)
    enough_items = rows["item"].nunique() >= ITEMS_FOR_A_COLUMN * columns
    everywhere = data.crossing is None or bool(
        rows.groupby("item")[factor].nunique().median() == len(data.levels)
    )
    if sloping != present or columns > MOST_COLUMNS or not enough_items or not everywhere:
        return [plain, condition_term]
    if data.crossing is not None:
        factor = " * ".join(data.crossing.factors)
    slopes = f"model * {factor}" if mixed else factor
    return [
        RandomTerm("item", "1", slopes, (), "correlated", "items differ", instead=(plain, condition_term))
    ]


def _has_slopes(rows: pd.DataFrame, factor: str, kind: str, remarks: list[str]) -> bool:
    """Whether items are shown in several conditions and answered more than once in each."""
    if not (rows.groupby("item")[factor].nunique() > 1).any():
        return False
    supported = is_enough(rows, ["item_condition"])
    if not supported and kind == "people":
        readers = apa.listing([spoken(str(group)) for group in rows["reader_group"].unique()])
        amount = said_few(rows, f"answers of {readers}")
        remarks.append(
            f"Items have {amount} per condition (median), so the model has no by-item slope of {factor}."
        )
    return supported


def _models(models: pd.DataFrame, data: ModelData, factor: str, remarks: list[str]) -> list[RandomTerm]:
    terms: list[RandomTerm] = []
    if models.empty:
        return terms
    intercept = "model" if data.participant_groups else "1"
    several_models = models["machine"].nunique() > 1

    def term(group: str, reason: str) -> None:
        terms.append(RandomTerm(group, intercept, "", (), "intercept", reason, may_go=True))

    if several_models and trials_that_tell(models, ["item_reader"]).median() > 0:
        term("item_reader", "items differ model by model")
    repeated = models.groupby("item_cell").size().median() > 1
    if several_models and trials_that_tell(models, ["item_cell"]).median() > 1:
        term("item_cell", "a model answers the same item in the same condition more than once")
    variants = models.groupby("machine")["prompt_variant"].nunique()
    if variants.max() >= VARIANTS_FOR_A_VARIANCE:
        term("prompt", "prompt wordings differ")
    elif variants.max() > 1:
        remarks.append(
            f"Models answered {int(variants.max())} prompt variants, too few to estimate their variance "
            f"({VARIANTS_FOR_A_VARIANCE} are needed): the model averages over them as if there were no others."
        )
    sessions = int(models.groupby("machine")["model_session"].nunique().max())
    pairs = models[["model_session", "prompt"]].drop_duplicates()
    with_prompt = pairs["model_session"].is_unique and pairs["prompt"].is_unique
    by_session = models.groupby("model_session")[factor].nunique()
    in_one_condition = bool((by_session == 1).all()) and models[factor].nunique() > 1
    others_too = bool((models.groupby("model_session")["other_conditions"].nunique() == 1).all())
    others_too &= models["other_conditions"].nunique() > 1
    if in_one_condition:
        cell = ["machine", factor, *(["other_conditions"] if others_too else [])]
        sessions = int(models.groupby(cell, observed=True)["model_session"].nunique().min())
    if repeated and in_one_condition and sessions < VARIANTS_FOR_A_VARIANCE:
        suffix = " and one of the design's other factors" if others_too else ""
        remarks.append(
            f"Each session of a model holds one condition of {factor}{suffix}, so that a variance of sessions cannot be told "
            "apart from the conditions: the model has none."
        )
    elif repeated and sessions >= VARIANTS_FOR_A_VARIANCE:
        if with_prompt:
            remarks.append(
                "Each prompt variant has one session of a model: differences between them are attributed to the variants."
            )
        else:
            term("model_session", "a model's sessions differ")
    return terms


def on_models_in_general(rows: pd.DataFrame) -> str | None:
    """State how far results for the models at hand go; None where there are none or many."""
    n_models = int(rows.loc[rows["reader_kind"] == "model", "reader_group"].nunique())
    if not 0 < n_models < MODELS_FOR_A_CLAIM:
        return None
    subject = "this model" if n_models == 1 else f"these {apa.worded(n_models, 'model')}"
    return (
        f"These results describe {subject} on items like these; with fewer than {apa.worded(MODELS_FOR_A_CLAIM, 'model')}, they "
        "do not generalize to language models in general."
    )


def begun_uncorrelated(terms: list[RandomTerm], most_columns: int) -> tuple[list[RandomTerm], list[Remark]]:
    """Begin without correlations of participants' slopes where their matrix has more columns: 10 conditions have 55 entries."""
    result, remarks = list(terms), []
    for index, term in enumerate(terms):
        size = len(term.columns) + int(term.beside)
        if term.group == "participant" and term.state == "correlated" and size > most_columns:
            result[index] = replace(term, state="uncorrelated")
            remark = (
                f"Participants' slopes were uncorrelated from the start: A covariance matrix of {size} columns would have "
                f"{size * (size + 1) // 2} entries, and at most {most_columns} columns were correlated."
            )
            remarks.append(Remark(remark, "uncorrelated slopes"))
    return result, remarks


def formula(response: str, fixed: str, terms: list[RandomTerm]) -> str:
    """Write the whole model formula."""
    return f"{response} ~ {' + '.join([fixed, *(term.text() for term in terms)])}"


def reduced(
    terms: list[RandomTerm], at_zero: dict[str, list[str]], doubtful: set[str], converged: bool
) -> tuple[list[RandomTerm], str]:
    """Take the next step of the reduction rule."""
    changed: dict[str, list[RandomTerm]] = {}
    steps: list[str] = []

    def change(term: RandomTerm, replacements: Iterable[RandomTerm], description: str) -> None:
        changed[term.group] = list(replacements)
        steps.append(f"{term.group}: {description}")

    suspects = [term for term in terms if term.group in doubtful]
    for term in (term for term in suspects if term.state == "correlated"):
        if term.instead:
            change(term, term.instead, "slopes taken to be independent between conditions")
        else:
            change(term, [replace(term, state="uncorrelated")], "correlations dropped")
    for term in [] if changed else suspects:
        zero = at_zero.get(term.group, [])
        intercept_is_zero = ("(Intercept)" if term.intercept == "1" else term.intercept) in zero
        empty = [column for column in term.columns if column in zero]
        is_apart = term.state == "uncorrelated"
        if is_apart and term.instead:
            if intercept_is_zero or empty or not converged:
                change(term, term.instead, "item differences taken as equal in all conditions")
        elif is_apart and (empty or not converged):
            remaining = tuple(column for column in term.columns if empty and column not in empty)
            state: State = "uncorrelated" if remaining else "intercept"
            left_over = (
                []
                if term.may_go and intercept_is_zero and not remaining
                else [replace(term, state=state, columns=remaining)]
            )
            dropped = (
                f"slopes without variance dropped ({', '.join(empty)})" if remaining else "slopes dropped"
            )
            change(term, left_over, dropped)
        elif is_apart and intercept_is_zero and term.may_go:
            # what is shared has no variance; that of models alone is left
            model_term = replace(term, intercept=term.columns[0], columns=(), state="intercept")
            change(term, [model_term], "variance shared by people and models dropped")
        elif term.may_go and (intercept_is_zero or not converged):
            change(term, [], "term without variance dropped" if intercept_is_zero else "term dropped")
    left = [replacement for term in terms for replacement in changed.get(term.group, [term])]
    return left, "; ".join(steps)
