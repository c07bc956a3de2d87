"""The page of one session, its actions, and withdrawal; it shows no condition, item or answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from flask import abort, flash, redirect, render_template, request, url_for
from sqlalchemy import Connection
from werkzeug.wrappers import Response as AnyResponse

from experiment.bundle import bundle_folder
from experiment.integrity.withdrawal import PersonSession, find_person, scope_of, withdraw
from experiment.people.dashboard.authentication import account, actor, admin, needs, note
from experiment.people.dashboard.reading import NOTE, PILOT, REAL, audit_of, flags_of_session, session_of
from experiment.people.dashboard.sign_ins import PERMISSIONS
from experiment.people.pages import digest
from experiment.people.quality import QualitySign, said, signs
from experiment.people.recruitment.return_links import awaits_review, keep, release
from experiment.people.response_intake import Departed, leave_unagreed
from experiment.people.server_state import service_of, this_site
from experiment.people.service import StudyService
from experiment.people.session_start import resume_pass
from experiment.store import records
from experiment.store.records import (
    EXCLUDED,
    RESTORED,
    SUSPECT,
    Row,
    add_audit,
    add_event,
    add_flag,
    collection_of,
    exclusions,
)
from experiment.store.session_activity import change_session, end_session
from experiment.store.tables import sessions
from stimuli.errors import UserError

LONGEST_REASON = 500
PLOTS = "dashboard.js"
SHOWN_OF_TRIALS = ("trial_index", "attempt", "block", "trial_type", "is_practice", "is_attention_check", "timed_out",
                   "rt", "reading_time", "hidden_ms", "blurred_ms", "dropped_frames", "paste_count",
                   "keyless_chars")  # fmt: skip
"""Columns about a trial that the page shows: times and circumstances, without content and answers."""

Action = Callable[[Connection, Row, str, str], str | None]
"""Applies an action to a session for a reason, in a user's name; returns its name for the audit, or None if nothing changed.

Nothing is removed: flags are added, and the newest applies. The user who decides sees neither condition nor correctness.
"""


def _adds_flag(kind: str, action: str) -> Action:
    def add(connection: Connection, row: Row, reason: str, name: str) -> str:
        add_flag(connection, row["session_id"], kind, reason, name)
        return action

    return add


def _turn_pilot(connection: Connection, row: Row, reason: str, name: str) -> str | None:
    """Turn a session into a pilot, or a pilot into a real session; counts of lists and places follow."""
    was_pilot = bool(row["is_pilot"])
    is_same = sessions.c.is_pilot == was_pilot
    if not change_session(connection, row["session_id"], is_same, is_pilot=not was_pilot):
        return None
    add_flag(connection, row["session_id"], REAL if was_pilot else PILOT, reason, name)
    return "made real" if was_pilot else "made a pilot"


def _end(connection: Connection, row: Row, reason: str, name: str) -> str | None:
    if not end_session(connection, row["session_id"], "ended", f"experimenter: {reason}"):
        return None
    add_event(connection, row["session_id"], "ended_by_experimenter", {"reason": reason, "by": name})
    return "ended"


ACTIONS: Mapping[str, tuple[str, Action]] = {
    "exclude": ("exclude", _adds_flag(EXCLUDED, "excluded")),
    "restore": ("exclude", _adds_flag(RESTORED, "restored")),
    "pilot": ("pilot", _turn_pilot),
    "note": ("note", _adds_flag(NOTE, "noted")),
    "flag": ("flag", _adds_flag(SUSPECT, "flagged")),
    "release": (
        "run",
        lambda connection, row, *_: "released" if release(connection, row["session_id"]) else None,
    ),
    "keep": (
        "run",
        lambda connection, row, reason, _: (
            "kept held" if keep(connection, row["session_id"], reason) else None
        ),
    ),
    "end": ("end", _end),
}
"""The actions on a session: required permission, and function."""


def measures_of(service: StudyService, row: Row) -> list[QualitySign]:
    """Return a session's quality signs."""
    with service.store.read() as connection:
        rows = records.sessions_overview(connection, service.study)
        mine = [session for session in rows if session["session_id"] == row["session_id"]]
        signs_of_session = this_site().findings.of(connection, mine, service.session_rules)
    return signs_of_session.get(row["session_id"], [])


def broken_rules(service: StudyService, found: list[QualitySign]) -> dict[str, str]:
    """Return the declared exclusion rules that a session meets: kind → reason for its exclusion."""
    return {
        sign.kind: f"declared rule: {sign.kind} {service.session_rules_said[sign.kind]}"
        # the reason is stored with the data, and is read while decisions on other sessions are pending
        + ("" if sign.is_sealed else f" ({sign.evidence})")
        for sign in found
        if sign.kind in service.session_rules and sign.is_flagged
    }


@admin.get("/<study>/sessions/<key>")
@needs("see")
def show_session(study: str, key: str) -> str:
    """Show one session: progress, flags, history."""
    service = service_of(study)
    row = session_of(service, key)
    session_id = row["session_id"]
    signs_found = measures_of(service, row)
    with service.store.read() as connection:
        trials = [
            {name: trial[name] for name in SHOWN_OF_TRIALS}
            for trial in records.trials_of_session(connection, session_id)
        ]
        flags = flags_of_session(connection, session_id)
        done = audit_of(connection, study, session_id=session_id)
        excluded = exclusions(connection, study).get((session_id, None, None))
        is_open = collection_of(connection, study).state != "closed"
    return render_template(
        "admin/session.html",
        service=service,
        session=row,
        key=key,
        measures=signs_found,
        keeps_back=is_open,
        signs=signs(),
        said=said,
        rules=broken_rules(service, signs_found),
        awaits_review=awaits_review(row),
        trials=trials,
        flags=flags,
        done=done,
        excluded=excluded,
        plots=plots_version(),
    )


