"""Exports a study into a folder: CSV, Parquet, jsPsych's JSON, or a Psych-DS data set (schema 1.5.1).

An export is first written to a separate folder, then moved file by file over an earlier one. The folder thus contains the
earlier export until the new one is complete, and an export that fails or is killed leaves the earlier one unchanged.
``files.txt`` lists the files of an export, so that the next one removes those that it does not write again, and nothing else.
Pictures shown to models are redrawn from the stored text, appearance, and pixel hash.

Tables are CSV files whose names are keywords of the standard; ``dataset_description.json`` describes the whole in JSON-LD, with
every column as a ``PropertyValue``; a sidecar next to each file describes its columns.

Also writes sessions as jsPsych would: a JSON array of trials per session, with its interactions in a second file. Each entry
has jsPsych's own fields (``trial_type``, ``trial_index``, ``plugin_version``, ``time_elapsed``, ``rt`` in whole milliseconds,
``response``, ``stimulus``), and the other columns of the trials table as data properties. A column with jsPsych's name and
another meaning is renamed (:data:`RENAMED`). Screens other than trials (consent, instructions, questions, device) are among the
trials in the order of storage.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from itertools import groupby
from pathlib import Path
from string import Template
from typing import Any

from sqlalchemy import Connection

from experiment.columns import Column, region_columns, trial_columns
from experiment.exporting.dictionary import PLAN, dictionary_of, write_plan
from experiment.exporting.tables import (
    ExportChoice,
    ExportTable,
    call_columns,
    call_rows,
    cell,
    items_of,
    own_columns,
    recorded_columns,
    region_rows,
    tables_of,
    trial_rows,
    verdict_tables,
    write_csv,
    write_parquet,
)
from experiment.integrity.freezing import DOCUMENT, FILE
from experiment.media import remember_files
from experiment.models.judges.similarity import STORED
from experiment.models.pictures import picture_of
from experiment.store import Store, records
from experiment.study import Study
from experiment.study.study import CURVE, ITEMS, training_folder
from experiment.version import installed_version
from stimuli.errors import UserError

CONTEXT = "https://schema.org"
SCHEMA = "Psych-DS 1.5.1"
FOLDERS = ("data", "materials", "documentation", "analysis", "results", "products")
ROW_ID = Column("row_id", "string", None, "number of the row, the only one in its file")


NO_LICENCE = "No licence was given: ask the authors before you use these data."


def file_name(study: str, table: str) -> str:
    """Return the name of a table's file: keywords of the standard, whose values are letters and digits only."""
    return f"study-{_letters(study)}_description-{_letters(table)}_data.csv"


def write_psychds(
    study: Study, tables: Sequence[ExportTable], folder: Path, *, versions: Sequence[Mapping[str, Any]]
) -> dict[str, int]:
    """Write the folder and return the number of rows of each non-empty table."""
    for name in FOLDERS:
        (folder / name).mkdir(exist_ok=True)
    rows: dict[str, int] = {}
    written: list[ExportTable] = []
    for table in tables:
        file = folder / "data" / file_name(study.id, table.name)
        numbered = (
            {**row, ROW_ID.name: f"{table.name}-{place}"} for place, row in enumerate(table.rows(), 1)
        )
        number = write_csv(file, {ROW_ID.name: ROW_ID, **table.columns}, numbered)
        if not number and table.name != "trials":
            file.unlink()
            continue
        rows[table.name] = number
        written.append(table)
        _json(file.with_suffix(".json"), _sidecar(study, table))
    _json(folder / "dataset_description.json", _description(study, written, rows))
    _texts(study, folder, written, rows, versions)
    _materials(study, folder / "materials")
    return rows


def _sidecar(study: Study, table: ExportTable) -> dict[str, Any]:
    return {
        "@context": CONTEXT,
        "@type": "Dataset",
        "name": f"{study.title}: {table.name}",
        "description": f"{table.about[0].upper()}{table.about[1:]}.",
        "variableMeasured": [_variable(name, [column]) for name, column in _columns(table).items()],
    }


