"""Withdrawal of a participant from the dashboard: first what it erases and what it cannot reach, then the deed."""

from __future__ import annotations

from pathlib import Path

from flask import abort, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from experiment.custody.persons import Found, find_person
from experiment.custody.withdrawal import scope_of, withdraw
from experiment.people.dashboard.blueprint import admin
from experiment.people.dashboard.signing_in import actor, needs
from experiment.people.dashboard.studies import service_of, session_of
from experiment.people.service import StudyService
from experiment.people.site import this_site
from experiment.store.queries import Row


def _folder(service: StudyService) -> Path:
    if service.folder is None:
        abort(404)
    return service.folder


def _found(service: StudyService, row: Row) -> list[Found]:
    """Return all sessions of the session's participant: a person withdraws, not a session."""
    with service.store.read() as connection:
        return find_person(connection, service.study, session=row["session_id"])


@admin.get("/<study>/sessions/<key>/withdrawal")
@needs("withdraw")
def ask_withdrawal(study: str, key: str) -> str:
    """Say what a withdrawal erases and what lies beyond its reach; change nothing."""
    service = service_of(study)
    row = session_of(service, key)
    scope = scope_of(service.store, study, _folder(service), _found(service, row))
    return render_template("admin/withdraw.html", service=service, session=row, key=key, scope=scope)


@admin.post("/<study>/sessions/<key>/withdrawal")
@needs("withdraw")
def withdraw_session(study: str, key: str) -> AnyResponse:
    """Erase a participant's sessions, once their number is typed."""
    service = service_of(study)
    row = session_of(service, key)
    if request.form.get("typed", "").strip() != row["reader"]:
        abort(400, f"Nothing was erased: type {row['reader']} to go on.")
    ids = [one.session_id for one in _found(service, row)]
    _, scrubbed = withdraw(service.store, study, _folder(service), ids, actor=actor())
    for session_id in ids:
        this_site().live.forget(session_id)
        this_site().findings.forget(session_id)
    left = f" Not erased: {'; '.join(scrubbed.left)}." if scrubbed.left else ""
    flash(f"{row['reader']} is withdrawn. Backups cleaned: {len(scrubbed.backups)}.{left}")
    return redirect(url_for("admin.show"))
