"""The steps of the demonstration: its study, a server, simulated readers, one more reader.

Everything is an ordinary study on an ordinary server; only the readers are simulated, and marked accordingly.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from experiment import simulated
from experiment.exporting.dictionary import TRUTH_FILE
from experiment.people.app import Links, LocalServer
from experiment.simulated import read_truth
from experiment.store import Store, records
from experiment.study import Study

__all__ = ["Links", "LocalServer", "fill", "finished_pilots", "make_study"]


def make_study(folder: Path) -> None:
    """Copy the demonstration's study and model into a new folder."""
    package = resources.files(__package__)
    with (
        resources.as_file(package.joinpath("study")) as study,
        resources.as_file(package.joinpath("model")) as model,
    ):
        shutil.copytree(study, folder, dirs_exist_ok=True)
        shutil.copytree(model, folder / "model")


def fill(study: Study, links: Links, *, readers: int, pause: float, told: Callable[[int], None]) -> int:
    """Send the demonstration's readers through the participant interface; return the number of trials acknowledged."""
    truth = read_truth(study.folder / TRUTH_FILE, study)
    entrance = simulated.StudyEntrance(links.api, links.simulated)
    return simulated.fill(study, truth, entrance, range(1, readers + 1), pause=pause, told=told)


def finished_pilots(study: Study, store: Store) -> int:
    """Return the number of visitors who completed the study."""
    with store.read() as connection:
        sessions = records.sessions_overview(connection, study.id)
    return sum(1 for s in sessions if s["is_pilot"] and s["state"] == "finished")
