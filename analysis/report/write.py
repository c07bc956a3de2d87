"""Writes a report folder: page, Word file, LaTeX, figures, tables, trials, and an R script that refits every model."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from types import MappingProxyType

import jinja2
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from analysis import apa
from analysis.names import as_given
from analysis.report.content import gather
from analysis.report.document import Document, document_of
from analysis.report.inline import head_markup, note_markup
from analysis.report.latex_files import write_latex
from analysis.report.numbering import ReportContent
from analysis.report.provenance import (
    ITEMS,
    REGIONS,
    figures_in_words,
    files_named,
    numbers_of,
    sources_in_words,
)
from analysis.report.refitting import write_models
from analysis.tables import Tables, write_trials_csv
from stimuli.errors import UserError


def write_report(
    tables: Tables,
    out_folder: str | Path,
    when: datetime | None = None,
    told: Callable[[str], None] = lambda _: None,
    wanted: Collection[str] = (),
) -> Path:
    """Write a folder named by date and time, with the optional chapters ``wanted``; tell each slow step; return the page's path."""
    when = when or datetime.now().astimezone()
    try:
        return write_files(gather(tables, told, wanted), out_folder, when, told)
    except UserError as error:
        mend = error.mend and as_given(error.mend)
        raise UserError(as_given(error.message), mend=mend, exit_code=error.exit_code) from error


def dated_folder(out: str | PathLike[str], when: datetime) -> Path:
    """Return the folder of a report that is made at a time."""
    return Path(out) / when.strftime("%Y-%m-%d_%H-%M-%S")


@contextmanager
def claimed_folder(out: str | PathLike[str], when: datetime) -> Iterator[datetime]:
    """Make the folder of a report and yield its time: seconds later if another report has the folder. Empty ones are removed."""
    is_new = not Path(out).exists()
    while True:
        try:
            dated_folder(out, when).mkdir(parents=True)
            break
        except FileExistsError:
            when += timedelta(seconds=1)
        except OSError:  # whoever writes the files says why
            break
    try:
        yield when
    finally:
        with suppress(OSError):
            dated_folder(out, when).rmdir()
            if is_new:
                Path(out).rmdir()


def write_files(
    content: ReportContent,
    out_folder: str | Path,
    when: datetime,
    told: Callable[[str], None] = lambda _: None,
) -> Path:
    """Write the dated folder of a report that was gathered already; see :func:`write_report`."""
    from analysis.report.docx_file import write_docx

    tables = content.tables
    folder = dated_folder(out_folder, when)
    told("files")
    document = document_of(content, when)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for figure in content.all_figures():
            figure.drawing.save(folder / "figures")
        for numbered in content.all_tables():
            numbered.table.save(folder / "tables")
        write_trials_csv(tables, folder / "trials.csv")
        models = write_models(content, folder)
        _write_rows_named(tables, folder, files_named(content))
        sources = sources_in_words(content, models)
        numbers = numbers_of(document, content, models)
        (folder / "numbers.json").write_text(
            as_given(json.dumps(numbers, ensure_ascii=False, indent=1)), "utf-8"
        )
        write_docx(document, folder, sources, when)
        write_latex(document, folder, sources, [table for table in content.all_tables() if table.refused])
        page = folder / "report.html"
        own_copy = tables.folder.resolve().parent == folder.resolve()
        data = tables.folder.name if own_copy else None
        page.write_text(
            render_document(document, content, sources, data, figures_in_words(content, models)), "utf-8"
        )
    except OSError as error:
        mend = "Choose another folder with --out."
        raise UserError(f"{folder} cannot be written: {error}", mend=mend) from error
    return page


def _write_rows_named(tables: Tables, folder: Path, names: Collection[str]) -> None:
    """Write ``regions.csv.gz`` and ``items.csv``, each where it is named; regions are read and written batch by batch."""
    options = csv.WriteOptions(quoting_style="needed")
    if ITEMS in names and len(tables.items):
        csv.write_csv(_as_written(tables.items), folder / ITEMS, options)
    if REGIONS not in names:
        return
    writer: csv.CSVWriter | None = None
    with pa.CompressedOutputStream(pa.OSFile(str(folder / REGIONS), "wb"), "gzip") as file:
        for batch in tables.region_batches():
            part = _as_written(batch)
            if writer is None:
                schema = part.schema
                writer = csv.CSVWriter(file, schema, write_options=options)
            writer.write_table(part.cast(schema))
        if writer is not None:
            writer.close()


def _as_written(rows: pd.DataFrame) -> pa.Table:
    """Turn rows into a table with truth values as TRUE and FALSE, as in trials.csv."""
    columns = {as_given(str(name)): _cells(rows[name]) for name in rows}
    return pa.table(columns)


def _cells(cells: pd.Series) -> pa.Array:
    if cells.dtype == bool or (
        cells.dtype == object and cells.dropna().map(lambda cell: isinstance(cell, bool)).all()
    ):
        return pa.array(cells.map({True: "TRUE", False: "FALSE"}), pa.string(), from_pandas=True)
    if pd.api.types.is_numeric_dtype(cells):
        return pa.array(pd.to_numeric(cells).astype(float), pa.float64(), from_pandas=True)
    return pa.array([None if pd.isna(cell) else str(cell) for cell in cells], pa.string())


FILES = (
    ("report.html", "the page"),
    ("report.docx", "Answer and manuscript to edit in Word"),
    ("supplement.docx", "the supplement for Word"),
    ("report.tex", "Answer and manuscript for LaTeX, with latex/ and references.bib"),
    ("supplement.tex", "the supplement for LaTeX"),
    ("figures", "SVG and PNG"),
    ("tables", "CSV as shown; _full: unrounded"),
    ("trials.csv", "every trial"),
    ("regions.csv.gz", "every region of a trial, if a table is made from them"),
    ("items.csv", "every item, if a table is made from their properties"),
    ("models.R", "recomputes the estimates and refits mixed models with lme4 from the rows in models/"),
    ("numbers.json", "where each number comes from"),
)


def files_of(folder: Path) -> list[tuple[str, str]]:
    """Return what a report's folder holds: names of files and folders, and what each is; a folder with its number of files."""
    entries = []
    for name, words in FILES:
        path = folder / name
        if path.is_dir():
            entries.append((f"{name}/", f"{words}, {apa.counted(len(list(path.iterdir())), 'file')}"))
        elif path.is_file():
            entries.append((name, words))
    return entries


def render(content: ReportContent, when: datetime, data: str | None = None) -> str:
    """Return the report's page without writing anything; it names no files of models."""
    return render_document(document_of(content, when), content, {}, data)


def render_document(
    document: Document,
    content: ReportContent,
    sources: Mapping[str, str],
    data: str | None = None,
    sources_of_figures: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the report's page: HTML with its style and figures inside, nothing fetched from elsewhere."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"symbol": head_markup, "note": note_markup}
    page = environment.get_template("report.html.jinja").render(
        document=document,
        sources=sources,
        sources_of_figures=sources_of_figures,
        data=data,
        has_models=content.has_program,
        has_fits=bool(content.all_fits()),
        style=(environment.loader.get_source(environment, "style.css")[0] if environment.loader else ""),
    )
    return as_given(page)
