"""The live page: who is where, and how lists fill; blind to conditions and correctness."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from flask import Response, jsonify, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from experiment.people.dashboard.blueprint import admin
from experiment.people.dashboard.failures import Failures, failures, most
from experiment.people.dashboard.overview import Beside, study_overview
from experiment.people.dashboard.reading import flag_counts, latest_blocks, looks, spent_by_model
from experiment.people.dashboard.signing_in import needs, signed_in
from experiment.people.dashboard.studies import service_of
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
