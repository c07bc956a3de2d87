"""Exports a study in one of four forms into a folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from experiment.exporting.files import write_csv, write_parquet
from experiment.exporting.jspsych_files import write_jspsych
from experiment.exporting.pictures import write_pictures
from experiment.exporting.psychds import PLAN, Credits, codebook, credits_of, write_plan, write_psychds
from experiment.exporting.tables import Choice, tables_of
from experiment.models.judges.shown_similarity import STORED
from experiment.store import Store, queries
from experiment.study import Study
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
        The folder may hold an earlier export, whose files are written over.

    Raises
    ------
    UserError
        The folder holds something.
    """
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not replace)):
        raise UserError(
            f"{folder} is not empty", mend="Give a new folder, or write over an export: --replace"
        )
    folder.mkdir(parents=True, exist_ok=True)
    chosen = choice or Choice()
    lost = 0
    with store.read() as connection:
        tables = tables_of(study, connection, chosen)
        if form == "psych-ds":
            _similarities(study, folder / "analysis")
            given = credits_of(study, credits or Credits())
            versions = queries.all_versions(connection, study.id)
            rows = write_psychds(study, tables, folder, given, versions=versions)
            return Exported(folder, rows, tuple(given.missing()))
        if form == "jspsych":
            ids = {
                row["session_id"]
                for row in queries.sessions_overview(connection, study.id)
                if chosen.takes(row)
            }
            rows = {"sessions": write_jspsych(study, connection, folder, ids, prompts=chosen.prompts)}
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
        write_plan(study, folder / PLAN)
    (folder / "codebook.md").write_text(codebook(study.title, tables), "utf-8")
    _similarities(study, folder)
    return Exported(folder, rows, lost_pictures=lost)


def _similarities(study: Study, folder: Path) -> None:
    """Copy what ``wrods score --similarity`` kept of the texts shown; an earlier export's goes where there is none."""
    kept = study.folder / STORED
    (folder / STORED).unlink(missing_ok=True)
    if kept.is_file():
        folder.mkdir(exist_ok=True)
        shutil.copyfile(kept, folder / STORED)