def _description(study: Study, tables: Sequence[ExportTable], rows: Mapping[str, int]) -> dict[str, Any]:
    credits: Mapping[str, Any] = study.get("about", default={})
    columns: dict[str, list[Column]] = {}
    for table in tables:
        for name, column in _columns(table).items():
            columns.setdefault(name, []).append(column)
    authors = [{"@type": "Person", "name": str(name)} for name in credits.get("authors", ())]
    team = {"@type": "Organization", "name": f"The authors of the study {study.title!r}"}
    year = datetime.now(UTC).year
    names = ", ".join(author["name"] for author in authors or [team])
    counted = ", ".join(f"{number} {name}" for name, number in rows.items())
    about = credits.get("description") or f"Data of the study {study.title!r} ({study.id})."
    return {
        "@context": CONTEXT,
        "@type": "Dataset",
        "name": study.title,
        "description": f"{about} Rows: {counted}. Text that a spreadsheet would take for a formula has an apostrophe before it.",
        "schemaVersion": SCHEMA,
        "author": authors or [team],
        "license": credits.get("licence") or NO_LICENCE,
        "citation": credits.get("citation") or f"{names} ({year}). {study.title} [Data set].",
        "keywords": list(map(str, credits.get("keywords", ())))
        or ["psycholinguistics", "reading", *study.factors],
        "inLanguage": study.language,
        "identifier": f"{study.id}, design {study.design_hash}",
        "dateModified": datetime.now(UTC).date().isoformat(),
        "variableMeasured": [_variable(name, same_named) for name, same_named in columns.items()],
    }


def _columns(table: ExportTable) -> dict[str, Column]:
    """Return the columns by their headers in the file."""
    every = {ROW_ID.name: ROW_ID, **table.columns}
    return {str(cell(name, is_text=True)): column for name, column in every.items()}


def _variable(name: str, columns: Sequence[Column]) -> dict[str, Any]:
    prose = "; ".join(dict.fromkeys(column.prose for column in columns))
    units = list(dict.fromkeys(column.unit for column in columns if column.unit))
    description = {"@type": "PropertyValue", "name": name, "description": f"{prose} ({columns[0].type})"}
    return description | ({"unitText": units[0]} if len(units) == 1 else {})


def _texts(
    study: Study,
    folder: Path,
    tables: Sequence[ExportTable],
    rows: Mapping[str, int],
    versions: Sequence[Mapping[str, Any]],
) -> None:
    files = [f"- `data/{file_name(study.id, t.name)}`: {t.about} ({rows[t.name]} rows)" for t in tables]
    changes = [
        f"- version {row['version']}, {row['created_at']}: design `{row['design_hash']}`" for row in versions
    ]
    moment = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    values = {
        "title": study.title,
        "study": study.id,
        "files": "\n".join(files),
        "licence": study.get("about", "licence") or NO_LICENCE,
        "changes": "\n".join(changes) or "- no session was held yet",
        "moment": moment,
        "design_hash": study.design_hash,
        "wrods": installed_version(),
    }
    given = json.loads(resources.files(__package__).joinpath("psychds_texts.json").read_text("utf-8"))
    for name, text in given["files"].items():
        (folder / name).write_text(Template(text).substitute(values), "utf-8")
    (folder / "documentation" / "codebook.md").write_text(codebook(study.title, tables), "utf-8")
    for name in (DOCUMENT, FILE):
        if (study.folder / name).exists():
            shutil.copyfile(study.folder / name, folder / "documentation" / name)


def codebook(title: str, tables: Iterable[ExportTable]) -> str:
    """Return the data dictionary of tables as Markdown."""
    parts = [f"# Codebook: {title}\n"]
    for table in tables:
        parts.append(f"## {table.name}\n\n{table.about[0].upper()}{table.about[1:]}.\n")
        parts.append("| column | type | unit | meaning |\n| --- | --- | --- | --- |")
        parts += [
            f"| `{name}` | {column.type} | {column.unit or ''} | {prose} |"
            for name, column in table.columns.items()
            for prose in [column.prose.replace("|", "\\|").replace("\n", " ")]
        ]
        parts.append("")
    return "\n".join(parts)


