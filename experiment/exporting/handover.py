"""Hands the data over to analysis as files: trials, regions and items as Parquet, and a JSON dictionary of what they mean.

Rows stream from the store in batches, so that a study of any size needs the memory of one batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiment.columns import Column, region_columns, trial_columns
from experiment.custody.freezing import changes_since, read_freeze
from experiment.custody.registering import registration_of
from experiment.exporting.collected import told_of_calls, told_of_people, told_of_procedure
from experiment.exporting.files import write_parquet
from experiment.exporting.tables import own_columns
from experiment.rows.items import item_columns, item_rows
from experiment.rows.regions import region_rows
from experiment.rows.trials import trial_rows
from experiment.scoring.h_test import PARSED_COLUMNS, has_published_parser, parsed_rows
from experiment.scoring.mind_scramble import FAULT_COLUMNS, fault_rows, is_of_typobench
from experiment.simulated import read_truth
from experiment.store import Store, queries
from experiment.study import Study
from experiment.study.plans import completed_plans
from experiment.study.trained import KIND, as_trained, given_trainings, training_folder
from experiment.tuning.record import read_record
from experiment.version import installed_version

TRUTH_FILE = "simulated.json"


def hand_over(study: Study, store: Store, folder: Path) -> Path:
    """Write ``trials.parquet``, ``regions.parquet``, ``items.parquet`` and ``dictionary.json`` into a folder.

    Where Mind Scramble scored the study's task by rule, ``published_scoring.parquet`` says what each reply is worth under that rule;
    of H-TEST, ``published_parsing.parquet`` has both parsers' verdicts on each reply.

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
        resolved = queries.resolved_models(connection, study.id)
        counted = queries.counted_parameters(connection, study.id)
        versions = queries.all_versions(connection, study.id)
        registration = registration_of(connection, study.id)
        asked, people = told_of_calls(connection, study.id), told_of_people(study, connection)
        if is_of_typobench(study):
            write_parquet(folder / "published_scoring.parquet", FAULT_COLUMNS, fault_rows(study, connection))
        if has_published_parser(study):
            write_parquet(
                folder / "published_parsing.parquet", PARSED_COLUMNS, parsed_rows(study, connection)
            )
    columns = item_columns(study.items, tuple(study.factors), own_columns("items"))
    write_parquet(folder / "items.parquet", columns, item_rows(study.items))
    collected = str(versions[-1]["design_hash"]) if versions else None
    dictionary = _dictionary(study, sessions, resolved, counted, collected)
    for reader, told in asked.items():
        dictionary["readers"].get(reader, {}).update(told)
    dictionary["participants"] = people
    dictionary["procedure"] = told_of_procedure(study)
    dictionary["frozen"] = _frozen(study)
    dictionary["registration"] = None if registration is None else registration.to_json()
    (folder / "dictionary.json").write_text(json.dumps(dictionary, ensure_ascii=False, indent=1), "utf-8")
    return folder


def _frozen(study: Study) -> dict[str, Any] | None:
    """Return what analysis tells of a study's freeze, and in what the study differs from it now; None without one."""
    frozen = read_freeze(study.folder)
    if frozen is None:
        return None
    return {
        "hash": frozen.hash,
        "frozen_at": frozen.frozen_at,
        "sessions_before": frozen.sessions_before,
        "earlier": [dict(one) for one in frozen.earlier],
        "changes": changes_since(study, frozen),
    }


def _dictionary(
    study: Study,
    sessions: list[dict[str, Any]],
    resolved: Mapping[str, list[str]],
    counted: Mapping[str, int],
    collected: str | None,
) -> dict[str, Any]:
    readers: dict[str, dict[str, Any]] = {}
    for session in sessions:
        kind = session["reader_kind"]
        group = kind if kind in ("human", "simulated") else session["reader"]
        entry = readers.setdefault(group, {"kind": kind, "sessions": 0, "pilot_sessions": 0, "finished": 0})
        entry["sessions"] += 1
        entry["pilot_sessions"] += int(session["is_pilot"])
        entry["finished"] += int(session["state"] == "finished")
        if (settings := _settings_of(study, group)) is not None:
            entry |= {"settings": settings, "use": settings["use"]}
        if group in resolved:
            entry["resolved"] = ", ".join(resolved[group])
        if group in counted:
            entry["parameters"] = counted[group]
    trained = {one["settings"].get("trained") for one in readers.values() if "settings" in one} - {None}
    factors = {
        name: {"levels": list(levels), "reference": next(iter(levels)), "coding": "treatment"}
        for name, levels in study.factors.items()
    }
    prose = {name: {"type": c.type, "unit": c.unit, "prose": c.prose} for name, c in trial_columns().items()}
    truth = study.folder / TRUTH_FILE
    has_simulated = any(session["reader_kind"] == "simulated" for session in sessions)
    return {
        "study": study.id,
        "title": study.title,
        "versions": sorted({session["version"] for session in sessions}),
        "design_hash": study.design_hash,
        "collected_design_hash": collected,
        "design_changed": collected not in (None, study.design_hash),
        "language": study.language,
        "seed": study.seed,
        "participants_wanted": study.get("participants", "wanted"),
        "factors": factors,
        "between": study.between,
        "readers": readers,
        "tuning": {name: read_record(training_folder(study.folder, name)) for name in sorted(trained)},
        "planned": completed_plans(study),
        "exclude": study.get("analysis", "exclude", default={}),
        "probing": study.get("analysis", "probing"),
        "truth": read_truth(truth).to_json() if has_simulated and truth.exists() else None,
        "columns": prose,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "wrods": installed_version(),
    }


def _settings_of(study: Study, group: str) -> dict[str, Any] | None:
    """Return what the study says of a model, also of one that it trains and does not name; None for other readers."""
    if group in study.models:
        return study.models[group]
    name = group.removeprefix(f"{KIND}:")
    if name == group or name not in given_trainings(study):
        return None
    return as_trained(study, {"use": group}, group)
