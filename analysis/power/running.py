"""Simulates all studies of a grid: in one process or several, each fit kept as it is made."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from analysis.power.kept import Kept
from analysis.power.layouts import Sizes
from analysis.power.simulation import Outcome, Question, Study
from stimuli.errors import UserError

Progress = Callable[[int, int, int], None]
"""Told (fits done, fits in all, fits that were kept from before)."""

AHEAD = 4
"""Fits handed to each process before it asks for more."""


def simulate(
    question: Question,
    grid: Sequence[Sizes],
    fits: int,
    kept: Kept,
    *,
    processes: int = 1,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Make the fits of a grid that a file does not hold yet.

    Parameters
    ----------
    question : Question
    grid : sequence of Sizes
    fits : int
        How many of each size.
    kept : Kept
        Takes each fit as it is made; an interruption loses those under way.
    processes : int
        At work at once, one thread each.
    progress : callable, optional
        See ``Progress``.

    Returns
    -------
    list of Outcome
        By size and number, whatever the processes did in whatever order.

    Raises
    ------
    UserError
        For fewer than one fit or process, a size that the layout does not allow, or processes that died.
    """
    if fits < 1:
        raise UserError(f"fits is {fits}; at least one study can be simulated", mend="1000 is usual.")
    if processes < 1:
        raise UserError(f"processes is {processes}; at least one is needed")
    missing = kept.missing(grid, fits)
    total = len(grid) * fits
    before = total - len(missing)
    done = before
    if progress is not None:
        progress(done, total, before)
    for outcome in _made(question, missing, min(processes, len(missing))):
        kept.add(outcome)
        done += 1
        if progress is not None:
            progress(done, total, before)
    return [outcome for sizes in grid for outcome in kept.of(sizes, fits)]


def _made(question: Question, missing: Sequence[tuple[Sizes, int]], processes: int) -> Iterator[Outcome]:
    if processes <= 1:
        bench = Bench(question)
        for sizes, number in missing:
            yield bench.simulate(sizes, number)
        return
    # A fresh interpreter each: a copy of this one could hold locks of its threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _begin, (pickle.dumps(question),))
    waiting: set[Future[Outcome]] = set()
    left = iter(missing)
    try:
        while True:
            while len(waiting) < AHEAD * processes and (one := next(left, None)) is not None:
                waiting.add(pool.submit(_simulate, *one))
            if not waiting:
                return
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ready:
                yield future.result()
    except BrokenProcessPool as error:
        raise UserError(
            "a process ended in the middle of a fit",
            mend="Memory may be short: use fewer --processes. The same command goes on from what is finished.",
            exit_code=1,
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


class Bench:
    """The study that is being simulated, made anew where the size changes."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self._study: Study | None = None

    def simulate(self, sizes: Sizes, number: int) -> Outcome:
        """Simulate one study of a size."""
        if self._study is None or self._study.sizes != sizes:
            self._study = Study(self.question, sizes)
        return self._study.simulate(number)


_bench: list[Bench] = []
"""In a process of its own: what it simulates."""


def _begin(packed: bytes) -> None:
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    # Ctrl-C is for the process that was started by hand; it ends these.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _bench.append(Bench(pickle.loads(packed)))


def _simulate(sizes: Sizes, number: int) -> Outcome:
    return _bench[0].simulate(sizes, number)