def plots_version() -> str | None:
    """Return the version of the built plots; None if they are not built, and the page works without them."""
    try:
        file = bundle_folder() / PLOTS
    except UserError:
        return None
    return digest(file) if file.is_file() else None


@admin.post("/<study>/sessions/<key>/<action>")
@needs("see")
def do(study: str, key: str, action: str) -> AnyResponse:
    """Apply an action to a session for a reason, and show it again."""
    service = service_of(study)
    row = session_of(service, key)
    if action not in ACTIONS:
        abort(404)
    permission, run = ACTIONS[action]
    mine = account()
    if mine is None or not mine.may(permission):
        allowed = ", ".join(role for role, may in PERMISSIONS.items() if permission in may)
        abort(403, f"Only the following may do this: {allowed}.")
    reason = _reason(service, row)
    who = actor()

    def carry_out(connection: Connection) -> tuple[bool, Departed | None]:
        done = run(connection, row, reason, who)
        if done is None:
            return False, None
        detail = {"reason": reason}
        add_audit(connection, who, done, study=study, session_id=row["session_id"], detail=detail)
        return True, leave_unagreed(connection, row["session_id"]) if action == "end" else None

    done, departed = service.store.write(carry_out).result()
    if departed is not None:
        this_site().let_go(service, departed)
        flash(f"{row['reader']} had not agreed to take part: the session has ended and is erased.")
        return redirect(url_for("admin.show"))
    name = row["reader"]
    messages = {
        "exclude": f"{name} is excluded; its place on list {row['list_id']} is open again.",
        "restore": f"{name} counts again.",
        "pilot": f"{name} is a real session now." if row["is_pilot"] else f"{name} is a pilot now.",
        "note": "The note is kept.",
        "flag": f"{name} is flagged.",
        "release": f"{name} is released: the participant’s page shows the code when it is opened again.",
        "keep": f"{name} stays held and gets no code.",
        "end": f"The session of {name} has ended; what it has is kept.",
    }
    flash(
        messages[action] if done else "Nothing was changed: the session is no longer as the page showed it."
    )
    this_site().live.forget(row["session_id"])
    return redirect(url_for("admin.show_session", study=study, key=key))


@admin.post("/<study>/sessions/<key>/resume-link")
@needs("run")
def make_resume_link(study: str, key: str) -> AnyResponse:
    """Create a link with which the participant continues the session in another browser, once, within a day."""
    service = service_of(study)
    with service.store.read() as connection:
        row = records.session(connection, session_of(service, key)["session_id"])
    if row is None or row["state"] != "started":
        abort(400, "The session has ended, so nobody can continue it.")
    made = this_site().passes.make(study, "resume", **resume_pass(row))
    note("made a link to continue", study=study, session_id=str(row["session_id"]))
    address = url_for("pages.participant", study=study, resume=made, _external=True)
    flash(f"{row['reader']} can continue in another browser with this link, once, within a day: {address}")
    return redirect(url_for("admin.show_session", study=study, key=key))


def _reason(service: StudyService, row: Row) -> str:
    """Return the given reason: a declared rule that the session meets, or the user's text."""
    rule = request.form.get("rule", "")
    if rule:
        broken = broken_rules(service, measures_of(service, row))
        if rule not in broken:
            abort(400, "The session does not break this rule.")
        return broken[rule]
    words = " ".join(request.form.get("reason", "").split())[:LONGEST_REASON]
    if not words:
        abort(400, "Please give a reason. It will be stored with the data.")
    return words


def _folder(service: StudyService) -> Path:
    if service.folder is None:
        abort(404)
    return service.folder


def _found(service: StudyService, row: Row) -> list[PersonSession]:
    """Return all sessions of the session's participant: withdrawal covers the whole participant."""
    with service.store.read() as connection:
        return find_person(connection, service.study, session=row["session_id"])


@admin.get("/<study>/sessions/<key>/withdrawal")
@needs("withdraw")
def ask_withdrawal(study: str, key: str) -> str:
    """Show what a withdrawal erases and what it cannot erase, without changing anything."""
    service = service_of(study)
    row = session_of(service, key)
    scope = scope_of(service.store, study, _folder(service), _found(service, row))
    return render_template("admin/withdraw.html", service=service, session=row, key=key, scope=scope)


@admin.post("/<study>/sessions/<key>/withdrawal")
@needs("withdraw")
def withdraw_session(study: str, key: str) -> AnyResponse:
    """Erase a participant's sessions after their number was typed."""
    service = service_of(study)
    row = session_of(service, key)
    if request.form.get("typed", "").strip() != row["reader"]:
        abort(400, f"Nothing was erased: type {row['reader']} to continue.")
    ids = [session.session_id for session in _found(service, row)]
    _, scrubbed = withdraw(service.store, study, _folder(service), ids, actor=actor())
    this_site().drop(ids)
    left = f" Not erased: {'; '.join(scrubbed.left)}." if scrubbed.left else ""
    flash(f"{row['reader']} is withdrawn. Backups cleaned: {len(scrubbed.backups)}.{left}")
    return redirect(url_for("admin.show"))
