"""Work that is spread over processes, each a fresh interpreter with one thread for linear algebra."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from stimuli.errors import UserError

Shared = TypeVar("Shared")
Task = TypeVar("Task")
Result = TypeVar("Result")


def run_tasks(
    function: Callable[[Shared, Task], Result], shared: Shared, tasks: Sequence[Task], processes: int
) -> Iterator[Result]:
    """Yield ``function(shared, task)`` of every task as it is done; ``shared`` is sent to each process once."""
    processes = min(processes, len(tasks))
    if processes <= 1:
        yield from (function(shared, task) for task in tasks)
        return
    try:
        packed = pickle.dumps(shared)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UserError(
            f"a function cannot be sent to other processes: {error}",
            mend="Define it as a function of a module, or use one process.",
        ) from error
    # A copy of this interpreter could hold locks of its threads.
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin, (packed,))
    try:
        for future in as_completed([pool.submit(_run, function, task) for task in tasks]):
            yield future.result()
    except BrokenProcessPool as error:
        raise UserError(
            "a process ended in the middle of its work",
            mend="Memory may be short: use fewer --processes. "
            'A script needs `if __name__ == "__main__":` around its work.',
            exit_code=1,
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_shared: list[Any] = []
"""In a worker process: the object that its tasks share."""


def _begin(packed: bytes) -> None:
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    # Ctrl-C is for the process that was started by hand; it ends these.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _shared.append(pickle.loads(packed))


def _run(function: Callable[[Any, Any], Any], task: Any) -> Any:
    return function(_shared[0], task)
