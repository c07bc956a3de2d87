"""Writes regions and items beside a report whose tables are made of them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow import csv

from analysis.report.tracing import ITEMS, REGIONS
from analysis.tables import Tables

_OPTIONS = csv.WriteOptions(quoting_style="needed")


def write_rows_named(tables: Tables, folder: Path, names: Collection[str]) -> None:
    """Write ``regions.csv.gz`` and ``items.csv``, each where it is named; regions are read and written batch by batch."""
    if ITEMS in names and len(tables.items):
        csv.write_csv(_as_written(tables.items), folder / ITEMS, _OPTIONS)
    if REGIONS not in names:
        return
    writer: csv.CSVWriter | None = None
    with pa.CompressedOutputStream(pa.OSFile(str(folder / REGIONS), "wb"), "gzip") as file:
        for batch in tables.region_batches():
            part = _as_written(batch)
            if writer is None:
                schema = part.schema
                writer = csv.CSVWriter(file, schema, write_options=_OPTIONS)
            writer.write_table(part.cast(schema))
        if writer is not None:
            writer.close()


def _as_written(rows: pd.DataFrame) -> pa.Table:
    """Turn rows into a table with truth values as TRUE and FALSE, as in trials.csv."""
    told = {name: _cells(rows[name]) for name in rows}
    return pa.table(told)


def _cells(cells: pd.Series) -> pa.Array:
    if cells.dtype == bool or (
        cells.dtype == object and cells.dropna().map(lambda one: isinstance(one, bool)).all()
    ):
        return pa.array(cells.map({True: "TRUE", False: "FALSE"}), pa.string(), from_pandas=True)
    if pd.api.types.is_numeric_dtype(cells):
        return pa.array(pd.to_numeric(cells).astype(float), pa.float64(), from_pandas=True)
    return pa.array([None if pd.isna(one) else str(one) for one in cells], pa.string())
