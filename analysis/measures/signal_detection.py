"""Signal detection for two-class answers (H-TEST's A and B, lexical decision): sensitivity apart from bias.

One class is the signal. The equal-variance model says that a reader answers "signal" with probability
Phi(d' * truth - c), truth being +1/2 for the signal and -1/2 for the other class; so d' = z(hits) - z(false alarms) and the
criterion c = -(z(hits) + z(false alarms)) / 2 (Macmillan & Creelman, 2005, Detection Theory, ch. 1-2). The same is a probit regression
of the response on truth (DeCarlo, 1998, Psychological Methods 3, 186-205), which :func:`probit_data` writes for
:func:`analysis.mixed.fit`, with condition, readers and items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.answers import is_valid
from analysis.measures.cells import cell_columns
from analysis.mixed import Fit, linear_contrasts
from analysis.readers import PARTICIPANT_KINDS
from stimuli.errors import UserError, unknown_name

GROUP = "reader_group"
ADDED = 0.5
"""The log-linear correction (Hautus, 1995, Behavior Research Methods, Instruments, & Computers 27, 46-51): added to hits and
false alarms, with 1 added to the numbers of signal and other trials, whether or not a rate is 0 or 1."""


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivity and bias from counts."""

    d_prime: float  # A criterion above 0 is a bias against answering "signal"
    criterion: float
    d_prime_se: float
    criterion_se: float
    beta: float  # ln of the likelihood ratio at the criterion, d' x c


def sensitivity(hits: float, signals: float, false_alarms: float, others: float) -> Sensitivity:
    """Return d' and c of one reader in one condition, with the log-linear correction."""
    if min(hits, false_alarms) < 0 or hits > signals or false_alarms > others:
        raise UserError(
            f"{hits:g} hits of {signals:g} and {false_alarms:g} false alarms of {others:g}",
            mend="Hits and false alarms lie between 0 and their numbers of trials.",
        )
    rates = np.array([(hits + ADDED) / (signals + 2 * ADDED), (false_alarms + ADDED) / (others + 2 * ADDED)])
    many = np.array([signals + 2 * ADDED, others + 2 * ADDED])
    z = stats.norm.ppf(rates)
    variance = rates * (1 - rates) / many / stats.norm.pdf(z) ** 2
    d_prime, criterion = float(z[0] - z[1]), float(-(z[0] + z[1]) / 2)
    se = float(np.sqrt(variance.sum()))
    return Sensitivity(d_prime, criterion, se, se / 2, d_prime * criterion)


def classes_of(trials: pd.DataFrame) -> tuple[str, str]:
    """Return the two classes that answers name, in alphabetical order."""
    found = sorted(trials["answer"].dropna().unique())
    if len(found) != 2:
        shown = ", ".join(map(repr, found[:4])) or "none"
        raise UserError(
            f"signal detection needs two classes of answers, and these trials have {len(found)} ({shown})",
            mend="Choose trials of one task with two answers, such as A and B.",
        )
    return str(found[0]), str(found[1])


def signal_detection(
    trials: pd.DataFrame, by: Sequence[str] | str = (), signal: str | None = None
) -> pd.DataFrame:
    """Return sensitivity and bias of each reader in each cell."""
    by = cell_columns(trials, by)
    rows = _answered(trials, by, signal)
    found = []
    keys = [GROUP, "reader", *by]
    for key, own in rows.groupby(keys, observed=True, sort=False):
        valid = own[own["said_signal"].notna()]
        is_signal = valid["truth"] > 0
        counts = {
            "hits": int((valid["said_signal"][is_signal] == 1).sum()),
            "signals": int(is_signal.sum()),
            "false_alarms": int((valid["said_signal"][~is_signal] == 1).sum()),
            "others": int((~is_signal).sum()),
        }
        both = counts["signals"] > 0 and counts["others"] > 0
        told = vars(sensitivity(**counts)) if both else dict.fromkeys(_SENSITIVITY, float("nan"))
        found.append(
            {**dict(zip(keys, key, strict=True)), **counts, "missing": len(own) - len(valid), **told}
        )
    return pd.DataFrame(found)


@dataclass(frozen=True)
class ProbitData:
    """A probit model of responses, ready for :func:`analysis.mixed.fit`."""

    rows: pd.DataFrame
    formula: str  # response by truth x condition (x reader group)
    settings: dict[str, Any]  # ``family``, ``link`` and ``levels`` for ``fit``
    cells: tuple[dict[str, str], ...]
    signal: str  # the class that counts as signal


