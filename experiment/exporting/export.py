"""Exports a study in one of four forms into a folder."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiment.exporting.dictionary import PLAN, dictionary_of, write_plan
from experiment.exporting.files import write_csv, write_parquet
from experiment.exporting.jspsych_files import write_jspsych, write_rows
from experiment.exporting.pictures import write_pictures
from experiment.exporting.placing import LISTS, placed
from experiment.exporting.psychds import Credits, codebook, credits_of, write_psychds
from experiment.exporting.tables import Choice, tables_of
from experiment.models.judges.shown_similarity import STORED
from experiment.store import Store, queries
from experiment.study import Study
from experiment.study.trained import training_folder
from experiment.tuning.curve import FILE as LOSS
from stimuli.errors import UserError


@dataclass(frozen=True)
class Exported:
    """What an export wrote: the folder, rows (jsPsych: sessions) by table, and what could only be filled with a stand-in.

    ``lost_pictures`` counts those sent to models that cannot be drawn here with the same pixels.
    """

    folder: Path
    rows: dict[str, int]
    missing: tuple[str, ...] = ()
    lost_pictures: int = 0


def export_study(
    study: Study,
    store: Store,
    folder: Path,
    form: str,
    *,
    choice: Choice | None = None,
    credits: Credits | None = None,
    replace: bool = False,
) -> Exported:
    """Write a study's tables into a folder; ids of recruitment platforms are in none of them.

    Parameters
    ----------
    study : Study
        With built items.
    store : Store
        Its store, which may be in use.
    folder : Path
        New or empty.
    form : {"csv", "parquet", "jspsych", "psych-ds"}
    choice : Choice, optional
        Whose data; everybody's by default.
    credits : Credits, optional
        For Psych-DS, over what the study says.
    replace : bool
        The folder may hold an earlier export, which this one takes the place of once it is whole.

    Raises
    ------
    UserError
        The folder holds something, or is the study's own.
    """
    if folder.resolve() == study.folder.resolve():
        raise UserError(f"{folder} is the study itself", mend="Give a folder of its own: --out DIR.")
    listed_in = LISTS[form == "psych-ds"]
    with placed(folder, replace=replace, listed_in=listed_in) as place:
        return dataclasses.replace(_export(study, store, place, form, choice, credits), folder=folder)


def _export(
    study: Study, store: Store, folder: Path, form: str, choice: Choice | None, credits: Credits | None
) -> Exported:
    beside = folder / "analysis" if form == "psych-ds" else folder
    chosen = choice or Choice()
    lost = 0
    with store.read() as connection:
        tables = tables_of(study, connection, chosen)
        sessions = chosen.of(connection, study.id)
        dictionary = dictionary_of(study, connection, sessions)
        if chosen.kinds is not None and "human" not in chosen.kinds:
            dictionary["participants"] = None
        _similarities(study, beside)
        if form == "psych-ds":
            given = credits_of(study, credits or Credits())
            versions = queries.all_versions(connection, study.id)
            rows = write_psychds(study, tables, folder, given, versions=versions)
            _what_they_mean(study, dictionary, beside)
            return Exported(folder, rows, tuple(given.missing()))
        if form == "jspsych":
            ids = {row["session_id"] for row in sessions}
            rows = {"sessions": write_jspsych(study, connection, folder, ids, prompts=chosen.prompts)}
            for table in tables:
                if table.is_of_verdicts:
                    rows[table.name] = write_rows(folder / f"{table.name}.json", table.rows())
        else:
            write = write_csv if form == "csv" else write_parquet
            rows = {
                table.name: write(folder / f"{table.name}.{form}", table.columns, table.rows())
                for table in tables
            }
            if chosen.prompts:
                calls = next(table for table in tables if table.name == "calls")
                written, lost = write_pictures(folder / "pictures", calls.rows())
                rows |= {"pictures": written} if written else {}
    if form != "jspsych":
        _what_they_mean(study, dictionary, beside)
    (folder / "codebook.md").write_text(codebook(study.title, tables), "utf-8")
    return Exported(folder, rows, lost_pictures=lost)


def _what_they_mean(study: Study, dictionary: Mapping[str, Any], folder: Path) -> None:
    """Write plan and readers, and copy how the losses of the trainings among them fell."""
    write_plan(dictionary, folder / PLAN)
    for name in dictionary["tuning"]:
        losses = training_folder(study.folder, name) / LOSS
        if losses.is_file():
            training_folder(folder, name).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(losses, training_folder(folder, name) / LOSS)


def _similarities(study: Study, folder: Path) -> None:
    """Copy what ``wrods score --similarity`` kept of the texts shown."""
    kept = study.folder / STORED
    if kept.is_file():
        folder.mkdir(exist_ok=True)
        shutil.copyfile(kept, folder / STORED)
