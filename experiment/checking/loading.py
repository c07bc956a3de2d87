"""Loads a study for a command: what the study says of itself, of papers and of models is checked."""

from __future__ import annotations

from pathlib import Path

from experiment.checking.papers import check_papers
from experiment.checking.settings import check_models
from experiment.study import Study, read_study
from experiment.study.faults import Faults
from experiment.tuning import check_trainings


def load_study(path: Path | str, faults: Faults | None = None) -> Study:
    """Read and check a study with its models: a folder, or its ``study.yaml``.

    Parameters
    ----------
    path : Path or str
    faults : Faults, optional
        As in :func:`experiment.study.read_study`.

    Raises
    ------
    UserError
        The folder or file is missing; without ``faults`` also where something breaks the format or has no meaning: names
        every fault with line, value, rule and mend.
    """
    found = Faults() if faults is None else faults
    study = read_study(path, found)
    found.check(check_papers, study, reads=[("published",), ("materials",), ("procedure",)])
    found.check(check_trainings, study, reads=[("tuning",), ("models",), ("materials",), ("published",)])
    found.check(check_models, study, found, reads=[("models",), ("tuning",)])
    if faults is None:
        found.report()
    return study
