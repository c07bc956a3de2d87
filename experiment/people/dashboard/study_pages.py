"""What is done to a whole study: start, pause and close, looks at its quality, flags, the audit."""

from __future__ import annotations

from typing import Any

from flask import abort, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from experiment.people.dashboard.accounts import OWNER
from experiment.people.dashboard.blueprint import admin
from experiment.people.dashboard.looking import condition_means, pooled
from experiment.people.dashboard.reading import AT_ONCE, SHORT, audit_of, in_words, key_of, looks
from experiment.people.dashboard.signing_in import account, actor, needs, note
from experiment.people.dashboard.studies import service_of
from experiment.people.quality import flagged, said, signs
from experiment.people.site import this_site
from experiment.store import queries
from experiment.store.collection import collection_of, set_collection
from experiment.store.exclusions import exclusions

STATES = {"open": "run", "paused": "run", "closed": "close"}
"""How a study may stand, and the permission to bring it there; a closed one is opened again by who may close it."""


@admin.post("/<study>/collection")
@needs("run")
def set_state(study: str) -> AnyResponse:
    """Start, pause or close a study."""
    service = service_of(study)
    state = request.form.get("state", "")
    with service.store.read() as connection:
        before = collection_of(connection, study).state
    who = account()
    if state not in STATES:
        abort(400, "A study is open, paused or closed.")
    if who is None or not {STATES[state], STATES[before]} <= _may(who):
        abort(403, "Only an owner closes a study, or opens it again.")
    reason = " ".join(request.form.get("reason", "").split())[:500]
    name = actor()
    service.store.write(
        lambda connection: set_collection(connection, study, state, name, reason)  # type: ignore[arg-type]
    ).result()
    words = {
        "open": "New participants can begin.",
        "paused": "No new participants can begin; sessions in progress continue.",
        "closed": "The study is closed; condition means are visible.",
    }
    flash(words[state])
    return redirect(url_for("admin.show"))


def _may(who: Any) -> set[str]:
    return {permission for permission in STATES.values() if who.may(permission)}


@admin.get("/<study>/flags")
@needs("see")
def show_flags(study: str) -> str:
    """Show every session that shows a sign of careless or automatic answering, with the numbers."""
    service = service_of(study)
    with service.store.read() as connection:
        rows = queries.sessions_overview(connection, study)
        found = this_site().findings.of(connection, rows, service.session_rules)
        excluded = {
            mark[0]: why for mark, why in exclusions(connection, study).items() if mark[1:] == (None, None)
        }
        is_open = collection_of(connection, study).state != "closed"
    lines = [
        {
            "key": key_of(row["session_id"]),
            "reader": row["reader"],
            "kind": row["reader_kind"],
            "pilot": row["is_pilot"],
            "state": row["state"],
            "excluded": excluded.get(row["session_id"]),
            "found": flagged(found[row["session_id"]]),
        }
        for row in rows
        if flagged(found.get(row["session_id"], []))
    ]
    lines.sort(key=lambda line: -len(line["found"]))
    return render_template(
        "admin/flags.html",
        service=service,
        lines=lines,
        signs=signs(),
        said=said,
        sessions=len(found),
        keeps_back=is_open,
    )


@admin.get("/<study>/quality")
@needs("see")
def ask_quality(study: str) -> str:
    """Say how often somebody looked, and offer another look."""
    service = service_of(study)
    with service.store.read() as connection:
        number, collection = looks(connection, study), collection_of(connection, study)
    return render_template(
        "admin/quality.html", service=service, looks=number, collection=collection, groups=None, means=None
    )


@admin.post("/<study>/quality")
@needs("see")
def show_quality(study: str) -> str:
    """Show quality pooled over all conditions, and log the look; means by condition once the study is closed."""
    service = service_of(study)
    with service.store.read() as connection:
        collection = collection_of(connection, study)
        groups = pooled(connection, study)
        means = condition_means(connection, study, service.factors) if collection.state == "closed" else None
    sizes = {group.name: group.sessions for group in groups}
    note("look" if means is None else "look by condition", study=study, detail={"sessions": sizes})
    with service.store.read() as connection:
        number = looks(connection, study)
    return render_template(
        "admin/quality.html", service=service, looks=number, collection=collection, groups=groups, means=means
    )


@admin.get("/<study>/audit")
@needs("audit")
def show_audit(study: str) -> str:
    """Show who did what to a study."""
    service = service_of(study)
    with service.store.read() as connection:
        before = request.args.get("before", type=int)
        lines = audit_of(connection, study, before=before if before is None else max(0, min(before, 2**31)))
        readers = {row["session_id"]: row["reader"] for row in queries.sessions_overview(connection, study)}
    return render_template(
        "admin/audit.html",
        service=service,
        lines=lines,
        older=lines[-1]["audit_id"] if len(lines) == AT_ONCE else None,
        is_newest=before is None,
        in_words=in_words,
        short=SHORT,
        readers=readers,
        key_of=key_of,
        owner=OWNER,
    )
