"""Work spread over processes: every task once, and a remedy where a process ends."""

from __future__ import annotations

import os

import pytest

from analysis.processes import run_tasks
from stimuli.errors import UserError


def product(shared: int, task: int) -> int:
    return shared * task


def end(shared: int, task: int) -> int:
    os._exit(1)


@pytest.mark.parametrize("processes", [1, 2])
def test_every_task_is_done_once(processes: int) -> None:
    assert sorted(run_tasks(product, 3, range(5), processes)) == [0, 3, 6, 9, 12]


def test_a_process_that_ends_in_its_work_names_the_remedy() -> None:
    with pytest.raises(UserError, match="--processes"):
        list(run_tasks(end, 3, range(2), 2))
