"""Hands the data over to analysis as files: trials, regions and items as Parquet, and a JSON dictionary of what they mean.

Rows stream from the store in batches, so that a study of any size needs the memory of one batch.
"""

from __future__ import annotations

import json
from pathlib import Path

from experiment.columns import Column, region_columns, trial_columns
from experiment.exporting.dictionary import dictionary_of
from experiment.exporting.files import write_parquet
from experiment.exporting.tables import own_columns, verdict_tables
from experiment.rows.items import item_columns, item_rows
from experiment.rows.regions import region_rows
from experiment.rows.trials import trial_rows
from experiment.store import Store, queries
from experiment.study import Study


def hand_over(study: Study, store: Store, folder: Path) -> Path:
    """Write ``trials.parquet``, ``regions.parquet``, ``items.parquet`` and ``dictionary.json`` into a folder.

    Where Mind Scramble scored the study's task by rule, ``published_scoring.parquet`` says what each reply is worth under that rule;
    of H-TEST, ``published_parsing.parquet`` has both parsers' verdicts on each reply. ``answer_similarity.parquet`` has the cosines of
    free answers where ``wrods score --similarity`` was run.

    Parameters
    ----------
    folder : Path
        Made if it is not there; files in it are replaced.

    Notes
    -----
    ``items.parquet`` holds the study's items as they are now. Where the design differs from that of the newest stored
    version, ``design_changed`` is true in the dictionary; what a session showed stands in its stored plan.

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
        name: {"type": one.type, "unit": one.unit, "prose": one.prose}
        for name, one in trial_columns().items()
    }
    (folder / "dictionary.json").write_text(json.dumps(dictionary, ensure_ascii=False, indent=1), "utf-8")
    return folder
