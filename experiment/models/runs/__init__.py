"""Runs of a study's model sessions: everything planned but not stored, each trial saved as it is answered.

A reply becomes one transaction: call, trial, score and regions together, and the session's end with its last trial. Killing the
process loses only requests that were not answered or were answered in the last quarter of a second; the same command then sends
only those. A reply without an answer (a transmission error) is stored as a call, and its trial is sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import func, select

from experiment.integrity.build_provenance import note_design, require_current_items
from experiment.integrity.freezing import refuse_if_changed
from experiment.models.runs.environment import git_state
from experiment.models.runs.limits import CommandLimits
from experiment.models.runs.orchestrator import (
    CommandRun,
    RunOptions,
    budget_of,
    identity_of,
    sessions_of,
    settings_of,
)
from experiment.models.runs.status import RunOutcome, RunStatus, runs_of
from experiment.store import Store
from experiment.store.tables import versions
from experiment.study import Study

__all__ = [
    "CommandLimits",
    "CommandRun",
    "Progress",
    "RunOptions",
    "RunOutcome",
    "RunStatus",
    "budget_of",
    "git_state",
    "identity_of",
    "latest_version",
    "run_model",
    "runs_of",
    "sessions_of",
    "settings_of",
    "version_of",
]

Progress = Callable[[int, int, Mapping[str, int]], None]
"""Called with a run's progress: done, total, and the number of replies by status."""


def version_of(study: Study, store: Store, *, new_version: bool = False) -> int:
    """Record a study's design in the store and return its version."""
    require_current_items(study, store)
    refuse_if_changed(study)
    return store.write(lambda connection: note_design(connection, study, new_version=new_version)).result()


def latest_version(study: Study, store: Store | None) -> int:
    """Return a study's newest version in the store without recording anything; 1 if there is none."""
    if store is None:
        return 1
    query = select(func.max(versions.c.version)).where(versions.c.study == study.id)
    with store.read() as connection:
        return int(connection.scalar(query) or 1)


def run_model(
    study: Study,
    reader: str,
    settings: Mapping[str, Any],
    store: Store,
    *,
    version: int,
    progress: Progress | None = None,
    **given: Any,
) -> RunOutcome:
    """Prompt one model for everything that is planned and not stored.

    Parameters
    ----------
    reader : str
        The model's name in the study.
    settings : mapping
        The model's settings: ``use`` and others.
    version : int
        The study's version in the store (:func:`version_of`).
    progress : callable, optional
        Called with trials done and planned, and the number of replies by status.
    **given
        Other fields of :class:`~experiment.models.runs.orchestrator.RunOptions`.

    Returns
    -------
    RunOutcome
    """
    outcome: list[RunOutcome] = []

    def draw(figures: Any) -> None:
        for figure in figures:
            if progress is not None:
                progress(figure.done, figure.planned, outcome[0].statuses if outcome else {})

    run = CommandRun(study, store, RunOptions(version=version, draw=draw, **given))
    outcome += run.run({reader: settings})
    for fault in run.faults.values():
        raise fault
    if progress is not None:
        progress(outcome[0].planned - outcome[0].left, outcome[0].planned, outcome[0].statuses)
    return outcome[0]
