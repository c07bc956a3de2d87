"""The page of one session, and what can be done to it there; it shows no condition, no item, no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flask import abort, flash, redirect, render_template, request, url_for
from sqlalchemy import Connection
from werkzeug.wrappers import Response as AnyResponse

from experiment.bundle import bundle_folder
from experiment.people.dashboard import deeds
from experiment.people.dashboard.accounts import PERMISSIONS
from experiment.people.dashboard.blueprint import admin
from experiment.people.dashboard.reading import audit_of, flags_of_session
from experiment.people.dashboard.signing_in import account, actor, needs, note
from experiment.people.dashboard.studies import service_of, session_of
from experiment.people.departures import Departed, leave_unagreed
from experiment.people.opening import resume_pass
from experiment.people.pages import digest
from experiment.people.quality import Measure, said, signs
from experiment.people.recruitment.holding import awaits_review
from experiment.people.service import StudyService
from experiment.people.site import this_site
from experiment.store import queries
from experiment.store.collection import collection_of
from experiment.store.exclusions import exclusions
from experiment.store.queries import Row
from stimuli.errors import UserError

LONGEST_REASON = 500
PLOTS = "dashboard.js"
SHOWN_OF_TRIALS = (
    *(
        "trial_index",
        "attempt",
        "block",
        "trial_type",
        "is_practice",
        "is_attention_check",
        "timed_out",
        "rt",
    ),
    *("reading_time", "hidden_ms", "blurred_ms", "dropped_frames", "paste_count", "keyless_chars"),
)
"""What the page tells of a trial: times and circumstances; neither what was shown nor what was answered."""

Deed = Callable[[Connection, Row, str, str], bool]
DEEDS: Mapping[str, tuple[str, Deed]] = {
    "exclude": ("exclude", deeds.exclude),
    "restore": ("exclude", deeds.restore),
    "pilot": ("pilot", deeds.turn_pilot),
    "note": ("note", deeds.add_note),
    "flag": ("flag", deeds.suspect),
    "release": ("run", deeds.release),
    "keep": ("run", deeds.keep),
    "end": ("end", deeds.end),
}
"""What can be done to a session: the permission that it needs, and the deed."""


def measures_of(service: StudyService, row: Row) -> list[Measure]:
    """Return the signs measured of a session."""
    with service.store.read() as connection:
        rows = queries.sessions_overview(connection, service.study)
        mine = [one for one in rows if one["session_id"] == row["session_id"]]
        found = this_site().findings.of(connection, mine, service.session_rules)
    return found.get(row["session_id"], [])


def broken_rules(service: StudyService, found: list[Measure]) -> dict[str, str]:
    """Return the study's declared rules that a session breaks: kind → the reason for which it may be excluded."""
    return {
        one.kind: f"declared rule: {one.kind} {service.session_rules_said[one.kind]}"
        # the reason stays with the data, and is read while others are still decided on
        + ("" if one.is_sealed else f" ({one.evidence})")
        for one in found
        if one.kind in service.session_rules and one.is_flagged
    }


@admin.get("/<study>/sessions/<key>")
@needs("see")
def show_session(study: str, key: str) -> str:
    """Show one session: where it is, what was noticed, what was done to it."""
    service = service_of(study)
    row = session_of(service, key)
    session_id = row["session_id"]
    found = measures_of(service, row)
    with service.store.read() as connection:
        trials = [
            {name: trial[name] for name in SHOWN_OF_TRIALS}
            for trial in queries.trials_of_session(connection, session_id)
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
        measures=found,
        keeps_back=is_open,
        signs=signs(),
        said=said,
        rules=broken_rules(service, found),
        awaits_review=awaits_review(row),
        trials=trials,
        flags=flags,
        done=done,
        excluded=excluded,
        plots=plots_version(),
    )


def plots_version() -> str | None:
    """Return the version of the built plots, None where they are not built: the page says the same without them."""
    try:
        file = bundle_folder() / PLOTS
    except UserError:
        return None
    return digest(file) if file.is_file() else None


@admin.post("/<study>/sessions/<key>/<deed>")
@needs("see")
def do(study: str, key: str, deed: str) -> AnyResponse:
    """Do something to a session, for a reason, and show it again."""
    service = service_of(study)
    row = session_of(service, key)
    if deed not in DEEDS:
        abort(404)
    permission, run = DEEDS[deed]
    mine = account()
    if mine is None or not mine.may(permission):
        allowed = ", ".join(role for role, may in PERMISSIONS.items() if permission in may)
        abort(403, f"Only the following may do this: {allowed}.")
    reason = _reason(service, row)
    who = actor()

    def carry_out(connection: Connection) -> tuple[bool, Departed | None]:
        done = run(connection, row, reason, who)
        is_over = done and deed == "end"
        return done, leave_unagreed(connection, row["session_id"]) if is_over else None

    done, departed = service.store.write(carry_out).result()
    if departed is not None:
        this_site().let_go(service, departed)
        flash(f"{row['reader']} had not agreed to take part: the session has ended and is erased.")
        return redirect(url_for("admin.show"))
    flash(
        _told(deed, row) if done else "Nothing was changed: the session is no longer as the page showed it."
    )
    this_site().live.forget(row["session_id"])
    return redirect(url_for("admin.show_session", study=study, key=key))


@admin.post("/<study>/sessions/<key>/resume-link")
@needs("run")
def make_resume_link(study: str, key: str) -> AnyResponse:
    """Make a link with which the participant continues the session in another browser; it works once, for a day."""
    service = service_of(study)
    with service.store.read() as connection:
        row = queries.session(connection, session_of(service, key)["session_id"])
    if row is None or row["state"] != "started":
        abort(400, "The session has ended, so nobody can continue it.")
    made = this_site().passes.make(study, "resume", **resume_pass(row))
    note("made a link to continue", study=study, session_id=str(row["session_id"]))
    address = url_for("pages.participant", study=study, resume=made, _external=True)
    flash(f"{row['reader']} can continue in another browser with this link, once, within a day: {address}")
    return redirect(url_for("admin.show_session", study=study, key=key))


def _reason(service: StudyService, row: Row) -> str:
    """Return the reason given: a declared rule that the session really breaks, or words."""
    rule = request.form.get("rule", "")
    if rule:
        broken = broken_rules(service, measures_of(service, row))
        if rule not in broken:
            abort(400, "The session does not break this rule.")
        return broken[rule]
    words = " ".join(request.form.get("reason", "").split())[:LONGEST_REASON]
    if not words:
        abort(400, "Please give a reason: it is kept with the data.")
    return words


def _told(deed: str, row: Mapping[str, Any]) -> str:
    who = row["reader"]
    words = {
        "exclude": f"{who} is excluded; its place on list {row['list_id']} is open again.",
        "restore": f"{who} counts again.",
        "pilot": f"{who} is a real session now." if row["is_pilot"] else f"{who} is a pilot now.",
        "note": "The note is kept.",
        "flag": f"{who} is flagged.",
        "release": f"{who} is released: the participant’s page shows the code when it is opened again.",
        "keep": f"{who} stays held and gets no code.",
        "end": f"The session of {who} has ended; what it has is kept.",
    }
    return words[deed]
