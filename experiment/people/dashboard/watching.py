"""The live page: which participants are where, and how lists fill; never a condition or a correct answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Response, jsonify, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from experiment.people.dashboard.blueprint import admin
from experiment.people.dashboard.failures import Failures, failures, most
from experiment.people.dashboard.reading import (
    flag_counts,
    key_of,
    latest_blocks,
    looks,
    spent_by_model,
    suspicions,
)
from experiment.people.dashboard.signing_in import needs, signed_in
from experiment.people.dashboard.studies import service_of
from experiment.people.quality import Measure, flagged
from experiment.people.recruitment.holding import awaits_review
from experiment.people.service import StudyService
from experiment.people.site import this_site
from experiment.store import queries
from experiment.store.backups import FOLDER, backups_in
from experiment.store.collection import collection_of
from experiment.store.declining import number_of
from experiment.store.exclusions import excluded_sessions

NEWEST_BACKUPS = 3
MEASURING_S = 0.5
"""How long one answer may spend on measuring sessions: the rest comes with the next."""


@admin.get("/")
@needs("see")
def show() -> str:
    """Show the live page."""
    services = list(this_site().services.values())
    failed = None
    if signed_in("audit"):
        failed = most(_failures(service) for service in services if service.store.trouble is None)
    return render_template("admin/sessions.html", services=services, failed=failed)


def _failures(service: StudyService) -> Failures:
    with service.store.read() as connection:
        return failures(connection, service.study)


@admin.get("/data.json")
@needs("see")
def data() -> Response:
    """Return what the live page shows now; 304 where that is what the browser has."""
    present = datetime.now(UTC)
    site = this_site()
    # a database that cannot be used is named by the banner, and keeps nobody from the other studies
    usable = [service for service in site.services.values() if service.store.trouble is None]
    told = jsonify(
        studies=[_tell(service, present) for service in usable],
        concerns=[
            {"study": one.study, "words": one.words, "stops_answers": one.stops_answers}
            for one in site.health.concerns()
        ],
    )
    told.add_etag()
    told.make_conditional(request)
    told.headers["X-Wrods-Now"] = present.isoformat(timespec="milliseconds")
    return told


def _tell(service: StudyService, present: datetime) -> dict[str, Any]:
    with service.store.read() as connection:
        rows = queries.sessions_overview(connection, service.study)
        beside = Beside(
            excluded=set(connection.scalars(excluded_sessions())),
            blocks=latest_blocks(connection, service.study),
            flags=flag_counts(connection, service.study),
            measures=this_site().findings.of(connection, rows, service.session_rules, within_s=MEASURING_S),
        )
        collection = collection_of(connection, service.study)
        declined = number_of(connection, service.study)
        about = {
            "study": service.study,
            "title": service.title,
            "pilot": service.is_pilot,
            "collection": {"state": collection.state, "by": collection.by, "since": collection.since},
            "wanted": None if service.recruitment is None else service.recruitment.wanted,
            "models": spent_by_model(connection, service.study),
            "looks": looks(connection, service.study),
            "backups": _backups(service),
        }
    return about | study_overview(rows, service.list_ids, present, beside, declined=declined)


def _backups(service: StudyService) -> dict[str, Any] | None:
    if service.folder is None:
        return None
    there = backups_in(service.folder / FOLDER)
    newest = [
        {
            "file": one.file.name,
            "at": None if one.made_at is None else one.made_at.isoformat(timespec="seconds"),
            "bytes": one.file.stat().st_size,
        }
        for one in reversed(there[-NEWEST_BACKUPS:])
        if one.file.is_file()
    ]
    return {"number": len(there), "newest": newest}


@admin.get("/<study>/pilot")
@needs("pilot")
def pilot(study: str) -> AnyResponse:
    """Open a study's page as a pilot."""
    service_of(study)
    return redirect(url_for("pages.participant", study=study, pilot=this_site().passes.make(study, "pilot")))


