"""Simulates all studies of a grid, in one process or several."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache

from analysis.power.layouts import Sizes
from analysis.power.simulation import Outcome, Question, Study
from stimuli.errors import UserError

Task = tuple[Sizes, range]
"""Numbers of studies of one size."""

Progress = Callable[[int, int], None]
"""Called with the studies done and those in all."""

BATCH = 20
"""Studies that a process simulates before it asks for more."""


def simulate(
    question: Question,
    grid: Sequence[Sizes],
    studies: int,
    *,
    processes: int = 1,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Simulate the studies of a grid."""
    if studies < 1:
        raise UserError(f"studies is {studies}; at least one can be simulated", mend="1000 is usual.")
    if processes < 1:
        raise UserError(f"processes is {processes}; at least one is needed")
    tasks = [
        (sizes, range(first, min(first + BATCH, studies)))
        for sizes in grid
        for first in range(0, studies, BATCH)
    ]
    found: list[Outcome] = []
    for outcomes in _made(question, tasks, min(processes, len(tasks))):
        found += outcomes
        if progress is not None:
            progress(len(found), len(grid) * studies)
    return sorted(found, key=lambda one: (one.sizes, one.number))


def _made(question: Question, tasks: Sequence[Task], processes: int) -> Iterator[list[Outcome]]:
    packed = pickle.dumps(question)
    if processes <= 1:
        yield from (_simulate(packed, *task) for task in tasks)
        return
    # A fresh interpreter each: a copy of this one could hold locks of its threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _begin)
    try:
        for future in as_completed([pool.submit(_simulate, packed, *task) for task in tasks]):
            yield future.result()
    except BrokenProcessPool as error:
        raise UserError(
            "a process ended in the middle of its work",
            mend="Memory may be short: use fewer --processes.",
            exit_code=1,
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    # Ctrl-C is for the process that was started by hand; it ends these.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _simulate(packed: bytes, sizes: Sizes, numbers: range) -> list[Outcome]:
    """Simulate some studies of a size."""
    study = _study(packed, sizes)
    return [study.simulate(number) for number in numbers]


@lru_cache(maxsize=1)
def _study(packed: bytes, sizes: Sizes) -> Study:
    """Return the study that is being simulated, replaced when the question or the size changes."""
    return Study(pickle.loads(packed), sizes)