def _materials(study: Study, folder: Path) -> None:
    """Copy items, settings and texts, without completion codes."""
    shutil.copyfile(study.folder / ITEMS, folder / ITEMS)
    settings = study.source.file.read_text("utf-8")
    code = study.get("participants", "completion_code")
    settings = settings if code is None else settings.replace(str(code), "(left out)")
    (folder / study.source.file.name).write_text(settings, "utf-8")
    copied = [(name, f"texts/{Path(name).name}") for name in study.design["texts"]]
    copied += [(name, name) for declared in study.own_types.values() for name in declared.hashes]
    for name, copy in copied:
        (folder / copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(study.folder / name, folder / copy)


def _letters(text: str) -> str:
    return re.sub(r"[^a-zA-Z0-9]", "", text) or "study"


def _json(file: Path, value: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", "utf-8")


RENAMED = {
    "trial_type": "task",
    "trial_index": "session_trial_index",
    "response": "response_canonical",
    "rt": "rt_exact",
}
INTERACTIONS = ("blur", "focus", "fullscreenenter", "fullscreenexit")
SCREENS = ("consent", "instructions", "answers", "device", "practice", "break", "debrief")
Row = Mapping[str, Any]


def write_jspsych(
    study: Study, connection: Connection, folder: Path, chosen: set[str], *, prompts: bool = False
) -> int:
    """Write two files per session into a folder, and a third for one with calls; return the number of sessions."""
    every = {row["session_id"]: row for row in records.sessions_overview(connection, study.id)}
    columns = call_columns(own_columns("calls"), prompts=prompts)
    more = (*study.factors, *recorded_columns(study))
    number = 0
    for session_id, group in groupby(
        trial_rows(connection, study.id, study.own_types), key=lambda row: row["session_id"]
    ):
        if session_id not in chosen:
            continue
        trials = list(group)
        events = list(records.all_events(connection, session_id=session_id))
        clock = SessionClock(every[session_id]["created_at"], trials, events)
        rows, interactions = _timeline(trials, events, clock, more)
        name = re.sub(r"[^A-Za-z0-9]+", "-", str(trials[0]["reader"])).strip("-") + f"_{session_id[:12]}"
        write_rows(folder / f"{name}.json", rows)
        write_rows(folder / f"{name}_interactions.json", interactions)
        calls = [
            {column: call.get(column) for column in columns}
            for call in call_rows(connection, [every[session_id]], prompts=prompts)
        ]
        if calls:
            write_rows(folder / f"{name}_calls.json", calls)
        number += 1
    return number


class SessionClock:
    """Milliseconds since a session began, from timestamps of the reader's clock.

    The two clocks are aligned by the row with the shortest delay to the server, so that rows sent late keep their time.
    """

    def __init__(self, began: str, trials: Iterable[Row], events: Iterable[Row]) -> None:
        self._began = datetime.fromisoformat(began)
        pairs = [(row["created_at"], row["received_at"]) for row in trials]
        pairs += [(row["at"], row["received_at"]) for row in events if row["at"]]
        late = [
            (datetime.fromisoformat(received) - _stamped(sent, received)).total_seconds()
            for sent, received in pairs
        ]
        self._ahead = min(late, default=0.0)

    def elapsed(self, stamp: str | None, received: str) -> int:
        """Return whole milliseconds from the session's beginning to a timestamp of the reader's clock, or else the server's."""
        seconds = (_stamped(stamp, received) - self._began).total_seconds() + self._ahead
        return max(0, round(seconds * 1000))


def _timeline(
    trials: list[dict[str, Any]], events: list[dict[str, Any]], clock: SessionClock, more: tuple[str, ...]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    entries = [
        (clock.elapsed(row["created_at"], row["received_at"]), 0, row["trial_index"], _trial(row, more))
        for row in trials
    ]
    entries += [
        (clock.elapsed(row["at"], row["received_at"]), 1, place, _screen(row))
        for place, row in enumerate(events)
        if row["kind"] in SCREENS
    ]
    entries.sort(key=lambda entry: entry[:3])
    rows = [
        {**row, "trial_index": place, "time_elapsed": time} for place, (time, _, _, row) in enumerate(entries)
    ]
    interactions = []
    for row in events:
        if row["kind"] in INTERACTIONS:
            time = clock.elapsed(row["at"], row["received_at"])
            during = sum(1 for entry in entries if entry[0] <= time)
            interactions.append({"event": row["kind"], "trial": during, "time": time})
    return rows, interactions


def _trial(row: Row, more: tuple[str, ...]) -> dict[str, Any]:
    plugin, _, version = str(row["plugin_version"] or "").partition(" ")
    shown: Mapping[str, Any] = row["shown"] or {}
    others = {RENAMED.get(name, name): row.get(name) for name in (*trial_columns(), *more)}
    return {
        **others,
        "trial_type": plugin or f"wrods-{row['trial_type']}",
        "plugin_version": version or None,
        "rt": None if row["rt"] is None else round(row["rt"]),
        "response": row["response_raw"],
        "stimulus": "\n\n".join(str(text) for text in shown.values()),
    }


def _screen(row: Row) -> dict[str, Any]:
    detail: Mapping[str, Any] = row["detail"] or {}
    same = {
        "trial_type": f"wrods-{row['kind']}",
        "plugin_version": None,
        "rt": None,
        "session_id": row["session_id"],
    }
    if row["kind"] == "answers":
        given: Mapping[str, Any] = detail.get("answers") or {}
        return {
            **same,
            "screen": detail.get("screen"),
            "response": dict(given),
            "question_order": list(given),
        }
    return {**same, **{name: value for name, value in detail.items() if name not in same}}


def _stamped(stamp: str | None, received: str) -> datetime:
    """Return when a row was made, or received if its timestamp is invalid, as in some earlier versions."""
    try:
        return datetime.fromisoformat(stamp or received)
    except ValueError:
        return datetime.fromisoformat(received)


def write_rows(file: Path, rows: Iterable[Row]) -> int:
    """Write rows as a JSON array, one per line, and return their number."""
    number = 0
    with file.open("w", encoding="utf-8") as opened:
        for row in rows:
            opened.write(("[\n" if number == 0 else ",\n") + json.dumps(row, ensure_ascii=False))
            number += 1
        opened.write("\n]\n" if number else "[]\n")
    return number


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
    """Write a study's tables, without ids of recruitment platforms, into a new or empty folder, or over an earlier export.

    ``form`` is one of :data:`experiment.option_choices.FORMS`.
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
            versions = records.all_versions(connection, study.id)
            rows = write_psychds(study, tables, folder, versions=versions)
            _what_they_mean(study, dictionary, analysis_folder)
            missing = [name for name in ("authors", "licence") if not study.get("about", name)]
            return Exported(folder, rows, tuple(missing))
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
                if study.media:
                    remember_files(study.folder, study.items)
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
                pictures |= {picture["sha256"]: picture for picture in message.get("pictures", ())}
    lost = 0
    for sha256, picture_json in pictures.items():
        try:
            contents = picture_of(picture_json).png
        except UserError:
            lost += 1
            continue
        folder.mkdir(exist_ok=True)
        suffix = Path(picture_json.get("file", ".png")).suffix or ".png"
        (folder / f"{sha256}{suffix}").write_bytes(contents)
    return len(pictures) - lost, lost


UNFINISHED = ".unfinished-export"
"""Name of the temporary folder of an export in progress."""
LISTS = ("files.txt", "documentation/files.txt")
"""Paths of an export's list of files; the second in Psych-DS."""


@contextmanager
def placed(folder: Path, *, replace: bool, listed_in: str = LISTS[0]) -> Iterator[Path]:
    """Yield an empty folder, and move its contents to ``folder`` as the export if the block ends without an error."""
    is_new = not folder.exists()
    is_empty = is_new or (folder.is_dir() and all(entry.name == UNFINISHED for entry in folder.iterdir()))
    if not is_empty and not (replace and folder.is_dir()):
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
    """Write the tables of trials, regions, items and verdicts as Parquet and ``dictionary.json`` into a folder, and return it.

    ``items.parquet`` has the study's current items. If the design differs from that of the newest stored version,
    ``design_changed`` is true in the dictionary; what a session showed is in its stored plan.
    """
    folder.mkdir(parents=True, exist_ok=True)
    factors = {name: Column(name, "string", None, "level of the study's factor") for name in study.factors}
    with store.read() as connection:
        sessions = records.sessions_overview(connection, study.id)
        of_study = trial_columns() | recorded_columns(study)
        rows = trial_rows(connection, study.id, study.own_types)
        write_parquet(folder / "trials.parquet", of_study | factors, rows)
        write_parquet(folder / "regions.parquet", region_columns(), region_rows(connection, study))
        dictionary = dictionary_of(study, connection, sessions)
        for table in verdict_tables(study, connection):
            write_parquet(folder / f"{table.name}.parquet", table.columns, table.rows())
        columns, item_rows = items_of(study, connection)
        write_parquet(folder / "items.parquet", columns, item_rows())
    dictionary["columns"] = {
        name: {"type": column.type, "unit": column.unit, "prose": column.prose}
        for name, column in of_study.items()
    }
    (folder / "dictionary.json").write_text(json.dumps(dictionary, ensure_ascii=False, indent=1), "utf-8")
    return folder
