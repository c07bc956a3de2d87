"""What a study's tables mean beside their columns: its factors, readers and how each was set, trainings, versions, plan and freeze.

A handover has it as ``dictionary.json``, an export as ``plan.json``: whoever has the tables can report them as the study's own
folder does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from experiment.custody.freezing import changes_since, read_freeze
from experiment.custody.registering import registration_of
from experiment.exporting.collected import told_of_calls, told_of_people, told_of_procedure
from experiment.rating.told import told_of_rating
from experiment.simulated import read_truth
from experiment.store import queries
from experiment.store.declining import DECLINED, number_of
from experiment.study import Study
from experiment.study.plans import planned_analyses
from experiment.study.trained import KIND, as_trained, given_trainings, training_folder
from experiment.tuning.record import read_record
from experiment.version import installed_version

TRUTH_FILE, PLAN = "simulated.json", "plan.json"


def dictionary_of(
    study: Study, connection: Connection, sessions: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the data dictionary of a study without the meaning of single columns.

    Parameters
    ----------
    study : Study
        With built items.
    connection : sqlalchemy.Connection
        To its store.
    sessions : sequence of mapping
        Those whose rows are handed over, of :func:`experiment.store.queries.sessions_overview`; of other readers nothing is told.
    """
    readers = _readers(study, connection, sessions)
    trained = {one["settings"].get("trained") for one in readers.values() if "settings" in one} - {None}
    versions = queries.all_versions(connection, study.id)
    collected = str(versions[-1]["design_hash"]) if versions else None
    factors = {
        name: {"levels": list(levels), "reference": next(iter(levels)), "coding": "treatment"}
        for name, levels in study.factors.items()
    }
    truth = study.folder / TRUTH_FILE
    has_simulated = any(session["reader_kind"] == "simulated" for session in sessions)
    registration = registration_of(connection, study.id)
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
        "planned": {one.name: one.to_json() for one in planned_analyses(study)},
        "exclude": study.get("analysis", "exclude", default={}),
        "probing": study.get("analysis", "probing"),
        "truth": read_truth(truth).to_json() if has_simulated and truth.exists() else None,
        "participants": told_of_people(study, connection),
        "procedure": told_of_procedure(study),
        "rating": told_of_rating(study, connection),
        "frozen": _frozen(study),
        "registration": None if registration is None else registration.to_json(),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "wrods": installed_version(),
    }


def write_plan(dictionary: Mapping[str, Any], file: Path) -> None:
    """Write the plan of analysis, and what else a report needs to know beside the tables: readers, trainings, versions, freeze.

    The study's name stands in it because every draw of an analysis is seeded by it: a report of an export has the same numbers.

    Parameters
    ----------
    dictionary : mapping
        Of :func:`dictionary_of`.
    file : Path
    """
    factors = dictionary["factors"]
    plan = {
        **dictionary,
        "factors": {name: one["levels"] for name, one in factors.items()},
        "reference": {name: one["reference"] for name, one in factors.items()},
        "coding": "treatment",
    }
    file.write_text(json.dumps(plan, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _readers(
    study: Study, connection: Connection, sessions: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return by reader group what it is, how it was set, and what its calls came to."""
    resolved = queries.resolved_models(connection, study.id)
    counted = queries.counted_parameters(connection, study.id)
    readers: dict[str, dict[str, Any]] = {}
    for session in sessions:
        kind = session["reader_kind"]
        if session["state"] == DECLINED:
            continue  # of earlier databases; they are counted with those of whom nothing is stored
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
    if "human" in readers:
        readers["human"]["declined"] = number_of(connection, study.id)
    for reader, told in told_of_calls(connection, study.id).items():
        readers.get(reader, {}).update(told)
    return readers


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


def _settings_of(study: Study, group: str) -> dict[str, Any] | None:
    """Return what the study says of a model, also of one that it trains and does not name; None for other readers."""
    if group in study.models:
        return study.models[group]
    name = group.removeprefix(f"{KIND}:")
    if name == group or name not in given_trainings(study):
        return None
    return as_trained(study, {"use": group}, group)
