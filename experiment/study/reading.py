"""Reads a study from its folder and refuses one that breaks the format or means nothing."""

from __future__ import annotations

from pathlib import Path

from experiment.study.faults import Faults
from experiment.study.format import check_format
from experiment.study.meaning import check_meaning
from experiment.study.study import FILE, Study
from experiment.study.yaml_source import read_yaml
from stimuli.errors import UserError


def read_study(path: Path | str, faults: Faults | None = None) -> Study:
    """Read a study and check all that it says of itself; what it says of models is checked by :mod:`experiment.checking`.

    Parameters
    ----------
    path : Path or str
        A folder, or its ``study.yaml``.
    faults : Faults, optional
        Where given, what is wrong is kept there and not raised: the study can then be read as far as it is sound.

    Raises
    ------
    UserError
        The folder or file is missing or holds no settings; without ``faults`` also where something breaks the format or has
        no meaning: names every fault with line, value, rule and mend.
    """
    given = Path(path)
    folder = given.parent if given.name == FILE else given
    if not folder.is_dir() and Path(FILE).is_file():
        raise UserError(
            f"there is no study folder {str(given)!r}", mend="You are in a study's folder: name it as `.`"
        )
    if not folder.is_dir():
        raise UserError(
            f"there is no study folder {str(given)!r}", mend="Make one with `wrods new DIR --from your-own`."
        )
    source = read_yaml(folder / FILE)
    found = Faults() if faults is None else faults
    check_format(source, found)
    study = Study(folder, source)
    check_meaning(study, found)
    if faults is None:
        found.report()
    return study
