"""The parametric bootstrap: refits to responses drawn from the model, with new random effects for every data set.

It is lme4's ``bootMer`` with ``use.u = FALSE``. Refits that fail are counted and reported, never replaced. A refit depends on
the fit, the seed and its own number alone, so neither the number of processes nor an interruption changes anything.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from stimuli.errors import UserError, unknown_name
from stimuli.files import replacing

from .fitting import fit_model
from .inference import check_level
from .prediction import simulate
from .profile import Parameter, estimate_of, parameters_of
from .result import Fit

Array = NDArray[np.float64]
Statistic = Callable[[Fit], Sequence[float]]


@dataclass(frozen=True)
class Refit:
    """What one drawn data set gave."""

    number: int  # which draw, from 0
    values: tuple[float, ...] | None  # the statistic; None where the model could not be fitted
    converged: bool = False  # converged, singular: as the fit reports them
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
    """Everything that refits hang on."""

    fit: Fit  # the model that responses are drawn from and that is fitted to them
    statistic: Statistic  # fit -> numbers
    seed: int | str  # of the draws

    def refit(self, number: int) -> Refit:
        """Draw one data set and fit the model to it."""
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
        frame, effects = model.frame, model.matrices.effects
        rows = frame.y, frame.weights, frame.offset, model.matrices.x
        for numbers in (*rows, *(e.codes for e in effects), *(e.columns for e in effects)):
            found.update(np.ascontiguousarray(numbers).tobytes())
        return found.hexdigest()


class Kept:
    """Refits in a file, a JSON line each after a first line that says to what they belong."""

    def __init__(self, file: Path, plan: Plan) -> None:
        self.file, self.found = file, dict[int, Refit]()
        first = {"refits of": plan.mark(), "seed": str(plan.seed), "formula": plan.fit.formula}
        try:
            lines = file.read_text("utf-8").splitlines() if file.exists() else []
            kept = [line for line in map(read_kept, lines) if line is not None]
            if lines and (not kept or kept[0] != first):
                raise UserError(
                    f"{file} does not hold refits of this model, these data and this seed",
                    mend="Name another file, or delete this one.",
                )
            for line in kept[1:]:
                if line["values"] is not None:
                    line["values"] = tuple(np.nan if v is None else float(v) for v in line["values"])
                self.found[line["number"]] = Refit(**line)
            # A line cut short by an interruption goes; all else is written again.
            with replacing(file) as part:
                part.write_text(_line(first) + "".join(map(_line, self.found.values())), "utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"{file} cannot hold refits: {error}", mend="Name a file that can be written."
            ) from error

    def add(self, refit: Refit) -> None:
        """Keep one more."""
        with self.file.open("a", encoding="utf-8") as file:
            file.write(_line(refit))
        self.found[refit.number] = refit


def _line(held: Refit | dict[str, str]) -> str:
    line: dict[str, Any] = dict(held) if isinstance(held, dict) else asdict(held)
    if line.get("values") is not None:
        line["values"] = [None if np.isnan(v) else v for v in line["values"]]
    return json.dumps(line) + "\n"


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
    """Make refits 0 to ``count`` - 1, those kept in a file excepted."""
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


KINDS = ("percentile", "basic", "normal")
FEWEST = 20
"""Refits without which no interval is given."""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Estimates from data sets drawn from a fitted model."""

    names: tuple[str, ...]  # what was estimated
    estimate: Array  # (q,): from the data
    replicates: Array  # (r, q): from the data sets drawn, failed refits left out
    # failed, unconverged, singular: refits that could not be done; refits kept although they did not
    # converge, or were singular
    failed: int
    unconverged: int
    singular: int
    seed: int | str  # of the draws

    @property
    def se(self) -> Array:
        """Standard deviation over the replicates, shape (q,)."""
        return np.asarray(np.nanstd(self.replicates, axis=0, ddof=1))

    @property
    def bias(self) -> Array:
        """Mean of the replicates less the estimate, shape (q,)."""
        return np.asarray(np.nanmean(self.replicates, axis=0) - self.estimate)

    def intervals(self, level: float = 0.95, kind: str = "percentile") -> pd.DataFrame:
        """Compute bootstrap intervals.

        Parameters
        ----------
        level : float
            Coverage.
        kind : {'percentile', 'basic', 'normal'}
            Quantiles of the replicates; those mirrored at the estimate; or estimate less bias plus or minus z standard
            errors (Davison and Hinkley 1997, chapter 5).

        Returns
        -------
        DataFrame, shape (q, 6)
            parameter, estimate, se, bias, ci_low, ci_high.
        """
        check_level(level)
        if kind not in KINDS:
            raise unknown_name("kind of bootstrap interval", kind, KINDS)
        if len(self.replicates) < FEWEST:
            raise UserError(
                f"{len(self.replicates)} refits are too few for intervals; {FEWEST} is the least, 1000 is usual"
            )
        tail = (1.0 - level) / 2.0
        low, high = np.nanquantile(self.replicates, [tail, 1.0 - tail], axis=0)
        if kind == "basic":
            low, high = 2.0 * self.estimate - high, 2.0 * self.estimate - low
        elif kind == "normal":
            middle, half = self.estimate - self.bias, stats.norm.isf(tail) * self.se
            low, high = middle - half, middle + half
        table = pd.DataFrame(
            {
                "parameter": list(self.names),
                "estimate": self.estimate,
                "se": self.se,
                "bias": self.bias,
                "ci_low": low,
                "ci_high": high,
            }
        )
        table.attrs = {"method": f"bootstrap, {kind}", "level": level, "replicates": len(self.replicates)}
        return table

    def sentence(self) -> str:
        """Say how many refits there were and what became of them."""
        said = f"{len(self.replicates)} refits to responses drawn from the model (seed {self.seed})"
        outcomes = {"failed and are left out": self.failed, "did not converge": self.unconverged}
        outcomes["were singular"] = self.singular
        return "; ".join([said, *(f"{count} {what}" for what, count in outcomes.items() if count)])


