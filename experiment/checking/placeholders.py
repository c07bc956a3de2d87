"""Texts that are not complete: a study with placeholders is served to pilots only, and is not frozen."""

from __future__ import annotations

from experiment.languages.own import OWN_FILE
from experiment.study import Study
from experiment.study.texts import placeholders_in
from stimuli.errors import UserError


def placeholders(study: Study) -> list[str]:
    """Return each placeholder in the texts that participants read, such as ``texts/consent.md, line 9: [FILL IN: date]``."""
    found = {name: text.placeholders for name, text in study.texts.items()}
    for name in ("study.yaml", OWN_FILE):
        file = study.folder / name
        if file.is_file():
            lines = file.read_text("utf-8-sig").splitlines()
            # a remark reaches nobody
            kept = ["" if line.lstrip().startswith("#") else line for line in lines]
            found[name] = tuple(placeholders_in("\n".join(kept)))
    return [f"{name}, line {one.line}: {one.words}" for name, every in found.items() for one in every]


def refuse_placeholders(study: Study, mend: str) -> None:
    """Check that a study's texts are complete.

    Parameters
    ----------
    study : Study
    mend : str
        What to do about a placeholder.

    Raises
    ------
    UserError
        Names every placeholder with its file and line.
    """
    found = placeholders(study)
    if found:
        listed = "\n  ".join(found)
        number = "1 placeholder" if len(found) == 1 else f"{len(found)} placeholders"
        raise UserError(
            f"the texts of {study.id} have {number}; participants must get complete texts:\n  {listed}",
            mend=mend,
        )