def probit_data(
    trials: pd.DataFrame,
    factor: str,
    levels: Sequence[str],
    groups: Sequence[str],
    signal: str | None = None,
    random: Sequence[str] | None = None,
) -> ProbitData:
    """Write the probit model whose coefficients of truth are d' and whose others are minus the criterion."""
    rows = _answered(trials, (factor,), signal)
    rows = rows[rows["said_signal"].notna() & rows[factor].isin(levels) & rows[GROUP].isin(groups)].copy()
    if rows.empty:
        raise UserError(
            "no valid answers in these conditions and reader groups",
            mend="Name conditions that were answered.",
        )
    rows["participant"] = rows["reader"]
    rows["item"] = rows["item_id"]
    several = len(groups) > 1
    person = rows["reader_kind"].isin(PARTICIPANT_KINDS)
    rows["people"] = person.astype(float)
    rows["people_truth"] = rows["people"] * rows["truth"]
    rows["item_reader"] = rows["item"] + ":" + rows[GROUP]
    if random is None:
        random = ["(1 | item)"]
        if person.any():
            random = ["(0 + people + people_truth | participant)", *random]
        if several:
            random = [*random, "(1 | item_reader)"]
    fixed = f"truth * {factor}" + (f" * {GROUP}" if several else "")
    made: dict[str, list[str]] = {factor: list(levels)}
    cells = [{factor: level} for level in levels]
    if several:
        made[GROUP] = list(groups)
        cells = [{GROUP: group, **cell} for group in groups for cell in cells]
    return ProbitData(
        rows.reset_index(drop=True),
        f"said_signal ~ {fixed} + " + " + ".join(random),
        {"family": "binomial", "link": "probit", "levels": made},
        tuple(cells),
        classes_of(rows)[0] if signal is None else signal,
    )


def sensitivity_and_bias(fit: Fit, data: ProbitData, level: float = 0.95) -> pd.DataFrame:
    """Read d' and criterion of each cell, with intervals, from a fitted probit model."""
    weights = _weights(fit, data)
    names = [{**cell, "measure": measure} for cell in data.cells for measure in MEASURED]
    rows = [weights[place][measure] for place in range(len(data.cells)) for measure in MEASURED]
    return _told(fit, names, rows, level)


def differences_in_sensitivity(fit: Fit, data: ProbitData, level: float = 0.95) -> pd.DataFrame:
    """Test differences of d' and criterion from the reference, within and between reader groups."""
    weights = _weights(fit, data)
    factor = next(iter(name for name in data.settings["levels"] if name != GROUP))
    reference, *others = data.settings["levels"][factor]
    groups = data.settings["levels"].get(GROUP, [None])
    at = {(cell.get(GROUP), cell[factor]): weights[place] for place, cell in enumerate(data.cells)}
    names: list[dict[str, Any]] = []
    rows = []
    for measure in MEASURED:
        for one in others:
            within = {group: at[group, one][measure] - at[group, reference][measure] for group in groups}
            for group in groups:
                names.append({"first": one, "second": reference, "groups": (group,), "measure": measure})
                rows.append(within[group])
            for group in groups[1:]:
                pair = (groups[0], group)
                names.append({"first": one, "second": reference, "groups": pair, "measure": measure})
                rows.append(within[groups[0]] - within[group])
    return _told(fit, names, rows, level)


MEASURED = ("d_prime", "criterion")


def _weights(fit: Fit, data: ProbitData) -> list[dict[str, NDArray[np.float64]]]:
    """Write d' and criterion of each cell as linear functions of the fixed effects."""
    terms = [str(term) for term in fit.fixed["term"]]
    levels = data.settings["levels"]
    found = []
    for cell in data.cells:
        present = {name: cell[name] for name in levels if cell[name] != levels[name][0]}
        own: dict[str, NDArray[np.float64]] = {}
        for measure, sign in zip(MEASURED, (1.0, -1.0), strict=True):
            summed = _names(present, with_truth=measure == "d_prime")
            own[measure] = np.array([sign * (term in summed) for term in terms])
        found.append(own)
    return found


def _told(
    fit: Fit, names: list[dict[str, Any]], rows: list[NDArray[np.float64]], level: float
) -> pd.DataFrame:
    table = linear_contrasts(fit, np.array(rows), level=level)
    numbers = table[["estimate", "se", "statistic", "p", "ci_low", "ci_high"]]
    return pd.concat([pd.DataFrame(names), numbers.reset_index(drop=True)], axis=1)


_SENSITIVITY = ("d_prime", "criterion", "d_prime_se", "criterion_se", "beta")


def _names(present: dict[str, str], *, with_truth: bool) -> set[str]:
    """Name the coefficients whose sum is a cell's d' (with truth) or minus its criterion, as lme4 names them."""
    levels = [f"{name}{value}" for name, value in present.items()]
    found = set()
    for many in range(len(levels) + 1):
        for some in combinations(levels, many):
            parts = (["truth"] if with_truth else []) + list(some)
            found.add(":".join(parts) or "(Intercept)")
    return found


def _answered(trials: pd.DataFrame, by: Sequence[str], signal: str | None) -> pd.DataFrame:
    """Return used trials that asked for an answer, with ``truth`` and ``said_signal`` (nan where not valid)."""
    used = trials["excluded_reason"].isna() & trials["response_status"].notna() & trials["answer"].notna()
    rows = trials[used & trials[list(by)].notna().all(axis=1)].copy()
    one, other = classes_of(rows)
    chosen = one if signal is None else signal
    if chosen not in (one, other):
        raise unknown_name("signal:", chosen, (one, other))
    valid = is_valid(rows) & rows["response"].isin([one, other])
    rows["truth"] = np.where(rows["answer"] == chosen, 0.5, -0.5)
    said: NDArray[np.float64] = np.where(valid, (rows["response"] == chosen).astype(float), np.nan)
    rows["said_signal"] = said
    return rows