def bootstrap(
    fit: Fit,
    replicates: int = 1000,
    *,
    seed: int | str = 0,
    statistic: Statistic | None = None,
    names: Sequence[str] | None = None,
    processes: int = 1,
    keep: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Bootstrap:
    """Bootstrap a fitted model parametrically.

    Parameters
    ----------
    replicates : int
        Data sets to draw.
    seed : int or str
        Another one gives other draws. Replicate k is the same however many there are, in however many processes.
    statistic : callable, optional
        Fit -> numbers; default all parameters as ``profile_intervals`` names them.
    names : sequence of str, optional
        Names of the statistic's numbers.
    processes : int
        Refits at work at once, each in an interpreter of its own with one thread. A script that asks for several has its
        work under ``if __name__ == "__main__":``.
    keep : str or Path, optional
        A file that keeps refits as they are made: after an interruption the same call goes on, and a call for more
        replicates adds to them.
    progress : callable, optional
        Told (refits done, refits in all).
    """
    if replicates < 1:
        raise UserError(
            f"replicates is {replicates}; at least one data set must be drawn", mend="1000 are usual."
        )
    if processes < 1:
        raise UserError(f"processes is {processes}; at least one must work", mend="Give 1 or more.")
    if statistic is None:
        parameters = tuple(parameters_of(fit))
        names, statistic = [p.name for p in parameters], Estimates(parameters)
    estimate = np.array(statistic(fit), dtype=float)
    if names is not None and len(names) != len(estimate):
        raise UserError(
            f"{len(names)} names are given; the statistic has {len(estimate)} numbers", mend="Name each once."
        )
    file = None if keep is None else Path(keep)
    made = refits(Plan(fit, statistic, seed), replicates, processes=processes, keep=file, progress=progress)
    fitted = [r for r in made if r.values is not None]
    if not fitted:
        raise UserError(
            f"none of {replicates} refits could be done",
            mend="Look at the warnings of the fit; a simpler model may have an answer.",
            exit_code=1,
        )
    labels = tuple(names) if names is not None else tuple(f"t{i + 1}" for i in range(len(estimate)))
    return Bootstrap(
        labels,
        estimate,
        np.array([r.values for r in fitted]),
        len(made) - len(fitted),
        sum(not r.converged for r in fitted),
        sum(r.singular for r in fitted),
        seed,
    )