ACTIVE = timedelta(minutes=5)
MOST_ROWS = 300
KINDS = ("human", "simulated", "model", "baseline")
COUNTED = ("finished", "running", "interrupted")


@dataclass(frozen=True)
class Beside:
    """What stands beside the sessions' own rows, by session id."""

    excluded: Collection[str] = ()
    blocks: Mapping[str, str | None] = field(default_factory=dict)
    flags: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    measures: Mapping[str, Sequence[Measure]] = field(default_factory=dict)


def moment(text: str) -> datetime:
    """Read one of the store's times of day."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def state_of(session: Mapping[str, Any], now: datetime) -> str:
    """Return a session's state: where it is under way, ``running``, or ``interrupted`` when long unheard of."""
    if session["state"] != "started":
        return str(session["state"])
    return "running" if now - moment(session["last_seen_at"]) < ACTIVE else "interrupted"


def study_overview(
    sessions: Sequence[Mapping[str, Any]],
    lists: Sequence[int],
    now: datetime,
    beside: Beside | None = None,
    *,
    declined: int = 0,
) -> dict[str, Any]:
    """Summarise a study's sessions for the live page."""
    beside = beside or Beside()
    kinds: dict[str, Counter[str]] = {}
    filled: dict[int, dict[str, Counter[str]]] = {list_id: {} for list_id in lists}
    rows = []
    for session in sessions:
        state = state_of(session, now)
        is_excluded = session["session_id"] in beside.excluded
        group = _group(session, is_excluded)
        kinds.setdefault(group, Counter())[state] += 1
        if session["list_id"] is not None:
            filled.setdefault(session["list_id"], {}).setdefault(group, Counter())[state] += 1
        rows.append(_row(session, state, group, beside))
    if declined:
        kinds.setdefault("human", Counter())["declined"] = declined
    # sorting keeps the order of equals, so the newest stay first within a state
    rows.sort(key=lambda row: row["state"] != "running")
    return {
        "kinds": {
            group: dict(kinds[group]) | {"all": kinds[group].total()}
            for group in (*KINDS, "held", "pilot", "excluded")
            if group in kinds
        },
        "lists": [
            {"list_id": list_id, "groups": {group: dict(counts) for group, counts in groups.items()}}
            for list_id, groups in sorted(filled.items())
        ],
        "sessions": rows[:MOST_ROWS],
        "hidden": max(0, len(rows) - MOST_ROWS),
    }


def _group(session: Mapping[str, Any], is_excluded: bool) -> str:
    if session["is_pilot"]:
        return "pilot"
    if is_excluded:
        return "excluded"
    return "held" if session["held_reason"] else str(session["reader_kind"])


def _row(session: Mapping[str, Any], state: str, group: str, beside: Beside) -> dict[str, Any]:
    number, session_id = session["participant_id"], session["session_id"]
    found = flagged(beside.measures.get(session_id, ()))
    return {
        "key": key_of(session_id),
        "reader": session["reader"],
        "participant": number if number != session["reader"] else None,
        "kind": session["reader_kind"],
        "group": group,
        "pilot": bool(session["is_pilot"]),
        "state": state,
        "reason": session["ended_reason"],
        "held": session["held_reason"],
        "awaits_review": awaits_review(session),
        "station": session["station"],
        "list": session["list_id"],
        "version": session["version"],
        "block": beside.blocks.get(session_id),
        "trials": session["n_trials"],
        "trial": None if session["last_trial"] is None else session["last_trial"] + 1,
        "planned": session["planned_trials"],
        "started": session["created_at"],
        "seen": session["last_seen_at"],
        "code": None if session["held_reason"] else session["completion_code"],
        "signs": [one.label for one in found],
        "flags": suspicions(beside.flags.get(session_id, {})),
        "notes": beside.flags.get(session_id, {}).get("note", 0),
    }
