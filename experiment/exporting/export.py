"""Exports a study in one of four formats into a folder.

An export is first written to a separate folder, then moved file by file over an earlier one. The folder thus contains the
earlier export until the new one is complete, and an export that fails or is killed leaves the earlier one unchanged.
``files.txt`` lists the files of an export, so that the next one removes those that it does not write again, and nothing else.
Pictures shown to models are redrawn from the stored text, appearance, and pixel hash.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiment.columns import Column, region_columns, trial_columns
from experiment.exporting.dictionary import PLAN, dictionary_of, write_plan
from experiment.exporting.files import write_csv, write_parquet
from experiment.exporting.psychds import (
    codebook,
    credits_of,
    write_jspsych,
    write_psychds,
    write_rows,
)
from experiment.exporting.tables import (
    ExportChoice,
    item_columns,
    item_rows,
    own_columns,
    region_rows,
    tables_of,
    trial_rows,
    verdict_tables,
)
from experiment.models.judges.similarity import STORED
from experiment.models.pictures import picture_of
from experiment.store import Store, queries
from experiment.study import Study
from experiment.study.trained import CURVE, training_folder
from stimuli.errors import UserError


@dataclass(frozen=True)
class Exported:
    """Result of an export: the folder, rows (jsPsych: sessions) by table, and what was filled with a placeholder.

    ``lost_pictures`` counts pictures sent to models that cannot be redrawn here with the same pixels.
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
    choice: ExportChoice | None = None,
    replace: bool = False,
) -> Exported:
    """Write a study's tables into a folder, without ids of recruitment platforms.

    Parameters
    ----------
    folder : Path
        A new or empty folder, or with ``replace`` an earlier export.
    form : str
        One of :data:`experiment.option_choices.FORMS`.
    choice : ExportChoice, optional
        Readers to export; all by default.

    Raises
    ------
    UserError
        The folder is the study's, or is not empty and ``replace`` is false.
    """
    if folder.resolve() == study.folder.resolve():
        raise UserError(f"{folder} is the study itself", mend="Choose a separate folder: --out DIR.")
    listed_in = LISTS[form == "psych-ds"]
    with placed(folder, replace=replace, listed_in=listed_in) as place:
        return dataclasses.replace(_export(study, store, place, form, choice), folder=folder)


def _export(study: Study, store: Store, folder: Path, form: str, choice: ExportChoice | None) -> Exported:
    analysis_folder = folder / "analysis" if form == "psych-ds" else folder
    chosen = choice or ExportChoice()
    lost = 0
    with store.read() as connection:
        tables = tables_of(study, connection, chosen)
        sessions = chosen.of(connection, study.id)
        dictionary = dictionary_of(study, connection, sessions)
        if chosen.kinds is not None and "human" not in chosen.kinds:
            dictionary["participants"] = None
        similarity_file = study.folder / STORED
        if similarity_file.is_file():
            analysis_folder.mkdir(exist_ok=True)
            shutil.copyfile(similarity_file, analysis_folder / STORED)
        if form == "psych-ds":
            given = credits_of(study)
            versions = queries.all_versions(connection, study.id)
            rows = write_psychds(study, tables, folder, given, versions=versions)
            _what_they_mean(study, dictionary, analysis_folder)
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
        _what_they_mean(study, dictionary, analysis_folder)
    (folder / "codebook.md").write_text(codebook(study.title, tables), "utf-8")
    return Exported(folder, rows, lost_pictures=lost)


def _what_they_mean(study: Study, dictionary: Mapping[str, Any], folder: Path) -> None:
    """Write plan and readers, and copy the training losses of trained ones."""
    write_plan(dictionary, folder / PLAN)
    for name in dictionary["tuning"]:
        losses = training_folder(study.folder, name) / CURVE
        if losses.is_file():
            training_folder(folder, name).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(losses, training_folder(folder, name) / CURVE)


