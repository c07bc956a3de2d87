"""Loads a study for a command: what the study says of itself, of papers and of models is checked."""

from __future__ import annotations

from pathlib import Path

from experiment.checking.papers import check_papers
from experiment.checking.settings import check_models
from experiment.study import Study, read_study
from experiment.tuning import check_trainings


def load_study(path: Path | str) -> Study:
    """Read and check a study with its models: a folder, or its ``study.yaml``.

    Raises
    ------
    UserError
        The folder or file is missing, or something in it breaks the format or has no meaning; says line, value, rule and
        mend.
    """
    study = read_study(path)
    check_papers(study)
    check_trainings(study)
    check_models(study)
    return study
