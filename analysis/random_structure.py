"""The random-effects structure of a model: where it starts, and the stated rule by which it is reduced.

It starts with what the design justifies (Barr et al., 2013, within what today's tables hold): participants with an
intercept and a slope of the compared factor, items with an intercept, which may differ between people and models.
A fit that is singular or does not converge is reduced in steps (after Bates et al., 2015, *Parsimonious mixed
models*): first the correlations go, then the components whose variance is estimated as zero, then all slopes.
Every step is kept and reported; nothing is simplified in silence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from analysis.frames import ModelData, indicator

State = Literal["correlated", "uncorrelated", "intercept"]
VARIANTS_FOR_A_VARIANCE = 5
TRIALS_FOR_A_SLOPE = 2


@dataclass(frozen=True)
class RandomTerm:
    """One grouping factor with its intercept and slopes.

    Attributes
    ----------
    group : str
        The grouping column.
    intercept : str
        ``1``, or the indicator column that confines the term to people or models.
    slopes : str
        What stands beside the intercept while correlations are estimated (``position``); empty for none.
    columns : tuple of str
        The numeric columns that stand for the slopes once correlations are gone.
    state : str
        ``correlated``, ``uncorrelated`` or ``intercept``.
    may_go : bool
        Whether the whole term is dropped when its variance is estimated as zero.
    why : str
        What the term is for, in words.
    """

    group: str
    intercept: str
    slopes: str
    columns: tuple[str, ...]
    state: State
    why: str
    may_go: bool = False

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
    """One fit on the way to the reported one.

    Attributes
    ----------
    formula : str
    singular, converged : bool
    loglik : float
    verdict : str
        What was found and what was done next, in words.
    """

    formula: str
    singular: bool
    converged: bool
    loglik: float
    verdict: str


def justified(data: ModelData, factor: str) -> tuple[list[RandomTerm], list[str]]:
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
            "There is one participant: the model has no variance between participants, and nothing can be said "
            "about people in general."
        )
    items = rows["item"].nunique()
    if 1 < items < len(rows):
        slopes = "model" if mixed else ""
        state: State = "correlated" if mixed else "intercept"
        columns = ("model",) if mixed else ()
        terms.append(RandomTerm("item", "1", slopes, columns, state, "items differ"))
    elif items == 1:
        remarks.append("There is one item: nothing can be said beyond it.")
    terms.extend(_models(rows[rows["model"] == 1], data, factor, remarks))
    if "answer_given" in rows and terms:
        why = "words of one answer are recovered or lost together"
        terms.append(RandomTerm("answer_given", "1", "", (), "intercept", why, may_go=True))
    return terms, remarks


def _participants(
    people: pd.DataFrame, data: ModelData, factor: str, mixed: bool, remarks: list[str]
) -> RandomTerm:
    intercept = "people" if mixed else "1"
    columns = tuple(indicator("people" if mixed else factor, level) for level in data.levels[1:])
    # With `0 +` R codes a factor by all its levels, one too many; numeric columns say what is meant.
    slopes = " + ".join(columns) if mixed else factor
    per_cell = people.groupby(["participant", factor], observed=True).size()
    levels_seen = people.groupby("participant")[factor].nunique()
    supported = bool((levels_seen > 1).any() and per_cell.median() >= TRIALS_FOR_A_SLOPE)
    if not supported:
        remarks.append(
            f"Participants have fewer than {TRIALS_FOR_A_SLOPE} trials per condition (median), so the model has no "
            f"slope of {factor} by participant."
        )
    state: State = "correlated" if supported else "intercept"
    return RandomTerm(
        "participant", intercept, slopes, columns if supported else (), state, "participants differ"
    )


def _models(models: pd.DataFrame, data: ModelData, factor: str, remarks: list[str]) -> list[RandomTerm]:
    terms = []
    if len(data.machine_groups) > 1:
        terms.append(
            RandomTerm("item_reader", "1", "", (), "intercept", "items differ model by model", may_go=True)
        )
    if len(models) and models.groupby("item_cell").size().median() > 1:
        why = "a model answers the same item in the same condition more than once"
        terms.append(RandomTerm("item_cell", "1", "", (), "intercept", why, may_go=True))
    variants = models.groupby("reader_group")["prompt_variant"].nunique()
    if len(variants) and variants.max() >= VARIANTS_FOR_A_VARIANCE:
        intercept = "model" if data.participant_groups else "1"
        terms.append(
            RandomTerm("prompt", intercept, "", (), "intercept", "prompt wordings differ", may_go=True)
        )
    elif len(variants) and variants.max() > 1:
        remarks.append(
            f"Models answered {int(variants.max())} prompt wordings, too few for a variance of their own "
            f"({VARIANTS_FOR_A_VARIANCE} are needed): the model averages over them as if there were no others."
        )
    return terms


def formula(response: str, fixed: str, terms: list[RandomTerm]) -> str:
    """Write the whole model formula."""
    return f"{response} ~ {' + '.join([fixed, *(term.text() for term in terms)])}"


def reduced(
    terms: list[RandomTerm], at_zero: dict[str, list[str]], doubtful: set[str], converged: bool
) -> tuple[list[RandomTerm], str]:
    """Take the next step of the reduction rule.

    Parameters
    ----------
    terms : list of RandomTerm
    at_zero : dict
        For each grouping column the components whose variance is estimated as zero.
    doubtful : set of str
        Grouping columns whose covariance matrix is singular; all of them where the fit did not converge.
    converged : bool
        Whether the last fit converged.

    Returns
    -------
    terms : list of RandomTerm
        Unchanged where nothing can be reduced further.
    told : str
        What was done, in words; empty where nothing was.
    """
    changed: dict[str, RandomTerm | None] = {}
    told: list[str] = []
    for term in terms:
        if term.group in doubtful and term.state == "correlated":
            changed[term.group] = replace(term, state="uncorrelated")
            told.append(f"{term.group}: correlations dropped")
    if not changed:
        for term in terms:
            empty = [column for column in term.columns if column in at_zero.get(term.group, [])]
            if term.group in doubtful and term.state == "uncorrelated" and (empty or not converged):
                kept = tuple(column for column in term.columns if empty and column not in empty)
                state: State = "uncorrelated" if kept else "intercept"
                changed[term.group] = replace(term, state=state, columns=kept)
                told.append(f"{term.group}: {_dropped(empty, kept)}")
            elif term.may_go and term.group in doubtful:
                changed[term.group] = None
                told.append(f"{term.group}: term dropped (no variance found: {term.why})")
    left = [changed.get(term.group, term) for term in terms]
    return [term for term in left if term is not None], "; ".join(told)


def _dropped(empty: list[str], kept: tuple[str, ...]) -> str:
    return f"slopes without variance dropped ({', '.join(empty)})" if kept else "slopes dropped"
