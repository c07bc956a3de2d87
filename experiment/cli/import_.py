"""``wrods import``: imports responses collected elsewhere: participants' copies, tables of responses, released outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.terminal import PATH, option
from stimuli.errors import UserError
from stimuli.papers import Paper, papers

if TYPE_CHECKING:
    from experiment.cli.study_store import OpenedStudy
    from experiment.models.imports.writing import Imported
    from experiment.study import Study

_EXAMPLE = """\b
Examples:
  wrods import my-study positions-de-1a2b3c4d-answers.json
  wrods import my-study mails/*.json
  wrods import lexical trials.csv --mapping import.yaml
  wrods import bench --from scrambled_bench downloads/scrambled_bench
"""
RELEASES = {paper.name.replace("-", "_"): paper for paper in papers().values() if paper.released}
SHOWN = 20
"""Number of different unreadable answers to show."""
LARGE = 5000
"""Smallest number of trials for which the command announces that storing takes a while."""


TABLES = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx")


@click.command(name="import", epilog=_EXAMPLE)
@click.argument("study", metavar="STUDY", type=PATH)
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@option(
    "--mapping YAML",
    "The files are tables of responses (CSV, TSV or JSONL), and this one says what their columns are.",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@option(
    "--from",
    "The folder holds a paper's released outputs; a study is made where there is none.",
    name="release",
    type=click.Choice(list(RELEASES)),
)
@option("--new-version", "Store a design that changed since data were collected as a new version.")
@option("--json", "Print the counts as JSON.", name="as_json")
def import_(
    study: Path,
    files: tuple[Path, ...],
    mapping: Path | None,
    release: str | None,
    new_version: bool,
    as_json: bool,
) -> None:
    """Import responses collected elsewhere.

    Without options: copies of answers that participants sent. A participant whose last page could not reach the server gets
    a code that begins with M- and a copy of the answers to send.

    With --mapping: any table of responses, of models or participants, or of fixations (EyeLink, Gazepoint). Each reader
    becomes a session with the table's list and row order; if the study has no items yet, they are made from the table. Models
    take the same strings in the same order with `models: yoke: human`.

    All rows of all files are imported, or none if a row is not valid. Stored responses do not change, so the same file can be
    imported again.
    """
    if mapping is not None or release is not None:
        if mapping is not None and release is not None:
            raise click.UsageError("Give either --mapping or --from.")
        _tables(study, files, mapping or RELEASES[str(release)], new_version=new_version, as_json=as_json)
        return
    from experiment.cli.study_store import opened_study

    for file in files:
        if file.suffix.lower() in TABLES:
            raise UserError(
                f"{file} is a table, and a participant's copy of answers is JSON",
                mend="Say which of its columns is what: --mapping MAP.yaml, or --from for what a paper released.",
            )
    with opened_study(study) as opened:
        for file in files:
            if file.is_dir():
                raise UserError(
                    f"{file} is a folder", mend="Name the copies themselves, such as mails/*.json."
                )
            _copy(opened, file, as_json=as_json)


def _copy(opened: OpenedStudy, file: Path, *, as_json: bool) -> None:
    """Import one participant's copy of answers; clean files if the copy requests their deletion."""
    from experiment.cli.study_store import note_action
    from experiment.configuration import read_config
    from experiment.integrity.withdrawal import clean_up, remember
    from experiment.people.recruitment.codes import recruitment_for
    from experiment.people.response_intake import read_copy, take_copy

    recruitment = recruitment_for(opened.study, read_config())
    taken = take_copy(opened.store, opened.study.id, read_copy(file.read_bytes()), recruitment=recruitment)
    counts = {"new": taken.new, "same": taken.same, "refused": taken.refused, "trials": taken.trials}
    session_id = None if taken.departed else taken.session_id
    note_action(opened.store, opened.study.id, "took a copy of answers", counts, session_id=session_id)
    if taken.departed is not None:
        remember(opened.study.folder, taken.departed.sessions)
        for line in clean_up(opened.store, opened.study.id, opened.study.folder):
            click.echo(line, err=True)
    if as_json:
        summary = {"file": str(file), "reader": taken.reader, "state": taken.state, **counts}
        click.echo(json.dumps(summary | {"reasons": list(taken.reasons)}, ensure_ascii=False))
        return
    click.echo(
        f"{file.name}: {taken.reader} ({taken.state}): {taken.new} new ({taken.trials} of them trials), "
        f"{taken.same} were here already, {taken.refused} refused."
    )
    for reason in taken.reasons:
        click.echo(f"  {reason}")


def _tables(
    study: Path, files: tuple[Path, ...], source: Path | Paper, *, new_version: bool, as_json: bool
) -> None:
    """Import tables of responses, or a paper's released outputs: all files, or nothing."""
    from experiment.cli.study_store import own_store, store_of, this_user
    from experiment.models.imports.responses import ResponseFile, read_mapping, read_responses
    from experiment.models.imports.writing import write_import

    paper = source if isinstance(source, Paper) else None
    columns = read_mapping(source) if isinstance(source, Path) else None
    if paper is not None and len(files) > 1:
        raise UserError("--from takes one folder", mend="Import one release at a time.")
    with _study(study, paper) as loaded:
        folder_given = next((file for file in files if file.is_dir()), None)
        if columns is not None and folder_given is not None:
            raise UserError(f"{folder_given} is a folder", mend="Name the table itself.")
        # everything is read before a store is made or anything is written
        with store_of(loaded) or nullcontext() as before:
            if columns is not None:
                given = read_responses(loaded, before, [ResponseFile(file) for file in files], columns)
            elif paper is not None:
                given = paper.part(paper.released)(loaded, before, files[0])
        trials = sum(len(session.responses) for source in given.sources for session in source.sessions)
        if trials >= LARGE:
            click.echo(
                f"Storing {trials:,} trials; until that is done nothing else writes to the store.", err=True
            )
        with own_store(loaded) as store:
            imported = write_import(given, store, actor=this_user(), new_version=new_version)
    if given.items.content is not None:
        click.echo(f"{len(given.items.study.items)} items made from {files[0].name}", err=True)
    for result in imported:
        _print(result, as_json=as_json)


@contextmanager
def _study(folder: Path, paper: Paper | None) -> Iterator[Study]:
    """Load a study; one created for a release is removed if its import fails."""
    from experiment.checking import load_study

    file = folder / "study.yaml"
    if paper is None or file.exists():
        yield load_study(folder)
        return
    is_new_folder = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text((paper.folder / "released.yaml").read_text("utf-8"), "utf-8")
    try:
        yield load_study(folder)
    except BaseException:
        file.unlink(missing_ok=True)
        if is_new_folder and not any(folder.iterdir()):
            folder.rmdir()
        raise


def _print(imported: Imported, *, as_json: bool) -> None:
    if as_json:
        summary: dict[str, Any] = asdict(imported)
        click.echo(json.dumps(summary, ensure_ascii=False))
        return
    from stimuli.audit.findings import counted

    click.echo(
        f"{imported.source}: {counted(imported.sessions, 'session')} and {counted(imported.trials, 'trial')} taken, "
        f"{counted(imported.same, 'trial')} {'was' if imported.same == 1 else 'were'} here already"
    )
    if set(imported.statuses) - {"valid"}:
        click.echo(
            "  " + ", ".join(f"{number} {status}" for status, number in sorted(imported.statuses.items()))
        )
    if imported.unread:
        _print_unread(imported)
    if imported.repeated:
        subject = "trials show their readers" if imported.repeated > 1 else "trial shows its reader"
        click.echo(
            f"  {imported.repeated} {subject} an item again in the same condition, first {imported.first_repeated}"
        )
    if imported.lacking:
        click.echo(f"  further answers that are not there, which count as missing: {imported.lacking}")
    if imported.predictions:
        click.echo(f"  {imported.agreeing} of {imported.predictions} stored predictions are read alike")
    for line in imported.differing:
        click.echo(f"  {line}")
    for line in imported.remarks:
        click.secho(f"  Note: {line}", fg="yellow", err=True)


def _print_unread(imported: Imported) -> None:
    total = sum(unread.count for unread in imported.unread.values())
    labels = next((unread.labels for unread in imported.unread.values() if unread.labels), ())
    none_of = f" (none of the labels {', '.join(labels)})" if labels else ""
    click.echo(
        f"  {total} {'answer' if total == 1 else 'answers'} of people could not be read{none_of}; such a trial is kept "
        "and counts as not right:"
    )
    for answer, unread in list(imported.unread.items())[:SHOWN]:
        click.echo(f"    {answer!r}: {unread.count}, first in {unread.where}")
    if len(imported.unread) > SHOWN:
        click.echo(f"    and {len(imported.unread) - SHOWN} more")
    if labels:
        click.echo(
            "  If they mean labels, say which under `response: {column: …, map: {…}}` and import into a new study folder."
        )
