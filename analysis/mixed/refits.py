"""Refits of a model to responses drawn from it: in one process or several, kept in a file as they are made.

What a refit gives hangs on the fit, the seed and the refit's number alone, so that neither the number of processes nor an
interruption changes anything.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError
from stimuli.files import replacing

from .fitting import fit_model
from .parameters import Parameter, estimate_of
from .result import Fit
from .simulation import simulate

Array = NDArray[np.float64]
Statistic = Callable[[Fit], Sequence[float]]


@dataclass(frozen=True)
class Refit:
    """What one drawn data set gave.

    Attributes
    ----------
    number : int
        Which draw, from 0.
    values : tuple of float or None
        The statistic; None where the model could not be fitted.
    converged, singular : bool
        What the fit says of itself; False where there is none.
    """

    number: int
    values: tuple[float, ...] | None
    converged: bool = False
    singular: bool = False


@dataclass(frozen=True)
class Estimates:
    """The statistic of a bootstrap that is given none: a model's parameters."""

    parameters: tuple[Parameter, ...]

    def __call__(self, fit: Fit) -> list[float]:
        """Estimate each of them."""
        return [estimate_of(fit, p) for p in self.parameters]


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that refits hang on.

    Attributes
    ----------
    fit : Fit
        The model that responses are drawn from and that is fitted to them.
    statistic : callable
        Fit -> numbers.
    seed : int or str
        Of the draws.
    """

    fit: Fit
    statistic: Statistic
    seed: int | str

    def refit(self, number: int) -> Refit:
        """Draw one data set and fit the model to it.

        Raises
        ------
        UserError
            If no data set can be drawn.
        """
        y = simulate(self.fit, seed=f"{self.seed} bootstrap {number}")[:, 0]
        model = self.fit.model
        try:
            again = fit_model(replace(model, frame=replace(model.frame, y=y)))
            values = tuple(float(v) for v in self.statistic(again))
        except (UserError, np.linalg.LinAlgError, ArithmeticError):
            return Refit(number, None)
        return Refit(number, values, again.converged, again.singular)

    def mark(self) -> str:
        """Hash of data, model, seed and statistic: what a file of refits belongs to."""
        model, found = self.fit.model, hashlib.sha256()
        name = getattr(self.statistic, "__qualname__", type(self.statistic).__qualname__)
        words = [model.formula.text, self.fit.family, self.fit.link, self.fit.method, str(model.criterion)]
        found.update(json.dumps([*words, str(self.seed), name]).encode())
        frame, matrices = model.frame, model.matrices
        for numbers in (
            frame.y,
            frame.weights,
            frame.offset,
            matrices.x,
            *(e.codes for e in matrices.effects),
        ):
            found.update(np.ascontiguousarray(numbers).tobytes())
        for effect in matrices.effects:
            found.update(np.ascontiguousarray(effect.columns).tobytes())
        return found.hexdigest()


class Kept:
    """Refits in a file, a JSON line each after a first line that says to what they belong.

    Parameters
    ----------
    file : Path
        Made where there is none; refits that it holds are not made again.
    plan : Plan
        What they belong to.

    Raises
    ------
    UserError
        If the file belongs to something else, or cannot be written.
    """

    def __init__(self, file: Path, plan: Plan) -> None:
        self.file, self.found = file, dict[int, Refit]()
        first = {"refits of": plan.mark(), "seed": str(plan.seed), "formula": plan.fit.formula}
        try:
            lines = file.read_text("utf-8").splitlines() if file.exists() else []
            told = [line for line in map(read_kept, lines) if line is not None]
            if lines and (not told or told[0] != first):
                raise UserError(
                    f"{file} does not hold refits of this model, these data and this seed",
                    mend="Name another file, or delete this one.",
                )
            for line in told[1:]:
                values = line["values"]
                numbers = None if values is None else tuple(np.nan if v is None else float(v) for v in values)
                self.found[line["number"]] = Refit(
                    line["number"], numbers, line["converged"], line["singular"]
                )
            # A line cut short by an interruption goes; all else is written again.
            with replacing(file) as part:
                part.write_text("".join(json.dumps(line) + "\n" for line in told or [first]), "utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"{file} cannot hold refits: {error}", mend="Name a file that can be written."
            ) from error

    def add(self, refit: Refit) -> None:
        """Keep one more."""
        values = None if refit.values is None else [None if np.isnan(v) else v for v in refit.values]
        line = {
            "number": refit.number,
            "values": values,
            "converged": refit.converged,
            "singular": refit.singular,
        }
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.found[refit.number] = refit


def read_kept(line: str) -> dict[str, Any] | None:
    """Return what a line of such a file holds; None for one that an interruption cut short."""
    try:
        found = json.loads(line)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def refits(
    plan: Plan,
    count: int,
    *,
    processes: int = 1,
    keep: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Refit]:
    """Make refits 0 to ``count`` - 1, those kept in a file excepted.

    Parameters
    ----------
    plan : Plan
        What is refitted.
    count : int
        How many there shall be.
    processes : int
        At work at once, one thread each.
    keep : Path, optional
        File of refits, see ``Kept``.
    progress : callable, optional
        Told (refits done, refits in all).

    Returns
    -------
    list of Refit, length count
        By number.

    Raises
    ------
    UserError
        If no data set can be drawn, or statistic or file will not do.
    """
    kept = Kept(keep, plan) if keep is not None else None
    done = dict(kept.found) if kept is not None else {}
    missing = [number for number in range(count) if number not in done]
    made = count - len(missing)
    if progress is not None and made:
        progress(made, count)
    for refit in _made(plan, missing, min(processes, len(missing))):
        done[refit.number] = refit
        made += 1
        if kept is not None:
            kept.add(refit)
        if progress is not None:
            progress(made, count)
    return [done[number] for number in range(count)]


def _made(plan: Plan, numbers: Iterable[int], processes: int) -> Iterator[Refit]:
    if processes <= 1:
        yield from map(plan.refit, numbers)
        return
    try:
        packed = pickle.dumps(plan)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UserError(
            f"the statistic cannot be sent to other processes: {error}",
            mend="Define it as a function of a module, or use one process.",
        ) from error
    # A fresh interpreter each: a copy of this one could hold locks of its threads.
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _unpack, (packed,))
    try:
        asked = [pool.submit(_refit, number) for number in numbers]
        for future in as_completed(asked):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


_plan: list[Plan] = []
"""In a process of its own: what it refits."""


def _unpack(packed: bytes) -> None:
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    _plan.append(pickle.loads(packed))


def _refit(number: int) -> Refit:
    return _plan[0].refit(number)