def write_pictures(folder: Path, calls: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Write each picture in some calls once, named by its hash; return the numbers of written and of differing pictures."""
    pictures: dict[str, Mapping[str, Any]] = {}
    for call in calls:
        if call.get("request") and '"pictures"' in call["request"]:
            for message in json.loads(call["request"])["messages"]:
                pictures |= {
                    picture_json["sha256"]: picture_json for picture_json in message.get("pictures", ())
                }
    lost = 0
    for sha256, picture_json in pictures.items():
        try:
            picture = picture_of(picture_json)
        except UserError:
            lost += 1
            continue
        folder.mkdir(exist_ok=True)
        (folder / f"{sha256}.png").write_bytes(picture.png)
    return len(pictures) - lost, lost


UNFINISHED = ".unfinished-export"
"""Name of the temporary folder of an export in progress."""
LISTS = ("files.txt", "documentation/files.txt")
"""Paths of an export's list of files; the second in Psych-DS."""


@contextmanager
def placed(folder: Path, *, replace: bool, listed_in: str = LISTS[0]) -> Iterator[Path]:
    """Yield an empty folder, and move its contents to ``folder`` as the export if the block ends without an error."""
    is_new = not folder.exists()
    if not is_new and (not folder.is_dir() or (_holds_something(folder) and not replace)):
        raise UserError(
            f"{folder} is not empty", mend="Give a new folder, or write over an export: --replace"
        )
    unfinished = folder / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        _move(unfinished, folder, listed_in)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        if is_new:
            with suppress(OSError):  # it contains the moved files
                folder.rmdir()


def _holds_something(folder: Path) -> bool:
    return any(entry.name != UNFINISHED for entry in folder.iterdir())


def _move(unfinished: Path, folder: Path, listed_in: str) -> None:
    paths = [path.relative_to(unfinished) for path in sorted(unfinished.rglob("*"))]
    folders = [path for path in paths if (unfinished / path).is_dir()]
    files = {path.as_posix() for path in paths if path not in folders} | {listed_in}
    for path in folders:
        (folder / path).mkdir(exist_ok=True)
    earlier = _listed(folder)
    # an interruption from here on leaves files of both exports; all of them are in the list, for the next one
    _list(unfinished, folder / listed_in, files | earlier)
    for name in files - {listed_in}:
        # a name is replaced whatever the rights of its file
        (unfinished / name).replace(folder / name)
    for name in earlier - files:
        (folder / name).unlink(missing_ok=True)
    for path in {parent for name in earlier - files for parent in Path(name).parents} - {Path(), *folders}:
        with suppress(OSError):  # it contains something else
            os.removedirs(folder / path)
    _list(unfinished, folder / listed_in, files)


def _list(unfinished: Path, file: Path, names: set[str]) -> None:
    written = unfinished / "list"
    written.write_text("".join(f"{name}\n" for name in sorted(names)), "utf-8")
    written.replace(file)


def _listed(folder: Path) -> set[str]:
    """Return the files that the earlier export in a folder lists, none of them outside the folder."""
    listed: set[str] = set()
    for file in (folder / name for name in LISTS):
        if file.is_file():
            names = file.read_text("utf-8").splitlines()
            listed |= {
                name for name in names if name and (folder / name).resolve().is_relative_to(folder.resolve())
            }
    return listed


def hand_over(study: Study, store: Store, folder: Path) -> Path:
    """Write ``trials.parquet``, ``regions.parquet``, ``items.parquet`` and ``dictionary.json`` into a folder.

    If Mind Scramble scored the study's task by rule, ``published_scoring.parquet`` has the score of each reply under that rule;
    for H-TEST, ``published_parsing.parquet`` has both parsers' results for each reply. ``answer_similarity.parquet`` has the
    cosines of free answers after ``wrods score --similarity``.

    Parameters
    ----------
    folder : Path
        Created if missing; files in it are replaced.

    Notes
    -----
    ``items.parquet`` has the study's current items. If the design differs from that of the newest stored version,
    ``design_changed`` is true in the dictionary; what a session showed is in its stored plan.

    Returns
    -------
    Path
        The folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    factors = {name: Column(name, "string", None, "level of the study's factor") for name in study.factors}
    with store.read() as connection:
        sessions = queries.sessions_overview(connection, study.id)
        write_parquet(folder / "trials.parquet", trial_columns() | factors, trial_rows(connection, study.id))
        write_parquet(folder / "regions.parquet", region_columns(), region_rows(connection, study))
        dictionary = dictionary_of(study, connection, sessions)
        for table in verdict_tables(study, connection):
            write_parquet(folder / f"{table.name}.parquet", table.columns, table.rows())
    columns = item_columns(study.items, tuple(study.factors), own_columns("items"))
    write_parquet(folder / "items.parquet", columns, item_rows(study.items))
    dictionary["columns"] = {
        name: {"type": column.type, "unit": column.unit, "prose": column.prose}
        for name, column in trial_columns().items()
    }
    (folder / "dictionary.json").write_text(json.dumps(dictionary, ensure_ascii=False, indent=1), "utf-8")
    return folder
